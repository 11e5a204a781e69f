"""Rewrite C that the SDK's compiler accepts and gcc refuses, at the places that gcc names.

* memset, memcpy and memmove with pointers to MRAM become calls of the runtime (mram_bytes.c).
* A comparison of pointers to two memories compares the values of the pointers.
* An array of elements whose size is no multiple of their alignment, such as `t name[3];` with
  `typedef struct {...} t __attribute__((aligned(16)));`: the array keeps the alignment, and its
  elements get a type without it. As with the SDK's compiler, only the first element is aligned.
  Pointers to t get the type without alignment too, because they may point to any element.
  Everything else of type t stays.
* Bounds of global, static and initialised arrays, indices in initialisers, case labels, enumerators
  and widths of bit-fields may name `const` integer variables with constant values.
* An alignment of a parameter or a label has no effect.
* An `extern` declaration in a block may name the section of the variable; it has no effect there.
* The memory of a variable may stand behind its name: `int x[4] __mram;`.

repair() takes preprocessed C and the errors of gcc, as JSON without line markers, and returns the
changed C. What it does not recognise stays, so that gcc refuses it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from assembly import closing, split

_BYTES = re.compile(
    r"passing argument (\d) of .(mem(?:set|cpy|move)). from pointer to non-enclosed address space"
)
_COMPARISON = "comparison of pointers to disjoint address spaces"
_ARRAY = (
    "size of array element is not a multiple of its alignment|alignment of array elements is"
    " greater than element size"
)
_BOUND = "variably modified .+ at file scope|storage size of .+ isn.t constant"
_INITIALISED = "variable-sized object may not be initialized"
_CASE = "case label does not reduce to an integer constant"
_NAMED_CONSTANT = "enumerator value for .+ is not an integer|bit-field .+ width not an integer"
_INDEX = "nonconstant array index in initializer"
_ALIGNMENT = "alignment may not be specified for"
_LOCAL_SECTION = "section attribute cannot be specified for local variables"
_LATE_SPACE = "expected .+ before .__seg_gs."
KNOWN = re.compile(
    "|".join(
        (
            *(_BYTES.pattern, _COMPARISON, _ARRAY, _BOUND, _INITIALISED, _CASE),
            *(_NAMED_CONSTANT, _INDEX, _ALIGNMENT, _LOCAL_SECTION, _LATE_SPACE),
        )
    )
)

_ALIGNED_TYPE = re.compile(
    r"\}\s*(?P<name>\w+)\s*"
    r"(?P<attribute>__attribute__\s*\(\(\s*(?:__)?aligned(?:__)?\s*\(\s*\w+\s*\)\s*\)\))\s*;"
)
_LITERAL = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
# Also the line markers between them.
_QUALIFIERS = (
    r"(?:\s|#[^\n]*\n|\b(?:const|volatile|restrict|__restrict|__restrict__|__seg_gs)\b"
    r"|\b__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\))*"
)
_PACKED = re.compile(r"\b(?:__)?packed(?:__)?\b|#\s*pragma\s+pack\b|_Pragma")
_STATEMENT_END = re.compile(r"[;{}]")
# `lower`: operators that bind no tighter than a comparison.
_TOKEN = re.compile(
    r"""->|<<=?|>>=?|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\w+
    |(?P<lower>&&|\|\||[<>]=?|[=!]=|[-+*/%&|^]?=|[?:,;|^])|[()\[\]{}]|&""",
    re.VERBOSE,
)

_MARKER = re.compile(r"^[ \t]*#[ \t]*(?:line[ \t]+)?\d+[ \t]+\".*$", re.MULTILINE)


def without_markers(preprocessed: str) -> str:
    """Return the text with empty lines instead of line markers, so that gcc's positions are
    positions in the text.
    """
    return _MARKER.sub("", preprocessed)


class _Edits:
    """Replacements of ranges of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = [0, *(newline.end() for newline in re.finditer("\n", text))]
        self.changes: dict[tuple[int, int], str] = {}

    def offset(self, place: dict[str, Any]) -> int:
        """Return the position of gcc's line and column, which count bytes from 1."""
        start: int = self.lines[place["line"] - 1]
        line = self.text[start : self.text.find("\n", start)].encode(errors="surrogateescape")
        return start + len(
            line[: place.get("byte-column", place["column"]) - 1].decode(errors="surrogateescape")
        )

    def apply(self) -> str:
        """Return the changed text; of overlapping changes, the first."""
        parts, rest_start = [], 0
        for (begin, end), new in sorted(self.changes.items()):
            if begin >= rest_start:
                parts += [self.text[rest_start:begin], new]
                rest_start = end
        return "".join([*parts, self.text[rest_start:]])


