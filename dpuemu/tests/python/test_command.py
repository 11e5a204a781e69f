"""The command dpuemu, run as a process.

One file, because most tests run host programs that one fixture builds for all of them.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import dpuemu
from dpuemu import cli, tools

DPUEMU = [sys.executable, "-m", "dpuemu"]
EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*arguments: str) -> Any:
    """Run the command."""
    return subprocess.run([*DPUEMU, *arguments], capture_output=True, text=True, check=False)


def test_info_prints_machine_and_tools() -> None:
    result = run("info", "--json", "-")
    facts = json.loads(result.stdout)
    assert (result.returncode, facts["version"]) == (0, dpuemu.__version__)
    assert facts["machine"]["pes"] == 64 * facts["machine"]["ranks"]
    assert Path(facts["sdk"], "bin", "dpu-upmem-dpurte-clang").is_file()
    text = run("info").stdout
    assert all(word in text for word in (facts["version"], "64 MiB", facts["sdk"]))


def test_wrong_usage_and_an_unwritable_file_exit_with_2(tmp_path: Path) -> None:
    for arguments in ((), ("bogus",), ("run", "--bogus"), ("env", "--json", str(tmp_path))):
        result = run(*arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr


HOST = """
#include <dpu.h>
int main(int argc, char **argv) {
  struct dpu_set_t set;
  uint32_t pes;
  DPU_ASSERT(dpu_alloc(DPU_ALLOCATE_ALL, NULL, &set));
  DPU_ASSERT(dpu_get_nr_dpus(set, &pes));
  DPU_ASSERT(dpu_load(set, argv[1], NULL));
  for (int i = 0; i < argc - 1; i++) DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  printf("%u PEs\\n", pes);
  return 7;
}
"""

PE = """
#include <mram.h>
__mram_noinit uint8_t bytes[80];
int main(void) {
  __dma_aligned uint8_t buffer[80];
  mram_read(bytes + 4, buffer, 64);  // the hardware reads from `bytes`
  mram_write(buffer, bytes, 32);
  return 0;
}
"""


@pytest.fixture(scope="module")
def host_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host program and a PE program, compiled as a user compiles them."""
    folder = tmp_path_factory.mktemp("host program")
    (folder / "host.c").write_text(HOST)
    (folder / "pe.c").write_text(PE)
    build = (
        "cc -o host host.c $(dpu-pkg-config --cflags --libs dpu) && dpu-upmem-dpurte-clang -O2 -o"
        " pe pe.c"
    )
    result = run("run", "--", "sh", "-c", f"cd '{folder}' && {build}")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    return folder


def test_run_passes_on_output_and_exit_code(host_folder: Path) -> None:
    result = run("run", "--ranks", "2", str(host_folder / "host"), str(host_folder / "pe"))
    assert (result.returncode, result.stdout) == (7, "128 PEs\n")
    assert result.stderr.startswith("dpuemu: 128 addresses or sizes of DMA were rounded")


def test_run_names_the_signal_that_ended_the_program() -> None:
    for number, name in (
        (signal.SIGTERM, "SIGTERM"),
        (signal.SIGSEGV, "SIGSEGV"),
        (40, "signal 40"),
    ):
        program = f"import os; os.kill(os.getpid(), {int(number)})"
        result = run("run", "--", sys.executable, "-c", program)
        words = f"dpuemu: {name} ended {sys.executable}; the exit code is {128 + number}\n"
        assert (result.returncode, result.stdout, result.stderr) == (128 + number, "", words)
    assert run("run", "--", sys.executable, "-c", "raise SystemExit(139)").stderr == ""


COPY = """
#include <dpu.h>
int main(void) {
  struct dpu_set_t set;
  uint8_t bytes[16] = {0};
  DPU_ASSERT(dpu_alloc(1, NULL, &set));
  DPU_ASSERT(dpu_copy_to(set, "__sys_used_mram_end", 8, bytes, 12));
  DPU_ASSERT(dpu_copy_to(set, "__sys_used_mram_end", 4, bytes, 8));
  DPU_ASSERT(dpu_copy_to(set, "__sys_used_mram_end", 8, bytes, 8));
  puts("end");
}
"""


