"""Decompositions of a number-theoretic transform into steps, with an alltoall between two steps.

Coefficient n of a transform of N = M1 * ... * MD has the digits (d1, ..., dD), d1 the most
significant. Step i transforms along digit i. The PEs form a hypercube of four axes. Axis i < D
distributes digit i + 1 before the alltoall along axis i, and digit i after it. The last axis has
slices: PEs with different limbs. So before step i a PE has all values of digit i, and its windows
have the layouts that apps/pe/ntt.h describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array, as_integer
from pidcomm.sizes import format_shape
from pidcomm.tables import WORD_BYTES
from pidcomm_studies.apps.ntt.field import WIDE, Word
from pidcomm_studies.apps.partition import round_up

AXES = 4
MOST_STEPS = AXES  # an axis between each two steps, and the axis of the slices
RADIXES = (2, 4, 16)
SIZE_MIN, SIZE_MAX = 2**8, 2**17
STEP_MAX = 2**11  # the elements and twiddles of one row fit in WRAM


def check_size(size: int) -> None:
    """Raise ArgumentError unless transforms of this size exist."""
    if not SIZE_MIN <= size <= SIZE_MAX or size & (size - 1):
        raise ArgumentError(f"size {size} must be a power of two from {SIZE_MIN} to {SIZE_MAX}")


def check_radix(radix: int) -> None:
    """Raise ArgumentError unless the kernel has butterflies of this radix."""
    if as_integer("radix", radix) not in RADIXES:
        raise ArgumentError(f"radix {radix} must be one of {', '.join(map(str, RADIXES))}")


def axis_limit(steps: Sequence[int], axis: int) -> int:
    """Return the most PEs of an axis before the last: the smaller of the two steps that exchange
    data along it.
    """
    return min(steps[axis : axis + 2]) if axis + 1 < len(steps) else 1


def balanced(size: int, count: int, radix: int) -> tuple[int, ...]:
    """Return `count` steps with sizes as equal as possible, powers of the radix, larger steps last.

    Raises ArgumentError if the size is not a power of the radix, or has too few factors.
    """
    bits, unit = size.bit_length() - 1, radix.bit_length() - 1
    if bits % unit:
        raise ArgumentError(
            f"size {size} is not a power of radix {radix}, so no steps of this radix give it"
        )
    units = bits // unit
    if units < count:
        raise ArgumentError(
            f"size {size} has {units} factors of radix {radix}, fewer than {count} steps"
        )
    return tuple(
        radix ** (units // count + (step >= count - units % count)) for step in range(count)
    )


@dataclass(frozen=True)
class Decomposition:
    """A transform over a hypercube.

    size: N. steps: M1 to MD. shape: axis lengths of the hypercube, four. limbs: number of
    transforms. radix: of the butterflies. word: of an element on PEs. Raises ArgumentError if these
    do not fit each other.
    """

    size: int
    steps: tuple[int, ...]
    shape: tuple[int, ...]
    limbs: int
    radix: int
    word: Word = WIDE

    def __post_init__(self) -> None:
        """Check the sizes."""
        steps = format_shape(self.steps)
        check_radix(self.radix)
        check_size(self.size)
        if not 1 <= len(self.steps) <= MOST_STEPS or prod(self.steps) != self.size:
            raise ArgumentError(
                f"steps {steps} must be 1 to {MOST_STEPS} sizes with the product {self.size}"
            )
        for step in self.steps:
            if step < 2 or not _is_power(step, self.radix):
                raise ArgumentError(f"step {step} of {steps} must be a power of radix {self.radix}")
            if step > STEP_MAX:
                raise ArgumentError(
                    f"step {step} of {steps} must be at most {STEP_MAX}, so that a row and its"
                    " twiddles fit in WRAM"
                )
        for axis, length in enumerate(self.shape[:-1]):
            most = axis_limit(self.steps, axis)
            if length > most or length & (length - 1):
                where = (
                    f"steps {axis + 1} and {axis + 2} of {steps}"
                    if most > 1
                    else f"the steps {steps}"
                )
                raise ArgumentError(
                    f"axis {axis} of shape {format_shape(self.shape)} has {length} PEs; {where}"
                    f" allow a power of two up to {most}; the last axis is for limbs"
                )
        if self.limbs < self.slices:
            raise ArgumentError(
                f"shape {format_shape(self.shape)} has {self.slices} slices for {self.limbs} limbs;"
                " a slice needs at least one limb"
            )

    @classmethod
    def shape_of(cls, pes: int, steps: Sequence[int], limbs: int) -> tuple[int, ...]:
        """Return the shape for a number of PEs: as many PEs per limb as the steps allow, then
        slices.
        """
        left, lengths = pes, []
        for axis in range(AXES - 1):
            most = axis_limit(steps, axis)
            length = 1
            while length < most and left % 2 == 0:
                length, left = 2 * length, left // 2
            lengths.append(length)
        if left > limbs:
            raise ArgumentError(
                f"{pes} PEs are too many: the steps {format_shape(tuple(steps))} allow"
                f" {pes // left} PEs per limb if the rest is a number of slices, here {left}, and"
                f" {limbs} limbs allow {limbs} slices"
            )
        return (*lengths, left)

    # ---- numbers

    @property
    def slices(self) -> int:
        """Number of slices of the hypercube, each with its own limbs."""
        return self.shape[-1]

    @property
    def limbs_per_pe(self) -> int:
        """Limbs of a slice. If the slices do not divide the limbs, the last slice repeats limbs."""
        return -(-self.limbs // self.slices)

    @property
    def pes_per_limb(self) -> int:
        """Number of PEs of a slice."""
        return prod(self.shape[:-1])

    @property
    def elements(self) -> int:
        """Number of elements of a PE."""
        return self.limbs_per_pe * self.size // self.pes_per_limb

    @property
    def bytes(self) -> int:
        """Bytes of a window, in the longest layout."""
        exchanged = [self.exchanged_bytes(axis) for axis in range(len(self.steps) - 1)]
        return max(*exchanged, *map(self.host_bytes, (False, True)))

    def exchanged_bytes(self, axis: int) -> int:
        """Bytes of a PE in the alltoall along an axis: blocks have whole words of the library."""
        blocks = self.shape[axis]
        return blocks * round_up(self.elements // blocks * self.word.bytes, WORD_BYTES)

    def host_bytes(self, is_input: bool) -> int:
        """Bytes of a PE before the first step or after the last. With several limbs, blocks have
        gaps as in alltoalls.
        """
        if self.limbs_per_pe == 1:
            return self.word.bytes * self.elements
        blocks = self.blocks(is_input=is_input)
        return blocks * round_up(self.elements // blocks * self.word.bytes, WORD_BYTES)

    def masks(self) -> list[str | None]:
        """Return the mask of the alltoall after each step but the last; None if one PE has the
        whole digit.
        """
        return [
            (
                "".join("1" if place == axis else "0" for place in range(AXES))
                if self.shape[axis] > 1
                else None
            )
            for axis in range(len(self.steps) - 1)
        ]

    def limb_rows(self) -> Array:
        """Return the limbs of each slice, shape (slices, limbs_per_pe)."""
        return np.minimum(np.arange(self.slices * self.limbs_per_pe), self.limbs - 1).reshape(
            self.slices, -1
        )

    def _groups(self, step: int, *, is_sent: bool) -> int:
        """Number of parts of the step's digit in a layout: the blocks of the alltoall after or
        before the step.
        """
        count = len(self.steps)
        if count == 1:
            return 1
        axis = step if (is_sent and step + 1 < count) or step == 0 else step - 1
        return self.shape[axis]

    def blocks(self, *, is_input: bool) -> int:
        """Return the number of blocks in the layout before the first or after the last step."""
        return self._groups(0 if is_input else len(self.steps) - 1, is_sent=is_input)

    def _low(self, digit: int, step: int) -> int:
        """Number of values of a digit that a PE has before `step` transforms another digit."""
        return self.steps[digit] // self.shape[digit if digit < step else digit - 1]

    # ---- what the kernel knows

    def descriptions(self, tables: Sequence[int], inverse_tables: Sequence[int]) -> str:
        """Return the initialisers of the kernel's `struct ntt_step`. tables: offsets of the
        tables of each step.
        """
        rows = []
        last = len(self.steps) - 1
        for step, size in enumerate(self.steps):
            received, sent = (
                size // self._groups(step, is_sent=is_sent) for is_sent in (False, True)
            )
            k2 = self._low(step - 1, step) if step else 1
            c2 = self._low(step + 1, step) if step < last else 1
            logs = [
                size,
                self.subtrees(step),
                k2,
                prod(self._low(later, step) for later in range(step + 1, last + 1)),
                c2,
            ]
            words = [
                *(length.bit_length() - 1 for length in (*logs, received, sent)),
                int(step == 0),
                int(step == last),
                tables[step],
                inverse_tables[step],
            ]
            rows.append("{" + ",".join(map(str, words)) + "}")
        return ",".join(rows)

    def subtrees(self, step: int) -> int:
        """Number of tables per limb that a PE needs in a step."""
        return prod(self._low(earlier, step) for earlier in range(step))

    def table_bytes(self, step: int) -> int:
        """Bytes of the tables of a PE for a step."""
        return self.limbs_per_pe * self.subtrees(step) * self.steps[step] * self.word.factor_bytes

    def table_rows(self, step: int, tables: Array) -> Array:
        """Return the tables of a step for each PE, shape (pes, table_bytes / bytes of a word).

        tables: the pairs of each limb's table, shape (limbs, N, 2), as `Word.factors` returns them:
        with the words of PEs.
        """
        before, size = prod(self.steps[:step]), self.steps[step]
        entries = np.zeros((before, size), np.int64)  # entry 0 is the modulus
        k = np.arange(before)[:, None]
        for level in range(size.bit_length() - 1):
            nodes = 1 << level
            entries[:, nodes : 2 * nodes] = (before << level) + (k << level) + np.arange(nodes)
        # k = (d1 high, d1 low, d2 high, ...): the high parts select the PE, axis 0 fastest.
        lengths = [
            length
            for digit in range(step)
            for length in (self.shape[digit], self._low(digit, step))
        ]
        split = entries.reshape(*lengths, size)
        highs, lows = range(0, 2 * step, 2), range(1, 2 * step, 2)
        of_pes = split.transpose(*reversed(highs), *lows, 2 * step)
        of_pes = of_pes.reshape(prod(self.shape[:step]), self.subtrees(step) * size)
        local = np.tile(of_pes, (prod(self.shape[step:-1]), 1))
        rows = tables[self.limb_rows()[:, None, :, None], local[None, :, None, :]]
        return rows.reshape(prod(self.shape), -1)

    # ---- layouts

    def rows(self, values: Array, *, is_inverse: bool = False) -> Array:
        """Return what each PE has before a transform, shape (pes, host_bytes / bytes of a word).
        values: shape (limbs, N).

        is_inverse: for an inverse transform, which begins with the last step.
        """
        rows = np.zeros((self.slices, self.words(is_input=not is_inverse)), self.word.dtype)
        self.fill_rows(values, slice(None), rows, is_inverse=is_inverse)
        return rows.reshape(prod(self.shape), -1)

    def values(self, rows: Array, *, is_inverse: bool = False) -> Array:
        """Return the results of a transform, shape (limbs, N), from what each PE has, as `rows`."""
        values = np.empty((self.slices, self.limbs_per_pe, self.size), np.uint64)
        self.fill_values(rows.reshape(self.slices, -1), values, is_inverse=is_inverse)
        return values.reshape(-1, self.size)[: self.limbs]

    def words(self, *, is_input: bool) -> int:
        """Return the words of all PEs of a slice before the first step or after the last."""
        return self.pes_per_limb * self.host_bytes(is_input) // self.word.bytes

    def fill_rows(
        self, values: Array, slices: slice, rows: Array, *, is_inverse: bool = False
    ) -> None:
        """Fill the rows of some slices, shape (slices, `words`), as `rows`; gaps stay as they
        are.
        """
        placed, order = self._placed(rows, is_input=not is_inverse)
        limbs = self.limb_rows()[slices].ravel()
        is_run = len(limbs) == limbs[-1] - limbs[0] + 1
        chosen = values[limbs[0] : limbs[-1] + 1] if is_run else values[limbs]
        lengths = [placed.shape[place] for place in np.argsort(order)]
        placed[...] = chosen.reshape(lengths).transpose(order)

    def fill_values(self, rows: Array, values: Array, *, is_inverse: bool = False) -> None:
        """Fill the results of some slices, shape (slices, limbs_per_pe, N), from their rows."""
        placed, order = self._placed(rows, is_input=is_inverse)
        back = np.argsort(order)
        values.reshape([placed.shape[place] for place in back])[...] = placed.transpose(back)

    def _placed(self, rows: Array, *, is_input: bool) -> tuple[Array, list[int]]:
        """Return a view of the rows of some slices without gaps, and the order of its axes; see
        `_layout`.
        """
        lengths, order = self._layout(is_input=is_input)
        lengths[0] = len(rows)
        blocks = self.blocks(is_input=is_input)
        with_gaps = rows.reshape(len(rows) * self.pes_per_limb, blocks, -1)
        elements = with_gaps[..., : self.elements // blocks]
        return elements.reshape([lengths[axis] for axis in order]), order

    def _layout(self, *, is_input: bool) -> tuple[list[int], list[int]]:
        """Return the axes of an array of coefficients, and their order on the PEs before or after a
        transform.

        Axes: slice, limb of the slice, and for every digit its parts and the values in a part.
        Order: PE, block of the alltoall, limb, and the places that apps/pe/ntt.h describes.
        """
        count = len(self.steps)
        step = 0 if is_input else count - 1
        lengths = [self.slices, self.limbs_per_pe]
        for digit, size in enumerate(self.steps):
            parts = (
                self._groups(step, is_sent=is_input)
                if digit == step
                else size // self._low(digit, step)
            )
            lengths += [parts, size // parts]
        inner = [*range(2, count), 0, *range(1, min(count, 2))] if is_input else range(count)
        others = (digit for digit in reversed(range(count)) if digit != step)
        return lengths, [
            0,
            *(2 + 2 * place for place in others),
            2 + 2 * step,
            1,
            *(3 + 2 * place for place in inner),
        ]


def _is_power(value: int, radix: int) -> bool:
    while value % radix == 0:
        value //= radix
    return value == 1
