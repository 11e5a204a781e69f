"""The command info."""

from __future__ import annotations

from typing import Annotated

from pidcomm.bench import info as information
from pidcomm.bench.results import Results
from pidcomm.cli.app import command
from pidcomm.cli.options import json_option


@command("pidcomm info", "pidcomm info --json -")
def info(
    json_target: Annotated[str | None, json_option("the printed facts as one JSON object")] = None,
) -> None:
    """Print the version, the machine, and the names of all collectives, types, operators and
    techniques.
    """
    with Results(json_target) as results:
        facts = information.facts()
        results.text(*(f"{name + ':':18} {value}" for name, value in information.in_words(facts)))
        results.json(facts)
