"""Show WRAM and MRAM."""

from __future__ import annotations

import re
from typing import Any

import gdb

from .layout import (
    BANKS,
    CHIPS,
    FLAT,
    LINE_STRIDE,
    MRAM_BYTES,
    MRAM_WINDOWS,
    PAGE,
    PES,
    RANKS,
    RUN_BYTES,
    SIZES,
    WORD,
    WRAM_BYTES,
)
from .state import State, is_core, number_at, pe_of_wram, place_name, read
from .tasklets import current


def line_offset(bank: int, offset: int) -> int:
    """Return the place of a word of MRAM in the rank's memory (src/base/address_map.h)."""
    swizzled = offset & ~0x3FC000 | offset >> 1 & 0x1FC000 | (offset & 0x4000) << 7
    chunk, rest = divmod(swizzled * (LINE_STRIDE // WORD), 0x20000)
    return rest + chunk * 0x100000 + 0x40000 * (bank % 4) + 64 * (bank // 4)


class Mram:
    """The MRAM of a PE, also of pages that the PE accesses without DMA."""

    def __init__(self, pe: int) -> None:
        table = State()
        self.pe, self.unwritten = pe, bytes([table.unwritten]) * RUN_BYTES
        self.region, self.copy, self.filled = table.region(pe), 0, 0
        if is_core() and not has_mram(pe):
            owners = [place_name(other) for other in range(RANKS * PES) if has_mram(other)]
            only = f"the MRAM of PE {owners[0]} only" if owners else "no MRAM"
            raise gdb.GdbError(f"the core file has {only}")
        for run in table.runs():
            if run.pe == pe and run.at["has_copy"] and number_at(run.at["has_copy"], 1):
                self.copy = number_at(run.at["copy"])
                self.filled = number_at(run.at["copy_pages"], MRAM_BYTES // PAGE // 8)

    def place(self, offset: int) -> int:
        """Return the address of the first line of a run of RUN_BYTES."""
        return self.region + line_offset(self.pe % BANKS, offset)

    def is_copied(self, page: int) -> bool:
        """Return whether the copy has a page."""
        return bool(self.filled >> page & 1)

    def run(self, offset: int) -> bytes:
        """Return RUN_BYTES of MRAM, at a multiple of RUN_BYTES."""
        if is_core():
            try:
                return read(FLAT + self.pe * MRAM_BYTES + offset, RUN_BYTES)
            except gdb.MemoryError:
                return self.unwritten
        chip = self.pe % PES // BANKS
        lines = read(self.place(offset), RUN_BYTES // WORD * LINE_STRIDE - LINE_STRIDE // 2)
        result = bytearray(RUN_BYTES)
        for place in range(WORD):
            result[place::WORD] = lines[CHIPS * place + chip :: LINE_STRIDE]
        for begin in range(0, RUN_BYTES, PAGE):
            page = (offset + begin) // PAGE
            if self.is_copied(page):
                result[begin : begin + PAGE] = read(self.copy + page * PAGE, PAGE)
        return bytes(result)


def has_mram(pe: int) -> bool:
    """Return whether the core file has the MRAM of a PE: at least its first run."""
    try:
        return bool(read(FLAT + pe * MRAM_BYTES, 1))
    except gdb.MemoryError:
        return False


def read_mram(pe: int, offset: int, count: int) -> bytes:
    """Return bytes of MRAM."""
    mram, begin = Mram(pe), offset // RUN_BYTES * RUN_BYTES
    runs = range(begin, offset + count, RUN_BYTES)
    return b"".join(mram.run(place) for place in runs)[offset - begin :][:count]


def read_wram(pe: int, offset: int, count: int) -> bytes:
    """Return bytes of WRAM."""
    return read(State().wram(pe) + offset, count)


class MemoryCommand(gdb.Command):  # type: ignore[misc]
    """Show {name} of the PE: {name}[/FMT] VARIABLE or ADDRESS, with FMT as for `x`."""

    def __init__(self, name: str, size: int, read_bytes: Any) -> None:
        self.__doc__ = (self.__doc__ or "").format(name=name)
        super().__init__(name, gdb.COMMAND_DATA, gdb.COMPLETE_SYMBOL)
        self.name, self.size, self.read_bytes = name, size, read_bytes

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Print the bytes at an address, or a variable."""
        match = re.fullmatch(r"(?:/(\d*)([xduoatcf]?)([bhwg]?)\s+)?([^/\s].*)", argument.strip())
        if match is None:
            raise gdb.GdbError(f"use {self.name}[/COUNT, one of xduoatcf, one of bhwg] ADDRESS")
        pe, _, _ = current()
        try:
            value = gdb.parse_and_eval(match[4])
        except gdb.error as error:
            raise gdb.GdbError(str(error)) from None
        place = value.address
        offset = self.offset(int(value) if place is None else int(place))
        has_format = argument.strip().startswith("/")
        count = 1 if has_format else 8
        count, unit = int(match[1] or count), SIZES[match[3] or "w"]
        is_variable = place is not None and not has_format
        needed = value.type.sizeof if is_variable else count * unit
        if offset + needed > self.size:
            raise gdb.GdbError(f"{offset:#x} and {needed} bytes exceed {self.size} bytes")
        raw = self.read_bytes(pe, offset, needed)
        if is_variable:
            print(f"{self.name} {offset:#x}: {gdb.Value(raw, value.type.strip_typedefs())}")
            return
        letter = match[2] or "x"
        kind = {1: "char", 2: "short", 4: "int", 8: "long"}[unit]
        if letter == "f" and unit >= SIZES["w"]:
            kind = "float" if unit == SIZES["w"] else "double"
        kind = gdb.lookup_type(kind)
        for begin in range(0, needed, 16):
            row = [raw[i : i + unit] for i in range(begin, min(begin + 16, needed), unit)]
            texts = [gdb.Value(one, kind).format_string(format=letter) for one in row]
            print(f"{self.name} {offset + begin:#x}:", *texts)

    def offset(self, address: int) -> int:
        """Return the address in this memory: PE programs and symbols use other addresses."""
        if self.name == "mram":
            for begin in MRAM_WINDOWS:
                if begin <= address < begin + MRAM_BYTES:
                    return address - begin
            raise gdb.GdbError(f"{address:#x} is not in MRAM; for WRAM, use `wram`")
        owner = None if address < self.size else pe_of_wram(address)
        if owner is not None:
            address -= State().wram(owner)
        if not 0 <= address < self.size:
            raise gdb.GdbError(f"{address:#x} is not in WRAM; for stacks, use `x` or `print`")
        return address


MemoryCommand("wram", WRAM_BYTES, read_wram)
MemoryCommand("mram", MRAM_BYTES, read_mram)
