"""Where the PEs of a hypercube are, and which group each is in: facts of the library, put side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import pidcomm
from pidcomm.evaluation import platform
from pidcomm.evaluation.platform import BANKS, CHIPS
from pidcomm.sizes import format_shape


class Place(NamedTuple):
    """Where a PE is. rank: its number in the set."""

    rank: int
    bank: int
    lane: int


@dataclass(frozen=True)
class Places:
    """PEs of a hypercube on the emulated machine, of which all PEs are taken to work, and their groups under a mask.

    group, member: of every PE. ranks_per_channel: of the machine.
    """

    shape: tuple[int, ...]
    mask: str
    groups: int
    group_pes: int
    group: Sequence[int]
    member: Sequence[int]
    ranks_per_channel: int

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return len(self.group)

    @property
    def ranks(self) -> int:
        """Number of ranks that have PEs of the hypercube."""
        return self.place(self.pes - 1).rank + 1

    @property
    def channels(self) -> int:
        """Number of channels that have such ranks."""
        return self.channel(self.ranks - 1) + 1

    def place(self, pe: int) -> Place:
        """Return where a PE is: PE 8 * e + lane is in entangled group e, which counts banks and then ranks."""
        eg, lane = divmod(pe, CHIPS)
        rank, bank = divmod(eg, BANKS)
        return Place(rank, bank, lane)

    def channel(self, rank: int) -> int:
        """Return the channel of a rank."""
        return rank // self.ranks_per_channel

    def pes_of_rank(self, rank: int) -> range:
        """Return the PEs of a rank."""
        return range(rank * CHIPS * BANKS, min((rank + 1) * CHIPS * BANKS, self.pes))

    @cached_property
    def members(self) -> list[list[int]]:
        """The PEs of every group in the order of members."""
        found = [[0] * self.group_pes for _ in range(self.groups)]
        for pe, (group, member) in enumerate(zip(self.group, self.member, strict=True)):
            found[group][member] = pe
        return found

    def rows(self) -> list[dict[str, int]]:
        """Return where every PE is and what it is in its group, by name."""
        return [
            {"pe": pe, "channel": self.channel(place.rank), **place._asdict(), "group": group, "member": member}
            for pe, (group, member) in enumerate(zip(self.group, self.member, strict=True))
            for place in (self.place(pe),)
        ]

    def spread(self, group: int) -> tuple[int, int]:
        """Return over how many entangled groups, and lanes of them, the PEs of a group are spread."""
        return len({pe // CHIPS for pe in self.members[group]}), len({pe % CHIPS for pe in self.members[group]})

    def __str__(self) -> str:
        """Tell shape and mask."""
        return f"{format_shape(self.shape)} mask {self.mask}"


def locate(shape: Sequence[int], mask: str) -> Places:
    """Return where the PEs of a shape are. Moves nothing: PEs are allocated, and their MRAM is not touched.

    Raises ArgumentError if shape or mask breaks a rule, Error if the machine has fewer PEs.
    """
    with pidcomm.allocate(pes=max(1, prod(shape))) as pe_set:
        cube = pe_set.hypercube(*shape)
        groups = cube.groups(mask)
        return Places(
            shape=cube.shape,
            mask=mask,
            groups=groups.groups,
            group_pes=groups.group_pes,
            group=[cube.group_of(pe, mask) for pe in range(cube.pes)],
            member=[cube.member_of(pe, mask) for pe in range(cube.pes)],
            ranks_per_channel=platform.ranks_per_channel(),
        )


def runs(numbers: Sequence[int]) -> Iterator[str]:
    """Yield ascending or other numbers in short: "0-3" for neighbours, "0, 8, .. 56" for equal distances."""
    begin = 0
    while begin < len(numbers):
        end = begin + 1
        if end < len(numbers):
            step = numbers[end] - numbers[begin]
            while end < len(numbers) and numbers[end] - numbers[end - 1] == step:
                end += 1
            if end - begin < 3:
                step, end = 0, begin + 1
        first, last = numbers[begin], numbers[end - 1]
        if end - begin == 1:
            yield str(first)
        else:
            yield f"{first}-{last}" if step == 1 else f"{first}, {first + step}, .. {last}"
        begin = end
