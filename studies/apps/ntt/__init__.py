"""Number-theoretic transforms of polynomials modulo x^N + 1 and products of such polynomials, over
PEs.

Each limb is a polynomial modulo a prime q = 1 modulo 2N. A transform is cut into steps with an
alltoall between two steps (`pidcomm_studies.apps.ntt.decomposition`); limbs are spread over slices
of the hypercube. Results are in bit-reversed order: element i is the polynomial at psi^(2 r + 1),
psi being a root of unity of order 2N and r being i with its bits reversed.

Source: G. Jonatan et al., Scalability limitations of processing-in-memory using real system
evaluations, SIGMETRICS 2024, section 5. There, a step multiplies by twiddles between two
transforms; here the twiddles are part of the next step's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np

from pidcomm import ArgumentError, Error
from pidcomm.arguments import MAX_COUNT, Array, as_integer, as_text
from pidcomm.files import malformed, require_file
from pidcomm.sizes import format_shape, parse_shape
from pidcomm_studies.apps.application import Application
from pidcomm_studies.apps.inputs import canonical, describe, generated, one_source
from pidcomm_studies.apps.ntt import field
from pidcomm_studies.apps.ntt.decomposition import (
    AXES,
    MOST_STEPS,
    RADIXES,
    SIZE_MAX,
    SIZE_MIN,
    STEP_MAX,
    Decomposition,
    balanced,
    check_radix,
    check_size,
)
from pidcomm_studies.apps.ntt.transforms import MULTIPLY, Tables, Transforms, placed
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import Stage

SIZE, LIMBS, STEPS, TASKLETS = 2**16, 8, "2", 16
QUICK_SIZE, QUICK_LIMBS = 2**12, 4
LIMBS_MAX, TASKLETS_MAX, SEED_MAX = 1024, 24, 2**32 - 1
OPERATIONS = ("forward", "inverse", "product")
GENERATOR = "uniform"


def uniform(seed: int = 1) -> Callable[[Sequence[int], int, int], Array]:
    """Return a function (moduli, size, operand) -> random elements below their moduli, shape
    (limbs, size).
    """
    as_integer("seed", seed, 0, SEED_MAX)

    def make(moduli: Sequence[int], size: int, operand: int) -> Array:
        random = np.random.default_rng([seed, operand])
        return np.stack([random.integers(0, q, size, np.uint64) for q in moduli])

    return make


GENERATORS: Mapping[str, Callable[..., Callable[[Sequence[int], int, int], Array]]] = {
    "uniform": uniform
}


class Ntt(Application):
    """Transforms of polynomials, or products of two polynomials, one for each limb."""

    name = "ntt"
    about = (
        "Number-theoretic transforms over PEs: polynomials modulo x^N + 1 and primes, with an"
        " alltoall between steps."
    )
    axes = AXES
    data_help = (
        "An .npz with arrays moduli (limbs), a (limbs x size) and, for products, b, all of dtype"
        " uint64."
    )
    generate_help = describe(GENERATORS)

    def __init__(
        self,
        moduli: Sequence[int],
        a: Array,
        b: Array | None = None,
        *,
        operation: str = "forward",
        steps: str = STEPS,
        radix: int | None = None,
        tasklets: int = TASKLETS,
        chunks: int = 1,
        source: str = "arrays",
    ) -> None:
        """Take polynomials a, shape (limbs, size), and for products b, with elements below their
        moduli. chunks: divides the limbs; the PEs transform 1 / chunks of the limbs at a time.

        steps: sizes such as "256x256", or a number of steps. radix: 2, 4 or 16; None chooses the
        one with the most equal steps. Raises ArgumentError for arrays, moduli, steps and radixes
        that break a rule.
        """
        if operation not in OPERATIONS:
            raise ArgumentError(f"operation {operation!r} must be one of {', '.join(OPERATIONS)}")
        if b is not None and operation != "product":
            raise ArgumentError(f"b is only for products; the operation is {operation}")
        self.operation = operation
        self.tasklets = as_integer("tasklets", tasklets, 1, TASKLETS_MAX)
        operands = {"a": a, "b": b} if operation == "product" else {"a": a}
        self.moduli = check_polynomials(moduli, operands)
        self.chunks = as_integer("chunks", chunks, 1, LIMBS_MAX)
        if len(self.moduli) % self.chunks:
            raise ArgumentError(f"chunks ({chunks}) must divide the {len(self.moduli)} limbs")
        self.size = a.shape[1]
        self.steps, self.radix = steps_of(self.size, steps, radix)
        self.operands = [
            np.ascontiguousarray(array) for array in operands.values() if array is not None
        ]
        self.source = source
        self.tables = Tables(self.moduli, self.size)
        self.word = field.word_of(self.moduli)

    @classmethod
    def make(
        cls,
        *,
        data: Path | None = None,
        generate: str | None = None,
        quick: bool = False,
        operation: Annotated[str, f"Operation: {', '.join(OPERATIONS)}."] = "forward",
        size: Annotated[
            int | None,
            f"Coefficients N, {SIZE_MIN} to {SIZE_MAX} (default: {SIZE}; quick: {QUICK_SIZE}).",
        ] = None,
        limbs: Annotated[
            int | None, f"Number of primes and limbs (default: {LIMBS}; quick: {QUICK_LIMBS})."
        ] = None,
        bits: Annotated[
            int | None,
            f"Bits of each prime, at most {field.BITS_MAX} (default: {field.BITS_MAX}); up to"
            f" {field.NARROW.modulus_bits}, PEs have 32-bit words.",
        ] = None,
        steps: Annotated[
            str,
            f"Number of steps, 1 to 4, or their sizes, such as 256x256; each at most {STEP_MAX}.",
        ] = STEPS,
        radix: Annotated[
            int | None,
            f"Radix of the butterflies: {', '.join(map(str, RADIXES))} (default: the one with the"
            " most equal steps).",
        ] = None,
        tasklets: Annotated[int, f"Tasklets of a PE, 1 to {TASKLETS_MAX}."] = TASKLETS,
        chunks: Annotated[
            int, "Number of chunks of limbs, which the PEs transform one after another."
        ] = 1,
    ) -> Ntt:
        """Return the polynomials of a file or of a generator.

        quick: size 4096 and 4 limbs, unless size, limbs, data or generate are given.
        """
        one_source(data, generate)
        if data is not None:
            for name, asked in (("size", size), ("limbs", limbs), ("bits", bits)):
                if asked is not None:
                    raise ArgumentError(
                        f"{name} ({asked}) is only for generators; {data} has its own"
                    )
            moduli, a, b = _load(data, operation)
            source = str(data)
        else:
            spec = generate or GENERATOR
            values = generated(spec, GENERATORS)
            is_small = quick and generate is None
            default_size, default_limbs = (QUICK_SIZE, QUICK_LIMBS) if is_small else (SIZE, LIMBS)
            count = as_integer("limbs", default_limbs if limbs is None else limbs, 1, LIMBS_MAX)
            points = as_integer("size", default_size if size is None else size, 1, MAX_COUNT)
            width = as_integer("bits", field.BITS_MAX if bits is None else bits, 2, field.BITS_MAX)
            steps_of(points, steps, radix)  # raises ArgumentError before a large size takes memory
            moduli = field.first_primes(count, width, points)
            a = values(moduli, points, 0)
            b = values(moduli, points, 1) if operation == "product" else None
            source = canonical(spec, GENERATORS)
        return cls(
            moduli,
            a,
            b,
            operation=operation,
            steps=steps,
            radix=radix,
            tasklets=tasklets,
            chunks=chunks,
            source=source,
        )

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The source of the polynomials, the operation, and the sizes."""
        return {
            "input": self.source,
            "operation": self.operation,
            "size": self.size,
            "limbs": len(self.moduli),
            "modulus_bits": sum(q.bit_length() for q in self.moduli),
            "word_bits": self.word.bits,
            "steps": format_shape(self.steps),
            "radix": self.radix,
            "tasklets": self.tasklets,
            "chunks": self.chunks,
        }

    def shape_of(self, pes: int) -> tuple[int, ...]:
        """Return a shape with as many PEs per limb as the steps allow; the last axis is for
        limbs.
        """
        return Decomposition.shape_of(pes, self.steps, self._limbs)

    def cut(self, shape: Sequence[int]) -> Decomposition:
        """Return the decomposition of the limbs of a chunk on a shape."""
        return Decomposition(
            self.size, self.steps, tuple(shape), self._limbs, self.radix, self.word
        )

    def transforms(self, shape: Sequence[int]) -> Transforms:
        """Return the transforms on a shape. A PE has its limbs of all chunks, chunk by chunk."""
        cut = self.cut(shape)
        limbs = [chunk * self._limbs + cut.limb_rows() for chunk in range(self.chunks)]
        order = np.concatenate(limbs, axis=1).ravel()
        return Transforms(
            replace(cut, limbs=len(order)),
            self.tables.of(order),
            has_inverse=self.operation != "forward",
            chunks=self.chunks,
        )

    def place(self, shape: Sequence[int]) -> Placement:
        """Return the layout of a PE: twiddles, and the elements of its limbs."""
        transforms = self.transforms(shape)
        size = transforms.window_cut.bytes
        names = [
            "a",
            *(["b"] if self.operation == "product" else []),
            *(["spare"] if len(self.steps) > 2 else []),
        ]
        return placed(
            transforms,
            Path(__file__).parent / "kernel.c",
            dict.fromkeys(names, size),
            self.tasklets,
        )

    def run(self, stage: Stage) -> Array:
        """Compute the transforms or products, shape (limbs, size)."""
        return self.run_steps(stage)[0]

    def run_steps(self, stage: Stage) -> tuple[Array, list[float]]:
        """Return the result of `run`, and the modelled seconds of each kernel of the last
        transform.
        """
        transforms = self.transforms(stage.shape)
        transforms.place(stage)
        cut = transforms.window_cut
        values = np.empty((self.chunks, cut.slices, cut.limbs_per_pe, self.size), np.uint64)
        for chunk, of_chunk in enumerate(values):
            kernels = self._run_chunk(stage, transforms, chunk, of_chunk)
        stage.wait()
        by_chunk = values.reshape(self.chunks, -1, self.size)[:, : self._limbs]
        return by_chunk.reshape(-1, self.size), kernels

    def _run_chunk(
        self, stage: Stage, transforms: Transforms, chunk: int, values: Array
    ) -> list[float]:
        cut, limbs = self.cut(stage.shape), slice(chunk * self._limbs, (chunk + 1) * self._limbs)
        first = {"first": chunk * cut.limbs_per_pe}
        is_inverse, is_forward = self.operation == "inverse", self.operation == "forward"
        for window, operand in zip("ab", self.operands, strict=False):
            rows = stage.lay_out(
                np.empty((cut.slices, cut.words(is_input=not is_inverse)), self.word.dtype),
                lambda slices, rows, values=operand[limbs]: cut.fill_rows(  # type: ignore[misc]
                    values, slices, rows, is_inverse=is_inverse
                ),
            )
            stage.scatter("1" * self.axes, rows.reshape(1, -1), dst=window)
        if is_inverse:
            kernels = transforms.inverse(stage, "a", variables=first)
        else:
            for window, _ in zip("ab", self.operands, strict=False):
                kernels = transforms.forward(stage, window, variables=first)
        if self.operation == "product":
            stage.launch(
                operation=MULTIPLY, step=0, source=stage.offsets["a"], target=stage.offsets["b"]
            )
            kernels = transforms.inverse(stage, "a", variables=first)
        gathered = stage.gather(
            "1" * self.axes,
            bytes=cut.host_bytes(is_input=not is_forward),
            src="a",
            dtype=self.word.dtype,
            wait=False,
        ).reshape(cut.slices, -1)
        stage.lay_out(
            values,
            lambda slices, values: cut.fill_values(
                gathered[slices], values, is_inverse=not is_forward
            ),
            reads=gathered,
        )
        return kernels

    @property
    def _limbs(self) -> int:
        """Number of limbs of a chunk."""
        return len(self.moduli) // self.chunks

    @property
    def cpu_lanes(self) -> int:
        """Number of vector lanes of `reference` on this CPU."""
        from pidcomm_studies.apps import _apps

        return _apps.ntt_lanes(max(self.moduli), self.size)

    def reference(self) -> Array:
        """Compute the transforms or products on all CPUs."""
        from pidcomm_studies.apps import _apps

        if self.operation == "inverse":
            return _apps.ntt_inverse(self.operands[0], self.tables.inverse, self.tables.scales)
        transformed = [_apps.ntt_forward(values, self.tables.forward) for values in self.operands]
        if self.operation == "forward":
            return transformed[0]
        product = _apps.ntt_multiply(transformed[0], transformed[1], self.tables.moduli)
        return _apps.ntt_inverse(product, self.tables.inverse, self.tables.scales)


