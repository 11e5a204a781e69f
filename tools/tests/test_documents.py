"""The documents: code blocks run or are excerpts of files that run, and links have targets."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import commands
from documents import ROOT, Block, Document, documents, region, slug_of

import pidcomm
from pidcomm.bench.sweep import Section

DOCUMENTS = documents()
SECONDS = 600
# The files that commands name.
EXAMPLES = ("dpuemu/examples", "pidcomm/examples", "pidcomm/bench/reference", "studies/examples")


def named(wanted: list[Document]) -> pytest.MarkDecorator:
    """Parametrise a test by documents."""
    return pytest.mark.parametrize("document", wanted, ids=[document.name for document in wanted])


def run_in_a_copy(command: list[str], folder: Path, document: Document) -> str:
    """Run a command of a document in a copy of the files that commands name, and return its output.

    Commands of a product's documents run in the folder of the product, other commands in the root.
    """
    for name in EXAMPLES:
        shutil.copytree(ROOT / name, folder / name)
    product = document.name.partition("/")[0] if "/" in document.name else "."
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "MPLBACKEND": "Agg"}
    result = subprocess.run(
        command,
        cwd=folder / product,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
    return result.stdout


@named(DOCUMENTS)
def test_blocks_keep_the_rule_and_excerpts_are_up_to_date(document: Document) -> None:
    assert not list(document.wrong_blocks())


@named(DOCUMENTS)
def test_links_have_targets(document: Document) -> None:
    assert not list(document.wrong_links())


# The commands of docs/command-line.md run in test_cli_document.py.
@named([it for it in DOCUMENTS if it.script("sh") and not it.name.endswith("command-line.md")])
def test_commands_run(document: Document, tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text(document.script("sh"))
    (tmp_path / "work").mkdir()
    output = run_in_a_copy(["bash", "-e", str(script)], tmp_path / "work", document)
    assert not [text for text in document.printed("sh") if text not in output], output


@named([document for document in DOCUMENTS if document.script("python")])
def test_python_runs(document: Document, tmp_path: Path) -> None:
    # The script keeps the document's line numbers, so a traceback names them.
    run = (
        f"import sys; exec(compile(sys.argv[1], {str(document.path)!r}, 'exec'), {{'__name__':"
        " '__main__'})"
    )
    output = run_in_a_copy(
        [sys.executable, "-c", run, document.script("python")], tmp_path, document
    )
    assert not [text for text in document.printed("python") if text not in output], output


class Planned(Exception):
    """Ends a command after it planned its collectives."""


@named([document for document in DOCUMENTS if document.parsed_commands()])
def test_commands_that_take_long_are_parsed_and_planned(
    document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(sections: list[Section], techniques: set[str]) -> None:
        assert sections
        raise Planned

    monkeypatch.setattr("pidcomm.cli.bench.affordable", end)
    targets = []
    for line in document.parsed_commands():
        program, *words = shlex.split(line)
        assert program == "pidcomm"
        targets.append(document.path.parents[1] / words[words.index("--json") + 1])
        if "--isa" in words:  # this machine plans for its own instruction sets only
            isas = words.index("--isa") + 1
            available = [isa for isa in words[isas].split(",") if pidcomm.ISAS[isa].is_available]
            words[isas] = ",".join(available or [pidcomm.DEFAULT_ISA])
        name = " ".join(words[:2]) if words[0] == "app" else words[0]
        command = commands()[name]
        with command.make_context(name, words[len(name.split()) :]) as context:
            if name == "bench":
                with pytest.raises(Planned):
                    command.invoke(context)
    assert len(set(targets)) == len(targets)
    assert not [target for target in targets if not target.parent.is_dir()]


def test_the_table_of_chips_has_the_limits_of_the_emulator() -> None:
    text = (ROOT / "dpuemu/docs/manual.md").read_text()
    shown = re.findall(r"^\| `(\w+)`(?: \(default\))?((?: \| [\d,]+){5}) \|$", text, re.MULTILINE)
    header = (ROOT / "dpuemu/runtime/calls.h").read_text()
    rows = re.findall(r"^  X\((\w+), \d+((?:, \d+){5})\)", header, re.MULTILINE)
    assert len(rows) == 3
    numbers = {
        name: [int(each.replace(",", "")) for each in limits.split(" | ")[1:]]
        for name, limits in shown
    }
    assert numbers == {
        name: [int(each) for each in limits.split(", ")[1:]] for name, limits in rows
    }


def test_every_status_and_its_meaning_is_explained() -> None:
    text = (ROOT / "pidcomm/docs/errors.md").read_text()
    rows = [
        f"| `{status}` | {meaning} | "
        for status, meaning in pidcomm.STATUSES.items()
        if status != "OK"
    ]
    assert not [row for row in rows if row not in text]


# ---- the rule itself


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Document:
    """A document with every kind of block and link, in a new project, and the file of its
    excerpt.
    """
    monkeypatch.setattr("documents.ROOT", tmp_path)
    (tmp_path / "a.c").write_text("/* [one] */\n  int x;\n    int y;\n/* [end] */\nint z;\n")
    path = tmp_path / "a.md"
    path.write_text(
        "# A `b`: c\n\n[up](#a-b-c) [file](a.c) <a"
        " href='gone.md'>x</a>\n[far](http://a.b)\n[head](a.md#none)\n\n<!-- from: a.c#one"
        " -->\n```c\nold\n```\n\n```python\nx = 1\n```\n\n    indented\n\n```python\ny ="
        " x\n```\n\n<!-- parsed: long -->\n```sh\nlong --to=9  # words\n```\n\n<!-- not"
        " run: no time -->\n```sh\nx\n```\n\n<!-- run by: a.c -->\n```sh\nint z;\nint a;\n```\n"
    )
    return Document(path)


def test_wrong_blocks_are_named_with_their_lines(written: Document) -> None:
    problems = "\n".join(written.wrong_blocks())
    assert "a.md:9: the excerpt differs from a.c#one" in problems
    assert "a.md:16: language ''" in problems
    assert "a.md:29: the reason names none of" in problems
    assert "a.md:34: a.c does not run `int a;`" in problems
    assert len(problems.splitlines()) == 4


def test_wrong_links_are_named_with_their_lines(written: Document) -> None:
    problems = "\n".join(written.wrong_links())
    assert "gone.md: there is no such file" in problems
    assert "http://a.b: links to other machines are https" in problems
    assert "a.md#none: there is no such heading" in problems
    assert len(problems.splitlines()) == 3


def test_excerpts_are_written_without_common_indentation(written: Document) -> None:
    assert "```c\nint x;\n  int y;\n```" in written.with_excerpts()
    assert written.with_excerpts().endswith("int a;\n```\n")


@pytest.mark.parametrize(
    ("about", "sentence"),
    [("b.c", "no file b.c"), ("a.c#two", "no region"), ("a.c#end", "no region")],
)
def test_an_excerpt_that_is_not_found_is_an_error(
    written: Document, about: str, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        region(about).read()


def test_scripts_keep_the_lines_of_the_document(written: Document) -> None:
    lines = written.script("python").splitlines()
    assert (lines[12], lines[18]) == ("x = 1", "y = x")
    assert written.script("sh") == ""
    assert written.parsed_commands() == ["long --to=9"]


def test_commands_are_lines_without_comments() -> None:
    assert Block(1, "sh", "# all\na b   # c\n\nd#e\n", "", "").commands == ["a b", "d#e"]


def test_anchors_match_repository_viewers(written: Document) -> None:
    assert written.anchors == {"a-b-c"}
    assert slug_of("What's `x_y`, and why?") == "whats-x_y-and-why"
