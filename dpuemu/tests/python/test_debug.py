"""`dpuemu debug`: GDB at lines and faults of tasklets, and core files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dpu_program import program_file

DPUEMU = [sys.executable, "-m", "dpuemu"]
WORDS = 5000  # of MRAM per PE, more than 4 times the 8 KiB that lie side by side in a rank

HOST = """
#include <dpu.h>
#include <stdio.h>
int main(int count, char **words) {
  struct dpu_set_t set;
  DPU_ASSERT(dpu_alloc(20, NULL, &set));
  for (int program = 1; program < count; ++program) {
    DPU_ASSERT(dpu_load(set, words[program], NULL));
    if (dpu_launch(set, DPU_SYNCHRONOUS) != DPU_OK) puts("fault");
  }
  DPU_ASSERT(dpu_free(set));
  puts("end");
}
"""

# Each tasklet of each PE writes other words to MRAM, by DMA or directly.
KERNEL = f"""
#include <defs.h>
#include <mram.h>
__host uint32_t total = 5;
__host uint32_t first;
__mram_noinit uint64_t words[{WORDS}];
__mram_noinit uint64_t directly[2];
static uint32_t plus(uint32_t number) {{
  uint32_t doubled = 2 * number;
  total += doubled;  // line 10
  return total;
}}
int main(void) {{
  __dma_aligned uint64_t word;
  for (uint32_t i = me(); i < {WORDS}; i += NR_TASKLETS) {{
    word = 3 * i + 1;
    mram_write(&word, &words[i], sizeof word);
  }}
  directly[1] = 77;
  return (int)plus(21 + me());
}}
"""

HANG = """
#include <defs.h>
#include <sem.h>
#include <mutex.h>
SEMAPHORE_INIT(filled, 0);
MUTEX_INIT(lock);
volatile uint32_t is_done;
int main(void) {
  if (me() == 0) mutex_lock(lock);
  if (me() == 1) sem_take(&filled);  // line 10
#ifdef LOOPS
  if (me() == 2) while (!is_done) {}  // line 12
#endif
  if (me() == 3) mutex_lock(lock);  // line 14
  return 0;
}
"""

# Each tasklet but the first waits for something else, for ever.
WAITS = """
#include <defs.h>
#include <barrier.h>
#include <handshake.h>
#include <mutex.h>
#include <sem.h>
#include <vmutex.h>
BARRIER_INIT(all, 2);
MUTEX_INIT(lock);
SEMAPHORE_INIT(filled, 0);
VMUTEX_INIT(many, 8, 1)
volatile uint32_t is_locked;
int main(void) {
  if (me() == 0) return mutex_lock(lock), vmutex_lock(&many, 3), is_locked = 1, 0;
  while (!is_locked) {}
  switch (me()) {
    case 1: barrier_wait(&all); return 0;  // line 17
    case 2: mutex_lock(lock); return 0;
    case 3: vmutex_lock(&many, 3); return 0;
    case 4: sem_take(&filled); return 0;
    case 5: handshake_notify(); return 0;
    case 6: handshake_wait_for(7); return 0;
  }
  __asm__("stop");  // line 24
  return 0;
}
"""

FAULT = f"""
#include <defs.h>
#include <mram.h>
uint32_t *target;
__mram uint64_t words[{WORDS}] = {{ [3000] = 1234 }};
static void store(uint32_t value) {{
  *target = value + (uint32_t)words[0];  // line 7
}}
int main(void) {{
  target = (uint32_t *)0x7000000;
  if (me() == 2) store(99);
  return 0;
}}
"""

needs_gdb = pytest.mark.skipif(shutil.which("gdb") is None, reason="needs the program gdb")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a host program, which runs PE programs one after another, and PE programs."""
    folder = tmp_path_factory.mktemp("debug")
    sources = {"host.c": HOST, "kernel.c": KERNEL, "hang.c": HANG, "fault.c": FAULT}
    sources["waits.c"] = WAITS
    for name, text in {**sources, "other.c": "int main(void) { return 0; }"}.items():
        (folder / name).write_text(text)
    compiler = "dpu-upmem-dpurte-clang -O0 -g -DNR_TASKLETS=4"
    build = "cc -o host host.c $(dpu-pkg-config --cflags --libs dpu)"
    for name in ("kernel", "hang", "fault", "other"):
        build += f" && {compiler} -o {name} {name}.c"
    build += f" && {compiler} -DLOOPS -o loop hang.c && {compiler} -DNR_TASKLETS=8 -o waits waits.c"
    subprocess.run([*DPUEMU, "run", "--", "sh", "-c", build], check=True, cwd=folder)
    return folder


