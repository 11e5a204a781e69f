"""Compare modelled times with times that were measured on DIMMs.

python bench/dimm_times.py ROWS SOURCES [--least-ms M] [--most-ms N]

ROWS is a folder with tables of measured times:
  dimm_prim_times.csv  kernels of PrIM's programs, measured by VIA-Research/uPIMulator; columns
                       program, dpus, run_args, launches, dimm_kernel_ms
  kernels.csv          of which: PrIM's GEMV with 1 to 16 tasklets, by Morteza1814/prim-benchmarks;
                       columns program, args, dpus, tasklets, kernel_ms
  instructions.csv     PrIM's Arithmetic-Throughput with 1 to 24 tasklets, pull request 7 of
                       CMU-SAFARI/prim-benchmarks; columns op, type, tasklets, cycles_per_element
  dma.csv              copies in MRAM by one tasklet, by s9770652/pim-memcpy; columns test, method,
                       transfer_bytes, ms, note
SOURCES has checkouts in folders OWNER/REPOSITORY. The script builds each program, runs it on the
emulated machine, and prints errors in percent per program and number of tasklets; `inside` counts
the rows in the interval of dpuemu's reports. It omits kernels of less than M milliseconds, in which
the launch matters, and of more than N on one DPU. The rows of Morteza1814 had no part in any fit
(tools/fit_pe_time.py).
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from math import ceil
from pathlib import Path
from statistics import median, quantiles

from dpuemu.reports import DIMM_SHARES

# `python -m dpuemu` would import modules of the folder in which it runs.
DPUEMU = [str(Path(sys.executable).with_name("dpuemu"))]
PRIM = "CMU-SAFARI/prim-benchmarks"
UPIMULATOR = "VIA-Research/uPIMulator"
COPIES = "s9770652/pim-memcpy"
PROGRAMS = ("BS", "GEMV", "HST-S", "RED", "SCAN-SSA", "TRNS", "VA")
DIMM_SUITE = Path("golang", "uPIMulator", "benchmark")
# Of the loop that copies blocks: two addresses, two transfers, an addition and a jump. The SDK's
# compiler computes addresses from the index (compiler/compiler.py).
COPY_INSTRUCTIONS = 6
CLOCK_KHZ, ISSUE_CYCLES = 350e3, 11
# The time of a launch on DIMMs, and the time for each of its ranks (tools/fit_pe_time.py).
LAUNCH_US = 163
LAUNCH_RANK_US = 7.49
RANK_PES = 64


class Programs:
    """The programs that were built, by source and options of make."""

    def __init__(self, sources: Path, copies: Path) -> None:
        """Keep both folders."""
        self._sources = sources
        self._copies = copies
        self._built: dict[tuple[str, ...], Path] = {}

    def build(self, source: Path, *options: str) -> Path:
        """Return a copy of the folder `source` of the sources, built with its own Makefile."""
        key = (str(source), *options)
        if key in self._built:
            return self._built[key]
        folder = self._copies / str(len(self._built))
        shutil.copytree(self._sources / source, folder, ignore=shutil.ignore_patterns("bin"))
        (folder / "bin").mkdir()
        command = [*DPUEMU, "run", "--", "make", "-s", "-C", str(folder), "all", *options]
        process = subprocess.run(command, check=False, capture_output=True, text=True)
        if process.returncode:
            sys.exit(f"{source} cannot be built:\n{process.stderr}")
        # Some Makefiles name the program otherwise than the host program.
        loaded = re.search(r'"\./bin/(\w+)"', next(folder.glob("host/*.c")).read_text())
        if loaded and not (target := folder / "bin" / loaded[1]).exists():
            shutil.copy(folder / "bin" / "dpu_code", target)
        self._built[key] = folder
        return folder


def run(folder: Path, arguments: str) -> tuple[str, list[float]]:
    """Run a program; return what it printed, and the modelled milliseconds of each launch."""
    host = next(path for path in (folder / "bin").glob("*host*") if path.suffix != ".S")
    with tempfile.NamedTemporaryFile() as report:
        command = [*DPUEMU, "run", "--json", report.name, "--", str(host.resolve())]
        printed = subprocess.run(
            [*command, *shlex.split(arguments)], check=True, cwd=folder, capture_output=True
        ).stdout.decode()
        lines = Path(report.name).read_text().splitlines()
    return printed, [1e3 * json.loads(line)["modelled_seconds"] for line in lines]


class Comparison:
    """Errors in percent, by repository, program and tasklets."""

    def __init__(self) -> None:
        """Start without errors."""
        self._errors: dict[tuple[str, str, int], list[float]] = defaultdict(list)

    def add(
        self, repository: str, program: str, tasklets: int, modelled: float, measured: float
    ) -> None:
        """Add a row."""
        self._errors[repository, program, tasklets].append(100 * (modelled / measured - 1))

    def shares(self) -> list[list[float]]:
        """Return the measured times of each program as shares of the modelled times."""
        programs: dict[tuple[str, str], list[float]] = defaultdict(list)
        for (repository, program, _), errors in self._errors.items():
            programs[repository, program] += [1 / (1 + error / 100) for error in errors]
        return list(programs.values())

    def show(self) -> None:
        """Print a line per program and number of tasklets, then per repository, then for all."""
        print(f"{'':56}{'rows':>5}{'inside':>8}{'median':>8}{'90%':>7}{'most':>7}{'signed':>8}")
        for key, errors in sorted(self._errors.items()):
            _line(f"{key[0]} {key[1]}, {key[2]} tasklets", errors)
        for name in sorted({key[0] for key in self._errors}):
            _line(name, [e for key in self._errors if key[0] == name for e in self._errors[key]])
        rates, copies = ({key for key in self._errors if key[0] == name} for name in (PRIM, COPIES))
        for name, keys in (
            ("kernels", self._errors.keys() - rates - copies),
            ("additions", rates),
            ("copies", copies),
            ("all", self._errors),
        ):
            _line(name, [error for key in keys for error in self._errors[key]])


def _line(name: str, errors: list[float]) -> None:
    if not errors:
        return
    sizes = [abs(error) for error in errors]
    low, high = DIMM_SHARES
    inside = sum(low <= 1 / (1 + error / 100) <= high for error in errors)
    ninth = quantiles(sizes, n=10, method="inclusive")[8] if len(sizes) > 1 else sizes[0]
    print(
        f"{name:56}{len(errors):5}{inside:8}{median(sizes):8.1f}{ninth:7.1f}{max(sizes):7.1f}"
        f"{median(errors):+8.1f}",
        flush=True,
    )


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with path.open() as file:
        return list(csv.DictReader(file))


def launch_ms(row: Mapping[str, str]) -> float:
    """Return the milliseconds of the launches of a row."""
    ranks = ceil(int(row["dpus"]) / RANK_PES)
    return 1e-3 * int(row.get("launches", 1)) * (LAUNCH_US + ranks * LAUNCH_RANK_US)


def prim_kernels(
    programs: Programs, options: argparse.Namespace, names: Container[str]
) -> Iterator[tuple[dict[str, str], float]]:
    """Yield rows of PrIM's programs, and the modelled milliseconds without launches."""
    for row in rows_of(options.rows / "dimm_prim_times.csv"):
        measured = float(row["dimm_kernel_ms"])
        is_long = options.least_ms <= measured <= options.most_ms / int(row["dpus"])
        if row["program"] not in names or not is_long:
            continue
        source = Path(UPIMULATOR) / DIMM_SUITE / row["program"]
        folder = programs.build(source, f"NR_DPUS={row['dpus']}", "NR_TASKLETS=16", "BL=10")
        times = run(folder, row["run_args"])[1]
        if len(times) != int(row["launches"]):
            sys.exit(f"{row} ran {len(times)} launches")
        yield row, sum(times)


