"""Prints rows of the benchmarks in this folder as JSON lines."""

import json
from collections.abc import Sequence

import numpy as np

from pidcomm.bench.report import run_facts


def print_row(**values: str | Sequence[float]) -> None:
    """Print a row with the facts of the run. Values that are lists become their median, and the
    quartiles with names that end in _p25 and _p75.
    """
    row: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, str):
            row[name] = value
        else:
            row[f"{name}_p25"], row[name], row[f"{name}_p75"] = np.percentile(value, (25, 50, 75))
    print(json.dumps({**row, **run_facts()}), flush=True)
