"""The lists of Debian packages, and the container file, as far as no container engine is needed."""

from __future__ import annotations

import json
import re
from pathlib import Path

from dpuemu.cli import parser

ROOT = Path(__file__).parents[2]
CONTAINER = (ROOT / "dpuemu/examples/ci/Containerfile").read_text()


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the container file, with joined lines."""
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", CONTAINER, flags=re.MULTILINE))
    return [
        (name, words) for name, _, words in (line.partition(" ") for line in lines.splitlines())
    ]


def test_documents_and_the_container_file_name_the_packages_that_the_makefile_needs() -> None:
    needed = {"make", *re.findall(r"\(on Debian: ([^)]+)\)", (ROOT / "Makefile").read_text())}
    assert len(needed) >= 4
    for text in (CONTAINER, (ROOT / "README.md").read_text()):
        named = re.findall(r"apt-get install ((?:[\w+-]+ ?)+)", text)
        assert [{word for word in words.split() if word[0] != "-"} for words in named] == [needed]


def test_the_container_file_copies_what_it_installs_and_starts_dpuemu() -> None:
    by_name = dict(instructions())
    folder = re.fullmatch(r"\. (\S+)", by_name["COPY"])
    assert folder is not None
    [install] = [words for name, words in instructions() if name == "RUN" and "pip" in words]
    made = re.match(r"python3 -m venv (\S+) && (\S+)/bin/pip install \S+ (\S+) ", install)
    assert made is not None
    assert made.groups() == (made[1], made[1], folder[1])
    assert by_name["ENV"] == f"PATH={made[1]}/bin:$PATH"
    program, *words = json.loads(by_name["ENTRYPOINT"])
    assert program == "dpuemu"
    options = parser().parse_args([*words, "make", "test"])
    assert options.words[-2:] == ["make", "test"]
    context = re.search(r"docker build .* -f (\S+) (\S+)\n", CONTAINER)
    assert context is not None
    assert (ROOT / context[1]).read_text() == CONTAINER
    assert (ROOT / context[2] / "pyproject.toml").is_file()
