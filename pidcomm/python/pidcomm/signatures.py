"""Keyword arguments of the collectives. Type checkers read them in the overloads of `Hypercube`."""

from __future__ import annotations

from typing import TypedDict

from numpy.typing import DTypeLike
from typing_extensions import Required

from pidcomm.arguments import ArrayInput, ArrayOutput, Options
from pidcomm.buffers import Buffer
from pidcomm.operators import AnyOp
from pidcomm.programs import Window


class AnyArguments(TypedDict, total=False):
    """The arguments of all collectives."""

    options: Required[Options]
    bytes: int | None
    src: Window
    dst: Window
    dtype: DTypeLike
    op: AnyOp | None
    host: ArrayInput | None
    out: ArrayOutput | None


class BufferMoved(Options, total=False):
    """Arguments of collectives that fill a buffer, without a reduction."""

    out: Buffer | None


class BufferReduced(BufferMoved, total=False):
    """Arguments of reductions that fill a buffer."""

    op: AnyOp


class BufferToHost(Options, total=False):
    """Arguments of collectives from a buffer to host rows, without a reduction."""

    out: ArrayOutput | None


class BufferReducedToHost(BufferToHost, total=False):
    """Arguments of reductions from a buffer to host rows."""

    op: AnyOp


class Moved(Options, total=False):
    """Arguments of collectives from MRAM to MRAM without a reduction."""

    bytes: Required[int]
    src: Window
    dst: Window
    dtype: DTypeLike


class Reduced(Options, total=False):
    """Arguments of reductions from MRAM to MRAM."""

    bytes: Required[int]
    src: Window
    dst: Window
    dtype: Required[DTypeLike]
    op: AnyOp


class FromHost(Options, total=False):
    """Arguments of collectives from host rows to MRAM."""

    host: Required[ArrayInput]
    bytes: int | None
    dst: Window


class ToHost(Options, total=False):
    """Arguments of collectives from MRAM to host rows without a reduction."""

    bytes: Required[int]
    src: Window
    dtype: DTypeLike
    out: ArrayOutput | None


class RootedFromHost(Options, total=False):
    """Arguments of collectives over hosts from the rows of host `root` to MRAM."""

    host: ArrayInput | None
    bytes: int | None
    dst: Window
    dtype: DTypeLike
    root: int


class RootedToHost(ToHost, total=False):
    """Arguments of collectives over hosts from MRAM to the rows of host `root` without a
    reduction.
    """

    root: int


class ReducedToHost(Options, total=False):
    """Arguments of reductions from MRAM to host rows."""

    bytes: Required[int]
    src: Window
    dtype: Required[DTypeLike]
    op: AnyOp
    out: ArrayOutput | None


class RootedReducedToHost(ReducedToHost, total=False):
    """Arguments of reductions over hosts from MRAM to the rows of host `root`."""

    root: int
