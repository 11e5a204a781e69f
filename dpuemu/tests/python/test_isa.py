"""The interpreter of machine code executes each instruction as isa_definition.py defines it."""

from __future__ import annotations

import itertools
import random
import re
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import isa_definition as isa
import pytest
from isa_definition import Fault, Instruction, State

PRODUCT = Path(__file__).resolve().parents[2]
ISA = PRODUCT / "src" / "isa"
SOURCES = [PRODUCT / "tests" / "isa_step.cpp", ISA / "core.cpp", ISA / "encoding.cpp"]
BEFORE, AFTER = struct.Struct("<Q24I4I64s"), struct.Struct("<24I7I64s")
TESTS_PER_PROGRAM = 2048
WRAM_BYTES = 64

COMPUTATIONS = [
    *isa.ARITHMETIC,
    *isa.LOGIC,
    *isa.SHIFTS,
    *isa.UNARY,
    "sats",
    "cmpb4",
    *isa.SHIFT_ADDS,
    *isa.PRODUCTS,
]
PAIRS = [*isa.STEPS, *isa.PAIR_MOVES]
ACCESSES = [*isa.LOADS, *isa.STORES]
# The interpreter leaves these to its caller.
OF_CALLER = [
    "ldma", "ldmai", "sdma", "acquire", "release", "boot", "resume", "clr_run", "read_run", "stop",
    "fault", "tell", "time", "time_cfg",
]  # fmt: skip
# Operands at which results or flags change.
EDGES = [0, 1, 2, 31, 32, 33, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000]
EDGES += [isa.MASK, isa.MASK - 1]

Step = Callable[[list[tuple[Instruction, State]]], list[State | Fault]]


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Step:
    """A function that executes instructions by the interpreter."""
    program = tmp_path_factory.mktemp("isa") / "step"
    command = [
        "c++",
        "-std=c++20",
        "-O1",
        f"-I{PRODUCT / 'src'}",
        f"-I{PRODUCT}",
        "-o",
        str(program),
    ]
    subprocess.run([*command, *map(str, SOURCES)], check=True)

    def run(tests: list[tuple[Instruction, State]]) -> list[State | Fault]:
        records = b"".join(
            BEFORE.pack(
                isa.encode(instruction),
                *before.registers,
                before.zero,
                before.carry,
                before.tasklet,
                0,
                before.wram,
            )
            for instruction, before in tests
        )
        output = subprocess.run([program], input=records, capture_output=True, check=True).stdout
        results: list[State | Fault] = []
        for (_, before), fields in zip(tests, AFTER.iter_unpack(output), strict=True):
            *registers, zero, carry, pc, instructions, is_fault, address, size, wram = fields
            after = State(tuple(registers), zero, carry, pc, wram, before.tasklet)
            assert instructions == 1 - is_fault, "the word is not an instruction"
            assert not is_fault or after == before, "an instruction with a fault has an effect"
            results.append(Fault(address, size) if is_fault else after)
        return results

    return run


def check(step: Step, tests: list[tuple[Instruction, State]]) -> None:
    """Compare the results of instructions with their definition."""
    tests = [
        (instruction, replace(before, pc=2 * (place % TESTS_PER_PROGRAM)))
        for place, (instruction, before) in enumerate(tests)
    ]
    for (instruction, before), got in zip(tests, step(tests), strict=True):
        want = isa.execute(instruction, before)
        assert got == want, f"{instruction} in {before}: word {isa.encode(instruction):#x}"


def number(rng: random.Random) -> int:
    """Return an operand: an edge, or a random number of random size."""
    if rng.random() < 0.4:
        return rng.choice(EDGES)
    return rng.getrandbits(32) >> rng.choice([0, 0, 8, 16, 24])


def state(rng: random.Random) -> State:
    """Return a random state; sometimes two registers are equal."""
    registers = [number(rng) for _ in range(isa.GENERAL_REGISTERS)]
    for _ in range(4):
        registers[rng.randrange(24)] = registers[rng.randrange(24)]
    return State(
        registers=tuple(registers),
        zero=rng.getrandbits(1),
        carry=rng.getrandbits(1),
        pc=0,
        wram=rng.randbytes(WRAM_BYTES),
        tasklet=rng.randrange(24),
    )


def destinations(name: str) -> str:
    """Return the kinds of destinations of an operation."""
    if name in ("extub", "extuh") or name.startswith("mul_u"):
        return "rzu"
    return "rzs" if name in ("extsb", "extsh") or name.startswith("mul_s") else "rzsu"


def place_of(to: str, rng: random.Random) -> int:
    return rng.randrange(24) if to in "rz" else 2 * rng.randrange(12)


def forms(name: str) -> Iterator[Instruction]:
    """Yield an operation with each kind of destination, of second operand and of condition."""
    has_register = name not in isa.UNARY and name != "sats"
    has_immediate = name in isa.ARITHMETIC or name in isa.LOGIC or name in isa.SHIFTS
    for to in destinations(name):
        for b in (0,) * has_register + (None,) * (has_immediate or not has_register):
            form = Instruction(name, to, b=b)
            jumps, sets = isa.conditions_of(form)
            for code in (0, *jumps, *sets):
                yield replace(form, code=code)
        if name in (isa.WIDE_PAIR if to in "su" else isa.WIDE):
            yield Instruction(name, to, is_wide=True)


