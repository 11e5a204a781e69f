"""The command tune."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pidcomm import _core
from pidcomm.bench import platform
from pidcomm.bench.results import Results
from pidcomm.bench.tune import CASES, write_file
from pidcomm.bench.tune import tune as search
from pidcomm.cli.app import command
from pidcomm.cli.completion import complete_list
from pidcomm.cli.options import json_option
from pidcomm.errors import ArgumentError, unknown
from pidcomm.pe_set import allocate

PES = 1024


@command("pidcomm tune", "pidcomm tune to_host --dry-run", "PIDCOMM_TUNING=mine pidcomm tune")
def tune(
    passes: Annotated[
        list[str] | None,
        typer.Argument(
            help="Passes (default: all).",
            metavar="[PASS]...",
            autocompletion=complete_list(CASES),
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Stop after about this many seconds.", min=1)
    ] = 110,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not write the file.")] = False,
    json_target: Annotated[str | None, json_option("a JSON line per value")] = None,
) -> None:
    """Measure how the passes over memory run fastest on this CPU.

    Times 1024 PEs and writes the values to the tuning file, which the library reads: the file
    PIDCOMM_TUNING, else pidcomm/tuning in $XDG_CONFIG_HOME or ~/.config. The values change times,
    never results. Let no other program run meanwhile.
    """
    for name in passes or []:
        if name not in CASES:
            raise ArgumentError(unknown("pass", name, CASES))
    if not dry_run and not _core.tuning_path():
        raise ArgumentError("there is no tuning file: PIDCOMM_TUNING is empty, or HOME is not set")
    with Results(json_target) as results:
        platform.configure(hugepages=True)
        results.text(f"values before: {_core.tuning_source()}")
        pe_set = allocate(PES)
        for choice in search(pe_set, passes or list(CASES), seconds):
            if isinstance(choice, str):
                results.text(choice)
                continue
            if choice.before != choice.after:
                results.text(
                    f"  {choice.key} {choice.before} -> {choice.after}:"
                    f" {choice.before_us:.0f} -> {choice.after_us:.0f} us"
                )
            results.json(asdict(choice))
        if not dry_run:
            write_file(Path(_core.tuning_path()))
            results.text(f"written: {_core.tuning_path()}")
