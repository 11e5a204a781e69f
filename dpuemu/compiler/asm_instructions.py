"""Read the DPU instructions of an asm block: their operands as C."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from asm_statement import PAIR, REGISTER, Operand, Statement, UnsupportedError
from instruction_set import Row, instruction_set

FIXED = {
    "zero": "0u",
    "one": "1u",
    "lneg": "~0u",
    "mneg": "0x80000000u",
    **{f"id{scale}": f"{scale or 1} * __pe_tasklet()" for scale in ("", "2", "4", "8")},
}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
LABEL = re.compile(r"([\w.$]+)\s*:\s*")
_NEAR = re.compile(r"\.\s*(?:([+-])\s*(\d+))?$")
_OPERAND = re.compile(r"%(?:\[(\w+)\]|(\d+))")
_NUMBERS = re.compile(
    r"(?:0[xX][0-9a-fA-F]+|\d+|\(\(long long\)\(int\)__pe_\d+\)|[-+*/%()<>&|^~\s])+$"
)
_SYMBOL = re.compile(r"(?![rsd]\d+$)(?:[A-Za-z_]|\.[A-Za-z_])[\w.$]*(?:\s*[-+]\s*\d+)?$")
# Operators whose order differs between C and the assembler of the vendor's compiler.
_MIXED = re.compile(r"[^(]*(?:[-+][^(]*(?:<<|>>|[&|^])|(?:<<|>>|[&|^])[^(]*[-+])[^(]*$")


@dataclass
class Instruction:
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
    reads: set[str] = field(default_factory=set)  # the registers without those of operands
    writes: set[str] = field(default_factory=set)


class Reader:
    """The instructions of a block. labels: their places, by name; registers: the registers that
    instructions name.
    """

    def __init__(self, template: str, statement: Statement) -> None:
        """template: the value of the string."""
        self._statement = statement
        self.registers: set[str] = set()
        self._written: set[str] = set()
        self._reads: set[str] = set()
        self._writes: set[str] = set()
        self._read_lines(template)

    def _read_lines(self, template: str) -> None:
        self.lines: list[str] = []
        self.labels: dict[str, list[int]] = {}
        text = _COMMENT.sub(" ", template.replace("%=", "0").replace("%%", "%"))
        for line in map(str.strip, re.split(r"[;\n]", text)):
            while label := LABEL.match(line):
                self.labels.setdefault(label[1], []).append(len(self.lines))
                line = line[label.end() :]
            if line:
                self.lines.append(line)

    # --- The operands of one instruction

    def _operand(self, word: str) -> Operand | None:
        match = _OPERAND.fullmatch(word)
        if match is None:
            return None
        number = self._statement.numbers.get(match[1] or match[2])
        if number is None:
            raise UnsupportedError
        operand = self._statement.operands[number]
        return operand if operand.is_register else None

    def _fits(self, letter: str, word: str, suffix: str) -> bool:
        is_operand = self._operand(word) is not None
        is_general, is_pair = bool(REGISTER.match(word)), bool(PAIR.match(word))
        is_register = is_general or word in FIXED
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
        if word in FIXED:
            return None if writes else FIXED[word]
        if not REGISTER.match(word):
            return None
        return self._named(word, writes)

    def _pair(self, word: str, writes: bool) -> tuple[str, str] | None:
        """Return the C variables of the upper and the lower half of a pair."""
        if operand := self._operand(word):
            self._use(operand, writes, True)
            return f"{operand.variable}h", f"{operand.variable}l"
        match = PAIR.match(word)
        if match is None:
            return None
        return self._named(f"r{match[1]}", writes), self._named(f"r{int(match[1]) + 1}", writes)

    def _use(self, operand: Operand, writes: bool, is_pair: bool) -> None:
        owner = self._statement.operands[operand.tied] if operand.tied is not None else operand
        if (writes and not owner.is_written) or owner.is_pair not in (None, is_pair):
            raise UnsupportedError
        owner.is_pair = operand.is_pair = is_pair

    def _named(self, word: str, writes: bool) -> str:
        self.registers.add(word)
        if not writes and not self._may_read(word):
            raise UnsupportedError  # a value of the surrounding code
        (self._writes if writes else self._reads).add(word)
        return f"__pe_{word}"

    def _may_read(self, word: str) -> bool:
        return word in self._written

    def _number(self, word: str) -> str | None:
        def variable(match: re.Match[str]) -> str:
            number = self._statement.numbers.get(match[1] or match[2])
            if number is None or self._statement.operands[number].is_register:
                raise UnsupportedError
            self._statement.operands[number].is_pair = False
            return f"((long long)(int){self._statement.operands[number].variable})"

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
            c_label = self._statement.c_labels.get(label[1] or label[2])
            if c_label is None:
                raise UnsupportedError
            return c_label
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

    def _read_condition(self, words: list[str], letter: str, place: int, to: Instruction) -> bool:
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

    def _value(self, letter: str, word: str, place: int, to: Instruction) -> str | None:
        """Return the C value of an operand of 32 bits."""
        if letter == "z":
            return "0u" if word == "zero" else None
        if letter in "abc":
            is_fixed = letter == "b" and word in FIXED  # only the first operand may be fixed
            return None if is_fixed else self._register(word, letter == "c")
        if letter == "i" and to.row.name == "call":
            to.target = self._target(word, place)
            return "0u"
        number = self._number(word)
        return f"{number} & 31" if number and letter == "s" else number

    def _read_row(self, words: list[str], place: int, to: Instruction) -> bool:
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

    def read(self, place: int) -> Instruction:
        """Return the instruction at a place. Raises UnsupportedError."""
        name, _, rest = self.lines[place].replace("\t", " ").partition(" ")
        words = [word.strip() for word in rest.split(",")] if rest.strip() else []
        name, _, suffix = name.partition(".")
        for form, full_name, full in instruction_set().forms.get(name, []):
            if (rewritten := self._rewritten(words, form, full, suffix)) is not None:
                name, words = full_name, rewritten
                break
        reason = ""
        for row in instruction_set().rows.get(name, []):
            if row.has_suffix != (suffix != "") or suffix not in ("", "s", "u"):
                continue
            result = Instruction(row, suffix)
            self._reads, self._writes = result.reads, result.writes
            pairs = [operand.is_pair for operand in self._statement.operands]
            try:
                if self._read_row(words, place, result):
                    self._written |= self._writes
                    if name in ("mul_step", "div_step"):
                        result.reads |= result.writes
                    return result
            except UnsupportedError as error:  # another row may have these operands
                reason = str(error) or reason
            for operand, is_pair in zip(self._statement.operands, pairs, strict=True):
                operand.is_pair = is_pair
        raise UnsupportedError(reason)


def _is_expression(text: str) -> bool:
    """Return whether C and Python can read the numbers and operators."""
    try:
        ast.parse(text.replace("(long long)(int)", "").strip(), mode="eval")
    except SyntaxError:
        return False
    return True
