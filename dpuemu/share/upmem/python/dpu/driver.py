"""Sets of DPUs, their programs and variables.

Arguments have the names of the UPMEM SDK. Differs from the SDK: the attributes of a set that are
named after symbols are found when they are used, `asm_source` is refused, and there are no
checkpoints.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import library
from .library import ALLOCATE_ALL, LIBRARY

__all__ = ["ALLOCATE_ALL", "DpuError", "DpuProgram", "DpuSet", "DpuSymbol", "DpuVariable"]

_FORMATS = {
    **{
        "int8": "b",
        "uint8": "B",
        "int16": "h",
        "uint16": "H",
        "int32": "i",
        "uint32": "I",
        "int64": "q",
        "uint64": "Q",
    },
    **{"float": "f", "double": "d"},
}


class DpuError(Exception):
    """Raised for an error of the API; the text is the sentence of the C API."""


def _check(status: int) -> None:
    if status != 0:
        sentence = LIBRARY.dpu_error_to_string(status)
        text = ctypes.string_at(sentence).decode(errors="replace")
        library.STANDARD.free(sentence)
        raise DpuError(text)


class DpuSymbol:
    """A symbol of a program: its name, and (address, size in bytes)."""

    def __init__(self, name: str, c_symbol: library.Symbol | tuple[int, int]) -> None:
        """Store both."""
        self.name = name
        self.c_symbol = (
            c_symbol if isinstance(c_symbol, library.Symbol) else library.Symbol(*c_symbol)
        )

    def value(self) -> int:
        """Return the address; MRAM starts at 0x08000000."""
        return int(self.c_symbol.address)

    def size(self) -> int:
        """Return the size in bytes."""
        return int(self.c_symbol.size)


class DpuProgram:
    """A program that is loaded."""

    def __init__(self, c_program: ctypes.c_void_p) -> None:
        """Store the handle of the C API."""
        self.c_program = c_program

    def get_symbol(self, symbol: str) -> DpuSymbol | None:
        """Return a symbol, or None if the program does not have it."""
        c_symbol = library.Symbol()
        status = LIBRARY.dpu_get_symbol(self.c_program, symbol.encode(), ctypes.byref(c_symbol))
        return DpuSymbol(symbol, c_symbol) if status == 0 else None


class DpuVariable:
    """The values of a variable: of one DPU, or a list with the values of each DPU.

    int8() ... uint64(), float() and double() return a number, or a memoryview if the variable has
    several elements.
    """

    def __init__(self, contents: list[memoryview]) -> None:
        """Store the bytes of each DPU."""
        self.contents = contents

    def data(self) -> Any:
        """Return the bytes."""
        return _only(self.contents)


def _only(values: Any) -> Any:
    return values[0] if len(values) == 1 else values


def _view(kind: str) -> Callable[[DpuVariable], Any]:
    def values(variable: DpuVariable) -> Any:
        return _only([_only(view.cast(_FORMATS[kind])) for view in variable.contents])  # type: ignore[call-overload]

    values.__name__ = kind
    values.__doc__ = f"Return the values as {kind}."
    return values


for _kind in _FORMATS:
    setattr(DpuVariable, _kind, _view(_kind))


class DpuSet:
    """A set of DPUs; use it in a `with` statement, or call free().

    nr_dpus or nr_ranks: what to allocate (ALLOCATE_ALL or none of the two: everything). binary,
    c_source: a program to load. log: a stream, or a list with one stream per DPU, that gets the
    output after each exec(). async_mode: whether copy() and exec() queue their work. Raises
    DpuError.
    """

    def __init__(
        self,
        nr_dpus: int | None = None,
        nr_ranks: int | None = None,
        profile: str = "",
        binary: Any = None,
        c_source: Any = None,
        asm_source: Any = None,
        log: Any = None,
        async_mode: bool | None = False,
        _part: library.Set | None = None,
    ) -> None:
        """Allocate the DPUs."""
        self._program: DpuProgram | None = None
        self._async_mode = bool(async_mode)
        self._log = None if isinstance(log, list) else log
        self._dpus: list[DpuSet] = []
        self._ranks: list[DpuSet] = []
        self._callbacks: dict[int, Any] = {}  # functions that C may still call
        self._failures: list[BaseException] = []  # of functions that C called
        self._lock = threading.Lock()
        if _part is not None:
            self.c_set = _part
            return
        if nr_dpus is not None and nr_ranks is not None:
            raise DpuError("a set has nr_dpus or nr_ranks, not both")
        self.c_set = library.Set()
        allocate, count = (
            (LIBRARY.dpu_alloc_ranks, nr_ranks)
            if nr_ranks is not None
            else (LIBRARY.dpu_alloc, nr_dpus)
        )
        _check(
            allocate(
                ALLOCATE_ALL if count is None else count, profile.encode(), ctypes.byref(self.c_set)
            )
        )
        try:
            for c_rank in library.members(self.c_set, "rank"):
                rank = self._part(c_rank)
                rank._ranks = [rank]
                for c_dpu in library.members(c_rank, "dpu"):
                    dpu = self._part(c_dpu)
                    dpu._dpus, dpu._ranks = [dpu], [rank]
                    rank._dpus.append(dpu)
                self._ranks.append(rank)
                self._dpus += rank._dpus
            if isinstance(log, list):
                if len(log) != len(self):
                    raise DpuError(f"log has {len(log)} streams; the set has {len(self)} DPUs")
                for dpu, stream in zip(self._dpus, log, strict=True):
                    dpu._log = stream
            if binary is not None or c_source is not None or asm_source is not None:
                self.load(binary, c_source, asm_source)
        except BaseException:
            self.free()
            raise

    def _part(self, c_set: library.Set) -> DpuSet:
        return DpuSet(log=self._log, async_mode=self._async_mode, _part=c_set)

    def __enter__(self) -> DpuSet:
        """Return the set."""
        return self

    def __exit__(self, *_: object) -> None:
        """Free the set."""
        self.free()

    def __iter__(self) -> Iterator[DpuSet]:
        """Return an iterator over the DPUs."""
        return iter(self._dpus)

    def __len__(self) -> int:
        """Return the number of DPUs."""
        return len(self._dpus)

    def __getattr__(self, name: str) -> DpuVariable:
        """Read the variable of the program that has this name."""
        symbol = self._symbol(name)
        if symbol is None:
            raise AttributeError(f"neither DpuSet nor the loaded program has {name}")
        size = symbol.size()
        contents = [memoryview(bytearray(size)) for _ in self._dpus]
        self.copy([view.obj for view in contents], symbol)
        return DpuVariable(contents)

    def __setattr__(self, name: str, value: Any) -> None:
        """Write the variable of the program that has this name, if there is one."""
        known = name.startswith("_") or name == "c_set"
        symbol = None if known else self._symbol(name)
        if symbol is None:
            super().__setattr__(name, value)
        else:
            self.copy(symbol, value)

    def _symbol(self, name: str) -> DpuSymbol | None:
        program = self.__dict__.get("_program")
        return None if program is None else program.get_symbol(name)

    def dpus(self) -> list[DpuSet]:
        """Return the DPUs, each as a set."""
        return self._dpus

    def ranks(self) -> list[DpuSet]:
        """Return the ranks, each as a set."""
        return self._ranks

    def free(self) -> None:
        """Free the DPUs."""
        _check(LIBRARY.dpu_free(self.c_set))

    def load(self, binary: Any = None, c_source: Any = None, asm_source: Any = None) -> DpuProgram:
        """Load a program: the path or the bytes of a binary, or C sources (a path, a stream or a
        list of both).
        """
        if asm_source is not None:
            raise DpuError("dpuemu cannot compile DPU assembly")
        if (binary is None) == (c_source is None):
            raise DpuError("load needs a binary or C sources, not both")
        handle = ctypes.c_void_p()
        with tempfile.TemporaryDirectory() as folder:
            if c_source is not None:
                binary = _compile(
                    c_source if isinstance(c_source, list) else [c_source], Path(folder)
                )
            if isinstance(binary, (str, os.PathLike)):
                _check(LIBRARY.dpu_load(self.c_set, os.fsencode(binary), ctypes.byref(handle)))
            else:
                content = bytes(binary)
                _check(
                    LIBRARY.dpu_load_from_memory(
                        self.c_set, content, len(content), ctypes.byref(handle)
                    )
                )
        program = DpuProgram(handle)
        for part in (self, *self._dpus, *self._ranks):
            part._program = program
        return program

    def copy(
        self,
        dst: Any,
        src: Any,
        size: int | None = None,
        offset: int = 0,
        async_mode: bool | None = None,
    ) -> None:
        """Copy between the host and the DPUs.

        One of dst and src is a symbol (DpuSymbol or str). The other one is a buffer, or a list with
        one buffer per DPU (None: the DPU does not take part). One buffer goes to all DPUs. size: in
        bytes, default the size of the buffers. offset: in bytes, in the symbol.
        """
        to_dpu = isinstance(dst, (DpuSymbol, str))
        if to_dpu == isinstance(src, (DpuSymbol, str)):
            raise DpuError("one of dst and src must be a symbol")
        symbol, host = (dst, src) if to_dpu else (src, dst)
        by_name = isinstance(symbol, str)
        flags = library.ASYNC if self._is_async(async_mode) else library.DEFAULT
        target = symbol.encode() if by_name else symbol.c_symbol
        buffers = host if isinstance(host, list) else [host]
        if (isinstance(host, list) or not to_dpu) and len(buffers) != len(self._dpus):
            raise DpuError(f"there are {len(buffers)} buffers; the set has {len(self)} DPUs")
        sizes = {memoryview(buffer).nbytes for buffer in buffers if buffer is not None}
        if len(sizes) > 1 or not sizes:
            raise DpuError(f"the buffers must have one size; they have {sorted(sizes)} bytes")
        length = sizes.pop()
        if size is not None and size > length:
            raise DpuError(f"the buffers have {length} bytes; size is {size}")
        length = length if size is None else size
        views = [None if buffer is None else _address(buffer, not to_dpu) for buffer in buffers]
        if to_dpu and not isinstance(host, list):
            call = LIBRARY.dpu_broadcast_to if by_name else LIBRARY.dpu_broadcast_to_symbol
            _check(call(self.c_set, target, offset, views[0], length, flags))
        else:
            for dpu, view in zip(self._dpus, views, strict=True):
                _check(LIBRARY.dpu_prepare_xfer(dpu.c_set, view))
            call = LIBRARY.dpu_push_xfer if by_name else LIBRARY.dpu_push_xfer_symbol
            direction = library.TO_DPU if to_dpu else library.FROM_DPU
            _check(call(self.c_set, direction, target, offset, length, flags))
        if flags == library.ASYNC:
            self._keep(views)

    def exec(self, log: Any = None, async_mode: bool | None = None) -> None:
        """Run the program, then write its output to `log`: a stream, a list or a dict; default:
        the set's log.
        """
        if self._is_async(async_mode):
            _check(LIBRARY.dpu_launch(self.c_set, library.ASYNCHRONOUS))
            return
        _check(LIBRARY.dpu_launch(self.c_set, library.SYNCHRONOUS))
        self._write_log(log, None)

    def log(self, stream: Any = None) -> None:
        """Write the output of the DPUs to `stream`, else to the set's log, else to standard
        output.
        """
        import sys

        self._write_log(stream, sys.stdout)

    def sync(self) -> None:
        """Wait for the queued work. Raises its first error."""
        try:
            self._raise_first(LIBRARY.dpu_sync(self.c_set))
        finally:
            with self._lock:
                self._callbacks.clear()

    def call(
        self,
        fn: Callable[[DpuSet, int, Any], None],
        arg: Any,
        async_mode: bool | None = None,
        is_blocking: bool = True,
        single_call: bool = False,
    ) -> None:
        """Call fn(rank, index, arg) for each rank, or once for the set.

        An exception of fn is raised here, or by sync() of the same set if the call is asynchronous.
        """
        flags = library.CALLBACK_ASYNC if self._is_async(async_mode) else 0
        flags |= (0 if is_blocking else library.CALLBACK_NONBLOCKING) | (
            library.CALLBACK_SINGLE_CALL if single_call else 0
        )

        is_queued = bool(flags & library.CALLBACK_ASYNC)
        failures: list[BaseException] = []  # of a call that is not queued

        def run(_: library.Set, index: int, __: object) -> int:
            try:
                fn(
                    self._ranks[index] if index < len(self._ranks) and not single_call else self,
                    index,
                    arg,
                )
            except BaseException as error:  # C cannot pass it on; call() or sync() raises it
                with self._lock:
                    (self._failures if is_queued else failures).append(error)
                return library.SYSTEM_ERROR
            return 0

        function = library.Callback(run)
        if is_queued:
            self._keep(function)
        status = LIBRARY.dpu_callback(self.c_set, function, None, flags)
        if failures:
            raise failures[0]
        _check(status)

    def _raise_first(self, status: int) -> None:
        """Raise the first exception of the queued functions of call(), else the error that the
        status names.
        """
        with self._lock:
            failures, self._failures = self._failures, []
        if failures:
            raise failures[0]
        _check(status)

    def _is_async(self, chosen: bool | None) -> bool:
        return self._async_mode if chosen is None else chosen

    def _keep(self, used_later: Any) -> None:
        """Keep an object that queued work uses until sync()."""
        with self._lock:
            self._callbacks[id(used_later)] = used_later

    def _write_log(self, log: Any, default: Any) -> None:
        if isinstance(log, list) and len(log) != len(self):
            raise DpuError(f"log has {len(log)} streams; the set has {len(self)} DPUs")
        chosen = (
            dict(zip(self._dpus, log, strict=True))
            if isinstance(log, list)
            else log
            if isinstance(log, dict)
            else {}
        )
        common = None if isinstance(log, (list, dict)) else log
        for dpu in self._dpus:
            stream = chosen.get(dpu) or common or dpu._log or default
            if stream is None:
                continue
            status, output = library.log_of(dpu.c_set)
            stream.write(output.decode(errors="replace"))
            _check(status)


def _address(buffer: Any, is_written: bool) -> Any:
    """Return a ctypes array over the buffer. A read-only source is copied."""
    view = memoryview(buffer).cast("B")
    if not view.readonly:
        return (ctypes.c_char * view.nbytes).from_buffer(view)
    if is_written:
        raise DpuError("a buffer that receives data is read-only")
    return ctypes.create_string_buffer(view.tobytes(), view.nbytes)


def _compile(sources: list[Any], folder: Path) -> str:
    paths = []
    for number, source in enumerate(sources):
        if hasattr(source, "read"):
            path = folder / f"source{number}.c"
            path.write_text(source.read())
            source = str(path)
        paths.append(os.fspath(source))
    compiler = Path(__file__).resolve().parents[4] / "bin" / "dpu-upmem-dpurte-clang"
    output = str(folder / "program")
    command = [str(compiler), "-O2", "-o", output, *paths]
    variables = {**os.environ, "DPUEMU_CHIP": LIBRARY.dpuemu_chip_name().decode()}
    process = subprocess.run(command, check=False, capture_output=True, text=True, env=variables)
    if process.returncode:
        raise DpuError(process.stderr.strip())
    return output
