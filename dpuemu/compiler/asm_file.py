"""Read a file of DPU assembly: its functions as lines, and its data as assembly of x86-64."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from asm_instructions import LABEL

Place = tuple[str, int]  # a file and a line

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|[;\n]', re.S)
_MARKER = re.compile(r'#[ \t]*(?:line[ \t]+)?(\d+)[ \t]+"((?:\\.|[^"\\])*)"')
_LABELS = re.compile(rf"(?:{LABEL.pattern})*")
_WORD = re.compile(r"[A-Za-z_.$][\w.$]*")
_MACRO = re.compile(r"\.macro\s+([\w.$]+)[\s,]*(.*)", re.S)
_MOST_EXPANSIONS = 10_000
_NUMBERS = itertools.count()  # of the functions of a translation unit, which may have several texts
_SET = re.compile(r"\.(?:set|equ|equiv)\s+([\w.$]+)\s*,\s*(.*)|([A-Za-z_][\w.$]*)\s*=\s*(.*)", re.S)
_IGNORED = re.compile(
    r"\.(?:file|loc|cfi_\w+|ident|addrsig\w*|type|size|p2align|align|balign|local|hidden)\b"
)
_DATA = re.compile(
    r"\.(?:byte|short|half|hword|2byte|word|long|int|4byte|quad|8byte|zero|skip|space|ascii|asciz"
    r"|string|fill|p2align|align|balign|type|size|comm|local|hidden)\b"
)
_SECTION = re.compile(r"\.(?:section\s+([\w.$-]+)|(text|data|bss)\b)")
_UNUSED_SECTION = re.compile(r"\.(?:debug|stack_sizes|note|comment|llvm)")


# Labels that are empty, and statements that _starts has read.
_EVERYWHERE = re.compile(rf"$|\.glob(?:a?l)\b|(?:{_SET.pattern})$", re.S)


class FunctionError(Exception):
    """Raised for assembly that cannot be translated. place: its file and line; text: the
    assembly; rule: why.
    """

    def __init__(self, place: Place, text: str, rule: str) -> None:
        """Keep the parts of the message."""
        super().__init__(rule)
        self.place, self.text, self.rule = place, text, rule


@dataclass
class Function:
    """labels: the places of its labels; lines, places: its instructions, and their files and
    lines; c_name: of the C function with the state.
    """

    name: str
    c_name: str
    place: Place
    is_global: bool
    lines: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    labels: dict[str, list[int]] = field(default_factory=dict)


def _statements(text: str, place: Place) -> Iterator[tuple[Place, str]]:
    """Yield the statements and their files and lines. place: of the text."""
    file, line = place
    parts: list[str] = []
    at = 0
    for token in [*_TOKEN.finditer(text + "\n")]:
        parts.append(text[at : token.start()])
        at = token.end()
        parts.append(token[0] if token[0][0] == '"' else " ")
        if token[0] in ";\n":
            statement = "".join(parts).strip()
            parts.clear()
            if marker := _MARKER.match(statement):
                line, file = int(marker[1]) - 1, marker[2]
            elif statement and statement[0] != "#":
                yield (file, line), statement
        line += token[0].count("\n")


def _expanded(statements: list[tuple[Place, str]]) -> list[tuple[Place, str]]:
    """Return the statements with those of macros in place of their names."""
    macros: dict[str, tuple[list[str], list[str]]] = {}
    result: list[tuple[Place, str]] = []
    rest = statements[::-1]
    expansions = 0
    while rest:
        where, statement = rest.pop()
        labels = _LABELS.match(statement)
        if labels and labels[0]:
            result.append((where, labels[0]))
            statement = statement[labels.end() :]
        name, _, arguments = statement.replace("\t", " ").partition(" ")
        if macro := _MACRO.fullmatch(statement):
            body: list[str] = []
            while rest and rest[-1][1] != ".endm":
                body.append(rest.pop()[1])
            if not rest or any(line.startswith(".macro") for line in body):
                raise FunctionError(where, statement, "the macro needs .endm, and no inner macro")
            rest.pop()
            names = macro[2].replace(",", " ").replace(":req", "").split()
            if not all(map(str.isidentifier, names)):
                raise FunctionError(where, statement, "the parameters may not have values")
            macros[macro[1]] = names, body
        elif name in macros:
            names, body = macros[name]
            values = [value.strip() for value in arguments.split(",")] if arguments.strip() else []
            expansions += 1
            if len(values) != len(names):
                raise FunctionError(where, statement, f"the macro needs {len(names)} arguments")
            if expansions > _MOST_EXPANSIONS:
                raise FunctionError(where, statement, "the macro expands without end")
            for line in reversed(body):
                for parameter, value in zip(names, values, strict=True):
                    line = value.join(re.split(rf"\\\s*{re.escape(parameter)}\b", line))
                rest.append((where, line))
        else:
            result.append((where, statement))
    return result


class AssemblyFile:
    """The functions and the data of a file. constants: of .set; local: the labels inside
    functions.
    """

    def __init__(self, text: str, place: Place) -> None:
        """place: of the text. Raises FunctionError."""
        self.functions: dict[str, Function] = {}
        self.constants: dict[str, str] = {}
        self.data: list[str] = []
        self._directive = ".text"
        self.local: set[str] = set()
        statements = _expanded(list(_statements(text, place)))
        starts = self._starts(statements)
        self._current: Function | None = None
        section = ".text"
        for where, statement in statements:
            while label := LABEL.match(statement):
                statement = statement[label.end() :]
                self._add_label(label[1], section, where, starts)
            if entered := _SECTION.match(statement):
                section = entered[1] or f".{entered[2]}"
                self._directive = statement
            elif not (_EVERYWHERE.match(statement) or _UNUSED_SECTION.match(section)):
                self._add(statement, section, where)

    def _add_label(self, name: str, section: str, where: Place, starts: set[str]) -> None:
        """Add a label."""
        if not section.startswith(".text"):
            self._add_data(section, f"{name}:")
        elif name in starts:
            if name in self.functions:
                raise FunctionError(where, name, "the label exists already")
            c_name = f"__pe_function{next(_NUMBERS)}"
            self._current = Function(name, c_name, where, name in self._globals)
            self.functions[name] = self._current
        elif self._current is not None:
            self._current.labels.setdefault(name, []).append(len(self._current.lines))
            self.local |= set() if name.isdigit() else {name}

    def _add(self, statement: str, section: str, where: Place) -> None:
        """Add an instruction, or a directive."""
        if not section.startswith(".text"):
            if not _DATA.match(statement):
                rule = f"section {section} may have data only, by directives such as .long"
                raise FunctionError(where, statement, rule)
            self._add_data(section, self._with_constants(statement))
        elif statement[0] != ".":
            if self._current is None:
                rule = "no label before it names a function (.globl, or .type @function)"
                raise FunctionError(where, statement, rule)
            # Older programs write conditions with a question mark.
            self._current.lines.append(self._with_constants(re.sub(r"\?(?=\w)", "", statement)))
            self._current.places.append(where)
        elif not _IGNORED.match(statement):
            raise FunctionError(where, statement, "the directive is not supported")

    def _starts(self, statements: list[tuple[Place, str]]) -> set[str]:
        """Return the labels at which functions start, and read constants and global names."""
        self._globals: set[str] = set()
        starts: set[str] = set()
        for where, statement in statements:
            text = LABEL.sub("", statement) if LABEL.match(statement) else statement
            words = [word.strip() for word in re.split(r"[\s,]+", text)]
            if words[0] in (".globl", ".global"):
                self._globals |= set(words[1:])
            elif words[0] == ".type" and words[-1] in ("@function", "%function"):
                starts.add(words[1])
            elif words[0] == "call" and _WORD.fullmatch(words[-1]):
                starts.add(words[-1])
            elif constant := _SET.fullmatch(text):
                name, value = constant[1] or constant[3], constant[2] or constant[4]
                value = f"({self._with_constants(value)})"
                if self.constants.setdefault(name, value) != value:
                    raise FunctionError(where, statement, f"{name} has two values")
        return starts | self._globals

    def _with_constants(self, text: str) -> str:
        if text.startswith((".ascii", ".asciz", ".string")):
            return text
        return _WORD.sub(lambda word: self.constants.get(word[0], word[0]), text)

    def _add_data(self, section: str, line: str) -> None:
        """Add data. On a DPU, .word has 4 bytes."""
        named = self._directive.partition("section")[2] or section
        line = re.sub(r"^\.word\b", ".long", line)
        name = line[:-1] if line.endswith(":") else ""
        lines = [f".pushsection {named}", *([f".globl {name}"] if name in self._globals else [])]
        self.data += [*lines, line, ".popsection"]
