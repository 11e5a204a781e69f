"""Sizes, shapes and durations: parsing and printing."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pidcomm
from pidcomm.arguments import as_mask
from pidcomm.errors import unknown
from pidcomm.sizes import (
    BINARY_UNITS,
    DECIMAL_UNITS,
    MAX_SIZE,
    format_about,
    format_duration,
    format_interval,
    format_shape,
    format_size,
    parse_count,
    parse_names,
    parse_shape,
    parse_size,
)

UNITS = {**BINARY_UNITS, **DECIMAL_UNITS, "": 1, "B": 1}
SIZES = st.integers(0, MAX_SIZE) | st.builds(
    lambda n, unit: n * unit, st.integers(0, 2**20), st.sampled_from([*UNITS.values()])
)


@given(SIZES)
def test_printed_sizes_can_be_parsed(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(
    st.integers(0, 2**33),
    st.sampled_from([*UNITS.items()]),
    st.sampled_from(["", " "]),
    st.booleans(),
)
def test_a_size_is_a_number_times_its_unit(
    number: int, unit: tuple[str, int], space: str, is_lower: bool
) -> None:
    name, factor = unit
    assert parse_size(f"{number}{space}{name.lower() if is_lower else name}") == number * factor


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("8K", "8KiB or 8kB"),
        ("8 k", "8KiB or 8kB"),
        ("1.5M", "1.5MiB or 1.5MB"),
        ("2g", "2GiB or 2GB"),
    ],
)
def test_a_letter_alone_has_two_meanings(text: str, choice: str) -> None:
    with pytest.raises(pidcomm.ArgumentError, match=f"two meanings; write {choice}$"):
        parse_size(text)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("alltoal", "; did you mean 'alltoall'?"),
        ("AllReduce", "; did you mean 'allreduce'?"),
        ("x", ""),
    ],
)
def test_the_nearest_name_is_suggested(name: str, suggestion: str) -> None:
    assert unknown("collective", name, pidcomm.COLLECTIVES).endswith(f"broadcast{suggestion}")


@pytest.mark.parametrize(
    ("mask", "suggestion"),
    [("1O", "; did you mean '10'?"), ("l 0", "; did you mean '10'?"), ("1x", "")],
)
def test_a_mask_of_letters_is_suggested_in_digits(mask: str, suggestion: str) -> None:
    with pytest.raises(pidcomm.ArgumentError) as error:
        as_mask(mask)
    assert str(error.value).endswith(f"per axis{suggestion}")


@given(st.integers(0, 10**6), st.integers(0, 13))
def test_powers_of_ten_are_exact(number: int, exponent: int) -> None:
    assert parse_size(f"{number}e{exponent}") == number * 10**exponent


@given(st.text() | st.from_regex(r"[0-9]*\.?[0-9]*(e[0-9]*)?[kKmMgGiIbBx]*", fullmatch=True))
def test_every_text_is_a_value_or_an_argument_error(text: str) -> None:
    for parse in (parse_size, parse_count, parse_shape):
        with suppress(pidcomm.ArgumentError):
            parse(text)


@given(st.lists(st.integers(0, 2**32), min_size=1, max_size=6).map(tuple))
def test_printed_shapes_can_be_parsed(shape: tuple[int, ...]) -> None:
    assert parse_shape(format_shape(shape)) == shape


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("64KiB", 65536),
        ("1MiB", 1 << 20),
        ("1e6", 10**6),
        ("1e+6", 10**6),
        ("1.5 KiB", 1536),
        ("0.1MB", 10**5),
        ("1MB", 10**6),
        ("2kb", 2000),
        ("3 bytes", 3),
        (str(MAX_SIZE), MAX_SIZE),
    ],
)
def test_sizes_have_units(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "1.3", "1 2", "KiB", "1e", "1e-3", "٣", "1\u212aiB", "9" * 5000]
)
def test_invalid_sizes_are_errors_that_state_the_rule(text: str) -> None:
    with pytest.raises(pidcomm.ArgumentError, match=r"size .*powers of 1024; kB, "):
        parse_size(text)


def test_a_size_fits_64_bits() -> None:
    for text in (str(MAX_SIZE + 1), "1e99", "99999999999GiB"):
        with pytest.raises(
            pidcomm.ArgumentError, match="the largest is 18446744073709551615 bytes"
        ):
            parse_size(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1000, "1000 bytes"),
        (1536, "1536 bytes"),
        (1024, "1 KiB"),
        (1050 << 10, "1050 KiB"),
    ],
)
def test_sizes_are_printed_exactly(size: int, text: str) -> None:
    assert format_size(size) == text


def test_rounded_sizes_and_times_are_easy_to_read() -> None:
    assert [format_about(size) for size in (10, 1536, 2.25 * 2**30)] == [
        "10 bytes",
        "1.5 KiB",
        "2.25 GiB",
    ]
    times = (0.0000071, 174e-6, 999.6e-6, 0.0523, 4.512, 59.99, 60, 125.4)
    texts = ["7.1 us", "174 us", "1 ms", "52.3 ms", "4.51 s", "60 s", "1 min 0 s", "2 min 5 s"]
    assert [format_duration(seconds) for seconds in times] == texts


def test_shapes_are_lengths_separated_by_x() -> None:
    assert parse_shape("32x32") == (32, 32)
    assert parse_shape("7") == (7,)
    for text in ("", "8x", "8,8", "-8x1", "9" * 5000):
        with pytest.raises(pidcomm.ArgumentError, match="shape"):
            parse_shape(text)


def test_lists_of_names_contain_only_known_names() -> None:
    assert parse_names("int8,float64", pidcomm.TYPES, "dtype") == ["int8", "float64"]
    assert parse_names("all", pidcomm.OPS, "operator") == [*pidcomm.OPS]
    with pytest.raises(pidcomm.ArgumentError, match="dtype 'int3' is unknown; use all, int8"):
        parse_names("int8,int3", pidcomm.TYPES, "dtype")


def test_intervals_have_two_digits_and_one_unit_if_possible() -> None:
    assert format_interval((3.61e-3, 4.94e-3)) == "3.6 to 4.9 ms"
    assert format_interval((0.000942, 0.00151)) == "940 us to 1.5 ms"
    assert format_interval((0.0, 0.0)) == "0 to 0 us"
