"""A homomorphic multiplication on the CPUs, by the functions of cpu.cpp here and of the
transforms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from time import perf_counter
from typing import TypeVar

import numpy as np

from pidcomm.arguments import Array
from pidcomm_studies.apps import _apps
from pidcomm_studies.apps.ckks.conversion import Conversion, conversions
from pidcomm_studies.apps.ckks.scheme import Scheme

T = TypeVar("T")


def multiply(
    scheme: Scheme, inputs: Sequence[Array]
) -> tuple[tuple[Array, Array], dict[str, float]]:
    """Return both parts of the product, shape (L, size) each, and the seconds of each primitive.

    inputs: both parts of two ciphertexts.
    """
    work = _Cpu(scheme, inputs)
    return work.run(), work.seconds


class _Cpu:
    def __init__(self, scheme: Scheme, inputs: Sequence[Array]) -> None:
        self.scheme, self.parameters, self.inputs = scheme, scheme.parameters, inputs
        self.tables = scheme.tables
        self.moduli = self.tables.moduli
        self.up, self.down, self.last = conversions(self.parameters)
        self.seconds: dict[str, float] = {}

    def run(self) -> tuple[Array, Array]:
        parameters = self.parameters
        count = len(parameters.moduli)
        x0, x1, y0, y1 = self.inputs

        def tensor() -> list[Array]:
            middle = self._add(self._product(x0, y1), self._product(x1, y0))
            return [self._product(x0, y0), middle, self._product(x1, y1)]

        d0, d1, d2 = self._timed("multiply", tensor)
        coefficients = self._inverse(d2, 0)
        sums: list[Array] = []
        for digit, limbs in enumerate(parameters.digits):
            raised = self._convert(coefficients[limbs.start : limbs.stop], self.up[digit])
            tables = self.tables.forward[[i for i in range(len(parameters.all)) if i not in limbs]]
            raised = self._timed(
                "NTT",
                lambda raised=raised, tables=tables: _apps.ntt_forward(raised, tables),  # type: ignore[misc]
            )
            whole = np.concatenate(
                [raised[: limbs.start], d2[limbs.start : limbs.stop], raised[limbs.start :]]
            )

            def keyed(
                digit: int = digit, whole: Array = whole, sums: list[Array] = sums
            ) -> list[Array]:
                parts = [self._product(whole, key) for key in self.scheme.key[digit]]
                return (
                    parts
                    if digit == 0
                    else [self._add(a, b) for a, b in zip(sums, parts, strict=True)]
                )

            sums = self._timed("key product", keyed)
        keyed_parts = []
        inverse = [pow(prod(parameters.extension), -1, q) for q in parameters.moduli]
        for part, base in zip(sums, (d0, d1), strict=True):
            scaled = self._dropped(part[:count], part[count:], count, self.down, inverse)
            keyed_parts.append(
                self._timed("add", lambda scaled=scaled, base=base: self._add(base, scaled))
            )  # type: ignore[misc]
        inverse = [pow(parameters.moduli[-1], -1, q) for q in parameters.moduli[:-1]]
        first, second = (
            self._dropped(d[:-1], d[-1:], count - 1, self.last, inverse) for d in keyed_parts
        )
        return first, second

    def _dropped(
        self, kept: Array, dropped: Array, first: int, conversion: Conversion, inverse: list[int]
    ) -> Array:
        """Return (kept - dropped) * inverse; dropped belongs to the moduli from `first` on."""
        lowered = self._convert(self._inverse(dropped, first), conversion)
        tables = self.tables.forward[: len(kept)].copy()
        lowered = self._timed("NTT", lambda: _apps.ntt_forward(lowered, tables))
        weights, moduli = np.array(inverse, np.uint64), self.moduli[: len(kept)].copy()
        return self._timed("scale", lambda: _apps.ckks_scale(kept, lowered, weights, moduli))

    def _inverse(self, values: Array, first: int) -> Array:
        chosen = slice(first, first + len(values))
        tables, scales = self.tables.inverse[chosen].copy(), self.tables.scales[chosen].copy()
        return self._timed(
            "iNTT", lambda: _apps.ntt_inverse(np.ascontiguousarray(values), tables, scales)
        )

    def _convert(self, values: Array, conversion: Conversion) -> Array:
        arrays = [
            np.array(a, np.uint64)
            for a in (
                conversion.weights,
                conversion.sources,
                conversion.factors,
                conversion.targets,
            )
        ]

        def converted() -> Array:
            source_limbs = np.ascontiguousarray(values)
            if conversion.is_rounded:
                source_limbs = _apps.ckks_add(
                    source_limbs, np.full_like(source_limbs, conversion.half), arrays[1]
                )
            target_limbs = _apps.ckks_convert(source_limbs, *arrays)
            if conversion.is_rounded:
                rest = np.array([[t - conversion.half % t] for t in conversion.targets], np.uint64)
                target_limbs = _apps.ckks_add(
                    target_limbs, np.broadcast_to(rest, target_limbs.shape).copy(), arrays[3]
                )
            return target_limbs

        return self._timed("base conversion", converted)

    def _product(self, a: Array, b: Array) -> Array:
        return _apps.ntt_multiply(a, b, self.moduli[: len(a)].copy())

    def _add(self, a: Array, b: Array) -> Array:
        return _apps.ckks_add(a, b, self.moduli[: len(a)].copy())

    def _timed(self, name: str, act: Callable[[], T]) -> T:
        begin = perf_counter()
        result = act()
        self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - begin
        return result
