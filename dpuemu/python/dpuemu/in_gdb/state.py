"""Read the state of the emulator from the process or the core file."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import gdb

from .layout import (
    AT_CALL,
    AWAITED,
    BANKS,
    CHIPS,
    CODE_STATES,
    COMPUTES,
    ENTRY,
    FLOATING_POINT_BYTES,
    INTERRUPTED,
    MUTEXES,
    PAGE,
    PES,
    RANKS,
    READY,
    RUN,
    STACK_BLOCK,
    STATES,
    WAITS,
)

PE_ERROR = "name a PE by its number or as RANK.CHIP.BANK"


def read(address: int, count: int) -> bytes:
    """Return bytes of the process or core file."""
    return bytes(gdb.selected_inferior().read_memory(address, count))


def number_at(address: int, count: int = 8) -> int:
    """Return an unsigned number."""
    return int.from_bytes(read(address, count), "little")


def words_at(address: int, names: str) -> dict[str, int]:
    """Return consecutive words of 64 bits by their names."""
    keys = names.split()
    words = struct.unpack(f"<{len(keys)}Q", read(address, 8 * len(keys)))
    return dict(zip(keys, words, strict=True))


def is_core() -> bool:
    """Return whether GDB shows a core file."""
    connection = gdb.selected_inferior().connection
    return connection is not None and connection.type == "core"


class Run:
    """A run of a PE (DebuggedRun)."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.at = words_at(address, RUN)
        self.pe = pe_of_wram(self.at["wram"])
        self.tasklets = self.at["tasklets"]

    def member(self, name: str, tasklet: int, size: int = 8) -> int:
        """Return a member of a tasklet."""
        return number_at(self.at[name] + tasklet * self.at["tasklet_bytes"], size)

    def tasklet_of_stack(self, address: int) -> int | None:
        """Return the tasklet whose stack has the address."""
        first = self.at["stack_end"] - STACK_BLOCK
        tasklet = (address - first) // STACK_BLOCK
        return tasklet if first and 0 <= tasklet < self.tasklets else None

    def saved_registers(self, tasklet: int) -> dict[str, int]:
        """Return the registers of a tasklet that no thread executes."""
        address = self.member("interrupted", tasklet)
        if address:
            values = words_at(address + FLOATING_POINT_BYTES, INTERRUPTED)
            # For frames that made a call, GDB looks up the line of the address before.
            return {**values, "rip": values["rip"] + 1}
        stack = self.member("stack", tasklet)
        values = words_at(stack, AT_CALL)
        begins = variable_at(values["rip"]) == ENTRY
        return {**values, "rip": values["rip"] + begins, "rsp": stack + 8 * len(values)}

    def state(self, tasklet: int) -> str:
        """Return the state of a tasklet that no thread executes, and what it waits for."""
        states = CODE_STATES if self.at["is_code"] else STATES
        text = states[self.member("state", tasklet, 1)]
        if number_at(self.at["woken"], 4) >> tasklet & 1 and text != COMPUTES:
            return READY  # the state is that before
        if text != WAITS:
            return text
        if self.at["is_code"]:
            awaited = self.member("awaited", tasklet, 4)
            return f"waits for mutex {awaited}" if awaited < 256 else "waits for the RUN register"
        kind, key = self.member("wait_kind", tasklet, 1), self.member("wait_key", tasklet, 4)
        return text + AWAITED[kind].format(self.awaited(AWAITED[kind], key))

    def computes(self) -> bool:
        """Return whether a tasklet was interrupted while it computed, as in an endless loop."""
        states = [self.member("state", tasklet, 1) for tasklet in range(self.tasklets)]
        return STATES.index(COMPUTES) in states  # also the number in CODE_STATES

    def register(self, tasklet: int, number: int) -> int:
        """Return a register of machine code."""
        place = self.at["registers"] + tasklet * self.at["tasklet_bytes"] + 4 * number
        return number_at(place, 4)

    def is_unused(self, tasklet: int) -> bool:
        """Return whether a tasklet of machine code was never started."""
        return bool(self.at["is_code"]) and not (
            self.member("state", tasklet, 1) or self.member("pc", tasklet, 4)
        )

    def awaited(self, words: str, key: int) -> str:
        """Return the name of the object or the tasklet for which a tasklet waits."""
        if "tasklet" in words:
            return str(key)
        if "mutex {" in words and "vmutex" not in words:
            name = variable_at(self.at["wram"] + MUTEXES + key) or str(key)
            return f"{name}, held by tasklet {number_at(self.at['mutex_holders'] + key, 1)}"
        address = self.at["wram"] + key // 8 if "vmutex" in words else key
        return variable_at(address) or f"at {address - self.at['wram']:#x}"


class State:
    """The published state of the emulator: its runs, and the memory of PEs."""

    def __init__(self) -> None:
        try:
            self.address = int(gdb.parse_and_eval("(unsigned long)&__dpuemu_debug_state"))
            self.first, self.unwritten = struct.unpack("<2Q", read(self.address, 16))
        except gdb.error:
            raise gdb.GdbError("the program has not used dpuemu yet") from None

    def region(self, pe: int) -> int:
        """Return the address of the memory of the rank."""
        return number_at(self.address + 16 + pe // PES * 8 * (PES + 1))

    def wram(self, pe: int) -> int:
        """Return the address of the WRAM of a PE. Raises GdbError if the PE was not used."""
        place = self.address + 16 + (pe // PES * (PES + 1) + 1 + pe % PES) * 8
        address = number_at(place) if 0 <= pe < RANKS * PES else 0
        if address == 0:
            raise gdb.GdbError(f"PE {pe_name(pe)} has not loaded a program")
        return address

    def runs(self) -> Iterator[Run]:
        """Yield the runs that have a PE."""
        address = self.first
        while address:
            if number_at(address + 8):
                yield Run(address)
            address = number_at(address)


def place_name(pe: int) -> str:
    """Return RANK.CHIP.BANK."""
    return f"{pe // PES}.{pe % PES // BANKS}.{pe % BANKS}"


def pe_name(pe: int) -> str:
    """Return RANK.CHIP.BANK and the number."""
    return f"{place_name(pe)} (number {pe})"


def parse_pe(text: str) -> int:
    """Return the number of a PE."""
    places = [int(part) for part in text.split(".") if part.isdecimal()]
    if len(places) == 1 and text.isdecimal():
        return places[0]
    if len(places) != 3 or len(text.split(".")) != 3 or max(places[1:]) >= CHIPS:
        raise gdb.GdbError(f"{text!r} is not a PE; {PE_ERROR}")
    return places[0] * PES + places[1] * BANKS + places[2]


def pe_of_wram(address: int) -> int | None:
    """Return the PE whose WRAM or page of mutexes has the address."""
    table = State()
    raw = read(table.address + 16, RANKS * (PES + 1) * 8)
    for place, (wram,) in enumerate(struct.iter_unpack("<Q", raw)):
        rank, index = divmod(place, PES + 1)
        if index and wram and 0 <= address - wram < MUTEXES + PAGE:
            return rank * PES + index - 1
    return None


def variable_at(address: int) -> str:
    """Return the variable at an address, or ""."""
    text = gdb.execute(f"info symbol {address}", to_string=True)
    if text.startswith("No symbol"):
        return ""
    return re.sub(r"^__atomic_bit_(mutex_)?", "", text.partition(" in section")[0])
