"""Passes over the memory of PEs with which collectives are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pidcomm import _core
from pidcomm._rows import CopyOrderName
from pidcomm.arguments import (
    as_bytes,
    as_flag,
    as_integer,
    option_codes,
    output_rows,
    row_of,
)
from pidcomm.errors import ArgumentError, shown
from pidcomm.tables import COPY_ORDERS, WORD_BYTES

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm.arguments import Options

__all__: list[str] = []


class MeasuredPasses:
    """The measured passes of `Hypercube`."""

    _core: _core.Cube
    _pes: int

    def stream_limit(
        self,
        bytes_read: int,
        bytes_written: int,
        *,
        src: int = 0,
        dst: int = 0,
        copy_order: CopyOrderName = "sequential",
        **options: Unpack[Options],
    ) -> tuple[float, int]:
        """Time a pass over memory that reads bytes_read and writes bytes_written bytes of every PE,
        without other work.

        The pass reads the window at offset `src` of the heap and overwrites the window at `dst`.
        copy_order: a name of ``pidcomm.COPY_ORDERS``, the order in which the pass visits memory.
        Returns seconds, and the sum of bytes read and written over all PEs.
        """
        return self._core.stream_limit(
            row_of(COPY_ORDERS, "copy_order", copy_order, "ERR_OPTION").code,
            as_integer("bytes_read", bytes_read),
            as_integer("bytes_written", bytes_written),
            as_integer("src", src),
            as_integer("dst", dst),
            option_codes(options),
        )

    def push_xfer(self, rows: NDArray[np.uint8], offset: int = 0, *, to_pes: bool) -> float:
        """Time one dpu_push_xfer between `rows`, shape (pes, bytes), and the PEs at `offset`.
        Return seconds.

        to_pes: True copies `rows` to the PEs; False fills `rows`. The offset and the bytes of a row
        are multiples of 8.
        """
        if not isinstance(rows, np.ndarray) or rows.ndim != 2:
            raise ArgumentError(
                f"rows must be an array of shape ({self._pes}, bytes), not {shown(rows)}",
                "ERR_HOST_BUFFER",
            )
        rows = output_rows(rows, (self._pes, rows.shape[1]), np.uint8)
        offset = as_integer("offset", offset)
        if (offset | rows.shape[1]) % WORD_BYTES:
            raise ArgumentError(
                f"offset {offset} and rows of {rows.shape[1]} bytes must be multiples of"
                f" {WORD_BYTES}",
                "ERR_WINDOW",
            )
        return self._core.push_xfer(as_flag("to_pes", to_pes), offset, as_bytes(rows))
