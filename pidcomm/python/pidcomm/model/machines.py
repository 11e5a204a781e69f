"""Machines for predictions.

TOML files describe machines by constants. Every constant has a unit and a source.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from pidcomm import _core
from pidcomm.errors import ArgumentError, Error, FileContentError, shown, unknown
from pidcomm.files import malformed, require_file
from pidcomm.tables import ISAS

__all__ = ["SUFFIX", "constant_of", "source_of"]

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent.parent / "machines"
SUFFIX = ".toml"
MAX_FILE_BYTES, MAX_LINE = 1 << 16, 1 << 12
LARGEST = 10**18  # of an integer
_TABLES = _core.model_tables()


class ConstantRow(NamedTuple):
    """A constant of every machine: its name, ``section.key``, its unit and its meaning."""

    name: str
    unit: str
    meaning: str


CONSTANTS = [
    ConstantRow(f"{section}.{key}", unit, meaning)
    for section, key, unit, meaning in _TABLES["constants"]
]
"""Constants of every machine, in the library's order."""
LINE_COSTS = [ConstantRow(key, "ns per line", meaning) for key, meaning in _TABLES["line_costs"]]
"""Constants of every instruction set of a machine, ``isa.NAME.key``, in the library's order."""
PHASES = {name: meaning for name, meaning in _TABLES["phases"]}
"""Meanings of the phases of a prediction, by name, in the library's order."""
_ISAS_BY_CODE = sorted(ISAS.values(), key=lambda isa: isa.code)


class Constant(NamedTuple):
    """A constant of a machine.

    The first word of its source is its kind: published, measured, fitted or assumed.
    """

    value: float
    unit: str
    source: str

    @property
    def kind(self) -> str:
        """Return the first word of the source."""
        return self.source.partition(":")[0]


KINDS = ("published", "measured", "fitted", "assumed")
"""Kinds of constants: the first words of their sources."""
OWN_KINDS = ("measured", "fitted")
"""Kinds that are valid for one machine only."""


LINK_CONSTANTS = [
    ConstantRow("bytes_per_cycle", "bytes", "bytes that a unit sends over its link in a cycle"),
    ConstantRow("clock_mhz", "MHz", "clock of the links"),
    ConstantRow("latency_ns", "ns", "time of an empty message between two units"),
    ConstantRow(
        "topology",
        "name",
        "ring (to both neighbours), crossbar (to all units), or bus (one unit at a time)",
    ),
]
"""Constants of the links of a level, ``links.LEVEL.key``. A machine need not have links."""
LINK_LEVELS = ("bank", "chip", "rank", "dimm")
"""Levels of links: between the banks of a chip, the chips of a rank, the ranks of a DIMM, and the
DIMMs. If a machine has no links between DIMMs, those of ranks reach all ranks.
"""
TOPOLOGIES = ("ring", "crossbar", "bus")
"""Topologies of links."""


class Link(NamedTuple):
    """The links of a level; every unit of the level (bank, chip, rank or DIMM) has one.

    The constants of `LINK_CONSTANTS`.
    """

    bytes_per_cycle: Constant
    clock_mhz: Constant
    latency_ns: Constant
    topology: str
    topology_source: str

    @property
    def gb_s(self) -> float:
        """Return the rate of a link."""
        return self.bytes_per_cycle.value * self.clock_mhz.value / 1e3


