"""`dpuemu profile` on the kernels of tests/profile: totals, lines, bounds, hangs and formats."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dpuemu import profile, run, tools

SOURCES = Path(__file__).parents[1] / "profile"
KERNELS = (SOURCES / "kernels.c").read_text()
PES, TURNS, FAULT = 8, 100, 3


def line_of(kernel: str) -> int:
    """Return the line with the mark in a kernel."""
    begin = KERNELS.index(f" {kernel}(void) {{")
    return KERNELS.count("\n", 0, KERNELS.index("// here", begin)) + 1


class Runner:
    """The host program and the kernels, each compiled once."""

    def __init__(self, folder: Path) -> None:
        """Compile the host program."""
        self.folder = folder
        self.variables = {**os.environ, "DPUEMU_RANKS": "1"}
        self.run("gcc", "-std=gnu11", "-o", "host", str(SOURCES / "host.c"), *self.flags())

    def flags(self) -> list[str]:
        """Return the options of a host program."""
        text = self.run("dpu-pkg-config", "--cflags", "--libs", "dpu").stdout
        return [str(word) for word in text.split()]

    def run(self, *words: str, code: int = 0, tool: tuple[str, ...] = ("run",)) -> Any:
        """Run a command in the folder by a command of dpuemu."""
        command = [sys.executable, "-m", "dpuemu", *tool, "--", *words]
        process = subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == code, process.stdout + process.stderr
        return process

    def kernel(self, name: str, tasklets: int = 16) -> str:
        """Compile a kernel; return its file."""
        file = f"{name}_{tasklets}"
        if not (self.folder / file).exists():
            self.run(
                tools.COMPILER, "-O2", f"-DNR_TASKLETS={tasklets}", f"-DKERNEL={name}", "-o", file,
                str(SOURCES / "kernels.c"),
            )  # fmt: skip
        return f"./{file}"

    def profile(
        self, name: str, tasklets: int = 16, launches: int = 1, code: int = 0
    ) -> dict[str, Any]:
        """Return the profile of a kernel."""
        words = ("./host", self.kernel(name, tasklets), str(launches))
        self.run(*words, code=code, tool=("profile", "--json", "profile.json"))
        (line,) = (self.folder / "profile.json").read_text().splitlines()
        return dict(json.loads(line))


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Return the programs."""
    return Runner(tmp_path_factory.mktemp("profile"))


def rows_at(values: dict[str, Any], line: int) -> list[dict[str, Any]]:
    """Return the rows of a source line of the kernels."""
    return [
        row for row in values["rows"] if row["line"] == line and row["file"].endswith("kernels.c")
    ]


@pytest.mark.parametrize(
    "name", ["computes", "copies", "counts", "works_by_number", "does_everything"]
)
def test_totals_are_those_of_the_reports_without_a_profile(runner: Runner, name: str) -> None:
    words = ("./host", runner.kernel(name), "2")
    runner.run(*words, tool=("run", "--json", "report.json"))
    reports = run.parse_launches((runner.folder / "report.json").read_text())
    values = runner.profile(name, launches=2)
    instructions = sum(report.instructions for report in reports)
    moved = sum(report.dma_read_bytes + report.dma_write_bytes for report in reports)
    assert values["launches"] == len(reports) == 2
    assert values["instructions"] == instructions
    assert values["dma_bytes"] == moved
    assert values["cycles"] == pytest.approx(sum(report.cycles_sum for report in reports))
    assert values["slowest_cycles"] == pytest.approx(sum(r.cycles_max for r in reports))
    assert sum(row["dma_bytes"] for row in values["rows"]) == moved
    assert sum(row["instructions"] for row in values["rows"]) == instructions
    known = [row for row in values["rows"] if row["function"] != "(without counters)"]
    # The routine of the allocators is assembly, and repeats attempts only after interruptions.
    assert sum(row["instructions"] for row in known) == instructions


def test_a_line_has_the_instructions_of_its_asm_block(runner: Runner) -> None:
    values = runner.profile("computes", tasklets=4)
    executed = sum(row["instructions"] for row in rows_at(values, line_of("computes")))
    assert executed == PES * 4 * 100 * TURNS * 3
    loop = sum(row["instructions"] for row in rows_at(values, line_of("computes") - 1))
    assert 100 * TURNS * PES * 4 <= loop <= 3 * 100 * TURNS * PES * 4 + 100 * PES


