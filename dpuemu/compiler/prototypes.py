"""Find the C functions that functions in assembly cannot call, or be.

Functions in assembly pass arguments and results of 32 bits (asm_functions.py) but see no prototype.
So each object names the functions of its C code whose prototype has other types, and the functions
that its assembly defines or calls, in sections that link_error() reads after the link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SECTIONS = OTHERS, ASSEMBLY = ".pe_prototypes", ".pe_assembly"

_NOISE = re.compile(
    r"""^[ \t]*\#.*$|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'
    |\b__(?:attribute|asm|typeof|declspec)\w*\s*(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))""",
    re.VERBOSE | re.MULTILINE,
)
_BODY = re.compile(r"\{[^{}]*\}")
_TYPEDEF = re.compile(r"\btypedef\b([^;]*?)\b(\w+)\s*;")
_FUNCTION = re.compile(
    r"(?<![^;}])\s*([A-Za-z_][\w\s*\x00]*?[\s*])(\w+)\s*\(((?:[^(){};]|\([^(){};]*\))*)\)\s*(?=[;\x00])"
)
_OTHER = re.compile(r"\b(?:long|double|float|struct|union|va_list|__builtin_va_list)\b|\.\.\.")
_MOST_ARGUMENTS = 8


def others(preprocessed: str) -> list[str]:
    """Return the functions that C code declares with types other than integers of at most 32 bits
    and pointers, or with more than 8 arguments.
    """
    text, previous = _NOISE.sub(" ", preprocessed), ""
    while text != previous:
        text, previous = _BODY.sub("\0", text), text
    other_types: set[str] = set()

    def is_other(declaration: str) -> bool:
        if "*" in declaration or "[" in declaration:
            return False
        return bool(_OTHER.search(declaration) or other_types & set(declaration.split()))

    for kind, name in _TYPEDEF.findall(text):
        if is_other(kind):
            other_types.add(name)
    names = []
    for result, name, arguments in _FUNCTION.findall(text):
        each = re.sub(r"\([^()]*\)", "*", arguments).split(",")
        if "static" not in result.split() and (
            is_other(result) or any(map(is_other, each)) or len(each) > _MOST_ARGUMENTS
        ):
            names.append(name)
    return names


def record(section: str, names: Iterable[str]) -> list[str]:
    """Return lines of assembly that name functions in a section of the object."""
    names = [f'.asciz "{name}"' for name in names]
    return [f'.pushsection {section},"",@progbits', *names, ".popsection"] if names else []


def link_error(others_named: bytes, in_assembly: bytes) -> str:
    """Return why a program cannot be linked, or "". The arguments are contents of the sections."""
    names = sorted((set(others_named.split(b"\0")) & set(in_assembly.split(b"\0"))) - {b""})
    if not names:
        return ""
    return (
        f"{names[0].decode()} is called by, or is, a function in assembly, whose arguments and"
        " results are at most 8 integers of 32 bits or pointers, but its prototype has other types"
    )
