"""Write the C code of a DPU instruction of an asm block.

Registers and flags are local variables, jumps are goto statements. runtime/instructions.inc lists
the operations, their operands and conditions; runtime/instructions.h computes their results.
"""

from __future__ import annotations

import re

from asm_instructions import FIXED, Instruction
from asm_statement import UnsupportedError, pair_value, set_pair

# Instructions that call the emulator and have a value, which conditions test: C of the value, and
# the instructions that the emulator counts.
_VALUES = {
    "resume": ("__pe_resume({a} + {i})", 1),
    "read_run": ("__pe_read_run({a} + {i})", 1),
    "clr_run": ("__pe_clr_run({a} + {i})", 1),
    "stop": ("(__pe_stop(), 0u)", 1),
    "time": ("(__pe_word)(__pe_counter() >> 4)", 3),
    "time_cfg": ("__pe_configure_time({b})", 4),
}
_CALLS = {
    "fault": "__pe_fault_now({i});",
    "ldma": "__pe_ldma({a}, {b}, {i});",
    "sdma": "__pe_sdma({a}, {b}, {i});",
}
_ACCESS = re.compile(r"(l|s)([bhwd])([us]?)(_id)?")
_BITS = {"b": 8, "h": 16, "w": 32, "d": 64}
_TYPES = {"b": "unsigned char", "h": "unsigned short", "w": "__pe_word", "d": "__pe_pair"}


