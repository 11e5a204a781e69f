"""The collectives by their definitions, in plain NumPy, one PE at a time.

Shares no code with the package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce as fold
from itertools import product
from typing import Any, NamedTuple

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


class Definition(NamedTuple):
    """A collective: whether PEs (else groups) have its rows before and after, and whether rows have
    a block per member.

    result: returns the row of member q (of the group, if q is None) from the blocks b[p][i] of the
    members, or from b[0][i] of the host row.
    """

    at_pes_before: bool
    at_pes_after: bool
    has_blocks_before: bool
    reduces: bool
    result: Callable[[Any, list[list[Array]], Any], Array]


COLLECTIVES = {
    "alltoall": Definition(
        True, True, True, False, lambda q, b, combine: np.concatenate([blocks[q] for blocks in b])
    ),
    "reduce_scatter": Definition(
        True, True, True, True, lambda q, b, combine: fold(combine, [x[q] for x in b])
    ),
    "allreduce": Definition(
        True, True, False, True, lambda q, b, combine: fold(combine, [x[0] for x in b])
    ),
    # [collective]
    "allgather": Definition(
        True, True, False, False, lambda q, b, combine: np.concatenate([x[0] for x in b])
    ),
    # [end]
    "scatter": Definition(False, True, True, False, lambda q, b, combine: b[0][q]),
    "gather": Definition(
        True, False, False, False, lambda q, b, combine: np.concatenate([x[0] for x in b])
    ),
    "reduce": Definition(
        True, False, False, True, lambda q, b, combine: fold(combine, [x[0] for x in b])
    ),
    "broadcast": Definition(False, True, False, False, lambda q, b, combine: b[0][0]),
}
REDUCTIONS = {name for name, definition in COLLECTIVES.items() if definition.reduces}


def groups_of(shape: tuple[int, ...], mask: str) -> list[list[int]]:
    """Return the PEs of every group in member order; groups are ordered by their unselected
    coordinates.
    """
    strides = [int(np.prod(shape[:axis])) for axis in range(len(shape))]

    def offsets(bit: str) -> list[int]:
        axes = [axis for axis, selected in enumerate(mask) if selected == bit]
        # product() varies its last factor fastest, a hypercube its first axis.
        places = product(*(range(shape[axis]) for axis in reversed(axes)))
        return [
            sum(i * strides[axis] for i, axis in zip(place, reversed(axes), strict=True))
            for place in places
        ]

    return [[rest + member for member in offsets("1")] for rest in offsets("0")]


def result_of(name: str, x: Array, shape: tuple[int, ...], mask: str, op: str = "sum") -> Array:
    """Return the rows after a collective on the rows x."""
    definition, groups = COLLECTIVES[name], groups_of(shape, mask)
    members, pes = len(groups[0]), int(np.prod(shape))
    after: dict[int, Array] = {}
    for number, group in enumerate(groups):
        rows = [x[pe] for pe in group] if definition.at_pes_before else [x[number]]
        blocks = [np.split(row, members) if definition.has_blocks_before else [row] for row in rows]
        for q, row in enumerate(group) if definition.at_pes_after else [(None, number)]:
            after[row] = definition.result(q, blocks, OPERATORS[op])
    return np.stack([after[row] for row in range(pes if definition.at_pes_after else len(groups))])


def payload(
    name: str, shape: tuple[int, ...], mask: str, dtype: str, block_bytes: int = 24, seed: int = 0
) -> Array:
    """Return random rows for a collective: any integers, or small whole floats, whose sums are
    exact.
    """
    definition, groups = COLLECTIVES[name], groups_of(shape, mask)
    rows = int(np.prod(shape)) if definition.at_pes_before else len(groups)
    columns = (
        block_bytes
        // np.dtype(dtype).itemsize
        * (len(groups[0]) if definition.has_blocks_before else 1)
    )
    random = np.random.default_rng(seed)
    if "float" in np.dtype(dtype).name:
        most = 2 if np.dtype(dtype).itemsize == 2 else 8
        return random.integers(-most, most, (rows, columns)).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, (rows, columns), dtype=dtype, endpoint=True)
