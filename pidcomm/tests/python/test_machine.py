"""The emulated machine."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import dpuemu
import pidcomm
from dpuemu.settings import Flush

PROGRAM = """
import dpuemu, json, numpy as np, pidcomm
default = dpuemu.machine()
small = dpuemu.machine(ranks=3, channels=1, ranks_per_channel=3, threads=1, hugepages=False,
                       flush=True, disabled=[(0, 3, 2), (1, 7, 7)])
with pidcomm.allocate() as pes:
    count = pes.pes
    try:
        dpuemu.machine(ranks=4)
    except dpuemu.Error as error:
        busy = str(error)
    try:
        pes.hypercube(pes.pes)
    except pidcomm.ArgumentError as error:
        shape = str(error)
    cube = pes.hypercube(8, 22)
    cube.write(np.arange(176).reshape(176, 1))
    kept = bool((cube.read(1, np.int64)[:, 0] == np.arange(176)).all())
dpuemu.set_transfer(threads=2, flush=False)
changed = dpuemu.machine()
flushes = []
for flush in ("once", True, False):
    dpuemu.set_transfer(flush=flush)
    flushes.append([dpuemu.machine().flush, dpuemu.machine(ranks=2, flush=flush).flush])
wrong = []
for keywords in ({"ranks": 0}, {"ranks": 41}, {"ranks": -1}, {"channels": 2**32},
                 {"disabled": [(0, 8, 0)]}, {"disabled": [(99, 0, 0)]}, {"disabled": [7]},
                 {"chip": "v2"}):
    try:
        dpuemu.machine(**keywords)
        wrong.append("accepted " + str(keywords))
    except dpuemu.ArgumentError:
        pass
assert dpuemu.machine(chip='v1B').chip == 'v1B'
restored = dpuemu.machine(disabled=())
print(json.dumps([default == restored, vars(small), count, busy, shape, kept,
                  changed.threads, changed.flush, flushes, wrong]))
"""


def test_machine_can_be_replaced_while_nothing_is_allocated() -> None:
    # In a new process, because the machine belongs to the process.
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    is_restored, small, count, busy, shape, kept, threads, flush, flushes, wrong = json.loads(
        result.stdout
    )
    assert is_restored
    assert small == {
        "ranks": 3,
        "channels": 1,
        "ranks_per_channel": 3,
        "threads": 1,
        "hugepages": False,
        "flush": True,
        "strict": False,
        "patience_seconds": 60,
        "chip": "generic",
    }
    assert count == 3 * 64 - 2
    assert "free every PE set" in busy
    assert "190" in shape
    assert kept
    assert (threads, flush) == (2, False)
    assert flushes == [["once", "once"], [True, True], [False, False]]
    assert wrong == []


CHIP_PE = """
#include <attributes.h>
#include <perfcounter.h>
#include <stdint.h>
__host uint32_t clock;
int main(void) {
  clock = CLOCKS_PER_SEC;
  return 0;
}
"""

CHIP = f"""
import dpuemu, json, numpy as np, pidcomm
dpuemu.machine(ranks=1, chip="v1B")
with pidcomm.allocate() as pes:
    pes.load({CHIP_PE!r}, tasklets=16)
    pes.launch()
    clock = int(pes.symbol("clock").read(np.uint32)[63, 0])
    try:
        pes.load({CHIP_PE!r}, tasklets=17)
    except pidcomm.ArgumentError as error:
        refused = str(error)
    cube = pes.hypercube(8, 8)
    rows = np.arange(64 * 64, dtype=np.int64).reshape(64, 64)
    by_pes, by_host = (
        cube.arrays.alltoall(rows, "10", technique=name) for name in ("pr+im", "conventional")
    )
    is_equal = bool((by_pes == by_host).all())
    print(json.dumps([clock, dpuemu.report(pes).cycles_per_second, refused, is_equal]))
"""


def test_the_api_compiles_for_the_chip_of_the_machine() -> None:
    result = subprocess.run(
        [sys.executable, "-c", CHIP], capture_output=True, text=True, check=True
    )
    clock, cycles_per_second, refused, is_equal = json.loads(result.stdout)
    assert clock == cycles_per_second == 400e6
    assert is_equal
    assert "a DPU (v1B) runs 1 to 16 tasklets" in refused


def test_transfer_settings_are_checked() -> None:
    with pytest.raises(dpuemu.ArgumentError, match=r"threads \(0\)"):
        dpuemu.set_transfer(threads=0)
    with pytest.raises(
        dpuemu.ArgumentError, match="flush 'twice' is unknown; use True, False or 'once'"
    ):
        dpuemu.set_transfer(flush="twice")  # type: ignore[arg-type]


@pytest.mark.parametrize("flush", ["once", True, False])
def test_transfers_are_right_with_every_flush(cube: pidcomm.Hypercube, flush: Flush) -> None:
    before = dpuemu.machine().flush
    rows = np.arange(64 * 100, dtype=np.int64).reshape(64, 100)
    try:
        dpuemu.set_transfer(flush=flush)
        cube.write(rows, technique="conventional")
        assert (cube.read(100, np.int64, technique="conventional") == rows).all()
    finally:
        dpuemu.set_transfer(flush=before)


def test_import_is_fast_and_prints_nothing() -> None:
    program = (
        "import sys, pidcomm; print(sorted({'typer', 'rich', 'hypothesis'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600
    )
    assert result.stdout == "[]\n"
    assert result.stderr == ""
