"""Functions in DPU assembly: random ones do what isa_definition.py defines, and others are refused
with the file, the line and the rule.
"""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import isa_definition as isa
import pytest
from isa_definition import Instruction, State
from test_asm_blocks import text_of
from test_isa import COMPUTATIONS, PAIRS, forms, number

from dpuemu import tools

FUNCTIONS, LENGTH, ROUNDS, ARGUMENTS, REGISTERS = 60, 24, 12, 8, 14
CONSTANTS = {isa.ZERO: "zero", isa.ONE: "one", isa.LNEG: "lneg", isa.MNEG: "mneg"}
MAIN = """
#include <attributes.h>
#include <stdint.h>
typedef uint32_t function(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                          uint32_t);
function {names};
function *const functions[] = {{{names}}};
__host uint32_t arguments[{rounds}][8], results[{count} * {rounds}];
int main(void) {{
  for (uint32_t i = 0; i < {count}; ++i)
    for (uint32_t j = 0; j < {rounds}; ++j) {{
      uint32_t *a = arguments[j];
      results[i * {rounds} + j] = functions[i](a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    }}
  return 0;
}}
"""
HOST = """
import json, struct, sys
from dpu import DpuSet
with DpuSet(1, binary="program") as dpus:
    dpus.arguments = bytearray(bytes.fromhex(sys.argv[1]))
    dpus.exec()
    print(json.dumps(list(dpus.dpus()[0].results.uint32())))
"""


