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
    |\b(?:typeof|__(?:attribute|asm|typeof|declspec)\w*)\s*
    (\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))""",
    re.VERBOSE | re.MULTILINE,
)
_UNKNOWN = re.compile(r"(?:__)?typeof")  # may be another type
_BODY = re.compile(r"\{[^{}]*\}")
_IN_PARENTHESES = re.compile(r"\(\s*(\w+)\s*\)\s*(?=\()")
_FUNCTION = re.compile(r"(\w+)\s*\((?!\s*[*(])")
_INNER = re.compile(r"\([^()]*\)")
_OTHER = re.compile(
    r"\b(?:long|double|float|struct|union|va_list|__builtin_va_list|__int128|_Complex|_Float\w+"
    r"|_Decimal\w+|__float\w+)\b|\.\.\."
)
# Functions of x86-64 code leave the highest bits of such results undefined.
_NARROW = re.compile(r"\b(?:char|short|_Bool|bool)\b")
_MOST_ARGUMENTS = 8


def _split(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    depth, parts = 0, [""]
    for part in re.split(r"([(),])", text):
        depth += (part == "(") - (part == ")")
        if part == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += part
    return parts


def others(preprocessed: str) -> list[str]:
    """Return the names that C code declares with types other than integers of at most 32 bits and
    pointers, with results of less than 32 bits, or with more than 8 arguments.
    """
    text = _NOISE.sub(lambda noise: " union 0 " if _UNKNOWN.match(noise[0]) else " ", preprocessed)
    previous = ""
    # A 0 stands for the body of a type, and for an unknown type, so that no name seems to be a tag.
    while text != previous:
        text, previous = _BODY.sub("\0", text), text
    text = re.sub(r"\)\s*\0", ");", text).replace("\0", " 0 ")
    other_types: set[str] = set()
    narrow_types: set[str] = set()

    def has(declaration: str, types: re.Pattern[str], names: set[str]) -> bool:
        if "*" in declaration or "[" in declaration:
            return False
        return bool(types.search(declaration) or names & set(declaration.split()))

    found = []
    for declaration in text.split(";"):
        words = declaration.split()
        if not words or "static" in words:
            continue
        kind = ""
        for place, each in enumerate(_split(_IN_PARENTHESES.sub(r" \1 ", declaration))):
            declarator = each.partition("=")[0].rstrip()
            function = _FUNCTION.search(declarator)
            named = function or re.search(r"(\w+)(?:\s*\[.*)?$", declarator, re.S)
            before = declarator[: named.start()] if named else declarator
            if place == 0:
                kind = re.split(r"[*(]", before)[0]
            else:
                before = f"{kind} {before}"
            is_tag = re.search(r"\b(?:struct|union|enum)\s*$", before)
            if not named or is_tag or named[1].isdigit():
                continue
            result = before if function else before + declarator[named.end(1) :]
            is_other = has(result, _OTHER, other_types)
            is_narrow = has(result, _NARROW, narrow_types)
            if function:
                end, depth = function.end(), 1
                while end < len(declarator) and depth:
                    depth += (declarator[end] == "(") - (declarator[end] == ")")
                    end += 1
                arguments, inner = declarator[function.end() : end - 1], ""
                while arguments != inner:
                    arguments, inner = _INNER.sub("*", arguments), arguments
                types = arguments.split(",")
                is_other |= is_narrow or len(types) > _MOST_ARGUMENTS
                is_other |= any(has(each, _OTHER, other_types) for each in types)
            if "typedef" in words:
                other_types |= {named[1]} if is_other else set()
                narrow_types |= {named[1]} if is_narrow else set()
            elif is_other:
                found.append(named[1])
    return found


def record(section: str, names: Iterable[str]) -> list[str]:
    """Return lines of assembly that name functions in a section of the object."""
    names = [f'.asciz "{name}"' for name in names]
    return [f'.pushsection {section},"",@progbits', *names, ".popsection"] if names else []


def link_error(others_named: bytes, in_assembly: bytes) -> str:
    """Return why a program cannot be linked, or "". The arguments are contents of the sections."""
    names = sorted((set(others_named.split(b"\0")) & set(in_assembly.split(b"\0"))) - {b""})
    if not names:
        return ""
    shown = ", ".join(name.decode() for name in names)
    return (
        f"{shown}: the prototype has types that assembly cannot use: functions in assembly, and C"
        " functions that they call, have at most 8 arguments; arguments are pointers or integers of"
        " at most 32 bits, results are pointers or integers of 32 bits"
    )
