"""Translate functions in DPU assembly to C.

Each function becomes two C functions. One has all registers as its state and makes the calls of
other functions of the file, so these may use registers as they like. The other one has the
function's name and the calling convention of the vendor's compiler: eight arguments of 32 bits in
r0 to r7, the result in r0, the stack pointer in r22, the return address in r23; it preserves r14 to
r22. A return address is a number that identifies a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import prototypes
from asm_code import Writer, declarations
from asm_instructions import Instruction, Reader
from asm_statement import Statement, UnsupportedError

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|[;\n]', re.S)
_MARKER = re.compile(r'#[ \t]*(?:line[ \t]+)?(\d+)[ \t]+"((?:\\.|[^"\\])*)"')
_LABEL = re.compile(r"([\w.$]+)\s*:\s*")
_WORD = re.compile(r"[A-Za-z_.$][\w.$]*")
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
_ARGUMENTS = ", ".join(f"__pe_word __pe_a{number}" for number in range(8))
_FIRST_TOKEN = 0xF0000000
_PRESERVED = {f"r{number}" for number in range(14, 23)}
_OTHERS = {f"r{number}" for number in range(8, 14)}


class FunctionError(Exception):
    """Raised for assembly that cannot be translated. place: its file and line; text: the
    assembly; rule: why.
    """

    def __init__(self, place: tuple[str, int], text: str, rule: str) -> None:
        """All parts are parts of the message."""
        super().__init__(rule)
        self.place, self.text, self.rule = place, text, rule


@dataclass
class _Function:
    """labels: the places of its labels; lines, places: its instructions, and their files and
    lines; c_name: of the C function with the state.
    """

    name: str
    c_name: str
    place: tuple[str, int]
    is_global: bool
    lines: list[str] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)
    labels: dict[str, list[int]] = field(default_factory=dict)


def _statements(text: str, place: tuple[str, int]) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield the statements and their files and lines. place: of the text."""
    file, line = place
    parts: list[str] = []
    at = 0
    for token in [*_TOKEN.finditer(text + "\n")]:
        parts.append(text[at : token.start()])
        at = token.end()
        if token[0][0] == '"':
            parts.append(token[0])
            continue
        if token[0] in ";\n":
            statement = "".join(parts).strip()
            parts.clear()
            if marker := _MARKER.match(statement):
                line, file = int(marker[1]) - 1, marker[2]
            elif statement and statement[0] != "#":
                yield (file, line), statement
        line += token[0].count("\n")


class _File:
    """The functions and the data of a file. constants: of .set; local: the labels inside
    functions.
    """

    def __init__(self, text: str, place: tuple[str, int]) -> None:
        self.functions: dict[str, _Function] = {}
        self.constants: dict[str, str] = {}
        self.data: list[str] = []
        self._directive = ".text"
        self.local: set[str] = set()
        statements = list(_statements(text, place))
        starts = self._starts(statements)
        section, current = ".text", None
        for where, statement in statements:
            while label := _LABEL.match(statement):
                name, statement = label[1], statement[label.end() :]
                if not section.startswith(".text"):
                    self._add_data(section, f"{name}:")
                elif name in starts:
                    if name in self.functions:
                        raise FunctionError(where, name, "the label exists already")
                    c_name = f"__pe_function{place[1]}_{len(self.functions)}"
                    current = _Function(name, c_name, where, name in self._globals)
                    self.functions[name] = current
                elif current is not None:
                    current.labels.setdefault(name, []).append(len(current.lines))
                    self.local |= set() if name.isdigit() else {name}
            if not statement:
                continue
            if entered := _SECTION.match(statement):
                section = entered[1] or f".{entered[2]}"
                self._directive = statement
            elif statement.startswith((".globl", ".global")) or _SET.fullmatch(statement):
                continue
            elif _UNUSED_SECTION.match(section):
                continue
            elif section.startswith(".text"):
                if statement[0] != ".":
                    if current is None:
                        rule = "no label before it names a function (.globl, or .type @function)"
                        raise FunctionError(where, statement, rule)
                    current.lines.append(self._with_constants(statement))
                    current.places.append(where)
                elif not _IGNORED.match(statement):
                    raise FunctionError(where, statement, "the directive is not supported")
            elif _DATA.match(statement):
                self._add_data(section, self._with_constants(statement))
            else:
                rule = f"section {section} may have data only, by directives such as .long"
                raise FunctionError(where, statement, rule)

    def _starts(self, statements: list[tuple[tuple[str, int], str]]) -> set[str]:
        """Return the labels at which functions start, and read constants and global names."""
        self._globals: set[str] = set()
        starts: set[str] = set()
        for where, statement in statements:
            text = _LABEL.sub("", statement) if _LABEL.match(statement) else statement
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