def repair(preprocessed: str, errors: str) -> str:
    """Return the C with all places changed that the errors name. errors: gcc's JSON, for
    without_markers().
    """
    edits = _Edits(preprocessed)
    calls: dict[int, set[int]] = {}
    for error in json.loads(errors):
        message, places = error["message"], error["locations"]
        if not places:
            continue
        if argument := _BYTES.search(message):
            place = edits.offset(places[0]["caret"])
            starts = [
                call.start()
                for call in re.finditer(rf"\b(?:__builtin_)?{argument[2]}\s*\(", edits.text[:place])
            ]
            if starts:
                calls.setdefault(starts[-1], set()).add(int(argument[1]))
        elif _COMPARISON in message:
            for begin, end in _operands(edits.text, edits.offset(places[0]["caret"])):
                edits.changes[begin, end] = f"(unsigned)({edits.text[begin:end]})"
        elif re.search(_ARRAY, message):
            _unaligned_elements(edits)
        elif re.search(_BOUND, message):
            bounds = re.compile(r"[\w\s*]*(?:\[[^\[\]]*\]\s*)+")
            _fold(edits, bounds.match(edits.text, edits.offset(places[0]["caret"])))
        elif _INITIALISED in message:  # gcc names a place before the array
            arrays = re.compile(rf"{_LITERAL}|(?P<array>\w+\s*(?:\[[^\[\]]*\]\s*)+=\s*[{{\"])")
            for array in arrays.finditer(edits.text, edits.offset(places[0]["caret"])):
                if array["array"] and re.search(r"\[[^]]*[A-Za-z_]", array[0]):
                    _fold(edits, array)
        elif _CASE in message:
            case = re.compile(r"case\b[^:;{}]*")
            _fold(edits, case.match(edits.text, edits.offset(places[0]["caret"])))
        elif re.search(_NAMED_CONSTANT, message):
            constant = re.compile(r"\w+\s*[=:](?:[^,;{}()]|\([^;{}()]*\))*")
            _fold(edits, constant.match(edits.text, edits.offset(places[0]["caret"])))
        elif _INDEX in message:
            index = re.compile(r"[^][{};=]*")
            _fold(edits, index.match(edits.text, edits.offset(places[0]["caret"])))
        elif _ALIGNMENT in message:
            begin, end = _declaration(edits.text, edits.offset(places[0]["caret"]))
            _remove_attribute(edits, begin, end, "aligned")
        elif _LOCAL_SECTION in message:
            begin, end = _declaration(edits.text, edits.offset(places[0]["caret"]))
            if re.search(r"\bextern\b", edits.text[begin:end]):
                _remove_attribute(edits, begin, end, "section")
        elif re.search(_LATE_SPACE, message):
            _move_space(edits, edits.offset(places[0]["caret"]))
    for start, arguments in calls.items():
        opening = edits.text.index("(", start)
        end = closing(edits.text, opening + 1)
        name = edits.text[start:opening].strip().removeprefix("__builtin_")
        edits.changes[start, end + 1] = _call(name, edits.text[opening + 1 : end], arguments)
    return edits.apply()


def _call(name: str, arguments: str, in_mram: set[int]) -> str:
    """Return the call of the runtime: bit 0 of its first argument: argument 1 is in MRAM; bit 1:
    argument 2 is.
    """
    parts = [part.strip() for part in split(arguments, ",")]
    spaces = sum(1 << (number - 1) for number in in_mram)
    if name == "memset":
        act = (
            "extern void __pe_memset_mram(unsigned, int, unsigned); __pe_memset_mram(__pe_to,"
            f" {parts[1]}, {parts[2]});"
        )
    else:
        act = (
            "extern void __pe_memmove_mram(unsigned, unsigned, unsigned, unsigned); "
            f"__pe_memmove_mram({spaces}, __pe_to, (unsigned)({parts[1]}), {parts[2]});"
        )
    return (
        f"({{ unsigned __pe_to = (unsigned)({parts[0]}); {act} (typeof(({parts[0]}) +"
        " 0))__pe_to; })"
    )


