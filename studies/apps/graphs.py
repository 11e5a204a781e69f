"""Read graphs from MatrixMarket files and lists of edges, and generate graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from re import fullmatch
from typing import Any, Literal, NoReturn
from warnings import catch_warnings, filterwarnings, simplefilter

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pidcomm import ArgumentError
from pidcomm.arguments import Array, as_integer
from pidcomm.bench.measure import require_bytes
from pidcomm.errors import MAX_SHOWN, require, shown
from pidcomm.files import malformed
from pidcomm_studies.apps.inputs import (
    canonical,
    check_text,
    describe,
    generated,
    numbered_lines,
    one_source,
    opened_text,
)

BANNER = "%%MatrixMarket"
FIELDS = {
    "pattern": 2,
    "real": 3,
    "integer": 3,
}  # MatrixMarket: how many words the line of an entry has
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
MAX_VERTICES = 2**32 - 1
MAX_SCALE = 31
LEAST_PAIRS_PER_EDGE = 64  # so that `skewed` finds pairs without an edge
QUICK = "rmat:scale=11"
DATA_HELP = (
    f"MatrixMarket ({BANNER} matrix coordinate ...) or a list of edges: two numbers per line, #"
    " starts a comment"
)
# Peak memory per vertex or edge, measured.
BYTES_OF_IDS, BYTES_OF_STARTS, BYTES_OF_SORT = 9, 16, 33
BYTES_OF_RMAT, BYTES_OF_SKEWED, BYTES_OF_UNIFORM, BYTES_OF_GRID = 22, 34, 8, 28
BYTES_OF_LINE, BYTES_OF_BYTE, BYTES_OF_UNIQUE = 72, 5, 80
MAX_DIGITS = 19  # of a vertex number
# Errors of NumPy for a malformed file. After such an error, the slow path finds the malformed line.
FAULTS = (ValueError, OverflowError, DeprecationWarning)


@dataclass(frozen=True)
class Graph:
    """A directed graph with the vertices 0 to vertices - 1: edge i leads from sources[i] to
    targets[i].

    Edges may occur more than once, and from a vertex to itself. name: the file, or the generator
    with all parameters.
    ids: the numbers of the vertices in the file, ascending; None if the numbers are 0 to vertices -
    1.
    """

    name: str
    vertices: int
    sources: NDArray[np.uint32]
    targets: NDArray[np.uint32]
    ids: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Raise ArgumentError for arrays that are not a graph."""
        object.__setattr__(self, "vertices", as_integer("vertices", self.vertices, 0, MAX_VERTICES))
        for what, ends in (
            ("sources", np.asarray(self.sources)),
            ("targets", np.asarray(self.targets)),
        ):
            if ends.dtype != np.uint32 or ends.ndim != 1:
                raise ArgumentError(
                    f"{what} ({ends.dtype}, shape {ends.shape}) must be uint32 of one dimension"
                )
            if (largest := int(ends.max(initial=0))) >= self.vertices and len(ends):
                raise ArgumentError(
                    f"{what} have vertex {largest}; vertices must be below {self.vertices}, their"
                    " number"
                )
        if len(self.sources) != len(self.targets):
            raise ArgumentError(
                f"{len(self.sources)} sources and {len(self.targets)} targets; an edge has one of"
                " each"
            )
        if self.ids is None:
            return
        if self.ids.shape != (self.vertices,):
            raise ArgumentError(
                f"ids of shape {self.ids.shape}; {self.vertices} vertices have an id each"
            )
        if np.any(self.ids[1:] <= self.ids[:-1]):
            raise ArgumentError("ids must be ascending, and no two vertices have the same")

    @property
    def edges(self) -> int:
        """Number of directed edges."""
        return len(self.sources)

    def distinct(self, *, keep_loops: bool) -> Graph:
        """Return each edge once, sorted by source and then target. keep_loops: also edges from a
        vertex to itself.
        """
        self._check_sort(self.edges)
        return self._distinct(_pairs(self.sources, self.targets), keep_loops)

    def undirected(self) -> Graph:
        """Return each edge once in both directions, sorted by source and then target, without
        loops.
        """
        self._check_sort(2 * self.edges)
        both = _pairs(self.sources, self.targets), _pairs(self.targets, self.sources)
        return self._distinct(np.concatenate(both), keep_loops=False)

    def starts(self) -> NDArray[np.int64]:
        """Return the index of each vertex's first edge, then the number of edges: shape (vertices +
        1,).

        Edges must be sorted.
        """
        needed = BYTES_OF_STARTS * self.vertices + 8 * self.edges
        require_bytes(needed, f"the starts of {self.vertices} vertices")
        return np.concatenate(
            [[0], np.cumsum(np.bincount(self.sources, minlength=self.vertices), dtype=np.int64)]
        )

    def _check_sort(self, edges: int) -> None:
        require_bytes(BYTES_OF_SORT * edges, f"{edges} edges in order")

    def _distinct(self, pairs: NDArray[np.uint64], keep_loops: bool) -> Graph:
        sources, targets = _ends(_once(pairs))
        if not keep_loops:
            is_kept = sources != targets
            sources, targets = sources[is_kept], targets[is_kept]
        return Graph(self.name, self.vertices, sources, targets, self.ids)

    def matrix(self, dtype: DTypeLike = np.int64) -> Any:
        """Return a scipy.sparse.csr_array: element (u, v) is the number of edges from u to v."""
        require("scipy", "a matrix of a graph")
        from scipy.sparse import csr_array

        shape = (self.vertices, self.vertices)
        return csr_array((np.ones(self.edges, dtype), (self.sources, self.targets)), shape=shape)


