"""Figures and pictures.

One file, because most tests look at figures that one fixture draws for all of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from typer.testing import CliRunner

import pidcomm
from pidcomm.bench.ablation import STEPS
from pidcomm.cli import app
from pidcomm.explain import places
from pidcomm.sizes import format_gain, format_size, parse_shape
from pidcomm.tables import CollectiveName, TechniqueName, techniques_for
from pidcomm_studies.papers import figure as papers
from pidcomm_studies.papers import figures as figures_of_papers
from pidcomm_studies.pictures import drawing, figures, phases, style
from pidcomm_studies.pictures import points as of_papers
from pidcomm_studies.pictures.rows import JsonRow, kind_of, pes_of, read_rows

BENCH = Path(__file__).parents[2] / "pidcomm" / "bench"
REFERENCE = BENCH / "reference"
# Those of the rows in `cases` that a picture can show.
OF_CASES: dict[str, Callable[[JsonRow], bool]] = {
    "pes": lambda row: row["mask"] == "10" and row["bytes_per_pe"] == 960 << 10,
    "shapes": lambda row: row["shape"] != "80x32",
}
REFERENCE_ROWS = sorted([*(path.stem for path in REFERENCE.glob("*.jsonl")), *OF_CASES])
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# collective, shape, mask, bytes, technique: one PE row, one rank, a general shape, many ranks, the
# whole machine.
EXPLAINED = (
    ("alltoall", "2x4", "10", 64, "tile"),
    ("alltoall", "4x8x2", "010", 8192, "tile"),
    ("alltoall", "4x8x2", "010", 8192, "pr"),
    ("allreduce", "16x16", "10", 8192, "pr+im"),
    ("alltoall", "32x32", "10", 1 << 20, "tile"),
    ("allreduce", "5x7x8", "010", 7168, "tile"),
    ("gather", "32x32", "01", 1 << 20, "conventional"),
    ("allreduce", "32x80", "01", 1 << 20, "tile"),
    ("broadcast", "7", "0", 64, "tile"),
)


def reference(name: str) -> list[JsonRow]:
    """Return reference rows of the project."""
    if name not in OF_CASES:
        return read_rows([REFERENCE / f"{name}.jsonl"])
    return [row for row in read_rows([BENCH / "cases" / f"{name}.jsonl"]) if OF_CASES[name](row)]


@cache
def drawn(name: str, metric: str | None = None) -> Figure:
    """Return the figure of reference rows, for tests that do not change it."""
    return figures.draw(reference(name), metric=metric)


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small rows of this version: every technique, sweeps over both quantities, an ablation."""
    folder = tmp_path_factory.mktemp("rows")
    runs = {
        "bars": "all --shape 8x8 --bytes 16KiB --technique all",
        "bytes": "alltoall reduce --shape 8x8 --sweep bytes=8KiB..32KiB",
        "pes": "allgather --bytes 8KiB --sweep pes=64..256 --technique tile",
        "both": "alltoall --sweep bytes=8KiB..64KiB --sweep pes=64,128 --technique tile",
        "ablation": "--ablation --shape 8x8 --bytes 16KiB",
        "no_limit": "gather broadcast --shape 8x8 --bytes 8KiB --no-limit",
    }
    paths = {}
    for name, arguments in runs.items():
        paths[name] = folder / f"{name}.jsonl"
        options = ["--iters", "1", "--warmup", "0", "--json", str(paths[name])]
        result = CliRunner().invoke(app, ["bench", *arguments.split(), *options])
        assert result.exit_code == 0, result.output
    return paths


def explained(
    collective: CollectiveName, shape: str, mask: str, size_bytes: int, technique: TechniqueName
) -> tuple[places.Places, Any]:
    """Return the places of a collective, and its plan."""
    lengths = parse_shape(shape)
    plan = pidcomm.plan(
        collective,
        lengths,
        mask,
        bytes=size_bytes,
        dst=size_bytes,
        dtype="int32",
        technique=technique,
        scratch=2 * size_bytes,
    )
    return places.locate(lengths, mask), plan


