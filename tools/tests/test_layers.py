"""Includes and imports go down from layer to layer, without cycles."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import layers
import pytest

SOURCES = Path(__file__).parents[2] / "pidcomm" / "src"


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """The uses of all layers."""
    return layers.uses()


@pytest.fixture(scope="module")
def beside() -> dict[str, set[str]]:
    """The uses of tests, benchmarks and examples."""
    return layers.beside()


def test_includes_and_imports_go_down(graph: dict[str, set[str]]) -> None:
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


def test_tests_benchmarks_and_examples_use_public_names_of_lower_products(
    beside: dict[str, set[str]],
) -> None:
    assert len(beside) > 150
    assert layers.outside(beside) == []


@pytest.mark.parametrize(
    ("user", "used", "rule"),
    [
        ("dpuemu/tests/launch_test.cpp", PUBLIC, "higher product"),
        ("dpuemu/examples/vector_add/host.c", "dpuemu/src/base/chip.h", "not public"),
        ("pidcomm/tests/campaign/parsers.py", "studies/apps/graphs.py", "higher product"),
        ("pidcomm/tests/native/main.cpp", "dpuemu/src/base/chip.h", "not public"),
        ("pidcomm/examples/predict.c", "pidcomm/src/plan/plan.h", "not public"),
        ("pidcomm/bench/memory.cpp", "pidcomm/src/plan/plan.h", "not public"),
        ("studies/tests/test_apps.py", ORACLE, "not public"),
    ],
)
def test_a_test_or_example_may_not_use(user: str, used: str, rule: str) -> None:
    (sentence,) = layers.outside({user: {used}})
    assert sentence.startswith(user)
    assert rule in sentence


def test_a_forbidden_import_in_a_test_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = {
        "pidcomm/tests/python/test_x.py": "from pidcomm_studies.apps.graphs import read_graph",
        "studies/apps/graphs.py": "",
        "studies/tests/test_y.py": "from pidcomm.sizes import _UNITS",
        "pidcomm/python/pidcomm/sizes.py": "__all__ = ['format_size']",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    layers.published.cache_clear()
    assert layers.main() == 1
    upper, hidden = capsys.readouterr().out.splitlines()[-2:]
    assert upper.startswith("pidcomm/tests/python/test_x.py uses studies/apps/graphs.py")
    assert hidden.startswith("studies/tests/test_y.py imports _UNITS of pidcomm.sizes")


def test_files_do_not_use_each_other_in_a_cycle(graph: dict[str, set[str]]) -> None:
    assert layers.cycles(graph) == []
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


def test_studies_and_examples_import_published_names_only(
    graph: dict[str, set[str]], beside: dict[str, set[str]]
) -> None:
    files = [file for file in [*graph, *beside] if layers.needs_published(file)]
    assert len(files) > 100
    assert not [file for file in files if layers.unpublished((layers.ROOT / file).read_text())]
    for hidden in (
        "from pidcomm.bench import _verify, platform",
        "from pidcomm.sizes import _UNITS, format_size",
        "from pidcomm import _core, allocate",
        "import pidcomm.bench._verify",
    ):
        assert len(layers.unpublished(hidden)) == 1
