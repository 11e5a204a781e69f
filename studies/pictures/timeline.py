"""A picture of a run on the simulated machine of parcels: threads, parcels and queues by time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pidcomm import ArgumentError
from pidcomm_studies.pictures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

MAX_NODES, MAX_PARCELS = 16, 400
_NODE_INCHES, _HEAD_INCHES = 1.5, 1.4


def draw(events: Iterable[Mapping[str, Any]], title: str) -> Picture:
    """Return a picture with a band per node.

    A bar is a thread of the node while it does not wait; its colour is the call of MPI that it
    belongs to. An arrow is a parcel, from the moment when it leaves to its arrival. Lines below the
    bars show the lengths of the queues.
    events: as in `pidcomm_studies.parcels.run.Run`. Raises ArgumentError for more than 16 nodes or
    400 parcels.
    """
    event_list = list(events)
    nodes = 1 + max((event["node"] for event in event_list), default=0)
    parcels = [event for event in event_list if event["event"] == "parcel"]
    if nodes > MAX_NODES or len(parcels) > MAX_PARCELS:
        raise ArgumentError(
            f"the picture would show {nodes} nodes and {len(parcels)} parcels; "
            f"it can show {MAX_NODES} nodes and {MAX_PARCELS} parcels"
        )
    active = [
        event for event in event_list if event["event"] == "active" and event["to"] > event["from"]
    ]
    calls = list(dict.fromkeys(event["routine"] for event in active))
    colours = dict(zip(calls, _colours(len(calls)), strict=True))
    lanes = _lanes(active)
    with style.settings():
        picture, body = style.new_figure(
            8.0,
            _HEAD_INCHES + _NODE_INCHES * nodes,
            title,
            ["bars: threads that do not wait; arrows: parcels; lines: lengths of the queues"],
            ["source: modelled; cycles of the simulated machine"],
        )
        axes = body.subplots()
        for event, lane in zip(active, lanes, strict=True):
            axes.broken_barh(
                [(event["from"], event["to"] - event["from"])],
                (event["node"] + 0.42 + 0.09 * min(lane, 5), 0.075),
                facecolors=colours[event["routine"]],
                edgecolor=style.INK,
                linewidth=0.2,
                gid=f"thread {event['thread']} {event['routine']}",
            )
        for parcel in parcels:
            axes.annotate(
                "",
                (parcel["to"], parcel["target"] + 0.42),
                (parcel["from"], parcel["node"] + 0.42),
                arrowprops={"arrowstyle": "->", "linewidth": 0.6, "color": style.INK},
            )
        last = max((event["to"] for event in active), default=1)
        for number, (queue, dash) in enumerate((("posted", "-"), ("unexpected", ":"))):
            for node in range(nodes):
                steps = [
                    (0, 0),
                    *(
                        (event["at"], event[queue])
                        for event in event_list
                        if event["event"] == "queues" and event["node"] == node
                    ),
                ]
                highest = max(1, *(length for _, length in steps)) if len(steps) > 1 else 1
                axes.step(
                    [*(at for at, _ in steps), last],
                    [node + 0.35 - 0.28 * length / highest for _, length in [*steps, steps[-1]]],
                    where="post",
                    color=style.PARTS[3 - number],
                    linestyle=dash,
                    linewidth=1.0,
                    label=f"{queue} queue" if node == 0 else None,
                )
                if len(steps) > 1:
                    axes.text(
                        1.01,
                        node + 0.12 + 0.16 * number,
                        f"{queue}: at most {highest}",
                        transform=axes.get_yaxis_transform(),
                        fontsize=style.SMALL_POINTS,
                    )
        for call, colour in colours.items():
            axes.barh(0, 0, color=colour, label=call)
        axes.set_yticks(
            [node + 0.5 for node in range(nodes)], [f"node {node}" for node in range(nodes)]
        )
        axes.set_ylim(nodes, 0)
        axes.set_xlabel("cycles")
        body.legend(loc="outside lower center", frameon=False, ncols=5)
        style.clean(axes)
    return picture


def _colours(number: int) -> list[Any]:
    import matplotlib

    return [matplotlib.colormaps["cividis"](i / max(1, number - 1)) for i in range(number)]


def _lanes(active: list[Any]) -> list[int]:
    """Return a lane for each bar, so that the bars of a node that overlap have different lanes."""
    order = sorted(range(len(active)), key=lambda i: (active[i]["node"], active[i]["from"]))
    lanes = [0] * len(active)
    ends: dict[tuple[int, int], int] = {}
    for i in order:
        event = active[i]
        lane = 0
        while ends.get((event["node"], lane), 0) > event["from"]:
            lane += 1
        ends[event["node"], lane] = event["to"]
        lanes[i] = lane
    return lanes
