"""Includes and imports go down from layer to layer, without cycles."""

from __future__ import annotations

import layers


def test_includes_and_imports_go_down() -> None:
    graph = layers.uses()
    assert len(graph) > 150
    assert layers.upward(graph) == []


def test_files_do_not_use_each_other_in_a_cycle() -> None:
    assert layers.cycles(layers.uses()) == []
    assert layers.cycles({"a": {"b"}, "b": {"a"}}) == ["a -> b -> a"]