def test_a_line_at_the_end_reports_copies_of_incomplete_words(tmp_path: Path) -> None:
    (tmp_path / "copy.c").write_text(COPY)
    build = f"cd '{tmp_path}' && cc -o copy copy.c $(dpu-pkg-config --cflags --libs dpu)"
    assert run("run", "--", "sh", "-c", build).returncode == 0
    result = run("run", "--", str(tmp_path / "copy"))
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (0, "end\n", 1)
    assert "is not a multiple of 8: 2 (the first: offset 8, length 12)" in result.stderr
    result = run("run", "--strict", "--", str(tmp_path / "copy"))
    assert (result.returncode != 0, result.stdout) == (True, "")
    assert "MRAM offset 8 and length 12 must be multiples of 8" in result.stderr


ALLOCATE = """
#include <dpu.h>
int main(void) {
  struct dpu_set_t set;
  DPU_ASSERT(dpu_alloc(65, NULL, &set));
}
"""


def test_run_names_refused_values(host_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "allocate.c").write_text(ALLOCATE)
    build = f"cd '{tmp_path}' && cc -o allocate allocate.c $(dpu-pkg-config --cflags --libs dpu)"
    assert run("run", "--", "sh", "-c", build).returncode == 0
    result = run("run", "--ranks", "1", "--", str(tmp_path / "allocate"))
    assert "the call asks for 65 DPUs; 64 of 64 DPUs (1 of 1 ranks) are free" in result.stderr
    result = run("run", "--ranks", "1", "--", str(host_folder / "host"), str(tmp_path / "absent"))
    assert f"no such program file: {tmp_path / 'absent'}" in result.stderr


def test_run_of_a_missing_program_prints_one_line(tmp_path: Path) -> None:
    result = run("run", "no-such-program", "--ranks")
    assert (result.returncode, result.stdout) == (127, "")
    assert result.stderr == "dpuemu: cannot run no-such-program: No such file or directory\n"
    result = run("run", "--", str(tmp_path))
    assert result.returncode == 126
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run", "argument PROGRAM is missing (see dpuemu run --help)"),
        ("run --ranks 41 true", "--ranks '41' is not a whole number from 1 to 40 (see dpuemu run"),
        ("run --threads 0 true", "--threads '0' is not a whole number of at least 1 (see"),
        ("run --stri true", "option --stri is unknown; did you mean '--strict'? (see dpuemu run"),
        ("run --rank 2 -- true", "option --rank is unknown; did you mean '--ranks'? (see dpuemu"),
        ("run --rank=2 true", "option --rank is unknown; did you mean '--ranks'? (see dpuemu run"),
        ("run --ranks", "--ranks needs a value (see dpuemu run --help)"),
        ("run --strict=1 true", "--strict takes no value (see dpuemu run --help)"),
        ("run --chip v9 true", "chip 'v9' is unknown; use generic, v1A, v1B (see dpuemu run"),
        ("info 3", "the command has no argument for '3' (see dpuemu info --help)"),
        ("env --js -", "option --js is unknown; did you mean '--json'? (see dpuemu env --help)"),
        (
            "inf",
            "command 'inf' is unknown; use run, check, profile, debug, trace, objdump, env, info;"
            " did you mean 'info'?",
        ),
        ("--vers", "option --vers is unknown; did you mean '--version'? (see dpuemu --help)"),
        ("--strict", "option --strict is unknown (see dpuemu --help)"),
    ],
)
def test_wrong_usage_is_one_line_that_names_the_wrong_word(arguments: str, message: str) -> None:
    result = run(*arguments.split())
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"dpuemu: {message}")
    assert (result.stderr.count("\n"), result.stderr[-8:]) == (1, "--help)\n")


def test_without_arguments_the_command_shows_its_help() -> None:
    result = run()
    assert (result.returncode, result.stdout) == (2, "")
    assert "COMMAND" in result.stderr


