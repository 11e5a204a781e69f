"""Put the MRAM variables of a C file into the order of the SDK's compiler.

Clang places a variable where it first meets it: functions and initial values come in the order of
the file, and static functions last. Variables that no function and no initial value names come in
the order of their declarations. In an assignment, the right side comes first. gcc uses the order of
declarations.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""^[ \t]*\#.*$ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | (?P<name>[A-Za-z_]\w*)
    | \d[\w.]* | -> | (?:<<|>>)=? | [=!<>+\-*/%&|^]= | (?P<sign>\S)
    """,
    re.VERBOSE | re.MULTILINE,
)
_UNEVALUATED = {"sizeof", "typeof", "__typeof__", "__typeof", "_Alignof", "__alignof__"}
_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
_SECTION = re.compile(r"\s*\.(?:section\s+([^\s,]+)|text|data|bss)\b")
_LABEL = re.compile(r"([A-Za-z_][\w.$]*):")


def _closing(tokens: list[str], start: int) -> int:
    """Return the index of the bracket that closes the one at `start`."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index] in "([{") - (tokens[index] in ")]}")
        if not depth:
            return index
    return len(tokens) - 1


def _plain(tokens: list[str]) -> list[str]:
    """Return the tokens without attributes, operands that are not evaluated, and names of
    members.
    """
    result: list[str] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        if token in (".", "->"):
            index += 1
        elif token in _UNEVALUATED or token in ("__attribute__", "__attribute"):
            if following == "(":
                index = _closing(tokens, index + 1)
            elif token in _UNEVALUATED:
                index += 1
        else:
            result.append(token)
        index += 1
    return result


def _items(tokens: list[str]) -> list[tuple[list[str], list[str]]]:
    """Return head and body of each declaration and function of the file.

    Only functions have a body.
    """
    items: list[tuple[list[str], list[str]]] = []
    start = index = 0
    while index < len(tokens):
        token = tokens[index]
        if token == ";":
            items.append((tokens[start:index], []))
            start = index + 1
        elif token in ("(", "[", "{"):
            end = _closing(tokens, index)
            head = _plain(tokens[start:index])
            if token == "{" and "=" not in head and (not head or head[-1] == ")"):
                items.append((tokens[start:index], tokens[index + 1 : end]))
                start = end + 1
            index = end
        index += 1
    return items


def _met(tokens: list[str]) -> list[str]:
    """Return the tokens of statements in the order in which Clang meets them."""
    result: list[str] = []
    sides: list[list[str]] = [[]]
    for token in [*_plain(tokens), ";"]:
        if token in (";", "{", "}", ","):
            for side in reversed(sides):
                result += side
            sides = [[]]
        elif token in _ASSIGNMENTS:
            sides.append([])
        else:
            sides[-1].append(token)
    return result


def order(preprocessed: str, variables: set[str]) -> list[str]:
    """Return the variables in Clang's order. Unknown ones are missing."""
    tokens = [
        token[0]
        for token in _TOKEN.finditer(preprocessed)
        if token["name"] or token[0][0] not in "#\"' \t"
    ]
    met: list[str] = []
    last: list[str] = []
    for head, body in _items(tokens):
        words = _plain(head)
        attributes = {word.strip("_") for word in head} - set(words)
        if body:
            late = "static" in words or ("inline" in words and "extern" not in words)
            if not late or attributes & {"used", "constructor"}:
                met += _met(body)
        elif "=" in words:
            if "static" not in words or "used" in attributes:
                met += _met(words)
        elif "extern" not in words and "typedef" not in words:
            last += words
    return list(dict.fromkeys(name for name in [*met, *last] if name in variables))


def arrange(assembly: str, preprocessed: str) -> str:
    """Return gcc's assembly with the MRAM variables of each section in Clang's order."""
    lines = assembly.split("\n")
    rest: list[str] = []
    chunks: list[tuple[str, str, list[str]]] = []  # section, variable, lines
    section = ""
    directives: dict[str, str] = {}
    pending: list[str] = []  # .globl precedes the section
    for line in lines:
        section_directive = _SECTION.match(line)
        if section_directive:
            section = section_directive[1] or ""
            if section.startswith(".mram"):
                directives.setdefault(section, line)
                continue
        if line.startswith(("\t.globl", "\t.local", "\t.weak", "\t.hidden")):
            pending.append(line)
            continue
        if not section.startswith(".mram") or section_directive:
            rest += [*pending, line]
            pending = []
            continue
        if line.startswith("\t.align") or not chunks or chunks[-1][0] != section:
            chunks.append((section, "", []))
        chunks[-1][2].extend([*pending, line])
        pending = []
        label = _LABEL.match(line)
        if label and not chunks[-1][1]:
            chunks[-1] = (section, label[1], chunks[-1][2])
    names = {name.partition(".")[0]: name for _, name, _ in chunks}
    if len(names) < 2:
        return assembly
    places = {name: place for place, name in enumerate(order(preprocessed, set(names)))}
    chunks.sort(key=lambda chunk: places.get(chunk[1].partition(".")[0], len(places)))
    added: list[str] = []
    for current, directive in directives.items():
        added.append(directive)
        added += [line for name, _, text in chunks if name == current for line in text]
    return "\n".join([*rest, *pending, *added, "\t.text", ""])