def bars_of(axes: Axes) -> list[Rectangle]:
    """Return the bars, without the legend's."""
    return [patch for container in axes.containers for patch in container.patches]  # type: ignore[attr-defined]


def limits_of(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if line.get_gid() == style.LIMIT_GID]


def points_of(line: Line2D) -> tuple[list[float], list[float]]:
    return np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist()


def plots_of(figure: Figure) -> list[Axes]:
    """Return all axes, including the axes in parts of the figure."""
    return figure.findobj(Axes)


def legend_texts(figure: Figure) -> list[str]:
    return [
        text.get_text()
        for part in figure.subfigs
        for legend in part.legends
        for text in legend.get_texts()
    ]


def all_text(figure: Figure) -> str:
    """Return the whole text of the figure."""
    return "\n".join(text.get_text() for text in figure.findobj(Text))


# ---- laziness


def test_only_figures_load_matplotlib_and_nothing_loads_pyplot(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
import pidcomm, pidcomm.cli
from typer.testing import CliRunner
plan = ["plan", "alltoall"]
for arguments in (["info"], plan, [*plan, "--draw"], ["plot", "--help"]):
    assert CliRunner().invoke(pidcomm.cli.app, arguments).exit_code == 0
assert "matplotlib" not in sys.modules
from pidcomm_studies.pictures import figures, rows, style
read = rows.read_rows([Path({str(REFERENCE / "collectives.jsonl")!r})])
style.save(figures.draw(read), Path("x.png"))
assert "matplotlib" in sys.modules and "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, timeout=600)


def test_drawing_leaves_the_settings_of_matplotlib_alone() -> None:
    before = dict(rcParams)
    figures.draw(reference("ablation"))
    assert dict(rcParams) == before


# ---- bars


@pytest.mark.parametrize(
    ("metric", "key", "unit"),
    [
        (None, "speed_up", "speed-up"),
        ("time", "t_p50_ms", "(ms)"),
        ("bus", "bus_gb_s", "GB/s"),
        ("algbw", "algbw_gb_s", "GB/s"),
    ],
)
def test_bars_and_limits_have_the_heights_of_their_rows(
    metric: str | None, key: str, unit: str
) -> None:
    rows = [
        {
            **row,
            "t_p50_ms": row["t_p50_us"] / 1e3,
            "speed_up": row["speed_up"] + at / 1e9,
        }  # no two bars are equal
        for at, row in enumerate(reference("collectives"))
    ]
    (axes,) = plots_of(figures.draw(rows, metric=metric))
    assert unit in axes.get_ylabel()
    assert sorted(bar.get_height() for bar in bars_of(axes)) == sorted(row[key] for row in rows)
    ticks = {
        label.get_text(): x
        for x, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    }
    assert list(ticks) == list(pidcomm.COLLECTIVES)
    for row in rows:  # each bar stands at its collective, in its technique's colour
        colour = to_rgb(style.look_of(row["technique"]).colour)
        (bar,) = [candidate for candidate in bars_of(axes) if candidate.get_height() == row[key]]
        assert abs(bar.get_x() + bar.get_width() / 2 - ticks[row["collective"]]) < 0.5
        assert bar.get_facecolor()[:3] == pytest.approx(colour)
        (limit,) = [
            line for line in limits_of(axes) if points_of(line)[0][0] == pytest.approx(bar.get_x())
        ]
        factor = row["limit_pct"] / 100
        assert points_of(limit)[1][0] == pytest.approx(
            row[key] * factor if metric == "time" else row[key] / factor
        )


def test_bars_without_speed_ups_show_time() -> None:
    rows = reference("isas")
    assert {row["speed_up"] for row in rows} == {None}
    assert plots_of(drawn("isas"))[0].get_ylabel() == "time of a call (ms)"
    with pytest.raises(pidcomm.Error, match="have no speed-ups"):
        figures.draw(rows, metric="speed-up")


WITH_SPEED_UPS = ["collectives", "shapes"]


@pytest.mark.parametrize("name", WITH_SPEED_UPS)
@pytest.mark.parametrize("metric", ["bus", "speed-up", "time"])
def test_speed_ups_are_on_their_bars_and_cover_no_limit(name: str, metric: str) -> None:
    rows = reference(name)
    figure = drawn(name, metric)
    assert_legible(figure)
    gains = []
    for axes in plots_of(figure):
        boxes = [text.get_window_extent() for text in axes.texts]
        bars = [bar.get_window_extent() for bar in bars_of(axes)]
        gains += [text.get_text() for text in axes.texts]
        for limit in limits_of(axes):
            (left, right), (height, _) = axes.transData.transform(limit.get_xydata()).T
            middle = (left + right) / 2
            assert not any(box.x0 < middle < box.x1 and box.y0 < height < box.y1 for box in boxes)
        for box in boxes:
            (bar,) = [bar for bar in bars if bar.x0 < (box.x0 + box.x1) / 2 < bar.x1]
            assert box.y0 >= bar.y0
            assert box.y1 <= axes.bbox.y1 + 1
    speed_ups = [row["speed_up"] for row in rows if row["technique"] != "conventional"]
    assert sorted(gains) == sorted(map(format_gain, speed_ups))


def test_rows_of_different_conditions_have_different_panels() -> None:
    rows = reference("masks")
    panels = plots_of(drawn("masks", "bus"))
    conditions = {f"{row['shape']}, mask {row['mask']}" for row in rows}
    assert {panel.get_title() for panel in panels} == conditions
    for panel in panels:
        of_panel = [
            row for row in rows if f"{row['shape']}, mask {row['mask']}" == panel.get_title()
        ]
        assert sorted(bar.get_height() for bar in bars_of(panel)) == sorted(
            row["bus_gb_s"] for row in of_panel
        )


def test_rows_without_limits_and_of_all_techniques_are_drawn(fresh: dict[str, Path]) -> None:
    (axes,) = plots_of(figures.draw(read_rows([fresh["no_limit"]])))
    assert (len(bars_of(axes)), limits_of(axes)) == (4, [])
    rows = read_rows([fresh["bars"]])
    figure = figures.draw(rows)
    assert len(bars_of(plots_of(figure)[0])) == len(rows)
    assert {(row["collective"], row["technique"]) for row in rows} == {
        (name, technique) for name in pidcomm.COLLECTIVES for technique in techniques_for(name)
    }
    assert "source: measured, mixed" in all_text(figure)


# ---- sweeps


@pytest.mark.parametrize(
    ("name", "x_of"), [("sizes", lambda row: row["bytes_per_pe"]), ("pes", pes_of)]
)
def test_sweeps_have_a_panel_per_collective_on_logarithmic_axes(
    name: str, x_of: Callable[[JsonRow], int]
) -> None:
    rows = reference(name)
    assert kind_of(rows) == "sweep"
    panels = plots_of(drawn(name))
    assert [panel.get_title() for panel in panels] == list(pidcomm.COLLECTIVES)
    assert {panel.get_xlabel() for panel in panels} <= {"", "bytes per PE", "number of PEs"}
    assert any(panel.get_xlabel() for panel in panels)
    assert any("GB/s" in panel.get_ylabel() for panel in panels)
    for panel in panels:
        assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
        of_panel = sorted((row for row in rows if row["collective"] == panel.get_title()), key=x_of)
        (line,) = [line for line in panel.lines if line.get_gid() == "tile"]
        assert points_of(line)[0] == [x_of(row) for row in of_panel]
        assert points_of(line)[1] == [row["bus_gb_s"] for row in of_panel]
        (limit,) = limits_of(panel)
        assert points_of(limit)[1] == [row["limit_gb_s"] for row in of_panel]
        low, high = panel.get_ylim()
        assert len([tick for tick in panel.get_yticks() if low <= tick <= high]) >= 3


def test_every_combination_in_a_sweep_has_its_own_line(fresh: dict[str, Path]) -> None:
    figure = figures.draw(read_rows([fresh["bytes"]]))
    assert legend_texts(figure)[:2] == ["conventional", "tile"]
    looks = [
        (line.get_color(), line.get_linestyle(), line.get_marker())
        for line in plots_of(figure)[0].lines
    ]
    assert len(set(looks)) == 3  # two techniques, one limit
    assert legend_texts(figures.draw(read_rows([fresh["both"]])))[:2] == ["tile, 8x8", "tile, 16x8"]
    for technique in style.TECHNIQUE_LOOKS:  # lines of one technique differ without colour
        lines = [style.line_of(technique, series) for series in range(8)]
        assert len(
            {(line["linestyle"], line["marker"], line["markerfacecolor"]) for line in lines}
        ) == len(lines)


# ---- ablation


def test_an_ablation_stacks_the_phases_of_every_technique() -> None:
    rows = reference("ablation")
    figure = drawn("ablation")
    panels = plots_of(figure)
    assert {panel.get_title() for panel in panels} == {row["collective"] for row in rows}
    for panel in panels:
        assert panel.get_xlabel() == "time (ms)"
        techniques = [label.get_text() for label in panel.get_yticklabels()]
        assert techniques[0] == "conventional"
        assert techniques[-1] == "tile"
        for row in (row for row in rows if row["collective"] == panel.get_title()):
            at = techniques.index(row["technique"])
            bars = [
                bar for bar in bars_of(panel) if round(bar.get_y() + bar.get_height() / 2) == at
            ]
            widths = {str(bar.get_gid()): [] for bar in bars}  # type: dict[str, list[float]]
            for bar in bars:
                widths[str(bar.get_gid())].append(1e3 * bar.get_width())
            parts = [row[name] for name in ("from_us", "work_us", "to_us", "outside_us")]
            # Medians of parts may exceed the median of the whole.
            rest = max(0, row["host_us"] - sum(parts))
            assert sorted(widths.get("measured", [])) == pytest.approx(
                sorted(height for height in [*parts, rest] if height)
            )
            assert sum(widths.get("modelled", [])) == pytest.approx(row["pe_us"])
            assert sum(widths.get("assumed", [])) == pytest.approx(
                row["launch_us"] + row["load_us"]
            )
            (limit,) = [
                line for line in limits_of(panel) if round(float(np.mean(points_of(line)[1]))) == at
            ]
            assert points_of(limit)[0][0] == pytest.approx(row["bus_us"] / 1e3)


def test_modelled_or_assumed_times_are_hatched_and_labelled() -> None:
    figure = drawn("ablation")
    marks = {"modelled": style.MODELLED_HATCH, "assumed": style.ASSUMED_HATCH}
    hatches = {
        (str(bar.get_gid()), bar.get_hatch())
        for panel in plots_of(figure)
        for bar in bars_of(panel)
    }
    for source, hatch in marks.items():
        assert {drawn_hatch for of, drawn_hatch in hatches if of == source} == {hatch}
        assert hatch not in {drawn_hatch for of, drawn_hatch in hatches if of != source}
        assert any(f"({source})" in text for text in legend_texts(figure))
    assert {phase.source for phase in phases.PHASES} == {"measured", *marks}


# ---- all figures


def _drawn_texts(figure: Figure) -> list[tuple[Text, Any]]:
    """Return every text that drawing the figure reaches, with its box in pixels."""
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    drawn: dict[int, Text] = {}

    def draw(text: Text, *_: Any) -> None:
        drawn[id(text)] = text

    with style.settings(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", draw)
        figure.draw_without_rendering()  # it paints no pixel, but lays the figure out
        texts = [text for text in drawn.values() if text.get_visible() and text.get_text()]
        return [(text, Text.get_window_extent(text, renderer)) for text in texts]


def _are_apart(one: Text, other: Text) -> bool:
    """Return whether two slanting texts are parallel and a line of text apart."""
    angle = float(one.get_rotation())
    if angle != other.get_rotation() or angle % 90 == 0:
        return False
    ends = [text.get_transform().transform(text.get_position()) for text in (one, other)]
    x, y = ends[1] - ends[0]
    figure = one.get_figure(root=True)
    assert figure is not None
    line = float(one.get_fontsize()) * figure.dpi / 72
    return bool(abs(x * np.sin(np.radians(angle)) - y * np.cos(np.radians(angle))) >= line)


def assert_legible(figure: Figure) -> None:
    """Check that no text touches another, leaves the figure or has marks of formulas, and that no
    bar is on a logarithmic axis.
    """
    for axes in plots_of(figure):  # a bar on such an axis would start at an arbitrary value
        assert axes.get_yscale() == "linear" or not bars_of(axes)
    texts = _drawn_texts(figure)
    assert len(texts) > 5
    assert [text.get_text() for text, _ in texts if "$" in text.get_text()] == []
    x0, y0, x1, y1 = np.array([box.extents for _, box in texts]).T
    overlap = (np.minimum.outer(x1, x1) - np.maximum.outer(x0, x0) > 0.5) & (
        np.minimum.outer(y1, y1) - np.maximum.outer(y0, y0) > 0.5
    )
    pairs = [
        (texts[a][0], texts[b][0]) for a, b in zip(*np.nonzero(np.triu(overlap, 1)), strict=True)
    ]
    assert [
        (one.get_text(), other.get_text()) for one, other in pairs if not _are_apart(one, other)
    ] == []
    assert min(x0.min(), y0.min()) >= 0
    assert x1.max() <= figure.bbox.width
    assert y1.max() <= figure.bbox.height


def test_the_overlap_check_can_fail() -> None:
    figure = figures.draw(reference("collectives"))
    figure.text(0.5, 0.02, "in the way of the small print")
    with pytest.raises(AssertionError):
        assert_legible(figure)


def reference_figures() -> Iterator[tuple[str, str | None]]:
    """Return the names and metrics of all reference figures, except figures of WITH_SPEED_UPS and
    other metrics than the default one that draw the same figure.
    """
    for name in REFERENCE_ROWS:
        rows = reference(name)
        are_bars = kind_of(rows) == "bars"
        is_timed = are_bars and any(row["speed_up"] is None for row in rows)
        if name not in WITH_SPEED_UPS:
            yield name, None
            yield from [(name, "time")] if kind_of(rows) != "ablation" and not is_timed else []
            yield from [(name, "bus")] if are_bars else []


@pytest.mark.parametrize(("name", "metric"), [*reference_figures()])
def test_no_text_of_reference_figures_overlaps(name: str, metric: str | None) -> None:
    assert_legible(drawn(name, metric))


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize(
    "xs", [(64, 128, 256), range(1000, 1040), ("row", "column", "a long category")]
)
@pytest.mark.parametrize("panels", [1, 4, 5])
def test_figures_of_papers_are_legible(
    xs: Sequence[float | str], panels: int, is_log: bool
) -> None:
    names = [f"panel {number}" for number in range(panels)]
    figure = papers.Figure(
        "paper/fig1",
        "A. Author, 2024",
        "a title",
        [
            papers.Panel(name, "a long description of the values " * 3, "x", is_log)
            for name in names
        ],
        lambda _: (),
    )
    points = [
        papers.Point(panel, series, x, 200.0 + 100 * number, source, "a machine")
        for panel in names
        for series, source in (
            ("kernel", "modelled"),
            ("kernel", "measured"),
            ("tile", "modelled"),
            ("a series with a long name " * 3, "published"),
        )
        for number, x in enumerate(xs)
    ]
    picture = of_papers.draw(figure, points)
    assert_legible(picture)
    plots = plots_of(picture)
    assert len(plots) == panels
    bars, marks = plots[0].patches, plots[0].get_lines()
    are_bars = not is_log and isinstance(xs[0], str)
    assert len(bars) == (3 * len(xs) if are_bars else 0)
    assert len({round(bar.get_window_extent().x0) for bar in bars}) == len(bars)  # side by side
    assert len(marks) == (1 if are_bars else 4)
    for mark in marks:  # no line connects categories or published values
        is_published = str(mark.get_gid()).startswith("published")
        has_line = isinstance(xs[0], int) and not is_published
        assert (mark.get_linestyle() not in ("", "None")) == has_line
        assert (mark.get_color() == style.LIMIT_INK) == is_published


@pytest.mark.parametrize("name", ["imex/allgather", "pidcomm/fig23b"])
def test_figures_of_papers_with_long_labels_are_legible(name: str) -> None:
    figure = figures_of_papers.get(name)
    assert_legible(of_papers.draw(figure, list(figure.model(papers.Request()))))


def test_no_text_of_fresh_figures_overlaps(fresh: dict[str, Path]) -> None:
    for path in fresh.values():
        assert_legible(figures.draw(read_rows([path])))
    rows = read_rows([fresh["bytes"]])
    assert_legible(figures.draw(rows, kind="bars"))
    rows = [
        {**row, "speed_up": 123.456} for row in read_rows([fresh["bars"]])
    ]  # the widest text, above every bar
    assert_legible(figures.draw(rows))
    names = ("collectives", "collectives_hardware")
    rows = [{**row, "speed_up": 123.456} for name in names for row in reference(name)]
    for metric in ("speed-up", "time", "bus"):
        assert_legible(figures.draw(rows, metric=metric))


@pytest.mark.parametrize("case", EXPLAINED)
def test_no_text_of_an_explanation_overlaps(case: tuple[Any, ...]) -> None:
    figure = drawing.draw(*explained(*case))
    assert_legible(figure)
    for axes in plots_of(figure):
        for patch in axes.patches:
            low, high = patch.get_window_extent().intervaly
            assert axes.bbox.y0 <= low
            assert high <= axes.bbox.y1


@pytest.mark.parametrize("name", ["collectives", "sizes", "pes", "ablation"])
def test_figures_show_their_conditions_source_and_version(name: str) -> None:
    rows = reference(name)
    text = all_text(drawn(name))
    row = rows[0]
    for wanted in (
        f"mask {row['mask']}",
        row["dtype"],
        f"ISA {row['isa']}",
        "policy none",
        "measured",
    ):
        assert wanted in text
    assert f"pidcomm {row['version']}" in text
    assert f"commit {row['commit']}" in text
    assert (f"{format_size(row['bytes_per_pe'])} per PE" in text) == (name != "sizes")
    assert ("32x32" in text) == (name != "pes")


def lightness(colour: str) -> float:
    """Return the lightness of a colour in a grey print."""
    return float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114)))


