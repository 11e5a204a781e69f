"""DLRM: its results, its batches and models of any shape, and Criteo click logs."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpuemu
import pidcomm
from pidcomm import ArgumentError
from pidcomm.arguments import Array
from pidcomm_studies import apps
from pidcomm_studies.apps.dlrm import BUFFER_BYTES, Dlrm
from pidcomm_studies.apps.dlrm.criteo import (
    CATEGORIES,
    FIELDS,
    NUMBERS,
    Clicks,
    Criteo,
    read,
    write,
)

WORDS = np.iinfo(np.int32)


def problem_of(
    samples: int = 37,
    tables: int = 5,
    rows: int = 11,
    embedding: int = 16,
    dense: int = 13,
    bottom: Sequence[int] = (9,),
    top: Sequence[int] = (10, 3),
) -> Dlrm:
    """A model and a batch of random 32-bit integers: results are right only if sums wrap."""
    rng = np.random.default_rng([samples, tables, rows, embedding])

    def integers(*shape: int) -> Array:
        return rng.integers(WORDS.min, WORDS.max, shape, np.int32, endpoint=True)

    def layers(*widths: int) -> list[Array]:
        return [integers(outputs, inputs + 1) for inputs, outputs in pairwise(widths)]

    return Dlrm(
        tables=integers(tables, rows, embedding),
        rows=rng.integers(0, rows, (samples, tables)),
        dense=integers(samples, dense),
        bottom=layers(dense, *bottom, embedding),
        top=layers(embedding + tables * (tables + 1) // 2, *top, 1),
    )


def forward(problem: Dlrm) -> Array:
    """The forward pass of the public model, sample by sample, without its sigmoid."""

    def linear(layer: Array, x: Array) -> Array:
        return layer[:, :-1] @ x + layer[:, -1]

    results = []
    for rows, x in zip(problem.rows, problem.dense, strict=True):
        for layer in problem.bottom:
            x = np.maximum(linear(layer, x), 0)
        vectors = np.stack(
            [x, *(table[row] for table, row in zip(problem.tables, rows, strict=True))]
        )
        products = vectors @ vectors.T
        y = np.concatenate([x, products[np.tril_indices(len(vectors), -1)]])
        for layer in problem.top[:-1]:
            y = np.maximum(linear(layer, y), 0)
        results.append(linear(problem.top[-1], y)[0])
    return np.array(results, np.int32)


def assert_right(problem: Dlrm, shape: tuple[int, ...], technique: str = "tile") -> None:
    """Compare PEs and CPU with NumPy."""
    run = apps.run(problem, shape=shape, technique=technique, iters=1)
    np.testing.assert_array_equal(run.result, forward(problem))
    assert run.wrong == 0


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


# ---- the forward pass


@pytest.mark.parametrize("embedding", [16, 32])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (2, 2, 2), (4, 2, 1), (3, 2, 2), (8, 8, 1), (1, 3, 4), (2, 1, 8)]
)
def test_the_result_equals_numpys_on_every_shape(shape: tuple[int, ...], embedding: int) -> None:
    assert_right(problem_of(embedding=embedding), shape)


@pytest.mark.parametrize("technique", ["conventional", "pr", "pr+im+cm", "tile"])
def test_the_result_equals_numpys_with_every_technique(technique: str) -> None:
    assert_right(problem_of(samples=40), (2, 4, 2), technique)


@pytest.mark.parametrize("samples", [1, 31, 33, 200])
def test_batches_need_not_be_divisible(samples: int) -> None:
    assert_right(problem_of(samples=samples, tables=3), (2, 4, 2))


@pytest.mark.parametrize(
    "sizes",
    [
        {"tables": 1, "rows": 1, "dense": 1, "bottom": (), "top": ()},
        {"tables": 2, "rows": 3, "embedding": 4, "bottom": (1, 2)},
        {"tables": 26, "rows": 2, "samples": 9},
        {"tables": 30, "rows": 40, "embedding": 64, "samples": 5},
        {
            "bottom": (300, 7),
            "top": (520, 17, 16),
        },  # more weights than fit a tasklet; outputs of all kinds
        {"dense": 256, "bottom": (), "top": (33,)},
    ],
    ids=str,
)
def test_models_have_any_number_of_tables_rows_and_outputs(sizes: dict[str, Any]) -> None:
    assert_right(problem_of(**sizes), (4, 2, 2))


def test_groups_of_samples_that_do_not_divide_a_pes_samples_are_right() -> None:
    problem = problem_of(samples=160, tables=26, embedding=32)
    assert 80 % int(problem.place((1, 2, 1)).defines["GROUP"]) != 0
    assert_right(problem, (1, 2, 1))


@pytest.fixture
def _strict() -> Iterator[None]:
    dpuemu.machine(strict=True)
    yield
    dpuemu.machine(strict=False)


@pytest.mark.usefixtures("_strict")
def test_a_strict_machine_finds_no_fault() -> None:
    assert_right(problem_of(samples=50, tables=7, top=(300, 5)), (2, 2, 2), "pr")


@pytest.mark.usefixtures("_strict")
@pytest.mark.parametrize("samples", [513, 700])
def test_results_of_a_group_may_be_longer_than_a_transfer(samples: int) -> None:
    problem = problem_of(samples=samples, tables=1, embedding=2, dense=1, bottom=(), top=())
    assert int(problem.place((1, 1, 1)).defines["GROUP"]) * 4 > 2048
    assert_right(problem, (1, 1, 1))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 4, 2), (2, 1, 1), (4, 3, 1)])
def test_a_pe_may_have_more_indices_than_fit_a_tasklet(shape: tuple[int, ...]) -> None:
    problem = problem_of(samples=prod(shape) * 130, tables=9, embedding=4, bottom=(), top=())
    assert 130 * -(-9 // shape[0]) * 4 > BUFFER_BYTES
    assert_right(problem, shape)


def test_phases_match_the_paper() -> None:
    """Table III without broadcast, and figure 11; indices cross the bus once for every y and z."""
    run = apps.run(problem_of(samples=64), shape=(2, 2, 2), iters=1)
    calls = {name: cost.calls for name, cost in run.costs.items()}
    assert calls == {
        "host": 1,
        "scatter": 2,
        "kernel": 3,
        "alltoall": 2,
        "reduce_scatter": 1,
        "gather": 1,
    }
    indices, dense = 4 * 2 * 8 * 3, 4 * 8 * 14
    assert run.costs["scatter"].bus_bytes == 2 * 8 * (indices + dense)  # read and written
    assert run.setup.calls == 2


@pytest.mark.parametrize("pes", [1, 3, 6, 8, 40, 64, 256, 1000, 1024, 2560])
def test_any_number_of_pes_has_a_shape_that_the_model_fits(pes: int) -> None:
    shape = Dlrm.shape_of(pes)
    assert prod(shape) == pes
    problem_of().place(shape)


def test_powers_of_two_are_divided_among_tables_rows_and_columns() -> None:
    assert [Dlrm.shape_of(pes) for pes in (64, 256, 1024)] == [(4, 4, 4), (8, 8, 4), (16, 8, 8)]


@pytest.mark.parametrize(("z", "columns"), [(3, 16), (16, 16), (32, 32)])
def test_slices_of_columns_are_whole_words(z: int, columns: int) -> None:
    with pytest.raises(
        ArgumentError, match=f"{columns} columns .* {z} PEs along z; .* must divide {columns // 2}"
    ):
        problem_of(embedding=columns).place((1, 1, z))


def test_a_model_that_does_not_fit_wram_reports_the_bytes_it_needs() -> None:
    with pytest.raises(
        ArgumentError,
        match=r"two samples with 100 tables of 64 columns, 5114 inputs .* bytes of WRAM",
    ):
        problem_of(tables=100, embedding=64, rows=1, samples=1).place((1, 1, 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tables": np.zeros((2, 3), np.int32)}, r"tables of shape \(2, 3\) must have shape"),
        ({"tables": np.zeros((5, 11, 16))}, "tables of type float64 must be of type int32"),
        ({"top": [np.zeros((1, 32), np.int64)]}, "a top layer of type int64 must be of type int32"),
        ({"tables": np.zeros((5, 11, 15), np.int32)}, "15 columns must be even and at most 64"),
        (
            {"rows": np.zeros((37, 4), np.int32)},
            r"rows of shape \(37, 4\) must have shape \(samples, 5\)",
        ),
        ({"rows": np.full((37, 5), 11)}, "rows must be integers from 0 to 10"),
        ({"rows": np.full((37, 5), -1)}, "rows must be integers from 0 to 10"),
        ({"rows": np.zeros((37, 5))}, "rows must be integers from 0 to 10"),
        (
            {"dense": np.zeros((36, 13), np.int32)},
            r"dense features of shape \(36, 13\) must have shape \(37, 1 to 256\)",
        ),
        (
            {"bottom": []},
            r"bottom layers \[13\]: there must be at least one, and the last must have 16 outputs",
        ),
        (
            {"bottom": [np.zeros((16, 13), np.int32)]},
            r"bottom layer 1 of shape \(16, 13\) must have .* 14\)",
        ),
        (
            {"top": [np.zeros((2, 32), np.int32)]},
            r"top layers \[31, 2\]: there must be at least one, and the last must have 1 outputs",
        ),
    ],
)
def test_arrays_that_do_not_agree_are_refused(change: dict[str, Any], message: str) -> None:
    problem = problem_of()
    names = ("tables", "rows", "dense", "bottom", "top")
    with pytest.raises(ArgumentError, match=message):
        Dlrm(**{**{name: getattr(problem, name) for name in names}, **change})


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"batch": 0}, r"batch \(0\) must be between 1 and 16777216"),
        ({"rows": 0}, r"rows \(0\) must be between 1 and 16777216"),
        ({"seed": -1}, r"seed \(-1\) must be between 0 and 4294967295"),
        ({"embedding": 15}, "15 columns must be even"),
        ({"embedding": 65}, "embedding"),
        ({"bottom": "64,x"}, r"bottom \('64,x'\) must be numbers of outputs"),
        ({"top": "0"}, r"top \('0'\) must be numbers of outputs"),
        ({"generate": "criteo:seed=-1"}, r"seed \(-1\) must not be negative"),
        ({"generate": "criteo:skew=nan"}, r"skew \(nan\)"),
    ],
)
def test_options_out_of_range_are_refused(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Dlrm.make(quick=True, **option)


def test_options_are_the_sizes_of_the_model() -> None:
    facts = Dlrm.make(batch=50, embedding=32, rows=7, bottom="", top="5").facts
    assert facts == {
        **{
            "input": "criteo:seed=1,skew=1.05",
            "samples": 50,
            "tables": 26,
            "rows": 7,
            "embedding": 32,
        },
        **{"bottom": "13-32", "top": "383-5-1", "seed": 1},
    }
    assert "seed" not in problem_of().facts


def test_the_input_has_all_parameters_of_its_generator() -> None:
    facts = Dlrm.make(generate="criteo:skew=0.5", batch=2, rows=3, seed=7).facts
    assert (facts["input"], facts["seed"]) == ("criteo:seed=1,skew=0.5", 7)


@pytest.mark.parametrize(
    ("options", "samples", "rows"),
    [
        ({}, 512, 4096),
        ({"batch": 4096}, 4096, 4096),
        ({"rows": 65536}, 512, 65536),
        ({"batch": 16384, "rows": 5}, 16384, 5),
        ({"generate": "criteo", "embedding": 2}, 16384, 65536),
    ],
)
def test_quick_reduces_only_sizes_that_no_option_sets(
    options: dict[str, Any], samples: int, rows: int
) -> None:
    facts = Dlrm.make(quick=True, **options).facts
    assert (facts["samples"], facts["rows"]) == (samples, rows)


@pytest.mark.parametrize("options", [{"rows": 2**24, "embedding": 64}, {"batch": 2**24, "rows": 3}])
def test_a_problem_larger_than_memory_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 8 << 30)
    with pytest.raises(
        ArgumentError, match=r"26 tables of .* samples, need about .* are available"
    ):
        Dlrm.make(**options)


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (0, np.zeros((54, 16), np.int32)),
        (0, np.zeros((55, 16))),
        (3, np.zeros((36, 13), np.int32)),
        (4, np.zeros(9, np.int32)),
        (5, np.array([13, 9, 17], np.int32)),
        (5, np.array([12, 9, 16], np.int32)),
        (5, np.array([13], np.int32)),
        (5, np.array([13, -9, 16], np.int32)),
        (7, np.array([31, 10, 3, 2], np.int32)),
    ],
)
def test_the_reference_takes_only_arrays_that_agree(
    monkeypatch: pytest.MonkeyPatch, place: int, change: Array
) -> None:
    from pidcomm_studies.apps import _apps

    valid: list[Any] = []

    def listen(*arguments: Any) -> Array:
        valid[:] = arguments
        return compute(*arguments)

    compute = _apps.dlrm
    monkeypatch.setattr(_apps, "dlrm", listen)
    problem_of().reference()
    valid[place] = change
    with pytest.raises((ValueError, TypeError)):
        compute(*valid)


# ---- click logs


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
    for name in ("broken.gz", "none"):
        with pytest.raises(pidcomm.Error, match=f"cannot read .*{name}"):
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
