"""Shell completion of options and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import typer

from pidcomm.bench.sweep import ALL_MASKS, masks_of
from pidcomm.errors import Error
from pidcomm.sizes import parse_shape

__all__ = ["complete_list", "complete_name"]

DEFAULT_SHAPE = "32x32"


def complete_name(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that completes one name."""
    choices = list(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in choices if name.startswith(incomplete)]

    return complete


def complete_list(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that completes the last name of a comma-separated list with unused names
    or "all".
    """
    choices = list(names)

    def complete(incomplete: str) -> list[str]:
        return _next_in_list(choices, incomplete)

    return complete


def complete_mask(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return masks for the shape on the command line, or for the default shape."""
    return [mask for mask in _masks(ctx) if mask.startswith(incomplete)]


def complete_masks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the last mask of a list with masks for the shapes on the command line."""
    return _next_in_list(_masks(ctx), incomplete)


def _next_in_list(choices: list[str], incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    names = choices if comma else ["all", *choices]
    return [
        before + comma + name
        for name in names
        if name.startswith(last) and name not in before.split(",")
    ]


def _masks(ctx: typer.Context) -> list[str]:
    text = ctx.params.get("shape") or ctx.params.get("shapes") or DEFAULT_SHAPE
    try:
        shapes = [parse_shape(part) for part in str(text).split(",")]
    except Error:
        return []
    return list(dict.fromkeys(mask for shape in shapes for mask in masks_of(shape, ALL_MASKS)))
