"""Replace asm blocks of one DPU instruction, in preprocessed C, by C with the same effect.

The instructions of TABLE are known. Empty blocks stay: they only order memory accesses. Any other
statement becomes a fault, with a warning at compile time. All other assembly raises AssemblyError
with the file and line. The headers of the emulator may contain x86-64 assembly, so they stay
unchanged.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator

# Instruction -> C. {0}, {1}, ... are its operands in the order of the assembly, as 32-bit values;
# an operand that the instruction writes is an lvalue. A lock is the low 8 bits of a sum, as in the
# instruction; `.` is the instruction itself and `.+1` the next one.
_BINARY = {
    **{
        "add": "{1} + {2}",
        "sub": "{1} - {2}",
        "and": "{1} & {2}",
        "or": "{1} | {2}",
        "xor": "{1} ^ {2}",
    },
    **{
        "nand": "~({1} & {2})",
        "nor": "~({1} | {2})",
        "nxor": "~({1} ^ {2})",
        "andn": "~{1} & {2}",
        "orn": "~{1} | {2}",
    },
    **{"rsub": "{2} - {1}", "lsl": "{1} << ({2} & 31)", "lsr": "{1} >> ({2} & 31)"},
    "asr": "(__pe_word)((int){1} >> ({2} & 31))",
    "rol": "{1} << ({2} & 31) | {1} >> (-{2} & 31)",
    "ror": "{1} >> ({2} & 31) | {1} << (-{2} & 31)",
}
_UNARY = {
    "move": "{1}",
    "cao": "(__pe_word)__builtin_popcount({1})",
    "clz": "{1} == 0 ? 32u : (__pe_word)__builtin_clz({1})",
    **{"extsb": "(__pe_word)(signed char){1}", "extsh": "(__pe_word)(short){1}"},
    **{"extub": "(unsigned char){1}", "extuh": "(unsigned short){1}"},
}
_LOCK = 'extern void {name}(__pe_word) __asm__("{name_of_call}"); {name}({{0}} + {{1}});'
_OPERAND = r"\s*([^\s,;]+)\s*"
TABLE = [
    # One instruction that does nothing. r15 counts the DPU instructions (counting.py).
    (r"nop", '__asm__ volatile("leaq 1(%%r15), %%r15" : : : "memory");'),
    (r"stop", "extern void __pe_exit(int); __pe_exit(0);"),
    (
        rf"fault{_OPERAND}",
        "extern void __pe_fault_instruction(__pe_word); __pe_fault_instruction({0});",
    ),
    (
        rf"acquire{_OPERAND},{_OPERAND},\s*nz\s*,\s*\.",
        _LOCK.format(name="__pe_acquire", name_of_call="mutex_lock"),
    ),
    (
        rf"release{_OPERAND},{_OPERAND},\s*nz\s*,\s*\.\s*\+\s*1",
        _LOCK.format(name="__pe_release", name_of_call="mutex_unlock"),
    ),
    *(
        (rf"{name}\s{_OPERAND},{_OPERAND},{_OPERAND}", f"{{0}} = {text};")
        for name, text in _BINARY.items()
    ),
    *((rf"{name}\s{_OPERAND},{_OPERAND}", f"{{0}} = {text};") for name, text in _UNARY.items()),
]
_TABLE = [(re.compile(pattern + r"\s*;?"), text) for pattern, text in TABLE]

_ASM = re.compile(
    r"""(?P<skip>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |^\#[ \t]*(?:line[ \t]+)?(?P<line>\d+)[ \t]+"(?P<file>(?:\\.|[^"\\])*)".*$
    |(?P<brace>[{}])
    |(?P<asm>\b(?:asm|__asm__|__asm)\b
      (?P<words>(?:\s*\b(?:volatile|__volatile__|__volatile|inline|__inline__|goto)\b)*)\s*\()""",
    re.VERBOSE | re.MULTILINE,
)
_STRING = re.compile(r'\s*"((?:\\.|[^"\\\n])*)"|^[ \t]*#.*$', re.MULTILINE)
_SYMBOL = re.compile(r"[A-Za-z_.$][\w.$]*")
_LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
_AT_STATEMENT = re.compile(r"(?:[;{}:)]|\b(?:else|do))\s*\Z")
_LAST_CHARACTER = re.compile(r"(\S)\s*\Z")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)$")
_CONSTRAINT = re.compile(r'(?:\[(\w+)\])?\s*"([=+&%]*)([rgiIn]+)"\s*\((.*)\)$', re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class AssemblyError(Exception):
    """Raised for assembly that the compiler cannot replace; the text is one sentence."""


def _shown(place: str, text: str) -> str:
    shown = " ".join(text.split())
    return place + (f" ({shown[:60]})" if shown else "")


def refused(place: str, text: str) -> AssemblyError:
    """Return the error for assembly at `place` (a file, or file:line)."""
    return AssemblyError(
        f"DPU assembly at {_shown(place, text)} is not supported: PE programs run as x86-64 code;"
        " write this function in C"
    )


def _fault(place: str, text: str) -> str:
    """Return a C statement that stops the PE with a fault that names the assembly."""
    shown = re.sub(r"[^ -!#-\[\]-~]", "?", _shown(place, text))
    return (
        "({ extern __attribute__((noreturn)) void __pe_assembly(const char *); static const char"
        f' __pe_text[] __attribute__((section(".pe_strings"))) = "{shown}";'
        " __pe_assembly(__pe_text); })"
    )


def closing(text: str, start: int) -> int:
    """Return the position of the parenthesis that closes the one before `start`."""
    depth = 1
    for token in re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[()\[\]{}]').finditer(
        text, start
    ):
        if token[0] in ("(", "[", "{"):
            depth += 1
        elif token[0] in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return token.start()
    return len(text)


def split(text: str, separator: str) -> list[str]:
    """Split at separators outside parentheses and strings."""
    parts, depth, start = [], 0, 0
    for token in re.compile(rf'"(?:\\.|[^"\\\n])*"|[()\[\]{{}}]|{separator}').finditer(text):
        if token[0] in ("(", "[", "{"):
            depth += 1
        elif token[0] in (")", "]", "}"):
            depth -= 1
        elif token[0] == separator and depth == 0:
            parts.append(text[start : token.start()])
            start = token.end()
    return [*parts, text[start:]]


def _template(text: str) -> str | None:
    """Return the value of adjacent string literals, or None if the text is something else."""
    value, place = "", 0
    while place < len(text) and (literal := _STRING.match(text, place)):
        value += re.sub(
            r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[0]), literal[1] or ""
        )
        place = literal.end()
    return None if text[place:].strip() else value


def _operands(lists: list[str]) -> Iterator[tuple[str, bool, str]]:
    """Yield name, whether it is written, and expression of each operand. Raises ValueError."""
    for is_written, text in zip((True, False), lists, strict=False):
        for operand in filter(None, map(str.strip, split(text, ","))):
            constraint = _CONSTRAINT.match(operand)
            if constraint is None:
                raise ValueError
            yield constraint[1] or "", is_written, constraint[4]


def _in_c(template: str, lists: list[str]) -> str | None:
    """Return a C statement for the instruction, or None if it is not in the table or its
    operands are not.
    """
    instruction = template.strip()
    try:
        operands = list(_operands(lists))
    except ValueError:
        return None
    if any(
        clobber.strip() not in ("", '"memory"', '"cc"')
        for clobber in split(lists[2] if len(lists) > 2 else "", ",")
    ):
        return None
    named = {f"%[{name}]": number for number, (name, _, _) in enumerate(operands) if name}
    numbered = {f"%{number}": number for number in range(len(operands))}
    # Each expression is evaluated once. An output is a pointer, because an instruction may not read
    # it. But a variable is used directly: it may be in a register, and then has no address.
    targets = [
        value if value.strip().isidentifier() else f"*__pe_{n}"
        for n, (_, _, value) in enumerate(operands)
    ]
    before = "".join(
        (
            ("" if targets[n] == value else f"__typeof__({value}) *__pe_{n} = &({value}); ")
            if is_written
            else f"__pe_word __pe_{n} = (__pe_word)({value}); "
        )
        for n, (_, is_written, value) in enumerate(operands)
    )
    names = [
        f"((__pe_word){targets[n]})" if is_written else f"__pe_{n}"
        for n, (_, is_written, _) in enumerate(operands)
    ]
    for pattern, text in _TABLE:
        match = pattern.fullmatch(instruction)
        if match is None:
            continue
        values = []
        for place, word in enumerate(match.groups()):
            number = {**named, **numbered}.get(word)
            is_target = place == 0 and "{0} =" in text
            if number is None:
                if not _NUMBER.match(word) or is_target:
                    return None
                values.append(f"(__pe_word)({word})")
            elif is_target and not operands[number][1]:
                return None
            else:
                values.append(f"({targets[number]})" if is_target else names[number])
        return f"({{ typedef unsigned __pe_word; {before}{text.format(*values)} (void)0; }})"
    return None


def _is_declarator(before: str) -> bool:
    """Return whether the text before `asm("name")` may be a declaration, as in `int f(void)
    asm("g");`.

    After else, do, and the parentheses of if, for, while and switch, it is not. Variables in
    registers are refused.
    """
    before = _LITERAL.sub("0", before).rstrip()
    if re.search(r"\b(?:else|do)$|\bregister\b[^;{}]*$", before):
        return False
    if not before.endswith(")"):
        return True
    depth = 0
    for place in range(len(before) - 1, -1, -1):
        depth += (before[place] == ")") - (before[place] == "(")
        if depth == 0:
            return re.search(r"\b(?:if|for|while|switch)\s*$", before[:place]) is None
    return False


def replace(preprocessed: str, own_headers: str, warn: Callable[[str], None]) -> str:
    """Return the C source without DPU instructions. own_headers: the folder whose files stay
    unchanged. warn: gets a sentence for each statement that becomes a fault.

    Raises AssemblyError.
    """
    if "asm" not in preprocessed:
        return preprocessed
    parts: list[str] = []
    rest_start = depth = 0
    marks: list[tuple[int, str, int]] = [
        (0, "", 1)
    ]  # position, file and line of the text after a line marker
    for match in _ASM.finditer(preprocessed):
        if match["line"]:
            marks.append((match.end() + 1, match["file"], int(match["line"])))
        if match["brace"] and match.start() >= rest_start:
            depth += 1 if match["brace"] == "{" else -1
        if not match["asm"] or match.start() < rest_start:
            continue
        position, file, line = marks[bisect.bisect(marks, (match.start(), "\uffff", 0)) - 1]
        if file.startswith(own_headers):
            continue
        end = closing(preprocessed, match.end())
        template, *lists = split(preprocessed[match.end() : end], ":")
        text = _template(template)
        before = re.sub(
            r"^[ \t]*#.*$", "", preprocessed[position : match.start()], flags=re.MULTILINE
        )
        last = _LAST_CHARACTER.search(before)
        is_name = (
            not (match["words"] or lists)
            and last is not None
            and last[1] not in ";{}:"
            and _SYMBOL.fullmatch(text or "") is not None
            and _is_declarator(before)
        )
        if is_name or (text is not None and not text.strip()):
            continue
        statement = _in_c(text or "", lists) if text is not None else None
        if statement is None:
            place = f"{file}:{line + preprocessed.count(chr(10), position, match.start())}"
            if depth == 0 or not _AT_STATEMENT.search(before):
                raise refused(place, text or template)
            warn(
                f"DPU assembly at {_shown(place, text or template)} is not supported; a PE that"
                " reaches it is in fault"
            )
            statement = _fault(place, text or template)
        newlines = "\n" * preprocessed.count("\n", match.start(), end)
        parts += [preprocessed[rest_start : match.start()], statement, newlines]
        rest_start = end + 1
    return "".join([*parts, preprocessed[rest_start:]])
