"""Time a small allreduce with byte offsets and with buffers, in turns; print the microseconds of a
call and the median difference.

python bench/calls.py
"""

from statistics import median
from time import perf_counter

import numpy as np

import pidcomm

PAIRS, CALLS = 101, 200

with pidcomm.allocate(pes=64) as pes:
    cube = pes.hypercube(8, 8)
    source, target = cube.empty(2, "float32"), cube.empty(2, "float32")

    def with_offsets() -> None:
        cube.allreduce("10", bytes=8, src=0, dst=64, dtype=np.float32, op="sum")

    def with_buffers() -> None:
        cube.allreduce(source, "10", op="sum", out=target)

    x = np.arange(128, dtype=np.float32).reshape(64, 2)
    source[:] = x
    cube.write(x)
    with_buffers()
    with_offsets()
    results = cube.read(2, np.float32, offset=64), target.get(), x.reshape(8, 8, 2).sum(1)
    if not (np.array_equal(*results[:2]) and np.array_equal(results[1][::8], results[2])):
        raise SystemExit("wrong results")

    times: list[list[float]] = [[], []]
    for _ in range(PAIRS):
        for call, taken in zip((with_offsets, with_buffers), times, strict=True):
            begin = perf_counter()
            for _ in range(CALLS):
                call()
            taken.append((perf_counter() - begin) / CALLS * 1e6)

difference = median(b - a for a, b in zip(*times, strict=True))
print(
    f"offsets {median(times[0]):.2f} us, buffers {median(times[1]):.2f} us per call; median"
    f" difference {difference:+.2f} us"
)
