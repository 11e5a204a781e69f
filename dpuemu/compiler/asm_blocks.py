"""Translate the DPU instructions of an asm block to C.

Registers and flags are local variables, jumps are goto statements. runtime/instructions.inc lists
the operations, their operands and conditions; runtime/instructions.h computes their results. A
block must write a register before it reads it, unless the register is an operand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from instruction_set import Row, instruction_set

_FIXED = {
    "zero": "0u",
    "one": "1u",
    "lneg": "~0u",
    "mneg": "0x80000000u",
    **{f"id{scale}": f"{scale or 1} * __pe_tasklet()" for scale in ("", "2", "4", "8")},
}
_REGISTER = re.compile(r"r(\d|1\d|2[0-3])$")
_PAIR = re.compile(r"d([02468]|1[02468]|2[02])$")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_LABEL = re.compile(r"([\w.$]+)\s*:\s*")
_NEAR = re.compile(r"\.\s*(?:([+-])\s*(\d+))?$")
_OPERAND = re.compile(r"%(?:\[(\w+)\]|(\d+))")
_CONSTRAINT = re.compile(r'(?:\[(\w+)\])?\s*"([=+&%]*)([rgiInK]+|\d+)"\s*\((.*)\)$', re.S)
_NUMBERS = re.compile(
    r"(?:0[xX][0-9a-fA-F]+|\d+|\(\(long long\)\(int\)__pe_\d+\)|[-+*/%()<>&|^~\s])+$"
)
_SYMBOL = re.compile(r"(?![rsd]\d+$)[A-Za-z_]\w*$")
# Operators whose order differs between C and the assembler of the vendor's compiler.
_MIXED = re.compile(r"[^(]*(?:[-+][^(]*(?:<<|>>|[&|^])|(?:<<|>>|[&|^])[^(]*[-+])[^(]*$")
# An lvalue whose place does not depend on other operands; it may be in a register, and then has no
# address.
_PLAIN = re.compile(r"\s*\w+(?:\s*\.\s*\w+)*\s*$")
# Instructions that the emulator counts.
_CALLS = {"stop": "__pe_stop(0);", "fault": "__pe_fault_now({0});"}
_ACCESS = re.compile(r"(l|s)([bhwd])([us]?)(_id)?")
_BITS = {"b": 8, "h": 16, "w": 32, "d": 64}
_TYPES = {"b": "unsigned char", "h": "unsigned short", "w": "__pe_word", "d": "__pe_pair"}


class UnsupportedError(Exception):
    """Raised for a block that cannot be translated."""


@dataclass
class _Operand:
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


@dataclass
class _Instruction:
    """The operands of an instruction as C.

    values, pairs: by the letters of the row's syntax. target: the number of an instruction in the
    block, or a C label.
    """

    row: Row
    suffix: str
    values: dict[str, str] = field(default_factory=dict)
    pairs: dict[str, tuple[str, str]] = field(default_factory=dict)
    condition: str = ""
    target: int | str | None = None
    is_big: int = 0  # 1: bytes in memory are in big-endian order


class _Block:
    def __init__(self, template: str, lists: list[str], split: Callable[[str, str], list[str]]):
        self.operands: list[_Operand] = []
        self.numbers: dict[str, int] = {}
        self.written: set[str] = set()
        self.registers: set[str] = set()
        self.targets: set[int] = set()
        for is_output, text in zip((True, False), lists, strict=False):
            for operand in filter(None, map(str.strip, split(text, ","))):
                self._add_operand(operand, is_output)
        self.c_labels = {}
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
                and not _REGISTER.match(word)
                and not _PAIR.match(word)
            ):
                raise UnsupportedError
        self._read_lines(template)

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
            _Operand(
                f"__pe_{number if tied is None else tied}",
                value,
                is_written,
                not is_output or "+" in modifiers,
                tied is not None or "r" in kind or "g" in kind,
                tied,
            )
        )

    def _read_lines(self, template: str) -> None:
        self.lines: list[str] = []
        self.labels: dict[str, list[int]] = {}
        text = _COMMENT.sub(" ", template.replace("%=", "0").replace("%%", "%"))
        for line in map(str.strip, re.split(r"[;\n]", text)):
            while label := _LABEL.match(line):
                self.labels.setdefault(label[1], []).append(len(self.lines))
                line = line[label.end() :]
            if line:
                self.lines.append(line)

    # --- The operands of one instruction

    def _operand(self, word: str) -> _Operand | None:
        match = _OPERAND.fullmatch(word)
        if match is None:
            return None
        number = self.numbers.get(match[1] or match[2])
        if number is None:
            raise UnsupportedError
        operand = self.operands[number]
        return operand if operand.is_register else None

    def _fits(self, letter: str, word: str, suffix: str) -> bool:
        is_operand = self._operand(word) is not None
        is_general, is_pair = bool(_REGISTER.match(word)), bool(_PAIR.match(word))
        is_register = is_general or word in _FIXED
        return {
            "G": is_operand or is_general,
            "P": is_pair or (is_operand and suffix != ""),
            "D": is_operand or is_general or is_pair,
            "R": is_operand or is_register,
            "I": not (is_operand or is_register or is_pair),
            "T": not (is_operand or is_register or is_pair),
            "C": word in instruction_set().conditions,
        }.get(letter, True)

    def _rewritten(
        self, words: list[str], form: list[str], full: list[str], suffix: str
    ) -> list[str] | None:
        """Return the words of the full form if they fit the other form."""
        words_of: dict[str, list[str]] = {}
        if form[-1:] == ["*"]:
            form = form[:-1]
            words_of["*"], words = words[len(form) :], words[: len(form)]
        if len(words) != len(form):
            return None
        for letter, word in zip(form, words, strict=True):
            if not self._fits(letter, word, suffix):
                return None
            words_of[letter] = [word]
        return [word for part in full for word in words_of.get(part, [part])]

    def _register(self, word: str, writes: bool) -> str | None:
        """Return the C variable or value of a register of 32 bits."""
        if operand := self._operand(word):
            self._use(operand, writes, False)
            return operand.variable
        if word in _FIXED:
            return None if writes else _FIXED[word]
        if not _REGISTER.match(word):
            return None
        return self._named(word, writes)

    def _pair(self, word: str, writes: bool) -> tuple[str, str] | None:
        """Return the C variables of the upper and the lower half of a pair."""
        if operand := self._operand(word):
            self._use(operand, writes, True)
            return f"{operand.variable}h", f"{operand.variable}l"
        match = _PAIR.match(word)
        if match is None:
            return None
        return self._named(f"r{match[1]}", writes), self._named(f"r{int(match[1]) + 1}", writes)

    def _use(self, operand: _Operand, writes: bool, is_pair: bool) -> None:
        owner = self.operands[operand.tied] if operand.tied is not None else operand
        if (writes and not owner.is_written) or owner.is_pair not in (None, is_pair):
            raise UnsupportedError
        owner.is_pair = operand.is_pair = is_pair

    def _named(self, word: str, writes: bool) -> str:
        self.registers.add(word)
        if writes:
            self._writes.add(word)
        elif word not in self.written:
            raise UnsupportedError  # a value of the surrounding code
        return f"__pe_{word}"

    def _number(self, word: str) -> str | None:
        def variable(match: re.Match[str]) -> str:
            number = self.numbers.get(match[1] or match[2])
            if number is None or self.operands[number].is_register:
                raise UnsupportedError
            self.operands[number].is_pair = False
            return f"((long long)(int){self.operands[number].variable})"

        if not self._fits("I", word, "") or self._fits("C", word, ""):
            return None
        if _SYMBOL.match(word):
            address = f'__pe_word symbol; __asm__("movl ${word}, %0" : "=r"(symbol)); symbol;'
            return f"({{ {address} }})"
        text = _OPERAND.sub(variable, word)
        if not _NUMBERS.match(text) or _MIXED.match(word) or not _is_expression(text):
            return None
        return f"(__pe_word)({text})"

    def _target(self, word: str, place: int) -> int | str:
        """Return the target of a jump at a place."""
        if label := re.fullmatch(r"%l(?:\[(\w+)\]|(\d+))", word):
            target = self.c_labels.get(label[1] or label[2])
            if target is None:
                raise UnsupportedError
            return target
        if near := _NEAR.match(word):
            target = place + int((near[1] or "") + (near[2] or "0"))
        elif match := re.fullmatch(r"(\d+)([bf])", word):
            is_before = match[2] == "b"
            chosen = [at for at in self.labels.get(match[1], []) if (at <= place) == is_before]
            if not chosen:
                raise UnsupportedError
            target = chosen[-1 if is_before else 0]
        elif len(self.labels.get(word, [])) == 1:
            target = self.labels[word][0]
        else:
            raise UnsupportedError
        if not 0 <= target <= len(self.lines):
            raise UnsupportedError
        return target

    def _read_condition(self, words: list[str], letter: str, place: int, to: _Instruction) -> bool:
        """Read the operands at ?, ! or @ of a row, and return whether they are valid."""
        if not words:
            return letter != "@"
        name, has_target = words.pop(0), bool(words) and letter != "!"
        target = self._target(words.pop(0), place) if has_target else None
        if name == "false":
            return letter != "@"
        condition = (to.row.jumps if has_target else to.row.sets).get(name)
        if condition is None:
            return False
        to.condition, to.target = condition, target
        return True

    def _value(self, letter: str, word: str, place: int, to: _Instruction) -> str | None:
        """Return the C value of an operand of 32 bits."""
        if letter == "z":
            return "0u" if word == "zero" else None
        if letter in "abc":
            is_fixed = letter == "b" and word in _FIXED  # only the first operand may be fixed
            return None if is_fixed else self._register(word, letter == "c")
        if letter == "i" and to.row.name == "call":
            to.target = self._target(word, place)
            return "0u"
        number = self._number(word)
        return f"{number} & 31" if number and letter == "s" else number

    def _read_row(self, words: list[str], place: int, to: _Instruction) -> bool:
        """Read the operands in the syntax of a row, and return whether they have this syntax."""
        words = list(words)
        for letter in to.row.syntax.replace(" ", ""):
            if letter in "?!@":
                if not self._read_condition(words, letter, place, to):
                    return False
                continue
            if letter == "n":
                if words and words[0] in ("!big", "!little"):
                    to.is_big = int(words.pop(0) == "!big")
                continue
            if not words:
                return False
            word = words.pop(0)
            if letter in "de":
                pair = self._pair(word, letter == "d")
                if pair is None:
                    return False
                to.pairs[letter] = pair
            else:
                value = self._value(letter, word, place, to)
                if value is None:
                    return False
                to.values[letter] = value
        return not words

    def _instruction(self, place: int) -> _Instruction:
        name, _, rest = self.lines[place].replace("\t", " ").partition(" ")
        words = [word.strip() for word in rest.split(",")] if rest.strip() else []
        name, _, suffix = name.partition(".")
        for form, full_name, full in instruction_set().forms.get(name, []):
            if (rewritten := self._rewritten(words, form, full, suffix)) is not None:
                name, words = full_name, rewritten
                break
        for row in instruction_set().rows.get(name, []):
            if row.has_suffix != (suffix != "") or suffix not in ("", "s", "u"):
                continue
            result = _Instruction(row, suffix)
            self._writes: set[str] = set()
            pairs = [operand.is_pair for operand in self.operands]
            try:
                if self._read_row(words, place, result):
                    self.written |= self._writes
                    return result
            except UnsupportedError:
                pass  # another row may have these operands
            for operand, is_pair in zip(self.operands, pairs, strict=True):
                operand.is_pair = is_pair
        raise UnsupportedError

    # --- C

    def _goto(self, instruction: _Instruction, test: str = "") -> str:
        target = instruction.target
        if target is None:
            return ""
        if isinstance(target, int):
            self.targets.add(target)
            jump = f"goto __pe_at{target};"
        else:
            jump = f"{{ {self._barrier()} goto {target}; }}"
        return f"{test and f'if ({test}) '}{jump}"

    def _barrier(self) -> str:
        """Return C that keeps accesses to memory on their side of the block."""
        return '__asm__ volatile("" : : : "memory");' if self.orders_memory else ""

    def _write(self, instruction: _Instruction, value: str) -> str:
        if "c" in instruction.values:
            return f"{instruction.values['c']} = {value};"
        if "d" not in instruction.pairs:
            return ""
        high, low = instruction.pairs["d"]
        return f"{low} = {value}; {high} = {f'-({low} >> 31)' if instruction.suffix == 's' else 0};"

    def _finish(self, instruction: _Instruction, flags: str, write: str) -> str:
        """Return C that evaluates the condition, updates flags, writes the result and jumps."""
        if not instruction.condition:
            return flags + write
        test = f"__pe_is_{instruction.condition}(__pe_r, __pe_a, __pe_b, __pe_zero)"
        if instruction.target is None:
            return f"__pe_holds = {test}; {flags}{self._write(instruction, '__pe_holds')}"
        return f"__pe_holds = {test}; {flags}{write}{self._goto(instruction, '__pe_holds')}"

    def _statement(self, instruction: _Instruction, place: int) -> str:
        row, name = instruction.row, instruction.row.name
        values, pairs = instruction.values, instruction.pairs
        a = values.get("a", "0u")
        if name in _CALLS:
            return _CALLS[name].format(values.get("i", ""))
        if name in ("acquire", "release"):
            return self._lock(instruction, place)
        if name == "nop":
            return ""
        if name == "call" and "c" not in values and a == "0u" and instruction.target is not None:
            return self._goto(instruction)
        if access := _ACCESS.fullmatch(name):
            return self._access(instruction, *access.groups())
        if name in ("movd", "swapd"):
            high, low = pairs["e"][:: 1 if name == "movd" else -1]
            move = f"__pe_wide = {_pair_value((high, low))}; {_set_pair(pairs['d'])} "
            return move + self._goto(instruction)
        if name in ("mul_step", "div_step"):
            step = (
                f"__pe_a = {a}; __pe_wide = __pe_do_step_{name[:3]}(__pe_a, {values['s']},"
                f" {_pair_value(pairs['e'])}, {_pair_value(pairs['d'])});"
                " __pe_r.value = (__pe_word)(__pe_wide >> 32); __pe_r.is_zero = __pe_r.value == 0; "
            )
            flags = "__pe_zero = __pe_r.is_zero; " if name == "mul_step" else ""
            return step + self._finish(instruction, flags, _set_pair(pairs["d"]))
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
        self, instruction: _Instruction, kind: str, size: str, sign: str, adds_id: str
    ) -> str:
        ctype = _TYPES[size]
        memory = f"*(volatile {ctype} *)({instruction.values['a']} + {instruction.values['o']})"
        swap = f"__builtin_bswap{_BITS[size]}" if instruction.is_big and size != "b" else ""
        if kind == "l":
            load = f"__pe_wide = {swap}({memory}); "
            if size == "d":
                return load + _set_pair(instruction.pairs["d"])
            extended = f"({ctype.removeprefix('un')})" if sign == "s" else ""
            return load + self._write(instruction, f"(__pe_word){extended}__pe_wide")
        value = (
            _pair_value(instruction.pairs["e"])
            if "e" in instruction.pairs
            else instruction.values.get("b", "")
        )
        if "i" in instruction.values:
            value = f"(__pe_pair)(int)({instruction.values['i']})"
        if adds_id:
            value += f" | {_FIXED['id']}"
        return f"{memory} = {swap}(({ctype})({value}));"

    def _lock(self, instruction: _Instruction, place: int) -> str:
        lock = f"{instruction.values['a']} + {instruction.values['i']}"
        target, condition = instruction.target, instruction.condition
        if instruction.row.name == "release":
            jump = "" if target == place + 1 else self._goto(instruction)
            return f"__pe_release({lock}); __pe_zero = 0; {jump}"
        if condition == "nz" and target == place:
            return f"__pe_acquire({lock}); __pe_zero = 1;"
        # The emulator counts the call as two instructions: acquire, and a move of the result.
        test = {"z": "__pe_zero", "nz": "!__pe_zero"}.get(condition, "")
        attempt = f"{_count(-1)} __pe_zero = __pe_try_acquire({lock}); "
        return attempt + self._goto(instruction, test)

    def translate(self) -> tuple[str, str, str]:
        instructions = [self._instruction(place) for place in range(len(self.lines))]
        statements = [self._statement(each, place) for place, each in enumerate(instructions)]
        body: list[str] = []
        run: list[str] = []  # C of instructions that run one after the other
        counted = 0

        def end_run() -> None:
            nonlocal counted
            body.extend([_count(counted), *run] if counted else run)
            run.clear()
            counted = 0

        for place, (instruction, statement) in enumerate(
            zip(instructions, statements, strict=True)
        ):
            if place in self.targets:
                end_run()
                body.append(f"__pe_at{place}:;")
            run.append(statement)
            is_call = instruction.row.name in (*_CALLS, "acquire", "release")
            counted += not is_call
            if is_call or instruction.target is not None:
                end_run()
        end_run()
        if len(self.lines) in self.targets:
            body.append(f"__pe_at{len(self.lines)}:;")
        barrier = self._barrier()
        labels = ", ".join(f"__pe_at{target}" for target in sorted(self.targets))
        unused = "__attribute__((unused))"
        before = [
            f"__label__ {labels};" if labels else "",
            f"struct __pe_result __pe_r {unused}; __pe_pair __pe_wide {unused};"
            f" __pe_word __pe_zero {unused} = 0, __pe_carry {unused} = 0, __pe_a {unused} = 0,"
            f" __pe_b {unused} = 0, __pe_holds {unused};",
            *(f"__pe_word __pe_{each} {unused} = 0;" for each in sorted(self.registers)),
        ]
        after = []
        tied = {operand.tied for operand in self.operands}
        for number, operand in enumerate(self.operands):
            # No instruction uses the operand; the input that is tied to it is its result.
            operand.is_whole = operand.is_pair is None and number in tied
            before.append(_initial(operand, number, self.operands))
            if operand.is_written and (operand.is_pair is not None or operand.is_whole):
                after.append(_write_back(operand, number))
        return " ".join(before), " ".join([barrier, *body, barrier]), " ".join(after)


def _is_expression(text: str) -> bool:
    """Return whether C and Python can read the numbers and operators."""
    try:
        ast.parse(text.replace("(long long)(int)", "").strip(), mode="eval")
    except SyntaxError:
        return False
    return True


def _count(instructions: int) -> str:
    """Return C that counts DPU instructions (counting.py)."""
    return f'__asm__ volatile("leaq {instructions}(%%r15), %%r15" : : );'


def _pair_value(halves: tuple[str, str]) -> str:
    return f"((__pe_pair){halves[0]} << 32 | {halves[1]})"


def _set_pair(halves: tuple[str, str]) -> str:
    return f"{halves[0]} = (__pe_word)(__pe_wide >> 32); {halves[1]} = (__pe_word)__pe_wide;"


def _place(operand: _Operand, number: int) -> str:
    return operand.value if _PLAIN.match(operand.value) else f"(*__pe_p{number})"


def _initial(operand: _Operand, number: int, operands: list[_Operand]) -> str:
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
        return f"{text}__pe_wide = (__pe_pair)({value}); {_set_pair((f'{name}h', f'{name}l'))}"
    value = (
        f"({_place(operand, number) if operand.is_written else value})" if operand.is_read else "0"
    )
    if not operand.is_pair:
        ctype = "__pe_pair" if operand.is_whole else "__pe_word"
        return f"{text}{ctype} {name} __attribute__((unused)) = ({ctype}){value};"
    return (
        f"{text}__pe_word {name}h, {name}l; __pe_wide = (__pe_pair){value};"
        f" {_set_pair((f'{name}h', f'{name}l'))}"
    )


def _write_back(operand: _Operand, number: int) -> str:
    place = _place(operand, number)
    halves = f"{operand.variable}h", f"{operand.variable}l"
    value = _pair_value(halves) if operand.is_pair else operand.variable
    return f"{place} = (__typeof__({place})){value};"


def translate(
    template: str, lists: list[str], split: Callable[[str, str], list[str]]
) -> tuple[str, str, str]:
    """Return C: declarations with the expressions of the operands, the instructions, and the
    assignments of the results.

    template: the value of the string; lists: outputs, inputs, clobbers and labels; split: splits a
    text at separators outside parentheses. Raises UnsupportedError.
    """
    return _Block(template, lists, split).translate()
