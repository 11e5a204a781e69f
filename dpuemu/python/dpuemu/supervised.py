"""Run a command whose processes all end when the command or its caller ends.

A process of this file, the supervisor, starts the command. Processes whose parents end become its
children (PR_SET_CHILD_SUBREAPER of prctl(2)), so it finds all that the command left. The caller
holds one end of a pipe, which the kernel closes when the caller ends, also by SIGKILL; if the
supervisor itself is killed, the command gets SIGTERM. MPI libraries name their shared memory until
MPI_Finalize; at the end, the supervisor removes the new names that no process uses.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

GRACE_SECONDS = 2.0
"""Time between SIGTERM and SIGKILL after the end of the caller."""

_FOLDER = "/dev/shm"
_OF_MPI = ("mpich_shm_", "sm_segment.", "vader_segment.")
"""How names of shared memory of MPICH and Open MPI begin."""
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""Signals that the terminal also sends to the command and to the caller."""
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
    shared = _shared_memory()
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in _FROM_TERMINAL:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    terminations: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: terminations.append(number))
    for file in (life, error_number):
        os.set_inheritable(file, False)
    supervisor, child = os.getpid(), os.fork()
    if child == 0:
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
                signal.signal(number, signal.SIG_DFL)
            prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() == supervisor:
                os.execvp(command[0], command)
        except OSError as error:
            os.write(error_number, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(error_number)
    events = select.poll()
    events.register(life)
    events.register(woken, select.POLLIN)
    kills_at: float | None = None
    while (code := _ended(child)) is None:
        rest = None if kills_at is None else 1e3 * max(0.0, kills_at - time.monotonic())
        files = [file for file, _ in events.poll(rest)]
        if woken in files:  # by a signal
            os.read(woken, 512)
        if life in files:  # closed
            events.unregister(life)
            kills_at = time.monotonic() + GRACE_SECONDS
            terminations.append(signal.SIGTERM)
        if terminations:
            terminations.clear()
            os.kill(child, signal.SIGTERM)
        if kills_at is not None and time.monotonic() >= kills_at:
            kills_at = None
            os.kill(child, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_children()
    if new := _shared_memory() - shared:
        for name in new - _in_use():
            with suppress(OSError):
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


def _shared_memory() -> set[str]:
    """Return the named shared memory of MPI libraries of this user."""
    with suppress(OSError), os.scandir(_FOLDER) as entries:
        return {
            entry.path
            for entry in entries
            if entry.name.startswith(_OF_MPI) and entry.stat().st_uid == os.geteuid()
        }
    return set()


def _in_use() -> set[str]:
    """Return the files that processes have open or mapped."""
    paths: set[str] = set()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):  # it has ended, or is another user's
            # A file is mapped before it is closed, so open files come first.
            for entry in os.listdir(f"/proc/{name}/fd"):
                with suppress(OSError):
                    paths.add(os.readlink(f"/proc/{name}/fd/{entry}"))
            with open(f"/proc/{name}/maps") as file:
                paths.update(line.rstrip("\n")[line.find("/") :] for line in file if "/" in line)
    return paths


def _end_children() -> None:
    """End the children of this process, and those that it inherits when they end."""
    with suppress(ChildProcessError):  # until there are no more
        while True:
            for name in filter(str.isdecimal, os.listdir("/proc")):
                with suppress(OSError):  # it has ended, or has other rights
                    with open(f"/proc/{name}/stat") as file:
                        parent = int(file.read().rpartition(")")[2].split()[1])
                    if parent == os.getpid():
                        os.kill(int(name), signal.SIGKILL)
            os.waitpid(-1, 0)


if __name__ == "__main__":
    code = _supervise(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    if code < 0:  # end by the same signal, without another core file
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
