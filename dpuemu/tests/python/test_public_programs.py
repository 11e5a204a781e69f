"""The list of public programs, and the command that builds and runs them. If
DPUEMU_TEST_DPU_PROGRAMS names a folder, its programs of the vendor's compiler are tried too.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import dpu_program
import pytest
import thread_definition
from isa_definition import ZERO, Instruction

from dpuemu.supervised import supervised

TESTS = Path(__file__).resolve().parents[1]
SCRIPT = TESTS / "run_programs.py"
DPU_PROGRAMS = os.environ.get("DPUEMU_TEST_DPU_PROGRAMS", "")
LAUNCH = """
import sys
from dpu import DpuError, DpuSet
from dpuemu._dpuemu import explain_fault
with DpuSet(1) as dpus:
    dpus.load(sys.argv[1])
    try:
        dpus.exec()
        print("ended")
    except DpuError:
        print(explain_fault(bytes(dpus.c_set)))
"""
EXAMPLE = TESTS.parent / "examples" / "vector_add"
ROW = """
[[program]]
repository = "owner/vectors"
commit = "0000000"
build = ["make host kernel"]
run = ["./host"]
judge = "own check"
"""


@pytest.fixture
def script() -> dict[str, Any]:
    """The names of run_programs.py."""
    return runpy.run_path(str(SCRIPT))


def test_each_row_has_a_commit_and_commands_that_need_no_shell(script: dict[str, Any]) -> None:
    programs = script["programs"](script["LIST"].read_text())
    assert len({program.repository for program in programs}) >= 70
    assert len({program.name for program in programs}) == len(programs)
    for program in programs:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", program.repository)
        assert re.fullmatch(r"[0-9a-f]{7,40}", program.commit)
        for command in (*program.build, *program.run, *program.check):
            assert not re.search(r"[;|<>&`$*]", command), command
            assert shlex.split(command)
        for pattern in (program.prints, program.refuted_by):
            re.compile(pattern)
        # A row without a judge can not become right, and a row that becomes right runs.
        assert program.reaches != "right" or (program.judge and program.build and program.run)


def test_a_row_with_an_unknown_key_or_without_a_reason_is_an_error(script: dict[str, Any]) -> None:
    for row, words in (
        (ROW + 'speed = "fast"', "speed"),
        (ROW + 'reaches = "runs"', "why"),
        (ROW + 'reaches = "far"', "far"),
    ):
        with pytest.raises(ValueError, match=words):
            script["programs"](row)


@pytest.mark.parametrize(
    ("row", "line", "code"),
    [
        (ROW + 'prints = "128 PEs"\nreaches = "right"', "right (own check)", 0),
        (ROW + 'prints = "129 PEs"\nreaches = "right"', "runs (the output lacks '129 PEs')", 1),
        (
            ROW + 'refuted_by = "[0-9]+ PEs"\nreaches = "right"',
            "runs (the output has '128 PEs')",
            1,
        ),
        (
            ROW.replace("./host", "false && true") + 'reaches = "builds"\nwhy = "no shell"',
            "builds (`false && true`: exit code 1",
            0,
        ),
        (
            ROW.replace('["make host kernel"]', '["make absent"]') + 'reaches = "right"',
            "nothing (`make absent`: exit code 2: make: *** No rule",
            1,
        ),
        (
            ROW.replace("make host kernel", "true").replace("./host", "sleep 100")
            + 'reaches = "builds"\nwhy = "sleeps"',
            "builds (`sleep 100`: no end after",
            0,
        ),
        (ROW.replace("vectors", "absent") + 'reaches = "right"', "skipped: ", 0),
    ],
)
def test_the_command_reports_how_far_a_program_comes(
    row: str, line: str, code: int, tmp_path: Path
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "owner" / "vectors")
    rows = tmp_path / "rows.toml"
    rows.write_text(row)
    before = sorted(tmp_path.rglob("*"))
    seconds = "5" if "sleep" in row else "60"
    # If a make runs this test, its variables change the output of other makes.
    variables = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    result = subprocess.run(
        [sys.executable, SCRIPT, tmp_path, "owner", "--list", rows, "--seconds", seconds],
        env=variables | {"LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    name = "owner/absent" if "absent" in row.splitlines()[2] else "owner/vectors"
    assert result.stdout.startswith(f"{name}: {line}"), result.stdout + result.stderr
    assert result.returncode == code
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture(scope="module")
def recode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program isa_recode.cpp."""
    program = tmp_path_factory.mktemp("recode") / "recode"
    isa = TESTS.parent / "src" / "isa"
    sources = [TESTS / "isa_recode.cpp", isa / "encoding.cpp", isa / "text.cpp"]
    includes = [f"-I{TESTS.parent / 'src'}", f"-I{TESTS.parent}"]
    subprocess.run(["c++", "-std=c++20", *includes, "-o", program, *sources], check=True)
    return program


def try_program(file: Path, recode: Path) -> str:
    """Check that objdump lists a program and each instruction survives encoding; launch it without
    input. Return "ended" or the fault.
    """
    dpuemu = [sys.executable, "-m", "dpuemu"]
    listing = subprocess.run([*dpuemu, "objdump", file], capture_output=True, check=True).stdout
    words = re.findall(rb"^  [0-9a-f]{8,}:  ([0-9a-f]+)  ", listing, re.M)
    assert words, f"{file} has no instructions"
    result = subprocess.run([recode], input=b"\n".join(words), capture_output=True, check=True)
    assert result.stdout == b"", f"{file} has words that are not instructions"
    launch = [*dpuemu, "run", "--", sys.executable, "-c", LAUNCH, str(file)]
    variables = {**os.environ, "DPUEMU_PATIENCE": "5"}
    with supervised(launch, stdout=subprocess.PIPE, env=variables) as process:
        assert process.stdout is not None
        end = process.stdout.read().decode().strip()
        assert process.wait() == 0, f"{file}: {end}"
    assert end, f"{file} neither ended nor is in fault"
    return end


@pytest.mark.parametrize(
    ("instruction", "end"), [("stop", "ended"), ("fault", "executed the instruction fault 9, at")]
)
def test_a_program_of_machine_code_ends_or_reports_a_fault(
    instruction: str, end: str, tmp_path: Path, recode: Path
) -> None:
    file = tmp_path / "program"
    code = [Instruction("add", "r", 1, ZERO, immediate=7), Instruction(instruction, immediate=9)]
    file.write_bytes(dpu_program.program_file([thread_definition.encode(it) for it in code], []))
    assert end in try_program(file, recode)
    file.write_bytes(dpu_program.program_file([(1 << 48) - 1], []))
    with pytest.raises(AssertionError, match="not instructions"):
        try_program(file, recode)


@pytest.mark.skipif(not DPU_PROGRAMS, reason="DPUEMU_TEST_DPU_PROGRAMS names no folder")
def test_programs_of_a_folder_end_or_report_a_fault(recode: Path) -> None:
    files = [
        file
        for file in sorted(Path(DPU_PROGRAMS).rglob("*"))
        if file.is_file() and file.read_bytes()[:20].endswith(b"\x02\x00\xf5\x00")
    ]
    assert files, f"{DPU_PROGRAMS} has no programs of the vendor's compiler"
    for file in files:
        try_program(file, recode)
