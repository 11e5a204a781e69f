"""Lists includes and imports between folders; fails if one goes up or in a circle, also in tests,
benchmarks and examples.

python tools/layers.py          # a line for each pair of folders: from, to, number of files
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# For each product, its folders by layer, the lowest layer first. A file may use only its own folder
# and lower layers, and the interfaces of lower products.
LAYERS = {
    "dpuemu": [
        ["dpuemu/include", "dpuemu/runtime"],
        ["dpuemu/src/base", "dpuemu/src/isa", "dpuemu/compiler"],
        ["dpuemu/src/machine"],
        ["dpuemu/src/profile", "dpuemu/src/trace"],
        ["dpuemu/src/check"],
        ["dpuemu/src/transfer"],
        ["dpuemu/src/pe"],
        ["dpuemu/src/api"],
        ["dpuemu/python"],
    ],
    "pidcomm": [
        ["pidcomm/pe"],
        ["pidcomm/include"],
        ["pidcomm/src/base", "pidcomm/verify"],
        ["pidcomm/src/topology"],
        ["pidcomm/src/plan"],
        ["pidcomm/src/line_kernels", "pidcomm/src/rank_access"],
        ["pidcomm/src/exec", "pidcomm/src/model"],
        ["pidcomm/src/hosts", "pidcomm/src/pool", "pidcomm/src/stream"],
        ["pidcomm/src/capi", "pidcomm/artifact"],
        ["pidcomm/doctor", "pidcomm/python/src"],
        ["pidcomm/python/pidcomm"],
        ["pidcomm/python/pidcomm/model"],
        ["pidcomm/python/pidcomm/bench"],
        ["pidcomm/python/pidcomm/explain"],
        ["pidcomm/python/pidcomm/cli"],
    ],
    "studies": [
        ["studies/apps", "studies/machines", "studies/parcels"],
        ["studies/papers"],
        ["studies/papers/pidcomm"],
        ["studies/models"],
        ["studies/papers/scalability", "studies/papers/parcels", "studies/papers/imex"],
        ["studies/pictures"],
        ["studies/cli"],
    ],
}
LAYER = {
    folder: (product, layer)
    for product, layers in enumerate(LAYERS.values())
    for layer, folders in enumerate(layers)
    for folder in folders
}
# What a product may use of the products below it.
INTERFACES = ["dpuemu/include", "dpuemu/python", "pidcomm/python/pidcomm"]
# Files that use the library only through its public headers, and the folders of the product that
# they may use beyond their own.
PUBLIC_ONLY = {
    "pidcomm/doctor": ["pidcomm/include", "pidcomm/verify"],
    "pidcomm/python/src/core": ["pidcomm/include", "pidcomm/python/src"],
    "pidcomm/python/src/verify.cpp": ["pidcomm/verify", "pidcomm/python/src"],
}
# All other files outside dpuemu may use the emulator only through dpu.h.
MAY_INCLUDE_DPUEMU = {"pidcomm/src/rank_access/rank_access_dpuemu.cpp"}
PACKAGES = {
    "pidcomm_studies": "studies",
    "pidcomm": "pidcomm/python/pidcomm",
    "dpuemu": "dpuemu/python/dpuemu",
}
# For each product, the folders in which its files find includes.
INCLUDE_FOLDERS = {
    "dpuemu": ["dpuemu/include", "dpuemu/src", "dpuemu", "dpuemu/runtime"],
    "pidcomm": [
        "pidcomm/include",
        "pidcomm/src",
        "pidcomm",
        "pidcomm/artifact/include",
        "pidcomm/python/src",
        "dpuemu/include",
    ],
    "studies": ["studies/parcels", "studies/apps"],
}
SOURCES = {".c", ".cpp", ".h", ".hpp", ".inl", ".py"}
# The folders of a product beside its layers. Examples and benchmarks use public names only. Tests
# may use all of their product, and public names of lower products.
BESIDE = ("tests", "bench", "examples")
MEASURES_INTERNALS = {"pidcomm/bench/overhead.cpp"}


def folder_of(path: str) -> str | None:
    """Return the folder of LAYERS that contains a path, which is relative to the root."""
    inside = [folder for folder in LAYER if path.startswith(folder + "/")]
    return max(inside, key=len, default=None)


def files(folders: Iterable[str] = LAYER) -> Iterator[Path]:
    """Yield the source files in folders, by default those of all layers."""
    seen = {
        file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in SOURCES
    }
    yield from sorted(seen)


def included(file: Path) -> Iterator[str]:
    """Yield the files of the project that a C or C++ file includes, relative to the root."""
    for bracket, name in re.findall(
        r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', file.read_text(), re.MULTILINE
    ):
        own = [file.parent] if bracket == '"' else []
        product = file.relative_to(ROOT).parts[0]
        for start in (*own, *(ROOT / name for name in INCLUDE_FOLDERS[product])):
            path = (start / name).resolve()
            if path.is_file() and path.is_relative_to(ROOT):
                yield str(path.relative_to(ROOT))
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
    """Yield the files of the project that a Python file imports, anywhere in it, relative to the
    root.
    """
    for node in ast.walk(ast.parse(file.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [
                f"{node.module}.{alias.name}"
                if module_file(f"{node.module}.{alias.name}")
                else node.module
                for alias in node.names
            ]
        for name in names:
            if (target := module_file(name)) and target != file:
                yield str(target.relative_to(ROOT))


def uses(folders: Iterable[str] = LAYER) -> dict[str, set[str]]:
    """Return, for every file in the folders, the files that it uses."""
    return {
        str(file.relative_to(ROOT)): set(imported(file) if file.suffix == ".py" else included(file))
        for file in files(folders)
    }


def is_inside(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of the folders or files, or in one of the folders."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def upward(graph: dict[str, set[str]]) -> list[str]:
    """Return a sentence for each use that the layers do not allow."""
    wrong = []
    for user, used_files in graph.items():
        for used in used_files:
            above, below = folder_of(user), folder_of(used)
            if above is None or below is None or above == below:
                continue
            same_product = LAYER[above][0] == LAYER[below][0]
            if (
                used == "dpuemu/include/dpuemu.h"
                and not same_product
                and user not in MAY_INCLUDE_DPUEMU
            ):
                wrong.append(
                    f"{user} includes dpuemu.h, which is for {', '.join(MAY_INCLUDE_DPUEMU)}"
                )
            allowed = next(
                (folders for public, folders in PUBLIC_ONLY.items() if is_inside(user, [public])),
                None,
            )
            if same_product and allowed is not None and not is_inside(used, allowed):
                wrong.append(f"{user} uses {used}, which is not in {' or '.join(allowed)}")
            if LAYER[below] >= LAYER[above]:
                wrong.append(f"{user} uses {used}, which is not below {above}")
            elif not same_product and not is_inside(used, INTERFACES):
                wrong.append(f"{user} uses {used}, which is inside another product")
    return sorted(wrong)


def beside() -> dict[str, set[str]]:
    """Return the files that tests, benchmarks and examples use."""
    return uses(f"{product}/{name}" for product in LAYERS for name in BESIDE)


def outside(graph: dict[str, set[str]]) -> list[str]:
    """Return a sentence for each use by tests, benchmarks and examples that is not allowed."""
    products = list(LAYERS)
    wrong = []
    for user, used_files in graph.items():
        product, kind = user.split("/")[:2]
        uses_all = kind == "tests" or product == "studies" or user in MEASURES_INTERNALS
        own = product if uses_all else f"{product}/{kind}"
        for used in used_files:
            if used.startswith(tuple(products[products.index(product) + 1 :])):
                wrong.append(f"{user} uses {used}, which is in a higher product")
            elif used.startswith(tuple(products)) and not is_inside(
                used, [own, *INTERFACES, "pidcomm/include"]
            ):
                wrong.append(f"{user} uses {used}, which is not public")
    return sorted(wrong)


def needs_published(file: str) -> bool:
    """Return whether a file may import only published names of pidcomm: a Python file of the
    studies, a benchmark or an example.
    """
    return file.endswith(".py") and is_inside(
        file, ["studies", "pidcomm/bench", "pidcomm/examples"]
    )


@cache
def published(module: Path) -> set[str]:
    """Return the names in `__all__` of a module."""
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def unpublished(source: str) -> list[str]:
    """Return a sentence for each name of pidcomm that a file imports and no `__all__` lists."""
    wrong = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
            private = [name for name in modules if re.match(r"pidcomm\b.*\._", name)]
            wrong += [f"imports {name}, which is private" for name in private]
        if not isinstance(node, ast.ImportFrom) or not re.match(r"pidcomm\b", node.module or ""):
            continue
        module = module_file(node.module or "")
        if module:
            names = {alias.name for alias in node.names} - published(module)
            files = {name for name in names if module_file(f"{node.module}.{name}")}
            hidden = (names - files) | {name for name in files if name.startswith("_")}
            wrong += [
                f"imports {name} of {node.module}, which is not in __all__"
                for name in sorted(hidden)
            ]
    return wrong


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """Return a text for each cycle of files that use each other."""
    texts, visited = [], set()
    path: list[str] = []

    def visit(file: str) -> None:
        if file in path:
            texts.append(" -> ".join([*path[path.index(file) :], file]))
        elif file not in visited:
            path.append(file)
            for used in sorted(graph.get(file, ())):
                visit(used)
            path.pop()
            visited.add(file)

    for file in graph:
        visit(file)
    return texts


def main() -> int:
    """Print the uses between folders.

    Return 1 if a use goes to a higher layer or is part of a cycle.
    """
    graph = uses()
    pairs = Counter(
        (folder_of(user) or "", folder_of(used) or "")
        for user, used_files in graph.items()
        for used in used_files
    )
    for (above, below), count in sorted(
        pairs.items(),
        key=lambda pair_count: (LAYER.get(pair_count[0][0], (-1, -1)), pair_count[0]),
        reverse=True,
    ):
        if above != below and below:
            print(f"{above:<26} -> {below:<26} {count:>4}")
    around = beside()
    wrong = [*upward(graph), *cycles(graph), *outside(around)]
    wrong += [
        f"{file} {sentence}"
        for file in filter(needs_published, [*graph, *around])
        for sentence in unpublished((ROOT / file).read_text())
    ]
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
