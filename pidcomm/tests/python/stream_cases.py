"""A PE program whose launches compute parts, and streams that tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pidcomm
from pidcomm.compiling import compiled

PES, RANKS, COUNT = 256, 4, 256
SPINS, TRAPS = 1 << 30, 1 << 31

# Launch i of P computes destination = source * factor + row in part i of P.
KERNEL = f"""
#include <mram.h>
#include <stdint.h>
__host uint32_t part[2] = {{0, 1}}, row;
__host struct {{ uint32_t source, destination, bytes, factor; }} job;
__mram_noinit_keep int32_t values[{COUNT}];
__dma_aligned int32_t chunk[2];
int main(void) {{
  if (job.factor == {SPINS}u) for (;;) {{}}
  if (job.factor == {TRAPS}u) __builtin_trap();
  uint32_t bytes = job.bytes / part[1], begin = part[0] * bytes;
  for (uint32_t at = begin; at < begin + bytes; at += 8) {{
    mram_read((__mram_ptr uint8_t *)job.source + at, chunk, 8);
    chunk[0] = chunk[0] * job.factor + row;
    chunk[1] = chunk[1] * job.factor + row;
    mram_write(chunk, (__mram_ptr uint8_t *)job.destination + at, 8);
  }}
  return 0;
}}
"""
JOB = np.dtype([(name, "u4") for name in ("source", "destination", "bytes", "factor")])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the kernel."""
    path = tmp_path_factory.mktemp("streams") / "kernel"
    with compiled(KERNEL, [], "") as (file, _):
        path.write_bytes(Path(file).read_bytes())
    return path


@pytest.fixture
def pes(program: Path) -> Iterator[pidcomm.PeSet]:
    """Four ranks that have loaded the kernel."""
    with pidcomm.allocate(ranks=RANKS) as pe_set:
        load(pe_set, program)
        yield pe_set


def load(pes: pidcomm.PeSet, program: Path) -> None:
    """Load the kernel and write the rows."""
    pes.load(program)
    pes.symbol("row").write(np.arange(PES, dtype=np.uint32)[:, np.newaxis])


def job_of(source: Any, destination: Any, factor: int) -> Any:
    """Return the job of a launch."""
    return np.array((source.address, destination.address, source.size_bytes, factor), JOB)


def random_buffers(cube: Any, seed: int, count: int = 3) -> list[Any]:
    """Return buffers of random elements."""
    random = np.random.default_rng(seed)
    return [cube.array(random.integers(-9, 9, (PES, COUNT)).astype(np.int32)) for _ in range(count)]


def recorded(pes: pidcomm.PeSet, steps: Callable[[pidcomm.Stream], object]) -> pidcomm.Stream:
    """Return a stream of two rank groups that has not run."""
    with suppress(RuntimeError), pes.stream(2) as stream:
        steps(stream)
        raise RuntimeError("the stream does not run")
    return stream


def run_then_sum(stream: Any, factor: int, cube: Any, x: Any, y: Any, z: Any) -> None:
    """Record the kernel from x to y, and an allreduce to z."""
    stream.write("job", job_of(x, y, factor))
    stream.launch([x], [y])
    cube.allreduce(y, "11", out=z)
