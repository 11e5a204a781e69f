"""Latencies by the rules of the OSU micro-benchmarks, and the experiment of iMEX."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import PIDCOMM
from typer.testing import CliRunner

from pidcomm import ArgumentError, Error
from pidcomm.bench import launcher, osu, osu_cases
from pidcomm.bench.osu import OsuCase, measure
from pidcomm.cli import app
from pidcomm.cli.app import ExitCode


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `pidcomm` with these words."""
    return subprocess.run(
        [*PIDCOMM, *words], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("transport", ["mpi", "pool", "switch"])
@pytest.mark.parametrize("pes", [0, 4])
def test_every_collective_is_right(transport: str, pes: int) -> None:
    least = 8 * 2 * pes or 8  # bytes: a block of 8 bytes for each PE of 2 hosts
    for collective in osu_cases.COLLECTIVES:
        link = (5.0, 1.0) if collective == "allreduce" else (0.0, 0.0)
        rows = measure([OsuCase(collective, transport, 2, 1, (8, 40000), pes, *link, iters=3)])
        assert [(row.size_bytes, row.wrong, row.iterations) for row in rows] == [
            (least, 0, 3),
            (40000, 0, 3),
        ]
        for row in rows:
            assert 0 < row.min_us <= row.avg_us <= row.max_us
            is_mixed = (
                transport == "switch" and not pes and collective.endswith(("reduce", "scatter"))
            )
            assert row.source == ("mixed" if is_mixed else "measured")
            assert row.link == (
                "emulated link 5 GB/s, 1 us" if collective == "allreduce" else "none"
            )
        if collective == "allgather" and not pes:
            # One write, and the block of the other process.
            assert rows[0].copied == (None if transport == "mpi" else 2)


@pytest.mark.parametrize(
    ("collective", "transport", "sizes"),
    [
        ("allreduce", "mpi", [8, 96]),
        ("allreduce", "switch", [8, 96]),
        ("reduce_scatter", "pool", [24, 96]),
    ],
)
def test_sizes_are_cut_to_whole_rows_and_blocks(
    collective: str, transport: str, sizes: list[int]
) -> None:
    rows = measure([OsuCase(collective, transport, 3, 1, (12, 100), iters=2)])
    assert [(row.size_bytes, row.wrong) for row in rows] == [(size, 0) for size in sizes]


def test_the_failure_of_a_process_ends_all_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
from mpi4py import MPI
from pidcomm.bench import launcher

def work(values):
    if MPI.COMM_WORLD.rank == 1:
        raise ValueError(f"no {values}")
    MPI.COMM_WORLD.recv(source=1)  # which never sends

launcher.do_work(work)
"""
    words = [sys.executable, "-c", program, json.dumps([1, 2])]
    monkeypatch.setattr(launcher, "module_command", lambda *_: words)
    with pytest.raises(Error, match=r"ends with code \d+: host 1: ValueError: no \[1, 2\]$"):
        launcher.run_work("", None, 2, None, 1)


def test_the_schedule_is_that_of_osu() -> None:
    assert osu.schedule(8192, 1000) == (1000, 100)
    assert osu.schedule(8193, 1000) == (100, 10)
    assert osu.schedule(8, 20) == (20, 2)
    assert osu.schedule(1 << 20, 5) == (5, 1)


def test_an_emulated_link_takes_the_time_of_its_bytes() -> None:
    for transport, seconds in (("mpi", 4e6 / 1e8), ("pool", (4e6 + 4e6) / 1e8)):
        (row,) = measure([OsuCase("allgather", transport, 2, 1, (4_000_000,), 0, 0.1, 5.0, 2)])
        assert row.min_us >= 1e6 * seconds


def test_the_command_prints_rows_and_refuses_wrong_options() -> None:
    words = [
        "hosts",
        "osu",
        "--collective",
        "allgather",
        "--transport",
        "mpi,pool",
        "--sizes",
        "8:32",
        "--iters",
        "2",
    ]
    rows = [json.loads(line) for line in run(*words, "--json", "-").stdout.splitlines()]
    assert [row["size_bytes"] for row in rows] == [8, 16, 32] * 2
    for mpi, pool in zip(rows[:3], rows[3:], strict=True):
        assert mpi["over_mpi"] == 1
        assert pool["over_mpi"] == pool["avg_us"] / mpi["avg_us"]
    for option, value, message in (
        ("--collective", "gather", "collective 'gather' is unknown"),
        ("--transport", "tcp", "transport 'tcp' is unknown"),
        ("--sizes", "64:8", "the sizes 64:8 end below their start"),
        ("--link", "fast", "--link fast must be GB/s"),
        ("--hosts", "0", "count '0' is not a count"),
        ("--hosts", "2,100000", "100000 processes are more than 16 for each of the"),
        ("--sizes", "8,64GiB", "2 processes with their data need about"),
        ("--sizes", "3", "sizes (3 bytes) must be whole elements of 4 bytes"),
    ):
        refused = CliRunner().invoke(app, ["hosts", "osu", option, value])
        assert refused.exit_code == ExitCode.USAGE
        assert message in refused.stderr


def test_hosts_run_refuses_a_program_that_does_not_exist() -> None:
    refused = CliRunner().invoke(app, ["hosts", "run", "-n", "2", "--", "nosuch"])
    assert refused.exit_code == ExitCode.USAGE
    assert "the program nosuch is not in PATH" in refused.stderr


@pytest.mark.parametrize("path", [None, "", "/usr/bin:"])
def test_mpiexec_is_not_a_program_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    program = tmp_path / "mpiexec"
    program.write_text("#!/bin/sh\necho 1.0\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.delenv(launcher.VARIABLE, raising=False)
    monkeypatch.delenv("PATH")
    if path is not None:
        monkeypatch.setenv("PATH", path)
    with suppress(ArgumentError):  # there is no mpiexec
        assert Path(launcher.mpiexec()[0]).is_absolute()
