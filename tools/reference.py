"""Makes the pages of the reference from the sources: Python, C, C++, the emulator's header and the command line."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pidcomm
import typer
from documents import ROOT, slug_of
from pidcomm.cli import app

HEADERS = ROOT / "include/pidcomm"
PACKAGE = ROOT / "python/pidcomm"
ROWS = "pidcomm._rows"
WIDTH = 100
STEPS = {1: "PR", 2: "IM", 4: "CM"}  # as PIDCOMM_STEP_* of tables.h

# ---- Python


class Constant(NamedTuple):
    """A public name that is neither class nor function, and what the string after its assignment says."""

    name: str
    value: Any
    text: str


def attribute_texts(source: str) -> dict[str, str]:
    """Return the strings that follow assignments in a module or a class, by `name` or `Class.name`."""
    found: dict[str, str] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{node.name}.")
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(after, ast.Expr):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and isinstance(after.value, ast.Constant):
                found[prefix + target.id] = inspect.cleandoc(str(after.value.value))

    visit(ast.parse(source).body, "")
    return found


def python_names() -> tuple[list[Constant], list[Callable[..., Any]], list[type]]:
    """Return the public constants, functions and classes of the package."""
    texts: dict[str, str] = {}
    for name in ("_core.pyi", "tables.py", "__init__.py"):
        texts |= attribute_texts((PACKAGE / name).read_text())
    values = {name: getattr(pidcomm, name) for name in pidcomm.__all__}
    classes = [value for value in values.values() if inspect.isclass(value)]
    functions: list[Callable[..., Any]] = [value for value in values.values() if inspect.isfunction(value)]
    constants = [
        Constant(name, value, texts.get(name, ""))
        for name, value in values.items()
        if not inspect.isclass(value) and not inspect.isfunction(value)
    ]
    return constants, functions, classes


class Member(NamedTuple):
    """A public attribute of a class: its kind is `method`, `property` or `field`."""

    name: str
    kind: str
    value: Any
    text: str


def members_of(cls: type) -> list[Member]:
    """Return the public attributes that a class of the package defines, in the order of its source.

    Those of its base that has the rows of tables.h come first.
    """
    return [
        member
        for part in reversed(cls.__mro__)
        if part is cls or part.__module__ == ROWS
        for member in members_in(part)
    ]


def members_in(cls: type) -> list[Member]:
    """Return the public attributes in the source of a class."""
    texts = attribute_texts(inspect.getsource(cls))
    annotations = inspect.get_annotations(cls)
    fields = [name for name in annotations if not name.startswith("_")]
    found = [Member(name, "field", annotations[name], texts.get(f"{cls.__name__}.{name}", "")) for name in fields]
    for name, value in vars(cls).items():
        if name.startswith("_") or name in fields:
            continue
        if isinstance(value, property):
            found.append(Member(name, "property", value.fget, inspect.getdoc(value) or ""))
        elif inspect.isfunction(value):
            found.append(Member(name, "method", value, inspect.getdoc(value) or ""))
    return found


def signature_of(name: str, function: Callable[..., Any]) -> str:
    """Return a function's head, without `self`, on one line or one parameter a line."""
    signature = inspect.signature(function)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        kind = str(parameter.annotation).replace("Unpack[Options]", "Options")
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" * (parameter.kind is parameter.VAR_KEYWORD)
        text = f"{stars}{parameter.name}: {kind}"
        if parameter.default is not parameter.empty:
            default = parameter.default
            text += f" = np.{default.__name__}" if inspect.isclass(default) else f" = {default!r}"
        parts.append(text)
    result = f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(parts)}){result}"
    return line if len(line) <= WIDTH else f"{name}(\n    " + ",\n    ".join(parts) + f",\n){result}"


