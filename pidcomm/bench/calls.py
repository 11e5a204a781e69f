"""Time a small allreduce (one rank, 64 bytes per PE) with byte offsets, with buffers and prepared,
in turns; print the median microseconds of a call.

python bench/calls.py
"""

from statistics import median
from time import perf_counter

import numpy as np

import pidcomm

ROUNDS, CALLS, COUNT = 101, 200, 16

with pidcomm.allocate(pes=64) as pes:
    cube = pes.hypercube(8, 8)
    x = np.arange(64 * COUNT, dtype=np.float32).reshape(64, COUNT)
    source, targets = cube.array(x), [cube.empty(COUNT, "float32") for _ in range(2)]
    cube.write(x)
    prepared = cube.prepare("allreduce", source, "10", op="sum", out=targets[1])

    def with_offsets() -> None:
        cube.allreduce("10", bytes=4 * COUNT, src=0, dst=4 * COUNT, dtype=np.float32, op="sum")

    def with_buffers() -> None:
        cube.allreduce(source, "10", op="sum", out=targets[0])

    ways = {"offsets": with_offsets, "buffers": with_buffers, "prepared": prepared.run}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, call in ways.items():
            begin = perf_counter()
            for _ in range(CALLS):
                call()
            times[name].append((perf_counter() - begin) / CALLS * 1e6)

    sums = np.broadcast_to(x.reshape(8, 8, COUNT).sum(1, keepdims=True), (8, 8, COUNT))
    results = [target.get() for target in targets]
    results.append(cube.read(COUNT, np.float32, offset=4 * COUNT))
    if not all(np.array_equal(result.reshape(sums.shape), sums) for result in results):
        raise SystemExit("wrong results")

print(", ".join(f"{name} {median(taken):.2f}" for name, taken in times.items()), "us per call")