def test_run_reports_launches(host_folder: Path) -> None:
    command = [
        "--ranks",
        "1",
        "--threads",
        "1",
        "--",
        str(host_folder / "host"),
        str(host_folder / "pe"),
        "twice",
    ]
    result = run("run", "--json", "-", *command)
    assert result.stderr.startswith("64 PEs\ndpuemu: 128 addresses or sizes of DMA were rounded")
    launches = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(launches) == 2
    for launch in launches:
        assert (launch["pes"], launch["dma_reads"], launch["dma_read_bytes"]) == (64, 64, 64 * 64)
        assert (launch["dma_writes"], launch["dma_write_bytes"], launch["masked_addresses"]) == (
            64,
            64 * 32,
            64,
        )
        assert launch["modelled_seconds"] == launch["cycles_max"] / 350e6
        low, high = launch["modelled_interval"]
        assert low < launch["modelled_seconds"] < high
    build = [
        "dpu-upmem-dpurte-clang",
        "-mcpu=v1B",
        "-o",
        str(host_folder / "pe_v1B"),
        str(host_folder / "pe.c"),
    ]
    assert run("run", "--", *build).returncode == 0
    result = run(
        "run", "--chip", "v1B", "--json", "-", *command[:-2], str(host_folder / "pe_v1B"), "twice"
    )
    for launch in map(json.loads, result.stdout.splitlines()):
        assert launch["modelled_seconds"] == launch["cycles_max"] / 400e6
    result = run("run", "--report", *command)
    assert result.returncode == 7
    for word in (
        "DMA bytes",
        "odd DMA",
        "exact",
        "modelled",
        "on DIMMs",
        "host us",
        "measured",
        "6,144",
        "sum",
        "12,288",
    ):
        assert word in result.stdout
    assert run("run", "--report", "true").stdout == "no PE program was launched\n"


def test_run_sets_only_the_variables_of_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("DPUEMU_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DPUEMU_RANKS", "3")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    show = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
    plain = json.loads(run("run", "--", *show).stdout)
    assert {name for name in plain if name.startswith("DPUEMU_")} == {
        "DPUEMU_PYTHON",
        "DPUEMU_RANKS",
        "DPUEMU_REPORT",
        "DPUEMU_RUNNING",
    }
    assert plain["DPUEMU_RANKS"] == "3"
    assert plain["LD_LIBRARY_PATH"].endswith(":/elsewhere")
    assert list(Path(plain["LD_LIBRARY_PATH"].split(":")[0]).glob("libdpuemu.so*"))
    assert plain["PATH"].endswith(os.environ["PATH"])
    full = json.loads(
        run(
            "run", "--ranks", "2", "--threads", "1", "--strict", "--report", *show
        ).stdout.splitlines()[0]
    )
    assert (full["DPUEMU_RANKS"], full["DPUEMU_THREADS"], full["DPUEMU_STRICT"]) == ("2", "1", "1")
    assert not Path(full["DPUEMU_REPORT"]).exists()


def test_strict_mode_turns_masked_addresses_into_faults(host_folder: Path) -> None:
    result = run(
        "run", "--ranks", "1", "--strict", str(host_folder / "host"), str(host_folder / "pe")
    )
    assert (
        "dpuemu: launch 1: 64 of 64 PEs in fault, the first: rank 0, chip 0, bank 0, tasklet 0:"
        " mram_read" in result.stderr
    )
    assert result.returncode == 1
    assert "fault" in result.stderr


FAULTY = """
#include <assert.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>
__host uint32_t words[8];
__mram_noinit uint64_t table[4];
volatile uint32_t eight = 8, zero;
BARRIER_INIT(all, 2);
static void __attribute__((noinline)) inner(uint32_t index) {
  if (MODE == 0) assert(index < 8 && "the index of a word");
  if (MODE == 1) words[index] = index / zero;
  uintptr_t end = 65536 + (uintptr_t)words - (uintptr_t)words % 65536;
  if (MODE == 2) mram_read(&table[1], (void *)(end - 8), 16);
  if (MODE == 3) for (;;) words[0]++;
  if (MODE == 4) barrier_wait(&all);
  words[1] += index;
}
static void __attribute__((noinline)) middle(uint32_t index) {
  inner(index);
  words[2] += index;
}
int main(void) {
  middle(eight);
  return words[2] != 8;
}
"""


