"""Make a PE program count its DPU instructions.

count(assembly) takes gcc's x86-64 assembly (AT&T syntax, x32) and adds `leaq N(%r15), %r15` at the
start of each basic block, where N is the block's modelled number of DPU instructions (costs.py). An
lea changes no flags, so it may stand anywhere. A block ends after every jump, call and return, so
the instructions before a call are counted before the call. The C code in place of asm blocks
(asm_blocks.py) has such lea instructions already; the lines of debug information identify it.

Two kinds of local labels give linking.py a section's size in IRAM. If the linker drops a section,
it drops them too:
  __pe_size_<N>_<k>             the section has N instructions
  __pe_uses_<k>_<routine>       the section calls a software routine, which IRAM holds once per
  program
"""

from __future__ import annotations

import re
from copy import copy

import costs
from assembly import MARK
from division import Constants, constants_at_labels, divides
from gcc_assembly import read, register_of
from instructions import Cost, Registers, instruction_cost, is_memory
from loops import UnknownLengths
from profiling import Counters
from steps import COUNTER, count_steps, signed_division
from waiting import WaitingLoops, yielding

SIZE_LABEL = "__pe_size_"
USES_LABEL = "__pe_uses_"

_MARKED_FILE = re.compile(rf"^\s*\.file\s+(\d+)\s.*{re.escape(MARK)}", re.MULTILINE)
_IN_FILE = re.compile(r"\s*\.loc\s+(\d+)")
_COUNTED = re.compile(rf"\s*leaq\s+(-?\d+)\({COUNTER}\), {COUNTER}$")
_TABLE_ENTRY = re.compile(r"^\s*\.(?:long|quad)\s+(\.L\d+)", re.MULTILINE)


def _moves_argument(cost: Cost) -> bool:
    """Return whether the instruction moves a register or a constant to a register of arguments."""
    return (
        cost.mnemonic in ("movl", "movq")
        and cost.operands[-1] in ("%edi", "%rdi", "%esi", "%rsi", "%edx", "%rdx")
        and not is_memory(cost.operands[0])
    )


def _is_part_of_logic(block: list[Cost], place: int) -> bool:
    """Return whether a DPU includes this instruction of the block in a logic instruction: a
    complement whose register such an instruction has just written, or is the next to name.
    """
    cost = block[place]
    if cost.mnemonic not in ("notl", "notq") or is_memory(cost.operands[0]):
        return False
    own = register_of(cost.operands[0])
    previous = block[place - 1] if place > 0 else None
    if previous is not None and previous.operands[-1:] == cost.operands and _is_logic(previous):
        return True
    later = (other for other in block[place + 1 :] if own in map(register_of, other.operands))
    user = next(later, None)
    return user is not None and _is_logic(user)


def _is_logic(cost: Cost) -> bool:
    return cost.mnemonic[:-1] in costs.COMPLEMENTED


def _sum_block(
    block: list[Cost], factors: dict[int, int], routines: set[str]
) -> tuple[list[float], float]:
    """Return the instructions that the block executes, up to the end of each of its instructions,
    and its size in IRAM.

    factors: the constant factors of the block's products, by place.
    """
    run = size = 0.0
    done = []
    indexed: set[str] = set()
    inlined = block[-1].inlined
    for place, cost in enumerate(block):
        done.append(run)
        if inlined and _moves_argument(cost):
            continue  # the one instruction of an inlined call reads its operands where they are
        if _is_part_of_logic(block, place):
            continue
        if (
            place in factors
            and cost.routine == "int64_mul"
            and divides(factors[place], block, place)
        ):
            run += cost.run - costs.ROUTINE_RUN["int64_mul"] + costs.ROUTINE_RUN["int32_div"]
            routines.add("int32_div")
        else:
            run += cost.run
            if cost.routine is not None:
                routines.add(cost.routine)
        size += cost.size
        if cost.indexed is not None and cost.indexed not in indexed:
            indexed.add(cost.indexed)
            run += costs.INDEXED_ADDRESS
            size += costs.INDEXED_ADDRESS
    return [*done[1:], run], size


