"""Time small calls one by one, prepared, and in a batch, on 32x32 with 64 bytes per PE. Print
rows with microseconds per call: quartiles of rounds in which the three take turns. Check the
results.

python bench/prepared.py > bench/times/prepared.jsonl
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from rows import print_row

import pidcomm

ROUNDS = 200
CALLS = 16


def microseconds_of(call: Callable[[], Any], calls: int) -> float:
    """Return the time per call."""
    begin = perf_counter()
    call()
    return 1e6 * (perf_counter() - begin) / calls


def main() -> None:
    """Print a row for each method."""
    with pidcomm.allocate(pes=1024) as pes:
        cube = pes.hypercube(32, 32)
        rows = np.arange(1024 * 16, dtype=np.int32).reshape(32, 32, 16)  # y, x
        x = cube.array(rows)
        outs = [cube.array(np.zeros((1024, 16), np.int32)) for _ in range(CALLS)]
        sums = np.broadcast_to(rows.sum(axis=1, keepdims=True), rows.shape)
        for name, arguments, want in (
            ("allreduce", ("x",), sums),
            ("shift", ("y", 1), np.roll(rows, 1, axis=0)),
        ):
            method = getattr(cube, name)
            with cube.batch() as batch:
                for out in outs:
                    method(x, *arguments, out=out)
            prepared = cube.prepare(name, x, *arguments, out=outs[0])
            ways: dict[str, tuple[Callable[[], Any], int]] = {
                "call": (lambda m=method, a=arguments: m(x, *a, out=outs[0]), 1),
                "prepared": (prepared.run, 1),
                "batch": (batch.run, CALLS),
            }
            times: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(ROUNDS):
                for way, (call, calls) in ways.items():
                    times[way].append(microseconds_of(call, calls))
            if any((out.get().reshape(rows.shape) != want).any() for out in outs):
                raise SystemExit(f"{name}: a result is wrong")
            for way, taken in times.items():
                print_row(name=name, way=way, us=taken)


main()
