"""The public API matches the golden files, and the stubs of the extension modules match the
compiled modules.

mypy's stubtest does not support nanobind's functions, so these tests compare the signatures that
nanobind keeps.
"""

from __future__ import annotations

import ast
import importlib
import re
from types import ModuleType
from typing import Any

import pytest
import site_files
import stubs
from documents import ROOT

from dpuemu import _dpuemu
from pidcomm import _core
from pidcomm.bench import _verify

EXTENSIONS = pytest.mark.parametrize(
    ("module", "file"),
    [
        pytest.param(_core, "pidcomm/python/pidcomm/_core.pyi", id="_core"),
        pytest.param(_verify, "pidcomm/python/pidcomm/bench/_verify.pyi", id="_verify"),
        pytest.param(_dpuemu, "dpuemu/python/dpuemu/_dpuemu.pyi", id="_dpuemu"),
    ],
)


@pytest.mark.parametrize(("name", "text"), stubs.texts().items())
def test_the_public_api_matches_the_golden_file(name: str, text: str) -> None:
    """After an intended change, `python tools/stubs.py` rewrites the files."""
    golden = (stubs.GOLDEN / name).read_text()
    assert ast.unparse(ast.parse(text)) == ast.unparse(ast.parse(golden))


@pytest.mark.parametrize("name", [*site_files.API, *site_files.STUDIES])
def test_dir_shows_public_names_only(name: str) -> None:
    module = importlib.import_module(name)
    modules = {other for other in dir(module) if f"{name}.{other}" in site_files.API}
    assert set(dir(module)) - modules == set(module.__all__)
    assert modules == ({"hosts", "pool"} if name == "pidcomm" else set())


def in_the_stub(stub: str) -> dict[str, str]:
    """Return a signature, or the type of a constant, for every name that the stub declares."""
    aliases = {name: f"collections.abc.{name}" for name in ("Sequence", "Mapping")}
    signatures = {}

    def text(annotation: ast.expr | None) -> str:
        words = "" if annotation is None else ast.unparse(annotation)
        for alias, meaning in aliases.items():
            words = re.sub(rf"\b{alias}\b", meaning, words)
        words = re.sub(r"\bCallable\[\[.*?\], .*?\]", "collections.abc.Callable", words)
        return re.sub(r"\bdict\[[^\]]*\]+(?=$| \|)", "dict", words)

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                arguments = [
                    a.arg + (f": {text(a.annotation)}" if a.annotation else "")
                    for a in node.args.args
                ]
                signatures[prefix + node.name] = f"({', '.join(arguments)}) -> {text(node.returns)}"
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                if ast.unparse(node.annotation) == "TypeAlias":
                    aliases[node.target.id] = (
                        "array" if node.target.id == "_Bytes" else text(node.value)
                    )
                else:
                    signatures[prefix + node.target.id] = text(node.annotation)

    visit(ast.parse(stub).body, "")
    return signatures


def in_the_module(module: ModuleType) -> dict[str, str]:
    """Return the same for every public name of a compiled module."""
    signatures = {}

    def visit(owner: Any, prefix: str) -> None:
        for name, value in vars(owner).items():
            getter: Any = value.fget if isinstance(value, property) else value
            if hasattr(getter, "__nb_signature__"):
                ((signature, *_),) = getter.__nb_signature__
                signature = re.sub(
                    r"(numpy\.)?ndarray\[[^\]]*\]", "array", signature[signature.index("(") :]
                )
                signatures[prefix + name] = re.sub(
                    rf"{re.escape(module.__name__)}\.", "", signature
                )
            elif not name.startswith("_"):
                if isinstance(value, type) or type(value).__name__ == "module":
                    visit(value, f"{prefix}{name}.")
                else:
                    signatures[prefix + name] = type(value).__name__

    visit(module, "")
    return signatures


@EXTENSIONS
def test_the_stub_matches_the_module(module: ModuleType, file: str) -> None:
    assert len(in_the_module(module)) > 10
    assert in_the_stub((ROOT / file).read_text()) == in_the_module(module)


def test_the_stub_of_the_applications_has_every_function_with_its_arguments() -> None:
    # Their arrays have one type in the stub and several in the extension: only numbers of arguments
    # are compared.
    from pidcomm_studies.apps import _apps

    def arguments(signature: str) -> int:
        return len(re.findall(r"\w+: ", signature.partition(" -> ")[0]))

    body = ast.parse((ROOT / "studies/apps/_apps.pyi").read_text()).body
    declared = {
        node.name: len(node.args.posonlyargs + node.args.args)
        for node in body
        if isinstance(node, ast.FunctionDef)
    }
    functions = {
        name: function
        for name, function in vars(_apps).items()
        if hasattr(function, "__nb_signature__")
    }
    assert {
        name: {arguments(words) for words, *_ in function.__nb_signature__}
        for name, function in functions.items()
    } == {name: {count} for name, count in declared.items()}
