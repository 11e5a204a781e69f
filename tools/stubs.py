"""Writes the public Python API as one .pyi file per package.

A change of the API changes these files, which are then part of its review.

python tools/stubs.py && ruff format tools/golden/*.pyi
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

GOLDEN = Path(__file__).resolve().parent / "golden"
MODULES = ("pidcomm", "pidcomm.hosts", "pidcomm.model", "pidcomm_studies.models", "dpuemu")
ELLIPSIS = ast.Expr(ast.Constant(...))


class _WithoutBodies(ast.NodeTransformer):
    """Keeps signatures and fields; removes bodies, docstrings and private names."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        """Drop the body of a function, or a complete private function."""
        if node.name.startswith("_") and node.name != "__init__":
            return None
        node.body = [ELLIPSIS]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST | None:
        """Keep the declared members of a class."""
        self.generic_visit(node)
        declared = [
            member for member in node.body if isinstance(member, (ast.FunctionDef, ast.AnnAssign))
        ]
        node.body = [*declared] or [ELLIPSIS]
        return node


def stub(module: ModuleType) -> str:
    """Return the public names of a module, sorted, with signatures and types and without bodies."""
    names = getattr(module, "__all__", None) or [
        name for name in vars(module) if not name.startswith("_")
    ]
    values = {name: getattr(module, name) for name in sorted(names) if name != "annotations"}
    return (
        "\n".join(
            _block(name, value) for name, value in values.items() if not inspect.ismodule(value)
        )
        + "\n"
    )


def _block(name: str, value: Any) -> str:
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return f"{name}: {type(value).__name__}\n"
    tree = ast.parse(textwrap.dedent(inspect.getsource(value)))
    return ast.unparse(_WithoutBodies().visit(tree)) + "\n"


def texts() -> dict[str, str]:
    """Return the text of every file by name."""
    return {f"{name}.pyi": stub(importlib.import_module(name)) for name in MODULES}


def main() -> None:
    """Write the files."""
    for name, text in texts().items():
        (GOLDEN / name).write_text(text)


if __name__ == "__main__":
    main()
