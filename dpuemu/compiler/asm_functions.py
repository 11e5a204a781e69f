"""Translate functions in DPU assembly to C.

Each function becomes two C functions. One has all registers as its state and makes the calls of
other functions of the file, so these may use registers as they like. The other one has the
function's name and the calling convention of the vendor's compiler: eight arguments of 32 bits in
r0 to r7, the result in r0, the stack pointer in r22, the return address in r23; it preserves r14 to
r22. A return address is a number that identifies a call.
"""

from __future__ import annotations

import re

import prototypes
from asm_code import Writer, declarations
from asm_file import AssemblyFile, Function, FunctionError, Place
from asm_instructions import Instruction, Reader
from asm_statement import Statement, UnsupportedError

__all__ = ["FunctionError", "translate"]

_WORD = re.compile(r"[A-Za-z_.$][\w.$]*")
_ARGUMENTS = ", ".join(f"__pe_word __pe_a{number}" for number in range(8))
_FIRST_TOKEN = 0xF0000000
# Registers that have no value when a function begins.
_OTHERS = {f"r{number}" for number in range(8, 14)}


class _FunctionReader(Reader):
    """Reads the instructions of a function. A target may be the name of a function."""

    def __init__(self, function: Function, file: AssemblyFile) -> None:
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
        if word in self._file.functions:
            return word
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

    def __init__(
        self, function: Function, file: AssemblyFile, registers: set[str], token: int
    ) -> None:
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


def _check_flow(function: Function, file: AssemblyFile, instructions: list[Instruction]) -> None:
    """Raise FunctionError if an instruction reads a register that has no value on some path to it,
    or an argument on the stack, or if the function runs past its end.
    """
    entry = frozenset(_OTHERS | {"stack"}) if function.is_global else frozenset[str]()
    states = {0: entry}  # the registers without a value on some path to each place
    open_places = [0]
    while open_places:
        place = open_places.pop()
        if place >= len(instructions):
            where = function.places[-1] if function.places else function.place
            last = function.lines[-1] if function.lines else function.name
            raise FunctionError(where, last, f"{function.name} continues beyond its end")
        instruction = instructions[place]
        undefined = states[place] - instruction.writes
        undefined -= {"stack"} if "r22" in instruction.writes else set()
        if instruction.row.name == "call" and "c" in instruction.values:
            is_own = instruction.target in file.functions
            undefined = frozenset() if is_own else undefined | {f"r{i}" for i in range(1, 14)}
        following = [instruction.target] if isinstance(instruction.target, int) else []
        following += [] if _ends(instruction) else [place + 1]
        for each in following:
            union = states.get(each, frozenset()) | undefined
            if states.get(each) != union:
                states[each] = union
                open_places.append(each)
    for place, undefined in sorted(states.items()):
        instruction = instructions[place]
        if names := sorted(instruction.reads & undefined):
            rule = f"{names[0]} has no value here: a global function starts with values in r0 to r7"
            rule += " and r14 to r23; a call of a C function keeps r14 to r23 and sets r0"
            raise FunctionError(function.places[place], function.lines[place], rule)
        offset = instruction.values.get("o", "")
        if "stack" in undefined and instruction.values.get("a") == "__pe_r22" and "-" in offset:
            rule = "an address below the function's stack: all arguments must be in r0 to r7"
            raise FunctionError(function.places[place], function.lines[place], rule)


def _in_c(
    function: Function, file: AssemblyFile, token: int, mark: str
) -> tuple[str, set[str], int]:
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


def translate(text: str, place: Place, mark: str) -> str:
    """Return C for the functions and the data in assembly.

    place: the file and line of the text; mark: a part before the names of files whose C code counts
    itself (assembly.py). Raises FunctionError.
    """
    file = AssemblyFile(text, place)
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
