"""Includes and imports go down from layer to layer, without cycles."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import layers

SOURCES = Path(__file__).parents[2] / "pidcomm" / "src"


def test_includes_and_imports_go_down() -> None:
    graph = layers.uses()
    assert len(graph) > 150
    assert layers.upward(graph) == []


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
