"""AllReduce on emulated PEs: allocate, write, allreduce, read, compare with NumPy."""

import sys

import numpy as np

import pidcomm

COUNT = 1024
x = np.random.default_rng(1).integers(-1000, 1000, size=(64, COUNT), dtype=np.int32)  # row = PE

# [allreduce]
with pidcomm.allocate(pes=64) as pes:
    cube = pes.hypercube(8, 8)  # PE p has the coordinates (p % 8, p // 8)
    cube.write(x)
    # Along the first axis, in place.
    cube.allreduce("10", bytes=x[0].nbytes, dtype=x.dtype, op="sum")
    y = cube.read(count=COUNT, dtype=x.dtype)
# [end]

groups = x.reshape(8, 8, COUNT)  # the 8 PEs of a group are consecutive
expected = np.broadcast_to(groups.sum(axis=1, keepdims=True), groups.shape).reshape(x.shape)
wrong = np.count_nonzero(y != expected)
print(f"allreduce (sum) along x of 8x8 PEs: {wrong} of {y.size} elements wrong")
sys.exit(1 if wrong else 0)