def python_page() -> str:
    """Return the page about the Python package."""
    constants, functions, classes = python_names()
    anchors = {function.__name__ for function in functions} | {cls.__name__ for cls in classes}
    anchors |= {f"{cls.__name__}.{m.name}" for cls in classes for m in members_of(cls) if m.kind != "field"}

    def linked(text: str, inside: str = "") -> str:
        def link(match: re.Match[str]) -> str:
            name = match[1].removeprefix("pidcomm.")
            for candidate in (f"{inside}.{name}", name):
                if candidate in anchors:
                    return f"[`{match[1]}`](#{slug_of(candidate)})"
            return match[0]

        return re.sub(r"(?<!`)`([A-Za-z_][\w.]*)`(?!`)", link, text)

    lines = ["# Python", "", "```python", *(inspect.getdoc(pidcomm) or "").split("\n")[2:], "```", ""]
    lines += ["`import pidcomm`; everything here is an attribute of it.", "", "## Functions", ""]
    for function in functions:
        lines += _entry("###", function.__name__, function, linked(inspect.getdoc(function) or ""))
    for cls in classes:
        lines += [f"## {cls.__name__}", "", linked(inspect.getdoc(cls) or "", cls.__name__), ""]
        fields = [member for member in members_of(cls) if member.kind == "field"]
        if fields:
            rows = [(f"`{m.name}`", f"`{m.value}`", linked(m.text, cls.__name__)) for m in fields]
            lines += _table(("field", "type", ""), rows)
        for member in members_of(cls):
            name = f"{cls.__name__}.{member.name}"
            if member.kind == "property":
                result = inspect.signature(member.value).return_annotation
                lines += [f"### {name}", "", "```python", f"{member.name}: {result}", "```", ""]
                lines += [linked(member.text, cls.__name__), ""]
            elif member.kind == "method":
                lines += _entry("###", name, member.value, linked(member.text, cls.__name__))
    lines += ["## Constants", ""]
    for constant in constants:
        shown = ", ".join(f"`{key}`" for key in constant.value) if isinstance(constant.value, dict) else ""
        lines += [f"### {constant.name}", "", constant.text, "", shown, ""]
    return "\n".join(lines) + "\n"


def _entry(level: str, name: str, function: Callable[..., Any], text: str) -> list[str]:
    return [f"{level} {name}", "", "```python", signature_of(name.split(".")[-1], function), "```", "", text, ""]


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    cells = [head, tuple("---" for _ in head), *rows]
    return ["| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |" for row in cells] + [
        ""
    ]


# ---- C and C++


class Item(NamedTuple):
    """What stands together in a header, between empty lines: a comment, and the declarations below it."""

    comment: str
    code: str

    @property
    def names(self) -> list[str]:
        """What it declares: functions, macros, types."""
        found = re.findall(r"^(?:PIDCOMM_API )?[\w ]+?[ *](\w+)\(", self.code, re.M)
        found += re.findall(r"^#define (\w+)", self.code, re.M)
        found += re.findall(r"^} (\w+);", self.code, re.M)
        found += re.findall(r"^typedef (?:struct|enum) \w+ (?:\{.*\} )?(\w+);", self.code, re.M)
        return found


def items_of(header: str) -> list[Item]:
    """Return the items of a header that declare something."""
    found = []
    for chunk in re.split(r"\n\s*\n", re.sub(r"(?s)^.*?#(?:ifndef|pragma once)", "#ifndef", header, count=1)):
        if match := re.match(r"\s*(/\*(?s:.*?)\*/|(?:[ ]*///(?!<).*\n)+)\s*", chunk):
            found.append(Item(comment_text(match[1]), chunk[match.end() :].rstrip()))
        else:
            found.append(Item("", chunk.rstrip()))
    return [
        item
        for item in found
        if item.names
        and "PIDCOMM_ROW" not in item.code
        and not {"PIDCOMM_API", "PIDCOMM_PIDCOMM_H", "DPUEMU_H"} & set(item.names)
    ]


def comment_text(comment: str) -> str:
    """Return a comment's words, with their line breaks."""
    lines = [re.sub(r"^\s*(?:/\*|///|\*/|\*)? ?", "", line) for line in comment.strip().split("\n")]
    return "\n".join(lines).removesuffix("*/").rstrip()


def head_comment(header: str) -> str:
    """Return the comment at the top of a header."""
    match = re.match(r"(/\*(?s:.*?)\*/|(?:///.*\n)+)", header)
    return comment_text(match[1]) if match else ""


def as_markdown(text: str) -> str:
    """Return a comment as paragraphs of Markdown that shows it as it is, but for names in backticks."""
    outside = r"(?=[^`]*(?:`[^`]*`[^`]*)*$)"  # of backticks
    text = re.sub(r"([*_\[\]])" + outside, r"\\\1", text)
    text = re.sub(r"<" + outside, "&lt;", text)
    return re.sub(r"\s+(?=Errors(?:, all found before any byte moves)?:)", "\n\n", text)


