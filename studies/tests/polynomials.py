"""Definitions of transforms that share no code with the CPU reference."""

from __future__ import annotations

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
