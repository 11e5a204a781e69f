"""The files of `dpuemu trace`: chosen PEs, limits, several processes and libraries, the plot."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from kernel_runner import Runner
from trace_format import (
    ALL,
    CYCLES_PER_US,
    FIRST_PE,
    HOST,
    NUMBERS,
    PES,
    RANKS,
    check_format,
    end_of,
    ns,
    of,
    rank_launches,
    traced,
)

from dpuemu import run, trace, trace_plot


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Return the programs."""
    return Runner(tmp_path_factory.mktemp("trace"))


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--pes", "40,16"), {16, 40}),
        (("--sample", "2"), {0, 32}),
        (("--sample", "1", "--pes", "0.7.0"), {0, 56}),
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
    assert f"1 launches of ranks on {PES} PEs, {len(shown)} PEs in detail" in process.stdout


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


def bytes_of_details(runner: Runner) -> Counter[str]:
    """Return the bytes of the lines about PEs: runs, marked regions and other events."""
    sizes: Counter[str] = Counter()
    for line in (runner.folder / "trace.json").read_bytes().splitlines():
        if b'"cat":"modelled"' not in line or b'"ph":"C"' in line or b'"pid":90' in line:
            continue
        event = json.loads(line.rstrip(b","))
        is_region = "turn" in event["name"] or "after" in event["name"]
        sizes["run" if event["name"] == "run" else "regions" if is_region else "others"] += len(
            line
        )
    return sizes


@pytest.mark.parametrize("kernel", ["marks", "marks_often", "counts"])
def test_details_of_a_launch_take_at_most_a_quarter_of_the_rest(
    runner: Runner, kernel: str
) -> None:
    options = (*ALL, "--limit", "1")
    events, process = traced(runner, "./host", runner.kernel(kernel), "1", options=options)
    assert "events are missing" in process.stderr
    sizes = bytes_of_details(runner)
    limits = [e for e in events if e["name"].startswith("limit: ")]
    assert len(limits) == PES
    assert sizes["regions"] <= 125_000
    # The sentences about the limit are not part of it.
    assert 200_000 < sizes["regions"] + sizes["others"] <= 250_000 + 150 * PES
    last = {pe: max(end_of(e) for e in of(events, FIRST_PE + pe, "run")) for pe in NUMBERS}
    for limit in limits:
        assert ns(limit["ts"]) < last[limit["pid"] - FIRST_PE]


def test_totals_count_launches_and_events_beyond_the_limit(runner: Runner) -> None:
    words = ("./host", runner.kernel("computes", 2), "9000")
    options = ("--sample", "0", "--limit", "1")
    report = runner.run(*words, tool=("run", "--json", "report.json"))
    reports = run.parse_launches((runner.folder / "report.json").read_text())
    assert len(reports) == 9000, report.stderr
    events, process = traced(runner, *words, options=options)
    written = sum(e["name"].startswith("launch") for e in of(events, HOST) + rank_launches(events))
    assert 1000 < written < 9000
    assert f"9,000 launches of ranks on {PES} PEs" in process.stdout
    # Each launch has three events: of the host, of the rank, and of the mean PE.
    means = len(of(events, RANKS, "mean of the PEs"))
    loads = len(of(events, HOST)) + len(rank_launches(events)) - written
    assert loads == 2
    found = re.search(r"at least ([\d,]+) events are missing", process.stderr)
    assert found
    assert int(found[1].replace(",", "")) == 3 * 9000 - written - means
    us = re.search(r"launches ([\d.,]+) us \(modelled", process.stdout)
    assert us
    expected = sum(each.cycles_max for each in reports) / CYCLES_PER_US
    assert float(us[1].replace(",", "")) == pytest.approx(expected, rel=1e-4)


