"""PE programs in GDB."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DPUEMU = [sys.executable, "-m", "dpuemu"]

DEBUGGED_HOST = """
#include <dpu.h>
int main(void) {
  struct dpu_set_t set;
  DPU_ASSERT(dpu_alloc(3, NULL, &set));
  for (int round = 0; round < 2; ++round) {
    DPU_ASSERT(dpu_load(set, round == 0 ? "./other" : "./kernel", NULL));
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  }
  DPU_ASSERT(dpu_free(set));
  puts("end");
}
"""

DEBUGGED_PE = """
#include <defs.h>
#include <mram.h>
__host uint32_t total = 5;
__mram_noinit uint64_t words[8];
static uint32_t plus(uint32_t number) {
  uint32_t doubled = 2 * number;
  words[0] = doubled;
  total += doubled;  // line 9
  return total;
}
int main(void) { return (int)plus(21 + me()); }
"""


@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs the program gdb")
def test_gdb_stops_in_pe_programs_and_shows_their_variables(tmp_path: Path) -> None:
    (tmp_path / "host.c").write_text(DEBUGGED_HOST)
    (tmp_path / "kernel.c").write_text(DEBUGGED_PE)
    (tmp_path / "other.c").write_text("int main(void) { return 0; }")
    build = (
        f"cd '{tmp_path}' && cc -o host host.c $(dpu-pkg-config --cflags --libs dpu)"
        " && for program in kernel other; do"
        " dpu-upmem-dpurte-clang -O0 -g -o $program $program.c; done"
    )
    subprocess.run([*DPUEMU, "run", "--", "sh", "-c", build], check=True)
    commands = ["break kernel.c:9", "run", "backtrace", "info locals", "print total", "next"]
    commands += ["print total", "continue", "delete", "continue"]
    result = subprocess.run(
        [*DPUEMU, "run", "--gdb", "--", "./host"],
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    if "ptrace: Operation not permitted" in result.stderr:
        pytest.skip("gdb may not trace processes here")
    output = result.stdout + result.stderr
    assert re.search(r"Breakpoint 1(\.\d)?, plus \(number=21\) at kernel.c:9\n9\t", output), output
    assert re.search(r"#1 +0x\w+ in main \(\) at kernel.c:12\n#2 +0x\w+ in __pe_start", output), (
        output
    )
    assert "#3" not in output
    assert "doubled = 42" in output
    assert ("$1 = 5" in output, "$2 = 47" in output) == (True, True), output
    assert output.count("plus (number=21) at kernel.c:9") >= 2, output  # the second PE
    assert "end\n" in output
    assert "exited normally" in output