@dataclass(frozen=True)
class Machine:
    """A machine for predictions. constants: by ``section.key`` and ``isa.NAME.key``.

    inherits: name of the built-in machine that supplies the constants that are missing in the
    description. links: by level; empty if PEs reach each other only through the host.
    """

    name: str
    title: str
    constants: Mapping[str, Constant]
    inherits: str | None = None
    links: Mapping[str, Link] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Report the name, the number of PEs and the title of the machine."""
        return f"<Machine {self.name}, {self.pes} PEs: {self.title}>"

    def __getitem__(self, name: str) -> float:
        """Return the value of a constant. Raises KeyError for an unknown name."""
        return self.constants[name].value

    @property
    def isas(self) -> list[str]:
        """Return the instruction sets that the machine has."""
        return [name for name in ISAS if f"isa.{name}.{LINE_COSTS[0].name}" in self.constants]

    @property
    def pes(self) -> int:
        """Return the number of PEs."""
        return int(self["ranks.channels"] * self["ranks.per_channel"]) * _core.PES_PER_RANK

    def launch_us(self, pes: int) -> float:
        """Return the time in us to start `pes` PEs and to detect their end."""
        return self["pe.launch_us"] + ceil(pes / _core.PES_PER_RANK) * self["pe.launch_rank_us"]

    def load_us(self, pes: int) -> float:
        """Return the time in us to load a program of `pe.load_words` into `pes` PEs."""
        ranks, words = ceil(pes / _core.PES_PER_RANK), self["pe.load_words"]
        fixed = self["pe.load_us"] + words * self["pe.load_word_us"]
        return fixed + ranks * (self["pe.load_rank_us"] + words * self["pe.load_rank_word_us"])

    @cached_property
    def numbers(self) -> list[float]:
        """Return the constants in the library's order."""
        return [self.constants[name].value if name in self.constants else 0.0 for name in _names()]

    @property
    def places(self) -> dict[str, int]:
        """Return the index of each constant in `numbers`."""
        return {name: place for place, name in enumerate(_names()) if name in self.constants}

    def with_values(
        self, values: Mapping[str, float], source: str = "assumed: changed by the caller"
    ) -> Machine:
        """Return a copy of the machine with changed constants.

        Raises ArgumentError for unknown names.
        """
        if not isinstance(values, Mapping):
            raise ArgumentError(f"values ({shown(values)}) must be a dict of constants")
        if unknown := values.keys() - self.constants.keys():
            raise ArgumentError(f"machine {self.name} has no constant {min(unknown)}")
        changed = {
            name: Constant(value, self.constants[name].unit, source)
            for name, value in values.items()
        }
        return replace(self, constants={**self.constants, **changed})

    def inheritance(self) -> dict[str, Constant]:
        """Return the constants for a machine that inherits them.

        Measured and fitted constants become assumed.
        """
        return {
            name: (
                constant._replace(source=f"assumed: as {constant.kind} for {self.name}")
                if constant.kind in OWN_KINDS
                else constant
            )
            for name, constant in self.constants.items()
        }

    def to_toml(self) -> str:
        """Return the description as text for `load_machine`, without inherited constants."""
        lines = [f"title = {_quoted(self.title)}"]
        inherited: dict[str, Constant] = {}
        if self.inherits is not None:
            lines.append(f"inherits = {_quoted(self.inherits)}")
            inherited = load_machine(self.inherits).inheritance()
        sections: dict[str, list[str]] = {}
        for name, constant in self.constants.items():
            section, _, key = name.rpartition(".")
            section_lines = sections.setdefault(section, [])
            if constant != inherited.get(name):
                section_lines.append(
                    _constant_line(key, f"{constant.value:g}", constant.unit, constant.source)
                )
        for section, section_lines in sections.items():
            if section_lines or section.startswith(
                "isa."
            ):  # isa sections list the machine's instruction sets
                lines += ["", f"[{section}]", *section_lines]
        for level, link in self.links.items():
            lines += ["", f"[links.{level}]"]
            for row in LINK_CONSTANTS[:-1]:
                value: Constant = getattr(link, row.name)
                lines.append(_constant_line(row.name, f"{value.value:g}", row.unit, value.source))
            lines.append(
                _constant_line("topology", _quoted(link.topology), "name", link.topology_source)
            )
        return "\n".join(lines) + "\n"


def _constant_line(key: str, value: str, unit: str, source: str) -> str:
    return f"{key} = {{ value = {value}, unit = {_quoted(unit)}, source = {_quoted(source)} }}"


def _quoted(text: str) -> str:
    """Return a text as a basic string of TOML. JSON strings are valid basic strings."""
    return json.dumps(text, ensure_ascii=False)


