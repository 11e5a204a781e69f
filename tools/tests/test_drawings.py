"""The drawings of the documents: made by scripts beside them, committed, readable."""

from __future__ import annotations

import importlib.util
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

DOCS = Path(__file__).parents[2] / "pidcomm" / "docs"
COMMITTED = DOCS / "drawings"


def load_script() -> Any:
    """Return docs/drawings.py as a module."""
    spec = importlib.util.spec_from_file_location("drawings", DOCS / "drawings.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = load_script()


def test_the_committed_drawings_are_up_to_date(tmp_path: Path) -> None:
    SCRIPT.main(tmp_path)
    assert {file.stem for file in COMMITTED.iterdir()} == set(SCRIPT.COMMITTED)
    creator = f"Matplotlib v{matplotlib.__version__}, "
    for file in COMMITTED.iterdir():
        text = file.read_text()
        if creator in text:  # another version may place a label elsewhere
            assert (tmp_path / file.name).read_text() == text, (
                f"{file.name} is out of date: run the script"
            )


@pytest.mark.parametrize("name", SCRIPT.DRAWINGS)
def test_labels_do_not_overlap_and_lie_inside_their_boxes(name: str) -> None:
    with SCRIPT.style():
        drawing = SCRIPT.DRAWINGS[name]()
        canvas: Any = FigureCanvasAgg(drawing.figure)
        renderer = canvas.get_renderer()
        texts = [text for axes in drawing.figure.axes for text in axes.texts]
        extents = {text: text.get_window_extent(renderer) for text in texts}
    boxes = {text: box.get_window_extent(renderer) for text, box in drawing.boxed}
    assert len(texts) > len(boxes) > 0
    for (one, a), (other, b) in combinations(extents.items(), 2):
        assert not a.overlaps(b), f"{one.get_text()!r} overlaps {other.get_text()!r}"
    page = drawing.figure.bbox
    for text, extent in extents.items():
        inside = boxes.get(text, page)
        assert inside.x0 <= extent.x0 <= extent.x1 <= inside.x1, (
            f"{text.get_text()!r} is wider than its box"
        )
        assert inside.y0 <= extent.y0 <= extent.y1 <= inside.y1, (
            f"{text.get_text()!r} is higher than its box"
        )
        for owner, box in boxes.items():
            assert text is owner or not extent.overlaps(box), (
                f"{text.get_text()!r} is written over a box"
            )
