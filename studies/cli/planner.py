"""Plans and prices on other PIM machines, in words and as JSON. All times are modelled."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pidcomm import ArgumentError
from pidcomm.bench.oracle import Problem
from pidcomm.model import machine_names
from pidcomm.model.prediction import SOURCE
from pidcomm.sizes import format_about, format_duration, format_gain, format_shape, format_size
from pidcomm.tables import CollectiveName, OpName
from pidcomm_studies.machines import Plan, Price, load_pim_machine, plan, price, ways
from pidcomm_studies.machines.plans import HOST
from pidcomm_studies.machines.pricing import work


def plans_of(
    machine: str,
    collective: CollectiveName,
    shape: tuple[int, ...],
    mask: str,
    *,
    bytes: int,
    dtype: str,
    op: OpName,
) -> list[Plan]:
    """Return the plans of a collective, one for each of `ways`, which begin with the host alone."""
    on = load_pim_machine(machine)
    return [
        plan(collective, shape, mask, bytes=bytes, machine=on, dtype=dtype, op=op, way=way)
        for way in ways(on)
    ]


def explain_plan(
    machine: str,
    collective: CollectiveName,
    shape: tuple[int, ...],
    mask: str,
    *,
    bytes: int,
    dtype: str,
    op: OpName,
) -> tuple[list[str], dict[str, Any]]:
    """Return the plan of a collective on another PIM machine in lines of text, and as JSON."""
    if machine in machine_names():
        raise ArgumentError(
            f"plans do not depend on the constants of {machine}: leave out --machine"
        )
    plans = plans_of(machine, collective, shape, mask, bytes=bytes, dtype=dtype, op=op)
    on = plans[0].machine
    chosen, prices = plans[-1], [price(each) for each in plans]
    lines = [title(chosen.problem, on.name), *_passes(chosen)]
    seconds, total = format_duration(prices[-1].seconds), format_about(prices[-1].bus_bytes)
    lines.append(f"bytes on the buses: {total}; {SOURCE} time: {seconds}")
    if len(plans) > 1:
        lines.append(_beside(prices[-1], prices[0]))
    rows = [json_row(each, its_price) for each, its_price in zip(plans, prices, strict=True)]
    return lines, {**rows[-1], "host_alone": rows[0]}


def title(problem: Problem, machine: str) -> str:
    """Return a line about a problem."""
    op = f" {problem.op}" if problem.row.takes_op else ""
    return (
        f"{problem.collective}{op} of {problem.dtype} on {machine}: {problem.pes} PEs as"
        f" {format_shape(problem.shape)}, mask {problem.mask}, {format_size(problem.bytes)} per PE"
    )


def json_row(of: Plan, its_price: Price) -> dict[str, Any]:
    """Return a plan and its price as JSON."""
    problem = of.problem
    return {
        "collective": problem.collective,
        "dtype": problem.dtype,
        "op": problem.op if problem.row.takes_op else None,
        "shape": format_shape(problem.shape),
        "mask": problem.mask,
        "bytes_per_pe": problem.bytes,
        "machine": of.machine.name,
        "technique": its_price.way,
        "source": its_price.source,
        "seconds": its_price.seconds,
        "host_core_seconds": its_price.host_core_seconds,
        "bus_bytes": its_price.bus_bytes,
        "passes": [
            {"by": step.by, "block_bytes": step.block_bytes, **asdict(work(step, of))}
            for step in of.passes
        ],
    }


def _passes(of: Plan) -> list[str]:
    lines = []
    for number, step in enumerate(of.passes, 1):
        done = asdict(work(step, of))
        counts = [
            f"{name} {format_about(done[name])}"
            for name in ("read", "written", "rows", "partial", "combined", "transposed", "shuffled")
            if done[name]
        ]
        lines.append(
            f"  pass {number}, {step.by:6}: {done['items']} item{'s' * (done['items'] != 1)},"
            f" {done['pes']} PE{'s' * (done['pes'] != 1)}:"
            f" {', '.join(counts)}"
        )
    return lines or ["  no pass: no byte moves"]


def _beside(chosen: Price, alone: Price) -> str:
    """Return a line that compares a plan with the plan of the host alone."""
    if chosen.way == HOST:
        return (
            "the host carries out all of it: no pass only copies whole lines or stays in a buffer"
        )
    return (
        f"with the host alone: {format_about(alone.bus_bytes)},"
        f" {format_duration(alone.seconds)}: this plan is"
        f" {format_gain(alone.seconds / chosen.seconds)} as fast, with"
        f" {format_duration(chosen.host_core_seconds)} of host threads instead of"
        f" {format_duration(alone.host_core_seconds)}"
    )