class Writer:
    """Writes the instructions of a block. targets: the places that jumps need labels for. barrier:
    C that keeps accesses to memory on their side of the block.
    """

    def __init__(self, barrier: str) -> None:
        """Begin without targets."""
        self.barrier = barrier
        self.targets: set[int] = set()

    def _goto(self, instruction: Instruction, test: str = "") -> str:
        target = instruction.target
        if target is None:
            return ""
        if isinstance(target, int):
            self.targets.add(target)
            jump = f"goto __pe_at{target};"
        else:
            jump = f"{{ {self.barrier} goto {target}; }}"
        return f"{test and f'if ({test}) '}{jump}"

    def _write(self, instruction: Instruction, value: str) -> str:
        if "c" in instruction.values:
            return f"{instruction.values['c']} = {value};"
        if "d" not in instruction.pairs:
            return ""
        high, low = instruction.pairs["d"]
        return f"{low} = {value}; {high} = {f'-({low} >> 31)' if instruction.suffix == 's' else 0};"

    def _finish(self, instruction: Instruction, flags: str, write: str) -> str:
        """Return C that evaluates the condition, updates flags, writes the result and jumps."""
        if not instruction.condition:
            return flags + write
        test = f"__pe_is_{instruction.condition}(__pe_r, __pe_a, __pe_b, __pe_zero)"
        if instruction.target is None:
            return f"__pe_holds = {test}; {flags}{self._write(instruction, '__pe_holds')}"
        return f"__pe_holds = {test}; {flags}{write}{self._goto(instruction, '__pe_holds')}"

    def statement(self, instruction: Instruction, place: int) -> str:
        """Return the C code of the instruction at a place. Raises UnsupportedError."""
        row, name = instruction.row, instruction.row.name
        values, pairs = instruction.values, instruction.pairs
        a = values.get("a", "0u")
        if name in _CALLS:
            return _CALLS[name].format_map(values)
        if name == "stop" and (instruction.condition, instruction.target) == ("true_", place):
            return "__pe_end(0);"
        if name in _VALUES:
            value, counted = _VALUES[name]
            compute = (
                f"{count(1 - counted) if counted > 1 else ''} __pe_a = {value.format_map(values)};"
                " __pe_b = 0; __pe_r = __pe_do_or_(__pe_a, 0, 0, __pe_carry); "
            )
            flags = "__pe_zero = __pe_r.is_zero; "
            write = self._write(instruction, "__pe_r.value")
            return compute + self._finish(instruction, flags, write)
        if name in ("acquire", "release"):
            return self._lock(instruction, place)
        if name in ("nop", "tell"):
            return ""
        if name == "call" and "c" not in values and a == "0u" and instruction.target is not None:
            return self._goto(instruction)
        if access := _ACCESS.fullmatch(name):
            return self._access(instruction, *access.groups())
        if name in ("movd", "swapd"):
            high, low = pairs["e"][:: 1 if name == "movd" else -1]
            move = f"__pe_wide = {pair_value((high, low))}; {set_pair(pairs['d'])} "
            return move + self._goto(instruction)
        if name in ("mul_step", "div_step"):
            step = (
                f"__pe_a = {a}; __pe_wide = __pe_do_step_{name[:3]}(__pe_a, {values['s']},"
                f" {pair_value(pairs['e'])}, {pair_value(pairs['d'])});"
                " __pe_r.value = (__pe_word)(__pe_wide >> 32); __pe_r.is_zero = __pe_r.value == 0; "
            )
            flags = "__pe_zero = __pe_r.is_zero; " if name == "mul_step" else ""
            return step + self._finish(instruction, flags, set_pair(pairs["d"]))
        if not row.has_result:
            raise UnsupportedError
        compute = (
            f"__pe_a = {a}; __pe_b = {values.get('b', values.get('i', '0u'))}; __pe_r ="
            f" __pe_do_{row.identifier}(__pe_a, __pe_b, {values.get('s', '__pe_b & 31')},"
            " __pe_carry); "
        )
        flags = "__pe_zero = __pe_r.is_zero; __pe_carry = __pe_r.carry; "
        return compute + self._finish(instruction, flags, self._write(instruction, "__pe_r.value"))

    def _access(
        self, instruction: Instruction, kind: str, size: str, sign: str, adds_id: str
    ) -> str:
        ctype = _TYPES[size]
        memory = f"*(volatile {ctype} *)({instruction.values['a']} + {instruction.values['o']})"
        swap = f"__builtin_bswap{_BITS[size]}" if instruction.is_big and size != "b" else ""
        if kind == "l":
            load = f"__pe_wide = {swap}({memory}); "
            if size == "d":
                return load + set_pair(instruction.pairs["d"])
            extended = f"({ctype.removeprefix('un')})" if sign == "s" else ""
            return load + self._write(instruction, f"(__pe_word){extended}__pe_wide")
        value = (
            pair_value(instruction.pairs["e"])
            if "e" in instruction.pairs
            else instruction.values.get("b", "")
        )
        if "i" in instruction.values:
            value = f"(__pe_pair)(int)({instruction.values['i']})"
        if adds_id:
            value += f" | {FIXED['id']}"
        return f"{memory} = {swap}(({ctype})({value}));"

    def _lock(self, instruction: Instruction, place: int) -> str:
        lock = f"{instruction.values['a']} + {instruction.values['i']}"
        target, condition = instruction.target, instruction.condition
        if instruction.row.name == "release":
            jump = "" if target == place + 1 else self._goto(instruction)
            return f"__pe_release({lock}); __pe_zero = 0; {jump}"
        if condition == "nz" and target == place:
            return f"__pe_acquire({lock}); __pe_zero = 1;"
        # The emulator counts the call as two instructions: acquire, and a move of the result.
        test = {"z": "__pe_zero", "nz": "!__pe_zero"}.get(condition, "")
        attempt = f"{count(-1)} __pe_zero = __pe_try_acquire({lock}); "
        return attempt + self._goto(instruction, test)

    def body(self, instructions: list[Instruction], statements: list[str]) -> list[str]:
        """Return the C code of all instructions of a block, with labels and counting. statements:
        the C code of each of them.
        """
        body: list[str] = []
        run: list[str] = []  # C of instructions that run one after the other
        counted = 0

        def end_run() -> None:
            nonlocal counted
            body.extend([count(counted), *run] if counted else run)
            run.clear()
            counted = 0

        for place, (instruction, statement) in enumerate(
            zip(instructions, statements, strict=True)
        ):
            if place in self.targets:
                end_run()
                body.append(f"__pe_at{place}:;")
            run.append(statement)
            is_call = instruction.row.name in (*_CALLS, *_VALUES, "acquire", "release")
            counted += not is_call
            if is_call or instruction.row.name == "call" or instruction.target is not None:
                end_run()
        end_run()
        if len(instructions) in self.targets:
            body.append(f"__pe_at{len(instructions)}:;")
        return body


def count(instructions: int) -> str:
    """Return C that counts DPU instructions (counting.py)."""
    return f'__asm__ volatile("leaq {instructions}(%%r15), %%r15" : : );'


def declarations(registers: set[str]) -> str:
    """Return C that declares the registers, the flags and the results of instructions."""
    unused = "__attribute__((unused))"
    return " ".join(
        [
            f"struct __pe_result __pe_r {unused}; __pe_pair __pe_wide {unused};"
            f" __pe_word __pe_zero {unused} = 0, __pe_carry {unused} = 0, __pe_a {unused} = 0,"
            f" __pe_b {unused} = 0, __pe_holds {unused};",
            *(f"__pe_word __pe_{each} {unused} = 0;" for each in sorted(registers)),
        ]
    )
