"""`dpuemu check` on small programs of which most have one known error.

The programs are the functions CASE(kind, name) of tests/check. A bug is found if its run has
findings of exactly this kind; a correct program (`fine`) has none.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpuemu import check, tools

PROGRAMS = Path(__file__).parents[1] / "check"
CASE = re.compile(r"^CASE\((\w+), (\w+)(?:, (\w+))?\)", re.MULTILINE)
OPTIONS = ("-O2", "-DNR_TASKLETS=4", "-DSTACK_SIZE_DEFAULT=1024")


FAULT = 3  # exit code of the host program after a launch in fault
DEADLOCKS = ("mutex_before_a_barrier",)
# Programs without races, and words of the finding of `--schedules`.
DEPENDS_ON_THE_ORDER = {
    "copy_under_a_mutex": "reads",
    "doubles_or_adds": "reads",
    "reads_and_writes_under_two_locks": "reads",
    "locks_in_two_orders": "deadlock",
    "one_switch_of_ten_thousand": "reads 7777 instead of",
}


@dataclass(frozen=True)
class Case:
    """One function of a file, the lines that its finding names, and what the host does."""

    file: str
    number: int
    lines: dict[str, int]
    kind: str
    name: str
    mode: str


def marked_lines(text: str, begin: int) -> dict[str, int]:
    """Return the lines with marks in the function that begins at an offset of the text."""
    first = text.count("\n", 0, begin) + 1
    body = text[begin : text.index("\n}", begin)].splitlines()
    return {
        found[1]: first + i
        for i, line in enumerate(body)
        if (found := re.search(r"// (now|before)$", line))
    }


CASES = [
    Case(file.stem, number, marked_lines(text, found.start()), *(w or "" for w in found.groups()))
    for file in sorted(PROGRAMS.glob("*.c"))
    for text in (file.read_text(),)
    for number, found in enumerate(CASE.finditer(text))
    if file.stem != "host"
]


def main_of(cases: list[Case]) -> str:
    """Return the file with `main`, which calls the chosen case."""
    lines = [
        *('#include "case.h"', "volatile uint32_t sink;", "__host uint32_t argument, chosen;"),
        *(f"CASE({case.kind}, {case.name});" for case in cases),
        *("int main(void) {", "  switch (chosen) {"),
        *(f"    case {case.number}: {case.kind}_{case.name}(); break;" for case in cases),
        *("  }", "  return 0;", "}", ""),
    ]
    return "\n".join(lines)


class Runner:
    """The host program, and the checked PE programs."""

    def __init__(self, folder: Path) -> None:
        """Compile all of them."""
        self.folder = folder
        self.variables = {**os.environ, "DPUEMU_RANKS": "1", "DPUEMU_CHECK": "1"}
        for name, value in tools.environment().items():
            earlier = self.variables.get(name, "") if name in tools.SEARCH_PATHS else ""
            self.variables[name] = f"{value}:{earlier}" if earlier else value
        flags = self.run("dpu-pkg-config", "--cflags", "--libs", "dpu").stdout.split()
        self.run("gcc", "-std=gnu11", "-o", "host", str(PROGRAMS / "host.c"), *flags)
        for file in {case.file for case in CASES}:
            main = folder / f"{file}_main.c"
            main.write_text(main_of([case for case in CASES if case.file == file]))
            self.run(
                tools.COMPILER, *OPTIONS, f"-I{PROGRAMS}", "-o", file, str(main),
                str(PROGRAMS / f"{file}.c"),
            )  # fmt: skip

    def run(self, *words: str, code: int | None = 0, **variables: str) -> Any:
        """Run a command in the folder."""
        process = subprocess.run(
            words,
            cwd=self.folder,
            env={**self.variables, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert code is None or process.returncode == code, process.stderr
        return process

    def findings(self, case: Case, **variables: str) -> list[dict[str, Any]]:
        """Return the findings of a case, by their number."""
        file = self.folder / f"{case.name}.json"
        file.unlink(missing_ok=True)
        process = self.run(
            "./host", case.file, str(case.number), case.mode, code=None,
            DPUEMU_CHECK_FILE=str(file), **variables,
        )  # fmt: skip
        assert process.returncode == (FAULT if case.name in DEADLOCKS else 0), process.stderr
        return check.read(file.read_text().splitlines() if file.exists() else ())


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Compile once."""
    return Runner(tmp_path_factory.mktemp("check"))


def test_at_least_40_programs_have_an_error_and_20_look_suspicious() -> None:
    fine = sum(case.kind == "fine" for case in CASES)
    assert fine >= 20
    assert len(CASES) - fine >= 40


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.name}")
def test_finds_the_error_and_nothing_else(case: Case, runner: Runner) -> None:
    findings = runner.findings(case)
    assert {finding["kind"] for finding in findings} == {case.kind} - {"fine"}, findings
    for finding in findings if case.lines else ():
        assert [place["line"] for place in finding["places"] if "line" in place] == [
            case.lines[mark] for mark in ("now", "before") if mark in case.lines
        ]


# The states of memory that the runs in other orders leave must not change the second launch.
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.kind == "fine" and case.name not in DEPENDS_ON_THE_ORDER],
    ids=lambda case: case.name,
)
def test_a_correct_program_has_no_findings_in_any_order(case: Case, runner: Runner) -> None:
    assert not runner.findings(case, DPUEMU_CHECK_SCHEDULES="20")