def test_concurrent_launches_count_their_times_once(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(runner.variables, "DPUEMU_RANKS", "2")
    words = ("./host", runner.kernel("computes_for_long", 2), "2", "async")
    events, process = traced(runner, *words)
    launches = rank_launches(events)
    assert f"{len(launches)} launches of ranks on 128 PEs" in process.stdout
    us = re.search(r"launches ([\d.,]+) us \(modelled", process.stdout)
    assert us
    axis = trace_plot.ModelledTime([(e["ts"], e["ts"] + e["dur"]) for e in launches])
    assert axis.length < 0.9 * sum(e["dur"] for e in launches)
    assert float(us[1].replace(",", "")) == pytest.approx(axis.length, abs=0.1)


def test_names_that_are_not_utf_8_have_replacement_characters(runner: Runner) -> None:
    name = b"kernel \xff\xc3"
    kernel = runner.folder / runner.kernel("marks_often", 1)
    shutil.copyfile(kernel, os.fsencode(runner.folder) + b"/" + name)
    library = os.fsencode(runner.folder) + b"/library_\xff.py"
    Path(os.fsdecode(library)).write_text(STRANGE_NAMES)
    words = (sys.executable, os.fsdecode(library), "./host", os.fsdecode(name), "1")
    events, _ = traced(runner, *words)
    text = (runner.folder / "trace.json").read_text(encoding="utf-8", errors="strict")
    assert "\\ud" not in text
    by_name = {e["name"]: e for e in events}
    assert by_name["dpu_load"]["args"] == {"program": "kernel \ufffd\ufffd"}
    assert {"after \ufffd all", "half \ufffd, \U0001f600"} <= by_name.keys()
    rows = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert "other \ufffd: main thread" in rows


STRANGE_NAMES = """
import os, subprocess, sys, time
process, ts = os.getpid(), time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1e3
line = r'{"ph":"X","tid":%d,"ts":%f,"dur":0,"name":"half \\ud800, \\ud83d\\ude00"}' % (process, ts)
file = os.environb[b"TRACE_EVENTS_FOLDER"] + b"/other \\xff.%d.jsonl" % process
open(file, "w").write(line + "\\n")
subprocess.run(sys.argv[1:], check=True)
"""


def test_without_dropped_events_nothing_is_missing(runner: Runner) -> None:
    _, process = traced(runner, "./host", runner.kernel("counts"), "1", options=ALL)
    assert process.stderr == ""


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
    assert f"3 launches of ranks on {2 * PES} PEs, {2 * PES} PEs in detail" in process.stdout


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
    {"ph": "M", "tid": "abc", "name": "thread_name", "args": {"name": "words"}},
    {"ph": "X", "tid": 7, "ts": 10**400, "dur": 1, "name": "a late event"},
    ["no event"],
]
texts = [*map(json.dumps, lines), "[" * 100000, "no json", '{"ph": "X", "incompl']
text = "\\n".join(texts)
(folder / f"a.library.{process}.jsonl").write_text(text)
"""


def test_events_of_other_libraries_are_on_the_time_of_the_host(runner: Runner) -> None:
    (runner.folder / "library.py").write_text(textwrap.dedent(LIBRARY))
    words = (sys.executable, "library.py", "./host", runner.kernel("counts", 4), "1")
    events, process = traced(runner, *words)
    assert "7 lines of a.library." in process.stderr
    assert "3 events of other libraries" in process.stdout
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    by_name = {e["name"]: e for e in events if e["ph"] == "X"}
    outer, phase, other = (by_name[n] for n in ("allreduce", "phase", "other row"))
    assert rows[outer["pid"], outer["tid"]] == "a.library: main thread"
    assert rows[other["pid"], other["tid"]] == "a.library: workers"
    assert (outer["cat"], other["cat"], phase["args"]) == ("measured", "mine", {"n": 1})
    (launch,) = (e for e in by_name.values() if "modelled_us" in e.get("args", {}))
    assert ns(outer["ts"]) < ns(launch["ts"]) < end_of(launch) < end_of(outer) <= ns(other["ts"])


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
    assert "0 launches of ranks on 0 PEs" in process.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--pes", "0,2560"), "--pes '2560' is not RANK.CHIP.BANK or a number up to 2559"),
        (("--pes", "1,,2"), "--pes '' is not RANK.CHIP.BANK"),
        (("--sample", "-1"), "--sample"),
        (("--limit", "0"), "--limit '0' is not a whole number of at least 1"),
        (("--out", "-"), "--out - is not a file name"),
        (("--out", "missing/trace.json"), "missing/trace.json"),
        (("--out", "a", "--plot", "./a"), "--out a and --plot ./a are the same file"),
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


def test_events_of_libraries_must_have_the_fields_of_their_phase() -> None:
    good = {"ph": "X", "ts": 1, "dur": 0, "name": "a"}
    assert trace.is_event(good)
    wrong = [{"ph": 1}, {"name": 2}, {"ts": "1"}, {"dur": -1}, {"tid": "a"}, {"args": []}]
    wrong += [{"ts": float("inf")}, {"args": {"a": [float("nan")]}}, {"ph": "Q"}, {"ph": ["X"]}]
    wrong += [{"ts": True}, {"dur": True}, {"tid": True}, {"ph": "i", "dur": "1"}]
    wrong += [{field: sign * 2**53} for field in ("ts", "tid") for sign in (1, -1)]
    assert [change for change in wrong if trace.is_event({**good, **change})] == []
    assert trace.is_event({**good, "args": {"address": 2**64}})
    name = {"ph": "M", "name": "thread_name", "args": {"name": "a"}}
    assert trace.is_event(name)
    assert not any(trace.is_event({**name, **change}) for change in ({"args": {}}, {"tid": "a"}))


KILLED = """
import os, signal
from dpu import DpuSet

