"""Translate the DPU instructions of an asm block to C.

asm_statement.py reads the operands of the statement, asm_instructions.py the instructions, and
asm_code.py writes the C code of an instruction. A block must write a register before it reads it,
unless the register is an operand.
"""

from __future__ import annotations

from collections.abc import Callable

from asm_code import Writer, declarations
from asm_instructions import Reader
from asm_statement import Statement, UnsupportedError, initial, write_back

__all__ = ["UnsupportedError", "translate"]


def translate(
    template: str, lists: list[str], split: Callable[[str, str], list[str]]
) -> tuple[str, str, str]:
    """Return C: declarations with the expressions of the operands, the instructions, and the
    assignments of the results.

    template: the value of the string; lists: outputs, inputs, clobbers and labels; split: splits a
    text at separators outside parentheses. Raises UnsupportedError.
    """
    statement = Statement(lists, split)
    reader = Reader(template, statement)
    barrier = '__asm__ volatile("" : : : "memory");' if statement.orders_memory else ""
    writer = Writer(barrier)
    instructions = [reader.read(place) for place in range(len(reader.lines))]
    statements = [writer.statement(each, place) for place, each in enumerate(instructions)]
    body = writer.body(instructions, statements)
    labels = ", ".join(f"__pe_at{target}" for target in sorted(writer.targets))
    before = [f"__label__ {labels};" if labels else "", declarations(reader.registers)]
    after = []
    tied = {operand.tied for operand in statement.operands}
    for number, operand in enumerate(statement.operands):
        # No instruction uses the operand; the input that is tied to it is its result.
        operand.is_whole = operand.is_pair is None and number in tied
        before.append(initial(operand, number, statement.operands))
        if operand.is_written and (operand.is_pair is not None or operand.is_whole):
            after.append(write_back(operand, number))
    return " ".join(before), " ".join([barrier, *body, barrier]), " ".join(after)
