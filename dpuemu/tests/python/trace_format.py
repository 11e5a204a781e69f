"""Checks of the files of `dpuemu trace`: Chrome's trace format, and the nesting of events."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from kernel_runner import Runner

PES, TURNS, CYCLES_PER_US = 8, 100, 350
NUMBERS = range(0, 64, 8)  # of the PEs of the host program: bank 0 of each chip
ALL = ("--pes", ",".join(map(str, NUMBERS)))
HOST, RANKS, FIRST_PE, ENGINE = 1, 90, 100, 25
Event = dict[str, Any]

# The fields of Chrome's trace format, by phase, from its public description.
FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "X": {"name": str, "cat": str, "ts": (int, float), "dur": (int, float), "tid": int},
    "i": {"name": str, "cat": str, "ts": (int, float), "s": str, "tid": int},
    "C": {"name": str, "cat": str, "ts": (int, float), "args": dict},
    "M": {"name": str, "args": dict},
}
METADATA = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}


def ns(us: float) -> int:
    """Return a time in whole ns."""
    return round(1000 * us)


def end_of(event: Event) -> int:
    """Return the end of a complete event."""
    return ns(event["ts"]) + ns(event["dur"])


def check_format(document: Any) -> list[Event]:
    """Return the events of a trace, after all checks of the format and of the nesting."""
    assert set(document) == {"displayTimeUnit", "traceEvents"}
    events: list[Event] = document["traceEvents"]
    tracks: dict[tuple[int, int], list[Event]] = defaultdict(list)
    named: Counter[tuple[str, int, int]] = Counter()
    for event in events:
        phase = event["ph"]
        for name, kind in FIELDS[phase].items():
            assert isinstance(event[name], kind), event
        assert isinstance(event["pid"], int)
        if phase == "M":
            assert METADATA[event["name"]] in event["args"]
            named[event["name"], event["pid"], event["tid"]] += 1
            continue
        assert event["ts"] >= 0, event
        if phase == "X":
            assert event["dur"] >= 0, event
            tracks[event["pid"], event["tid"]].append(event)
        if phase == "i":
            assert event["s"] in ("g", "p", "t")
        if phase == "C":
            assert all(0 <= value <= 100 for value in event["args"].values()), event
    assert set(named.values()) <= {1}
    for (pid, tid), track in tracks.items():
        assert named["process_name", pid, 0] == named["thread_name", pid, tid] == 1
        check_nesting(track)
    return events


def check_nesting(track: list[Event]) -> None:
    """Check that two events of a track either nest or do not overlap."""
    ends: list[int] = []
    for event in sorted(track, key=lambda event: (ns(event["ts"]), -ns(event["dur"]))):
        while ends and ends[-1] <= ns(event["ts"]):
            ends.pop()
        assert not ends or end_of(event) <= ends[-1], event
        ends.append(end_of(event))


def traced(runner: Runner, *words: str, options: tuple[str, ...] = (), code: int = 0) -> Any:
    """Run a host program with a trace; return its checked events, and the process."""
    process = runner.run(*words, code=code, tool=("trace", "--out", "trace.json", *options))
    document = json.loads((runner.folder / "trace.json").read_bytes())
    return check_format(document), process


def of(events: list[Event], pid: int, name: str | None = None, phase: str = "X") -> list[Event]:
    """Return the events of a process, or those of one name."""
    return [
        event
        for event in events
        if (event["pid"], event["ph"]) == (pid, phase) and name in (None, event["name"])
    ]


def rank_launches(events: list[Event]) -> list[Event]:
    """Return the launches on ranks."""
    return [event for event in of(events, RANKS) if event["name"].startswith("launch")]
