"""Sets and hypercubes that tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pidcomm
import pytest


@pytest.fixture(scope="module")
def pes() -> Iterator[pidcomm.PeSet]:
    """Two ranks: 128 PEs."""
    with pidcomm.allocate(pes=128) as pe_set:
        yield pe_set


@pytest.fixture
def cube(pes: pidcomm.PeSet) -> pidcomm.Hypercube:
    """64 PEs as 8x8."""
    return pes.hypercube(8, 8)
