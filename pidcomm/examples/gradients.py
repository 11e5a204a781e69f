"""Add two gradients of different types over 8 x 8 PEs, and compare with NumPy."""

import sys

import numpy as np

import pidcomm

random = np.random.default_rng(1)
weights = random.integers(-99, 99, (64, 3, 5)).astype(np.float32)  # row p is on PE p
counts = random.integers(-99, 99, (64, 7), np.int16)

# [gradients]
with pidcomm.allocate(pes=64) as pes:
    cube = pes.hypercube(8, 8)
    on_pes = cube.array(weights), cube.array(counts)  # the library chooses where they lie
    for gradient in on_pes:
        cube.allreduce(gradient, "11", op="sum", out=gradient)
    sums = [gradient.get() for gradient in on_pes]
# [end]

wrong = sum(
    np.count_nonzero(rows != x.sum(0, dtype=x.dtype))
    for rows, x in zip(sums, (weights, counts), strict=True)
)
print(f"gradients of float32 and int16 over 64 PEs: {wrong} sums differ from NumPy")
sys.exit(1 if wrong else 0)
