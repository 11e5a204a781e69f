"""Jacobi's method on a grid of cells over 8 x 8 PEs: allgathers exchange the edges of the PEs.

jacobi.c does the same in C. pe/jacobi.c is the PE program.
"""

import sys
from pathlib import Path

import numpy as np

import pidcomm

GRID, SIDE, STEPS = 8, 16, 10
N = GRID * SIDE
cells = np.random.default_rng(1).random((N, N), np.float32)

with pidcomm.allocate(pes=GRID * GRID) as pes:
    cube = pes.hypercube(x=GRID, y=GRID)
    cube.load(Path(__file__).parent / "pe" / "jacobi.c")  # the program gets its coordinates
    blocks = cells.reshape(GRID, SIDE, GRID, SIDE).swapaxes(1, 2)  # by coordinates: [y, x]
    pes.symbol("cells")[:] = blocks.reshape(-1, SIDE, SIDE)
    edges = pes.symbol("edges")
    edges[0] = blocks[:, :, [0, -1], :].reshape(-1, 2, SIDE)  # first and last row of each PE
    edges[1] = blocks[:, :, :, [0, -1]].swapaxes(2, 3).reshape(-1, 2, SIDE)  # columns
    for _ in range(STEPS):
        # [halo]
        cube.allgather(edges[0], "y", out=pes.symbol("edges_of_column"))
        cube.allgather(edges[1], "x", out=pes.symbol("edges_of_row"))
        pes.launch()
        # [end]
    result = pes.symbol("cells").get().reshape(GRID, GRID, SIDE, SIDE).swapaxes(1, 2).reshape(N, N)

for _ in range(STEPS):
    c = np.pad(cells, 1)
    cells = (c[:-2, 1:-1] + c[2:, 1:-1] + (c[1:-1, :-2] + c[1:-1, 2:])) * np.float32(0.25)
wrong = np.count_nonzero(result != cells)
print(f"{STEPS} Jacobi steps on {N}x{N} cells: {wrong} cells differ from NumPy")
sys.exit(1 if wrong else 0)
