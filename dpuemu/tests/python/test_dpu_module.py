"""The Python module `dpu` with the names of the UPMEM SDK, in a process that `dpuemu run`
starts.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpuemu import tools

PE = """
#include <defs.h>
#include <mram.h>
#include <stdio.h>
__host uint32_t factor, product;
__host int16_t row[4];
__mram_noinit uint64_t words[8];
int main(void) {
  product = factor * 3;
  for (int i = 0; i < 4; ++i) row[i] = (int16_t)(i - product);
  words[7] += factor;
  if (me() == 0) printf("product %u\\n", product);
  return 0;
}
"""
COMMON = """
import io, struct, sys
from dpu import ALLOCATE_ALL, DpuError, DpuSet

def raises(text, act):
    try:
        act()
    except DpuError as error:
        assert text in str(error), str(error)
    else:
        raise SystemExit(f"no error: {text}")
"""
VARIABLES = """
with DpuSet(66, c_source=io.StringIO(open('pe.c').read())) as dpus:
    assert (len(dpus), len(dpus.ranks()), sum(len(rank) for rank in dpus.ranks())) == (66, 2, 66)
    dpus.factor = [bytearray(struct.pack("I", i)) for i in range(66)]
    dpus.exec()
    assert dpus.product.uint32() == [3 * i for i in range(66)]
    assert dpus.dpus()[7].product.uint32() == 21
    assert list(dpus.dpus()[7].row.int16()) == [-21, -20, -19, -18]
    out = io.StringIO()
    dpus.dpus()[65].log(out)
    assert out.getvalue() == "product 195\\n"
    assert not hasattr(dpus, "nothing")
    raises("unknown symbol", lambda: dpus.copy("nothing", bytes(8)))
"""
COPIES = """
log = [io.StringIO() for _ in range(3)]
with DpuSet(nr_dpus=3, log=log, binary='pe', profile="backend=simulator") as dpus:
    sent = [bytearray([i] * 16) for i in range(3)]
    dpus.copy('words', sent, offset=8)
    back = [bytearray(16) for _ in dpus]
    dpus.copy(back, dpus.load('pe').get_symbol('words'), offset=8)
    assert back == sent
    dpus.copy('words', b"\\x07" * 8)  # to all
    dpus.copy(back, 'words', size=8)
    assert all(bytes(each) == b"\\x07" * 8 + bytes([i] * 8) for i, each in enumerate(back))
    dpus.copy('words', [None, bytes(16), None])
    dpus.copy(back, 'words')
    assert [each[0] for each in back] == [7, 0, 7]
    dpus.exec()
    assert [each.getvalue() for each in log] == ["product 0\\n"] * 3
    raises("there are 2 buffers; the set has 3 DPUs", lambda: dpus.copy('words', sent[:2]))
    raises("one size", lambda: dpus.copy('words', [bytes(8), bytes(16), bytes(8)]))
    raises("size is 99", lambda: dpus.copy('words', sent, size=99))
    raises("read-only", lambda: dpus.copy([bytes(16)] * 3, 'words'))
    raises("must be a symbol", lambda: dpus.copy(sent, sent))
raises("not both", lambda: DpuSet(1, 1))
raises("assembly", lambda: DpuSet(1, asm_source='x.S'))
assert len(DpuSet(ALLOCATE_ALL)) == 128
"""
CHIP = """
import dpuemu
dpuemu.machine(ranks=1, chip="v1B")  # not by the environment
with DpuSet(1, c_source='pe.c') as dpus:
    dpus.factor = bytearray(struct.pack("I", 14))
    dpus.exec()
    assert dpus.product.uint32() == 42
    raises("WRAM", lambda: dpus.load('pe'))  # for the default chip
"""
QUEUES = """
with DpuSet(nr_ranks=2, binary='pe', async_mode=True) as dpus:
    seen = []
    back = [bytearray(8) for _ in dpus]
    dpus.factor = [bytearray(struct.pack("I", 5)) for _ in dpus]
    dpus.exec()
    dpus.call(lambda rank, index, arg: seen.append((index, len(rank), arg)), "x")
    dpus.copy(back, 'product', size=4)
    dpus.sync()
    assert sorted(seen) == [(0, 64, "x"), (1, 64, "x")]
    assert all(struct.unpack("I", each[:4])[0] == 15 for each in back)
    def fail(rank, index, arg):
        raise KeyError(arg)
    for act in (
        lambda: dpus.call(fail, "now", async_mode=False),
        lambda: (dpus.call(fail, "now"), dpus.sync()),
    ):
        try:
            act()
        except KeyError as error:
            assert error.args == ("now",)
        else:
            raise SystemExit("no error")
    dpus.sync()  # each exception is raised once
    dpus.call(fail, "queued")
    # Does not raise the exception of the queued call.
    dpus.call(lambda rank, index, arg: None, None, async_mode=False)
    try:
        dpus.sync()
    except KeyError as error:
        assert error.args == ("queued",)
    else:
        raise SystemExit("no error")
"""


@pytest.mark.parametrize(
    "script", [VARIABLES, COPIES, CHIP, QUEUES], ids=["variables", "copies", "chip", "queues"]
)
def test_programs_of_the_sdks_python_api_run(tmp_path: Path, script: str) -> None:
    if not (tools.sdk_root() / "lib" / "libdpu.so").exists():
        pytest.skip("a source tree does not set PYTHONPATH to the library")
    (tmp_path / "pe.c").write_text(PE)
    (tmp_path / "host.py").write_text(COMMON + script)
    dpuemu = [sys.executable, "-m", "dpuemu", "run", "--ranks", "2", "--"]
    for command in (
        ["dpu-upmem-dpurte-clang", "-O2", "-o", "pe", "pe.c"],
        [sys.executable, "host.py"],
    ):
        result = subprocess.run(
            [*dpuemu, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