class _FunctionReader(Reader):
    """Reads the instructions of a function. A target may be the name of a function."""

    def __init__(self, function: _Function, file: _File) -> None:
        super().__init__("", Statement([], lambda text, _: [text] if text else []))
        self.lines, self.labels = function.lines, function.labels
        self.registers.add("r23")
        self._file = file

    def _may_read(self, word: str) -> bool:
        return True

    def _target(self, word: str, place: int) -> int | str:
        is_own = word in self.labels
        if word in self._file.local and not is_own:
            raise UnsupportedError("the label belongs to another function")
        if not is_own and _WORD.fullmatch(word) and not word.startswith("."):
            return word
        return super()._target(word, place)

    def _value(self, letter: str, word: str, place: int, to: Instruction) -> str | None:
        if to.row.name == "call" and (letter, word) == ("i", "0"):  # the target is a register
            return "0u"
        return super()._value(letter, word, place, to)

    def _number(self, word: str) -> str | None:
        if word in self._file.local:
            raise UnsupportedError("the address of code inside a function has no value in C")
        return super()._number(word)


class _FunctionWriter(Writer):
    """Writes the instructions of a function."""

    def __init__(self, function: _Function, file: _File, registers: set[str], token: int) -> None:
        super().__init__("")
        self._function, self._file = function, file
        self.token = token
        names = sorted(registers, key=lambda name: int(name[1:]))
        state = [(f"__pe_{name}", f"__pe_s->r[{name[1:]}]") for name in names]
        state += [(f"__pe_{flag}", f"__pe_s->{flag}") for flag in ("zero", "carry")]
        self.load = " ".join(f"{variable} = {place};" for variable, place in state)
        self.save = " ".join(f"{place} = {variable};" for variable, place in state)
        self.externals: set[str] = set()

    def statement(self, instruction: Instruction, place: int) -> str:
        """Also write calls and returns."""
        self._place = place
        if instruction.row.name != "call" or isinstance(instruction.target, int):
            return super().statement(instruction, place)
        link, target = instruction.values.get("c"), instruction.target
        base, offset = instruction.values["a"], instruction.values.get("i", "0u")
        if target is None and (not base.startswith("__pe_r") or "b" in instruction.values):
            raise UnsupportedError("the target must be a label, a function or a register")
        if target is not None and (base != "0u" or offset != "0u"):
            raise UnsupportedError("the target must not be a sum")
        if "d" in instruction.pairs:
            raise UnsupportedError("the return address must be in a register of 32 bits")
        if link is None:
            return self._leave(base) if target is None else self._goto(instruction)
        self.token += 1
        token = f"{self.token:#x}u"
        if target in self._file.functions:
            return (
                f"{link} = {token}; {self.save} {self._name(target)}(__pe_s, {token}); {self.load}"
            )
        if link != "__pe_r23":
            raise UnsupportedError("a C function returns to r23")
        return f"{link} = {token}; {self.save} {self._call(target, base)} {self.load}"

    def _name(self, target: str | int | None) -> str:
        return self._file.functions[str(target)].c_name

    def _call(self, target: str | int | None, base: str) -> str:
        """Return C that calls a C function. base: the register with its address, if it has no
        name.
        """
        if target is None:
            return f"__pe_call(__pe_s, (__pe_external *){base});"
        self.externals.add(str(target))
        return f"__pe_call(__pe_s, {_external(str(target))});"

    def _leave(self, register: str) -> str:
        file, line = self._function.places[self._place]
        text = f"{file}:{line} (a jump to an address that is not the return address)"
        return f"if ({register} != __pe_token) {_unsupported(text)} goto __pe_leave;"

    def _goto(self, instruction: Instruction, test: str = "") -> str:
        target = instruction.target
        if not isinstance(target, str):
            return super()._goto(instruction, test)
        if target in self._file.functions:
            jump = f"{{ {self.save} {self._name(target)}(__pe_s, __pe_token); return; }}"
        else:
            call = f"{self.save} {self._call(target, '')} {self.load}"
            jump = f"{{ {call} {self._leave('__pe_r23')} }}"
        return f"{test and f'if ({test}) '}{jump}"


def _external(name: str) -> str:
    """Return the name of a C function in the translation, whose name in assembly may have dots."""
    return "__pe_external_" + re.sub(r"\W", "_", name)


def _unsupported(text: str) -> str:
    """Return a C statement: a fault with this text."""
    shown = re.sub(r"[^ -!#-\[\]-~]", "?", text)
    return (
        '{ static const char __pe_text[] __attribute__((section(".pe_strings"))) ='
        f' "{shown}"; __pe_unsupported(__pe_text); }}'
    )


def _ends(instruction: Instruction) -> bool:
    """Return whether the next instruction does not follow."""
    if instruction.row.name == "call":
        return "c" not in instruction.values
    jumps = instruction.condition == "true_" and instruction.target is not None
    return instruction.row.name == "fault" or jumps


