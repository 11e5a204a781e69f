"""End all processes of an MPI program after an uncaught exception in one of them."""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from types import TracebackType

VARIABLE = "PIDCOMM_ABORT_MPI"
"""The environment variable with which `pidcomm hosts run` starts programs: ``import pidcomm`` then
calls `abort_mpi_if_uncaught`.
"""

FORWARDING_SECONDS = 0.3
"""Time in which the launcher forwards the traceback; it drops what an ended process leaves."""


@cache
def abort_mpi_if_uncaught() -> None:
    """Let an uncaught exception in this process end all processes of MPI, after its traceback.

    Otherwise this process waits in MPI_Finalize for the other processes, which wait for its
    messages.
    """
    print_exception = sys.excepthook

    def print_and_abort(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        print_exception(kind, error, traceback)
        mpi = sys.modules.get("mpi4py.MPI")
        if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
            return
        if mpi.COMM_WORLD.size > 1:
            sys.stderr.flush()
            time.sleep(FORWARDING_SECONDS)
            mpi.COMM_WORLD.Abort(1)

    sys.excepthook = print_and_abort


if VARIABLE in os.environ:
    abort_mpi_if_uncaught()
