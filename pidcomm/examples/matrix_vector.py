"""A PE program with collectives between its launches: x becomes A' A x, four times, on 8 x 8 PEs.

matrix_vector.c does the same in C and explains how it works. pe/matrix_vector.c is the PE program.
"""

import sys
from pathlib import Path

import numpy as np

import pidcomm

GRID, SIDE, STEPS = 8, 32, 8
N = GRID * SIDE
BLOCK_BYTES, VECTOR_BYTES = 4 * SIDE * SIDE, 4 * SIDE
INPUT, OUTPUT = BLOCK_BYTES, BLOCK_BYTES + VECTOR_BYTES  # offsets of pe/matrix_vector.h

random = np.random.default_rng(1)
matrix = random.integers(0, 2**32, size=(N, N), dtype=np.uint32)
x = random.integers(0, 2**32, size=N, dtype=np.uint32)
# Row = PE.
blocks = matrix.reshape(GRID, SIDE, GRID, SIDE).swapaxes(1, 2).reshape(GRID * GRID, SIDE * SIDE)

# [program]
pes = pidcomm.allocate(pes=GRID * GRID)
pes.load(Path(__file__).parent / "pe" / "matrix_vector.c", tasklets=16)
cube = pes.hypercube(GRID, GRID)
cube.write(blocks)  # offsets count from the MRAM heap
cube.write(np.tile(x.reshape(GRID, SIDE), (GRID, 1)), offset=INPUT)  # PE (c, r) has part c
# [end]
is_transposed = pes.symbol("is_transposed")
for step in range(STEPS):
    is_transposed.write(np.uint32(step % 2))  # one value for all PEs
    pes.launch()
    mask = "01" if step % 2 else "10"
    cube.allreduce(mask, bytes=VECTOR_BYTES, src=OUTPUT, dst=INPUT, dtype=np.uint32, op="sum")
parts = cube.read(count=SIDE, dtype=np.uint32, offset=INPUT).reshape(GRID, GRID, SIDE)
pes.free()

for step in range(STEPS):
    x = (matrix.T if step % 2 else matrix) @ x
wrong = np.count_nonzero(parts != x.reshape(GRID, SIDE))
print(
    f"{STEPS} steps with a {N}x{N} matrix on {GRID}x{GRID} PEs: {wrong} of {parts.size} words wrong"
)
sys.exit(1 if wrong else 0)
