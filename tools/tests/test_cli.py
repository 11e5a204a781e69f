"""The command line."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import commands, install, run
from typer.testing import CliRunner

import pidcomm
from pidcomm import installation
from pidcomm.bench import check as checking
from pidcomm.bench.check_movements import MOVEMENTS
from pidcomm.cli import app
from pidcomm.cli.app import ExitCode
from pidcomm.tables import SCANS

GOLDEN = Path(__file__).parents[1] / "golden"


def test_help_has_examples_and_exit_codes() -> None:
    runner = CliRunner()
    text = runner.invoke(app, ["--help"]).output
    for code in ExitCode:
        assert re.search(rf"^  {code.value} +{code.meaning}$", text, re.MULTILINE)
    for name, command in commands().items():
        assert len(command.examples) > 0
        assert max(map(len, command.examples)) <= 78  # the help indents them by two columns
        help_text = runner.invoke(app, [*name.split(), "--help"]).output
        assert "Examples:\n" + "".join(f"  {line}\n" for line in command.examples) in help_text


@pytest.mark.parametrize("name", commands())
def test_every_help_fits_a_screen_of_50_lines(name: str) -> None:
    text = CliRunner().invoke(app, [*name.split(), "--help"], terminal_width=80).output
    assert len(text.splitlines()) <= 50


def test_info_lists_the_version_and_the_names_of_the_tables() -> None:
    result = run("info")
    assert result.returncode == 0
    for name in (
        pidcomm.__version__,
        pidcomm.DEFAULT_ISA,
        *pidcomm.COLLECTIVES,
        *pidcomm.TYPES,
        *pidcomm.TECHNIQUES,
    ):
        assert name in result.stdout


@pytest.fixture(scope="module")
def default_threads() -> int:
    """The number of threads without OMP_NUM_THREADS."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OMP_NUM_THREADS", raising=False)
        facts = json.loads(run("info", "--json", "-").stdout)
    return int(facts["default_threads"])