def compare_prim(programs: Programs, result: Comparison, options: argparse.Namespace) -> None:
    """Compare the kernels of PrIM's programs with 16 tasklets, and of its GEMV with 1 to 16."""
    for row, kernel_ms in prim_kernels(programs, options, PROGRAMS):
        modelled_ms = kernel_ms + launch_ms(row)
        result.add(UPIMULATOR, row["program"], 16, modelled_ms, float(row["dimm_kernel_ms"]))
    modelled: dict[tuple[int, int, int], float] = {}
    for row in rows_of(options.rows / "kernels.csv"):
        if row["program"] != "PrIM GEMV":
            continue
        height, columns = map(int, re.findall(r"-[mn] (\d+)", row["args"]))
        # Each PE computes as many rows of the matrix as one PE does for a smaller matrix.
        height, tasklets = height // int(row["dpus"]), int(row["tasklets"])
        measured = float(row["kernel_ms"])
        if not options.least_ms <= measured <= options.most_ms or not height:
            continue
        key = (height, columns, tasklets)
        if key not in modelled:
            folder = programs.build(
                Path(PRIM, "GEMV"), "NR_DPUS=1", f"NR_TASKLETS={tasklets}", "BL=10"
            )
            modelled[key] = sum(run(folder, f"-w 0 -e 1 -m {height} -n {columns}")[1])
        name = f"GEMV of {columns} columns" if columns == 256 else "GEMV of more columns"
        result.add("Morteza1814", name, tasklets, modelled[key] + launch_ms(row), measured)


