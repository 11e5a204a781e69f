"""Draw rows of a benchmark as the kind of figure that fits the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pidcomm import ArgumentError
from pidcomm.errors import unknown
from pidcomm_studies.pictures.metrics import METRICS
from pidcomm_studies.pictures.rows import JsonRow, kind_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("bars", "sweep", "ablation")


def draw(rows: Sequence[JsonRow], kind: str | None = None, metric: str | None = None) -> Figure:
    """Return a figure that shows rows.

    kind: one of KINDS (default: the kind that fits the rows). metric: one of METRICS. The default
    metric of sweeps is bus; the default metric of bars is speed-up if every row has a speed-up, or
    else time. Raises ArgumentError for unknown names, rows with wrong elements and rows that do not
    fit the kind.
    """
    from pidcomm_studies.pictures import bars, phases, sweeps

    if kind is not None and kind not in KINDS:
        raise ArgumentError(unknown("kind", kind, KINDS))
    if metric not in (None, *METRICS):
        raise ArgumentError(unknown("metric", metric, METRICS))
    for row in rows:
        if row["wrong"]:
            raise ArgumentError(
                f"the row of {row['collective']} with {row['technique']} has {row['wrong']} wrong"
                " elements, therefore its times are not valid"
            )
    if metric == "speed-up" and not (
        rows := [row for row in rows if row.get("speed_up") is not None]
    ):
        raise ArgumentError(
            "the rows have no speed-ups: run pidcomm bench with the technique conventional, too"
        )
    natural = kind_of(rows)
    kind = kind or natural
    if (kind == "ablation") != (natural == "ablation"):
        raise ArgumentError(f"these rows cannot be drawn as {kind}: they are for {natural}")
    if kind == "ablation":
        return phases.draw(rows)
    if kind == "sweep":
        return sweeps.draw(rows, metric or "bus")
    return bars.draw(
        rows, metric or ("time" if any(row["speed_up"] is None for row in rows) else "speed-up")
    )
