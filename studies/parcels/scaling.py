"""The time of a barrier and of a halo exchange by number of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from mmap import PAGESIZE
from os import sysconf

from pidcomm import ArgumentError, Error
from pidcomm_studies.parcels.build import HERE, build_folder, compile_program
from pidcomm_studies.parcels.run import Machine

PROGRAMS = ("barrier", "halo")
REPEATS = 4
MAX_SIDE_BYTES = 2**28  # as in programs/halo.c
BYTES_OF_A_SIDE = 4 * 3  # four sides: sent, received and in a parcel


@dataclass(frozen=True)
class Row:
    """The modelled seconds of one call or exchange at process 0. bytes: of a side; None for the
    barrier.
    """

    program: str
    engine: str
    nodes: int
    bytes: int | None
    seconds: float
    source: str = "modelled"


def measure(
    engines: Sequence[str],
    nodes: Sequence[int],
    size: int,
    step: Callable[[str], None],
    **changes: int,
) -> Iterator[Row]:
    """Yield a row for each program, engine and number of nodes. changes: as for `Machine`.

    Raises ArgumentError for sides above MAX_SIDE_BYTES or without memory on this computer, Error if
    a process got wrong data.
    """
    if size > MAX_SIDE_BYTES:
        raise ArgumentError(f"a side has {size} bytes; it must have at most {MAX_SIDE_BYTES}")
    needed, memory = BYTES_OF_A_SIDE * size * max(nodes), sysconf("SC_PHYS_PAGES") * PAGESIZE
    if needed > memory:
        raise ArgumentError(
            f"{max(nodes)} nodes with sides of {size} bytes need {needed} bytes of memory;"
            f" this computer has {memory}"
        )
    with build_folder() as folder:
        programs = {
            name: compile_program(HERE / "programs" / f"{name}.c", folder) for name in PROGRAMS
        }
        machines = [Machine(engine, folder, **changes) for engine in engines]
        for name, program in programs.items():
            for number in nodes:
                for machine in machines:
                    step(f"{name}: {machine.engine.name}, {number} nodes")
                    run = machine.run(
                        program, number, (REPEATS,) if name == "barrier" else (size, REPEATS)
                    )
                    if run.code or run.blocked:
                        raise Error(f"{name} on {number} nodes, {machine.engine.name}: wrong data")
                    is_barrier = name == "barrier"
                    yield Row(
                        name, run.engine, number, None if is_barrier else size, float(run.output)
                    )
