"""How problems are cut: even shares, and sizes that blocks of collectives can have."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import numpy as np
from numpy.typing import DTypeLike
from pidcomm.arguments import Array
from pidcomm.tables import WORD_BYTES as WORD_BYTES  # of which blocks and DMA transfers are multiples


def round_up(value: int, multiple: int) -> int:
    """Return the next multiple that is not below a value."""
    return -(-value // multiple) * multiple


def share(elements: int, parts: int, dtype: DTypeLike, multiple: int = 1) -> int:
    """Return elements per part, the same for all, so that parts are whole words: of 8 bytes, and of `multiple`."""
    words = max(WORD_BYTES // np.dtype(dtype).itemsize, 1)
    return max(round_up(-(-elements // parts), lcm(words, multiple)), lcm(words, multiple))


def bounds(elements: int, parts: int) -> Array:
    """Return where each of so many even parts begins, and the end of the last: shape (parts + 1,)."""
    return np.arange(parts + 1, dtype=np.int64) * elements // parts


def padded(array: Array, shape: Sequence[int]) -> Array:
    """Return an array with zeros behind it along each axis up to a shape."""
    if array.shape == tuple(shape):
        return array
    whole = np.zeros(shape, array.dtype)
    whole[tuple(slice(length) for length in array.shape)] = array
    return whole


def ragged_rows(values: Array, starts: Array, multiple: int) -> Array:
    """Return rows of equal length, (parts, n), of the parts of an array that begin at starts (the end last).

    Zeros fill each row up to n, the longest rounded up to a multiple of elements, and at least that multiple.
    """
    lengths = np.diff(starts)
    width = max(round_up(int(lengths.max(initial=0)), multiple), multiple)
    rows = np.zeros((len(lengths), width), values.dtype)
    column = np.arange(len(values)) - np.repeat(starts[:-1], lengths)
    rows[np.repeat(np.arange(len(lengths)), lengths), column] = values
    return rows
