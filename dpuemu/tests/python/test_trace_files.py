"""The files of `dpuemu trace`: chosen PEs, limits, several processes and libraries, the plot."""

from __future__ import annotations

import re
import sys
import textwrap
from typing import Any
from xml.etree import ElementTree

import pytest
from kernel_runner import Runner
from trace_format import (
    ALL,
    FIRST_PE,
    HOST,
    NUMBERS,
    PES,
    check_format,
    end_of,
    ns,
    of,
    rank_launches,
    traced,
)

from dpuemu import trace, trace_plot


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
        (("--pes", "0,2560"), "--pes '2560' is not RANK.CHIP.BANK or a number up to 2559"),
        (("--pes", "1,,2"), "--pes '' is not RANK.CHIP.BANK"),
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


def test_events_of_libraries_must_have_the_fields_of_their_phase() -> None:
    good = {"ph": "X", "ts": 1, "dur": 0, "name": "a"}
    assert trace.is_event(good)
    wrong = [{"ph": 1}, {"name": 2}, {"ts": "1"}, {"dur": -1}, {"tid": "a"}, {"args": []}]
    wrong += [{"ts": float("inf")}, {"args": {"a": [float("nan")]}}]
    assert not any(trace.is_event({**good, **change}) for change in wrong)
    assert not trace.is_event({"ph": "M", "name": "thread_name", "args": {}})


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
