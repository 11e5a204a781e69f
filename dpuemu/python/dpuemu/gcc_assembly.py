"""Read gcc's assembly with the same functions as the compiler of the stand-in SDK."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from typing import cast

from dpuemu.tools import sdk_root

__all__ = ["read", "registers", "split_instruction"]

_functions = runpy.run_path(str(sdk_root() / "compiler" / "gcc_assembly.py"))
read = cast("Callable[[str], Iterator[tuple[str, str, str]]]", _functions["read"])
split_instruction = cast(
    "Callable[[str], tuple[list[str], str, list[str]]]", _functions["split_instruction"]
)
registers = cast("Callable[[str], list[str]]", _functions["registers"])
