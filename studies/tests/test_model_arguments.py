"""Arguments of wrong kinds raise `Error` or one of the built-in exceptions that Python programs
expect.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from wrong_arguments import wrong_calls

from pidcomm_studies import models

ON_SHAPE = {
    "collective": "allreduce",
    "shape": (8, 8),
    "mask": "10",
    "bytes": 64,
    "dtype": "int32",
    "op": "sum",
}
FUNCTIONS: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "compare": (models.compare, {**ON_SHAPE, "machine": "isca24", "technique": "tile"}),
    "influences": (models.influences, {**ON_SHAPE, "machine": "isca24"}),
    "predict_links": (
        models.predict_links,
        {**ON_SHAPE, "machine": "upmem-2560+links", "is_fed_by_pes": True},
    ),
    "advise": (
        models.advise,
        {
            "collective": "allreduce",
            "pes": 8,
            "group": 4,
            "bytes": 64,
            "dtype": "int32",
            "op": "sum",
            "top": 1,
        }
        | {"machine": "isca24"},
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_refuse_wrong_arguments(name: str) -> None:
    call, right = FUNCTIONS[name]
    call(**right)
    assert wrong_calls(call, right) == []


def test_every_public_function_is_in_the_table() -> None:
    assert {name for name in models.__all__ if inspect.isfunction(getattr(models, name))} == set(
        FUNCTIONS
    )
