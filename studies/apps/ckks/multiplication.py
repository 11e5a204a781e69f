"""The steps of a homomorphic multiplication on PEs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

import numpy as np

from pidcomm.arguments import Array
from pidcomm_studies.apps.ckks.conversion import Conversion, conversions
from pidcomm_studies.apps.ckks.scheme import Parameters, Scheme
from pidcomm_studies.apps.ntt.decomposition import Decomposition
from pidcomm_studies.apps.ntt.transforms import Transforms, factors, placed
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import KERNEL, Cost, Stage

# The kernel's operations behind those of transforms.
TENSOR, CONVERT, ACCUMULATE, FINISH, ADD, COPY = range(2, 8)
PRIMITIVES = {
    TENSOR: "multiply",
    CONVERT: "base conversion",
    ACCUMULATE: "key product",
    FINISH: "scale",
    ADD: "add",
    COPY: "copy",
}
INPUTS = ("x0", "x1", "y0", "y1")
SOURCES_MIN = 4


@dataclass
class Clock:
    """What a primitive costs.

    kernel: modelled seconds. between: seconds of the exchange between PEs. exchanges: mask and
    bytes per PE of each alltoall. products: modular products of a PE, of transforms and base
    conversions.
    """

    kernel: float = 0.0
    between: float = 0.0
    exchanges: list[tuple[str, int]] = field(default_factory=list)
    products: int = 0


class Rehearsal:
    """A stage on which nothing runs."""

    def __init__(self, placement: Placement) -> None:
        """Take the placement of the program."""
        self.offsets, self.costs = placement.offsets, {KERNEL: Cost(), "alltoall": Cost()}

    def launch(self, **_: int) -> None:
        """Run nothing."""

    def alltoall(self, _: str, **__: int | str) -> None:
        """Move nothing."""


class Multiplication:
    """The steps of a multiplication on PEs, with a clock for each primitive.

    The limbs of each digit and of the extension are spread over the slices in equal numbers: if
    necessary, the last limb is repeated. So all slices do the same steps.
    """

    def __init__(self, scheme: Scheme, cut: Decomposition, tasklets: int) -> None:
        """Take the keys, and the decomposition of a transform of any number of limbs."""
        self.scheme, self.tasklets, parameters = scheme, tasklets, scheme.parameters
        self.slices = slices = cut.slices
        first = len(parameters.moduli)
        bases = [*parameters.digits, range(first, len(parameters.all))]
        each = [-(-len(basis) // slices) for basis in bases]  # limbs of a slice
        self.limbs = np.concatenate(
            [
                np.minimum(np.arange(slices * count), len(basis) - 1).reshape(slices, count)
                + basis.start
                for basis, count in zip(bases, each, strict=True)
            ],
            axis=1,
        )
        """The limb of `Parameters.all` behind each limb of a slice, shape (slices, all)."""
        self.count, self.extra, self.all = sum(each[:-1]), each[-1], sum(each)
        self.digits = [
            range(end - length, end)
            for end, length in zip(np.cumsum(each).tolist(), each[:-1], strict=False)
        ]
        # The limb that the rescale drops is the last before the extension, of the last slice. The
        # other slices keep theirs, and all have windows of the same size.
        self.kept = self.count - (slices == 1)
        self.cut = replace(cut, limbs=slices * self.all)
        tables = scheme.tables
        self.transforms = Transforms(
            self.cut, tables if slices == 1 else tables.of(self.limbs.ravel())
        )
        self.clocks: dict[str, Clock] = {}
        self.conversions = self._conversions(parameters)
        moduli = np.array(parameters.all, object)[self.limbs]
        whole, top = prod(parameters.extension), parameters.moduli[-1]

        def inverses(value: int, count: int) -> Array:
            """Return the inverse modulo each limb of a slice, shape (slices, 2 count)."""
            return np.stack(
                [
                    factors([pow(value, -1, q) if value % q else 1 for q in row], row).ravel()
                    for row in moduli[:, :count].tolist()
                ]
            )

        self.constants = {
            "moduli": self.transforms.tables.forward[:, :2].reshape(slices, -1),
            **{name: each.constants()[None, :] for name, each in self.conversions.items()},
            "extension_inverse": inverses(whole, self.count),
            "last_inverse": inverses(top, self.kept),
        }
        """Rows of each slice, or one row for all."""

    def _conversions(self, parameters: Parameters) -> dict[str, Conversion]:
        """Return the conversions of `conversions`, with the targets of all slices."""

        def with_targets(conversion: Conversion, limbs: Array) -> Conversion:
            return replace(conversion, targets=tuple(parameters.all[i] for i in limbs.ravel()))

        up, down, last = conversions(parameters)
        return {
            **{
                f"up{digit}": with_targets(conversion, np.delete(self.limbs, list(own), axis=1))
                for digit, (conversion, own) in enumerate(zip(up, self.digits, strict=True))
            },
            "down_factors": with_targets(down, self.limbs[:, : self.count]),
            "last_factors": with_targets(last, self.limbs[:, : self.kept]),
        }

    @property
    def limb_bytes(self) -> int:
        """Bytes of one limb on a PE."""
        return self.cut.word.bytes * self.cut.size // self.cut.pes_per_limb

    def placement(self) -> Placement:
        """Return the layout of a PE."""
        limbs = {
            **dict.fromkeys(
                (*INPUTS, "d0", "d1", "d2", "c2", "accq0", "accq1", "down"), self.count
            ),
            **dict.fromkeys(("up", "spare"), self.all),
            **dict.fromkeys(("accp0", "accp1"), self.extra),
            **dict.fromkeys(("r0", "r1"), self.kept),
            "last": 1,
        }
        windows = {name: count * self.limb_bytes for name, count in limbs.items()}
        resident = {
            **{name: array[0].nbytes for name, array in self.constants.items()},
            "keys": 2 * self.all * len(self.digits) * self.limb_bytes,
        }
        more = {
            "LOG_ELEMENTS": (self.limb_bytes // self.cut.word.bytes).bit_length() - 1,
            "LOG_BLOCKS_T": self.cut.blocks(is_input=False).bit_length() - 1,
            "LOG_BLOCKS_C": self.cut.blocks(is_input=True).bit_length() - 1,
            "LOG_SLICES": self.slices.bit_length() - 1,
            "ALL_LIMBS": self.all,
            "SOURCES_MAX": max(
                SOURCES_MIN, *(len(each.sources) for each in self.conversions.values())
            ),
        }
        source = Path(__file__).parent / "kernel.c"
        return placed(
            self.transforms,
            source,
            windows,
            self.tasklets,
            resident,
            {**more, "LIMBS": self.count},
        )

    def place(self, stage: Stage) -> None:
        """Write the tables, the constants and the key."""
        self.transforms.place(stage)
        for name, values in self.constants.items():
            stage.place(name, np.repeat(values, stage.pes // len(values), axis=0))
        rows = [
            self.cut.rows(part[self.limbs.ravel()], is_inverse=True)
            for digit in self.scheme.key
            for part in digit
        ]
        stage.place("keys", np.concatenate(rows, axis=1))

    def run(self, stage: Stage | Rehearsal) -> None:
        """Multiply the windows x and y; leave the product in r0 and r1."""
        count, digits = self.count, self.digits
        self._launch(stage, TENSOR, count)
        self._copy(stage, "d2", "c2", count, 0, count)
        self._transform(stage, "c2", count, is_inverse=True)
        self._exchange(stage, "c2", count)
        for digit, own in enumerate(digits):
            limbs = self.all - len(own)
            self._convert(stage, f"up{digit}", ("c2", count, own), "up", limbs)
            self._transform(stage, "up", limbs, gap_at=own.start, gap=len(own))
            at = stage.offsets
            key = at["keys"] + 2 * digit * self.all * self.limb_bytes
            for name, first, of_target in (("accq", 0, count), ("accp", count, self.extra)):
                self._launch(
                    stage,
                    ACCUMULATE,
                    of_target,
                    first,
                    source=at["up"],
                    source_limbs=limbs,
                    other=key,
                    target=at[f"{name}0"],
                    second=at[f"{name}1"],
                    digit=own.start,
                    digit_limbs=len(own),
                    adds=int(digit > 0),
                )
        for part in "01":
            self._transform(stage, f"accp{part}", self.extra, count, is_inverse=True)
            self._exchange(stage, f"accp{part}", self.extra)
            source = (f"accp{part}", self.extra, range(self.extra))
            self._convert(stage, "down_factors", source, "down", count)
            self._transform(stage, "down", count)
            self._finish(stage, f"accq{part}", f"accq{part}", count, "extension_inverse")
            at = stage.offsets
            self._launch(stage, ADD, count, source=at[f"accq{part}"], target=at[f"d{part}"])
        for part in "01":
            self._copy(stage, f"d{part}", "last", count, count - 1, 1)
            self._transform(stage, "last", 1, count - 1, is_inverse=True)
            self._exchange(stage, "last", 1)
            self._convert(stage, "last_factors", ("last", 1, range(1)), "down", self.kept)
            self._transform(stage, "down", self.kept)
            self._finish(stage, f"d{part}", f"r{part}", self.kept, "last_inverse")

    @contextmanager
    def _clock(self, stage: Stage | Rehearsal, name: str) -> Iterator[Clock]:
        def now() -> tuple[Cost, Cost]:
            return stage.costs.get(KERNEL, Cost()), stage.costs.get("alltoall", Cost())

        before = now()
        clock = self.clocks.setdefault(name, Clock())
        yield clock
        after = now()
        clock.kernel += after[0].modelled - before[0].modelled
        clock.between += after[1].total - before[1].total

    def _launch(
        self, stage: Stage | Rehearsal, operation: int, limbs: int, first: int = 0, **variables: int
    ) -> None:
        with self._clock(stage, PRIMITIVES[operation]):
            stage.launch(
                operation=operation, limbs=limbs, first=first, gap_at=limbs, gap=0, **variables
            )

    def _transform(
        self,
        stage: Stage | Rehearsal,
        window: str,
        limbs: int,
        first: int = 0,
        *,
        is_inverse: bool = False,
        **gap: int,
    ) -> None:
        """Transform a window of `limbs` limbs, on the clock of NTT or iNTT. gap: see struct
        ntt_limbs of ntt.h.
        """
        transform = self.transforms.inverse if is_inverse else self.transforms.forward
        with self._clock(stage, "iNTT" if is_inverse else "NTT") as clock:
            transform(stage, window, limbs, {"first": first, "gap_at": limbs, "gap": 0, **gap})
            clock.exchanges += [
                (mask, limbs * self.limb_bytes) for mask in self.cut.masks() if mask is not None
            ]
            elements = self.limb_bytes // self.cut.word.bytes
            clock.products += limbs * elements // 2 * (self.cut.size.bit_length() - 1)

    def _exchange(self, stage: Stage | Rehearsal, window: str, limbs: int) -> None:
        """Exchange the limbs of a part of the coefficients between slices."""
        if self.slices > 1:
            mask, size = "0001", limbs * self.limb_bytes
            with self._clock(stage, PRIMITIVES[CONVERT]) as clock:
                stage.alltoall(mask, bytes=size, src=window, dst=window)
                clock.exchanges.append((mask, size))

    def _copy(
        self,
        stage: Stage | Rehearsal,
        source: str,
        target: str,
        source_limbs: int,
        first: int,
        limbs: int,
    ) -> None:
        at = stage.offsets
        self._launch(
            stage,
            COPY,
            limbs,
            source=at[source],
            source_limbs=source_limbs,
            source_first=first,
            target=at[target],
        )

    def _convert(
        self,
        stage: Stage | Rehearsal,
        constants: str,
        source: tuple[str, int, range],
        target: str,
        limbs: int,
    ) -> None:
        """Convert limbs of a window to `limbs` limbs of each slice."""
        at, (name, source_limbs, used) = stage.offsets, source
        sources = len(self.conversions[constants].sources)
        skipped = self.slices * len(used) - sources if name == "last" else 0
        self._launch(
            stage,
            CONVERT,
            limbs,
            source=at[name] + skipped * self.limb_bytes * source_limbs // self.slices,
            source_limbs=source_limbs,
            source_first=used.start,
            sources=sources,
            sources_each=len(used),
            target=at[target],
            constants=at[constants],
        )
        elements = self.limb_bytes // self.cut.word.bytes // self.slices
        self.clocks[PRIMITIVES[CONVERT]].products += elements * sources * (1 + self.slices * limbs)
        self._exchange(stage, target, limbs)

    def _finish(
        self, stage: Stage | Rehearsal, source: str, target: str, limbs: int, constants: str
    ) -> None:
        at = stage.offsets
        self._launch(
            stage,
            FINISH,
            limbs,
            source=at[source],
            source_limbs=self.count,
            other=at["down"],
            target=at[target],
            constants=at[constants],
        )
