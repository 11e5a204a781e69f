"""One line for every public object, and tables in notebooks."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_pictures import REFERENCE

import pidcomm
from pidcomm.bench.timing import Row
from pidcomm.model import load_machine, predict, predict_hosts
from pidcomm.notebook import CELL, GROUP_0, LIGHT
from pidcomm.sizes import format_gain
from pidcomm_studies.apps.report import Row as ApplicationRow
from pidcomm_studies.models import advise
from pidcomm_studies.models.scaling import STUDIES, model_points
from pidcomm_studies.pictures.rows import read_rows

APPLICATIONS = Path(__file__).parents[1] / "bench" / "apps"


def bench_row() -> Row:
    """A row that is kept with the project."""
    row, *_ = read_rows([REFERENCE / "collectives.jsonl"])
    quartiles = dict.fromkeys(("t_p25_us", "t_p75_us"), row["t_p50_us"])  # not in older rows
    fields = {**quartiles, **row}
    return Row(**{name: fields[name] for name in Row.__dataclass_fields__})


def application_row() -> ApplicationRow:
    """A run that is kept with the project."""
    row = json.loads((APPLICATIONS / "bfs.jsonl").read_text().splitlines()[0])
    quartiles = {  # not in older rows
        f"{part}_{quartile}_us": row[f"{part}_us"]
        for part in ("collectives", "total")
        for quartile in ("p25", "p75")
    }
    streams = dict.fromkeys(
        ("stream_groups", "steps_us", "stream_us", "stream_speed_up")
    )  # nor these
    fields = {**quartiles, **streams, **row}
    return ApplicationRow(**{name: fields[name] for name in ApplicationRow.__dataclass_fields__})


def test_sets_hypercubes_and_requests_say_what_they_are() -> None:
    with pidcomm.allocate(pes=64) as pes:
        cube = pes.hypercube(8, 8)
        assert repr(pes) == "<PeSet of 64 PEs in 1 rank>"
        assert repr(cube) == "<Hypercube 8x8 of 64 PEs>"
        assert repr(pes.hypercube(row=8, column=8)) == "<Hypercube row=8 column=8 of 64 PEs>"
        assert repr(cube.arrays) == "<ArrayCollectives on Hypercube 8x8 of 64 PEs>"
        trace = cube.write(np.ones((64, 64), np.int32), technique="tile")
        assert repr(trace).startswith("<Trace tile, ")
        assert repr(trace).endswith("32 KiB over the memory bus>")
        request = cube.alltoall("10", bytes=64, dst=64, wait=False)
        assert repr(request) == "<Request alltoall, not waited for>"
        request.wait()
    assert repr(cube) == "<Hypercube 8x8 of 64 PEs, freed>"
    assert repr(pidcomm.TECHNIQUES["pr"]) == "<Technique pr>"
    assert repr(pidcomm.COLLECTIVES["gather"]) == "<Collective gather>"


def test_a_plan_prints_as_a_line_and_is_a_dict() -> None:
    plan = pidcomm.plan(
        "alltoall", (32, 32), "10", bytes=1 << 20, dst=1 << 20, dtype="int32", technique="tile"
    )
    assert (
        repr(plan)
        == "<Plan alltoall of int32, tile, 32x32 mask 10, 1 MiB per PE: 1 GiB read and 1 GiB"
        " written in MRAM>"
    )
    assert plan["groups"] == dict(plan)["groups"] == 32


def test_predictions_say_that_they_are_modelled() -> None:
    where: Any = ((32, 32), "10")
    how: Any = {"bytes": 1 << 20, "machine": "isca24"}
    shown_time = r"<Prediction isca24, tile: \S+ ms \(\S+ to \S+ ms\) modelled, \d+% \w+>"
    assert re.fullmatch(shown_time, repr(predict("allreduce", *where, **how)))
    assert repr(predict_hosts("allreduce", 4, *where, **how)).startswith(
        "<HostsPrediction isca24, 4 hosts, tile: "
    )
    advice, *_ = advise("allreduce", pes=1024, **how)
    assert repr(advice).startswith("<Advice ")
    assert repr(advice).endswith("modelled on isca24>")
    assert repr(load_machine("isca24")).startswith("<Machine isca24, 1024 PEs: testbed of ")


def shown() -> list[object]:
    """Objects that notebooks show as tables."""
    where = ((32, 32), "10")
    study = STUDIES["hosts"]
    points, _ = model_points(study, ["alltoall"], load_machine("isca24"), [2], None)
    plan = pidcomm.plan("alltoall", *where, dst=1 << 20, bytes=1 << 20)
    return [
        plan,
        predict("alltoall", *where, bytes=1 << 20),
        predict_hosts("alltoall", 2, *where, bytes=1 << 20),
        *points,
        advise("alltoall", pes=64, bytes=1 << 20)[0],
        bench_row(),
        application_row(),
    ]


@pytest.mark.parametrize("result", shown(), ids=lambda result: type(result).__name__)
def test_reprs_are_one_short_line_and_notebooks_get_a_table(result: object) -> None:
    assert len(repr(result)) < 130
    assert "\n" not in repr(result)
    html = result._repr_html_()  # type: ignore[attr-defined]
    assert html.startswith(f"<table><caption>{type(result).__name__} ")
    assert html.count("<tr>") == html.count("</tr>") >= 3


def luminance(colour: str) -> float:
    """Return the grey of a colour such as #08306b, from 0 to 1."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def squares(picture: str) -> dict[tuple[int, int], str]:
    """Return the colour of each square of a picture, by column and row."""
    return {
        (int(x) // CELL, int(y) // CELL): fill
        for fill, path in re.findall(r'fill="(\S+)" d="([^"]+)"', picture)
        for x, y in re.findall(r"M(\d+) (\d+)h8v8h-8z", path)
    }


@pytest.mark.parametrize("shape", [(16,), (8, 8), (4, 2, 2), (3, 4, 5), (80, 32), (2,) * 7])
def test_notebooks_get_a_picture_of_the_groups_of_each_axis(shape: tuple[int, ...]) -> None:
    with pidcomm.allocate(pes=math.prod(shape)) as pes:
        cube = pes.hypercube(*shape)
        html = cube._repr_html_()
        assert html.startswith("<table><caption>Hypercube ")
        assert len(html) < 30000
        pictures = re.findall(r'<svg role="img" aria-label="(.*?)" .*?>(.*?)</svg>', html)
        assert len(pictures) == min(len(shape), 3)
        for words, picture in pictures:
            mask = re.match(r"mask ([01]+): (\d+) groups of (\d+) PEs", words)
            assert mask is not None
            assert cube.groups(mask[1]) == (int(mask[2]), int(mask[3]))
            drawn = squares(picture)
            left_out = re.search(r"; (\d+) PEs are not drawn", words)
            assert len(drawn) + int(left_out[1] if left_out else 0) == cube.pes
            group = {(x, y): cube.group_of(x + shape[0] * y, mask[1]) for x, y in drawn}
            for (x, y), colour in drawn.items():
                assert (colour == GROUP_0) == (group[x, y] == 0)
                for beside in ((x + 1, y), (x, y + 1) if len(shape) == 2 else (x + 1, y)):
                    if beside in drawn and group[beside] != group[x, y]:
                        assert colour != drawn[beside]
                    elif beside in drawn:
                        assert colour == drawn[beside]
        assert pes._repr_html_().startswith(f"<table><caption>PeSet of {pes.pes} PEs in ")
        assert f"PEs that hypercubes can use: {pes.usable_pes}" in pes._repr_html_()
    for freed in (pes, cube):
        assert ", freed</caption>" in freed._repr_html_()


def test_the_colours_of_groups_differ_in_grey() -> None:
    greys = sorted(map(luminance, (GROUP_0, *LIGHT)))
    assert all(lighter - darker > 0.1 for darker, lighter in itertools.pairwise(greys))


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (4.4512, "4.45x"),
        (1.0, "1.00x"),
        (0.996, "1.00x"),
        (0.94, "0.94x"),
        (0.0312, "0.031x"),
    ],
)
def test_gains_are_factors(gain: float, words: str) -> None:
    assert format_gain(gain) == words
