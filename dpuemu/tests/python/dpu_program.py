"""Program files of machine code, as the vendor's compiler makes them, for tests and benchmarks."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

IRAM, MRAM = 0x80000000, 0x08000000
DPU = 245  # e_machine
CODE, SYMBOLS, STRINGS, OTHER = 1, 2, 3, 1  # sh_type
ALLOCATED, ALLOCATED_CODE = 2, 6  # sh_flags: SHF_ALLOC, SHF_EXECINSTR
LABEL, VARIABLE, FUNCTION = 0, 1, 2  # st_info: no type, STT_OBJECT, STT_FUNC


def _section_of(address: int) -> int:
    return 1 if address >= IRAM else 3 if address >= MRAM else 2


def program_file(
    words: Sequence[int],
    symbols: Iterable[tuple[str, int, int, int]],
    *,
    wram: bytes = b"",
    mram: bytes = b"",
    debug_line: bytes = b"",
    machine: int = DPU,
) -> bytes:
    """Return a program of instructions. symbols: names, kinds, addresses and sizes in bytes; wram,
    mram: the initial contents from the start of a memory on.
    """
    names, table = b"\0", bytes(16)
    for name, kind, address, size in symbols:
        place, section = len(names), _section_of(address)
        table += struct.pack("<IIIBBH", place, address, size, kind, 0, section)
        names += name.encode() + b"\0"
    code = b"".join(word.to_bytes(8, "little") for word in words)
    sections = [  # name, type, flags, address, contents, link
        (".text", CODE, ALLOCATED_CODE, IRAM, code, 0),
        (".data", OTHER, ALLOCATED, 0, wram, 0),
        (".mram", OTHER, ALLOCATED, MRAM, mram, 0),
        (".symtab", SYMBOLS, 0, 0, table, 5),
        (".strtab", STRINGS, 0, 0, names, 0),
        (".debug_line", OTHER, 0, 0, debug_line, 0),
        (".shstrtab", STRINGS, 0, 0, b"", 0),
    ]
    section_names = b"\0" + b"".join(name.encode() + b"\0" for name, *_ in sections)
    body, headers, offset = b"", bytes(40), 52
    for name, kind, flags, address, contents, link in sections:
        contents = contents if name != ".shstrtab" else section_names
        place = section_names.index(name.encode())
        size = len(contents)
        fields = (place, kind, flags, address, offset + len(body), size, link, 0, 1, 0)
        headers += struct.pack("<10I", *fields)
        body += contents + bytes(-size % 4)  # the reader refuses unaligned tables
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    sizes = (52, 0, 0, 40, len(sections) + 1, len(sections))
    header = (2, machine, 1, IRAM, 0, offset + len(body), 0, *sizes)
    return ident + struct.pack("<HHIIIIIHHHHHH", *header) + body + headers
