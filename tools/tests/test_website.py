"""The documents as pages."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import site_files
from documents import ROOT, documents
from lunr.index import Index
from mkdocs.commands.build import build
from mkdocs.config import load_config

import pidcomm

SETTINGS = str(ROOT / "tools/mkdocs.yml")


class Page(HTMLParser):
    """A parsed page: the files it loads, its links and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the attributes that load, link or name."""
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif value and (name == "src" or (name == "href" and tag == "link")):
                self.loads.append(value)
            elif value and name == "href" and tag == "a":
                self.links.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site. Building it fails at any warning."""
    folder = tmp_path_factory.mktemp("site")
    build(load_config(SETTINGS, site_dir=str(folder)))
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Every page of the site."""
    return {
        path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"
    }


def names_in_navigation(items: Any) -> Iterator[str]:
    """Return the pages in a part of the navigation."""
    if isinstance(items, str):
        yield items
    else:
        for item in items.values() if isinstance(items, dict) else items:
            yield from names_in_navigation(item)


def test_every_document_is_in_the_navigation_and_on_every_page(
    site: Path, pages: dict[Path, Page]
) -> None:
    names = set(names_in_navigation(load_config(SETTINGS).nav))
    assert names == {document.name for document in documents()} | {
        f"reference/{name}.md" for name in ("python", "python_extensions", "c", "sdk")
    }
    links = {unquote(link) for link in pages[site / "index.html"].links}
    for name in names:
        html = (
            name.removesuffix("README.md") + "index.html"
            if name.endswith("README.md")
            else f"{name[:-3]}.html"
        )
        assert {html, html.removesuffix("index.html") or "."} & links, name


def test_pages_load_and_link_to_files_of_the_site_only(pages: dict[Path, Page]) -> None:
    assert len(pages) > 20
    for path, page in pages.items():
        for target in page.loads:
            assert not re.match(r"[a-z]+:|//", target), f"{path} loads {target}"
            assert (path.parent / target.split("?")[0]).exists(), f"{path} loads {target}"
        for link in page.links:
            if re.match(r"[a-z]+:", link) or link == "#":
                continue
            name, _, anchor = unquote(link).partition("#")
            to = (path.parent / name).resolve() if name else path
            to = to / "index.html" if to.is_dir() else to
            if "reference/c/" in str(path):  # Doxygen links to letters that no name has
                continue
            assert to.exists(), f"{path}: {link}"
            if anchor and to in pages:
                assert anchor in pages[to].anchors, f"{path}: {link}"


def test_styles_load_only_files_of_the_site(site: Path) -> None:
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text()), style


def test_a_link_to_a_source_file_leads_to_the_file(site: Path) -> None:
    assert 'href="../include/pidcomm/tables.h"' in (site / "pidcomm/docs/design.html").read_text()
    assert (site / "pidcomm/include/pidcomm/tables.h").read_bytes() == (
        ROOT / "pidcomm/include/pidcomm/tables.h"
    ).read_bytes()


def test_the_site_shows_every_drawing_in_its_document(site: Path, pages: dict[Path, Page]) -> None:
    shown = {
        (path.parent / target).resolve() for path, page in pages.items() for target in page.loads
    }
    drawings = set((site / "pidcomm/docs/drawings").iterdir())
    assert len(drawings) == 7
    assert drawings <= shown


def test_the_reference_has_every_public_name(pages: dict[Path, Page], site: Path) -> None:
    python = {
        anchor
        for name in ("python", "python_extensions")
        for anchor in pages[site / f"reference/{name}.html"].anchors
    }
    names = set()
    for module in site_files.public_modules():
        exported = importlib.import_module(module).__all__
        names |= {f"{module}.{name}" for name in exported if name != "__version__"}
    assert {"pidcomm.hosts.connect", "pidcomm.pool.Pool", "pidcomm_studies.apps.get"} <= names
    assert not names - python
    assert {"pidcomm.Hypercube.alltoall", "pidcomm.Trace.seconds_total"} <= python


@pytest.mark.parametrize(
    ("page", "library"),
    [
        ("c", "pidcomm/libpidcomm.so.*"),
        ("c", "pidcomm/libpidcomm_artifact.so.*"),
        ("sdk", "dpuemu/libdpuemu.so.*"),
    ],
)
def test_the_reference_has_every_exported_function(
    pages: dict[Path, Page], site: Path, page: str, library: str
) -> None:
    packages = Path(pidcomm.__file__).parent.parent
    command = ["nm", "--dynamic", "--defined-only", str(next(packages.glob(library)))]
    symbols = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    exported = set(re.findall(r" T (?!__)(\w+)", symbols))  # __jit_...: for debuggers
    assert len(exported) > 5
    assert not exported - pages[site / f"reference/{page}.html"].anchors


def test_the_reference_has_the_signature_and_the_comment_of_each_function(site: Path) -> None:
    page = (site / "reference/c.html").read_text()
    header = (ROOT / "pidcomm/include/pidcomm/pidcomm.h").read_text()
    declared = re.findall(
        r"^/\* ((?:(?!\*/).)*)\*/\nPIDCOMM_API [^(]*?(\w+)\(", header, re.MULTILINE | re.DOTALL
    )
    assert len(declared) > 20
    for comment, name in declared:
        section = re.sub("<[^>]*>", "", page.split(f'id="{name}"')[1].split("<h3")[0])
        assert f"{name}(" in section
        first = " ".join(re.findall(r"\w+", comment)[:6])
        assert first in " ".join(re.findall(r"\w+", section)), name


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("reduce_scatter", r"reference/python\.html#pidcomm\.\w+\.reduce_scatter"),
        ("pidcomm_reduce_scatter", r"reference/c\.html#pidcomm_reduce_scatter"),
        ("stream_limit", r"reference/python\.html#pidcomm\.Hypercube\.stream_limit"),
    ],
)
def test_a_search_for_a_name_finds_its_reference_first(site: Path, query: str, place: str) -> None:
    script = (site / "search/search_index.js").read_text()
    index = Index.load(
        json.loads(script.removeprefix("var search_index = ").removesuffix(";\n"))["index"]
    )
    assert re.fullmatch(place, index.search(query)[0]["ref"])
