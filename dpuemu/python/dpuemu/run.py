"""Run host programs on the emulated machine, and make a table of the launches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any, BinaryIO, TextIO

from dpuemu import tools
from dpuemu.errors import Error
from dpuemu.reports import LaunchReport
from dpuemu.supervised import supervised

NOT_EXECUTABLE, NOT_FOUND, BY_SIGNAL = 126, 127, 128  # exit codes that shells use

MOST_FAULTS = 3
LONG_SECONDS = 2.0
EXACT, MODELLED, MEASURED = "exact", "modelled", "measured"


def program_environment(
    variables: Mapping[str, str],
    *,
    ranks: int | None = None,
    threads: int | None = None,
    strict: bool = False,
    patience: int | None = None,
    chip: str | None = None,
    report: Path | None = None,
    running: Path | None = None,
) -> dict[str, str]:
    """Return the environment of a host program: paths of the tools and the library, and the
    settings of the machine.

    variables: the environment to start from; options that are None or False leave it unchanged.
    patience: in seconds.
    report: the file to which each launch appends a line at its end. running: the file for
    `RunningLaunches`.
    """
    own = tools.environment(strict=strict)
    result = {**variables, **own}
    if variables.get("DPUEMU_LIBDIR"):
        result["DPUEMU_LIBDIR"] = variables["DPUEMU_LIBDIR"]
    for name in tools.SEARCH_PATHS:
        result[name] = tools.put_first(own[name], name, variables)
    wanted = {
        **{"DPUEMU_RANKS": ranks, "DPUEMU_THREADS": threads, "DPUEMU_PATIENCE": patience},
        **{"DPUEMU_CHIP": chip, "DPUEMU_REPORT": report, "DPUEMU_RUNNING": running},
    }
    return result | {name: str(value) for name, value in wanted.items() if value is not None}


def run_program(
    command: Sequence[str],
    *,
    ranks: int | None = None,
    threads: int | None = None,
    strict: bool = False,
    patience: int | None = None,
    chip: str | None = None,
    variables: Mapping[str, str] | None = None,
    stdout: TextIO | None = None,
    on_long_launch: Callable[[str], None] | None = None,
) -> tuple[int, list[LaunchReport], str]:
    """Run a host program; return its exit code (-n if signal n ended it), its launches, and those
    that did not end. All processes that the program started end with it (`supervised`).

    variables: more environment variables of the program.
    stdout: where the program's output goes (None: to the output of this process). The launches are
    those of the program and of all processes that it started, in the order in which they ended. The
    text of `RunningLaunches` describes those that did not end. on_long_launch gets such a text when
    a launch has run for LONG_SECONDS. The program also gets each SIGTERM; SIGINT reaches it from
    the terminal. When the program has ended, the lines of its launches are appended to the file in
    the environment variable DPUEMU_REPORT, if any. Raises OSError if the program cannot be started,
    and Error if this file cannot be opened.
    """
    with tools.temporary_folder() as folder, _user_report() as user_report:
        report, running = folder / "launches.jsonl", RunningLaunches(folder / "running")
        environment = program_environment(
            {**os.environ, **(variables or {})},
            ranks=ranks,
            threads=threads,
            strict=strict,
            patience=patience,
            chip=chip,
            report=report,
            running=running.path,
        )
        with (
            supervised(command, env=environment, stdout=stdout) as process,
            _watched(running, on_long_launch),
        ):
            code = wait(process)
        lines = report.read_bytes() if report.exists() else b""
        user_report.write(lines)
        return code, parse_launches(lines.decode(errors="replace")), running.text()


@contextmanager
def _user_report() -> Iterator[BinaryIO]:
    """Open the file in the environment variable DPUEMU_REPORT, or nothing.

    Raises Error if it cannot be opened.
    """
    path = os.environ.get("DPUEMU_REPORT") or os.devnull
    try:
        file = open(path, "ab")  # noqa: SIM115
    except OSError as error:
        raise Error(f"DPUEMU_REPORT={path} cannot be written: {error.strerror}") from None
    with file:
        yield file


class RunningLaunches:
    """The launches that have started and not ended.

    Programs append a line to `path` at both events (report_file.h).
    """

    def __init__(self, path: Path) -> None:
        """Start without launches."""
        self.path = path
        self._position = 0
        self._started = 0
        self._running: dict[str, str] = {}  # by key: text

    def text(self) -> str:
        """Return the launches, such as "launch 3 on 64 PEs", or "" if all have ended."""
        if self.path.exists():
            with self.path.open() as file:
                file.seek(self._position)
                lines = file.read()
            complete = lines[: lines.rfind("\n") + 1]
            self._position += len(complete)
            for key, *pes in map(str.split, complete.splitlines()):
                if pes:
                    self._started += 1
                    self._running[key] = f"launch {self._started} on {pes[0]} PEs"
                else:
                    self._running.pop(key, None)
        return ", ".join(self._running.values())


@contextmanager
def _watched(running: RunningLaunches, report: Callable[[str], None] | None) -> Iterator[None]:
    """Call `report`, if any, whenever the running launches have been the same for LONG_SECONDS."""
    ended = Event()

    def watch(report: Callable[[str], None]) -> None:
        last, since, reported = "", time.monotonic(), False
        while not ended.wait(LONG_SECONDS / 10):
            now = running.text()
            if now != last:
                last, since, reported = now, time.monotonic(), False
            elif now and not reported and time.monotonic() - since >= LONG_SECONDS:
                report(now)
                reported = True

    thread = Thread(target=watch, args=(report,), daemon=True)
    if report is not None:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if report is not None:
            thread.join()


def exit_code(code: int) -> int:
    """Return the code with which a shell reports a program's exit code of `run_program`: 128 + n
    for signal n.
    """
    return code if code >= 0 else BY_SIGNAL - code


def signal_name(number: int) -> str:
    """Return the name of a signal, such as SIGSEGV; real-time signals have only numbers."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for a program and return its code.

    Sends SIGTERM on; ignores SIGINT, which the terminal sends to both.
    """

    def pass_on(number: int, _: FrameType | None) -> None:
        process.send_signal(number)

    earlier = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, pass_on)
    try:
        return process.wait()
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def parse_launches(text: str) -> list[LaunchReport]:
    """Return the launches of a report file: one JSON object per line, as DPUEMU_REPORT collects
    them.

    An incomplete last line is skipped: a signal ended the program while it wrote the line.
    """
    names = [field.name for field in fields(LaunchReport)]
    lines = (json.loads(line) for line in text.split("\n")[:-1])
    return [LaunchReport(**{name: line[name] for name in names}) for line in lines]


def launch_fields(launch: LaunchReport) -> dict[str, Any]:
    """Return the JSON fields of a launch."""
    return {
        **asdict(launch),
        "modelled_seconds": launch.modelled_seconds,
        "modelled_interval": launch.modelled_interval,
    }


def launch_table(launches: Sequence[LaunchReport]) -> Iterator[str]:
    """Yield the lines of a table of launches; for several launches, also a line with totals.

    The table has columns for faults and for masked DMA only if the launches have faults or such
    DMA.
    """
    faults, odd = (
        [launch.faulted_pes for launch in launches],
        [odd_dma(launch) for launch in launches],
    )
    moved = [launch.dma_read_bytes + launch.dma_write_bytes for launch in launches]
    columns = [
        ("launch", "", [str(number) for number, _ in enumerate(launches, 1)], "sum"),
        ("PEs", EXACT, [f"{launch.pes:,}" for launch in launches], ""),
        *[("in fault", EXACT, *_counts(faults))] * any(faults),
        ("DMA bytes", EXACT, *_counts(moved)),
        *[("odd DMA", EXACT, *_counts(odd))] * any(odd),
        ("instructions", MODELLED, *_counts([launch.instructions for launch in launches])),
        ("PE us", MODELLED, *_microseconds([launch.modelled_seconds for launch in launches])),
        ("on DIMMs", MODELLED, *_intervals([launch.modelled_interval for launch in launches])),
        ("host us", MEASURED, *_microseconds([launch.host_seconds for launch in launches])),
    ]
    table = [
        [name, source, *cells, *([total] if len(launches) > 1 else [])]
        for name, source, cells, total in columns
    ]
    widths = [max(map(len, column)) for column in table]
    for row in zip(*table, strict=True):
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))


def faults(launches: Sequence[LaunchReport]) -> Iterator[str]:
    """Yield sentences about launches in fault (at most MOST_FAULTS)."""
    faulted = [(number, launch) for number, launch in enumerate(launches, 1) if launch.faulted_pes]
    for number, launch in faulted[:MOST_FAULTS]:
        yield (
            f"launch {number}: {launch.faulted_pes} of {launch.pes} PEs in fault, the first:"
            f" {launch.fault}"
        )
    if len(faulted) > MOST_FAULTS:
        yield f"{len(faulted) - MOST_FAULTS} more launches ended in a fault"


def problems(launches: Sequence[LaunchReport]) -> Iterator[str]:
    """Yield sentences about launches in fault, and about DMA that hardware changes."""
    yield from faults(launches)
    waiting = sum(launch.waiting_tasklets for launch in launches if not launch.faulted_pes)
    if waiting:
        yield (
            f"{waiting} tasklets still waited at a barrier, for a semaphore, a handshake or a"
            " `resume` when their PEs ended, as on hardware; --strict makes this a fault"
        )
    odd = sum(map(odd_dma, launches))
    if odd:
        yield (
            f"{odd} addresses or sizes of DMA were rounded, as on hardware; --strict"
            " makes them faults"
        )


def odd_dma(launch: LaunchReport) -> int:
    """Return the number of masked addresses and masked sizes."""
    return launch.masked_addresses + launch.masked_sizes


def _counts(values: Sequence[int]) -> tuple[list[str], str]:
    return [f"{value:,}" for value in values], f"{sum(values):,}"


def _intervals(seconds: Sequence[tuple[float, float]]) -> tuple[list[str], str]:
    ends = [_microseconds(end) for end in zip(*seconds, strict=True)]
    (lows, low), (highs, high) = ends or [([], ""), ([], "")]
    return [f"{a} to {b}" for a, b in zip(lows, highs, strict=True)], f"{low} to {high}"


def _microseconds(seconds: Sequence[float]) -> tuple[list[str], str]:
    return [f"{value * 1e6:,.1f}" for value in seconds], f"{sum(seconds) * 1e6:,.1f}"
