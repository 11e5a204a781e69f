"""Graph neural network (PID-Comm, section VII-B): layers H' = relu(A H W), in both strategies of
the paper.

A is the adjacency matrix, cut into a tile for each PE of a 2D hypercube; H are the features of the
vertices, W weights.
The last layer has no relu. The first features reach the PEs by a broadcast along y; layers swap the
axes, and strategy `rs_ar` or `ar_ag` moves sums and features between the PEs (docs/evaluation.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import isqrt, prod
from pathlib import Path
from typing import Annotated

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array, as_integer
from pidcomm.bench.measure import require_bytes
from pidcomm_studies.apps import graphs
from pidcomm_studies.apps.application import Application
from pidcomm_studies.apps.gnn import data as files
from pidcomm_studies.apps.gnn.layout import Layer, Layout
from pidcomm_studies.apps.graphs import Graph
from pidcomm_studies.apps.inputs import one_source
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import Stage

STRATEGIES = ("rs_ar", "ar_ag")
"""Collectives before and after the combination: reduce_scatter, allreduce (rs_ar) or allreduce,
allgather (ar_ag).
"""
DTYPES = ("int8", "int16", "int32")
DEFAULT_GRAPH = "rmat:scale=16,edges=16"
QUICK_GRAPH = "rmat:scale=10,edges=8"
FEATURES = 64
MAGNITUDE = 4  # largest magnitude of random features and weights


class Gnn(Application):
    """Layers of a graph neural network on one graph.

    graph: the directed edges; duplicates count once. A vertex adds the features of the vertices to
    which its edges lead. features: shape (vertices, n) of int8, int16 or int32. weights: a matrix
    of the same type for each layer; it has as many rows as the matrix of the layer before has
    columns. strategy: one of `STRATEGIES`. seed: seed of random features and weights, for `facts`
    only.

    Arithmetic wraps. Raises ArgumentError for shapes or types that do not match.
    """

    name = "gnn"
    about = (
        "Graph neural network: aggregation over edges and combination by weights, layer by layer."
    )
    axes = 2
    data_help = files.DATA_HELP
    generate_help = graphs.generate_help(DEFAULT_GRAPH)

    def __init__(
        self,
        graph: Graph,
        features: Array,
        weights: Sequence[Array],
        strategy: str = "rs_ar",
        seed: int | None = None,
    ) -> None:
        """Check and store the arguments."""
        if strategy not in STRATEGIES:
            raise ArgumentError(f"strategy {strategy!r} is unknown; use {', '.join(STRATEGIES)}")
        if features.dtype.name not in DTYPES:
            raise ArgumentError(
                f"features of {features.dtype} are not supported; use {', '.join(DTYPES)}"
            )
        if features.ndim != 2 or len(features) != graph.vertices:
            raise ArgumentError(
                f"features of shape {features.shape} need a row for each of {graph.vertices}"
                " vertices"
            )
        if not weights:
            raise ArgumentError("there are no weights; a network has at least one layer")
        for layer, (rows, matrix) in enumerate(zip([features, *weights], weights, strict=False)):
            if (
                matrix.ndim != 2
                or matrix.dtype != features.dtype
                or len(matrix) != rows.shape[1]
                or not matrix.size
            ):
                raise ArgumentError(
                    f"weights {layer} of {matrix.dtype} and shape {matrix.shape} must be of"
                    f" {features.dtype} and shape ({rows.shape[1]}, n), both > 0"
                )
        self.graph = graph
        self.features = np.ascontiguousarray(features, features.dtype.newbyteorder("="))
        self.weights = [np.ascontiguousarray(matrix, self.features.dtype) for matrix in weights]
        self.strategy = strategy
        self.seed = seed
        self._layout: Layout | None = None

    @classmethod
    def make(
        cls,
        *,
        data: Path | None = None,
        generate: str | None = None,
        quick: bool = False,
        strategy: Annotated[
            str,
            "Strategy: rs_ar (reduce_scatter, allreduce) or ar_ag (allreduce, allgather)",
        ] = "rs_ar",
        dtype: Annotated[str, f"Element type: {', '.join(DTYPES)}"] = "int32",
        layers: Annotated[int, "Number of layers"] = 3,
        features: Annotated[
            int | None,
            f"Features before the layers (default: of files or {FEATURES})",
        ] = None,
        features_data: Annotated[Path | None, files.FEATURES_HELP] = None,
        hidden: Annotated[int, "Features of a vertex between layers"] = 64,
        outputs: Annotated[int, "Features of a vertex at the end"] = 16,
        seed: Annotated[int, "Seed of the features and weights"] = 1,
    ) -> Gnn:
        """Return the application with a graph; its weights, and its features unless a file has
        them, are small random integers.
        """
        if dtype not in DTYPES:
            raise ArgumentError(f"dtype {dtype!r} is not supported; use {', '.join(DTYPES)}")
        later = [
            *[as_integer("hidden", hidden, 1)] * (as_integer("layers", layers, 1) - 1),
            as_integer("outputs", outputs, 1),
        ]
        width = as_integer("features", FEATURES if features is None else features, 1)
        random = np.random.default_rng(as_integer("seed", seed))
        if data is None:
            graph, read = graphs.load(None, generate, QUICK_GRAPH if quick else DEFAULT_GRAPH), None
        else:
            one_source(data, generate)
            graph, read = files.read(data)
        source = features_data or data
        if features_data is not None:
            read = files.rows_of(graph, files.read_features(features_data), features_data)
        if read is not None and source is not None:
            if features not in (None, read.shape[1]):
                raise ArgumentError(
                    f"{source}: the file has {read.shape[1]} features; {features} is only for"
                    " random features"
                )
            width = read.shape[1]
            read = files.quantized(read, dtype, source)
        widths = [width, *later]
        shapes = [*([] if read is not None else [(graph.vertices, width)]), *pairwise(widths)]
        require_bytes(
            sum(map(prod, shapes)) * np.dtype(dtype).itemsize,
            f"{graph.vertices} vertices and features {'-'.join(map(str, widths))} of {dtype}",
        )
        matrices = [
            random.integers(-MAGNITUDE, MAGNITUDE, shape, dtype, endpoint=True) for shape in shapes
        ]
        features_of_vertices = matrices.pop(0) if read is None else read
        return cls(graph, features_of_vertices, matrices, strategy, seed)

    @property
    def widths(self) -> list[int]:
        """Number of features of a vertex before the first layer and after each layer."""
        return [self.features.shape[1], *(matrix.shape[1] for matrix in self.weights)]

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The graph and the network."""
        facts: dict[str, int | str] = {
            "input": self.graph.name,
            "vertices": self.graph.vertices,
            "edges": self._distinct.edges,
            "features": "-".join(map(str, self.widths)),
            "dtype": self.features.dtype.name,
            "strategy": self.strategy,
        }
        return facts if self.seed is None else {**facts, "seed": self.seed}

    @classmethod
    def shape_of(cls, pes: int) -> tuple[int, ...]:
        """Return the two factors of `pes` that are closest to each other, the larger first."""
        y = next(factor for factor in range(isqrt(pes), 0, -1) if pes % factor == 0)
        return pes // y, y

    def place(self, shape: Sequence[int]) -> Placement:
        """Return the layout: resident tiles and weights, and three windows of matrices."""
        return self._layout_for(shape).placement()

    def run(self, stage: Stage) -> Array:
        """Compute the features after the last layer: shape (vertices, outputs)."""
        layout = self._layout_for(stage.shape)
        for name, rows in layout.resident_rows():
            stage.place(name, rows)
        for layer, weights in zip(layout.layers, self.weights, strict=True):
            stage.place("weights", layout.weight_rows(layer, weights), at=layer.weights_at)
        stage.broadcast("01", stage.host_work(lambda: layout.strips(self.features)), dst="features")
        solve = _run_rs_ar if self.strategy == "rs_ar" else _run_ar_ag
        rows = solve(stage, layout)
        return stage.host_work(lambda: layout.result(rows, self.widths[-1]))

    def reference(self) -> Array:
        """Compute the result of the network layer by layer on all CPUs."""
        from pidcomm_studies.apps import _apps

        rows = self.features
        for layer, weights in enumerate(self.weights):
            rows = _apps.gnn_layer(self._starts, self._distinct.targets, rows, weights, layer > 0)
        return rows

    @cached_property
    def _distinct(self) -> Graph:
        return self.graph.distinct(keep_loops=True)

    @cached_property
    def _starts(self) -> Array:
        return self._distinct.starts()

    def _layout_for(self, shape: Sequence[int]) -> Layout:
        lengths = (int(shape[0]), int(shape[1]))
        if self._layout is None or self._layout.shape != lengths:
            self._layout = Layout(
                lengths, self._distinct, self.widths, self.features.dtype, self.strategy == "rs_ar"
            )
        return self._layout