def random_instruction(rng: random.Random, place: int, end: int) -> Instruction:
    """Return an instruction whose jump, if it has one, goes to a later place."""
    name = rng.choice([*COMPUTATIONS, *PAIRS])
    form = rng.choice(list(forms(name)) if name in COMPUTATIONS else [Instruction(name, "p", b=0)])
    if name in PAIRS:
        form = replace(form, code=rng.choice([0, *isa.conditions_of(form)[0]]))
    bits = 32 if form.name in isa.SHIFTS or form.b is not None else isa.immediate_bits(form)
    register = rng.randrange(REGISTERS)
    return replace(
        form,
        c=rng.randrange(REGISTERS) if form.to == "r" else 2 * rng.randrange(REGISTERS // 2),
        a=rng.choice([*range(REGISTERS), *CONSTANTS]),
        b=None if form.b is None else register & ~1 if name in PAIRS else register,
        immediate=isa.signed(number(rng), bits) & isa.MASK,
        shift=rng.randrange(32),
        target=rng.randrange(place + 1, end + 1),
    )


def random_function(rng: random.Random) -> list[Instruction]:
    """Return instructions that give all registers values, change them, and combine them in r0."""
    sets = [
        Instruction("or", "r", c=c, immediate=number(rng), is_wide=True)
        for c in range(ARGUMENTS, REGISTERS)
    ]
    end = len(sets) + LENGTH
    computes = [random_instruction(rng, place, end) for place in range(len(sets), end)]
    combines = [Instruction("rol_add", "r", a=0, b=b, shift=7) for b in range(1, REGISTERS)]
    return [*sets, *computes, *combines, Instruction("addc", "r", a=0)]


def assembly_of(name: str, instructions: list[Instruction]) -> str:
    """Return the function in assembly."""
    lines = [f".globl {name}", f"{name}:"]
    for place, each in enumerate(instructions):
        text = text_of(each)
        for word, register in (
            ("%[word]", f"r{each.c}"),
            ("%[pair]", f"d{each.c}"),
            ("%[a]", CONSTANTS.get(each.a, f"r{each.a}")),
            ("%[b]", f"r{each.b}"),
            ("%[e]", f"d{each.b}"),
            (".+2", f".L{name}_{each.target}"),
        ):
            text = text.replace(word, register)
        lines.append(f".L{name}_{place}: {text}")
    return "\n".join([*lines, "  jump r23", ""])


def result_of(instructions: list[Instruction], arguments: list[int]) -> int:
    """Return r0 after the instructions."""
    state = State((*arguments, *[0] * (isa.GENERAL_REGISTERS - ARGUMENTS)), 0, 0, 0, b"")
    while state.pc < len(instructions):
        after = isa.execute(instructions[state.pc], state)
        assert isinstance(after, State)
        state = after
    return state.registers[0]


def dpuemu(folder: Path, *words: str) -> str:
    """Run a command on the emulated machine, and return its output."""
    command = [sys.executable, "-m", "dpuemu", "run", "--ranks", "1", "--", *words]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_random_functions_have_the_results_of_the_definition(tmp_path: Path) -> None:
    if not (tools.sdk_root() / "lib" / "libdpu.so").exists():
        pytest.skip("a source tree does not set PYTHONPATH to the library")
    rng = random.Random(3)
    functions = [random_function(rng) for _ in range(FUNCTIONS)]
    names = [f"f{place}" for place in range(FUNCTIONS)]
    arguments = [[number(rng) for _ in range(ARGUMENTS)] for _ in range(ROUNDS)]
    main = MAIN.format(names=", ".join(names), count=FUNCTIONS, rounds=ROUNDS)
    (tmp_path / "main.c").write_text(main)
    (tmp_path / "host.py").write_text(HOST)
    (tmp_path / "f.s").write_text("".join(map(assembly_of, names, functions)))
    dpuemu(tmp_path, "dpu-upmem-dpurte-clang", "-O1", "-o", "program", "main.c", "f.s")
    values = b"".join(word.to_bytes(4, "little") for row in arguments for word in row)
    results = json.loads(dpuemu(tmp_path, sys.executable, "host.py", values.hex()))
    expected = [result_of(each, row) for each in functions for row in arguments]
    for place, (result, value) in enumerate(zip(results, expected, strict=True)):
        assert result == value, assembly_of("f", functions[place // ROUNDS])


def test_assembly_has_a_make_rule_with_its_headers(tmp_path: Path) -> None:
    (tmp_path / "f.h").write_text("")
    (tmp_path / "f.S").write_text('#include "f.h"\n' + START + "f: jump r23\n")
    command = [str(tools.sdk_root() / "bin" / tools.COMPILER)]
    subprocess.run([*command, "-MD", "-c", "f.S", "-o", "f.o"], cwd=tmp_path, check=True)
    rule = (tmp_path / "f.d").read_text().replace("\\\n", " ").split()
    assert rule == ["f.o:", "f.S", "f.h"]


START = ".globl f\n"
SAVED = START + "f: sd r22, 0, d22\n add r22, r22, 8\n"


@pytest.mark.parametrize(
    ("text", "line", "shown", "rule"),
    [
        (START + "f:\n frob r0\n jump r23", 3, "frob r0", "cannot translate"),
        (START + "f:\n add r0, r9, 1\n jump r23", 3, "add r0, r9, 1", "r9 has no value"),
        (
            START + "f: jz r0, 1f\n move r9, 1\n1: add r0, r0, r9\n jump r23",
            4,
            "add r0, r0, r9",
            "r9",
        ),
        (
            START + "f: jz r0, 2f\n1: add r0, r0, r9\n jump r23\n2: move r9, 1, true, 1b",
            3,
            "add r0, r0, r9",
            "r9 has no value",
        ),
        (START + ".macro add a\nfrob \\a\n.endm\nf: add r0", 5, "frob r0", "cannot translate"),
        (START + ".macro m a\nfrob \\a\n.endm\nf: 1: m r0", 5, "frob r0", "cannot translate"),
        (SAVED + " call r23, g\n move r0, r1\n jump r23", 5, "move r0, r1", "r1 has no value"),
        (START + "f: lw r0, r22, -4\n jump r23", 2, "lw r0, r22, -4", "in r0 to r7"),
        (START + "f: add r0, r0, 1\n", 2, "add r0, r0, 1", "continues beyond its end"),
        (START + "f: call r20, g\n jump r20", 2, "call r20, g", "returns to r23"),
        (START + "f: jump r1, 8\n", 2, "jump r1, 8", "cannot translate"),
        (START + "f: move r0, .L1\n.L1: jump r23", 2, "move r0, .L1", "no value in C"),
        (START + ".globl g\nf: jump .L1\ng:\n.L1: jump r23", 3, "jump .L1", "another function"),
        (START + "f: jump r23\nf: jump r23", 3, "f", "the label exists already"),
        (START + "f: boot r0, 1\n jump r23", 2, "boot r0, 1", "cannot translate"),
        ("g:\n jump r23", 2, "jump r23", "no label before it names a function"),
        (".rept 2\n.endr", 1, ".rept 2", "the directive is not supported"),
        (".macro m a\nnop", 1, ".macro m a", "the macro needs .endm"),
        (".macro m a=1\n.endm", 1, ".macro m a=1", "may not have values"),
        (START + ".macro m a\nm \\a\n.endm\nf: nop\nm 1", 6, "m 1", "without end"),
        (START + ".macro m a, b\n.endm\nf: nop\nm 1", 5, "m 1", "needs 2 arguments"),
        (".data\n.org 5", 2, ".org 5", "data only"),
        (".data\n move r0, 1", 2, "move r0, 1", "data only"),
        (".set a, 1\n.set a, 2", 2, ".set a, 2", "a has two values"),
    ],
)
def test_assembly_without_translation_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str, line: int, shown: str, rule: str
) -> None:
    monkeypatch.syspath_prepend(str(tools.sdk_root() / "compiler"))
    assembly = importlib.import_module("assembly")
    with pytest.raises(assembly.AssemblyError) as error:
        assembly.functions(text, ("f.S", 1), ("f.S", 1))
    assert str(error.value).startswith(f"DPU assembly at f.S:{line} ({shown}): ")
    assert rule in str(error.value)


def test_instructions_after_a_call_through_a_register_count_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(tools.sdk_root() / "compiler"))
    assembly = importlib.import_module("assembly")
    text = SAVED + " call r23, r0\n add r0, r0, 1\n jump r23\n"
    before, after = assembly.functions(text, ("f.S", 1), ("f.S", 6)).split("__pe_call(")
    assert "leaq 3(" in before
    assert "leaq 2(" in after


def test_functions_of_two_texts_have_different_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tools.sdk_root() / "compiler"))
    assembly = importlib.import_module("assembly")
    names = [
        assembly.functions(f".globl {name}\n{name}: jump r23", (f"{name}.h", 1), ("f.c", 2))
        .split("static void ")[1]
        .split("(")[0]
        for name in "fg"
    ]
    assert names[0] != names[1]


