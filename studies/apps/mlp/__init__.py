"""Multi-layer perceptron with five square layers, one input vector, and weights cut by columns.

Source: PID-Comm paper, section VII-E. PrIM's MLP has the same layers and cuts them by rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np

from pidcomm import ArgumentError, Error
from pidcomm.arguments import Array, as_integer
from pidcomm.bench import platform
from pidcomm.bench.measure import require_bytes
from pidcomm.errors import MAX_SHOWN, FileContentError, shown
from pidcomm.files import malformed, require_file
from pidcomm_studies.apps.application import Application
from pidcomm_studies.apps.inputs import canonical, describe, generated, npz_sizes, one_source
from pidcomm_studies.apps.partition import WORD_BYTES, padded, round_up, share
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import Stage

FEATURES, LAYERS, DTYPE = 8192, 5, "int32"
QUICK_FEATURES = 1024
FEATURES_MAX, LAYERS_MAX, SEED_MAX = 2**20, 2**10, 2**32 - 1
DTYPES = ("int8", "int16", "int32", "int64")
GENERATOR = "uniform"
TASKLETS = 12  # the pipeline needs 11; each tasklet has a block of 2 KiB in WRAM
NPY_START = b"\x93NUMPY"
ALL = "1"  # the mask of all PEs
ROWS_OF_LAYER = 2  # copies of a layer that the host makes to pad and cut it, one layer at a time

Values: TypeAlias = Callable[[tuple[int, ...], np.dtype, int], Array]
"""Returns an array of a shape and dtype: the weights of layer i, or x if i is the number of
layers.
"""


def uniform(low: int = -8, high: int = 8, seed: int = 1) -> Values:
    """Return random integers from low to high, including both."""
    as_integer("seed", seed, 0, SEED_MAX)

    def make(shape: tuple[int, ...], dtype: np.dtype, index: int) -> Array:
        limits = np.iinfo(dtype)
        if not limits.min <= low <= high <= limits.max:
            raise ArgumentError(
                f"low ({low}) and high ({high}) must be in ascending order, and within {dtype.name}"
            )
        return np.random.default_rng([seed, index]).integers(low, high, shape, dtype, endpoint=True)

    return make


def sparse(density: float = 0.1, seed: int = 1) -> Values:
    """Return zeros, except that a share `density` of the elements of weights and x is random
    from -8 to 8.
    """
    if not 0 <= density <= 1:
        raise ArgumentError(f"density ({density}) must be from 0 to 1")
    values_of = uniform(seed=seed)

    def make(shape: tuple[int, ...], dtype: np.dtype, index: int) -> Array:
        values = values_of(shape, dtype, index)
        random = np.random.default_rng([seed, index, 1])
        for row in values.reshape(-1, shape[-1]):  # one row at a time, to save memory
            row[random.random(len(row), np.float32) >= density] = 0
        return values

    return make


def prim() -> Values:
    """Return values as in PrIM's MLP: 1 for one in a hundred weights and one in fifty elements
    of x, else 0.
    """

    def make(shape: tuple[int, ...], dtype: np.dtype, index: int) -> Array:
        i = np.arange(100)
        period = (i % 100 >= 98) * (i + index) % 2 if len(shape) == 2 else (i % 50 >= 48) * i % 2
        return np.resize(period.astype(dtype), shape)

    return make


GENERATORS: Mapping[str, Callable[..., Values]] = {
    "uniform": uniform,
    "sparse": sparse,
    "prim": prim,
}


@dataclass(frozen=True)
class Cut:
    """The parts of a layer: PE p has `width` columns, from p * width on, and the elements of x for
    these columns.

    Zeros pad the columns to pes * width, and the rows to complete 8-byte words of y.
    """

    features: int
    pes: int
    dtype: np.dtype

    @property
    def width(self) -> int:
        """Number of columns of a PE."""
        return share(self.features, self.pes, self.dtype)

    @property
    def columns(self) -> int:
        """Number of columns of all PEs, and of elements of y."""
        return self.width * self.pes

    @property
    def rows(self) -> int:
        """Number of rows of a column, padded."""
        return round_up(self.features, WORD_BYTES // self.dtype.itemsize)

    @property
    def slab_bytes(self) -> int:
        """Bytes of the columns of one PE in one layer."""
        return self.rows * self.width * self.dtype.itemsize

    def slabs(self, weights: Array) -> Array:
        """Return the columns of each PE, row by row: shape (pes, rows * width)."""
        whole = padded(weights, (self.rows, self.columns)).reshape(self.rows, self.pes, self.width)
        return whole.swapaxes(0, 1).reshape(self.pes, -1)


class Mlp(Application):
    """Weights of square layers and a vector: x becomes W x, then W relu(x) for every later
    layer.
    """

    name = "mlp"
    about = (
        "Multi-layer perceptron on one vector: layers cut by columns, with a reduce_scatter between"
        " two layers."
    )
    axes = 1
    data_help = (
        "An .npz with arrays w0, w1, ... (features x features) and x (features), all of one integer"
        " dtype."
    )
    generate_help = describe(GENERATORS)

    def __init__(self, weights: Sequence[Array], x: Array, source: str = "arrays") -> None:
        """Take W of each layer, shape (features, features), and x, shape (features,).

        source: origin of the arrays, for messages and `facts`. Raises ArgumentError for wrong
        shapes.
        """
        named = {"x": x, **{f"w{layer}": array for layer, array in enumerate(weights)}}
        if not weights:
            raise ArgumentError(f"{source}: there must be weights of at least one layer, w0")
        for name, array in named.items():
            if x.size == 0 or array.shape != (x.size,) * (1 if name == "x" else 2):
                raise ArgumentError(
                    f"{source}: {name} has shape {array.shape}; x must be (features,), not empty,"
                    f" and w0, w1, ... (features, features), here {(x.size, x.size)}"
                )
            if array.dtype.name not in (DTYPES if name == "x" else (x.dtype.name,)):
                rule = (
                    f"one of {', '.join(DTYPES)}"
                    if name == "x"
                    else f"{x.dtype.name}, the dtype of x"
                )
                raise ArgumentError(
                    f"{source}: {name} has dtype {array.dtype.name}; it must be {rule}"
                )
        native = x.dtype.newbyteorder("=")
        self.weights = [np.ascontiguousarray(array, native) for array in weights]
        self.x = np.ascontiguousarray(x, native)
        self.source = source

    @classmethod
    def make(
        cls,
        *,
        data: Path | None = None,
        generate: str | None = None,
        quick: bool = False,
        features: Annotated[
            int | None,
            f"Number of features of every layer; with --data, the file sets the number "
            f"(default: {FEATURES}; quick: {QUICK_FEATURES}).",
        ] = None,
        layers: Annotated[
            int | None,
            f"Number of layers; with --data, the file sets the number (default: {LAYERS}).",
        ] = None,
        dtype: Annotated[
            str | None,
            f"Type of weights and x: {', '.join(DTYPES)}; with --data, the file sets the type"
            f" (default: {DTYPE}).",
        ] = None,
    ) -> Mlp:
        """Return the perceptron of a file or of a generator.

        quick: 1024 features, unless features, data or generate are given. Raises ArgumentError if
        options contradict the file.
        """
        one_source(data, generate)
        if data is not None:
            problem = cls.load(data)
            for name, asked in (("features", features), ("layers", layers), ("dtype", dtype)):
                if asked not in (None, problem.facts[name]):
                    raise ArgumentError(
                        f"{data}: the file has {name} {problem.facts[name]}; {asked} is only for"
                        " generators"
                    )
            return problem
        spec = generate or GENERATOR
        values = generated(spec, GENERATORS)
        kind_name = DTYPE if dtype is None else dtype
        if kind_name not in DTYPES:
            raise ArgumentError(f"dtype {kind_name!r} must be one of {', '.join(DTYPES)}")
        kind = np.dtype(kind_name)
        default_features = QUICK_FEATURES if quick and generate is None else FEATURES
        count = as_integer(
            "features", default_features if features is None else features, 1, FEATURES_MAX
        )
        depth = as_integer("layers", LAYERS if layers is None else layers, 1, LAYERS_MAX)
        layer_bytes = count**2 * kind.itemsize
        _require_room(
            depth * layer_bytes, layer_bytes, f"{depth} layers of {count} x {count} {kind.name}"
        )
        weights = [values((count, count), kind, layer) for layer in range(depth)]
        return cls(weights, values((count,), kind, depth), canonical(spec, GENERATORS))

    @classmethod
    def load(cls, path: Path) -> Mlp:
        """Read an .npz file.

        Raises FileContentError if the file is malformed, Error if it cannot be read.
        """
        require_file(path)
        try:
            with path.open("rb") as start:
                if start.read(len(NPY_START)) == NPY_START:
                    malformed(
                        path,
                        None,
                        "the file has one array; it must be an .npz with w0, w1, ... and x",
                    )
            sizes = npz_sizes(path).values()  # numpy.load would unpickle other files
            _require_room(
                sum(sizes), max(sizes, default=0), f"{path}: {sum(sizes)} bytes of arrays"
            )
            with np.load(path, allow_pickle=False) as file:
                arrays = _read(path, file)
        except (Error, MemoryError):
            raise
        except OSError as error:
            raise Error(f"cannot read {path}: {error.strerror or error}") from None
        except Exception:  # NumPy and zipfile raise errors of many types for a damaged file
            malformed(path, None, "not an .npz file as numpy.savez writes it")
        try:
            return cls(
                [array for name, array in arrays.items() if name != "x"], arrays["x"], str(path)
            )
        except ArgumentError as error:
            raise FileContentError(str(error)) from None

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The source of the arrays, the number of features and layers, and the dtype."""
        return {
            "input": self.source,
            "features": self.x.size,
            "layers": len(self.weights),
            "dtype": self.x.dtype.name,
        }

    @classmethod
    def shape_of(cls, pes: int) -> tuple[int, ...]:
        """Return a shape with one axis."""
        return (pes,)

    def place(self, shape: Sequence[int]) -> Placement:
        """Return the layout of a PE: its weights of all layers, then its part of x, and its
        partial sums of y.
        """
        cut = self._cut(shape[0])
        size = cut.dtype.itemsize
        return Placement(
            source=Path(__file__).parent / "kernel.c",
            resident={"weights": len(self.weights) * cut.slab_bytes},
            windows={"x": cut.width * size, "y": cut.columns * size},
            tasklets=TASKLETS,
            defines={
                "ELEMENT_BITS": 8 * size,
                "WIDTH": cut.width,
                "ROWS": cut.rows,
                "SLAB_BYTES": cut.slab_bytes,
            },
            host_bytes=ROWS_OF_LAYER * cut.slab_bytes * cut.pes,
        )

    def run(self, stage: Stage) -> Array:
        """Compute y of the last layer, shape (features,)."""
        cut = self._cut(stage.pes)
        for layer, weights in enumerate(self.weights):
            stage.place("weights", cut.slabs(weights), at=layer * cut.slab_bytes)
        size, dtype = cut.columns * cut.dtype.itemsize, cut.dtype
        x = stage.host_work(lambda: padded(self.x, (cut.columns,))[np.newaxis])
        stage.scatter(ALL, x, dst="x")
        stage.launch(layer=0)
        for layer in range(1, len(self.weights)):
            stage.reduce_scatter(ALL, bytes=size, src="y", dst="x", dtype=dtype)
            stage.launch(layer=layer)
        return stage.reduce(ALL, bytes=size, src="y", dtype=dtype)[0, : cut.features]

    def reference(self) -> Array:
        """Compute the result of the perceptron layer by layer on all CPUs."""
        from pidcomm_studies.apps import _apps

        y = self.x
        for layer, weights in enumerate(self.weights):
            y = _apps.mlp_layer(weights, y, relu=layer > 0)
        return y

    def _cut(self, pes: int) -> Cut:
        return Cut(self.x.size, pes, self.x.dtype)


