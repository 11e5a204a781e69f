"""Convert floating-point numbers that are too large for an integer as a DPU does.

A DPU calls compiler-rt, whose results depend on the type of the integer; x86-64 has one instruction
for 32 bits, and one for 64 bits that also serves unsigned 32-bit integers. gcc's code for AVX-512
has one instruction per type. So that code, which never runs, names the types of the conversions at
each source line and column. runtime/conversions.S has the results of compiler-rt.

Conversions of different types may share a location (in a macro or a template), and gcc merges equal
instructions of different locations. Then the type is unknown, and the conversion counts as one to
int64: its result is right for all numbers that fit into their types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_FUNCTION = re.compile(r"\t\.type\t([^,]+?)(?:\.cold)?, @function")
_LOCATION = re.compile(r"\t\.loc (\d+ \d+ \d+)")
_CONVERSION = re.compile(r"\tcvtts([sd])2si([lq])\t(\S.*), (%\w+)$")
_WRITES_FLAGS = re.compile(
    r"\t(?:(?:add|sub|cmp|test|and|or|xor|neg)[bwlq]|u?comis[sd]|call|ret)\b"
)
_KEEPS_FLAGS = re.compile(
    r"\t(?:cvt|mov|lea|(?:add|sub|mul|div|max|min|sqrt)[sp][sd]\b|xorp[sd]\b|pxor\b|\.loc )"
    r"|\.L(?:VL|BB|BE)"
)
_TYPED = re.compile(r"\tvcvtts[sd]2(u?)si[lq]?\t\S.*, (%\w+)$")


def _located(code: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the lines, each with its function, and its source line and column."""
    function = location = ""
    for line in code:
        if name := _FUNCTION.match(line):
            function = name[1]
        elif place := _LOCATION.match(line):
            location = place[1]
        yield function, location, line


class _Types:
    """The types of the conversions that gcc's code for SSE makes with 64 bits."""

    def __init__(self, code: list[str], for_avx512: list[str]) -> None:
        self._at: dict[str, set[str]] = {}  # by location
        self._in: dict[str, set[str]] = {}  # by function
        places: set[tuple[str, str]] = set()
        for function, location, line in _located(for_avx512):
            if conversion := _TYPED.match(line):
                is_wide = conversion[2].startswith("%r") and not conversion[2].endswith("d")
                name = f"{'uint' if conversion[1] else 'int'}{64 if is_wide else 32}"
                if name != "int32":
                    self._at.setdefault(location, set()).add(name)
                    self._in.setdefault(function, set()).add(name)
                    places.add((function, location))
        here = {
            (function, location)
            for function, location, line in _located(code)
            if (conversion := _CONVERSION.match(line)) and conversion[2] == "q"
        }
        self._merged = {function for function, _ in places - here}

    def of(self, function: str, location: str) -> str:
        """Return the type of the conversions at a location, or int64 if it is unknown."""
        is_merged = function in self._merged or location not in self._at
        names = self._in.get(function, set()) if is_merged else self._at[location]
        return next(iter(names)) if len(names) == 1 else "int64"


def _are_flags_dead(code: list[str], start: int) -> bool:
    """Return whether the code from `start` on writes the flags before it may read them."""
    for line in code[start:]:
        if _WRITES_FLAGS.match(line):
            return True
        if not _KEEPS_FLAGS.match(line):
            return False
    return False


def _code(conversion: re.Match[str], kind: str, are_flags_dead: bool) -> str:
    """Return the code of a conversion. It calls the runtime unless the result fits."""
    kind_of_source, size, source, target = conversion.groups()
    load = "cvtss2sd" if kind_of_source == "s" else "movapd" if source[0] == "%" else "movsd"
    low = target + "d" if target[2:].isdigit() else "%e" + target[2:]
    check = {
        "int32": ("cvttsd2sil\t%xmm15, %r11d", "cmpl\t$1, %r11d", "jno"),  # not the least integer
        "int64": ("cvttsd2siq\t%xmm15, %r11", "cmpq\t$1, %r11", "jno"),
        "uint32": ("cvttsd2siq\t%xmm15, %r11", f"movl\t%r11d, {low}\n\tcmpq\t%r11, {target}", "je"),
        "uint64": ("cvttsd2siq\t%xmm15, %r11", "testq\t%r11, %r11", "jns"),
    }[kind]
    lines = [f"{load}\t{source}, %xmm15"]
    if are_flags_dead:
        lines += [check[0], check[1], f"{check[2]}\t773f"]
    # The stack pointer skips the red zone.
    lines += ["leaq\t-128(%rsp), %rsp", f"call\t__pe_to_{kind}", "leaq\t128(%rsp), %rsp"]
    move = f"movl\t%r11d, {target}" if size == "l" else f"movq\t%r11, {target}"
    return "\t" + "\n\t".join(lines) + f"\n773:\n\t{move}"


def replace(code: str, for_avx512: Callable[[], str]) -> str:
    """Return the assembly with all conversions replaced by calls of the runtime."""
    if "cvtts" not in code:
        return code
    lines = code.split("\n")
    has_wide = re.search(r"cvtts[sd]2siq", code) is not None
    types = _Types(lines, for_avx512().split("\n") if has_wide else [])
    result: list[str] = []
    for number, (function, location, line) in enumerate(_located(lines)):
        conversion = _CONVERSION.match(line)
        if conversion is None:
            result.append(line)
            continue
        kind = types.of(function, location) if conversion[2] == "q" else "int32"
        result.append(_code(conversion, kind, _are_flags_dead(lines, number + 1)))
    return "\n".join(result)