def compare_additions(programs: Programs, rows: Path, result: Comparison) -> None:
    """Compare the cycles per addition of six types."""
    for row in rows_of(rows / "instructions.csv"):
        tasklets = int(row["tasklets"])
        folder = programs.build(
            Path(PRIM, "Microbenchmarks", "Arithmetic-Throughput"),
            *("NR_DPUS=1", f"NR_TASKLETS={tasklets}", "BL=10"),
            *(f"OP={row['op']}", f"TYPE={row['type']}"),
        )
        elements = 1024 * tasklets
        printed = run(folder, f"-w 0 -e 1 -i {elements}")[0]
        cycles = re.search(r"DPU cycles\s*=\s*([0-9.e+]+)", printed)
        if cycles is None:
            sys.exit(f"Arithmetic-Throughput printed no cycles:\n{printed}")
        per_element = float(cycles[1]) / elements
        result.add(PRIM, row["op"], tasklets, per_element, float(row["cycles_per_element"]))


def compare_copies(programs: Programs, rows: Path, result: Comparison) -> None:
    """Compare copies from MRAM to MRAM by one tasklet, by their method and transfer size."""
    printed = run(programs.build(Path(COPIES)), "")[0]
    times = dict(re.findall(r"TIME \(([^)]+)\):\s*([0-9.]+)", printed))
    shown = {"memcpy": "memcpy", "mram_read+mram_write": "a ", "unaligned": "u "}
    for row in rows_of(rows / "dma.csv"):
        if row["method"] not in shown or row["note"] != "mem_alloc buffer":
            continue
        size = "" if row["transfer_bytes"] == "none" else f"{int(row['transfer_bytes']):4}"
        if (time := times.get(shown[row["method"]] + size)) is not None:
            result.add(COPIES, f"{row['method']} {size}", 1, float(time), float(row["ms"]))


def fit_transfers(rows: Path) -> tuple[float, float]:
    """Return the cycles of a transfer, and per byte: least squares of relative errors of copies."""
    sums = [0.0] * 5  # of weight * (1, bytes, bytes^2, cycles, bytes * cycles)
    for row in rows_of(rows / "dma.csv"):
        if row["method"] != "mram_read+mram_write" or row["note"] != "mem_alloc buffer":
            continue
        size = float(row["transfer_bytes"])
        half = CLOCK_KHZ * float(row["ms"]) / float(row["bytes"]) * size / 2  # of a block's copy
        cycles, weight = half - COPY_INSTRUCTIONS * ISSUE_CYCLES / 2, half**-2
        terms = (1, size, size**2, cycles, size * cycles)
        sums = [total + weight * term for total, term in zip(sums, terms, strict=True)]
    ones, sizes, squares, cycles, products = sums
    slope = (ones * products - sizes * cycles) / (ones * squares - sizes**2)
    return (cycles - slope * sizes) / ones, slope


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a script that compares kernels of the folders ROWS and SOURCES."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("rows", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--least-ms", type=float, default=2, help="default: 2")
    parser.add_argument("--most-ms", type=float, default=75, help="default: 75")
    return parser


def main() -> None:
    """Run all comparisons."""
    arguments = parser_of(__doc__).parse_args()
    result = Comparison()
    with tempfile.TemporaryDirectory() as copies:
        programs = Programs(arguments.sources, Path(copies))
        try:
            compare_prim(programs, result, arguments)
            compare_copies(programs, arguments.rows, result)
            compare_additions(programs, arguments.rows, result)
        finally:
            result.show()


if __name__ == "__main__":
    main()
