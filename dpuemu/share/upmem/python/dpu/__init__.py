"""dpu: the Python API of the UPMEM SDK, on the emulated machine.

It needs only the standard library.
"""

from .driver import ALLOCATE_ALL, DpuError, DpuProgram, DpuSet, DpuSymbol, DpuVariable

__all__ = ["ALLOCATE_ALL", "DpuError", "DpuProgram", "DpuSet", "DpuSymbol", "DpuVariable"]
