"""Read graphs with features of the vertices, in layouts that PyTorch Geometric stores.

    folder                                  content
    reddit_graph.npz, reddit_data.npz       matrix by scipy.sparse.save_npz; array ``feature``
    edge.csv.gz, node-feat.csv.gz           OGB: two vertices, or all features of a vertex, per line
    ind.NAME.allx, .tx, .graph, .test.index Planetoid: pickled matrices and graph; vertices of .tx

    file
    .npz with adj_* and attr_*              CitationFull: two matrices in CSR format
    other                                   a graph without features (`graphs.read_graph`)

Pickled objects are read only by `planetoid`, which does not run their code.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import NoReturn
from warnings import catch_warnings, filterwarnings

import numpy as np

from pidcomm import ArgumentError, Error
from pidcomm.arguments import Array
from pidcomm.bench.measure import require_bytes
from pidcomm.errors import shown
from pidcomm.files import malformed, require_file
from pidcomm_studies.apps import graphs
from pidcomm_studies.apps.gnn import planetoid
from pidcomm_studies.apps.graphs import Graph
from pidcomm_studies.apps.inputs import check_text, npz_sizes, numbered_lines, opened_text

REDDIT = "reddit_graph.npz", "reddit_data.npz"
OGB = "edge.csv.gz", "node-feat.csv.gz"
PLANETOID = "allx", "tx", "graph", "test.index"
COORDINATES, ROWS = ("shape", "row", "col", "data"), ("shape", "indptr", "indices", "data")
DATA_HELP = (
    "a graph as for bfs, an .npz with adj_* and attr_*, or a folder with"
    f" {' and '.join(REDDIT)}, {' and '.join(OGB)}, or ind.NAME.{', '.join(PLANETOID)}"
)
FEATURES_HELP = (
    "Features: an .npy, or an .npz of SciPy or with array feature; reals become -127 to 127"
)
LARGEST = 127  # integer for the largest magnitude of real features
# Peak memory per line of edges, and per byte of features, measured.
BYTES_OF_LINE, BYTES_OF_BYTE = 34, 5
BLOCK_ROWS = 512


def read(path: Path) -> tuple[Graph, Array | None]:
    """Return the graph of a file or folder, and the features if it has any: shape (vertices, n).

    Raises FileContentError for malformed files, Error for files that cannot be read, ArgumentError
    if memory is short.
    """
    if path.is_dir():
        for names, reader in ((REDDIT, _read_reddit), (OGB, _read_ogb)):
            if any((path / name).exists() for name in names):
                graph, features = reader(*(path / name for name in names))
                return Graph(str(path), graph.vertices, graph.sources, graph.targets), features
        if names := sorted(path.glob("ind.*.graph")):
            if len(names) > 1:
                raise ArgumentError(
                    f"{path} has {' and '.join(name.name for name in names)}; give a folder with"
                    " one graph"
                )
            return _read_planetoid(path, names[0].name.removesuffix("graph"))
        raise ArgumentError(
            f"cannot read {path}: the folder has neither {' and '.join(REDDIT)} nor"
            f" {' and '.join(OGB)} nor ind.NAME.{', '.join(PLANETOID)}"
        )
    if path.suffix != ".npz":
        return graphs.read_graph(path), None
    graph = _graph(path, _matrix(path, "adj_", [ROWS]))
    return graph, _checked(path, graph.vertices, _dense(path, _matrix(path, "attr_", [ROWS])))


def read_features(path: Path) -> Array:
    """Return the features in an .npy or .npz file: shape (rows, n).

    Raises as `read`.
    """
    require_file(path)
    if path.suffix == ".npz":
        names = npz_sizes(path)
        features = (
            _arrays(path, ["feature"])["feature"]
            if "feature" in names
            else _dense(path, _matrix(path, "", [COORDINATES, ROWS]))
        )
    else:
        try:
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError as error:
            raise Error(f"cannot read {path}: {error.strerror or error}") from None
        except Exception:  # NumPy raises errors of many types for a damaged file
            malformed(path, None, "not an .npy file as numpy.save writes it")
        require_bytes(mapped.nbytes, f"{path}: {mapped.nbytes} bytes of features")
        features = np.array(mapped)
    return _checked(path, len(features) if features.ndim else 0, features)


def rows_of(graph: Graph, features: Array, path: Path) -> Array:
    """Return the features of the vertices of a graph, from rows for its vertices or for all vertex
    numbers of its file.

    Raises FileContentError if there are fewer rows.
    """
    if len(features) == graph.vertices:
        return features
    if graph.ids is None or len(features) <= graph.ids[-1]:
        malformed(path, None, f"{len(features)} rows for {graph.vertices} vertices of {graph.name}")
    return features[graph.ids]


def quantized(features: Array, dtype: str, path: Path) -> Array:
    """Return features as integers of a type.

    Real numbers are scaled, so that the largest magnitude is 127, and rounded. Raises
    FileContentError for integers that the type does not have, and for infinite values.
    """
    least, most = float(features.min(initial=0)), float(features.max(initial=0))
    is_real = features.dtype.kind == "f"
    limits = np.iinfo(dtype)
    if not (
        np.isfinite([least, most]).all() if is_real else limits.min <= least <= most <= limits.max
    ):
        rule = "finite" if is_real else f"within {dtype}"
        malformed(path, None, f"features from {least:g} to {most:g}; they must be {rule}")
    require_bytes(features.size * np.dtype(dtype).itemsize, f"{path}: features of {dtype}")
    integers = np.empty(features.shape, dtype)
    factor = LARGEST / (max(-least, most) or 1)
    for first in range(0, len(features), BLOCK_ROWS):  # to save memory
        block = features[first : first + BLOCK_ROWS]
        integers[first : first + BLOCK_ROWS] = (
            np.rint(block.astype(np.float64) * factor) if is_real else block
        )
    return integers


def _checked(path: Path, vertices: int, features: Array) -> Array:
    if features.ndim != 2 or features.dtype.kind not in "fiub" or 0 in features.shape[1:]:
        malformed(
            path,
            None,
            f"features of {features.dtype} and shape {features.shape}; they must be numbers of"
            " shape (vertices, n), n > 0",
        )
    if len(features) != vertices:
        malformed(path, None, f"{len(features)} rows of features for {vertices} vertices")
    return features


# ---- .npz files


def _arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Return arrays of an .npz file; others, which may be pickled, are not read."""
    sizes = npz_sizes(path)
    if missing := [name for name in names if name not in sizes]:
        malformed(path, None, f"arrays {', '.join(missing)} are missing")
    size = sum(sizes[name] for name in names)
    require_bytes(size, f"{path}: {size} bytes of arrays")
    arrays = {}
    try:
        with np.load(path, allow_pickle=False) as file:
            for name in names:
                arrays[name] = file[name]
    except Exception as error:  # NumPy and zipfile raise errors of many types for a damaged file
        malformed(path, None, f"{names[len(arrays)]} cannot be read: {shown(str(error))}")
    return arrays


