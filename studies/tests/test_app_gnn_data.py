"""Graphs and features from files: each layout, and the errors of malformed files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pidcomm import ArgumentError
from pidcomm.arguments import Array
from pidcomm.errors import FileContentError
from pidcomm_studies import apps
from pidcomm_studies.apps.gnn import Gnn

EDGES = [(0, 1), (1, 2), (3, 0), (2, 2)]
FEATURES = np.array([[0, 0.5], [-1, 0], [0.25, 0], [0, 0]])
INTEGERS = [[0, 64], [-127, 0], [32, 0], [0, 0]]  # in proportion to 127, rounded to even


def adjacency() -> Any:
    """Return EDGES as a sparse matrix."""
    sources, targets = np.array(EDGES).T
    return sparse.coo_matrix((np.ones(len(EDGES), np.float32), (sources, targets)), (4, 4))


def write_reddit(folder: Path, **changed: Any) -> Path:
    """Write the layout of Reddit; `label` is pickled, and must not be read."""
    sparse.save_npz(folder / "reddit_graph.npz", changed.get("graph", adjacency()))
    arrays = {"feature": FEATURES, "label": np.array([{}], object), **changed}
    arrays.pop("graph", None)
    np.savez(folder / "reddit_data.npz", **arrays)
    return folder


def write_citation(folder: Path, **changed: Any) -> Path:
    """Write the layout of CitationFull."""
    arrays: dict[str, Any] = {"node_names": np.array([{}], object)}
    for prefix, matrix in (("adj", adjacency().tocsr()), ("attr", sparse.csr_matrix(FEATURES))):
        for name in ("data", "indices", "indptr", "shape"):
            arrays[f"{prefix}_{name}"] = np.array(getattr(matrix, name))
    arrays.update(changed)
    np.savez(
        folder / "cora.npz", **{key: value for key, value in arrays.items() if value is not None}
    )
    return folder / "cora.npz"


def write_ogb(folder: Path, edges: str | None = None, features: str | None = None) -> Path:
    """Write the layout of OGB."""
    if edges is None:
        edges = "".join(f"{source},{target}\n" for source, target in EDGES)
    if features is None:
        features = "".join(",".join(map(str, row)) + "\n" for row in FEATURES)
    (folder / "edge.csv.gz").write_bytes(gzip.compress(edges.encode()))
    (folder / "node-feat.csv.gz").write_bytes(gzip.compress(features.encode()))
    return folder


@pytest.mark.parametrize("write", [write_reddit, write_citation, write_ogb])
@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_each_layout_has_the_same_graph_and_features(
    tmp_path: Path, write: Callable[[Path], Path], dtype: str
) -> None:
    path = write(tmp_path)
    problem = Gnn.make(data=path, layers=1, outputs=3, dtype=dtype)
    assert problem.graph.name == str(path)
    assert sorted(
        zip(problem.graph.sources.tolist(), problem.graph.targets.tolist(), strict=True)
    ) == (sorted(EDGES))
    assert problem.features.dtype == dtype
    assert problem.features.tolist() == INTEGERS
    run = apps.run(problem, shape=(2, 2), iters=1)
    assert run.wrong == 0
    neighbours = np.zeros((4, 4), dtype)
    neighbours[tuple(np.array(EDGES).T)] = 1
    np.testing.assert_array_equal(
        run.result, neighbours @ np.array(INTEGERS, dtype) @ problem.weights[0]
    )


def saved(folder: Path, kind: str, features: Array) -> Path:
    """Write features to a file."""
    path = folder / f"features.{'npy' if kind == 'npy' else 'npz'}"
    if kind == "npy":
        np.save(path, features)
    elif kind == "feature":
        np.savez(path, feature=features)
    else:
        sparse.save_npz(path, sparse.coo_matrix(features).asformat(kind))
    return path


@pytest.mark.parametrize("kind", ["npy", "feature", "coo", "csr"])
def test_features_of_any_graph_come_from_a_file(tmp_path: Path, kind: str) -> None:
    path = saved(tmp_path, kind, np.arange(24).reshape(12, 2))
    problem = Gnn.make(generate="grid:rows=3,columns=4", features_data=path)
    assert problem.features.tolist() == np.arange(24).reshape(12, 2).tolist()
    assert problem.facts["features"] == "2-64-64-16"


def test_rows_belong_to_the_vertex_numbers_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "edges").write_text("5 2\n2 9\n")
    features = np.arange(20).reshape(10, 2)
    every = Gnn.make(data=tmp_path / "edges", features_data=saved(tmp_path, "npy", features))
    assert every.features.tolist() == features[[2, 5, 9]].tolist()
    few = Gnn.make(data=tmp_path / "edges", features_data=saved(tmp_path, "npy", features[:3]))
    assert few.features.tolist() == features[:3].tolist()
    with pytest.raises(FileContentError, match="9 rows for 3 vertices"):
        Gnn.make(data=tmp_path / "edges", features_data=saved(tmp_path, "npy", features[:9]))


MALFORMED: list[tuple[Callable[..., Path], dict[str, Any], str]] = [
    (write_reddit, {"feature": FEATURES[:3]}, "reddit_data.npz: 3 rows of features for 4 vertices"),
    (write_reddit, {"feature": np.array([{}], object)}, "reddit_data.npz: feature cannot be read"),
    (
        write_reddit,
        {"feature": np.zeros(4)},
        r"reddit_data.npz: features of float64 and shape \(4,\)",
    ),
    (write_reddit, {"feature": FEATURES * np.nan}, "features from nan to nan; they must be finite"),
    (write_reddit, {"feature": np.full((4, 2), 300)}, "from 0 to 300; they must be within int8"),
    (write_reddit, {"graph": sparse.coo_matrix((4, 5))}, "reddit_graph.npz: 4 rows and 5 columns"),
    (write_citation, {"adj_indices": np.array([1, 2, 4, 0])}, "element 4 is outside shape"),
    (write_citation, {"adj_indices": np.array([1, 2, -1, 0])}, "adj_matrix: element .* is outside"),
    (write_citation, {"adj_indptr": np.array([0, 2, 1, 3, 4])}, "indptr must ascend"),
    (write_citation, {"adj_indptr": np.array([0, 1, 2, 3])}, "indptr must ascend"),
    (write_citation, {"adj_data": np.ones(3)}, "as many values as elements"),
    (write_citation, {"adj_shape": np.array([4])}, "shape must be two sizes"),
    (write_citation, {"attr_indices": np.zeros(3)}, "indptr and indices must be lists of integers"),
    (write_citation, {"attr_data": None}, "arrays attr_data are missing"),
    (write_ogb, {"edges": "0,1\n1,4\n"}, r"edge.csv.gz:2: edge \[1, 4\]"),
    (write_ogb, {"edges": "0,1\n1\n"}, "edge.csv.gz:2: 1 numbers; a line has 2"),
    (write_ogb, {"edges": "0,1,2\n"}, "edge.csv.gz:1: 3 numbers; a line has 2"),
    (write_ogb, {"edges": "0,x\n"}, "edge.csv.gz:1: 'x' is not a number of int64"),
    (write_ogb, {"features": "1,2\n1\n"}, "node-feat.csv.gz:2: 1 numbers; a line has 2"),
    (write_ogb, {"features": "1,2\n1,?\n"}, "node-feat.csv.gz:2: '[?]' is not a number"),
    (write_ogb, {"features": ""}, r"edge.csv.gz:1: edge \[0, 1\]; node-feat.csv.gz has 0"),
]


@pytest.mark.parametrize(("write", "changed", "message"), MALFORMED)
def test_malformed_files_are_errors_with_the_file_and_the_rule(
    tmp_path: Path, write: Callable[..., Path], changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(FileContentError, match=message):
        Gnn.make(data=write(tmp_path, **changed), dtype="int8")


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_files_that_are_no_arrays_are_not_unpickled(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"cos\nsystem\n(S'touch pwned'\ntR.")
    with pytest.raises(FileContentError, match=f"not an {name[1:]} file"):
        Gnn.make(quick=True, features_data=tmp_path / name)
    np.save(tmp_path / "objects.npy", np.array([{}], object))
    with pytest.raises(FileContentError, match=r"not an \.npy file"):
        Gnn.make(quick=True, features_data=tmp_path / "objects.npy")


def test_a_folder_without_a_layout_and_options_against_the_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"the folder has neither reddit_graph.npz and"):
        Gnn.make(data=tmp_path)
    write_reddit(tmp_path)
    with pytest.raises(ArgumentError, match="the file has 2 features; 3 is only for random"):
        Gnn.make(data=tmp_path, features=3)
    (tmp_path / "reddit_data.npz").unlink()
    with pytest.raises(ArgumentError, match=r"cannot read .*reddit_data.npz: No such file"):
        Gnn.make(data=tmp_path)


@pytest.mark.parametrize("write", [write_reddit, write_citation, write_ogb])
def test_memory_is_asked_before_files_are_read(
    tmp_path: Path, write: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path)
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 8)
    monkeypatch.setattr(np, "loadtxt", None)
    with pytest.raises(ArgumentError, match=f"{tmp_path}.* need about .* of memory; 8 bytes are"):
        Gnn.make(data=path)
