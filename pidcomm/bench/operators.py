"""Time reductions with operators beside those of `pidcomm.OPS`, and scans, on 32x32 with 1 MiB per
PE. Print median shares of the streaming limit of the same bytes, and ratios to `conventional`.

python bench/operators.py
"""

from __future__ import annotations

from statistics import median

import numpy as np

import pidcomm

ROUNDS = 5
SIZE_BYTES = 1 << 20
PLACE = np.dtype([("value", "f4"), ("index", "u4")])
ADD = pidcomm.Operator("static element combine(element a, element b) { return a + b; }", "f4")
CASES: tuple[tuple[str, str, str, pidcomm.Operator | str], ...] = (
    ("allreduce", "f4", "sum", "sum"),
    ("allreduce", "f4", "sum in C", ADD),
    ("allreduce", "f4", "avg", "avg"),
    ("allreduce", "bfloat16", "avg", "avg"),
    ("allreduce", "i4", "avg", "avg"),
    ("allreduce", "place", "argmax", "argmax"),
    ("reduce_scatter", "f4", "sum", "sum"),
    ("reduce_scatter", "f4", "sum in C", ADD),
    ("scan", "f4", "sum", "sum"),
)


def main() -> None:
    """Print a row for each case and mask."""
    with pidcomm.allocate(pes=1024) as pes:
        cube = pes.hypercube(32, 32)
        cube.write(np.ones((1024, 2 * SIZE_BYTES // 8), np.int64))  # the windows of the limit
        for name, dtype_name, op_name, op in CASES:
            dtype = PLACE if dtype_name == "place" else np.dtype(dtype_name)
            x = cube.empty(SIZE_BYTES // dtype.itemsize, dtype)
            x[:] = np.zeros(x.shape, dtype)
            out_bytes = SIZE_BYTES // 32 if name == "reduce_scatter" else SIZE_BYTES
            for axis in ("x", "y", "xy"):
                if name == "reduce_scatter" and axis == "xy":
                    continue
                out = cube.empty(out_bytes // dtype.itemsize, dtype)
                out[:] = np.zeros(out.shape, dtype)
                shares, ratios = [], []
                for round_number in range(ROUNDS + 1):
                    limit = min(
                        cube.stream_limit(
                            SIZE_BYTES, out_bytes, src=0, dst=SIZE_BYTES, copy_order=order
                        )[0]
                        for order in pidcomm.COPY_ORDERS
                    )
                    seconds = {}
                    for technique in ("tile", "conventional"):
                        call = getattr(cube, name)
                        call(x, tuple(axis), op=op, out=out, technique=technique)
                        assert cube.last_trace is not None
                        seconds[technique] = cube.last_trace.seconds_total
                    if round_number:  # the first makes the plans
                        shares.append(limit / seconds["tile"])
                        ratios.append(seconds["conventional"] / seconds["tile"])
                print(
                    f"{name} {op_name} {dtype_name} along {axis}: {100 * median(shares):.0f}% of"
                    f" the limit, {median(ratios):.2f} times as fast as conventional",
                    flush=True,
                )


main()
