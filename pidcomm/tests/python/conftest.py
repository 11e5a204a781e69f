"""Fixtures that tests share, and a check of the library under test."""

from __future__ import annotations

import os

from emulated_machine import cube as cube
from emulated_machine import pes as pes
from emulated_machine import strict_machine as strict_machine

import pidcomm

os.environ["PIDCOMM_CHOICES"] = ""  # no test depends on the user's choices


def pytest_sessionstart() -> None:
    """Check which library is under test: with the SDK's rank access it flushes, with the
    emulator's it does not.
    """
    with pidcomm.allocate(pes=8) as pe_set:
        trace = pe_set.hypercube(8).alltoall("1", bytes=64, dst=64)
    assert (trace.coherence == "hardware") == ("PIDCOMM_TEST_SDK_ACCESS" in os.environ)