def _run_rs_ar(stage: Stage, layout: Layout) -> Array:
    """Per layer: add and split by features, combine, add again.

    Then each PE of a row has the complete strip.
    """
    for layer in layout.layers:
        mask, rows = layer.mask, layer.side.rows
        _aggregate(stage, layout, layer)
        before, after = layout.bytes(rows, layer.width), layout.bytes(rows, layer.next_width)
        stage.reduce_scatter(mask, bytes=before, src="sums", dst="blocks", dtype=layout.dtype)
        _combine(stage, layout, layer, "blocks", "sums")
        if layer is not layout.layers[-1]:
            stage.allreduce(mask, bytes=after, src="sums", dst="features", dtype=layout.dtype)
    return stage.reduce(mask, bytes=after, src="sums", dtype=layout.dtype)


def _run_ar_ag(stage: Stage, layout: Layout) -> Array:
    """Per layer: add, combine to a part of the new features, gather the parts.

    Each PE of a row then has the strip.
    """
    for layer in layout.layers:
        mask, rows = layer.mask, layer.side.rows
        _aggregate(stage, layout, layer)
        before, after = layout.bytes(rows, layer.width), layout.bytes(rows, layer.next_width)
        stage.allreduce(mask, bytes=before, src="sums", dst="features", dtype=layout.dtype)
        _combine(stage, layout, layer, "features", "blocks")
        if layer is not layout.layers[-1]:
            stage.allgather(mask, bytes=after, src="blocks", dst="features")
    return stage.gather(mask, bytes=after // layer.members, src="blocks", dtype=layout.dtype)


def _aggregate(stage: Stage, layout: Layout, layer: Layer) -> None:
    """Multiply the tile by features; from the second layer on, negative features count as 0."""
    side = layer.side
    stage.launch(
        is_combination=0,
        input=stage.offsets["features"],
        output=stage.offsets["sums"],
        rows=side.rows,
        block_rows=side.block_rows,
        slabs=layer.width // layout.slab,
        source_rows=side.columns,
        starts=stage.offsets[f"starts_{side.name}"],
        edges=stage.offsets[f"edges_{side.name}"],
        is_rectified=int(layer.index > 0),
    )


def _combine(stage: Stage, layout: Layout, layer: Layer, src: str, dst: str) -> None:
    """Multiply by each PE's part of the weights."""
    stage.launch(
        is_combination=1,
        input=stage.offsets[src],
        output=stage.offsets[dst],
        rows=layer.side.rows,
        block_rows=layer.side.block_rows,
        slabs=layer.in_width // layout.slab,
        weights=stage.offsets["weights"] + layer.weights_at,
        weight_slabs=layer.out_width // layout.slab,
    )


APPLICATION = Gnn
