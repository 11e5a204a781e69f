"""The command check."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pidcomm.bench.check import Checker, make_case
from pidcomm.bench.results import Results
from pidcomm.cli.app import command, exit_if_wrong, refuse, working
from pidcomm.cli.options import json_option


@command(
    "pidcomm check", "pidcomm check --cases 2000 --seed 7", "pidcomm check --seed 7 --case 123"
)
def check(
    cases: Annotated[int, typer.Option("--cases", min=1, help="Number of random cases.")] = 500,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", min=0, help="Seed of the random cases; equal seeds give equal cases."
        ),
    ] = 1,
    case: Annotated[
        int | None, typer.Option("--case", min=0, help="Run only the case with this number.")
    ] = None,
    json_target: Annotated[
        str | None,
        json_option("the numbers of passed and failed cases, and the failures, as one JSON object"),
    ] = None,
) -> None:
    """Compare random collectives, scans and movements with the oracle.

    Every element of a result must be right, and every byte outside the result must be unchanged.
    The cases vary shape, mask, type, operator, size, offsets, technique, instruction set, number of
    threads and coherence policy. Some cases run in place, in shapes that are not powers of two, or
    with disabled PEs. If a collective or scan uses instruction set audit, the command also checks
    how many lines of 64 bytes are loaded and stored.
    """
    if case is not None:
        refuse(["--cases"], f"--case {case} runs one case")
    numbers = range(cases) if case is None else range(case, case + 1)
    failures: list[dict[str, Any]] = []
    with Results(json_target) as results, working("allocating PEs") as work, Checker() as checker:
        work.phase("cases", len(numbers))
        for number in numbers:
            random_case = make_case(seed, number)
            if case is not None:
                results.text(str(random_case))
            if (failure := checker.failure(random_case)) is not None:
                failures.append({"case": number, "what": str(random_case), "failure": failure})
                results.text(f"FAILED {random_case}: {failure}", style="red")
            work.step()
        passed, failed = len(numbers) - len(failures), len(failures)
        results.text(f"{passed} passed, {failed} failed", style="red" if failed else "green")
        results.json({"seed": seed, "passed": passed, "failed": failed, "failures": failures})
    exit_if_wrong(failed)
