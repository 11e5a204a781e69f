"""The collectives by their definitions, in plain NumPy, one PE at a time. Shares nothing with the package."""

from __future__ import annotations

from functools import reduce as fold
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

OPERATORS: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    # [operator]
    "xor": np.bitwise_xor,
    # [end]
}
AT_PES_BEFORE = {"alltoall", "reduce_scatter", "allreduce", "allgather", "gather", "reduce"}
AT_PES_AFTER = {"alltoall", "reduce_scatter", "allreduce", "allgather", "scatter", "broadcast"}
BLOCKS_BEFORE = {"alltoall", "reduce_scatter", "scatter"}  # rows of N blocks, else one
REDUCTIONS = {"reduce_scatter", "allreduce", "reduce"}

# Result of member q, from the blocks b[p][i] of the members (or b[0][i] of the host row).
RESULT_OF_MEMBER: dict[str, Any] = {
    "alltoall": lambda q, b, combine: np.concatenate([blocks[q] for blocks in b]),
    "reduce_scatter": lambda q, b, combine: fold(combine, [blocks[q] for blocks in b]),
    "allreduce": lambda q, b, combine: fold(combine, [blocks[0] for blocks in b]),
    # [collective]
    "allgather": lambda q, b, combine: np.concatenate([blocks[0] for blocks in b]),
    # [end]
    "scatter": lambda q, b, combine: b[0][q],
    "broadcast": lambda q, b, combine: b[0][0],
}


def groups_of(shape: tuple[int, ...], mask: str) -> list[list[int]]:
    """Return the PEs of every group in member order; groups in the order of their unselected coordinates."""
    strides = [int(np.prod(shape[:axis])) for axis in range(len(shape))]

    def offsets(bit: str) -> list[int]:
        axes = [axis for axis, selected in enumerate(mask) if selected == bit]
        # product() varies its last factor fastest; the first axis has to be.
        places = product(*(range(shape[axis]) for axis in reversed(axes)))
        return [sum(i * strides[axis] for i, axis in zip(place, reversed(axes), strict=True)) for place in places]

    return [[rest + member for member in offsets("1")] for rest in offsets("0")]


def result_of(name: str, x: Array, shape: tuple[int, ...], mask: str, op: str = "sum") -> Array:
    """Return the rows that a collective makes of the rows x."""
    groups = groups_of(shape, mask)
    members, pes = len(groups[0]), int(np.prod(shape))
    after: dict[int, Array] = {}
    for number, group in enumerate(groups):
        if name in AT_PES_BEFORE:
            rows = [x[pe] for pe in group]
            blocks = [np.split(row, members) for row in rows] if name in BLOCKS_BEFORE else [[row] for row in rows]
        else:
            blocks = [np.split(x[number], members) if name in BLOCKS_BEFORE else [x[number]]]
        combine = OPERATORS[op]
        if name == "gather":
            after[number] = np.concatenate([b[0] for b in blocks])
        elif name == "reduce":
            after[number] = fold(combine, [b[0] for b in blocks])
        else:
            for q, pe in enumerate(group):
                after[pe] = RESULT_OF_MEMBER[name](q, blocks, combine)
    return np.stack([after[row] for row in range(pes if name in AT_PES_AFTER else len(groups))])


def payload(name: str, shape: tuple[int, ...], mask: str, dtype: str, block_bytes: int = 24, seed: int = 0) -> Array:
    """Return random rows for a collective: any integers, or small whole floats, whose sums are exact."""
    groups = groups_of(shape, mask)
    rows = int(np.prod(shape)) if name in AT_PES_BEFORE else len(groups)
    columns = block_bytes // np.dtype(dtype).itemsize * (len(groups[0]) if name in BLOCKS_BEFORE else 1)
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return random.integers(-8, 8, (rows, columns)).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, (rows, columns), dtype=dtype, endpoint=True)
