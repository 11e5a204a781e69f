"""Types of the variables of PE programs, from the debug information of the programs."""

from __future__ import annotations

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


def type_of_variable(
    program: bytes, name: str, size_bytes: int
) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the dtype and the shape of a variable of a compiled program.

    Raises ArgumentError if the program has no debug information about the variable, or if NumPy has
    no type of this size.
    """
    for entry in _variables(program):
        if entry.attributes["DW_AT_name"].value == name.encode():
            dtype, shape = _type_of(entry.get_DIE_from_attribute("DW_AT_type"), name)
            if dtype.itemsize * int(np.prod(shape)) == size_bytes:
                return dtype, shape
    raise ArgumentError(
        f"the program has no debug information about variable {name} with {size_bytes} bytes;"
        " compile it with -g, or use read and write with a dtype"
    )


def _variables(program: bytes) -> Iterator[Any]:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file = ELFFile(BytesIO(program))
        if not file.has_dwarf_info():
            return
        # Programs are linked, so their debug information needs no relocation.
        for unit in file.get_dwarf_info(relocate_dwarf_sections=False).iter_CUs():
            for entry in unit.get_top_DIE().iter_children():
                attributes = entry.attributes
                if (
                    entry.tag == "DW_TAG_variable"
                    and "DW_AT_name" in attributes
                    and "DW_AT_type" in attributes
                    and "DW_AT_declaration" not in attributes
                ):
                    yield entry
    except ELFError as error:
        raise ArgumentError(f"the debug information of the program is damaged: {error}") from None


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
        return np.dtype(f"i{size}"), ()
    if entry.tag == "DW_TAG_pointer_type":
        return np.dtype(f"u{POINTER_BYTES}"), ()
    if entry.tag == "DW_TAG_structure_type" and size:
        members = [child for child in entry.iter_children() if child.tag == "DW_TAG_member"]
        if not any("DW_AT_bit_size" in member.attributes for member in members):
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