def _names() -> Iterator[str]:
    """Yield the names of constants in the order of the library's array of doubles.

    Unused elements of the array have name "".
    """
    yield from (row.name for row in CONSTANTS)
    yield from ("" for _ in LINE_COSTS)  # codes start at 1
    for isa in _ISAS_BY_CODE:
        yield from (f"isa.{isa.name}.{row.name}" for row in LINE_COSTS)


def machine_names() -> list[str]:
    """Return the names of the built-in machines."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def load_machine(name: str | Machine) -> Machine:
    """Return a built-in machine by name, or the machine of a .toml file. The path is then the name
    of the machine.

    A Machine is returned unchanged. Raises ArgumentError for an unknown name, and for a file that
    inherits an unknown machine or itself, that lacks a constant, or that has an unknown constant or
    a constant without unit or source.
    """
    if isinstance(name, Machine):
        return name
    if isinstance(name, str) and name in machine_names():
        return _read(FOLDER / f"{name}{SUFFIX}")
    if not isinstance(name, str) or not name.endswith(SUFFIX):
        raise ArgumentError(
            unknown("machine", name, machine_names(), f" or a file ending in {SUFFIX}")
        )
    require_file(Path(name), MAX_FILE_BYTES)
    try:
        text = Path(name).read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > MAX_LINE:  # the parser needs minutes for a name of many parts
                malformed(
                    Path(name),
                    number,
                    f"the line has {len(line)} characters; at most {MAX_LINE} are possible",
                )
        return _parse(Path(name), name, text)
    except OSError as error:
        raise ArgumentError(f"cannot read the machine {name}: {error}") from None
    except UnicodeDecodeError as error:
        malformed(Path(name), None, f"not a text file: {error}")
    except ArgumentError as error:
        raise FileContentError(str(error)) from None
    except RecursionError:
        malformed(
            Path(name),
            None,
            "not valid TOML for a machine: its tables or arrays are nested too deeply",
        )


@cache
def _read(path: Path, heirs: tuple[str, ...] = ()) -> Machine:
    return _parse(path, path.stem, path.read_text(encoding="utf-8"), heirs)


def _parent(path: Path, inherits: Any, heirs: tuple[str, ...]) -> Machine:
    """Return the machine that a file inherits.

    heirs: the chain of machines that inherit each other; the file at path is last.
    """
    if inherits not in machine_names():
        raise ArgumentError(
            f"{path}: inherits = {shown(inherits)} is no built-in machine; use"
            f" {', '.join(machine_names())}"
        )
    if inherits in heirs:
        circle = " inherits ".join(heirs[heirs.index(inherits) :])
        raise ArgumentError(
            f"{path}: inherits = {shown(inherits)} closes a circle ({circle}); one must have all"
            " constants"
        )
    return _read(FOLDER / f"{inherits}{SUFFIX}", heirs)


def _parse(path: Path, name: str, text: str, heirs: tuple[str, ...] = ()) -> Machine:
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError(f"{path} is not valid TOML: {error}") from None
    title = tree.pop("title", None)
    if not isinstance(title, str) or not title.isprintable():
        raise ArgumentError(f"{path}: title is missing; it names the machine in one line")
    inherits = tree.pop("inherits", None)
    parent = None if inherits is None else _parent(path, inherits, (*heirs, name))
    links = {**(parent.links if parent else {}), **_links(path, tree.pop("links", {}))}
    units = {row.name: row.unit for row in CONSTANTS}
    if not isinstance(tree.get("isa", {}), dict):
        raise ArgumentError(f"{path}: isa must be sections [isa.NAME]")
    isas = list(tree.get("isa", {})) or (parent.isas if parent else [])
    for isa in isas:
        if isa not in ISAS:
            raise ArgumentError(f"{path}: [isa.{isa}] is no instruction set; use {', '.join(ISAS)}")
        units |= {f"isa.{isa}.{row.name}": row.unit for row in LINE_COSTS}
    constants = {
        **(parent.inheritance() if parent else {}),
        **dict(_constants(path, "", tree, units)),
    }
    if missing := units.keys() - constants.keys():
        raise ArgumentError(f"{path}: constant {min(missing)} is missing")
    if not isas:
        raise ArgumentError(f"{path}: no instruction set; add a section [isa.NAME]")
    machine = Machine(
        name, title, {constant: constants[constant] for constant in units}, inherits, links
    )
    try:
        # This call checks the constants.
        _core.predict(
            [8], _core.Request(0, "1", 0, 0, 0, 16, 0, None), (0, 0, 0, 0, 0), machine.numbers
        )
    except Error as error:
        raise ArgumentError(f"{path}: {error}") from None
    return machine


def _constants(
    path: Path, prefix: str, tree: Mapping[str, Any], units: Mapping[str, str]
) -> Iterator[tuple[str, Constant]]:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if not isinstance(value, dict):
            raise ArgumentError(
                f"{path}: {name} must be {{ value = ..., unit = ..., source = ... }}"
            )
        if "value" not in value:
            yield from _constants(path, f"{name}.", value, units)
            continue
        if name not in units:
            raise ArgumentError(f"{path}: no constant is called {name}")
        yield name, constant_of(path, name, value, units[name])


def constant_of(path: Path, name: str, value: Mapping[str, Any], wanted: str) -> Constant:
    """Return a constant from its fields. wanted: the unit."""
    number = value.get("value")
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        raise ArgumentError(f"{path}: {name} = {shown(number)} is no number")
    if isinstance(number, int) and abs(number) > LARGEST:  # too large for a float
        raise ArgumentError(f"{path}: {name} = {shown(number)} is larger than {LARGEST}")
    return Constant(float(number), wanted, source_of(path, name, value, wanted))


def source_of(path: Path, name: str, value: Mapping[str, Any], wanted: str) -> str:
    """Return the source of a constant, and check its unit."""
    unit, source = value.get("unit"), value.get("source")
    if unit != wanted:
        raise ArgumentError(f"{path}: {name} has unit {shown(unit)}; it is in {wanted!r}")
    if not isinstance(source, str) or source.partition(":")[0] not in KINDS:
        raise ArgumentError(
            f"{path}: {name} needs a source that begins with one of {', '.join(KINDS)}, and a colon"
        )
    return source


def _links(path: Path, tree: Any) -> dict[str, Link]:
    """Return the links of the levels in a file."""
    if not isinstance(tree, dict) or not tree.keys() <= set(LINK_LEVELS):
        raise ArgumentError(
            f"{path}: links can have the sections [links.{'], [links.'.join(LINK_LEVELS)}] only"
        )
    return {
        level: _link(path, f"links.{level}", tree[level]) for level in LINK_LEVELS if level in tree
    }


def _link(path: Path, section: str, tree: Any) -> Link:
    names = [row.name for row in LINK_CONSTANTS]
    if not isinstance(tree, dict) or tree.keys() != set(names):
        raise ArgumentError(f"{path}: [{section}] must have {', '.join(names)}, and nothing else")
    if wrong := [name for name in names if not isinstance(tree[name], dict)]:
        raise ArgumentError(
            f"{path}: {section}.{wrong[0]} must be {{ value = ..., unit = ..., source = ... }}"
        )
    *numbers, last = LINK_CONSTANTS
    rate, clock, latency = [
        constant_of(path, f"{section}.{row.name}", tree[row.name], row.unit) for row in numbers
    ]
    for row, constant in zip(numbers, (rate, clock, latency), strict=True):
        least = 0.0 if row.name == "latency_ns" else 1e-6
        if not least <= constant.value <= 1e12:  # also refuses NaN
            raise ArgumentError(
                f"{path}: {section}.{row.name} is {constant.value:g}; it must be {least:g} to 1e12"
            )
    topology = tree[last.name].get("value")
    if topology not in TOPOLOGIES:
        raise ArgumentError(
            f"{path}: {section}.topology = {shown(topology)} is none of {', '.join(TOPOLOGIES)}"
        )
    return Link(
        rate,
        clock,
        latency,
        topology,
        source_of(path, f"{section}.topology", tree[last.name], last.unit),
    )
