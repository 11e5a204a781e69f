"""The documents as pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
import website
from documents import ROOT


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
    website.build_site(folder)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Every page of the site."""
    return {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_document_in_docs_is_in_the_navigation() -> None:
    written = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(written) >= 6
    assert not written - set(website.pages_in_navigation())


def test_the_navigation_links_to_every_page(site: Path, pages: dict[Path, Page]) -> None:
    links = {unquote(link) for link in pages[site / "index.html"].links}
    for page in [*website.pages_in_navigation(), "reference/python.md"]:
        html = page.removesuffix("README.md") + "index.html" if page.endswith("README.md") else f"{page[:-3]}.html"
        assert {html, html.removesuffix("index.html") or "."} & links, page


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
            assert to.exists(), f"{path}: {link}"
            if anchor and to in pages:
                assert anchor in pages[to].anchors, f"{path}: {link}"


def test_styles_load_only_files_of_the_site(site: Path) -> None:
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text()), style


def test_a_link_to_a_source_file_opens_a_page_with_its_text(site: Path) -> None:
    name = "files/include/pidcomm/tables.h.html"
    assert f'href="../{name}"' in (site / "docs/design.html").read_text()
    assert "#define PIDCOMM_COLLECTIVES(X)" in re.sub(r"<[^>]*>", "", (site / name).read_text())


def test_links_of_every_form_open_pages_with_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("website", "documents"):
        monkeypatch.setattr(f"{module}.ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    for name in ("a.c", "docs/b.c", "docs/page.md"):
        (tmp_path / name).write_text("")
    (tmp_path / "docs/x.md").write_text(
        "[a](../a.c) [b](b.c#l1) [page](page.md#h) [far](https://x.y/a.c)\n\n[c][]\n\n[c]: ../a.c\n\n"
        "```text\n[d](b.c)\n```\n"
    )
    pages = tmp_path / "pages"
    pages.mkdir()
    website.write_pages(pages)
    text = (pages / "docs/x.md").read_text()
    assert text.startswith(
        "[a](../files/a.c.md) [b](../files/docs/b.c.md#l1) [page](page.md#h) [far](https://x.y/a.c)\n"
    )
    assert "[c]: ../files/a.c.md\n" in text
    assert "[d](b.c)" in text


def test_the_search_index_has_the_words_of_the_pages(site: Path) -> None:
    script = (site / "search/search_index.js").read_text()
    assert script.startswith("var search_index = {")
    for word in ("pidcomm_stream_limit", "Entangled groups", "dpuemu env"):
        assert word in script
