"""The layouts and values that `dpuemu debug` knows are those of the emulator's headers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from dpuemu import _dpuemu
from dpuemu.arguments import BANKS
from dpuemu.in_gdb import layout

ROOT = Path(__file__).parents[2]
RENAMED = {"is_code": "is_machine_code", "wram": "place.wram", "text": "place.text"}
RENAMED |= {"eflags": "flags"}

PROBE = """
#include <cstddef>
#include <cstdio>
#include "base/address_map.h"
#include "base/door.h"
#include "isa/instruction.h"
#include "machine/debugger.h"
using namespace dpuemu;
int main() {{ std::printf("{format}", {values}); }}
"""

VALUES = {
    "kChips": layout.CHIPS,
    "kBanks": layout.BANKS,
    "kWordBytes": layout.WORD,
    "kDpusPerRank": layout.PES,
    "kMramBytes": layout.MRAM_BYTES,
    "kRunBytes": layout.RUN_BYTES,
    "kLineStride": layout.LINE_STRIDE,
    "isa::kGeneralRegisters": layout.REGISTERS,
    "sizeof Interrupted::floating_point": layout.FLOATING_POINT_BYTES,
    "PE_WRAM_BYTES": layout.WRAM_BYTES,
    "PE_MRAM_ORIGIN": layout.MRAM_WINDOWS[1],
    "PE_STACK_BLOCK_BYTES": layout.STACK_BLOCK,
    "PE_ATOMIC_ORIGIN": layout.MUTEXES,
    "PE_MAX_TASKLETS": layout.TASKLETS,
}


def values_of(folder: Path, *expressions: str) -> list[int]:
    """Return the values of expressions in C++."""
    values = ", ".join(f"(unsigned long)({one})" for one in expressions)
    source, program = folder / "probe.cpp", folder / "probe"
    source.write_text(PROBE.format(format="%lu " * len(expressions), values=values))
    paths = [f"-I{ROOT / name}" for name in (".", "src", "include")]
    subprocess.run(["g++", "-std=c++20", *paths, source, "-o", program], check=True)
    return [int(word) for word in subprocess.check_output([program], text=True).split()]


def test_constants_are_those_of_the_headers(tmp_path: Path) -> None:
    assert dict(zip(VALUES, values_of(tmp_path, *VALUES), strict=True)) == VALUES
    assert (_dpuemu.MAX_RANKS, _dpuemu.PES_PER_RANK, BANKS) == (
        layout.RANKS,
        layout.PES,
        layout.BANKS,
    )


@pytest.mark.parametrize(
    ("structure", "names", "begin"),
    [
        ("DebuggedRun", layout.RUN.split(), 0),
        ("Interrupted", layout.INTERRUPTED.split(), layout.FLOATING_POINT_BYTES),
    ],
)
def test_members_are_consecutive_words_in_the_order_of_the_headers(
    structure: str, names: list[str], begin: int, tmp_path: Path
) -> None:
    expressions = [f"offsetof({structure}, {RENAMED.get(name, name)})" for name in names]
    offsets = dict(zip(names, values_of(tmp_path, *expressions), strict=True))
    assert offsets == {name: begin + 8 * place for place, name in enumerate(names)}


@pytest.mark.parametrize(
    ("header", "name", "words", "texts"),
    [
        (
            *("run.h", "State", layout.STATES),
            {
                "kCalling": "ready",
                "kPaused": "computes",
                "kTransferring": "DMA",
                "kWaiting": "waits ",
                "kEnded": "ended",
            },
        ),
        (
            *("code_run.h", "State", layout.CODE_STATES),
            {
                "kStopped": "stopped",
                "kExecuting": "computes",
                "kTransferring": "DMA",
                "kRepeating": "waits ",
            },
        ),
        (
            *("run.h", "WaitKind", layout.AWAITED),
            {
                "kBarrier": "barrier",
                "kMutex": "the mutex",
                "kVirtualMutex": "vmutex",
                "kSemaphore": "semaphore",
                "kNotifier": "handshake_wait_for",
                "kNotified": "handshake_notify",
                "kResume": "resume",
            },
        ),
    ],
)
def test_each_value_of_a_type_has_its_words(
    header: str, name: str, words: list[str], texts: dict[str, str]
) -> None:
    text = (ROOT / "src/pe" / header).read_text()
    match = re.search(rf"enum class {name} : uint8_t {{(.*?)}}", text, re.DOTALL)
    assert match is not None
    values = [value.strip() for value in match[1].split(",")]
    assert values == list(texts)
    assert len(words) == len(values)
    for value, word in zip(values, words, strict=True):
        assert texts[value] in word
