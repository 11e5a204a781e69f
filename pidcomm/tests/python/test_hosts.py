"""Predictions for several hosts: the steps of the hosts make the collective, and their costs are
right.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import pytest

import pidcomm
from pidcomm._rows import CollectiveName, OverlapName, TechniqueName, TransportName
from pidcomm.model import (
    NETWORK_PHASES,
    PHASES,
    HostsPrediction,
    load_machine,
    predict,
    predict_hosts,
)

COLLECTIVES = list(pidcomm.COLLECTIVES)
BETWEEN_PES: tuple[CollectiveName, ...] = ("alltoall", "reduce_scatter", "allreduce", "allgather")
HOST = load_machine("isca24").with_values({"ranks.channels": 1, "network.gb_s": 1.25})


def predicted(collective: CollectiveName, hosts: int, **changes: Any) -> HostsPrediction:
    """A prediction as for figure 23b of the PID-Comm paper: a channel of 256 PEs per host, 2 MiB
    each, 10 Gbit/s.
    """
    return predict_hosts(
        collective, hosts, (256,), "1", **{"bytes": 2 << 20, "machine": HOST, **changes}
    )


# ---- the steps of the hosts

STEPS: dict[
    CollectiveName, list[tuple[str, int, int]]
] = {  # local collectives of 4 hosts: calls, 1/x of the bytes
    "alltoall": [("gather", 3, 4), ("alltoall", 1, 4), ("scatter", 3, 4)],
    "reduce_scatter": [("reduce", 4, 4), ("scatter", 1, 1024)],
    "allreduce": [("reduce", 1, 1), ("broadcast", 1, 1)],
    "allgather": [("gather", 1, 1024), ("broadcast", 1, 4), ("broadcast", 3, 4)],
    "scatter": [("scatter", 1, 1)],
    "gather": [("gather", 1, 1)],
    "reduce": [("reduce", 1, 1)],
    "broadcast": [("broadcast", 1, 1)],
}


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_prediction_prices_the_steps_of_the_plan(collective: CollectiveName) -> None:
    prediction = predicted(collective, 4)
    local = [
        (part.name, part.calls, (2 << 20) // part.bytes)
        for part in prediction.parts
        if part != prediction.exchange
    ]
    assert local == STEPS[collective]
    plan = pidcomm.hosts.plan(
        collective, (256, 4), "11", bytes=2 << 20, dst=2 << 20, dtype="int32", overlap="off"
    )
    assert prediction.exchange.bytes == max(
        plan["link"]["bytes_sent"], plan["link"]["bytes_received"]
    )
    assert prediction.exchange.calls == max(
        plan["link"]["messages_sent"], plan["link"]["messages_received"]
    )


@pytest.mark.parametrize("transport", pidcomm.tables.TRANSPORTS)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_plan_over_hosts_prints_as_one_line(
    collective: CollectiveName, transport: TransportName
) -> None:
    plan = pidcomm.hosts.plan(
        collective, (8, 2), "11", bytes=1024, dst=1024, host=1, dtype="int32", transport=transport
    )
    start = f"Plan {collective} of int32, 8x2 mask 11, 1 KiB per PE, host 1 of 2: "
    for text in (repr(plan), str(plan)):
        assert text.startswith(f"<{start}")
        assert "\n" not in text
    assert start in plan._repr_html_()


@pytest.mark.parametrize("transport", pidcomm.tables.TRANSPORTS)
def test_an_offset_and_an_mram_byte_of_one_window_are_in_place(transport: TransportName) -> None:
    in_place, same_bytes = (
        pidcomm.hosts.plan(
            "alltoall", (16, 4), "11", bytes=64 << 10, src=src, overlap="on", transport=transport
        )
        for src in (0, 1 << 63)  # no program is loaded: the heap begins at MRAM byte 0
    )
    assert len(same_bytes["pieces"]) == len(in_place["pieces"])
    assert same_bytes["seconds"] == in_place["seconds"]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_plan_with_overlap_moves_the_same_bytes_in_less_predicted_time(
    collective: CollectiveName,
) -> None:
    arguments: dict[str, Any] = {"bytes": 2 << 20, "dst": 2 << 20, "dtype": "int32", "link": 1.25}
    off, on, auto = (
        pidcomm.hosts.plan(collective, (256, 4), "11", overlap=overlap, **arguments)
        for overlap in cast("list[OverlapName]", ["off", "on", "auto"])
    )
    assert [off["overlaps"], len(off["pieces"])] == [False, 1]
    assert off["seconds"]["total"] == pytest.approx(
        off["seconds"]["local"] + off["seconds"]["exchange"], rel=1e-4
    )
    for overlapping in (on, auto):
        assert (overlapping["link"]["bytes_sent"], overlapping["mram_bytes"]) == (
            off["link"]["bytes_sent"],
            off["mram_bytes"],
        )
        assert overlapping["seconds"]["total"] <= 1.000001 * (
            overlapping["seconds"]["local"] + overlapping["seconds"]["exchange"]
        )
    assert auto["seconds"]["total"] <= off["seconds"]["total"]
    if collective == "alltoall":
        assert len(auto["pieces"]) > 1
        assert auto["seconds"]["total"] < off["seconds"]["total"]


@pytest.mark.parametrize("hosts", [2, 3, 8])
def test_rows_at_one_host_go_through_its_link(hosts: int) -> None:
    bytes_of_a_host = 256 * (2 << 20)
    toward: tuple[CollectiveName, ...] = ("scatter", "gather")
    both: tuple[CollectiveName, ...] = ("reduce", "broadcast")
    for collective in toward:
        assert predicted(collective, hosts).exchange.bytes == (hosts - 1) * bytes_of_a_host
    for collective in both:
        assert predicted(collective, hosts).exchange.bytes == pytest.approx(
            2 * (hosts - 1) * (2 << 20) / hosts, rel=1e-4
        )


# ---- costs


@pytest.mark.parametrize("technique", ["tile", "conventional"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_prediction_for_one_host_is_the_local_prediction(
    collective: CollectiveName, technique: TechniqueName
) -> None:
    prediction = predicted(collective, 1, technique=technique)
    alone = predict(collective, (256,), "1", bytes=2 << 20, machine=HOST, technique=technique)
    assert prediction.seconds == alone.seconds
    assert prediction.phases == alone.phases | dict.fromkeys(NETWORK_PHASES, 0)
    assert (
        prediction.technique,
        prediction.isa,
        prediction.exchange.bytes,
        prediction.network_share,
    ) == (
        technique,
        alone.isa,
        0,
        0,
    )


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_parts_and_phases_add_up_and_are_modelled(collective: CollectiveName) -> None:
    prediction = predicted(collective, 4)
    assert prediction.seconds == pytest.approx(sum(part.seconds for part in prediction.parts))
    assert prediction.seconds == pytest.approx(sum(prediction.phases.values()))
    assert list(prediction.phases) == [*PHASES, *NETWORK_PHASES]
    assert prediction.source == "modelled"
    assert prediction.exchange.seconds == pytest.approx(
        prediction.phases["network"] + prediction.phases["latency"]
    )
    assert prediction.phases["network"] == pytest.approx(prediction.exchange.bytes / 1.25e9)
    assert prediction.phases["latency"] == pytest.approx(
        prediction.exchange.calls * HOST["network.latency_us"] * 1e-6
    )


@pytest.mark.parametrize("collective", BETWEEN_PES)
def test_bytes_between_hosts_follow_the_law_of_the_paper(collective: CollectiveName) -> None:
    sent = {
        hosts: predicted(collective, hosts).exchange.bytes * hosts / (hosts - 1)
        for hosts in (2, 4, 8, 16)
    }
    assert len(set(sent.values())) == 1
    assert all(
        before < after
        for before, after in pairwise(
            predicted(collective, n, technique="tile").seconds for n in (1, 2, 4, 8)
        )
    )


def test_the_network_matters_to_alltoall_and_little_to_reductions() -> None:
    """As the paper says of figure 23b: reduced or not yet duplicated data is 1/256 of all data."""
    share = {name: predicted(name, 4).network_share for name in BETWEEN_PES}
    assert max(share, key=lambda name: share[name]) == "alltoall"
    assert share["alltoall"] > 0.5
    assert max(share[name] for name in BETWEEN_PES if name != "alltoall") < 0.2
    sent = {name: predicted(name, 4).exchange.bytes for name in BETWEEN_PES}
    assert (
        sent["alltoall"]
        == 256 * sent["reduce_scatter"]
        == 256 * sent["allgather"]
        == 128 * sent["allreduce"]
    )


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_calls_of_no_bytes_exchange_nothing(collective: CollectiveName) -> None:
    prediction = predicted(collective, 4, bytes=0)
    assert (prediction.exchange.calls, prediction.exchange.bytes, prediction.network_share) == (
        0,
        0,
        0,
    )
    assert {prediction.phases[name] for name in NETWORK_PHASES} == {0}


def test_parts_name_their_technique() -> None:
    for technique in ("tile", "pr+im", "auto"):
        options: dict[str, Any] = {"technique": technique, "machine": HOST, "scratch": 4 << 20}
        prediction = predicted("alltoall", 4, **options)
        assert prediction.exchange.technique is None
        for part in prediction.parts:
            if part != prediction.exchange:
                assert (
                    part.technique
                    == predict(
                        cast("CollectiveName", part.name), (256,), "1", bytes=part.bytes, **options
                    ).technique
                )


def test_a_faster_network_shortens_only_the_exchange() -> None:
    fast = predicted(
        "alltoall", 4, machine=HOST.with_values({"network.gb_s": 12.5, "network.latency_us": 0})
    )
    slow = predicted("alltoall", 4)
    assert fast.phases["network"] == pytest.approx(slow.phases["network"] / 10)
    assert {name: fast.phases[name] for name in PHASES} == {
        name: slow.phases[name] for name in PHASES
    }


@pytest.mark.parametrize(
    ("collective", "hosts", "changes", "message"),
    [
        (
            "alltoall",
            3,
            {},
            (
                r"mask 11 of 256x3 selects 768 PEs; alltoall needs bytes \(2097152\) divisible by"
                r" 768 \* 8"
            ),
        ),
        ("allreduce", 2, {"bytes": 12}, "multiple of 8|divisible by"),
        ("allreduce", 0, {}, r"hosts \(0\) must be between 1"),
        ("allsum", 2, {}, "collective 'allsum' is unknown"),
        (
            "allreduce",
            2,
            {"technique": "tree"},
            "allreduce over 2 hosts has a local reduce on each: .*tree is for",
        ),
        ("allreduce", 2, {"machine": "nowhere"}, "machine 'nowhere' is unknown"),
    ],
)
def test_invalid_arguments_are_errors(
    collective: CollectiveName, hosts: int, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(pidcomm.Error, match=message):
        predicted(collective, hosts, **changes)
