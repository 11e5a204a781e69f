"""The command line at a terminal: progress, colour, Ctrl-C, internal errors."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pyte
import pytest
from command_line import PIDCOMM, QUICK, SMALL_SHAPE, variables
from typer.testing import CliRunner

import pidcomm.bench
import pidcomm_studies.cli
from dpuemu.run import parse_launches
from pidcomm.bench.columns import Column, table
from pidcomm.bench.results import Results
from pidcomm.cli import app, main
from pidcomm.cli.app import ExitCode

COLOUR = "\x1b["
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal that collects its output."""

    def __init__(self, columns: int = 160) -> None:
        self._master, self.file = pty.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self._parts: list[bytes] = []
        # A terminal that is not read stops its writers.
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # the last writer has closed it
            while part := os.read(self._master, 1 << 16):
                self._parts.append(part)

    def text(self) -> str:
        """Return the whole output after all writers have ended."""
        os.close(self.file)
        self._reader.join()
        os.close(self._master)
        return b"".join(self._parts).decode()


def on_terminal(stream: str, *arguments: str, **wanted: str) -> tuple[int, str, str]:
    """Run with one of the two streams at a terminal; return exit code, the terminal's output,
    and the other stream.
    """
    terminal = Terminal()
    streams: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        stream: terminal.file,
    }
    with subprocess.Popen(
        [*PIDCOMM, *arguments], env=variables(**wanted), text=True, **streams
    ) as process:
        out, err = process.communicate(timeout=600)
    return process.returncode, terminal.text(), err if stream == "stdout" else out


