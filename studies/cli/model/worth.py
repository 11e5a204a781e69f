"""The command model worth. All times are modelled."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pidcomm import ArgumentError
from pidcomm.bench.columns import table
from pidcomm.bench.oracle import Problem
from pidcomm.bench.results import Results
from pidcomm.bench.timing import BASE
from pidcomm.cli.app import check_op, command
from pidcomm.cli.options import (
    BytesOption,
    CollectiveArgument,
    DtypeOption,
    MaskOption,
    OpOption,
    ShapeOption,
    json_option,
)
from pidcomm.model import Prediction
from pidcomm.model.prediction import DEFAULT_MACHINE, SOURCE
from pidcomm.sizes import format_duration, format_gain, format_shape, parse_shape, parse_size
from pidcomm_studies.cli.model.group import group
from pidcomm_studies.cli.model.predict import (
    MachineOption,
    capacity,
    json_row,
    load_upmem,
    title,
)
from pidcomm_studies.models import Estimate, compare

BY_HAND = "by hand"
WORTH = 1.1  # least gain for which a changed program pays; errors of the model can be larger


@command(
    "pidcomm model worth allreduce --shape 32x32 --mask 10 --bytes 1MiB",
    "pidcomm model worth alltoall --machine mine.toml --kernel-us 40000",
    group=group,
)
def worth(
    collective: CollectiveArgument,
    shape: ShapeOption = "32x32",
    mask: MaskOption = "10",
    size: BytesOption = "1MiB",
    dtype: DtypeOption = "int32",
    op: OpOption = "sum",
    machine: MachineOption = DEFAULT_MACHINE,
    kernel_us: Annotated[
        float,
        typer.Option(
            "--kernel-us",
            min=0,
            help="Time of the PE programs of an iteration, with their launches, in us.",
        ),
    ] = 0,
    json_target: Annotated[str | None, json_option("a JSON line per table row")] = None,
) -> None:
    """Say whether pidcomm makes a program faster, if an iteration of the program runs PE programs
    and then a collective.

    All times are modelled. Row "by hand" transfers the data with the SDK and works on them with one
    host thread; row conventional uses all threads; the last row is the fastest other technique
    that needs no scratch and keeps the PE program. Gains are speed-ups over conventional.
    """
    check_op([collective])
    if not kernel_us < float("inf"):
        raise ArgumentError(f"--kernel-us {kernel_us} is not a time in us")
    on, lengths, size_bytes = load_upmem(machine), parse_shape(shape), parse_size(size)
    if size_bytes == 0:
        raise ArgumentError("with 0 bytes per PE, no technique takes time; give at least 8")
    problem = Problem(collective, lengths, mask, size_bytes, dtype, op)
    arguments: dict[str, Any] = {"bytes": size_bytes, "dtype": dtype, "op": op, "machine": on}
    estimates = compare(collective, lengths, mask, **arguments)
    [by_hand] = compare(collective, lengths, mask, **arguments, technique=BASE, threads=1)
    [base] = [estimate for estimate in estimates if estimate.prediction.technique == BASE]
    best = next(
        estimate
        for estimate in estimates
        if estimate.prediction.phases != base.prediction.phases  # it runs as conventional
        and not (estimate.scratch_bytes or estimate.replaces_program)
    )

    def iteration(estimate: Estimate) -> float:
        return 1e-6 * kernel_us + estimate.prediction.seconds

    gain = iteration(base) / iteration(best)
    times = table(
        f"{title(problem, on)}, {format_shape(lengths)} mask {mask}",
        ["technique", ">collective", ">gain", ">PE programs", ">iteration", ">gain"],
    )
    with Results(json_target) as results:
        for name, estimate in ((BY_HAND, by_hand), (BASE, base), (None, best)):
            prediction = estimate.prediction
            gains = {
                "speed_up": base.prediction.seconds / prediction.seconds,
                "iteration_speed_up": iteration(base) / iteration(estimate),
            }
            times.add_row(
                name or prediction.technique,
                format_duration(prediction.seconds),
                format_gain(gains["speed_up"]),
                format_duration(1e-6 * kernel_us),
                format_duration(iteration(estimate)),
                format_gain(gains["iteration_speed_up"]),
            )
            seconds = {"kernel_seconds": 1e-6 * kernel_us, "iteration_seconds": iteration(estimate)}
            row = {**json_row(problem, estimate, name), **seconds, **gains}
            results.json_lines([{**row, "is_worth": gain >= WORTH}])
        results.text(times, *capacity(problem, on))
        results.text(
            f"{'worth it' if gain >= WORTH else 'not worth it'} ({SOURCE}): an iteration takes"
            f" {format_duration(iteration(best))} with {best.prediction.technique},"
            f" {format_duration(iteration(base))} with {BASE}: {format_gain(gain)}"
            + ("" if gain >= WORTH else f", less than {WORTH:.1f}x")
            + _overlap(base.prediction, best.prediction)
        )


def _overlap(base: Prediction, best: Prediction) -> str:
    """Return a warning if the errors of the model may hide which collective is faster."""
    if base.interval is None or best.interval is None:
        return ""
    lows, highs = zip(base.interval, best.interval, strict=True)
    return "; the 95% intervals of the collectives overlap" if max(lows) <= min(highs) else ""
