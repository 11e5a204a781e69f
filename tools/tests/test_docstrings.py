"""Every public name is documented, with its parameters, shapes, units and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import griffe
import pytest
from documents import ROOT

import pidcomm

PACKAGE = griffe.load("pidcomm", resolve_aliases=True, allow_inspection=False)
PUBLIC = [PACKAGE[name] for name in pidcomm.__all__]
CLASSES = [member for member in PUBLIC if member.is_class]
CONSTANTS = [member for member in PUBLIC if member.is_attribute]
UNITS = (
    r"bytes|itemsize|PEs?\b|elements|threads|seconds|index|coordinates|length|ranks|numbers?|count"
)
ARRAY = r"Array(Like|Input|Output)?\b|NDArray"
SIZE = r"^(bytes|count|offset|src|dst|base_offset|bytes_\w+|\w+_bytes|pes|ranks|pe|tasklets)$"


def members_of(cls: griffe.Class) -> list[Any]:
    """Return the public members of a class, also those that it inherits from the rows of
    tables.h.
    """
    return [member for member in cls.all_members.values() if not member.name.startswith("_")]


def functions() -> Iterator[tuple[Any, Any]]:
    """Return every public function and method, with its class."""
    yield from ((function, None) for function in PUBLIC if function.is_function)
    yield from (
        (function, cls) for cls in CLASSES for function in members_of(cls) if function.is_function
    )


def doc(documented: griffe.Object | None) -> str:
    """Return a docstring."""
    return documented.docstring.value if documented and documented.docstring else ""


def parameters(function: griffe.Function) -> list[griffe.Parameter]:
    """Return the parameters that a caller gives."""
    return [parameter for parameter in function.parameters if parameter.name != "self"]


def text_about(
    parameter: griffe.Parameter, function: griffe.Function, cls: griffe.Object | None
) -> str:
    """Return where a parameter is explained: at the function, unless its class declares it for
    all methods.
    """
    common = doc(cls)
    is_common = re.search(rf"``\*{{0,2}}{parameter.name}(=\w*)?``", common)
    return f"{doc(function)}\n{common}" if is_common else doc(function)


EVERY_FUNCTION = pytest.mark.parametrize(
    ("function", "cls"),
    [
        pytest.param(function, cls, id=f"{cls.name}.{function.name}" if cls else function.name)
        for function, cls in functions()
    ],
)


def test_the_lists_are_not_empty() -> None:
    names = {
        f"{cls.name}.{function.name}" if cls else function.name for function, cls in functions()
    }
    assert {"allocate", "Hypercube.alltoall", "ArrayCollectives.reduce", "Symbol.read"} <= names
    assert {constant.name for constant in CONSTANTS} >= {"COLLECTIVES", "MRAM_BYTES", "__version__"}


@pytest.mark.parametrize("constant", CONSTANTS, ids=[constant.name for constant in CONSTANTS])
def test_every_constant_has_a_sentence(constant: griffe.Object) -> None:
    assert doc(constant).endswith(".")


@pytest.mark.parametrize("cls", CLASSES, ids=[cls.name for cls in CLASSES])
def test_every_class_and_its_properties_and_fields_are_documented(cls: griffe.Class) -> None:
    assert doc(cls)
    text = "\n".join(doc(base) for base in (cls, *cls.mro()))
    for member in members_of(cls):
        assert doc(member) or re.search(rf"\b{member.name}\b", text), member.path


@EVERY_FUNCTION
def test_every_function_mentions_its_parameters(
    function: griffe.Function, cls: griffe.Object | None
) -> None:
    assert doc(function)
    assert not [
        parameter.name
        for parameter in parameters(function)
        if not re.search(rf"\b{parameter.name}\b", text_about(parameter, function, cls))
    ]


@EVERY_FUNCTION
def test_every_function_says_more_than_its_name(
    function: griffe.Function, cls: griffe.Object | None
) -> None:
    words = set(re.findall(r"[a-z]+", doc(function).lower())) - set(
        re.findall(r"[a-z]+", function.name.lower())
    )
    assert len(words) >= 5, doc(function)


@EVERY_FUNCTION
def test_arrays_have_shapes_and_sizes_have_units(
    function: griffe.Function, cls: griffe.Object | None
) -> None:
    for parameter in parameters(function):
        text = text_about(parameter, function, cls)
        if re.search(ARRAY, str(parameter.annotation)):
            assert re.search(r"shape|row|\(pes, n\)", text), parameter.name
        if "DTypeLike" in str(parameter.annotation):
            assert "dtype" in text, parameter.name
        if re.match(SIZE, parameter.name):
            assert re.search(UNITS, text), parameter.name


@EVERY_FUNCTION
def test_functions_that_raise_say_so(function: griffe.Function, cls: griffe.Object | None) -> None:
    source = function.source.split('"""')[2]
    if re.search(
        r"\braise \w|_core\.\w+\(|as_\w+\(|row_of\(|carry_out\(|_round_trip\(|_to_host\(", source
    ):
        assert re.search(r"[Rr]aises?\b", doc(function) + doc(cls))


def test_names_from_the_paper_name_their_source() -> None:
    for name in ("Hypercube", "ArrayCollectives", "Options", "TECHNIQUES"):
        assert re.search("PID-Comm|paper", doc(PACKAGE[name])), name


@pytest.mark.parametrize("table", ["COLLECTIVES", "TYPES", "OPS", "TECHNIQUES"])
def test_the_document_about_collectives_names_every_row(table: str) -> None:
    text = (ROOT / "pidcomm/docs/collectives.md").read_text()
    assert not [
        name
        for name in getattr(pidcomm, table)
        if not re.search(rf"(?<![\w+]){re.escape(name)}(?![\w+])", text)
    ]


def test_every_declaration_of_the_headers_has_a_comment() -> None:
    for header in (
        "pidcomm/include/pidcomm/pidcomm.h",
        "pidcomm/include/pidcomm/model.h",
        "dpuemu/include/dpuemu.h",
    ):
        lines = (ROOT / header).read_text().splitlines()
        paragraphs = [
            "\n".join(part)
            for is_empty, part in groupby(lines, lambda line: not line)
            if not is_empty
        ]
        declared = [
            paragraph
            for paragraph in paragraphs
            if re.search(r"^(PIDCOMM_API|dpu_error_t|uint64_t) .*\(\w", paragraph, re.M)
        ]
        assert len(declared) >= 3
        assert not [
            paragraph
            for paragraph in declared
            if not paragraph.startswith(("/*", "//", "#define PIDCOMM_"))
        ]