@pytest.mark.parametrize(
    ("text", "threads"), [("4,2", 4), ("abc", None), ("-5", None), ("0", None), ("", None)]
)
def test_info_reads_omp_num_threads_as_the_library_does(
    text: str, threads: int | None, default_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    facts = json.loads(run("info", "--json", "-").stdout)
    is_ignored = bool(text) and threads is None
    assert facts["default_threads"] == (threads or default_threads)
    assert facts["ignored_omp_num_threads"] == (text if is_ignored else None)
    assert (
        "is ignored: it must begin with a whole number from 1" in run("info").stdout
    ) is is_ignored


@pytest.mark.parametrize("name", ["alltoall_32x32", "reduce_6x5x2"])
def test_plan_json_matches_the_golden_file(name: str) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    result = CliRunner().invoke(app, ["plan", *golden["arguments"], "--json", "-"])
    assert result.exit_code == 0
    assert json.loads(result.output) == golden["plan"]


def test_plan_in_words_has_a_line_per_loop() -> None:
    arguments = ["plan", "alltoall", "--shape", "32x32", "--mask", "10", "--bytes", "1MiB"]
    words = CliRunner().invoke(app, arguments).output
    loops = json.loads(CliRunner().invoke(app, [*arguments, "--json", "-"]).output)["sweeps"][0]
    for kind in ("outer", "ordered", "lockstep"):
        assert words.count(f"  {kind} ") == len(loops[kind])
    assert "32 groups of 32 PEs" in words
    expanded = CliRunner().invoke(app, [*arguments, "--expand"]).output
    steps = 1
    for kind in ("outer", "ordered", "lockstep"):
        for loop in loops[kind]:
            steps *= loop["count"]
    assert expanded.count("  step ") == steps


@pytest.mark.parametrize(
    "arguments",
    [
        ["allreduce", "--shape", "6x4"],
        ["reduce_scatter", "--technique", "conventional"],
        ["alltoall", "--technique", "pr"],
        ["allreduce", "--technique", "pr+im", "--expand"],
        ["reduce", "--technique", "pr+im+cm", "--dtype", "int8"],
        ["scatter", "--mask", "01", "--dtype", "int8"],
        ["broadcast"],
        ["reduce", "--op", "xor"],
        ["allgather", "--dst", "0"],
        ["exscan", "--op", "max"],
        ["shift", "--shape", "3x5", "--expand"],
    ],
)
def test_every_plan_has_a_description_in_words(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["plan", *arguments, "--bytes", "12KiB"])
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) >= 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "alltoall", "--bytes", "100"], "divisible by 32 * 8"),
        (["plan", "alltonone"], "collective 'alltonone' is unknown"),
        (["plan", "alltoall", "--bytes", "1XB"], "size '1XB'"),
        (["plan", "alltoall", "--shape", "8y8"], "shape '8y8'"),
        (["bench", "nothing"], "collective 'nothing' is unknown"),
        (["bench", "--technique", "magic"], "technique 'magic' is unknown"),
        (["bench", "reduce", "--dtype", "float32", "--op", "xor"], "xor"),
        (["bench", "--isa", "neon"], "ISA 'neon'"),
        (["bench", "--shape", "4096", "--mask", "1", "--bytes", "32KiB"], "allocating 4096 PEs"),
        (["bench", "--quick", "--mask", "101"], "mask"),
        (["bench", "--bytes", "0"], "0 bytes per PE cannot be timed"),
        (["bench", "alltoall", "--bytes", "8"], "alltoall needs bytes (8) divisible by"),
        (["bench", "--shape", "8x8,8y"], "shape '8y'"),
        (["bench", "--shape", "8x8,8", "--mask", "10,01"], "the 1 axes of 8"),
        (["bench", "--mask", "10,010"], "mask '010' is for 3 axes"),
        (["bench", "--mask", "10,1a"], "'1a'"),
        (["bench", "--dtype", "int32,int3"], "dtype 'int3' is unknown"),
        (["bench", "reduce", "--dtype", "all", "--op", "and"], "float32"),
        (["bench", "--sweep", "rows=1..2"], "sweep 'rows=1..2' is not a sweep; write it as bytes="),
        (["bench", "--sweep", "bytes"], "sweep 'bytes' is not a sweep"),
        (
            ["bench", "--sweep", "bytes=8,64", "--bytes", "8KiB"],
            "--bytes 8KiB does not apply: --sweep gives the bytes per PE",
        ),
        (["bench", "--sweep", "bytes=1..x"], "size 'x'"),
        (["bench", "--sweep", "bytes=0,8"], "0 bytes per PE cannot be timed"),
        (
            ["bench", "--sweep", "bytes=96..1KiB"],
            "'bytes=96..1KiB' does not run from a power of two",
        ),
        (["bench", "--sweep", "pes=128..64"], "'pes=128..64' does not run from a power of two up"),
        (["bench", "--sweep", "pes=64,96"], "96 PEs are not a power of two"),
        (["bench", "--sweep", "pes=0"], "count '0'"),
        (
            ["bench", "--sweep", "pes=64", "--sweep", "pes=128"],
            "sweep 'pes=128' is the second sweep of pes",
        ),
        (["bench", "--sweep", "pes=2048..4096", "--bytes", "32KiB"], "allocating 4096 PEs"),
        (
            ["bench", "alltoall", "--op", "foo"],
            "--op foo does not apply: alltoall has no operator; --op is for reduce",
        ),
        (["plan", "alltoall", "--op", "max"], "--op max does not apply: alltoall has no operator"),
        (["plan", "shift", "--op", "max"], "--op max does not apply: shift moves bytes"),
        (["model", "predict", "gather", "--op", "max"], "--op max does not apply"),
        (["model", "advise", "gather", "--op", "max"], "--op max does not apply"),
        (
            ["bench", "--sdk-flush", "stock"],
            "--sdk-flush stock does not apply: coherence none flushes nothing",
        ),
        (["bench", "--quick", "--iters", "5"], "--iters 5 does not apply: --quick sets it"),
        (["bench", "--quick", "--no-limit"], "--no-limit does not apply: --quick sets it"),
        (
            ["bench", "--ablation", "--technique", "tile"],
            "--technique tile does not apply: --ablation sets it",
        ),
        (["bench", "--load-us", "1"], "--load-us 1.0 does not apply: it is for --ablation"),
        (
            ["check", "--cases", "9", "--case", "1"],
            "--cases 9 does not apply: --case 1 runs one case",
        ),
        (
            ["model", "scale", "pes", "--warmup", "1"],
            "--warmup 1 does not apply: it is for --measure",
        ),
        (
            ["model", "validate", "--published", "--choices"],
            "--choices does not apply: with --published",
        ),
        (
            ["reproduce", "pidcomm/fig14", "--no-measure", "--pes", "64"],
            "--pes 64 does not apply: with --no-measure",
        ),
        (["check", "--cases", "many"], "--cases 'many' is not a whole number of at least 1 (see"),
        (["hosts", "plan", "gather", "--link", "x"], "--link 'x' is not a number (see pidcomm ho"),
        (["model", "worth", "gather", "--kernel-us", "-1"], "'-1' is not a number of at least 0"),
        (["nonsense"], "command 'nonsense' is unknown; use info, "),
        (["bnech"], "did you mean 'bench'?"),
        (["model", "machine"], "did you mean 'machines'?"),
        (["reproduce", "fig23b"], "did you mean 'pidcomm/fig23b'?"),
        (["plan", "alltoall", "--technique", "magic"], "tree, baseline, auto"),
        (["bench", "--nothing"], "option --nothing is unknown (see pidcomm bench --help)"),
        (["bench", "--ite", "3"], "--ite is unknown; did you mean '--iters'? (see pidcomm bench"),
        (["bench", "--ite=3"], "--ite is unknown; did you mean '--iters'? (see pidcomm bench"),
        (["plan"], "argument COLLECTIVE is missing (see pidcomm plan --help)"),
        (["draw", "gather"], "--out is missing (see pidcomm draw --help)"),
        (["bench", "--shape"], "--shape needs a value (see pidcomm bench --help)"),
        (["bench", "--quick=3"], "--quick takes no value (see pidcomm bench --help)"),
        (["info", "3"], "the command has no argument for '3' (see pidcomm info --help)"),
        (["hosts", "--quick=3"], "option --quick is unknown (see pidcomm hosts --help)"),
        (["--version=3"], "--version takes no value (see pidcomm --help)"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, arguments, prog_name="pidcomm")
    assert result.exit_code == 2, result
    assert message in result.stderr
    assert result.stderr.startswith("pidcomm: ")
    assert result.stderr.count("\n") == 1


