"""The figure of the paper on allgather over a memory pool."""

from __future__ import annotations

from typing import Any

import pidcomm.model
from pidcomm_studies.papers.figure import series_of
from pidcomm_studies.papers.imex import figures


def test_the_model_of_imex_follows_from_the_links() -> None:
    gains: dict[Any, float] = {}
    machine = pidcomm.model.load_machine("isca24")
    for point in figures.modelled(machine):
        assert point.source == "modelled"
        facts = point.facts
        assert point.value == facts["messages_us"] / facts["pool_us"]
        gains[point.panel, facts["hosts"], facts["ppn"], facts["size_bytes"], point.series] = (
            point.value
        )
    series = f"{figures.MESSAGES[0].name} over {figures.POOLS[0].name}"
    mib = 1 << 20
    by_hosts = [gains["nodes", hosts, 1, mib, series] for hosts in (2, 4, 8, 10)]
    # Beyond 4 hosts the devices limit the ports.
    assert by_hosts[0] < by_hosts[1] > by_hosts[2] > by_hosts[3] > 1
    by_ppn = [gains["ppn", 2, ppn, mib, series] for ppn in (1, 2, 4, 6)]
    assert by_ppn == sorted(by_ppn)
    wide = machine.with_values({"pool.devices": 100})
    more = list(series_of(figures.modelled(wide), "nodes", series).values())
    assert more == sorted(more)
