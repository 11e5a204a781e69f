"""`dpuemu trace` on the kernels of tests/profile: times, waits, regions and machine code."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import dpu_program
import pytest
import thread_definition as threads
from isa_definition import ID, ZERO, Instruction
from kernel_runner import SOURCES, Runner
from trace_format import (
    ALL,
    CYCLES_PER_US,
    ENGINE,
    FIRST_PE,
    HOST,
    NUMBERS,
    PES,
    TURNS,
    end_of,
    ns,
    of,
    rank_launches,
    traced,
)

from dpuemu import run, tools


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


def test_the_example_of_the_page_has_its_problem_and_its_solution(runner: Runner) -> None:
    example = Path(__file__).parents[2] / "examples" / "distance"
    shutil.copytree(example, runner.folder / "distance", dirs_exist_ok=True)
    page = (Path(__file__).parents[2] / "docs" / "trace.md").read_text()
    for flags, has_barrier in (("", True), ("-DOWN_PIECES", False)):
        words = ("make", "-s", "-C", "distance", f"FLAGS={flags}")
        options = ("--pes", "0", "--plot", "plot.svg")
        events, process = traced(runner, *words, options=options)
        us = re.search(r"launches ([\d.,]+) us \(modelled", process.stdout)
        assert us
        assert f" {us[1]} us" in page
        use = re.search(r"detail: mean (\d+%)", (runner.folder / "plot.svg").read_text())
        assert use
        assert use[1] in page
        assert bool(of(events, FIRST_PE, "barrier")) == has_barrier
        # Without barriers, the load of a tasklet lies beside the sum of another.
        spans = {
            (name, tasklet): [
                (ns(e["ts"]), end_of(e))
                for e in of(events, FIRST_PE, name)
                if e["tid"] == tasklet + 1
            ]
            for name in ("load", "sum")
            for tasklet in (0, 15)
        }
        overlaps = any(
            begin < other_end and other_begin < end
            for begin, end in spans["load", 0]
            for other_begin, other_end in spans["sum", 15]
        )
        assert overlaps != has_barrier
