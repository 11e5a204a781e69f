"""Give damaged files to readers: each must return a result or raise one of the package's
errors.

A plain mutator chooses the damage. A fuzzer that follows coverage adds little here: NumPy and the
standard library parse most formats in C, which it does not see. A child process with a memory limit
reads the files, so that a crash or a reader without end does not end the attack.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from attack import Attack

import dpuemu
import pidcomm
import pidcomm.model

PIDCOMM = Path(__file__).resolve().parents[2]
SECONDS = 20  # a reader ends within this time
MEMORY_BYTES = 2 << 30  # a reader needs less memory than this
BATCH = 100  # files that one child reads
SHRINK_SECONDS = 10
NUMBERS = [
    b"0",
    b"-1",
    b"1",
    b"2147483648",
    b"4294967295",
    b"18446744073709551616",
    b"1e999",
    b"nan",
    b"9" * 5000,
]
TOKENS = [
    *NUMBERS,
    b"%%MatrixMarket",
    b"\0",
    b"\xff",
    b"\xe2\x80\xa8",
    b"'''",
    b"[" * 100000,
    b'{"a":' * 100000,
]
TOKENS += [bytes([character]) for character in b'\n\r\t "[]{}=#,.']


def load_program(path: Path) -> None:
    """Load a PE program, without launching it."""
    with pidcomm.allocate(pes=1) as pes:
        pes.load(path)


def use_settings(path: Path) -> None:
    """Allocate PEs of a machine that environment variables describe."""
    for line in path.read_bytes().split(b"\n"):
        key, equals, value = line.partition(b"=")
        if equals and key.startswith(b"DPUEMU_") and b"\0" not in line:
            os.environb[key] = value
    try:
        dpuemu.machine(patience_seconds=1)  # a new machine reads the variables again
        pidcomm.allocate(pes=1).free()
    finally:
        for key in [key for key in os.environb if key.startswith(b"DPUEMU_")]:
            del os.environb[key]


class Reader:
    """A reader, the end of its files' names and its undamaged files."""

    def __init__(self, read: Callable[[Path], object], suffix: str, seeds: list[bytes]) -> None:
        """Keep the arguments."""
        self.read, self.suffix, self.seeds = read, suffix, seeds


def make_readers(attack: Attack) -> list[Reader]:
    """Return the readers of pidcomm and dpuemu."""
    program = (attack.build / "tests" / "campaign" / "increment").read_bytes()
    settings = b"DPUEMU_RANKS=2\nDPUEMU_CHANNELS=2\nDPUEMU_THREADS=2\n"
    settings += b"DPUEMU_HUGEPAGES=on\nDPUEMU_FLUSH=once\n"
    settings += b"DPUEMU_DISABLED=0.1.2,1.0.7\nDPUEMU_STRICT=1\n"
    settings += b"DPUEMU_PATIENCE=1\nDPUEMU_RANKS_PER_CHANNEL=1\n"
    return [
        Reader(lambda path: pidcomm.model.load_machine(str(path)), ".toml", machines()),
        Reader(load_program, ".elf", [program]),
        Reader(use_settings, ".env", [settings]),
    ]


def machines() -> list[bytes]:
    """Return the files of the built-in machines."""
    return [path.read_bytes() for path in sorted((PIDCOMM / "machines").glob("*.toml"))]


def damaged(data: bytes, choices: random.Random, seeds: list[bytes]) -> bytes:
    """Return the data with one to eight kinds of damage."""
    for _ in range(choices.choice((1, 1, 2, 3, 8))):
        at, end = sorted((choices.randrange(len(data) + 1), choices.randrange(len(data) + 1)))
        end = min(end, at + choices.choice((1, 4, 32, len(data))))
        kind = choices.randrange(8)
        if kind == 0:
            data = data[:at] + data[end:]
        elif kind == 1:
            data = data[:end] + data[at:]
        elif kind == 2:
            data = data[:at] + choices.choice(TOKENS) + data[at:]
        elif kind == 3:
            data = data[:at] + choices.choice(TOKENS) + data[end:]
        elif kind == 4:
            data = data[:at]
        elif kind == 5:
            data = data[:at] + choices.choice(seeds)[at:]
        elif kind == 6 and (digits := list(re.finditer(rb"[0-9]+", data))):
            number = choices.choice(digits)
            data = data[: number.start()] + choices.choice(NUMBERS) + data[number.end() :]
        elif at < len(data):
            byte = choices.choice(
                (data[at] ^ 1 << choices.randrange(8), 0, 255, 127, choices.randrange(256))
            )
            data = data[:at] + bytes([byte]) + data[at + 1 :]
    return data


