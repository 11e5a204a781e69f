"""Programs of the PEs: loading, launching, variables as arrays, logs, reports.

One file, because most tests run programs that one fixture compiles for all of them.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from emulated_machine import ctrl_c

import dpuemu
import pidcomm
from pidcomm.compiling import compiled
from pidcomm.tables import TechniqueName

HEAP = "__sys_used_mram_end"

VARIABLES = """
#include <mram.h>
#include <stdint.h>
__host uint32_t factor = 3;
__host int64_t sums[4];
__host struct { uint32_t first; float second; } pair;
__host uint8_t letters[6];
__mram_noinit int32_t values[256];
__mram uint32_t initialised[2] = {7, 8};
int main(void) {
  __dma_aligned int32_t buffer[256];
  mram_read(values, buffer, sizeof buffer);
  for (int i = 0; i < 256; i++) sums[i % 4] += buffer[i] *= factor;
  mram_write(buffer, values, sizeof buffer);
  pair.first += factor * (initialised[0] == 7);
  pair.second *= 2;
  return 0;
}
"""

# After all tasklets are ready, the last one adds their parts; the log has one line.
TASKLETS = """
#include <barrier.h>
#include <defs.h>
#include <stdio.h>
BARRIER_INIT(ready, NR_TASKLETS);
__host uint32_t start;
__host uint32_t parts[NR_TASKLETS];
__host uint32_t total;
int main(void) {
  parts[me()] = start + me();
  barrier_wait(&ready);
  if (me() != NR_TASKLETS - 1) return 0;
  for (int t = 0; t < NR_TASKLETS; t++) total += parts[t];
  printf("start %u, total %u\\n", start, total);
  return 0;
}
"""

# Phase 0 fills the heap, phase 1 checks the result of an allreduce over all PEs there.
PHASES = """
#include <mram.h>
#include <stdint.h>
#define COUNT 256
__host uint32_t row, rows, phase, wrong;
int main(void) {
  __dma_aligned int32_t buffer[COUNT];
  __mram_ptr int32_t *heap = DPU_MRAM_HEAP_POINTER;
  if (phase == 0) {
    for (int i = 0; i < COUNT; i++) buffer[i] = row * 1000 + i;
    mram_write(buffer, heap, sizeof buffer);
    return 0;
  }
  mram_read(heap, buffer, sizeof buffer);
  for (uint32_t i = 0; i < COUNT; i++)
    wrong += (uint32_t)buffer[i] != rows * (rows - 1) / 2 * 1000 + rows * i;
  return 0;
}
"""

FAULT = """
#include <assert.h>
#include <defs.h>
#include <stdint.h>
__host uint32_t is_wrong;
int main(void) { assert(!is_wrong); return 0; }
"""

DMA = """
#include <mram.h>
#include <stdint.h>
__mram_noinit uint8_t bytes[4096];
int main(void) {
  __dma_aligned uint8_t buffer[2048];
  for (int i = 0; i < 3; i++) mram_read(bytes, buffer, 2048);
  mram_write(buffer, bytes + 8, 24);
  return 0;
}
"""

SPIN = """
#include <defs.h>
#include <stdint.h>
__host uint32_t turns;
__host volatile uint32_t done;
int main(void) { for (uint32_t i = 0; i < turns; i++) done = i + 1; return 0; }
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Program files of the sources above."""
    folder = tmp_path_factory.mktemp("programs")
    files = {}
    for name, text in {"variables": VARIABLES, "fault": FAULT, "dma": DMA, "spin": SPIN}.items():
        with compiled(text, []) as (program, messages):
            files[name] = folder / name
            files[name].write_bytes(program.read_bytes())
        assert messages == ""
    return files


@pytest.fixture
def rank() -> Iterator[pidcomm.PeSet]:
    """One rank: 64 PEs."""
    with pidcomm.allocate(pes=64) as pe_set:
        yield pe_set


def test_variables_in_wram_and_mram_are_read_and_written_as_arrays(
    rank: pidcomm.PeSet, programs: dict[str, Path]
) -> None:
    rank.load(programs["variables"])
    factor, sums, values = (rank.symbol(name) for name in ("factor", "sums", "values"))
    assert (factor.name, factor.size_bytes, values.size_bytes) == ("factor", 4, 1024)
    assert sums.address < 1 << 16 < 0x08000000 <= values.address
    assert repr(sums) == f"<Symbol sums: 32 bytes at {sums.address:#x}>"
    assert (factor.read(np.uint32) == 3).all()
    assert (rank.symbol("initialised").read(np.uint32) == [7, 8]).all()
    x = np.arange(64 * 256, dtype=np.int32).reshape(64, 256) - 5000
    factors = np.arange(64, dtype=np.uint32).reshape(64, 1)
    values.write(x)
    factor.write(factors)
    assert (values.read(np.int32) == x).all()
    rank.launch()
    assert (values.read(np.int32) == x * factors).all()
    assert (
        sums.read(np.int64) == (x * factors.astype(np.int64)).reshape(64, 64, 4).sum(axis=1)
    ).all()
    assert (values.read(np.int32, 4, offset=40) == (x * factors)[:, 10:14]).all()
    assert (sums.read(np.int64, offset=24)[:, 0] == sums.read(np.int64)[:, 3]).all()
    assert values.read(np.int32, 0).shape == (64, 0)


def test_values_without_a_row_per_pe_go_to_all_pes(
    rank: pidcomm.PeSet, programs: dict[str, Path]
) -> None:
    rank.load(programs["variables"])
    factor, values, pair = rank.symbol("factor"), rank.symbol("values"), rank.symbol("pair")
    factor.write(5)
    assert (factor.read(np.uint32) == 5).all()
    factor.write(-1)
    assert (factor.read(np.int32) == -1).all()
    factor.write(0.5)
    assert (factor.read(np.float32) == 0.5).all()
    factor.write(np.uint32(2))
    values.write(np.arange(256, dtype=np.int32))
    values.write([-1, -2], 8, dtype=np.int32)
    values.write(np.empty((64, 0)))
    assert (values.read(np.int32, 6) == [0, 1, -1, -2, 4, 5]).all()
    kind = np.dtype([("first", np.uint32), ("second", np.float32)])
    pair.write(np.array((10, 1.5), kind))
    rank.launch()
    after = pair.read(kind)
    assert after.shape == (64, 1)
    assert (after["first"] == 12).all()
    assert (after["second"] == 3).all()
    values.write(np.arange(128 * 64, dtype=np.int32).reshape(64, 128)[:, ::2])  # strided
    assert (values.read(np.int32, 64)[1] == np.arange(128, 256, 2)).all()


def test_accesses_outside_a_symbol_move_nothing(
    rank: pidcomm.PeSet, programs: dict[str, Path]
) -> None:
    rank.load(programs["variables"])
    sums, letters, factor = rank.symbol("sums"), rank.symbol("letters"), rank.symbol("factor")
    values = rank.symbol("values")
    before = np.arange(64 * 4).reshape(64, 4)
    sums.write(before)
    eight = np.zeros(1)
    for call, words in (
        (
            lambda: sums.write(np.zeros(5)),
            "40 bytes at offset 0 pass the end of <Symbol sums: 32 bytes",
        ),
        (lambda: sums.write(np.zeros((64, 4)), 8), "32 bytes at offset 8"),
        (lambda: sums.write(eight, 32), "8 bytes at offset 32"),
        (lambda: sums.write(eight, -8), r"offset \(-8\)"),
        (lambda: sums.read(np.int64, 5), "40 bytes at offset 0"),
        (lambda: sums.read(np.int64, 2**62), "pass the end"),
        (lambda: sums.read(np.int64, offset=33), "0 bytes at offset 33"),
        (
            lambda: sums.read(np.int64, offset=4),
            "28 bytes .* not a multiple of 8, the bytes of an element",
        ),
        (lambda: sums.read("no type"), "not a NumPy dtype"),
        (lambda: sums.read(object), "no fixed size"),
        (lambda: sums.write(np.zeros((63, 1))), r"shape \(63, 1\); the shape must be \(64, n\)"),
        (lambda: sums.write(np.zeros((64, 2, 2))), r"shape \(64, 2, 2\)"),
        (lambda: sums.write([1, 2]), r"no dtype \(list\); give dtype="),
        (lambda: sums.write(1), "does not fill"),
        (lambda: sums.write(["x"], dtype=np.int64), "not an array"),
        (lambda: factor.write(2**32), "not an array"),
        (lambda: factor.write(True), "no dtype"),
        (lambda: sums.write(np.zeros(1, np.uint8)), "whole words of 4 bytes"),
        (lambda: values.write(np.zeros(3, np.int32)), "12 bytes at offset 0 .* words of 8 bytes"),
        (lambda: values.read(np.int32, 2, offset=4), "8 bytes at offset 4 .* words of 8 bytes"),
        (lambda: letters.read(np.uint8), "whole words of 4 bytes"),
        (lambda: rank.symbol(HEAP).read(np.int64), "needs a count"),
        (lambda: rank.symbol("main").write(eight), "IRAM"),
        (lambda: rank.symbol("nothing"), "symbol 'nothing': unknown symbol"),
        (lambda: rank.symbol("a\0b"), "must be a str"),
        (lambda: rank.log(64), r"pe \(64\)"),
    ):
        with pytest.raises(pidcomm.ArgumentError, match=words):
            call()
    assert (sums.read(np.int64) == before).all()
    assert (letters.read(np.uint8, 4) == 0).all()


def test_tasklets_wait_for_each_other_and_print(rank: pidcomm.PeSet) -> None:
    rank.load(TASKLETS, tasklets=11, stack_bytes=512, options=["-O1", "-Wall"])
    start = np.arange(0, 640, 10, dtype=np.uint32).reshape(64, 1)
    rank.symbol("start").write(start)
    rank.launch()
    totals = 11 * start + 55
    assert (rank.symbol("total").read(np.uint32) == totals).all()
    assert rank.log(3) == "start 30, total 385\n"
    lines = [f"start {start[pe, 0]}, total {totals[pe, 0]}\n" for pe in range(64)]
    assert rank.logs() == [*lines[:3], "", *lines[4:]]
    assert rank.logs() == [""] * 64


def test_a_full_log_warns(rank: pidcomm.PeSet) -> None:
    rank.load(
        "#include <defs.h>\n#include <stdio.h>\nSTDOUT_BUFFER_INIT(16)\n__host int more;\nint"
        ' main(void) { printf("0123456789"); if (more) printf("0123456789"); return 0; }'
    )
    rank.symbol("more").write(np.arange(64, dtype=np.int32).reshape(64, 1) % 2)
    rank.launch()
    assert rank.log(2) == "0123456789"
    with pytest.warns(RuntimeWarning, match="PE 3 printed more"):
        assert rank.log(3).startswith("0123456789")


def test_a_program_that_prints_nothing_has_empty_logs(
    rank: pidcomm.PeSet, programs: dict[str, Path]
) -> None:
    rank.load(programs["dma"])
    assert rank.logs() == [""] * 64


@pytest.mark.parametrize("count", [128, 100])
def test_collectives_work_between_launches(count: int) -> None:
    with pidcomm.allocate(pes=count) as pes:
        cube = pes.hypercube(count)
        pes.load(PHASES)
        pes.symbol("row").write(np.arange(count, dtype=np.uint32).reshape(count, 1))
        pes.symbol("rows").write(count)
        pes.launch()
        rows = pes.symbol(HEAP).read(np.int32, 256)
        assert (rows == np.arange(count).reshape(count, 1) * 1000 + np.arange(256)).all()
        assert (cube.read(256, np.int32) == rows).all()
        cube.allreduce("1", bytes=1024, dtype=np.int32)
        pes.symbol("phase").write(1)
        pes.launch()
        assert (pes.symbol("wrong").read(np.uint32) == 0).all()
        assert (pes.symbol(HEAP).read(np.int32, 256) == rows.sum(axis=0)).all()


DISABLED = """
import dpuemu, numpy as np, pidcomm, sys
dpuemu.machine(ranks=2, disabled=[(0, 3, 2), (0, 0, 5)])
with pidcomm.allocate() as pes:
    heap, n = pes.symbol("__sys_used_mram_end"), pes.pes
    heap.write(np.arange(n).reshape(n, 1))
    cubes = [pes.hypercube(8, 6), pes.hypercube(115)]
    whole = [(cube.read(1, np.int64)[:, 0] == np.arange(cube.pes)).all() for cube in cubes]
    assert (pes.usable_pes, pes.hypercube(pes.usable_pes).pes) == (115, 115)
    print(n, [bool(it) for it in whole], (heap.read(np.int64, 1)[:, 0] == np.arange(n)).all())
    print(*(tuple(cubes[1].location(pe)) for pe in (0, 64, 114)))
    print(*cubes)
    try:
        pes.hypercube(64, order="foreach")
    except pidcomm.ArgumentError as error:
        print(error)
