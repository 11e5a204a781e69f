"""The figure of the paper on allgather over a memory pool."""

from __future__ import annotations

from typing import Any

import pidcomm.model
from pidcomm_studies.papers.imex import figures as figure_imex


def test_the_model_of_imex_follows_from_the_links() -> None:
    gains: dict[Any, float] = {}
    for gain in figure_imex.modelled():
        assert gain.source == "modelled"
        gains[gain.axis, gain.hosts, gain.ppn, gain.size_bytes, gain.messages, gain.pool] = (
            gain.gain
        )
    tcp, cxl, mib = figure_imex.MESSAGES[0].name, figure_imex.POOLS[0].name, 1 << 20
    by_hosts = [gains["nodes", hosts, 1, mib, tcp, cxl] for hosts in (2, 4, 8, 10)]
    assert (
        by_hosts[0] < by_hosts[1] > by_hosts[2] > by_hosts[3] > 1
    )  # beyond 4 hosts the devices limit the ports
    by_ppn = [gains["ppn", 2, ppn, mib, tcp, cxl] for ppn in (1, 2, 4, 6)]
    assert by_ppn == sorted(by_ppn)
    wide = pidcomm.model.load_machine("isca24").with_values({"pool.devices": 100})
    key = ("nodes", tcp, cxl)
    more = [it.gain for it in figure_imex.modelled(wide) if (it.axis, it.messages, it.pool) == key]
    assert more == sorted(more)
