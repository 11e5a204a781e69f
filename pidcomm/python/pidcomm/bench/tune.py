"""The search for the pace of the passes on this CPU; see pidcomm/tuning.h."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic
from typing import NamedTuple

from pidcomm import _core
from pidcomm._rows import CollectiveName
from pidcomm.arguments import Options
from pidcomm.bench.measure import Scratch, Trial
from pidcomm.bench.oracle import Problem
from pidcomm.errors import Error
from pidcomm.pe_set import PeSet

__all__ = ["CASES", "Choice", "tune", "write_file"]

LEAST_GAIN = 1.03  # a change of one value must be this much faster, because times vary
ROUNDS = 5
TILE: Options = {"technique": "tile"}


class Case(NamedTuple):
    """A collective that runs a pass, and its shapes."""

    collective: CollectiveName
    shape: tuple[int, ...]


REGULAR, SECTIONS = (32, 32), (12, 80)
CASES = {
    "transpose": Case("alltoall", REGULAR),
    "replicate": Case("allgather", REGULAR),
    "reduce_blocks": Case("reduce_scatter", REGULAR),
    "reduce_lanes": Case("allreduce", REGULAR),
    "reduce_to_host": Case("reduce", REGULAR),
    "merge": Case("alltoall", SECTIONS),
    "reduce_rows": Case("reduce_scatter", SECTIONS),
    "reduce_rows_to_host": Case("reduce", SECTIONS),
    "to_host": Case("gather", REGULAR),
    "from_host": Case("scatter", REGULAR),
}
# A power of two and another number of bytes behave differently. 12 and 80 blocks of 8 bytes divide
# SECTION_BYTES.
SECTION_BYTES = 12 * 80 * 8


@dataclass(frozen=True)
class Choice:
    """The value of a pass before and after the search, and its times in us."""

    pass_: str
    key: str
    before: int
    after: int
    before_us: float
    after_us: float


def _candidates(pass_: str, key: str, value: int) -> list[int]:
    """Return the values to try in place of `value`."""
    _, least, most = _core.tuning()[pass_]
    if key == "step_words":
        steps = [least]
        while 2 * steps[-1] <= most:
            steps.append(2 * steps[-1])
        return steps
    if key == "ahead":
        return [value // 2, value * 2] if 2 <= value <= 512 else []
    if key == "ahead_level":
        return [1, 2]
    if key == "members" and not pass_.startswith("reduce"):
        return []
    return [1, 2, 4, 8]


class _Search:
    """The trials of one pass."""

    def __init__(self, pe_set: PeSet, pass_: str, size: int) -> None:
        case = CASES[pass_]
        other_size = max(size // 2 // SECTION_BYTES, 1) * SECTION_BYTES
        self._set, self._pass = pe_set, pass_
        self._problems = [
            Problem(case.collective, case.shape, mask, per_pe, "int32")
            for mask, per_pe in (
                ("10", size if case.shape == REGULAR else other_size),
                ("01", other_size),
            )
        ]
        self._scratch = Scratch(self._problems)

    def us(self, variants: list[dict[str, int]]) -> list[float]:
        """Return the sum over the masks of the median times of each variant. The variants take
        turns.
        """
        sums = [0.0] * len(variants)
        for problem in self._problems:
            trials = []
            for values in variants:
                _core.tune(self._pass, values)
                trials.append(Trial(self._set.hypercube(*problem.shape), problem, self._scratch))
            trials[0].load()
            times: list[list[float]] = [[] for _ in variants]
            for _ in range(ROUNDS + 1):
                for values, trial, own in zip(variants, trials, times, strict=True):
                    _core.tune(self._pass, values)
                    own.append(trial.run(TILE).seconds_pass)
            sums = [sum_ + 1e6 * median(own[1:]) for sum_, own in zip(sums, times, strict=True)]
        return sums

    def check(self, values: dict[str, int]) -> None:
        """Compare every element of the results with the oracle; raise Error if one differs."""
        _core.tune(self._pass, values)
        for problem in self._problems:
            cube = self._set.hypercube(*problem.shape)
            verdict = Trial(cube, problem, self._scratch).check(TILE)
            if verdict.wrong:
                raise Error(f"{problem.collective} is wrong with {values}: {verdict.first}")


def tune(pe_set: PeSet, passes: list[str], size: int, seconds: float) -> Iterator[Choice | str]:
    """Search better values for passes, and use them from now on in this process.

    Changes one value at a time, and keeps the value if it is at least 3% faster twice. Yields the
    name of each pass when its search begins, then its values. size: bytes per PE. Stops after about
    `seconds`. Overwrites the MRAM of the set and needs 1024 PEs. Raises Error if a result is wrong.
    """
    end = monotonic() + seconds
    for pass_ in passes:
        yield pass_
        search = _Search(pe_set, pass_, size)
        for key in _core.tuning()[pass_][0]:
            best = _core.tuning()[pass_][0]
            others = [
                {**best, key: value}
                for value in _candidates(pass_, key, best[key])
                if value != best[key]
            ]
            if not others:
                continue
            before, *after = search.us([best, *others])
            found, found_us = best, before
            fastest = others[after.index(min(after))]
            if before > LEAST_GAIN * min(after):  # time both again, because the fastest had luck
                before, again = search.us([best, fastest])
                if before > LEAST_GAIN * again:
                    search.check(fastest)
                    found, found_us = fastest, again
            _core.tune(pass_, found)
            yield Choice(pass_, key, best[key], found[key], before, found_us)
            if monotonic() > end:
                return


def write_file(path: Path, passes: Collection[str]) -> None:
    """Write the values of some passes to a tuning file, with those of passes that the file has."""
    known = set(passes)
    if _core.tuning_source() == str(path):
        known |= {line.split()[0] for line in path.read_text().splitlines()[1:]}
    lines = [_core.tuning_cpu()]
    for pass_, (values, _, _) in _core.tuning().items():
        if pass_ in known:
            lines.append(" ".join([pass_, *(f"{key}={value}" for key, value in values.items())]))
    path.parent.mkdir(parents=True, exist_ok=True)
    complete = path.with_name(f"{path.name}.new")  # other processes read only complete files
    complete.write_text("\n".join(lines) + "\n")
    complete.replace(path)