def debug(folder: Path, *options: str, commands: list[str], run: str = "") -> str:
    """Return what GDB prints at the commands. run: the host program and its arguments, if any."""
    words = [*DPUEMU, "debug", *options]
    for command in commands:
        words += ["--command", command]
    words += ["--", *run.split()] if run else []
    result = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd=folder, stdin=subprocess.DEVNULL
    )
    if "ptrace: Operation not permitted" in result.stderr:
        pytest.skip("gdb may not trace processes here")
    return result.stdout + result.stderr


@needs_gdb
def test_gdb_stops_at_a_line_of_each_pe_and_shows_variables(programs: Path) -> None:
    commands = ["backtrace", "info locals", "print total", "next", "print total", "continue"]
    commands += ["delete", "continue"]
    output = debug(programs, "--break", "kernel.c:10", commands=commands, run="./host other kernel")
    assert re.search(r"hit Breakpoint 1(\.\d+)?, plus \(number=21\) at kernel.c:10", output), output
    assert re.search(r"#1 +0x\w+ in main \(\) at kernel.c:\d+\n#2 +0x\w+ in __pe_start", output)
    assert "#3" not in output
    assert "doubled = 42" in output
    assert ("$1 = 5" in output, "$2 = 47" in output) == (True, True), output
    assert output.count("at kernel.c:10\n") >= 2, output  # the next PE or tasklet
    assert "end\n" in output
    assert "exited normally" in output


@needs_gdb
@pytest.mark.parametrize("pe", ["17", "0.2.1"])
def test_pe_and_tasklet_select_one_stop(programs: Path, pe: str) -> None:
    options = ["--pe", pe, "--tasklet", "3", "--break", "kernel.c:10"]
    commands = ["pe", "print $_pe()", "print $_tasklet()", "print number", "continue"]
    output = debug(programs, *options, commands=commands, run="./host kernel")
    assert output.count("hit Breakpoint") == 1, output
    assert output.count("PE 0.2.1 (number 17), tasklet 3\n") == 2, output  # also at the stop
    assert re.findall(r"\$\d+ = (\d+)", output) == ["17", "3", "24"], output
    assert "exited normally" in output


@needs_gdb
def test_wram_and_mram_have_the_values_of_the_program(programs: Path) -> None:
    places = [0, 1, 1023, 1024, 2047, 2048, 3000, 4095, 4096, WORDS - 1]
    commands = ["tasklet 0", *(f"mram/1ug &words[{place}]" for place in places)]
    commands += ["mram directly[1]", "wram total", "wram/1dw &total", "wram/0", "mram 0x3fffff8"]
    commands += ["wram words", "wram/2xw 65536", "wram absent", "mram/q 3"]
    commands += ["mram total", "mram &set", "mram/1ug 0x8000000", "mram 0xc000000"]
    options = ["--pe", "17", "--tasklet", "3", "--break", "plus"]
    output = debug(programs, *options, commands=commands, run="./host kernel")
    numbers = [int(number) for number in re.findall(r"^mram 0x\w+: (\d+)$", output, re.M)]
    # Tasklet 3 is the last to stop, so all words have been written.
    assert numbers[:-1] == [*(3 * place + 1 for place in places), 77], output
    assert output.count("is not in MRAM; for WRAM, use `wram`") == 2, output
    total = 5 + 42 + 44 + 46
    assert re.findall(r"^wram 0x\w+: (\d+)$", output, re.M) == [str(total), str(total)], output
    assert "0x3fffff8 and 32 bytes exceed 67108864 bytes" in output
    assert "0x10000 is not in WRAM" in output
    assert "is not in WRAM; for stacks" in output
    assert 'No symbol "absent" in current context.' in output
    assert "use mram[/COUNT, one of xduoatcf, one of bhwg] ADDRESS" in output
    assert "Python Exception" not in output


