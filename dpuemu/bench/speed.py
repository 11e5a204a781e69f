"""Measure how fast this computer emulates PEs.

dpuemu run -- python bench/speed.py [--repetitions N]

The first rows are kernels with 16 tasklets on 64 PEs, which resemble PrIM's VA, GEMV, HST-L and
BFS, and lookups of 8 bytes: modelled instructions and DMA per second of CPU time of the launch, on
all threads. The next two are one loop on WRAM in machine code, without DMA in its turns, translated
and interpreted. The others are times on 2,560 PEs: launches of an empty program, and transfers of 4
bytes to and from WRAM. All rows are the best of N repetitions. The results of the kernels are
compared with NumPy.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dpu import DpuSet, library

from dpuemu import report
from dpuemu.tools import sdk_root, temporary_folder

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))
from dpu_program import VARIABLE, program_file
from isa_definition import ID, ID4, MASK, ZERO, Instruction
from thread_definition import encode

PES, MOST_PES, TASKLETS, WORDS, PART = 64, 2560, 16, 256, 1 << 18
HISTOGRAM_TURNS = 16
SHARED = """
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <stdint.h>
#define WORDS 256
__mram_noinit uint32_t data[3 << 18];
__dma_aligned uint32_t a[NR_TASKLETS][WORDS], b[NR_TASKLETS][WORDS];
__host uint32_t length = WORDS, symbol, results[NR_TASKLETS];
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
    "lookups": """
  for (uint32_t k = 0; k < length / 8; ++k) {
    seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
    mram_read(data + seed % (3 << 17) * 2, x, 8);
    result += x[0];
  }""",
}
MAIN = """
int main(void) {
  uint32_t *x = a[me()], *y = b[me()], seed = me() + 1, result = 0;
  for (uint32_t i = 0; i < TURNS; ++i) {
    uint32_t at = (i * NR_TASKLETS + me()) % 1024 * WORDS;
    KERNEL
  }
  results[me()] = result + seed;
  return 0;
}
"""


CODE_TURNS, CODE_RESULTS, CODE_WORDS = 4000, 512, 1024  # turns; addresses in WRAM


def machine_code(first: str) -> bytes:
    """Return a program whose tasklets add words at pseudorandom places. first: a transfer from
    MRAM. After an ldmai, the emulator interprets a program.
    """
    xorshift = [("lsl", 13), ("lsr", 17), ("lsl", 5)]
    begin = [
        Instruction("nop"),
        Instruction("or", "r", 9, immediate=0, is_wide=True),
        Instruction(first, a=ZERO, b=9),
        Instruction("add", "r", 0, ID, immediate=1, is_wide=True),
        Instruction("sub", a=0, immediate=TASKLETS, code=2, target=6),
        Instruction("boot", a=0),
        Instruction("or", "r", 1, immediate=0, is_wide=True),
        Instruction("or", "r", 4, immediate=CODE_WORDS, is_wide=True),
        Instruction("or", "r", 6, immediate=CODE_TURNS, is_wide=True),
    ]
    turn = [
        Instruction("and", "r", 2, 0, immediate=WORDS - 1),
        Instruction("lsl_add", "r", 2, 2, 4, shift=2),
        Instruction("lw", "r", 3, 2),
        Instruction("add", "r", 1, 1, 3),
    ]
    for name, shift in xorshift:
        turn += [Instruction(name, "r", 5, 0, shift=shift), Instruction("xor", "r", 0, 0, 5)]
    turn.append(Instruction("add", "r", 6, 6, immediate=MASK, code=3, target=len(begin)))
    place = len(begin + turn) + 1
    end = [
        Instruction("sw", a=ID4, b=1, offset=CODE_RESULTS),
        Instruction("stop", code=1, target=place),
    ]
    symbols = [
        ("results", VARIABLE, CODE_RESULTS, 4 * TASKLETS),
        ("words", VARIABLE, CODE_WORDS, 4 * WORDS),
    ]
    code = [encode(each) for each in begin + turn + end]
    nop = code[0].to_bytes(8, "little")
    return program_file(code, symbols, wram=bytes(CODE_WORDS + 4 * WORDS), mram=nop)


