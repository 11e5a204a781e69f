"""Graphs and features from files: each layout, and the errors of malformed files."""

from __future__ import annotations

import gzip
import io
import pickle
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse

from pidcomm import ArgumentError
from pidcomm.arguments import Array
from pidcomm.errors import FileContentError
from pidcomm_studies import apps
from pidcomm_studies.apps.gnn import Gnn, planetoid
from pidcomm_studies.apps.gnn import data as files

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


PicklerInPython: Any = pickle._Pickler


class Python2(PicklerInPython):  # type: ignore[misc]
    """Writes bytes as Python 2 does, in which the files of Planetoid were written."""

    def save_bytes(self, content: bytes) -> None:
        self.write(pickle.BINSTRING + len(content).to_bytes(4, "little") + content)
        self.memoize(content)

    dispatch: ClassVar = {**PicklerInPython.dispatch, bytes: save_bytes}


def pickled(value: Any, protocol: int | None) -> bytes:
    """Return a pickle; protocol None is Python 2."""
    if protocol is not None:
        return pickle.dumps(value, protocol)
    file = io.BytesIO()
    Python2(file, 2).dump(value)
    return file.getvalue().replace(b"scipy.sparse._csr", b"scipy.sparse.csr")


def write_planetoid(folder: Path, protocol: int | None = 4, **changed: Any) -> Path:
    """Write the layout of Planetoid: the first vertices, and vertices 3 and 2 for tests."""
    graph = defaultdict(list)
    for source, target in EDGES:
        graph[source].append(target)
    values = {
        "allx": sparse.csr_matrix(FEATURES[:2].astype(np.float32)),
        "tx": sparse.csr_matrix(FEATURES[[3, 2]].astype(np.float32)),
        "graph": graph,
        **changed,
    }
    index = values.pop("index", "3\n2\n")
    for name, value in values.items():
        content = value if isinstance(value, bytes) else pickled(value, protocol)
        (folder / f"ind.cora.{name}").write_bytes(content)
    (folder / "ind.cora.test.index").write_text(index)
    return folder


def write_planetoid_of_python_2(folder: Path) -> Path:
    """Write the layout of Planetoid as the published files are."""
    write_planetoid(folder, None)
    content = (folder / "ind.cora.allx").read_bytes()
    assert b"cscipy.sparse.csr\ncsr_matrix" in content
    assert b"_codecs" not in content
    return folder


WRITERS = [
    write_reddit,
    write_citation,
    write_ogb,
    write_planetoid,
    write_planetoid_of_python_2,
    lambda folder: write_planetoid(folder, 2),
]


@pytest.mark.parametrize("write", WRITERS)
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
    (write_planetoid, {"tx": {"a": [1]}}, "ind.cora.tx: not a scipy.sparse.csr_matrix of numbers"),
    (write_planetoid, {"tx": np.ones((2, 2))}, "ind.cora.tx: not a scipy.sparse.csr_matrix"),
    (
        write_planetoid,
        {"tx": sparse.csr_matrix((2, 2), dtype=complex)},
        "ind.cora.tx: not a scipy.sparse.csr_matrix of numbers",
    ),
    (write_planetoid, {"tx": sparse.csr_matrix((3, 2))}, "test.index: 2 numbers; .* has 3 rows"),
    (write_planetoid, {"tx": sparse.csr_matrix((2, 3))}, "tx: 3 features; ind.cora.allx has 2"),
    (write_planetoid, {"index": "3\n3\n"}, "test.index: 2 numbers; .* must be distinct"),
    (write_planetoid, {"index": "3\n1\n"}, "test.index: .* at least 2, the rows of ind.cora.allx"),
    (write_planetoid, {"index": "3\nx\n"}, "test.index:2: 'x' is not a number"),
    (write_planetoid, {"graph": {0: [4]}}, "ind.cora.graph: vertex 4; there are 4 vertices"),
    (write_planetoid, {"graph": {0: [-1]}}, "ind.cora.graph: vertex -1; there are 4"),
    (write_planetoid, {"graph": {0: [True]}}, "ind.cora.graph: not a dict of lists"),
    (write_planetoid, {"graph": {0: [2**80]}}, "ind.cora.graph: not a dict of lists"),
    (
        write_planetoid,
        {"graph": dict.fromkeys(range(999), [0] * 999)},
        "graph: not a dict of lists",
    ),
    (write_planetoid, {"graph": [[1]]}, "ind.cora.graph: not a dict of lists of vertex numbers"),
    (write_planetoid, {"graph": b"\x80\x02}q"}, "ind.cora.graph: not a pickle: "),
    (write_planetoid, {"graph": b"\x80\x02}r\xff\xff\xff\x7f."}, "graph: not a pickle: 'memo 2147"),
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


