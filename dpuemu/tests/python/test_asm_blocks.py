"""The C code in place of asm blocks does what isa_definition.py defines."""

from __future__ import annotations

import ctypes
import importlib
import random
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import isa_definition as isa
import pytest
from isa_definition import Instruction, State
from test_isa import COMPUTATIONS, PAIRS, forms, number

from dpuemu import tools

# The registers of the operands in the definition: a and b are r0 and r1, the pair of operands is
# d4, and the destination is r2 or d2.
A, B, C, E = 0, 1, 2, 4
TARGET, ROUNDS = 1000, 10
# Sets the flags, executes an instruction, and stores whether it jumped, and the flags. Moves of
# pairs change no flags.
FUNCTION = """# 1 "f{number}.c"
void f{number}(const unsigned *in, unsigned *out) {{
  unsigned long long pair = (unsigned long long)in[2] << 32 | in[3], none = 0, taken = 1, zero = 1;
  unsigned long long e = (unsigned long long)in[4] << 32 | in[5];
  unsigned word = in[2], carry;
  __asm__("add zero, %[carry_before], -1\\n"
          "xor zero, %[zero_before], 1\\n"
          "{instruction}\\n"
          "movd %[taken], %[none]\\n"
          "xor zero, zero, 0, xz, .+2\\n"
          "movd %[zero], %[none]\\n"
          "addc %[carry], zero, 0"
          : [pair] "+r"(pair), [word] "+r"(word), [taken] "+r"(taken), [zero] "+r"(zero),
            [carry] "=r"(carry)
          : [a] "r"(in[0]), [b] "r"(in[1]), [e] "r"(e), [none] "r"(none),
            [zero_before] "r"(in[6]), [carry_before] "r"(in[7]));
  out[0] = taken, out[1] = zero, out[2] = carry;
  out[3] = {has_pair} ? pair >> 32 : word, out[4] = pair;
}}
"""


def text_of(instruction: Instruction) -> str:
    """Return the instruction in assembly; its operands are those of FUNCTION."""
    to = {"r": "%[word]", "z": "zero"}.get(instruction.to, "%[pair]")
    words = [to, "%[a]"]
    if instruction.name in isa.SHIFT_ADDS:
        words = [to, "%[b]", "%[a]", str(instruction.shift)]
    elif instruction.name in isa.STEPS:
        words = [to, "%[a]", "%[e]", str(instruction.shift)]
    elif instruction.name in isa.PAIR_MOVES:
        words = [to, "%[e]"]
    elif instruction.b is not None:
        words.append("%[b]")
    elif instruction.name in isa.SHIFTS:
        words.append(str(instruction.shift))
    elif instruction.name not in isa.UNARY and instruction.name != "sats":
        words.append(str(isa.signed(instruction.immediate)))
    jumps, sets = isa.conditions_of(instruction)
    if instruction.code in jumps:
        words += [jumps[instruction.code], ".+2"]
    elif instruction.code:
        words.append(sets[instruction.code])
    suffix = f".{instruction.to}" if instruction.to in "su" else ""
    return f"{instruction.name}{suffix} {', '.join(words)}"


def instructions() -> Iterator[Instruction]:
    """Yield each operation with each of its conditions, and a random form of operands."""
    rng = random.Random(1)
    for name in (*COMPUTATIONS, *PAIRS):
        all_forms = list(forms(name)) if name in COMPUTATIONS else [Instruction(name, "p", b=0)]
        if name in PAIRS:
            all_forms = [
                replace(form, code=code)
                for form in all_forms
                for code in (0, *isa.conditions_of(form)[0])
            ]
        rng.shuffle(all_forms)
        for form in {form.code: form for form in all_forms}.values():
            bits = 32 if form.name in isa.SHIFTS or form.b is not None else isa.immediate_bits(form)
            yield replace(
                form,
                c=C,
                a=A,
                b=None if form.b is None else E if name in PAIRS else B,
                immediate=isa.signed(number(rng), bits) & isa.MASK,
                shift=rng.randrange(32),
                target=TARGET,
            )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The functions of all instructions, as native code."""
    folder = tmp_path_factory.mktemp("blocks")
    source = "".join(
        FUNCTION.format(
            number=place, instruction=text_of(instruction), has_pair=int(instruction.to in "sup")
        )
        for place, instruction in enumerate(instructions())
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tools.sdk_root() / "compiler"))
        in_c = importlib.import_module("assembly").replace(source, "-", pytest.fail)
    (folder / "blocks.c").write_text(in_c)
    command = ["gcc", "-O1", "-w", "-ffixed-r15", "-fwrapv", "-shared", "-fPIC", "-o", "blocks.so"]
    header = tools.sdk_root() / "runtime" / "asm_block.h"
    subprocess.run([*command, "-include", header, "blocks.c"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "blocks.so"))


def test_each_operation_and_condition_is_as_defined(library: ctypes.CDLL) -> None:
    rng = random.Random(2)
    words_in, words_out = (ctypes.c_uint32 * 8), (ctypes.c_uint32 * 5)
    for place, instruction in enumerate(instructions()):
        for _ in range(ROUNDS):
            a, b, high, low, e_high, e_low = (number(rng) for _ in range(6))
            zero, carry = rng.getrandbits(1), rng.getrandbits(1)
            registers = (a, b, high, low, e_high, e_low, *[0] * 18)
            after = isa.execute(instruction, State(registers, zero, carry, 0, b""))
            assert isinstance(after, State)
            out = words_out()
            values = words_in(a, b, high, low, e_high, e_low, zero, carry)
            getattr(library, f"f{place}")(values, out)
            expected = [int(after.pc == TARGET), after.zero, after.carry, after.registers[C]]
            if instruction.to in "sup":
                expected.append(after.registers[C + 1])
            assert list(out)[: len(expected)] == expected, (text_of(instruction), list(values))
