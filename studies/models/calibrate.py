"""Describe this machine by rates that are measured directly, and constants that are fitted to
timed collectives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from pidcomm import COPY_ORDERS, ArgumentError, Error, Hypercube, allocate
from pidcomm.bench import info, platform
from pidcomm.bench.measure import host_copy_seconds
from pidcomm.model import Constant, Machine, load_machine
from pidcomm.model.prediction import EMULATED_MACHINE
from pidcomm_studies.models.samples import MAX_TOTAL, Timed, Timer, draw, host_seconds

SEED = 1
MOST_BUSY = 0.25  # CPUs that other programs may use
SAMPLES = 400
_RATE_PES = 256
_ROUNDS = 7
_LEAST_TOTAL = 1 << 28  # bytes of a measured pass; fewer bytes could fit in the caches
# These constants do not affect the host's times on an emulated machine.
_KEPT = (
    *("host.emulated", "host.overlap", "ranks.channels", "ranks.per_channel"),
    *("ranks.alternating", "call.mux_us", "sdk.serial_kib", "sdk.least_pes", "sdk.start_kib"),
    *("sdk.thread_start_gb_s", "sdk.host_gb_s"),
    *("pe.clock_mhz", "pe.dma_cycles", "pe.dma_cycles_per_byte", "pe.word_instructions"),
    *("pe.block_instructions", "pe.run_cycles", "pe.launch_us", "pe.launch_rank_us"),
    *("pe.load_us", "pe.load_rank_us", "pe.load_word_us", "pe.load_rank_word_us", "pe.load_words"),
)
_KEPT_SECTIONS = ("network", "pool", "switch", "error")
# Weight of a constant's start value; the weight matters if few samples depend on the constant.
_PULL = 0.05
_INTERVAL_SHARE = 0.95
_OUTLIER = (
    0.2  # a sample has less weight if its error, log(modelled / measured), is above this value
)


def calibrate(
    name: str,
    title: str,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
    max_total: int = MAX_TOTAL,
    force: bool = False,
    on_step: Callable[[], None] = lambda: None,
    on_fit: Callable[[], None] = lambda: None,
) -> tuple[Machine, list[Timed]]:
    """Measure this machine. Return its description, which inherits EMULATED_MACHINE, and the
    samples of the fit.

    Raises Error if other programs use more than MOST_BUSY of a CPU, unless `force`. The sources of
    the constants state this use and the spread of the times. on_step is called after every sample;
    a sample takes about SECONDS_EACH. on_fit is called before the fit.
    """
    busy = info.busy_cpus()
    if busy > MOST_BUSY and not force:
        raise Error(
            f"other programs use {busy:.1f} CPUs of this machine; a calibration needs an idle"
            f" machine (at most {MOST_BUSY}): end them, or use --force"
        )
    threads = platform.threads()
    drawn = draw(seed, samples, threads, max_total=max_total)
    measured = {
        "host.threads": Constant(threads, "threads", "measured: CPUs that this process may use")
    }
    measured |= _rates(threads, max(max_total, _LEAST_TOTAL))
    timed = []
    with Timer(drawn) as timer:
        for sample in drawn:
            timed.append(timer.time(sample))
            on_step()
    on_fit()
    isas = {sample.options["isa"] for sample in drawn}
    constants = {
        key: constant
        for key, constant in {**load_machine(EMULATED_MACHINE).inheritance(), **measured}.items()
        if not key.startswith("isa.") or key.split(".")[1] in isas
    }
    source = (
        f"fitted: least squares over {samples} random collectives timed on this machine (seed"
        f" {seed}); other programs used {busy:.1f} CPUs before; the quartiles of a time lie"
        f" {100 * np.median([timing.spread for timing in timed]):.0f}% apart in the median"
    )
    start = Machine(name, title, constants, EMULATED_MACHINE)
    kept = [name for name in constants if name.partition(".")[0] in _KEPT_SECTIONS]
    machine = fit(start, timed, [*_KEPT, *kept, *measured], source)
    return machine.with_values(_errors(machine, timed), "fitted: errors of the same samples"), timed


def _errors(machine: Machine, timed: Sequence[Timed]) -> dict[str, float]:
    """Return the constants error.* of the host, from the errors of timed collectives."""
    ratios: dict[bool, list[float]] = {True: [], False: []}  # by whether the SDK transfers
    for timing in timed:
        modelled = host_seconds(timing.sample.case(), machine.numbers)
        ratios[timing.sample.path == "sdk"].append(timing.seconds / modelled)
    return interval_constants("pass", ratios[False]) | {
        name: value
        for kind in ("sdk", "work")
        for name, value in interval_constants(kind, ratios[True]).items()
    }


def interval_constants(kind: str, ratios: Sequence[float]) -> dict[str, float]:
    """Return the constants error.KIND_low and error.KIND_high: the closest two, on both sides of 1,
    between which 95% of the ratios of measured to modelled times lie. Without ratios, returns
    nothing.
    """
    if not ratios:
        return {}
    ordered, inside = sorted(ratios), round(_INTERVAL_SHARE * len(ratios))
    bounds = [
        (min(low, 1), max(high, 1))
        for low, high in zip(ordered, ordered[inside - 1 :], strict=False)
    ]
    low, high = min(bounds, key=lambda ends: ends[1] / ends[0])
    return {
        f"error.{kind}_low": floor(1000 * low) / 1000,
        f"error.{kind}_high": ceil(1000 * high) / 1000,
    }


def _rates(threads: int, total: int) -> dict[str, Constant]:
    """Return the measured rates of streaming passes and copies."""
    size = total // _RATE_PES // 2
    with allocate(pes=_RATE_PES) as pes:
        cube = pes.hypercube(_RATE_PES)
        read = _stream_gb_s(cube, size, 0, threads)
        written = _stream_gb_s(cube, 0, size, threads)
        alone = _stream_gb_s(cube, size, size, 1)
    source, target = (np.full(total // 2, value, np.uint8) for value in (1, 2))
    copies = [host_copy_seconds(target, source, threads) for _ in range(_ROUNDS)]
    copy = float(2 * source.nbytes / np.median(copies) / 1e9)
    how = f"{2 * size * _RATE_PES >> 21} MiB, the best order of COPY_ORDERS"

    def rate(value: float, what: str, unit: str = "GB/s") -> Constant:
        return Constant(float(f"{value:.3g}"), unit, f"measured: {what}")

    return {
        "bus.read_gb_s": rate(
            read, f"streaming loads of {how}, {threads} threads", "GB/s per channel"
        ),
        "bus.write_gb_s": rate(
            written, f"streaming stores of {how}, {threads} threads", "GB/s per channel"
        ),
        "memory.read_gb_s": rate(
            copy, f"an ordinary copy, bytes read + written, {threads} threads"
        ),
        "memory.write_gb_s": rate(
            copy, f"an ordinary copy, bytes read + written, {threads} threads"
        ),
        "memory.thread_gb_s": rate(alone, "streaming copy, bytes read + written, one thread"),
    }


def _stream_gb_s(cube: Hypercube, bytes_read: int, bytes_written: int, threads: int) -> float:
    """Return the rate of the streaming limit in the fastest copy order."""
    dst = max(bytes_read, bytes_written)
    rates = []
    for copy_order in COPY_ORDERS:
        runs = [
            cube.stream_limit(
                bytes_read,
                bytes_written,
                dst=dst,
                copy_order=copy_order,
                threads=threads,
                coherence="none",
            )
            for _ in range(_ROUNDS)
        ]
        rates.append(runs[0][1] / np.median([seconds for seconds, _ in runs]) / 1e9)
    return float(max(rates))


def fit(start: Machine, timed: Sequence[Timed], kept: Sequence[str], source: str) -> Machine:
    """Return the machine with constants that are fitted to the timed samples. kept: constants that
    are not fitted.
    """
    names = [name for name in start.constants if name not in kept]
    cases = [timing.sample.case() for timing in timed]
    return fit_to_times(
        start,
        names,
        lambda numbers: [host_seconds(case, numbers) for case in cases],
        [timing.seconds for timing in timed],
        source,
    )


def fit_to_times(
    start: Machine,
    names: Sequence[str],
    modelled: Callable[[Sequence[float]], Sequence[float]],
    measured: Sequence[float],
    source: str,
) -> Machine:
    """Return the machine with the constants `names` fitted to measured times.

    modelled: returns the times that the model gives to the same work, from the constants as
    ``Machine.numbers``. The method is least squares over log(modelled / measured) with less weight
    for outliers. Constants are fitted as logarithms and therefore stay positive. A small weight
    pulls the constants towards their start values. Raises ArgumentError if a start value is 0.
    """
    if zeros := [name for name in names if start[name] == 0]:
        raise ArgumentError(
            f"machine {start.name} has {zeros[0]} = 0, but the fit multiplies this constant; start"
            " from another machine"
        )
    places = [start.places[name] for name in names]
    first = np.log([start[name] for name in names])
    logs_measured = np.log(measured)
    numbers = np.array(start.numbers)

    def residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        numbers[places] = np.exp(logs)
        errors = np.log(modelled(numbers.tolist())) - logs_measured
        return np.concatenate([errors, _PULL * (logs - first)])

    solution = least_squares(residuals, first, loss="soft_l1", f_scale=_OUTLIER, max_nfev=30)
    values = {
        name: float(f"{value:.3g}") for name, value in zip(names, np.exp(solution.x), strict=True)
    }
    return start.with_values(values, source)
