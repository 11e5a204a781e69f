"""Descriptions of collectives in words: the PEs, their groups and the plan."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from typing import Any

from pidcomm._core import BANKS_PER_CHIP, CHIPS_PER_RANK
from pidcomm.bench import platform
from pidcomm.explain import plan as explain
from pidcomm.explain.places import Places, runs
from pidcomm.sizes import format_shape

__all__ = ["count", "used"]

MAX_GRIDS = 2  # number of ranks whose PEs are listed one by one
MAX_GROUPS = 8
MAX_RUNS = 12  # number of runs of PEs that are listed


def explain_places(places: Places, plan: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of an explanation: the collective, the places of its PEs, the groups, the
    plan.
    """
    yield from explain.summary(plan)
    yield ""
    yield from _machine(places)
    yield ""
    yield from _groups(places)
    yield ""
    yield "the plan"
    for number, stage in enumerate(explain.stages(plan), 1):
        yield f"  {number}. {stage[0]}"
        yield from (f"   {line}" for line in stage[1:])


def count(number: int, name: str) -> str:
    """Return a number and its noun, as in "3 PEs"."""
    return f"{number} {name}{'' if number == 1 else 's'}"


def used(places: Places) -> str:
    """Return in words the ranks and channels that the PEs use."""
    machine = platform.emulated()
    if machine is None:
        return f"{count(places.pes, 'PE')} in {count(len(places.pes_of_rank), 'rank')}"
    return (
        f"{count(places.pes, 'PE')} in {len(places.pes_of_rank)} of"
        f" {count(machine.ranks, 'rank')}, {places.channels} of"
        f" {count(machine.channels, 'channel')}"
    )


def _machine(places: Places) -> Iterator[str]:
    yield f"where the {format_shape(places.shape)} PEs are: {used(places)} ({platform.SDK})"
    yield (
        f"  PE {CHIPS_PER_RANK} * e + lane: lane = chip, e (entangled group, EG) counts"
        f" {BANKS_PER_CHIP} banks per rank, then ranks; a cell is PE:group"
    )
    wide = len(str(places.pes - 1)) + len(str(places.groups - 1)) + 1
    for number, (rank, pes) in enumerate(places.pes_of_rank.items()):
        groups = sorted({places.group[pe] for pe in pes})
        yield (
            f"  channel {places.channel(rank)}, rank {rank}: PEs {pes[0]}-{pes[-1]}, "
            f"groups {', '.join(_cut(runs(groups)))}"
        )
        if number >= MAX_GRIDS:
            continue
        yield "    " + " ".join(
            ["       ", *(f"{f'lane {lane}':>{max(wide, 6)}}" for lane in range(CHIPS_PER_RANK))]
        )
        for bank, row in groupby(pes, key=lambda pe: places.location[pe].bank):
            cells = (f"{f'{pe}:{places.group[pe]}':>{max(wide, 6)}}" for pe in row)
            yield "    " + " ".join([f"bank {bank}:", " ", *cells]).rstrip()


def _groups(places: Places) -> Iterator[str]:
    yield (
        f"the groups: mask {places.mask} of {format_shape(places.shape)} makes"
        f" {count(places.groups, 'group')} of {count(places.group_pes, 'PE')}, in the order of"
        " members"
    )
    for number in range(min(places.groups, MAX_GROUPS)):
        egs, lanes = places.spread(number)
        yield (
            f"  group {number}: PEs {', '.join(_cut(runs(places.members[number])))} "
            f"({count(lanes, 'lane')} of {count(egs, 'entangled group')})"
        )
    if places.groups > MAX_GROUPS:
        yield f"  and {places.groups - MAX_GROUPS} more, to group {places.groups - 1}"


def _cut(texts: Iterator[str]) -> list[str]:
    first_texts = list(islice(texts, MAX_RUNS + 1))
    return first_texts if len(first_texts) <= MAX_RUNS else [*first_texts[:MAX_RUNS], "..."]
