"""Random movements between PEs that compare every byte with the oracle's messages."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pidcomm.arguments import Options, as_bytes
from pidcomm.bench import _verify
from pidcomm.bench.measure import SDK
from pidcomm.bench.oracle import distinct_bytes
from pidcomm.hypercube import Hypercube
from pidcomm.messages import FILL, MESSAGE
from pidcomm.sizes import format_shape
from pidcomm.tables import TYPES, WORD_BYTES

GUARD_WORDS = 24
WORDS = (1, 2, 3, 8, 33, 129, 1100)

Message = tuple[int, ...]
Groups = list[list[int]]


class Drawn(NamedTuple):
    """The arguments of a method, the words of its source and destination, and its messages by
    definition, with bytes from the starts of both.
    """

    arguments: dict[str, Any]
    in_words: int
    out_words: int
    messages: list[Message]


def _moves(from_pe: int, to_pe: int, words: int, at: int = 0, to: int = 0) -> list[Message]:
    """Return a message of words between bytes, or nothing for no words."""
    return [(from_pe, to_pe, at, to, words * WORD_BYTES, 1, 0, 0)] if words else []


def _sendrecv(rng: random.Random, groups: Groups, _: Any) -> Drawn:
    pes, words = sum(map(len, groups)), rng.choice(WORDS)
    count, gap = rng.randint(1, words), rng.randint(0, 3)
    runs = rng.randint(1, words // (count + gap) or 1)
    step = (count + gap) * WORD_BYTES
    size = (runs - 1) * step // WORD_BYTES + count  # words of all runs
    messages: list[Message] = []
    for pe in range(pes):
        for to in range(0, words - size + 1, size):
            begin, steps = rng.randint(0, words - size) * WORD_BYTES, (step, step)
            source = rng.randrange(pes) if rng.random() < 0.9 else FILL
            if source == FILL:
                begin, steps = rng.getrandbits(32), (rng.getrandbits(32), step)
            fields = (source, pe, begin, to * WORD_BYTES, count * WORD_BYTES, runs, *steps)
            messages += [fields] if rng.random() < 0.8 else []
    rng.shuffle(messages)
    return Drawn({"messages": np.array(messages, MESSAGE)}, words, words, messages)


def _shift(rng: random.Random, groups: Groups, dtype: np.dtype[Any]) -> Drawn:
    words, by = rng.choice(WORDS), rng.randint(-9, 9)
    kind: dict[str, Any] = rng.choice(({}, {"cyclic": False}, {"cyclic": False, "fill": 1}))
    low, high = np.ones(WORD_BYTES // dtype.itemsize, dtype).view(np.uint32)
    messages = []
    for group in groups:
        for member, pe in enumerate(group):
            source = member - by
            if not kind:
                source %= len(group)
            if 0 <= source < len(group):
                messages += _moves(group[source], pe, words)
            elif "fill" in kind:
                messages.append((FILL, pe, int(low), 0, words * WORD_BYTES, 1, int(high), 0))
    return Drawn({"by": by, **kind}, words, words, messages)


def _permute(rng: random.Random, groups: Groups, _: Any) -> Drawn:
    words, members = rng.choice(WORDS), len(groups[0])
    table = [[rng.randrange(-1, members) for _ in group] for group in groups]
    messages = [
        message
        for group, sources in zip(groups, table, strict=True)
        for pe, source in zip(group, sources, strict=True)
        if source >= 0
        for message in _moves(group[source], pe, words)
    ]
    return Drawn({"sources": np.array(table)}, words, words, messages)


def _begins(words: list[int]) -> list[int]:
    return [sum(words[:number]) for number in range(len(words) + 1)]


def _alltoallv(rng: random.Random, groups: Groups, dtype: np.dtype[Any]) -> Drawn:
    members, most = len(groups[0]), rng.choice((2, 9, 40))
    counts = [[[rng.randrange(most) for _ in group] for _ in group] for group in groups]
    words = [
        [[-(-n * dtype.itemsize // WORD_BYTES) for n in row] for row in table] for table in counts
    ]
    sends = [[_begins(row) for row in table] for table in words]
    receives = [[_begins([row[q] for row in table]) for q in range(members)] for table in words]
    messages = [
        message
        for g, group in enumerate(groups)
        for p, sender in enumerate(group)
        for q, receiver in enumerate(group)
        for message in _moves(
            sender, receiver, words[g][p][q], sends[g][p][q] * WORD_BYTES,
            receives[g][q][p] * WORD_BYTES,
        )
    ]  # fmt: skip
    ends = [max(begins[-1] for table in all_ for begins in table) for all_ in (sends, receives)]
    return Drawn({"counts": np.array(counts)}, ends[0], ends[1], messages)


def _allgatherv(rng: random.Random, groups: Groups, dtype: np.dtype[Any]) -> Drawn:
    counts = [[rng.randrange(40) for _ in group] for group in groups]
    words = [[-(-n * dtype.itemsize // WORD_BYTES) for n in row] for row in counts]
    messages = [
        message
        for group, row in zip(groups, words, strict=True)
        for receiver in group
        for sender, size, to in zip(group, row, _begins(row), strict=False)
        for message in _moves(sender, receiver, size, 0, to * WORD_BYTES)
    ]
    most = max(max(row) for row in words), max(sum(row) for row in words)
    return Drawn({"counts": np.array(counts)}, *most, messages)


MOVEMENTS: dict[str, Callable[[random.Random, Groups, np.dtype[Any]], Drawn]] = {
    "sendrecv": _sendrecv,
    "shift": _shift,
    "permute": _permute,
    "alltoallv": _alltoallv,
    "allgatherv": _allgatherv,
}
IN_PLACE = ("shift", "permute")  # `out` may be x


@dataclass(frozen=True)
class Movement:
    """One random movement with all its parameters. src, dst: words from the start of a span of
    MRAM, which is checked.
    """

    number: int
    seed: int
    name: str
    shape: tuple[int, ...]
    mask: str
    dtype: str
    drawn: Drawn
    src: int
    dst: int
    span_words: int
    options: Options
    is_exact_set: bool
    waits: bool

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return prod(self.shape)

    def __str__(self) -> str:
        """Describe the case with all parameters that repeat the case."""
        options, place = self.options, " in place" if self.src == self.dst else ""
        return (
            f"--seed {self.seed} --case {self.number}: {self.name} {self.dtype}"
            f" {format_shape(self.shape)} mask {self.mask}, {len(self.drawn.messages)} messages,"
            f" words {self.src} to {self.dst}{place}, {options['technique']} {options['isa']}"
            f" {options['threads']} threads, coherence {options['coherence']},"
            f" {'blocking' if self.waits else 'non-blocking'},"
            f" {'exact set' if self.is_exact_set else 'larger set'}"
        )

    def run(self, cube: Hypercube, around: Hypercube) -> Iterator[str]:
        """Run the movement on a cube and yield the faults. around: a larger cube; its PEs outside
        the cube must not change.
        """
        per_word = WORD_BYTES // TYPES[self.dtype].size_bytes
        span = around.empty(self.span_words * per_word, self.dtype)
        image = distinct_bytes(self.seed + self.number, around.pes, span.size_bytes)
        around.write(image, span.window, **SDK)
        x, out = (
            span[begin * per_word : (begin + words) * per_word]
            for begin, words in (
                (self.src, self.drawn.in_words), (self.dst, self.drawn.out_words)
            )
        )  # fmt: skip
        method = getattr(cube, self.name)
        others: dict[str, Any] = {"wait": self.waits, **self.drawn.arguments, **self.options}
        if self.name == "sendrecv":
            result = method(src=x, dst=out, **others)
        else:
            result = method(x, self.mask, out=out, **others)
        if not self.waits:
            result.wait()
        got = around.read(span.size_bytes, np.uint8, span.window, **SDK)
        want = image.copy()
        offsets = np.array([self.src, self.dst]) * WORD_BYTES
        messages = [
            (m[0], m[1], m[2] + (m[0] != FILL) * int(offsets[0]), m[3] + int(offsets[1]), *m[4:])
            for m in self.drawn.messages
        ]
        _verify.move(messages, span.size_bytes, as_bytes(image), as_bytes(want))
        if not np.array_equal(want, got):
            pe, byte = np.argwhere(want != got)[0]
            yield f"PE {pe} byte {byte} of the span is {got[pe, byte]}, not {want[pe, byte]}"
        counts = audit(cube)
        if counts["lines_outside"]:
            yield f"{counts['lines_outside']} lines outside the windows"
        if (
            cube.last_trace
            and cube.last_trace.coherence == "hardware"
            and counts["loads_unflushed"]
        ):
            yield f"{counts['loads_unflushed']} loads of lines that were not flushed"


def make_movement(
    rng: random.Random,
    seed: int,
    number: int,
    shape: tuple[int, ...],
    mask: str,
    options: Options,
    is_exact_set: bool,
) -> Movement:
    """Return a random movement on a hypercube."""
    name, dtype = rng.choice(list(MOVEMENTS)), rng.choice(list(TYPES))
    if options["technique"] not in ("tile", "conventional"):
        options["technique"] = rng.choice(("tile", "conventional", "pr+im"))
    drawn = MOVEMENTS[name](rng, _verify.members(shape, mask), np.dtype(dtype))
    src = rng.randint(1, GUARD_WORDS)
    dst = src + drawn.in_words + rng.choice((0, 1, 7))
    end = dst + drawn.out_words
    if name in IN_PLACE and rng.random() < 0.4:
        dst = src
    elif rng.random() < 0.4:
        src, dst = src + drawn.out_words + rng.choice((0, 3)), src
        end = src + drawn.in_words
    span_words = end + rng.randint(1, GUARD_WORDS)
    return Movement(
        number, seed, name, shape, mask, dtype, drawn, src, dst, span_words, options, is_exact_set,
        rng.random() < 0.7,
    )  # fmt: skip


def audit(cube: Hypercube) -> dict[str, int]:
    """Return how many lines of 64 bytes the last call on a hypercube loaded, stored and flushed.

    All counts are 0 unless the call used the audit ISA.
    """
    return cube._core.audit()