@pytest.mark.parametrize(
    ("prototype", "is_refused"),
    [
        ("int g(int, char *);", False),
        ("static long g(void); int other(long);", False),
        ("unsigned g(unsigned long);", True),
        ("typedef unsigned long long wide; typedef wide also; also g(void);", True),
        ("struct pair { int a, b; }; int g(struct pair);", True),
        ("struct pair { int a, b; }; int g(struct pair *);", False),
        ("float g(void);", True),
        ("int g(const char *, ...);", True),
        ("int g(int, int, int, int, int, int, int, int, int);", True),
        ("double g(int a) { return a; }", True),
        ("int h(void) { return 0; } double g(int a) { return a; }", True),
        ("int h(void), g(unsigned long long);", True),
        ("extern unsigned long long g(void), h(void);", True),
        ("extern unsigned long long h(void), g(void);", True),
        ("extern unsigned long long x = 3, *g(void);", False),
        ("unsigned long long (g)(void);", True),
        ("__int128 g(void);", True),
        ("typedef struct { int a; } S, *P; S g(void);", True),
        ("typedef struct { int a; } S, *P; P g(P);", False),
        ("typedef long long F(void); F g;", True),
        ("long long x; __typeof__(x) g(void);", True),
        ("unsigned char g(int);", True),
        ("typedef short s16, *p16; s16 g(void);", True),
        ("typedef short s16, *p16; p16 g(s16, _Bool);", False),
        ("_Bool g(void);", True),
        ("struct g { long long a; }; int h(struct g *);", False),
        ("int (*g(unsigned n))(const int *, unsigned);", False),
        ("int (*g(long long n))(const int *);", True),
        ("int g(int (*)(long long), char a[4]);", False),
    ],
)
def test_prototypes_with_other_types_are_refused(
    monkeypatch: pytest.MonkeyPatch, prototype: str, is_refused: bool
) -> None:
    monkeypatch.syspath_prepend(str(tools.sdk_root() / "compiler"))
    prototypes = importlib.import_module("prototypes")
    others = prototypes.others(f'# 1 "f.c"\n{prototype}\nint main(void) {{ return 0; }}\n')
    error = prototypes.link_error("\0".join(others).encode(), b"f\0g\0")
    assert error.startswith("g: the prototype has types that assembly cannot use") == is_refused
    assert is_refused or not error