def run_faulty(folder: Path, host_folder: Path, mode: int, optimisation: str, *options: str) -> str:
    """Run FAULTY and return its standard error."""
    (folder / "faulty.c").write_text(FAULTY)
    build = (
        f"cd '{folder}' && dpu-upmem-dpurte-clang {optimisation} -DMODE={mode} -o faulty faulty.c"
    )
    assert run("run", "--", "sh", "-c", build).stderr == ""
    result = run(
        "run", "--ranks", "1", *options, "--", str(host_folder / "host"), str(folder / "faulty")
    )
    return str(result.stderr)


@pytest.mark.parametrize("optimisation", ["-O0", "-O1", "-O2", "-O3", "-Os", "-O2 -g", "-O0 -g0"])
def test_a_fault_names_the_functions_and_lines_of_its_tasklet(
    tmp_path: Path, host_folder: Path, optimisation: str
) -> None:
    line = {text: number for number, text in enumerate(FAULTY.splitlines(), 1)}
    callers = (
        f"called by middle (faulty.c:{line['  inner(index);']}), main"
        f" (faulty.c:{line['  middle(eight);']})\n"
    )
    division = next(number for text, number in line.items() if "index / zero" in text)
    message = run_faulty(tmp_path, host_folder, 1, optimisation)
    assert f"division by zero, in inner (faulty.c:{division}), {callers}" in message
    assertion = next(number for text, number in line.items() if "assert(" in text)
    message = run_faulty(tmp_path, host_folder, 0, optimisation)
    assert 'an assertion failed: index < 8 && "the index of a word", in inner' in message
    assert f", in inner (faulty.c:{assertion}), {callers}" in message


def test_a_fault_names_the_variables_at_its_addresses(tmp_path: Path, host_folder: Path) -> None:
    message = run_faulty(tmp_path, host_folder, 2, "-O2")
    assert (
        "mram_read of 16 bytes, MRAM address 0x8 (table + 0x8), reaches WRAM address 0x10007,"
        " beyond" in message
    )


def test_patience_ends_a_launch(tmp_path: Path, host_folder: Path) -> None:
    message = run_faulty(tmp_path, host_folder, 3, "-O2", "--patience", "1")
    assert "ran for longer than DPUEMU_PATIENCE (1 s of this computer)" in message
    assert ", in inner (faulty.c:" in message


def test_waiting_tasklets_are_counted_and_faults_in_strict_mode(
    tmp_path: Path, host_folder: Path
) -> None:
    message = run_faulty(tmp_path, host_folder, 4, "-O2")
    assert message.startswith("dpuemu: 64 tasklets still waited at a barrier")
    message = run_faulty(tmp_path, host_folder, 4, "-O2", "--strict")
    assert "deadlock: tasklet 0 waits at the barrier at WRAM address" in message
    assert "(all), in inner (faulty.c:" in message


def test_a_long_launch_is_named(tmp_path: Path, host_folder: Path) -> None:
    run_faulty(tmp_path, host_folder, 3, "-O2", "--patience", "1")  # builds the program
    program = [
        *DPUEMU,
        "run",
        "--ranks",
        "1",
        "--",
        str(host_folder / "host"),
        str(tmp_path / "faulty"),
    ]
    terminal, other = os.openpty()  # `other` stays open, because closing it may lose the last bytes
    message = b""

    def read_until(text: bytes) -> None:
        nonlocal message
        while text not in message:
            assert select.select([terminal], [], [], 300)[0], message
            message += os.read(terminal, 1000)

    def receive_sigint() -> (
        None
    ):  # a shell that runs the tests in the background lets them ignore SIGINT
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(
        program, stderr=other, start_new_session=True, preexec_fn=receive_sigint
    ) as process:
        read_until(b"still running")
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C in a terminal
        assert process.wait(timeout=600) == 130
        read_until(b"exit code")
    os.close(terminal)
    os.close(other)
    lines = message.decode().splitlines()
    assert lines[0] == "dpuemu: still running: launch 1 on 64 PEs"
    assert lines[1].startswith("dpuemu: SIGINT ended ")
    assert " during launch 1 on 64 PEs; the exit code is 130" in lines[1]


