"""Criteo click logs, which DLRM reads."""

from __future__ import annotations

import gzip
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pidcomm
from pidcomm import ArgumentError
from pidcomm_studies.apps.dlrm import Dlrm
from pidcomm_studies.apps.dlrm.criteo import (
    CATEGORIES,
    FIELDS,
    NUMBERS,
    Clicks,
    Criteo,
    read,
    write,
)


def clicks_of(count: int = 20, **parameters: Any) -> Clicks:
    return Criteo(**parameters).clicks(count)


def assert_equal_clicks(one: Clicks, other: Clicks) -> None:
    """Compare all fields and their types."""
    for field in fields(Clicks):
        a, b = getattr(one, field.name), getattr(other, field.name)
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


def line_of(label: str = "0", number: str = "1", category: str = "68fd1e64") -> str:
    """A line with one value in all fields of a kind."""
    return "\t".join([label, *[number] * NUMBERS, *[category] * CATEGORIES]) + "\n"


@pytest.mark.parametrize("name", ["day_0", "train.txt.gz"])
def test_writing_and_reading_a_log_keeps_the_problem(tmp_path: Path, name: str) -> None:
    clicks = clicks_of(300)
    write(tmp_path / name, clicks)
    assert_equal_clicks(read(tmp_path / name, 1000), clicks)
    generated, loaded = (
        Dlrm.make(batch=300, rows=50, data=path) for path in (None, tmp_path / name)
    )
    np.testing.assert_array_equal(generated.dense, loaded.dense)
    np.testing.assert_array_equal(generated.rows, loaded.rows)


def test_a_log_has_tabs_hex_digits_and_empty_fields(tmp_path: Path) -> None:
    write(tmp_path / "log", clicks_of(100))
    lines = [line.split("\t") for line in (tmp_path / "log").read_text().splitlines()]
    assert {len(line) for line in lines} == {FIELDS}
    assert {line[0] for line in lines} == {"0", "1"}
    assert {len(word) for line in lines for word in line[1 + NUMBERS :]} == {0, 8}
    assert any(line[2].startswith("-") for line in lines)
    assert any("" in line[1 : 1 + NUMBERS] for line in lines)


def test_batch_limits_the_lines_that_are_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(line_of() * 5 + "nonsense\n")
    assert Dlrm.make(data=tmp_path / "log", batch=5, rows=3).facts["samples"] == 5
    with pytest.raises(ArgumentError, match="log:6: 1 fields"):
        read(tmp_path / "log", 6)


def test_all_numbers_and_categories_of_the_format_are_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        line_of("1", "-3", "FFFFFFFF") + line_of("0", "2147483647", "0") + line_of("1", "", "")
    )
    clicks = read(tmp_path / "log", 10)
    np.testing.assert_array_equal(clicks.labels, [1, 0, 1])
    np.testing.assert_array_equal(clicks.numbers[:, 0], [-3, 2147483647, 0])
    np.testing.assert_array_equal(clicks.has_number[:, 12], [True, True, False])
    np.testing.assert_array_equal(clicks.categories[:, 0], [2**32 - 1, 0, 0])
    np.testing.assert_array_equal(clicks.has_category[:, 25], [True, True, False])


