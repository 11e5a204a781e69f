"""Homomorphic multiplication of CKKS with relinearisation and rescale, over PEs.

All limbs of a coefficient are on the same PE, so base conversions need no communication; only the
transforms of `pidcomm_studies.apps.ntt` exchange data, by an alltoall between two steps. This is
not audited cryptography: see `scheme`.

Source: G. Jonatan et al., Scalability limitations of processing-in-memory using real system
evaluations, SIGMETRICS 2024, section 5.2.4. The authors publish neither code nor placement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Annotated

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array, as_integer
from pidcomm.bench.measure import require_bytes
from pidcomm.sizes import format_shape
from pidcomm_studies.apps.application import Application
from pidcomm_studies.apps.ckks.conversion import Conversion, conversions
from pidcomm_studies.apps.ckks.scheme import Parameters, Scheme
from pidcomm_studies.apps.inputs import canonical, describe, generated, one_source
from pidcomm_studies.apps.ntt import TASKLETS, TASKLETS_MAX, steps_of
from pidcomm_studies.apps.ntt.decomposition import SIZE_MAX, SIZE_MIN, Decomposition
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


def uniform(seed: int = 1) -> int:
    """Return the seed of random messages, keys and errors."""
    return as_integer("seed", seed, 0, SEED_MAX)


GENERATORS = {"uniform": uniform}


@dataclass
class Clock:
    """What a primitive costs.

    kernel: modelled seconds. between: seconds of the exchange between PEs. exchanges: mask and
    bytes per PE of each alltoall.
    """

    kernel: float = 0.0
    between: float = 0.0
    exchanges: list[tuple[str, int]] = field(default_factory=list)


class Multiplication:
    """The steps of a multiplication on PEs, with a clock for each primitive."""

    def __init__(self, problem: Ckks, shape: Sequence[int]) -> None:
        """Take the problem and the shape of the hypercube."""
        self.problem, parameters = problem, problem.parameters
        self.count, self.extra, self.all = (
            len(parameters.moduli),
            len(parameters.extension),
            len(parameters.all),
        )
        self.cut = problem.cut(shape, self.all)
        self.transforms = Transforms(self.cut, problem.scheme.tables)
        self.clocks: dict[str, Clock] = {}
        self.up, self.down, self.last = conversions(parameters)
        whole, top = prod(parameters.extension), parameters.moduli[-1]
        self.constants = {
            "moduli": problem.scheme.tables.forward[:, :2].copy().ravel(),
            **{f"up{digit}": conversion.constants() for digit, conversion in enumerate(self.up)},
            "down_factors": self.down.constants(),
            "last_factors": self.last.constants(),
            "extension_inverse": factors(
                [pow(whole, -1, q) for q in parameters.moduli], parameters.moduli
            ).ravel(),
            "last_inverse": (
                factors(
                    [pow(top, -1, q) for q in parameters.moduli[:-1]], parameters.moduli[:-1]
                ).ravel()
            ),
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
            **dict.fromkeys(("r0", "r1"), self.count - 1),
            "last": 1,
        }
        windows = {name: count * self.limb_bytes for name, count in limbs.items()}
        resident = {
            **{name: 8 * array.size for name, array in self.constants.items()},
            "keys": 2 * self.all * len(self.up) * self.limb_bytes,
        }
        more = {
            "LOG_ELEMENTS": (self.limb_bytes // self.cut.word.bytes).bit_length() - 1,
            "LOG_BLOCKS_T": self.cut.blocks(is_input=False).bit_length() - 1,
            "LOG_BLOCKS_C": self.cut.blocks(is_input=True).bit_length() - 1,
            "ALL_LIMBS": self.all,
            "SOURCES_MAX": max(
                SOURCES_MIN, self.extra, *(len(conversion.sources) for conversion in self.up)
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
            stage.place(name, np.tile(values, (stage.pes, 1)))
        rows = [
            self.cut.rows(part, is_inverse=True)
            for digit in self.problem.scheme.key
            for part in digit
        ]
        stage.place("keys", np.concatenate(rows, axis=1))

    def run(self, stage: Stage) -> None:
        """Multiply the windows x and y; leave the product in r0 and r1."""
        count, digits = self.count, self.problem.parameters.digits
        self._launch(stage, TENSOR, count)
        self._copy(stage, "d2", "c2", count, 0, count)
        self._transform(stage, "c2", count, is_inverse=True)
        for digit, its in enumerate(digits):
            limbs = self.all - len(its)
            self._convert(stage, f"up{digit}", self.up[digit], ("c2", count, its.start), "up")
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
            self._convert(stage, "down_factors", self.down, (f"accp{part}", self.extra, 0), "down")
            self._transform(stage, "down", count)
            self._finish(stage, f"accq{part}", f"accq{part}", count, "extension_inverse")
            at = stage.offsets
            self._launch(stage, ADD, count, source=at[f"accq{part}"], target=at[f"d{part}"])
        for part in "01":
            self._copy(stage, f"d{part}", "last", count, count - 1, 1)
            self._transform(stage, "last", 1, count - 1, is_inverse=True)
            self._convert(stage, "last_factors", self.last, ("last", 1, 0), "down")
            self._transform(stage, "down", count - 1)
            self._finish(stage, f"d{part}", f"r{part}", count - 1, "last_inverse")

    @contextmanager
    def _clock(self, stage: Stage, name: str) -> Iterator[Clock]:
        def now() -> tuple[Cost, Cost]:
            return stage.costs.get(KERNEL, Cost()), stage.costs.get("alltoall", Cost())

        before = now()
        clock = self.clocks.setdefault(name, Clock())
        yield clock
        after = now()
        clock.kernel += after[0].modelled - before[0].modelled
        clock.between += after[1].total - before[1].total

    def _launch(
        self, stage: Stage, operation: int, limbs: int, first: int = 0, **variables: int
    ) -> None:
        with self._clock(stage, PRIMITIVES[operation]):
            stage.launch(
                operation=operation, limbs=limbs, first=first, gap_at=limbs, gap=0, **variables
            )

    def _transform(
        self,
        stage: Stage,
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

    def _copy(
        self, stage: Stage, source: str, target: str, source_limbs: int, first: int, limbs: int
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
        stage: Stage,
        constants: str,
        conversion: Conversion,
        source: tuple[str, int, int],
        target: str,
    ) -> None:
        at, (name, limbs, first) = stage.offsets, source
        self._launch(
            stage,
            CONVERT,
            len(conversion.targets),
            source=at[name],
            source_limbs=limbs,
            source_first=first,
            sources=len(conversion.sources),
            target=at[target],
            constants=at[constants],
        )

    def _finish(self, stage: Stage, source: str, target: str, limbs: int, constants: str) -> None:
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
        """Return a shape without slices: each PE has all limbs of its coefficients."""
        return Decomposition.shape_of(pes, self.steps, 1)

    def cut(self, shape: Sequence[int], limbs: int) -> Decomposition:
        """Return the decomposition of `limbs` limbs on a shape."""
        if shape[-1] != 1:
            raise ArgumentError(
                f"shape {format_shape(tuple(shape))} has {shape[-1]} slices; a PE needs all limbs"
                " of its coefficients, so the last axis must be 1"
            )
        return Decomposition(self.parameters.size, self.steps, tuple(shape), limbs, self.radix)

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

    def carried_out(self, stage: Stage, work: Multiplication) -> Array:
        """Scatter the inputs, multiply and gather the product."""
        mask, count = "1" * self.axes, work.count
        for name, part in zip(INPUTS, self.inputs, strict=True):
            cut = self.cut(stage.shape, count)
            rows = stage.host_work(
                lambda part=part, cut=cut: cut.rows(part, is_inverse=True).reshape(1, -1)  # type: ignore[misc]
            )
            stage.scatter(mask, rows, dst=name)
        work.run(stage)
        cut = self.cut(stage.shape, count - 1)
        parts = [
            stage.gather(mask, bytes=cut.bytes, src=name, dtype=np.uint64) for name in ("r0", "r1")
        ]
        return stage.host_work(
            lambda: np.concatenate([cut.values(limbs.reshape(stage.pes, -1)) for limbs in parts])
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
