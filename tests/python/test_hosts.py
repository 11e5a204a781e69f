"""Predictions for several hosts: the steps of the hosts make the collective, and their costs are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pidcomm
import pytest
from definitions import Array, payload, result_of
from pidcomm._rows import CollectiveName, TechniqueName
from pidcomm.model import NETWORK_PHASES, PHASES, HostsPrediction, load_machine, predict, predict_hosts

COLLECTIVES = list(pidcomm.COLLECTIVES)
BETWEEN_PES: tuple[CollectiveName, ...] = ("alltoall", "reduce_scatter", "allreduce", "allgather")
SHAPE, MASK, GROUPS = (4, 3), "10", 3
HOST = load_machine("isca24").with_values({"ranks.channels": 1, "network.gb_s": 1.25})


def predicted(collective: CollectiveName, hosts: int, **changes: Any) -> HostsPrediction:
    """A prediction as for figure 23b of the PID-Comm paper: a channel of 256 PEs per host, 2 MiB each, 10 Gbit/s."""
    return predict_hosts(collective, hosts, (256,), "1", **{"bytes": 2 << 20, "machine": HOST, **changes})


# ---- the steps of the hosts


class Hosts:
    """Hosts that carry out collectives by the definitions, and count their calls. Rows are per host."""

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts
        self.calls: Counter[tuple[str, int]] = Counter()  # of one host: by collective and bytes per PE
        self.received_bytes = 0  # by the first host

    def local(self, name: str, rows: Sequence[Array]) -> list[Array]:
        """Carry out a collective on every host."""
        after = [result_of(name, x, SHAPE, MASK) for x in rows]
        at_pes = rows if pidcomm.COLLECTIVES[name].at_pes_before else after
        self.calls[name, at_pes[0][0].nbytes] += 1
        return after

    def exchange(self, sent: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Send sent[h][g] from host h to host g; return, for each host, the arrays from every host."""
        self.received_bytes += sum(sent[host][0].nbytes for host in range(1, self.hosts))
        return [list(received) for received in zip(*sent, strict=True)]

    def alltoall(self, x: Sequence[Array]) -> list[Array]:
        """Alltoalls of the blocks for each host, which leave them in order."""
        everyone = range(self.hosts)
        parts = [np.split(rows, self.hosts, axis=1) for rows in x]
        done = [self.local("alltoall", [parts[host][to] for host in everyone]) for to in everyone]
        rest = [np.concatenate([done[to][host] for to in everyone if to != host], axis=1) for host in everyone]
        sent = []
        for host, rows in enumerate(self.local("gather", rest)):
            pieces = np.split(rows.reshape(GROUPS, SHAPE[0], -1), self.hosts - 1, axis=2)
            sent.append([*pieces[:host], pieces[0][..., :0], *pieces[host:]])
        rows_of = [np.concatenate(received, axis=2).reshape(GROUPS, -1) for received in self.exchange(sent)]
        result = []
        for host, rows in enumerate(self.local("scatter", rows_of)):
            pieces = np.split(rows, self.hosts - 1, axis=1)
            result.append(np.concatenate([*pieces[:host], done[host][host], *pieces[host:]], axis=1))
        return result

    def _reduced(self, x: Sequence[Array]) -> list[Array]:
        sent = [np.split(rows, self.hosts, axis=1) for rows in self.local("reduce", x)]
        return [np.sum(received, axis=0) for received in self.exchange(sent)]

    def _broadcast(self, parts: Sequence[Array]) -> list[Array]:
        received = self.exchange([[part] * self.hosts for part in parts])
        return self.local("broadcast", [np.concatenate(rows, axis=1) for rows in received])

    def reduce_scatter(self, x: Sequence[Array]) -> list[Array]:
        """Reduce, exchange, scatter."""
        return self.local("scatter", self._reduced(x))

    def allreduce(self, x: Sequence[Array]) -> list[Array]:
        """Reduce, two exchanges, broadcast."""
        return self._broadcast(self._reduced(x))

    def allgather(self, x: Sequence[Array]) -> list[Array]:
        """Gather, exchange, broadcast."""
        return self._broadcast(self.local("gather", x))


@pytest.mark.parametrize("hosts", [2, 3, 4])
@pytest.mark.parametrize("collective", BETWEEN_PES)
def test_the_steps_of_the_prediction_make_the_collective(collective: CollectiveName, hosts: int) -> None:
    shape, mask = (*SHAPE, hosts), f"{MASK}1"
    rows = payload(collective, shape, mask, "int64", block_bytes=hosts * 8)
    machines = Hosts(hosts)
    after = getattr(machines, collective)(np.split(rows, hosts))
    np.testing.assert_array_equal(np.concatenate(after), result_of(collective, rows, shape, mask))
    size_bytes = max(rows[0].nbytes, after[0][0].nbytes)
    it = predict_hosts(collective, hosts, SHAPE, MASK, bytes=size_bytes, dtype="int64")
    local = Counter({(part.name, part.bytes): part.calls for part in it.parts if part != it.exchange})
    assert local == machines.calls
    assert it.exchange.bytes == machines.received_bytes