def check_machine_code(words: np.ndarray, results: np.ndarray) -> bool:
    """Return whether all PEs have the results of machine_code."""
    seeds, sums = np.arange(1, TASKLETS + 1, dtype=np.uint32), np.zeros_like(results)
    for _ in range(CODE_TURNS):
        sums += words[:, seeds % WORDS]
        for shift in (13, -17, 5):
            seeds ^= seeds << shift if shift > 0 else seeds >> -shift
    return np.array_equal(results, sums)


def expected(name: str, data: np.ndarray, launches: int) -> list[np.ndarray]:
    """Return what data, results and b[0] of a PE hold after the launches of a kernel."""
    data, seeds = data.copy(), np.arange(1, TASKLETS + 1, dtype=np.uint32)
    results, counts = np.zeros(TASKLETS, np.uint32), np.zeros(WORDS, np.uint32)
    x, y, z = data.reshape(3, -1, TASKLETS, WORDS)  # by turn, tasklet and k
    turns, words = np.arange(len(x), dtype=np.uint32), np.arange(WORDS, dtype=np.uint32)
    if name == "VA":
        z[:] = x + y
    elif name == "GEMV":
        products = (x + words) * (y + turns[:, None, None])
        results = products.sum(axis=(0, 2), dtype=np.uint32)
    elif name == "HST-L":
        places = (x[:HISTOGRAM_TURNS] + words * 37) % WORDS
        counts = (launches * np.bincount(places.ravel(), minlength=WORDS)).astype(np.uint32)
    else:
        for _ in range(len(x) * WORDS // 8):
            seeds ^= seeds << 13
            seeds ^= seeds >> 17
            seeds ^= seeds << 5
            if name == "lookups":
                results += data[seeds % (3 << 17) * 2]
            else:
                data[PART + seeds[seeds & 3 == 0] % (1 << 13) * 2] |= 1
    return [data, results + seeds, counts]


def check(name: str, dpus: DpuSet, data: np.ndarray, launches: int) -> None:
    """End with an error if the last launch of a kernel has wrong results."""
    lengths = {"data": 3 * PART, "results": TASKLETS}
    if name == "HST-L":  # other kernels use b for their words
        lengths["b"] = WORDS
    got = {symbol: np.empty((PES, length), np.uint32) for symbol, length in lengths.items()}
    for symbol, values in got.items():
        dpus.copy(list(values), symbol)
    for pe in range(PES):
        for symbol, want in zip(got, expected(name, data[pe], launches), strict=False):
            if not np.array_equal(got[symbol][pe], want):
                sys.exit(f"speed.py: {name}: wrong values of `{symbol}` in PE {pe}")


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
    data = np.random.default_rng(1).integers(256, size=(PES, 3 * PART), dtype=np.uint32)
    with DpuSet(PES) as dpus:
        for name, kernel in KERNELS.items():
            turns = HISTOGRAM_TURNS if name == "HST-L" else PART // (TASKLETS * WORDS)
            load(dpus, MAIN.replace("KERNEL", kernel).replace("TURNS", str(turns)), TASKLETS)
            dpus.copy("data", list(data))
            seconds = best(repetitions, time.process_time, dpus.exec)
            check(name, dpus, data, repetitions + 1)
            counts = report(SetBytes(bytes(dpus.c_set)))
            dma = (counts.dma_reads + counts.dma_writes) / seconds / 1e6
            rate = counts.instructions / seconds / 1e9
            print(f"{name:14} {rate:8.2f} G instructions/s {dma:8.2f} M DMA/s", flush=True)
        words = np.random.default_rng(2).integers(1 << 32, size=(PES, WORDS), dtype=np.uint32)
        results = np.empty((PES, TASKLETS), np.uint32)
        for name, first in (
            ("WRAM loop, machine code", "ldma"),
            ("the same, interpreted", "ldmai"),
        ):
            with temporary_folder() as folder:
                (folder / "program").write_bytes(machine_code(first))
                dpus.load(str(folder / "program"))
            dpus.copy("words", list(words))
            seconds = best(repetitions, time.process_time, dpus.exec)
            dpus.copy(list(results), "results")
            if not check_machine_code(words, results):
                sys.exit(f"speed.py: {name}: wrong results")
            rate = report(SetBytes(bytes(dpus.c_set))).instructions / seconds / 1e9
            print(f"{name:14} {rate:8.2f} G instructions/s", flush=True)
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
