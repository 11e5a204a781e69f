"""A model of the CPUs of the paper's server: counted operations, at rates that one thread had
elsewhere.

The text of the paper names no CPU. The number of threads and the rates of memory are those of the
machine file. All threads scale, as independent limbs do.
"""

from __future__ import annotations

from pidcomm.model import Machine

GHZ = 2.5  # assumed: base clock of a Xeon Silver 4215
# Cycles of an operation on one thread of another Xeon with AVX-512, at about 2.5 GHz, by the bits
# of a word: fastest medians of the functions of apps/ntt/cpu.cpp and apps/ckks/cpu.cpp.
BUTTERFLY = {32: 1.6, 64: 2.2}
PRODUCT, WEIGHTED_PRODUCT, SUM = 3.0, 1.5, 1.0
SERVER = "two Xeon Silver 4215, as assumed for upmem-2560"
NOTE = (
    " The CPU of the paper is modelled: operations of this project's AVX-512 code, counted, at"
    f" {BUTTERFLY[64]} cycles per butterfly with 64-bit words and {BUTTERFLY[32]} with 32-bit"
    f" words, on all threads of {SERVER}, at {GHZ} GHz; or its memory, if that is slower."
)


def seconds(cycles: float, read: int, written: int, machine: Machine) -> float:
    """Return the time of work with a number of cycles on one thread, on all threads: the longer of
    the cycles and of the transfers of memory.

    read, written: residues of 8 bytes.
    """
    compute = cycles / (1e9 * GHZ * machine["host.threads"])
    memory = 8e-9 * (read / machine["memory.read_gb_s"] + written / machine["memory.write_gb_s"])
    return max(compute, memory)


def transform_seconds(limbs: int, size: int, word_bits: int, machine: Machine) -> float:
    """Return the time of transforms, which read and write each residue in memory once."""
    butterflies = limbs * size // 2 * (size.bit_length() - 1)
    return seconds(BUTTERFLY[word_bits] * butterflies, limbs * size, limbs * size, machine)