# Sections of pidcomm.h: an item belongs to the first one that matches the name of its first declaration.
C_SECTIONS = [
    ("Version, errors and names", r"version|VERSION|last_error|_name$|isa_available"),
    ("Any collective as a value, plans and limits", r"_(run|trace|request|options|plan_json|stream_limit)$"),
    ("Rows of all PEs", r"_(write|read)$"),
    ("The collectives", "|".join(f"_{name}$" for name in pidcomm.COLLECTIVES)),
    ("Hypercubes and PEs", r"."),
]


def with_collectives(header: str) -> str:
    """Return pidcomm.h with the declarations that PIDCOMM_COLLECTIVES makes."""
    parameters = dict(re.findall(r"#define PIDCOMM_PARAMETERS_(\d+) (.*)", header))
    rows = re.findall(r"X\([A-Z_]+, \d+, ([a-z_]+), (\d), (\d), (\d), .*\"", (HEADERS / "tables.h").read_text())
    calls = [f"PIDCOMM_API int pidcomm_{name}(pidcomm_hypercube *cube, {parameters[''.join(n)]});" for name, *n in rows]
    return re.sub(r"(?s)#define PIDCOMM_PARAMETERS_.*?#undef PIDCOMM_ROW", "\n".join(calls), header, count=1)


def c_page() -> str:
    """Return the page about pidcomm.h and tables.h."""
    header = with_collectives((HEADERS / "pidcomm.h").read_text())
    lines = ["# C", "", "`#include <pidcomm/pidcomm.h>`", "", "```text", head_comment(header), "```", ""]
    items = items_of(header)
    taken: set[Item] = set()
    sections = {}
    for title, pattern in C_SECTIONS:
        sections[title] = [item for item in items if item not in taken and re.search(pattern, item.names[0])]
        taken |= set(sections[title])
    order = ["Hypercubes and PEs", "Rows of all PEs", "The collectives"]
    for title in [*order, *(title for title, _ in C_SECTIONS if title not in order)]:
        lines += [f"## {title}", ""]
        for item in sections[title]:
            lines += _c_item(item)
    model = (HEADERS / "model.h").read_text()
    lines += ["## Predictions", "", "`#include <pidcomm/model.h>`", "", "```text", head_comment(model), "```", ""]
    for item in items_of(model):
        if item.code.startswith("PIDCOMM_API"):
            lines += _c_item(item)
    lines += ["## Codes and names", ""]
    for name, comment, rows in tables():
        lines += [f"### {name}", "", as_markdown(comment), "", *rows]
    return "\n".join(lines) + "\n"


def _c_item(item: Item) -> list[str]:
    names = [name for name in item.names if not name.startswith("_")]
    return [f"### {', '.join(names)}", "", as_markdown(item.comment), "", "```c", item.code, "```", ""]


def tables() -> Iterator[tuple[str, str, list[str]]]:
    """Return the tables of tables.h, each as the name of its type, its comment, and lines of Markdown."""
    types = {}
    prefix = ""
    for found in re.finditer(
        r"#define PIDCOMM_ROW\(.*?\) (\w+?)##ENUM|^typedef (enum|struct) \w+ \{[^}]*?(\w+)\(PIDCOMM_ROW\)\s*\} (\w+);",
        (HEADERS / "pidcomm.h").read_text(),
        re.MULTILINE,
    ):
        prefix = found[1] or prefix
        if found[2]:
            types[found[3]] = (found[4], prefix if found[2] == "enum" else "")
    text = (HEADERS / "tables.h").read_text()
    collectives = re.findall(r'X\([A-Z_]+, (\d+), ([a-z_]+)(?:, \d){6}, "', text)
    for comment, name, body in re.findall(
        r"/\*((?:(?!\*/).)*)\*/\s*#define (\w+)\(X\)(.*?[^\\])\n(?!\s*X\()", text, re.S
    ):
        words = comment_text(f"/*{comment}*/")
        columns = split_outside(words[words.index("X(") + 2 :])
        rest = words[words.index("X(") + 2 + len(", ".join(columns)) + 1 :].lstrip(". :")
        type_name, prefix = types[name]
        rows = []
        for row in re.findall(r"X\((.*?)\)\s*(?:\\|$)", body, re.M):
            cells = [cell.strip('"') for cell in split_outside(row + ")")]
            for n, column in enumerate(columns):
                if column.startswith("steps of the paper"):
                    cells[n] = ", ".join(step for bit, step in STEPS.items() if int(cells[n]) & bit)
                elif column == "collectives that it is for":
                    codes = [bit.strip() for bit in cells[n].split("|")]
                    chosen = [collective for code, collective in collectives if f"1 << {code}" in codes]
                    cells[n] = "all" if cells[n] == "PIDCOMM_ALL_COLLECTIVES" else ", ".join(chosen)
                elif column.startswith(("takes", "input", "output", "needs", "runs", "is one")):
                    cells[n] = "yes" if cells[n] == "1" else "no"
            rows.append((f"`{prefix}{cells[0]}`", *cells[1:]))
        yield (
            type_name,
            rest[:1].upper() + rest[1:],
            _table(("name in C" if prefix else columns[0], *columns[1:]), rows),
        )


