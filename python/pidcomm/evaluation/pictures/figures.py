"""Which figure rows become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pidcomm.errors import ArgumentError, unknown
from pidcomm.evaluation.pictures.metrics import METRICS
from pidcomm.evaluation.pictures.rows import JsonRow, kind_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("bars", "sweep", "ablation")


def draw(rows: Sequence[JsonRow], kind: str | None = None, metric: str = "bus") -> Figure:
    """Return the figure of rows; kind: one of KINDS, by default the one that they are for. metric: one of METRICS.

    Raises ArgumentError for unknown names, for rows of wrong results, and for rows that the figure cannot be made of.
    """
    from pidcomm.evaluation.pictures import bars, phases, sweeps

    if kind is not None and kind not in KINDS:
        raise ArgumentError(unknown("kind", kind, KINDS))
    if metric not in METRICS:
        raise ArgumentError(unknown("metric", metric, METRICS))
    for row in rows:
        if row["wrong"]:
            raise ArgumentError(
                f"the row of {row['collective']} with {row['technique']} has {row['wrong']} wrong elements, "
                "so its times are no result"
            )
    natural = kind_of(rows)
    kind = kind or natural
    if (kind == "ablation") != (natural == "ablation"):
        raise ArgumentError(f"these rows cannot be drawn as {kind}: they are for {natural}")
    if kind == "ablation":
        return phases.draw(rows)
    if kind == "sweep":
        return sweeps.draw(rows, metric)
    return bars.draw(rows, metric)
