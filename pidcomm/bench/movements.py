"""Time movements beside the streaming limit of the bytes that they must move, and alltoallv beside
alltoall of as many bytes; print rows with the median milliseconds of the Python calls and median
ratios. The share of the limit leaves out the time in which Python makes the messages.

python bench/movements.py > bench/times/movements.jsonl
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from rows import print_row

import pidcomm

PAIRS, ROUNDS = 5, 3


def seconds_of(move: Callable[..., object], *arguments: object, **named: object) -> float:
    """Return the time of a call of the API."""
    begin = perf_counter()
    move(*arguments, **named)
    return perf_counter() - begin


def print_shares(
    cube: pidcomm.Hypercube,
    name: str,
    moved: int,
    move: Callable[..., object],
    *arguments: object,
    **named: object,
) -> None:
    """Print a movement's time and its share of the streaming limit of `moved` bytes per PE, with
    the copy order of the fastest limit. A share compares the shortest of ROUNDS times of each.
    """
    move(*arguments, **named)  # makes the plan

    def limit(order: Any) -> float:
        return cube.stream_limit(moved, moved, src=0, dst=moved, copy_order=order)[0]

    fastest = min(pidcomm.COPY_ORDERS, key=lambda order: min(limit(order) for _ in range(ROUNDS)))
    seconds, shares = [], []
    for _ in range(PAIRS):
        limits, passes = [], []
        for _ in range(ROUNDS):
            limits.append(limit(fastest))
            seconds.append(seconds_of(move, *arguments, **named))
            assert cube.last_trace is not None
            passes.append(cube.last_trace.seconds_total)
        shares.append(min(limits) / min(passes))
    print_row(name=name, ms=[1e3 * t for t in seconds], limit_pct=[100 * s for s in shares])


def check(name: str, got: object, want: object) -> None:
    """End the program if a result is wrong."""
    if not np.array_equal(np.asarray(got), np.asarray(want)):
        raise SystemExit(f"{name}: the result is wrong")


def time_shifts() -> None:
    """Shift 1 MiB per PE on 32x32."""
    count = (1 << 20) // 4
    with pidcomm.allocate(pes=1024) as pes:
        cube = pes.hypercube(32, 32)
        cube.write(np.ones((1024, count), np.int64))  # the windows of the limit
        out = cube.empty(count, np.int32)
        rows = np.arange(1024 * count, dtype=np.int32).reshape(1024, count)
        x, out[:] = cube.array(rows), 0
        for axis, by in (("x", 1), ("x", 8), ("y", 1), ("y", 2)):
            name = f"shift by {by} along {axis}"
            print_shares(cube, name, 4 * count, cube.shift, x, axis, by, out=out)
            grid = np.arange(1024).reshape(32, 32)
            want = np.roll(grid, by, axis=1 if axis == "x" else 0).ravel()
            got = out.get()
            for pe in range(1024):
                check(name, got[pe], rows[want[pe]])


def time_halos() -> None:
    """Exchange planes on 8x8x16, in both directions, with neighbours at the ends of the grid."""
    with pidcomm.allocate(pes=1024) as pes:
        cube = pes.hypercube(8, 8, 16)
        cube.write(np.ones((1024, 1 << 14), np.int64))  # the windows of the limit
        for shape, axis, dimension in (
            ((34, 32, 32), "z", 0),
            ((34, 34, 34), "z", 0),
            ((34, 34, 34), "y", 1),
            ((34, 34, 34), "x", 2),
        ):
            rows = np.arange(1024 * int(np.prod(shape))).reshape(1024, *shape)
            x = cube.array(rows)
            moved = 2 * x.size_bytes // shape[dimension]
            name = f"halo along {axis} of {'x'.join(map(str, shape))} int64"
            print_shares(cube, name, moved, cube.halo, x, {axis: dimension}, cyclic=True)
            grid = np.arange(1024).reshape(16, 8, 8)
            from_left = np.roll(grid, 1, axis=dimension).ravel()
            want = rows[from_left].take(-2, axis=1 + dimension)
            check(name, x.get().take(0, axis=1 + dimension), want)


def time_uneven() -> None:
    """Compare alltoallv of random counts with alltoall of as many bytes on 32x32."""
    choices = np.random.default_rng(1)
    with pidcomm.allocate(pes=1024) as pes:
        cube = pes.hypercube(32, 32)
        for block_bytes in (1 << 12, 1 << 15):
            count = block_bytes // 8
            most = 32 * count * 2
            x, out = cube.empty(most, np.int64), cube.empty(most, np.int64)
            a, b = cube.empty(32 * count, np.int64), cube.empty(32 * count, np.int64)
            x[:] = np.arange(most)
            out[:], a[:], b[:] = 0, 1, 0
            for axis in "xy":
                new, again, even = [], [], []
                for _ in range(PAIRS):
                    counts = count + choices.integers(-count // 2, count // 2 + 1, (32, 32))
                    new.append(seconds_of(cube.alltoallv, x, axis, counts, out=out))
                    again.append(seconds_of(cube.alltoallv, x, axis, counts, out=out))
                    even.append(seconds_of(cube.alltoall, a, axis, out=b))
                first = int(pidcomm.displacements(counts.T, np.int64)[0, 31])
                want = pidcomm.displacements(counts, np.int64)[31, 0] + np.arange(8)
                check("alltoallv", out[first : first + 8].get()[0], want)  # member 31 to member 0
                ratios = ([u / e for u, e in zip(t, even, strict=True)] for t in (new, again))
                print_row(
                    name=f"alltoallv along {axis}, blocks of {block_bytes} bytes in the mean",
                    ms=[1e3 * t for t in again],
                    **dict(zip(("new_counts_over_alltoall", "over_alltoall"), ratios, strict=True)),
                )


time_shifts()
time_halos()
time_uneven()
