"""Builds the documents as a site, in build/site or the folder that is given. Neither that nor its pages need a network.

Pages are the project's Markdown files, where they are, and the reference made by reference.py. A link to another file
of the project leads to a page that shows it, a link to a folder to a page that lists it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import reference
from documents import ROOT, Document, documents
from mkdocs.commands.build import build
from mkdocs.config import load_config

THEME = Path(__file__).parent / "site_theme"
SETTINGS = str(Path(__file__).parent / "mkdocs.yml")

# Every page in order, for those who come here for the first time. What does not exist is left out; `*` is any name.
NAVIGATION: dict[str, list[str]] = {
    "Start": ["README.md", "docs/tutorial.md", "docs/cheat-sheet.md", "docs/concepts.md"],
    "Guides": [
        "docs/collectives.md",
        "docs/emulator.md",
        "docs/porting.md",
        "docs/performance.md",
        "docs/evaluation.md",
        "docs/hardware.md",
        "examples/README.md",
    ],
    "Reference": [
        "docs/command-line.md",
        *(f"reference/{name}.md" for name in reference.PAGES),
        "docs/errors.md",
    ],
    "Inside": [
        "docs/design.md",
        "emulator/README.md",
        "artifact/README.md",
        "bench/README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ],
}

_LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )([^)\s#]+)((?:#[^)\s]*)?(?:\)|$))")
_LEXERS = {
    ".c": "c",
    ".h": "c",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".py": "python",
    ".sh": "sh",
    ".json": "json",
    "Makefile": "make",
}


def navigation(pages: Path) -> list[dict[str, list[str]]]:
    """Return the pages that exist below a folder, by section."""
    sections = []
    for title, patterns in NAVIGATION.items():
        found = [path.relative_to(pages).as_posix() for pattern in patterns for path in sorted(pages.glob(pattern))]
        if found:
            sections.append({title: found})
    return sections


def write_pages(pages: Path) -> None:
    """Write everything that the site is made of below an empty folder."""
    shown: set[Path] = set()
    for document in documents():
        page = pages / document.name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(_with_shown_files(document, shown))
    done: set[Path] = set()
    while shown - done:
        for path in sorted(shown - done):
            done.add(path)
            _write_shown(pages, path, shown)
    for name, make in reference.PAGES.items():
        (pages / "reference").mkdir(exist_ok=True)
        (pages / "reference" / f"{name}.md").write_text(make())
    for path in THEME.iterdir():
        shutil.copy(path, pages)


def _with_shown_files(document: Document, shown: set[Path]) -> str:
    """Return a document whose links to files that are no pages lead to pages that show them; note these files."""
    blocks = {n for block in document.blocks for n in range(block.line, block.line + len(block.text.splitlines()))}

    def change(match: re.Match[str]) -> str:
        path = Path(os.path.normpath(document.path.parent / match[2]))
        if ":" in match[2] or path.suffix == ".md" or not path.exists():
            return match[0]
        if path.suffix in (".png", ".svg", ".jpg"):
            return match[0]
        shown.add(path)
        return f"{match[1]}{os.path.relpath(_page_of(path), document.path.parent.relative_to(ROOT))}{match[3]}"

    lines = document.path.read_text().splitlines()
    return (
        "\n".join(line if number in blocks else _LINK.sub(change, line) for number, line in enumerate(lines, 1)) + "\n"
    )


def _page_of(path: Path) -> Path:
    """Return the page that shows a file or lists a folder, from the root of the site."""
    relative = path.relative_to(ROOT)
    return Path("files", relative, "index.md") if path.is_dir() else Path("files", f"{relative}.md")


def _write_shown(pages: Path, path: Path, shown: set[Path]) -> None:
    page = pages / _page_of(path)
    page.parent.mkdir(parents=True, exist_ok=True)
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        entries = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith((".", "_"))]
        entries = [entry for entry in entries if not entry.is_symlink() and (entry.is_dir() or _is_text(entry))]
        shown |= {entry for entry in entries if entry.suffix != ".md"}
        targets = [entry.relative_to(ROOT) if entry.suffix == ".md" else _page_of(entry) for entry in entries]
        lines = [
            f"* [{entry.name}{'/' * entry.is_dir()}]({os.path.relpath(target, _page_of(path).parent)})"
            for entry, target in zip(entries, targets, strict=True)
        ]
        page.write_text(f"# {name}/\n\n" + "\n".join(lines) + "\n")
    else:
        language = _LEXERS.get(path.suffix) or _LEXERS.get(path.name, "text")
        page.write_text(f"# {name}\n\n``````{language}\n{path.read_text()}\n``````\n")


def _is_text(path: Path) -> bool:
    try:
        path.read_text()
    except UnicodeDecodeError:
        return False
    return True


def _copy_pictures(pages: Path) -> None:
    for document in documents():
        for link in document.links:
            path = Path(os.path.normpath(document.path.parent / link.target))
            if path.suffix in (".png", ".svg", ".jpg") and path.is_file():
                target = pages / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)


def build_site(site: Path) -> None:
    """Build the site in a folder. Any warning, such as one about a link, ends the build with SystemExit."""
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder)
        write_pages(pages)
        _copy_pictures(pages)
        build(load_config(SETTINGS, docs_dir=str(pages), site_dir=str(site), nav=navigation(pages)))
    index = (site / "search/search_index.json").read_text()
    (site / "search/search_index.js").write_text(f"var search_index = {index};\n")


def pages_in_navigation() -> Iterator[str]:
    """Return the project's own pages that are in the navigation."""
    for section in navigation(ROOT):
        for names in section.values():
            yield from names


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    where = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site").absolute()
    build_site(where)
    print(where / "index.html")
