"""Write and open core files."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import gdb

from .layout import FLAT, LINE_STRIDE, MRAM_BYTES, PAGE, RUN_BYTES, WORD
from .memory import Mram
from .state import is_core, pe_name
from .tasklets import current


class CoreCommand(gdb.Command):  # type: ignore[misc]
    """Write a core file with the MRAM of the PE, for `dpuemu debug --open`: dpuemu-core FILE."""

    def __init__(self) -> None:
        super().__init__("dpuemu-core", gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Write the file."""
        if not argument:
            raise gdb.GdbError("use dpuemu-core FILE")
        write_core(argument, current()[0])


CoreCommand()


def used_runs(mram: Mram) -> Iterator[tuple[int, bytes]]:
    """Yield the offsets and the bytes of the first run of MRAM, and of the other written runs."""
    pages = RUN_BYTES // WORD * LINE_STRIDE // PAGE
    with open(f"/proc/{gdb.selected_inferior().pid}/pagemap", "rb", 0) as entries:
        for offset in range(0, MRAM_BYTES, RUN_BYTES):
            entries.seek(mram.place(offset) // PAGE * 8)
            is_used = any(entry >> 6 for entry in entries.read(pages * 8)[7::8])  # or swapped out
            is_used |= mram.is_copied(offset // PAGE) or mram.is_copied(offset // PAGE + 1)
            if is_used or offset == 0:
                raw = mram.run(offset)
                if raw != mram.unwritten or offset == 0:
                    yield offset, raw


def write_core(path: str, pe: int) -> None:
    """Let GDB write a core file, then append the MRAM of the PE without interleaving.

    Raises GdbError, and leaves no file, if the file cannot be written.
    """
    if is_core():
        raise gdb.GdbError("this is a core file already")
    part = f"{path}.part"
    try:
        gdb.execute(f"generate-core-file {part}", to_string=True)
        with open(part, "rb") as source, open(path, "wb") as target:
            try:
                append_mram(source, target, pe)
            except (OSError, gdb.error):
                os.unlink(path)
                raise
    except (OSError, gdb.error) as error:
        raise gdb.GdbError(f"cannot write the core file {path}: {error}") from None
    finally:
        with suppress(OSError):
            os.unlink(part)
    print(f"core file of PE {pe_name(pe)}: {path}")


def append_mram(source: BinaryIO, target: BinaryIO, pe: int) -> None:
    """Copy a core file, and append the MRAM of a PE as segments."""
    header = bytearray(source.read(64))  # Elf64_Ehdr
    (table,) = struct.unpack_from("<Q", header, 32)
    (count,) = struct.unpack_from("<H", header, 56)
    source.seek(table)
    rows = [source.read(56) for _ in range(count)]  # Elf64_Phdr
    source.seek(0)
    block = 1 << 16
    while piece := source.read(block):  # with holes for zeros
        target.seek(len(piece), 1) if not any(piece) else target.write(piece)
    target.seek(-(-target.tell() // PAGE) * PAGE)
    for offset, raw in used_runs(Mram(pe)):
        address = FLAT + pe * MRAM_BYTES + offset
        rows.append(
            struct.pack("<IIQQQQQQ", 1, 4, target.tell(), address, 0, len(raw), len(raw), PAGE)
        )
        target.write(raw)
    struct.pack_into("<Q", header, 32, target.tell())
    struct.pack_into("<H", header, 56, len(rows))
    target.write(b"".join(rows))
    target.seek(0)
    target.write(header)


def open_core_file(path: str) -> None:
    """Open a core file, with the program that it names."""
    try:
        gdb.execute(f"core-file {path}", to_string=True)
        program = re.search(r'AT_EXECFN .*"(.*)"', gdb.execute("info auxv", to_string=True))
        if program is None:
            raise gdb.GdbError(f"{path} names no program")
        gdb.execute(f"file {program[1]}", to_string=True)
        gdb.execute(f"core-file {path}", to_string=True)
    except gdb.error as error:
        raise gdb.GdbError(f"cannot open {path}: {error}") from None