def test_missing_or_negative_fields_become_0_and_row_0(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(line_of(number="", category="") + line_of(number="-2"))
    clicks = read(tmp_path / "log", 10)
    assert not clicks.dense().any()
    assert not clicks.rows(1000)[0].any()
    assert clicks.rows(1000)[1].any()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "\n",
            "1 fields; a click has 40 fields separated by tabs: a label, 13 numbers, 26 categories",
        ),
        (line_of()[:-1] + "\t\n", "41 fields"),
        (line_of().split("\t", 1)[1], "39 fields"),
        (line_of().replace("\t", " "), "1 fields"),
        (line_of(label="2"), "label '2' must be 0 or 1"),
        (line_of(label=""), "label '' must be 0 or 1"),
        (line_of(label="01"), "label '01' must be 0 or 1"),
        (
            line_of(number="1.5"),
            "number 1 is '1.5'; it must be an integer of at most 11 characters, or empty",
        ),
        (line_of(number="-"), "number 1 is '-'"),
        (line_of(number="--1"), "number 1 is '--1'"),
        (line_of(number="1_0"), "number 1 is '1_0'"),
        (line_of(number=" 1"), "number 1 is ' 1'"),
        (line_of(number="+1"), r"number 1 is '\+1'"),
        (line_of(number="a"), "number 1 is 'a'"),
        (line_of(number="١"), "number 1 is '١'"),
        (line_of(number="123456789012"), "number 1 is '123456789012'"),
        (
            line_of(category="68fd1e6g"),
            "category 1 is '68fd1e6g'; it must be at most 8 hex digits, or empty",
        ),
        (line_of(category="68fd1e640"), "category 1 is '68fd1e640'"),
        (line_of(category="-1"), "category 1 is '-1'"),
        (line_of(category="0x1"), "category 1 is '0x1'"),
        (line_of(category="\0\0"), r"category 1 is '\\x00\\x00'"),
        (line_of(category="1\0"), r"category 1 is '1\\x00'"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "log").write_text(line_of() * 2 + line + line_of())
    with pytest.raises(ArgumentError, match=f"log:3: {message}"):
        Dlrm.make(data=tmp_path / "log")


def test_the_first_of_several_malformed_lines_is_named(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(line_of() + line_of(category="x") + line_of(label="x") + "\n")
    with pytest.raises(ArgumentError, match="log:2: category 1"):
        read(tmp_path / "log", 10)


def test_a_line_with_too_many_fields_does_not_offset_a_line_with_too_few(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(line_of()[:-1] + "\t1\n" + line_of().split("\t", 1)[1])
    with pytest.raises(ArgumentError, match="log:1: 41 fields"):
        read(tmp_path / "log", 10)


def test_empty_missing_and_broken_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "broken.gz").write_bytes(gzip.compress(line_of().encode() * 100)[:-20])
    with pytest.raises(ArgumentError, match="empty: the file is empty; a click has 40 fields"):
        read(tmp_path / "empty", 10)
    for name, message in (
        ("broken.gz", r"broken\.gz: not valid gzip"),
        ("none", "cannot read .*none"),
    ):
        with pytest.raises(pidcomm.Error, match=message):
            read(tmp_path / name, 1000)


def test_numbers_become_sixteenths_of_their_logarithm_exactly() -> None:
    numbers = np.array([0, 1, 2, 3, 4, 15, 16, 1000, 2**20 - 1, 2**20, 2**31 - 1, 9999999999])
    padded = np.zeros((len(numbers), NUMBERS), np.int64)
    padded[:, 0] = numbers
    there = np.ones(padded.shape, bool)
    none = np.zeros((len(numbers), CATEGORIES), np.uint32)
    dense = Clicks(numbers, padded, there, none, none != 0).dense()
    assert dense.dtype == np.int32
    for number, sixteenths in zip(numbers.tolist(), dense[:, 0].tolist(), strict=True):
        assert 2**sixteenths <= (number + 1) ** 16 < 2 ** (sixteenths + 1)


def test_rows_are_the_documented_hash_modulo_their_number() -> None:
    def hashed(value: int, field: int) -> int:
        mixed = value ^ (field + 1) * 0x9E3779B9 % 2**32
        mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B % 2**32
        mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 % 2**32
        return mixed ^ mixed >> 16

    clicks = clicks_of(50)
    for categories, values, there in zip(
        clicks.rows(1000), clicks.categories, clicks.has_category, strict=True
    ):
        words = zip(values.tolist(), there, strict=True)
        assert categories.tolist() == [
            hashed(value, field) % 1000 * bool(has) for field, (value, has) in enumerate(words)
        ]


def test_categories_have_the_given_skew_and_the_number_of_the_data_set() -> None:
    flat, skewed = (clicks_of(20000, skew=skew).categories[:, 2] for skew in (0.0, 1.5))
    assert len(np.unique(skewed)) < len(np.unique(flat)) / 4
    few = clicks_of(20000)
    assert len(np.unique(few.categories[few.has_category[:, 8], 8])) == 3
    assert not np.array_equal(few.categories, clicks_of(20000, seed=2).categories)
