"""Types of the variables of PE programs, from the debug information of the programs."""

from __future__ import annotations

import math
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from pidcomm.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__: list[str] = []

POINTER_BYTES = 4
# NumPy kinds by the encodings of DWARF: boolean, float, signed, signed char, unsigned, unsigned
# char, UTF.
KINDS = {2: "?", 4: "f", 5: "i", 6: "i", 7: "u", 8: "u", 16: "u"}
SAME_TYPE = {f"DW_TAG_{name}_type" for name in ("const", "volatile", "restrict", "atomic")} | {
    "DW_TAG_typedef"
}


class DebugTypes:
    """The types of the variables of a compiled program, read at their first use."""

    def __init__(self, program: bytes) -> None:
        self._program = program
        self._entries: dict[str, Any] | None = None
        self._types: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}

    def type_of(self, name: str, size_bytes: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return the dtype and the shape of a variable.

        Raises ArgumentError if the program has no debug information about the variable, or if NumPy
        has no type of this size.
        """
        if name not in self._types:
            from elftools.common.exceptions import DWARFError, ELFError

            try:
                if self._entries is None:
                    self._entries = dict(_variables(self._program))
                if name in self._entries:
                    self._types[name] = _type_of(self._entries[name], name)
            except (DWARFError, ELFError) as error:
                raise ArgumentError(
                    f"the debug information of the program is damaged: {error}"
                ) from None
        if name in self._types:
            dtype, shape = self._types[name]
            if dtype.itemsize * math.prod(shape) == size_bytes:
                return dtype, shape
        raise ArgumentError(
            f"the program has no debug information about variable {name} with {size_bytes} bytes;"
            " compile it with -g, or use read and write with a dtype"
        )


def _variables(program: bytes) -> Iterator[tuple[str, Any]]:
    """Return the names of the variables and the entries of their types."""
    from elftools.elf.elffile import ELFFile

    file = ELFFile(BytesIO(program)) if program else None
    if file is None or not file.has_dwarf_info():
        return
    # Programs are linked, so their debug information needs no relocation.
    for unit in file.get_dwarf_info(relocate_dwarf_sections=False).iter_CUs():
        for entry in unit.get_top_DIE().iter_children():
            if entry.tag != "DW_TAG_variable" or "DW_AT_declaration" in entry.attributes:
                continue
            named = entry  # a definition after a declaration has its name and type there
            if "DW_AT_specification" in entry.attributes:
                named = entry.get_DIE_from_attribute("DW_AT_specification")
            typed = entry if "DW_AT_type" in entry.attributes else named
            if "DW_AT_name" in named.attributes and "DW_AT_type" in typed.attributes:
                name = named.attributes["DW_AT_name"].value.decode(errors="replace")
                yield name, typed.get_DIE_from_attribute("DW_AT_type")


def _type_of(entry: Any, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the dtype and the shape of a type."""
    while entry.tag in SAME_TYPE and "DW_AT_type" in entry.attributes:
        entry = entry.get_DIE_from_attribute("DW_AT_type")
    size = entry.attributes["DW_AT_byte_size"].value if "DW_AT_byte_size" in entry.attributes else 0
    if entry.tag == "DW_TAG_array_type":
        dtype, inner = _type_of(entry.get_DIE_from_attribute("DW_AT_type"), name)
        return dtype, (*_lengths_of(entry), *inner)
    if entry.tag == "DW_TAG_base_type":
        kind = KINDS.get(entry.attributes["DW_AT_encoding"].value)
        if kind is not None and (kind != "f" or size in (4, 8)) and size in (1, 2, 4, 8):
            return np.dtype("?" if kind == "?" else f"{kind}{size}"), ()
    if entry.tag == "DW_TAG_enumeration_type":
        if "DW_AT_type" in entry.attributes:
            return _type_of(entry.get_DIE_from_attribute("DW_AT_type"), name)
        values = [
            child.attributes["DW_AT_const_value"].value
            for child in entry.iter_children()
            if child.tag == "DW_TAG_enumerator"
        ]
        return np.dtype(f"{'i' if min(values, default=0) < 0 else 'u'}{size}"), ()
    if entry.tag == "DW_TAG_pointer_type":
        return np.dtype(f"u{POINTER_BYTES}"), ()
    if entry.tag == "DW_TAG_structure_type" and size:
        members = [child for child in entry.iter_children() if child.tag == "DW_TAG_member"]
        if all(
            "DW_AT_name" in member.attributes and "DW_AT_bit_size" not in member.attributes
            for member in members
        ):
            return _structure(members, size, name), ()
    raise ArgumentError(f"NumPy has no type for variable {name}; use read and write with a dtype")


def _structure(members: list[Any], size: int, name: str) -> np.dtype[Any]:
    types = [_type_of(member.get_DIE_from_attribute("DW_AT_type"), name) for member in members]
    return np.dtype(
        {
            "names": [member.attributes["DW_AT_name"].value.decode() for member in members],
            "formats": types,
            "offsets": [
                member.attributes["DW_AT_data_member_location"].value for member in members
            ],
            "itemsize": size,
        }
    )


def _lengths_of(array: Any) -> tuple[int, ...]:
    lengths = []
    for child in array.iter_children():
        if child.tag == "DW_TAG_subrange_type":
            attributes = child.attributes
            if "DW_AT_count" in attributes:
                lengths.append(int(attributes["DW_AT_count"].value))
            else:
                upper = attributes.get("DW_AT_upper_bound")
                lengths.append(0 if upper is None else int(upper.value) + 1)
    return tuple(lengths)
