"""Lists includes and imports between folders; fails if one goes up or in a circle.

python tools/layers.py          # a line for each pair of folders: from, to, number of files
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Folders by layer, the lowest layer first. A file may use only its own folder and lower layers.
LAYERS = [
    ["pe", "emulator/include", "emulator/pe"],
    ["include", "emulator/src", "emulator/python"],
    ["src/base", "verify"],
    ["src/topology"],
    ["src/plan"],
    ["src/line_kernels", "src/rank_access"],
    ["src/exec", "src/model"],
    ["src/hosts"],
    ["src/capi", "artifact"],
    ["tools/doctor", "python/src"],
    ["python/pidcomm"],
    ["python/pidcomm/evaluation"],
    ["apps", "parcels"],
    ["python/pidcomm/cli"],
]
LAYER = {folder: layer for layer, folders in enumerate(LAYERS) for folder in folders}
# All other files may use the emulator only through dpu.h.
MAY_INCLUDE_DPUEMU = {"src/rank_access/rank_access_dpuemu.cpp"}
PACKAGES = {
    "pidcomm.apps": "apps",
    "pidcomm.parcels": "parcels",
    "pidcomm": "python/pidcomm",
    "dpuemu": "emulator/python/dpuemu",
}
SOURCES = {".c", ".cpp", ".h", ".hpp", ".inl", ".py"}


def folder_of(path: str) -> str | None:
    """Return the folder of LAYERS that contains a path, which is relative to the root."""
    inside = [folder for folder in LAYER if path.startswith(folder + "/")]
    return max(inside, key=len, default=None)


def files() -> Iterator[Path]:
    """Yield the source files of all layers."""
    seen = {file for folder in LAYER for file in (ROOT / folder).rglob("*") if file.suffix in SOURCES}
    yield from sorted(seen)


def included(file: Path) -> Iterator[str]:
    """Yield the files of the project that a C or C++ file includes, relative to the root."""
    for bracket, name in re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', file.read_text(), re.MULTILINE):
        for start in (
            file.parent if bracket == '"' else ROOT / "include",
            ROOT / "src",
            ROOT,
            ROOT / "include",
            ROOT / "tools",
            ROOT / "artifact/include",
            ROOT / "emulator/include",
            ROOT / "emulator/src",
        ):
            found = (start / name).resolve()
            if found.is_file() and found.is_relative_to(ROOT):
                yield str(found.relative_to(ROOT))
                break


def module_file(name: str) -> Path | None:
    """Return the file of a module of the project."""
    for package, folder in PACKAGES.items():
        if name == package or name.startswith(package + "."):
            path = ROOT / folder / Path(*name.removeprefix(package).lstrip(".").split("."))
            choices = (path.with_suffix(".py"), path / "__init__.py", path.with_suffix(".pyi"))
            return next((file for file in choices if file.is_file()), None)
    return None


def imported(file: Path) -> Iterator[str]:
    """Yield the files of the project that a Python file imports, anywhere in it, relative to the root."""
    for node in ast.walk(ast.parse(file.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [
                f"{node.module}.{alias.name}" if module_file(f"{node.module}.{alias.name}") else node.module
                for alias in node.names
            ]
        for name in names:
            if (found := module_file(name)) and found != file:
                yield str(found.relative_to(ROOT))


def uses() -> dict[str, set[str]]:
    """Return, for every file, the files that it uses."""
    return {
        str(file.relative_to(ROOT)): set(imported(file) if file.suffix == ".py" else included(file)) for file in files()
    }


def upward(graph: dict[str, set[str]]) -> list[str]:
    """Return a sentence for each use that the layers do not allow."""
    wrong = []
    for user, used_files in graph.items():
        for used in used_files:
            above, below = folder_of(user), folder_of(used)
            if above is None or below is None or above == below:
                continue
            if (
                used == "emulator/include/dpuemu.h"
                and not above.startswith("emulator")
                and user not in MAY_INCLUDE_DPUEMU
            ):
                wrong.append(f"{user} includes dpuemu.h, which is for {', '.join(MAY_INCLUDE_DPUEMU)}")
            if LAYER[below] >= LAYER[above]:
                wrong.append(f"{user} uses {used}, which is not below {above}")
    return sorted(wrong)


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """Return a text for each cycle of files that use each other."""
    found, done = [], set()
    path: list[str] = []

    def visit(file: str) -> None:
        if file in path:
            found.append(" -> ".join([*path[path.index(file) :], file]))
        elif file not in done:
            path.append(file)
            for used in sorted(graph.get(file, ())):
                visit(used)
            path.pop()
            done.add(file)

    for file in graph:
        visit(file)
    return found


def main() -> int:
    """Print the uses between folders. Return 1 if a use goes to a higher layer or is part of a cycle."""
    graph = uses()
    pairs = Counter(
        (folder_of(user) or "", folder_of(used) or "") for user, used_files in graph.items() for used in used_files
    )
    for (above, below), count in sorted(pairs.items(), key=lambda it: (-LAYER.get(it[0][0], -1), it[0])):
        if above != below and below:
            print(f"{above:<26} -> {below:<26} {count:>4}")
    wrong = [*upward(graph), *cycles(graph)]
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
