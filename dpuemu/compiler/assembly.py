"""Replace asm blocks of DPU instructions, in preprocessed C, by C with the same effect.

asm_blocks.py translates statements. Empty blocks stay: they only order memory accesses. A statement
that it cannot translate becomes a fault, with a warning at compile time. All other assembly raises
AssemblyError with the file and line. The headers of the emulator may contain x86-64 assembly, so
they stay unchanged.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable

import asm_blocks
import asm_functions

# The C code of instructions is in a file with this part before its name, so that counting.py does
# not count gcc's instructions there. counting.py removes the part.
MARK = "./././"

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
_MARKER = re.compile(r'^\#[ \t]*(?:line[ \t]+)?(\d+)[ \t]+"((?:\\.|[^"\\])*)".*\n', re.MULTILINE)
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


def _place_after(text: str, place: tuple[str, int]) -> tuple[str, int]:
    """Return the file and line of the end of a text that begins at a place."""
    start = 0
    for marker in _MARKER.finditer(text):
        place, start = (marker[2], int(marker[1])), marker.end()
    return place[0], place[1] + text.count("\n", start)


def _in_c(
    template: str, lists: list[str], place: tuple[str, int], after: tuple[str, int]
) -> str | None:
    """Return a C statement for the instructions, or None if they cannot be translated.

    place, after: the file and line of the asm statement, and of its end.
    """
    try:
        before, body, results = asm_blocks.translate(template, lists, split)
    except asm_blocks.UnsupportedError:
        return None
    folder, slash, name = place[0].rpartition("/")
    return (
        f'({{ {before}\n# {place[1]} "{folder}{slash}{MARK}{name}" 3\n{body}\n'
        f'# {after[1]} "{after[0]}"\n{results} (void)0; }})'
    )


def functions(text: str, place: tuple[str, int], after: tuple[str, int]) -> str:
    """Return C for functions in DPU assembly. place, after: the file and line of the text, and of
    its end. Raises AssemblyError.
    """
    try:
        in_c = asm_functions.translate(text, place, MARK)
    except asm_functions.FunctionError as error:
        shown = _shown(f"{error.place[0]}:{error.place[1]}", error.text)
        raise AssemblyError(f"DPU assembly at {shown}: {error.rule}") from error
    return f'# {place[1]} "{place[0]}"\n{in_c}\n# {after[1]} "{after[0]}"\n'


def with_functions(preprocessed: str, functions: str, folder: str) -> str:
    """Return the C source with the functions that the C code of asm blocks calls.

    folder: of the file of the functions.
    """
    first, rest = preprocessed.split("\n", 1)
    return f'{first}\n# 1 "{folder}/{MARK}asm_block.h" 3\n{functions}\n{first}\n{rest}'


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
        last = before.rstrip()[-1:]
        is_name = (
            not (match["words"] or lists)
            and last not in ("", *";{}:")
            and _SYMBOL.fullmatch(text or "") is not None
            and _is_declarator(before)
        )
        if is_name or (text is not None and not text.strip()):
            continue
        here = line + preprocessed.count("\n", position, match.start())
        statement = None
        if text is not None:
            after = _place_after(preprocessed[match.start() : end], (file, here))
            if depth:
                statement = _in_c(text, lists, (file, here), after)
            elif last in ("", *";{}") and not lists:
                statement = "\n" + functions(text, (file, here), after)
        newlines = ""
        if statement is None:
            place = f"{file}:{here}"
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