def problem_of(reader: Reader, path: Path, data: bytes) -> str:
    """Read the data; return the exception and its place unless the error is one of the
    package's.
    """
    path.write_bytes(data)
    signal.alarm(SECONDS)
    try:
        reader.read(path)
    except (pidcomm.Error, dpuemu.Error) as error:
        return "" if str(error) else "an error without a sentence"
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error!s:.120} at {frame.filename}:{frame.lineno}"
    finally:
        signal.alarm(0)
    return ""


def shrunk(reader: Reader, path: Path, data: bytes, problem: str) -> bytes:
    """Remove parts of the data as long as the same exception is raised."""
    kind, size, end = problem.partition(":")[0], len(data) // 2, time.monotonic() + SHRINK_SECONDS
    while size > 0 and time.monotonic() < end:
        at = 0
        while at < len(data) and time.monotonic() < end:
            shorter = data[:at] + data[at + size :]
            if problem_of(reader, path, shorter).partition(":")[0] == kind:
                data = shorter
            else:
                at += size
        size //= 2
    path.write_bytes(data)
    return data


def read_batch(
    attack: Attack, readers: list[Reader], numbers: range, path: Path, seen: set[str]
) -> None:
    """Read damaged files, in the child."""
    for number in numbers:
        if attack.only is None and time.monotonic() >= attack.end:
            break
        choices = attack.random(number)
        reader = readers[number % len(readers)]
        # The emulator reserves addresses, not memory.
        has_machine = reader.suffix in (
            ".elf",
            ".env",
        )
        data = damaged(choices.choice(reader.seeds), choices, reader.seeds)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = resource.RLIM_INFINITY if has_machine else used + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        current = path.with_name(path.name + reader.suffix)
        (path.parent / f"{path.name}.number").write_text(f"{number} {current}")
        problem = problem_of(reader, current, data)
        place = problem.rpartition(" at ")[2]
        if problem and place not in seen:
            seen.add(place)
            kept = attack.folder / f"parsers-{attack.seed}-{number}{reader.suffix}"
            kept.write_bytes(shrunk(reader, current, data, problem))
            attack.find(f"a reader of {reader.suffix} raised {problem}; file {kept}", number=number)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        current.unlink(missing_ok=True)


def run(attack: Attack, readers: list[Reader]) -> None:
    """Read damaged files in children until the time is over."""
    path = attack.folder / f"parsers-{os.getpid()}"
    note = path.parent / f"{path.name}.number"
    batches = range(attack.only, attack.only + 1) if attack.only is not None else None
    seen: set[str] = set()
    for start in attack.numbers():
        numbers = batches or range(start * BATCH, (start + 1) * BATCH)
        sys.stdout.flush()
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receive)
            try:
                attack.cases = attack.findings = 0
                read_batch(attack, readers, numbers, path, seen)
                os.write(send, json.dumps([attack.cases, attack.findings, sorted(seen)]).encode())
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(0)
        os.close(send)
        with os.fdopen(receive, "rb") as pipe:
            answer = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if answer:
            cases, findings, places = json.loads(answer)
            attack.cases += cases
            attack.findings += findings
            seen.update(places)
        else:
            number, _, current = note.read_text().partition(" ")
            kept = (
                attack.folder / f"parsers-{attack.seed}-{number}{''.join(Path(current).suffixes)}"
            )
            Path(current).replace(kept)
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
            attack.find(
                f"a reader ended with {how} (SIGALRM: after {SECONDS} s); file {kept}",
                number=int(number),
            )
    note.unlink(missing_ok=True)
    attack.finish()


def main() -> None:
    """Attack the readers of pidcomm and dpuemu."""
    attack = Attack()
    run(attack, make_readers(attack))


if __name__ == "__main__":
    main()