def _operands(text: str, place: int) -> list[tuple[int, int]]:
    """Return the ranges of the two operands of the comparison operator at `place`."""
    operator = re.compile(r"[<>]=?|[=!]=").match(text, place)
    if operator is None:
        return []
    begin = max((end.end() for end in _STATEMENT_END.finditer(text, 0, place)), default=0)
    open_places: list[
        int
    ] = []  # positions after the innermost parentheses and lower operators before the comparison
    start = begin
    for token in _TOKEN.finditer(text, begin, place):
        if token[0] in ("(", "[", "{"):
            open_places.append(start)
            start = token.end()
        elif token[0] in (")", "]", "}"):
            start = open_places.pop() if open_places else token.end()
        elif token["lower"] or token[0] == "return" or _is_binary_and(text, token):
            start = token.end()
    depth, finish = 0, len(text)
    for token in _TOKEN.finditer(text, operator.end()):
        if token[0] in ("(", "[", "{"):
            depth += 1
        elif token[0] in (")", "]", "}"):
            depth -= 1
        if depth < 0 or (depth == 0 and (token["lower"] or _is_binary_and(text, token))):
            finish = token.start()
            break
    return [(start, place), (operator.end(), finish)]


def _is_binary_and(text: str, token: re.Match[str]) -> bool:
    before = text[: token.start()].rstrip()[-1:]
    return token[0] == "&" and (before.isalnum() or before in ("_", ")", "]"))


def _unaligned_elements(edits: _Edits) -> None:
    """Give arrays of over-aligned types, and pointers to these types, elements without alignment.

    gcc's places of these errors are inexact. A file with packed structures stays: an aligned member
    would change them.
    """
    types = [
        aligned
        for aligned in _ALIGNED_TYPE.finditer(edits.text)
        if _is_typedef(edits.text, aligned.start())
    ]
    if _PACKED.search(edits.text):
        return
    for aligned in types:
        name, attribute = aligned["name"], aligned["attribute"]
        plain = f"__pe_unaligned_{name}"
        if sum(other["name"] == name for other in types) > 1:
            continue
        edits.changes[aligned.start("name"), aligned.end()] = (
            f"{plain}; typedef {plain} {name} {attribute};"
        )
        names = "|".join(_aliases(edits.text, name))
        after = rf"(?={_QUALIFIERS}(?:(\w+\s*\[)|\*))"
        for use in re.compile(rf"{_LITERAL}|\b(?P<name>{names})\b{after}").finditer(
            edits.text, aligned.end()
        ):
            if use["name"] is None:
                continue
            before = re.sub(
                f"{_QUALIFIERS}$", "", edits.text[max(0, use.start() - 200) : use.start()]
            )
            if use[2] is None or before.endswith(","):
                edits.changes[use.span()] = plain
            elif before.endswith("("):  # a parameter is a pointer; a variable of a `for` stays
                if not re.search(r"\bfor\s*\($", before):
                    edits.changes[use.span()] = plain
            else:
                edits.changes[use.span()] = f"{attribute} {plain}"


def _is_typedef(text: str, end: int) -> bool:
    """Return whether the declaration with the closing brace at `end` is a typedef."""
    places, start = [0], 0
    for token in re.finditer(rf"{_LITERAL}|[{{}}]", text[: end + 1]):
        if token[0] == "{":
            places.append(token.start())
        elif token[0] == "}":
            start = places.pop() if len(places) > 1 else 0
    return re.search(r"\btypedef\b", _STATEMENT_END.split(text[:start])[-1]) is not None


def _aliases(text: str, name: str) -> list[str]:
    """Return the type's name and the names that typedefs give to the same type."""
    names = [name]
    for one in names:  # also the names that the loop adds
        for typedef in re.finditer(rf"\btypedef\b{_QUALIFIERS}\b{one}\b([^;{{}}]*);", text):
            parts = (
                re.fullmatch(rf"{_QUALIFIERS}(\w+)\s*", part) for part in split(typedef[1], ",")
            )
            names += [part[1] for part in parts if part is not None and part[1] not in names]
    return names


