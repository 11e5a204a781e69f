"""Random message patterns without deadlock, and the rules of MPI that the received messages must
obey.

A pattern is a list of operations in one order that a machine with synchronous sends could follow,
so it has no deadlock. The receives of a process form classes in which all receives accept the same
messages; no receive of one class can take a message of another, so a wildcard cannot take a message
that another receive needs. In a class that accepts any source, a later message can take the receive
of an earlier one, so no process waits for a send to it before the end.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass

ISEND, IRECV, SEND, RECV, PROBE, WAIT, WAITALL, BARRIER, TEST = range(9)
ANY_SOURCE, ANY_TAG = -2, -3  # as in mpi/mpi.h
SLOTS = 64
SIZES = (0, 1, 7, 8, 63, 64, 100, 511, 512, 1000, 4096, 5000)
LARGE_SIZES = (65535, 65536, 70001)


@dataclass(frozen=True)
class Operation:
    """An operation of programs/pattern.c. id: of the payload of a send; -1 for other operations."""

    rank: int
    kind: int
    peer: int = 0
    tag: int = 0
    communicator: int = 0
    bytes: int = 0
    slot: int = 0
    id: int = -1


@dataclass(frozen=True)
class Received:
    """A line that programs/pattern.c prints for a receive."""

    pattern: int
    place: int
    source: int
    tag: int
    bytes: int
    error: int
    id: int


def make(
    seed: int, ranks: int, messages: int, wildcards: bool = True, large: bool = True
) -> list[Operation]:
    """Return a pattern. wildcards: whether receives may accept any source. large: whether
    messages may be long.
    """
    choice = random.Random(seed)
    operations: list[Operation] = []
    free = {rank: list(range(SLOTS)) for rank in range(ranks)}
    pending: dict[int, list[int]] = {rank: [] for rank in range(ranks)}
    to_receive: list[
        tuple[int, int, int, int]
    ] = []  # sender, receiver, tag, communicator of sends without receive
    to_send: list[tuple[int, int, int, int]] = []  # the same of receives without send
    any_source = {
        (rank, tag): wildcards and choice.random() < 0.4
        for rank in range(ranks)
        for tag in range(3)
    }
    any_both = wildcards and choice.random() < 0.5  # communicator 2

    def accepts_any(receiver: int, tag: int, communicator: int) -> bool:
        return any_source[receiver, tag] if communicator == 0 else communicator == 2 and any_both

    def pattern_of(sender: int, receiver: int, tag: int, communicator: int) -> tuple[int, int]:
        source = ANY_SOURCE if accepts_any(receiver, tag, communicator) else sender
        return source, ANY_TAG if communicator else tag

    def slot(rank: int) -> int:
        free_slot = free[rank].pop(choice.randrange(len(free[rank])))
        pending[rank].append(free_slot)
        return free_slot

    def size() -> int:
        return choice.choice(LARGE_SIZES if large and choice.random() < 0.06 else SIZES)

    def send(sender: int, receiver: int, tag: int, communicator: int, kind: int) -> None:
        number = slot(sender)
        operations.append(
            Operation(sender, kind, receiver, tag, communicator, size(), number, len(operations))
        )
        if kind == SEND or accepts_any(receiver, tag, communicator):
            pending[sender].remove(number)

    def receive(sender: int, receiver: int, tag: int, communicator: int, kind: int) -> None:
        source, wanted = pattern_of(sender, receiver, tag, communicator)
        number = slot(receiver)
        operations.append(
            Operation(receiver, kind, source, wanted, communicator, max(LARGE_SIZES), number)
        )
        if kind != IRECV:
            pending[receiver].remove(number)
            free[receiver].append(number)

    left = messages
    while left or to_receive or to_send:
        action = choice.random()
        if left and action < 0.35:
            message = (
                choice.randrange(ranks),
                choice.randrange(ranks),
                choice.randrange(3),
                choice.randrange(3),
            )
            left -= 1
            if choice.random() < 0.5:
                send(*message, ISEND)
                to_receive.append(message)
            else:
                receive(*message, IRECV)
                to_send.append(message)
        elif to_receive and action < 0.7:
            message = to_receive.pop(choice.randrange(len(to_receive)))
            # A blocking receive is only safe if no posted receive of its class still needs a
            # message.
            is_safe = not any(
                waiting[1] == message[1] and waiting[3] == message[3] for waiting in to_send
            )
            receive(*message, choice.choice((RECV, PROBE, IRECV)) if is_safe else IRECV)
        elif to_send and action < 0.9:
            message = to_send.pop(choice.randrange(len(to_send)))
            # A blocking send is only safe if it is the next message that its class of receives
            # waits for.
            is_safe = not any(
                waiting[1] == message[1] and waiting[3] == message[3] for waiting in to_receive
            )
            is_safe = is_safe and message[0] != message[1] and not accepts_any(*message[1:])
            send(*message, SEND if is_safe and choice.random() < 0.5 else ISEND)
        elif not to_receive and not to_send and action > 0.9:
            rank = choice.randrange(ranks)
            if pending[rank]:
                number = pending[rank].pop(choice.randrange(len(pending[rank])))
                operations.append(Operation(rank, choice.choice((WAIT, TEST)), slot=number))
                free[rank].append(number)
    operations += [Operation(rank, WAITALL) for rank in range(ranks)]
    return operations


def write(patterns: Iterable[Sequence[Operation]]) -> str:
    """Return the text of the file for programs/pattern.c."""
    lines = []
    for pattern in patterns:
        lines.append(str(len(pattern)))
        lines += [" ".join(map(str, astuple(operation))) for operation in pattern]
    return "\n".join([*lines, ""])


def read(output: str) -> list[Received]:
    """Return the receives that programs/pattern.c printed. Raises ValueError for any other line."""
    return [Received(*map(int, line.split())) for line in output.splitlines()]


def accepts(receive: Operation, message: Operation) -> bool:
    """Return whether a receive or probe may take a message."""
    return (
        receive.rank == message.peer
        and receive.communicator == message.communicator
        and receive.peer in (message.rank, ANY_SOURCE)
        and receive.tag in (message.tag, ANY_TAG)
    )


def wrong(pattern: Sequence[Operation], received: Sequence[Received]) -> Iterator[str]:
    """Yield a sentence for each rule of MPI that the received messages break.

    Each message arrives once, at a receive that accepts it, with its bytes, source and tag. If an
    earlier message of the same sender also matches a receive, a receive that was posted earlier has
    taken it.
    """
    taken: dict[int, int] = {}  # place of the message: place of its receive
    receives = [
        place for place, operation in enumerate(pattern) if operation.kind in (IRECV, RECV, PROBE)
    ]
    messages = [place for place, operation in enumerate(pattern) if operation.kind in (ISEND, SEND)]
    if sorted(reception.place for reception in received) != receives:
        yield f"{len(received)} receives ended, of {len(receives)}"
    for reception in sorted(received, key=lambda reception: reception.place):
        receive = pattern[reception.place]
        if reception.error:
            yield f"receive {reception.place} has error {reception.error}"
        choices = [
            place
            for place in messages
            if place not in taken
            and accepts(receive, pattern[place])
            and pattern[place].rank == reception.source
        ]
        if not choices:
            yield (
                f"receive {reception.place} took a message of {reception.source} that does not"
                " exist"
            )
            continue
        first = choices[0]
        message = pattern[first]
        taken[first] = reception.place
        if (reception.tag, reception.bytes) != (message.tag, message.bytes):
            yield (
                f"receive {reception.place} took tag {reception.tag} with {reception.bytes} bytes"
                f" instead of message {first}"
            )
        elif reception.id != (message.id if message.bytes else -2):
            yield (
                f"receive {reception.place} has the payload {reception.id} instead of {message.id}"
            )
    if lost := set(messages) - set(taken):
        yield f"messages {sorted(lost)} were not received"