def _check_flow(function: _Function, file: _File, instructions: list[Instruction]) -> None:
    """Raise FunctionError if an instruction reads a register that has no value on any path to it,
    or an argument on the stack, or if the function runs past its end.
    """
    entry = frozenset(_OTHERS | {"stack"}) if function.is_global else frozenset[str]()
    states: dict[int, frozenset[str]] = {}
    open_places = [(0, entry)]
    while open_places:
        place, undefined = open_places.pop()
        if place in states and states[place] <= undefined:
            continue
        if place >= len(instructions):
            where = function.places[-1] if function.places else function.place
            last = function.lines[-1] if function.lines else function.name
            raise FunctionError(where, last, f"{function.name} continues beyond its end")
        undefined &= states.get(place, undefined)
        states[place] = undefined
        instruction = instructions[place]
        if names := sorted(instruction.reads & undefined):
            rule = f"{names[0]} has no value: only r0 to r7 have one at the start of a global"
            rule += " function, and only r0 and r14 to r23 after a call of a C function"
            raise FunctionError(function.places[place], function.lines[place], rule)
        offset = instruction.values.get("o", "")
        if "stack" in undefined and instruction.values.get("a") == "__pe_r22" and "-" in offset:
            rule = "an address below the function's stack: all arguments must be in r0 to r7"
            raise FunctionError(function.places[place], function.lines[place], rule)
        undefined -= instruction.writes | ({"stack"} if "r22" in instruction.writes else set())
        if instruction.row.name == "call" and "c" in instruction.values:
            is_own = instruction.target in file.functions
            undefined = frozenset() if is_own else undefined | {f"r{i}" for i in range(1, 14)}
        if isinstance(instruction.target, int):
            open_places.append((instruction.target, undefined))
        if not _ends(instruction):
            open_places.append((place + 1, undefined))


def _in_c(function: _Function, file: _File, token: int, mark: str) -> tuple[str, set[str], int]:
    """Return the C functions of a function, the C functions that it calls, and the next token."""
    reader = _FunctionReader(function, file)
    instructions = []
    marks = []
    for place, where in enumerate(function.places):
        folder, slash, name = where[0].rpartition("/")
        marks.append(f'\n# {where[1]} "{folder}{slash}{mark}{name}" 3\n')
        try:
            instruction = reader.read(place)
            if instruction.target == function.name and "c" not in instruction.values:
                instruction.target = 0
            instructions.append(instruction)
        except UnsupportedError as error:
            rule = str(error) or "the emulator cannot translate the instruction with these operands"
            raise FunctionError(where, function.lines[place], rule) from error
    _check_flow(function, file, instructions)
    writer = _FunctionWriter(function, file, reader.registers, token)
    statements = []
    for place, each in enumerate(instructions):
        try:
            statements.append(marks[place] + writer.statement(each, place))
        except UnsupportedError as error:
            rule = str(error) or "the emulator cannot translate the instruction"
            raise FunctionError(function.places[place], function.lines[place], rule) from error
    body = writer.body(instructions, statements)
    name, quoted = function.c_name, function.name
    text = f"{function.places[0][0]}: {quoted} changes one of r14 to r22, which it must preserve"
    storage = "" if function.is_global else "static __attribute__((used)) "
    arguments = ", ".join(f"__pe_a{number}" for number in range(8))
    return (
        f"static void {name}(struct __pe_registers *const __pe_s, const __pe_word __pe_token) {{"
        f" {declarations(reader.registers)} {writer.load} {' '.join(body)}"
        f" __pe_leave: __attribute__((unused)); {writer.save} }}\n"
        f'{storage}__pe_word {name}_c({_ARGUMENTS}) __asm__("{quoted}");\n'
        f"{storage}__pe_word {name}_c({_ARGUMENTS}) {{"
        f" struct __pe_registers __pe_s = {{{{{arguments}}}}};"
        f" if (!__pe_enter(&__pe_s, {name})) {_unsupported(text)} return __pe_s.r[0]; }}\n",
        writer.externals,
        writer.token,
    )


def translate(text: str, place: tuple[str, int], mark: str) -> str:
    """Return C for the functions and the data in assembly.

    place: the file and line of the text; mark: a part before the names of files whose C code counts
    itself (assembly.py). Raises FunctionError.
    """
    file = _File(text, place)
    token = _FIRST_TOKEN
    functions: list[str] = []
    externals: set[str] = set()
    for function in file.functions.values():
        in_c, called, token = _in_c(function, file, token, mark)
        functions.append(in_c)
        externals |= called
    head = [
        f"static void {each.c_name}(struct __pe_registers *, __pe_word);"
        for each in file.functions.values()
    ]
    head += [f'__pe_external {_external(name)} __asm__("{name}");' for name in sorted(externals)]
    file.data += prototypes.record(prototypes.ASSEMBLY, [*file.functions, *sorted(externals)])
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in file.data)
    data = ["__asm__(", *(f'"{line}\\n"' for line in escaped), ");"] if file.data else []
    return "\n".join([*head, *data, *functions, ""])