def _visible_declarations(text: str) -> list[str]:
    """Return the declarations that are visible at the end of the text, without what braces
    contain.
    """
    scopes: list[list[str]] = [[]]
    rest_start = 0
    for token in re.finditer(rf"{_LITERAL}|[{{}};]", text):
        if token[0] not in "{};":
            continue
        scopes[-1].append(text[rest_start : token.start()])
        rest_start = token.end()
        if token[0] == "{":
            scopes.append([])
        elif token[0] == "}" and len(scopes) > 1:
            scopes.pop()
    return [*(one for scope in scopes for one in scope), text[rest_start:]]


_CALL = re.compile(r"\b(?!sizeof\b|_Alignof\b|__builtin_)[A-Za-z_]\w*\s*\(")


def _fold(edits: _Edits, expression: re.Match[str] | None) -> None:
    """Replace constant variables by their values in the expression."""
    if expression is None:
        return
    begin, end = expression.span()
    folded = edits.text[begin:end]
    declarations = [
        one for one in _visible_declarations(without_markers(edits.text[:begin])) if "const" in one
    ]

    def value(word: re.Match[str]) -> str:
        for one in reversed(declarations):
            if declaration := re.search(rf"((?:\b\w+\s+)+){word[0]}\s*=\s*([^,]+)$", one):
                words = declaration[1].split()
                kind = [
                    word for word in words if word not in ("static", "const", "volatile", "extern")
                ]
                is_constant = "const" in words and not _CALL.search(declaration[2])
                return (
                    f"(({' '.join(kind)})({declaration[2].strip()}))"
                    if is_constant and kind
                    else word[0]
                )
        return word[0]

    for _ in range(8):  # a constant may name other constants
        new = re.sub(r"\b[A-Za-z_]\w*\b", value, folded)
        if new == folded:
            break
        folded = new
    edits.changes[begin, end] = folded


def _declaration(text: str, place: int) -> tuple[int, int]:
    """Return the range of the parameter around `place`, else of the declaration or label."""
    begin = max((end.end() for end in _STATEMENT_END.finditer(text, 0, place)), default=0)
    starts = [begin]
    for token in _TOKEN.finditer(text, begin, place):
        if token[0] in ("(", "[", "{"):
            starts.append(token.end())
        elif token[0] in (")", "]", "}") and len(starts) > 1:
            starts.pop()
        elif token[0] == "," and len(starts) > 1:
            starts[-1] = token.end()
    depth = 0
    for token in _TOKEN.finditer(text, starts[-1]):
        depth += (token[0] in ("(", "[")) - (token[0] in (")", "]"))
        is_end = token[0] in (";", "{") or (token[0] == "," and len(starts) > 1)
        if depth < 0 or (depth == 0 and is_end and token.start() >= place):
            return starts[-1], token.start()
    return starts[-1], len(text)


def _remove_attribute(edits: _Edits, begin: int, end: int, name: str) -> None:
    """Remove all attributes of this name from the range."""
    for attribute in re.compile(r"\b__attribute(?:__)?\s*\(\s*\(").finditer(edits.text, begin, end):
        finish = closing(edits.text, attribute.end())
        kept = [
            one
            for one in split(edits.text[attribute.end() : finish], ",")
            if one.partition("(")[0].strip().strip("_") != name
        ]
        edits.changes[attribute.end(), finish] = ",".join(kept)


def _move_space(edits: _Edits, place: int) -> None:
    """Move the __seg_gs at `place` before the name of the variable that it follows."""
    begin, _ = _declaration(edits.text, place)
    depth, name = 0, None
    for token in _TOKEN.finditer(edits.text, begin, place):
        depth += (token[0] in ("(", "[", "{")) - (token[0] in (")", "]", "}"))
        if depth == 0 and token[0].isidentifier() and token[0] != "__attribute__":
            name = token
    if name is not None and not re.match(r"\s*\(", edits.text[name.end() :]):
        edits.changes[name.start(), name.start()] = "__seg_gs "
        edits.changes[place, place + len("__seg_gs")] = ""
