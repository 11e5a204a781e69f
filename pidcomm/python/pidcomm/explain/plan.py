"""Descriptions of plans in words, with one line per loop."""

from __future__ import annotations

from typing import Any

from pidcomm._core import CHIPS_PER_RANK
from pidcomm.sizes import format_size

__all__ = ["stages", "summary"]

_SPACES = {
    "mram": "MRAM",
    "host": "the host rows",
}
_STEPS = {1: "PE-assisted reordering", 2: "in-register modulation", 4: "cross-domain modulation"}


def _step(egs: int, size_bytes: int) -> str:
    parts = [f"{egs} entangled group{'s' if abs(egs) > 1 else ''}"] if egs else []
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
    where = _SPACES[side["space"]]
    nest = [
        f"{loop['count']} ({_step(loop['egs'], loop['bytes'])} apart)" for loop in side["streams"]
    ]
    if "pe_rows" in side:
        rows = side["pe_rows"]
        member, group = (_step(0, rows[name]) for name in ("member_bytes", "group_bytes"))
        nest.append(f"rows of {rows['lanes']} lanes (members {member} apart, groups {group} apart)")
    streams = " x ".join(nest) or "1"
    eg = f" of entangled group {side['eg']}" if "eg" in side else ""
    return (
        f"  {name:9} streams of an item: {streams}, in {where} from byte {side['offset_bytes']}{eg}"
    )


def _sweep(sweep: dict[str, Any]) -> list[str]:
    spaces = {sweep["in"]["space"], sweep["out"]["space"]}
    order = (
        "; lines are in host order between load and store"
        if sweep["host_order"] and "host" not in spaces
        else ""
    )
    lines = (
        [f"round {sweep['round']}: lane l receives from lane {sweep['lane_map']}[l]"]
        if "round" in sweep
        else []
    )
    pes, lanes = sweep["section_pes"], f"k = {sweep['k']}, lane mask {sweep['lane_mask']:03b}"
    lanes = lanes if pes == CHIPS_PER_RANK else f"sections of {pes} PEs"
    lines += [f"pass {sweep['pass']}: {sweep['does']} ({lanes}){order}"]
    for kind in ("outer", "ordered", "lockstep"):
        lines += [_loop(kind, loop) for loop in sweep[kind]]
    lines += [
        _side("in", sweep["in"]),
        _side("out", sweep["out"]),
        f"  words     every stream is {sweep['words']} words of 8 bytes per lane",
    ]
    if sweep["exchange"]:
        lines.append("in place: items (a, b) and (b, a) are exchanged as one")
    if sweep["ordered_downwards"]:
        lines.append("in place: the item at the start of the window is stored last")
    for number, step in enumerate(sweep.get("steps", ())):
        lines.append(
            f"  step {number}: entangled group {step['in_eg']} byte {step['in_offset']} "
            f"-> entangled group {step['out_eg']} byte {step['out_offset']}"
        )
    return lines


def _reorder(when: str, reorder: dict[str, Any]) -> str:
    sign = "c - j" if reorder["backwards"] else "c + j"
    moved = reorder["parts"] * reorder["ways"] * reorder["block_bytes"]
    return (
        f"PEs, {when} the host's work: each moves {format_size(moved)}; in each of"
        f" {reorder['parts']} parts, block j of {format_size(reorder['block_bytes'])} at MRAM byte"
        f" {reorder['to']} is block ({sign}) mod {reorder['ways']} from byte {reorder['from']},"
        " where c counts the PEs of a group within their entangled group"
    )


def _ring(steps: dict[str, Any]) -> list[str]:
    lanes = 1 << int(steps["lane_mask"]).bit_count()
    lines = [
        f"ring of {loop['count']} entangled groups, {loop['egs']} apart: {2 * (loop['count'] - 1)}"
        f" rounds; in each, every entangled group sends one of {loop['count']} chunks to the next,"
        " which combines it in the first half of the rounds and keeps it in the second"
        for loop in steps["members"]
    ]
    if lanes == 1:
        return lines
    slot = format_size(steps["slot_bytes"])
    return [
        (
            f"ring of {lanes} lanes: {lanes - 1} rounds; in each, a slot of {slot} is combined into"
            " the next lane's slot"
        ),
        *lines,
        f"ring of {lanes} lanes: {lanes} rounds that copy the slots of the result to all lanes",
    ]


