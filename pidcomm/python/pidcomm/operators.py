"""Operators of reductions beside ``pidcomm.OPS``: averages, the place of the smallest or largest
element, and functions in C.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from dpuemu.tools import temporary_folder
from pidcomm import _core
from pidcomm._rows import OpName
from pidcomm.arguments import as_dtype, as_number, as_text, as_type, as_words, row_of
from pidcomm.errors import ArgumentError, Error, shown
from pidcomm.tables import OPS, TYPES, WORD_BYTES

__all__ = ["AnyOp", "LibraryOpName", "codes_of_op"]

LibraryOpName: TypeAlias = Literal["avg", "argmin", "argmax"]
LIBRARY_NAMES = {"avg": "average", "argmin": "argmin", "argmax": "argmax"}

SUM = OPS["sum"].code

SOURCE = """\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
{element}
#line 1 "operator"
{source}
void pidcomm_combine(void *restrict partials, const void *restrict elements, size_t count,
                     const void *context) {{
  element *restrict into = partials;
  const element *restrict from = elements;
  (void)context;
  for (size_t i = 0; i < count; ++i) into[i] = combine(into[i], from[i]);
}}
"""


class Operator:
    """An operator of reductions and scans: a C function that combines two elements.

    source: C text that defines ``static element combine(element a, element b)``, where ``element``
    is the C type of dtype: a number, or a struct with the fields of a structured dtype. The
    operator must be associative. The library combines members in order, a before b, so it need not
    be commutative. The last word of a buffer may have undefined elements, which are combined too.
    identity: the element that member 0 of an exscan receives. options: more options of the
    compiler.

    The C compiler of the host (environment variable CC, else cc) compiles the loop over elements
    with -O3 -march=native. Raises ArgumentError with its messages, and Error if it cannot be run.
    """

    def __init__(
        self,
        source: str,
        dtype: DTypeLike,
        *,
        identity: ArrayLike | None = None,
        options: list[str] | tuple[str, ...] = (),
    ) -> None:
        self._dtype = as_dtype(dtype)
        text = SOURCE.format(element=c_type_of(self._dtype), source=as_text("source", source))
        self._library = _compiled(text, as_words("options", options))
        combine = ctypes.cast(self._library.pidcomm_combine, ctypes.c_void_p).value or 0
        self._core = _core.Operator(
            self._dtype.itemsize, combine, _element_bytes(identity, self._dtype)
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the elements."""
        return self._dtype

    def __repr__(self) -> str:
        """Report the dtype."""
        return f"<Operator on {self._dtype}>"

    def _for(self, dtype: np.dtype[Any]) -> _core.Operator:
        """Return the operator of the library for elements of dtype."""
        if dtype != self._dtype:
            raise ArgumentError(f"{self!r} is not for elements of {dtype}", "ERR_OP")
        return self._core


class _ScaledSum(Operator):
    def __init__(self, factor: float) -> None:
        self._factor = as_number("factor", factor)

    @property
    def dtype(self) -> np.dtype[Any]:
        raise ArgumentError(f"{self!r} is for all floats", "ERR_OP")

    def __repr__(self) -> str:
        return f"<Operator sum * {self._factor:g}>"

    def _for(self, dtype: np.dtype[Any]) -> _core.Operator:
        return _core.Operator.of_library("scaled_sum", as_type(dtype, "sum").code, self._factor)


def scaled_sum(factor: float) -> Operator:
    """Return the operator that adds floats and multiplies the sum by `factor`, which must be
    finite.

    16-bit floats are added in float32, in member order, and the product is rounded once. Other
    floats are added as with "sum", and the sum is multiplied.
    """
    return _ScaledSum(factor)


AnyOp: TypeAlias = OpName | LibraryOpName | Operator


def codes_of_op(
    takes_op: bool, op: object, dtype: np.dtype[Any]
) -> tuple[int, int, _core.Operator | None]:
    """Return the codes of the element type and the operator, and an operator that replaces both.

    takes_op: whether the collective reduces. Raises ArgumentError with the valid operators.
    """
    if not takes_op:
        return as_type(dtype).code, 0, None
    if isinstance(op, Operator):
        code = as_type(dtype, "sum").code if isinstance(op, _ScaledSum) else TYPES["uint8"].code
        return code, SUM, op._for(dtype)
    if isinstance(op, str) and op in LIBRARY_NAMES:
        value = dtype if op == "avg" else _value_of_place(op, dtype)
        if value.name not in TYPES:
            raise ArgumentError(
                f"operator {op} is not for dtype {value.name!r}; use {', '.join(TYPES)}", "ERR_OP"
            )
        code = as_type(value).code
        return code, SUM, _core.Operator.of_library(LIBRARY_NAMES[op], code, 0)
    row = row_of(OPS, "operator", op, "ERR_OP", LIBRARY_NAMES)
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
    if dtype.kind in "iu":
        return f"{'u' if dtype.kind == 'u' else ''}int{8 * dtype.itemsize}_t"
    names = {"?": "_Bool", "f2": "uint16_t", "f4": "float", "f8": "double"}
    for code, name in {**names, "c8": "_Complex float", "c16": "_Complex double"}.items():
        if dtype == np.dtype(code):
            return name
    if dtype.name == "bfloat16":
        return "uint16_t"
    raise ArgumentError(f"dtype {dtype} has no type in C", "ERR_TYPE")


def _element_bytes(identity: ArrayLike | None, dtype: np.dtype[Any]) -> bytes:
    if identity is None:
        return b""
    try:
        element = np.asarray(identity, dtype)
    except (TypeError, ValueError, OverflowError):
        element = np.empty(0, dtype)
    if element.shape != ():
        raise ArgumentError(f"identity ({shown(identity)}) must be an element of {dtype}")
    return element.tobytes()


def _compiled(text: str, options: list[str]) -> ctypes.CDLL:
    command = [*shlex.split(os.environ.get("CC", "") or "cc"), "-O3", "-march=native", *options]
    with temporary_folder("pidcomm") as folder:
        source, library = folder / "operator.c", folder / "operator.so"
        source.write_text(text)
        try:
            process = subprocess.run(
                [*command, "-shared", "-fPIC", "-o", str(library), str(source)],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except OSError as error:
            raise Error(f"the C compiler cannot be run: {error}; CC selects one") from None
        messages = process.stderr.replace(f"{folder}{os.sep}", "").strip()
        if process.returncode:
            raise ArgumentError(messages or f"the C compiler ended with {process.returncode}")
        return ctypes.CDLL(str(library))
