"""Measure how fast this computer emulates PEs.

dpuemu run -- python bench/speed.py [--repetitions N]

The first rows are kernels with 16 tasklets on 64 PEs, which resemble PrIM's VA, GEMV, HST-L and
BFS: modelled instructions and DMA per second of CPU time of the launch, on all threads. The others
are times on 2,560 PEs: launches of an empty program, and transfers of 4 bytes to and from WRAM. All
rows are the best of N repetitions.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from dpu import DpuSet, library

from dpuemu import report
from dpuemu.tools import sdk_root, temporary_folder

PES, MOST_PES = 64, 2560
SHARED = """
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <stdint.h>
#define WORDS 256
__mram_noinit uint32_t data[3 << 18];
__dma_aligned uint32_t a[NR_TASKLETS][WORDS], b[NR_TASKLETS][WORDS];
__host uint32_t length = WORDS, symbol;
MUTEX_INIT(lock);
"""
# Each is the body of a loop over i, with the tasklet's arrays x and y, and its words at data + at.
KERNELS = {
    "VA": """
  mram_read(data + at, x, sizeof a[0]);
  mram_read(data + (1 << 18) + at, y, sizeof a[0]);
  for (uint32_t k = 0; k < length; ++k) y[k] += x[k];
  mram_write(y, data + (2 << 18) + at, sizeof a[0]);""",
    "GEMV": """
  mram_read(data + at, x, sizeof a[0]);
  mram_read(data + (1 << 18) + at, y, sizeof a[0]);
  uint32_t sum = 0;
  for (uint32_t k = 0; k < length; ++k) sum += (x[k] + k) * (y[k] + i);
  result += sum;""",
    "HST-L": """
  mram_read(data + at, x, sizeof a[0]);
  for (uint32_t k = 0; k < length; ++k) {
    mutex_lock(lock);
    b[0][(x[k] + k * 37) % WORDS] += 1;
    mutex_unlock(lock);
  }""",
    # A search visits a neighbour at a pseudorandom place, and marks every fourth one.
    "BFS": """
  for (uint32_t k = 0; k < length / 8; ++k) {
    mram_read(data + at + (k & ~1u), x, 8);
    seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
    __mram_ptr uint32_t *visited = data + (1 << 18) + seed % (1 << 13) * 2;
    mram_read(visited, y, 8);
    if ((seed & 3) == 0) {
      mutex_lock(lock);
      mram_read(visited, x, 8);
      x[0] |= 1;
      mram_write(x, visited, 8);
      mutex_unlock(lock);
    }
  }""",
}
MAIN = """
int main(void) {
  uint32_t *x = a[me()], *y = b[me()], seed = me() + 1, result = 0;
  for (uint32_t i = 0; i < TURNS; ++i) {
    uint32_t at = (i * NR_TASKLETS + me()) % 1024 * WORDS;
    KERNEL
  }
  symbol = result + seed;
  return 0;
}
"""


@dataclass(frozen=True)
class SetBytes:
    """A set as dpuemu.report expects it."""

    dpu_set: bytes


def best(repetitions: int, clock: Callable[[], float], act: Callable[[], object]) -> float:
    """Return the shortest time of an act, after one act that is not measured."""
    times = []
    for _ in range(repetitions + 1):
        begin = clock()
        act()
        times.append(clock() - begin)
    return min(times[1:])


def load(dpus: DpuSet, main: str, tasklets: int) -> None:
    """Compile and load a program."""
    with temporary_folder() as folder:
        source, program = folder / "program.c", folder / "program"
        source.write_text(SHARED + main)
        compiler = sdk_root() / "bin" / "dpu-upmem-dpurte-clang"
        options = ["-O2", f"-DNR_TASKLETS={tasklets}", "-o", str(program), str(source)]
        subprocess.run([str(compiler), *options], check=True)
        dpus.load(str(program))


def measure(repetitions: int) -> None:
    """Print all rows."""
    with DpuSet(PES) as dpus:
        for name, kernel in KERNELS.items():
            turns = "16" if name == "HST-L" else "64"
            load(dpus, MAIN.replace("KERNEL", kernel).replace("TURNS", turns), 16)
            seconds = best(repetitions, time.process_time, dpus.exec)
            counts = report(SetBytes(bytes(dpus.c_set)))
            dma = (counts.dma_reads + counts.dma_writes) / seconds / 1e6
            rate = counts.instructions / seconds / 1e9
            print(f"{name:14} {rate:8.2f} G instructions/s {dma:8.2f} M DMA/s", flush=True)
    with DpuSet(MOST_PES) as dpus:
        for tasklets in (1, 16):
            load(dpus, "int main(void) { return 0; }", tasklets)
            seconds = best(repetitions, time.perf_counter, dpus.exec)
            print(f"launch, {tasklets:2} tasklets {1e3 * seconds:8.2f} ms", flush=True)
        words = [ctypes.create_string_buffer(4) for _ in dpus]

        def transfer(direction: int) -> float:
            for dpu, word in zip(dpus, words, strict=True):
                library.LIBRARY.dpu_prepare_xfer(dpu.c_set, word)
            begin = time.perf_counter()
            library.LIBRARY.dpu_push_xfer(dpus.c_set, direction, b"symbol", 0, 4, library.DEFAULT)
            return time.perf_counter() - begin

        for text, direction in (("to", library.TO_DPU), ("from", library.FROM_DPU)):
            seconds = min(transfer(direction) for _ in range(repetitions + 1))
            print(f"4 bytes {text:4}   {1e3 * seconds:8.2f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--repetitions", type=int, default=20, metavar="N", help="default: 20")
    measure(parser.parse_args().repetitions)
