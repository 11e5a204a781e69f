"""A user's program that type checkers must accept: mypy checks it with the tests, and a test
runs it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pidcomm


class Tensor:
    """A tensor that supports DLPack."""

    def __init__(self, array: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        self.array = array

    def __dlpack__(self, **how: Any) -> Any:
        """Return the tensor in a capsule."""
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the CPU."""
        return (1, 0)


def main(wait: bool = True) -> int:
    """Use arrays, buffers, tensors and requests; return the number of wrong elements."""
    x = np.arange(64 * 16, dtype=np.int32).reshape(64, 16)
    wrong = 0
    with pidcomm.allocate(pes=64) as pes:
        cube = pes.hypercube(8, 8)
        cube.write(Tensor(x))
        trace: pidcomm.Trace = cube.alltoall("10", bytes=64, dst=64, dtype=x.dtype)
        request: pidcomm.Request[pidcomm.Trace] = cube.alltoall(
            "10", bytes=64, src=64, dst=128, wait=False
        )
        moved: pidcomm.Trace = request.wait()
        wrong += trace.mram_bytes_read != moved.mram_bytes_read
        rows = bytearray(x.nbytes)
        cube.read(16 * 4, np.uint8, offset=128, out=memoryview(rows).cast("B", (64, 64)))
        wrong += rows != x.tobytes()
        either = cube.reduce("11", bytes=64, src=128, dtype=x.dtype, wait=wait)
        sums = either.wait() if isinstance(either, pidcomm.Request) else either
        wrong += int(np.count_nonzero(sums != x.sum(axis=0)))
    return wrong
