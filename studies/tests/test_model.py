"""The model: the rules of predictions, and the choices of auto and of advice."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import pidcomm
from pidcomm import ArgumentError, Options
from pidcomm.bench.measure import Scratch, Trial
from pidcomm.bench.oracle import Problem
from pidcomm.model import (
    CONSTANTS,
    PHASES,
    Machine,
    Prediction,
    load_machine,
    machine_names,
    predict,
    use_machine,
)
from pidcomm.tables import CollectiveName, IsaName, TechniqueName
from pidcomm_studies.models import advise, compare, influences

KIB = 1 << 10
SHAPES = [
    ((32, 32), "10"),
    ((32, 32), "01"),
    ((4, 8, 2), "010"),
    ((6, 4), "10"),
    ((1024,), "1"),
    ((64,), "0"),
]
REQUESTS = list(product(pidcomm.COLLECTIVES, SHAPES))
NAMES = [f"{name} {'x'.join(map(str, shape))} {mask}" for name, (shape, mask) in REQUESTS]
EVERY_REQUEST = pytest.mark.parametrize(("collective", "where"), REQUESTS, ids=NAMES)


def all_of(
    collective: CollectiveName, where: tuple[tuple[int, ...], str], size: int, **how: Any
) -> dict[str, Prediction]:
    """Return the predictions of all techniques that can carry out a request."""
    shape, mask = where
    return {
        estimate.prediction.technique: estimate.prediction
        for estimate in compare(collective, shape, mask, bytes=size, **how)
    }


def test_the_document_names_existing_constants_costs_and_phases() -> None:
    text = (Path(__file__).parents[1] / "docs" / "evaluation.md").read_text()
    sections = {row.name.partition(".")[0] for row in CONSTANTS}
    named = set(re.findall(rf"\b((?:{'|'.join(sections)})\.[a-z]\w*)(?![\w.(*])", text))
    assert len(named) > 30
    assert named <= {row.name for row in CONSTANTS}
    table = re.findall(
        r"^\| (`.*?) \|", text.partition("## Phases")[2].partition("## ")[0], re.MULTILINE
    )
    assert re.findall(r"`(\w+)`", " ".join(table)) == list(PHASES)


# ---- predictions


@EVERY_REQUEST
def test_phases_add_up_and_nothing_else_decides(
    collective: CollectiveName, where: tuple[tuple[int, ...], str]
) -> None:
    for machine in machine_names():
        predictions = all_of(collective, where, 48 * KIB, machine=machine)
        assert {"tile", "conventional"} <= set(predictions)
        for prediction in predictions.values():
            assert list(prediction.phases) == list(PHASES)
            assert all(seconds >= 0 for seconds in prediction.phases.values())
            assert math.isclose(sum(prediction.phases.values()), prediction.seconds, rel_tol=1e-12)
            assert math.isclose(
                prediction.host_seconds + prediction.pe_seconds, prediction.seconds, rel_tol=1e-12
            )
            assert (prediction.source, prediction.machine) == ("modelled", machine)
        assert predictions == all_of(collective, where, 48 * KIB, machine=machine)


@EVERY_REQUEST
def test_more_bytes_are_never_cheaper(
    collective: CollectiveName, where: tuple[tuple[int, ...], str]
) -> None:
    sizes = [8 * KIB, 24 * KIB, 48 * KIB, 96 * KIB, 384 * KIB, 768 * KIB, 3072 * KIB]
    for machine in machine_names():
        predictions = [
            all_of(collective, where, size, machine=machine)
            for size in sizes
            if size * 8 % math.prod(where[0]) == 0
        ]
        for fewer, more in pairwise(predictions):
            assert all(fewer[technique].seconds < more[technique].seconds for technique in fewer)


@EVERY_REQUEST
def test_more_channels_are_never_slower(
    collective: CollectiveName, where: tuple[tuple[int, ...], str]
) -> None:
    before: dict[str, Prediction] = {}
    for channels in (1, 2, 4, 8, 16):
        machine = load_machine("isca24").with_values({"ranks.channels": channels})
        predictions = all_of(collective, where, 384 * KIB, machine=machine)
        for technique in before:
            assert predictions[technique].seconds <= before[technique].seconds * (1 + 1e-12)
        before = predictions


@EVERY_REQUEST
def test_more_threads_are_never_slower_if_they_have_work(
    collective: CollectiveName, where: tuple[tuple[int, ...], str]
) -> None:
    machine = load_machine("isca24").with_values({"host.threads": 16})
    before: dict[str, Prediction] = {}
    for threads in (1, 2, 4, 8, 16):
        predictions = all_of(collective, where, 3072 * KIB, machine=machine, threads=threads)
        for technique in before:
            starting = machine["call.start_us"] * 1e-6 * threads * 4  # for all parts of the call
            assert predictions[technique].seconds <= before[technique].seconds + starting
        before = predictions


def test_threads_that_the_machine_lacks_change_nothing() -> None:
    machine = load_machine("isca24").with_values({"host.threads": 2})
    seconds = {
        predict("alltoall", (32, 32), "10", bytes=1 << 20, machine=machine, threads=threads).seconds
        for threads in (2, 3, 64)
    }
    assert len(seconds) == 1


@EVERY_REQUEST
def test_no_bytes_cost_only_the_call(
    collective: CollectiveName, where: tuple[tuple[int, ...], str]
) -> None:
    machine = load_machine("isca24")
    for prediction in all_of(collective, where, 0, machine=machine).values():
        assert prediction.seconds == prediction.phases["call"] == machine["call.us"] * 1e-6


@EVERY_REQUEST
def test_policy_hardware_adds_flushes(
    collective: CollectiveName, where: tuple[tuple[int, ...], str]
) -> None:
    machine = load_machine("emulated-host")
    none, hardware = (
        all_of(collective, where, 48 * KIB, machine=machine, coherence=policy)
        for policy in ("none", "hardware")
    )
    reads_mram = pidcomm.COLLECTIVES[collective].at_pes_before
    for technique, prediction in hardware.items():
        assert none[technique].phases["flush"] == 0
        assert (prediction.phases["flush"] > 0) == reads_mram
        others = {name: seconds for name, seconds in prediction.phases.items() if name != "flush"}
        assert others == {name: none[technique].phases[name] for name in others}


def test_only_real_dimms_are_switched_to_the_host() -> None:
    machine = load_machine("emulated-host").with_values({"call.mux_us": 10})
    dimms = machine.with_values({"host.emulated": 0})
    emulated, real = (
        predict("alltoall", (32, 32), "10", bytes=8 * KIB, machine=on) for on in (machine, dimms)
    )
    assert (emulated.phases["mux"], emulated.coherence) == (0, "none")
    assert real.coherence == "hardware"
    assert math.isclose(real.phases["mux"], 16 * 10e-6)  # 16 ranks


def test_only_techniques_with_pe_reordering_have_pe_times() -> None:
    predictions = all_of("alltoall", ((32, 32), "10"), 48 * KIB)
    for technique, prediction in predictions.items():
        assert (prediction.pe_seconds > 0) == technique.startswith("pr")
    without_lanes = all_of("alltoall", ((32, 32), "01"), 48 * KIB)
    assert all(prediction.pe_seconds == 0 for prediction in without_lanes.values())


def test_an_instruction_set_need_not_run_here_but_the_machine_must_have_it() -> None:
    machine = load_machine("isca24")
    for isa in machine.isas:
        assert (
            predict(
                "alltoall", (8, 8), "10", bytes=8 * KIB, machine=machine, isa=cast("IsaName", isa)
            ).isa
            == isa
        )
    with pytest.raises(ArgumentError, match="no costs for ISA audit") as error:
        predict("alltoall", (8, 8), "10", bytes=8 * KIB, machine=machine, isa="audit")
    assert error.value.status == "ERR_OPTION"


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"mask": "1"}, "ERR_MASK"),
        ({"bytes": 12}, "ERR_SIZE"),
        ({"shape": (0, 8)}, "ERR_SHAPE"),
        ({"technique": "pr"}, "ERR_WINDOW"),
        ({"technique": "best"}, "ERR_OPTION"),
        ({"threads": 5000}, "ERR_OPTION"),
        ({"dst": 8}, "ERR_WINDOW"),
        ({"machine": "vax"}, "ERR_ARGUMENT"),
    ],
)
def test_predictions_of_invalid_calls_raise_the_errors_of_the_collective(
    wrong: dict[str, Any], status: str
) -> None:
    with pytest.raises(ArgumentError) as error:
        predict(
            **{"collective": "alltoall", "shape": (8, 8), "mask": "10", "bytes": 8 * KIB, **wrong}
        )
    assert error.value.status == status


# ---- auto


@EVERY_REQUEST
@pytest.mark.parametrize("size", [64, 48 * KIB, 3072 * KIB])
def test_auto_is_the_fastest_allowed_technique(
    collective: CollectiveName, where: tuple[tuple[int, ...], str], size: int
) -> None:
    shape, mask = where
    size *= math.prod(shape) // 8 if size == 64 else 1
    for machine in machine_names():
        candidates = compare(collective, shape, mask, bytes=size, machine=machine)
        candidates = [
            candidate
            for candidate in candidates
            if candidate.prediction.technique not in ("ring", "tree")
        ]  # only for comparison
        without = [
            candidate.prediction
            for candidate in candidates
            if not (candidate.scratch_bytes or candidate.replaces_program)
        ]
        for scratch, allowed in (
            (None, without),
            (2 * size, [candidate.prediction for candidate in candidates]),
        ):
            prediction = predict(
                collective,
                shape,
                mask,
                bytes=size,
                machine=machine,
                technique="auto",
                scratch=scratch,
            )
            assert prediction.seconds == min(other.seconds for other in allowed)
            assert prediction.technique in {
                other.technique for other in allowed if other.seconds == prediction.seconds
            }


def favouring(technique: TechniqueName) -> Machine:
    """Return a machine on which a technique, tile or conventional, is by far the fastest."""
    machine = load_machine("emulated-host")
    by_sdk = [
        name for name in machine.constants if name.startswith(("sdk.", "work.")) and "gb_s" in name
    ]
    lines = [name for name in machine.constants if name.startswith("isa.")]
    is_sdk = technique == "conventional"
    return machine.with_values(
        {
            **dict.fromkeys(by_sdk, 1e3 if is_sdk else 1e-3),
            **dict.fromkeys(lines, 1e4 if is_sdk else 0.1),
        }
    )


@pytest.fixture
def machine_in_use() -> Iterator[None]:
    """Restore the machine in use."""
    yield
    use_machine(None)


@pytest.mark.parametrize("collective", pidcomm.COLLECTIVES)
def test_a_collective_with_auto_is_right_and_its_trace_names_the_technique(
    collective: CollectiveName, pes: pidcomm.PeSet, machine_in_use: None
) -> None:
    problem = Problem(collective, (8, 16), "10", 8 * KIB, "int32")
    trial = Trial(pes.hypercube(*problem.shape), problem, Scratch([problem]))
    auto: Options = {"technique": "auto"}
    for technique in ("conventional", "tile", "conventional"):
        use_machine(favouring(technique))
        assert trial.check(auto).wrong == 0
        assert trial.run(auto).technique == technique
    use_machine(None)
    assert trial.check(auto).wrong == 0
    default = "emulated-host"
    chosen = predict(
        collective,
        (8, 16),
        "10",
        bytes=8 * KIB,
        machine=default,
        technique="auto",
        isa=cast("IsaName", pidcomm.DEFAULT_ISA),
    )
    assert trial.run({**auto, "threads": chosen.threads}).technique == chosen.technique


def test_the_machine_in_use_decides_for_plans_too(machine_in_use: None) -> None:
    arguments: dict[str, Any] = {"bytes": 8 * KIB, "dst": 8 * KIB, "technique": "auto"}
    for technique in ("conventional", "tile"):
        use_machine(favouring(technique))
        assert pidcomm.plan("alltoall", (8, 8), "10", **arguments)["technique"] == technique
    with pytest.raises(ArgumentError, match="machine 'vax' is unknown"):
        use_machine("vax")
    assert pidcomm.plan("alltoall", (8, 8), "10", **arguments)["technique"] == "tile"


# ---- advice


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
        (shape, mask, technique): prediction.seconds
        for shape, mask in every_way(pes, group)
        for technique, prediction in all_of(collective, (shape, mask), size).items()
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


@pytest.mark.parametrize("size", [48 * KIB, 0])
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
    if planned["path"] == "sdk":
        return "through host memory, by transfers of the SDK"
    if planned["path"] == "member_steps":
        return f"{planned['member_steps']['rounds']} rounds of steps from member to member"
    if "before" in planned or "after" in planned:
        moments = " and ".join(moment for moment in ("before", "after") if moment in planned)
        return f"PEs reorder blocks {moments} the host pass"
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
        "alltoall", pes=64, bytes=8 * KIB, group=8, top=2, technique="conventional"
    )
    assert [arrangement.prediction.technique for arrangement in arrangements] == [
        "conventional"
    ] * len(arrangements)
    assert len(advise("alltoall", pes=64, bytes=8 * KIB, top=1)) == 1


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
        advise(**{"collective": "alltoall", "pes": 64, "bytes": 8 * KIB, **wrong})


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
