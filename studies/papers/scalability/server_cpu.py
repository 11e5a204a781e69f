"""A model of the CPUs of the paper's server: counted operations, at rates that one thread had
elsewhere.

The text of the paper names no CPU. The number of threads and the rates of memory are those of the
machine file. All threads scale, as independent limbs do.
"""

from __future__ import annotations

from typing import NamedTuple

from pidcomm.model import Machine

GHZ = 2.5  # assumed: base clock of a Xeon Silver 4215
BUTTERFLY_CYCLES = {32: 1.6, 64: 2.2}
"""Cycles of a butterfly on one thread of another Xeon with AVX-512 at about 2.5 GHz, by the bits of
a word: the fastest medians of `_apps.ntt_forward`, with OMP_NUM_THREADS=1.
"""
PRODUCT_CYCLES, WEIGHTED_PRODUCT_CYCLES, SUM_CYCLES = 3.0, 1.5, 1.0
"""Cycles per element in the same way: of `_apps.ntt_multiply`, of `_apps.ckks_convert` for each
source and target, and of `_apps.ckks_add`.
"""
SERVER = "two Xeon Silver 4215, as assumed for upmem-2560"
NOTE = (
    " The CPU of the paper is modelled: operations of this project's AVX-512 code, counted, at"
    f" {BUTTERFLY_CYCLES[64]} cycles per butterfly with 64-bit words and {BUTTERFLY_CYCLES[32]}"
    f" with 32-bit words, on all threads of {SERVER}, at {GHZ} GHz; or its memory, if that is"
    " slower (`--wide` shows which). Memory has operands and tables once and results once. Further"
    " passes of this code over data larger than the caches, and zeroing of new arrays, are left"
    " out, which favours the CPU."
)


class Time(NamedTuple):
    """Seconds of the cycles of all threads, and of the transfers of memory."""

    cycles_s: float
    memory_s: float

    @property
    def seconds(self) -> float:
        """The longer of both."""
        return max(self)

    @property
    def limit(self) -> str:
        """The longer of both in words."""
        return "cycles" if self.cycles_s > self.memory_s else "memory"


def time_of(cycles: float, read_elems: int, written_elems: int, machine: Machine) -> Time:
    """Return the time of work on all threads. cycles: of one thread for all the work. Elements have
    8 bytes.
    """
    memory_s = 8e-9 * (
        read_elems / machine["memory.read_gb_s"] + written_elems / machine["memory.write_gb_s"]
    )
    return Time(cycles / (1e9 * GHZ * machine["host.threads"]), memory_s)


def butterflies(limbs: int, size: int) -> int:
    """Return the butterflies of radix 2 of transforms."""
    return limbs * size // 2 * (size.bit_length() - 1)


def transform_time(limbs: int, size: int, word_bits: int, machine: Machine) -> Time:
    """Return the time of transforms with different moduli, which read each residue and its entry of
    the tables, a factor and a quotient, and write each residue.
    """
    cycles = BUTTERFLY_CYCLES[word_bits] * butterflies(limbs, size)
    return time_of(cycles, 3 * limbs * size, limbs * size, machine)


def cycles_per_butterfly(seconds: float, limbs: int, size: int, threads: float) -> float:
    """Return the cycles of a butterfly on each thread with which transforms would take a time."""
    return seconds * 1e9 * GHZ * threads / butterflies(limbs, size)
