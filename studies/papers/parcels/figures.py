"""The paper's benchmark and figures 4 to 7, on the simulated machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from pidcomm import Error
from pidcomm_studies.papers.figure import (
    MODELLED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.parcels.build import ENGINES, HERE, build_folder, compile_program
from pidcomm_studies.parcels.run import BENCHMARK, OVERHEAD, SIZES, Machine, Run

PAPER = (
    "Rodrigues, Murphy, Kogge, Brockman, Brightwell, Underwood: Implications of a PIM Architectural"
    " Model for MPI"
)
POSTED = (0, 20, 40, 60, 80, 100)
CALLS = ("MPI_Probe", "MPI_Send", "MPI_Recv")
COPY_BYTES = tuple(1024 * kib for kib in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128, 256))
COPIES = 4
PIM, LAM, MPICH = ENGINES
_FIELDS = ("instructions", "references", "cycles")


@dataclass(frozen=True)
class Results:
    """The runs of the benchmark by engine, size and percentage of posted receives; and copies on
    one machine.

    copies: instructions and cycles of a copy by machine and bytes.
    """

    runs: dict[tuple[str, str, int], Run]
    copies: dict[tuple[str, int], tuple[float, float]]


def measure(
    step: Callable[[str], None] = lambda _: None,
    latency: int | None = None,
    pim: Mapping[str, int] | None = None,
    *,
    with_copies: bool = True,
) -> Results:
    """Run the benchmark on all engines.

    step: called with a few words before each part. latency: of the network of all machines. pim:
    other values of the machine of travelling threads, as for `Machine`. with_copies: also run the
    copies of figure 7.
    Raises Error if a process received a wrong byte.
    """
    runs: dict[tuple[str, str, int], Run] = {}
    copies: dict[tuple[str, int], tuple[float, float]] = {}
    with build_folder() as folder:
        program = compile_program(HERE / "programs" / "posted.c", folder)
        copier = compile_program(HERE / "programs" / "copy.c", folder)
        for engine in ENGINES:
            step(f"{engine}: compiling")
            changes = {} if latency is None else {"latency": latency}
            machine = Machine(engine, folder, **changes, **(pim or {} if engine == PIM else {}))
            for name, size in SIZES.items():
                for posted in POSTED:
                    step(f"{engine}: {name}, {posted}% posted")
                    runs[engine, name, posted] = _checked(machine, program, 2, (size, posted))
            if with_copies and engine in (PIM, MPICH):
                step(f"{engine}: copies")
                for size in COPY_BYTES:
                    copies[engine, size] = _copy(machine, copier, size)
    return Results(runs, copies)


def _results(request: Request) -> Results:
    return measure(
        request.progress.phase,
        request.latency,
        request.pim,
        with_copies="parcels/fig7" in request.figures,
    )


def _checked(machine: Machine, program: Path, nodes: int, arguments: Sequence[object]) -> Run:
    run = machine.run(program, nodes, arguments)
    if run.code or run.blocked:
        raise Error(
            f"{program.stem} on {machine.engine.name}:"
            f" {run.output.strip() or f'blocked: {run.blocked}'}"
        )
    return run


def _copy(machine: Machine, program: Path, size: int) -> tuple[float, float]:
    """Return the instructions and cycles of a copy after the first one: the difference of two
    runs.
    """
    one, more = (_checked(machine, program, 1, (size, copies)) for copies in (1, 1 + COPIES))
    instructions, cycles = (
        (more.total(field, ("application",)) - one.total(field, ("application",))) / COPIES
        for field in ("instructions", "cycles")
    )
    return instructions, cycles


def overhead(run: Run, field: str) -> float:
    """Return the overhead of the benchmark's calls."""
    return run.total(field, OVERHEAD, BENCHMARK)


def _figure(
    name: str,
    title: str,
    panels: Sequence[Panel],
    model: Callable[[Request], Iterable[Point]],
    statements: Callable[[Request, Sequence[Point]], Iterable[Statement]],
    note: str = "",
) -> Figure:
    options = ("--latency", "--pim")
    return Figure(
        f"parcels/{name}", PAPER, title, panels, model, statements, note=note, options=options
    )


def _panels(what: Iterable[tuple[str, str, str]], x: str = "% posted") -> list[Panel]:
    return [Panel(f"{letter}) {name}", text, x) for letter, name, text in what]


def _by_posted(
    results: Results, panel: str, size: str, value: Callable[[Run], float]
) -> Iterator[Point]:
    for (engine, name, posted), run in results.runs.items():
        if name == size:
            yield Point(panel, engine, posted, value(run), MODELLED, "the simulated machine", 0)


def _mean_ratio(results: Results, size: str, engine: str, field: str) -> float:
    """Return by how much travelling threads are below an engine: the mean over the percentages,
    as a fraction.
    """
    ratios = [
        overhead(results.runs[PIM, size, posted], field)
        / overhead(results.runs[engine, size, posted], field)
        for posted in POSTED
    ]
    return 1 - sum(ratios) / len(ratios)


