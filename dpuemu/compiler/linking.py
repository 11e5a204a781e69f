"""Link a PE program and check that it fits into a DPU."""

from __future__ import annotations

import os
import re
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

import costs
import counting
import prototypes
from compiler import CompileError, Compiler
from gcc_flags import RUNTIME
from options import Options

_CONSTANT = re.compile(r"^#define (PE_\w+) (0[xX][0-9a-fA-F]+|\d+)\s*$", re.MULTILINE)


def constants() -> dict[str, int]:
    """Return the constants of calls.h."""
    return {
        name: int(value, 0) for name, value in _CONSTANT.findall((RUNTIME / "calls.h").read_text())
    }


@dataclass
class Symbol:
    """A symbol of the linked program, and the file offset of its value."""

    name: str
    value: int
    place: int


class Program:
    """The parts of an ELF32 file that the checks need."""

    def __init__(self, content: bytes) -> None:
        """Read section headers and symbols."""
        table, count, names = (
            *struct.unpack_from("<I", content, 32),
            *struct.unpack_from("<HH", content, 48),
        )
        self.content = content
        headers = [
            struct.unpack_from("<10I", content, table + 40 * index) for index in range(count)
        ]
        self.sections: dict[str, tuple[int, int]] = {}  # name -> address, bytes
        self.offsets: dict[str, int] = {}  # of the contents of sections in the file
        self.symbols: list[Symbol] = []
        for name, kind, _, address, offset, size, link, _, _, _ in headers:
            section = _text(content, headers[names][4] + name)
            self.sections[section] = (address, size)
            self.offsets[section] = offset
            if kind == 2:  # SHT_SYMTAB
                strings = headers[link][4]
                for index in range(size // 16):
                    place = offset + 16 * index
                    text, value = struct.unpack_from("<II", content, place)
                    self.symbols.append(Symbol(_text(content, strings + text), value, place + 4))

    def contents(self, name: str) -> bytes:
        """Return the contents of a section, or nothing if the program does not have the section."""
        _, size = self.sections.get(name, (0, 0))
        offset = self.offsets.get(name, 0)
        return self.content[offset : offset + size]

    def end(self, name: str) -> int:
        """Return the end address of a section, or 0 if the program does not have the section."""
        address, size = self.sections.get(name, (0, 0))
        return address + size

    def instructions(self) -> int:
        """Return the number of instructions in IRAM: of all sections, and of each software
        routine once.
        """
        total = 0
        routines: set[str] = set()
        for symbol in self.symbols:
            if symbol.name.startswith(counting.SIZE_LABEL):
                total += int(symbol.name[len(counting.SIZE_LABEL) :].partition("_")[0])
            elif symbol.name.startswith(counting.USES_LABEL):
                routines.add(symbol.name[len(counting.USES_LABEL) :].partition("_")[2])
        return total + sum(
            costs.ROUTINE_SIZE[routine] for routine in routines if routine in costs.ROUTINE_SIZE
        )


def _text(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start)].decode(errors="replace")


