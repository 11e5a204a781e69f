"""Files of other PIM machines, and their maps from host addresses to the bytes of PEs.

A map is a list of fields, the lowest address first. An address is a number with a digit for each
field. Some fields form the number of a PE, some the byte in its memory; all others are 0. So the
map also describes interleaves over 3, 6 or 12 devices. It cannot describe a XOR of address bits.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array
from pidcomm.errors import shown, unknown
from pidcomm.files import require_file
from pidcomm.model import Constant, ConstantRow, Machine, load_machine
from pidcomm.model.machines import SUFFIX, constant_of, source_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent
CHANNEL = "channel"
"""The field of the map whose values have a bus to the host each."""
COPY, COMBINE = "copy", "combine"
MAX_ADDRESS = 1 << 62
FIELDS = "fields, lowest address first"
NUMBER_FIELDS = "fields, fastest first"

ROWS = [
    ConstantRow("geometry.map", FIELDS, "fields of a host address, with their lengths"),
    ConstantRow("geometry.pe", NUMBER_FIELDS, "fields of the PE number"),
    ConstantRow("geometry.memory", NUMBER_FIELDS, "fields of the byte in the memory of a PE"),
    ConstantRow("geometry.line_bytes", "bytes", "bytes of a host access"),
    ConstantRow("bus.read_gb_s", "GB/s per channel", "rate of loads by the host"),
    ConstantRow("bus.write_gb_s", "GB/s per channel", "rate of stores by the host"),
    ConstantRow("buffer.reach", "fields of pe", "fields in which PEs of a buffer differ"),
    ConstantRow("buffer.gb_s", "GB/s per buffer", "rate of loads and stores by a buffer"),
    ConstantRow("buffer.pass_us", "us", "time to start a pass of the buffers"),
    ConstantRow("buffer.operations", "copy, combine", "operations of a buffer"),
    ConstantRow("engine.devices", "devices", "copy engines of the host"),
    ConstantRow("engine.gb_s", "GB/s per device", "rate of copies"),
    ConstantRow("engine.descriptor_us", "us", "time of a device for each descriptor"),
    ConstantRow("engine.operations", "copy, combine", "operations of an engine"),
]
"""Constants of a machine here. The sections buffer and engine may be absent."""
_TEXTS = {"geometry.map", "geometry.pe", "geometry.memory", "buffer.reach"} | {
    f"{section}.operations" for section in ("buffer", "engine")
}
_OPTIONAL = ("buffer", "engine")


class Text(NamedTuple):
    """A constant that is a text; see `pidcomm.model.Constant`."""

    value: str
    unit: str
    source: str

    @property
    def kind(self) -> str:
        """Return the first word of the source."""
        return self.source.partition(":")[0]


@dataclass(frozen=True)
class Geometry:
    """The map of a machine. layout: fields and their lengths, the lowest address first. pe, memory:
    the fields of the PE number and of the byte in its memory, the fastest first.

    line_bytes: bytes of a host access.
    """

    layout: tuple[tuple[str, int], ...]
    pe: tuple[str, ...]
    memory: tuple[str, ...]
    line_bytes: int

    def __post_init__(self) -> None:
        """Check the fields."""
        names = [name for name, _ in self.layout]
        if len(set(names)) < len(names):
            raise ArgumentError(f"map {' '.join(names)} repeats a field")
        if wrong := [f"{name}:{length}" for name, length in self.layout if length < 1]:
            raise ArgumentError(f"map has a field without values: {wrong[0]}")
        used = [*self.pe, *self.memory]
        if missing := [name for name in used if name not in names]:
            raise ArgumentError(f"field {missing[0]} is not in the map; it has {', '.join(names)}")
        if len(set(used)) < len(used) or not self.pe or not self.memory:
            raise ArgumentError(
                f"pe ({' '.join(self.pe)}) and memory ({' '.join(self.memory)}) must have different"
                " fields, at least one each"
            )
        if self.address_bytes > MAX_ADDRESS:
            raise ArgumentError(f"the map has {self.address_bytes} addresses; at most 2^62 are")
        in_line = tuple(name for name in self.pe if self._strides[name] < self.line_bytes)
        if in_line != self.pe[: len(in_line)]:
            raise ArgumentError(
                f"the fields in a line, {' '.join(in_line)}, must be the first of pe"
            )

    @cached_property
    def _lengths(self) -> dict[str, int]:
        return dict(self.layout)

    @cached_property
    def _strides(self) -> dict[str, int]:
        """Return the distance of neighbouring values of each field in the address."""
        lengths = [length for _, length in self.layout]
        return {name: prod(lengths[:place]) for place, (name, _) in enumerate(self.layout)}

    @cached_property
    def address_bytes(self) -> int:
        """Return the number of addresses."""
        return prod(length for _, length in self.layout)

    @cached_property
    def pes(self) -> int:
        """Return the number of PEs."""
        return prod(self._lengths[name] for name in self.pe)

    @property
    def whole_shape(self) -> tuple[int, int]:
        """Return a shape with all PEs: those of a channel, and the channels."""
        channels = self._lengths.get(CHANNEL, 1)
        return self.pes // channels, channels

    @cached_property
    def pe_bytes(self) -> int:
        """Return the bytes of memory of a PE."""
        return prod(self._lengths[name] for name in self.memory)

    @cached_property
    def lanes(self) -> int:
        """Return the number of PEs whose bytes a line interleaves."""
        return prod(
            self._lengths[name] for name in self.pe if self._strides[name] < self.line_bytes
        )

    @cached_property
    def run_bytes(self) -> int:
        """Return the longest run of addresses with consecutive bytes of a PE, or of all PEs of a
        line. An engine needs a descriptor for each run.
        """
        run = self.line_bytes if self.lanes > 1 else 1
        rest = [name for name in self.memory if self._strides[name] >= run]
        for name, length in self.layout:
            if self._strides[name] >= run:
                if rest[:1] != [name]:
                    break
                run *= length
                rest = rest[1:]
        return run

    def addresses(self, pe: Array, byte: Array) -> Array:
        """Return the host addresses of bytes of PEs; the arrays are broadcast."""
        return self._spread(pe, self.pe) + self._spread(byte, self.memory)

    def places(self, address: Array) -> tuple[Array, Array]:
        """Return the PE and the byte of its memory at each host address."""
        return self._collect(address, self.pe), self._collect(address, self.memory)

    def channels(self, pe: Array) -> Array:
        """Return the channel of each PE."""
        step = 1
        for name in self.pe:
            if name == CHANNEL:
                return pe // step % self._lengths[name]
            step *= self._lengths[name]
        return np.zeros_like(pe)

    def cut(self, pes: int, pe_bytes: int) -> Geometry:
        """Return the map of a machine with just enough of the slowest fields: rows, channels.

        Raises ArgumentError if the machine has fewer PEs or bytes.
        """
        if pes > self.pes or pe_bytes > self.pe_bytes:
            raise ArgumentError(
                f"the machine has {self.pes} PEs of {self.pe_bytes} bytes;"
                f" {pes} PEs of {pe_bytes} bytes are needed"
            )
        lengths = dict(self._lengths)
        for last, whole, needed in (
            (self.pe[-1], self.pes, pes),
            (self.memory[-1], self.pe_bytes, pe_bytes),
        ):
            lengths[last] = max(1, -(-needed * lengths[last] // whole))
        return replace(self, layout=tuple(lengths.items()))

    def reach_pes(self, fields: Sequence[str]) -> int:
        """Return the number of PEs with equal values of all other fields, which must be slower."""
        if tuple(fields) != self.pe[: len(fields)]:
            raise ArgumentError(
                f"buffer.reach ({' '.join(fields)}) must be the first fields of pe"
                f" ({' '.join(self.pe)})"
            )
        return prod(self._lengths[name] for name in fields)

    def _spread(self, number: Array, fields: Sequence[str]) -> Array:
        address = np.zeros_like(number)
        for name in fields:
            address += number % self._lengths[name] * self._strides[name]
            number = number // self._lengths[name]
        return address

    def _collect(self, address: Array, fields: Sequence[str]) -> Array:
        number, step = np.zeros_like(address), 1
        for name in fields:
            number += address // self._strides[name] % self._lengths[name] * step
            step *= self._lengths[name]
        return number


@dataclass(frozen=True)
class PimMachine:
    """A machine of this folder. constants: by ``section.key``. host: supplies the constants of the
    host's instructions and threads.

    buffer_pes: PEs that a buffer reaches; 1 without buffers.
    """

    name: str
    title: str
    constants: Mapping[str, Constant | Text]
    host: Machine
    geometry: Geometry
    buffer_pes: int

    def __repr__(self) -> str:
        """Report the name, the number of PEs and the title."""
        return f"<PimMachine {self.name}, {self.pes} PEs: {self.title}>"

    @property
    def pes(self) -> int:
        """Return the number of PEs."""
        return self.geometry.pes

    @property
    def isas(self) -> list[str]:
        """Return the instruction sets of the host."""
        return self.host.isas

    def __getitem__(self, name: str) -> float:
        """Return the value of a numeric constant. Raises KeyError for an unknown name."""
        return float(self.constants[name].value)

    def may(self, unit: str, operation: str) -> bool:
        """Return whether this machine has a unit (BUFFER, ENGINE) with an operation."""
        row = self.constants.get(f"{unit}.operations")
        return row is not None and operation in _words(row.value)


def pim_machines() -> list[str]:
    """Return the names of the machines of this folder."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def is_pim_machine(name: str) -> bool:
    """Return whether a name or a .toml file describes a machine for this package."""
    if name in pim_machines():
        return True
    path = Path(name)
    return name.endswith(SUFFIX) and path.is_file() and b"[geometry]" in path.read_bytes()


