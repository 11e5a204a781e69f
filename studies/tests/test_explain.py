"""Where a collective runs, in words and as a picture."""

from __future__ import annotations

import os
import re
import subprocess
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import PIDCOMM
from matplotlib.colors import to_rgb
from matplotlib.patches import PathPatch
from test_pictures import EXPLAINED, all_text, explained, plots_of
from typer.testing import CliRunner

import dpuemu
import pidcomm
from pidcomm.cli import app
from pidcomm.explain import places, words
from pidcomm_studies.pictures import drawing

# ---- explain


def test_places_match_the_documents() -> None:
    located = places.locate((32, 80), "01")
    assert located.location[43] == (0, 3, 5)  # chip 3 bank 5 of the first rank: docs/collectives.md
    assert len(set(located.location)) == located.pes == 2560
    assert (len(located.pes_of_rank), located.channels) == (40, dpuemu.machine().channels)
    assert list(chain(*located.pes_of_rank.values())) == list(range(located.pes))


@pytest.mark.parametrize(("shape", "mask"), [((4, 8, 2), "010"), ((5, 7, 8), "101"), ((7,), "0")])
def test_groups_match_the_definition(shape: tuple[int, ...], mask: str) -> None:
    located = places.locate(shape, mask)
    for coordinates in product(*map(range, shape)):
        pe = int(np.ravel_multi_index(coordinates[::-1], shape[::-1]))
        numbers = {"0": 0, "1": 0}
        for bit, coordinate, length in reversed(list(zip(mask, coordinates, shape, strict=True))):
            numbers[bit] = numbers[bit] * length + coordinate
        assert located.members[numbers["0"]][numbers["1"]] == pe


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([5], "5"),
        ([0, 1, 2, 3], "0-3"),
        ([0, 8, 16], "0, 8, .. 16"),
        ([1, 2, 4, 9], "1, 2, 4, 9"),
    ],
)
def test_runs_of_numbers_are_abbreviated(numbers: list[int], text: str) -> None:
    assert ", ".join(places.runs(numbers)) == text


@pytest.mark.parametrize("case", EXPLAINED)
def test_an_explanation_has_places_groups_and_every_line_of_the_plan(case: tuple[Any, ...]) -> None:
    where, plan = explained(*case)
    before = dpuemu.resident_bytes()
    text = "\n".join(words.explain_places(where, plan))
    assert dpuemu.resident_bytes() == before
    for line in pidcomm.explain.plan.explain(plan):
        assert line.strip() in text
    assert f"{where.groups} group{'s' if where.groups > 1 else ''} of" in text
    for rank, pes in where.pes_of_rank.items():
        assert f"rank {rank}: PEs {pes[0]}-" in text
    for pe in chain(*list(where.pes_of_rank.values())[: words.MAX_GRIDS]):
        assert re.search(rf"\b{pe}:{where.group[pe]}\b", text)


@pytest.mark.parametrize("case", EXPLAINED)
def test_a_picture_has_every_pe_in_the_colour_of_its_group(case: tuple[Any, ...]) -> None:
    where, plan = explained(*case)
    figure = drawing.draw(where, plan)
    cells: dict[tuple[float, float], str] = {}
    shapes = [
        patch
        for patch in plots_of(figure)[0].patches
        if isinstance(patch, PathPatch) and patch.get_gid()
    ]
    for shape in shapes:
        for square in shape.get_path().to_polygons():
            x, y = np.min(square, axis=0).tolist()
            cells[round(x, 6), round(y, 6)] = str(shape.get_gid())
    assert len(cells) == where.pes
    layout = drawing._lay_out(where)
    for pe, x, y in drawing._cells(where, layout):
        group = where.group[pe]
        assert cells[round(x, 6), round(y, 6)] == f"colour{group % len(drawing.COLOURS)}"
    colours = [to_rgb(shape.get_facecolor()) for shape in shapes]
    assert len(set(colours)) == len(colours) == min(where.groups, len(drawing.COLOURS))
    corners = {rank: drawing._rank_corner(where, layout, rank) for rank in where.pes_of_rank}
    for pe, x, y in drawing._cells(where, layout):  # lanes across, banks down, in the rank's frame
        location = where.location[pe]
        corner = corners[location.rank]
        assert (x - corner[0], y - corner[1]) == pytest.approx(
            (location.chip * layout.cell, location.bank * layout.cell)
        )
    text = all_text(figure)
    assert ("colours repeat" in text) == (where.groups > len(drawing.COLOURS))
    assert {"lane (chip)", "bank", "0", "7"} <= set(text.splitlines())
    assert "axis x: PEs 0" in text
    for stage in pidcomm.explain.plan.stages(plan):
        assert " ".join(stage[0].split()) in " ".join(text.split())


def test_explain_prints_or_draws(tmp_path: Path) -> None:
    arguments = [
        "plan",
        "--draw",
        "alltoall",
        "--shape",
        "4x8x2",
        "--mask",
        "010",
        "--bytes",
        "8KiB",
        "--technique",
        "pr",
    ]
    printed = CliRunner().invoke(app, arguments)
    assert printed.exit_code == 0
    assert "1. PEs, before the host's work" in printed.output
    pictured = ["draw", *(word for word in arguments[1:] if word != "--draw")]
    for name in ("x.svg", "x.png"):
        result = CliRunner().invoke(app, [*pictured, "--out", str(tmp_path / name)])
        assert (result.exit_code, result.output) == (0, f"wrote {tmp_path / name}\n")
        assert (tmp_path / name).stat().st_size > 1000


def test_a_name_of_a_file_that_is_not_text_is_printed_with_escapes(tmp_path: Path) -> None:
    command = [
        *PIDCOMM,
        "draw",
        "alltoall",
        "--shape",
        "8x8",
        "--bytes",
        "8KiB",
        "--out",
        "\udcff.svg",
    ]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    result = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "wrote \\udcff.svg\n", "")
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff.svg"]
