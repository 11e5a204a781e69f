"""Run a command whose processes all end when the command or its caller ends.

A process of this file, the supervisor, starts the command. Processes whose parents end become its
children (PR_SET_CHILD_SUBREAPER of prctl(2)), so it finds all that the command left. The caller
holds one end of a pipe, which the kernel closes when the caller ends, also by SIGKILL; if the
supervisor itself is killed, the command gets SIGTERM. MPI libraries keep names of shared memory
until MPI_Finalize; the supervisor removes those of processes that it ends.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

GRACE_SECONDS = 2.0
"""Time between SIGTERM and SIGKILL after the end of the caller."""

_SHARED_MEMORY = "/dev/shm/"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)


@contextmanager
def supervised(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a command; yield its supervisor, which has its standard streams and returns its code.

    The supervisor sends SIGTERM on to the command. When the body ends, the command gets SIGTERM and
    after GRACE_SECONDS SIGKILL, and so do all processes that it started. options: for
    `subprocess.Popen`. Raises OSError if the command cannot be started.
    """
    life, held = os.pipe()
    status, error_number = os.pipe()
    try:
        words = [sys.executable, "-I", "-S", __file__, f"{life}", f"{error_number}", *command]
        process = subprocess.Popen(words, pass_fds=(life, error_number), **options)
    except BaseException:
        for file in (life, held, status, error_number):
            os.close(file)
        raise
    os.close(life)
    os.close(error_number)
    with process:
        try:
            with open(status, "rb") as message:
                failed = int(message.read() or b"0")
            if failed:
                raise OSError(failed, os.strerror(failed), command[0])
            yield process
        finally:
            os.close(held)


def _supervise(life: int, error_number: int, command: list[str]) -> int:
    """Run the command until it or the caller ends, end its processes, and return its code."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    shared: set[str] = set()

    def terminate(number: int = 0, _: object = None) -> None:
        shared.update(_shared_memory(_descendants()))
        if number != signal.SIGINT:  # which the terminal also sends to the command
            os.kill(child, signal.SIGTERM)

    for file in (life, error_number):
        os.set_inheritable(file, False)
    supervisor, child = os.getpid(), os.fork()
    if child == 0:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores
            prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() == supervisor:
                os.execvp(command[0], command)
        except OSError as error:
            os.write(error_number, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(error_number)
    signal.signal(signal.SIGTERM, terminate)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, terminate)
    events = select.poll()
    events.register(life)
    events.register(woken, select.POLLIN)
    killed_at: float | None = None
    while (code := _ended(child)) is None:
        rest = None if killed_at is None else max(0.0, killed_at - time.monotonic())
        files = [file for file, _ in events.poll(None if rest is None else 1e3 * rest)]
        if woken in files:
            os.read(woken, 512)
        if life in files:  # closed
            events.unregister(life)
            killed_at = time.monotonic() + GRACE_SECONDS
            terminate()
        elif rest == 0:
            os.kill(child, signal.SIGKILL)
    shared.update(_shared_memory(_descendants()))
    _end_children()
    for name in shared.difference(_shared_memory(_parents())):
        with suppress(FileNotFoundError):
            os.unlink(name)
    return code


def _ended(child: int) -> int | None:
    """Wait for all children that have ended; return the code of `child` if it is one of them."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == child:
            return os.waitstatus_to_exitcode(status)
        if ended == 0:
            return None


def _parents() -> dict[int, int]:
    """Return the parent of each process."""
    parents = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat") as file:  # unless it has ended
            parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    return parents


def _descendants() -> set[int]:
    """Return the processes that this process, its children and so on have started."""
    parents, known = _parents(), {os.getpid()}
    while more := {pid for pid in parents.keys() - known if parents[pid] in known}:
        known |= more
    return known - {os.getpid()}


def _shared_memory(processes: Iterable[int]) -> set[str]:
    """Return the named shared memory that processes of this user have mapped or open."""
    names: set[str] = set()
    for pid in processes:
        with suppress(OSError):
            with open(f"/proc/{pid}/maps") as file:
                names.update(line.rstrip("\n").partition(_SHARED_MEMORY)[2] for line in file)
            for entry in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    path = os.readlink(f"/proc/{pid}/fd/{entry}")
                    names.add(path.partition(_SHARED_MEMORY)[2])
    return {_SHARED_MEMORY + name for name in names if name and not name.endswith(" (deleted)")}


def _end_children() -> None:
    """End the children of this process, and those that it inherits when they end."""
    with suppress(ChildProcessError):  # until there are no more
        while True:
            for pid, parent in _parents().items():
                if parent == os.getpid():
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


if __name__ == "__main__":
    code = _supervise(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    if code < 0:  # end by the same signal, without another core file
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
