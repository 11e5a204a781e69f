"""Fit the constants of modelled times, and write them.

python tools/fit_pe_time.py ROWS SOURCES

ROWS and SOURCES are the folders of dpuemu/bench/dimm_times.py. The script runs `make install` after
each step, because the next step runs the emulator or the model with the new constants:
1. pidcomm/machines/upmem-2560.toml: the constants of `pidcomm model fit-dimms`, which the script
   copies to the machines that assume them, and those of launches to dpuemu/bench/dimm_times.py.
2. dpuemu/src/pe/clock.h: the cycles of a transfer for one tasklet, from copies.
3. dpuemu/compiler/costs.py: the instructions per iteration of a loop of unknown length, from
   programs of which each element is an iteration; it prints this constant also without each
   program.
4. dpuemu/python/dpuemu/reports.py: the interval that holds 95% of the kernels, if each program
   counts alike.
5. pidcomm/machines/emulated-host.toml: the constants of pe/reorder.c, from emulated collectives.
6. pidcomm/machines/isca24.toml: the constants that are fitted to published numbers.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from math import prod
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "dpuemu" / "bench"), str(ROOT / "dpuemu" / "compiler")]

import costs  # type: ignore[import-not-found]  # noqa: E402
import linking  # type: ignore[import-not-found]  # noqa: E402
from dimm_times import (  # type: ignore[import-not-found]  # noqa: E402
    CLOCK_KHZ,
    Comparison,
    Programs,
    compare_prim,
    fit_transfers,
    launch_ms,
    parser_of,
    prim_kernels,
)

CLOCK = ROOT / "dpuemu" / "src" / "pe" / "clock.h"
COSTS = ROOT / "dpuemu" / "compiler" / "costs.py"
REPORTS = ROOT / "dpuemu" / "python" / "dpuemu" / "reports.py"
REORDER = ROOT / "build" / "pidcomm" / "release" / "reorder"
WORD_BYTES = 4
MACHINES = ROOT / "pidcomm" / "machines"
# The number of elements is the product of these options.
ELEMENTS = {"RED": "i", "VA": "i", "HST-S": "i", "GEMV": "mn"}
REORDERS = (((8, 8), "10"), ((2, 32), "10"), ((4, 16), "10"), ((4, 16), "11"), ((64,), "1"))
BLOCKS = (8, 16, 24, 32, 48, 56, 64, 96, 128, 256, 512, 1024, 2048, 4096, 16384, 65536)
MOST_BYTES = 1 << 20  # per PE
AS_FITTED = "as fitted for upmem-2560"
REORDER_NAMES = (
    "pe.dma_cycles",
    "pe.word_instructions",
    "pe.block_instructions",
    "pe.run_cycles",
)
SHARES_PER_PROGRAM = 20
# Fits start here, so that the constants do not depend on those of the fit before.
REORDER_START = (10.0, 10.0, 40.0, 2000.0)


def write(file: Path, form: str, values: Mapping[str, str]) -> None:
    """Replace the values of constants in a file. form: how a constant NAME with VALUE stands."""
    text = file.read_text(encoding="utf-8")
    for name, value in values.items():
        before, after = form.replace("NAME", re.escape(name)).split("VALUE")
        text, count = re.subn(rf"({before})[-\d.e]+(?={after})", rf"\g<1>{value}", text, flags=re.M)
        if count != 1:
            sys.exit(f"{file} has {count} constants {name}; it must have one")
        print(f"{file.relative_to(ROOT)}: {name} = {value}", flush=True)
    file.write_text(text, encoding="utf-8")


def fit_loops(arguments: argparse.Namespace) -> float:
    """Return the instructions per iteration of a loop of unknown length."""
    fits: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as copies:
        programs = Programs(arguments.sources, Path(copies))
        for row, modelled_ms in prim_kernels(programs, arguments, ELEMENTS):
            options = dict(re.findall(r"-(\w) (\d+)", row["run_args"]))
            elements = prod(int(options[name]) for name in ELEMENTS[row["program"]])
            missing_ms = float(row["dimm_kernel_ms"]) - launch_ms(row) - modelled_ms
            per_element = missing_ms * CLOCK_KHZ / (elements / int(row["dpus"]))
            fits[row["program"]].append(costs.UNKNOWN_LENGTH + per_element)
    medians = {program: median(own) for program, own in fits.items()}
    for left_out, own in medians.items():
        others = [value for program, value in medians.items() if program != left_out]
        print(f"{left_out}: {own:.2f}; all others: {median(others):.2f}")
    return median(medians.values())


def fit_reorder() -> dict[str, float]:
    """Return the constants of pe/reorder.c."""
    import numpy as np
    from scipy.optimize import least_squares

    import pidcomm
    from pidcomm.model import PHASES, load_machine
    from pidcomm.model.prediction import PreparedCase

    machine = load_machine("emulated-host")
    cases, emulated = [], []
    with pidcomm.allocate(pes=64) as pes:
        for shape, mask in REORDERS:
            cube = pes.hypercube(*shape)
            members = prod(n for n, is_chosen in zip(shape, mask, strict=True) if is_chosen == "1")
            for size in (members * block for block in BLOCKS if members * block <= MOST_BYTES):
                data = np.zeros((64, size // 8), np.int64)
                cube.arrays.alltoall(data, mask, technique="pr")
                cases.append(
                    PreparedCase(
                        "alltoall", shape, mask, bytes=size, technique="pr", scratch=16 * MOST_BYTES
                    )
                )
                if cube.last_trace is None:
                    sys.exit("the emulator has no trace of the collective")
                emulated.append(cube.last_trace.pe_seconds)
    places = [machine.places[name] for name in REORDER_NAMES]
    phase = list(PHASES).index("pe")
    numbers = np.array(machine.numbers)
    per_byte = engine_cycles_per_byte()
    numbers[machine.places["pe.dma_cycles_per_byte"]] = per_byte

    def residuals(logs: np.ndarray) -> np.ndarray:
        numbers[places] = np.exp(logs)
        modelled = [case.phase_seconds(numbers.tolist())[phase] for case in cases]
        return np.log(modelled) - np.log(emulated)

    fit = least_squares(residuals, np.log(REORDER_START), loss="soft_l1", f_scale=0.1)
    ratios = np.exp(residuals(fit.x))
    print(
        f"modelled times of reordering are {ratios.min():.2f} to {ratios.max():.2f} emulated ones"
    )
    fitted = dict(zip(REORDER_NAMES, map(float, np.exp(fit.x)), strict=True))
    return {"pe.dma_cycles_per_byte": per_byte, "pe.load_words": reorder_words(), **fitted}


def reorder_words() -> int:
    """Return the instructions of pe/reorder.c, and its words in WRAM."""
    program = linking.Program(REORDER.read_bytes())
    return int(program.instructions() + program.sections[".heap"][0] // WORD_BYTES)


def fit_interval(arguments: argparse.Namespace) -> tuple[float, float]:
    """Return the shares of modelled times between which 95% of the kernels lie, if each program
    counts alike.
    """
    import numpy as np

    from pidcomm_studies.models.calibrate import interval_constants

    result = Comparison()
    with tempfile.TemporaryDirectory() as copies:
        compare_prim(Programs(arguments.sources, Path(copies)), result, arguments)
    ranks = np.linspace(0, 1, SHARES_PER_PROGRAM)
    shares = [share for own in result.shares() for share in np.quantile(own, ranks)]
    low, high = interval_constants("kernel", shares).values()
    return low, high


def fit_dimms(rows: Path) -> None:
    """Fit upmem-2560, and copy its constants to the machines that assume them."""
    from pidcomm.model import load_machine

    file = machine_file("upmem-2560")
    command = [str(Path(sys.executable).with_name("pidcomm")), "model", "fit-dimms", str(file)]
    subprocess.run([*command, "--rows", str(rows)], check=True)
    fitted = load_machine(str(file))
    for machine in ("emulated-host", "isca24"):
        own = re.findall(rf"^(\w+) = .*{AS_FITTED}", machine_file(machine).read_text(), re.M)
        copied = {name: fitted[name] for name in fitted.constants if name.split(".")[-1] in own}
        write_machine(machine, copied, 4, AS_FITTED)
    names = {"LAUNCH_US": "pe.launch_us", "LAUNCH_RANK_US": "pe.launch_rank_us"}
    launches = {name: f"{fitted[constant]:g}" for name, constant in names.items()}
    write(ROOT / "dpuemu" / "bench" / "dimm_times.py", "^NAME = VALUE$", launches)


def fit_published() -> dict[str, float]:
    """Return the constants of isca24 that are fitted to published numbers."""
    from pidcomm_studies.models import paper_fit

    fitted = paper_fit.fit()
    return {name: fitted[name] for name in paper_fit.START}


def engine_cycles_per_byte() -> float:
    """Return a constant of the DMA engine from the clock of the emulator."""
    text = CLOCK.read_text(encoding="utf-8")
    if (value := re.search(r"\bkEngineCyclesPerByte = ([\d.]+)", text)) is None:
        sys.exit(f"{CLOCK} has no constant kEngineCyclesPerByte")
    return float(value[1])


def machine_file(machine: str) -> Path:
    """Return the file of a built-in machine."""
    return MACHINES / f"{machine}.toml"


def write_machine(machine: str, values: Mapping[str, float], digits: int, source: str) -> None:
    """Replace constants of a machine that have the source."""
    for constant, value in values.items():
        section, _, name = constant.rpartition(".")
        lines_before = rf"^\[{re.escape(section)}\]\n(?:[^\[\n].*\n)*?"
        form = f"{lines_before}NAME = {{ value = VALUE, .*{source}"
        write(machine_file(machine), form, {name: f"{float(f'{value:.{digits}g}'):g}"})


def main() -> None:
    """Carry out one step, or all steps."""
    parser = parser_of(__doc__)
    parser.add_argument("--step", type=int, help="only one step, 1 to 6")
    arguments = parser.parse_args()
    if arguments.step is None:
        for step in range(1, 7):
            here = [sys.executable, __file__, str(arguments.rows), str(arguments.sources)]
            subprocess.run([*here, "--step", str(step)], check=True)
            subprocess.run(["make", "-s", "install"], cwd=ROOT, check=True)
    elif arguments.step == 1:
        fit_dimms(arguments.rows)
    elif arguments.step == 2:
        constant, per_byte = fit_transfers(arguments.rows)
        names = ("kTransferCycles", "kTransferCyclesPerByte")
        values = dict(zip(names, (f"{constant:.1f}", f"{per_byte:.3f}"), strict=True))
        write(CLOCK, r"\bNAME = VALUE[,;]", values)
    elif arguments.step == 3:
        value = fit_loops(arguments)
        write(COSTS, "^NAME = VALUE$", {"UNKNOWN_LENGTH": f"{value:.0f}"})
    elif arguments.step == 4:
        low, high = fit_interval(arguments)
        write(REPORTS, r"^NAME = \(VALUE, ", {"DIMM_SHARES": f"{low:g}"})
        write(REPORTS, r"^NAME = \([\d.]+, VALUE\)$", {"DIMM_SHARES": f"{high:g}"})
        write_machine("emulated-host", {"error.kernel_low": low}, 3, "as the emulator states")
    elif arguments.step == 5:
        write_machine("emulated-host", fit_reorder(), 3, "emulator")
    else:
        fitted = fit_published()
        write_machine("isca24", fitted, 4, "fitted: to the numbers")
        slow = {
            "work.slow_combine_gb_s": fitted["work.combine_gb_s"] / 2,
            "isa.avx512bw.slow_combine_ns": 2 * fitted["isa.avx512bw.combine_ns"],
        }
        write_machine("isca24", slow, 4, "assumed: twice as slow")


if __name__ == "__main__":
    main()
