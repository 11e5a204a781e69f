"""`dpuemu profile` on the kernels of tests/profile: totals, lines, bounds, hangs and formats."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from kernel_runner import SOURCES, Runner

from dpuemu import profile, run, tools
from dpuemu.arguments import USAGE

KERNELS = (SOURCES / "kernels.c").read_text()
EXAMPLE = Path(__file__).parents[2] / "examples" / "histogram"
PES, TURNS, FAULT = 8, 100, 3


def line_of(kernel: str) -> int:
    """Return the line with the mark in a kernel."""
    begin = KERNELS.index(f" {kernel}(void) {{")
    return KERNELS.count("\n", 0, KERNELS.index("// here", begin)) + 1


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
    known = [row for row in values["rows"] if row["function"] != "(without counters)"]
    # All blocks have counters, except in the assembly of the allocators. This executes only a call,
    # unless it is interrupted.
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
    # Without an interruption, the kernel ends in a fault.
    values = runner.profile("computes_for_long", tasklets=2)
    assert all(row["function"] != "(without counters)" for row in values["rows"])


@pytest.mark.parametrize(
    ("waited", "tasklets", "computing", "words"),
    [
        ({"mutex": 0.45, "barrier": 0.3}, 24, 0.2, "mutex bounds it: tasklets wait for mutexes"),
        ({"mutex": 0.45, "dma": 0.3}, 16, 0.2, "a mutex bounds it"),
        ({"dma": 0.45, "barrier": 0.1}, 16, 0.3, "the latency of DMA bounds it"),
        ({"barrier": 0.3, "dma": 0.2}, 16, 0.2, "imbalance of tasklets bounds it"),
        ({"semaphore": 0.2, "stop": 0.2}, 8, 0.35, "other tasklets bound it"),
        ({"mutex": 0.3, "dma": 0.3}, 8, 0.4, "too few tasklets bound it: 3.2 tasklets compute"),
        ({"mutex": 0.3, "barrier": 0.2}, 24, 0.5, "a mutex bounds it"),
    ],
)  # fmt: skip
def test_the_bound_below_half_is_the_longest_wait_unless_few_tasklets_compute(
    waited: dict[str, float], tasklets: int, computing: float, words: str
) -> None:
    cycles = 1000.0
    time = cycles * tasklets
    one = made(tasklets=tasklets, cycles=cycles, computing_cycles=computing * time)
    one.rows[0].waited_cycles = {what: share * time for what, share in waited.items()}
    assert words in one.bound()


def test_without_rows_no_instruction_ran() -> None:
    one = made()
    one.rows.clear()
    assert one.bound() == "no instruction ran"
    assert next(profile.table(one, 1)).startswith("k: 1 launches")


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
        f"at the end of a launch, {PES * waiting} tasklets still waited for a {what} in main"
        f" (kernels.c:{line_of(name)})"
    ) in shown


def test_an_endless_loop_is_the_first_line(runner: Runner) -> None:
    tool = ("profile", "--patience", "1", "--json", "profile.json")
    runner.run("./host", runner.kernel("never_ends", 2), "1", code=FAULT, tool=tool)
    values = json.loads((runner.folder / "profile.json").read_text())
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
    check_speedscope(scope)
    (one,) = scope["profiles"]
    assert sum(one["weights"]) == pytest.approx(spent)
    assert one["endValue"] - one["startValue"] == pytest.approx(spent)

    svg = ElementTree.parse(runner.folder / "flames.svg").getroot()
    boxes = svg.findall("{http://www.w3.org/2000/svg}g")
    titles = [box.findtext("{http://www.w3.org/2000/svg}title") or "" for box in boxes]
    assert any(re.fullmatch(r"main: [\d,]+ cycles, [\d.]+%", title) for title in titles)
    widths = [float(box[1].attrib["width"]) for box in boxes]
    assert max(widths) == 1200
    assert f"waiting: mutex: {mutex_cycles(values):,.0f} cycles" in " ".join(titles)


# The fields of a speedscope file with sampled profiles, from its public description. `?` marks
# fields that may be missing; no others may exist.
SPEEDSCOPE: dict[str, Any] = {
    **{"$schema": str, "exporter?": str, "name?": str, "activeProfileIndex?": int},
    "shared": {"frames": [{"name": str, "file?": str, "line?": int, "col?": int}]},
    "profiles": [
        {
            **{"type": str, "name": str, "unit": str, "startValue": (int, float)},
            **{"endValue": (int, float), "samples": [[int]], "weights": [(int, float)]},
        }
    ],
}
UNITS = ("none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes")


def check_fields(value: Any, schema: Any) -> None:
    """Check the types of a value and of all its parts."""
    if isinstance(schema, dict):
        known = {name.rstrip("?"): kind for name, kind in schema.items()}
        required = {name for name in schema if not name.endswith("?")}
        assert required <= value.keys() <= known.keys(), value.keys()
        for name, part in value.items():
            check_fields(part, known[name])
    elif isinstance(schema, list):
        assert isinstance(value, list)
        for part in value:
            check_fields(part, schema[0])
    else:
        assert isinstance(value, schema), (value, schema)
        assert not isinstance(value, bool)


def check_speedscope(scope: Any) -> None:
    """Check a speedscope file: its fields, and the rules between them."""
    check_fields(scope, SPEEDSCOPE)
    assert scope["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = scope["shared"]["frames"]
    for one in scope["profiles"]:
        assert one["type"] == "sampled"
        assert one["unit"] in UNITS
        assert len(one["samples"]) == len(one["weights"])
        assert min(one["weights"], default=0) >= 0
        assert one["startValue"] <= one["endValue"]
        assert all(0 <= frame < len(frames) for stack in one["samples"] for frame in stack)


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"$schema": "other"},
        {"shared": {"frames": []}},
        {"shared": {"frames": [{"file": "a"}]}},
        {"profiles": [{}]},
    ],
)
def test_the_check_of_speedscope_files_finds_errors(change: dict[str, Any]) -> None:
    scope = profile.speedscope([made()])
    check_speedscope(scope)
    with pytest.raises(AssertionError):
        check_speedscope({**scope, **change})


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


def test_tasklets_that_stop_wait_for_a_resume(runner: Runner) -> None:
    values = runner.profile("stops", tasklets=2)
    (row,) = [row for row in values["rows"] if row["unfinished"]]
    assert row["unfinished"] == {"stop": PES}
    assert row["waited_cycles"].keys() == {"stop"}


def test_a_program_with_too_many_counters_is_refused(runner: Runner) -> None:
    blocks = "".join(f"if (x & {i + 1}) x = x * 3 + {i};" for i in range(5000))
    (runner.folder / "long.c").write_text(
        f"volatile unsigned x; int main(void) {{ {blocks} return 0; }}"
    )
    compile_it = (tools.COMPILER, "-O2", "-c", "-o", "long.o", "long.c")
    runner.run(*compile_it, tool=("profile",))
    process = runner.ended(tools.COMPILER, "-o", "long", "long.o", tool=("profile",))
    assert process.returncode != 0
    rule = r"`dpuemu profile` has 4096 counters, but the program needs \d+; compile fewer files in"
    assert re.search(rule, process.stderr), process.stderr


def test_a_locale_does_not_change_the_numbers(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    locale = runner.folder / "de_DE.UTF-8"
    make = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(locale)]
    if shutil.which("localedef") is None or subprocess.run(make, check=False).returncode != 0:
        pytest.skip("the locale de_DE cannot be made")
    values = runner.profile("copies_words", tasklets=1)
    for name, value in (("LOCPATH", str(runner.folder)), ("LC_ALL", locale.name)):
        monkeypatch.setitem(runner.variables, name, value)
    assert runner.run("env", "printf", "%.1f", "1").stdout == "1,0"
    assert runner.profile("copies_words", tasklets=1) == values
    runner.run("./host", "./copies_words_1", "1", tool=("run", "--json", "report.json"))
    (report,) = run.parse_launches((runner.folder / "report.json").read_text())
    assert report.cycles_sum == values["cycles"]


def test_programs_of_one_name_stay_apart(runner: Runner) -> None:
    names = ("computes", "copies")
    for name in names:
        folder = runner.folder / f"of_{name}"
        folder.mkdir()
        shutil.copy(runner.folder / runner.kernel(name), folder / "kernel")
    words = " && ".join(f"(cd of_{name} && ../host ./kernel 1)" for name in names)
    runner.run("sh", "-c", words, tool=("profile", "--json", "profile.json"))
    lines = (runner.folder / "profile.json").read_text().splitlines()
    values = sorted(map(json.loads, lines), key=lambda one: str(one["path"]))
    assert {one["name"] for one in values} == {"./kernel (1)", "./kernel (2)"}
    for name, one in zip(names, values, strict=True):
        assert one["path"] == str((runner.folder / f"of_{name}" / "kernel").resolve())
        assert one["launches"] == 1
        assert one["rows"][0]["line"] == line_of(name)


def test_checks_of_the_environment_are_off(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(runner.variables, "DPUEMU_CHECK", "1")
    assert runner.profile("computes", tasklets=4)["launches"] == 1


@pytest.mark.parametrize("option", ["--svg", "--speedscope"])
def test_files_that_are_no_lines_need_a_name(runner: Runner, option: str) -> None:
    process = runner.run("true", code=USAGE, tool=("profile", option, "-"))
    assert f"{option} - is not a file name" in process.stderr


@pytest.mark.parametrize(
    ("flags", "words"), [("", "kernel: a mutex bounds it"), ("-DPRIVATE", "the pipeline bounds it")]
)
def test_the_histogram_of_the_manual_has_its_bounds(runner: Runner, flags: str, words: str) -> None:
    shutil.copytree(EXAMPLE, runner.folder / "histogram", dirs_exist_ok=True)
    command = ("make", "-s", "-C", "histogram", f"FLAGS={flags}")
    assert words in runner.run(*command, tool=("profile",)).stdout


VALUES: dict[str, Any] = {
    **{"name": "k", "path": "/k", "hash": "1", "tasklets": 2, "cycles_per_second": 1e6},
    **{"waits": ["dma", "mutex", "barrier", "semaphore", "handshake", "stop"]},
    **{"full_pipeline": 11, "launches": 1, "pes": 1, "instructions": 5, "dma_bytes": 8},
    **{"slowest_cycles": 9, "mean_cycles": 9, "cycles": 9, "computing_cycles": 10},
    "engine_cycles": 4,
}
ROW: dict[str, Any] = {
    **{"function": "f", "file": "f.c", "line": 3, "repeated_instructions": 0, "dma_bytes": 8},
    **{"instructions": 5, "waited_cycles": {"dma": 2.0}, "unfinished": {}},
}


def made(**fields: Any) -> profile.Profile:
    """Return the profile of one row."""
    with tempfile.TemporaryDirectory() as folder:
        values = {**VALUES, "rows": [ROW], **fields}
        (Path(folder) / "1.json").write_text(json.dumps([values]))
        (one,) = profile.read(Path(folder))
    return one


def test_profiles_of_several_processes_are_summed(tmp_path: Path) -> None:
    for name in ("1.json", "2.json"):
        (tmp_path / name).write_text(json.dumps([{**VALUES, "rows": [ROW]}]))
    (one,) = profile.read(tmp_path)
    assert one.totals["instructions"] == 10
    assert [(r.instructions, r.dma_bytes, r.waited_cycles) for r in one.rows] == [
        (10, 16, {"dma": 4.0})
    ]
    assert one.rows[0].computing_cycles == 20


def test_a_file_that_a_process_did_not_complete_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "7.json").write_text("[]")
    assert list(profile.problems(tmp_path)) == []
    (tmp_path / "7.json.draft").write_text("[")
    (problem,) = profile.problems(tmp_path)
    assert problem.startswith("process 7 did not complete the file of its profile")


def test_boxes_of_a_flame_graph_are_sums_of_their_leaves_and_do_not_overlap() -> None:
    # Equal names: two programs, and two lines in files of one name.
    profiles = [made(tasklets=2), made(tasklets=4)]
    for one in profiles:
        one.rows.append(dataclasses.replace(one.rows[0], file="folder/f.c"))
    svg = ElementTree.fromstring(profile.flame_graph(profiles))
    space = "{http://www.w3.org/2000/svg}"
    boxes = []  # row, begin, width and cycles
    for box in svg.findall(f"{space}g"):
        title, rectangle = box.findtext(f"{space}title") or "", box[1].attrib
        cycles = float(re.search(r": ([\d,]+) cycles", title)[1].replace(",", ""))  # type: ignore[index]
        boxes.append(
            (float(rectangle["y"]), float(rectangle["x"]), float(rectangle["width"]), cycles)
        )
    spent = sum(row.cycles for one in profiles for row in one.rows)
    rows = sorted({y for y, *_ in boxes})
    numbers = [sum(box[0] == y for box in boxes) for y in rows]
    assert numbers == [8, 4, 2, 2, 1]  # leaves are at the top
    for y in rows:
        own = sorted(box[1:] for box in boxes if box[0] == y)
        assert sum(cycles for *_, cycles in own) == pytest.approx(spent)
        for (begin, width, _), (next_begin, *_) in itertools.pairwise(own):
            assert begin + width <= next_begin + 0.11  # rounded to 0.1 pixels
    leaves = [box for box in boxes if box[0] == rows[0]]
    for _, begin, width, cycles in boxes:
        inside = [leaf for leaf in leaves if begin - 0.1 <= leaf[1] < begin + width - 0.1]
        assert cycles == pytest.approx(sum(leaf[3] for leaf in inside))
