"""Make a PE program count its DPU instructions.

count(assembly) takes gcc's x86-64 assembly (AT&T syntax, x32) and adds `leaq N(%r15), %r15` at the
start of each basic block, where N is the block's modelled number of DPU instructions (costs.py). An
lea changes no flags, so it may stand anywhere. A block ends after every jump, call and return, so
the instructions before a call are counted before the call.

Two kinds of local labels give linking.py a section's size in IRAM. If the linker drops a section,
it drops them too:
  __pe_size_<N>_<k>             the section has N instructions
  __pe_uses_<k>_<routine>       the section calls a software routine, which IRAM holds once per
  program
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import costs
from division import Constants, constants_at_labels, divides, register_of
from instructions import Cost, instruction_cost, is_memory
from steps import COUNTER, count_steps, signed_division
from waiting import WaitingLoops, yielding

SIZE_LABEL = "__pe_size_"
USES_LABEL = "__pe_uses_"

# gcc's code labels, numbered labels and functions. Labels of debug information (.LVL1, .LFB0,
# .LBB2) are not jump targets.
_BLOCK_LABEL = re.compile(r"(?:\.L\d+|[^.\s:][^\s:]*):")
_ANY_LABEL = re.compile(r"[\w.$@]+:")
_TABLE_ENTRY = re.compile(r"^\s*\.(?:long|quad)\s+(\.L\d+)", re.MULTILINE)
_SECTION = re.compile(r"\.(?:section\s+([\w.$-]+)(.*)|(text|data|bss)\b)")
_CODE_SECTION = re.compile(r"\.text|\.pe_gate")


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


def _sum_block(block: list[Cost], factors: dict[int, int], routines: set[str]) -> tuple[int, float]:
    """Return the instructions that the block executes, and its size in IRAM.

    factors: the constant factors of the block's products, by place.
    """
    run = size = 0.0
    indexed: set[str] = set()
    inlined = block[-1].inlined
    for place, cost in enumerate(block):
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
    return int(run + 0.5), size


def _flow(lines: list[str]) -> Iterator[str | Cost]:
    """Yield the labels and the instructions of the code that the compiler made."""
    in_code, inline = True, False
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            inline = text.startswith("#APP") or (inline and not text.startswith("#NO_APP"))
        elif inline or not text:
            continue
        elif _BLOCK_LABEL.match(text):
            yield text.partition(":")[0]
        elif section := _SECTION.match(text):
            in_code = _CODE_SECTION.match(section[1] or "." + section[3]) is not None
        elif in_code and text[0] != "." and not _ANY_LABEL.match(text):
            yield instruction_cost(text.partition("#")[0].rstrip())


def count(assembly: str) -> str:
    """Return the assembly with counting instructions and size labels."""
    result: list[str] = []
    block: list[Cost] = []
    factors: dict[int, int] = {}  # of the block
    lines = assembly.split("\n")
    in_tables = set(_TABLE_ENTRY.findall(assembly))
    at_labels = constants_at_labels(list(_flow(lines)), in_tables) if "imulq" in assembly else {}
    constants = Constants()
    start = 0  # position in `result` of the block's counting instruction
    steps: int | None = (
        None  # position in `result` of the instruction that counts the first steps of the block
    )
    section = ".text"
    in_code = True
    stack: list[str] = []
    previous = section
    inline = False
    directives = {".text": "\t.text"}
    sizes: dict[str, float] = {}
    routines: dict[str, set[str]] = {}

    def close() -> None:
        nonlocal block, steps
        if block:
            run, size = _sum_block(block, factors, routines.setdefault(section, set()))
            sizes[section] = sizes.get(section, 0.0) + size
            if run and steps is not None:  # one instruction counts the block and the first steps
                result[steps] = count_steps(1 + run)
            elif run:
                result[start] = f"\tleaq\t{run}({COUNTER}), {COUNTER}\n{result[start]}"
            block = []
            factors.clear()
            steps = None

    loops = WaitingLoops()

    def enter(name: str) -> None:
        nonlocal section, in_code, previous
        close()
        loops.forget()
        previous, section = section, name
        in_code = _CODE_SECTION.match(name) is not None

    for line in lines:
        text = line.strip()
        if not text:
            continue
        first = text[0]
        if first == "#":
            if text.startswith("#APP"):
                inline = True
            elif text.startswith("#NO_APP"):
                inline = False
            result.append(line)
            continue
        if first == "." and not inline:
            directive = _SECTION.match(text)
            if directive:
                name = directive[1] or "." + directive[3]
                enter(name)
                if name.startswith(
                    ".mram.noinit"
                ):  # then the file does not contain the zeroes of the section
                    line = re.sub(r'("[^"]*").*', r"\1,@nobits", line, count=1)
                directives.setdefault(name, line)
                result.append(line)
                continue
            if text.startswith(".pushsection"):
                stack.append(section)
                enter(text.split(None, 1)[1].split(",")[0].strip())
            elif text.startswith(".popsection") and stack:
                enter(stack.pop())
            elif text.startswith(".previous"):
                enter(previous)
        if inline or not in_code:
            loops.forget()
            if inline and in_code and _ANY_LABEL.match(text):
                close()
            result.append(line)
            continue
        if _ANY_LABEL.match(text):
            if _BLOCK_LABEL.match(text):
                close()
                loops.label(text.partition(":")[0], len(result) + 1)
                constants = Constants(at_labels.get(text.partition(":")[0]))
            text = text[text.index(":") + 1 :].strip()
            if (
                text and text[0] not in ".#"
            ):  # hand-written code can have an instruction on the line of its label
                result.append(line[: line.index(":") + 1])
                line = "\t" + text
            else:
                result.append(line)
                continue
        if text[0] == ".":
            result.append(line)
            continue
        if "#" in text:
            text = text.partition("#")[0].rstrip()
        cost = instruction_cost(text)
        if (loop := loops.add(cost.mnemonic, cost.operands)) is not None:
            result[loop] = "\n".join([*yielding(), result[loop]])
        if not block:
            start = len(result)
        if cost.turns:  # rcx has the number of turns
            close()
            start = len(result)
            line = f"\tleaq\t({COUNTER},%rcx,{cost.turns}), {COUNTER}\n{line}"
        if cost.steps and steps is None:
            steps = len(result) + cost.steps.index(count_steps(1))
        result.extend(cost.steps)
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

    for number, (name, size) in enumerate(sizes.items()):
        result.append(directives.get(name, "\t.text"))
        result.append(f"{SIZE_LABEL}{int(size + 0.5)}_{number}:")
        result.extend(
            f"{USES_LABEL}{number}_{routine}:" for routine in sorted(routines.get(name, ()))
        )
    result.append("")
    return "\n".join(result)