@pytest.mark.parametrize("name", ["graph", "allx"])
@pytest.mark.parametrize(
    ("content", "forbidden"),
    [
        (b"cos\nsystem\n(S'touch pwned'\ntR.", "os.system"),
        (b'c__builtin__\neval\n(S\'open("pwned", "w")\'\ntR.', "builtins.eval"),
        (b"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93.", "builtins.getattr"),
        (b"cnumpy\nload\n(S'x'\ntR.", "numpy.load"),
        (b"\x80\x04\x8c\x05numpy\x8c\x0bndarray.dot\x93.", "numpy.ndarray.dot"),
        (pickle.dumps(Path("x")), "pathlib"),
        (pickle.dumps(sparse.coo_matrix((1, 1)), 2), "coo_matrix"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pickle_has_only_listed_classes(
    tmp_path: Path,
    name: str,
    content: bytes,
    forbidden: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    changed: dict[str, Any] = {name: content}
    write_planetoid(tmp_path, **changed)
    with pytest.raises(FileContentError, match=f"ind.cora.{name}: class '.*{forbidden}.*pickles"):
        Gnn.make(data=tmp_path)
    assert not (tmp_path / "pwned").exists()


def test_objects_of_a_pickle_are_not_made() -> None:
    """The names in the lists lead to no code but three harmless types."""
    assert set(planetoid.PLAIN.values()) == {defaultdict, list, object}
    reader = planetoid._Reader(Path("x"), io.BytesIO())
    for module, name in planetoid.HELD:
        assert issubclass(reader.find_class(module, name), planetoid._Held)


def test_vertices_that_planetoid_leaves_out_have_features_0(tmp_path: Path) -> None:
    write_planetoid(tmp_path, index="5\n3\n")  # as in citeseer
    problem = Gnn.make(data=tmp_path, dtype="int8")
    assert problem.features.tolist() == [INTEGERS[0], INTEGERS[1], [0, 0], [32, 0], [0, 0], [0, 0]]
    (tmp_path / "ind.pubmed.graph").touch()
    with pytest.raises(ArgumentError, match=r"has ind.cora.graph and ind.pubmed.graph; give a"):
        Gnn.make(data=tmp_path)


@pytest.mark.parametrize("name", ["tx", "graph"])
@pytest.mark.parametrize("protocol", [None, 4])
def test_damaged_pickles_are_errors_or_other_numbers(
    tmp_path: Path, name: str, protocol: int | None
) -> None:
    path = write_planetoid(tmp_path, protocol) / f"ind.cora.{name}"
    content = path.read_bytes()
    errors = 0
    for place in range(len(content)):
        for damaged in (content[:place], content[:place] + b"\xff" + content[place + 1 :]):
            path.write_bytes(damaged)
            try:
                files.read(tmp_path)
            except FileContentError:
                errors += 1
    assert errors > len(content)


def test_a_folder_without_a_layout_and_options_against_the_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"the folder has neither reddit_graph.npz and"):
        Gnn.make(data=tmp_path)
    write_reddit(tmp_path)
    with pytest.raises(ArgumentError, match="the file has 2 features; 3 is only for random"):
        Gnn.make(data=tmp_path, features=3)
    (tmp_path / "reddit_data.npz").unlink()
    with pytest.raises(ArgumentError, match=r"cannot read .*reddit_data.npz: No such file"):
        Gnn.make(data=tmp_path)


@pytest.mark.parametrize("write", WRITERS)
def test_memory_is_asked_before_files_are_read(
    tmp_path: Path, write: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path)
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 8)
    monkeypatch.setattr(np, "loadtxt", None)
    with pytest.raises(ArgumentError, match=f"{tmp_path}.* need about .* of memory; 8 bytes are"):
        Gnn.make(data=path)
