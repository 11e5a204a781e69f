"""Programs of the published artifact: which builds find its header and the library."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpuemu import tools
from pidcomm import installation
from pidcomm.cli import app

HEADERS = Path(__file__).resolve().parents[2] / "include"

# In the artifact's style: the sum along x of 8 x 8 PEs, through the buffer; then a call with a
# wrong mask.
HOST = """
#include <pidcomm.h>
int main(int argc, char **argv) {
  (void)argv;
  struct dpu_set_t dpu_set, dpu;
  uint32_t axis_len[2] = {8, 8}, each_dpu, wrong = 0;
  T values[64 * 16];
  DPU_ASSERT(dpu_alloc_comm(64, NULL, &dpu_set, 1));
  DPU_ASSERT(dpu_load(dpu_set, "./pe", NULL));
  hypercube_manager *hypercube_manager = init_hypercube_manager(dpu_set, 2, axis_len);
  for (uint32_t i = 0; i < 64 * 16; i++) values[i] = (T)(i / 16);
  DPU_FOREACH_ENTANGLED_GROUP(dpu_set, dpu, each_dpu, 64) {
    DPU_ASSERT(dpu_prepare_xfer(dpu, values + 16 * each_dpu));
  }
  DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, 64,
                           DPU_XFER_DEFAULT));
  pidcomm_all_reduce(hypercube_manager, argc > 1 ? "2x" : "10", 64, 0, 8, 4096, sizeof(T), 0);
  DPU_FOREACH_ENTANGLED_GROUP(dpu_set, dpu, each_dpu, 64) {
    DPU_ASSERT(dpu_prepare_xfer(dpu, values + 16 * each_dpu));
  }
  DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME, 8, 64,
                           DPU_XFER_DEFAULT));
  for (uint32_t i = 0; i < 64 * 16; i++) wrong += values[i] != (T)(i / 128 * 64 + 28);
  free(hypercube_manager);
  DPU_ASSERT(dpu_free(dpu_set));
  printf("%u wrong\\n", wrong);
  return 0;
}
"""
PE = '#include <stdio.h>\nint main(void) { printf("\\n"); return 0; }\n'
BUILD = (
    "dpu-upmem-dpurte-clang -o pe pe.c && cc -std=c11 -Wall -Wextra -Werror -DINT32 -o host host.c"
)
FLAGS = "`dpu-pkg-config --cflags --libs dpu`"


def environment(*, artifact: bool = True) -> str:
    """Return shell commands with which builds find the emulated SDK, and the artifact's header."""
    variables = [(name, value) for name, value in tools.environment().items()]
    variables += installation.artifact_environment().items() if artifact else []
    rest = {"PATH": '"${PATH:+:$PATH}"'}
    return " && ".join(
        f"export {name}={shlex.quote(value)}{rest.get(name, '')}" for name, value in variables
    )


