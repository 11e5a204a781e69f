"""The emulated machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pidcomm
import pytest

PROGRAM = """
import json, numpy as np, pidcomm
default = pidcomm.machine()
small = pidcomm.machine(ranks=3, channels=1, ranks_per_channel=3, threads=1, hugepages=False, flush=True,
                        disabled=[(0, 3, 2), (1, 7, 7)])
with pidcomm.allocate() as pes:
    count = pes.pes
    try:
        pidcomm.machine(ranks=4)
    except pidcomm.Error as error:
        busy = (error.status, str(error))
    try:
        pes.hypercube(pes.pes)
    except pidcomm.ArgumentError as error:
        shape = str(error)
    cube = pes.hypercube(8, 22)
    cube.write(np.arange(176).reshape(176, 1))
    kept = bool((cube.read(1, np.int64)[:, 0] == np.arange(176)).all())
pidcomm.set_transfer(threads=2, flush=False)
changed = pidcomm.machine()
wrong = []
for keywords in ({"ranks": 0}, {"ranks": 41}, {"ranks": -1}, {"channels": 2**32}, {"disabled": [(0, 8, 0)]},
                 {"disabled": [(99, 0, 0)]}, {"disabled": [7]}):
    try:
        pidcomm.machine(**keywords)
        wrong.append("accepted " + str(keywords))
    except pidcomm.ArgumentError:
        pass
restored = pidcomm.machine(disabled=())
print(json.dumps([default == restored, vars(small), count, busy, shape, kept, changed.threads, changed.flush, wrong]))
"""


def test_machine_can_be_replaced_while_nothing_is_allocated() -> None:
    # In a process of its own: the machine belongs to the process.
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    is_restored, small, count, busy, shape, kept, threads, flush, wrong = json.loads(result.stdout)
    assert is_restored
    assert small == {
        "ranks": 3,
        "channels": 1,
        "ranks_per_channel": 3,
        "threads": 1,
        "hugepages": False,
        "flush": True,
        "strict": False,
    }
    assert count == 3 * 64 - 2
    assert busy[0] == "ERR_DEVICE"
    assert "free every PE set" in busy[1]
    assert "190" in shape
    assert kept
    assert (threads, flush) == (2, False)
    assert wrong == []


def test_transfer_settings_are_checked() -> None:
    with pytest.raises(pidcomm.ArgumentError, match=r"threads \(0\)"):
        pidcomm.set_transfer(threads=0)


def test_import_is_quick_and_quiet() -> None:
    program = "import sys, pidcomm; print(sorted({'typer', 'rich', 'hypothesis'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=10)
    assert result.stdout == "[]\n"
    assert result.stderr == ""
