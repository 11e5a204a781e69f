"""Read the profiles of PE programs that src/profile writes, and make tables, flame graphs and
sentences of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

COMPUTING = "computing"
LEAST_IMBALANCE = 1.5  # of the slowest PE and the mean PE, that counts as the bound of a kernel
LEAST_USE = 0.5  # of the pipeline, the DMA engine or a lock, that counts as the bound
_OF_PROGRAM = ("name", "path", "tasklets", "cycles_per_second", "waits", "full_pipeline")
_TOTALS = (
    *("launches", "pes", "instructions", "dma_bytes", "slowest_cycles", "mean_cycles", "cycles"),
    *("computing_cycles", "engine_cycles"),
)


@dataclass
class Row:
    """One source line of a function, summed over all PEs and tasklets.

    Times are modelled cycles of tasklets. ``repeated_instructions`` of waits for a mutex are a part
    of ``instructions``. ``unfinished``: waits that lasted until the end of a launch.
    """

    function: str
    file: str
    line: int
    instructions: int = 0
    repeated_instructions: int = 0
    dma_bytes: int = 0
    waited_cycles: dict[str, float] = field(default_factory=dict)
    unfinished: dict[str, int] = field(default_factory=dict)
    computing_cycles: float = 0

    @property
    def cycles(self) -> float:
        """Return the time that tasklets spent in the line."""
        return self.computing_cycles + sum(self.waited_cycles.values())

    def parts(self) -> Iterator[tuple[str, float]]:
        """Yield what tasklets did in the line, and their time."""
        yield COMPUTING, self.computing_cycles
        for what, cycles in self.waited_cycles.items():
            yield f"waiting: {what}", cycles

    @property
    def place(self) -> str:
        """Return the function, the file and the line."""
        return (
            f"{self.function} ({Path(self.file).name}:{self.line})" if self.line else self.function
        )


@dataclass
class Profile:
    """The profile of a program. The totals are those of the reports of its launches.

    ``waits``: what tasklets wait for. ``full_pipeline``: the computing tasklets that issue one
    instruction per cycle.
    """

    name: str
    path: str
    tasklets: int
    cycles_per_second: float
    waits: list[str]
    full_pipeline: int
    totals: dict[str, float]
    rows: list[Row]

    @property
    def tasklet_cycles(self) -> float:
        """Return the time of all tasklets."""
        return self.totals["cycles"] * self.tasklets

    def waited(self, what: str) -> float:
        """Return the share of their time that tasklets wait."""
        return _share(sum(row.waited_cycles.get(what, 0) for row in self.rows), self.tasklet_cycles)

    def bound(self) -> str:
        """Return a sentence: what bounds the program, with the number that shows it."""
        if not self.rows:
            return "no instruction ran"
        total = self.totals
        repeated = sum(row.repeated_instructions for row in self.rows)
        imbalance = _share(total["slowest_cycles"], total["mean_cycles"])
        if imbalance >= LEAST_IMBALANCE:
            return (
                f"imbalance of PEs bounds it: the slowest PE takes {imbalance:.1f} times as long as"
                " the mean PE"
            )
        pipeline = _share(total["instructions"] - repeated, total["cycles"])
        engine = _share(total["engine_cycles"], total["cycles"])
        computing = _share(total["computing_cycles"], self.tasklet_cycles)
        waited = {what: self.waited(what) for what in self.waits}
        idle = waited["barrier"] + 1 - computing - sum(waited.values())
        others = sum(waited.values()) - waited["dma"] - waited["mutex"] - waited["barrier"]
        units = (
            (
                pipeline,
                f"the pipeline bounds it: a PE issues {pipeline:.2f} instructions per cycle, of at"
                " most 1",
            ),
            (engine, f"DMA bounds it: the DMA engine is busy {engine:.0%} of the time"),
        )
        waits = (
            (
                waited["mutex"],
                f"a mutex bounds it: tasklets wait for mutexes {waited['mutex']:.0%} of their time,"
                f" most in {self._most('mutex')}",
            ),
            (
                idle,
                "imbalance of tasklets bounds it: tasklets wait at barriers or have ended"
                f" {idle:.0%} of their time",
            ),
            (
                others,
                "other tasklets bound it: tasklets wait for semaphores and handshakes, or are"
                f" stopped, {others:.0%} of their time",
            ),
        )
        use, sentence = max(*units, *waits)
        if use >= LEAST_USE:
            return sentence
        latency = (
            waited["dma"],
            f"the latency of DMA bounds it: tasklets wait for DMA {waited['dma']:.0%} of their"
            f" time, but the DMA engine is busy {engine:.0%}; use more tasklets or larger"
            " transfers",
        )
        computes = computing * self.tasklets
        few = (
            computing if computes < self.full_pipeline else 0.0,
            f"too few tasklets bound it: {computes:.1f} tasklets compute at a time, and"
            f" {self.full_pipeline} fill the pipeline; a PE issues {pipeline:.2f} instructions per"
            " cycle",
        )
        return max(*waits, latency, few)[1]

    def _most(self, what: str) -> str:
        return max(self.rows, key=lambda row: row.waited_cycles.get(what, 0)).place

    def hangs(self) -> Iterator[str]:
        """Yield a sentence per line in which tasklets waited until the end of a launch."""
        for row in self.rows:
            for what, tasklets in row.unfinished.items():
                awaited = {"dma": "DMA", "stop": "a resume"}.get(what, f"a {what}")
                yield (
                    f"at the end of a launch, {tasklets} tasklets still waited for {awaited} in"
                    f" {row.place}"
                )

    def by_function(self) -> list[Row]:
        """Return a row per function, the one with the longest time first."""
        sums: dict[str, Row] = {}
        for row in self.rows:
            own = sums.setdefault(row.function, Row(row.function, row.file, 0))
            _add(own, asdict(row))
            own.computing_cycles += row.computing_cycles
        return sorted(sums.values(), key=lambda row: -row.cycles)

    def as_json(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        rows = [{**asdict(row), "cycles": row.cycles} for row in self.rows]
        return {
            **{name: getattr(self, name) for name in _OF_PROGRAM},
            **self.totals,
            "bound": self.bound(),
            "rows": rows,
        }


def variables(folder: Path) -> dict[str, str]:
    """Return the environment variables that turn profiles on, and checks off."""
    return {"DPUEMU_PROFILE": str(folder), "DPUEMU_CHECK": "0"}


def problems(folder: Path) -> Iterator[str]:
    """Yield a sentence per process that did not complete its last file."""
    for draft in sorted(folder.glob("*.draft")):
        process = draft.name.partition(".")[0]
        yield (
            f"process {process} did not complete the file of its profile in {folder} (full disk or"
            " signal); its latest launches are missing"
        )


def read(folder: Path) -> list[Profile]:
    """Return the profiles of all processes, summed by the contents of the program file.

    The names of different programs are unique: equal names get numbers.
    """
    profiles: dict[str, Profile] = {}
    rows: dict[tuple[str, tuple[str, str, int]], Row] = {}
    for file in sorted(folder.glob("*.json")):
        for fields in json.loads(file.read_text(errors="replace")):
            key = fields["hash"]
            if key not in profiles:
                own = {name: fields[name] for name in _OF_PROGRAM}
                profiles[key] = Profile(**own, totals=dict.fromkeys(_TOTALS, 0), rows=[])
            profile = profiles[key]
            for name in _TOTALS:
                profile.totals[name] += fields[name]
            for values in fields["rows"]:
                place = (values["function"], values["file"], values["line"])
                if (key, place) not in rows:
                    rows[key, place] = Row(*place)
                    profile.rows.append(rows[key, place])
                _add(rows[key, place], values)
    for profile in profiles.values():
        computed = sum(row.instructions - row.repeated_instructions for row in profile.rows)
        cycles = _share(profile.totals["computing_cycles"], computed)
        for row in profile.rows:
            row.computing_cycles = cycles * (row.instructions - row.repeated_instructions)
        profile.rows.sort(key=lambda row: -row.cycles)
    names = Counter(profile.name for profile in profiles.values())
    numbers: Counter[str] = Counter()
    for profile in profiles.values():
        if names[name := profile.name] > 1:
            numbers[name] += 1
            profile.name += f" ({numbers[name]})"
    return list(profiles.values())


def _add(row: Row, values: Mapping[str, Any]) -> None:
    for name in ("instructions", "repeated_instructions", "dma_bytes"):
        setattr(row, name, getattr(row, name) + values[name])
    for name in ("waited_cycles", "unfinished"):
        sums = getattr(row, name)
        for what, value in values[name].items():
            sums[what] = sums.get(what, 0) + value


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def table(profile: Profile, most_rows: int, by_function: bool = False) -> Iterator[str]:
    """Yield the lines of a table of the slowest source lines, or functions.

    All columns are modelled, except for the bytes of DMA, which are exact.
    """
    total = profile.totals
    yield (
        f"{profile.name}: {total['launches']:,.0f} launches, {total['pes']:,.0f} runs of PEs,"
        f" {total['instructions']:,.0f} instructions, {total['dma_bytes']:,.0f} bytes of DMA,"
        f" {1e6 * total['slowest_cycles'] / profile.cycles_per_second:,.1f} us (modelled)"
    )
    yield f"{profile.name}: {profile.bound()}"
    yield from (f"{profile.name}: {hang}" for hang in profile.hangs())
    used = [what for what in profile.waits if profile.waited(what)]
    columns = ["time", "instructions", "DMA bytes", *used, "place"]
    cells = [columns, ["modelled", "modelled", "exact", *("modelled" for _ in used), ""]]
    rows = profile.by_function() if by_function else profile.rows
    for row in rows[:most_rows]:
        cells.append(
            [
                f"{_share(row.cycles, profile.tasklet_cycles):.1%}",
                f"{row.instructions:,}",
                f"{row.dma_bytes:,}",
                *(
                    f"{_share(row.waited_cycles.get(what, 0), profile.tasklet_cycles):.1%}"
                    for what in used
                ),
                row.place,
            ]
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        *numbers, place = line
        padded = [cell.rjust(width) for cell, width in zip(numbers, widths, strict=False)]
        yield "  ".join([*padded, place]).rstrip()
    if len(rows) > most_rows:
        yield f"{len(rows) - most_rows} more lines: --lines N"


def stacks(profile: Profile) -> Iterator[tuple[list[tuple[str, str]], float]]:
    """Yield function, source line and what tasklets did, and their cycles; functions together.

    Each level has a name and a file, or "".
    """
    functions: dict[str, list[Row]] = {}
    for row in profile.rows:
        functions.setdefault(row.function, []).append(row)
    for function, rows in functions.items():
        for row in rows:
            for what, cycles in row.parts():
                if cycles:
                    yield [(function, ""), (row.place, row.file), (what, "")], cycles


def speedscope(profiles: Sequence[Profile]) -> dict[str, Any]:
    """Return the profiles in the format of https://www.speedscope.app."""
    frames: dict[tuple[str, str], int] = {}
    documents = []
    for profile in profiles:
        samples, weights = [], []
        for levels, cycles in stacks(profile):
            samples.append([frames.setdefault(level, len(frames)) for level in levels])
            weights.append(cycles)
        documents.append(
            {
                "type": "sampled",
                "name": f"{profile.name}: modelled cycles of tasklets",
                "unit": "none",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        )
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "dpuemu profile",
        "name": "dpuemu profile",
        "shared": {"frames": [{"name": name, "file": file} for name, file in frames]},
        "profiles": documents,
    }


