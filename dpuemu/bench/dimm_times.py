"""Compare modelled kernel times with times that were measured on DIMMs, for programs of the PrIM
benchmarks.

python bench/dimm_times.py PRIM ROWS.csv

PRIM is a checkout of CMU-SAFARI/prim-benchmarks. ROWS.csv has a line per measured run, with the
columns program, dpus, run_args, launches, dimm_kernel_ms and upimulator_kernel_ms (times of a
cycle-level simulator). The script builds each program with 16 tasklets and DMA blocks of 1,024
bytes, runs it on the emulated machine, adds a time per launch, and prints the errors per program in
percent.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

OPTIONS = ["NR_TASKLETS=16", "BL=10"]
# `python -m dpuemu` would import modules of the folder in which it runs.
DPUEMU = [str(Path(sys.executable).with_name("dpuemu"))]


def build(source: Path, folder: Path, dpus: int) -> None:
    """Copy a program of PrIM to a folder, and build it with its own Makefile."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("bin"))
    command = [
        *DPUEMU,
        "run",
        "--",
        "make",
        "-s",
        "-C",
        str(folder),
        "all",
        f"NR_DPUS={dpus}",
        *OPTIONS,
    ]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    if process.returncode:
        sys.exit(f"{source} cannot be built:\n{process.stderr}")


def launches(folder: Path, arguments: str) -> list[float]:
    """Run a program; return the modelled seconds of each launch."""
    host = next((folder / "bin").glob("*host*"))
    with tempfile.NamedTemporaryFile() as report:
        command = [
            *DPUEMU,
            "run",
            "--json",
            report.name,
            "--",
            str(host.resolve()),
            *shlex.split(arguments),
        ]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        return [
            json.loads(line)["modelled_seconds"]
            for line in Path(report.name).read_text().splitlines()
        ]


def summary(modelled: list[float], measured: list[float]) -> str:
    """Return columns of errors: median, 90th percentile and maximum of the magnitudes, and the
    median with its sign.
    """
    errors = [
        100 * (estimate / true - 1) for estimate, true in zip(modelled, measured, strict=True)
    ]
    sizes = [abs(error) for error in errors]
    ninth = quantiles(sizes, n=10, method="inclusive")[8]
    return f"{median(sizes):8.1f} {ninth:6.1f} {max(sizes):6.1f} {median(errors):+7.1f}"


def main() -> None:
    """Print a line per program, and lines for all programs."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("prim", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument(
        "--launch-us", type=float, default=100, help="time per launch (default: 100)"
    )
    arguments = parser.parse_args()
    with arguments.rows.open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["program"], int(row["dpus"])))
    built = None
    with tempfile.TemporaryDirectory() as copies:
        for row in rows:
            program, dpus = row["program"], int(row["dpus"])
            folder = Path(copies, program)
            if built != (built := (program, dpus)):
                build(arguments.prim / program, folder, dpus)
            times = launches(folder, row["run_args"])
            if len(times) != int(row["launches"]):
                sys.exit(
                    f"{program} {row['run_args']}: {len(times)} launches, but the table has"
                    f" {row['launches']}"
                )
            row["kernel"] = 1e3 * sum(times)
            row["dpuemu"] = row["kernel"] + 1e-3 * arguments.launch_us * len(times)
    print(f"{'':24}{'median':>8} {'90%':>6} {'most':>6} {'signed':>7}   simulator:")
    names = sorted({row["program"] for row in rows})
    for name in [*names, "all", "all, without launches"]:
        chosen = [row for row in rows if row["program"] == name or name.startswith("all")]
        measured, other = (
            [float(row[key]) for row in chosen]
            for key in ("dimm_kernel_ms", "upimulator_kernel_ms")
        )
        own = [row["kernel" if "without" in name else "dpuemu"] for row in chosen]
        print(f"{name:24}{summary(own, measured)}   {summary(other, measured)}")


if __name__ == "__main__":
    main()