def test_techniques_differ_in_lightness() -> None:
    steps = [lightness(style.look_of(technique).colour) for technique in STEPS]
    assert all(before - after > 0.05 for before, after in pairwise(steps))
    looks = style.TECHNIQUE_LOOKS
    assert set(looks) >= set(pidcomm.TECHNIQUES)
    assert (
        len({look.colour for look in looks.values()})
        == len({look.marker for look in looks.values()})
        == len(looks)
    )
    assert not {look.colour for look in looks.values()} & set(style.PARTS)
    groups = [lightness(colour) for colour in drawing.COLOURS]
    assert all(abs(before - after) > 0.05 for before, after in pairwise(groups))


def test_series_differ_in_colour_and_also_in_grey() -> None:
    looks = [style.look_of_series(number) for number in range(16)]
    for one, other in combinations(looks, 2):
        assert (one.colour, one.hatch) != (other.colour, other.hatch)
        assert (one.colour, one.dash, one.marker) != (other.colour, other.dash, other.marker)
        if abs(lightness(one.colour) - lightness(other.colour)) < 0.05:
            assert one.hatch != other.hatch
            assert (one.dash, one.marker) != (other.dash, other.marker)
    colours = {look.colour for look in looks}
    assert not colours & {
        style.LIMIT_INK,
        *(look.colour for look in style.TECHNIQUE_LOOKS.values()),
    }


def test_a_line_has_its_techniques_colour() -> None:
    for panel in plots_of(drawn("sizes")):
        (line,) = [line for line in panel.lines if line.get_gid() == "tile"]
        assert line.get_color() == style.look_of("tile").colour


def test_both_formats_are_written_and_equal_figures_are_equal_files(tmp_path: Path) -> None:
    for name in ("a.png", "a.svg", "b.SVG"):
        style.save(figures.draw(reference("collectives")), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "a.svg").read_text()
    assert "</svg>" in svg
    assert ">speed-up over conventional</text>" in svg
    assert (tmp_path / "b.SVG").read_text() == svg
