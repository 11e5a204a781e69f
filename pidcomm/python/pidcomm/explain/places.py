"""The place and the group of each PE of a hypercube, as the library reports them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import pidcomm
from pidcomm import Location
from pidcomm.bench import platform
from pidcomm.sizes import format_shape

__all__ = ["Places", "locate", "runs"]


@dataclass(frozen=True)
class Places:
    """PEs of a hypercube, and their groups under a mask.

    location, group and member have one element per PE.
    """

    shape: tuple[int, ...]
    mask: str
    groups: int
    group_pes: int
    location: Sequence[Location]
    group: Sequence[int]
    member: Sequence[int]
    ranks_per_channel: int

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return len(self.group)

    @cached_property
    def pes_of_rank(self) -> dict[int, list[int]]:
        """The PEs of each rank that has PEs."""
        by_rank: dict[int, list[int]] = {}
        for pe, location in enumerate(self.location):
            by_rank.setdefault(location.rank, []).append(pe)
        return dict(sorted(by_rank.items()))

    @property
    def channels(self) -> int:
        """Number of channels up to the last channel with PEs."""
        return self.channel(max(self.pes_of_rank)) + 1

    def channel(self, rank: int) -> int:
        """Return the channel of a rank."""
        return rank // self.ranks_per_channel

    @cached_property
    def members(self) -> list[list[int]]:
        """The PEs of every group in the order of members."""
        pes_of_group = [[0] * self.group_pes for _ in range(self.groups)]
        for pe, (group, member) in enumerate(zip(self.group, self.member, strict=True)):
            pes_of_group[group][member] = pe
        return pes_of_group

    def rows(self) -> list[dict[str, int]]:
        """Return the place, the group and the member index of every PE, by name."""
        return [
            {
                "pe": pe,
                "channel": self.channel(location.rank),
                "rank": location.rank,
                "bank": location.bank,
                "lane": location.chip,
                "group": group,
                "member": member,
            }
            for pe, (location, group, member) in enumerate(
                zip(self.location, self.group, self.member, strict=True)
            )
        ]

    def spread(self, group: int) -> tuple[int, int]:
        """Return the number of entangled groups and of lanes that a group uses."""
        locations = [self.location[pe] for pe in self.members[group]]
        return len({(location.rank, location.bank) for location in locations}), len(
            {location.chip for location in locations}
        )

    def __str__(self) -> str:
        """Report shape and mask."""
        return f"{format_shape(self.shape)} mask {self.mask}"


def locate(shape: Sequence[int], mask: str) -> Places:
    """Return the places of the PEs of a shape. Allocates the PEs, but does not access their MRAM.

    Raises ArgumentError if shape or mask breaks a rule, and Error if the machine has fewer PEs.
    """
    with pidcomm.allocate(pes=max(1, prod(shape))) as pe_set:
        cube = pe_set.hypercube(*shape)
        groups = cube.groups(mask)
        return Places(
            shape=cube.shape,
            mask=mask,
            groups=groups.groups,
            group_pes=groups.group_pes,
            location=[cube.location(pe) for pe in range(cube.pes)],
            group=[cube.group_of(pe, mask) for pe in range(cube.pes)],
            member=[cube.member_of(pe, mask) for pe in range(cube.pes)],
            ranks_per_channel=platform.ranks_per_channel(),
        )


def runs(numbers: Sequence[int]) -> Iterator[str]:
    """Yield numbers in short form: "0-3" for consecutive numbers, and "0, 8, .. 56" for numbers
    at equal distances.
    """
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
