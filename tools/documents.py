"""Checks the code blocks and links of the documents, and writes excerpts of files into them.

Every fenced block of a document is of one of these kinds (the marker is the line before the fence):

    ```sh          commands; a test runs a document's blocks in order, as one script
    ```python      a test runs a document's blocks in order, as one script
    any            <!-- from: PATH#REGION --> or <!-- from: PATH -->: an excerpt of a file that a
                   test runs
    ```text        output, tables or formulas; with <!-- printed by: python --> (or sh), the output
                   of those blocks
    any            <!-- add to: PATH#PLACE -->: lines that a test adds to a copy of a file; PATH
                   alone: a new file
    any            <!-- run by: PATH -->: lines of a block that a test runs; the test's file PATH
                   contains each line
    ```sh          <!-- parsed: REASON -->: commands that take long; a test parses them, and plans
                   the collectives of `pidcomm bench`
    any            <!-- not run: REASON -->: a block that the tests cannot run

python tools/documents.py           updates the excerpts
python tools/documents.py --check   reports faults, and lists the blocks that the tests do not run
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = ("sh", "python", "c", "cpp", "cmake", "make", "yaml", "text")
MARKERS = ("from", "add to", "run by", "parsed", "printed by", "not run")
# Things that the tests lack. The reason not to run a block must name one of them.
LACKING = ("DIMMs", "SDK", "MPI", "NCCL", "sources", "minutes")

_MARKER = re.compile(rf"<!-- ({'|'.join(MARKERS)}): (.*?) -->\s*")
_REGION = re.compile(r"\s*(?:/\*|//|#) \[(\w+)\](?: \*/)?\s*")
_COMMENT = re.compile(r"(^|\s+)#( .*)?$")
_HTML_LINK = re.compile(r"""<(?:a|img)\b[^>]*?\b(?:href|src)=["']([^"']*)["']""")
_HTML_ID = re.compile(r"""<[^>]*\b(?:id|name)=["']([^"']*)["']""")
_NOT_OURS = {"build", "node_modules", "venv", "sdk"}


class Block(NamedTuple):
    """A fenced block. line: number of its first text line, from 1. marker, about: from the line
    above.
    """

    line: int
    language: str
    text: str
    marker: str
    about: str

    @property
    def commands(self) -> list[str]:
        """Return the lines of the block without comments."""
        lines = (_COMMENT.sub("", line).strip() for line in self.text.splitlines())
        return [line for line in lines if line]


class Link(NamedTuple):
    """A link or picture, with its line and its target."""

    line: int
    target: str


class Region(NamedTuple):
    """A file and the name of a region in it; an empty name means the complete file."""

    path: Path
    name: str

    def read(self) -> str:
        """Return the text of the region without common indentation; joins the pieces of the region.

        Raises ValueError if the file or region does not exist, or if the region does not end.
        """
        if not self.path.is_file():
            raise ValueError(f"there is no file {self.path.relative_to(ROOT)}")
        lines = self.path.read_text().splitlines()
        if not self.name:
            kept = [line for line in lines if not _REGION.fullmatch(line)]
            return "\n".join(kept).strip("\n") + "\n"
        kept, inside, is_found = [], False, False
        for line in lines:
            if mark := _REGION.fullmatch(line):
                inside = mark[1] == self.name or (inside and mark[1] != "end")
                is_found |= inside
            elif inside:
                kept.append(line)
        if not is_found or inside:
            raise ValueError(f"{self.path.relative_to(ROOT)} has no region [{self.name}] that ends")
        return textwrap.dedent("\n".join(kept)).strip("\n") + "\n"


@dataclass(frozen=True)
class Document:
    """A Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        """Return the path of the document from the root."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def _tokens(self) -> list[Token]:
        return MarkdownIt("commonmark").enable("table").parse(self.path.read_text())

    @cached_property
    def blocks(self) -> list[Block]:
        """Return the fenced and indented blocks of the document.

        An indented block has no language.
        """
        blocks = []
        for before, token in zip([None, *self._tokens], self._tokens, strict=False):
            if token.type not in ("fence", "code_block") or token.map is None:
                continue
            comment = None
            if (
                before is not None
                and before.type == "html_block"
                and before.map
                and before.map[1] == token.map[0]
            ):
                comment = _MARKER.fullmatch(before.content.splitlines()[-1])
            line = token.map[0] + (2 if token.type == "fence" else 1)
            blocks.append(
                Block(
                    line,
                    token.info.strip(),
                    token.content,
                    *(comment.groups() if comment else ("", "")),
                )
            )
        return blocks

    @cached_property
    def anchors(self) -> set[str]:
        """Return the possible targets of links: ids, and headings as repository viewers name
        them.
        """
        counts: dict[str, int] = {}
        names = set()
        for before, token in zip([None, *self._tokens], self._tokens, strict=False):
            if before is not None and before.type == "heading_open":
                slug = slug_of(_plain_text(token))
                names.add(f"{slug}-{counts[slug]}" if slug in counts else slug)
                counts[slug] = counts.get(slug, 0) + 1
        return names | set(_HTML_ID.findall(self.path.read_text()))

    @cached_property
    def links(self) -> list[Link]:
        """Return the links and pictures of the document, also from HTML."""
        links = []
        for token in self._tokens:
            line = token.map[0] + 1 if token.map else 0
            for child in (token, *(token.children or ())):
                if child.type in ("link_open", "image"):
                    links.append(
                        Link(
                            line, unquote(str(child.attrGet("href") or child.attrGet("src") or ""))
                        )
                    )
                elif child.type in ("html_block", "html_inline"):
                    links += [Link(line, target) for target in _HTML_LINK.findall(child.content)]
        return links

    def script(self, language: str) -> str:
        """Return the blocks of a language that the tests run, each line at its line number in
        the document.
        """
        lines: list[str] = []
        for block in self.blocks:
            if block.language == language and not block.marker:
                lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
        return "\n".join(lines) + "\n" if lines else ""

    def printed(self, language: str) -> list[str]:
        """Return the blocks that the blocks of a language print."""
        return [
            block.text
            for block in self.blocks
            if (block.marker, block.about) == ("printed by", language)
        ]

    def parsed_commands(self) -> list[str]:
        """Return the commands of the blocks with marker `parsed`."""
        blocks = [block for block in self.blocks if block.marker == "parsed"]
        return [command for block in blocks for command in block.commands]

    def with_excerpts(self) -> str:
        """Return the text of the document with current excerpts.

        Raises ValueError if an excerpt is not found.
        """
        lines = self.path.read_text().splitlines()
        for block in reversed(self.blocks):
            if block.marker == "from":
                start = block.line - 1
                lines[start : start + len(block.text.splitlines())] = (
                    region(block.about).read().splitlines()
                )
        return "\n".join(lines) + "\n"

    def wrong_blocks(self) -> Iterator[str]:
        """Yield a sentence for each block that breaks the rules at the top of this file."""
        for block in self.blocks:
            if problem := _problem(block):
                yield f"{self.name}:{block.line}: {problem}"

    def wrong_links(self) -> Iterator[str]:
        """Yield a sentence for each broken link.

        Links to other machines must be https; this does not open them.
        """
        for link in self.links:
            if problem := self._link_problem(link.target):
                yield f"{self.name}:{link.line}: {link.target}: {problem}"

    def _link_problem(self, target: str) -> str:
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            return "" if target.startswith("https://") else "links to other machines are https"
        path_text, _, anchor = target.partition("#")
        path = Path(os.path.normpath(self.path.parent / path_text)) if path_text else self.path
        if path_text.startswith("/") or not path.is_relative_to(ROOT):
            return "links are relative and stay in the project"
        if not path.exists():
            return "there is no such file"
        if anchor and (path.suffix != ".md" or anchor not in Document(path).anchors):
            return "there is no such heading"
        return ""


def documents() -> list[Document]:
    """Return all documents of the project: every Markdown file outside folders of builds and
    tools.
    """
    paths = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(
            name for name in folders if not name.startswith((".", "_")) and name not in _NOT_OURS
        )
        paths += [Path(folder, name) for name in sorted(files) if name.endswith(".md")]
    return [Document(path) for path in paths]


def slug_of(heading: str, separator: str = "-") -> str:
    """Return the anchor of a heading, as repository viewers make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def region(about: str) -> Region:
    """Return the region that PATH or PATH#REGION names."""
    path, _, name = about.partition("#")
    return Region(ROOT / path, name)