def _less(part: float) -> str:
    return f"{abs(part):.0%} {'less' if part >= 0 else 'more'}"


def _figure_4() -> Figure:
    panels = _panels(
        (letter, name, f"overhead {field}")
        for letter, field, name in (
            ("a", "instructions", "eager"),
            ("b", "instructions", "rendezvous"),
            ("c", "references", "eager"),
            ("d", "references", "rendezvous"),
        )
    )

    def model(request: Request) -> Iterator[Point]:
        results = request.shared(_results)
        for panel, (field, size) in zip(
            panels, [(f, s) for f in _FIELDS[:2] for s in SIZES], strict=True
        ):
            yield from _by_posted(results, panel.name, size, partial(overhead, field=field))

    def statements(request: Request, _: Sequence[Point]) -> Iterator[Statement]:
        results = request.shared(_results)
        for engine, text in ((LAM, "fewer than LAM"), (MPICH, "usually fewer than MPICH")):
            fewer = _fewer(results, engine, "instructions")
            means = ", ".join(
                _less_of(size, _mean_ratio(results, size, engine, "instructions")) for size in SIZES
            )
            wanted = len(fewer) if engine == LAM else len(fewer) // 2 + 1
            yield Statement(
                f"instructions: {text}",
                f"fewer in {sum(fewer)} of {len(fewer)} cases; means: {means} than {engine}",
                sum(fewer) >= wanted,
            )
        for engine in (LAM, MPICH):
            fewer = _fewer(results, engine, "references")
            means = ", ".join(
                _less_of(size, _mean_ratio(results, size, engine, "references")) for size in SIZES
            )
            yield Statement(
                f"memory references: fewer than {engine}",
                f"fewer in {sum(fewer)} of {len(fewer)} cases; means: {means}",
                all(fewer),
            )

    return _figure("fig4", "overhead instructions and memory references", panels, model, statements)


def _fewer(results: Results, engine: str, field: str) -> list[bool]:
    """Return for each case of the benchmark whether travelling threads need less overhead than
    an engine.
    """
    return [
        overhead(results.runs[PIM, size, posted], field)
        < overhead(results.runs[engine, size, posted], field)
        for size in SIZES
        for posted in POSTED
    ]


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _less_of(name: str, part: float) -> str:
    return f"{name} {_less(part)}"


def _figure_5() -> Figure:
    panels = _panels(
        (letter, size, "overhead cycles") for letter, size in zip("ab", SIZES, strict=True)
    )

    def model(request: Request) -> Iterator[Point]:
        results = request.shared(_results)
        for panel, size in zip(panels, SIZES, strict=True):
            yield from _by_posted(results, panel.name, size, lambda run: overhead(run, "cycles"))
            for posted in POSTED:
                run = results.runs[PIM, size, posted]
                value = overhead(run, "instructions")
                yield Point(
                    panel.name,
                    "pim, issue slots",
                    posted,
                    value,
                    MODELLED,
                    "the simulated machine",
                    0,
                )

    def statements(request: Request, _: Sequence[Point]) -> Iterator[Statement]:
        results = request.shared(_results)
        for size, published in (
            ("eager", {MPICH: 57, LAM: 42}),
            ("rendezvous", {MPICH: 58, LAM: 78}),
        ):
            for engine, percent in published.items():
                part = _mean_ratio(results, size, engine, "cycles")
                slots = 1 - sum(
                    overhead(results.runs[PIM, size, posted], "instructions")
                    / overhead(results.runs[engine, size, posted], "cycles")
                    for posted in POSTED
                ) / len(POSTED)
                yield Statement(
                    f"{size}: {percent}% fewer overhead cycles than {engine}",
                    f"{_less(part)} elapsed cycles; {_less(slots)} if other threads fill the"
                    " pipeline (issue slots)",
                    part > 0,
                )
        for engine, text, is_high in (
            (MPICH, "MPICH's IPC is usually below 0.6", False),
            (PIM, "the IPC of travelling threads tends to be high (here: above 0.6)", True),
        ):
            ipc = [
                overhead(run, "instructions") / overhead(run, "cycles")
                for (name, _, _), run in results.runs.items()
                if name == engine
            ]
            yield Statement(text, _range(ipc), (median(ipc) > 0.6) == is_high)

    note = (
        "Elapsed cycles: each thread has one of the four stages, so a thread that runs alone issues"
        " every fourth cycle, and each reference waits for an open or closed row. The"
        " single-threaded engines keep their small state in the first cache. Issue slots count the"
        " cycles that other threads of the node lose. The engines here execute fewer instructions"
        " than LAM and MPICH did."
    )
    return _figure("fig5", "overhead cycles", panels, model, statements, note=note)


