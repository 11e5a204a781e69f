"""Tables that show results in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from pidcomm.sizes import format_about, format_duration

__all__ = ["Shown"]


def html_table(caption: str, facts: Mapping[str, Any]) -> str:
    """Return a table with one line per fact. Facts that are zero, empty or lists are omitted."""
    lines = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in _lines(facts)
    )
    return f"<table><caption>{escape(caption.strip('<>'))}</caption>{lines}</table>"


class Shown:
    """Base of dataclasses.

    A notebook shows such an object as a table of the fields of the object.
    """

    def _repr_html_(self) -> str:
        return html_table(repr(self), vars(self))


def _lines(facts: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _lines(value, f"{name} ")
        elif value and not isinstance(value, (list, tuple)):
            yield f"{parent}{name}", _text(f"{parent}{name}", value)


def _text(name: str, value: Any) -> str:
    """Return a value with the unit that the name of the field implies: seconds, phases, _us or
    bytes.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if "seconds" in name or name.startswith("phases "):
        return format_duration(value)
    if name.endswith("_us"):
        return format_duration(1e-6 * value)
    return format_about(value) if "bytes" in name else f"{value:.6g}"