def test_any_file_name_and_assertion_reaches_the_report(tmp_path: Path, host_folder: Path) -> None:
    name = 'a \u2028\x85"\\é.c'
    (tmp_path / name).write_text(
        '#include <assert.h>\nint main(void) { assert(!"\u2028"); return 0; }\n'
    )
    compiler = [*DPUEMU, "run", "--", "dpu-upmem-dpurte-clang", "-o", "pe", name]
    assert subprocess.run(compiler, cwd=tmp_path, check=True, capture_output=True).stderr == b""
    program = ["--", str(host_folder / "host"), str(tmp_path / "pe")]
    launches = [
        json.loads(line)
        for line in run("run", "--ranks", "1", "--json", "-", *program).stdout.split("\n")[:-1]
    ]
    assert 'an assertion failed: !"\u2028", in main (a \u2028\x85"\\é.c:2)' in launches[0]["fault"]


def test_the_users_report_gets_the_launches(
    tmp_path: Path, host_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = ["run", "--ranks", "1", "--", str(host_folder / "host"), str(host_folder / "pe")]
    monkeypatch.setenv("DPUEMU_REPORT", str(tmp_path / "report"))
    assert run(*program).returncode == 7
    assert run(*program).returncode == 7
    assert len((tmp_path / "report").read_text().splitlines()) == 2
    monkeypatch.setenv("DPUEMU_REPORT", str(tmp_path / "absent" / "report"))
    result = run(*program)
    assert (result.returncode, result.stdout) == (2, "")
    assert "absent/report cannot be written: No such file or directory" in result.stderr


def test_run_passes_signals_on(tmp_path: Path) -> None:
    waiting = (
        f"import pathlib, time; pathlib.Path({str(tmp_path / 'ready')!r}).touch(); time.sleep(60)"
    )
    with subprocess.Popen([*DPUEMU, "run", "--", sys.executable, "-c", waiting]) as process:
        for _ in range(600):
            if (tmp_path / "ready").exists():
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=600) == 143


def test_a_shell_can_evaluate_env(tmp_path: Path) -> None:
    lines = run("env").stdout
    script = 'eval "$1"; command -v dpu-pkg-config; echo "$PATH"; echo "${DPUEMU_STRICT-}"'
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("DPUEMU_")
    }
    answer = subprocess.run(
        ["sh", "-euc", script, "sh", lines],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    ).stdout.splitlines()
    assert answer[0] == str(tools.sdk_root() / "bin" / "dpu-pkg-config")
    assert answer[1:] == [f"{tools.sdk_root() / 'bin'}:{os.environ['PATH']}", ""]
    assert run("env", "--strict").stdout == lines + "export DPUEMU_STRICT=1\n"


def test_the_tools_work_in_a_folder_with_spaces(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    host_folder: Path,
) -> None:
    root = tmp_path / 'it\'s a "folder" $HOME'
    for part in ("bin", "compiler", "runtime", "include"):
        shutil.copytree(tools.sdk_root() / part, root / part)
    monkeypatch.setattr(tools, "sdk_root", lambda: root)
    cli.run_command(["env"])
    lines = capsys.readouterr().out
    assert "DPUEMU_LIBDIR" in lines  # the library is no longer above the tools
    (tmp_path / "pe.c").write_text(PE)
    script = f'{lines}\ncd "$0"; dpu-upmem-dpurte-clang -o pe pe.c\n'
    script += "dpu-pkg-config --variable=libdir dpu; command -v dpu-pkg-config"
    answer = subprocess.run(
        ["sh", "-euc", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines() == [
        str(tools.library_folder()),
        str(root / "bin" / "dpu-pkg-config"),
    ]
    result = run(
        "run", "--ranks", "1", "--json", "-", "--", str(host_folder / "host"), str(tmp_path / "pe")
    )
    assert json.loads(result.stdout)["dma_reads"] == 64


@pytest.mark.parametrize("words", [("run", "--strict"), ("check",)])
def test_the_example_has_no_fault_and_no_findings(words: tuple[str, ...], tmp_path: Path) -> None:
    shutil.copytree(
        EXAMPLES / "vector_add",
        tmp_path / "vector_add",
        ignore=shutil.ignore_patterns("host", "kernel"),
    )
    result = run(*words, "--", "make", "-s", "-C", str(tmp_path / "vector_add"))
    findings = "dpuemu check: 0 findings\n" if words == ("check",) else ""
    assert (result.returncode, result.stderr) == (0, findings)
    assert result.stdout == "524288 sums on 128 PEs, 0 wrong\n"
