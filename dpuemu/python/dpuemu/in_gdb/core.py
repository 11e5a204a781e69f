"""Write and open core files."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator

import gdb

from .memory import Mram
from .state import FLAT, LINE_STRIDE, MRAM_BYTES, PAGE, RUN_BYTES, WORD, is_core, pe_name
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


def used_runs(mram: Mram) -> Iterator[tuple[int, bytes]]:
    """Yield the offsets and the bytes of the runs of MRAM that are not unwritten."""
    pages = RUN_BYTES // WORD * LINE_STRIDE // PAGE
    with open(f"/proc/{gdb.selected_inferior().pid}/pagemap", "rb", 0) as entries:
        for offset in range(0, MRAM_BYTES, RUN_BYTES):
            entries.seek(mram.place(offset) // PAGE * 8)
            is_used = any(entry >> 6 for entry in entries.read(pages * 8)[7::8])  # or swapped out
            if is_used or mram.is_copied(offset // PAGE) or mram.is_copied(offset // PAGE + 1):
                raw = mram.run(offset)
                if raw != mram.unwritten:
                    yield offset, raw


def write_core(path: str, pe: int) -> None:
    """Let GDB write a core file, then append the MRAM of the PE without interleaving."""
    if is_core():
        raise gdb.GdbError("this is a core file already")
    gdb.execute(f"generate-core-file {path}.part", to_string=True)
    with open(f"{path}.part", "rb") as source, open(path, "wb") as target:
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
    os.unlink(f"{path}.part")
    print(f"core file of PE {pe_name(pe)}: {path}")


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
