"""Time `tile` on hypercubes in the order of chips and of DPU_FOREACH, in turns; print rows with
median times in ms and the median ratio. The same mask selects other chips and banks in the two
orders.

python bench/order.py > bench/times/order.jsonl
"""

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
            for number in range(PAIRS):
                for index in (0, 1) if number % 2 == 0 else (1, 0):
                    begin = perf_counter()
                    getattr(cubes[index], name)(
                        mask, bytes=BYTES, src=0, dst=1 << 20, dtype="uint32"
                    )
                    seconds[index].append(1e3 * (perf_counter() - begin))
            ratio = [b / a for a, b in zip(*seconds, strict=True)]
            print_row(name=name, mask=mask, chips_ms=seconds[0], foreach_ms=seconds[1], ratio=ratio)
