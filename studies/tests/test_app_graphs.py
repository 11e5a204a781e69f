"""Graphs from files and generators, and the errors of malformed files."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_cases import GRAPHS, graph_of

from pidcomm import ArgumentError, Error
from pidcomm_studies.apps import edges, graphs

GENERAL = "%%MatrixMarket matrix coordinate pattern general\n"
SYMMETRIC = "%%MatrixMarket matrix coordinate real symmetric\n"


def read(folder: Path, text: str, name: str = "graph.txt") -> graphs.Graph:
    """Write a file and read the graph in it."""
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return graphs.read_graph(path)


def pairs(graph: graphs.Graph) -> list[tuple[int, int]]:
    """Return the edges of a graph."""
    return list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))


@pytest.mark.parametrize("name", ["graph.txt", "graph.txt.gz"])
def test_a_list_of_edges_has_comments_blank_lines_and_tabs(tmp_path: Path, name: str) -> None:
    graph = read(tmp_path, "# a comment\n0\t1\r\n\n  2 1 # another\n1 1\n0 1", name)
    assert (graph.name, graph.vertices, graph.ids) == (str(tmp_path / name), 3, None)
    assert pairs(graph) == [(0, 1), (2, 1), (1, 1), (0, 1)]


def test_vertices_of_a_list_of_edges_are_renumbered_and_keep_their_ids(tmp_path: Path) -> None:
    for far in (60, 2**63 - 1):  # renumbered by a table, then by sorting
        graph = read(tmp_path, f"7 {far}\n{far} 30\n")
        assert pairs(graph) == [(0, 2), (2, 1)]
        assert graph.ids is not None
        assert graph.ids.tolist() == [7, 30, far]
        undirected = graph.undirected()
        assert undirected.ids is graph.ids


@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n"])
def test_a_list_of_no_edges_is_an_empty_graph(tmp_path: Path, text: str) -> None:
    graph = read(tmp_path, text)
    assert (graph.vertices, graph.edges) == (0, 0)
    assert graph.undirected().edges == 0


@pytest.mark.parametrize("name", ["graph.mtx", "graph.mtx.gz"])
def test_matrix_market_entries_are_edges(tmp_path: Path, name: str) -> None:
    graph = read(tmp_path, GENERAL + "% a comment\n\n4 4 3\n1 2\n% another\n3 1\n2 2\n", name)
    assert (graph.name, graph.vertices) == (str(tmp_path / name), 4)
    assert pairs(graph) == [(0, 1), (2, 0), (1, 1)]
    assert graph.ids is not None
    assert graph.ids.tolist() == [1, 2, 3, 4]


def test_symmetric_matrix_market_entries_are_edges_both_ways(tmp_path: Path) -> None:
    assert pairs(read(tmp_path, SYMMETRIC + "3 3 2\n2 1 0.5\n3 3 -1e3\n")) == [
        (1, 0),
        (2, 2),
        (0, 1),
    ]
    skew = SYMMETRIC.replace("real symmetric", "integer skew-symmetric")
    assert pairs(read(tmp_path, skew + "3 3 1\n3 1 7\n")) == [(2, 0), (0, 2)]


def test_a_matrix_market_file_may_have_no_entries_and_no_rows(tmp_path: Path) -> None:
    assert read(tmp_path, GENERAL + "5 5 0\n").vertices == 5
    assert read(tmp_path, GENERAL + "0 0 0\n").vertices == 0


MALFORMED = {
    "1 2\n3\n": "2: 1 number; an edge is two",
    "1 2 3\n": "1: 3 numbers; an edge is two",
    "# 1 2\n1 2\n3 4 5\n": "3: 3 numbers; an edge is two",
    "1 2\n\n3 x\n": "3: vertex number 'x' is not an integer",
    "1 2.0\n": "1: vertex number '2.0' is not an integer",
    "1,2\n": "1: 1 number",
    "1 2\n-1 3\n": "2: vertex number -1 is not between 0 and",
    "1 9223372036854775808\n": "1: vertex number 9223372036854775808 is not between 0 and",
    "1 2\n1\u00a02\n": "2: 1 number",
    "1 2\n\u2003\n": "2: 1 number",
    "1 \u0663\n": "1: vertex number '\u0663' is not an integer",
    "%%MatrixMarket\n": "1: '%%MatrixMarket'; a header is",
    "%%MatrixMarket matrix array real general\n2 2\n1\n1\n1\n1\n": "1: format 'array'",
    GENERAL.replace("pattern", "complex"): "1: field 'complex'",
    GENERAL.replace("general", "hermitian"): "1: symmetry 'hermitian'",
    GENERAL + "% no more\n": "2: the file ends before the sizes",
    GENERAL + "3 3\n": "2: '3 3'; sizes are",
    GENERAL + "3 -3 1\n": "2: '3 -3 1'; sizes are",
    GENERAL + "3 4 1\n1 1\n": "2: 3 rows and 4 columns",
    GENERAL + "4294967296 4294967296 1\n1 1\n": "2: 4294967296 vertices; at most 4294967295",
    GENERAL + "3 3 2\n1 2\n\n": "4: the file ends after 1 of the 2 entries of line 2",
    GENERAL + "3 3 1\n1 2\n\n2 2\n": "5: one entry more than the 1 of line 2",
    GENERAL + "3 3 2\n1 2\n4 1\n": "4: vertex number 4 is not between 1 and 3",
    GENERAL + "3 3 1\n% c\n1 0\n": "4: vertex number 0 is not between 1 and 3",
    GENERAL + "3 3 1\n1 1.5\n": "3: vertex number '1.5' is not an integer",
    GENERAL + "3 3 1\n1 2 5\n": "3: 3 numbers; an entry of field pattern has 2",
    SYMMETRIC + "3 3 2\n2 1 5\n3 3\n": "4: 2 numbers; an entry of field real has 3",
    GENERAL + "3 3 1\n1\u00a02\n": "3: 1 number; an entry of field pattern has 2",
    SYMMETRIC + "3 3 1\n2 1 five\n": "3: value 'five' is not a number",
}


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_files_are_errors_that_name_the_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'graph.txt'}:{MALFORMED[text]}")


def test_files_that_cannot_be_read_are_errors_that_name_them(tmp_path: Path) -> None:
    packed = gzip.compress(b"1 2\n" * 1000)
    damaged = bytearray(packed)
    damaged[len(damaged) // 2] ^= 255
    for name, content in {
        "cut.gz": packed[:-9],
        "damaged.gz": bytes(damaged),
        "none.gz": b"1 2\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(Error, match=f"{name}: not valid gzip data"):
            graphs.read_graph(tmp_path / name)
    with pytest.raises(Error, match=r"cannot read .*missing"):
        graphs.read_graph(tmp_path / "missing")


def test_undirected_has_each_edge_both_ways_and_once() -> None:
    graph = graph_of(5, [(3, 1), (1, 3), (2, 2), (0, 4), (0, 4)])
    assert pairs(graph.undirected()) == [(0, 4), (1, 3), (3, 1), (4, 0)]
    assert graph.undirected().starts().tolist() == [0, 1, 2, 2, 3, 4]


def test_distinct_has_each_edge_once_with_loops_or_without() -> None:
    graph = graph_of(5, [(3, 1), (1, 3), (2, 2), (0, 4), (2, 2), (0, 4), (0, 0)])
    assert pairs(graph.distinct(keep_loops=True)) == [(0, 0), (0, 4), (1, 3), (2, 2), (3, 1)]
    assert pairs(graph.distinct(keep_loops=False)) == [(0, 4), (1, 3), (3, 1)]


def test_the_matrix_counts_edges() -> None:
    assert graph_of(3, [(0, 2), (0, 2), (2, 1)]).matrix().toarray().tolist() == [
        [0, 0, 2],
        [0, 0, 0],
        [0, 1, 0],
    ]


def test_rmat_has_the_degrees_of_a_kronecker_graph() -> None:
    graph = graphs.rmat(scale=12, edges=16, seed=5)
    assert (graph.vertices, graph.edges) == (4096, 65536)
    # A level of the product sends 0.57 + 0.19 of the edges to its half: the expected degree of the
    # best vertex.
    expected = graph.edges * 0.76**12
    for ends in (graph.sources, graph.targets):
        degrees = np.bincount(ends, minlength=4096)
        assert 0.8 * expected < degrees.max() < 1.2 * expected
        assert degrees.argmax() != 0  # vertices are in random order
    assert pairs(graphs.rmat(scale=12, edges=16, seed=5)) == pairs(graph)
    assert pairs(graphs.rmat(scale=12, edges=16, seed=6)) != pairs(graph)


@pytest.mark.parametrize(
    ("vertices", "edges"), [(0, 0), (1, 0), (8, 1), (1000, 1000**2 // 64), (19717, 44338)]
)
def test_a_skewed_graph_has_the_given_size_without_loops_and_double_edges(
    vertices: int, edges: int
) -> None:
    graph = graphs.skewed(vertices=vertices, edges=edges)
    assert (graph.vertices, graph.edges) == (vertices, edges)
    assert graph.undirected().edges == 2 * edges


def test_a_skewed_graph_has_the_degrees_of_rmat_without_double_edges() -> None:
    drawn = graphs.rmat(scale=14, edges=4).undirected()
    graph = graphs.skewed(vertices=1 << 14, edges=drawn.edges // 2, seed=3)
    degrees, expected = (
        np.bincount(each.sources, minlength=1 << 14) for each in (graph.undirected(), drawn)
    )
    assert degrees.argmax() != 0  # vertices are in random order
    for share in (0.5, 0.9, 0.99, 1.0):
        np.testing.assert_allclose(
            np.quantile(degrees, share), np.quantile(expected, share), rtol=0.15, atol=1
        )
    assert pairs(graphs.skewed(vertices=1 << 14, edges=graph.edges, seed=3)) == pairs(graph)
    assert pairs(graphs.skewed(vertices=1 << 14, edges=graph.edges, seed=4)) != pairs(graph)


def test_a_grid_leads_right_and_down() -> None:
    assert sorted(pairs(graphs.grid(rows=2, columns=3))) == [
        (0, 1),
        (0, 3),
        (1, 2),
        (1, 4),
        (2, 5),
        (3, 4),
        (4, 5),
    ]


def test_uniform_edges_are_between_all_vertices() -> None:
    graph = graphs.uniform(vertices=50, edges=5000, seed=2)
    assert np.unique(graph.sources).tolist() == np.unique(graph.targets).tolist() == list(range(50))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rmat:scale=32", r"scale \(32\) must be between 0 and 31"),
        ("rmat:seed=-1", r"seed \(-1\)"),
        ("skewed:vertices=80,edges=101", r"edges \(101\) must be between 0 and 100"),
        ("uniform:vertices=0", r"vertices \(0\) must be between 1"),
        ("uniform:edges=-1", r"edges \(-1\)"),
        ("grid:rows=65536,columns=65536", "must be between 0 and 4294967295"),
    ],
)
def test_invalid_parameters_of_generators_are_errors(spec: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        graphs.load(None, spec, "rmat")


@pytest.mark.parametrize(
    ("vertices", "sources", "targets", "ids", "message"),
    [
        (3, [0, 3], [1, 2], None, "sources have vertex 3; vertices must be below 3"),
        (3, [0, 1], [1, 4], None, "targets have vertex 4; vertices must be below 3"),
        (0, [0], [0], None, "sources have vertex 0; vertices must be below 0"),
        (3, [0, 1], [1], None, "2 sources and 1 targets"),
        (
            3,
            [[0, 1]],
            [1, 2],
            None,
            r"sources \(uint32, shape \(1, 2\)\) must be uint32 of one dimension",
        ),
        (-1, [], [], None, r"vertices \(-1\) must be between 0 and 4294967295"),
        (2**32, [], [], None, r"vertices \(4294967296\) must be"),
        (2, [], [], [5], r"ids of shape \(1,\); 2 vertices"),
        (2, [], [], [5, 5], "ids must be ascending"),
    ],
)
def test_arrays_that_are_no_graph_are_errors(
    vertices: int, sources: list[Any], targets: list[Any], ids: list[int] | None, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        graphs.Graph(
            "arrays",
            vertices,
            np.array(sources, np.uint32),
            np.array(targets, np.uint32),
            None if ids is None else np.array(ids),
        )


def test_vertices_of_another_type_are_an_error() -> None:
    ends = np.zeros(2, np.uint32)
    with pytest.raises(ArgumentError, match=r"targets \(int64, shape \(2,\)\) must be uint32"):
        graphs.Graph("arrays", 1, ends, ends.astype(np.int64))
    with pytest.raises(ArgumentError, match=r"sources \(int64, shape \(2,\)\) must be uint32"):
        graphs.Graph("lists", 1, [0, 0], [0, 0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ("rmat:scale=31", "2147483648 vertices with 16 edges each"),
        (
            "skewed:vertices=2147483648,edges=600000000",
            "2147483648 vertices with 600000000 edges",
        ),
        ("uniform:edges=100000000000000", "100000000000000 edges"),
        ("grid:rows=65535,columns=65536", "65535 rows of 65536 vertices"),
        ("uniform:vertices=4294967295,edges=1", "the starts of 4294967295 vertices"),
    ],
)
def test_a_graph_larger_than_memory_is_an_error_before_it_is_made(
    spec: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 16 << 30)
    with pytest.raises(
        ArgumentError, match=rf"{what} need about .* of memory; 16 GiB are available"
    ):
        graphs.load(None, spec, "rmat").undirected().starts()


def test_a_file_of_too_many_vertices_is_an_error_before_they_have_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 16 << 30)
    with pytest.raises(
        ArgumentError, match=r"graph.txt: 4294967295 vertices need about 36 GiB of memory; 16 GiB"
    ):
        read(tmp_path, GENERAL + "4294967295 4294967295 1\n1 2\n")


def test_sorting_and_cutting_need_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs.grid(rows=100, columns=100)
    undirected = graph.undirected()
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 1 << 20)
    with pytest.raises(ArgumentError, match="39600 edges in order need about"):
        graph.undirected()
    with pytest.raises(ArgumentError, match="39600 edges in patches need about"):
        edges.cut(undirected, 8, chunk_bits=16, tile_bits=16)


def test_bits_of_a_cut_that_do_not_fit_an_edge_are_errors() -> None:
    for bits, message in (
        ((5, 16), r"chunk_bits \(5\)"),
        ((16, 17), r"tile_bits \(17\) must be between 6 and 16"),
    ):
        with pytest.raises(ArgumentError, match=message):
            edges.cut(GRAPHS["rmat"], 8, chunk_bits=bits[0], tile_bits=bits[1])


def test_help_names_the_default_with_all_its_parameters() -> None:
    assert graphs.generate_help("rmat:scale=20").endswith("; default rmat:scale=20,edges=16,seed=1")


def test_load_takes_a_file_or_a_generator_or_the_default(tmp_path: Path) -> None:
    assert graphs.load(None, None, "grid:rows=2,columns=2").name == "grid:rows=2,columns=2"
    (tmp_path / "edges").write_text("0 1\n")
    assert graphs.load(tmp_path / "edges", None, "grid").name == str(tmp_path / "edges")
    with pytest.raises(ArgumentError, match="not both"):
        graphs.load(tmp_path / "edges", "grid", "grid")


@pytest.mark.parametrize("bits", [(6, 6), (7, 9), (16, 16)])
@pytest.mark.parametrize("pes", [1, 3, 64])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_cut_has_every_edge_in_even_slices(name: str, pes: int, bits: tuple[int, int]) -> None:
    graph = GRAPHS[name].undirected()
    chunk_bits, tile_bits = bits
    cut = edges.cut(graph, pes, chunk_bits=chunk_bits, tile_bits=tile_bits)
    edges_of_cut: Counter[tuple[int, int]] = Counter()
    for row, table, count in zip(
        cut.edges, cut.patches.reshape(pes, -1, edges.FIELDS), cut.counts, strict=True
    ):
        of_pe: set[tuple[int, int]] = set()
        end = 0
        for chunk_first, chunk, tile_first, tile, first, length in table[:count].tolist():
            assert chunk_first % 64 == tile_first % 64 == chunk % 64 == tile % 64 == length % 2 == 0
            assert first == end
            end = first + length
            patch = row[first:end].astype(np.int64)
            sources, targets = patch >> tile_bits, patch & ((1 << tile_bits) - 1)
            assert sources.max() < chunk <= 1 << chunk_bits
            assert targets.max() < tile <= 1 << tile_bits
            of_pe.update(
                zip((sources + chunk_first).tolist(), (targets + tile_first).tolist(), strict=True)
            )
        assert graph.edges // pes <= len(of_pe) <= -(-graph.edges // pes)
        edges_of_cut.update(of_pe)
    assert edges_of_cut == Counter(pairs(graph))
