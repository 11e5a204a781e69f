"""Trace events of calls: one line of JSON per call and phase, which nest on each thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import os, threading, warnings
import pidcomm

pes = pidcomm.allocate(pes=64)
cube = pes.hypercube(8, 8)
x = cube.empty(96, "int32")

def call(bytes):
    cube.allreduce("10", bytes=bytes, dst=4096, dtype="int32", op="sum", technique="tile")

call(64)
cube.alltoall("01", bytes=128, dst=4096, wait=False).wait()
cube.alltoall("01", bytes=192, dst=4096, technique="conventional")
try:
    cube.alltoall("01", bytes=100, dst=4096)
except pidcomm.Error:
    pass
threads = [threading.Thread(target=lambda: [call(256) for _ in range(20)]) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with cube.batch() as batch:
    for _ in range(3):
        cube.allreduce(x, "10", op="sum", out=x)
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
child = os.fork()
if child == 0:
    try:
        with pidcomm.allocate(pes=64) as other:
            other.hypercube(8, 8).alltoall("10", bytes=320, dst=4096)
    finally:
        os._exit(0)
os.waitpid(child, 0)
print(os.getpid(), child)
"""


def run(program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def events_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def calls_of(events: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    return [event for event in events if event.get("args", {}).get("bytes") == size]


def ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def inside(events: list[dict[str, Any]], call: dict[str, Any]) -> list[str]:
    """Return the names of the phases of a call, by start."""
    begin, end = ns(call["ts"]), ns(call["ts"]) + ns(call["dur"])
    found = [
        event
        for event in events
        if "args" not in event
        and event["tid"] == call["tid"]
        and begin <= ns(event["ts"])
        and ns(event["ts"]) + ns(event["dur"]) <= end
    ]
    return [event["name"] for event in sorted(found, key=lambda e: (e["ts"], -e["dur"]))]


def test_calls_and_phases_are_events_that_nest(tmp_path: Path) -> None:
    ran = run(PROGRAM, TRACE_EVENTS_FOLDER=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    parent, child = ran.stdout.split()
    events = events_of(tmp_path / f"pidcomm.{parent}.jsonl")
    for event in events:
        assert (event["cat"], event["ph"], event["pid"]) == ("pidcomm", "X", int(parent))
    (first,) = calls_of(events, 64)
    assert first["name"] == "allreduce 10"
    args = first["args"]
    assert (args["hypercube"], args["shape"], args["call"], args["state"]) == (1, "8x8", 1, "done")
    assert (args["dtype"], args["op"], args["technique"]) == ("int32", "sum", "tile")
    assert (args["file"], args["line"]) == ("<string>", 10)
    assert inside(events, first) == ["acquire", "plan", "acquire", "pass"]
    start, rest = sorted(calls_of(events, 128), key=lambda event: event["name"], reverse=True)
    assert (start["name"], rest["name"]) == ("start alltoall 01", "alltoall 01")
    assert start["tid"] == first["tid"] != rest["tid"]
    assert inside(events, start) == ["acquire", "plan"]
    assert inside(events, rest)[-1] == "pass"
    (conventional,) = calls_of(events, 192)
    phases = inside(events, conventional)
    assert phases[-4:] == ["pass", "from_pes", "host", "to_pes"]
    (failed,) = calls_of(events, 100)
    assert (failed["args"]["state"], failed["args"]["status"]) == ("failed", "ERR_SIZE")
    assert "alltoall" in failed["args"]["error"]
    others = calls_of(events, 256)
    assert len(others) == 40
    assert len({event["tid"] for event in others}) == 2
    for call in others:
        assert inside(events, call) == ["acquire", "plan", "acquire", "pass"]
    (batch,) = calls_of(events, 384)
    assert (batch["args"]["requests"], batch["args"]["state"]) == (3, "done")
    phases = inside(events, batch)
    assert (phases.count("plan"), phases.count("pass")) == (3, 3)
    (forked,) = calls_of(events_of(tmp_path / f"pidcomm.{child}.jsonl"), 320)
    assert forked["pid"] == int(child)


def test_events_of_a_thread_nest_or_do_not_overlap(tmp_path: Path) -> None:
    assert run(PROGRAM, TRACE_EVENTS_FOLDER=str(tmp_path)).returncode == 0
    files = list(tmp_path.iterdir())
    assert len(files) == 2
    for file in files:
        by_thread: dict[int, list[dict[str, Any]]] = {}
        for event in events_of(file):
            by_thread.setdefault(event["tid"], []).append(event)
        for events in by_thread.values():
            ends: list[int] = []
            for event in sorted(events, key=lambda e: (ns(e["ts"]), -ns(e["dur"]))):
                begin, end = ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])
                while ends and ends[-1] <= begin:
                    ends.pop()
                assert not ends or end <= ends[-1], event
                ends.append(end)


def test_a_folder_that_does_not_exist_loses_events_and_no_call(tmp_path: Path) -> None:
    ran = run(PROGRAM, TRACE_EVENTS_FOLDER=str(tmp_path / "none"))
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert list(tmp_path.iterdir()) == []


QUOTED = """
import pidcomm
cube = pidcomm.allocate(pes=64).hypercube(8, 8)
exec(compile('cube.alltoall("10", bytes=64, dst=4096)', 'a "b" \\\\ \\n \\u00e9', "exec"))
"""


def test_file_names_are_escaped(tmp_path: Path) -> None:
    assert run(QUOTED, TRACE_EVENTS_FOLDER=str(tmp_path)).returncode == 0
    (file,) = tmp_path.iterdir()
    (call,) = calls_of(events_of(file), 64)
    assert call["args"]["file"] == 'a "b" \\ ? \u00e9'


CLOSES = """
import os, sys
import pidcomm
cube = pidcomm.allocate(pes=64).hypercube(8, 8)
call = lambda bytes: cube.alltoall("10", bytes=bytes, dst=4096)
call(64)
os.closerange(3, 256)
own = [os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_APPEND) for _ in range(64)]
call(128)
for descriptor in own:
    os.write(descriptor, b"own")
"""


def test_a_program_that_closes_the_file_keeps_its_own_files(tmp_path: Path) -> None:
    own, folder = tmp_path / "own", tmp_path / "events"
    folder.mkdir()
    ran = run(CLOSES, str(own), TRACE_EVENTS_FOLDER=str(folder))
    assert ran.returncode == 0, ran.stderr
    assert own.read_text() == 64 * "own"
    (file,) = folder.iterdir()
    events = events_of(file)
    assert [len(calls_of(events, size)) for size in (64, 128)] == [1, 1]


FULL = """
import resource
import pidcomm
cube = pidcomm.allocate(pes=64).hypercube(8, 8)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (2500, hard))
for _ in range(20):
    cube.alltoall("10", bytes=64, dst=4096)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
cube.alltoall("10", bytes=128, dst=4096)
"""


def test_a_full_file_ends_with_a_complete_line(tmp_path: Path) -> None:
    ran = run(FULL, TRACE_EVENTS_FOLDER=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    (file,) = tmp_path.iterdir()
    text = file.read_text("utf-8")
    assert text.endswith("\n")
    events = events_of(file)
    assert calls_of(events, 64)
    assert not calls_of(events, 128)
