"""Prints rows of the benchmarks in this folder as JSON lines."""

import json

from pidcomm.bench.report import run_facts


def print_row(**values: object) -> None:
    """Print a row with the facts of the run."""
    print(json.dumps({**values, **run_facts()}), flush=True)
