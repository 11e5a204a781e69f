"""Includes and imports go down from layer to layer, without cycles."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import layers
import pytest

SOURCES = Path(__file__).parents[2] / "pidcomm" / "src"


def test_includes_and_imports_go_down() -> None:
    graph = layers.uses()
    assert len(graph) > 150
    assert layers.upward(graph) == []


API = "pidcomm/python/pidcomm/trace.py"
MODEL = "pidcomm/python/pidcomm/model/machines.py"
BINDING = "pidcomm/python/src/core/set.cpp"
VERIFY_BINDING = "pidcomm/python/src/verify.cpp"
DOCTOR = "pidcomm/doctor/fixture.h"
PUBLIC = "pidcomm/include/pidcomm/pidcomm.h"
ORACLE = "pidcomm/verify/oracle.h"


@pytest.mark.parametrize(
    ("user", "used"),
    [
        (MODEL, API),
        ("pidcomm/python/pidcomm/bench/osu.py", MODEL),
        (BINDING, PUBLIC),
        (BINDING, "dpuemu/include/dpu_management.h"),
        (BINDING, "pidcomm/python/src/gil.h"),
        (VERIFY_BINDING, ORACLE),
        (DOCTOR, PUBLIC),
        (DOCTOR, ORACLE),
        (DOCTOR, "dpuemu/include/dpu_program.h"),
    ],
)
def test_a_use_of_a_lower_layer_is_allowed(user: str, used: str) -> None:
    assert layers.upward({user: {used}}) == []


@pytest.mark.parametrize(
    ("user", "used", "rule"),
    [
        (API, MODEL, "not below"),
        (MODEL, "pidcomm/python/pidcomm/bench/check.py", "not below"),
        ("pidcomm/src/exec/executor.cpp", "pidcomm/src/model/price.h", "not below"),
        (BINDING, "pidcomm/src/rank_access/sdk.h", "not in pidcomm/include"),
        (BINDING, "pidcomm/pe/reorder.h", "not in pidcomm/include"),
        (BINDING, ORACLE, "not in pidcomm/include"),
        (BINDING, "dpuemu/include/dpuemu.h", "includes dpuemu.h"),
        (BINDING, "dpuemu/src/base/chip.h", "inside another product"),
        (VERIFY_BINDING, "pidcomm/src/base/geometry.h", "not in pidcomm/verify"),
        (DOCTOR, "pidcomm/src/base/geometry.h", "not in pidcomm/include or pidcomm/verify"),
        (DOCTOR, "dpuemu/include/dpuemu.h", "includes dpuemu.h"),
    ],
)
def test_a_use_of_a_higher_layer_or_of_an_internal_file_is_refused(
    user: str, used: str, rule: str
) -> None:
    (sentence,) = layers.upward({user: {used}})
    assert sentence.startswith(user)
    assert rule in sentence


def test_files_do_not_use_each_other_in_a_cycle() -> None:
    assert layers.cycles(layers.uses()) == []
    assert layers.cycles({"a": {"b"}, "b": {"a"}}) == ["a -> b -> a"]


def test_no_two_headers_of_the_library_define_one_type() -> None:
    # They are all in one namespace, so the linker would join functions of the two types.
    types = Counter(
        name
        for file in SOURCES.rglob("*.h")
        for name in re.findall(
            r"^(?:struct|class|enum class) ([\w:]+)[^;{]*{", file.read_text(), re.MULTILINE
        )
    )
    assert len(types) > 70
    assert [name for name, count in types.items() if count > 1] == []


def test_studies_import_published_names_only() -> None:
    studies = [file for file in layers.files() if layers.is_study(file)]
    assert len(studies) > 60
    assert not [file for file in studies if layers.unpublished(file.read_text())]
    for hidden in (
        "from pidcomm.bench import _verify, platform",
        "from pidcomm.sizes import _UNITS, format_size",
        "from pidcomm import _core, allocate",
        "import pidcomm.bench._verify",
    ):
        assert len(layers.unpublished(hidden)) == 1