@pytest.mark.parametrize(
    ("arguments", "phases"),
    [
        (
            ["bench", *QUICK, "--iters", "1"],
            ["filling memory", "allocating 64 PEs", "alltoall", "broadcast"],
        ),
        (["check", "--cases", "20"], ["allocating PEs", "cases", "/20"]),
    ],
)
def test_progress_is_for_terminals(arguments: list[str], phases: list[str]) -> None:
    code, shown, out = on_terminal("stderr", *arguments)
    assert code == ExitCode.RIGHT
    assert all(phase in shown for phase in phases)
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is visible again
    assert out != ""
    assert COLOUR not in out
    for wanted in ({}, {"FORCE_COLOR": "1"}):
        command = [*PIDCOMM, *arguments]
        result = subprocess.run(
            command,
            env=variables(**wanted),
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        assert result.stderr == ""


@pytest.mark.parametrize(
    ("is_terminal", "wanted", "is_coloured"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_terminals_unless_a_variable_decides(
    is_terminal: bool, wanted: dict[str, str], is_coloured: bool
) -> None:
    arguments = ["check", "--cases", "1"]
    if is_terminal:
        code, text, _ = on_terminal("stdout", *arguments, **wanted)
    else:
        result = subprocess.run(
            [*PIDCOMM, *arguments],
            env=variables(**wanted),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        code, text = result.returncode, result.stdout
    assert code == ExitCode.RIGHT
    assert "1 passed, 0 failed" in text
    assert (COLOUR in text) == is_coloured


TABLES = {
    "bench --shape 8x8 --bytes 8KiB --iters 1": (
        "collective technique t_p50_us pe_us algbw bus limit% speed-up wrong"
    ),
    "bench --ablation alltoall --shape 8x8 --bytes 8KiB --iters 1": (
        "collective technique host_us step bus DT PE_us"
    ),
    "model predict allreduce --wide": "technique total 95% call",
    "model predict allreduce": "technique total 95% most in of it GB/s needs",
    "model worth alltoall": "technique collective gain PE programs iteration gain",
    "model machines": "machine pes constants title",
    "model machines isca24": "constant value kind meaning",
    "model advise alltoall --pes 64 --top 3": "shape mask technique total GB/s alike reason",
    "model scale pes alltoall --up-to 256": (
        "collective technique value time_us algbw speed-up source"
    ),
    "model validate --published": "point what published modelled error",
    "reproduce pidcomm/fig16 --no-measure": (
        "collective, shape, bytes/PE baseline pr pr+im pr+im+cm tile"
    ),
    "reproduce pidcomm/fig14 --pes 64 --bytes 8KiB --iters 1": (
        "statistic published here source here/publ. modelled error"
    ),
    "app bfs --quick --pes 8 --iters 1": (
        "PEs technique kernel_us collectives_us total_us gain over CPU stream wrong"
    ),
    "reproduce": "figure title",
    "bench allreduce --shape 8x8 --bytes 8KiB --hosts 2 --iters 1": (
        "collective technique mask t_p50_us passes_us exchange_us algbw wrong"
    ),
    "hosts osu --collective allgather --transport mpi --sizes 64KiB --iters 2": (
        "size avg_us min_us max_us iterations over_mpi copied wrong"
    ),
    "info": "collectives: alltoall, reduce_scatter,",
    "plan alltoall": "alltoall of int32, technique tile,",
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", TABLES)
def test_tables_fit_the_terminal_and_progress_leaves_no_trace(command: str, width: int) -> None:
    screen = pyte.HistoryScreen(width, 400, history=0)
    terminal = Terminal(width)
    environment = {name: value for name, value in variables().items() if name != "COLUMNS"}
    streams: Any = dict.fromkeys(("stdin", "stdout", "stderr"), terminal.file)
    code = subprocess.run(
        [*PIDCOMM, *command.split()], env=environment, check=False, timeout=600, **streams
    ).returncode
    shown = terminal.text()
    pyte.Stream(screen).feed(shown)
    lines = [line.rstrip() for line in screen.display]
    assert code == ExitCode.RIGHT, lines
    text = "\n".join(lines).rstrip()
    assert TABLES[command] in re.sub(" +", " ", text)
    assert "…" not in text  # nothing is cut
    assert "━" not in text  # no progress bar
    whole = ANSI.sub("", shown.replace("\r\n", "\n")).split("\n")
    # The terminal breaks no line.
    assert all(len(line) <= width for line in whole if "\r" not in line)


def test_no_table_is_cut_and_its_parts_repeat_the_first_column(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "a wrapped column, whose cells are long"
    wide = table("times", ["technique", *(f">phase {i}" for i in range(9)), "~needs"])
    cells = [
        [f"pr+im+cm {row}", *(f"{row}{i} milliseconds" for i in range(9)), words] for row in "xy"
    ]
    for row in cells:
        wide.add_row(*row)
    for width in (80, 40):
        monkeypatch.setattr("pidcomm.bench.results.WIDE", width)
        Results(None).text(wide)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        shown = re.sub(r"\s+", " ", "\n".join(lines))
        assert all(cell in shown for row in cells for cell in row[:-1])
        assert set(words.split()) <= set(shown.split())
        titles = [line for line in lines if line.startswith("technique")]
        assert len(titles) > 1
        assert all(shown.count(row[0]) == len(titles) for row in cells)


def tables_of_lines() -> dict[str, tuple[Column, ...]]:
    """Return the columns of all tables of lines, by module and name."""
    modules = [
        import_module(found.name)
        for package in (pidcomm.bench, pidcomm.cli, pidcomm_studies.cli)
        for found in walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, tuple) and value and isinstance(value[0], Column)
    }


@pytest.mark.parametrize("name", tables_of_lines())
def test_tables_of_lines_fit_80_characters(name: str) -> None:
    columns = [column for column in tables_of_lines()[name] if not column.is_wide]
    widths = [int(re.sub(r"\D", "", column.form.split(":")[1].split(".")[0])) for column in columns]
    assert sum(widths) + len(widths) - 1 <= 80
    assert all(len(column.title) <= width for column, width in zip(columns, widths, strict=True))


def test_a_truncated_list_of_launches_is_empty() -> None:
    assert parse_launches('{"pes": 6') == []


@pytest.mark.parametrize("debug", [None, "1"])
def test_an_internal_error_prints_no_traceback(
    debug: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fall_over(*_: Any) -> None:
        raise ZeroDivisionError("seven by zero")

    monkeypatch.setattr("pidcomm.cli.plan.explain", fall_over)
    monkeypatch.setattr("sys.argv", ["pidcomm", "plan", "alltoall"])
    monkeypatch.delenv("PIDCOMM_DEBUG", raising=False)
    if debug is not None:
        monkeypatch.setenv("PIDCOMM_DEBUG", debug)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == ExitCode.INTERNAL
    out, err = capsys.readouterr()
    assert out == ""
    assert "pidcomm: internal error: ZeroDivisionError: seven by zero\n" in err
    assert "please report this" in err
    assert ("fall_over" in err) == (debug is not None)


def test_lack_of_memory_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(*_: Any) -> None:
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("pidcomm.cli.plan.explain", run_out)
    result = CliRunner().invoke(app, ["plan", "alltoall"])
    assert (result.exit_code, result.output) == (
        ExitCode.USAGE,
        "pidcomm: Unable to allocate 9 TiB\n",
    )


@pytest.mark.parametrize("target", ["-", "rows.jsonl"])
def test_a_closed_output_pipe_ends_a_command_quietly(target: str, tmp_path: Path) -> None:
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
        target,
    ]
    with subprocess.Popen(
        [*PIDCOMM, *command],
        env=variables(),
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        assert (process.wait(timeout=600), err) == (ExitCode.BROKEN_PIPE, "")


DPUEMU = [sys.executable, "-m", "dpuemu"]


@pytest.mark.parametrize(
    "command",
    [
        *(
            [*PIDCOMM, *words]
            for words in (["info"], ["info", "--json", "-"], ["--help"], ["--version"])
        ),
        *(
            [*DPUEMU, *words]
            for words in (["info"], ["env", "--json", "-"], ["--help"], ["--version"])
        ),
    ],
    ids=lambda command: f"{command[1]} {' '.join(command[3:])}",
)
def test_a_closed_output_ends_a_command_quietly(command: list[str]) -> None:
    how: dict[str, Any] = {
        "env": variables(PYTHONUNBUFFERED=""),
        "text": True,
        "check": False,
        "timeout": 600,
    }
    reader, writer = os.pipe()
    os.close(reader)
    pipe = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, **how)
    os.close(writer)
    assert (pipe.returncode, pipe.stderr) == (ExitCode.BROKEN_PIPE, "")
    for closed, code in ((1, ExitCode.BROKEN_PIPE), (2, ExitCode.RIGHT)):
        streams: dict[str, Any] = {
            name: subprocess.PIPE for name, file in (("stdout", 1), ("stderr", 2)) if file != closed
        }
        result = subprocess.run(command, preexec_fn=partial(os.close, closed), **streams, **how)
        assert (result.returncode, result.stderr or "") == (code, "")


def test_output_that_cannot_be_written_is_an_error_of_one_line() -> None:
    for options in ([], ["--json", "-"]):
        with Path("/dev/full").open("w") as full:
            result = subprocess.run(
                [*PIDCOMM, "info", *options],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=600,
            )
        assert (result.returncode, result.stderr) == (
            ExitCode.USAGE,
            "pidcomm: [Errno 28] No space left on device\n",
        )


@pytest.mark.parametrize(
    "command",
    [
        ["info"],
        ["plan", "alltoall"],
        ["check", "--cases", "1000000"],
        ["bench", *QUICK, "--iters", "1000000"],
        ["doctor"],
    ],
    ids=lambda command: command[0],
)
def test_an_unwritable_json_file_is_an_error_before_the_work(
    command: list[str], tmp_path: Path
) -> None:
    for target, reason in (
        (tmp_path / "no" / "file", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        options = [command[0], "--json", str(target), *command[1:]]
        result = subprocess.run(
            [*PIDCOMM, *options], capture_output=True, text=True, check=False, timeout=600
        )
        assert (result.returncode, result.stdout) == (ExitCode.USAGE, "")
        assert f"cannot write {target}: {reason}\n" in result.stderr


def test_a_file_keeps_its_json_until_new_json_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"

    def plan(*options: str) -> int:
        return (
            CliRunner().invoke(app, ["plan", "alltoall", "--json", str(path), *options]).exit_code
        )

    assert plan("--bytes", "100") == ExitCode.USAGE
    assert not path.exists()
    assert plan() == ExitCode.RIGHT
    before = path.read_text()
    assert plan("--bytes", "100") == ExitCode.USAGE
    assert path.read_text() == before
    assert plan("--bytes", "64KiB") == ExitCode.RIGHT
    assert json.loads(path.read_text())["bytes_per_pe"] == 65536
    assert (
        CliRunner().invoke(app, ["plan", "alltoall", "--json", "/dev/null"]).exit_code
        == ExitCode.RIGHT
    )
