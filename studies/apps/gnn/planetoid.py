"""Read the pickles of Planetoid (``ind.NAME.*``) without running code of the files.

No name in a pickle leads to its class: NumPy's and SciPy's objects become `_Held`, from which this
module makes arrays; all other names are errors.
"""

from __future__ import annotations

import re
from collections import defaultdict
from io import BytesIO
from itertools import chain
from pathlib import Path
from pickle import Unpickler
from pickletools import genops
from typing import Any

import numpy as np

from pidcomm import Error
from pidcomm.arguments import Array
from pidcomm.bench.measure import require_bytes
from pidcomm.errors import FileContentError, shown
from pidcomm.files import malformed, require_file

BYTES_OF_MATRIX, BYTES_OF_GRAPH = 3, 20  # peak memory for a byte of a file, measured
MEMOS = "PUT", "BINPUT", "LONG_BINPUT"
PLAIN: dict[tuple[str, str], type] = {
    ("collections", "defaultdict"): defaultdict,
    ("builtins", "list"): list,
    ("builtins", "object"): object,
}
ARRAY = "_reconstruct"
HELD = {
    *(("scipy.sparse.csr", "csr_matrix"), ("scipy.sparse._csr", "csr_matrix")),
    *(("numpy.core.multiarray", ARRAY), ("numpy._core.multiarray", ARRAY)),
    *(("numpy", "ndarray"), ("numpy", "dtype")),
    *(("copyreg", "_reconstructor"), ("_codecs", "encode")),
}
MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}  # of Python 2
NUMBER = re.compile("[fiu][1248]")


class _Held:
    """An object in a pickle: the arguments from which to make it, and its state."""

    def __new__(cls, *arguments: Any) -> _Held:
        held = object.__new__(cls)
        held.arguments, held.state = arguments, None
        return held

    def __init__(self, *_: Any) -> None:
        self.arguments: tuple[Any, ...]
        self.state: Any

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Reader(Unpickler):
    def __init__(self, path: Path, file: Any) -> None:
        super().__init__(file, encoding="latin1")  # as NumPy reads arrays of Python 2
        self._path = path

    def find_class(self, module: str, name: str) -> Any:
        """Return the class of a name. Raises FileContentError for a name that is not listed."""
        module = MODULES.get(module, module)
        if (module, name) in HELD:
            return type(name, (_Held,), {})
        if (module, name) not in PLAIN:
            malformed(
                self._path,
                None,
                f"class {shown(f'{module}.{name}')}; pickles may have numpy arrays of numbers,"
                " scipy.sparse.csr_matrix, defaultdict, dict, list and int",
            )
        return PLAIN[module, name]


def read_matrix(path: Path) -> tuple[Array, Array, Array, Array]:
    """Return the shape, indptr, indices and data of a csr_matrix.

    Raises FileContentError for another object, ArgumentError if memory is short.
    """
    held = _unpickled(path, BYTES_OF_MATRIX)
    try:
        state = held.state
        return (
            np.array(state["_shape"], np.int64),
            *(_array(state[name]) for name in ("indptr", "indices", "data")),
        )
    except Exception:  # errors of many types for other objects
        malformed(path, None, "not a scipy.sparse.csr_matrix of numbers")


def read_graph(path: Path) -> tuple[Array, Array]:
    """Return the sources and the targets (int64) of a dict of lists of neighbours.

    Raises as `read_matrix`.
    """
    graph = _unpickled(path, BYTES_OF_GRAPH)
    try:
        lengths = [len(neighbours) for neighbours in graph.values()]
        if sum(lengths) > path.stat().st_size:  # the same list for many vertices
            raise ValueError
        ends = list(graph), list(chain(*graph.values()))
        if any(type(number) is not int for number in chain(*ends)):
            raise ValueError
        sources, targets = (np.array(numbers, np.int64) for numbers in ends)
        return np.repeat(sources, lengths), targets
    except Exception:  # errors of many types for other objects
        malformed(path, None, "not a dict of lists of vertex numbers")


def _unpickled(path: Path, byte_bytes: int) -> Any:
    """Return the object of a pickle. byte_bytes: memory for a byte of the file."""
    size = require_file(path)
    require_bytes(byte_bytes * size, f"{path}: {size} bytes of a pickle")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror or error}") from None
    try:
        for code, argument, _ in genops(content):
            if code.name in MEMOS and argument > size:  # unpickling would ask for much memory
                raise ValueError(f"memo {argument}")
        return _Reader(path, BytesIO(content)).load()
    except FileContentError:
        raise
    except Exception as error:  # a damaged pickle raises errors of many types
        malformed(path, None, f"not a pickle: {shown(str(error))}")


def _array(held: _Held) -> Array:
    """Return a one-dimensional array of numbers. Raises errors of many types for other objects."""
    _, shape, dtype, _, data = held.state
    (kind, *_), (_, order, *_) = dtype.arguments, dtype.state
    if not NUMBER.fullmatch(kind) or order not in "<>|=":
        raise ValueError
    text = data.arguments[0] if isinstance(data, _Held) else data
    words = text.encode("latin1") if isinstance(text, str) else text
    array = np.frombuffer(words, np.dtype(order + kind))
    if shape != array.shape:
        raise ValueError
    return array
