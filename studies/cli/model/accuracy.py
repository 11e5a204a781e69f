"""The commands model calibrate and model validate."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

import pidcomm
from pidcomm import ArgumentError, Error
from pidcomm.bench import info
from pidcomm.bench.columns import table
from pidcomm.bench.results import Results
from pidcomm.bench.timing import COMPARED
from pidcomm.cli.app import command, refuse, working
from pidcomm.cli.options import json_option
from pidcomm.errors import require
from pidcomm.model import load_machine
from pidcomm.model.machines import SUFFIX
from pidcomm.model.prediction import EMULATED_MACHINE, PAPER_MACHINE
from pidcomm.sizes import format_shape, parse_positive_size
from pidcomm_studies.cli.model.group import group
from pidcomm_studies.models.samples import MAX_TOTAL
from pidcomm_studies.models.validate import FITTED, NOT_USED, USES
from pidcomm_studies.papers.pidcomm.published import SOURCE as PUBLISHED

TotalOption = Annotated[
    str,
    typer.Option("--max-total", help="Size of the largest collective, in bytes summed over PEs."),
]


@command("pidcomm model calibrate mine.toml --json -", group=group)
def calibrate(
    file: Annotated[Path, typer.Argument(help=f"File to write, with a name in {SUFFIX}.")],
    title: Annotated[
        str, typer.Option("--title", help="Title of this machine, in one line.")
    ] = "this machine",
    samples: Annotated[
        int, typer.Option("--samples", min=50, help="Number of random collectives to time.")
    ] = 400,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random collectives.")] = 1,
    max_total: TotalOption = f"{MAX_TOTAL >> 20}MiB",
    force: Annotated[
        bool, typer.Option("--force", help="Calibrate although other programs use the CPUs.")
    ] = False,
    json_target: Annotated[str | None, json_option("a JSON line per timed collective")] = None,
) -> None:
    """Measure this machine, and write a description of it: a file for option --machine of other
    commands.

    The machine must be idle. The command measures the rates of memory first, and then fits the
    other constants to the times of random collectives; the file states the use of CPUs by other
    programs and the spread of the times. To see the errors of the description, run
    pidcomm model validate --machine FILE.
    """
    require("scipy", "calibrate")
    from pidcomm_studies.models import calibrate as calibration

    if file.suffix != SUFFIX:
        raise ArgumentError(f"the file {file} must end in {SUFFIX}")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise Error(f"cannot write {file}")
    with Results(json_target) as results, working("timing collectives", samples) as work:
        machine, timed = calibration.calibrate(
            str(file),
            title,
            samples=samples,
            seed=seed,
            max_total=parse_positive_size(max_total),
            force=force,
            on_step=work.step,
            on_fit=lambda: work.phase("fitting"),
        )
        file.write_text(machine.to_toml(), encoding="utf-8")
        results.json_lines(
            {
                **_described(timing.sample),
                "measured_us": 1e6 * timing.seconds,
                "spread": timing.spread,
                **_facts(),
            }
            for timing in timed
        )
        results.text(f"{file}: {machine.title}; fitted to {len(timed)} collectives")


@command(
    "pidcomm model validate --samples 20 --max-total 4MiB",
    "pidcomm model validate --machine mine.toml --json errors.jsonl",
    "pidcomm model validate --choices --samples 10 --max-total 4MiB",
    "pidcomm model validate --published",
    group=group,
)
def validate(
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            help=(
                f"A built-in machine or a TOML file (default: {EMULATED_MACHINE}; with --published:"
                " isca24)."
            ),
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", min=1, help="Number of random collectives to time.")
    ] = 200,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of the random collectives; calibrate uses 1.")
    ] = 2,
    max_total: TotalOption = f"{MAX_TOTAL >> 20}MiB",
    published: Annotated[
        bool,
        typer.Option(
            "--published",
            help="Compare predictions with the paper's numbers, without measurements.",
        ),
    ] = False,
    is_left_out: Annotated[
        bool,
        typer.Option(
            "--left-out",
            help="With --published: fit the machine without each number, and without each figure.",
        ),
    ] = False,
    choices: Annotated[
        bool,
        typer.Option(
            "--choices",
            help=(
                "Compare the technique that auto chooses with the fastest technique on this"
                " machine."
            ),
        ),
    ] = False,
    json_target: Annotated[str | None, json_option("a JSON line per comparison")] = None,
) -> None:
    """Compare predictions with measurements on this machine, or with the paper's numbers.

    An error is the modelled time minus the measured or published time, in percent of the measured
    or published time.
    """
    from pidcomm_studies.models import validate as validation

    if published:
        refuse(
            ["--samples", "--seed", "--max-total", "--choices"],
            "with --published, the command measures nothing",
        )
    else:
        refuse(["--left-out"], "only --published has numbers of a fit")
    if is_left_out:
        refuse(["--machine"], "with --left-out, the command fits isca24")
        require("scipy", "validate --left-out")
    with Results(json_target) as results:
        if published:
            checks = validation.check_published(machine or PAPER_MACHINE)
            left_out = _left_out() if is_left_out else {}
            results.json_lines(
                {
                    **check.published._asdict(),
                    PUBLISHED: check.published.value,
                    "modelled": check.modelled,
                    "error_pct": check.error_pct,
                    "use": check.use,
                    "why": check.why,
                    "left_out": left_out.get(check.published.key),  # alone, with its figure
                }
                for check in checks
            )
            results.text(*_published_tables(checks, left_out))
            return
        on = load_machine(machine or EMULATED_MACHINE)
        results.text(
            f"load average {os.getloadavg()[0]:.2f}, {info.cpus()} CPUs: the machine must be idle"
        )
        with working("timing collectives", samples) as work:
            how: Any = {
                "seed": seed,
                "max_total": parse_positive_size(max_total),
                "on_step": work.step,
            }
            if choices:
                chosen = validation.choose(on, samples=samples, **how)
            else:
                compared = validation.compare(on, samples=samples, **how)
        if choices:
            results.json_lines(
                {
                    **_described(choice.sample),
                    "machine": on.name,
                    "measured_us": choice.measured_us,
                    **_facts(),
                }
                for choice in chosen
            )
            results.text(_choice_table(on.name, chosen))
            return
        results.json_lines(
            {
                **_described(comparison.sample),
                "machine": on.name,
                "measured_us": comparison.measured_us,
                "modelled_us": comparison.modelled_us,
                "error_pct": comparison.error_pct,
                **_facts(),
            }
            for comparison in compared
        )
        results.text(_error_table(on.name, list(validation.distributions(compared))))
        results.text("largest errors:")
        for comparison in sorted(compared, key=lambda comparison: -abs(comparison.error_pct))[:5]:
            results.text(
                f"  {comparison.error_pct:+.0f}%: measured {comparison.measured_us:.0f} us:"
                f" {comparison.sample}"
            )


@command("pidcomm model fit-dimms mine.toml --rows ROWS --json -", group=group)
def fit_dimms(
    file: Annotated[Path, typer.Argument(help=f"File to write, with a name in {SUFFIX}.")],
    rows: Annotated[
        Path, typer.Option("--rows", help="Folder with transfers.csv, launches.csv, kernels.csv.")
    ],
    machine: Annotated[
        str, typer.Option("--machine", help="Machine whose other constants the file keeps.")
    ] = "upmem-2560",
    json_target: Annotated[
        str | None, json_option("a JSON line per time that was held out")
    ] = None,
) -> None:
    """Fit the times of transfers, launches and loads to times measured on DIMMs, and write the
    machine to a file.

    transfers.csv has the columns api (with "direct": without the SDK; with "broadcast": the same
    bytes to all PEs), direction (to_dpu, from_dpu), space (mram, wram), dpus, bytes_per_dpu, ms,
    note, repository and path; launches.csv has operation (dpu_load, dpu_launch_sync), dpus,
    elements, ms, note (ending in WRAM if the elements are there), repository and path; kernels.csv,
    which may be missing, has program, args, dpus, h2d_ms, d2h_ms, repository and path.

    The table has the error of modelled times: of the fit, and of fits without the experiment of the
    row (held out), which become the machine's intervals. If there is one experiment of a kind, only
    the row is held out. No fit uses the rows of PrIM's GEMV in kernels.csv.
    """
    require("scipy", "fit-dimms")
    from pidcomm_studies.models import measured

    if file.suffix != SUFFIX:
        raise ArgumentError(f"the file {file} must end in {SUFFIX}")
    start = load_machine(machine)
    times = measured.read_rows(rows)
    with Results(json_target) as results:
        fitted, held_out = measured.fit_to_rows(start, times)
        checked = measured.check(fitted, times)
        file.write_text(fitted.to_toml(), encoding="utf-8")
        results.json_lines(
            {**asdict(test.row), "modelled": test.modelled, "error_pct": test.error_pct, **_facts()}
            for test in held_out
        )
        results.text(
            _fit_table(fitted, checked, held_out),
            f"{file}: {fitted.title}; fitted to {len(checked)} times",
        )


def _fit_table(machine: Any, checked: list[Any], held_out: list[Any]) -> Table:
    from pidcomm_studies.models.measured import is_in_interval

    columns = [f">{use} {size}" for use in ("fit", "held out") for size in ("median", "90%")]
    fit_table = table(
        "error of modelled times in % of times measured on DIMMs",
        ["times", ">rows", *columns, ">in interval"],
    )
    for kind in dict.fromkeys(check.row.kind for check in held_out):
        uses = [[check for check in use if check.row.kind == kind] for use in (checked, held_out)]
        errors = [[abs(check.error_pct) for check in use] for use in uses]
        cells = [
            f"{np.percentile(own, share):.1f}" if own else "-"
            for own in errors
            for share in (50, 90)
        ]
        inside = sum(is_in_interval(machine, check) for check in uses[1])
        fit_table.add_row(
            kind,
            str(len(uses[1])),
            *cells,
            f"{100 * inside / len(uses[1]):.0f}%",
        )
    return fit_table


def _facts() -> dict[str, Any]:
    return {"version": pidcomm.__version__, "commit": info.commit()}


def _described(sample: Any) -> dict[str, Any]:
    problem = sample.problem
    return {
        "collective": problem.collective,
        "shape": format_shape(problem.shape),
        "mask": problem.mask,
        "bytes_per_pe": problem.bytes,
        "dtype": problem.dtype,
        "op": problem.op if problem.row.takes_op else None,
        **sample.options,
        "path": sample.path,
    }


def _error_table(name: str, distributions: list[Any]) -> Table:
    percentiles = [f">{percentile}th pct" for percentile in distributions[0].percentiles]
    error_table = table(
        f"error of modelled times ({name}) in % of times measured here",
        ["of", ">plans", ">median |error|", *percentiles],
    )
    for distribution in distributions:
        error_table.add_row(
            distribution.name,
            str(distribution.count),
            f"{distribution.median_abs:.1f}",
            *(f"{value:+.1f}" for value in distribution.percentiles.values()),
        )
    return error_table


def _choice_table(name: str, chosen: list[Any]) -> Table:
    choice_table = table(
        f"measured here: time over that of the fastest technique, if auto chooses by {name}"
        " (modelled), or always one",
        ["technique", ">is the fastest", ">mean", ">95th pct", ">most"],
    )
    losses = {"auto": [choice.loss(choice.chosen) for choice in chosen]}
    losses |= {technique: [choice.loss(technique) for choice in chosen] for technique in COMPARED}
    for technique, technique_losses in losses.items():
        choice_table.add_row(
            technique,
            f"{sum(loss == 1 for loss in technique_losses)} of {len(technique_losses)}",
            f"{np.exp(np.mean(np.log(technique_losses))):.3f}x",
            f"{np.percentile(technique_losses, 95):.2f}x",
            f"{max(technique_losses):.2f}x",
        )
    return choice_table


def _left_out() -> dict[str, tuple[float, float]]:
    """Return the predictions without each number, and without its figure."""
    from pidcomm_studies.models import paper_fit

    with working("fitting", 2 * len(paper_fit.POINTS)) as work:
        alone, figures = (
            paper_fit.left_out(whole_figures=whole, on_step=work.step) for whole in (False, True)
        )
    return {key: (alone[key], figures[key]) for key in alone}


def _published_tables(checks: list[Any], left_out: dict[str, tuple[float, float]]) -> list[Table]:
    tables: list[Table] = []
    for use in USES:
        of_use = [check for check in checks if check.use == use]
        if not of_use:
            continue
        why = ["~why"] if use == NOT_USED else []
        without = [">number left out", ">figure left out"] if left_out and use == FITTED else []
        check_table = table(
            f"{use}: published and modelled",
            ["point", "~what", ">published", ">modelled", ">error", *without, *why],
        )
        for check in of_use:
            point = check.published
            others = [check.why] if check.why else []
            if without:
                others = [
                    f"{100 * (value / point.value - 1):+.0f}%" for value in left_out[point.key]
                ]
            check_table.add_row(
                point.key,
                point.what,
                f"{point.value:.2f} {point.unit}",
                f"{check.modelled:.2f} {point.unit}",
                f"{check.error_pct:+.0f}%",
                *others,
            )
        tables.append(check_table)
    return tables
