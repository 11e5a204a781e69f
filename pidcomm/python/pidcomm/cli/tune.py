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
from pidcomm.sizes import format_size, parse_positive_size

PES = 1024
LEAST_BYTES, MOST_BYTES = 16 << 10, 16 << 20


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
    size: Annotated[str, typer.Option("--bytes", help="Bytes per PE, a power of two.")] = "1MiB",
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
    per_pe = parse_positive_size(size)
    if per_pe & (per_pe - 1) != 0 or not LEAST_BYTES <= per_pe <= MOST_BYTES:
        raise ArgumentError(
            f"--bytes is {size}; it must be a power of two from {format_size(LEAST_BYTES)} to"
            f" {format_size(MOST_BYTES)}"
        )
    with Results(json_target) as results:
        platform.configure(hugepages=True)
        results.text(f"values before: {_core.tuning_source()}")
        wanted, measured = passes or list(CASES), list[str]()
        for choice in search(allocate(PES), wanted, per_pe, seconds):
            if isinstance(choice, str):
                measured.append(choice)
                results.text(choice)
                continue
            if choice.before != choice.after:
                results.text(
                    f"  {choice.key} {choice.before} -> {choice.after}:"
                    f" {choice.before_us:.0f} -> {choice.after_us:.0f} us"
                )
            results.json_lines([asdict(choice)])
        if rest := [name for name in wanted if name not in measured]:
            results.text(f"no time for: {', '.join(rest)}")
        if not dry_run:
            write_file(Path(_core.tuning_path()), measured)
            results.text(f"written: {_core.tuning_path()}")
