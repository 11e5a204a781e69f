"""Functions that exist on emulated DIMMs only; on DIMMs both are None. No other module of the API uses the emulator.

stop(dpu_set): end the launch of a set. explain_fault(dpu_set): return a sentence about a PE in fault. Both take
`PeSet.dpu_set`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from pidcomm import _core

_dpuemu = import_module("dpuemu._dpuemu") if _core.IS_EMULATED else None

stop: Callable[[bytes], None] | None = _dpuemu.stop if _dpuemu else None
explain_fault: Callable[[bytes], str] | None = _dpuemu.explain_fault if _dpuemu else None