def check_polynomials(moduli: Sequence[int], operands: Mapping[str, Array | None]) -> list[int]:
    """Return the moduli.

    Raises ArgumentError unless the polynomials and the moduli of their limbs fit each other.
    """
    checked = [as_integer("modulus", q, 0, 2**64 - 1) for q in moduli]
    as_integer("number of limbs", len(checked), 1, LIMBS_MAX)
    limits = np.array(checked, np.uint64)[:, None]
    size: int | None = None
    for name, array in operands.items():
        if (
            not isinstance(array, np.ndarray)
            or array.dtype != np.uint64
            or array.ndim != 2
            or len(array) != len(checked)
        ):
            description = (
                f"{array.dtype.name} of shape {array.shape}"
                if isinstance(array, np.ndarray)
                else type(array).__name__
            )
            raise ArgumentError(
                f"{name} is {description}; it must be a uint64 array of shape (limbs, size)"
                f" with a limb for each of {len(checked)} moduli"
            )
        if size is None:
            size = array.shape[1]
            check_size(size)
            field.check_moduli(checked, size)
        if array.shape[1] != size:
            raise ArgumentError(f"{name} has size {array.shape[1]}; a has {size}")
        if (array >= limits).any():
            limb, place = np.argwhere(array >= limits)[0]
            raise ArgumentError(
                f"{name}[{limb}, {place}] is {array[limb, place]}; it must be below its modulus"
                f" {checked[limb]}"
            )
    return checked


