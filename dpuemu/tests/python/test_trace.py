"""`dpuemu trace` on the kernels of tests/profile: the format, times, waits, regions and limits."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import dpu_program
import pytest
import thread_definition as threads
from isa_definition import ID, ZERO, Instruction
from kernel_runner import SOURCES, Runner

from dpuemu import run, tools, trace, trace_plot

PES, TURNS, CYCLES_PER_US = 8, 100, 350
NUMBERS = range(0, 64, 8)  # of the PEs of the host program: bank 0 of each chip
ALL = ("--pes", ",".join(map(str, NUMBERS)))
HOST, RANKS, FIRST_PE, ENGINE = 1, 2, 3, 25
Event = dict[str, Any]

# The fields of Chrome's trace format, by phase, from its public description.
FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "X": {"name": str, "cat": str, "ts": (int, float), "dur": (int, float), "tid": int},
    "i": {"name": str, "cat": str, "ts": (int, float), "s": str, "tid": int},
    "C": {"name": str, "cat": str, "ts": (int, float), "args": dict},
    "M": {"name": str, "args": dict},
}
METADATA = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}


def ns(us: float) -> int:
    """Return a time in whole ns."""
    return round(1000 * us)


def end_of(event: Event) -> int:
    """Return the end of a complete event."""
    return ns(event["ts"]) + ns(event["dur"])


def check_format(document: Any) -> list[Event]:
    """Return the events of a trace, after all checks of the format and of the nesting."""
    assert set(document) == {"displayTimeUnit", "traceEvents"}
    events: list[Event] = document["traceEvents"]
    tracks: dict[tuple[int, int], list[Event]] = defaultdict(list)
    named: Counter[tuple[str, int, int]] = Counter()
    for event in events:
        phase = event["ph"]
        for name, kind in FIELDS[phase].items():
            assert isinstance(event[name], kind), event
        assert isinstance(event["pid"], int)
        if phase == "M":
            assert METADATA[event["name"]] in event["args"]
            named[event["name"], event["pid"], event["tid"]] += 1
            continue
        assert event["ts"] >= 0, event
        if phase == "X":
            assert event["dur"] >= 0, event
            tracks[event["pid"], event["tid"]].append(event)
        if phase == "i":
            assert event["s"] in ("g", "p", "t")
        if phase == "C":
            assert all(0 <= value <= 100 for value in event["args"].values()), event
    assert set(named.values()) <= {1}
    for (pid, tid), track in tracks.items():
        assert named["process_name", pid, 0] == named["thread_name", pid, tid] == 1
        check_nesting(track)
    return events


def check_nesting(track: list[Event]) -> None:
    """Check that two events of a track either nest or do not overlap."""
    ends: list[int] = []
    for event in sorted(track, key=lambda event: (ns(event["ts"]), -ns(event["dur"]))):
        while ends and ends[-1] <= ns(event["ts"]):
            ends.pop()
        assert not ends or end_of(event) <= ends[-1], event
        ends.append(end_of(event))


def traced(runner: Runner, *words: str, options: tuple[str, ...] = (), code: int = 0) -> Any:
    """Run a host program with a trace; return its checked events, and the process."""
    process = runner.run(*words, code=code, tool=("trace", "--out", "trace.json", *options))
    document = json.loads((runner.folder / "trace.json").read_bytes())
    return check_format(document), process


def of(events: list[Event], pid: int, name: str | None = None, phase: str = "X") -> list[Event]:
    """Return the events of a process, or those of one name."""
    return [
        event
        for event in events
        if (event["pid"], event["ph"]) == (pid, phase) and name in (None, event["name"])
    ]


def rank_launches(events: list[Event]) -> list[Event]:
    """Return the launches on ranks."""
    return [event for event in of(events, RANKS) if event["name"].startswith("launch")]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Return the programs."""
    return Runner(tmp_path_factory.mktemp("trace"))