def test_a_line_has_the_bytes_and_waits_of_its_dma(runner: Runner) -> None:
    values = runner.profile("copies")
    (row,) = [row for row in values["rows"] if row["dma_bytes"]]
    assert (row["function"], row["line"]) == ("main", line_of("copies"))
    assert row["dma_bytes"] == PES * 16 * TURNS * 2048
    # The engine moves 2 bytes per cycle, one transfer after another.
    engine = PES * 16 * TURNS * 1024
    assert values["engine_cycles"] == engine
    waits = row["waited_cycles"]["dma"]
    assert values["cycles"] * 16 >= waits >= 0.9 * 16 * engine


@pytest.mark.parametrize("name", ["counts", "lets_one_work"])
def test_the_time_of_all_rows_is_at_most_the_time_of_the_tasklets(
    runner: Runner, name: str
) -> None:
    values = runner.profile(name)
    spent, most = sum(row["cycles"] for row in values["rows"]), values["cycles"] * 16
    assert 0.9 * most <= spent <= most * 1.000001


@pytest.mark.parametrize(
    ("name", "tasklets", "words"),
    [
        ("computes", 16, "the pipeline bounds it: a PE issues 1.00"),
        ("copies", 16, "DMA bounds it: the DMA engine is busy 100%"),
        ("counts", 16, f"most in main (kernels.c:{line_of('counts')})"),
        ("works_by_number", 16, "the slowest PE takes 7.0 times"),
        ("lets_one_work", 16, "imbalance of tasklets bounds it: tasklets wait at barriers"),
        ("computes", 3, "too few tasklets bound it: 3.0 tasklets compute at a time"),
        ("copies_words", 1, "the latency of DMA bounds it"),
    ],
)
def test_a_sentence_names_the_bound_and_its_number(
    runner: Runner, name: str, tasklets: int, words: str
) -> None:
    assert words in runner.profile(name, tasklets)["bound"]


def test_interrupted_tasklets_lose_no_counts(runner: Runner) -> None:
    values = runner.profile("computes_for_long", tasklets=2)
    assert all(row["function"] != "(without counters)" for row in values["rows"])
    assert sum(row["instructions"] for row in values["rows"]) == values["instructions"]


@pytest.mark.parametrize(
    ("name", "what", "waiting", "code"),
    [("keeps_a_mutex", "mutex", 3, FAULT), ("misses_a_barrier", "barrier", 3, 0)],
)
def test_tasklets_that_hang_are_named_with_their_line(
    runner: Runner, name: str, what: str, waiting: int, code: int
) -> None:
    values = runner.profile(name, tasklets=4, code=code)
    (row,) = [row for row in values["rows"] if row["unfinished"]]
    assert row["line"] == line_of(name)
    assert row["unfinished"] == {what: PES * waiting}
    shown = runner.run("./host", runner.kernel(name, 4), "1", code=code, tool=("profile",)).stdout
    assert (
        f"{PES * waiting} waits of tasklets ({what}) lasted until the end of a launch: main"
        f" (kernels.c:{line_of(name)})"
    ) in shown


