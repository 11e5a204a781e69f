"""Time reductions with operators beside those of `pidcomm.OPS`, and scans, on 32x32 with 1 MiB per
PE. Check results, and print rows with median shares of the streaming limit of the same bytes, and
ratios to `conventional`.

python bench/operators.py > bench/times/operators.jsonl
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rows import print_row

import pidcomm

ROUNDS = 5
SIZE_BYTES = 1 << 20
CHECKED = 8  # elements of each PE
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


def wanted(name: str, op: object, axis: str, values: Any) -> Any:
    """Return the first elements of the results, shape (1024, 8), for the first elements of x. The
    other elements of x repeat 0 to 7.
    """
    grid = values.reshape(32, 32, CHECKED)  # y, x
    members = {"x": grid, "y": grid.swapaxes(0, 1), "xy": grid.reshape(1, 1024, CHECKED)}[axis]
    count = members.shape[1]
    if name == "scan":
        result = members.cumsum(axis=1)
    elif op == "argmax":
        result = np.broadcast_to(members.max(axis=1, keepdims=True), members.shape)
    else:
        result = np.repeat(members.sum(axis=1, keepdims=True), count, axis=1)
        if op == "avg":
            result = result / count
    if name == "reduce_scatter":
        result[:, 1:] = count * np.arange(CHECKED)  # blocks behind the first elements
    result = result.swapaxes(0, 1) if axis == "y" else result
    return result.reshape(1024, CHECKED)


def check(name: str, op: object, axis: str, values: Any, out: pidcomm.Buffer) -> None:
    """End the program if a result is wrong."""
    got, want = out[:CHECKED].get(), wanted(name, op, axis, values)
    if op == "argmax":
        got = got["value"]
    if got.dtype.kind == "i":
        want = np.rint(want)  # ties to even
    if not np.array_equal(got, want.astype(got.dtype)):
        raise SystemExit(f"{name} {op} along {axis}: the result is wrong")


def main() -> None:
    """Print a row for each case and mask."""
    values = np.add.outer(3.0 * np.arange(1024), np.arange(CHECKED)) % 8
    with pidcomm.allocate(pes=1024) as pes:
        cube = pes.hypercube(32, 32)
        cube.write(np.ones((1024, 2 * SIZE_BYTES // 8), np.int64))  # the windows of the limit
        for name, dtype_name, op_name, op in CASES:
            dtype = PLACE if dtype_name == "place" else np.dtype(dtype_name)
            x = cube.empty(SIZE_BYTES // dtype.itemsize, dtype)
            rows = np.zeros((1024, CHECKED), dtype)
            rest = np.zeros(x.shape, dtype)
            if dtype is PLACE:
                rows["value"], rest["value"] = values, np.arange(rest.size) % 8
            else:
                rows[:], rest[:] = values, np.arange(rest.size) % 8
            x[:] = rest
            x[:CHECKED] = rows
            out_bytes = SIZE_BYTES // 32 if name == "reduce_scatter" else SIZE_BYTES
            for axis in ("x", "y", "xy"):
                if name == "reduce_scatter" and axis == "xy":
                    continue
                out = cube.empty(out_bytes // dtype.itemsize, dtype)
                out[:] = np.zeros(out.shape, dtype)
                shares, ratios, taken = [], [], []
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
                        if round_number == 0:  # makes the plans
                            check(name, op, axis, values, out)
                    if round_number:
                        taken.append(seconds["tile"])
                        shares.append(limit / seconds["tile"])
                        ratios.append(seconds["conventional"] / seconds["tile"])
                print_row(
                    name=name,
                    op=op_name,
                    dtype=dtype_name,
                    axis=axis,
                    limit_pct=[100 * share for share in shares],
                    ms=[1e3 * t for t in taken],
                    speed_up=ratios,
                )


main()