def link(compiler: Compiler, options: Options, objects: list[str], output: str) -> None:
    """Link the objects with the runtime into `output`.

    Raises CompileError if the program does not fit.
    """
    sizes = constants()
    script = RUNTIME / "program.ld"
    named = set(re.findall(r"\bPE_\w+", script.read_text()))
    symbols = {
        **{name: value for name, value in sizes.items() if name in named},
        "PE_WRAM_BYTES": options.chip.wram_bytes,
        "__pe_format": 2,
        "__pe_tasklets": options.tasklets,
        "__pe_stack_bytes": options.stack_default,
        **{f"__pe_stack_bytes_{tasklet}": size for tasklet, size in options.stacks.items()},
        "__pe_stack_total": options.stack_total(),
        "__pe_instructions": 0,
    }
    linked = compiler.temporary(".elf")
    # --no-check-sections: check() below reports an overflow with numbers, which ld would not
    # report.
    compiler.checked(
        [
            *(
                "-mx32",
                "-nostdlib",
                "-static",
                "-no-pie",
                "-fno-use-linker-plugin",
                "-o",
                str(linked),
            ),
            *(f"-Wl,--defsym={name}={value:#x}" for name, value in symbols.items()),
            *("-T", str(script)),
            "-Wl,-m,elf32_x86_64,--emit-relocs,--gc-sections,--build-id=none,--no-check-sections,-n",
            # Hosts read CLOCKS_PER_SEC even if the program does not.
            *(f"-Wl,-u,{name}" for name in ("__pe_start", "main", "CLOCKS_PER_SEC")),
            *objects,
            *options.linker,
            str(compiler.runtime()),
        ]
    )
    content = bytearray(linked.read_bytes())
    program = Program(bytes(content))
    if refusal := prototypes.link_error(*map(program.contents, prototypes.SECTIONS)):
        raise CompileError(refusal)
    check(program, options, sizes, is_checked=compiler.checks)
    for symbol in program.symbols:
        if symbol.name == "__pe_instructions":
            instructions = 0 if compiler.checks else program.instructions()
            struct.pack_into("<I", content, symbol.place, instructions)
    linked.write_bytes(content)
    linked.chmod(0o755)
    try:
        _move(linked, output)
    except OSError as error:
        raise CompileError(f"cannot write the program to {output}: {error.strerror}") from error


def _move(linked: Path, output: str) -> None:
    """Replace the output file.

    The old file is not rewritten: it may be in use or have other hard links.
    """
    if os.path.exists(output) and not os.path.isfile(output):  # for example /dev/null
        with open(output, "wb") as target:
            target.write(linked.read_bytes())
        return
    beside = f"{output}.{os.getpid()}"
    try:
        shutil.copyfile(linked, beside)
        status = os.umask(0)
        os.umask(status)
        os.chmod(beside, 0o777 & ~status)
        os.replace(beside, output)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


def check(
    program: Program, options: Options, sizes: dict[str, int], *, is_checked: bool = False
) -> None:
    """Raise CompileError if the program does not fit in WRAM, MRAM, the atomic page, the text
    area or IRAM. is_checked: the program has calls that a DPU does not execute, so its size in IRAM
    is unknown.
    """
    stacks = options.stack_total()
    heap_start = program.sections[".heap"][0]
    used = heap_start + stacks - sizes["PE_WRAM_ORIGIN"]
    if used > options.chip.wram_bytes:
        raise CompileError(
            f"the program needs {used} bytes of WRAM ({heap_start} of data, {stacks} of stacks) "
            f"but a DPU has {options.chip.wram_bytes}"
        )
    counter_bytes = 8
    counters = (program.end(".pe_counters") - sizes["PE_COUNTERS_ORIGIN"]) // counter_bytes
    most = sizes["PE_COUNTERS_BYTES"] // counter_bytes
    if counters > most:
        raise CompileError(
            f"`dpuemu profile` has {most} counters, but the program needs {counters}; compile fewer"
            " files in `dpuemu profile`"
        )
    for name, section, origin, available in (
        ("of mutexes", ".atomic", sizes["PE_ATOMIC_ORIGIN"], options.chip.mutexes),
        ("of MRAM", ".mram", sizes["PE_MRAM_ORIGIN"], sizes["PE_MRAM_BYTES"]),
        ("of x86-64 code", ".text", sizes["PE_TEXT_ORIGIN"], sizes["PE_TEXT_BYTES"]),
    ):
        used = program.end(section) - origin
        if program.end(section) and used > available:
            raise CompileError(f"the program needs {used} bytes {name} but a DPU has {available}")
    estimate = program.instructions()
    if not is_checked and 100 * estimate > options.chip.instructions * sizes["PE_ESTIMATE_PERCENT"]:
        raise CompileError(
            f"the program has about {estimate} instructions but the IRAM of a DPU holds"
            f" {options.chip.instructions}"
        )
