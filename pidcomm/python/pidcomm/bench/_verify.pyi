"""Types of the extension module; see python/src/verify.cpp."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Bytes: TypeAlias = NDArray[np.uint8]

class Problem:
    def __init__(
        self,
        collective: int,
        axis_len: Sequence[int],
        mask: str,
        bytes: int,
        type: int,
        op: int,
        operation: str,
        factor: float,
    ) -> None: ...
    def rows_before(self) -> tuple[int, int, bool]: ...
    def rows_after(self) -> tuple[int, int, bool]: ...
    def expected(self, before: _Bytes, after: _Bytes) -> None: ...
    def check(self, before: _Bytes, got: _Bytes) -> tuple[int, str]: ...

class Fill:
    distinct: Fill
    exact: Fill
    special: Fill
    rounding: Fill

def members(axis_len: Sequence[int], mask: str) -> list[list[int]]: ...
def move(
    messages: Sequence[Sequence[int]], row_bytes: int, before: _Bytes, after: _Bytes
) -> None: ...
def fill_for(takes_op: bool, type: int, op: int) -> Fill: ...
def fill(kind: Fill, type: int, op: int, seed: int, row_bytes: int, rows: _Bytes) -> None: ...
def is_defined(op: int, type: int) -> bool: ...
def host_copy(destination: _Bytes, source: _Bytes, threads: int) -> float: ...
