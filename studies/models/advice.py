"""Predictions that compare techniques, sort shapes by predicted time, and sort constants by
their effect on a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isqrt, log1p, prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from pidcomm import TECHNIQUES, ArgumentError, Error, plan
from pidcomm.arguments import (
    MAX_COUNT,
    as_integer,
    as_shape,
    option_codes,
    options_of,
    with_scratch,
)
from pidcomm.model import Machine, Prediction, load_machine, predict
from pidcomm.model.prediction import DEFAULT_MACHINE
from pidcomm.notebook import Shown
from pidcomm.sizes import format_duration, format_shape
from pidcomm.tables import CHIPS_PER_RANK

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm import Options
    from pidcomm.tables import CollectiveName, OpName

MAX_AXES = 3
# Limit of the product of ways and PEs; above it, ways with the same groups are priced only once.
MANY_WAYS = 1 << 24
STEP = 0.01  # relative change of a constant, to find the influence of the constant
NEGLIGIBLE = 1e-6
# Units of constants that cannot grow by one percent.
_COUNTS = (
    "threads",
    "channels",
    "ranks",
    "1 or 0",
)
_AT_LEAST_1 = "1 or more"  # the unit of constants that are at least 1
_ALWAYS = "tile"  # supports every valid request


@dataclass(frozen=True)
class Estimate(Shown):
    """A hypercube, a mask and a technique, with the predicted time and the requirements of the
    technique.

    scratch_bytes: the MRAM per PE that the technique needs besides the windows. replaces_program:
    whether PEs run a program of the library, which replaces the loaded program.
    """

    shape: tuple[int, ...]
    mask: str
    prediction: Prediction
    scratch_bytes: int
    replaces_program: bool

    def __repr__(self) -> str:
        """Report the hypercube, the mask, the technique and the predicted time."""
        prediction = self.prediction
        return (
            f"<{type(self).__name__} {format_shape(self.shape)} mask {self.mask}, "
            f"{prediction.technique}: {format_duration(prediction.seconds)} "
            f"{prediction.source} on {prediction.machine}>"
        )


class Way(NamedTuple):
    """A shape, a mask and the name of a technique."""

    shape: tuple[int, ...]
    mask: str
    technique: str


@dataclass(frozen=True, repr=False)
class Advice(Estimate):
    """An estimate of a collective, with other variants of equal time.

    alike: the ways with the same plan and prediction as the estimate. reason: a sentence that
    explains the prediction.
    """

    alike: list[Way]
    reason: str


def compare(
    collective: CollectiveName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    dtype: DTypeLike = np.int32,
    op: OpName | None = "sum",
    machine: str | Machine = DEFAULT_MACHINE,
    **options: Unpack[Options],
) -> list[Estimate]:
    """Return an estimate for every technique that supports a collective on a machine, the fastest
    technique first.

    The arguments are the same as for `predict`. The input is at the start of MRAM, and the output
    behind the input.
    Scratch is behind the output unless options give the offset of scratch. Raises ArgumentError as
    the collective would.
    """
    on = load_machine(machine)
    arguments = {"bytes": as_integer("bytes", bytes), "dtype": dtype, "op": op, "machine": on}
    estimates = [
        estimate
        for estimate, _ in _estimates(
            collective, [(tuple(as_shape(shape)), mask)], arguments, options
        )
    ]
    return sorted(estimates, key=lambda estimate: estimate.prediction.seconds)


def advise(
    collective: CollectiveName,
    *,
    pes: int,
    bytes: int,
    group: int | None = None,
    dtype: DTypeLike = np.int32,
    op: OpName | None = "sum",
    machine: str | Machine = DEFAULT_MACHINE,
    top: int = 10,
    **options: Unpack[Options],
) -> list[Advice]:
    """Return at most `top` combinations of hypercube, mask and technique, the shortest predicted
    time first.

    pes: number of PEs; all shapes of one to three axes with this product are compared. bytes: per
    PE. group: number of PEs per group (default: all PEs). Other arguments are the same as for
    `predict`; if the options have a technique, only this technique is predicted. Ways with equal
    costs and equal plans make one piece of advice, which shows the way with the fewest axes. With
    very many PEs (`MANY_WAYS`), a shape is skipped if its mask has equal bits for two neighbouring
    axes, because a shape that joins the two axes makes the same groups.

    Raises ArgumentError as the collective would, and for a group that does not divide pes.
    """
    pes, top = as_integer("pes", pes, low=1, high=MAX_COUNT), as_integer("top", top, low=1)
    group = pes if group is None else as_integer("group", group, low=1)
    if pes % group:
        raise ArgumentError(
            f"groups of {group} PEs do not divide {pes} PEs: {pes} is not a multiple of {group}"
        )
    on = load_machine(machine)
    # Raises for an invalid number of PEs.
    plan(collective, (pes,), "1", bytes=0, dtype=dtype, op=op)
    arguments = {"bytes": as_integer("bytes", bytes), "dtype": dtype, "op": op, "machine": on}
    kinds: dict[object, list[tuple[Estimate, str]]] = {}
    for estimate, planned in _estimates(collective, _arrangements(pes, group), arguments, options):
        how = _how(planned) if bytes else _NOTHING
        key = _rounded(estimate.prediction), how, estimate.scratch_bytes, estimate.replaces_program
        kinds.setdefault(key, []).append((estimate, how))
    ranked = sorted(kinds.values(), key=lambda kind: _rounded(kind[0][0].prediction))
    best = ranked[0][0][0].prediction
    return [
        Advice(
            **vars(first),
            alike=[Way(other.shape, other.mask, other.prediction.technique) for other, _ in others],
            reason=f"{how}; {_why(first.prediction, best)}",
        )
        for (first, how), *others in ranked[:top]
    ]


def influences(
    collective: CollectiveName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    machine: str | Machine = DEFAULT_MACHINE,
    **arguments: Any,
) -> dict[str, float]:
    """Return by how many percent a prediction changes if a constant grows by one percent, for each
    constant.

    The largest influence is first. The arguments are the same as for `predict`. An influence is the
    mean of the effects of increasing and of decreasing the constant, or only of increasing it if a
    decrease leaves the constant's range.
    Constants without influence are omitted. Counts, such as the number of channels, are omitted,
    too. Raises ArgumentError as `predict` does.
    """
    on = load_machine(machine)

    def seconds(machine: Machine, **changed: Any) -> float:
        return predict(
            collective, shape, mask, bytes=bytes, machine=machine, **{**arguments, **changed}
        ).seconds

    base = predict(collective, shape, mask, bytes=bytes, machine=on, **arguments)
    changes = {}
    for name, constant in on.constants.items():
        if constant.unit in _COUNTS:
            continue
        is_least = constant.unit == _AT_LEAST_1 and constant.value < 1 + STEP
        exponents = (1, 0) if is_least else (1, -1)
        up, down = (
            seconds(
                on.with_values({name: constant.value * (1 + STEP) ** to}),
                technique=base.technique,
                isa=base.isa,
            )
            for to in exponents
        )
        change = (up - down) / ((exponents[0] - exponents[1]) * log1p(STEP) * base.seconds)
        if abs(change) > NEGLIGIBLE:
            changes[name] = change
    return dict(sorted(changes.items(), key=lambda item: -abs(item[1])))


def _arrangements(pes: int, group: int) -> list[tuple[tuple[int, ...], str]]:
    """Return shapes and masks that make groups of `group` PEs, fewest axes first.

    With many PEs some shapes are skipped.
    """
    ways = list(_every_arrangement(pes, group))
    if len(ways) * pes <= MANY_WAYS:
        return ways
    return [(shape, mask) for shape, mask in ways if "00" not in mask and "11" not in mask]


def _every_arrangement(pes: int, group: int) -> Iterator[tuple[tuple[int, ...], str]]:
    for axes in range(1, MAX_AXES + 1):
        for shape in _shapes(pes, axes):
            for bits in product("10", repeat=axes):
                if (
                    prod(length for length, bit in zip(shape, bits, strict=True) if bit == "1")
                    == group
                ):
                    yield shape, "".join(bits)


def _shapes(pes: int, axes: int) -> Iterator[tuple[int, ...]]:
    """Yield every shape of `axes` axes longer than 1; a single axis may have any length."""
    if axes == 1:
        yield (pes,)
        return
    for length in _divisors(pes):
        yield from (
            (length, *rest)
            for rest in _shapes(pes // length, axes - 1)
            if length > 1 and rest[0] > 1
        )


def _divisors(number: int) -> list[int]:
    small = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    return sorted({*small, *(number // divisor for divisor in small)})


def _estimates(
    collective: CollectiveName,
    arrangements: Iterable[tuple[tuple[int, ...], str]],
    arguments: dict[str, Any],
    options: Options,
) -> Iterator[tuple[Estimate, dict[str, Any]]]:
    """Yield each valid estimate and its plan.

    If the options have no technique, use every technique.
    """
    option_codes(options)  # raises errors of names
    wanted, size_bytes = options.get("technique"), arguments["bytes"]
    scratch = options.get("scratch") or 2 * size_bytes  # 0: not given
    refusals: list[Error] = []
    is_possible = False
    for shape, mask in arrangements:
        for technique in TECHNIQUES if wanted is None else [wanted]:
            try:
                variant = with_scratch({**options, "technique": technique}, scratch)
                prediction = predict(collective, shape, mask, **arguments, **variant)
            except Error as error:
                if technique == _ALWAYS:
                    raise
                refusals.append(error)
                continue
            is_possible = True
            planned = plan(
                collective,
                shape,
                mask,
                bytes=size_bytes,
                dst=size_bytes,
                dtype=arguments["dtype"],
                op=arguments["op"],
                **options_of(technique=prediction.technique, scratch=scratch),
            )
            replaces = "before" in planned or "after" in planned
            yield (
                Estimate(shape, mask, prediction, planned.get("scratch_bytes", 0), replaces),
                planned,
            )
    if not is_possible:
        raise refusals[0]


def _rounded(prediction: Prediction) -> float:
    """Return seconds without the last digits, which depend on the order of additions."""
    return float(f"{prediction.seconds:.9g}")


_NOTHING = "no bytes move, because the size is 0"


def _how(planned: dict[str, Any]) -> str:
    """Return a short description of the method of a plan."""
    path = planned["path"]
    if path == "member_steps":
        return f"{planned['member_steps']['rounds']} rounds of steps from member to member"
    where = "through host memory, by transfers of the SDK"
    if when := " and ".join(name for name in ("before", "after") if name in planned):
        return f"PEs reorder blocks {when} the host pass" + f", {where}" * (path == "sdk")
    if path == "sdk":
        return where
    if planned["group_pes"] == 1:
        return "a copy, because a group is one PE"
    if (pes := planned["sweeps"][0]["section_pes"]) != CHIPS_PER_RANK:
        return f"sections of {pes} PEs, because the shape has no lane split"
    if bits := max(sweep["lane_mask"].bit_count() for sweep in planned["sweeps"]):
        return f"members differ in {bits} of the 3 lane bits"
    if any(sweep["in"]["space"] == "host" for sweep in planned["sweeps"]):
        return "members share no line: the lanes of a line are from rows of different groups"
    if any(sweep["out"]["space"] == "host" for sweep in planned["sweeps"]):
        return "members share no line: the lanes of a line go to rows of different groups"
    return "members share no line, so lanes stay where they are"


def _why(prediction: Prediction, best: Prediction) -> str:
    """Describe the phase that makes a prediction slower than the best, or the longest phase of
    the best prediction.
    """
    if prediction.seconds <= best.seconds * (1 + 1e-9):
        share, phase = max((seconds, name) for name, seconds in prediction.phases.items())
        return (
            f"{100 * share / prediction.seconds:.0f}% of the time in {phase}"
            if share
            else "it takes no time"
        )
    more, phase = max(
        (seconds - best.phases[name], name) for name, seconds in prediction.phases.items()
    )
    return (
        f"{prediction.seconds / best.seconds:.2f}x the best, {format_duration(more)} more in"
        f" {phase}"
    )