def _require_room(weights_bytes: int, layer_bytes: int, what: str) -> None:
    """Raise ArgumentError if weights do not fit in memory together with the PEs that hold them."""
    require_bytes(
        weights_bytes + platform.host_bytes(weights_bytes) + ROWS_OF_LAYER * layer_bytes,
        what,
    )


def _read(path: Path, file: Mapping[str, Array]) -> dict[str, Array]:
    """Return x and w0, w1, ... in order.

    Raises FileContentError if an array is missing or has another name.
    """
    layers = sum(re.fullmatch(r"w\d+", name) is not None for name in file)
    needed = [*(f"w{layer}" for layer in range(max(layers, 1))), "x"]
    missing, unknown = (
        [name for name in a if name not in b] for a, b in ((needed, file), (file, needed))
    )
    if missing or unknown:
        malformed(
            path,
            None,
            f"arrays must be w0, w1, ... without a gap, and x; missing: {_listed(missing)}; "
            f"not one of them: {_listed(unknown)}",
        )
    arrays = {}
    for name in needed:
        try:
            array = file[name]
        except Exception as error:  # of many types, as in `Mlp.load`
            malformed(path, None, f"{name} cannot be read: {shown(str(error))}")
        if not isinstance(
            array, np.ndarray
        ):  # NumPy returns the bytes of a file that is not an .npy
            malformed(path, None, f"{name} cannot be read: it is not an array")
        arrays[name] = array
    return arrays


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(names)
    return (text if len(text) <= 2 * MAX_SHOWN else shown(text)) or "none"


APPLICATION = Mlp