@needs_gdb
def test_a_core_file_of_a_break_has_the_mram_of_its_pe(programs: Path, tmp_path: Path) -> None:
    core = tmp_path / "core"
    options = ["--pe", "17", "--tasklet", "3", "--break", "plus"]
    debug(programs, *options, "--core", str(core), commands=["pe"], run="./host kernel")
    places = [0, 1024, 3000, WORDS - 1]
    commands = [f"mram/1ug &words[{place}]" for place in places]
    commands += ["mram directly[1]", "info locals", "pe 8", "mram directly[1]"]
    output = debug(programs, "--open", str(core), commands=["pe", *commands])
    assert "the core file has the MRAM of PE 0.2.1 only" in output, output
    numbers = [int(number) for number in re.findall(r"^mram 0x\w+: (\d+)$", output, re.M)]
    assert numbers == [*(3 * place + 1 for place in places), 77], output
    assert output.count("PE 0.2.1 (number 17), tasklet 3\n") == 2, output
    assert "doubled = " in output


@needs_gdb
def test_each_command_of_the_page_exists_and_a_core_file_of_its_pe_opens(
    programs: Path, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs/debug.md").read_text()
    cells = re.findall(r"^\| (`.*) \|.*\|$", page, re.M)
    words = [re.split(r"[/ ](?!tasklets)", cell.strip("`"))[0].split("`")[0] for cell in cells]
    assert len(words) == 6
    core, unwritten = tmp_path / "core", tmp_path / "core of other"
    commands = [*(f"help {word}" for word in words), f"dpuemu-core {core}", "dpuemu-core"]
    commands += ["dpuemu-core /absent/core", "continue"]
    options = ["--pe", "17", "--tasklet", "3", "--break", "plus"]
    output = debug(programs, *options, commands=commands, run="./host kernel")
    assert "Undefined" not in output, output
    assert "use dpuemu-core FILE" in output
    assert "cannot write the core file /absent/core: " in output
    assert "Python Exception" not in output
    assert "mram 0x0: 1\n" in debug(programs, "--open", str(core), commands=["mram/1ug 0"])
    options = ["--break", "other.c:1", "--core", str(unwritten)]
    debug(programs, *options, commands=["pe"], run="./host other")
    output = debug(programs, "--open", str(unwritten), commands=["mram/1ug 65536", "pe 1"])
    assert re.search(r"^mram 0x10000: \d+$", output, re.M), output  # of unwritten MRAM
    assert sorted(path.name for path in tmp_path.iterdir()) == ["core", "core of other"]


@needs_gdb
def test_breaks_that_are_never_hit_are_reported_at_the_end(programs: Path) -> None:
    options = ["--tasklet", "3"]
    for place in ("absent.c:7", "plus", "handshake_wait_for"):
        options += ["--break", place]
    output = debug(programs, *options, "--pe", "1", commands=["continue"], run="./host kernel")
    reports = [line for line in output.splitlines() if "was never hit" in line]
    assert len(reports) == 2, output
    causes = "no program has this place: check its name, and compile PE programs with -g"
    assert reports[0] == (
        f"breakpoint 1 at absent.c:7 was never hit: {causes}; gdb follows one process"
    )
    assert reports[1].startswith("breakpoint 3 at handshake_wait_for was never hit: ")
    output = debug(programs, *options[:2], "--break", "absence", commands=[], run="./host kernel")
    assert "breakpoint 1 at absence was never hit: " in output, output


@needs_gdb
def test_an_executed_place_in_another_tasklet_is_reported_as_such(programs: Path) -> None:
    options = ["--tasklet", "9", "--break", "plus"]
    output = debug(programs, *options, commands=["continue"], run="./host kernel")
    assert "breakpoint 1 at plus was never hit: the program did not execute it, or not in" in output


@needs_gdb
@pytest.mark.parametrize("options", [["--pe", "1"], ["--tasklet", "3"]])
def test_limits_hold_in_host_code_before_the_library_is_loaded(
    programs: Path, options: list[str]
) -> None:
    (programs / "host.py").write_text("import dpuemu; dpuemu.machine()")
    host = f"{sys.executable} host.py"
    place = ["--break", "PyImport_ImportModule"]
    output = debug(programs, *place, commands=["print $_pe()", "print $_tasklet()"], run=host)
    assert "Breakpoint 1, " in output, output
    assert ("$1 = -1\n" in output, "$2 = -1\n" in output) == (True, True), output
    output = debug(programs, *place, *options, commands=["print $_pe()"], run=host)
    assert "exited normally" in output, output
    assert "Breakpoint 1, " not in output
    assert "Error in testing" not in output
    output = debug(
        programs, "--break", "main", *options, commands=["backtrace 1"], run="./host kernel"
    )
    assert re.search(r"hit Breakpoint 1(\.\d+)?, main \(\) at kernel.c", output), output


@needs_gdb
def test_a_hang_shows_the_place_of_each_tasklet(programs: Path) -> None:
    commands = ["info tasklets", "tasklet 1", "backtrace", "tasklet 2", "info line"]
    commands += ["thread 1", "tasklet 1", "frame"]  # the host's thread
    output = debug(programs, "--patience", "1", commands=commands, run="./host loop")
    assert "tasklet 2: the PE ran for longer than DPUEMU_PATIENCE (1 s" in output, output
    table = re.findall(r"^[* ] +(\d+) (.*)", output, re.M)
    assert table == [
        ("0", "ended"),
        ("1", "waits for the semaphore filled, in main (hang.c:10)"),
        ("2", "computes, in main (hang.c:12)"),
        ("3", "waits for the mutex lock, held by tasklet 0, in main (hang.c:14)"),
    ], output
    assert re.search(r"tasklet 1 waits .*\n#1 +0x\w+ in main \(\) at hang.c:10\n", output), output
    assert 'Line 12 of "hang.c"' in output
    of_host_thread = output[output.index("[Switching to thread 1 ") :]
    assert re.search(r"#\d+ +0x\w+ in main \(\) at hang.c:10\n10\t", of_host_thread), output


@needs_gdb
def test_a_deadlock_shows_all_kinds_of_waits(programs: Path) -> None:
    output = debug(programs, commands=["info tasklets"], run="./host waits")
    assert "deadlock: tasklet 1 waits at the barrier" in output, output
    assert re.findall(r"^[* ] +(\d+ .*)", output, re.M) == [
        "0 ended",
        "1 waits at the barrier all, in main (waits.c:17)",
        "2 waits for the mutex lock, held by tasklet 0, in main (waits.c:18)",
        "3 waits for a bit of the vmutex vmutex_many, in main (waits.c:19)",
        "4 waits for the semaphore filled, in main (waits.c:20)",
        "5 waits for a handshake_wait_for on tasklet 5, in main (waits.c:21)",
        "6 waits for a handshake_notify by tasklet 7, in main (waits.c:22)",
        "7 waits for another tasklet to resume it, in main (waits.c:24)",
    ], output


@needs_gdb
def test_a_step_after_a_look_at_another_tasklet_continues_the_stopped_one(programs: Path) -> None:
    options = ["--pe", "0", "--tasklet", "1", "--break", "kernel.c:10"]
    commands = ["tasklet 2", "next", "print number", "print $_tasklet()"]
    output = debug(programs, *options, commands=commands, run="./host kernel")
    assert re.findall(r"\$\d+ = (\d+)", output) == ["22", "1"], output
    assert "return total;" in output


@needs_gdb
def test_a_core_file_of_a_fault_opens_later_with_the_same_views(
    programs: Path, tmp_path: Path
) -> None:
    core = tmp_path / "core of a fault"
    commands = ["frame", "info tasklets", "print value", "up", "mram words[3000]", "wram target"]
    commands += ["tasklet 2", "backtrace"]
    first = debug(programs, "--core", str(core), commands=commands, run="./host fault")
    used = core.stat().st_blocks * 512
    assert used < 32 << 20
    later = debug(programs, "--open", str(core), commands=commands)
    for output in (first, later):
        assert "tasklet 2: an access to address 0x7000000" in output, output
        assert "7\t  *target = value" in output
        assert "$1 = 99" in output
        assert re.search(r"#1 +0x\w+ in store \(value=99\) at fault.c:7\n#2 .* main", output)
        assert re.search(r"^mram 0x\w+: 1234$", output, re.M), output
        assert re.search(r"^wram 0x\w+: .*0x7000000$", output, re.M), output
        assert re.search(r"^\*  2 in fault, in store \(fault.c:7\)$", output, re.M), output
    assert later[later.rindex("$1 = 99") :] == first[first.rindex("$1 = 99") :]


@needs_gdb
def test_faults_of_machine_code_show_registers_and_memory(programs: Path, tmp_path: Path) -> None:
    illegal = (1 << 48) - 1
    (tmp_path / "code").write_bytes(program_file([illegal], [], wram=bytes([1, 2, 3, 4])))
    commands = ["info tasklets", "tasklet 0", "wram/1xw 0"]
    output = debug(programs, commands=commands, run=f"./host {tmp_path / 'code'}")
    assert "is not an instruction" in output, output
    assert re.findall(r"^[* ] +\d+ .*", output, re.M) == ["*  0 in fault, at 0x80000000"]
    assert "r0=0x0 " in output
    assert "wram 0x0: 0x4030201" in output


def refusal(*words: str, path: str | None = None) -> str:
    """Return the sentence with which `dpuemu debug` refuses a command."""
    environment = os.environ | ({} if path is None else {"PATH": path})
    result = subprocess.run(
        [*DPUEMU, "debug", *words], capture_output=True, text=True, check=False, env=environment
    )
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1), result
    return result.stderr


