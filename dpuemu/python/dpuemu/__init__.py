"""Emulate the UPMEM SDK on machines without DIMMs: settings of the emulated machine, and reports of
launches.

An example:

    machine = dpuemu.machine(ranks=4)          # 256 PEs
    with pidcomm.allocate() as pes:
        pes.load("kernel.c", tasklets=16)
        pes.launch()
        print(dpuemu.report(pes).modelled_seconds)
"""

from __future__ import annotations

try:
    from dpuemu._dpuemu import VERSION as __version__
except ModuleNotFoundError as error:
    raise ImportError("this installation was built for an UPMEM SDK and has no emulator") from error
from dpuemu.errors import ArgumentError, Error
from dpuemu.reports import LaunchReport, report
from dpuemu.settings import Machine, machine, resident_bytes, set_transfer

__all__ = [
    "ArgumentError",
    "Error",
    "LaunchReport",
    "Machine",
    "__version__",
    "machine",
    "report",
    "resident_bytes",
    "set_transfer",
]


def __dir__() -> list[str]:
    return __all__
