"""A plan in words: one line per loop."""

from __future__ import annotations

from typing import Any

from pidcomm.sizes import format_size

_PASSES = {
    "transpose": "load 2^k lines, exchange selected lane bits with line bits in registers, store 2^k lines",
    "spread": "load one line; store each of its 2^k selected lanes, spread over its group's lanes, at every member",
    "fold_blocks": "load 2^k lines of every member, accumulate, transpose in registers, combine, store one line",
    "fold_lanes": "load one line per member, accumulate, combine over the selected lanes, store it at every member",
    "fold_to_host": "load one line per member, accumulate, combine over the selected lanes, store to the host rows",
    "to_host": "load 8 lines, transpose to host order, store 64 bytes to each of 8 host rows",
    "from_host": "load 64 bytes of each of 8 host rows, transpose to PIM order, store 8 lines",
    "replicate": "load the host rows of a line's groups, replicate them over the lanes, store the line at every member",
}


def _step(egs: int, size_bytes: int) -> str:
    parts = [f"{egs} EGs"] if egs else []
    if size_bytes:
        parts.append(format_size(size_bytes))
    return " and ".join(parts) or "nothing"


def _loop(kind: str, loop: dict[str, Any]) -> str:
    return (
        f"  {kind:9} {loop['name']} x{loop['count']}: "
        f"a step moves the input by {_step(loop['in_egs'], loop['in_bytes'])}, "
        f"the output by {_step(loop['out_egs'], loop['out_bytes'])}"
    )


def _side(name: str, side: dict[str, Any]) -> str:
    where = "MRAM" if side["space"] == "mram" else "the host rows"
    streams = " x ".join(f"{loop['count']} ({_step(loop['egs'], loop['bytes'])} apart)" for loop in side["streams"])
    return f"  {name:9} streams of an item: {streams}, in {where} from byte {side['offset_bytes']}"


def _tile(tile: dict[str, Any]) -> list[str]:
    lines = [
        f"pass {tile['pass']}: {_PASSES.get(tile['pass'], '')} (k = {tile['k']}, lane mask {tile['lane_mask']:03b})"
    ]
    for kind in ("outer", "ordered", "lockstep"):
        lines += [_loop(kind, loop) for loop in tile[kind]]
    lines += [
        _side("in", tile["in"]),
        _side("out", tile["out"]),
        f"  words     every stream is {tile['words']} words of 8 bytes per lane",
    ]
    if tile["exchange"]:
        lines.append("in place: items (a, b) and (b, a) are exchanged as one")
    if tile["ordered_downwards"]:
        lines.append("in place: the item at the start of the window is stored last")
    return lines


def explain(plan: dict[str, Any]) -> list[str]:
    """Return the lines that tell what a plan (of `pidcomm.plan`) does."""
    op = f" {plan['op']}" if "op" in plan else ""
    lines = [
        f"{plan['collective']}{op} of {plan['dtype']}, technique {plan['technique']}, "
        f"{plan['shape']} mask {plan['mask']}: {plan['groups']} groups of {plan['group_pes']} PEs",
        f"sizes: {format_size(plan['bytes_per_pe'])} per PE, blocks of {format_size(plan['block_bytes'])}; "
        f"{format_size(plan['mram_bytes_read'])} read and {format_size(plan['mram_bytes_written'])} written "
        f"at the PEs, {format_size(plan['host_bytes'])} at the host",
    ]
    if "reduces_in" in plan:
        lines.append(f"arithmetic in {plan['reduces_in'].replace('_', ' ').replace('pim', 'PIM')}")
    if "tile" in plan:
        lines += _tile(plan["tile"])
        for number, step in enumerate(plan["tile"].get("steps", ())):
            lines.append(
                f"  step {number}: EG {step['in_eg']} byte {step['in_offset']} "
                f"-> EG {step['out_eg']} byte {step['out_offset']}"
            )
    elif "staged" in plan:
        staged = plan["staged"]
        lines.append(
            f"general path: this shape cuts the lanes with a rest; clusters of up to {staged['cluster_egs']} EGs, "
            f"{staged['chunk_words']} words at a time, through a slab of "
            f"{format_size(staged['slab_bytes_per_thread'])} per thread"
        )
    else:
        lines.append("the SDK's transfers to host memory, the rearrangement there, the SDK's transfers back")
    return lines
