"""The command check."""

from __future__ import annotations

from typing import Annotated

import typer

from pidcomm.check import Checker, make_case
from pidcomm.cli.app import app, exit_if_wrong, progress_bar


@app.command()
def check(
    cases: Annotated[int, typer.Option("--cases", min=0, help="Number of random cases.")] = 500,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed; equal seeds give equal cases.")] = 1,
    case: Annotated[int | None, typer.Option("--case", min=0, help="Run this case of the seed only.")] = None,
) -> None:
    """Compare random collectives with the oracle: every element, and every byte around them.

    Covers shapes (also general ones and partial entangled groups, on a machine with disabled PEs), masks, types,
    operators, sizes, offsets, in place, techniques, instruction sets (with the line counts of audit), threads and
    coherence policies.

    Examples:  pidcomm check --cases 2000   |   pidcomm check --seed 7 --case 123
    """
    numbers = range(cases) if case is None else range(case, case + 1)
    failed = 0
    with Checker() as checker, progress_bar() as progress:
        for number in progress.track(numbers, description="cases"):
            it = make_case(seed, number)
            if case is not None:
                typer.echo(str(it))
            if (failure := checker.failure(it)) is not None:
                failed += 1
                typer.echo(f"FAILED {it}: {failure}")
    typer.echo(f"{len(numbers) - failed} passed, {failed} failed")
    exit_if_wrong(failed)
