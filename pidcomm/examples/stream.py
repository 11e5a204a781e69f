"""A stream: kernel, allreduce, kernel. While the host sums vectors of some PEs, others compute.

stream.c does the same in C. pe/stream.c is the PE program.
"""

import sys
from pathlib import Path

import numpy as np

import pidcomm

RANKS, PES_OF_RANK, WORDS = 4, 64, 4096
vectors = np.random.default_rng(1).integers(2**32, size=(RANKS * PES_OF_RANK, WORDS), dtype="u4")


def new_words(words: np.ndarray) -> np.ndarray:
    """Return what the PE program makes of words; products wrap."""
    return words * np.uint32(40503) + (words >> np.uint32(7))


with pidcomm.allocate(ranks=RANKS) as pes:
    cube = pes.hypercube(PES_OF_RANK, RANKS)
    pes.load(Path(__file__).parent / "pe" / "stream.c")
    cube.write(vectors)
    with pes.stream(rank_groups=RANKS) as stream:
        stream.launch()
        cube.allreduce("11", bytes=vectors[0].nbytes, dtype=np.uint32)
        stream.launch()
    # stream.explain() now returns the timeline of the run.
    result = cube.read(WORDS, np.uint32)

want = new_words(new_words(vectors).sum(0, dtype=np.uint32))
wrong = np.count_nonzero(result != want)
print(f"{wrong} words differ from NumPy")
sys.exit(1 if wrong else 0)