def steps_of(size: int, steps: str, radix: int | None) -> tuple[tuple[int, ...], int]:
    """Return the sizes of steps and the radix.

    Raises ArgumentError if the size allows no such steps.
    """
    check_size(size)
    if radix is not None:
        check_radix(radix)
    sizes, chosen = _steps_of(size, as_text("steps", steps), radix)
    Decomposition(size, sizes, (1,) * AXES, 1, chosen)  # checks the sizes
    return sizes, chosen


def _steps_of(size: int, steps: str, radix: int | None) -> tuple[tuple[int, ...], int]:
    if not steps.isdecimal() or int(steps) > MOST_STEPS:
        sizes = tuple(parse_shape(steps))
        fitting = [
            option
            for option in RADIXES
            if all((n.bit_length() - 1) % (option.bit_length() - 1) == 0 for n in sizes)
        ]
        return sizes, max(fitting, default=2) if radix is None else radix
    if steps == "0":
        raise ArgumentError(
            f"steps must be a number from 1 to {MOST_STEPS}, or sizes such as 256x256, not 0"
        )
    if radix is not None:
        return balanced(size, int(steps), radix), radix
    choices = []
    for candidate in RADIXES:
        try:
            sizes = balanced(size, int(steps), candidate)
        except ArgumentError:
            continue
        choices.append((max(sizes) // min(sizes), -candidate, sizes))
    _, negative, sizes = min(choices)  # radix 2 always fits
    return sizes, -negative


def _load(path: Path, operation: str) -> tuple[list[int], Array, Array | None]:
    """Return the moduli, a and, for products, b.

    Raises FileContentError with the file for what breaks a rule.
    """
    require_file(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror or error}") from None
    except Exception:  # NumPy and zipfile raise errors of many types for a damaged file
        malformed(path, None, "not an .npz file as numpy.savez writes it")
    wanted = ["moduli", "a", *(["b"] if operation == "product" else [])]
    if missing := [name for name in wanted if name not in arrays]:
        malformed(path, None, f"arrays {', '.join(missing)} are missing")
    moduli = arrays["moduli"]
    if moduli.ndim != 1 or moduli.dtype != np.uint64:
        malformed(
            path,
            None,
            f"moduli has dtype {moduli.dtype.name} and shape {moduli.shape}; it must be uint64"
            " (limbs,)",
        )
    operands = {name: arrays[name] for name in wanted[1:]}
    try:
        return check_polynomials(moduli.tolist(), operands), arrays["a"], operands.get("b")
    except ArgumentError as error:
        malformed(path, None, str(error))


APPLICATION = Ntt
