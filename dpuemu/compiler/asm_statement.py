"""Read the operands of an asm statement, and write the C code that declares and assigns them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

REGISTER = re.compile(r"r(\d|1\d|2[0-3])$")
PAIR = re.compile(r"d([02468]|1[02468]|2[02])$")
_CONSTRAINT = re.compile(r'(?:\[(\w+)\])?\s*"([=+&%]*)([rgiInK]+|\d+)"\s*\((.*)\)$', re.S)
# An lvalue whose place does not depend on other operands; it may be in a register, and then has no
# address.
_PLAIN = re.compile(r"\s*\w+(?:\s*\.\s*\w+)*\s*$")


class UnsupportedError(Exception):
    """Raised for a block that cannot be translated."""


@dataclass
class Operand:
    """An operand of the asm statement.

    variable: in C; value: the expression; tied: the number of the output whose register it has;
    is_pair: None until an instruction uses it; is_whole: the variable has 64 bits.
    """

    variable: str
    value: str
    is_written: bool
    is_read: bool
    is_register: bool
    tied: int | None
    is_pair: bool | None = None
    is_whole: bool = False


class Statement:
    """The operands of an asm statement: `numbers` has their places by name and by number. c_labels:
    the labels of asm goto, by name and by number. orders_memory: whether accesses to memory stay on
    their side of the statement.
    """

    def __init__(self, lists: list[str], split: Callable[[str, str], list[str]]) -> None:
        """lists, split: see asm_blocks.translate. Raises UnsupportedError."""
        self.operands: list[Operand] = []
        self.numbers: dict[str, int] = {}
        for is_output, text in zip((True, False), lists, strict=False):
            for operand in filter(None, map(str.strip, split(text, ","))):
                self._add_operand(operand, is_output)
        self.c_labels: dict[str, str] = {}
        for label in map(str.strip, split(lists[3], ",") if lists[3:] else []):
            self.c_labels |= {
                label: label,
                str(len(self.operands) + len(self.c_labels) // 2): label,
            }
        if self.c_labels and any(operand.is_written for operand in self.operands):
            raise UnsupportedError  # a jump out of the block would leave out the results
        clobbers = [each.strip() for each in split(lists[2] if lists[2:] else "", ",")]
        self.orders_memory = '"memory"' in clobbers
        for clobber in clobbers:
            word = clobber.strip('"')
            if (
                word not in ("", "memory", "cc")
                and not REGISTER.match(word)
                and not PAIR.match(word)
            ):
                raise UnsupportedError

    def _add_operand(self, text: str, is_output: bool) -> None:
        match = _CONSTRAINT.match(text)
        if match is None:
            raise UnsupportedError
        name, modifiers, kind, value = match.groups()
        is_written = is_output or "+" in modifiers  # the SDK's compiler accepts it in both lists
        number = len(self.operands)
        tied = int(kind) if kind.isdigit() else None
        if tied is not None and (tied >= number or not self.operands[tied].is_written):
            raise UnsupportedError
        self.numbers[str(number)] = number
        if name:
            self.numbers[name] = number
        self.operands.append(
            Operand(
                f"__pe_{number if tied is None else tied}",
                value,
                is_written,
                not is_output or "+" in modifiers,
                tied is not None or "r" in kind or "g" in kind,
                tied,
            )
        )


def pair_value(halves: tuple[str, str]) -> str:
    """Return the C value of 64 bits of the upper and the lower half."""
    return f"((__pe_pair){halves[0]} << 32 | {halves[1]})"


def set_pair(halves: tuple[str, str]) -> str:
    """Return C that assigns __pe_wide to the upper and the lower half."""
    return f"{halves[0]} = (__pe_word)(__pe_wide >> 32); {halves[1]} = (__pe_word)__pe_wide;"


def _place(operand: Operand, number: int) -> str:
    return operand.value if _PLAIN.match(operand.value) else f"(*__pe_p{number})"


def initial(operand: Operand, number: int, operands: list[Operand]) -> str:
    """Return C that evaluates the expression of an operand, once, and declares its variables.

    An output is a pointer if its expression may have effects. Other variables may be in registers,
    and then have no address.
    """
    value = operand.value
    real = 8  # __builtin_classify_type of floating point
    text = f"{{ typedef char __pe_no_float[__builtin_classify_type({value}) == {real} ? -1 : 1]"
    text += " __attribute__((unused)); } "
    if operand.is_written and not _PLAIN.match(value):
        text += f"__typeof__({value}) *__pe_p{number} = &({value}); "
    name = operand.variable
    if operand.tied is not None:
        if operands[operand.tied].is_whole:
            return f"{text}{name} = (__pe_pair)({value});"
        if not operands[operand.tied].is_pair:
            return f"{text}{name} = (__pe_word)({value});"
        return f"{text}__pe_wide = (__pe_pair)({value}); {set_pair((f'{name}h', f'{name}l'))}"
    value = (
        f"({_place(operand, number) if operand.is_written else value})" if operand.is_read else "0"
    )
    if not operand.is_pair:
        ctype = "__pe_pair" if operand.is_whole else "__pe_word"
        return f"{text}{ctype} {name} __attribute__((unused)) = ({ctype}){value};"
    return (
        f"{text}__pe_word {name}h, {name}l; __pe_wide = (__pe_pair){value};"
        f" {set_pair((f'{name}h', f'{name}l'))}"
    )


def write_back(operand: Operand, number: int) -> str:
    """Return C that assigns the result of an operand."""
    place = _place(operand, number)
    halves = f"{operand.variable}h", f"{operand.variable}l"
    value = pair_value(halves) if operand.is_pair else operand.variable
    return f"{place} = (__typeof__({place})){value};"