def load_pim_machine(name: str | PimMachine) -> PimMachine:
    """Return a machine of this folder by name, or the machine of a .toml file. A PimMachine is
    returned unchanged.

    Raises ArgumentError for an unknown name and for a file that lacks a constant, or has an unknown
    or a wrong one.
    """
    if isinstance(name, PimMachine):
        return name
    if isinstance(name, str) and name in pim_machines():
        return _built_in(name)
    if not isinstance(name, str) or not name.endswith(SUFFIX):
        raise ArgumentError(unknown("machine", name, pim_machines(), f" or a {SUFFIX} file"))
    require_file(Path(name), 1 << 16)
    return _machine(Path(name), name)


@cache
def _built_in(name: str) -> PimMachine:
    return _machine(FOLDER / f"{name}{SUFFIX}", name)


def _machine(path: Path, name: str) -> PimMachine:
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ArgumentError(f"{path} is not valid TOML: {error}") from None
    title, inherits = tree.pop("title", None), tree.pop("inherits", None)
    if not isinstance(title, str):
        raise ArgumentError(f"{path}: title is missing; it names the machine in one line")
    if inherits is not None and (inherits not in pim_machines() or inherits == name):
        raise ArgumentError(f"{path}: {unknown('machine', inherits, pim_machines())}")
    parent = None if inherits is None else _built_in(inherits)
    host = load_machine(tree.pop("host", parent.host if parent else None))
    constants = {**(parent.constants if parent else {}), **_constants(path, tree)}
    sections = {key.partition(".")[0] for key in constants}
    for row in ROWS:
        section = row.name.partition(".")[0]
        if row.name not in constants and (section in sections or section not in _OPTIONAL):
            raise ArgumentError(f"{path}: constant {row.name} is missing")
    try:
        geometry = Geometry(
            tuple(_field(word) for word in _words(constants["geometry.map"].value)),
            _words(constants["geometry.pe"].value),
            _words(constants["geometry.memory"].value),
            int(constants["geometry.line_bytes"].value),
        )
        reach = constants.get("buffer.reach")
        pes = geometry.reach_pes(_words(reach.value)) if reach else 1
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from None
    return PimMachine(name, title, constants, host, geometry, pes)


