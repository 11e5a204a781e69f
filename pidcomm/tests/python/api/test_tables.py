"""Names and codes match the header."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from definitions import COLLECTIVES, payload, result_of

import pidcomm
from pidcomm._rows import CollectiveName
from pidcomm.bench.oracle import Problem
from pidcomm.tables import SCANS

HEADER = Path(__file__).parents[3] / "include" / "pidcomm" / "tables.h"


def header_rows(macro: str) -> list[list[str]]:
    """Return the cells of the rows of a macro of tables.h."""
    text = HEADER.read_text()
    body = re.search(rf"#define {macro}\(X\)((?:.*\\\n)*.*\n)", text)
    assert body, macro
    text = re.sub(r"\s*\\\n\s*", " ", body[1])
    return [re.split(r",\s*", row) for row in re.findall(r"X\((.*?)\)(?= X\(|\s*$)", text)]


TABLES: dict[str, Any] = {
    "PIDCOMM_COLLECTIVES": pidcomm.COLLECTIVES,
    "PIDCOMM_SCANS": SCANS,
    "PIDCOMM_TYPES": pidcomm.TYPES,
    "PIDCOMM_OPS": pidcomm.OPS,
    "PIDCOMM_TECHNIQUES": pidcomm.TECHNIQUES,
    "PIDCOMM_ISAS": pidcomm.ISAS,
    "PIDCOMM_COHERENCES": pidcomm.COHERENCES,
}


@pytest.mark.parametrize("macro", TABLES)
def test_names_and_codes_match_the_header(macro: str) -> None:
    expected = {row[2].strip('"'): int(row[1]) for row in header_rows(macro)}
    assert {name: row.code for name, row in TABLES[macro].items()} == expected
    assert all(name == row.name for name, row in TABLES[macro].items())


def test_types_match_numpy() -> None:
    for name, row in pidcomm.TYPES.items():
        assert np.dtype(name).itemsize == row.size_bytes
        assert ("float" in np.dtype(name).name) == row.is_float


def test_the_rows_of_collectives_match_their_definitions() -> None:
    for name, row in pidcomm.COLLECTIVES.items():
        definition = COLLECTIVES[name]
        assert row.at_pes_before == definition.at_pes_before
        assert row.at_pes_after == definition.at_pes_after
        assert row.per_member_before == definition.has_blocks_before
        assert row.takes_op == definition.reduces
        assert callable(getattr(pidcomm.Hypercube, name))
        assert callable(getattr(pidcomm.ArrayCollectives, name))
        problem = Problem(name, (4, 6), "01", 48 * row.blocks_per_pe(6), "int32")
        assert problem.before.row_bytes == 48 * row.blocks_before(6)
        assert problem.after.row_bytes == 48 * row.blocks_after(6)


def test_default_isa_is_available() -> None:
    default = pidcomm.ISAS[pidcomm.DEFAULT_ISA]
    assert default.is_available
    assert default.level > 0
    assert pidcomm.ISAS["scalar"].is_available


@pytest.mark.parametrize("name", pidcomm.COLLECTIVES)
def test_oracle_agrees_with_the_definitions(name: CollectiveName) -> None:
    x = payload(name, (4, 6), "01", "int16", block_bytes=48)
    problem = Problem(
        name, (4, 6), "01", 48 * pidcomm.COLLECTIVES[name].blocks_per_pe(6), "int16", "max"
    )
    before = x.view(np.uint8)
    expected = result_of(name, x, (4, 6), "01", "max")
    np.testing.assert_array_equal(problem.expected(before).view(np.int16), expected)
    assert problem.check(before, expected.view(np.uint8)) == (0, "")
    wrong = expected.copy()
    wrong[1, 2] ^= 1
    verdict = problem.check(before, wrong.view(np.uint8))
    assert verdict.wrong == 1
    assert "1" in verdict.first


def test_public_names_are_documented() -> None:
    for name in pidcomm.__all__:
        thing = getattr(pidcomm, name)
        if not callable(thing):
            continue
        assert thing.__doc__, name
        for member, value in vars(thing).items() if isinstance(thing, type) else ():
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member}"


def test_the_version_matches_the_project() -> None:
    project = (HEADER.parents[2] / "CMakeLists.txt").read_text()
    assert f"project(pidcomm VERSION {pidcomm.__version__} " in project