with DpuSet(8, binary="KERNEL") as dpus:
    dpus.exec()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_the_events_before_its_launch(runner: Runner) -> None:
    kernel = runner.kernel("computes", 2)
    (runner.folder / "killed.py").write_text(KILLED.replace("KERNEL", kernel))
    events, _ = traced(runner, sys.executable, "killed.py", code=128 + 9)
    assert len(of(events, HOST, "dpu_load")) == 1


CHILD = """
import multiprocessing, os
from dpu import DpuSet

def launch(ends_early):
    with DpuSet(8, binary="KERNEL") as dpus:
        for _ in range(1 if ends_early else 3):
            dpus.exec()
        if ends_early:
            os._exit(0)

for ends_early in (False, True):
    child = multiprocessing.get_context("fork").Process(target=launch, args=(ends_early,))
    child.start()
    child.join()
"""


def test_forked_children_that_end_by_exit_leave_their_events(runner: Runner) -> None:
    kernel = runner.kernel("computes", 2)
    (runner.folder / "child.py").write_text(CHILD.replace("KERNEL", kernel))
    events, process = traced(runner, sys.executable, "child.py")
    assert len(rank_launches(events)) == 3
    launches = [e for e in events if e["name"].startswith("launch ") and "pes" in e["args"]]
    assert len(launches) == 4
    assert f"4 launches of ranks on {2 * PES} PEs" in process.stdout


def test_an_earlier_trace_stays_until_the_next_is_complete(runner: Runner) -> None:
    files = [runner.folder / name for name in ("earlier.json", "earlier.svg")]
    for file in files:
        file.write_text("earlier")
    tool = ("trace", "--out", files[0].name, "--plot", files[1].name)
    runner.run("./missing", code=127, tool=tool)
    assert [file.read_text() for file in files] == ["earlier", "earlier"]
    runner.run("sh", "-c", "cat earlier.json earlier.svg > copy", tool=tool)
    assert (runner.folder / "copy").read_text() == "earlierearlier"
    assert files[0].read_text().startswith('{"displayTimeUnit"')
    assert files[1].read_text().startswith("<svg")
    assert not list(runner.folder.glob("*.draft"))


@pytest.mark.parametrize(
    "change",
    [
        {"dur": -1},
        {"dur": "1"},
        {"ts": -1},
        {"ph": "?"},
        {"pid": 7},
        {"tid": 7},
        {"ts": 5, "dur": 10},
    ],
)
def test_the_check_of_the_format_finds_errors(change: dict[str, Any]) -> None:
    names = [
        {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": "p"}},
        {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "t"}},
    ]
    outer = {"ph": "X", "pid": 1, "tid": 2, "ts": 0, "dur": 9, "name": "a", "cat": "c"}
    inner = {**outer, "ts": 2, "dur": 3}

    def document(event: dict[str, Any]) -> dict[str, Any]:
        return {"displayTimeUnit": "ns", "traceEvents": [*names, outer, event]}

    check_format(document(inner))
    with pytest.raises((AssertionError, KeyError)):
        check_format(document({**inner, **change}))
