"""Figures of other papers that applications repeat.

A row adds a figure to ``pidcomm reproduce``.
"""

from __future__ import annotations

from importlib import import_module

from pidcomm.errors import ArgumentError, unknown
from pidcomm_studies.papers.figure import Figure

_NUMBERS = {
    "embedding": (5, 6, 7, 8, 9, 10, 11, 18),
    "ntt": (12, 13, 14, 15),
    "ckks": (16,),
}
FIGURES: dict[str, str] = {
    f"scalability/fig{number}": app for app, numbers in _NUMBERS.items() for number in numbers
}
"""The name of each figure, ``paper/figN``, and the module that repeats it."""


def get(name: str) -> Figure:
    """Return a figure. Raises ArgumentError with the valid names."""
    if name not in FIGURES:
        raise ArgumentError(unknown("figure", name, FIGURES))
    found: Figure = import_module(f"pidcomm_studies.papers.scalability.{FIGURES[name]}").FIGURES[
        name
    ]
    return found
