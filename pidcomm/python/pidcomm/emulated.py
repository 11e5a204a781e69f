"""The functions of the emulator that the API uses. On DIMMs, stop and explain_fault are None.

stop(dpu_set) ends the launch of a set. explain_fault(dpu_set) returns a sentence about the faulting
PE. dpu_set is `PeSet.dpu_set`. compiler_variables() returns the environment variables that make the
compiler compile for the chip of the emulated machine.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from pidcomm import _core

_dpuemu = import_module("dpuemu._dpuemu") if _core.IS_EMULATED else None

stop: Callable[[bytes], None] | None = _dpuemu.stop if _dpuemu else None
explain_fault: Callable[[bytes], str] | None = _dpuemu.explain_fault if _dpuemu else None


def compiler_variables() -> dict[str, str]:
    """Return the variables; none on DIMMs."""
    return {"DPUEMU_CHIP": _dpuemu.chip_name()} if _dpuemu else {}