def _constants(path: Path, tree: Mapping[str, Any]) -> dict[str, Constant | Text]:
    units = {row.name: row.unit for row in ROWS}
    constants: dict[str, Constant | Text] = {}
    for section, rows in tree.items():
        for key, row in rows.items() if isinstance(rows, dict) else [("", rows)]:
            name = f"{section}.{key}".rstrip(".")
            if name not in units:
                raise ArgumentError(f"{path}: no constant is called {name}")
            if not isinstance(row, dict) or row.keys() != {"value", "unit", "source"}:
                raise ArgumentError(
                    f"{path}: {name} must be {{ value = ..., unit = ..., source = ... }}"
                )
            unit, value = units[name], row["value"]
            if name not in _TEXTS:
                constants[name] = constant_of(path, name, row, unit)
                if not 0 < constants[name].value < 1e12:  # also refuses NaN
                    raise ArgumentError(f"{path}: {name} = {value} must be above 0, below 1e12")
            elif isinstance(value, str):
                constants[name] = Text(value, unit, source_of(path, name, row, unit))
            else:
                raise ArgumentError(f"{path}: {name} = {shown(value)} is no text")
    return constants


def _field(word: str) -> tuple[str, int]:
    name, _, length = word.partition(":")
    if not length.isdecimal():
        raise ArgumentError(f"map has {word!r}; a field is NAME:LENGTH")
    return name, int(length)


def _words(text: str | float) -> tuple[str, ...]:
    return tuple(str(text).replace(",", " ").split())