def count(assembly: str, counters: Counters | None = None) -> str:
    """Return the assembly with counting instructions and size labels.

    counters: gets the counters of `dpuemu profile`, if any.
    """
    result: list[str] = []
    block: list[Cost] = []
    factors: dict[int, int] = {}  # of the block
    lines = list(read(assembly))
    in_tables = set(_TABLE_ENTRY.findall(assembly))
    flow = (
        value if kind == "label" else instruction_cost(value)
        for kind, _, value in lines
        if kind in ("label", "instruction")
    )
    at_labels = constants_at_labels(list(flow), in_tables) if "imulq" in assembly else {}
    constants = Constants()
    start = 0  # position in `result` of the block's counting instruction
    steps: int | None = (
        None  # position in `result` of the instruction that counts the first steps of the block
    )
    section = ".text"
    directives = {".text": "\t.text"}
    sizes: dict[str, float] = {}
    routines: dict[str, set[str]] = {}

    def close() -> None:
        nonlocal block, steps
        if block:
            done, size = _sum_block(block, factors, routines.setdefault(section, set()))
            run = int(done[-1] + 0.5)
            sizes[section] = sizes.get(section, 0.0) + size
            if counters is not None:
                counters.close_block(result, start, done)
            if run and steps is not None:  # one instruction counts the block and the first steps
                result[steps] = count_steps(1 + run)
            elif run:
                result[start] = f"\tleaq\t{run}({COUNTER}), {COUNTER}\n{result[start]}"
            block = []
            factors.clear()
            steps = None

    loops = WaitingLoops()
    lengths = UnknownLengths()
    registers = Registers()

    marked = set(_MARKED_FILE.findall(assembly)) if MARK in assembly else set()
    is_marked = False  # the line is of C code that counts itself

    for kind, line, value in lines:
        if counters is not None:
            counters.note_line(line)
        if marked and (place := _IN_FILE.match(line)):
            is_marked = place[1] in marked
        elif marked and MARK in line:
            line = line.replace(MARK, "")
        if kind == "section":
            close()
            loops.forget()
            lengths.forget()
            registers.forget()
            section = value
            if value.startswith(".mram.noinit"):
                # Then the file does not contain the zeroes of the section.
                line = re.sub(r'("[^"]*").*', r"\1,@nobits", line, count=1)
            directives.setdefault(value, line)
        elif kind == "inline" and is_marked and (counted := _COUNTED.match(line)):
            sizes[section] = sizes.get(section, 0.0) + int(counted[1])
            if counters is not None:
                result.extend(counters.add_constant(int(counted[1])))
        elif kind == "inline":
            loops.forget()
            if value:
                close()
        elif kind == "label":
            close()
            loops.label(value, len(result) + 1)
            lengths.label(value)
            registers.forget()
            constants = Constants(at_labels.get(value))
        if kind != "instruction":
            result.append(line)
            continue
        cost = registers.product(instruction_cost(value))
        registers.execute(cost)
        if is_marked:
            free = Cost(cost.mnemonic, cost.operands)
            free.ends = cost.ends
            cost = free
        if lengths.ends(cost):
            cost = copy(cost)
            cost.run += costs.UNKNOWN_LENGTH
        if (loop := loops.add(cost.mnemonic, cost.operands)) is not None:
            result[loop] = "\n".join([*yielding(), result[loop]])
        if not block:
            start = len(result)
        if cost.turns:  # rcx has the number of turns
            close()
            start = len(result)
            line = f"\tleaq\t({COUNTER},%rcx,{cost.turns}), {COUNTER}\n{line}"
            if counters is not None:
                line = "\n".join([*counters.add_turns(cost.turns), line])
        own_steps = cost.steps
        if own_steps and counters is not None:
            own_steps = counters.add_steps(own_steps, count_steps(1))
        if own_steps and steps is None:
            steps = len(result) + own_steps.index(count_steps(1))
        result.extend(own_steps)
        if counters is not None:
            counters.note_instruction(len(result))
        if cost.mnemonic in ("idivl", "idivq"):
            result.extend(signed_division(cost.mnemonic, cost.operands[0]))
        else:
            result.append(line)
        if (factor := constants.factor(cost)) is not None:
            factors[len(block)] = factor
        constants.execute(cost)
        block.append(cost)
        if cost.ends:
            close()
    close()

    if counters is not None:
        result.extend(counters.sections())
    for number, (name, size) in enumerate(sizes.items()):
        result.append(directives.get(name, "\t.text"))
        result.append(f"{SIZE_LABEL}{int(size + 0.5)}_{number}:")
        result.extend(
            f"{USES_LABEL}{number}_{routine}:" for routine in sorted(routines.get(name, ()))
        )
    result.append("")
    return "\n".join(result)