@pytest.mark.parametrize(
    "name", ["computes", "copies", "counts", "works_by_number", "does_everything", "marks"]
)
def test_a_trace_has_the_modelled_times_of_a_run_without_it(runner: Runner, name: str) -> None:
    words = ("./host", runner.kernel(name), "2")
    runner.run(*words, tool=("run", "--json", "report.json"))
    reports = run.parse_launches((runner.folder / "report.json").read_text())
    events, _ = traced(runner, *words, options=ALL)
    launches = rank_launches(events)
    for launch, report in zip(launches, reports, strict=True):
        us = report.cycles_max / CYCLES_PER_US
        assert launch["dur"] == pytest.approx(us, abs=0.002)
        times = launch["args"]["pe_us"]
        assert len(times) == PES
        assert sum(times) == pytest.approx(report.cycles_sum / CYCLES_PER_US, abs=0.01)
        assert times[NUMBERS.index(launch["args"]["slowest_pe"])] == max(times)
        dma = [
            event
            for pe in NUMBERS
            for event in of(events, FIRST_PE + pe)
            if event["tid"] == ENGINE
            and ns(launch["ts"]) <= ns(event["ts"])
            and end_of(event) <= end_of(launch)
        ]
        assert len(dma) == report.dma_reads + report.dma_writes
        read = sum(e["args"]["bytes"] for e in dma if e["name"] == "DMA read")
        assert read == report.dma_read_bytes
        assert sum(e["args"]["bytes"] for e in dma) == read + report.dma_write_bytes


@pytest.mark.parametrize("name", ["copies", "counts", "lets_one_work", "does_everything"])
def test_waits_add_up_to_those_of_the_profile(runner: Runner, name: str) -> None:
    profile = runner.profile(name)
    events, _ = traced(runner, "./host", runner.kernel(name), "1", options=ALL)
    waits: Counter[str] = Counter()
    for event in events:
        if event["pid"] >= FIRST_PE and event["ph"] == "X" and event["tid"] != ENGINE:
            what = "dma" if event["name"].startswith("DMA") else event["name"]
            waits[what] += ns(event["dur"])
    del waits["run"]
    expected: Counter[str] = Counter()
    for row in profile["rows"]:
        for what, cycles in row["waited_cycles"].items():
            expected[what] += cycles
    assert waits.keys() == expected.keys()
    count = sum(event["ph"] == "X" for event in events)
    for what, cycles in expected.items():
        assert waits[what] == pytest.approx(1000 * cycles / CYCLES_PER_US, abs=count)


def test_a_wait_names_its_source_line(runner: Runner) -> None:
    source = (SOURCES / "kernels.c").read_text()
    place = source.index("// here", source.index(" counts(void) {"))
    line = source.count("\n", 0, place) + 1
    events, _ = traced(runner, "./host", runner.kernel("counts"), "1", options=ALL)
    places = {e["args"]["at"] for e in events if e["name"] == "mutex" and e["ph"] == "X"}
    assert places == {f"main (kernels.c:{line})"}


def test_tasklets_run_until_their_last_instruction(runner: Runner) -> None:
    events, _ = traced(runner, "./host", runner.kernel("lets_one_work", 4), "1", options=ALL)
    for pe in NUMBERS:
        (longest,) = {e["dur"] for e in of(events, FIRST_PE + pe, "run") if e["tid"] == 1}
        for tasklet in range(1, 4):
            (own,) = (e for e in of(events, FIRST_PE + pe, "run") if e["tid"] == tasklet + 1)
            (wait,) = (e for e in of(events, FIRST_PE + pe, "barrier") if e["tid"] == tasklet + 1)
            assert wait["dur"] > 0.9 * longest
            assert own["dur"] >= wait["dur"]


