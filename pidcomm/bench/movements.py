"""Time movements beside the streaming limit of the bytes that they must move, and alltoallv beside
alltoall; print milliseconds and the median ratio.

python bench/movements.py
"""

from collections.abc import Callable
from statistics import median

import numpy as np

import pidcomm

PAIRS = 5


def print_shares(
    cube: pidcomm.Hypercube, name: str, moved: int, move: Callable[[], object]
) -> None:
    """Print a movement's time and its share of the streaming limit of `moved` bytes per PE."""
    seconds, shares = [], []
    for _ in range(PAIRS):
        limit = min(
            cube.stream_limit(moved, moved, src=0, dst=moved, copy_order=order)[0]
            for order in pidcomm.COPY_ORDERS
        )
        move()
        trace = cube.last_trace
        assert trace is not None
        seconds.append(trace.seconds_total)
        shares.append(limit / trace.seconds_total)
    print(f"{name}: {1e3 * median(seconds):.2f} ms, {100 * median(shares):.0f}% of the limit")


def time_shifts() -> None:
    """Shift 1 MiB per PE on 32x32."""
    size_bytes = 1 << 20
    with pidcomm.allocate(pes=1024) as pes:
        cube = pes.hypercube(32, 32)
        cube.write(np.ones((1024, size_bytes // 4), np.int64))  # the windows of the limit
        x = cube.empty(size_bytes // 4, np.int32)
        out = cube.empty(x.shape, x.dtype)
        x[:], out[:] = 1, 0
        for axis, by in (("x", 1), ("x", 8), ("y", 1), ("y", 2)):
            print_shares(
                cube,
                f"shift by {by} along {axis}",
                size_bytes,
                lambda axis=axis, by=by: cube.shift(x, axis, by, out=out),
            )


def time_halos() -> None:
    """Exchange planes of 8 KiB on 8x8x16, contiguous ones and planes of short runs."""
    plane_bytes = 8192
    with pidcomm.allocate(pes=1024) as pes:
        cube = pes.hypercube(8, 8, 16)
        cube.write(np.ones((1024, 16 * plane_bytes // 8), np.int64))
        for shape, axes in (
            ((34, 32, 32), {"z": 0}),
            ((34, 34, 34), {"z": 0}),
            ((34, 34, 34), {"y": 1}),
            ((34, 34, 34), {"x": 2}),
        ):
            x = cube.empty(shape, np.int64)
            x[:] = 1
            moved = 2 * plane_bytes
            name = f"halo along {', '.join(axes)} of {'x'.join(map(str, shape))} int64"
            print_shares(cube, name, moved, lambda x=x, axes=axes: cube.halo(x, axes))


def time_uneven() -> None:
    """Compare alltoallv of random counts with alltoall of as many bytes on 32x32."""
    choices = np.random.default_rng(1)
    with pidcomm.allocate(pes=1024) as pes:
        cube = pes.hypercube(32, 32)
        for block_bytes in (1 << 12, 1 << 15):
            count = block_bytes // 8
            counts = count + choices.integers(-count // 2, count // 2 + 1, (32, 32))
            ends = [pidcomm.displacements(table, np.int64)[:, -1] for table in (counts, counts.T)]
            x = cube.empty(int(max(map(max, ends))) + 2 * count, np.int64)
            out, a = cube.empty(x.shape, x.dtype), cube.empty(32 * count, np.int64)
            b = cube.empty(a.shape, a.dtype)
            x[:], out[:], a[:], b[:] = 1, 0, 1, 0
            for axis in "xy":
                taken: list[list[float]] = [[], []]
                for _ in range(PAIRS + 1):
                    cube.alltoallv(x, axis, counts, out=out)
                    assert cube.last_trace is not None
                    taken[0].append(cube.last_trace.seconds_total)
                    cube.alltoall(a, axis, out=b)
                    assert cube.last_trace is not None
                    taken[1].append(cube.last_trace.seconds_total)
                uneven, even = (times[1:] for times in taken)
                ratio = median(v / a for v, a in zip(uneven, even, strict=True))
                moved = counts.mean() / count
                print(
                    f"alltoallv along {axis}, blocks of {block_bytes} bytes in the mean:"
                    f" {1e3 * median(uneven):.1f} ms, {ratio / moved:.2f}x alltoall"
                )


time_shifts()
time_halos()
time_uneven()
