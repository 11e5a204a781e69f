"""Definitions of transforms that share no code with the CPU reference."""

from __future__ import annotations

from collections.abc import Sequence

from pidcomm.arguments import Array
from pidcomm_studies.apps.ntt import field


def point_of(place: int, q: int, size: int) -> int:
    """Return the root of unity that belongs to a place of a forward transform."""
    reversed_place = int(format(place, f"0{size.bit_length() - 1}b")[::-1], 2)
    return pow(field.root_of(q, size), 2 * reversed_place + 1, q)


def value_at(polynomial: Array, point: int, q: int) -> int:
    """Return the value of a polynomial at a point modulo q, by Horner's rule."""
    value = 0
    for coefficient in reversed(polynomial.tolist()):
        value = (value * point + coefficient) % q
    return value


def product_by_flint(a: Sequence[int], b: Sequence[int], q: int) -> list[int]:
    """Return the product of two polynomials modulo x^N + 1 and q by FLINT, which must be
    installed.
    """
    import flint

    size = len(a)
    product = flint.nmod_poly(list(a), q) * flint.nmod_poly(list(b), q)
    terms = [int(coefficient) for coefficient in product.coeffs()]
    terms += [0] * (2 * size - len(terms))
    return [(low - high) % q for low, high in zip(terms[:size], terms[size:], strict=True)]