"""

ONE_NUMBERING = """
import dpuemu, numpy as np, pidcomm
disabled = [(0, 5, 0), (0, 7, 1), (0, 7, 6), (1, 2, 3), (1, 3, 3), (1, 0, 4)]
dpuemu.machine(ranks=2, disabled=disabled)
with pidcomm.allocate() as pes:
    heap, n = pes.symbol("__sys_used_mram_end"), pes.pes
    cubes = [pes.hypercube(*shape) for shape in ((50,), (89,), (5, 19), (11, 8), (8, 6), (3, 31))]
    wrong = []
    for number, writer in enumerate([heap, *cubes]):
        rows = np.arange(n).reshape(n, 1) * 64 + number
        count = n if writer is heap else writer.pes
        heap.write(np.zeros((n, 1), np.int64))
        writer.write(rows[:count])
        for reader in (heap, *cubes):
            got = heap.read(np.int64, 1) if reader is heap else reader.read(1, np.int64)
            common = min(count, len(got))
            if (got[:common] != rows[:common]).any() or got[common:].any():
                wrong.append((writer, reader))
    print(pes.usable_pes, wrong)
"""


def test_a_collective_that_reorders_replaces_the_program(
    rank: pidcomm.PeSet, programs: dict[str, Path]
) -> None:
    rank.load(programs["variables"])
    factor, values = rank.symbol("factor"), rank.symbol("values")
    kept = np.arange(64 * 256, dtype=np.int32).reshape(64, 256)
    values.write(kept)
    cube = rank.hypercube(8, 8)
    x = np.arange(64 * 64, dtype=np.int32).reshape(64, 64)
    base_offset = 4096
    result = cube.arrays.allreduce(x, "10", technique="pr+im", base_offset=base_offset)
    np.testing.assert_array_equal(result.reshape(8, 8, 64)[:, 0], x.reshape(8, 8, 64).sum(axis=1))
    assert cube.last_trace is not None
    assert (cube.last_trace.pe_loads, cube.last_trace.pe_launches) == (1, 2)
    clock_hz = dpuemu.report(rank).cycles_per_second
    assert cube.last_trace.pe_cycles > 0
    assert cube.last_trace.pe_seconds == pytest.approx(cube.last_trace.pe_cycles / clock_hz)
    assert cube.last_trace.pe_bytes == 2 * 2 * 64 * 256
    for attempt in (
        rank.launch,
        lambda: factor.read(np.uint32),
        lambda: factor.write(np.ones((64, 1), np.uint32)),
    ):
        with pytest.raises(pidcomm.Error, match="load yours again"):
            attempt()
    assert (values.read(np.int32) == kept).all()  # MRAM stays
    rank.load(programs["variables"])
    assert (cube.read(64, np.int32, base_offset) == result).all()
    rank.launch()
    assert (rank.symbol("pair").read(np.uint32)[:, 0] == 3).all()


def test_rows_follow_the_largest_hypercube_if_pes_are_missing() -> None:
    # In a new process, because the machine belongs to the process.
    result = subprocess.run(
        [sys.executable, "-c", DISABLED], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == [
        "126 [True, True] True",
        "(1, 0, 0) (0, 0, 0) (0, 2, 2)",  # rank 0 is last; its bank 2 is last, for 3 PEs
        "<Hypercube 8x6 of 48 PEs, 78 unused> <Hypercube 115 of 115 PEs, 11 unused>",
        "shape 64 (order of DPU_FOREACH) needs every PE of the set up to PE 63; rank 0 bank 2"
        " lacks chip 3; rank 0 bank 5 lacks chip 0",
    ]


def test_row_p_belongs_to_pe_p_of_every_hypercube_if_pes_are_missing() -> None:
    result = subprocess.run(
        [sys.executable, "-c", ONE_NUMBERING], capture_output=True, text=True, check=True
    )
    assert result.stdout == "95 []\n"


def is_busy(call: Callable[[], object]) -> bool:
    """Whether the call is refused because PEs run."""
    try:
        call()
    except pidcomm.Error as error:
        return error.status == "ERR_DEVICE" and "busy" in str(error)
    return False


def test_accesses_during_an_asynchronous_launch_are_refused(
    rank: pidcomm.PeSet, programs: dict[str, Path]
) -> None:
    rank.load(programs["spin"])
    turns, turns_done = rank.symbol("turns"), rank.symbol("done")
    turns.write(20_000_000)
    for _ in range(10):  # until all accesses come before the PEs end
        rank.launch(wait=False)
        refused = [is_busy(call) for call in (lambda: turns_done.read(np.uint32), rank.logs)]
        with suppress(dpuemu.Error):
            dpuemu.report(rank)
            refused.append(False)  # the PEs had ended
        rank.wait()
        if all(refused):
            break
    assert refused == [True] * 2
    assert (turns_done.read(np.uint32) == 20_000_000).all()


def test_a_fault_names_the_pe_and_the_reason(
    rank: pidcomm.PeSet, programs: dict[str, Path]
) -> None:
    rank.load(programs["fault"])
    is_wrong = np.zeros((64, 1), np.uint32)
    is_wrong[[11, 60]] = 1
    rank.symbol("is_wrong").write(is_wrong)

    def launch_and_wait() -> None:
        rank.launch(wait=False)
        rank.wait()

    for launch in (rank.launch, launch_and_wait):
        with pytest.raises(
            pidcomm.Error, match=r"in fault: PE 11, rank .*, chip 3, bank 1, tasklet 0: .*assert"
        ) as caught:
            launch()
        assert "one of 2 PEs" in str(caught.value)
        assert caught.value.status == "ERR_DEVICE"
        assert (dpuemu.report(rank).pes, dpuemu.report(rank).faulted_pes) == (64, 2)
    rank.symbol("is_wrong").write(0)
    rank.launch()
    assert dpuemu.report(rank).faulted_pes == 0


@pytest.fixture
def impatient_machine() -> Iterator[None]:
    """A machine whose launches end with faults after one second."""
    before = dpuemu.machine().patience_seconds
    dpuemu.machine(patience_seconds=1)
    yield
    dpuemu.machine(patience_seconds=before)


def test_a_fault_names_the_pe_that_loops_not_a_pe_that_was_stopped(
    impatient_machine: None,
) -> None:
    with pidcomm.allocate(pes=16) as pes:
        pes.load("""
            #include <mram.h>
            __host volatile uint32_t loops;
            __mram_noinit uint8_t page[2048];
            __dma_aligned uint8_t copy[2048];
            int main(void) {
              mram_read(page, copy, 2048);
              while (loops) continue;
              mram_read(page, copy, 2048);
              return 0;
            }""")
        # One thread runs PEs 0 to 7 in turns, and changes the PE after 2 KiB of DMA: when PE 5
        # loops, none of the others has ended.
        pes.symbol("loops").write(np.eye(16, dtype=np.uint32)[5].reshape(16, 1))
        with pytest.raises(pidcomm.Error, match=r"PE 5, .*: the PE ran for longer.*\(one of 8"):
            pes.launch()


def test_reports_count_dma_exactly(rank: pidcomm.PeSet, programs: dict[str, Path]) -> None:
    with pytest.raises(dpuemu.Error, match="no program has been launched"):
        dpuemu.report(rank)
    with pytest.raises(pidcomm.Error, match="no program has been launched"):
        rank.wait()
    rank.load(programs["dma"])
    rank.launch()
    report = dpuemu.report(rank)
    assert (report.pes, report.faulted_pes) == (64, 0)
    assert (report.dma_reads, report.dma_read_bytes) == (64 * 3, 64 * 3 * 2048)
    assert (report.dma_writes, report.dma_write_bytes) == (64, 64 * 24)
    assert (report.masked_addresses, report.masked_sizes, report.direct_pages) == (0, 0, 0)
    assert report.instructions > 0
    assert 64 * report.cycles_max == pytest.approx(report.cycles_sum)  # all PEs do the same
    assert report.modelled_seconds == report.cycles_max / 350e6
    assert report.host_seconds > 0


def test_compiler_errors_are_reported_and_the_old_program_stays(
    rank: pidcomm.PeSet, programs: dict[str, Path]
) -> None:
    rank.load(programs["dma"])
    with pytest.raises(
        pidcomm.ArgumentError, match=r"program.c:2:.*error:.*missing_variable"
    ) as caught:
        rank.load("\nint main(void) { return missing_variable; }")
    assert "/" not in str(caught.value).split("program.c")[0]
    with pytest.raises(pidcomm.ArgumentError, match="bytes of WRAM"):
        rank.load("char big[70000]; int main(void) { return big[0] = 1; }")
    with pytest.raises(pidcomm.ArgumentError, match="NR_TASKLETS is 25"):
        rank.load("int main(void) { return 0; }", tasklets=25)
    with pytest.warns(UserWarning, match="unused_variable"):
        rank.load("int main(void) { int unused_variable; return 0; }", options=["-Wall"])
    rank.load(programs["dma"])
    rank.launch()
    assert dpuemu.report(rank).dma_reads == 64 * 3


def test_files_and_values_that_are_no_program_are_refused(
    rank: pidcomm.PeSet, programs: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("no program")
    for program, keywords, words in (
        (tmp_path / "missing", {}, "there is no file .*missing"),
        ("missing.c", {}, "there is no file missing.c"),
        (tmp_path, {}, "is not a file"),
        ("", {}, "not the path"),
        (b"int main(void) {}", {}, "must be a path"),
        ([7], {}, "not the path"),
        ([programs["dma"], programs["spin"]], {}, "not a C file"),
        (sys.executable, {}, "not a program that this machine can run"),
        (tmp_path / "text", {}, "not a program that this machine can run"),
        (programs["dma"], {"tasklets": 2}, "compiled already"),
        (programs["dma"], {"options": ["-O2"]}, "compiled already"),
        (SPIN, {"options": "-O2"}, "sequence of str"),
        (SPIN, {"tasklets": 0}, r"tasklets \(0\)"),
        (SPIN, {"stack_bytes": -1}, r"stack_bytes \(-1\)"),
    ):
        with pytest.raises(pidcomm.ArgumentError, match=words):
            rank.load(program, **keywords)  # type: ignore[arg-type]


def test_without_a_program_launches_fail_and_the_heap_is_all_of_mram(rank: pidcomm.PeSet) -> None:
    for call in (rank.launch, lambda: rank.symbol("x"), lambda: rank.log(0)):
        with pytest.raises(pidcomm.Error, match="no program is loaded") as caught:
            call()
        assert caught.value.status == "ERR_DEVICE"
    heap = rank.symbol(HEAP)
    assert heap.size_bytes == pidcomm.MRAM_BYTES
    heap.write(np.arange(64).reshape(64, 1), offset=64)
    assert (rank.hypercube(64).read(1, np.int64, offset=64)[:, 0] == np.arange(64)).all()


def test_symbols_end_with_their_program(rank: pidcomm.PeSet, programs: dict[str, Path]) -> None:
    rank.load(programs["spin"])
    turns = rank.symbol("turns")
    rank.load(programs["dma"])
    for call in (lambda: turns.write(1), lambda: turns.read(np.uint32)):
        with pytest.raises(pidcomm.Error, match="replaced"):
            call()


def test_freed_sets_refuse_every_call_about_programs(programs: dict[str, Path]) -> None:
    pes = pidcomm.allocate(pes=8)
    pes.load(programs["spin"])
    turns = pes.symbol("turns")
    turns.write(50_000_000)
    pes.launch(wait=False)
    pes.free()  # waits
    for call in (
        pes.launch,
        pes.wait,
        lambda: dpuemu.report(pes),
        pes.logs,
        lambda: pes.load(programs["spin"]),
        lambda: pes.symbol("turns"),
        lambda: turns.read(np.uint32),
        lambda: turns.write(1),
    ):
        with pytest.raises(pidcomm.Error, match="freed") as caught:
            call()
        assert caught.value.status == "ERR_SET"


def test_programs_are_loaded_from_c_files(
    rank: pidcomm.PeSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my programs"
    folder.mkdir()
    (folder / "part.h").write_text("int part(int x);\n#define SCALE 5\n")
    (folder / "part.c").write_text('#include "part.h"\nint part(int x) { return x * SCALE; }\n')
    main = (
        '#include "part.h"\n#include <defs.h>\n__host int result;\nint main(void) { result ='
        " part(EXTRA); return 0; }\n"
    )
    (folder / "main.c").write_text(main)
    rank.load([folder / "main.c", str(folder / "part.c")], options=("-D", "EXTRA=4"))
    rank.launch()
    assert (rank.symbol("result").read(np.int32) == 20).all()
    monkeypatch.chdir(folder)  # source text includes headers of the working directory
    rank.load(main.replace("EXTRA", "SCALE").replace("part(SCALE)", "SCALE"))
    rank.launch()
    assert (rank.symbol("result").read(np.int32) == 5).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rank.load(["main.c", "part.c"], options=["-DEXTRA=-1"])
    rank.launch()
    assert (rank.symbol("result").read(np.int32) == -5).all()


ENDLESS = """
int main(void) { for (volatile int i = 0;; ++i); }
"""


def test_ctrl_c_stops_the_pes(pes: pidcomm.PeSet) -> None:
    pes.load(ENDLESS)
    with ctrl_c():
        pes.launch()
    with pytest.raises(pidcomm.Error, match="in fault"):
        pes.wait()
    pes.load("int main(void) { return 0; }")
    pes.launch()
    assert dpuemu.report(pes).faulted_pes == 0


def test_a_single_value_of_another_size_than_the_variable_is_refused(
    windows: pidcomm.PeSet,
) -> None:
    four = windows.symbol("in_wram")
    with pytest.raises(pidcomm.ArgumentError, match=r"single float64 does not fill .*in_wram"):
        four.write(np.float64(3))
    four.write(np.float64(3), dtype=np.uint32)  # the first element
    assert (four.read(np.uint32)[:, 0] == 3).all()


# ---- variables as windows of collectives

WINDOWS = """
#include <mram.h>
#include <stdint.h>
__host uint32_t in_wram[4];
__mram_noinit_keep int32_t before[64];
__mram_noinit_keep int32_t grad[1024];
__mram_noinit_keep int32_t sums[1024];
__mram_noinit_keep int32_t after[64];
int main(void) { return (int)in_wram[0]; }
"""


@pytest.fixture
def windows() -> Iterator[pidcomm.PeSet]:
    """A set of 64 PEs with a program that has data in MRAM."""
    with pidcomm.allocate(pes=64) as pes:
        pes.load(WINDOWS)
        yield pes


def rows_of(pes: pidcomm.PeSet, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-99, 99, (pes.pes, 1024), np.int32)


@pytest.mark.parametrize("technique", ["tile", "conventional", "pr+im+cm"])
def test_collectives_work_on_variables_and_change_nothing_else(
    windows: pidcomm.PeSet, technique: TechniqueName
) -> None:
    cube = windows.hypercube(8, 8)
    names = ("before", "grad", "sums", "after")
    contents = {
        name: rows_of(windows, seed)[:, : 64 if name in ("before", "after") else None]
        for seed, name in enumerate(names)
    }
    for name, rows in contents.items():
        windows.symbol(name).write(rows)
    heap = rows_of(windows, 9)
    cube.write(heap, 0)
    grad, sums = windows.symbol("grad"), windows.symbol("sums")
    options: pidcomm.Options = {"technique": technique, "scratch": 1 << 20}
    cube.allreduce("10", bytes=4096, src=grad, dst=sums, dtype=np.int32, **options)
    expected = contents["grad"].reshape(8, 8, 1024).sum(1).repeat(8, 0).astype(np.int32)
    assert np.array_equal(cube.read(1024, np.int32), heap)
    if technique == "pr+im+cm":  # the program is replaced
        windows.load(WINDOWS)
        grad, sums = windows.symbol("grad"), windows.symbol("sums")
    for name, rows in {**contents, "sums": expected}.items():
        assert np.array_equal(windows.symbol(name).read(np.int32), rows), name
    cube.alltoall("11", bytes=4096, src=grad, dst=0)  # a variable and the heap
    exchanged = contents["grad"].reshape(64, 64, 16).swapaxes(0, 1).reshape(64, 1024)
    assert np.array_equal(cube.read(1024, np.int32), exchanged)
    cube.allreduce("01", bytes=4096, src=grad, dst=grad, dtype=np.int32)  # in place
    summed = contents["grad"].reshape(8, 8, 1024).sum(0, dtype=np.int32)
    assert np.array_equal(grad.read(np.int32), np.tile(summed, (8, 1)))


def test_a_window_that_is_no_variable_in_mram_is_an_error(windows: pidcomm.PeSet) -> None:
    cube = windows.hypercube(64)
    grad = windows.symbol("grad")
    with pytest.raises(
        pidcomm.ArgumentError, match=r"4104 bytes at offset 0 pass the end of .*grad"
    ):
        cube.allgather("1", bytes=64 * 4104, src=grad)
    with pytest.raises(pidcomm.ArgumentError, match=r"in_wram.* is not in MRAM"):
        cube.gather("1", bytes=16, src=windows.symbol("in_wram"))
    with pytest.raises(pidcomm.ArgumentError, match=r"src .*must be an integer"):
        cube.gather("1", bytes=16, src="grad")  # type: ignore[call-overload]
    with pytest.raises(pidcomm.ArgumentError, match="overlap"):
        cube.alltoall("1", bytes=4096, src=grad, dst=grad.window + 8)
    with pidcomm.allocate(pes=8) as other:
        other.load(WINDOWS)
        with pytest.raises(pidcomm.ArgumentError, match="on another set"):
            cube.validate("gather", "1", bytes=16, src=other.symbol("grad"))
    cube.validate("gather", "1", bytes=4096, src=grad)
    assert cube.plan("gather", "1", bytes=4096, src=grad)["bytes_per_pe"] == 4096
    windows.load(WINDOWS)
    with pytest.raises(pidcomm.Error, match="a program that has been replaced"):
        cube.gather("1", bytes=4096, src=grad)


def test_plans_compare_variables_with_the_heap(windows: pidcomm.PeSet) -> None:
    cube, grad = windows.hypercube(8, 8), windows.symbol("grad")
    end = (64 << 20) - windows.symbol(HEAP).window % (1 << 63)
    for src, dst, scratch, rule in (
        (grad, 8, 8192, None),  # the heap begins after the variable
        (grad.window, 0, 8192, None),
        (grad, 0, 2048, "overlap"),
        (grad, end - 2048, 8192, "ends past"),
        (windows.symbol(HEAP), 8, 8192, "overlap"),
    ):
        for check in (cube.plan, cube.validate):
            run = partial(check, "alltoall", "11", bytes=4096, src=src, dst=dst)
            if rule is None:
                run(technique="pr+im+cm", scratch=scratch)
            else:
                with pytest.raises(pidcomm.ArgumentError, match=rule):
                    run(technique="pr+im+cm", scratch=scratch)
    with pytest.raises(pidcomm.ArgumentError, match="needs 4096 bytes of PE scratch"):
        cube.plan("alltoall", "11", bytes=4096, src=grad, technique="pr+im+cm", scratch=0)
