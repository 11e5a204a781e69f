"""Run the campaign: each attack on the library, the emulator or the package runs in a separate
process.

An attack is a program `ATTACK SECONDS SEED [CASE]`. It prints a line `finding: SENTENCE<tab>run:
COMMAND` for each finding, and at the end `cases: N`. With CASE it runs this case alone. Its exit
status is 0 without findings and 1 with findings. Any other status, a missing last line and an
attack that does not end are findings too. An attack that cannot run here prints `skipped:
SENTENCE`.
"""

from __future__ import annotations

import argparse
import ast
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = (HERE, HERE.parents[2] / "studies" / "tests" / "campaign")
FOLDER = Path("build/campaign")
GRACE_SECONDS = 120  # after its seconds, an attack ends its last case
SANITIZER_SIGNS = ("Sanitizer: ", "runtime error: ")


@dataclass(frozen=True)
class Attack:
    """An attack: a Python file of one of FOLDERS, or a native target campaign_NAME.

    In the folder of the studies, each file is an attack.
    """

    name: str
    is_native: bool
    what: str

    def command(self, build: Path) -> list[str]:
        """Return the command without its arguments."""
        if self.is_native:
            return [str(build / "tests" / "campaign" / f"campaign_{self.name}")]
        files = [folder / f"{self.name}.py" for folder in FOLDERS]
        file = next(file for file in files if file.is_file())
        return [sys.executable, "-u", os.path.relpath(file)]


def first_sentence(file: Path) -> str:
    """Return the first sentence that describes a Python file."""
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


ATTACKS = [
    Attack("oracle", True, "random collectives against the oracle"),
    Attack("oracle_sdk_access", True, "the same with the SDK's access to ranks"),
    Attack("placement", False, "symbols and hypercubes of sets with missing PEs"),
    Attack("movements", False, "random movements between PEs against NumPy"),
    Attack("mpi", False, "random collectives against an MPI library"),
    Attack("hosts", False, "random collectives over hosts against an MPI library"),
    Attack("threads", True, "collectives of several host threads"),
    Attack("streams", True, "random streams with faults against their steps in order"),
    Attack("c_api", True, "hostile calls of the C API"),
    Attack("sdk_transfers", True, "random transfers of the SDK's C++ API against a model of MRAM"),
    Attack("dpu_module", False, "the same with the SDK's Python module"),
    Attack("faults", False, "allocations and threads of a host program fail"),
    Attack("python_api", False, "hostile calls of the Python API"),
    Attack("parsers", False, "damaged machines, programs and settings"),
    Attack("kills", False, "killed programs and the runs after them"),
    Attack("kills_together", False, "several killed processes of a pool"),
    Attack("runtime_cache", False, "a damaged cache of the PE runtime"),
    Attack("other_users", False, "files of another user"),
    Attack("hostile_folder", False, "modules and programs in the current folder"),
    Attack("spaces", False, "paths with spaces"),
]
ATTACKS += [
    Attack(file.stem, False, first_sentence(file)) for file in sorted(FOLDERS[1].glob("*.py"))
]


@dataclass
class Result:
    """The outcome of an attack."""

    cases: int = 0
    skipped: str = ""
    findings: list[tuple[str, str]] = field(default_factory=list)


def run(command: list[str], build: Path, seconds: int, seed: int) -> tuple[Result, str]:
    """Run an attack; return its result and its output."""
    command = [*command, str(seconds), str(seed)]
    environment = {
        **os.environ,
        "PIDCOMM_CHOICES": "",  # no case depends on the user's choices
        "PYTHONPATH": str(HERE),  # attack.py
        "CAMPAIGN_FOLDER": str(FOLDER.resolve()),
        "CAMPAIGN_BUILD": str(build.resolve()),
    }
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            output, is_late = process.communicate(timeout=seconds + GRACE_SECONDS)[0], False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, is_late = process.communicate()[0], True
    text = output.decode(errors="replace")
    result, has_last_line, reports = Result(), False, list[str]()
    for line in text.splitlines():
        key, _, rest = line.partition(": ")
        if key == "finding":
            sentence, _, reproduce = rest.partition("\trun: ")
            result.findings.append((sentence, reproduce))
        elif key == "cases" and rest.isdigit():
            result.cases, has_last_line = int(rest), True
        elif key == "skipped":
            result.skipped, has_last_line = rest, True
        elif any(sign in line for sign in SANITIZER_SIGNS):
            reports.append(line.strip())
    if reports:
        result.findings.append(
            (f"{len(reports)} reports of a sanitizer, first: {reports[0]}", shlex.join(command))
        )
    elif is_late:
        result.findings.append(
            (f"did not end {GRACE_SECONDS} s after its {seconds} s", shlex.join(command))
        )
    elif process.returncode not in (0, 1) or not has_last_line:
        status = process.returncode
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        result.findings.append((f"ended with {how}", shlex.join(command)))
    elif process.returncode == 1 and not result.findings:
        result.findings.append(("exit status 1 without a finding", shlex.join(command)))
    return result, text


def write_findings(name: str, seed: int, result: Result, output: str) -> None:
    """Write a file for each finding and print where it is."""
    for number, (sentence, command) in enumerate(result.findings, 1):
        path = FOLDER / f"{name}-{seed}-{number}.txt"
        path.write_text(
            f"{sentence}\n\nrun: {command}\n\nend of the output of the attack:\n{output[-20000:]}"
        )
        print(f"  finding: {sentence}\n    run: {command}\n    file: {path}", flush=True)


def main() -> int:
    """Run the chosen attacks."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("attacks", nargs="*", help="names of attacks (default: all)")
    parser.add_argument(
        "--minutes", type=float, default=60, help="minutes of all attacks together (default: 60)"
    )
    parser.add_argument("--seed", type=int, help="repeats an earlier run (default: from the clock)")
    parser.add_argument(
        "--build",
        type=Path,
        default=Path("build/pidcomm/release"),
        help="build folder of the native attacks",
    )
    parser.add_argument("--native", action="store_true", help="run only native attacks")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else time.time_ns() // 1000 % 10**9
    unknown = set(arguments.attacks) - {attack.name for attack in ATTACKS}
    if unknown:
        parser.error(
            f"unknown attacks: {', '.join(sorted(unknown))}; known:"
            f" {', '.join(a.name for a in ATTACKS)}"
        )
    chosen = [
        attack
        for attack in ATTACKS
        if (not arguments.attacks or attack.name in arguments.attacks)
        and (attack.is_native or not arguments.native)
    ]
    FOLDER.mkdir(parents=True, exist_ok=True)
    cases = findings = 0
    end = time.monotonic() + 60 * arguments.minutes
    for number, attack in enumerate(chosen):
        seconds = max(1, round((end - time.monotonic()) / (len(chosen) - number)))
        begin = time.monotonic()
        result, output = run(attack.command(arguments.build), arguments.build, seconds, seed)
        taken = max(time.monotonic() - begin, 0.001)
        outcome = f"skipped: {result.skipped}"
        if not result.skipped or result.findings:
            outcome = (
                f"{result.cases} cases ({result.cases / taken:.0f}/s), {len(result.findings)}"
                " findings"
            )
        print(f"{attack.name}: {attack.what}; seed {seed}: {outcome}", flush=True)
        write_findings(attack.name, seed, result, output)
        cases += result.cases
        findings += len(result.findings)
    print(f"{cases} cases, {findings} findings")
    return findings != 0


if __name__ == "__main__":
    sys.exit(main())
