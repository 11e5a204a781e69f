"""Sets, hypercubes and settings of the emulated machine that tests share."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import dpuemu
import pidcomm

needs_emulated_access = pytest.mark.skipif(
    "PIDCOMM_TEST_SDK_ACCESS" in os.environ,
    reason="the SDK's rank access refuses this, or does not return early",
)


@pytest.fixture(scope="module")
def pes() -> Iterator[pidcomm.PeSet]:
    """Two ranks: 128 PEs."""
    with pidcomm.allocate(pes=128) as pe_set:
        yield pe_set


@pytest.fixture
def cube(pes: pidcomm.PeSet) -> pidcomm.Hypercube:
    """64 PEs as 8x8."""
    return pes.hypercube(8, 8)


@pytest.fixture
def strict_machine() -> Iterator[None]:
    """A strict machine: addresses and sizes that hardware masks are faults, as are stacks above
    their declared size.
    """
    dpuemu.machine(strict=True)
    yield
    dpuemu.machine(strict=False)


@contextmanager
def ctrl_c() -> Iterator[None]:
    """Interrupt the body of the with statement after 0.3 s.

    The body must raise KeyboardInterrupt.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            yield
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
