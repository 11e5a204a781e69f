"""Convert floating-point numbers that are too large for an integer as a DPU does.

A DPU calls compiler-rt, whose results depend on the type of the integer; x86-64 has one instruction
for 32 bits, and one for 64 bits that also serves unsigned 32-bit integers. gcc's code for AVX-512
has one instruction per type. So that code, which never runs, names the types of the conversions at
each source line and column. runtime/conversions.S has the results of compiler-rt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

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


def _located(code: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the lines, each with the source line and column."""
    location = ""
    for line in code:
        if found := _LOCATION.match(line):
            location = found[1]
        yield location, line


def _types(code: list[str]) -> dict[str, list[str]]:
    """Return the types of the conversions by location, without int32, from code for AVX-512."""
    types: dict[str, list[str]] = {}
    for location, line in _located(code):
        if found := _TYPED.match(line):
            is_wide = found[2].startswith("%r") and not found[2].endswith("d")
            name = f"{'uint' if found[1] else 'int'}{64 if is_wide else 32}"
            if name != "int32":
                types.setdefault(location, []).append(name)
    return types


def _are_flags_dead(code: list[str], start: int) -> bool:
    """Return whether the code from `start` on writes the flags before it may read them."""
    for line in code[start:]:
        if _WRITES_FLAGS.match(line):
            return True
        if not _KEEPS_FLAGS.match(line):
            return False
    return False


def _code(found: re.Match[str], kind: str, are_flags_dead: bool) -> str:
    """Return the code of a conversion. It calls the runtime unless the result fits."""
    kind_of_source, size, source, target = found.groups()
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
    types = _types(for_avx512().split("\n")) if re.search(r"cvtts[sd]2siq", code) else {}
    everywhere = [name for names in types.values() for name in names] or ["int64"]
    used: dict[str, int] = {}
    result: list[str] = []
    lines = code.split("\n")
    for number, (location, line) in enumerate(_located(lines)):
        found = _CONVERSION.match(line)
        if found is None:
            result.append(line)
            continue
        kind = "int32"
        if found[2] == "q":
            names = types.get(location, everywhere)
            place = used[location] = used.get(location, -1) + 1
            # Only a macro has several conversions at one location.
            kind = names[min(place, len(names) - 1)]
        result.append(_code(found, kind, _are_flags_dead(lines, number + 1)))
    return "\n".join(result)