def test_the_command_reports_findings_and_hides_suppressed_ones(runner: Runner) -> None:
    case = next(case for case in CASES if case.name == "counter_without_mutex")
    words = ("./host", case.file, str(case.number))
    command = (sys.executable, "-m", "dpuemu", "check")
    result = runner.run(*command, "--json", "-", "--", *words, code=1)
    [finding] = map(json.loads, result.stdout.splitlines())
    assert (finding["kind"], finding["pe"]) == ("race", "rank 0, chip 0, bank 0")
    assert "counter" in finding["object"]
    assert finding["count"] > 1
    lines = (PROGRAMS / "races.c").read_text().splitlines()
    assert finding["places"][0]["tasklet"] != finding["places"][1]["tasklet"]
    for place in finding["places"]:
        assert place["function"] == "race_counter_without_mutex"
        assert "counter += me()" in lines[place["line"] - 1]
    assert "a mutex" in finding["remedy"]
    assert result.stderr.endswith("dpuemu check: 1 finding\n")
    hidden = runner.folder / "suppressions"
    for pattern, code in (("race:race_counter*", 0), ("held:race_counter*", 1), ("races.c:", 0)):
        hidden.write_text(f"# comment\n{pattern}\n")
        runner.run(*command, "--suppressions", str(hidden), "--", *words, code=code)


def test_the_command_returns_the_code_of_a_program_that_fails(runner: Runner) -> None:
    command = (sys.executable, "-m", "dpuemu", "check")
    runner.run(*command, "--", "sh", "-c", "exit 7", code=7)
    runner.run(*command, "--", "./missing", code=127)
    runner.run(*command, "--suppressions", "missing", "--", "true", code=2)


UNCHECKED = {
    "main.c": "#include <attributes.h>\n#include <stdint.h>\n#include <defs.h>\n"
    "__host uint32_t chosen, argument;\nvoid add(uint32_t);\n"
    "int main(void) { add(me()); return 0; }\n",
    "add.c": "#include <stdint.h>\nuint32_t total;\nvoid add(uint32_t n) { total += n; }\n",
}


def test_a_program_compiled_without_checks_is_compiled_again(runner: Runner) -> None:
    for name, text in UNCHECKED.items():
        (runner.folder / name).write_text(text)
    compiler = (tools.COMPILER, "-O2", "-DNR_TASKLETS=4")
    runner.run(*compiler, "-o", "plain", *UNCHECKED, DPUEMU_CHECK="")
    errors = runner.run("./host", "plain", "0").stderr
    assert "a data race between two tasklets" in errors
    assert "add (add.c:3)" in errors
    runner.run(*compiler, "-c", *UNCHECKED, DPUEMU_CHECK="")
    (runner.folder / "add.c").unlink()
    runner.run(*compiler, "-o", "of_objects", "main.o", "add.o", DPUEMU_CHECK="")
    for program, reason in (
        ("plain", "add.c does not exist"),
        ("of_objects", "main.o is no source"),
    ):
        errors = runner.run("./host", program, "0").stderr
        assert reason in errors
        assert f"{program} was compiled without checks" in errors


def test_programs_for_checks_run_without_checks(runner: Runner) -> None:
    case = next(case for case in CASES if case.name == "counter_without_mutex")
    result = runner.run("./host", case.file, str(case.number), DPUEMU_CHECK="")
    assert result.stdout == ""
    assert "its modelled times are wrong" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", DEPENDS_ON_THE_ORDER)
def test_schedules_find_a_result_that_depends_on_the_order(name: str, runner: Runner) -> None:
    case = next(case for case in CASES if case.name == name)
    [finding] = runner.findings(case, DPUEMU_CHECK_SCHEDULES="100000")
    assert finding["kind"] == "schedule"
    text = finding["detail"] + finding["places"][0]["act"]
    assert DEPENDS_ON_THE_ORDER[name] in text
    again = re.search(r"--schedules (\d+) --seed (\d+)", finding["detail"])
    assert again is not None
    if name == "one_switch_of_ten_thousand":
        return
    repeated = runner.findings(case, DPUEMU_CHECK_SCHEDULES=again[1], DPUEMU_CHECK_SEED=again[2])
    assert [found["detail"] for found in repeated] == [finding["detail"]]
    fewer = {"DPUEMU_CHECK_SCHEDULES": str(int(again[1]) - 1), "DPUEMU_CHECK_SEED": again[2]}
    assert not runner.findings(case, **fewer)


def test_schedules_of_any_pe(runner: Runner) -> None:
    case = next(case for case in CASES if case.name == "each_its_own")
    words = ("./host", case.file, str(case.number))
    command = (sys.executable, "-m", "dpuemu", "check", "--schedules", "2", "--pe")
    for pe, lines in (("all", 1), ("0.0.0", 1), ("63", 0)):
        errors = runner.run(*command, pe, "--", *words).stderr
        assert errors.count("rank 0, chip 0, bank 0: tried 1 schedules") == lines
    for pe in ("1.8.0", "40.0.0"):
        errors = runner.run(*command, pe, "--", *words, code=2).stderr
        assert f"{pe!r} is not RANK.CHIP.BANK or a number up to 2559, or all" in errors


# Three tasklets lock one mutex, in 3! orders; tasklets that share nothing have one order.
@pytest.mark.parametrize(("name", "orders"), [("sum_under_a_mutex", 6), ("each_its_own", 1)])
def test_all_schedules_of_small_programs_are_tried_once(
    name: str, orders: int, runner: Runner
) -> None:
    case = next(case for case in CASES if case.name == name)
    words = ("./host", case.file, str(case.number))
    result = runner.run(sys.executable, "-m", "dpuemu", "check", "--schedules", "all", "--", *words)
    assert f"tried {orders} schedules: all schedules" in result.stderr