def test_marked_regions_have_names_and_counters_are_instants(runner: Runner) -> None:
    events, _ = traced(runner, "./host", runner.kernel("marks", 2), "1", options=("--pes", "24"))
    pe = FIRST_PE + 24
    for tasklet in range(2):
        own = [e for e in of(events, pe) if e["tid"] == tasklet + 1]
        names = Counter(e["name"] for e in own)
        assert names == {
            **{"run": 1, "load": 1, 'all "turns"': 1, "turn": 3, "until the end": 1},
            "DMA read": TURNS,
        }
        by_name = {e["name"]: e for e in own}
        outer = by_name['all "turns"']
        turns = [e for e in own if e["name"] == "turn"]
        assert all(ns(outer["ts"]) <= ns(e["ts"]) and end_of(e) <= end_of(outer) for e in turns)
        assert sum(ns(e["dur"]) for e in turns) >= 0.9 * ns(outer["dur"])
        assert end_of(by_name["until the end"]) == end_of(by_name["run"])
    first, second = of(events, pe, "perfcounter", "i")
    assert {first["tid"], second["tid"]} == {2}
    cycles = CYCLES_PER_US * (second["ts"] - first["ts"])
    assert second["args"]["value"] == pytest.approx(cycles, abs=20)


def test_the_region_macros_are_empty_for_other_targets(runner: Runner) -> None:
    (header,) = tools.sdk_root().rglob("trace_regions.h")
    source = f'#include "{header}"\nint f(void) {{ TRACE_BEGIN("a"); TRACE_END(); return 1; }}\n'
    command = ["gcc", "-E", "-P", "-D__clang__", "-"]
    shown = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    assert "".join(shown.stdout.split()) == "intf(void){((void)0);((void)0);return1;}"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--pes", "40,16"), {16, 40}),
        (("--sample", "2"), {0, 32}),
        (("--sample", "1", "--pes", "56"), {0, 56}),
        (("--sample", "0"), set()),
        ((), set(NUMBERS)),
    ],
)
def test_options_choose_the_pes_in_detail(
    runner: Runner, options: tuple[str, ...], shown: set[int]
) -> None:
    events, process = traced(runner, "./host", runner.kernel("computes", 2), "1", options=options)
    assert {e["pid"] - FIRST_PE for e in events if e["pid"] >= FIRST_PE} == shown
    (launch,) = rank_launches(events)
    assert len(launch["args"]["pe_us"]) == PES
    assert f"1 launches of {PES} PEs, {len(shown)} PEs in detail" in process.stdout


@pytest.mark.parametrize(("kernel", "launches"), [("counts", "40"), ("marks", "300")])
def test_the_file_keeps_its_limit_and_a_sentence_says_so(
    runner: Runner, kernel: str, launches: str
) -> None:
    options = (*ALL, "--limit", "1")
    events, process = traced(runner, "./host", runner.kernel(kernel), launches, options=options)
    assert (runner.folder / "trace.json").stat().st_size <= 1_000_000
    found = re.search(r"at least ([\d,]+) events are missing .* a limit of 1 MB", process.stderr)
    assert found
    assert int(found[1].replace(",", "")) > 1000
    # All launches, and details of the first one, remain.
    assert len(rank_launches(events)) == int(launches)
    assert len(of(events, HOST)) > int(launches)
    assert {e["pid"] for e in events} >= {FIRST_PE + pe for pe in NUMBERS}


def test_without_dropped_events_nothing_is_missing(runner: Runner) -> None:
    _, process = traced(runner, "./host", runner.kernel("counts"), "1", options=ALL)
    assert process.stderr == ""


def test_launches_begin_in_order_and_at_the_host_s_time_or_later(runner: Runner) -> None:
    # Four launches of modelled 0.3 s take less time on the host.
    events, _ = traced(runner, "./host", runner.kernel("computes_for_long", 2), "4")
    hosts = [e for e in of(events, HOST) if e["name"].startswith("launch")]
    ranks = rank_launches(events)
    assert [e["name"] for e in hosts] == [e["name"] for e in ranks]
    assert [e["name"].partition(":")[0] for e in hosts] == [f"launch {i}" for i in range(1, 5)]
    free = 0
    for host, rank in zip(hosts, ranks, strict=True):
        assert ns(rank["ts"]) == pytest.approx(max(ns(host["ts"]), free), abs=2)
        free = end_of(rank)
        assert host["args"]["modelled_us"] == pytest.approx(rank["dur"], abs=0.002)
        assert rank["args"]["host_us"] == pytest.approx(host["dur"], abs=0.002)
        assert (host["cat"], rank["cat"]) == ("measured", "modelled")


