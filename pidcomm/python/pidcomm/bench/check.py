"""Random cases that compare every element of a result with the oracle, and check the bytes
around the result.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, get_args

import numpy as np

from pidcomm import _core
from pidcomm._core import CHIPS_PER_RANK, LINE_BYTES, RUN_BYTES
from pidcomm.arguments import Options, as_integer, options_of
from pidcomm.bench import platform
from pidcomm.bench.check_movements import Movement, audit, make_movement
from pidcomm.bench.measure import POISON, SDK
from pidcomm.bench.oracle import (
    ByteRows,
    OracleOp,
    Problem,
    distinct_bytes,
    element_of,
    is_defined,
)
from pidcomm.errors import Error
from pidcomm.hypercube import Hypercube
from pidcomm.operators import LibraryOpName, ScaledSum
from pidcomm.pe_set import PeSet, allocate
from pidcomm.programs import MRAM_WINDOW
from pidcomm.sizes import format_shape
from pidcomm.tables import COHERENCES, ISAS, OPS, ROWS, SCANS, TECHNIQUES, TYPES, WORD_BYTES
from pidcomm.trace import Trace

MAX_PES = 256
GUARD_WORDS = 24
EXTRA_PES = 16
# PEs that the check disables: (rank, chip, bank).
DISABLED = ((1, 3, 2), (2, 0, 7), (2, 5, 7))
POOL_RANKS = 5
# First bytes of the windows: the heap's start, windows that cross a run or 1 MiB, and (None) the
# end of MRAM.
ORIGINS = (0, RUN_BYTES - 40, (1 << 20) - 72, None)
OPERATORS: tuple[OracleOp, ...] = (*OPS, *get_args(LibraryOpName), ScaledSum(0.3))


@dataclass(frozen=True)
class Case:
    """One random collective or scan with all its parameters."""

    number: int
    seed: int
    problem: Problem
    src: int
    dst: int
    window: int  # added to src, dst and scratch: 0, or MRAM_WINDOW, which names MRAM bytes
    fill: str
    options: Options
    scratch: int
    # Whether the set has only the PEs of the case; the last entangled group may then be partial.
    is_exact_set: bool
    origin: int  # first byte of the MRAM that is checked
    span_bytes: int

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return self.problem.pes

    @property
    def shape(self) -> tuple[int, ...]:
        """Axis lengths."""
        return self.problem.shape

    def __str__(self) -> str:
        """Describe the case with all parameters that repeat the case."""
        problem, options = self.problem, self.options
        op = f" {problem.op}" if problem.row.takes_op else ""
        place = " in place" if self.src == self.dst else ""
        return (
            f"--seed {self.seed} --case {self.number}: {problem.collective}{op} {problem.dtype}"
            f" ({self.fill}) {format_shape(problem.shape)} mask {problem.mask}, {problem.bytes}"
            f" bytes, src {self.src} dst {self.dst}{place}"
            f"{' as MRAM bytes' if self.window else ''}, {options['technique']} {options['isa']}"
            f" {options['threads']} threads, coherence {options['coherence']},"
            f" {'exact set' if self.is_exact_set else 'larger set'}"
        )


def _random_shape(rng: random.Random) -> tuple[int, ...]:
    """Return axis lengths of a random shape.

    In most shapes all lengths except the last are powers of two.
    """
    while True:
        axes = rng.randint(1, 4)
        if rng.random() < 0.6:
            lengths = [rng.choice((1, 2, 2, 4, 4, 8, 8, 16, 32)) for _ in range(axes - 1)]
            lengths.append(rng.choice((1, 2, 3, 4, 5, 7, 8, 16, 24)))
            if prod(lengths) % CHIPS_PER_RANK:
                continue
        else:
            lengths = [rng.choice((1, 2, 3, 3, 4, 5, 6, 7, 9, 12)) for _ in range(axes)]
        if prod(lengths) <= MAX_PES:
            return tuple(lengths)


def make_case(seed: int, number: int) -> Case | Movement:
    """Return case `number` of a seed. Equal arguments give equal cases. Raises ArgumentError for
    arguments that are not integers from 0.
    """
    seed, number = as_integer("seed", seed), as_integer("number", number)
    rng = random.Random(f"{seed}:{number}")
    technique = rng.choice(list(TECHNIQUES)) if rng.random() < 0.5 else "tile"
    options = options_of(
        technique=technique,
        isa=rng.choice([name for name, isa in ISAS.items() if isa.is_available]),
        threads=rng.choice((1, 2, 3, 4)),
        coherence=rng.choice(list(COHERENCES)),
    )
    is_exact_set = rng.random() < 0.2
    shape = _random_shape(rng)
    mask = "".join(rng.choice("011") for _ in shape)
    if rng.random() < 0.25:
        return make_movement(rng, seed, number, shape, mask, options, is_exact_set)
    collective = rng.choice(
        [name for name, row in ROWS.items() if TECHNIQUES[technique].is_for(row)]
    )
    row = ROWS[collective]
    dtype = rng.choice(list(TYPES))
    op = rng.choice([op for op in OPERATORS if is_defined(op, dtype)])
    element = element_of(dtype, op if row.takes_op else "sum")
    members = prod(length for length, bit in zip(shape, mask, strict=True) if bit == "1")
    blocks = row.blocks_per_pe(members)
    words = rng.choice((0, 1, 1, 2, 3, 5, 8, 13, 16, 33, 64, 65, 129, 200))
    words = min(words, max(1, 2048 // blocks))
    unit = max(WORD_BYTES, element.itemsize)
    problem = Problem(collective, shape, mask, blocks * words * unit, dtype, op)

    if not _is_possible(
        problem, options
    ):  # the paper's techniques do not support all shapes and sizes
        options["technique"] = "tile"
    if row.takes_op and TYPES[dtype].is_float:
        # The oracle has the order of additions of `tile`, which scans always have.
        is_ordered = collective in SCANS or _plan_of(problem, options)["path"] in ("tile", "fold")
        fill = rng.choice(("exact", "special", "rounding") if is_ordered else ("exact", "special"))
    else:
        fill = rng.choice(("distinct", "exact")) if row.takes_op else "distinct"

    in_words, out_words = (
        rows.row_bytes // WORD_BYTES if rows.at_pes else 0
        for rows in (problem.before, problem.after)
    )
    first, gap = rng.randint(1, GUARD_WORDS), rng.choice((0, 0, 1, 7, 100))
    if rng.random() < 0.3:
        src = dst = first
        end = first + max(in_words, out_words)
    elif rng.random() < 0.5:
        src, dst = first, first + in_words + gap
        end = dst + out_words
    else:
        src, dst = first + out_words + gap, first
        end = src + in_words
    # Scratch follows the windows, within the guarded span.
    scratch, end = (
        end,
        end + in_words + rng.choice((0, 1, 9)),
    )
    span_bytes = (end + rng.randint(1, GUARD_WORDS)) * WORD_BYTES
    origin = rng.choice(ORIGINS)
    if origin is None:
        origin = _core.MRAM_BYTES - span_bytes
    return Case(
        number,
        seed,
        problem,
        origin + src * WORD_BYTES,
        origin + dst * WORD_BYTES,
        rng.choice((0, MRAM_WINDOW)),
        fill,
        options,
        origin + scratch * WORD_BYTES,
        is_exact_set,
        origin,
        span_bytes,
    )


def _is_possible(problem: Problem, options: Options) -> bool:
    try:
        _plan_of(problem, options)
    except Error:
        return False
    return True


def _plan_of(problem: Problem, options: Options) -> dict[str, Any]:
    """Return the plan of a problem, with windows that suit every path."""
    from pidcomm.plans import plan

    anywhere: Options = {**options, "scratch": _core.MRAM_BYTES // 2}
    return plan(
        problem.collective,
        problem.shape,
        problem.mask,
        bytes=problem.bytes,
        dtype=problem.element,
        op=problem.op,
        **anywhere,
    )


class Checker:
    """Run cases on a PE set that most cases share. On an emulated machine some PEs are disabled."""

    def __init__(self) -> None:
        self._before = platform.emulated()

    def __enter__(self) -> Checker:
        """Disable PEs of the emulated machine, and allocate the shared set."""
        if self._before is not None:
            platform.configure(hugepages=self._before.hugepages, disabled=DISABLED)
        self._pool = allocate(ranks=POOL_RANKS)
        return self

    def __exit__(self, *_: object) -> None:
        """Free the set, and restore the machine."""
        self._pool.free()
        if self._before is not None:
            platform.configure(**vars(self._before))

    def failure(self, case: Case | Movement) -> str | None:
        """Run a case.

        Return a text about the faults of the result, or None for a correct result.
        """
        if not case.is_exact_set:
            return self._failure_on(self._pool, case)
        with allocate(pes=case.pes) as own:
            return self._failure_on(own, case)

    def _failure_on(self, pe_set: PeSet, case: Case | Movement) -> str | None:
        rounded_pes = -(-case.pes // CHIPS_PER_RANK) * CHIPS_PER_RANK
        try:
            around = pe_set.hypercube(min(pe_set.usable_pes, rounded_pes + EXTRA_PES))
            cube = pe_set.hypercube(*case.shape)
            faults = case.run if isinstance(case, Movement) else partial(_run, case)
            return "; ".join(faults(cube, around)) or None
        except (Error, ValueError) as error:
            return f"{type(error).__name__}: {error}"


def _run(case: Case, cube: Hypercube, around: Hypercube) -> Iterator[str]:
    """Run a case on a cube and yield the faults. around: a larger cube; its PEs outside the cube
    must not change.
    """
    problem = case.problem
    before = problem.payload(case.seed + case.number, case.fill)
    image = distinct_bytes(~(case.seed + case.number) & 0xFFFFFFFF, around.pes, case.span_bytes)
    src, dst = case.src - case.origin, case.dst - case.origin
    if problem.before.at_pes:
        image[: cube.pes, src : src + problem.before.row_bytes] = before
    around.write(image, case.origin, **SDK)

    host_out, canary = _guarded(problem)
    host_in = None if problem.before.at_pes else before.copy()
    trace, _ = cube.carry_out(
        problem.collective,
        problem.mask,
        bytes=problem.bytes,
        src=case.src + case.window,
        dst=case.dst + case.window,
        dtype=problem.element,
        op=problem.op,
        host=None if host_in is None else host_in.view(problem.element),
        out=None if host_out is None else host_out.view(problem.element),
        options={**case.options, "scratch": case.scratch + case.window},
    )
    after = around.read(case.span_bytes, np.uint8, case.origin, **SDK)

    result = (
        host_out
        if host_out is not None
        else after[: cube.pes, dst : dst + problem.after.row_bytes].copy()
    )
    if result.size and (verdict := problem.check(before, result)).wrong:
        yield f"{verdict.wrong} wrong elements; {verdict.first}"
    if host_out is None:
        image[: cube.pes, dst : dst + problem.after.row_bytes] = result
    if TECHNIQUES[trace.technique].runs_pe_program:  # only scratch may change
        scratch = slice(
            case.scratch - case.origin, case.scratch - case.origin + problem.before.row_bytes
        )
        image[: cube.pes, scratch] = after[: cube.pes, scratch]
    if not np.array_equal(image, after):
        pe, byte = np.argwhere(image != after)[0]
        yield f"PE {pe} byte {byte + case.origin} outside the result changed"
    if not np.all(canary == POISON):
        yield "host memory around the result changed"
    if host_in is not None and not np.array_equal(host_in, before):
        yield "the host input changed"
    yield from _broken_promises(case, trace, audit(cube))


def _guarded(problem: Problem) -> tuple[ByteRows | None, ByteRows]:
    """Return host rows for the result, and the poisoned memory before and after these rows."""
    if problem.after.at_pes:
        return None, np.full(1, POISON, np.uint8)
    guard, size = 64, problem.after.count * problem.after.row_bytes
    memory = np.full(size + 2 * guard, POISON, np.uint8)
    rows = memory[guard : guard + size].reshape(problem.after.shape)
    return rows, np.lib.stride_tricks.as_strided(memory, (2, guard), (size + guard, 1))


def _broken_promises(case: Case, trace: Trace, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each number of lines that the plan promises and the audit ISA did not
    count.
    """
    problem = case.problem
    plan = _plan_of(problem, case.options)
    path = plan["path"]
    if trace.isa != "audit" or problem.bytes == 0 or path == "sdk":
        return
    egs = -(-problem.pes // CHIPS_PER_RANK)
    loads, stores = (
        egs * (rows.row_bytes // WORD_BYTES) if rows.at_pes else 0
        for rows in (problem.before, problem.after)
    )
    promises = {"lines_outside": 0}
    if path == "member_steps":  # lines are loaded and stored several times
        promises["lines_loaded"] = trace.mram_bytes_read // LINE_BYTES
        promises["lines_stored"] = trace.mram_bytes_written // LINE_BYTES
    else:
        # If the last entangled group has other PEs, the pass also loads the lines of these.
        if problem.pes % CHIPS_PER_RANK == 0:
            promises["distinct_lines_loaded"] = loads
            if (
                all(sweep["section_pes"] == CHIPS_PER_RANK for sweep in plan["sweeps"])
                if "sweeps" in plan
                else problem.collective != "reduce_scatter"
            ):
                promises["lines_loaded"] = loads
        promises["lines_stored"] = promises["distinct_lines_stored"] = stores
    if trace.coherence == "hardware":
        promises["loads_unflushed"] = 0
    for name, promised in promises.items():
        if counts[name] != promised:
            yield f"{name} is {counts[name]}, not {promised}"
