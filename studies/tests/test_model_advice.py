"""The model's advice, and the influence of its constants."""

from __future__ import annotations

import math
import re
from itertools import product
from typing import Any, cast

import numpy as np
import pytest

import pidcomm
from pidcomm import ArgumentError
from pidcomm.model import Machine, load_machine, predict
from pidcomm.tables import CollectiveName, TechniqueName
from pidcomm_studies.models import advise, compare, influences


def every_way(pes: int, group: int) -> set[tuple[tuple[int, ...], str]]:
    """Return all shapes of axes longer than 1, and their masks with groups of `group` PEs."""
    lengths = [length for length in range(2, pes + 1) if pes % length == 0]
    shapes = [
        shape
        for axes in (1, 2, 3)
        for shape in product(lengths, repeat=axes)
        if math.prod(shape) == pes
    ]
    return {
        (shape, "".join(bits))
        for shape in shapes
        for bits in product("01", repeat=len(shape))
        if math.prod(length for length, bit in zip(shape, bits, strict=True) if bit == "1") == group
    }


@pytest.mark.parametrize(("pes", "group"), [(64, 64), (64, 8), (64, 1), (24, 6), (60, 12)])
@pytest.mark.parametrize("collective", ["alltoall", "allreduce", "gather"])
def test_advice_lists_every_way_once_the_fastest_first(
    collective: CollectiveName, pes: int, group: int
) -> None:
    size = 8 * pes * 16
    arrangements = advise(collective, pes=pes, bytes=size, group=group, top=10**6)
    named = [
        (arrangement.shape, arrangement.mask, arrangement.prediction.technique)
        for arrangement in arrangements
    ] + [way for arrangement in arrangements for way in arrangement.alike]
    assert len(named) == len(set(named))
    assert {(shape, mask) for shape, mask, _ in named} == every_way(pes, group)
    seconds = {
        (shape, mask, estimate.prediction.technique): estimate.prediction.seconds
        for shape, mask in every_way(pes, group)
        for estimate in compare(collective, shape, mask, bytes=size)
    }
    assert set(named) == set(seconds)
    assert arrangements[0].prediction.seconds == pytest.approx(min(seconds.values()))
    assert [arrangement.prediction.seconds for arrangement in arrangements] == sorted(
        arrangement.prediction.seconds for arrangement in arrangements
    )
    for arrangement in arrangements:
        for way in arrangement.alike:
            assert seconds[way] == pytest.approx(arrangement.prediction.seconds, rel=1e-8)
            assert len(arrangement.shape) <= len(way.shape)


@pytest.mark.parametrize("size", [48 << 10, 0])
@pytest.mark.parametrize("group", [12, 8, 1])
@pytest.mark.parametrize("collective", pidcomm.COLLECTIVES)
def test_reasons_match_the_prediction_and_the_places_of_pes(
    collective: CollectiveName, group: int, size: int
) -> None:
    arrangements = advise(collective, pes=96, bytes=size, group=group, top=1000)
    best = arrangements[0].prediction
    phase = max(best.phases, key=lambda name: best.phases[name])
    assert arrangements[0].reason.endswith(
        f"{100 * best.phases[phase] / best.seconds:.0f}% of the time in {phase}"
    )
    paths = set()
    for arrangement in arrangements:
        technique = arrangement.prediction.technique
        planned = pidcomm.plan(
            collective,
            arrangement.shape,
            arrangement.mask,
            bytes=size,
            dst=size,
            dtype=np.int32,
            technique=cast("TechniqueName", technique),
            scratch=2 * size,
        )
        paths.add(planned["path"])
        reason = arrangement.reason.rpartition("; ")[0]
        assert reason == (
            fact_about(collective, arrangement.shape, arrangement.mask, planned)
            if size
            else "no bytes move, because the size is 0"
        )
        assert arrangement.replaces_program == ("before" in planned or "after" in planned)
        assert arrangement.scratch_bytes == planned.get("scratch_bytes", 0)
        if arrangement.prediction.seconds > best.seconds:
            more = {
                name: seconds - best.phases[name]
                for name, seconds in arrangement.prediction.phases.items()
            }
            assert arrangement.reason.endswith(f"more in {max(more, key=lambda name: more[name])}")
            assert (
                f"{arrangement.prediction.seconds / best.seconds:.2f}x the best"
                in arrangement.reason
            )
    if (collective, group) == ("allreduce", 12) and size:
        assert paths == {"tile", "paper", "sdk", "member_steps"}


