"""Cut arrays into even shares, and round sizes to valid blocks of collectives."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import numpy as np
from numpy.typing import DTypeLike

from pidcomm.arguments import Array
from pidcomm.tables import (
    WORD_BYTES as WORD_BYTES,
    # blocks and DMA transfers are multiples of this size,
)


def round_up(value: int, multiple: int) -> int:
    """Return the smallest multiple of `multiple` that is at least `value`."""
    return -(-value // multiple) * multiple


def share(elements: int, parts: int, dtype: DTypeLike, multiple: int = 1) -> int:
    """Return the number of elements per part: complete words of 8 bytes, and a multiple of
    `multiple`.
    """
    words = max(WORD_BYTES // np.dtype(dtype).itemsize, 1)
    return max(round_up(-(-elements // parts), lcm(words, multiple)), lcm(words, multiple))


def bounds(elements: int, parts: int) -> Array:
    """Return the start of each of `parts` even parts, then the end of the last part: shape
    (parts + 1,).
    """
    return np.arange(parts + 1, dtype=np.int64) * elements // parts


def padded(array: Array, shape: Sequence[int]) -> Array:
    """Pad an array to a shape, with zeros at the end of each axis."""
    if array.shape == tuple(shape):
        return array
    whole = np.zeros(shape, array.dtype)
    whole[tuple(slice(length) for length in array.shape)] = array
    return whole


def ragged_rows(values: Array, starts: Array, multiple: int) -> Array:
    """Return the parts of an array as rows of equal length, (parts, n).

    starts: the start of each part, then the end of the last part. Zeros fill each row up to n, the
    length of the longest part, rounded up to a positive multiple of `multiple`.
    """
    lengths = np.diff(starts)
    width = max(round_up(int(lengths.max(initial=0)), multiple), multiple)
    rows = np.zeros((len(lengths), width), values.dtype)
    column = np.arange(len(values)) - np.repeat(starts[:-1], lengths)
    rows[np.repeat(np.arange(len(lengths)), lengths), column] = values
    return rows
