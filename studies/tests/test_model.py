"""The model: the rules of predictions, and the choices of auto and of advice."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any, cast

import pytest

import pidcomm
from pidcomm import TECHNIQUES, ArgumentError, Options
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
from pidcomm_studies.models import compare

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


def test_the_page_of_pools_names_existing_constants() -> None:
    text = (Path(__file__).parents[2] / "pidcomm" / "docs" / "pool.md").read_text()
    named = set(re.findall(r"`((?:pool|switch)\.\w+)`", text))
    assert {"pool.gb_s", "switch.gb_s"} <= named <= {row.name for row in CONSTANTS}


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
            if TECHNIQUES[candidate.prediction.technique].is_for_auto
        ]
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
    default = "emulated-host"
    use_machine(default)  # techniques take no turns
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
    assert trial.check(auto).wrong == 0


def test_the_machine_in_use_decides_for_plans_too(machine_in_use: None) -> None:
    arguments: dict[str, Any] = {"bytes": 8 * KIB, "dst": 8 * KIB, "technique": "auto"}
    for technique in ("conventional", "tile"):
        use_machine(favouring(technique))
        assert pidcomm.plan("alltoall", (8, 8), "10", **arguments)["technique"] == technique
    with pytest.raises(ArgumentError, match="machine 'vax' is unknown"):
        use_machine("vax")
    use_machine("emulated-host")
    assert pidcomm.plan("alltoall", (8, 8), "10", **arguments)["technique"] == "tile"
