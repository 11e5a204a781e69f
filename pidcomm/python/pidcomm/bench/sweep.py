"""The cases of a benchmark: every combination of the given shapes, sizes, masks, types and other
parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pidcomm
from pidcomm._rows import CollectiveName, OpName
from pidcomm.arguments import Options, options_of, with_scratch
from pidcomm.bench.measure import require_memory
from pidcomm.bench.oracle import Problem
from pidcomm.errors import ArgumentError, Error
from pidcomm.sizes import format_shape, format_size, parse_count, parse_positive_size, parse_shape

__all__ = ["TOO_LARGE_OR_SMALL", "Section", "affordable", "even_shape", "powers_of_two"]

ALL_MASKS = "all"
SWEEPS: dict[str, Callable[[str], int]] = {"bytes": parse_positive_size, "pes": parse_count}
SWEEP_RULE = (
    "write it as bytes=8KiB..8MiB or pes=64..1024, powers of two from first to last, or as"
    " bytes=8KiB,96KiB"
)
TOO_LARGE_OR_SMALL = ("ERR_SIZE", "ERR_WINDOW")  # statuses for which a sweep skips a size


def parse_sweeps(texts: Iterable[str]) -> dict[str, list[int]]:
    """Return the values of every sweep by its name. Raises ArgumentError."""
    sweeps: dict[str, list[int]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if name not in SWEEPS or not equals:
            raise ArgumentError(f"sweep {text!r} is not a sweep; {SWEEP_RULE}")
        if name in sweeps:
            raise ArgumentError(
                f"sweep {text!r} is the second sweep of {name}; give one, with all values"
            )
        first, dots, last = values.partition("..")
        numbers = [SWEEPS[name](value) for value in ([first, last] if dots else values.split(","))]
        sweeps[name] = _powers_of_two(text, *numbers) if dots else numbers
    return sweeps


def _powers_of_two(text: str, first: int, last: int) -> list[int]:
    if not _is_power_of_two(first) or not _is_power_of_two(last) or first > last:
        raise ArgumentError(
            f"sweep {text!r} does not run from a power of two up to another; {SWEEP_RULE}"
        )
    return powers_of_two(first, last)


def powers_of_two(first: int, last: int) -> list[int]:
    """Return the powers of two from first to last."""
    return [1 << exponent for exponent in range(first.bit_length() - 1, last.bit_length())]


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def even_shape(pes: int, axes: int) -> tuple[int, ...]:
    """Return a shape of `pes` PEs whose axis lengths are powers of two and as equal as possible,
    the largest first.

    With two axes, 64 PEs are 8x8, and 128 PEs are 16x8. Raises ArgumentError unless `pes` is a
    power of two.
    """
    if not _is_power_of_two(pes):
        raise ArgumentError(
            f"{pes} PEs are not a power of two; a sweep cannot make a shape of them", "ERR_SHAPE"
        )
    exponent, larger = divmod(pes.bit_length() - 1, axes)
    return tuple(1 << (exponent + (axis < larger)) for axis in range(axes))


def parse_shapes(text: str, pes: Sequence[int] | None) -> list[tuple[int, ...]]:
    """Return the shapes in a comma-separated list.

    For each of `pes`, if given, return an even shape instead.
    """
    shapes = [parse_shape(part) for part in text.split(",")]
    if pes is not None:
        shapes = list(
            dict.fromkeys(even_shape(count, len(shape)) for shape in shapes for count in pes)
        )
    return shapes


def masks_of(shape: tuple[int, ...], text: str) -> list[str]:
    """Return the masks in a comma-separated list that have one character per axis. "all" means all
    except 0...0.

    A single mask is returned unchecked, so that the library reports its errors.
    """
    axes = len(shape)
    if text == ALL_MASKS:
        return [
            "".join("01"[number >> axis & 1] for axis in range(axes))
            for number in range(1, 1 << axes)
        ]
    masks = text.split(",")
    return masks if len(masks) == 1 else [mask for mask in masks if len(mask) == axes]


def _require_partners(shapes: Sequence[tuple[int, ...]], text: str) -> None:
    """Raise ArgumentError if no mask fits a shape, or no shape fits a mask."""
    used = {mask for shape in shapes for mask in masks_of(shape, text)}
    for shape in shapes:
        if not masks_of(shape, text):
            raise ArgumentError(
                f"no mask of {text} has one character for each of the {len(shape)} axes of"
                f" {format_shape(shape)}",
                "ERR_MASK",
            )
    for mask in text.split(","):
        if text != ALL_MASKS and mask not in used:
            raise ArgumentError(
                f"mask {mask!r} is for {len(mask)} axes, but no shape has {len(mask)}", "ERR_MASK"
            )


@dataclass(frozen=True)
class Section:
    """Cases with equal PEs, size and instruction set.

    Therefore the cases have equal streaming limits.
    """

    shape: tuple[int, ...]
    size_bytes: int
    isa: str
    problems: list[Problem]

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return self.problems[0].pes

    def __str__(self) -> str:
        """Report the PEs, the size and the instruction set of all cases."""
        return (
            f"{self.pes} PEs as {format_shape(self.shape)}, {format_size(self.size_bytes)} per PE,"
            f" ISA {self.isa}"
        )


@dataclass(frozen=True)
class Wanted:
    """The parameters of a benchmark. masks: the text of option --mask, which `masks_of` parses."""

    collectives: Sequence[CollectiveName]
    shapes: Sequence[tuple[int, ...]]
    sizes_bytes: Sequence[int]
    masks: str
    dtypes: Sequence[str]
    op: OpName
    isas: Sequence[str]
    techniques: Mapping[str, Sequence[str]]  # by collective

    def sections(self, options: Options) -> tuple[list[Section], list[Error]]:
        """Return every combination in sections. Also return an error for each unsupported size.

        Raises other errors of the library. Moves no bytes.
        """
        _require_partners(self.shapes, self.masks)
        sections = []
        refusals: dict[
            str, Error
        ] = {}  # by the error sentence, because types and instruction sets repeat an error
        for shape, size_bytes, isa in product(self.shapes, self.sizes_bytes, self.isas):
            problems = []
            for mask, dtype, name in product(
                masks_of(shape, self.masks), self.dtypes, self.collectives
            ):
                sides: dict[str, Any] = {
                    "bytes": size_bytes,
                    "dst": size_bytes,
                    "dtype": dtype,
                    "op": self.op,
                }
                try:
                    for technique in self.techniques[name]:
                        arguments = options_of(**{**options, "isa": isa, "technique": technique})
                        pidcomm.plan(
                            name, shape, mask, **sides, **with_scratch(arguments, 2 * size_bytes)
                        )
                except Error as error:
                    if error.status not in TOO_LARGE_OR_SMALL:
                        raise
                    refusals.setdefault(str(error), error)
                else:
                    problems.append(Problem(name, shape, mask, size_bytes, dtype, self.op))
            if problems:
                sections.append(Section(shape, size_bytes, isa, problems))
        return sections, list(refusals.values())


def affordable(
    sections: Iterable[Section], techniques: Iterable[str]
) -> tuple[list[Section], list[Error]]:
    """Return the sections that fit in the memory of this machine, and an error for each section
    that does not fit.
    """
    affordable_sections = []
    refusals: dict[str, Error] = {}
    for section in sections:
        try:
            require_memory(section.pes, section.size_bytes, techniques)
        except ArgumentError as error:
            refusals.setdefault(str(error), error)
        else:
            affordable_sections.append(section)
    return affordable_sections, list(refusals.values())


def halved_to_fit(pes: int, size_bytes: int, techniques: Iterable[str]) -> int:
    """Return the size per PE, halved until it fits in the memory of this machine or is at most 8
    KiB.
    """
    while size_bytes > 1 << 13:
        try:
            require_memory(pes, size_bytes, techniques)
        except ArgumentError:
            size_bytes //= 2
        else:
            break
    return size_bytes
