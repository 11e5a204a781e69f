"""Operators of reductions beside ``pidcomm.OPS``: averages, the place of the smallest or largest
element, and functions in C.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shlex
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from dpuemu.tools import temporary_folder
from pidcomm import _core
from pidcomm._rows import OpName
from pidcomm.arguments import as_dtype, as_number, as_text, as_type, as_words, row_of
from pidcomm.compiling import run_compiler
from pidcomm.errors import ArgumentError, Error, shown
from pidcomm.tables import OPS, TYPES, WORD_BYTES

__all__ = ["AnyOp", "LibraryOpName", "codes_of_op"]

LibraryOpName: TypeAlias = Literal["avg", "argmin", "argmax"]

SUM = OPS["sum"].code
C_NAMES = {
    **{name: row.c_type for name, row in TYPES.items() if not row.c_type.startswith("pidcomm_")},
    "bool": "_Bool",
    "float16": "_Float16",
    "complex64": "_Complex float",
    "complex128": "_Complex double",
}

# The same results on all processors, as those of the library.
EXACT = ("-ffp-contract=off", "-fwrapv")
STRICT = ("-Werror=implicit-function-declaration", "-Wl,-z,defs")
LIBRARIES = ("-lm",)
SOURCE = """\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
{element}
#line 1 "operator"
{source}
{loop}"""
COMBINE = """\
void pidcomm_combine(void *restrict partials, const void *restrict elements, size_t count,
                     const void *context) {
  element *restrict into = partials;
  const element *restrict from = elements;
  (void)context;
  for (size_t i = 0; i < count; ++i) into[i] = combine(into[i], from[i]);
}
"""
STORE = """\
void pidcomm_store(void *elements, const void *partials, size_t count, size_t members,
                   const void *context) {
  element *results = elements;
  (void)partials;  // the same memory
  (void)context;
  for (size_t i = 0; i < count; ++i) results[i] = store(results[i], members);
}
"""


class Operator:
    """An operator of reductions and scans: a C function that combines two elements, or a function
    of the result of an operator of the library.

    source: C text that defines ``static element combine(element a, element b)``, where ``element``
    is the C type of dtype: a number, or a struct with the fields of a structured dtype. The
    operator must be associative. The library combines members in order, a before b, so it need not
    be commutative. It must not fault on undefined elements, such as padding. identity: the element
    that member 0 of an exscan receives. options: more options of the compiler.

    op: a key of ``pidcomm.OPS``. The library then reduces elements of dtype, a key of
    ``pidcomm.TYPES``, with op, and source defines ``static element store(element result, size_t
    members)``: the value to write for the result over this number of members.

    The C compiler of the host (environment variable CC, else cc) compiles the loop over elements
    with -O3 -march=native; signed integers wrap, and a * b + c rounds twice. The code stays in
    memory until the process ends. Raises ArgumentError with the compiler's messages, and Error if
    the compiler cannot be run.
    """

    def __init__(
        self,
        source: str,
        dtype: DTypeLike,
        *,
        op: OpName | None = None,
        identity: ArrayLike | None = None,
        options: list[str] | tuple[str, ...] = (),
    ) -> None:
        self._dtype = as_dtype(dtype)
        self._codes = TYPES["uint8"].code, SUM
        if op is not None:
            row = row_of(OPS, "operator", op, "ERR_OP")
            if self._dtype.name not in TYPES:
                raise ArgumentError(
                    f"an operator with op is not for dtype {self._dtype}; use {', '.join(TYPES)}",
                    "ERR_TYPE",
                )
            self._codes = as_type(self._dtype, row.name).code, row.code
        text = SOURCE.format(
            element=c_type_of(self._dtype),
            source=as_text("source", source),
            loop=COMBINE if op is None else STORE,
        )
        self._library = _compiled(text, as_words("options", options))
        loop = getattr(self._library, "pidcomm_combine" if op is None else "pidcomm_store")
        address = ctypes.cast(loop, ctypes.c_void_p).value or 0
        combine, store = (address, 0) if op is None else (0, address)
        self._core = _core.Operator(
            self._dtype.itemsize, combine, store, _element_bytes(identity, self._dtype)
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the elements."""
        return self._dtype

    def __repr__(self) -> str:
        """Report the dtype."""
        return f"<Operator on {self._dtype}>"

    def _codes_for(self, dtype: np.dtype[Any]) -> tuple[int, int, _core.Operator]:
        """Return the result of codes_of_op for elements of dtype."""
        if dtype != self._dtype:
            raise ArgumentError(f"{self!r} is not for elements of {dtype}", "ERR_OP")
        return *self._codes, self._core


@dataclass(frozen=True)
class ScaledSum:
    """The operator that adds floats and multiplies the sum by ``factor``, a finite number.

    16-bit floats are added in float32, in member order, other floats as with "sum". The product is
    computed in float64, then rounded to the dtype.
    """

    factor: float

    def __post_init__(self) -> None:
        """Raise ArgumentError unless the factor is a finite number."""
        as_number("factor", self.factor)


