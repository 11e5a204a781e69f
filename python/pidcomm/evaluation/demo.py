"""The demonstration: all collectives beside technique conventional, every element checked."""

from __future__ import annotations

from pidcomm.arguments import Options
from pidcomm.evaluation.bench import COMPARED, Row, Schedule, measure_rows
from pidcomm.evaluation.measure import Scratch, SdkCondition, make_transfers_alike, measure_sdk
from pidcomm.evaluation.oracle import Problem
from pidcomm.pe_set import PeSet
from pidcomm.tables import COLLECTIVES

SCHEDULE = Schedule(iters=3, warmup=1, with_limit=False)


class Demo:
    """Every collective on one set of PEs, with the techniques COMPARED."""

    def __init__(self, pe_set: PeSet, shape: tuple[int, ...], mask: str, size_bytes: int) -> None:
        """Allocate the host memory, and check that every collective is valid."""
        self._pe_set = pe_set
        self._cube = pe_set.hypercube(*shape)
        for name in COLLECTIVES:
            self._cube.plan(name, mask, bytes=size_bytes, dst=size_bytes, dtype="int32")
        self.problems = [Problem(name, shape, mask, size_bytes, "int32") for name in COLLECTIVES]
        self._scratch = Scratch(self.problems)
        self._size_bytes = size_bytes

    def condition(self) -> SdkCondition:
        """Return whether a comparison with the emulated SDK is fair."""
        options: Options = {"coherence": "none"}
        make_transfers_alike(options)
        return measure_sdk(self._cube, self._size_bytes, options, self._scratch, rounds=3)

    def rows(self, problem: Problem, condition: SdkCondition) -> list[Row]:
        """Return the rows of a problem, one per technique."""
        options: Options = {"coherence": "none"}
        return measure_rows(self._pe_set, problem, COMPARED, options, SCHEDULE, self._scratch, condition).rows
