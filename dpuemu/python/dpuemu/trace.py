"""Merge the events that src/trace and other libraries write into one file of Chrome's trace format,
and plot them.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from dpuemu import trace_plot

DEFAULT_SAMPLE, DEFAULT_LIMIT_MB = 16, 100
RANKS_PID, FIRST_PE_PID, RANK_THREAD = 90, 100, 10_000_000  # as in src/trace/traces.h
HOST_PID, OTHER_THREADS = 1, 20_000_000
PIDS_PER_PROCESS = 4096  # more than there are PEs
_PID = re.compile(rb'"pid":(\d+)')
_HEAD = b'{"displayTimeUnit":"ns","traceEvents":[\n'
_TAIL = b"\n]}\n"
_BEFORE_PES = 1_000_000
_PHASES = ("X", "i", "C", "M")
_MOST = 2**53  # viewers read numbers as float64
_SURROGATES = re.compile("[\ud800-\udfff]")  # json.loads returns them, but they have no UTF-8


def variables(folder: Path, limit_bytes: int, sample: int, pes: Sequence[int]) -> dict[str, str]:
    """Write the settings to the folder; return the environment variables that turn traces on.

    sample: how many PEs the trace shows in detail, besides those in `pes`.
    """
    numbers = [time.monotonic_ns(), limit_bytes, sample, *pes]
    (folder / "settings").write_text(" ".join(map(str, numbers)))
    return {
        **{"DPUEMU_TRACE": str(folder), "TRACE_EVENTS_FOLDER": str(folder)},
        **{"DPUEMU_CHECK": "0", "DPUEMU_PROFILE": ""},
    }


@dataclass
class Summary:
    """The sums of all processes, which include events that the limit drops.

    Times are in us. Each is the length of the union of spans: `host_us` of the launches and
    `moved_us` of the transfers are measured; `modelled_us` is of launches, each as long as its
    slowest PE. A launch on two ranks is two launches. `pe_us` has the modelled time of each PE.
    """

    launches: int = 0
    transfers: int = 0
    dropped_events: int = 0
    host_us: float = 0
    modelled_us: float = 0
    moved_us: float = 0
    pe_us: list[float] = field(default_factory=list)
    shown_pes: set[int] = field(default_factory=set)
    other_events: int = 0
    file_bytes: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def lines(self, file: str) -> Iterator[str]:
        """Yield sentences about the contents of the file."""
        yield (
            f"{file}: {self.launches:,} launches of ranks on {len(self.pe_us):,} PEs,"
            f" {len(self.shown_pes):,} PEs in detail, {self.transfers:,} transfers,"
            f" {self.other_events:,} events of other libraries, {self.file_bytes / 1e6:,.1f} MB;"
            " open it in https://ui.perfetto.dev"
        )
        yield (
            f"transfers {self.moved_us:,.1f} us (measured), launches {self.modelled_us:,.1f} us"
            f" (modelled; their emulation {self.host_us:,.1f} us, measured); concurrent times count"
            " once"
        )

    def problems(self, limit_bytes: int) -> Iterator[str]:
        """Yield a sentence per reason for which the file lacks events."""
        if self.dropped_events:
            yield (
                f"at least {self.dropped_events:,} events are missing from the trace, which has a"
                f" limit of {limit_bytes / 1e6:,.0f} MB; see --limit, --sample and --pes"
            )
        for name, lines in self.refused.items():
            yield f"{lines:,} lines of {name} are not events of Chrome's trace format"


class Merger:
    """Writes the events of all processes to a file of at most `limit_bytes` bytes."""

    def __init__(self, folder: Path, file: BinaryIO, limit_bytes: int) -> None:
        """Begin the file."""
        self.summary = Summary()
        self.uses: list[list[tuple[float, float, float]]] = []  # of runs: see trace_plot
        self.spans: list[tuple[float, float]] = []  # modelled times of launches
        self._folder, self._file, self._limit = folder, file, limit_bytes - len(_TAIL)
        self._origin_us = int((folder / "settings").read_text().split()[0]) / 1e3
        self._threads: dict[tuple[str, int], int] = {}
        self._named: set[tuple[int, int]] = set()
        file.write(_HEAD)
        self._bytes, self._has_events = len(_HEAD), False

    def merge(self) -> None:
        """Write all events and end the file."""
        hosts = sorted(
            (int(number), file)
            for file in self._folder.glob("*.*.jsonl")
            if (number := file.name.split(".")[-2]).isdecimal()
        )
        processes = sorted({process for process, _ in hosts})
        bases = {process: PIDS_PER_PROCESS * index for index, process in enumerate(processes)}
        for process, base in bases.items():
            of = f" of process {process}" if len(bases) > 1 else ""
            self._name(HOST_PID + base, f"host{of} (measured time)")
            self._name(RANKS_PID + base, f"ranks{of} (modelled time)")
            self._add_totals(self._folder / f"{process}.totals")
            for event in self._events(self._folder / f"{process}.ranks"):
                self._add_rank(event, base)
        # dpuemu's files come first, so the others cannot take their part of the limit.
        for process, file in sorted(hosts, key=lambda host: not host[1].name.startswith("dpuemu.")):
            self._merge_host(file, process, bases[process])
        for process, base in bases.items():
            self._merge_pes(self._folder / f"{process}.pes", base)
        self._file.write(_TAIL)
        self.summary.file_bytes = self._bytes + len(_TAIL)

    def _name(self, pid: int, name: str) -> None:
        self._add({"ph": "M", "pid": pid, "tid": 0, "name": "process_name", "args": {"name": name}})
        order = {"sort_index": pid - _BEFORE_PES}
        self._add({"ph": "M", "pid": pid, "tid": 0, "name": "process_sort_index", "args": order})

    def _events(self, file: Path) -> Iterator[dict[str, Any]]:
        """Yield the events of a file; a line that a signal cut off is skipped."""
        if not file.exists():
            return
        with file.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                event = parsed_event(line)
                if event is not None:
                    yield event
                else:
                    self.summary.refused[file.name] = self.summary.refused.get(file.name, 0) + 1

    def _add_rank(self, event: dict[str, Any], base: int) -> None:
        if "pe_us" in event.get("args", {}):
            self.spans.append((event["ts"], event["ts"] + event["dur"]))
        self._add({**event, "pid": event["pid"] + base})

    def _add_totals(self, file: Path) -> None:
        totals = json.loads(file.read_bytes()) if file.exists() else {}
        for name, value in totals.items():
            setattr(self.summary, name, getattr(self.summary, name) + value)

    def _merge_host(self, file: Path, process: int, base: int) -> None:
        library = file.name.rpartition(f".{process}.jsonl")[0]
        is_own = library == "dpuemu"
        for event in self._events(file):
            pid, tid = HOST_PID + base, int(event.get("tid", 0))
            row = tid if is_own else self._row(file.name, tid)
            name = f"rank {tid - RANK_THREAD} (asynchronous launches)"
            if tid < RANK_THREAD or not is_own:
                name = "main thread" if tid == process else f"thread {tid}"
            if event["ph"] == "M":
                if event["name"] != "thread_name":
                    continue
                name = str(event["args"]["name"])
            if (pid, row) not in self._named:
                self._named.add((pid, row))
                words = {"name": name if is_own else f"{library}: {name}"}
                self._add({"ph": "M", "pid": pid, "tid": row, "name": "thread_name", "args": words})
            if event["ph"] == "M":
                continue
            self.summary.other_events += not is_own
            place = {"pid": pid, "tid": row, "ts": round(event["ts"] - self._origin_us, 3)}
            self._add({"cat": "measured", **event, **place})

    def _row(self, file: str, tid: int) -> int:
        return self._threads.setdefault((file, tid), OTHER_THREADS + len(self._threads))

    def _merge_pes(self, file: Path, base: int) -> None:
        if not file.exists():
            return
        runs: dict[int, list[tuple[float, float, float]]] = {}
        with file.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                text = line.rstrip()
                if base:
                    text = _PID.sub(lambda found: b'"pid":%d' % (base + int(found[1])), text, 1)
                if text.startswith(b'{"ph":"M"'):
                    number = int(_PID.search(text)[1]) - FIRST_PE_PID - base  # type: ignore[index]
                    self.summary.shown_pes.add(base + number)
                if not self._add_text(text):
                    self.summary.dropped_events += 1
                if text.startswith(b'{"ph":"C"'):
                    event = json.loads(text)
                    shares = event["args"]["pipeline"], event["args"]["dma"]
                    run = runs.setdefault(event["pid"], [])
                    run.append((event["ts"], *shares))
        self.uses.extend(runs.values())

    def _add(self, event: dict[str, Any]) -> None:
        text = json.dumps(event, separators=(",", ":"), ensure_ascii=False)
        if not self._add_text(_SURROGATES.sub("\ufffd", text).encode()):
            self.summary.dropped_events += 1

    def _add_text(self, text: bytes) -> bool:
        separator = b",\n" if self._has_events else b""
        if self._bytes + len(separator) + len(text) > self._limit:
            return False
        self._file.write(separator + text)
        self._bytes += len(separator) + len(text)
        self._has_events = True
        return True


def parsed_event(line: bytes) -> dict[str, Any] | None:
    """Return the event in a line, or None if the line has no event that libraries may write."""
    try:
        event = json.loads(line)
        return event if is_event(event) else None
    except (ValueError, RecursionError):
        return None


def is_event(event: Any) -> bool:
    """Return whether a value is an event of the trace format, as libraries may write it."""
    if not isinstance(event, dict) or event.get("ph") not in _PHASES:
        return False
    if not isinstance(event.get("name"), str) or not isinstance(event.get("args", {}), dict):
        return False
    if not _is_integer(event.get("tid", 0)) or not _has_finite_numbers(event):
        return False
    if event["ph"] == "M":
        return event["name"] != "thread_name" or "name" in event.get("args", {})
    dur: Any = event.get("dur", None if event["ph"] == "X" else 0)
    return _is_number(event.get("ts")) and _is_number(dur) and dur >= 0


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST


def _is_number(value: Any) -> bool:
    return _is_integer(value) or (isinstance(value, float) and abs(value) < _MOST)


def _has_finite_numbers(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_has_finite_numbers, value.values()))
    if isinstance(value, list):
        return all(map(_has_finite_numbers, value))
    return not isinstance(value, float) or math.isfinite(value)


def write(folder: Path, file: BinaryIO, limit_bytes: int) -> tuple[Summary, str]:
    """Write the trace of the processes whose files are in the folder; return a summary, and the
    plot (SVG).
    """
    merger = Merger(folder, file, limit_bytes)
    merger.merge()
    plot = trace_plot.plot(merger.summary.pe_us, merger.spans, merger.uses)
    return merger.summary, plot