AnyOp: TypeAlias = OpName | LibraryOpName | Operator | ScaledSum


@functools.lru_cache(maxsize=64)
def _of_library(name: str, type_code: int, factor: str = "0") -> _core.Operator:
    """Return an operator of the library. The plan cache compares addresses, so equal calls get the
    same operator. factor: as text, which differs for 0 and -0.
    """
    return _core.Operator.of_library(name, type_code, float(factor))


def codes_of_op(
    takes_op: bool, op: object, dtype: np.dtype[Any]
) -> tuple[int, int, _core.Operator | None]:
    """Return the codes of the element type and the operator, and an operator that replaces both.

    takes_op: whether the collective reduces. Raises ArgumentError with the valid operators.
    """
    if not takes_op:
        return as_type(dtype).code, 0, None
    if isinstance(op, Operator):
        return op._codes_for(dtype)
    if isinstance(op, ScaledSum):
        code = as_type(dtype, "sum").code
        return code, SUM, _of_library("scaled_sum", code, repr(float(op.factor)))
    if isinstance(op, str) and op in _core.OPERATORS:
        value = dtype if op == "avg" else _value_of_place(op, dtype)
        if value.name not in TYPES:
            raise ArgumentError(
                f"operator {op} is not for dtype {value.name!r}; use {', '.join(TYPES)}", "ERR_OP"
            )
        code = as_type(value).code
        return code, SUM, _of_library(op, code)
    row = row_of(OPS, "operator", op, "ERR_OP", _core.OPERATORS)
    return as_type(dtype, row.name).code, row.code, None


def _value_of_place(op: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the values of argmin and argmax."""
    fields = [] if dtype.fields is None else [dtype.fields[name][:2] for name in dtype.names or ()]
    if len(fields) == 2:
        (value, begin), (index, end) = fields
        size = max(value.itemsize, 4)
        if (begin, end, dtype.itemsize) == (0, size, 2 * size) and index == np.dtype(f"u{size}"):
            return value
    raise ArgumentError(
        f"operator {op} is not for dtype {dtype}; it needs a value and an index, such as"
        " np.dtype([('value', 'float32'), ('index', 'uint32')], align=True), with uint64 for values"
        f" of {WORD_BYTES} bytes",
        "ERR_OP",
    )


def c_type_of(dtype: np.dtype[Any]) -> str:
    """Return the C declaration of the type `element` for a dtype."""
    if dtype.fields is None:
        return f"typedef {_c_name_of(dtype)} element __attribute__((aligned(1)));"
    lines, end = [], 0
    for number, name in enumerate(dtype.names or ()):
        field, begin = dtype.fields[name][:2]
        if begin > end:
            lines.append(f"  char padding{number}[{begin - end}];")
        base, lengths = (field, ()) if field.subdtype is None else field.subdtype
        if base.fields is not None or not name.isascii() or not name.isidentifier() or begin < end:
            raise ArgumentError(
                f"field {name!r} of {dtype} has no declaration in C: fields must have C names, be"
                " numbers or arrays of numbers, and not overlap",
                "ERR_TYPE",
            )
        dimensions = "".join(f"[{length}]" for length in lengths)
        lines.append(f"  {_c_name_of(base)} {name}{dimensions};")
        end = begin + field.itemsize
    if dtype.itemsize > end:
        lines.append(f"  char padding[{dtype.itemsize - end}];")
    return "\n".join(["typedef struct __attribute__((packed)) {", *lines, "} element;"])


def _c_name_of(dtype: np.dtype[Any]) -> str:
    if (name := C_NAMES.get(dtype.name)) is None:
        raise ArgumentError(f"dtype {dtype} has no type in C; use {', '.join(C_NAMES)}", "ERR_TYPE")
    return name


def _element_bytes(identity: ArrayLike | None, dtype: np.dtype[Any]) -> bytes:
    if identity is None:
        return b""
    element = np.empty(0, dtype)
    with suppress(TypeError, ValueError, OverflowError):
        if dtype.fields is not None or np.can_cast(np.asarray(identity).dtype, dtype, "same_kind"):
            element = np.asarray(identity, dtype)
    if element.shape != ():
        raise ArgumentError(f"identity ({shown(identity)}) must be an element of {dtype}")
    return element.tobytes()


def _compiled(text: str, options: list[str]) -> ctypes.CDLL:
    compiler = shlex.split(os.environ.get("CC", "") or "cc")
    command = [*compiler, "-O3", "-march=native", *EXACT, *options, "-shared", "-fPIC", *STRICT]
    with temporary_folder("pidcomm") as folder:
        source, library = folder / "operator.c", folder / "operator.so"
        source.write_text(text)
        run_compiler(
            "C compiler (CC, else cc)",
            [*command, "-o", str(library), str(source), *LIBRARIES],
            folder,
        )
        try:
            return ctypes.CDLL(str(library))
        except OSError as error:
            raise Error(f"the compiled operator cannot be loaded: {error}") from None