def split_outside(text: str) -> list[str]:
    """Return the parts of a list in parentheses, split at its commas but not at those in parentheses or strings."""
    parts, depth, quoted, part = [], 0, False, ""
    for character in " ".join(text.split()):
        quoted ^= character == '"'
        if not quoted and character == "(":
            depth += 1
        if not quoted and character == ")":
            if depth == 0:
                break
            depth -= 1
        if character == "," and depth == 0 and not quoted:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    return [*parts, part.strip()]


def dpuemu_page() -> str:
    """Return the page about dpuemu.h."""
    header = (ROOT / "emulator/include/dpuemu.h").read_text()
    lines = ["# dpuemu.h", "", as_markdown(head_comment(header)), ""]
    for item in items_of(header):
        lines += _c_item(item)
    return "\n".join(lines) + "\n"


def cpp_page() -> str:
    """Return the page about pidcomm.hpp: its classes and functions without their bodies."""
    header = (HEADERS / "pidcomm.hpp").read_text()
    lines = [
        "# C++",
        "",
        "`#include <pidcomm/pidcomm.hpp>`, namespace `pidcomm`.",
        "",
        as_markdown(head_comment(header)),
        "",
    ]
    inside = header[header.index("namespace pidcomm {") :]
    pattern = r"^((?:///.*\n)+)((?:class|struct) (\w+)[^{;]*\{\n(?s:.*?)\n\};|inline [^{]*?(\w+)\([^{]*\{(?s:.*?)\n\})"
    for comment, code, class_name, function_name in re.findall(pattern, inside, re.M):
        lines += [f"## {class_name or function_name}", "", as_markdown(comment_text(comment)), ""]
        lines += ["```cpp", _without_bodies(code), "```", ""]
    return "\n".join(lines) + "\n"


def _without_bodies(code: str) -> str:
    """Return a class without its private part and the bodies of its functions, or a function without its body."""
    if code.startswith("inline"):
        return code[: code.index("{")].rstrip() + ";"
    head, _, body = code.partition("{\n")
    body = re.sub(r"\n private:\n.*", "\n", body, flags=re.S).removesuffix("};")
    kept, depth = "", 0
    for part in re.split(r"((?<=[\w)]) \{|\{\}|[{}])", body):
        if part in (" {", "{") and (depth or part == " {"):
            kept += ";" if depth == 0 else ""
            depth += 1
        elif part == "}" and depth:
            depth -= 1
        elif depth == 0:
            kept += part
    kept = re.sub(r"\)\s*: [^;\n]*;", ");", kept)
    return f"{head}{{\n{kept.rstrip()}\n}};"


# ---- the command line


def command_line_page() -> str:
    """Return the page about the command line: what --help prints."""
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="pidcomm", terminal_width=WIDTH, max_content_width=WIDTH)
    lines = ["# Options of the command line", "", "What `pidcomm --help` and `pidcomm COMMAND --help` print.", ""]
    lines += ["## pidcomm", "", "```text", command.get_help(context), "```", ""]
    for name in command.list_commands(context):  # type: ignore[attr-defined]
        part = command.get_command(context, name)  # type: ignore[attr-defined]
        inner = typer.Context(part, info_name=name, parent=context, terminal_width=WIDTH, max_content_width=WIDTH)
        lines += [f"## pidcomm {name}", "", "```text", part.get_help(inner), "```", ""]
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "command-line": command_line_page,
    "python": python_page,
    "c": c_page,
    "cpp": cpp_page,
    "dpuemu": dpuemu_page,
}