def test_an_endless_loop_is_the_first_line(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(runner.variables, "DPUEMU_PATIENCE", "1")
    values = runner.profile("never_ends", tasklets=2, code=FAULT)
    assert values["rows"][0]["line"] == line_of_work()
    runs = [row for row in values["rows"] if row["line"] == line_of("never_ends")]
    assert sum(row["instructions"] for row in runs) > 1000


def line_of_work() -> int:
    """Return the line of the loop in `work`."""
    return KERNELS.count("\n", 0, KERNELS.index("for (uint32_t i = 0; i < turns; ++i)")) + 1


def test_the_formats_have_the_same_times_as_the_table(runner: Runner) -> None:
    words = ("./host", runner.kernel("counts"), "1")
    options = ("--svg", "flames.svg", "--speedscope", "scope.json", "--json", "profile.json")
    shown = runner.run(*words, tool=("profile", *options)).stdout
    values = json.loads((runner.folder / "profile.json").read_text())
    assert f"{values['instructions']:,} instructions" in shown
    spent = sum(row["cycles"] for row in values["rows"])

    scope = json.loads((runner.folder / "scope.json").read_text())
    assert scope["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    names = [frame["name"] for frame in scope["shared"]["frames"]]
    (one,) = scope["profiles"]
    assert one["type"] == "sampled"
    assert len(one["samples"]) == len(one["weights"])
    assert all(0 <= frame < len(names) for stack in one["samples"] for frame in stack)
    assert sum(one["weights"]) == pytest.approx(spent)
    assert one["endValue"] - one["startValue"] == pytest.approx(spent)

    svg = ElementTree.parse(runner.folder / "flames.svg").getroot()
    boxes = svg.findall("{http://www.w3.org/2000/svg}g")
    titles = [box.findtext("{http://www.w3.org/2000/svg}title") or "" for box in boxes]
    assert any(re.fullmatch(r"main: [\d,]+ cycles, [\d.]+%", title) for title in titles)
    widths = [float(box[1].attrib["width"]) for box in boxes]
    assert max(widths) == 1200
    assert f"waiting: mutex: {mutex_cycles(values):,.0f} cycles" in " ".join(titles)


def mutex_cycles(values: dict[str, Any]) -> float:
    """Return the longest time of waiting for a mutex in one line."""
    return float(max(row["waited_cycles"].get("mutex", 0) for row in values["rows"]))


def test_objects_need_a_build_with_counters(runner: Runner) -> None:
    build = (
        f"{tools.COMPILER} -O2 -DNR_TASKLETS=4 -DKERNEL=computes -c -o part.o"
        f" '{SOURCES}/kernels.c' && {tools.COMPILER} -DNR_TASKLETS=4 -o parts part.o"
    )
    runner.run("sh", "-c", build)
    process = runner.run("./host", "./parts", "1", tool=("profile",))
    assert "./parts was compiled without counters" in process.stderr
    assert "(without counters)" in process.stdout
    runner.run("sh", "-c", build, tool=("profile",))
    process = runner.run("./host", "./parts", "1", tool=("profile",))
    assert f"main (kernels.c:{line_of('computes')})" in process.stdout
    assert "without counters" not in process.stderr + process.stdout
    # Without a profile, counters change nothing.
    reports = []
    for file in ("./parts", runner.kernel("computes", 4)):
        runner.run("./host", file, "1", tool=("run", "--json", "report.json"))
        (report,) = run.parse_launches((runner.folder / "report.json").read_text())
        reports.append((report.instructions, report.cycles_sum))
    assert reports[0] == reports[1]


def test_rows_of_functions_are_sums_of_their_lines(runner: Runner) -> None:
    words = ("./host", runner.kernel("does_everything"), "1")
    options = ("--functions", "--json", "profile.json")
    shown = runner.run(*words, tool=("profile", *options)).stdout
    values = json.loads((runner.folder / "profile.json").read_text())
    for function in ("main", "mram_read_unaligned"):
        rows = [row for row in values["rows"] if row["function"] == function]
        assert len(rows) > 1
        (line,) = [line for line in shown.splitlines() if line.endswith(f"  {function}")]
        assert f" {sum(row['instructions'] for row in rows):,} " in line


def test_profiles_of_several_processes_are_summed(tmp_path: Path) -> None:
    row = {"function": "f", "file": "f.c", "line": 3, "repeated_instructions": 0, "dma_bytes": 8}
    values = {
        **{"name": "k", "tasklets": 2, "cycles_per_second": 1e6, "launches": 1, "pes": 1},
        **{"instructions": 5, "dma_bytes": 8, "slowest_cycles": 9, "mean_cycles": 9, "cycles": 9},
        **{"computing_cycles": 10, "engine_cycles": 4},
        "rows": [{**row, "instructions": 5, "waited_cycles": {"dma": 2.0}, "unfinished": {}}],
    }
    for name in ("1.json", "2.json"):
        (tmp_path / name).write_text(json.dumps([values]))
    (one,) = profile.read(tmp_path)
    assert one.totals["instructions"] == 10
    assert [(r.instructions, r.dma_bytes, r.waited_cycles) for r in one.rows] == [
        (10, 16, {"dma": 4.0})
    ]
    assert one.rows[0].computing_cycles == 20
