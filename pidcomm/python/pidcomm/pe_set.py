"""Sets of PEs, and the programs that they run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakSet, ref

from numpy.typing import DTypeLike

from pidcomm import _core, emulated
from pidcomm.arguments import MAX_COUNT, as_flag, as_integer, as_text
from pidcomm.axes import OrderName, axes_of
from pidcomm.batches import recording, refuse_in_stream
from pidcomm.buffers import Block, Buffer
from pidcomm.compiling import compiled, compiler_options, header_of
from pidcomm.debug_types import DebugTypes
from pidcomm.errors import ArgumentError, Error, shown
from pidcomm.hypercube import Hypercube
from pidcomm.notebook import set_html
from pidcomm.programs import (
    HeapWindows,
    PathText,
    Symbol,
    as_files,
    is_source,
    is_source_text,
)
from pidcomm.requests import Request
from pidcomm.streams import Stream


class PeSet:
    """Own PEs that `pidcomm.allocate` allocated, until `free`, the end of a `with` block or garbage
    collection.

    PEs run programs: `load` a program, write and read its variables (`symbol`), and `launch` it.
    Row p of a variable or of a `buffer` belongs to PE p of the set, which is PE p - first of a
    `hypercube` from PE `first` on, unless the hypercube has the order of DPU_FOREACH. Collectives
    can run between launches. Collectives work on the MRAM heap, the MRAM that the program does not
    use (``DPU_MRAM_HEAP_POINTER`` in the program). Offsets of collectives count from the start of
    the heap. On machines with disabled PEs, rows have the order of the largest hypercube of the
    set. PEs that no hypercube can use have the last rows, in the order of DPU_FOREACH.
    """

    def __init__(self, core: _core.Set) -> None:
        self._core = core
        self._requests: WeakSet[Request[Any]] = WeakSet()  # non-blocking calls on the set
        self._blocks: WeakSet[Block] = WeakSet()  # of all buffers on the set
        self._all_usable: ref[Hypercube] | None = None  # the hypercube of `buffer`; it owns the set
        self._heap_windows = HeapWindows()
        self._types = DebugTypes(b"")

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return self._core.pes

    @property
    def ranks(self) -> int:
        """Number of ranks that hold the PEs."""
        return self._core.ranks

    @property
    def usable_pes(self) -> int:
        """Number of PEs of the largest hypercube of the set: the PEs in complete entangled groups,
        and those that a smaller last group can add.

        Raises Error if the set is freed.
        """
        return self._core.usable_pes

    @property
    def is_freed(self) -> bool:
        """Whether `free` has been called."""
        return self._core.is_freed

    def hypercube(
        self, /, *lengths: int, first: int = 0, order: OrderName = "chips", **axes: int
    ) -> Hypercube:
        """Arrange product(lengths) PEs as a hypercube, from PE number `first` of the set on; the
        first axis ("x") varies fastest.

        first: a multiple of 8 (64 for ``order="foreach"``). axes: lengths by name in place of
        `lengths`, such as ``row=32, column=32``. order: of PE numbers. ``"chips"``: the chip varies
        fastest, then the bank, then the rank. ``"foreach"``, as DPU_FOREACH: the bank, then the
        chip, then the rank. Then the PEs fill whole ranks, no PE of the set before their end is
        missing, and the product of the lengths up to each axis is 1, 2, 4, 8, 16, 32 or a multiple
        of 64. The rows of `symbol` and `buffer` always follow the default numbers; those of the
        hypercube's `array` and `empty` have its order. No axis can have the name first or order.

        Raises ArgumentError if the set has too few PEs, a length is 0, `first` is no such multiple,
        `lengths` and `axes` are both given, or the shape does not fit `order`. Raises Error if the
        set is freed.
        """
        return Hypercube(
            self,
            self._core,
            self._requests,
            self._blocks,
            self._heap_windows,
            axes_of(lengths, axes, order),
            as_integer("first", first, high=MAX_COUNT),
        )

    # ---- PE programs

    def load(
        self,
        program: PathText | Sequence[PathText],
        *,
        tasklets: int | None = None,
        stack_bytes: int | None = None,
        options: Sequence[str] = (),
        buffers: Sequence[Buffer] = (),
    ) -> None:
        """Load a program on all PEs: a program file, one or several C files, or C source text.

        program: the path of a compiled program; one or more paths that end in .c; or C source text,
        a str with a line break or a brace. Sources are compiled first, with -O2 unless options name
        another level. tasklets, stack_bytes:
        NR_TASKLETS and STACK_SIZE_DEFAULT for sources (default: 1 and 1024 bytes). options:
        additional options of gcc. buffers: for a buffer with name ``grad`` and dtype float32, the
        sources have ``__mram_ptr float *const grad``, its number of elements ``grad_elements`` and
        its bytes with padding to words ``grad_bytes``.

        Buffers keep their bytes; a buffer that the variables of the program reach is lost, and its
        calls raise Error. If the program has another start of the heap, collectives that read
        a window at an offset that was written before raise ArgumentError until a launch.
        Load only programs that you trust: on emulated DIMMs, a program runs with all rights of this
        process. All variables take their initial values; the rest of MRAM keeps its bytes. Warnings
        of the compiler become Python warnings.

        Raises ArgumentError if `program` is not a program, or if the compiler refuses the sources;
        the error then has the compiler's messages. Raises Error while PEs run or if the set is
        freed. After an error the old program is still loaded. Cost: a run of gcc for sources.
        """
        self._load(program, tasklets, stack_bytes, options, buffers)

    def _load(
        self,
        program: PathText | Sequence[PathText],
        tasklets: int | None,
        stack_bytes: int | None,
        options: Sequence[str],
        buffers: Sequence[Buffer],
    ) -> None:
        """Load a program for a method that the user calls, at whose call warnings point."""
        words = compiler_options(tasklets, stack_bytes, options)
        header = header_of(buffers, self._core)
        if isinstance(program, str) and is_source_text(program):
            self._load_sources(program, words, header)
            return
        files = as_files(program)
        if is_source(files[0]):
            self._load_sources(files, words, header)
            return
        if words or header:
            raise ArgumentError(
                f"{files[0]} is compiled already: tasklets, stack_bytes, options and buffers are"
                " for sources"
            )
        self._load_file(os.fspath(files[0]))

    def launch(self, *, wait: bool = True) -> None:
        """Run the loaded program on all PEs.

        wait: if False, the call waits only for earlier collectives, and method `wait` waits for the
        end of the launch.
        Before this end, calls that use the PEs wait or raise Error.

        Raises Error if no program is loaded, if the PEs run already, and if PEs fault; the message
        then describes one of the faulting PEs. On emulated DIMMs, Ctrl-C stops the PEs, and
        `dpuemu.report` describes the launch. A PE in an endless loop faults after
        ``dpuemu.Machine.patience_seconds``. On DIMMs, Ctrl-C takes effect when the PEs have ended.
        """
        refuse_in_stream("PeSet.launch")
        self._core.launch(as_flag("wait", wait), emulated.stop, emulated.explain_fault)
        self._heap_windows.launch()

    def wait(self) -> None:
        """Wait for PEs that were launched with wait=False.

        Raises Error if PEs fault, as `launch` does, and if nothing has been launched.
        """
        self._core.sync(emulated.stop, emulated.explain_fault)

    @contextmanager
    def stream(self, rank_groups: int | None = None, *, parts: int = 1) -> Iterator[Stream]:
        """Record the steps in a ``with`` block as a `Stream`, and run it at the end of the block.

        Records `Stream.launch`, `Stream.write`, `Stream.call`, and the collectives, scans and
        movements that this thread calls on hypercubes of the set. They return their buffer or host
        array, which is filled at the end; calls on byte windows without a host array return None.
        All other methods run at once. After an exception in the block, no step runs.

        rank_groups: the ranks are divided into this number of groups, which run at different times;
        it divides their number. None: the library chooses. parts: the largest number of parts into
        which launches, allreduce, reduce and broadcast are cut.

        Raises ArgumentError for calls that `Hypercube.batch` refuses, except byte windows, and for
        calls on other sets, on `Hypercube.arrays` and over hosts. Raises Error if not all PEs of
        the ranks are in the set and `rank_groups` is above 1.
        """
        stream = Stream(self._core, self.symbol, self._heap_windows, rank_groups, parts)
        with recording(self._core, stream):
            yield stream
        stream.run()

    def symbol(self, name: str) -> Symbol:
        """Return the variable `name` of the loaded program. The variable can be written and read as
        arrays.

        ``"__sys_used_mram_end"`` names the MRAM heap. Raises ArgumentError if the program has no
        such symbol, Error if no program is loaded.
        """
        return Symbol(self._core, name, self._types)

    def buffer(self, name: str, shape: int | Sequence[int], dtype: DTypeLike) -> Buffer:
        """Return a new buffer: an array of `shape` and `dtype` in the MRAM of every usable PE.

        name: for error sentences and PE programs. Row p belongs to PE p. Raises the errors of
        `Hypercube.empty`, and Error if no hypercube is possible.
        """
        cube = None if self._all_usable is None else self._all_usable()
        if cube is None:
            cube = self.hypercube(self.usable_pes)
            self._all_usable = ref(cube)
        return cube.empty(shape, dtype, name=name)

    def logs(self) -> list[str]:
        """Return the output that earlier calls have not returned: one str per PE, in the order of
        rows.

        Raises Error while PEs run and if no program is loaded.
        """
        return [self.log(pe) for pe in range(self.pes)]

    def log(self, pe: int) -> str:
        """Return the output of PE number pe that earlier calls have not returned.

        If the PE has printed more than its log holds, warns with a RuntimeWarning. Raises
        ArgumentError if pe is out of range, and Error as `logs` does.
        """
        text, is_cut = self._core.log(as_integer("pe", pe, high=self.pes - 1))
        if is_cut:
            warnings.warn(f"PE {pe} printed more than its log holds", RuntimeWarning, stacklevel=2)
        return text.decode(errors="replace")

    def _load_sources(
        self, sources: str | Sequence[Path], words: Sequence[str], header: str
    ) -> None:
        with compiled(sources, words, header) as (path, messages):
            self._load_file(os.fspath(path))
        if messages:
            warnings.warn(messages, stacklevel=4)

    def _load_file(self, path: str) -> None:
        self._core.load(as_text("path of the program", path))
        self._types = DebugTypes(Path(path).read_bytes())
        heap = self._core.symbol(_core.HEAP_NAME)[0]
        self._heap_windows.load(heap)
        for block in list(self._blocks):
            if block.address < heap:
                block.lost = (
                    f"buffer {block.name} begins at address {block.address:#x}, but the variables"
                    f" of a program that was loaded later end at {heap:#x}: they have overwritten"
                    " the buffer"
                )

    @property
    def dpu_set(self) -> bytes:
        """Bytes of the set's ``struct dpu_set_t``, for other extension modules.

        Raises Error if the set is freed.
        """
        return self._core.dpu_set

    def free(self) -> None:
        """Free the PEs and the memory of their MRAM. Waits for running collectives.

        Afterwards, calls on hypercubes of the set raise Error. Freeing a set twice is allowed.
        Raises Error if a `Request` on the set has not been waited for.
        """
        self._core.free()

    def __enter__(self) -> PeSet:
        """Return the set."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for requests and free the set.

        Raises the first error of a request unless the block raised an error.
        """
        first: Error | None = None
        for request in list(self._requests):
            try:
                request.wait()
            except Error as failure:
                first = first or failure
        self.free()
        if first is not None and kind is None:
            raise first

    def __repr__(self) -> str:
        """Report the numbers of PEs and ranks, and whether the set is freed."""
        ranks = f"{self.ranks} rank{'' if self.ranks == 1 else 's'}"
        return f"<PeSet of {self.pes} PEs in {ranks}{', freed' if self.is_freed else ''}>"

    def _repr_html_(self) -> str:
        usable_pes = 0 if self.is_freed else self.usable_pes
        return set_html(repr(self), self.pes, self.ranks, usable_pes)


def allocate(
    pes: int | None = None, *, ranks: int | None = None, profile: str | None = None
) -> PeSet:
    """Allocate `pes` PEs, or `ranks` whole ranks, or by default all free PEs.

    profile: settings for the UPMEM SDK, as "key=value,key=value". A set occupies whole ranks: a set
    of 8 PEs occupies one rank.

    Raises ArgumentError if a number is 0, if both numbers are given, or if the profile is
    malformed. Raises Error if too few PEs are free. Emulated MRAM uses host memory from its first
    access, up to 64 MiB per PE.
    """
    if pes is not None and ranks is not None:
        raise ArgumentError(f"give pes ({shown(pes)}) or ranks ({shown(ranks)}), not both")
    if profile is not None:
        as_text("profile", profile)
    pes_wanted = 0 if pes is None else as_integer("pes", pes, 1, MAX_COUNT - 1)
    ranks_wanted = 0 if ranks is None else as_integer("ranks", ranks, 1, MAX_COUNT - 1)
    return PeSet(_core.Set(pes_wanted, ranks_wanted, profile))