def shell(folder: Path, *commands: str) -> subprocess.CompletedProcess[str]:
    """Run commands in a shell, without an LD_LIBRARY_PATH."""
    clean = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    script = " && ".join(commands)
    return subprocess.run(
        ["sh", "-c", script], cwd=folder, capture_output=True, text=True, env=clean, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a host program and a PE program."""
    (tmp_path / "host.c").write_text(HOST)
    (tmp_path / "pe.c").write_text(PE)
    return tmp_path


def test_a_program_builds_and_runs_with_these_variables(folder: Path) -> None:
    result = shell(folder, environment(), f"{BUILD} {FLAGS}", "./host")
    assert (result.returncode, result.stdout, result.stderr) == (0, "0 wrong\n", "")
    failed = shell(folder, "./host fail")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "host.c:17(main): pidcomm: " in failed.stderr
    assert "2x" in failed.stderr


def test_config_prints_these_variables() -> None:
    said = CliRunner().invoke(app, ["config", "--artifact-env"], catch_exceptions=False).output
    assert [line.partition("=")[0] for line in said.splitlines()] == [
        f"export {name}" for name in installation.artifact_environment()
    ]
    assert str(installation.artifact_root() / "bin") in said


def test_without_its_option_the_artifacts_header_is_not_found(folder: Path) -> None:
    result = shell(folder, environment(artifact=False), f"{BUILD} {FLAGS}")
    assert result.returncode != 0
    assert "pidcomm.h" in result.stderr
    assert not (folder / "host").exists()


@pytest.mark.parametrize("first", ["pidcomm.h", "pidcomm/pidcomm.h"])
def test_the_two_headers_exclude_each_other(folder: Path, first: str) -> None:
    (folder / "host.c").write_text(
        f"#include <{first}>\n#include <pidcomm.h>\n#include <pidcomm/pidcomm.h>\n"
    )
    variables = environment()
    result = shell(folder, variables, f"cc -c host.c -I{shlex.quote(str(HEADERS))} {FLAGS}")
    assert result.returncode != 0
    assert "or <pidcomm/pidcomm.h>, not both" in result.stderr


def test_dpu_pkg_config_adds_to_the_output_of_the_next_in_path(tmp_path: Path) -> None:
    variables = environment()
    plain = environment(artifact=False)
    root = installation.artifact_root()
    library = f"-L{installation.library_folder()} -Wl,-rpath,{installation.library_folder()}"
    for words, ours in (
        ("--cflags dpu", f"-I{root / 'include'} "),
        ("--libs-only-L dpu", f"-L{installation.library_folder()} "),
        ("--variable=includedir dpu", ""),
        ("--modversion dpu", ""),
    ):
        with_ours = shell(tmp_path, variables, f"dpu-pkg-config {words}")
        without = shell(tmp_path, plain, f"dpu-pkg-config {words}")
        assert with_ours.stdout == ours + without.stdout
    both = shell(tmp_path, variables, "dpu-pkg-config --cflags --libs dpu").stdout
    assert both.startswith(f"-I{root / 'include'} {library} -l")
    wrong = shell(tmp_path, variables, "dpu-pkg-config --cflags nothing")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "there is no package nothing" in wrong.stderr
    missing = shell(
        tmp_path,
        variables,
        f"PIDCOMM_LIBDIR={shlex.quote(str(tmp_path))} dpu-pkg-config --libs dpu",
    )
    assert missing.returncode == 1
    assert f"no libpidcomm.so in {tmp_path}" in missing.stderr


def test_copies_of_dpu_pkg_config_are_skipped(tmp_path: Path) -> None:
    own = installation.artifact_root() / "bin"
    copy, links = tmp_path / "copy" / "bin", tmp_path / "links"
    for folder in (copy, links):
        folder.mkdir(parents=True)
    # There is no library near it, so it must not be called.
    shutil.copy(own / "dpu-pkg-config", copy)
    (links / "dpu-pkg-config").symlink_to(own / "dpu-pkg-config")
    variables = environment()
    ask = "timeout 20 dpu-pkg-config --cflags --libs dpu"
    alone = shell(tmp_path, variables, ask)
    assert alone.returncode == 0
    for before in ([own, copy], [own, copy, own, copy], [own, links], [links, own, copy, links]):
        path = shlex.quote(os.pathsep.join(str(folder) for folder in before))
        result = shell(tmp_path, variables, f"PATH={path}:$PATH {ask}")
        assert (result.returncode, result.stdout, result.stderr) == (0, alone.stdout, "")
    without_sdk = shell(
        tmp_path,
        f"PATH={shlex.quote(f'{own}:{copy}')}:/usr/bin:/bin timeout 20 dpu-pkg-config --cflags dpu",
    )
    assert without_sdk.returncode == 1
    assert "there is no dpu-pkg-config of an SDK in PATH" in without_sdk.stderr


def test_a_dpu_pkg_config_that_calls_this_one_is_named(tmp_path: Path) -> None:
    own = installation.artifact_root() / "bin" / "dpu-pkg-config"
    (tmp_path / "dpu-pkg-config").write_text(f'#!/bin/sh\nexec {shlex.quote(str(own))} "$@"\n')
    (tmp_path / "dpu-pkg-config").chmod(0o755)
    result = shell(
        tmp_path, f"PATH={shlex.quote(str(tmp_path))}:$PATH timeout 20 dpu-pkg-config --cflags dpu"
    )
    assert result.returncode == 1
    assert f"the dpu-pkg-config of an SDK that was found in PATH calls {own} again" in result.stderr


def test_a_missing_dpu_pkg_config_of_an_sdk_is_named(tmp_path: Path) -> None:
    shutil.copy(installation.artifact_root() / "bin" / "dpu-pkg-config", tmp_path)
    result = shell(
        tmp_path, f"PATH={shlex.quote(str(tmp_path))}:/usr/bin:/bin", "dpu-pkg-config --cflags dpu"
    )
    assert result.returncode == 1
    assert "there is no dpu-pkg-config of an SDK in PATH" in result.stderr
