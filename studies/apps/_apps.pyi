"""Declare the extension that contains the CPU references of the applications; see
apps/*/cpu.cpp.
"""

import numpy as np
from numpy.typing import NDArray

from pidcomm.arguments import Array

def bfs(
    starts: NDArray[np.int64], targets: NDArray[np.uint32], source: int, is_symmetric: bool
) -> NDArray[np.int32]: ...
def cc(starts: NDArray[np.int64], targets: NDArray[np.uint32]) -> NDArray[np.uint32]: ...
def ckks_convert(
    x: Array,
    weights: Array,
    sources: Array,
    factors: Array,
    targets: Array,
    has_one_lane: bool = False,
) -> Array: ...
def ckks_scale(
    a: Array, b: Array, weights: Array, moduli: Array, has_one_lane: bool = False
) -> Array: ...
def ckks_add(a: Array, b: Array, moduli: Array) -> Array: ...
def dlrm(
    tables: Array,
    starts: Array,
    rows: Array,
    dense: Array,
    bottom: Array,
    bottom_widths: Array,
    top: Array,
    top_widths: Array,
    /,
) -> Array: ...
def embedding(
    tables: Array,
    table_count: int,
    starts: Array,
    indices: Array,
    is_absolute: bool,
    is_plain: bool,
    /,
) -> Array: ...
def embedding_requests(
    starts: Array,
    indices: Array,
    tables: int,
    x: int,
    y: int,
    part_tables: int,
    part_rows: int,
    start_words: int,
    /,
) -> Array: ...
def embedding_joined(
    sums: Array,
    requests: Array,
    x: int,
    y: int,
    z: int,
    samples: int,
    tables: int,
    part_tables: int,
    columns: int,
    part_columns: int,
    group: int,
    /,
) -> Array: ...
def gnn_layer(
    starts: Array, targets: Array, features: Array, weights: Array, is_rectified: bool
) -> Array: ...
def mlp_layer(weights: Array, x: Array, relu: bool) -> Array: ...
def ntt_tables(moduli: Array, roots: Array, n: int) -> Array: ...
def ntt_forward(values: Array, tables: Array, has_one_lane: bool = False) -> Array: ...
def ntt_inverse(
    values: Array, tables: Array, scales: Array, has_one_lane: bool = False
) -> Array: ...
def ntt_multiply(a: Array, b: Array, moduli: Array, has_one_lane: bool = False) -> Array: ...
def ntt_lanes(largest: int, n: int) -> int: ...
def set_threads(count: int) -> int: ...
