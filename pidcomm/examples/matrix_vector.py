"""A PE program with collectives between its launches: x becomes A' A x, four times, on 8 x 8 PEs.

matrix_vector.c does the same in C and explains how it works. pe/matrix_vector.c is the PE program.
"""

import sys
from pathlib import Path

import numpy as np

import pidcomm

GRID, SIDE, STEPS = 8, 32, 8
N = GRID * SIDE
random = np.random.default_rng(1)
matrix = random.integers(0, 2**32, size=(N, N), dtype=np.uint32)
x = random.integers(0, 2**32, size=N, dtype=np.uint32)

# [program]
pes = pidcomm.allocate(pes=GRID * GRID)
pes.load(Path(__file__).parent / "pe" / "matrix_vector.c", tasklets=16)
cube = pes.hypercube(GRID, GRID)
vector, product = pes.symbol("vector"), pes.symbol("product")  # MRAM variables of the program
# PE (c, r) has block (r, c) of the matrix and part c of the vector.
blocks = matrix.reshape(GRID, SIDE, GRID, SIDE).swapaxes(1, 2).reshape(-1, SIDE, SIDE)
pes.symbol("matrix")[:] = blocks
vector[:] = np.tile(x.reshape(GRID, SIDE), (GRID, 1))
for step in range(STEPS):
    pes.symbol("is_transposed")[...] = step % 2  # one value for all PEs
    pes.launch()
    cube.allreduce(product, "01" if step % 2 else "10", out=vector)
# [end]
parts = vector.get().reshape(GRID, GRID, SIDE)
pes.free()
for step in range(STEPS):
    x = (matrix.T if step % 2 else matrix) @ x
wrong = np.count_nonzero(parts != x.reshape(GRID, SIDE))
print(f"{STEPS} steps with a {N}x{N} matrix on 8x8 PEs: {wrong} of {parts.size} words wrong")
sys.exit(1 if wrong else 0)