def _matrix(
    path: Path, prefix: str, layouts: Sequence[Sequence[str]]
) -> tuple[tuple[int, int], Array, Array, Array]:
    """Return the shape of a sparse matrix, and the row, column and value of its elements.

    layouts: COORDINATES, ROWS; the first one whose arrays the file has, or the last one.
    """
    sizes = npz_sizes(path)
    layout = next(
        (each for each in layouts if all(prefix + name in sizes for name in each)), layouts[-1]
    )
    arrays = _arrays(path, [prefix + name for name in layout])
    where = f"{prefix}matrix" if prefix else "the matrix"
    return _checked_matrix(path, where, layout, *arrays.values())


def _checked_matrix(
    path: Path,
    where: str,
    layout: Sequence[str],
    shape: Array,
    first: Array,
    second: Array,
    data: Array,
) -> tuple[tuple[int, int], Array, Array, Array]:
    """Return what `_matrix` returns, from the arrays of a layout."""
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or not (shape >= 0).all():
        malformed(path, None, f"{where}: shape must be two sizes")
    if not all(each.ndim == 1 and each.dtype.kind in "iu" for each in (first, second)):
        malformed(path, None, f"{where}: {layout[1]} and {layout[2]} must be lists of integers")
    rows, columns = map(int, shape)
    if layout is ROWS:
        steps = np.diff(first.astype(np.int64))
        if len(first) != rows + 1 or first[0] != 0 or first[-1] != len(second) or (steps < 0).any():
            malformed(path, None, f"{where}: indptr must ascend from 0 to the number of indices")
        require_bytes(8 * len(second), f"{path}: {len(second)} elements")
        first = np.repeat(np.arange(rows), steps)
    if not len(first) == len(second) == data.size or data.ndim != 1:
        malformed(path, None, f"{where}: there must be as many values as elements")
    for index, most in ((first, rows), (second, columns)):
        if index.size and not 0 <= index.min() <= index.max() < most:
            malformed(
                path, None, f"{where}: element {index.max()} is outside shape {rows, columns}"
            )
    return (rows, columns), first, second, data


def _graph(path: Path, matrix: tuple[tuple[int, int], Array, Array, Array]) -> Graph:
    (rows, columns), sources, targets, _ = matrix
    if rows != columns or rows > graphs.MAX_VERTICES:
        malformed(
            path, None, f"{rows} rows and {columns} columns; a graph has as many rows as columns"
        )
    return Graph(str(path), rows, sources.astype(np.uint32), targets.astype(np.uint32))


