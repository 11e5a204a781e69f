"""The functions stop and explain_fault of the emulator, which the API uses. On DIMMs both functions are None.

stop(dpu_set) ends the launch of a set. explain_fault(dpu_set) returns a sentence about the faulting PE. dpu_set is
`PeSet.dpu_set`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from pidcomm import _core

_dpuemu = import_module("dpuemu._dpuemu") if _core.IS_EMULATED else None

stop: Callable[[bytes], None] | None = _dpuemu.stop if _dpuemu else None
explain_fault: Callable[[bytes], str] | None = _dpuemu.explain_fault if _dpuemu else None
