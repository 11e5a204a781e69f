"""Numbers that the PID-Comm paper states about its experiments. They are not measurements of this
project.

The published value of broadcast is inferred, because the paper does not state it.
"""

from __future__ import annotations

from typing import NamedTuple

SOURCE = "published"
PAPER = "PID-Comm (ISCA 2024)"


class Published(NamedTuple):
    """A number of the paper.

    key: the key of a statistic in `pidcomm_studies.papers.pidcomm.experiments`; source: where the
    paper states it.
    """

    key: str
    figure: str
    what: str
    value: float
    unit: str
    source: str


def _points(figure: str, section: str, *points: tuple[str, str, float, str]) -> list[Published]:
    """Return the points of a figure, each given as (name, what, value, unit)."""
    source = f"{PAPER}, section {section}, figure {figure.removeprefix('fig')}"
    return [
        Published(f"{figure}.{name}", figure, what, value, unit, source)
        for name, what, value, unit in points
    ]


_POINTS = [
    *_points(
        "fig14",
        "VIII-B",
        ("alltoall", "alltoall: pr+im+cm over baseline", 5.19, "x"),
        ("reduce_scatter", "reduce_scatter: pr+im+cm over baseline", 4.46, "x"),
        ("allreduce", "allreduce: pr+im+cm over baseline", 4.23, "x"),
        ("broadcast", "broadcast: pr+im+cm over baseline (inferred)", 1.0, "x"),
        (
            "geomean",
            "all collectives (the exception is broadcast): pr+im+cm over baseline",
            2.83,
            "x",
        ),
    ),
    *_points(
        "fig16",
        "VIII-D",
        ("pr", "pr over baseline", 1.48, "x"),
        ("im", "pr+im over pr", 2.03, "x"),
        ("cm", "pr+im+cm over pr+im (alltoall, allgather)", 1.42, "x"),
    ),
    *_points(
        "fig17",
        "VIII-D",
        ("im", "no host memory access: pr+im over baseline", 2.9, "x"),
        ("reorder", "share of PE reordering in a call", 4.5, "%"),
    ),
    *_points("fig18", "VIII-E", ("largest", "largest size: pr+im+cm over baseline", 2.89, "x")),
    *_points(
        "fig19",
        "VIII-E",
        ("64", "64 PEs: pr+im+cm over baseline", 2.36, "x"),
        ("1024", "1024 PEs: pr+im+cm over baseline", 4.20, "x"),
    ),
    *_points(
        "fig20",
        "VIII-E",
        ("alltoall", "alltoall: best throughput of pr+im+cm", 20.6, "GB/s"),
        ("allreduce", "allreduce: best throughput of pr+im+cm", 12.2, "GB/s"),
        ("reduce_scatter", "reduce_scatter: best throughput of pr+im+cm", 17.8, "GB/s"),
        ("allgather", "allgather: best throughput of pr+im+cm", 36.1, "GB/s"),
    ),
    *_points(
        "fig23a",
        "VIII-H",
        ("ring", "ring: time over pr+im+cm, at most", 2.05, "x"),
        ("tree", "tree: time over pr+im+cm, at most", 7.89, "x"),
    ),
]
PUBLISHED = {point.key: point for point in _POINTS}
"""The points by key.

Speed-ups over several cases are geometric means. PID-Comm in the paper is pr+im+cm here.
"""
