"""Predictions over links between PEs, against traffic counted message by message, and wrong
machine files.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pidcomm import ArgumentError
from pidcomm.model import Machine, load_machine, predict
from pidcomm_studies.models import predict_links
from pidcomm_studies.models.links import spread_of

MACHINE = load_machine("upmem-2560+links")
LEVELS = list(MACHINE.links)
SHAPES = [((8, 8, 2), mask) for mask in ("100", "010", "001", "110", "011", "111")] + [
    ((6, 5, 7), "101"),
    ((3, 40), "01"),
]


def with_topology(topology: str) -> Machine:
    return replace(
        MACHINE,
        links={level: link._replace(topology=topology) for level, link in MACHINE.links.items()},
    )


def groups_of(shape: tuple[int, ...], mask: str) -> list[list[int]]:
    """Return the PEs of each group, by coordinates."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, reverse in enumerate(product(*(range(length) for length in reversed(shape)))):
        place = reverse[::-1]
        groups.setdefault(
            tuple(c for c, bit in zip(place, mask, strict=True) if bit == "0"), []
        ).append(number)
    return list(groups.values())


def unit(pe: int, level: str) -> int:
    """Return the bank, chip or rank of a PE: 8 PEs of a line lie in 8 chips, a rank has 8 banks
    in each chip.
    """
    return {"bank": pe, "chip": pe // 64 * 8 + pe % 8, "rank": pe // 64}[level]


@pytest.mark.parametrize(("shape", "mask"), SHAPES)
def test_alltoall_sends_every_block_once_out_of_each_unit(
    shape: tuple[int, ...], mask: str
) -> None:
    groups = groups_of(shape, mask)
    size = 8 * len(groups[0])
    sent = {level: np.zeros(np.prod(shape)) for level in LEVELS}
    for group in groups:
        for a, b in product(group, group):
            for level in LEVELS:
                if unit(a, level) != unit(b, level):
                    sent[level][unit(a, level)] += 8
    prediction = predict_links(
        "alltoall", shape, mask, bytes=size, machine=with_topology("crossbar")
    )
    assert prediction.sent_bytes == pytest.approx(
        {level: most.max() for level, most in sent.items()}
    )


@pytest.mark.parametrize(("shape", "mask"), SHAPES)
def test_a_reduction_leaves_each_unit_once_for_each_group(
    shape: tuple[int, ...], mask: str
) -> None:
    """The units of a level reduce and scatter: each sends (n - 1) / n of a vector for each group
    that spans n units.
    """
    groups = groups_of(shape, mask)
    size = 8 * len(groups[0])
    sent = np.zeros(np.prod(shape))
    for group in groups:
        ranks = {unit(pe, "rank") for pe in group}
        for rank in ranks:
            sent[rank] += size * (len(ranks) - 1) / len(ranks)
    prediction = predict_links(
        "reduce_scatter", shape, mask, bytes=size, machine=with_topology("crossbar")
    )
    assert prediction.sent_bytes["rank"] == pytest.approx(sent.max())
    twice = predict_links("allreduce", shape, mask, bytes=size, machine=with_topology("crossbar"))
    assert twice.sent_bytes == pytest.approx(
        {level: 2 * most for level, most in prediction.sent_bytes.items()}
    )


def hops(a: int, b: int, count: int) -> list[tuple[str, int]]:
    """Return the links of a ring from unit a to unit b: the direction, and the unit that sends."""
    forward = (b - a) % count
    if 2 * forward <= count:
        return [("forward", (a + hop) % count) for hop in range(forward)]
    return [("back", (a - hop) % count) for hop in range(count - forward)]


@pytest.mark.parametrize(
    ("shape", "mask"), [*SHAPES, ((8, 4, 2), "010"), ((8, 2, 4), "001"), ((8, 4, 2), "001")]
)
def test_the_bytes_of_every_link_of_a_ring_of_banks(shape: tuple[int, ...], mask: str) -> None:
    groups = groups_of(shape, mask)
    sent: Counter[tuple[int, str, int]] = Counter()  # by chip, direction and bank
    for group in groups:
        for a, b in product(group, group):
            chip, bank = unit(a, "chip"), a % 64 // 8
            if a != b:
                path = (
                    hops(bank, b % 64 // 8, 8) if unit(b, "chip") == chip else [("forward", bank)]
                )
                sent.update({(chip, *link): 8 for link in path})
    prediction = predict_links(
        "alltoall", shape, mask, bytes=8 * len(groups[0]), machine=with_topology("ring")
    )
    assert prediction.sent_bytes["bank"] == pytest.approx(max(sent.values()))


def test_a_ring_carries_interleaved_groups_over_the_same_links() -> None:
    def sent(collective: Any, shape: tuple[int, ...], mask: str) -> float:
        return predict_links(collective, shape, mask, bytes=1 << 16, machine=MACHINE).sent_bytes[
            "bank"
        ]

    assert sent("reduce_scatter", (8, 2, 4), "001") == 2 * sent("reduce_scatter", (8, 4, 2), "010")
    assert sent("alltoall", (8, 4, 2), "001") == 4 * sent("alltoall", (8, 2, 4), "010")


def test_the_spread_counts_units_with_members() -> None:
    for mask, peers, members in (("011", (8, 1, 4), 32), ("100", (1, 8, 1), 8)):
        spread = spread_of((8, 8, 4), mask)
        most = {level: units.max() for level, units in spread.peers.items()}
        assert most == dict(zip(LEVELS, peers, strict=True))
        assert spread.members == members


def test_eight_banks_reduce_at_the_rate_of_a_link() -> None:
    size = 1 << 20
    prediction = predict_links("reduce_scatter", (8, 8), "01", bytes=size, machine=MACHINE)
    link = MACHINE.links["bank"]
    launch = 1e-6 * MACHINE.launch_us(64)
    assert prediction.host_seconds == pytest.approx(launch)
    assert prediction.seconds == pytest.approx(
        launch + size * 7 / 8 / 2.8e9 + 7e-9 * link.latency_ns.value
    )


def test_a_bus_serves_one_unit_at_a_time() -> None:
    crossbar, bus = (
        predict_links(
            "reduce_scatter", (8, 8), "01", bytes=1 << 20, machine=with_topology(topology)
        ).link_seconds["bank"]
        for topology in ("crossbar", "bus")
    )
    assert bus == pytest.approx(8 * crossbar, rel=1e-2)


def test_the_host_moves_what_begins_or_ends_in_its_memory() -> None:
    shape, mask, size = (8, 8, 4), "011", 1 << 16
    for collective in ("scatter", "gather"):
        whole = predict(
            collective, shape, mask, bytes=size, dtype=np.int64, machine=MACHINE, technique="auto"
        )
        assert (
            predict_links(collective, shape, mask, bytes=size, machine=MACHINE).seconds
            == whole.seconds
        )
    block = predict(
        "gather", shape, mask, bytes=size // 32, dtype=np.int64, machine=MACHINE, technique="auto"
    )
    prediction = predict_links("reduce", shape, mask, bytes=size, machine=MACHINE)
    scattered = predict_links("reduce_scatter", shape, mask, bytes=size, machine=MACHINE)
    launch = 1e-6 * MACHINE.launch_us(256)
    assert prediction.host_seconds == pytest.approx(block.seconds + launch)
    assert prediction.link_seconds == scattered.link_seconds


def test_pes_that_feed_the_links_are_slower() -> None:
    for collective in ("alltoall", "allreduce"):
        free, fed = (
            predict_links(
                collective, (8, 8), "01", bytes=1 << 16, machine=MACHINE, is_fed_by_pes=is_fed
            ).seconds
            for is_fed in (False, True)
        )
        assert fed > 1.5 * free


def test_dimms_are_a_level_above_ranks() -> None:
    """Two ranks per DIMM: counted message by message, with a link of each unit to all others."""
    dimms = load_machine("upmem-2560+dimm-link")
    machine = replace(
        dimms,
        links={level: link._replace(topology="crossbar") for level, link in dimms.links.items()},
    )
    shape, size = (8, 8, 2, 3), 8 * 6
    for mask in ("0001", "0011", "0010"):
        groups = groups_of(shape, mask)
        sent = Counter[int]()
        for group in groups:
            for a, b in product(group, group):
                if a // 128 != b // 128:
                    sent[a // 128] += size // len(group)
        prediction = predict_links("alltoall", shape, mask, bytes=size, machine=machine)
        assert prediction.sent_bytes["dimm"] == max(sent.values(), default=0)
    up = predict_links("reduce_scatter", shape, "0011", bytes=size, machine=machine).sent_bytes
    # Of 64 groups, a DIMM sends 2/3 of one vector each.
    assert up["dimm"] == pytest.approx(64 * size * 2 / 3)


def test_groups_may_only_span_levels_with_links() -> None:
    machine = "upmem-2560+rowclone"  # the banks of a chip
    prediction = predict_links("alltoall", (8, 8), "01", bytes=64, machine=machine)
    link = load_machine(machine).links["bank"]
    launch = 1e-6 * MACHINE.launch_us(64)
    # A bus carries 7 blocks of 8 bytes of each of 8 banks, with 7 messages in sequence.
    expected = launch + 8 * 7 * 8 / (1e9 * link.gb_s) + 7e-9 * link.latency_ns.value
    assert prediction.seconds == pytest.approx(expected)
    for shape, mask, level in (((8, 8), "10", "chips"), ((8, 8, 2), "001", "chips")):
        with pytest.raises(ArgumentError, match=f"has no links between {level}, over which"):
            predict_links("allreduce", shape, mask, bytes=64, machine=machine)


def test_a_group_of_one_uses_no_links() -> None:
    assert predict_links("allreduce", (8, 8), "00", bytes=64, machine=MACHINE).seconds == 0


def test_wrong_machines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="upmem-2560 has no links between PEs"):
        predict_links("alltoall", (8, 8), "01", bytes=64, machine="upmem-2560")
    text = MACHINE.to_toml()
    latency = next(line for line in text.splitlines() if line.startswith("latency_ns"))
    for old, new, words in (
        ("[links.rank]", "[links.board]", "[links.dimm] only"),
        (latency, "", "must have bytes_per_cycle, clock_mhz, latency_ns, topology"),
        ('value = "ring"', 'value = "tree"', "'tree' is none of ring, crossbar, bus"),
        ("value = 8,", "value = 0,", "bytes_per_cycle is 0"),
        ("value = 28.6", "value = nan", "latency_ns is nan"),
        ('unit = "ns"', 'unit = "us"', "has unit 'us'; it is in 'ns'"),
        (latency, "latency_ns = 3", "must be { value = ..., unit = ..., source = ... }"),
    ):
        assert old in text
        path = tmp_path / "wrong.toml"
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(ArgumentError) as error:
            load_machine(str(path))
        assert words in str(error.value)
