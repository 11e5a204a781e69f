"""Rewrite C that the SDK's compiler accepts and gcc refuses, at the places that gcc names.

* memset, memcpy and memmove with pointers to MRAM become calls of the runtime (mram_bytes.c).
* A comparison of pointers to two memories compares the values of the pointers.
* An array of elements whose size is no multiple of their alignment, such as `t name[3];` with
  `typedef struct {...} t __attribute__((aligned(16)));`: the array keeps the alignment, and its
  elements get a type without it. As with the SDK's compiler, only the first element is aligned.
  Pointers to t get the type without alignment too, because they may point to any element.
  Everything else of type t stays.
* The bound of a global array may be a global `const` integer variable with a constant value.

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
_BOUND = re.compile(r"variably modified .(\w+). at file scope")
KNOWN = re.compile("|".join((_BYTES.pattern, _COMPARISON, _ARRAY, _BOUND.pattern)))

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
        elif _BOUND.search(message):
            _constant_bound(edits, edits.offset(places[0]["caret"]))
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


def _global_declarations(text: str) -> list[str]:
    """Return the declarations outside braces, without what braces contain."""
    parts, depth, rest_start = [], 0, 0
    for token in re.finditer(rf"{_LITERAL}|[{{}}]", text):
        if token[0] == "{":
            if depth == 0:
                parts.append(text[rest_start : token.start()])
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                parts.append(";")
                rest_start = token.end()
    if depth == 0:
        parts.append(text[rest_start:])
    return "".join(parts).split(";")


def _constant_bound(edits: _Edits, place: int) -> None:
    """Replace global constants by their values in the bounds of the array that is declared at
    `place`.
    """
    declaration = re.compile(r"[\w\s*]*((?:\[[^\[\]]*\]\s*)+)").match(edits.text, place)
    if declaration is None:
        return
    begin, end = declaration.span(1)
    bounds = edits.text[begin:end]
    declarations = [
        one for one in _global_declarations(without_markers(edits.text[:place])) if "const" in one
    ]

    def value(word: re.Match[str]) -> str:
        for one in reversed(declarations):
            if declaration := re.search(rf"((?:\b\w+\s+)+){word[0]}\s*=\s*([^,]+)$", one):
                words = declaration[1].split()
                kind = [
                    word for word in words if word not in ("static", "const", "volatile", "extern")
                ]
                return (
                    f"(({' '.join(kind)})({declaration[2].strip()}))"
                    if "const" in words and kind
                    else word[0]
                )
        return word[0]

    for _ in range(8):  # a constant may name other constants
        new = re.sub(r"\b[A-Za-z_]\w*\b", value, bounds)
        if new == bounds:
            break
        bounds = new
    edits.changes[begin, end] = bounds
