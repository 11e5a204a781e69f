"""Bags of indices into embedding tables: checks, generators, and click logs.

A bag belongs to one sample and one table; its length is the pooling factor. Bags are in the order
(sample, table).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array, as_integer
from pidcomm_studies.apps.dlrm.criteo import CATEGORIES, hashed, read, zipf_ranks

SEED_MAX, LIMIT = 2**32 - 1, 2**31

Draw: TypeAlias = Callable[[int, int, int, int], Array]
"""Returns indices, shape (samples, tables, pooling), given samples, tables, rows and pooling."""


@dataclass(frozen=True)
class Bags:
    """Indices of all bags. starts: int64, the start of each bag, then the number of indices.
    indices: uint32.
    """

    tables: int
    starts: Array
    indices: Array

    @property
    def samples(self) -> int:
        """Number of samples."""
        return (len(self.starts) - 1) // self.tables

    def counts(self) -> Array:
        """Return the number of indices of each bag."""
        counts: Array = np.diff(self.starts)
        return counts


def bags_of(tables: int, rows: int, starts: Array, indices: Array) -> Bags:
    """Check bags and return them as `Bags`.

    Raises ArgumentError if starts do not describe bags of `tables` tables, and for an index that is
    not in its table, with the table, the sample and the index.
    """
    ends, index_array = np.asarray(starts), np.asarray(indices)
    if ends.ndim != 1 or ends.dtype.kind not in "iu" or len(ends) < 2 or (len(ends) - 1) % tables:
        raise ArgumentError(
            f"starts of shape {ends.shape} and type {ends.dtype} must be integers: a start for each"
            f" sample and each of the {tables} tables, then the number of indices"
        )
    ends = ends.astype(np.int64)
    if index_array.ndim != 1 or index_array.dtype.kind not in "iu" or len(index_array) >= LIMIT:
        raise ArgumentError(
            f"indices of shape {index_array.shape} and type {index_array.dtype} must be integers,"
            " one axis"
        )
    if ends[0] != 0 or ends[-1] != len(index_array) or (np.diff(ends) < 0).any():
        raise ArgumentError(f"starts must grow from 0 to {len(index_array)}, the number of indices")
    wrong = np.flatnonzero((index_array < 0) | (index_array >= rows))
    if len(wrong):
        bag = int(np.searchsorted(ends, wrong[0], side="right")) - 1
        raise ArgumentError(
            f"table {bag % tables}, sample {bag // tables}: index {index_array[wrong[0]]} is not in"
            f" the table; its rows are 0 to {rows - 1}"
        )
    return Bags(tables, ends, index_array.astype(np.uint32))


def full_bags(indices: Array, rows: int) -> Bags:
    """Return bags of equal length. indices: shape (samples, tables, pooling)."""
    samples, tables, pooling = indices.shape
    starts = np.arange(samples * tables + 1, dtype=np.int64) * pooling
    return bags_of(tables, rows, starts, indices.reshape(-1))


def uniform(seed: int = 1) -> Draw:
    """Return a generator in which all rows have equal probability."""
    random = np.random.default_rng(as_integer("seed", seed, 0, SEED_MAX))
    return lambda samples, tables, rows, pooling: random.integers(
        0, rows, (samples, tables, pooling), np.uint32
    )


def skewed(biased: int = 32, hot: int = 0, seed: int = 1) -> Draw:
    """Return a generator for the x:y imbalance of the paper: x of the indices of a bag are in the
    first `hot` rows.

    biased: x. hot: number of these rows; 0 means a 64th of the rows, which one of 64 PEs has.
    """
    random = np.random.default_rng(as_integer("seed", seed, 0, SEED_MAX))

    def draw(samples: int, tables: int, rows: int, pooling: int) -> Array:
        few = as_integer("hot", hot or max(rows // 64, 1), 1, rows)
        indices = random.integers(0, rows, (samples, tables, pooling), np.uint32)
        if not 0 <= (x := as_integer("biased", biased)) <= pooling:
            raise ArgumentError(
                f"biased ({x}) must be from 0 to pooling ({pooling}), the number of indices of"
                " a bag"
            )
        indices[:, :, :x] = random.integers(0, few, (samples, tables, x), np.uint32)
        return indices

    return draw


def zipf(exponent: float = 1.05, spread: int = 1, seed: int = 1) -> Draw:
    """Return a generator by Zipf's law. spread: 1 distributes popular rows over the table, 0
    places them first.
    """
    if not 0 <= exponent <= 10:
        raise ArgumentError(f"exponent ({exponent}) must be from 0 to 10")
    is_spread = as_integer("spread", spread, 0, 1)
    random = np.random.default_rng(as_integer("seed", seed, 0, SEED_MAX))

    def draw(samples: int, tables: int, rows: int, pooling: int) -> Array:
        ranks = zipf_ranks(
            random.random((samples, tables, pooling)), np.array(rows), exponent
        ).astype(np.uint32)
        return hashed(ranks, np.arange(tables)[:, None]) % np.uint32(rows) if is_spread else ranks

    return draw


GENERATORS: Mapping[str, Callable[..., Draw]] = {"uniform": uniform, "skewed": skewed, "zipf": zipf}


def clicks(path: Path, samples: int, rows: int) -> Bags:
    """Return the categories of a click log: a table per field, a bag of one index, or of none for
    an empty field.

    Raises FileContentError with the number of a malformed line.
    """
    log = read(path, samples)
    starts = np.concatenate([[0], np.cumsum(log.has_category.reshape(-1))])
    return bags_of(CATEGORIES, rows, starts, log.rows(rows)[log.has_category])
