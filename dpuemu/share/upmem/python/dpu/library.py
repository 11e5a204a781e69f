"""libdpuemu's C API for ctypes: the structures of dpu_types.h, and the functions that driver.py
calls.
"""

from __future__ import annotations

import ctypes
import runpy
from pathlib import Path

ALLOCATE_ALL = 2**32 - 1
TO_DPU, FROM_DPU = 0, 1
DEFAULT, ASYNC = 0, 2  # dpu_xfer_flags_t
ASYNCHRONOUS, SYNCHRONOUS = 0, 1  # dpu_launch_policy_t
CALLBACK_ASYNC, CALLBACK_NONBLOCKING, CALLBACK_SINGLE_CALL = 1, 2, 4
SYSTEM_ERROR = 2  # DPU_ERR_SYSTEM


class Set(ctypes.Structure):
    """struct dpu_set_t. `body` holds the DPU, or the number and the address of the ranks."""

    _fields_ = [("kind", ctypes.c_int), ("body", ctypes.c_uint64 * 2)]


class Symbol(ctypes.Structure):
    """struct dpu_symbol_t."""

    _fields_ = [("address", ctypes.c_uint32), ("size", ctypes.c_uint32)]


class RankIterator(ctypes.Structure):
    """struct dpu_set_rank_iterator_t."""

    _fields_ = [
        *[("set", ctypes.POINTER(Set)), ("count", ctypes.c_uint32), ("next_idx", ctypes.c_uint32)],
        *[("has_next", ctypes.c_bool), ("next", Set)],
    ]


class DpuIterator(ctypes.Structure):
    """struct dpu_set_dpu_iterator_t."""

    _fields_ = [
        *[
            ("rank_iterator", RankIterator),
            ("count", ctypes.c_uint32),
            ("next_idx", ctypes.c_uint32),
        ],
        *[("has_next", ctypes.c_bool), ("next", Set)],
    ]


Callback = ctypes.CFUNCTYPE(ctypes.c_int, Set, ctypes.c_uint32, ctypes.c_void_p)

_PROGRAM = ctypes.c_void_p
_NAMED_TRANSFER = [ctypes.c_char_p, ctypes.c_uint32]
_FUNCTIONS = {
    "dpu_alloc": [ctypes.c_uint32, ctypes.c_char_p, ctypes.POINTER(Set)],
    "dpu_alloc_ranks": [ctypes.c_uint32, ctypes.c_char_p, ctypes.POINTER(Set)],
    "dpu_free": [Set],
    "dpu_load": [Set, ctypes.c_char_p, ctypes.POINTER(_PROGRAM)],
    "dpu_load_from_memory": [Set, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(_PROGRAM)],
    "dpu_get_symbol": [_PROGRAM, ctypes.c_char_p, ctypes.POINTER(Symbol)],
    "dpu_prepare_xfer": [Set, ctypes.c_void_p],
    "dpu_push_xfer": [Set, ctypes.c_int, *_NAMED_TRANSFER, ctypes.c_size_t, ctypes.c_int],
    "dpu_push_xfer_symbol": [
        Set,
        ctypes.c_int,
        Symbol,
        ctypes.c_uint32,
        ctypes.c_size_t,
        ctypes.c_int,
    ],
    "dpu_broadcast_to": [Set, *_NAMED_TRANSFER, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int],
    "dpu_broadcast_to_symbol": [
        Set,
        Symbol,
        ctypes.c_uint32,
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
    ],
    "dpu_launch": [Set, ctypes.c_int],
    "dpu_sync": [Set],
    "dpu_callback": [Set, Callback, ctypes.c_void_p, ctypes.c_int],
    "dpu_log_read": [Set, ctypes.c_void_p],
}


def _load() -> ctypes.CDLL:
    package = runpy.run_path(str(Path(__file__).resolve().parents[4] / "compiler" / "package.py"))
    folder = package["find_library"]()
    library = ctypes.CDLL(str(sorted(folder.glob("libdpuemu.so*"))[-1]))
    for name, arguments in _FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, ctypes.c_int
    library.dpu_error_to_string.restype = ctypes.c_void_p
    library.dpuemu_chip_name.restype = ctypes.c_char_p
    for name, iterator in (("rank", RankIterator), ("dpu", DpuIterator)):
        getattr(library, f"dpu_set_{name}_iterator_from").argtypes = [ctypes.POINTER(Set)]
        getattr(library, f"dpu_set_{name}_iterator_from").restype = iterator
        getattr(library, f"dpu_set_{name}_iterator_next").argtypes = [ctypes.POINTER(iterator)]
        getattr(library, f"dpu_set_{name}_iterator_next").restype = None
    return library


LIBRARY = _load()
STANDARD = ctypes.CDLL(None)  # the C library
STANDARD.free.argtypes = [ctypes.c_void_p]
STANDARD.open_memstream.argtypes = [
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
]
STANDARD.open_memstream.restype = ctypes.c_void_p
STANDARD.fclose.argtypes = [ctypes.c_void_p]


def members(of: Set, kind: str) -> list[Set]:
    """Return the ranks or the DPUs of a set; kind: rank or dpu."""
    sets = []
    iterator = getattr(LIBRARY, f"dpu_set_{kind}_iterator_from")(ctypes.byref(of))
    while iterator.has_next:
        sets.append(Set.from_buffer_copy(iterator.next))
        getattr(LIBRARY, f"dpu_set_{kind}_iterator_next")(ctypes.byref(iterator))
    return sets


def log_of(dpu: Set) -> tuple[int, bytes]:
    """Return the status of dpu_log_read, and the output of the DPU's program."""
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    stream = STANDARD.open_memstream(ctypes.byref(text), ctypes.byref(size))
    if not stream:
        return SYSTEM_ERROR, b""
    status = LIBRARY.dpu_log_read(dpu, stream)
    STANDARD.fclose(stream)
    output = ctypes.string_at(text, size.value)
    STANDARD.free(text)
    return status, output
