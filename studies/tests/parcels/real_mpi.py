"""Run message patterns with a real MPI through mpi4py; print the lines of
parcels/programs/pattern.c.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

from pidcomm_studies.parcels.patterns import (
    ANY_SOURCE,
    ANY_TAG,
    IRECV,
    ISEND,
    PROBE,
    RECV,
    SEND,
    TEST,
    WAIT,
    Operation,
)


def payload(number: int, size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return the payload of a message, as in pattern.c."""
    start = np.int64(number) * 2654435761 % 2**32
    return (((start + np.arange(size, dtype=np.int64) * 97) % 2**32) >> 5).astype(np.uint8)


def main() -> None:
    """Run the patterns of the file that the first argument names."""
    rank = MPI.COMM_WORLD.Get_rank()
    communicators = [MPI.COMM_WORLD, MPI.COMM_WORLD.Dup(), MPI.COMM_WORLD.Dup()]
    words = iter(map(int, Path(sys.argv[1]).read_text().split()))
    lines = []
    for number, count in enumerate(words):
        pattern = [Operation(*(next(words) for _ in range(8))) for _ in range(count)]
        requests: dict[int, MPI.Request] = {}
        buffers: dict[int, np.ndarray[tuple[int], np.dtype[np.uint8]]] = {}
        places: dict[int, int] = {}

        def finish(
            slot: int,
            status: MPI.Status,
            number: int = number,
            pattern: list[Operation] = pattern,
            buffers: dict[int, np.ndarray[tuple[int], np.dtype[np.uint8]]] = buffers,
            places: dict[int, int] = places,
        ) -> None:
            if slot in places:
                size = status.Get_count(MPI.BYTE)
                ids = [
                    operation.id
                    for operation in pattern
                    if operation.id >= 0 and operation.rank == status.Get_source()
                ]
                same = (
                    one for one in ids if np.array_equal(payload(one, size), buffers[slot][:size])
                )
                message = next(same, -1) if size else -2
                place = places.pop(slot)
                lines.append(
                    f"{number} {place} {status.Get_source()} {status.Get_tag()} {size} 0 {message}"
                )

        for place, operation in enumerate(pattern):
            if operation.rank != rank:
                continue
            comm, status = communicators[operation.communicator], MPI.Status()
            source = MPI.ANY_SOURCE if operation.peer == ANY_SOURCE else operation.peer
            tag = MPI.ANY_TAG if operation.tag == ANY_TAG else operation.tag
            if operation.kind in (ISEND, SEND):
                buffers[operation.slot] = payload(operation.id, operation.bytes)
                if operation.kind == SEND:
                    comm.Send([buffers[operation.slot], MPI.BYTE], operation.peer, operation.tag)
                else:
                    requests[operation.slot] = comm.Isend(
                        [buffers[operation.slot], MPI.BYTE], operation.peer, operation.tag
                    )
            elif operation.kind in (IRECV, RECV, PROBE):
                places[operation.slot] = place
                buffers[operation.slot] = np.zeros(operation.bytes, np.uint8)
                if operation.kind == IRECV:
                    requests[operation.slot] = comm.Irecv(
                        [buffers[operation.slot], MPI.BYTE], source, tag
                    )
                    continue
                if operation.kind == PROBE:
                    comm.Probe(source, tag, status)
                    source, tag = status.Get_source(), status.Get_tag()
                comm.Recv([buffers[operation.slot], MPI.BYTE], source, tag, status)
                finish(operation.slot, status)
            elif operation.kind in (WAIT, TEST):
                requests.pop(operation.slot).Wait(status)
                finish(operation.slot, status)
            else:
                for slot in sorted(requests):
                    requests.pop(slot).Wait(status)
                    finish(slot, status)
        MPI.COMM_WORLD.Barrier()
    gathered = MPI.COMM_WORLD.gather(lines)
    if gathered:
        print("\n".join(line for part in gathered for line in part))


main()
