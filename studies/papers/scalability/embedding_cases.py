"""Cases of embedding tables that several figures price and run: points by clock, and the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pidcomm.model import load_machine
from pidcomm_studies import apps
from pidcomm_studies.apps.embedding import MODELS, Clocks, Embedding, clocks_of
from pidcomm_studies.papers.figure import (
    HERE,
    MEASURED,
    MIXED,
    MODELLED,
    Panel,
    Point,
    Request,
    series_of,
)
from pidcomm_studies.papers.scalability.embedding_price import MACHINE, Work, clocks, cpu_seconds
from pidcomm_studies.papers.scalability.paper import CLOCKS, CPU, PAPER_WAY, WAYS, clock_shares

ONE = MODELS["one"]


def by_clocks(
    label: str, x: float | str, times: Clocks, source: str, on: str, wrong: int | None = None
) -> list[Point]:
    """Return the points of one case: the kernel, the total, and each clock in percent of the
    total.
    """
    kernel = Point(
        "a", label, x, 1e6 * times.kernel, MODELLED if source == MIXED else source, on, wrong
    )
    return [
        kernel,
        Point("b", label, x, 1e6 * times.total, source, on),
        *clock_shares("c", label, x, times, source, on),
    ]


def priced_cases(
    works: dict[float | str, dict[str, Work]], with_cpu: bool = True
) -> Iterator[Point]:
    """Price works, by x and partition, with the paper's way and the fast one."""
    machine = load_machine(MACHINE)
    for x, of_x in works.items():
        if with_cpu:
            bags = next(iter(of_x.values())).bags
            seconds = cpu_seconds(bags, next(iter(of_x.values())).model.columns, machine)
            yield Point("a", CPU, x, 1e6 * seconds, MODELLED, MACHINE)
            yield Point("b", CPU, x, 1e6 * seconds, MODELLED, MACHINE)
        for partition, work in of_x.items():
            for name, way in WAYS.items():
                times = clocks(work, *way, machine)
                yield from by_clocks(f"{partition}, {name}", x, times, MODELLED, MACHINE)


def run_cases(works: dict[float | str, dict[str, Work]], request: Request) -> Iterator[Point]:
    """Run works here with both ways, and the look-up on the CPUs of this machine."""
    for x, of_x in works.items():
        for number, (partition, work) in enumerate(of_x.items()):
            for name, (path, technique) in WAYS.items():
                request.progress.phase(f"{x}: {partition}, {name}")
                problem = Embedding(
                    work.random_tables(), work.bags, path=path, tasklets=work.tasklets
                )
                is_first = number == 0 and name == PAPER_WAY
                run = apps.run(
                    problem,
                    shape=work.shape,
                    technique=technique,
                    iters=request.iters,
                    with_cpu=is_first,
                )
                label = f"{partition}, {name}"
                yield from by_clocks(label, x, clocks_of(run), MIXED, HERE, run.wrong)
                if run.cpu_seconds is not None:
                    yield Point("b", CPU, x, 1e6 * run.cpu_seconds, "measured", HERE)


def clock_us(points: Sequence[Point], name: str, label: str) -> dict[float | str, float]:
    """Return the microseconds of a clock by x."""
    total, shares = (series_of(points, panel, label) for panel in ("b", f"c {name}"))
    return {x: share * total[x] / 100 for x, share in shares.items()}


def cases(
    xs: Iterable[float | str],
    make: Callable[[float | str, str], Work | None],
    partitions: Sequence[str],
) -> dict[float | str, dict[str, Work]]:
    works = {
        x: {name: work for name in partitions if (work := make(x, name)) is not None} for x in xs
    }
    return {x: of_x for x, of_x in works.items() if of_x}


PANELS = (
    Panel("a", "kernel, us", "", is_log=True),
    Panel("b", "total, us", "", is_log=True),
    *(Panel(f"c {name}", "% of the total", "") for name in CLOCKS),
)


CPU_PANEL = Panel("CPU", "ns per row", "CPU", is_log=True)


def panels(x: str) -> list[Panel]:
    return [Panel(panel.name, panel.what, x, panel.is_log) for panel in PANELS]


def one_table(dtype: str) -> Embedding:
    """Return the problem of figure 6 for the CPU."""
    work = Work(ONE, (1, 1, 1), dtype=dtype)
    return Embedding(work.random_tables(), work.bags)


def row_ns(label: str, seconds: float) -> Point:
    """Return the measured nanoseconds of the CPU here for each row of the table."""
    return Point(
        "CPU", "ns per row", label, 1e9 * seconds / (ONE.batch * ONE.pooling), MEASURED, HERE
    )


def most_additions(works: Mapping[str, Work]) -> str:
    """Return the additions of elements of the busiest PE, by partition."""
    return ", ".join(f"{work.additions()} with {name}s" for name, work in works.items())
