"""Read, generate and write click logs in the format of the Criteo data sets, and convert them to
inputs of the model.

A line describes a click in 40 fields separated by tabs: a label (0 or 1), 13 numbers and 26
categories. A category is a 32-bit word of up to 8 hex digits. Numbers and categories may be empty.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NoReturn

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array
from pidcomm.errors import shown
from pidcomm.files import malformed
from pidcomm_studies.apps import inputs

NUMBERS = 13
CARDINALITIES = (
    *(
        1460,
        583,
        10131227,
        2202608,
        305,
        24,
        12517,
        633,
        3,
        93145,
        5683,
        8351593,
        3194,
        27,
        14992,
        5461306,
        10,
    ),
    *(5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572),
)
"""Number of categories of each field in the Criteo Kaggle set."""
CATEGORIES = len(CARDINALITIES)
FIELDS = 1 + NUMBERS + CATEGORIES
FORMAT = (
    f"a click has {FIELDS} fields separated by tabs: a label, {NUMBERS} numbers, {CATEGORIES}"
    " categories"
)
NUMBER_CHARACTERS, CATEGORY_CHARACTERS = 11, 8
# Characters.
MAX_CLICK = 1 + NUMBERS * NUMBER_CHARACTERS + CATEGORIES * CATEGORY_CHARACTERS + FIELDS - 1
BYTES_OF_CLICK = 4096  # peak memory of a line that is read, measured
_NUMBER = re.compile(r"(-?[0-9]+)?")
_CATEGORY = re.compile(r"[0-9A-Fa-f]*")

# Shares of empty fields, similar to the Kaggle set.
MISSING_NUMBERS = (0.45, 0.0, 0.21, 0.22, 0.03, 0.22, 0.04, 0.001, 0.04, 0.45, 0.04, 0.76, 0.22)
MISSING_CATEGORIES = (
    {2: 0.03, 3: 0.03, 5: 0.12, 11: 0.03, 15: 0.03, 20: 0.03, 23: 0.03}
    | dict.fromkeys((18, 19, 24, 25), 0.44)
    | {21: 0.76}
)
# Mean of the natural logarithm of a generated number plus one; its standard deviation is 1.
MEAN_LOGARITHM = (1.1, 2.5, 1.8, 1.6, 7.5, 3.2, 1.7, 2.0, 3.7, 0.4, 0.9, 0.4, 1.7)
LOWEST_NUMBER = 3  # numbers of the second field start at -3, as in the Kaggle set


@dataclass(frozen=True)
class Clicks:
    """Lines of a click log. A missing value is 0, and its mask is False.

    labels: uint8, shape (n,). numbers: int64, shape (n, 13). categories: uint32, shape (n, 26).
    has_number, has_category: masks, bool, of the same shapes.
    """

    labels: Array
    numbers: Array
    has_number: Array
    categories: Array
    has_category: Array

    def dense(self) -> Array:
        """Return int32, shape (n, 13): floor(16 log2(1 + number)), exactly; 0 for missing or
        negative numbers.
        """
        powers = np.searchsorted(_POWERS, np.maximum(self.numbers, 0) + 1, side="right")
        return powers.astype(np.int32) - np.int32(1)

    def rows(self, rows: int) -> Array:
        """Return uint32, shape (n, 26): the row of each category in its table of `rows` rows; 0
        if it is missing.
        """
        indices = hashed(self.categories, np.arange(CATEGORIES)) % np.uint32(rows)
        return np.where(self.has_category, indices, np.uint32(0))

    def numbered(self, most: int) -> tuple[Array, Array]:
        """Return the row of each category in a table that has a row for each category of its field
        in these clicks, and the rows of each table: uint32, shape (n, 26), and int64, shape (26,).

        Row 0 is for missing categories. most: the most rows of a table; number n has row n % most.
        """
        rows = np.zeros(self.categories.shape, np.uint32)
        for field, has in enumerate(self.has_category.T):
            _, numbers = np.unique(self.categories[has, field], return_inverse=True)
            rows[has, field] = (numbers + 1) % most
        return rows, rows.max(axis=0).astype(np.int64) + 1


@dataclass(frozen=True)
class Criteo:
    """A generated log: its categories follow Zipf's law; each field has as many categories as in
    the Kaggle set.

    skew: the exponent s; the k-th category of a field has a probability of about k^-s.
    """

    seed: int = 1
    skew: float = 1.05

    def clicks(self, count: int) -> Clicks:
        """Return `count` clicks. Raises ArgumentError for parameters out of range."""
        if self.seed < 0 or not 0 <= self.skew <= 10:
            raise ArgumentError(
                f"seed ({self.seed}) must not be negative; skew ({self.skew}) must be from 0 to 10"
            )
        rng = np.random.default_rng(self.seed)
        numbers = np.expm1(np.abs(rng.normal(MEAN_LOGARITHM, 1.0, (count, NUMBERS)))).astype(
            np.int64
        )
        numbers[:, 1] -= LOWEST_NUMBER
        has_number = rng.random((count, NUMBERS)) >= MISSING_NUMBERS
        ranks = zipf_ranks(rng.random((count, CATEGORIES)), np.array(CARDINALITIES), self.skew)
        missing = [MISSING_CATEGORIES.get(field, 0.0) for field in range(CATEGORIES)]
        has_category = rng.random((count, CATEGORIES)) >= missing
        return Clicks(
            labels=(rng.random(count) < 0.25).astype(np.uint8),
            numbers=np.where(has_number, numbers, 0),
            has_number=has_number,
            categories=np.where(
                has_category, hashed(ranks.astype(np.uint32), np.arange(CATEGORIES)), np.uint32(0)
            ),
            has_category=has_category,
        )


def read(path: Path, limit: int) -> Clicks:
    """Return the first clicks of a file, up to `limit`.

    Raises FileContentError with the number of a malformed line.
    """
    inputs.check_text(path, BYTES_OF_CLICK, limit)
    lines = [line for _, line in islice(inputs.numbered_lines(path), limit)]
    if not lines:
        malformed(path, None, f"the file is empty; {FORMAT}")
    # NumPy drops zeros at the end of words, and gives every field the length of the longest.
    if any(
        line.count("\t") != FIELDS - 1 or "\0" in line or len(line) > MAX_CLICK for line in lines
    ):
        _find_fault(path, lines)
    fields = np.array("\t".join(lines).split("\t")).reshape(len(lines), FIELDS)
    labels, are_labels = _parsed(fields[:, :1], 1, 2)
    numbers, are_numbers = _parsed(fields[:, 1 : 1 + NUMBERS], NUMBER_CHARACTERS, 10)
    categories, are_categories = _parsed(fields[:, 1 + NUMBERS :], CATEGORY_CHARACTERS, 16)
    if not (are_labels and are_numbers and are_categories) or (fields[:, 0] == "").any():
        _find_fault(path, lines)
    return Clicks(
        labels=labels[:, 0].astype(np.uint8),
        numbers=numbers,
        has_number=fields[:, 1 : 1 + NUMBERS] != "",
        categories=categories.astype(np.uint32),
        has_category=fields[:, 1 + NUMBERS :] != "",
    )


def write(path: Path, clicks: Clicks) -> None:
    """Write clicks in the format of `read`; packed by gzip if the name ends in .gz."""
    numbers = np.where(clicks.has_number, clicks.numbers.astype("U20"), "")
    categories = np.array([f"{category:08x}" for category in clicks.categories.flat]).reshape(
        clicks.categories.shape
    )
    columns = np.hstack(
        [
            clicks.labels[:, None].astype("U1"),
            numbers,
            np.where(clicks.has_category, categories, ""),
        ]
    )
    text = "".join("\t".join(line) + "\n" for line in columns.tolist())
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def _parsed(words: Array, characters: int, base: int) -> tuple[Array, bool]:
    """Return the values of words (int64; 0 for an empty word), and whether all words are valid
    numbers.
    """
    longest = words.dtype.itemsize // 4
    codes = np.ascontiguousarray(words).view(np.uint32).reshape(*words.shape, longest)
    is_negative = codes[..., 0] == ord("-") if base == 10 else np.zeros(words.shape, bool)
    values = np.zeros(words.shape, np.int64)
    is_right = not codes[..., characters:].any() and not (words == "-").any()
    for place in range(min(longest, characters)):
        code = codes[..., place]
        digits = _DIGITS[np.minimum(code, 127)]
        is_there = code != 0
        if place == 0:
            is_there &= ~is_negative
        is_right = is_right and bool((digits[is_there] < base).all())
        values = np.where(is_there, values * base + digits, values)
    return np.where(is_negative, -values, values), is_right


def _find_fault(path: Path, lines: Sequence[str]) -> NoReturn:
    """Raise FileContentError for the first malformed line, which must exist."""
    for number, line in enumerate(lines, 1):
        fields = line.split("\t")
        if len(fields) != FIELDS:
            malformed(path, number, f"{len(fields)} fields; {FORMAT}")
        if fields[0] not in ("0", "1"):
            malformed(path, number, f"label {shown(fields[0])} must be 0 or 1")
        numbers, categories = fields[1 : 1 + NUMBERS], fields[1 + NUMBERS :]
        for place, field in enumerate(numbers, 1):
            if not _NUMBER.fullmatch(field) or len(field) > NUMBER_CHARACTERS:
                rule = f"an integer of at most {NUMBER_CHARACTERS} characters, or empty"
                malformed(path, number, f"number {place} is {shown(field)}; it must be {rule}")
        for place, field in enumerate(categories, 1):
            if not _CATEGORY.fullmatch(field) or len(field) > CATEGORY_CHARACTERS:
                rule = f"at most {CATEGORY_CHARACTERS} hex digits, or empty"
                malformed(path, number, f"category {place} is {shown(field)}; it must be {rule}")
    raise AssertionError(f"no line of {path} is malformed")


def zipf_ranks(uniform: Array, counts: Array, skew: float) -> Array:
    """Return random row numbers (int64), each at least 0 and less than its count.

    The method draws real numbers by Zipf's law and rounds them down.
    """
    power = 1 - skew
    if abs(power) < 1e-9:
        ranks = np.power(counts + 1.0, uniform)
    else:
        ranks = np.power(1 + uniform * (np.power(counts + 1.0, power) - 1), 1 / power)
    drawn_ranks: Array = np.clip(ranks.astype(np.int64), 1, counts) - 1
    return drawn_ranks


def hashed(values: Array, fields: Array) -> Array:
    """Hash a value and its field number to a uint32 with the last steps of MurmurHash3; one to
    one within a field.
    """
    mixed: Array = values ^ (fields.astype(np.uint32) + np.uint32(1)) * np.uint32(0x9E3779B9)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = (mixed ^ mixed >> np.uint32(shift)) * np.uint32(factor)
    mixed ^= mixed >> np.uint32(16)
    return mixed


def _powers() -> Array:
    """Return the smallest n with n^16 >= 2^v, for v = 0, 1, ...: the n at which floor(16
    log2(n)) grows.
    """
    powers = []
    least = 1
    for v in range(16 * 40):
        least = max(least, int(2 ** (v / 16)) - 1)  # a lower bound, which the loop raises
        while least**16 < 2**v:
            least += 1
        powers.append(least)
    return np.array(powers, np.int64)


_POWERS = _powers()
_DIGITS = np.full(128, 99, np.int64)
_DIGITS[[ord(digit) for digit in "0123456789"]] = range(10)
_DIGITS[[ord(digit) for digit in "abcdef"]] = range(10, 16)
_DIGITS[[ord(digit) for digit in "ABCDEF"]] = range(10, 16)
