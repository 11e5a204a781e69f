"""Programs of machine code have the results that thread_definition.py defines: sequences of one
tasklet, and programs of many tasklets whose results do not depend on their order.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dpu_program
import thread_definition as threads
from isa_definition import ID, ID2, ID4, ID8, MASK, ONE, ZERO, Instruction
from thread_definition import Machine

WRAM_BYTES = MRAM_BYTES = 2048
# The places of variables in WRAM.
COUNT, PRIVATE, BLOCKS, REGISTERS = 252, 256, 512, 1536
TRUE, Z, NZ, LTU, GEU = 1, 2, 3, 20, 21  # codes of conditions
HOST = """
import sys
from dpu import DpuError, DpuSet
from dpuemu._dpuemu import explain_fault
with DpuSet(1) as dpus:
    for path in sys.argv[1:]:
        dpus.load(path)
        fault = ""
        try:
            dpus.exec()
        except DpuError:
            fault = explain_fault(bytes(dpus.c_set))
        with open(path + ".result", "wb") as result:
            for symbol in ("wram", "mram"):
                memory = bytearray(2048)
                dpus.copy([memory], symbol)
                result.write(memory)
            result.write(fault.encode())
"""


class Assembly:
    """A program in which jumps name labels."""

    def __init__(self) -> None:
        self.code: list[tuple[Instruction, str]] = []
        self.labels: dict[str, int] = {}
        self.barriers = self.chains = 0

    def label(self, name: str) -> None:
        self.labels[name] = len(self.code)

    def add(self, name: str, to: str = "z", c: int = 0, label: str = "", **fields: int) -> None:
        """Append an instruction. label: the target of its jump, or the place in IRAM to move."""
        is_wide = name in ("or", "add") and to == "r" and not {"b", "code"} & fields.keys()
        self.code.append((Instruction(name, to, c, is_wide=is_wide, **fields), label))

    def move(self, c: int, value: int) -> None:
        self.add("or", "r", c, immediate=value & MASK)

    def program(self) -> list[Instruction]:
        def resolved(each: Instruction, place: int) -> Instruction:
            return replace(each, **{"immediate": 8 * place} if each.is_wide else {"target": place})

        return [resolved(each, self.labels[label]) if label else each for each, label in self.code]


class Case:
    """A program with the contents of its memories before and after."""

    def __init__(self, assembly: Assembly, rng: random.Random) -> None:
        self.program = assembly.program()
        self.known: list[Instruction] = []
        wram = rng.randbytes(WRAM_BYTES - 256)
        self.before = bytes(256) + wram, rng.randbytes(MRAM_BYTES)

    def want(self, seed: int) -> Machine:
        """Return the machine at the end."""
        machine = Machine(self.program, *self.before, self.known)
        machine.run_all(random.Random(seed), most=300_000)
        return machine

    def file(self) -> bytes:
        wram, mram = self.before
        symbols = [
            ("wram", dpu_program.VARIABLE, 0, WRAM_BYTES),
            ("mram", dpu_program.VARIABLE, dpu_program.MRAM, MRAM_BYTES),
        ]
        words = [threads.encode(each) for each in self.program]
        return dpu_program.program_file(words, symbols, wram=wram, mram=mram)


def check(cases: list[Case], folder: Path) -> list[Machine]:
    """Run the programs and compare their memories and faults with the definition."""
    for number, case in enumerate(cases):
        (folder / str(number)).write_bytes(case.file())
    paths = [str(folder / str(number)) for number in range(len(cases))]
    words = [sys.executable, "-m", "dpuemu", "run", "--", sys.executable, "-c", HOST, *paths]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    machines = []
    for seed, (case, path) in enumerate(zip(cases, paths, strict=True)):
        machine = case.want(seed)
        result = Path(path + ".result").read_bytes()
        for name, want in (("WRAM", machine.wram), ("MRAM", machine.mram)):
            got, result = result[: len(want)], result[len(want) :]
            places = [n for n, pair in enumerate(zip(got, want, strict=True)) if len({*pair}) > 1]
            assert not places, f"program {seed}, {name}: {places}"
        fault = result.decode()
        if machine.fault is None:
            assert fault == "", f"program {seed}"
        else:
            text = "tasklet {}: the program executed the instruction fault {},".format(
                *machine.fault
            )
            assert text in fault, f"program {seed}: {fault}"
        machines.append(machine)
    return machines


# --- One tasklet


def add_run_bit(code: Assembly, rng: random.Random, name: str) -> None:
    """Use a bit of RUN without a tasklet, or read the bit of a tasklet."""
    a, b = rng.sample(range(8), 2)
    code.add("and", "r", a, a=b, immediate=15)
    least, most = (-15, 63) if name == "read_run" else (24, 48)
    code.add(name, a=a, immediate=rng.randrange(least, most) & MASK, **jump_of(rng, name))


def jump_of(rng: random.Random, name: str) -> dict[str, int]:
    """Return a condition, or none; the target stands for a place close by."""
    codes = [*threads.conditions_of(name)] + [0] * (name not in threads.MUTEX)
    code = rng.choice(codes)
    return {"code": code, "target": int(code != 0 or name == "release")}


def add_dma(code: Assembly, rng: random.Random, name: str) -> None:
    """Copy up to 64 bytes; the length is in two places, and the low bits of addresses are 1."""
    more, words = rng.randrange(4), rng.randrange(1, 4)
    wram, mram = rng.randrange(COUNT, REGISTERS - 64), rng.randrange(MRAM_BYTES - 64)
    if rng.getrandbits(1):  # a length above 256 words begins anew
        words -= more + 1
    code.move(8, more << 24 | wram)
    code.move(9, mram | rng.choice([0, dpu_program.MRAM]))
    code.add(name, a=8, b=9, immediate=words & 0xFF)


def add_any(code: Assembly, rng: random.Random, name: str) -> None:
    a, b, c = (rng.randrange(8) for _ in range(3))
    if name in threads.RUN:
        add_run_bit(code, rng, name)
    elif name in threads.MUTEX:
        number = rng.randrange(-(1 << 15), 1 << 15) if rng.getrandbits(1) else rng.randrange(4)
        code.add(name, a=rng.choice([a, ZERO]), immediate=number & MASK, **jump_of(rng, name))
    elif name in threads.TIME:
        if name == "time_cfg":
            mode = rng.choice([0, 1, 3, 5, 5, 7] if is_timed(code) else [0, 1, 5, 7])
            code.move(b, mode)
        to = rng.choice("zrsu")
        place = c if to == "r" else c & 6
        fields = {"b": b} if name == "time_cfg" else {}
        code.add(name, to, place, **fields, **jump_of(rng, name))
    elif name in ("ldma", "sdma"):
        add_dma(code, rng, name)
    elif name == "tell":
        code.add("tell", a=a, offset=rng.randrange(-4096, 4096) & MASK)
    elif name == "nop":
        code.add("nop")
    elif name == "work":  # changes the flags
        operation = rng.choice(["add", "addc", "sub", "xor", "and"])
        code.add(operation, "r", a, a=b, b=c)
    elif name in ("stop", "fault"):
        immediate = rng.randrange(9, 1 << 23) if name == "fault" else 0
        code.add(name, immediate=immediate, **(jump_of(rng, name) if name == "stop" else {}))


def is_timed(code: Assembly) -> bool:
    """Return whether the program has no DMA, whose cycles the definition does not know."""
    return all(each.name not in threads.DMA for each, _ in code.code)


def sequence(rng: random.Random) -> Case:
    """Return a program of one tasklet that uses the instructions in any order."""
    code = Assembly()
    for register in range(8):
        code.move(register, rng.choice([0, 1, 200, rng.getrandbits(32)]))
    has_dma = rng.getrandbits(1)
    if has_dma:
        add_dma(code, rng, "ldma")
    names = ["work", "work", *threads.NAMES, *threads.TIME, *threads.MUTEX]
    names = [name for name in names if name != "ldmai" and (has_dma or name not in threads.DMA)]
    begins = []  # jumps go over up to three of these places
    for _ in range(rng.randrange(1, 50)):
        name = rng.choice(names)
        begins.append(len(code.code))
        if name not in ("stop", "fault") or rng.random() < 0.2:
            add_any(code, rng, name)
    begins += [len(code.code)] * 3
    # Show the registers, and then the flags.
    for register in range(8):
        code.add("sw", a=ZERO, b=register, offset=REGISTERS + 4 * register)
    code.add("or", "r", 0, a=ZERO, b=0, code=10)  # whether the result and the zero flag are zero
    code.add("addc", "r", 1, a=ZERO, b=2)
    for register in range(2):
        code.add("sw", a=ZERO, b=register, offset=REGISTERS + 32 + 4 * register)
    code.add("stop")
    case = Case(code, rng)
    case.program = [
        replace(each, target=rng.choice([begin for begin in begins if begin > place][:3]))
        if each.target and each.name in threads.NAMES
        else each
        for place, each in enumerate(case.program)
    ]
    return case


def test_sequences_of_one_tasklet_have_the_results_of_the_definition(tmp_path: Path) -> None:
    rng = random.Random(1)
    cases = [sequence(rng) for _ in range(300)]
    used = {each.name for case in cases for each in case.program}
    assert used >= set(threads.NAMES) - {"ldmai"}
    machines = check(cases, tmp_path)
    faults = sum(machine.fault is not None for machine in machines)
    assert 10 < faults < 200


# --- Many tasklets. Register 0 has the result of a tasklet.


def add_loop(code: Assembly, rng: random.Random) -> None:
    """Execute a number of instructions that differs between tasklets."""
    name = f"loop{len(code.code)}"
    code.add("and", "r", 3, a=ID8, immediate=rng.choice([0, 24, 255]))
    code.add("add", "r", 3, a=3, immediate=rng.randrange(1, 20))
    code.label(name)
    code.add("add", "r", 3, a=3, immediate=MASK, code=NZ, label=name)


def add_barrier(code: Assembly, tasklets: int) -> None:
    name = f"barrier{len(code.code)}"
    code.barriers += 1
    add_locked(code, 250, lambda: code.add("add", "r", 5, a=5, immediate=1), COUNT, NZ)
    code.move(6, code.barriers * tasklets)
    code.label(name)
    code.add("lw", "r", 5, a=ZERO, offset=COUNT)
    code.add("sub", a=5, b=6, code=LTU, label=name)


def add_locked(
    code: Assembly, mutex: int, change: Callable[[], None], variable: int, condition: int
) -> None:
    """Change a variable, in register 5, under a mutex."""
    name = f"lock{len(code.code)}"
    code.label(name)
    if condition == NZ:
        code.add("acquire", a=ZERO, immediate=mutex, code=NZ, label=name)
    else:
        code.add("acquire", a=ZERO, immediate=mutex, code=Z, label=name + "_locked")
        code.add("or", code=TRUE, label=name)
        code.label(name + "_locked")
    code.add("lw", "r", 5, a=ZERO, offset=variable)
    change()
    code.add("sw", a=ZERO, b=5, offset=variable)
    code.add("release", a=ZERO, immediate=mutex, label=name + "_free")
    code.label(name + "_free")


def add_start(code: Assembly, rng: random.Random, tasklets: int) -> None:
    """Boot the tasklets: tasklet 0 boots all, each boots the next, or each boots two."""
    kind = rng.choice(["all", "chain", "tree"])
    if kind == "all":
        code.add("sub", a=ID, code=NZ, label="begin")
        for tasklet in rng.sample(range(1, tasklets), tasklets - 1):
            code.add("boot", a=ZERO, immediate=tasklet)
    else:
        for place in range(2 if kind == "tree" else 1):
            code.add("add", "r", 1, a=ID2 if kind == "tree" else ID, immediate=1 + place)
            code.move(2, tasklets)
            code.add("sub", a=1, b=2, code=GEU, label="begin")
            code.add("boot", a=1)
    code.label("begin")
    code.move(0, rng.getrandbits(32))
    for _ in range(rng.randrange(1, 4)):
        code.add(rng.choice(["add", "xor", "sub"]), "r", 0, a=ID4, b=0)
    add_barrier(code, tasklets)  # a tasklet resumes no tasklet that has not begun


def add_updates(code: Assembly, rng: random.Random, _: int) -> None:
    """Change a variable under its mutex; the order of the changes has no effect."""
    variable = rng.randrange(32)
    operation = ("add", "xor")[variable % 2]
    a = rng.choice([0, ID, ONE])

    def change() -> None:
        if rng.getrandbits(1):
            code.add("time")  # other tasklets run here
        code.add(operation, "r", 5, a=a, b=5)

    for _ in range(rng.randrange(1, 4)):
        add_locked(code, rng.choice([variable, variable << 8]), change, 4 * variable, Z)


def add_chain(code: Assembly, rng: random.Random, tasklets: int) -> None:
    """Change a variable in the order of the tasklets: each stops until another resumes it."""
    name, variable = f"chain{len(code.code)}", 128 + 4 * code.chains
    code.chains += 1
    code.add("sub", a=ID, code=Z, label=name)
    code.add("stop", code=TRUE, label=name)
    code.label(name)
    code.add("lw", "r", 5, a=ZERO, offset=variable)
    code.add("lsl_add", "r", 5, a=5, b=0, shift=rng.randrange(1, 4))
    code.add("sw", a=ZERO, b=5, offset=variable)
    code.add("xor", "r", 0, a=ID2, b=5)
    code.add("sub", a=ID, immediate=tasklets - 1, code=Z, label=name + "_end")
    code.label(name + "_next")
    code.add("resume", a=ID, immediate=1, code=NZ, label=name + "_next")
    code.label(name + "_end")


def add_exchange(code: Assembly, rng: random.Random, tasklets: int) -> None:
    """Read the result of another tasklet between two barriers."""
    code.add("sw", a=ID4, b=0, offset=PRIVATE)
    add_barrier(code, tasklets)
    code.move(1, 4 * (tasklets - 1))
    code.add("rsub", "r", 1, a=ID4, b=1)
    code.add("lw", "r", 5, a=1, offset=PRIVATE)
    code.add(rng.choice(["add", "xor"]), "r", 0, a=0, b=5)
    add_barrier(code, tasklets)


def add_blocks(code: Assembly, rng: random.Random, _: int) -> None:
    """Change a block of MRAM of the tasklet."""
    words = rng.randrange(1, 5)
    code.move(8, BLOCKS)
    code.move(9, rng.choice([0, dpu_program.MRAM]))
    for register in (8, 9):
        code.add("lsl_add", "r", register, a=ID8, b=register, shift=2)
    code.add("ldma", a=8, b=9, immediate=words - 1)
    code.add("lw", "r", 5, a=8, offset=8 * words - 4)
    code.add("add", "r", 0, a=5, b=0)
    code.add("sw", a=8, b=0)
    code.add("sdma", a=8, b=9, immediate=words - 1)


def add_load(code: Assembly, _: random.Random, tasklets: int) -> None:
    """Let tasklet 0 replace an instruction of all by LOADED."""
    name = f"load{len(code.code)}"
    code.add("sub", a=ID, code=NZ, label=name)
    code.add("or", "r", 8, label=name + "_loaded")
    code.move(9, MRAM_BYTES - 8)
    code.add("ldmai", a=8, b=9)
    code.label(name)
    add_barrier(code, tasklets)
    code.label(name + "_loaded")
    code.add("nop")


LOADED = Instruction("add", "r", 0, ID, b=0)
PARTS = [add_updates, add_chain, add_exchange, add_blocks, add_load]


def together(rng: random.Random) -> Case:
    """Return a program of many tasklets."""
    tasklets = rng.randrange(2, threads.TASKLETS + 1)
    code = Assembly()
    add_start(code, rng, tasklets)
    for add in rng.choices(PARTS, k=rng.randrange(1, 5)):
        add_loop(code, rng)
        add(code, rng, tasklets)
    code.add("sw", a=ID4, b=0, offset=REGISTERS)
    code.label("end")
    code.add("stop", code=TRUE, label="end")
    case = Case(code, rng)
    case.known = [LOADED]
    wram, mram = case.before
    case.before = wram, mram[:-8] + threads.encode(LOADED).to_bytes(8, "little")
    return case


def test_tasklets_have_the_results_of_the_definition(tmp_path: Path) -> None:
    rng = random.Random(2)
    cases = [together(rng) for _ in range(40)]
    used = {each.name for case in cases for each in case.program}
    assert used >= {"boot", "resume", "stop", "acquire", "release", "ldma", "ldmai", "sdma"}
    assert all(machine.fault is None for machine in check(cases, tmp_path))
