"""Every public name is documented, with its parameters, shapes, units and errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pidcomm
import pytest
import reference
from documents import ROOT

CONSTANTS, FUNCTIONS, CLASSES = reference.python_names()
UNITS = r"bytes|itemsize|PEs?\b|elements|threads|seconds|index|coordinates|length|ranks|numbers?|count"
ARRAY = r"Array(Like|Input|Output)?\b|NDArray"
SIZE = r"^(bytes|count|offset|src|dst|base_offset|bytes_\w+|\w+_bytes|pes|ranks|pe|tasklets)$"


def functions() -> Iterator[tuple[str, Callable[..., Any], type | None]]:
    """Return every public function and method, with its class."""
    yield from ((function.__name__, function, None) for function in FUNCTIONS)
    for cls in CLASSES:
        for member in reference.members_of(cls):
            if member.kind == "method":
                yield f"{cls.__name__}.{member.name}", member.value, cls


def text_for(function: Callable[..., Any], cls: type | None) -> str:
    """Return the documentation of a function and of its class."""
    return f"{inspect.getdoc(function) or ''}\n{(inspect.getdoc(cls) or '') if cls else ''}"


def text_about(name: str, function: Callable[..., Any], cls: type | None) -> str:
    """Return the text that explains a parameter: the function's, or the class's if it declares it for all methods."""
    own, common = inspect.getdoc(function) or "", (inspect.getdoc(cls) or "") if cls else ""
    return f"{own}\n{common}" if re.search(rf"``\*{{0,2}}{name}(=\w*)?``", common) else own


EVERY_FUNCTION = pytest.mark.parametrize(
    ("function", "cls"), [pytest.param(function, cls, id=name) for name, function, cls in functions()]
)


def test_the_lists_are_not_empty() -> None:
    assert {"allocate", "Hypercube.alltoall", "ArrayCollectives.reduce", "Symbol.read"} <= {
        n for n, _, _ in functions()
    }
    assert {constant.name for constant in CONSTANTS} >= {"COLLECTIVES", "MRAM_BYTES", "__version__"}


@pytest.mark.parametrize("constant", CONSTANTS, ids=[constant.name for constant in CONSTANTS])
def test_every_constant_has_a_sentence(constant: reference.Constant) -> None:
    assert constant.text.endswith(".")


@pytest.mark.parametrize("cls", CLASSES, ids=[cls.__name__ for cls in CLASSES])
def test_every_class_and_its_properties_and_fields_are_documented(cls: type) -> None:
    own = inspect.getdoc(cls) or ""
    assert own
    for member in reference.members_of(cls):
        if member.kind == "field":
            assert member.text or re.search(rf"\b{member.name}\b", own), f"{cls.__name__}.{member.name}"
        else:
            assert member.text, f"{cls.__name__}.{member.name}"


@EVERY_FUNCTION
def test_every_function_mentions_its_parameters(function: Callable[..., Any], cls: type | None) -> None:
    assert inspect.getdoc(function)
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    assert not [name for name in names if not re.search(rf"\b{name}\b", text_about(name, function, cls))]


@EVERY_FUNCTION
def test_every_function_says_more_than_its_name(function: Callable[..., Any], cls: type | None) -> None:
    own = inspect.getdoc(function) or ""
    words = set(re.findall(r"[a-z]+", own.lower())) - set(re.findall(r"[a-z]+", function.__name__.lower()))
    assert len(words) >= 5, own


@EVERY_FUNCTION
def test_arrays_have_shapes_and_sizes_have_units(function: Callable[..., Any], cls: type | None) -> None:
    for name, parameter in inspect.signature(function).parameters.items():
        text = text_about(name, function, cls)
        if re.search(ARRAY, str(parameter.annotation)):
            assert re.search(r"shape|row|\(pes, n\)", text), name
        if "DTypeLike" in str(parameter.annotation):
            assert "dtype" in text, name
        if re.match(SIZE, name):
            assert re.search(UNITS, text), name


@EVERY_FUNCTION
def test_functions_that_raise_say_so(function: Callable[..., Any], cls: type | None) -> None:
    source = inspect.getsource(function)
    source = source[source.index('"""', source.index('"""') + 3) :]
    if re.search(r"\braise \w|_core\.\w+\(|as_\w+\(|row_of\(|carry_out\(|_round_trip\(|_to_host\(", source):
        assert re.search(r"[Rr]aises?\b", text_for(function, cls))


def test_names_from_the_paper_name_their_source() -> None:
    words = re.compile(r"PID-Comm|paper")
    for name in ("Hypercube", "ArrayCollectives", "Options"):
        assert words.search(inspect.getdoc(next(cls for cls in CLASSES if cls.__name__ == name)) or ""), name
    assert words.search(next(constant.text for constant in CONSTANTS if constant.name == "TECHNIQUES"))


# ---- the reference pages, made from the sources


def test_the_page_about_c_has_every_function_that_the_library_exports() -> None:
    page = reference.c_page()
    header = reference.with_collectives((reference.HEADERS / "pidcomm.h").read_text())
    header += (reference.HEADERS / "model.h").read_text()
    declared = re.findall(r"^PIDCOMM_API [^;]*?(\w+)\(", header, re.M)
    assert {"pidcomm_run", "pidcomm_alltoall", "pidcomm_predict"} <= set(declared)
    headings = re.findall(r"^### (.*)$", page, re.M)
    assert not set(declared) - {name for heading in headings for name in heading.split(", ")}
    assert "| `PIDCOMM_ERR_SIZE` | 3 |" in page
    assert "| `PIDCOMM_TECHNIQUE_PR_IM` | 4 | pr+im | paper | PR, IM | all | yes | yes |" in page
    assert "| `PIDCOMM_TECHNIQUE_RING` | 6 | ring | ring | PR, IM, CM | allreduce | yes | no |" in page


@pytest.mark.parametrize("table", ["COLLECTIVES", "TYPES", "OPS", "TECHNIQUES"])
def test_the_document_about_collectives_names_every_row(table: str) -> None:
    text = (ROOT / "docs/collectives.md").read_text()
    assert not [
        name for name in getattr(pidcomm, table) if not re.search(rf"(?<![\w+]){re.escape(name)}(?![\w+])", text)
    ]


def test_every_declaration_of_the_headers_has_a_comment() -> None:
    for header in ("include/pidcomm/pidcomm.h", "emulator/include/dpuemu.h"):
        items = reference.items_of((ROOT / header).read_text())
        bare = [item.names for item in items if not item.comment and "VERSION_MAJOR" not in item.code]
        assert not bare


def test_the_page_about_cpp_has_declarations_without_bodies() -> None:
    page = reference.cpp_page()
    assert "  pidcomm_trace run(const pidcomm_request &request, const pidcomm_options &options = {});\n" in page
    assert "  int status() const noexcept;\n" in page
    assert not re.search(r"^\s*return\b", page, re.MULTILINE)
    assert "manager_" not in page


def test_the_page_about_python_has_every_public_name() -> None:
    page = reference.python_page()
    for name in [name for name, _, _ in functions()] + [cls.__name__ for cls in CLASSES]:
        assert re.search(rf"^##+ {re.escape(name)}$", page, re.M), name
    assert "    dtype: DTypeLike = np.uint8,\n" in page


def test_the_page_about_the_command_line_has_every_command_and_option() -> None:
    page = reference.command_line_page()
    for words in ("## pidcomm bench", "--sweep", "## pidcomm config", "Exit codes"):
        assert words in page