def _figure_6() -> Figure:
    panels = _panels(
        (
            (letter, f"{size} {field}", f"{field} by call and category")
            for letter, (field, size) in zip(
                "abcdef",
                [(f, s) for f in ("cycles", "instructions", "references") for s in SIZES],
                strict=True,
            )
        ),
        "call, category",
    )

    def model(request: Request) -> Iterator[Point]:
        results = request.shared(_results)
        for panel in panels:
            size, field = panel.name.split()[1:]
            for engine in ENGINES:
                for call in CALLS:
                    for category in OVERHEAD:
                        runs = [results.runs[engine, size, posted] for posted in POSTED]
                        value = sum(run.total(field, (category,), (call,)) for run in runs) / len(
                            runs
                        )
                        x = f"{call.removeprefix('MPI_')} {category}"
                        yield Point(
                            panel.name, engine, x, value, MODELLED, "the simulated machine", 0
                        )

    def share(results: Results, engine: str, posted: Sequence[int] = ()) -> list[float]:
        runs = [results.runs[engine, size, part] for size in SIZES for part in posted or POSTED]
        return [
            run.total("instructions", ("juggling",), BENCHMARK) / overhead(run, "instructions")
            for run in runs
        ]

    def statements(request: Request, points: Sequence[Point]) -> Iterator[Statement]:
        results = request.shared(_results)
        for engine, low, high in ((LAM, 14, 60), (MPICH, 18, 23)):
            shares = share(results, engine)
            yield Statement(
                f"juggling is {low}% to {high}% of the overhead instructions of {engine}",
                f"{min(shares):.0%} to {max(shares):.0%}",
                low <= round(100 * min(shares)) and round(100 * max(shares)) <= high,
            )
        none, all_posted = (share(results, LAM, (posted,)) for posted in (POSTED[0], POSTED[-1]))
        yield Statement(
            "LAM's juggling depends on the number of outstanding requests",
            ", ".join(
                f"{size}: {a:.0%} with none, {b:.0%} with all posted"
                for size, a, b in zip(SIZES, none, all_posted, strict=True)
            ),
            all(b > a for a, b in zip(none, all_posted, strict=True)),
        )
        yield Statement(
            "travelling threads do not juggle",
            f"{max(share(results, PIM)):.0%}",
            max(share(results, PIM)) == 0,
        )
        clean = {
            engine: sum(
                run.total("instructions", ("cleanup",), BENCHMARK)
                for (name, _, _), run in results.runs.items()
                if name == engine
            )
            for engine in ENGINES
        }
        yield Statement(
            "travelling threads often need more clean-up instructions",
            f"{clean[PIM] / clean[LAM]:.2f}x LAM, {clean[PIM] / clean[MPICH]:.2f}x MPICH",
            clean[PIM] > max(clean[LAM], clean[MPICH]),
        )

        def cycles(engine: str, call: str) -> float:
            values = series_of(points, panels[1].name, engine)
            return sum(
                value
                for x, value in values.items()
                if str(x).split()[0] == call.removeprefix("MPI_")
            )

        slower = [call for call in CALLS if cycles(PIM, call) > cycles(MPICH, call)]
        yield Statement(
            "rendezvous: MPICH needs fewer cycles in MPI_Send, as an exception",
            f"MPICH needs fewer in {', '.join(slower) or 'no call'}",
            slower == ["MPI_Send"],
        )

    note = (
        "Means over the percentages of posted receives. A call includes the threads that it"
        " started."
    )
    return _figure("fig6", "overhead by call and category", panels, model, statements, note=note)


def _figure_7() -> Figure:
    panels = [
        Panel("a) rendezvous", "overhead and copy cycles", "% posted"),
        Panel("b) eager", "overhead and copy cycles", "% posted"),
        Panel("c) copies", "instructions per cycle of a copy", "KiB"),
    ]

    def model(request: Request) -> Iterator[Point]:
        results = request.shared(_results)
        for panel, size in ((panels[0], "rendezvous"), (panels[1], "eager")):
            yield from _by_posted(
                results,
                panel.name,
                size,
                lambda run: run.total("cycles", (*OVERHEAD, "copy"), BENCHMARK),
            )
        for (engine, copied), (instructions, cycles) in results.copies.items():
            series = "conventional processor" if engine == MPICH else "pim, one thread"
            yield Point(
                panels[2].name,
                series,
                copied // 1024,
                instructions / cycles,
                MODELLED,
                "the simulated machine",
                0,
            )

    def statements(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
        ipc = series_of(points, panels[2].name, "conventional processor")
        small = [value for kib, value in ipc.items() if isinstance(kib, (int, float)) and kib < 32]
        large = [value for kib, value in ipc.items() if isinstance(kib, (int, float)) and kib > 32]
        yield Statement(
            "conventional copies below 32 KiB: IPC close to 1.0 (here: 0.9 or more)",
            _range(small),
            min(small) >= 0.9,
        )
        yield Statement(
            "larger conventional copies: IPC below 0.4", _range(large), max(large) < 0.4
        )

    note = (
        "Copies: travelling threads load and store each word, into a parcel and out of it; the"
        " conventional network loads each word of the program's buffer and stores it at the"
        " receiver. Both count as copies here."
    )
    return _figure(
        "fig7", "cycles with copies; copies by size", panels, model, statements, note=note
    )


FIGURE_4 = _figure_4()
FIGURE_5 = _figure_5()
FIGURE_6 = _figure_6()
FIGURE_7 = _figure_7()