_WIDTH, _HEIGHT, _LEAST_WIDTH, _LETTER = 1200, 18, 0.5, 6.5  # in pixels
_COLOURS = {
    COMPUTING: "#8fbc8f",
    "waiting: dma": "#e9a23b",
    "waiting: mutex": "#d9534f",
    "waiting: barrier": "#9aa5d8",
}


def flame_graph(profiles: Sequence[Profile]) -> str:
    """Return a flame graph (SVG): programs, functions, lines, and what tasklets did.

    A box is as wide as its share of the modelled cycles of tasklets; its title has the numbers.
    """
    # Begin and end in cycles, by the levels down to the box; names alone are not unique.
    boxes: dict[tuple[tuple[str, str], ...], list[float]] = {}
    at = 0.0
    root = ("all programs, modelled cycles of tasklets", "")
    for index, profile in enumerate(profiles):
        for levels, cycles in stacks(profile):
            path = (root, (profile.name, str(index)), *levels)
            for depth in range(1, len(path) + 1):
                boxes.setdefault(path[:depth], [at, at])[1] = at + cycles
            at += cycles
    scale = _share(_WIDTH, at)
    rows = max(map(len, boxes), default=0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{rows * _HEIGHT}"'
        ' font-family="sans-serif" font-size="11">'
    ]
    for path, (begin, end) in boxes.items():
        width = (end - begin) * scale
        if width < _LEAST_WIDTH:
            continue
        x, y = begin * scale, (rows - len(path)) * _HEIGHT
        name = path[-1][0]
        title = escape(f"{name}: {end - begin:,.0f} cycles, {_share(end - begin, at):.1%}")
        text = escape(name[: int(width / _LETTER)])
        colour = _COLOURS.get(name, "#d8d8d8")
        lines.append(
            f'<g><title>{title}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}"'
            f' height="{_HEIGHT - 1}" fill="{colour}"/><text x="{x + 2:.1f}" y="{y + 13}">{text}'
            "</text></g>"
        )
    return "\n".join([*lines, "</svg>", ""])
