"""Figure 11 of the paper: RM1, RM2 and RM3 over partitions, priced at full height and run here
at a 256th.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pidcomm import ArgumentError
from pidcomm.model import load_machine
from pidcomm_studies import apps
from pidcomm_studies.apps.embedding import (
    DEFAULT_SCALE,
    MODELS,
    PARTITIONS,
    Clocks,
    Embedding,
    clocks_of,
)
from pidcomm_studies.papers.figure import (
    HERE,
    MEASURED,
    MIXED,
    MODELLED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.scalability.embedding_price import (
    CHOICES,
    LAYERS_GFLOPS,
    MACHINE,
    Work,
    clocks,
    cpu_seconds,
    layers_seconds,
    published_row_seconds,
)
from pidcomm_studies.papers.scalability.paper import (
    CLOCKS,
    CPU,
    CPU_NAMES,
    FAST,
    NEAR,
    PAPER,
    PAPER_WAY,
    PUBLISHED_CPU,
    WAY_NAMES,
    WAYS,
    clock_shares,
    listed,
    near,
    priced,
    published,
)

PES, PES_HERE = 2560, 1024
NAMES = ("rm1", "rm2", "rm3")
CUTS = {"R": "row", "C-R": "column-row", "T-R": "table-row"}
BATCHES = (16, 64, 256)
HYBRID_GAIN, WHOLE_GAIN = 13.2, 8.0  # published, for RM3
ROWS_GAIN = 1 - 0.54  # published, for RM1


def _points_of(
    label: str, x: str, times: Clocks, cpu: float, source: str, on: str, wrong: int | None = None
) -> list[Point]:
    points = [
        Point("a", label, x, cpu / times.total, source, on, wrong),
        Point("t", label, x, 1e6 * times.total, source, on),
    ]
    return points + clock_shares("b", label, x, times, source, on)


def _priced(_: Request) -> Iterator[Point]:
    machine = load_machine(MACHINE)
    yield published("a", "R", "rm1", ROWS_GAIN)
    yield published("a", "the best hybrid", "rm3", HYBRID_GAIN)
    yield published("a end to end", "C-R", "rm3", WHOLE_GAIN)
    for name in NAMES:
        model = MODELS[name]
        dense = layers_seconds(model)
        for cut, partition in CUTS.items():
            work = Work(model, PARTITIONS[partition](PES, model))
            cpu = cpu_seconds(work.bags, model.columns, machine)
            if cut == "R":
                yield Point("t", CPU, name, 1e6 * cpu, MODELLED, MACHINE)
                seconds = published_row_seconds() * len(work.bags.indices)
                yield Point("t", PUBLISHED_CPU, name, 1e6 * seconds, MODELLED, MACHINE)
            for way_name, way in WAYS.items():
                times = clocks(work, *way, machine)
                yield from _points_of(f"{cut}, {way_name}", name, times, cpu, MODELLED, MACHINE)
                whole = (cpu + dense) / (times.total + dense)
                yield Point("a end to end", f"{cut}, {way_name}", name, whole, MODELLED, MACHINE)
    yield from _paths_priced()
    for cut, partition in CUTS.items():
        first: dict[str, float] = {}
        for batch in BATCHES:
            model = MODELS["rm2"]._replace(batch=batch)
            work = Work(model, PARTITIONS[partition](PES, model))
            for way_name, way in WAYS.items():
                times = clocks(work, *way, machine)
                each = times.total / batch
                gain = first.setdefault(way_name, each) / each
                if (cut, way_name) == ("C-R", PAPER_WAY):
                    for clock, key in CLOCKS.items():
                        taken = 1e6 * getattr(times, key)
                        yield Point("c C-R", clock, batch, taken, MODELLED, MACHINE)
                yield Point("c", f"{cut}, {way_name}", batch, gain, MODELLED, MACHINE)


def _paths_priced() -> Iterator[Point]:
    """Price RM2 with every path and technique.

    Techniques that do not support a shape are left out.
    """
    machine, model = load_machine(MACHINE), MODELS["rm2"]
    for cut, partition in CUTS.items():
        work = Work(model, PARTITIONS[partition](PES, model))
        for path, technique in CHOICES:
            try:
                times = clocks(work, path, technique, machine)
            except ArgumentError:  # there is no lane split
                continue
            yield Point("paths", cut, f"{path}, {technique}", 1e6 * times.total, MODELLED, MACHINE)


def _paths_run(request: Request) -> Iterator[Point]:
    """Run RM2, cut by columns and rows, with every path and technique."""
    problem = Embedding.make(model="rm2", dtype="float32")
    shape = PARTITIONS[CUTS["C-R"]](PES_HERE, MODELS["rm2"])
    for path, technique in CHOICES:
        request.progress.phase(f"rm2: C-R, {path}, {technique}")
        own = Embedding(problem.tables, problem.bags, path=path)
        run = apps.run(own, shape=shape, technique=technique, iters=request.iters)
        yield Point(
            "paths",
            "C-R",
            f"{path}, {technique}",
            1e6 * clocks_of(run).total,
            MIXED,
            HERE,
            run.wrong,
        )


def _run(request: Request) -> Iterator[Point]:
    """Run the models with a 256th of the rows on 1,024 PEs, alone and with the layers on the
    host.
    """
    for name in NAMES:
        for has_layers in (False, True):
            dtype = "int32" if has_layers else "float32"
            problem = Embedding.make(model=name, dtype=dtype, mlp=has_layers)
            with_cpu = True
            cpu = 0.0
            for cut, partition in CUTS.items():
                for way_name, (path, technique) in WAYS.items():
                    request.progress.phase(
                        f"{name}: {cut}, {way_name}" + ", end to end" * has_layers
                    )
                    own = Embedding(problem.tables, problem.bags, path=path, layers=problem.layers)
                    shape = PARTITIONS[partition](PES_HERE, MODELS[name])
                    run = apps.run(
                        own,
                        shape=shape,
                        technique=technique,
                        iters=request.iters,
                        with_cpu=with_cpu,
                    )
                    cpu, with_cpu = run.cpu_seconds or cpu, False
                    label, times = f"{cut}, {way_name}", clocks_of(run)
                    if has_layers:
                        yield Point(
                            "a end to end", label, name, cpu / times.total, MIXED, HERE, run.wrong
                        )
                    else:
                        yield from _points_of(label, name, times, cpu, MIXED, HERE, run.wrong)
            if not has_layers:
                yield Point("t", CPU, name, 1e6 * cpu, MEASURED, HERE)
    yield from _paths_run(request)


def _statements(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    measured = series_of([point for point in points if point.on == HERE], "t", CPU)
    points = priced(points)
    times = {
        label: series_of(points, "t", label)
        for label in [f"{cut}, {way}" for cut in CUTS for way in WAYS]
    }
    cpus = {CPU_NAMES[label]: series_of(points, "t", label) for label in (CPU, PUBLISHED_CPU)}
    cpu = cpus[CPU_NAMES[CPU]]
    hybrid = {
        way: {x: min(times[f"C-R, {way}"][x], times[f"T-R, {way}"][x]) for x in cpu} for way in WAYS
    }
    for way in WAYS:
        rows = times[f"R, {way}"]
        gains = {x: rows[x] / hybrid[way][x] for x in cpu}
        yield Statement(
            "hybrid partitions are faster than rows alone, for every model",
            f"{way}: R over the better hybrid {listed(gains)}",
            all(gain > 1 for gain in gains.values()),
        )
    rows, ends = times[f"R, {PAPER_WAY}"], times[f"C-R, {PAPER_WAY}"]
    dense, launch = 1e6 * layers_seconds(MODELS["rm3"]), load_machine(MACHINE).launch_us(PES)
    for published_text, number, name, time, layers in (
        ("rows lose up to 54% to the CPU (RM1)", ROWS_GAIN, "rm1", rows["rm1"], 0.0),
        (
            f"hybrid partitions reach up to {HYBRID_GAIN}x the CPU (RM3)",
            HYBRID_GAIN,
            "rm3",
            hybrid[PAPER_WAY]["rm3"],
            0.0,
        ),
        (
            f"end to end, C-R reaches over {WHOLE_GAIN:g}x the CPU for RM3",
            WHOLE_GAIN,
            "rm3",
            ends["rm3"],
            dense,
        ),
        ("end to end, even rows outperform the CPU for RM3", 1.0, "rm3", rows["rm3"], dense),
    ):
        model = MODELS[name]
        count = model.tables * model.pooling * model.batch
        needed_us = number * (time + layers) - layers
        known_us = {label: times_us[name] for label, times_us in cpus.items()}
        if name in measured:
            known_us["the CPU here"] = measured[name]
        cause = (
            f"{number:g}x needs a CPU that takes {1e3 * needed_us / count:.0f} ns per row; "
            + ", ".join(f"{label} takes {1e3 * us / count:.0f}" for label, us in known_us.items())
            + f" ({count} rows). One launch takes {launch:.0f} us"
        )
        if NEAR * max(known_us.values()) < needed_us:
            cause += f". All these CPUs are more than {NEAR:g}x too fast to explain the ratio"
        for label, times_us in cpus.items():
            speed_up = (times_us[name] + layers) / (time + layers)
            yield Statement(
                published_text,
                f"{speed_up:.3g}x {label}",
                speed_up > 1 if number == 1 else near(speed_up, number),
                cause,
            )
    moved = {}
    for cut in CUTS:
        host, to_cpu = (
            series_of(points, f"b {clock}", f"{cut}, {PAPER_WAY}")
            for clock in ("host", "PE to CPU")
        )
        moved[cut] = min(host[name] + to_cpu[name] for name in NAMES)
    yield Statement(
        "Host and PE to CPU are a significant part of the time",
        f"at least, in %: {listed(moved)}",
        min(moved.values()) > 33,
    )
    more = BATCHES[-1] / BATCHES[0]
    clocks_us = {clock: series_of(points, "c C-R", clock) for clock in CLOCKS}
    gains = {cut: series_of(points, "c", f"{cut}, {PAPER_WAY}")[BATCHES[-1]] for cut in CUTS}
    fast = {cut: series_of(points, "c", f"{cut}, {FAST}")[BATCHES[-1]] for cut in CUTS}
    yield Statement(
        "RM2: samples per second grow with the batch, nearly in proportion with hybrids, less with"
        " rows",
        f"{more:g} times the batch: {listed(gains)} with {PAPER_WAY}, {listed(fast)} with {FAST}",
        all(gains[cut] > gains["R"] and near(gains[cut], more) for cut in ("C-R", "T-R")),
        "the gain that each clock of C-R alone allows: "
        + ", ".join(
            f"{clock} {more * us[BATCHES[0]] / us[BATCHES[-1]]:.1f}x ({us[BATCHES[0]]:.0f} us for"
            f" batch {BATCHES[0]}, {us[BATCHES[-1]]:.0f} for {BATCHES[-1]})"
            for clock, us in clocks_us.items()
        ),
    )


FIGURE_11 = Figure(
    "scalability/fig11",
    PAPER,
    "RM1, RM2 and RM3 with batch 16, and RM2 over batches",
    [
        Panel("a", "speed-up over the CPU, look-up alone", "model", is_log=True),
        Panel(
            "a end to end",
            "speed-up over the CPU, with the layers on the host",
            "model",
            is_log=True,
        ),
        *(Panel(f"b {name}", "% of the total", "model") for name in CLOCKS),
        Panel("c", "RM2: samples per second over batch 16", "batch"),
        Panel("c C-R", f"RM2, C-R, {PAPER_WAY}: us", "batch", is_log=True),
        Panel("t", "total, us", "model", is_log=True),
        Panel("paths", "RM2 by path and technique: total, us", "way", is_log=True),
    ],
    _priced,
    _statements,
    _run,
    f"Prices are for {PES} PEs and full heights; runs use {PES_HERE} PEs and 1/{DEFAULT_SCALE} of"
    " the rows, so caches serve much of the CPU's look-up here. Runs with"
    " layers use integers, all others floats. The layers are assumed, at"
    f" {LAYERS_GFLOPS:g} GFLOP/s of the host for both sides. The paper prints no PEs, layers or"
    " batches of part c; those here are assumed. " + WAY_NAMES,
)
