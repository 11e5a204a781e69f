"""`dpuemu objdump` on program files that the tests write."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import dpu_program
import pytest
from dpu_program import FUNCTION, IRAM, LABEL
from isa_definition import ID, Instruction, encode

DPUEMU = [sys.executable, "-m", "dpuemu"]
INSTRUCTIONS = [
    encode(Instruction("sub", a=ID, code=3, target=3)),
    encode(Instruction("call", "r", 23, immediate=4)),
    encode(Instruction("call", immediate=7)),
    0x7EF320000000,  # stop
    encode(Instruction("or", "r", 0, immediate=0x8000008, is_wide=True)),
    encode(Instruction("lw", "r", 1, 0, offset=4)),
    encode(Instruction("add", "r", 1, 1, immediate=0xFFFFFFFF, code=3, target=5)),
    encode(Instruction("call", a=23)),
    0xFFFF_0000_0000_0000,
]
NAMES = [
    ("worker", FUNCTION, 4, 4),
    ("start", FUNCTION, 0, 0),
    ("end", LABEL, 3, 0),
    ("data", LABEL, 8, 0),
]
LISTING = """\
80000000 <start>:
; src/main.c:10
  80000000:  3c7383000003  jnz id, end
  80000008:  8be300400000  call r23, worker
; src/main.c:12
  80000010:  8c6300700000  jump worker+3
80000018 <end>:
  80000018:  7ef320000000  stop

80000020 <worker>:
; src/main.c:20
  80000020:  606308800000  move r0, 0x8000008
  80000028:  708344400000  lw r1, r0, 4
  80000030:  0c8703ff0005  add r1, r1, -1, nz, worker+1
  80000038:  8c5f00000000  jump r23
80000040 <data>:
  80000040:  ffff000000000000  .quad 0xffff000000000000
"""


def line_table() -> bytes:
    """Return .debug_line: instructions 0, 2 and 4 begin the lines 10, 12 and 20 of src/main.c."""
    standard_operands = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    files = b"src\0\0main.c\0\1\0\0\0"
    header = struct.pack("<BBBbBB", 1, 1, 1, -5, 14, 13) + standard_operands + files
    advance, line, copy = b"\x02", b"\x03", b"\x01"
    program = b"\x00\x05\x02" + struct.pack("<I", IRAM)
    program += line + b"\x09" + copy  # from line 1 on
    program += advance + b"\x10" + line + b"\x02" + copy
    program += advance + b"\x10" + line + b"\x08" + copy
    program += advance + b"\x20\x00\x01\x01"  # the end of the sequence
    unit = struct.pack("<HI", 4, len(header)) + header + program
    return struct.pack("<I", len(unit)) + unit


def program_file(machine: int = dpu_program.DPU) -> bytes:
    """Return a program with code, symbols and source lines."""
    symbols = [(name, kind, IRAM + 8 * number, 8 * size) for name, kind, number, size in NAMES]
    return dpu_program.program_file(INSTRUCTIONS, symbols, debug_line=line_table(), machine=machine)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program file."""
    file = tmp_path / "program"
    file.write_bytes(program_file())
    return file


def objdump(*arguments: Any) -> Any:
    """Run the command."""
    words = [*DPUEMU, "objdump", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_objdump_prints_symbols_source_lines_and_instructions(program: Path) -> None:
    result = objdump(program)
    assert (result.stdout, result.stderr, result.returncode) == (LISTING, "", 0)


@pytest.mark.parametrize(
    ("symbol", "instructions"), [("worker", 4), ("start", 3), ("end", 1), ("data", 1)]
)
def test_a_symbol_selects_its_instructions(program: Path, symbol: str, instructions: int) -> None:
    lines = objdump("--symbol", symbol, program).stdout.splitlines()
    assert lines[0].endswith(f"<{symbol}>:")
    assert sum(line.startswith("  8") for line in lines) == instructions
    assert set(lines[1:]) - {line for line in lines if line[0] == ";"} <= set(LISTING.splitlines())


def test_objdump_names_the_problem_of_a_file(program: Path, tmp_path: Path) -> None:
    contents = program_file()
    other = "not a program of dpu-upmem-dpurte-clang"
    damaged = "damaged, or made by another version of its compiler"
    relocatable = contents[:16] + b"\1" + contents[17:]  # e_type
    for file, problem in (
        (program_file(machine=62), damaged),
        (program_file(machine=40), other),
        (relocatable, "an object file; link a program with dpu-upmem-dpurte-clang"),
        (b"text", other),
        (b"", other),
        (contents[:60], damaged),
        (contents[:-8], damaged),
    ):
        program.write_bytes(file)
        result = objdump(program)
        assert (result.stdout, result.returncode) == ("", 2)
        assert result.stderr.endswith(f"{program}: {problem}\n")
    program.write_bytes(contents)
    result = objdump("--symbol", "man", program)
    assert result.stderr.endswith(f"{program} has no function man\n")
    assert result.returncode == 2
    result = objdump(tmp_path / "missing")
    assert result.stderr.endswith(f"no such program file: {tmp_path / 'missing'}\n")


def test_objdump_accepts_any_bytes_in_names(program: Path, tmp_path: Path) -> None:
    copy = tmp_path / "caf\udce9"
    copy.write_bytes(program.read_bytes().replace(b"worker\0", b"work\xe9r\0"))
    words = [*DPUEMU, "objdump", "--symbol", "work\udce9r", copy]
    result = subprocess.run(words, capture_output=True, check=True)
    assert "<work\N{REPLACEMENT CHARACTER}r>:".encode() in result.stdout
    copy.write_bytes(b"")
    result = subprocess.run(words, capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"not a program of dpu-upmem-dpurte-clang" in result.stderr


def test_damaged_files_never_end_the_process(program: Path) -> None:
    # In one process: each byte of the headers and tables gets other values.
    script = (
        "import sys\n"
        "from dpuemu import _dpuemu, Error\n"
        "path, contents = sys.argv[1], bytearray(open(sys.argv[1], 'rb').read())\n"
        "done = 0\n"
        "for place in range(len(contents)):\n"
        "    for value in (0, 0x7F, 0xFF):\n"
        "        damaged = bytearray(contents)\n"
        "        damaged[place] = value\n"
        "        open(path, 'wb').write(damaged)\n"
        "        try:\n"
        "            _dpuemu.disassemble(path.encode(), b'')\n"
        "        except Error:\n"
        "            done += 1\n"
        "print(done)\n"
    )
    words = [sys.executable, "-c", script, str(program)]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    assert int(result.stdout) > 50