def _plain_text(token: Token) -> str:
    return "".join(c.content for c in token.children or () if c.type in ("text", "code_inline"))


def _problem(block: Block) -> str:
    """Return a sentence about the fault of a block, or an empty text."""
    if block.language not in LANGUAGES:
        return f"language {block.language!r} is not one of {', '.join(LANGUAGES)}"
    if block.marker == "from":
        try:
            text = region(block.about).read()
        except ValueError as error:
            return str(error)
        return (
            ""
            if block.text == text
            else f"the excerpt differs from {block.about}: run `make snippets`"
        )
    if block.marker == "add to":
        name, _, place = block.about.partition("#")
        if not place:
            return f"{name} is there already" if (ROOT / name).exists() else ""
        return "" if (ROOT / name).is_file() else f"there is no file {name}"
    if block.marker == "run by":
        path = ROOT / block.about
        if not path.is_file():
            return f"there is no file {block.about}"
        text = path.read_text()
        missing = [command for command in block.commands if command not in text]
        return f"{block.about} does not run `{missing[0]}`" if missing else ""
    if block.marker == "not run":
        return (
            ""
            if any(word in block.about for word in LACKING)
            else f"the reason names none of {', '.join(LACKING)}"
        )
    if block.marker == "printed by":
        is_right = block.language == "text" and block.about in ("sh", "python")
        return "" if is_right else "only text is printed, by sh or python"
    if block.marker == "parsed":
        return "" if block.language == "sh" else "only commands are parsed, in sh blocks"
    if block.language not in ("sh", "python", "text"):
        return f"a block of {block.language} needs a marker, such as <!-- from: PATH#REGION -->"
    return ""


def main(arguments: list[str]) -> int:
    """Update the excerpts, or check all documents."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    problems: list[str] = []
    for document in documents():
        if arguments:
            problems += [*document.wrong_blocks(), *document.wrong_links()]
            for block in document.blocks:
                if block.marker == "not run":
                    print(f"{document.name}:{block.line}: not run: {block.about}")
            continue
        try:
            text = document.with_excerpts()
        except ValueError as error:
            problems.append(f"{document.name}: {error}")
            continue
        if text != document.path.read_text():
            document.path.write_text(text)
            print(f"{document.name}: excerpts written")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
