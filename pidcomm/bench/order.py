"""Time `tile` on hypercubes in the order of chips and of DPU_FOREACH, in turns; print rows with
median milliseconds and the median ratio. The same mask selects other chips and banks in the two
orders.

python bench/order.py > bench/times/order.jsonl
"""

from statistics import median
from time import perf_counter

import numpy as np
from rows import print_row

import pidcomm

PAIRS, BYTES = 9, 1 << 18

with pidcomm.allocate(pes=1024) as pes:
    cubes = [pes.hypercube(32, 32), pes.hypercube(32, 32, order="foreach")]
    rows = np.random.default_rng(1).integers(0, 1 << 32, (1024, BYTES // 4), np.uint32)
    for name in ("alltoall", "allgather", "reduce_scatter", "allreduce"):
        for mask in ("10", "01", "11"):
            seconds: list[list[float]] = [[], []]
            results = []
            for cube in cubes:
                cube.write(rows)
                getattr(cube, name)(mask, bytes=BYTES, src=0, dst=1 << 20, dtype="uint32")
                results.append(cube.read(64, np.uint32, 1 << 20))
            if not np.array_equal(*results):
                raise SystemExit(f"{name} {mask}: the results differ")
            for _ in range(PAIRS):
                for cube, taken in zip(cubes, seconds, strict=True):
                    begin = perf_counter()
                    getattr(cube, name)(mask, bytes=BYTES, src=0, dst=1 << 20, dtype="uint32")
                    taken.append(perf_counter() - begin)
            chips, foreach = (1e3 * median(taken) for taken in seconds)
            ratio = median(b / a for a, b in zip(*seconds, strict=True))
            print_row(name=name, mask=mask, chips_ms=chips, foreach_ms=foreach, ratio=ratio)
