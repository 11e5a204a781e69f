"""Compare the first round trip of a set of PEs with later round trips, and array collectives with
their parts.

python bench/first_touch.py [--pes 1024] [--mib 1] [--technique tile] [--rounds 5]

A round trip is a collective of `cube.arrays`: it writes the input to the PEs, runs the collective
and reads the result.
The first round trip of a new set and a new result array also causes the page faults of both.
`memset` fills as many new bytes as the round trip writes (MRAM windows, result and buffers of the
technique), with huge pages and one thread per CPU. `faults` is (first - later) / memset. `parts` is
the later round trip as `write`, collective and `read`, and `ratio` is later / parts. Times are
medians in milliseconds.

In a virtual machine, the first use of memory that is new to the hypervisor takes several times as
long. Before each round, the script therefore fills and frees more memory than the round uses. The
first round is not counted.
"""

from __future__ import annotations

import argparse
import mmap
import os
from collections.abc import Callable
from functools import partial
from statistics import median
from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np

import pidcomm
from pidcomm.arguments import Array
from pidcomm.tables import Collective

MASK, AXIS = "10", 32
COLUMNS = ("memset", "first", "faults", "later", "parts", "ratio")


def timed(act: Callable[[], object]) -> float:
    """Return the milliseconds of act()."""
    begin = perf_counter()
    act()
    return 1e3 * (perf_counter() - begin)


def memset(size_bytes: int) -> float:
    """Return the milliseconds in which all CPUs fill new memory on huge pages."""
    memory = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    parts = np.array_split(np.frombuffer(memory, np.uint8), len(os.sched_getaffinity(0)))
    threads = [Thread(target=part.fill, args=(1,)) for part in parts]

    def fill() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return timed(fill)


class RoundTrip:
    """A collective on arrays, with its input."""

    def __init__(self, row: Collective, pes: int, size_bytes: int, technique: Any) -> None:
        """size_bytes: bytes per PE, as in the collectives of a hypercube."""
        self.row, self.pes, self.size_bytes = row, pes, size_bytes
        self.options: pidcomm.Options = {"technique": technique, "scratch": size_bytes}
        rows = pes if row.at_pes_before else pes // AXIS
        count = size_bytes // 4 // row.blocks_per_pe(AXIS) * row.blocks_before(AXIS)
        self.x = np.arange(rows * count, dtype=np.int32).reshape(rows, count)

    def arrays(self, cube: pidcomm.Hypercube, out: Array | None = None) -> Array:
        """Run the collective of `cube.arrays`."""
        result: Array = getattr(cube.arrays, self.row.name)(self.x, MASK, out=out, **self.options)
        return result

    def parts(self, cube: pidcomm.Hypercube, out: Array) -> None:
        """Run the same three steps."""
        if self.row.at_pes_before:
            cube.write(self.x)
        cube.carry_out(
            self.row.name,
            MASK,
            bytes=self.size_bytes,
            dtype=self.x.dtype,
            op="sum",
            host=None if self.row.at_pes_before else self.x,
            out=None if self.row.at_pes_after else out,
            options=self.options,
        )
        if self.row.at_pes_after:
            cube.read(out.shape[1], out.dtype, out=out)

    def measure(self, rounds: int) -> list[float]:
        """Return the medians of memset, first, faults, later, parts and ratio."""
        rows, written_bytes = [], 1
        for turn in range(rounds + 1):
            memset(2 * written_bytes)  # emulated MRAM uses half of each huge page
            fill = memset(written_bytes)
            with pidcomm.allocate(pes=self.pes) as pes:
                cube = pes.hypercube(AXIS, self.pes // AXIS)
                begin = perf_counter()
                out = self.arrays(cube)
                first = 1e3 * (perf_counter() - begin)
                staged_bytes = cube.last_trace.bytes_staged if cube.last_trace else 0
                written_bytes = self.pes * self.size_bytes + out.nbytes + staged_bytes
                arrays, parts = partial(self.arrays, cube, out), partial(self.parts, cube, out)
                later, apart = (
                    median(times)
                    for times in zip(
                        *((timed(arrays), timed(parts)) for _ in range(5)), strict=True
                    )
                )
            if turn:
                rows.append((fill, first, (first - later) / fill, later, apart, later / apart))
        return [median(column) for column in zip(*rows, strict=True)]


def main() -> None:
    """Print a line per collective."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--pes", type=int, default=1024, help=f"a multiple of {AXIS} (default: 1024)"
    )
    parser.add_argument("--mib", type=float, default=1, help="MiB per PE (default: 1)")
    parser.add_argument("--technique", default="tile", help="name of a technique (default: tile)")
    parser.add_argument(
        "--rounds", type=int, default=5, help="new sets per collective (default: 5)"
    )
    parser.add_argument(
        "--collective",
        nargs="+",
        choices=list(pidcomm.COLLECTIVES),
        default=list(pidcomm.COLLECTIVES),
    )
    options = parser.parse_args()
    print(
        f"{options.pes} PEs, {options.mib} MiB per PE, mask {MASK}, technique {options.technique}"
    )
    print(f"{'collective':15}" + "".join(f"{name:>9}" for name in COLUMNS))
    for name in options.collective:
        trip = RoundTrip(
            pidcomm.COLLECTIVES[name], options.pes, int(options.mib * 2**20), options.technique
        )
        print(
            f"{name:15}" + "".join(f"{value:9.2f}" for value in trip.measure(options.rounds)),
            flush=True,
        )


if __name__ == "__main__":
    main()