def test_no_command_or_script_takes_the_begin_of_an_option_for_the_option() -> None:
    root = Path(__file__).parents[2]
    files = [
        *root.glob("tools/*.py"),
        *(
            file
            for name in ("dpuemu", "pidcomm", "studies")
            for file in root.glob(f"{name}/**/*.py")
        ),
    ]
    made = [text.split("ArgumentParser(")[1:] for text in map(Path.read_text, files)]
    parsers = [call for calls in made for call in calls]
    assert len(parsers) >= 5
    assert not [call for call in parsers if "allow_abbrev=False" not in call[:200]]


@pytest.mark.parametrize(
    ("command", "options", "content"),
    [
        ("app bfs", ("--json", "--plot"), None),
        ("model scale", ("--json", "--plot"), None),
        ("reproduce pidcomm/fig16 --no-measure", ("--plot", "--json"), None),
        ("app bfs", ("--data", "--json"), "0 1\n"),
    ],
)
def test_an_output_file_is_no_other_file_of_the_command(
    command: str, options: tuple[str, str], content: str | None, tmp_path: Path
) -> None:
    path, same = tmp_path / "rows.svg", tmp_path / "sub" / ".." / "rows.svg"
    (tmp_path / "sub").mkdir()
    if content is not None:
        path.write_text(content)
    result = run(*command.split(), options[0], str(path), options[1], str(same))
    assert result.returncode == 2, result
    assert re.search(rf"{options[0]} and {options[1]}|{options[1]} and {options[0]}", result.stderr)
    assert "name the same file" in result.stderr
    assert (path.read_text() if path.exists() else None) == content


def test_a_quick_bench_checks_all_collectives() -> None:
    result = run("bench", "--quick", "--shape", "8x8")
    assert result.returncode == 0, result
    assert "64 KiB per PE" in result.stdout
    for name in pidcomm.COLLECTIVES:
        assert name in result.stdout
    assert "0 wrong" in result.stdout


def test_check_passes() -> None:
    result = run("check", "--cases", "50", "--seed", "3")
    assert result.returncode == 0, result
    assert result.stdout.splitlines()[-1] == "50 passed, 0 failed"


def test_cases_are_reproducible_and_differ() -> None:
    texts = [str(checking.make_case(5, number)) for number in range(300)]
    assert texts == [str(checking.make_case(5, number)) for number in range(300)]
    assert len(set(texts)) == 300
    for names in (
        pidcomm.COLLECTIVES,
        SCANS,
        MOVEMENTS,
        map(str, checking.OPERATORS),
        pidcomm.TYPES,
        pidcomm.OPS,
        pidcomm.TECHNIQUES,
        ["audit", "in place", "exact set", "non-blocking"],
    ):
        assert all(any(name in text for text in texts) for name in names)


