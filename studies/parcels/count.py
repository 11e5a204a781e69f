"""Make compiled C count its instructions and memory references as it runs.

count(assembly) takes gcc's x86-64 assembly (AT&T syntax). Each basic block begins with a call of
machine_step with a record of the block (`block` in machine/machine.h): the number of instructions
and of memory references, the cycles of its issue, the category of the function's section. Each
memory reference stores its address first. Only r11 is changed, which gcc does not use
(-ffixed-r11), and no flags.

Limits: the instructions are x86-64, not those of the paper's machines. An instruction that loads
and stores counts as one instruction with two references. push and pop are references; call and
return are not, because machines with a link register have none there. A reference of any width is
one reference. The instruction cache sees instructions of four bytes, as those of a PowerPC: the
section .bss.code has an address for each. Functions of libc are not compiled here, so they count
nothing and take no time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from dpuemu.gcc_assembly import read, registers, split_instruction

CATEGORY = re.compile(r"\.text\.pim_(\w+)")
ROUTINE = re.compile(r"MPI_\w+")
ISSUE_WIDTH, LOAD_CYCLES, MULTIPLY_CYCLES, DIVIDE_CYCLES = 3, 3, 4, 23  # of the PowerPC MPC7450
# A longer run of instructions is more than one block: the fields of a block's record have 16 bits.
MAX_INSTRUCTIONS, MAX_REFERENCES = 1000, 4000
_READ_ONLY = ("cmp", "test", "bt", "push", "ucomis", "comis")


class CountError(Exception):
    """An instruction that cannot be counted."""


@dataclass
class Instruction:
    """An instruction: its references, the registers that it reads and writes, and the cycles
    until its result.
    """

    text: str
    loads: list[str] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    cycles: int = 1
    ends: bool = False
    is_conditional: bool = False


@lru_cache(maxsize=20000)
def parse(text: str) -> Instruction:
    """Return one instruction, given without label and comment.

    Raises CountError for string instructions.
    """
    _, name, operands = split_instruction(text)
    instruction = Instruction(text)
    instruction.ends = name.startswith("j") or name.startswith(("call", "ret", "hlt", "ud2"))
    instruction.is_conditional = name.startswith("j") and not name.startswith("jmp")
    named = [register for operand in operands for register in registers(operand)]
    memory = [
        word
        for word in operands
        if ("(" in word and not word.startswith("*")) or (word.startswith("*") and "(" in word)
    ]
    memory = [word.lstrip("*") for word in memory if "%fs:" not in word]
    last = operands[-1] if operands else ""
    writes: set[str] = set()
    has_result = bool(operands) and not name.startswith(_READ_ONLY) and not instruction.ends
    if has_result and last.startswith("%"):
        writes.update(registers(last))
    if name.startswith("xchg"):
        writes.update(
            register for word in operands if word[0] == "%" for register in registers(word)
        )
    if not name.startswith(("nop", "prefetch")) and name not in ("lea", "leaw", "leal", "leaq"):
        for operand in memory:
            is_result = has_result and operand == last.lstrip("*")
            is_moved = name.startswith(("mov", "set", "pop"))
            if not (is_result and is_moved):
                instruction.loads.append(operand)
            if (
                is_result
                and not name.startswith(("div", "idiv", "mul"))
                and not (name.startswith("imul"))
            ):
                instruction.stores.append(operand)
    if name.startswith("push"):
        instruction.stores.append("-8(%rsp)")
    elif name.startswith("pop"):
        instruction.loads.append("(%rsp)")
    elif name.startswith("leave"):
        instruction.loads.append("(%rbp)")
        named.append("rbp")
        writes.update(("rsp", "rbp"))
    elif name.startswith(("movs", "stos", "lods", "cmps", "scas")) and not operands:
        raise CountError(f"{text}: a string instruction has no fixed number of references")
    if name.startswith(("mul", "imul")):
        instruction.cycles = MULTIPLY_CYCLES
    elif name.startswith(("div", "idiv")):
        instruction.cycles = DIVIDE_CYCLES
    if len(operands) == 1 and name.startswith(("mul", "imul", "div", "idiv")):
        writes.update(("rax", "rdx"))
        named += ["rax", "rdx"]
    if instruction.loads:
        instruction.cycles += LOAD_CYCLES - 1
    moves_only = name.startswith(("mov", "lea", "pop", "set")) and last.startswith("%")
    instruction.reads = frozenset(named[:-1] if moves_only else named)
    if instruction.is_conditional or name.startswith(("set", "cmov", "adc", "sbb")):
        instruction.reads |= {"flags"}
    if not name.startswith(("mov", "lea", "push", "pop", "set", "cmov", "j", "call", "ret", "nop")):
        writes.add("flags")
    instruction.writes = frozenset(writes)
    return instruction


def issue_cycles(block: list[Instruction]) -> int:
    """Return the cycles in which a block issues: in order, three instructions and one reference
    per cycle.
    """
    ready: dict[str, int] = {}
    cycle = used = memory_free = 0
    for instruction in block:
        at = max([cycle, *(ready.get(name, 0) for name in instruction.reads)])
        references = len(instruction.loads) + len(instruction.stores)
        if references:
            at = max(at, memory_free)
        if at == cycle and used == ISSUE_WIDTH:
            at += 1
        if at > cycle:
            cycle, used = at, 0
        used += 1
        if references:
            memory_free = at + references
        ready.update(dict.fromkeys(instruction.writes, at + instruction.cycles))
    return cycle + 1


class _Counter:
    """The state of count()."""

    def __init__(self, categories: list[str], default: str) -> None:
        self.categories = categories
        self.default = default
        self.lines: list[str] = []
        self.records: list[str] = []
        self.code: list[str] = []
        self.block: list[Instruction] = []
        self.start = 0
        self.number = 0
        self.category = default
        self.routine: str | None = None

    def enter(self, section: str) -> None:
        """Enter a section."""
        self.close()
        matched = CATEGORY.match(section)
        self.category = matched[1] if matched else self.default

    def add(self, text: str) -> None:
        """Add an instruction."""
        instruction = parse(text)
        if len(self.block) == MAX_INSTRUCTIONS:
            self.close()
        if not self.block:
            self.start = len(self.lines)
        before = sum(len(one.loads) + len(one.stores) for one in self.block)
        for place, operand in enumerate([*instruction.loads, *instruction.stores], before):
            self.lines += [
                f"\tleaq\t{operand}, %r11",
                f"\tmovq\t%r11, machine_addresses+{8 * place}(%rip)",
            ]
        self.lines.append("\t" + text)
        self.block.append(instruction)
        if instruction.ends:
            self.close()

    def close(self) -> None:
        """End the block."""
        if not self.block:
            return
        number = self.number
        self.number += 1
        self.lines.insert(
            self.start, f"\tleaq\t.Lblock{number}(%rip), %r11\n\tcall\t*machine_step@GOTPCREL(%rip)"
        )
        following = f".Lblock{number + 1}" if self.block[-1].is_conditional else "0"
        references = sum(
            len(instruction.loads) + len(instruction.stores) for instruction in self.block
        )
        self.records += [
            f".Lblock{number}:",
            (
                f"\t.quad\t{following}, machine_addresses, .Lcode{number},"
                f" {f'.Lname_{self.routine}' if self.routine else 0}"
            ),
            f"\t.short\t{len(self.block)}, {references}, {issue_cycles(self.block)}",
            f"\t.byte\t{self.categories.index(self.category)}, 0",
        ]
        self.code += [f".Lcode{number}:", f"\t.skip\t{4 * len(self.block)}"]
        if self.routine:
            self.records += [
                "\t.section\t.rodata.names",
                f".Lname_{self.routine}:",
                f'\t.asciz\t"{self.routine}"',
            ]
            self.records.append('\t.section\t.data.rel.ro.blocks,"aw"\n\t.balign\t8')
        self.routine = None
        self.block = []


def count(assembly: str, categories: list[str], default: str) -> str:
    """Return assembly that counts. default: the category of sections that name none.

    Raises CountError for an instruction that cannot be counted, and for inline assembly.
    """
    counter = _Counter(categories, default)
    for kind, line, value in read(assembly):
        if kind == "inline":
            raise CountError(f"{line.strip()}: inline assembly cannot be counted")
        if kind == "instruction":
            counter.add(value)
            continue
        if kind == "section":
            counter.enter(value)
        elif kind == "label":
            counter.close()
            if ROUTINE.fullmatch(value):
                counter.routine = value
        counter.lines.append(line)
    counter.close()
    counter.lines += ['\t.section\t.data.rel.ro.blocks,"aw"', "\t.balign\t8", *counter.records]
    counter.lines += ["\t.balign\t8", f".Lblock{counter.number}:", "\t.quad\t0"]
    counter.lines += ['\t.section\t.bss.code,"aw",@nobits', "\t.balign\t32", *counter.code, ""]
    return "\n".join(counter.lines)
