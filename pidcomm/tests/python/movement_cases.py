"""Random movements between PEs, scans and operators, and their definitions in plain NumPy. Shares
no code with the package; tests and the campaign run the cases.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from definitions import groups_of

import pidcomm

SHAPES = [(8,), (7,), (8, 8), (4, 16), (3, 5), (12, 11), (2, 3, 5), (32, 4), (16, 4, 2)]
TYPES = ["int8", "uint16", "int32", "int64", "float32", "float64"]
ISAS: list[Any] = [
    "scalar",
    "audit",
    *(isa for isa in ("avx2", "avx512bw") if pidcomm.ISAS[isa].is_available),
]
FILL = 2**32 - 1


class Case:
    """A hypercube, and rows for a buffer of it."""

    def __init__(self, pes: pidcomm.PeSet, choices: random.Random) -> None:
        """Draw the case."""
        self.choices = choices
        self.shape = choices.choice(SHAPES)
        self.cube = pes.hypercube(*self.shape)
        self.pes = self.cube.pes
        self.mask = choices.choice(
            ["".join(choices.choice("01") for _ in self.shape), "1" * len(self.shape)]
        )
        self.groups = groups_of(self.shape, self.mask)
        self.members = len(self.groups[0])
        self.dtype = np.dtype(choices.choice(TYPES))
        self.random = np.random.default_rng(choices.randrange(2**32))
        self.options: pidcomm.Options = {
            "technique": choices.choice(["tile", "tile", "conventional", "pr", "auto"]),
            "threads": choices.randint(1, 3),
            "isa": choices.choice(ISAS),
        }
        self.wait = choices.random() < 0.7
        self.name = ""

    def rows(self, *shape: int) -> Any:
        """Return random rows of the PEs."""
        return self.random.integers(0, 100, (self.pes, *shape)).astype(self.dtype)

    def finished(self, result: Any) -> Any:
        """Return the result of a call that may be non-blocking."""
        return result if self.wait else result.wait()

    def __str__(self) -> str:
        """Name the parameters."""
        return f"{self.name} on {self.shape} mask {self.mask} of {self.dtype}, {self.options}"


def messages(case: Case) -> tuple[Any, Any]:
    """Move random messages: pieces of the windows, several runs, or the same place of all PEs."""
    choices, words = case.choices, case.choices.choice([8, 40, 1500, 2100])
    case.dtype = np.dtype("uint64")
    before, rows = case.rows(words), case.rows(words)
    x, y = case.cube.array(before), case.cube.array(rows)
    listed: list[tuple[int, ...]] = []
    want = rows.copy()
    kind = choices.choice(["pieces", "runs", "in place"])
    if kind == "in place":
        first = choices.randrange(words)
        last = choices.randint(first + 1, words)
        for pe in range(case.pes):
            source = choices.randrange(case.pes)
            listed.append((source, pe, 8 * first, 8 * first, 8 * (last - first), 1, 0, 0))
            want[pe, first:last] = rows[source, first:last]
        x = y
    for pe in range(case.pes if kind == "runs" else 0):
        count = choices.randint(1, 3)
        step = choices.randint(count, 8)
        runs = choices.randint(1, max(1, (words - count) // step))
        from_step = choices.randint(0, step)
        begin = choices.randint(0, words - count - (runs - 1) * from_step)
        to = choices.randint(0, words - count - (runs - 1) * step)
        source = choices.randrange(case.pes)
        listed.append((source, pe, 8 * begin, 8 * to, 8 * count, runs, 8 * from_step, 8 * step))
        for run in range(runs):
            piece = before[source, begin + run * from_step :][:count]
            want[pe, to + run * step : to + run * step + count] = piece
    for pe in range(case.pes if kind == "pieces" else 0):
        ends = sorted(choices.sample(range(words + 1), min(words + 1, choices.randint(1, 7))))
        for first, last in itertools.pairwise(ends):
            source = choices.choice([FILL, choices.randrange(case.pes)])
            begin = choices.randint(0, words - (last - first))
            value = choices.randrange(2**63)
            at, step = (value % 2**32, value >> 32) if source == FILL else (8 * begin, 0)
            listed.append((source, pe, at, 8 * first, 8 * (last - first), 1, step, 0))
            want[pe, first:last] = (
                value if source == FILL else before[source, begin : begin + last - first]
            )
    choices.shuffle(listed)
    case.finished(
        case.cube.sendrecv(
            np.array(listed, pidcomm.MESSAGE), src=x, dst=y, wait=case.wait, **case.options
        )
    )
    assert (x.get() == (want if x is y else before)).all(), "the source changed"
    return y.get(), want


def shift(case: Case) -> tuple[Any, Any]:
    """Shift along the members, cyclic, with a fill, or with the content of out."""
    rows, kept = case.rows(24), case.rows(24)
    by, kind = case.choices.randint(-9, 9), case.choices.choice(["cyclic", "fill", "keep"])
    x, out = case.cube.array(rows), case.cube.array(kept)
    want = kept.copy() if kind == "keep" else np.full_like(kept, 5)
    for group in case.groups:
        for m, pe in enumerate(group):
            if kind == "cyclic":
                want[pe] = rows[group[(m - by) % case.members]]
            elif 0 <= m - by < case.members:
                want[pe] = rows[group[m - by]]
    arguments: Any = {"cyclic": {}, "fill": {"cyclic": False, "fill": 5}, "keep": {"cyclic": False}}
    result = case.cube.shift(
        x, case.mask, by, out=out, wait=case.wait, **arguments[kind], **case.options
    )
    return case.finished(result).get(), want


def permute(case: Case) -> tuple[Any, Any]:
    """Permute with a table per group; some members keep their content."""
    rows, kept = case.rows(16), case.rows(16)
    table = case.random.integers(-1, case.members, (len(case.groups), case.members))
    x, out, want = case.cube.array(rows), case.cube.array(kept), kept.copy()
    for sources, group in zip(table, case.groups, strict=True):
        for source, pe in zip(sources, group, strict=True):
            if source >= 0:
                want[pe] = rows[group[source]]
    result = case.cube.permute(x, case.mask, table, out=out, wait=case.wait, **case.options)
    return case.finished(result).get(), want


def halo(case: Case) -> tuple[Any, Any]:
    """Exchange ghost planes of a grid that is cut along two axes of the hypercube."""
    case.dtype = np.dtype("int64")
    case.cube = case.cube.pe_set.hypercube(x=4, y=3)
    case.pes = case.cube.pes
    width = case.choices.randint(1, 2)
    cyclic, corners = case.choices.random() < 0.5, case.choices.random() < 0.5
    height, length = (case.choices.randint(3 * width, 3 * width + 3) for _ in range(2))
    rows = case.rows(height, length, case.choices.randint(1, 3))
    x = case.cube.array(rows)
    halo_of = functools.partial(case.cube.halo, cyclic=cyclic, corners=corners, wait=case.wait)
    want, got = (
        rows.copy(),
        case.finished(halo_of(x, {"x": 1, "y": 0}, width, **case.options)).get(),
    )
    for pe in range(case.pes):
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if (dx == dy == 0) or (dx and dy and not corners):
                    continue
                ghost = _planes(dy, height, width, True), _planes(dx, length, width, True)
                inner = _planes(dy, height, width, False), _planes(dx, length, width, False)
                column, row = pe % 4 + dx, pe // 4 + dy
                if cyclic or (0 <= column < 4 and 0 <= row < 3):
                    want[(pe, *ghost)] = rows[(column % 4 + 4 * (row % 3), *inner)]
                elif dx and dy:  # the content of the ghost planes of a neighbour
                    want[(pe, *ghost)] = got[(pe, *ghost)]
    return got, want


def _planes(direction: int, length: int, width: int, is_ghost: bool) -> slice:
    """Return the ghost planes towards a neighbour, or the planes of the neighbour next to them."""
    if direction == 0:
        return slice(width, length - width)
    if is_ghost:
        return slice(0, width) if direction < 0 else slice(length - width, length)
    return slice(length - 2 * width, length - width) if direction < 0 else slice(width, 2 * width)


def _blocks(case: Case, counts: Any, gap: int = 0) -> Any:
    """Return where blocks begin that lie one after another, each at a word, and the last end."""
    per_word = max(1, 8 // case.dtype.itemsize)
    begins, at = [], 0
    for count in counts:
        begins.append(at)
        at += -(-int(count) // per_word) * per_word + gap
    return [*begins, at]


def alltoallv(case: Case) -> tuple[Any, Any]:
    """Move blocks of random sizes; some members send or receive nothing."""
    n, groups = case.members, len(case.groups)
    counts = case.random.integers(0, case.choices.choice([3, 20, 200]), (groups, n, n))
    if case.choices.random() < 0.3:
        counts[:, case.choices.randrange(n)] = 0
        counts[:, :, case.choices.randrange(n)] = 0
    if one_table := case.choices.random() < 0.5:
        counts[:] = counts[0]
    gap = case.choices.choice([0, 8])  # between blocks
    sends = [[_blocks(case, row, gap) for row in table] for table in counts]
    receives = [[_blocks(case, row, gap) for row in table.T] for table in counts]
    rows = case.rows(max(max(b[-1] for b in blocks) for blocks in sends) + 8)
    kept = case.rows(max(max(b[-1] for b in blocks) for blocks in receives) + 8)
    x, out, want = case.cube.array(rows), case.cube.array(kept), kept.copy()
    places: dict[str, Any] = {}
    if gap:
        places["sdispls"] = np.array([[b[:-1] for b in blocks] for blocks in sends])
        places["rdispls"] = np.array([[b[:-1] for b in blocks] for blocks in receives])
        places["rdispls"] = places["rdispls"].swapaxes(1, 2)
    table = counts[0] if one_table else counts
    result = case.finished(
        case.cube.alltoallv(x, case.mask, table, out=out, wait=case.wait, **places, **case.options)
    ).get()
    for g, group in enumerate(case.groups):
        for p, sender in enumerate(group):
            for q, receiver in enumerate(group):
                count, first, at = counts[g, p, q], sends[g][p][q], receives[g][q][p]
                want[receiver, at : at + count] = rows[sender, first : first + count]
                end = receives[g][q][p + 1] - gap  # elements behind the block in its last word
                want[receiver, at + count : end] = result[receiver, at + count : end]
    return result, want


def allgatherv(case: Case) -> tuple[Any, Any]:
    """Gather blocks of random sizes at all members, with counts from the PEs."""
    counts = case.random.integers(0, 30, case.pes)
    rows = case.rows(32)
    blocks = [_blocks(case, counts[group]) for group in case.groups]
    kept = case.rows(max(begins[-1] for begins in blocks) + 8)
    x, out, want = case.cube.array(rows), case.cube.array(kept), kept.copy()
    on_pes = case.cube.array(counts.astype(np.int32).reshape(-1, 1))
    result = case.finished(
        case.cube.allgatherv(x, case.mask, on_pes, out=out, wait=case.wait, **case.options)
    ).get()
    for group, begins in zip(case.groups, blocks, strict=True):
        for pe in group:
            for at, end, sender in zip(begins, begins[1:], group, strict=False):
                count = counts[sender]
                want[pe, at : at + count] = rows[sender, :count]
                want[pe, at + count : end] = result[pe, at + count : end]
    return result, want


def reduce_scatterv(case: Case) -> tuple[Any, Any]:
    """Reduce blocks of random sizes."""
    if case.options["technique"] == "pr":
        case.options["technique"] = "tile"  # pr needs a lane split
    op: Any = case.choices.choice(["sum", "max"])
    counts = case.random.integers(0, 9, case.members)
    begins = _blocks(case, counts)
    rows = case.rows(begins[-1] + 8)
    x = case.cube.array(rows)
    result = case.finished(
        case.cube.reduce_scatterv(x, case.mask, counts, op=op, wait=case.wait, **case.options)
    ).get()
    want = result.copy()  # elements behind the counts are undefined
    for group in case.groups:
        part = rows[group]
        total = part.sum(axis=0, dtype=case.dtype) if op == "sum" else part.max(axis=0)
        for at, count, pe in zip(begins, counts, group, strict=False):
            want[pe, :count] = total[at : at + count]
    return result, want


def scatterv_gatherv(case: Case) -> tuple[Any, Any]:
    """Scatter rows with a part of random size for each member, and gather them again."""
    counts = case.random.integers(0, 9, (len(case.groups), case.members))
    rows = [case.random.integers(0, 100, n).astype(case.dtype) for n in counts.sum(axis=1)]
    x = case.cube.scatterv(rows, case.mask, counts, wait=case.wait, technique="tile")
    again = case.cube.gatherv(
        case.finished(x), case.mask, counts, wait=case.wait, technique="conventional"
    )
    again = case.finished(again)
    return np.concatenate(again), np.concatenate(rows)


MATRIX = np.dtype([("a", "u4"), ("b", "u4"), ("c", "u4")])
PLACE = np.dtype([("value", "f4"), ("index", "u4")])


@functools.cache
def matrix_product() -> pidcomm.Operator:
    """Return the product of matrices {{1, a, c}, {0, 1, b}, {0, 0, 1}}, which is not
    commutative.
    """
    return pidcomm.Operator(
        "static element combine(element x, element y) {"
        "  return (element){x.a + y.a, x.b + y.b, x.c + y.c + x.a * y.b};"
        "}",
        MATRIX,
        identity=(0, 0, 0),
    )


def _average(rows: Any) -> Any:
    """Return the mean of rows: of integers by integer arithmetic, of floats by their sum."""
    if rows.dtype.kind == "f":
        return functools.reduce(np.add, rows) / rows.dtype.type(len(rows))
    whole, rest = np.divmod(rows.sum(axis=0, dtype=np.int64), len(rows))
    is_above = (2 * rest > len(rows)) | ((2 * rest == len(rows)) & (whole % 2 == 1))
    return (whole + is_above).astype(rows.dtype)  # ties to even


def _product(rows: Any) -> Any:
    x = rows[0].copy()
    for y in rows[1:]:
        x["c"] += y["c"] + x["a"] * y["b"]
        x["a"] += y["a"]
        x["b"] += y["b"]
    return x


def _best(rows: Any, is_max: bool) -> Any:
    values = -rows["value"] if is_max else rows["value"]
    order = np.lexsort((rows["index"], values), axis=0)
    return np.take_along_axis(rows, order[:1], axis=0)[0]


def _operation(case: Case, blocks: int) -> tuple[Any, Any, Any]:
    """Return an operator, its definition for the rows of members, and rows of `blocks` blocks."""
    count = blocks * case.choices.choice([8, 24, 400])
    name = case.choices.choice(["sum", "max", "avg", "scaled", "argmin", "argmax", "matrix"])
    if name == "matrix":
        rows = np.zeros((case.pes, count), MATRIX)
        for field in "abc":
            rows[field] = case.random.integers(0, 2**32, rows.shape)
        return matrix_product(), _product, rows
    if name in ("argmin", "argmax"):
        rows = np.zeros((case.pes, count), PLACE)
        rows["value"] = case.random.integers(0, 5, rows.shape)
        rows["index"] = case.random.integers(0, 5, rows.shape)
        return name, lambda x: _best(x, name == "argmax"), rows
    if name == "scaled":
        case.dtype = np.dtype(case.choices.choice(["float32", "float64"]))
        return (
            pidcomm.ScaledSum(0.3),
            lambda x: (functools.reduce(np.add, x).astype("f8") * 0.3).astype(case.dtype),
            case.rows(count),
        )
    definition = {
        "sum": lambda x: functools.reduce(np.add, x),
        "max": lambda x: x.max(axis=0),
        "avg": _average,
    }[name]
    return name, definition, case.rows(count)


def operators(case: Case) -> tuple[Any, Any]:
    """Reduce with an operator of the program or of the library."""
    name = case.choices.choice(["allreduce", "reduce_scatter", "reduce"])
    op, definition, rows = _operation(case, case.members if name == "reduce_scatter" else 1)
    if case.options["technique"] == "pr":
        case.options["technique"] = "tile"  # pr needs a lane split
    result = case.finished(
        getattr(case.cube, name)(
            case.cube.array(rows), case.mask, op=op, wait=case.wait, **case.options
        )
    )
    reduced = [definition(rows[group]) for group in case.groups]
    if name == "reduce":
        return result, np.array(reduced)
    want = np.zeros(result.get().shape, rows.dtype)
    for total, group in zip(reduced, case.groups, strict=True):
        want[group] = total if name == "allreduce" else total.reshape(case.members, -1)
    return result.get(), want


def scans(case: Case) -> tuple[Any, Any]:
    """Reduce over the members up to each member, or before it; also in place."""
    op, definition, rows = _operation(case, 1)
    if case.options["technique"] == "pr":
        case.options["technique"] = "conventional"
    x = case.cube.array(rows)
    out = case.choices.choice([None, x])
    has_own = case.choices.random() < 0.5
    scan = case.cube.scan if has_own else case.cube.exscan
    result = case.finished(scan(x, case.mask, op=op, out=out, wait=case.wait, **case.options)).get()
    want = result.copy()  # an exscan gives member 0 the identity, which other tests check
    for group in case.groups:
        for member in range(0 if has_own else 1, case.members):
            want[group[member]] = definition(rows[group[: member + has_own]])
    return result, want


MOVEMENTS: list[Callable[[Case], tuple[Any, Any]]] = [
    messages,
    shift,
    permute,
    halo,
    alltoallv,
    allgatherv,
    reduce_scatterv,
    scatterv_gatherv,
    operators,
    scans,
]


def difference(pes: pidcomm.PeSet, choices: random.Random) -> str | None:
    """Run a random case on at least 132 PEs; return what is wrong, or None."""
    case = Case(pes, choices)
    movement = choices.choice(MOVEMENTS)
    case.name = movement.__name__
    return difference_of(case, *movement(case))


def difference_of(case: Case, got: Any, want: Any) -> str | None:
    """Return a sentence about the first element that differs, or None. Elements that a movement
    leaves undefined may be NaN, so bytes are compared.
    """
    if got.shape == want.shape and got.tobytes() == want.tobytes():
        return None
    if got.shape != want.shape:
        return f"{case}: shape {got.shape}, not {want.shape}"
    at = tuple(int(index[0]) for index in np.nonzero(got != want))
    return f"{case}: element {at} is {got[at]}, not {want[at]}"
