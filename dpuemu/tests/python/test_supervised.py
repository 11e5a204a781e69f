"""All processes of a command end with the command, and with the process that started it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dpuemu.supervised import supervised

# Has a child in another session, which maps a named object of shared memory and writes a line; the
# child stays, and the parent stays or ends.
PROGRAM = """
import mmap, os, signal, sys, time
mapped, maps = os.pipe()
if os.fork():
    os.read(mapped, 1)
    if {parent_ends}:
        sys.exit(3)
    time.sleep(1000)
os.setsid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
file = os.open({name!r}, os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(file, 4096)
memory = mmap.mmap(file, 4096)
print("ready", flush=True)
os.write(maps, b"x")
time.sleep(1000)
"""


def with_child(name: str, *, parent_ends: bool = False) -> list[str]:
    """Return the command of PROGRAM."""
    return [sys.executable, "-c", PROGRAM.format(name=name, parent_ends=parent_ends)]


@pytest.fixture
def name(tmp_path: Path) -> str:
    """The name of an object that does not exist, as MPICH names its objects."""
    return f"/dev/shm/mpich_shm_test-{os.getpid()}-{tmp_path.name}"


@pytest.mark.parametrize(
    ("words", "code"),
    [(["true"], 0), (["sh", "-c", "exit 41"], 41), (["sh", "-c", "kill -SEGV $$"], -11)],
)
def test_the_supervisor_returns_the_code_of_the_command(words: list[str], code: int) -> None:
    with supervised(words) as process:
        assert process.wait() == code


@pytest.mark.parametrize("command", ["nosuch", "/"])
def test_a_command_that_cannot_start_raises(command: str) -> None:
    with pytest.raises(OSError, match=command), supervised([command]):
        pass


def test_processes_that_the_command_leaves_end_with_it(name: str) -> None:
    with supervised(with_child(name, parent_ends=True), stdout=subprocess.PIPE) as process:
        output, _ = process.communicate()  # until the last process has closed it
    assert (output, process.returncode) == (b"ready\n", 3)
    assert not Path(name).exists()


def test_the_command_ends_with_the_body(name: str) -> None:
    with supervised(with_child(name), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        output = os.dup(process.stdout.fileno())
    with open(output, "rb") as file:
        assert file.read() == b""
    assert process.returncode == -signal.SIGTERM
    assert not Path(name).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_command_ends_with_the_caller(name: str, number: signal.Signals) -> None:
    program = (
        "import sys; from dpuemu.supervised import supervised\n"
        f"with supervised({with_child(name)!r}) as process: process.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == b"ready\n"
        caller.send_signal(number)
        assert caller.stdout.read() == b""  # all processes have ended

    assert not Path(name).exists()


def test_sigterm_goes_on_to_the_command() -> None:
    program = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done"
    with supervised(["sh", "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        select.select([process.stdout], [], [])
        process.terminate()
        assert process.wait() == 9


def test_other_shared_memory_of_the_command_remains(tmp_path: Path) -> None:
    data = Path(f"/dev/shm/data-{os.getpid()}-{tmp_path.name}")
    try:
        with supervised(with_child(str(data)), stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        assert data.exists()
    finally:
        data.unlink(missing_ok=True)


def test_many_signals_leave_no_process(name: str) -> None:
    with supervised(with_child(name), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == b""
    assert process.returncode == -signal.SIGTERM
    assert not Path(name).exists()


def test_a_command_that_crashes_leaves_no_shared_memory(name: str) -> None:
    program = f"import os; os.open({name!r}, os.O_CREAT, 0o600); os.abort()"
    with supervised([sys.executable, "-c", program]) as process:
        assert process.wait() == -signal.SIGABRT
    assert not Path(name).exists()


def test_shared_memory_that_others_use_remains(name: str) -> None:
    program = f"import os; os.open({name!r}, os.O_CREAT, 0o600); print(flush=True); input()"
    try:
        with supervised(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            with open(name):  # by this process
                process.communicate(b"\n")
        assert Path(name).exists()
    finally:
        Path(name).unlink(missing_ok=True)