# The library's carry_out with a bug, which the checker must find.
def _sabotage(name: str) -> Any:
    original = pidcomm.Hypercube.carry_out

    def carry_out(self: pidcomm.Hypercube, collective: str, mask: str, **keywords: Any) -> Any:
        is_transfer = keywords["options"].get("technique") == "conventional"
        if not is_transfer and name == "wrong operator" and keywords.get("op") == "sum":
            keywords["op"] = "prod"
        if not is_transfer and name == "wrong mask":
            mask = mask[::-1]
        if not is_transfer and name == "writes past the end" and collective == "alltoall":
            keywords["bytes"] += 8 * self.groups(mask).group_pes
        if not is_transfer and name == "does nothing":
            keywords["bytes"] = 0
            keywords["out"], keywords["host"] = (
                None,
                None if keywords["host"] is None else keywords["host"][:, :0],
            )
        return original(self, collective, mask, **keywords)

    return carry_out


@pytest.mark.parametrize(
    "name", ["wrong operator", "wrong mask", "writes past the end", "does nothing"]
)
def test_check_finds_a_broken_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "Checker", _CheckerOfThisMachine)
    monkeypatch.setattr(pidcomm.Hypercube, "carry_out", _sabotage(name))
    with _CheckerOfThisMachine() as checker:
        failures = [checker.failure(checking.make_case(1, number)) for number in range(150)]
    assert sum(failure is not None for failure in failures) >= 3


def test_check_finds_a_broken_movement(monkeypatch: pytest.MonkeyPatch) -> None:
    original = pidcomm.Hypercube._send

    def send_less(self: pidcomm.Hypercube, messages: Any, *others: Any) -> Any:
        return original(self, messages[1:], *others)

    monkeypatch.setattr(pidcomm.Hypercube, "_send", send_less)
    with _CheckerOfThisMachine() as checker:
        failures = [checker.failure(checking.make_case(1, number)) for number in range(60)]
    assert sum("of the span" in str(failure) for failure in failures) >= 3


class _CheckerOfThisMachine(checking.Checker):
    """The checker on the current machine, because other tests hold PEs of it."""

    def __enter__(self) -> checking.Checker:
        self._pool = pidcomm.allocate(ranks=checking.POOL_RANKS)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.free()


@pytest.mark.parametrize("wrong", ["--rank 2", "--ranks x", "--minutes", "all"])
def test_the_program_of_the_doctor_names_the_wrong_word(wrong: str) -> None:
    program = installation.library_folder() / "pidcomm-doctor"
    result = subprocess.run([program, *wrong.split()], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (ExitCode.USAGE, "")
    option, _, value = wrong.partition(" ")
    words = f"{option} {value!r}" if value else option
    assert result.stderr == f"pidcomm-doctor: {words} is wrong (see pidcomm-doctor --help)\n"


def test_doctor_checks_the_emulated_machine_and_passes_the_temporary_folder_to_no_shell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "a'; touch ran; '$(touch ran)"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("DPUEMU_DISABLED", "0.2.5")
    result = run("doctor", "--quick", "--ranks", "2", "--json", "-")
    assert (result.returncode, result.stderr) == (0, "")
    header, *items, sums = [json.loads(line) for line in result.stdout.splitlines()]
    assert header["dimms"].startswith("EMULATED")
    assert {item["result"] for item in items} == {"ok"}
    assert (
        "127 PEs, 120 of them in whole entangled groups; disabled: rank 0 chip 2 bank 5"
        in items[0]["detail"]
    )
    assert {
        "stale lines",
        "launches",
        "alltoall",
        "speed of broadcast",
        "technique conventional",
        "technique tree",
    } <= {item["item"] for item in items}
    assert (sums["passed"], sums["failed"], sums["skipped"]) == (len(items), 0, 0)
    assert list(tmp_path.iterdir()) == [folder]
    assert list(folder.iterdir()) == []


def test_doctor_fails_with_a_sentence_and_refuses_wrong_options() -> None:
    result = run("doctor", "--quick", "--ranks", "41")
    assert result.returncode == 1
    assert "FAILED: cannot allocate 41 ranks" in result.stdout
    assert run("doctor", "--quick", "--bogus").returncode == 2


def test_the_commands_of_tests_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    programs, hostile = install(tmp_path / "programs"), tmp_path / "hostile"
    hostile.mkdir()
    for name in ("json", "random", "runpy", "signal", "numpy"):
        (hostile / f"{name}.py").write_text(f"open('imported_{name}', 'w')\nraise ImportError\n")
    for words in (["dpuemu", "env"], ["pidcomm", "info"]):
        command = [str(programs / words[0]), *words[1:]]
        result = subprocess.run(command, cwd=hostile, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
    assert not list(hostile.glob("imported_*"))