def fact_about(
    collective: CollectiveName, shape: tuple[int, ...], mask: str, planned: dict[str, Any]
) -> str:
    """Return the expected reason, from the places of PEs: 8 consecutive PEs are the lanes of a
    line.
    """
    if planned["path"] == "tile" and (pes := planned["sweeps"][0]["section_pes"]) != 8:
        return f"sections of {pes} PEs, because the shape has no lane split"
    if planned["path"] == "member_steps":
        return f"{planned['member_steps']['rounds']} rounds of steps from member to member"
    over_sdk = ["through host memory, by transfers of the SDK"] * (planned["path"] == "sdk")
    if "before" in planned or "after" in planned:
        moments = " and ".join(moment for moment in ("before", "after") if moment in planned)
        return ", ".join([f"PEs reorder blocks {moments} the host pass", *over_sdk])
    if over_sdk:
        return over_sdk[0]
    place = np.unravel_index(range(96), shape, order="F")
    groups = [
        tuple(int(axis[pe]) for axis, bit in zip(place, mask, strict=True) if bit == "0")
        for pe in range(96)
    ]
    if len(set(groups)) == 96:
        return "a copy, because a group is one PE"
    if in_a_line := 8 // len(set(groups[:8])) - 1:
        return f"members differ in {in_a_line.bit_length()} of the 3 lane bits"
    row = pidcomm.COLLECTIVES[collective]
    if not row.at_pes_before:
        return "members share no line: the lanes of a line are from rows of different groups"
    if not row.at_pes_after:
        return "members share no line: the lanes of a line go to rows of different groups"
    return "members share no line, so lanes stay where they are"


@pytest.mark.parametrize(("pes", "group"), [(720720, 720720), (720720, 80), (1 << 20, 1 << 10)])
def test_advice_for_many_pes_lists_one_of_the_ways_with_equal_groups(pes: int, group: int) -> None:
    arrangements = advise("allreduce", pes=pes, bytes=group * 8, group=group, top=10**6)
    masks = {arrangement.mask for arrangement in arrangements} | {
        way.mask for arrangement in arrangements for way in arrangement.alike
    }
    assert masks == ({"1"} if group == pes else {"10", "01", "101", "010"})


def test_advice_may_be_limited_to_one_technique_and_a_length() -> None:
    arrangements = advise(
        "alltoall", pes=64, bytes=8 << 10, group=8, top=2, technique="conventional"
    )
    assert [arrangement.prediction.technique for arrangement in arrangements] == [
        "conventional"
    ] * len(arrangements)
    assert len(advise("alltoall", pes=64, bytes=8 << 10, top=1)) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pes": 0}, "pes (0) must be between 1"),
        ({"group": 7}, "groups of 7 PEs do not divide 64 PEs"),
        ({"group": 128}, "groups of 128 PEs do not divide 64 PEs"),
        ({"bytes": 12}, "alltoall needs bytes (12) divisible by"),
        ({"top": 0}, "top (0) must be between 1"),
        ({"technique": "pr", "pes": 12, "bytes": 96}, "12"),
        ({"machine": "vax"}, "machine 'vax' is unknown"),
        ({"collective": "allsum"}, "collective 'allsum' is unknown"),
    ],
)
def test_advice_about_invalid_calls_is_an_error(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(words)):
        advise(**{"collective": "alltoall", "pes": 64, "bytes": 8 << 10, **wrong})


# ---- influence


def test_influence_is_the_change_by_a_constant() -> None:
    machine = load_machine("isca24")
    shares = influences("allreduce", (32, 32), "10", bytes=1 << 20, machine=machine)
    assert list(shares.values()) == sorted(shares.values(), key=abs, reverse=True)
    base = predict("allreduce", (32, 32), "10", bytes=1 << 20, machine=machine).seconds
    for name, share in list(shares.items())[:3]:
        changed = machine.with_values({name: machine[name] * 1.001})
        seconds = predict("allreduce", (32, 32), "10", bytes=1 << 20, machine=changed).seconds
        assert (seconds / base - 1) / 0.001 == pytest.approx(share, rel=0.05)


def test_influence_is_measured_within_the_domain_of_each_constant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = load_machine("isca24").with_values({"host.overlap": 1})
    seen = []

    def watched(*arguments: Any, machine: Machine, **options: Any) -> Any:
        seen.append(machine["host.overlap"])
        return predict(*arguments, machine=machine, **options)

    monkeypatch.setattr("pidcomm_studies.models.advice.predict", watched)
    shares = influences("alltoall", (32, 32), "10", bytes=1 << 20, machine=machine)
    assert min(seen) == 1
    assert max(seen) > 1
    changed = machine.with_values({"host.overlap": 1.001})
    slope = [
        predict("alltoall", (32, 32), "10", bytes=1 << 20, machine=on).seconds
        for on in (machine, changed)
    ]
    assert shares.get("host.overlap", 0) == pytest.approx(
        (slope[1] / slope[0] - 1) / 0.001, rel=0.05, abs=1e-6
    )


def test_a_call_of_no_bytes_depends_only_on_the_cost_of_a_call() -> None:
    assert influences("alltoall", (8, 8), "10", bytes=0) == pytest.approx({"call.us": 1}, rel=1e-3)
