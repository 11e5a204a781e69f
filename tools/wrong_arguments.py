"""Arguments of wrong kinds, and the calls that raise an undocumented exception for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import pidcomm


class Hostile:
    """An object whose conversions fail."""

    def __index__(self) -> int:
        raise ValueError("no index")

    def __len__(self) -> int:
        raise ValueError("no length")

    def __repr__(self) -> str:
        return "<Hostile>"


ARRAY = np.zeros((64, 8), np.int32)
WRONG: dict[str, Any] = {
    "None": None,
    "object": object(),
    "hostile": Hostile(),
    "function": len,
    "class": int,
    "true": True,
    "text": "x",
    "no text": "",
    "number as text": "8",
    "null character": "a\0b",
    "surrogate": "\ud800",
    "bytes": b"x",
    "minus one": -1,
    "2^70": 2**70,
    "10^5000": 10**5000,
    "fraction": 1.5,
    "nan": float("nan"),
    "infinity": float("inf"),
    "complex": 1j,
    "list": [],
    "list of None": [None],
    "list of text": ["x"],
    "ragged list": [[1], [1, 2]],
    "list of rows": [[0] * 8] * 64,
    "tuple of 2^70": (2**70,),
    "nested list": [[[[]]]],
    "dict": {},
    "dict of None": {None: None},
    "set": {1},
    "matrix": ARRAY.view(np.matrix),
    "matrix of bytes": np.zeros((64, 64), np.uint8).view(np.matrix),
    "masked": np.ma.masked_array(ARRAY, mask=True),
    "complex64": ARRAY.astype(np.complex64),
    "objects": ARRAY.astype(object),
    "texts": ARRAY.astype("U1"),
    "dates": ARRAY.astype("M8[s]"),
    "records": np.zeros((64, 8), [("a", "i4")]),
    "other byte order": ARRAY.astype(">i4"),
    "0-d": np.array(1),
    "0-d object": np.array(None),
    "1-d": np.zeros(8, np.int32),
    "3-d": np.zeros((64, 8, 1), np.int32),
    "empty": np.zeros((64, 0), np.int32),
    "no rows": np.zeros((0, 8), np.int32),
    "not contiguous": np.zeros((64, 16), np.int32)[:, ::2],
    "fortran order": np.asfortranarray(ARRAY),
    "read-only": np.broadcast_to(np.int32(0), (64, 8)),
    "memory": memoryview(b"x" * 64),
    "NumPy scalar": np.float64(1),
    "dtype": np.dtype(object),
}


def wrong_calls(call: Callable[..., Any], right: Mapping[str, Any]) -> list[str]:
    """Call with each argument replaced by each wrong value; return the calls that raise an
    undocumented exception.
    """
    faults = []
    for name in right:
        for kind, value in WRONG.items():
            try:
                result = call(**{**right, name: value})
                if isinstance(result, pidcomm.Request):
                    result.wait()
            except pidcomm.Error:
                pass
            except Exception as error:
                # As for every Python function, an unknown keyword is a TypeError.
                if not isinstance(error, TypeError) or "unexpected keyword argument" not in str(
                    error
                ):
                    faults.append(f"{name}={kind}: {type(error).__name__}: {str(error)[:100]}")
    return faults
