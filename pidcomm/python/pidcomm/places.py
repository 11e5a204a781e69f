"""Places of PEs: in groups, and in the machine."""

from __future__ import annotations

from typing import NamedTuple

__all__: list[str] = []


class Groups(NamedTuple):
    """Groups that an axis mask makes: `groups` groups of `group_pes` PEs (N)."""

    groups: int
    group_pes: int


class Location(NamedTuple):
    """Place of a PE: rank index in the set, chip (equal to the lane) and bank.

    The three numbers count from 0.
    """

    rank: int
    chip: int
    bank: int