def _fold(fold: dict[str, Any]) -> list[str]:
    return [
        f"fold: {fold['sets']} sets of entangled groups that share groups, each in"
        f" {fold['chunks']} chunks of {fold['chunk_words']} words; for each chunk, a thread loads"
        " the lines of the set into rows, combines the rows in member order, and stores the result"
    ]


def _messages(messages: dict[str, Any]) -> list[str]:
    kept = f", and {messages['lines_kept']} loads for bytes that stay" * bool(
        messages["lines_kept"]
    )
    lines = [
        f"messages: {messages['count']} messages of {format_size(messages['bytes'])} in all;"
        f" {messages['lines_loaded']} loads and {messages['lines_stored']} stores of lines"
        f"{kept}{', in place' * messages['in_place']}"
    ]
    for target in messages.get("targets", ()):
        lines.append(
            f"  entangled group {target['eg']}: {target['runs']} runs of {target['words']} words"
            f" from word {target['word']} on, from {target['streams']} streams"
        )
    return lines


def _tree(steps: dict[str, Any]) -> list[str]:
    lane_bits = [bit for bit in range(3) if steps["lane_mask"] >> bit & 1]
    lines = [f"tree over lane bit {bit}: a round up and a round down" for bit in lane_bits]
    for loop in steps["members"]:
        rounds = (loop["count"] - 1).bit_length()
        lines.append(
            f"tree of {loop['count']} entangled groups, {loop['egs']} apart: {rounds} rounds up,"
            f" {rounds} down"
        )
    return lines


def _member_steps(plan: dict[str, Any]) -> list[str]:
    steps = plan["member_steps"]
    copies = ["the source is copied to the destination"] if steps["copies_first"] else []
    kinds = {"ring": _ring, "tree": _tree}
    return [
        f"{steps['rounds']} rounds of steps from member to member",
        *copies,
        *kinds[steps["topology"]](steps),
    ]


def summary(plan: dict[str, Any]) -> list[str]:
    """Return the lines about the collective of a plan, and about the bytes that it moves."""
    op = f" {plan['op']}" if "op" in plan else ""
    if "store" in plan:
        op += ", whose results an operator changes,"
    lines = [
        (
            f"{plan['collective']}{op} of {plan['dtype']}, technique {plan['technique']},"
            f" {plan['shape']} mask {plan['mask']}: {plan['groups']} groups of"
            f" {plan['group_pes']} PEs"
        ),
        (
            f"sizes: {format_size(plan['bytes_per_pe'])} per PE, blocks of"
            f" {format_size(plan['block_bytes'])}; {format_size(plan['mram_bytes_read'])} read and"
            f" {format_size(plan['mram_bytes_written'])} written at the PEs,"
            f" {format_size(plan['host_bytes'])} at the host"
        ),
    ]
    if "reduces_in" in plan:
        lines.append(f"arithmetic in {plan['reduces_in'].replace('_', ' ').replace('pim', 'PIM')}")
    if "steps" in plan:
        steps = ", ".join(name for bit, name in _STEPS.items() if plan["steps"] & bit)
        lines.append(
            f"steps of the PID-Comm paper: {steps}; {format_size(plan['scratch_bytes'])} of scratch"
            " MRAM"
        )
    return lines


def stages(plan: dict[str, Any]) -> list[list[str]]:
    """Return the stages of a plan in order. Each stage is a list of lines."""
    all_stages = [[_reorder("before", plan["before"])]] if "before" in plan else []
    all_stages += [_member_steps(plan)] if "member_steps" in plan else []
    all_stages += [_sweep(sweep) for sweep in plan.get("sweeps", ())]
    all_stages += [_fold(plan["fold"])] if "fold" in plan else []
    all_stages += [_messages(plan["messages"])] if "messages" in plan else []
    if "sdk" in plan:
        staged = (
            f"{format_size(plan['sdk']['bytes_staged'])} of rows in host memory, and host work on"
            " these rows"
        )
        rows = staged if plan["sdk"]["has_host_work"] else "the host rows"
        all_stages.append([f"the SDK's transfers between the PEs and {rows}"])
    all_stages += [[_reorder("after", plan["after"])]] if "after" in plan else []
    return all_stages


def explain(plan: dict[str, Any]) -> list[str]:
    """Return the lines that describe a plan."""
    return [*summary(plan), *(line for stage in stages(plan) for line in stage)]