def _pairs(sources: NDArray[np.uint32], targets: NDArray[np.uint32]) -> NDArray[np.uint64]:
    pairs: NDArray[np.uint64] = sources.astype(np.uint64) << np.uint64(32) | targets
    return pairs


def _ends(pairs: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the sources and the targets of pairs."""
    return (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)


def _once(
    pairs: NDArray[np.uint64], kind: Literal["quicksort", "stable"] = "quicksort"
) -> NDArray[np.uint64]:
    """Sort pairs, and return each once."""
    pairs.sort(kind=kind)
    return pairs[np.diff(pairs, prepend=~pairs[:1]) != 0]


def generate_help(default: str) -> str:
    """Describe the generators of `load` and the default generator."""
    return f"{describe(GENERATORS)}; default {canonical(default, GENERATORS)}"


def load(data: Path | None, generate: str | None, default: str) -> Graph:
    """Return the graph of a file or of a generator (default: `default`).

    Raises ArgumentError if both are given.
    """
    one_source(data, generate)
    try:
        return generated(generate or default, GENERATORS) if data is None else read_graph(data)
    except MemoryError:
        raise ArgumentError(
            f"graph {data or generate or default} does not fit the memory of this machine"
        ) from None


# ---- files


def read_graph(path: Path) -> Graph:
    """Read a MatrixMarket file or a list of edges, packed by gzip if the name of the file ends in
    .gz.

    A MatrixMarket file starts with the banner and has a square matrix in coordinate format; values
    are ignored, and symmetric entries are edges in both directions. In other files every line is an
    edge, two vertex numbers separated by blanks or tabs; # starts a comment, and only vertices with
    edges exist. Raises FileContentError with the malformed line, Error if the file cannot be read.
    """
    check_text(path, BYTES_OF_LINE, byte_bytes=BYTES_OF_BYTE)
    _, first = next(numbered_lines(path), (0, ""))
    return (
        _read_matrix_market(path) if first.lower().startswith(BANNER.lower()) else _read_edges(path)
    )


def _read_edges(path: Path) -> Graph:
    try:
        edges = _numbers(path, np.int64, comments="#", ndmin=2)
        if edges.size and (edges.shape[1] != 2 or edges.min() < 0):
            raise ValueError("not a list of edges")
    except FAULTS as error:
        _find_bad_edge(path, error)
    ids, places = _renumbered(path, edges.reshape(-1))
    if len(ids) > MAX_VERTICES:
        malformed(path, None, f"{len(ids)} vertices; at most {MAX_VERTICES} are possible")
    sources, targets = np.ascontiguousarray(places.reshape(-1, 2).T)
    is_dense = len(ids) == 0 or ids[-1] == len(ids) - 1
    return Graph(str(path), len(ids), sources, targets, None if is_dense else ids)


def _numbers(path: Path, dtype: DTypeLike, **how: Any) -> Array:
    """Return the numbers of a text file, one row per line. Raises one of FAULTS."""
    with catch_warnings():
        simplefilter("error", DeprecationWarning)  # turns 1.5 in place of an integer into an error
        filterwarnings("ignore", message=".*no data")
        with opened_text(path, "latin-1") as file:  # NumPy would unpack more formats than gzip
            return np.loadtxt(file, dtype, **how)


def _renumbered(
    path: Path, numbers: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the distinct numbers in ascending order, and the index of each number among the
    distinct numbers.
    """
    span = int(numbers.max(initial=-1)) + 1
    if span > 8 * len(numbers):
        require_bytes(
            BYTES_OF_UNIQUE * len(numbers) // 2, f"{path}: {len(numbers)} vertex numbers in order"
        )
        ids, places = np.unique(numbers, return_inverse=True)
        return ids, places.astype(np.uint32)
    occurs = np.zeros(span, bool)  # much faster than sorting
    occurs[numbers] = True
    place = np.cumsum(occurs, dtype=np.uint32) - np.uint32(1)
    return np.flatnonzero(occurs), place[numbers]


def _find_bad_edge(path: Path, why: object) -> NoReturn:
    for number, line in numbered_lines(path):
        words = _words(line.partition("#")[0])
        if words and len(words) != 2:
            malformed(path, number, f"{_count(words)}; an edge is two vertex numbers")
        _check_vertices(path, number, words, 0, 2**63 - 1)
    malformed(path, None, str(why))


def _words(line: str) -> list[str]:
    """Return the words between ASCII blanks, as `_numbers` splits lines. str.split also splits
    at non-ASCII blanks.
    """
    return [word.decode() for word in line.encode().split()]


def _check_vertices(path: Path, number: int, words: list[str], low: int, high: int) -> None:
    for word in words:
        if not fullmatch("[+-]?[0-9]+", word):
            malformed(path, number, f"vertex number {shown(word)} is not an integer")
        if not low <= _integer(word) <= high:
            word = word if len(word) <= MAX_SHOWN else shown(word)
            malformed(path, number, f"vertex number {word} is not between {low} and {high}")


def _integer(word: str) -> int:
    """Return the value of an integer in a text, or 2^64 if it has too many digits for a vertex
    number.
    """
    digits = word.lstrip("+-0")
    size = int(digits or "0") if len(digits) <= MAX_DIGITS else 1 << 64
    return -size if word.startswith("-") else size


def _count(words: list[str]) -> str:
    return "1 number" if len(words) == 1 else f"{len(words)} numbers"


def _read_matrix_market(path: Path) -> Graph:
    sizes, vertices, entries, field, symmetry = _matrix_market_header(path)
    require_bytes(BYTES_OF_IDS * vertices, f"{path}: {vertices} vertices")
    row = [("row", np.int64), ("column", np.int64), ("value", np.float64)][: FIELDS[field]]
    try:
        read = _numbers(path, row, comments="%", skiprows=sizes, ndmin=1)
        ends = np.array([read["row"], read["column"]]) - 1
        if len(read) != entries or (entries and not 0 <= ends.min() <= ends.max() < vertices):
            raise ValueError("not the entries of a matrix")
    except FAULTS as error:
        _find_bad_entry(path, error)
    sources, targets = ends.astype(np.uint32)
    if symmetry != "general":
        is_off_diagonal = sources != targets
        sources, targets = (
            np.concatenate([one, other[is_off_diagonal]])
            for one, other in ((sources, targets), (targets, sources))
        )
    return Graph(str(path), vertices, sources, targets, np.arange(1, vertices + 1))


def _matrix_market_header(path: Path) -> tuple[int, int, int, str, str]:
    """Return the number of the line with the sizes, then the vertices, entries, field and
    symmetry.
    """
    lines = numbered_lines(path)
    _, first = next(lines)
    words = first.lower().split()
    if len(words) != 5 or words[:2] != [BANNER.lower(), "matrix"]:
        malformed(
            path, 1, f"{shown(first)}; a header is '{BANNER} matrix coordinate FIELD SYMMETRY'"
        )
    _, _, form, field, symmetry = words
    for what, word, known in (
        ("format", form, ("coordinate",)),
        ("field", field, tuple(FIELDS)),
        ("symmetry", symmetry, SYMMETRIES),
    ):
        if word not in known:
            malformed(path, 1, f"{what} {shown(word)}; a graph has {' or '.join(known)}")
    number = 1
    for number, line in lines:
        if line.strip() and not line.startswith("%"):
            if not fullmatch(r"\s*[0-9]{1,40}\s+[0-9]{1,40}\s+[0-9]{1,40}\s*", line):
                malformed(path, number, f"{shown(line)}; sizes are 'ROWS COLUMNS ENTRIES'")
            rows, columns, entries = map(int, line.split())
            if rows != columns:
                malformed(
                    path,
                    number,
                    f"{rows} rows and {columns} columns; a graph has as many rows as columns",
                )
            if rows > MAX_VERTICES:
                malformed(path, number, f"{rows} vertices; at most {MAX_VERTICES} are possible")
            return number, rows, entries, field, symmetry
    malformed(path, number, "the file ends before the sizes 'ROWS COLUMNS ENTRIES'")


def _find_bad_entry(path: Path, why: object) -> NoReturn:
    sizes, vertices, entries, field, _ = _matrix_market_header(path)
    number = entry_count = 0
    for number, line in numbered_lines(path):
        words = _words(line.partition("%")[0])
        if number <= sizes or not words:
            continue
        if entry_count == entries:
            malformed(path, number, f"one entry more than the {entries} of line {sizes}")
        entry_count += 1
        if len(words) != FIELDS[field]:
            malformed(
                path, number, f"{_count(words)}; an entry of field {field} has {FIELDS[field]}"
            )
        _check_vertices(path, number, words[:2], 1, vertices)
        try:
            list(map(float, words[2:]))
        except ValueError:
            malformed(path, number, f"value {shown(words[2])} is not a number")
    if entry_count < entries:
        malformed(
            path,
            number,
            f"the file ends after {entry_count} of the {entries} entries of line {sizes}",
        )
    malformed(path, None, str(why))


# ---- generators


def rmat(*, scale: int = 16, edges: int = 16, seed: int = 1) -> Graph:
    """Return the Kronecker graph of Graph500: 2^scale vertices in random order, with `edges`
    edges per vertex.
    """
    as_integer("scale", scale, 0, MAX_SCALE)
    count = as_integer("edges", edges) << scale
    random = np.random.default_rng(as_integer("seed", seed))
    require_bytes(
        BYTES_OF_RMAT * (count + (1 << scale)), f"{1 << scale} vertices with {edges} edges each"
    )
    sources, targets = _kronecker(random, scale, count)
    order = random.permutation(1 << scale).astype(np.uint32)
    return Graph(
        f"rmat:scale={scale},edges={edges},seed={seed}", 1 << scale, order[sources], order[targets]
    )


def skewed(*, vertices: int = 65536, edges: int = 524288, seed: int = 1) -> Graph:
    """Return `edges` edges with the skew of `rmat`, each between another pair of vertices.

    Vertex v of a Kronecker graph of 2^k >= vertices vertices is vertex floor(v * vertices / 2^k)
    here, before the vertices are put in random order. Loops, and edges between pairs that have one,
    are drawn again. Directions are random.
    """
    as_integer("vertices", vertices, 0, 1 << MAX_SCALE)
    as_integer("edges", edges, 0, vertices**2 // LEAST_PAIRS_PER_EDGE)
    random = np.random.default_rng(as_integer("seed", seed))
    require_bytes(BYTES_OF_SKEWED * (edges + vertices), f"{vertices} vertices with {edges} edges")
    scale = max(vertices - 1, 0).bit_length()
    pairs = np.zeros(0, np.uint64)
    while missing := edges - len(pairs):
        one, other = (
            (ends * np.uint64(vertices) >> np.uint64(scale)).astype(np.uint32)
            for ends in _kronecker(random, scale, missing)
        )
        new = _pairs(np.minimum(one, other), np.maximum(one, other))[one != other]
        del one, other
        pairs = _once(np.concatenate([pairs, _once(new)]), "stable")  # merges two parts
    is_reversed = random.random(edges, np.float32) < 0.5
    pairs[is_reversed] = pairs[is_reversed] << np.uint64(32) | pairs[is_reversed] >> np.uint64(32)
    order = random.permutation(vertices).astype(np.uint32)
    return Graph(
        f"skewed:vertices={vertices},edges={edges},seed={seed}",
        vertices,
        *(order[ends] for ends in _ends(pairs)),
    )


def _kronecker(
    random: np.random.Generator, scale: int, count: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the sources and the targets of `count` random edges between 2^scale vertices."""
    sources, targets = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
    # Probabilities of three quarters of the matrix: source and target low, only target high, only
    # source high.
    a, b, c = 0.57, 0.19, 0.19
    for bit in range(scale):
        chance = random.random(count, np.float32)
        is_high_source = chance >= a + b
        is_high_target = (chance >= a) & ~is_high_source | (chance >= a + b + c)
        sources |= is_high_source.astype(np.uint32) << np.uint32(bit)
        targets |= is_high_target.astype(np.uint32) << np.uint32(bit)
    return sources, targets


def uniform(*, vertices: int = 65536, edges: int = 524288, seed: int = 1) -> Graph:
    """Return a graph with edges between random vertices, uniformly distributed."""
    as_integer("vertices", vertices, 1 if edges else 0, MAX_VERTICES)
    require_bytes(BYTES_OF_UNIFORM * as_integer("edges", edges), f"{edges} edges")
    ends = np.random.default_rng(as_integer("seed", seed)).integers(
        0, max(vertices, 1), (2, edges), np.uint32
    )
    return Graph(
        f"uniform:vertices={vertices},edges={edges},seed={seed}", vertices, ends[0], ends[1]
    )


def grid(*, rows: int = 256, columns: int = 256) -> Graph:
    """Return a grid: edges lead from each vertex to its right neighbour and to the neighbour
    below it.
    """
    vertices = as_integer("rows", rows, 0, MAX_VERTICES) * as_integer(
        "columns", columns, 0, MAX_VERTICES
    )
    as_integer("rows * columns", vertices, 0, MAX_VERTICES)
    require_bytes(BYTES_OF_GRID * vertices, f"{rows} rows of {columns} vertices")
    number = np.arange(vertices, dtype=np.uint32).reshape(rows, columns)
    sources = [number[:, :-1].ravel(), number[:-1].ravel()]
    targets = [number[:, 1:].ravel(), number[1:].ravel()]
    return Graph(
        f"grid:rows={rows},columns={columns}",
        vertices,
        np.concatenate(sources),
        np.concatenate(targets),
    )


GENERATORS: dict[str, Callable[..., Graph]] = {
    "rmat": rmat,
    "skewed": skewed,
    "uniform": uniform,
    "grid": grid,
}
"""Generators of `load`, by name; `pidcomm_studies.apps.inputs.generated` reads their parameters."""
