"""The transforms of a decomposition on the PEs: tables, windows, launches and alltoalls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pidcomm.arguments import Array, options_of
from pidcomm.model import Machine, predict
from pidcomm.tables import CollectiveName
from pidcomm_studies.apps.ntt import field
from pidcomm_studies.apps.ntt.decomposition import Decomposition
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import KERNEL, Cost, Stage

BATCH = 1024  # elements in WRAM at a time, unless a step is larger
STACK_BYTES = 640
FORWARD, INVERSE, MULTIPLY = range(3)  # the kernel's operations


class Tables:
    """The twiddles of some moduli. moduli: primes that are 1 modulo 2 * size."""

    def __init__(self, moduli: Sequence[int], size: int) -> None:
        """Compute the tables on the CPUs."""
        from pidcomm_studies.apps import _apps

        self.moduli = np.array(moduli, np.uint64)
        roots = [field.root_of(q, size) for q in moduli]
        inverses = [pow(root, -1, q) for root, q in zip(roots, moduli, strict=True)]
        self.forward = _apps.ntt_tables(self.moduli, np.array(roots, np.uint64), size)
        self.inverse = _apps.ntt_tables(self.moduli, np.array(inverses, np.uint64), size)
        """Tables of forward and of inverse transforms, shape (limbs, 2 size)."""
        self.scales = factors([pow(size, -1, q) for q in moduli], moduli)
        """The factors 1 / size, shape (limbs, 2)."""

    def of(self, limbs: Array) -> Tables:
        """Return the tables of some limbs, in any order."""
        chosen = copy(self)
        for name in ("moduli", "forward", "inverse", "scales"):
            setattr(chosen, name, getattr(self, name)[limbs])
        return chosen


def predicted_seconds(
    shape: Sequence[int],
    machine: Machine,
    collective: CollectiveName,
    mask: str,
    size_bytes: int,
    **options: Any,
) -> float:
    """Return the modelled seconds of a collective on residues; an alltoall is in place."""
    return predict(
        collective,
        tuple(shape),
        mask,
        bytes=size_bytes,
        dst=0,
        dtype="uint64",
        machine=machine,
        **options_of(**options),
    ).seconds


def factors(values: Sequence[int], moduli: Sequence[int]) -> Array:
    """Return values with their quotients, shape (values, 2); see apps/pe/modular.h."""
    pairs = [(value, (value << 64) // q) for value, q in zip(values, moduli, strict=True)]
    return np.array(pairs, np.uint64).reshape(-1, 2)


class Transforms:
    """The transforms of a decomposition on a stage: what the kernel needs, and the launches and
    alltoalls.

    Windows that are transformed have `Decomposition.bytes` bytes. Decompositions of three or more
    steps need a window ``spare`` of that size too, because their middle steps cannot work in place.
    """

    def __init__(
        self, cut: Decomposition, tables: Tables, *, has_inverse: bool = True, chunks: int = 1
    ) -> None:
        """Take the tables of the decomposition's limbs. has_inverse: whether `inverse` will be
        called. chunks: a window has 1 / chunks of the limbs of a PE; the kernel's variable
        ``first`` is its first limb.
        """
        self.cut, self.tables, self.has_inverse = cut, tables, has_inverse
        self.window_cut = replace(cut, limbs=cut.limbs_per_pe // chunks * cut.slices)

    @property
    def resident(self) -> dict[str, int]:
        """Names and bytes of the resident data."""
        sizes = {f"tables{step}": self.cut.table_bytes(step) for step in range(len(self.cut.steps))}
        if self.has_inverse:
            sizes |= {
                f"inverse{step}": self.cut.table_bytes(step) for step in range(len(self.cut.steps))
            }
        return {**sizes, "scales": self.cut.limbs_per_pe * self.cut.word.factor_bytes}

    def defines(self, placement: Placement) -> dict[str, int | str]:
        """Return the macros that ntt.h needs, for the offsets of a placement."""
        at = placement.offsets
        names = [
            [f"{kind}{step}" for step in range(len(self.cut.steps))]
            for kind in ("tables", "inverse")
        ]
        tables, inverse = ([at.get(name, 0) for name in of_steps] for of_steps in names)
        return {
            "STEPS": self.cut.descriptions(tables, inverse),
            "LIMBS": self.window_cut.limbs_per_pe,
            "ELEMENTS": self.window_cut.host_bytes(is_input=False) // self.cut.word.bytes,
            "WORD_BITS": self.cut.word.bits,
            "LOG_RADIX": self.cut.radix.bit_length() - 1,
            "BATCH": max(BATCH, *self.cut.steps),
        }

    def place(self, stage: Stage) -> None:
        """Write the tables."""
        cut, limbs, word = self.cut, self.cut.limbs, self.cut.word
        kinds = {"tables": self.tables.forward}
        if self.has_inverse:
            kinds["inverse"] = self.tables.inverse
        for kind, tables in kinds.items():
            pairs = word.factors(tables.reshape(limbs, -1, 2), has_modulus=True)
            for step in range(len(cut.steps)):
                stage.place(f"{kind}{step}", cut.table_rows(step, pairs))
        scales = word.factors(self.tables.scales)[cut.limb_rows()].reshape(cut.slices, -1)
        stage.place("scales", np.repeat(scales, self.cut.pes_per_limb, axis=0))

    def forward(
        self,
        stage: Stage,
        window: str,
        limbs: int | None = None,
        variables: Mapping[str, int] | None = None,
    ) -> list[float]:
        """Transform a window in place. Return the modelled seconds of each step's kernel.

        limbs: limbs of a PE in the window; None: those of a chunk. variables: more
        variables of the kernel.
        """
        return self._run(stage, window, limbs, FORWARD, variables or {})

    def inverse(
        self,
        stage: Stage,
        window: str,
        limbs: int | None = None,
        variables: Mapping[str, int] | None = None,
    ) -> list[float]:
        """Transform a window back in place.

        Return the modelled seconds of each kernel, of the last step first.
        """
        return self._run(stage, window, limbs, INVERSE, variables or {})

    def _run(
        self,
        stage: Stage,
        window: str,
        limbs: int | None,
        operation: int,
        variables: Mapping[str, int],
    ) -> list[float]:
        count, masks = len(self.cut.steps), self.cut.masks()
        order = list(range(count)) if operation == FORWARD else list(reversed(range(count)))
        window_cut = self.window_cut
        if limbs is not None:
            window_cut = replace(self.cut, limbs=limbs * self.cut.slices)
        here, seconds = window, []
        for turn, step in enumerate(order):
            there = self._target(window, here, step)
            before = stage.costs.get(KERNEL, Cost()).modelled
            at = stage.offsets
            own = {} if limbs is None else {"limbs": limbs}
            stage.launch(
                operation=operation,
                step=step,
                source=at[here],
                target=at[there],
                **own,
                **variables,
            )
            seconds.append(stage.costs.get(KERNEL, Cost()).modelled - before)
            here = there
            if turn + 1 < count:
                axis = min(step, order[turn + 1])
                if (mask := masks[axis]) is not None:
                    stage.alltoall(mask, bytes=window_cut.exchanged_bytes(axis), src=here, dst=here)
        return seconds

    def _target(self, window: str, here: str, step: int) -> str:
        """Return the window that a kernel writes.

        Of three or more steps, the second and the third move the data to `spare` and back.
        """
        if len(self.cut.steps) < 3 or step not in (1, 2):
            return here
        return "spare" if here == window else window


def placed(
    transforms: Transforms,
    source: Path,
    windows: Mapping[str, int],
    tasklets: int,
    resident: Mapping[str, int] | None = None,
    defines: Mapping[str, int | str] | None = None,
) -> Placement:
    """Return the placement of a program that includes ntt.h. resident, defines: besides those of
    the transforms.
    """
    kept = {**transforms.resident, **(resident or {})}
    layout = Placement(source, kept, windows)
    rows = transforms.cut.bytes * transforms.cut.pes_per_limb * transforms.cut.slices
    return Placement(
        source,
        kept,
        windows,
        tasklets=tasklets,
        defines={**transforms.defines(layout), **(defines or {})},
        stack_bytes=STACK_BYTES,
        host_bytes=6 * rows,  # places, tables of a step, and rows
    )