def with_operands(form: Instruction, rng: random.Random) -> Instruction:
    """Return the form with random registers and numbers."""
    # Wide immediates of `and` have a code in common: the destination is a pair if a is constant.
    has_constants = form.to != "z" and (form.name == "and") == (form.to in "su")
    bits = 32 if form.name in isa.SHIFTS or form.b is not None else isa.immediate_bits(form)
    return replace(
        form,
        c=place_of(form.to, rng),
        a=rng.randrange(32 if has_constants or not form.is_wide else 24),
        b=None if form.b is None else rng.randrange(24),
        immediate=isa.signed(number(rng) >> rng.choice([0, 32 - bits]), bits) & isa.MASK,
        shift=rng.randrange(32),
        target=rng.randrange(4096),
    )


def test_each_operation_has_a_definition() -> None:
    rows = re.findall(
        r'^(?:OPERATION|EFFECT)\(\w+, "(\w+)"',
        (PRODUCT / "runtime" / "instructions.inc").read_text(),
        re.M,
    )
    defined = [*COMPUTATIONS, *PAIRS, *ACCESSES, "call", "nop"]
    assert sorted(rows) == sorted([*defined, *OF_CALLER])


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_results_flags_and_conditions_are_those_of_the_definition(step: Step, name: str) -> None:
    rng = random.Random(name)
    check(step, [(with_operands(form, rng), state(rng)) for form in forms(name) for _ in range(8)])


@pytest.mark.parametrize("name", PAIRS)
def test_instructions_of_pairs_change_only_the_defined_registers(step: Step, name: str) -> None:
    rng = random.Random(name)
    form = Instruction(name, "p", b=0)
    tests = []
    for code in (0, *isa.conditions_of(form)[0]):
        for _ in range(100):
            before = state(rng)
            instruction = replace(
                form,
                c=2 * rng.randrange(12),
                a=rng.randrange(32) if name in isa.STEPS else isa.ZERO,
                b=2 * rng.randrange(12),
                shift=rng.choice([0, rng.randrange(32)]),
                code=code,
                target=rng.randrange(4096),
            )
            tests.append((instruction, before))
    check(step, tests)


def test_a_call_writes_the_number_of_the_next_instruction_and_jumps(step: Step) -> None:
    rng = random.Random(1)
    tests = []
    for to, has_register in itertools.product("rz", (True, False)):
        for _ in range(100):
            a, b = rng.sample(range(24), 2)
            target, offset = rng.randrange(4096), rng.choice([0, 1, rng.randrange(-4096, 4096)])
            before = state(rng)
            registers = list(before.registers)
            registers[a], registers[b] = (target - offset) & isa.MASK, offset & isa.MASK
            instruction = Instruction("call", to, rng.randrange(24), a, immediate=offset)
            tests.append(
                (
                    replace(instruction, b=b if has_register else None),
                    replace(before, registers=tuple(registers)),
                )
            )
    check(step, tests)


def test_a_nop_has_no_effect(step: Step) -> None:
    check(step, [(Instruction("nop"), state(random.Random(1)))])


def accesses(name: str) -> Iterator[Instruction]:
    """Yield a load or store with each kind of destination or operand, in both byte orders."""
    kinds = {"ld": "p", "lw": "rsu", "lbu": "ru", "lhu": "ru", "lbs": "rs", "lhs": "rs"}
    operands = (None,) if name.endswith("_id") else (0, None)
    for is_big_endian in (False, True):
        if name in isa.LOADS:
            for to in kinds[name]:
                yield Instruction(name, to, is_big_endian=is_big_endian)
        else:
            for b in operands:
                yield Instruction(name, b=b, is_big_endian=is_big_endian)


def at_address(form: Instruction, address: int, rng: random.Random) -> tuple[Instruction, State]:
    """Return a load or store at an address, with random registers and numbers."""
    before = state(rng)
    bits = 12 if form.name in isa.STORES and form.b is None else 24
    a = rng.randrange(32)
    offset = rng.choice([0, 1, -1, isa.signed(rng.getrandbits(bits), bits)])
    registers = list(before.registers)
    if a < 24:
        registers[a] = (address - offset) & isa.MASK
    else:
        offset = isa.signed(address - before.register(a), bits)
    step_of_b = 2 if form.name == "sd" else 1
    instruction = replace(
        form,
        c=place_of(form.to if form.to != "p" else "s", rng),
        a=a,
        b=None if form.b is None else step_of_b * rng.randrange(24 // step_of_b),
        offset=offset & isa.MASK,
        immediate=isa.signed(number(rng), 16) & isa.MASK,
    )
    return instruction, replace(before, registers=tuple(registers))


@pytest.mark.parametrize("name", ACCESSES)
def test_loads_and_stores_use_each_aligned_address_of_wram(step: Step, name: str) -> None:
    rng = random.Random(name)
    size = Instruction(name).bytes
    check(
        step,
        [
            at_address(form, address, rng)
            for form in accesses(name)
            for address in range(0, WRAM_BYTES, size)
            for _ in range(size)
        ],
    )


@pytest.mark.parametrize("name", ACCESSES)
def test_loads_and_stores_at_other_addresses_are_faults(step: Step, name: str) -> None:
    rng = random.Random(name)
    size = Instruction(name).bytes
    misaligned = [address for address in range(WRAM_BYTES) if address % size]
    outside = [WRAM_BYTES - size + 1, WRAM_BYTES, WRAM_BYTES + 8, 0x10000, 0x7FFFFFF8, 0x80000000]
    outside += [-8 & isa.MASK, -1 & isa.MASK, -size & isa.MASK]
    tests = [
        (instruction, before)
        for form in accesses(name)
        for address in (*misaligned, *outside)
        for instruction, before in [at_address(form, address, rng)]
        if instruction.a < 24
    ]
    assert all(isinstance(isa.execute(*test), Fault) for test in tests)
    check(step, tests)
