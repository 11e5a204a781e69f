"""Read gcc's x86-64 assembly (AT&T syntax), for programs that count instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator

_REGISTER = re.compile(r"%(?:[er]?(si|di|bp|sp)l?|[er]?([abcd])[xlh]|(r\d+)[dwb]?|(xmm\d+))\b")
_PREFIX = re.compile(r"(rep|repz|repe|repnz|repne|lock|notrack|bnd|data16|addr32|rex\.w)\s+")
# gcc's code labels, numbered labels and functions. Labels of debug information (.LVL1, .LFB0,
# .LBB2) are not jump targets.
_BLOCK_LABEL = re.compile(r"(?:\.L\d+|[^.\s:][^\s:]*):")
_ANY_LABEL = re.compile(r"[\w.$@]+:")
_SECTION = re.compile(r"\.(?:section\s+([\w.$-]+)|(text|data|bss)\b)")
_CODE_SECTION = re.compile(r"\.text|\.pe_gate")


def read(assembly: str) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, line, value) for each line that is not empty.

    Kinds: "section": the directive enters the section `value`. "label": a basic block can begin at
    the label `value`. "instruction": `value` is the instruction without comment. "inline": a line
    of inline assembly in a code section; `value` is its label or "". "other": all others.
    """
    in_code, is_inline = True, False
    for line in assembly.split("\n"):
        text = line.strip()
        if text.startswith("#"):
            is_inline = text.startswith("#APP") or (is_inline and not text.startswith("#NO_APP"))
            yield "other", line, ""
            continue
        if not is_inline and (directive := _SECTION.match(text)):
            section = directive[1] or "." + directive[2]
            in_code = _CODE_SECTION.match(section) is not None
            yield "section", line, section
            continue
        label = _ANY_LABEL.match(text) if in_code else None
        if label and not is_inline:
            is_block = _BLOCK_LABEL.match(text)
            end = line.index(":") + 1
            yield "label" if is_block else "other", line[:end], label[0][:-1]
            # Hand-written code can have an instruction on the line of its label.
            text = line[end:].strip()
            line = "\t" + text
        if not text:
            continue
        if is_inline and in_code:
            yield "inline", line, label[0] if label else ""
        elif in_code and text[0] not in ".#":
            yield "instruction", line, text.partition("#")[0].rstrip()
        else:
            yield "other", line, ""


def split_instruction(text: str) -> tuple[list[str], str, list[str]]:
    """Return the prefixes, the name and the operands of an instruction."""
    prefixes = []
    while prefix := _PREFIX.match(text):
        prefixes.append(prefix[1])
        text = text[prefix.end() :]
    name, *rest = text.split(None, 1)
    return prefixes, name, _split_operands(rest[0].strip() if rest else "")


def _split_operands(text: str) -> list[str]:
    """Split at the commas outside parentheses."""
    return [part.strip() for part in re.findall(r"(?:[^,(]|\([^)]*\))+", text)]


def registers(text: str) -> list[str]:
    """Return the registers in a text, in order, each by its 64-bit name."""
    return [
        wide or xmm or f"r{pointer or letter + 'x'}"
        for pointer, letter, wide, xmm in _REGISTER.findall(text)
    ]


def register_of(operand: str) -> str | None:
    """Return the 64-bit name of an operand that is a register, else None."""
    return registers(operand)[0] if _REGISTER.fullmatch(operand) else None
