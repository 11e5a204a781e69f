"""Homomorphic multiplication of CKKS with relinearisation and rescale, over PEs.

All limbs of a coefficient are on the same PE, so base conversions need no communication; only the
transforms of `pidcomm_studies.apps.ntt` exchange data, by an alltoall between two steps. This is
not audited cryptography: see `scheme`.

Source: G. Jonatan et al., Scalability limitations of processing-in-memory using real system
evaluations, SIGMETRICS 2024, section 5.2.4. The authors publish neither code nor placement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Annotated

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array, as_integer
from pidcomm.bench.measure import require_bytes
from pidcomm.model import load_machine, predict
from pidcomm.sizes import format_shape
from pidcomm_studies.apps.application import Application
from pidcomm_studies.apps.ckks.conversion import Conversion, conversions
from pidcomm_studies.apps.ckks.scheme import Parameters, Scheme
from pidcomm_studies.apps.inputs import canonical, describe, generated, one_source
from pidcomm_studies.apps.ntt import TASKLETS, TASKLETS_MAX, steps_of
from pidcomm_studies.apps.ntt.decomposition import SIZE_MAX, SIZE_MIN, Decomposition, axis_limit
from pidcomm_studies.apps.ntt.field import BITS_MAX
from pidcomm_studies.apps.ntt.transforms import Transforms, factors, placed
from pidcomm_studies.apps.stage import KERNEL, Cost, Placement, Stage

SIZE, LEVEL, DNUM, SCALE_BITS = 2**16, 23, 3, 50
QUICK_SIZE, QUICK_LEVEL = 2**12, 5
STEPS = "3"
LEVEL_MAX, SEED_MAX = 63, 2**32 - 1
GENERATOR = "uniform"
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
PRICED_ON = "upmem-2560"
PRODUCT_US = 1.75  # of a full pipeline: 614 instructions per butterfly at 350 MHz (figure 12)


def uniform(seed: int = 1) -> int:
    """Return the seed of random messages, keys and errors."""
    return as_integer("seed", seed, 0, SEED_MAX)


GENERATORS = {"uniform": uniform}


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

    def __init__(self, problem: Ckks, shape: Sequence[int]) -> None:
        """Take the problem and the shape of the hypercube."""
        self.problem, parameters = problem, problem.parameters
        self.slices = slices = shape[-1]
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
        self.cut = problem.cut(shape, self.all)
        tables = problem.scheme.tables
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
                f"up{digit}": with_targets(conversion, np.delete(self.limbs, list(its), axis=1))
                for digit, (conversion, its) in enumerate(zip(up, self.digits, strict=True))
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
            self.problem.tasklets,
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
            for digit in self.problem.scheme.key
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
        for digit, its in enumerate(digits):
            limbs = self.all - len(its)
            self._convert(stage, f"up{digit}", ("c2", count, its), "up", limbs)
            self._transform(stage, "up", limbs, gap_at=its.start, gap=len(its))
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
                    digit=its.start,
                    digit_limbs=len(its),
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
        at, (name, source_limbs, its) = stage.offsets, source
        sources = len(self.conversions[constants].sources)
        skipped = self.slices * len(its) - sources if name == "last" else 0
        self._launch(
            stage,
            CONVERT,
            limbs,
            source=at[name] + skipped * self.limb_bytes * source_limbs // self.slices,
            source_limbs=source_limbs,
            source_first=its.start,
            sources=sources,
            sources_each=len(its),
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


class Ckks(Application):
    """Two encrypted messages that are multiplied."""

    name = "ckks"
    about = (
        "Homomorphic multiplication of CKKS over PEs, with relinearisation and rescale. No audited"
        " cryptography."
    )
    axes = 4
    data_help = "none: keys and messages are generated."
    generate_help = describe(GENERATORS)

    def __init__(
        self,
        parameters: Parameters,
        seed: int = 1,
        *,
        steps: str = STEPS,
        radix: int | None = None,
        tasklets: int = TASKLETS,
        source: str = "arrays",
    ) -> None:
        """Generate keys and two messages, and encrypt the messages."""
        self.parameters, self.source = parameters, source
        self.tasklets = as_integer("tasklets", tasklets, 1, TASKLETS_MAX)
        self.steps, self.radix = steps_of(parameters.size, steps, radix)
        self.cut((1,) * self.axes, 1)  # raises ArgumentError for the size and the steps
        limbs = len(parameters.all)
        require_bytes(
            8 * parameters.size * limbs * (2 * len(parameters.digits) + 30),
            f"keys and messages of {limbs} limbs",
        )
        self.scheme = Scheme(parameters, seed)
        random = np.random.default_rng([seed, 1])
        half = parameters.size // 2
        self.messages = [
            (random.uniform(-1, 1, half) + 1j * random.uniform(-1, 1, half)) / np.sqrt(2)
            for _ in range(2)
        ]
        encrypted = [self.scheme.encrypt(self.scheme.encode(message)) for message in self.messages]
        self.inputs = [part for pair in encrypted for part in pair]

    @classmethod
    def make(
        cls,
        *,
        data: Path | None = None,
        generate: str | None = None,
        quick: bool = False,
        size: Annotated[
            int | None,
            f"Coefficients N, {SIZE_MIN} to {SIZE_MAX} (default: {SIZE}; quick: {QUICK_SIZE}).",
        ] = None,
        level: Annotated[
            int | None, f"Level L; there are L + 1 moduli (default: {LEVEL}; quick: {QUICK_LEVEL})."
        ] = None,
        dnum: Annotated[int, "Number of digits of the key switching."] = DNUM,
        bits: Annotated[int, f"Bits of each modulus, at most {BITS_MAX}."] = BITS_MAX,
        scale_bits: Annotated[int, "Messages are multiplied by 2 to this power."] = SCALE_BITS,
        steps: Annotated[
            str, "Number of steps of a transform, or their sizes, as for ntt."
        ] = STEPS,
        radix: Annotated[int | None, "Radix of the butterflies, as for ntt."] = None,
        tasklets: Annotated[int, f"Tasklets of a PE, 1 to {TASKLETS_MAX}."] = TASKLETS,
    ) -> Ckks:
        """Return two encrypted messages with generated keys.

        quick: size 4096 and level 5, unless size, level or generate are given.
        """
        one_source(data, generate)
        if data is not None:
            raise ArgumentError(f"{data}: keys and messages are generated; use generate")
        spec = generate or GENERATOR
        is_small = quick and generate is None
        default_size, default_level = (QUICK_SIZE, QUICK_LEVEL) if is_small else (SIZE, LEVEL)
        points = as_integer("size", default_size if size is None else size, SIZE_MIN, SIZE_MAX)
        top = as_integer("level", default_level if level is None else level, 0, LEVEL_MAX)
        steps_of(points, steps, radix)
        width = as_integer("bits", bits, 2, BITS_MAX)
        scale = as_integer("scale_bits", scale_bits, 1, 2 * BITS_MAX)
        parameters = Parameters.of(points, top, dnum, width, scale)
        return cls(
            parameters,
            generated(spec, GENERATORS),
            steps=steps,
            radix=radix,
            tasklets=tasklets,
            source=canonical(spec, GENERATORS),
        )

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The source of keys and messages, and the parameters."""
        parameters = self.parameters
        return {
            "input": self.source,
            "size": parameters.size,
            "level": parameters.level,
            "extension": len(parameters.extension),
            "dnum": parameters.dnum,
            "modulus_bits": sum(q.bit_length() for q in parameters.moduli),
            "steps": format_shape(self.steps),
            "radix": self.radix,
            "tasklets": self.tasklets,
        }

    def shape_of(self, pes: int) -> tuple[int, ...]:
        """Return the shape with the lowest price: all limbs on each PE, or spread over slices.

        Raises ArgumentError if no shape has `pes` PEs.
        """
        shapes = []
        for slices in (1 << log for log in range(pes.bit_length()) if pes % (1 << log) == 0):
            try:
                shape = (*Decomposition.shape_of(pes // slices, self.steps, 1)[:-1], slices)
                self.cut(shape, 1)
                shapes.append(shape)
            except ArgumentError:
                continue
        if not shapes:
            most = [axis_limit(self.steps, axis) for axis in range(self.axes - 1)]
            slices = self._most_slices(most)
            raise ArgumentError(
                f"no shape has {pes} PEs: the steps {format_shape(self.steps)} allow"
                f" {format_shape(tuple(most))} PEs per limb, and {len(self.parameters.all)}"
                f" moduli {slices} slices (powers of two; at most the moduli and the first axis),"
                f" at most {prod(most) * slices} PEs: use another number of PEs, other steps, a"
                " higher level or a larger size"
            )
        return min(shapes, key=self.price)

    def _most_slices(self, shape: Sequence[int]) -> int:
        """Return the most slices of a shape: a power of two up to the number of moduli and the
        blocks of coefficients.
        """
        blocks = shape[0] if len(self.steps) > 1 else 1
        return int(min(blocks, 1 << (len(self.parameters.all).bit_length() - 1)))

    def rehearsed(self, shape: Sequence[int]) -> dict[str, Clock]:
        """Return the exchanges and products of each primitive, without a run."""
        work = Multiplication(self, shape)
        work.run(Rehearsal(work.placement()))
        return work.clocks

    def price(self, shape: Sequence[int]) -> float:
        """Return the modelled seconds of the exchanges and products on a shape, by which
        `shape_of` chooses.
        """
        machine = load_machine(PRICED_ON)
        clocks = self.rehearsed(shape).values()
        exchanges = Counter(exchange for clock in clocks for exchange in clock.exchanges)
        between = sum(
            times
            * predict(
                "alltoall", tuple(shape), mask, bytes=size, dst=0, dtype="uint64", machine=machine
            ).seconds
            for (mask, size), times in exchanges.items()
        )
        return between + PRODUCT_US * 1e-6 * sum(clock.products for clock in clocks)

    def cut(self, shape: Sequence[int], limbs: int) -> Decomposition:
        """Return the decomposition on a shape, of `limbs` limbs of each slice."""
        slices = shape[-1]
        most = self._most_slices(shape)
        if slices & (slices - 1) or slices > most:
            raise ArgumentError(
                f"shape {format_shape(tuple(shape))} has {slices} slices; the"
                f" {len(self.parameters.all)} moduli and the first axis allow a power of two up"
                f" to {most}"
            )
        return Decomposition(
            self.parameters.size, self.steps, tuple(shape), limbs * slices, self.radix
        )

    def place(self, shape: Sequence[int]) -> Placement:
        """Return the layout of a PE: twiddles, constants, the key, and windows."""
        return Multiplication(self, shape).placement()

    def run(self, stage: Stage) -> Array:
        """Multiply; return both parts of the product, shape (2 L, size), as transforms in
        bit-reversed order.
        """
        work = Multiplication(self, stage.shape)
        work.place(stage)
        return self.carried_out(stage, work)

    def carried_out(self, stage: Stage | Rehearsal, work: Multiplication) -> Array:
        """Scatter the inputs, multiply and gather the product."""
        mask, owned = "1" * self.axes, work.limbs[:, : work.count].ravel()
        cut = self.cut(stage.shape, work.count)
        for name, part in zip(INPUTS, self.inputs, strict=True):
            rows = stage.host_work(
                lambda part=part: cut.rows(part[owned], is_inverse=True).reshape(1, -1)  # type: ignore[misc]
            )
            stage.scatter(mask, rows, dst=name)
        work.run(stage)
        kept = self.cut(stage.shape, work.kept)
        parts = [
            stage.gather(mask, bytes=kept.bytes, src=name, dtype=np.uint64) for name in ("r0", "r1")
        ]
        _, places = np.unique(work.limbs[:, : work.kept], return_index=True)
        places = places[: self.parameters.level]
        return stage.host_work(
            lambda: np.concatenate(
                [kept.values(limbs.reshape(stage.pes, -1))[places] for limbs in parts]
            )
        )

    def reference(self) -> Array:
        """Compute the product on all CPUs."""
        from pidcomm_studies.apps.ckks.cpu import multiply

        return np.concatenate(multiply(self.scheme, self.inputs)[0])

    def error(self, product: Array) -> float:
        """Return the largest error of the decrypted product of the messages. product: as `run`
        returns it.
        """
        level = self.parameters.level
        coefficients = self.scheme.decrypt((product[:level], product[level:]))
        scale = 2.0 ** (2 * self.parameters.scale_bits) / self.parameters.moduli[-1]
        expected = self.messages[0] * self.messages[1]
        return float(np.abs(self.scheme.decode(coefficients, scale) - expected).max())


APPLICATION = Ckks
