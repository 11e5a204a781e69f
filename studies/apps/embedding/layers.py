"""The dense layers of a recommendation model, which the host computes before and after the look-up.

The paper prints no widths; those here are assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array

FEATURES = 13  # dense features of a click
BOTTOM, TOP = (256, 128), (256, 64)  # widths of the hidden layers


@dataclass(frozen=True)
class Layers:
    """Bottom layers, dot products of pairs of vectors, and top layers, in int32 that wraps.

    dense: int32, shape (samples, features). bottom, top: the weights of all layers, int32; for each
    output, a weight per input and the bias. bottom_widths, top_widths: numbers of inputs, then the
    outputs of each layer.
    """

    dense: Array
    bottom: Array
    bottom_widths: Array
    top: Array
    top_widths: Array

    @classmethod
    def random(cls, random: np.random.Generator, tables: int, columns: int, samples: int) -> Layers:
        """Return random layers for vectors of `columns` values."""
        inputs = columns + tables * (tables + 1) // 2
        bottom, top = (FEATURES, *BOTTOM, columns), (inputs, *TOP, 1)
        return cls(
            random.integers(0, 16, (samples, FEATURES), np.int32),
            _weights(random, bottom),
            np.array(bottom, np.int32),
            _weights(random, top),
            np.array(top, np.int32),
        )

    def __str__(self) -> str:
        """Return the widths of the layers."""
        bottom, top = (
            "-".join(map(str, widths)) for widths in (self.bottom_widths, self.top_widths)
        )
        return f"{bottom} {top}"

    @property
    def operations(self) -> int:
        """Multiplications and additions for one sample."""
        vectors, columns = (
            int(self.top_widths[0]) - int(self.bottom_widths[-1]),
            int(self.bottom_widths[-1]),
        )
        return 2 * (len(self.bottom) + len(self.top) + vectors * columns)

    def check(self, tables: Array, samples: int) -> None:
        """Raise ArgumentError if the layers do not fit the tables and samples, or if tables are
        no integers.
        """
        count, _, columns = tables.shape
        if tables.dtype != np.int32:
            raise ArgumentError(f"the layers need tables of type int32, not {tables.dtype}")
        inputs = columns + count * (count + 1) // 2
        if (
            len(self.dense) != samples
            or self.bottom_widths[-1] != columns
            or self.top_widths[0] != inputs
        ):
            raise ArgumentError(
                f"layers {self} for {len(self.dense)} samples do not fit {samples} samples and"
                f" {count} tables of {columns} columns, which need {columns} outputs of the bottom"
                f" and {inputs} inputs of the top"
            )

    def outputs(self, pooled: Array) -> Array:
        """Return the output of the last layer for each sample. pooled: int32, shape (samples,
        tables, columns).
        """
        from pidcomm_studies.apps import _apps

        samples, tables, columns = pooled.shape
        vectors = np.ascontiguousarray(pooled.swapaxes(0, 1)).reshape(tables * samples, columns)
        rows = np.repeat(np.arange(samples, dtype=np.uint32)[:, None], tables, axis=1)
        return _apps.dlrm(
            vectors,
            samples * np.arange(tables + 1),
            rows,
            self.dense,
            self.bottom,
            self.bottom_widths,
            self.top,
            self.top_widths,
        )


def _weights(random: np.random.Generator, widths: Sequence[int]) -> Array:
    return np.concatenate(
        [
            random.integers(-4, 5, outputs * (inputs + 1), np.int32)
            for inputs, outputs in pairwise(widths)
        ]
    )