def test_a_machine_without_gdb_is_named(tmp_path: Path) -> None:
    assert refusal("./host", path=str(tmp_path)) == (
        "dpuemu: `dpuemu debug` needs the program gdb; install it (on Debian: gdb)\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--tasklet", "3", "./host"], "--tasklet needs --break"),
        (["--pe", "2560", "./host"], "'2560' is not RANK.CHIP.BANK or a number up to 2559"),
        (["--pe", "0.8.0", "./host"], "'0.8.0' is not RANK.CHIP.BANK or a number up to 2559"),
        (["--tasklet", "24", "--break", "f", "./host"], "from 0 to 23"),
        (["--open", "core", "./host"], "--open takes no PROGRAM, --break or --core"),
        (["--open", "absent"], "No such file or directory: 'absent'"),
        (["--open", __file__], f"{__file__} is not a core file"),
        (["--open", sys.executable], f"{sys.executable} is not a core file"),
        (
            ["--core", "/absent/core", "true"],
            "cannot write /absent/core: it must be a file in a writable folder",
        ),
        (["--core", "/", "true"], "cannot write /: it must be a file"),
        ([__file__], "is not an ELF program, which gdb needs; for a script, begin with"),
        (["./absent"], "No such file or directory: './absent'"),
        ([], "argument PROGRAM is missing"),
    ],
)
def test_wrong_usage_is_refused_with_the_rule(words: list[str], sentence: str) -> None:
    assert sentence in refusal(*words)