def test_asynchronous_launches_have_a_row_per_rank(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(runner.variables, "DPUEMU_RANKS", "2")
    events, _ = traced(runner, "./host", runner.kernel("counts", 4), "3", "async")
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    launches = [e for e in of(events, HOST) if e["name"].startswith("launch")]
    assert Counter(rows[e["tid"]] for e in launches) == {
        "rank 0 (asynchronous launches)": 3,
        "rank 1 (asynchronous launches)": 3,
    }
    assert Counter(e["tid"] for e in rank_launches(events)) == {0: 3, 1: 3}
    detailed = {e["pid"] - FIRST_PE for e in events if e["pid"] >= FIRST_PE}
    assert detailed == set(range(0, 128, 8))


def test_transfers_and_loads_have_sizes_and_are_measured(runner: Runner) -> None:
    events, process = traced(runner, "./host", runner.kernel("computes", 2), "1")
    (load,) = of(events, HOST, "dpu_load")
    assert load["args"] == {"program": runner.kernel("computes", 2)}
    (transfer,) = of(events, HOST, "write WRAM")
    assert transfer["args"] == {"pes": PES, "bytes": 4 * PES}
    assert {e["cat"] for e in of(events, HOST)} == {"measured"}
    us = re.search(r"transfers ([\d.,]+) us \(measured\)", process.stdout)
    assert us
    assert float(us[1].replace(",", "")) == pytest.approx(transfer["dur"], abs=0.1)


def test_two_processes_have_their_own_rows(runner: Runner) -> None:
    kernel = runner.kernel("counts", 4)
    words = ("sh", "-c", f"./host {kernel} 1 & ./host {kernel} 2 & wait")
    events, process = traced(runner, *words, options=ALL)
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    hosts = [pid for pid, name in names.items() if name.startswith("host of process")]
    assert len(hosts) == 2
    counts = {len([e for e in of(events, pid) if e["name"].startswith("launch")]) for pid in hosts}
    assert counts == {1, 2}
    assert len([name for name in names.values() if name.startswith("PE ")]) == 2 * PES
    assert f"3 launches of {2 * PES} PEs, {2 * PES} PEs in detail" in process.stdout


LIBRARY = """
import json, os, pathlib, subprocess, sys, threading, time

def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1e3

folder, process = pathlib.Path(os.environ["TRACE_EVENTS_FOLDER"]), os.getpid()
begin = now()
subprocess.run(sys.argv[1:], check=True)
end = now()
thread = threading.get_native_id()
lines = [
    {"ph": "X", "tid": thread, "ts": begin, "dur": end - begin, "name": "allreduce"},
    {"ph": "X", "pid": 5, "tid": thread, "ts": begin, "dur": 0, "name": "phase", "args": {"n": 1}},
    {"ph": "M", "pid": 5, "tid": 7, "ts": 0, "name": "thread_name", "args": {"name": "workers"}},
    {"ph": "X", "pid": 5, "tid": 7, "ts": end, "dur": 1.5, "cat": "mine", "name": "other row"},
    {"ph": "X", "pid": 5, "tid": 7, "ts": end, "dur": -1, "name": "negative"},
    {"ph": "X", "pid": 5, "tid": 7, "ts": float("nan"), "dur": 1, "name": "no time"},
    ["no event"],
]
text = "".join(json.dumps(line) + "\\n" for line in lines) + "no json\\n" + '{"ph": "X", "incompl'
(folder / f"a.library.{process}.jsonl").write_text(text)
"""


def test_events_of_other_libraries_are_on_the_time_of_the_host(runner: Runner) -> None:
    (runner.folder / "library.py").write_text(textwrap.dedent(LIBRARY))
    words = (sys.executable, "library.py", "./host", runner.kernel("counts", 4), "1")
    events, process = traced(runner, *words)
    assert "4 lines of a.library." in process.stderr
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    by_name = {e["name"]: e for e in events if e["ph"] == "X"}
    outer, phase, other = (by_name[n] for n in ("allreduce", "phase", "other row"))
    assert rows[outer["pid"], outer["tid"]] == "a.library: main thread"
    assert rows[other["pid"], other["tid"]] == "a.library: workers"
    assert (outer["cat"], other["cat"], phase["args"]) == ("measured", "mine", {"n": 1})
    (launch,) = (e for e in by_name.values() if "modelled_us" in e.get("args", {}))
    assert ns(outer["ts"]) < ns(launch["ts"]) < end_of(launch) < end_of(outer) <= ns(other["ts"])


def machine_code() -> bytes:
    """Return a program in which 2 tasklets read MRAM, one of them waits for a mutex, and both read
    the time.
    """
    code = [
        Instruction("nop"),
        Instruction("or", "r", 9, immediate=0, is_wide=True),
        Instruction("add", "r", 0, ID, immediate=1, is_wide=True),
        Instruction("sub", a=0, immediate=2, code=2, target=5),
        Instruction("boot", a=0),
        Instruction("acquire", a=ZERO, immediate=7, code=2, target=5),
        Instruction("ldma", a=ZERO, b=9, immediate=255),
        Instruction("release", a=ZERO, immediate=7, code=0, target=8),
        Instruction("time", "r", 3),
        Instruction("stop", code=1, target=9),
    ]
    words = [threads.encode(each) for each in code]
    return dpu_program.program_file(words, [], wram=bytes(64), mram=bytes(8))


def test_machine_code_has_dma_waits_and_ends_of_its_tasklets(runner: Runner) -> None:
    (runner.folder / "code").write_bytes(machine_code())
    events, _ = traced(runner, "./host", "./code", "1", options=("--pes", "16"))
    pe = FIRST_PE + 16
    runs = {e["tid"]: e for e in of(events, pe, "run")}
    assert runs.keys() == {1, 2}
    (launch,) = rank_launches(events)
    assert max(map(end_of, runs.values())) == end_of(launch)
    (engine, second) = (e for e in of(events, pe, "DMA read") if e["tid"] == ENGINE)
    assert engine["args"] == second["args"] == {"bytes": 2048}
    assert ns(engine["dur"]) == pytest.approx(1000 * 1024 / CYCLES_PER_US, abs=1)
    first, later = sorted(
        (e for e in of(events, pe, "DMA read") if e["tid"] != ENGINE), key=lambda e: e["ts"]
    )
    (wait,) = of(events, pe, "mutex")
    assert wait["tid"] == later["tid"] != first["tid"]
    assert end_of(wait) >= end_of(first)
    assert {e["tid"] for e in of(events, pe, "perfcounter", "i")} == {1, 2}


def test_a_fault_ends_the_trace_of_a_pe(runner: Runner) -> None:
    words = ("./host", runner.kernel("keeps_a_mutex", 4), "1")
    events, process = traced(runner, *words, options=ALL, code=3)
    assert "deadlock" in process.stderr
    waits = of(events, FIRST_PE, "mutex")
    runs = [e for e in of(events, FIRST_PE, "run") if e["tid"] != 1]
    assert len(waits) == len(runs) == 3
    assert {end_of(e) for e in waits} == {end_of(e) for e in runs}


def test_use_over_time_is_that_of_the_engine_and_the_pipeline(runner: Runner) -> None:
    uses = {}
    for name in ("copies", "computes"):
        options = (*ALL, "--plot", "plot.svg")
        events, _ = traced(runner, "./host", runner.kernel(name), "1", options=options)
        own = of(events, FIRST_PE, phase="C")
        times = [ns(e["ts"]) for e in own]
        assert times == sorted(times)
        mean = [
            sum(e["args"][what] * (later["ts"] - e["ts"]) for e, later in itertools.pairwise(own))
            / (own[-1]["ts"] - own[0]["ts"])
            for what in ("pipeline", "dma")
        ]
        svg = ElementTree.parse(runner.folder / "plot.svg").getroot()
        texts = " ".join(e.text or "" for e in svg.iter("{http://www.w3.org/2000/svg}text"))
        for value in mean:
            assert f": mean {value:.0f}%" in texts
        assert f"load: {PES} PEs" in texts
        uses[name] = mean
    # The engine moves 2 bytes per cycle, and is always busy; 16 tasklets fill the pipeline.
    assert uses["copies"][1] > 98
    assert uses["copies"][0] < 10
    assert uses["computes"][0] > 98
    assert uses["computes"][1] == 0


def test_the_mean_use_leaves_out_times_without_launches() -> None:
    axis = trace_plot.ModelledTime([(10, 20), (50, 60), (55, 70)])
    assert axis.length == 30
    assert [axis.at(time) for time in (0, 10, 15, 30, 50, 65, 99)] == [0, 0, 5, 10, 10, 25, 30]
    first = [(10.0, 100, 0), (20.0, 0, 0), (50.0, 50, 20), (70.0, 0, 0)]
    second = [(10.0, 0, 40), (20.0, 0, 0)]
    pipeline, engine = trace_plot.mean_use([first, second], axis, 3)
    assert pipeline == pytest.approx([50, 25, 25])
    assert engine == pytest.approx([20, 10, 10])


def test_a_plot_without_launches_is_empty_but_valid() -> None:
    svg = ElementTree.fromstring(trace_plot.plot([], [], []))
    assert len(svg) == 3


def test_a_program_without_pes_has_an_empty_trace(runner: Runner) -> None:
    events, process = traced(runner, "true")
    assert events == []
    assert "0 launches of 0 PEs" in process.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--pes", "0,2560"), "--pes '2560' is not a whole number from 0 to 2559"),
        (("--pes", "1,,2"), "--pes '' is not a whole number"),
        (("--sample", "-1"), "--sample"),
        (("--limit", "0"), "--limit '0' is not a whole number of at least 1"),
        (("--out", "-"), "--out - is not a file name"),
        (("--out", "missing/trace.json"), "missing/trace.json"),
    ],
)
def test_wrong_options_are_refused_before_the_program_runs(
    runner: Runner, options: tuple[str, ...], words: str
) -> None:
    process = runner.run("touch", "ran", code=2, tool=("trace", *options))
    assert words in process.stderr
    assert not (runner.folder / "ran").exists()


