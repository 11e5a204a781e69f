"""Ctrl-C in commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from command_line import PIDCOMM, QUICK, SMALL_SHAPE, variables
from typer.testing import CliRunner

import dpuemu
import pidcomm
from pidcomm.cli import app
from pidcomm.cli.app import ExitCode


def interrupt(
    arguments: list[str], is_ready: Callable[[subprocess.Popen[str]], Any]
) -> tuple[int, str, str]:
    """Send SIGINT to a command once it is ready; return exit code, the rest of stdout, and
    stderr.
    """
    with subprocess.Popen(
        [*PIDCOMM, *arguments],
        env=variables(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            is_ready(process)
            with ThreadPoolExecutor() as readers:
                outputs = [
                    readers.submit(pipe.read)
                    for pipe in (process.stdout, process.stderr)
                    if pipe is not None
                ]
                # Python drops an interrupt that arrives in a callback of its import system, so
                # the test, like a user, presses again.
                for _ in range(10):
                    process.send_signal(signal.SIGINT)
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(60)
                        break
                else:
                    process.kill()
        finally:
            process.kill()
    out, err = (output.result() for output in outputs)
    return process.returncode, out, err


def has_file(path: Path) -> Callable[[subprocess.Popen[str]], None]:
    """Return a function that waits for a file."""

    def wait(process: subprocess.Popen[str]) -> None:
        for _ in range(600):
            if path.exists():
                break
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.3)  # so that the work begins

    return wait


@pytest.mark.parametrize(
    "arguments",
    [
        [
            "bench",
            "all",
            *SMALL_SHAPE,
            "--iters",
            "3",
            "--warmup",
            "0",
            "--sweep",
            f"bytes={','.join(['8KiB'] * 1000)}",
        ],
        ["bench", "--quick", "--shape", "32x32", "--bytes", "32KiB"],
    ],
    ids=["bench", "quick"],
)
def test_ctrl_c_leaves_whole_lines_of_json(arguments: list[str]) -> None:
    first = ""

    def has_row(process: subprocess.Popen[str]) -> None:
        nonlocal first
        assert process.stdout is not None
        first = process.stdout.readline()

    code, rest, err = interrupt([*arguments, "--json", "-"], has_row)
    assert (code, err) == (ExitCode.INTERRUPTED, "pidcomm: interrupted\n")
    assert rest == "" or rest.endswith("\n")
    assert all("collective" in json.loads(line) for line in (first + rest).splitlines())


def test_ctrl_c_leaves_whole_lines_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("rows of an earlier run\n")

    def has_rows(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        assert any(line.startswith("alltoall") for line in iter(process.stdout.readline, ""))

    sweep = f"bytes={','.join(['8KiB'] * 1000)}"
    command = [
        "bench",
        "all",
        *SMALL_SHAPE,
        "--iters",
        "1",
        "--warmup",
        "0",
        "--sweep",
        sweep,
        "--json",
        str(path),
    ]
    code, _, err = interrupt(command, has_rows)
    assert (code, err) == (ExitCode.INTERRUPTED, "pidcomm: interrupted\n")
    text = path.read_text()
    assert text.endswith("}\n")
    assert all("collective" in json.loads(line) for line in text.splitlines())


@pytest.mark.parametrize(
    "command",
    [["check", "--cases", "1000000"], ["bench", *QUICK, "--iters", "1000000"]],
    ids=["check", "bench"],
)
def test_ctrl_c_before_the_first_result_leaves_no_file(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    code, _, err = interrupt([*command, "--json", str(path)], has_file(path))
    assert (code, err) == (ExitCode.INTERRUPTED, "pidcomm: interrupted\n")
    assert not path.exists()


def test_ctrl_c_of_the_doctor_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    path = tmp_path / "doctor.jsonl"

    def interrupt_both(process: subprocess.Popen[str]) -> None:
        has_file(path)(process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does

    with subprocess.Popen(
        [*PIDCOMM, "doctor", "--ranks", "1", "--json", str(path)],
        env=variables(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        interrupt_both(process)
        _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (ExitCode.INTERRUPTED, "pidcomm: interrupted\n")
    assert [*tmp_path.iterdir()] == [path]
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_ctrl_c_frees_the_pes(pes: pidcomm.PeSet, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pidcomm.cli.bench.measure_rows", interrupt)
    monkeypatch.setattr("pidcomm.bench.platform.configure", lambda **_: None)
    result = CliRunner().invoke(app, ["bench", *QUICK])
    assert result.exit_code == ExitCode.INTERRUPTED
    assert result.output.endswith("pidcomm: interrupted\n")
    pidcomm.allocate(ranks=dpuemu.machine().ranks - pes.ranks).free()


def test_ctrl_c_is_reported_even_if_the_cleanup_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class Checker:
        def __enter__(self) -> Checker:
            return self

        def failure(self, _: Any) -> None:
            raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None:
            raise pidcomm.Error("some rank is allocated")

    monkeypatch.setattr("pidcomm.cli.check.Checker", Checker)
    result = CliRunner().invoke(app, ["check"])
    assert (result.exit_code, result.output) == (ExitCode.INTERRUPTED, "pidcomm: interrupted\n")


def test_ctrl_c_in_a_command_of_a_group_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pidcomm.bench.launcher.run", interrupt)
    result = CliRunner().invoke(app, ["hosts", "run", "--", "true"])
    assert (result.exit_code, result.output) == (ExitCode.INTERRUPTED, "pidcomm: interrupted\n")
