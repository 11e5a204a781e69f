"""Predictions of collectives over links between PEs, for machines that have links. All times are
modelled.

The traffic follows the places of PEs: a chip has 8 banks, a rank 8 chips, and a PE in a bank
reaches the others by the links of its bank, of its chip and of its rank. A reduction goes up level
by level: the banks of a chip reduce and scatter among themselves, then the chips of a rank, then
the ranks; an allgather goes down the same way. In alltoall all levels work at once. The busiest
link of each level decides. One launch starts the links. The host still moves every byte that begins
or ends in host memory: a reduction to the host ends with a gather of blocks, a broadcast begins
with a scatter of blocks, and scatter and gather use no links.

Source of the question: Jonatan et al. (SIGMETRICS 2024), section 6, which publishes no equations;
the traffic is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from pidcomm import PES_PER_RANK, ArgumentError
from pidcomm.arguments import Array, as_flag, as_integer, as_shape
from pidcomm.model import Link, Machine, load_machine, predict
from pidcomm.model.prediction import SOURCE
from pidcomm.notebook import Shown
from pidcomm.sizes import format_duration, format_shape
from pidcomm.tables import CHIPS_PER_RANK, WORD_BYTES

if TYPE_CHECKING:
    from pidcomm.tables import CollectiveName, OpName

BANKS_PER_CHIP = PES_PER_RANK // CHIPS_PER_RANK
RANKS_PER_DIMM = 2
LINKS = "links"
"""The name of this way of the bytes, beside the names of techniques."""
ENDS: dict[str, CollectiveName] = {
    "reduce": "gather",
    "broadcast": "scatter",
    "scatter": "scatter",
    "gather": "gather",
}
"""The collectives between host and PEs, and the transfer of the host that remains with links."""
_REDUCING = ("reduce_scatter", "allreduce", "reduce")
_REPLICATING = ("allgather", "allreduce", "broadcast")


@dataclass(frozen=True)
class LinksPrediction(Shown):
    """The predicted time of a collective over links. All times are modelled.

    host_seconds: the launch, and the transfer between host and PEs that remains. link_seconds: by
    level, the time of the stages that its links limit. seconds: their sum. sent_bytes: by level,
    the most bytes that one link carries.
    """

    machine: str
    host_seconds: float
    link_seconds: dict[str, float]
    sent_bytes: dict[str, float]
    source: str = SOURCE

    @property
    def seconds(self) -> float:
        """Return the time of the host and of all links."""
        return self.host_seconds + sum(self.link_seconds.values())

    def __repr__(self) -> str:
        """Report the machine, the time and the part of the links."""
        links = format_duration(sum(self.link_seconds.values()))
        return (
            f"<LinksPrediction {self.machine}: {format_duration(self.seconds)} {self.source},"
            f" {links} of it over links>"
        )


@dataclass(frozen=True)
class _Stage:
    """A stage of a collective. loads: by level that carries bytes, the bytes of each PE that leave
    its unit. steps: messages in sequence.

    block: in alltoall, the bytes of a PE for each other member; 0 if units send to the next unit
    only.
    """

    level: str
    loads: dict[str, Array]
    steps: int
    block: float = 0.0


@dataclass(frozen=True)
class Spread:
    """How groups lie on the machine. Arrays have an element per PE.

    groups: number of the PE's group. units: by level, the number of the PE's bank, chip, rank or
    DIMM, over the whole machine. inside: by level, members of the PE's group in the unit. peers: by
    level, units of its parent with members. members: number in a group.
    """

    groups: Array
    units: dict[str, Array]
    inside: dict[str, Array]
    peers: dict[str, Array]
    members: int

    def busiest(self, link: Link, level: str, stage: _Stage) -> float:
        """Return the bytes of the busiest link of a level in a stage.

        The units of a parent share a bus.
        """
        if link.topology == "ring":
            return self._busiest_of_ring(level, stage)
        keys = self.parents(level) if link.topology == "bus" else self.units[level]
        return float(_sum_by(stage.loads[level], keys).max())

    def parents(self, level: str) -> Array:
        """Return for each PE the unit whose parts share the ring or bus of a level: a unit of the
        next level, or the machine.
        """
        levels = list(self.units)
        above = levels[levels.index(level) + 1 :]
        return self.units[above[0]] if above else np.zeros(len(self.groups), np.int64)

    def _busiest_of_ring(self, level: str, stage: _Stage) -> float:
        """Count the bytes of each link of each ring. Bytes take the shorter way; for half of a ring
        they go forward.

        A member sends blocks to all members in its ring, or its bytes to the next unit with members
        of its group. Bytes for other rings use one link.
        """
        whole = {
            "bank": BANKS_PER_CHIP,
            "chip": CHIPS_PER_RANK,
            "rank": RANKS_PER_DIMM,
        }
        is_top = list(self.units)[-1] == level
        count = int(self.units[level].max()) + 1 if is_top else whole[level]
        pe = np.arange(len(self.groups))
        place = {"bank": pe % PES_PER_RANK // CHIPS_PER_RANK, "chip": pe % CHIPS_PER_RANK}.get(
            level, self.units[level] % count
        )
        _, ring = np.unique(self.parents(level), return_inverse=True)
        _, own = np.unique(self.groups * len(pe) + ring, return_inverse=True)
        members = np.zeros((own.max() + 1, count))
        np.add.at(members, (own, place), 1)
        carried = np.zeros((2, ring.max() + 1, count))
        rest = stage.loads[level].astype(float)
        for distance in range(1, count):
            there = members[own, (place + distance) % count]
            is_next = (there > 0) & (stage.level == level)
            sent = stage.block * there if stage.block else rest * is_next
            rest = rest - sent
            is_back = 2 * distance > count
            for hop in range(count - distance if is_back else distance):
                np.add.at(
                    carried[int(is_back)],
                    (ring, (place - hop if is_back else place + hop) % count),
                    sent,
                )
        np.add.at(carried[0], (ring, place), rest)
        return float(carried.max())


def spread_of(shape: Sequence[int], mask: str, *, has_dimms: bool = False) -> Spread:
    """Return how the groups of a mask lie on the machine. has_dimms: whether DIMMs are a level
    above ranks.
    """
    lengths = as_shape(shape)
    pe = np.arange(int(np.prod(lengths)))
    group, members, step, groups = np.zeros(len(pe), np.int64), 1, 1, 1
    for length, bit in zip(lengths, mask, strict=True):
        coordinate = pe // step % length
        step *= length
        if bit == "1":
            members *= length
        else:
            group += groups * coordinate
            groups *= length
    rank = pe // PES_PER_RANK
    units = {"bank": pe, "chip": rank * CHIPS_PER_RANK + pe % CHIPS_PER_RANK, "rank": rank}
    if has_dimms:
        units["dimm"] = rank // RANKS_PER_DIMM
    inside = {level: _count_by(group * len(pe) + unit) for level, unit in units.items()}
    spread = Spread(group, units, inside, {}, members)
    # A sum of 1 / (members in a unit) over the members counts units.
    peers = {
        level: np.rint(_sum_by(1 / inside[level], group * len(pe) + spread.parents(level))).astype(
            np.int64
        )
        for level in units
    }
    return replace(spread, peers=peers)


def _sum_by(values: Array, keys: Array) -> Array:
    """Return for each element the sum of the values with the same key."""
    _, place = np.unique(keys, return_inverse=True)
    sums: Array = np.bincount(place, values)[place]
    return sums


def _count_by(keys: Array) -> Array:
    """Return for each element the number of elements with the same key."""
    return _sum_by(np.ones(len(keys)), keys)


def predict_links(
    collective: CollectiveName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    dtype: DTypeLike = np.int32,
    op: OpName | None = "sum",
    machine: str | Machine,
    is_fed_by_pes: bool = False,
) -> LinksPrediction:
    """Return the predicted time of a collective whose members exchange bytes over links.

    The arguments are as for `pidcomm.model.predict`; the host's part has the technique `auto`.
    is_fed_by_pes: whether PEs read and write the bytes by DMA, and reduce them by instructions; if
    not, the links do all this at their rate, as in the paper. An addition is assumed to cost the
    instructions of moving a word (``pe.word_instructions``): both read and write each word in WRAM,
    and no machine file has a cost of additions.

    Raises ArgumentError as `predict`, and if the machine has no links at a level that groups need.
    """
    on = load_machine(machine)
    if not on.links:
        raise ArgumentError(
            f"machine {on.name} has no links between PEs; add the sections [links.LEVEL] to its"
            " file"
        )
    # Checks the request.
    predict(collective, shape, mask, bytes=bytes, dtype=dtype, op=op, machine=on, technique="tile")
    size, is_fed = as_integer("bytes", bytes), as_flag("is_fed_by_pes", is_fed_by_pes)
    spread = spread_of(shape, mask, has_dimms="dimm" in on.links)
    host = 0.0
    if end := ENDS.get(collective):
        # A reduction to the host ends with a gather of blocks of whole words; a broadcast begins
        # with their scatter.
        block = (
            size if collective == end else -(-size // (spread.members * WORD_BYTES)) * WORD_BYTES
        )
        host = predict(
            end, shape, mask, bytes=block, dtype=np.int64, machine=on, technique="auto"
        ).seconds
    seconds, sent = dict.fromkeys(on.links, 0.0), dict.fromkeys(on.links, 0.0)
    stages = _alltoall(spread, size) if collective == "alltoall" else _by_levels(spread, size)
    rounds = [True] * (collective in _REDUCING) + [False] * (
        collective in (*_REPLICATING, "alltoall")
    )
    needed = {level for stage in stages for level in stage.loads}
    if rounds and (missing := [level for level in spread.units if level in needed - set(on.links)]):
        raise ArgumentError(
            f"machine {on.name} has no links between {missing[0]}s, over which groups of mask"
            f" {mask} of {format_shape(as_shape(shape))} exchange bytes"
        )
    if stages and rounds:
        host += 1e-6 * on.launch_us(int(np.prod(as_shape(shape))))
    for is_reduced in rounds:
        for stage in stages:
            busy = {level: spread.busiest(on.links[level], level, stage) for level in stage.loads}
            for level, most in busy.items():
                sent[level] += most
            times = {level: 1e-9 * most / on.links[level].gb_s for level, most in busy.items()}
            if is_fed:
                most = float(stage.loads["bank"].max())
                times["bank"] = max(times["bank"], _pe_seconds(on, most, is_reduced))
            slowest = max(times, key=lambda level: times[level])
            seconds[slowest] += (
                times[slowest] + 1e-9 * stage.steps * on.links[stage.level].latency_ns.value
            )
    return LinksPrediction(on.name, host, seconds, sent)


def _alltoall(spread: Spread, size: int) -> list[_Stage]:
    """Return the one stage in which every member sends a block to every other member."""
    block, members = size / spread.members, spread.members
    loads = {
        level: block * (members - inside)
        for level, inside in spread.inside.items()
        if (inside < members).any()
    }
    return [_Stage(list(loads)[-1], loads, members - 1, block)] if loads else []


def _by_levels(spread: Spread, size: int) -> list[_Stage]:
    """Return the stages of a reduction to blocks, or, in reverse order, of an allgather.

    The members in a unit share one vector, which its links carry to the other units.
    """
    levels, stages = list(spread.units), []
    for place, level in enumerate(levels):
        peers = spread.peers[level]
        load = size * (peers - 1) / peers / spread.inside[level]
        if peers.max() > 1:
            loads = dict.fromkeys(levels[: place + 1], load)
            stages.append(_Stage(level, loads, int(peers.max()) - 1))
    return stages


def _pe_seconds(machine: Machine, sent_bytes: float, is_reduced: bool) -> float:
    """Return the time of a PE that sends and receives `sent_bytes` by DMA, and reduces what it
    receives.
    """
    dma = 2 * sent_bytes * machine["pe.dma_cycles_per_byte"]
    adds = sent_bytes / WORD_BYTES * machine["pe.word_instructions"] if is_reduced else 0.0
    return 1e-6 * max(dma, adds) / machine["pe.clock_mhz"]