@pytest.mark.parametrize("hosts", [2, 3, 8])
def test_rows_at_one_host_go_through_its_link(hosts: int) -> None:
    bytes_of_a_host = 256 * (2 << 20)
    toward: tuple[CollectiveName, ...] = ("scatter", "gather")
    both: tuple[CollectiveName, ...] = ("reduce", "broadcast")
    for collective in toward:
        assert predicted(collective, hosts).exchange.bytes == (hosts - 1) * bytes_of_a_host
    for collective in both:
        assert predicted(collective, hosts).exchange.bytes == 2 * (hosts - 1) * (2 << 20) // hosts


# ---- costs


@pytest.mark.parametrize("technique", ["tile", "conventional"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_prediction_for_one_host_is_the_local_prediction(
    collective: CollectiveName, technique: TechniqueName
) -> None:
    it = predicted(collective, 1, technique=technique)
    alone = predict(collective, (256,), "1", bytes=2 << 20, machine=HOST, technique=technique)
    assert it.seconds == alone.seconds
    assert it.phases == alone.phases | dict.fromkeys(NETWORK_PHASES, 0)
    assert (it.technique, it.isa, it.exchange.bytes, it.network_share) == (technique, alone.isa, 0, 0)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_parts_and_phases_add_up_and_are_modelled(collective: CollectiveName) -> None:
    it = predicted(collective, 4)
    assert it.seconds == pytest.approx(sum(part.seconds for part in it.parts))
    assert it.seconds == pytest.approx(sum(it.phases.values()))
    assert list(it.phases) == [*PHASES, *NETWORK_PHASES]
    assert it.source == "modelled"
    assert it.exchange.seconds == pytest.approx(it.phases["network"] + it.phases["latency"])
    assert it.phases["network"] == pytest.approx(it.exchange.bytes / 1.25e9)
    assert it.phases["latency"] == pytest.approx(it.exchange.calls * HOST["network.latency_us"] * 1e-6)


@pytest.mark.parametrize("collective", BETWEEN_PES)
def test_bytes_between_hosts_follow_the_law_of_the_paper(collective: CollectiveName) -> None:
    sent = {hosts: predicted(collective, hosts).exchange.bytes * hosts / (hosts - 1) for hosts in (2, 4, 8, 16)}
    assert len(set(sent.values())) == 1
    assert all(before < after for before, after in pairwise(predicted(collective, n).seconds for n in (1, 2, 4, 8)))


def test_the_network_matters_to_alltoall_and_little_to_reductions() -> None:
    """As the paper says of figure 23b: reduced or not yet duplicated data is 1/256 of all data."""
    share = {name: predicted(name, 4).network_share for name in BETWEEN_PES}
    assert max(share, key=lambda name: share[name]) == "alltoall"
    assert share["alltoall"] > 0.5
    assert max(share[name] for name in BETWEEN_PES if name != "alltoall") < 0.2
    sent = {name: predicted(name, 4).exchange.bytes for name in BETWEEN_PES}
    assert sent["alltoall"] == 256 * sent["reduce_scatter"] == 256 * sent["allgather"] == 128 * sent["allreduce"]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_calls_of_no_bytes_exchange_nothing(collective: CollectiveName) -> None:
    it = predicted(collective, 4, bytes=0)
    assert (it.exchange.calls, it.exchange.bytes, it.network_share) == (0, 0, 0)
    assert {it.phases[name] for name in NETWORK_PHASES} == {0}


def test_parts_name_their_technique() -> None:
    for technique in ("tile", "pr+im", "auto"):
        options: dict[str, Any] = {"technique": technique, "machine": HOST, "scratch": 4 << 20}
        it = predicted("alltoall", 4, **options)
        assert it.exchange.technique is None
        for part in it.parts:
            if part != it.exchange:
                assert (
                    part.technique
                    == predict(cast("CollectiveName", part.name), (256,), "1", bytes=part.bytes, **options).technique
                )


def test_a_faster_network_shortens_only_the_exchange() -> None:
    fast = predicted("alltoall", 4, machine=HOST.with_values({"network.gb_s": 12.5, "network.latency_us": 0}))
    slow = predicted("alltoall", 4)
    assert fast.phases["network"] == pytest.approx(slow.phases["network"] / 10)
    assert {name: fast.phases[name] for name in PHASES} == {name: slow.phases[name] for name in PHASES}


@pytest.mark.parametrize(
    ("collective", "hosts", "changes", "message"),
    [
        ("alltoall", 3, {}, r"3 hosts .* make 768 members; alltoall needs bytes \(2097152\) divisible by 768\*8"),
        ("allreduce", 2, {"bytes": 12}, "multiple of 8|divisible by"),
        ("allreduce", 0, {}, r"hosts \(0\) must be between 1"),
        ("allsum", 2, {}, "collective 'allsum' is unknown"),
        ("allreduce", 2, {"technique": "tree"}, "allreduce over 2 hosts has a local reduce on each: .*tree is for"),
        ("allreduce", 2, {"machine": "nowhere"}, "machine 'nowhere' is unknown"),
    ],
)
def test_invalid_arguments_are_errors(
    collective: CollectiveName, hosts: int, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(pidcomm.Error, match=message):
        predicted(collective, hosts, **changes)