def test_checks_and_profiles_of_the_environment_are_off(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(runner.variables, "DPUEMU_CHECK", "1")
    monkeypatch.setitem(runner.variables, "DPUEMU_PROFILE", str(runner.folder))
    events, _ = traced(runner, "./host", runner.kernel("computes", 4), "1")
    assert len(of(events, FIRST_PE, "run")) == 4
    assert not list(runner.folder.glob("*.json.draft"))


def test_the_histogram_of_the_page_shows_its_mutex(runner: Runner) -> None:
    example = Path(__file__).parents[2] / "examples" / "histogram"
    shutil.copytree(example, runner.folder / "histogram", dirs_exist_ok=True)
    shares = []
    for flags in ("", "-DPRIVATE"):
        events, _ = traced(
            runner, "make", "-s", "-C", "histogram", f"FLAGS={flags}", options=("--pes", "0")
        )
        run_ns = sum(ns(e["dur"]) for e in of(events, FIRST_PE, "run"))
        waits = sum(ns(e["dur"]) for e in of(events, FIRST_PE, "mutex"))
        shares.append(waits / run_ns)
    assert shares[0] > 0.85
    assert shares[1] == 0


def test_events_of_libraries_must_have_the_fields_of_their_phase() -> None:
    good = {"ph": "X", "ts": 1, "dur": 0, "name": "a"}
    assert trace.is_event(good)
    wrong = [{"ph": 1}, {"name": 2}, {"ts": "1"}, {"dur": -1}, {"tid": "a"}, {"args": []}]
    assert not any(trace.is_event({**good, **change}) for change in wrong)
    assert not trace.is_event({"ph": "M", "name": "thread_name", "args": {}})