def _dense(path: Path, matrix: tuple[tuple[int, int], Array, Array, Array]) -> Array:
    shape, rows, columns, data = matrix
    require_bytes(prod(shape) * data.itemsize, f"{path}: features of shape {shape}")
    features = np.zeros(shape, data.dtype)
    np.add.at(features, (rows, columns), data)
    return features


def _read_reddit(matrix: Path, arrays: Path) -> tuple[Graph, Array]:
    graph = _graph(matrix, _matrix(matrix, "", [COORDINATES, ROWS]))
    return graph, _checked(arrays, graph.vertices, _arrays(arrays, ["feature"])["feature"])


# ---- Planetoid


def _read_planetoid(folder: Path, prefix: str) -> tuple[Graph, Array]:
    """The features of vertices are in allx, in order, except for those in test.index, whose
    features are in tx. Vertices in neither have features 0.
    """
    allx, tx, graph, index = (folder / f"{prefix}{suffix}" for suffix in PLANETOID)
    others, tested = (
        _dense(path, _checked_matrix(path, "the matrix", ROWS, *planetoid.read_matrix(path)))
        for path in (allx, tx)
    )
    numbers = _numbers(index, np.dtype(np.int64), 1)[:, 0]
    vertices = max(len(others), int(numbers.max(initial=-1)) + 1)
    if (
        len(numbers) != len(tested)
        or numbers.min(initial=vertices) < len(others)
        or len(np.unique(numbers)) != len(numbers)
    ):
        malformed(
            index,
            None,
            f"{len(numbers)} numbers; {tx.name} has {len(tested)} rows, whose numbers must be"
            f" distinct and at least {len(others)}, the rows of {allx.name}",
        )
    if others.shape[1] != tested.shape[1]:
        malformed(tx, None, f"{tested.shape[1]} features; {allx.name} has {others.shape[1]}")
    require_bytes(
        vertices * others.shape[1] * others.itemsize, f"{index}: features of {vertices} vertices"
    )
    features = np.zeros((vertices, others.shape[1]), np.result_type(others, tested))
    features[: len(others)] = others
    features[numbers] = tested
    ends = planetoid.read_graph(graph)
    for each in ends:
        if each.size and not 0 <= each.min() <= each.max() < vertices:
            malformed(graph, None, f"vertex {each.max()}; there are {vertices} vertices")
    sources, targets = (each.astype(np.uint32) for each in ends)
    return Graph(str(folder), vertices, sources, targets), _checked(allx, vertices, features)


# ---- OGB


def _read_ogb(edges: Path, features: Path) -> tuple[Graph, Array]:
    rows = _numbers(features, np.dtype(np.float32), None)
    ends = _numbers(edges, np.dtype(np.int64), 2)
    if ends.size and not 0 <= ends.min() <= ends.max() < len(rows):
        bad = int(np.flatnonzero(((ends < 0) | (ends >= len(rows))).any(1))[0])
        malformed(
            edges, bad + 1, f"edge {ends[bad].tolist()}; {features.name} has {len(rows)} vertices"
        )
    sources, targets = ends.astype(np.uint32).T
    graph = Graph(
        str(edges), len(rows), np.ascontiguousarray(sources), np.ascontiguousarray(targets)
    )
    return graph, _checked(features, len(rows), rows)


def _numbers(path: Path, dtype: np.dtype, columns: int | None) -> Array:
    """Return the numbers of a CSV file: shape (lines, columns)."""
    if columns is None:
        check_text(path, 0, byte_bytes=BYTES_OF_BYTE)
    else:
        check_text(path, BYTES_OF_LINE)
    try:
        with catch_warnings():
            filterwarnings("ignore", message=".*no data")
            with opened_text(path, "latin-1") as file:
                numbers = np.loadtxt(file, dtype, delimiter=",", comments=None, ndmin=2)
        if columns not in (None, numbers.shape[1]) and numbers.size:
            raise ValueError(f"{numbers.shape[1]} columns")
    except (ValueError, OverflowError) as error:
        _find_fault(path, dtype, columns, error)
    return numbers.reshape(len(numbers) if numbers.size else 0, columns or numbers.shape[1])


def _find_fault(path: Path, dtype: np.dtype, columns: int | None, why: object) -> NoReturn:
    for number, line in numbered_lines(path):
        words = line.split(",") if line.strip() else []
        columns = columns or len(words)
        if words and len(words) != columns:
            malformed(path, number, f"{len(words)} numbers; a line has {columns}")
        for word in words:
            try:
                dtype.type(word)
            except (ValueError, OverflowError):
                malformed(path, number, f"{shown(word)} is not a number of {dtype.name}")
    malformed(path, None, str(why))
