"""The search for the pace of the passes on this CPU; see pidcomm/tuning.h."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import geometric_mean, median
from time import monotonic
from typing import NamedTuple

from pidcomm import _core
from pidcomm._rows import CollectiveName
from pidcomm.arguments import Options
from pidcomm.bench.measure import Scratch, Trial
from pidcomm.bench.oracle import Problem
from pidcomm.errors import Error
from pidcomm.pe_set import PeSet

__all__ = ["CASES", "Choice", "gain", "tune", "write_file"]

LEAST_GAIN = 1.03  # a change of one value must be this much faster, because times vary
ROUNDS = 4
TILE: Options = {"technique": "tile"}


class Group(NamedTuple):
    """A shape and a mask on which a pass is timed. has_power: with the bytes per PE of the search,
    which are a power of two; else with a multiple of 8 bytes for each member, for others behave
    differently.
    """

    shape: tuple[int, ...]
    mask: str
    has_power: bool = False


class Case(NamedTuple):
    """The collectives that run a pass, and where they are timed."""

    collectives: tuple[CollectiveName, ...]
    groups: tuple[Group, ...]


REGULAR = (Group((32, 32), "10", has_power=True), Group((32, 32), "01"))
# Groups of 4, 8 and 1 entangled groups of a rank.
RANK = (Group((32, 32), "10", has_power=True), Group((64, 16), "10"), Group((8, 128), "10"))
RANKS = (
    Group((32, 32), "11", has_power=True),
    Group((32, 32), "01"),
    Group((64, 16), "01"),
)
SECTIONS = (Group((12, 80), "01"), Group((60, 16), "10"))
CASES = {
    "transpose": Case(("alltoall",), (*REGULAR, Group((32, 32), "11", has_power=True))),
    "replicate": Case(("allgather",), REGULAR),
    "reduce_blocks": Case(("reduce_scatter",), RANK),
    "reduce_blocks_over_ranks": Case(("reduce_scatter",), RANKS),
    "reduce_lanes": Case(("allreduce",), RANK),
    "reduce_lanes_over_ranks": Case(("allreduce",), RANKS),
    "reduce_to_host": Case(("reduce",), RANK),
    "reduce_to_host_over_ranks": Case(("reduce",), RANKS),
    "merge": Case(("alltoall",), (Group((12, 80), "10"), Group((3, 5, 64), "010"))),
    "reduce_rows": Case(("reduce_scatter", "allreduce"), SECTIONS),
    "reduce_rows_to_host": Case(("reduce",), SECTIONS),
    "to_host": Case(("gather",), REGULAR),
    "from_host": Case(("scatter",), REGULAR),
}
# The bytes of groups without has_power are a multiple of this number, which 8 bytes times the
# members of each of these groups divides.
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


def others_of(pass_: str, key: str, best: dict[str, int]) -> list[dict[str, int]]:
    """Return the values of a pass to try in place of the best ones so far. They differ in `key`;
    for reductions without prefetches, also in step_words.
    """
    if key == "prefetches":
        other = {**best, key: 1 - best[key]}
        if pass_ == "to_host":
            return [other]
        if not pass_.startswith("reduce") or pass_.startswith("reduce_lanes"):
            return []
        longest = {**best, key: 0, "step_words": _core.tuning()[pass_][2]}
        return [other] if longest in (best, other) else [other, longest]
    values = _candidates(pass_, key, best[key])
    return [{**best, key: value} for value in values if value != best[key]]


def _candidates(pass_: str, key: str, value: int) -> list[int]:
    """Return the values of a key to try in place of `value`, perhaps with `value`."""
    _, least, most = _core.tuning()[pass_]
    if key == "step_words":
        steps = [least]
        while 2 * steps[-1] <= most:
            steps.append(2 * steps[-1])
        return steps
    if key == "ahead":
        # On an AMD EPYC, powers of two were up to 10% slower for reductions than values between.
        return sorted({value // 2, value * 7 // 8, value * 2}) if 2 <= value <= 512 else []
    if key == "ahead_level":
        return [1, 2]
    if key == "members" and not pass_.startswith("reduce"):
        return []
    return [1, 2, 4, 8]


Times = Sequence[float]  # us, by the case of a pass


def gain(before: Times, after: Times) -> float:
    """Return the mean speed-up of the cases, or 0 if one becomes 3% slower."""
    gains = [old / new for old, new in zip(before, after, strict=True)]
    return geometric_mean(gains) if LEAST_GAIN * min(gains) > 1 else 0


class _Search:
    """The trials of one pass."""

    def __init__(self, pe_set: PeSet, pass_: str, size: int) -> None:
        case = CASES[pass_]
        other_size = max(size // 2 // SECTION_BYTES, 1) * SECTION_BYTES
        self._set, self._pass = pe_set, pass_
        self._problems = [
            Problem(
                collective,
                group.shape,
                group.mask,
                size if group.has_power else other_size,
                "int32",
            )
            for collective, group in product(case.collectives, case.groups)
        ]
        self._scratch = Scratch(self._problems)

    def us(self, variants: list[dict[str, int]]) -> list[Times]:
        """Return the median times of each variant in each case. The variants take turns."""
        medians = []
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
            medians.append([1e6 * median(own[1:]) for own in times])
        return list(zip(*medians, strict=True))

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

    Changes one key at a time (see others_of), and keeps the value if the cases of the pass are on
    average 3% faster twice, and no case is 3% slower. Yields the name of each pass when its search
    begins, then its values. size: bytes per PE. Stops after about `seconds`; each pass gets
    an equal share of the time that is left. Overwrites the MRAM of the set and needs 1024 PEs.
    Raises Error if a result is wrong.
    """
    end = monotonic() + seconds
    for number, pass_ in enumerate(passes):
        end_of_pass = monotonic() + (end - monotonic()) / (len(passes) - number)
        yield pass_
        search = _Search(pe_set, pass_, size)
        for key in _core.tuning()[pass_][0]:
            best = _core.tuning()[pass_][0]
            others = others_of(pass_, key, best)
            if not others:
                continue
            before, *after = search.us([best, *others])
            found, found_us = best, before
            fastest = max(range(len(others)), key=lambda i: gain(before, after[i]))
            if gain(before, after[fastest]) > LEAST_GAIN:  # again, because the fastest had luck
                before, again = search.us([best, others[fastest]])
                found_us = before
                if gain(before, again) > LEAST_GAIN:
                    search.check(others[fastest])
                    found, found_us = others[fastest], again
            _core.tune(pass_, found)
            yield Choice(pass_, key, best[key], found[key], sum(before), sum(found_us))
            if monotonic() > end_of_pass:
                break
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
