"""Homomorphic multiplication of CKKS with relinearisation and rescale, over PEs.

The transforms of `pidcomm_studies.apps.ntt` exchange data by an alltoall between two steps. If all
limbs of a coefficient are on the same PE, base conversions need no communication. If limbs are
spread over slices of the hypercube, an alltoall before and one after a base conversion move all
limbs of some coefficients to each slice and back. This is not audited cryptography: see `scheme`.

Source: G. Jonatan et al., Scalability limitations of processing-in-memory using real system
evaluations, SIGMETRICS 2024, section 5.2.4. The authors publish neither code nor placement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array, as_integer
from pidcomm.bench.measure import require_bytes
from pidcomm.model import load_machine
from pidcomm.sizes import format_shape
from pidcomm_studies.apps.application import Application
from pidcomm_studies.apps.ckks.multiplication import INPUTS, Clock, Multiplication, Rehearsal
from pidcomm_studies.apps.ckks.scheme import Parameters, Scheme
from pidcomm_studies.apps.inputs import canonical, describe, generated, one_source
from pidcomm_studies.apps.ntt import TASKLETS, TASKLETS_MAX, steps_of
from pidcomm_studies.apps.ntt.decomposition import (
    SIZE_MAX,
    SIZE_MIN,
    STEP_MAX,
    Decomposition,
    axis_limit,
)
from pidcomm_studies.apps.ntt.field import BITS_MAX
from pidcomm_studies.apps.ntt.transforms import predicted_seconds
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import Stage

SIZE, LEVEL, DNUM, SCALE_BITS = 2**16, 23, 3, 50
QUICK_SIZE, QUICK_LEVEL = 2**12, 5
STEPS = "3"
LEVEL_MAX, SEED_MAX = 63, 2**32 - 1
SOURCES_MAX = 28  # of a base conversion: 28 terms below 9 q and one below q are below 256 q
GENERATOR = "uniform"
PRICED_ON = "upmem-2560"
PRODUCT_US = 1.75  # of a full pipeline: 614 instructions per butterfly at 350 MHz (figure 12)


def uniform(seed: int = 1) -> int:
    """Return the seed of random messages, keys and errors."""
    return as_integer("seed", seed, 0, SEED_MAX)


GENERATORS = {"uniform": uniform}


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
        _check_sources(parameters)
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
            str,
            "Number of steps of a transform, or their sizes, as for ntt. --pes chooses the shape"
            f" with the lowest price on {PRICED_ON} with the default technique.",
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
            slices = self.most_slices(most)
            raise ArgumentError(
                f"no shape has {pes} PEs: the steps {format_shape(self.steps)} allow"
                f" {format_shape(tuple(most))} PEs per limb, and {len(self.parameters.all)}"
                f" moduli {slices} slices (powers of two; at most the moduli and the first axis),"
                f" at most {prod(most) * slices} PEs: use another number of PEs, other steps, a"
                " higher level or a larger size" + self._example(pes)
            )
        return min(shapes, key=self.price)

    def _example(self, pes: int) -> str:
        """Return the lowest level, and steps, that allow a number of PEs, in words; or nothing."""
        if pes & (pes - 1):
            return ""
        parameters = self.parameters
        bits = parameters.size.bit_length() - 1
        limits = {
            steps: [axis_limit(steps, axis) for axis in range(self.axes - 1)]
            for count in range(2, self.axes + 1)
            for logs in product(range(1, STEP_MAX.bit_length()), repeat=count)
            if sum(logs) == bits
            for steps in [tuple(1 << log for log in logs)]
        }
        for level in range(parameters.level, LEVEL_MAX + 1):
            moduli = level + 1 + -(-(level + 1) // parameters.dnum)
            for steps, most in limits.items():
                if pes <= prod(most) * min(most[0], 1 << (moduli.bit_length() - 1)):
                    return f", such as --level {level} --steps {format_shape(steps)}"
        return ""

    def most_slices(self, shape: Sequence[int]) -> int:
        """Return the most slices of a shape: a power of two up to the number of moduli and the
        blocks of coefficients.
        """
        blocks = shape[0] if len(self.steps) > 1 else 1
        return int(min(blocks, 1 << (len(self.parameters.all).bit_length() - 1)))

    def rehearsed(self, shape: Sequence[int]) -> dict[str, Clock]:
        """Return the exchanges and products of each primitive, without a run."""
        work = self.multiplication(shape)
        work.run(Rehearsal(work.placement()))
        return work.clocks

    def price(self, shape: Sequence[int]) -> float:
        """Return the modelled seconds of the exchanges and products on a shape, by which
        `shape_of` chooses: always on upmem-2560 with the default technique, whatever machine and
        technique a run has.
        """
        machine = load_machine(PRICED_ON)
        clocks = self.rehearsed(shape).values()
        exchanges = Counter(exchange for clock in clocks for exchange in clock.exchanges)
        between = sum(
            times * predicted_seconds(shape, machine, "alltoall", mask, size_bytes)
            for (mask, size_bytes), times in exchanges.items()
        )
        return between + PRODUCT_US * 1e-6 * sum(clock.products for clock in clocks)

    def cut(self, shape: Sequence[int], limbs: int) -> Decomposition:
        """Return the decomposition on a shape, of `limbs` limbs of each slice."""
        slices = shape[-1]
        most = self.most_slices(shape)
        if slices & (slices - 1) or slices > most:
            raise ArgumentError(
                f"shape {format_shape(tuple(shape))} has {slices} slices; the"
                f" {len(self.parameters.all)} moduli and the first axis allow a power of two up"
                f" to {most}"
            )
        return Decomposition(
            self.parameters.size, self.steps, tuple(shape), limbs * slices, self.radix
        )

    def multiplication(self, shape: Sequence[int]) -> Multiplication:
        """Return the steps on a shape."""
        return Multiplication(self.scheme, self.cut(shape, 1), self.tasklets)

    def place(self, shape: Sequence[int]) -> Placement:
        """Return the layout of a PE: twiddles, constants, the key, and windows."""
        return self.multiplication(shape).placement()

    def run(self, stage: Stage) -> Array:
        """Multiply; return both parts of the product, shape (2 L, size), as transforms in
        bit-reversed order.
        """
        work = self.multiplication(stage.shape)
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


def _check_sources(parameters: Parameters) -> None:
    widest = max(len(parameters.extension), *map(len, parameters.digits))
    if widest > SOURCES_MAX:
        raise ArgumentError(
            f"level {parameters.level} and dnum {parameters.dnum} make a digit or an extension of"
            f" {widest} moduli; the sums of a base conversion allow at most {SOURCES_MAX}: use a"
            f" dnum of at least {-(-len(parameters.moduli) // SOURCES_MAX)}"
        )


APPLICATION = Ckks
