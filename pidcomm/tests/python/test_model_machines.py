"""Descriptions of machines: contents, inheritance and errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pidcomm
from pidcomm import ArgumentError, _core
from pidcomm.model import (
    CONSTANTS,
    KINDS,
    LINE_COSTS,
    Machine,
    load_machine,
    machine_names,
    predict,
)

EVERY_MACHINE = pytest.mark.parametrize("name", machine_names())


@EVERY_MACHINE
def test_the_files_equal_the_built_in_machines(name: str) -> None:
    assert set(_core.builtin_machines()) == set(machine_names())
    assert load_machine(name).numbers == _core.builtin_machines()[name]


@EVERY_MACHINE
def test_every_constant_has_its_unit_and_a_source_of_a_known_kind(name: str) -> None:
    machine = load_machine(name)
    units = {row.name: row.unit for row in CONSTANTS}
    units |= {f"isa.{isa}.{row.name}": row.unit for isa in machine.isas for row in LINE_COSTS}
    assert {key: constant.unit for key, constant in machine.constants.items()} == units
    for constant in machine.constants.values():
        assert constant.kind in KINDS
        assert re.fullmatch(r"\w+: \S.*", constant.source)


@EVERY_MACHINE
def test_a_description_is_read_as_it_is_written(name: str, tmp_path: Path) -> None:
    machine = load_machine(name)
    path = tmp_path / f"{name}.toml"
    path.write_text(machine.to_toml())
    assert load_machine(str(path)) == replace(machine, name=str(path))


BUS = 'read_gb_s = { value = 60, unit = "GB/s per channel", source = "assumed: a test" }'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (BUS, "", "bus.read_gb_s is missing"),
        (
            BUS,
            f"{BUS}\nwarp_gb_s = {BUS.partition('= ')[2]}",
            "no constant is called bus.warp_gb_s",
        ),
        (
            BUS,
            BUS.replace("GB/s per channel", "MB/s"),
            "has unit 'MB/s'; it is in 'GB/s per channel'",
        ),
        (BUS, BUS.replace('unit = "GB/s per channel", ', ""), "has unit None"),
        (BUS, BUS.replace("60", "-60"), "bus.read_gb_s is -60"),
        (BUS, BUS.replace("60", "0"), "must be 1e-6 or more"),
        (BUS, BUS.replace("60", "nan"), "bus.read_gb_s is"),
        (BUS, BUS.replace("60", "inf"), "bus.read_gb_s is inf"),
        (BUS, BUS.replace("60", '"fast"'), "'fast' is no number"),
        (BUS, BUS.replace("60", "true"), "True is no number"),
        (
            BUS,
            BUS.replace("assumed: a test", "guessed: a test"),
            "needs a source that begins with one of published",
        ),
        (BUS, BUS.replace(', source = "assumed: a test"', ""), "needs a source"),
        (BUS, "read_gb_s = 60", "must be { value = ..., unit = ..., source = ... }"),
        (BUS, "read_gb_s = {", "is not valid TOML"),
        ("[isa.avx2]", "[isa.mmx]", "[isa.mmx] is no instruction set; use scalar"),
        ("title =", "name =", "title is missing"),
        (
            "\n\n",
            '\ninherits = "vax"\n\n',
            "inherits = 'vax' is no built-in machine; use emulated-host, isca24",
        ),
        ("\n\n", "\ninherits = 3\n\n", "inherits = 3 is no built-in machine"),
    ],
)
def test_the_error_of_a_wrong_description_names_the_cause(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    machine = load_machine("emulated-host").with_values({"bus.read_gb_s": 60}, "assumed: a test")
    text = machine.to_toml()
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ArgumentError, match=re.escape(words)):
        load_machine(str(path))


@pytest.fixture
def heir(tmp_path: Path) -> Callable[[str, str], Machine]:
    """A function that makes a machine from a file with a parent and some text."""

    def load(parent: str, text: str) -> Machine:
        path = tmp_path / "heir.toml"
        path.write_text(f'title = "heir"\ninherits = "{parent}"\n{text}')
        machine = load_machine(str(path))
        path.write_text(machine.to_toml())
        assert load_machine(str(path)) == machine
        assert text.replace("\n", "") in machine.to_toml().replace("\n", "")
        return machine

    return load


def test_a_machine_inherits_constants_that_its_description_lacks(
    heir: Callable[[str, str], Machine],
) -> None:
    parent = load_machine("upmem-2560")
    machine = heir("upmem-2560", f"[bus]\n{BUS}\n")
    values = {name: constant.value for name, constant in machine.constants.items()}
    assert values == {name: constant.value for name, constant in parent.constants.items()} | {
        "bus.read_gb_s": 60
    }
    assert machine.constants["bus.read_gb_s"].source == "assumed: a test"
    # Title, parent, two sections, a constant, blank lines.
    assert len(machine.to_toml().splitlines()) == 7


def test_inherited_measured_or_fitted_constants_are_assumed(
    heir: Callable[[str, str], Machine],
) -> None:
    sources = {
        parent: {name: constant.source for name, constant in heir(parent, "").constants.items()}
        for parent in ("emulated-host", "isca24", "upmem-2560")
    }
    assert sources["emulated-host"]["bus.read_gb_s"] == "assumed: as measured for emulated-host"
    assert sources["emulated-host"]["call.us"] == "assumed: as fitted for emulated-host"
    assert sources["upmem-2560"]["call.us"] == "assumed: as fitted for emulated-host"
    assert sources["upmem-2560"]["sdk.pe_us"] == "assumed: as fitted for upmem-2560"
    assert sources["isca24"]["bus.read_gb_s"] == "assumed: as fitted for isca24"
    assert (
        sources["upmem-2560"]["network.gb_s"]
        == load_machine("emulated-host").constants["network.gb_s"].source
    )


def test_a_machine_that_names_instruction_sets_inherits_no_others(
    heir: Callable[[str, str], Machine],
) -> None:
    emulated = load_machine("emulated-host")
    machine = heir("emulated-host", "[isa.avx2]\n")
    assert machine.isas == ["avx2"]
    assert machine["isa.avx2.load_ns"] == emulated["isa.avx2.load_ns"]
    assert heir("emulated-host", "").isas == emulated.isas
    with pytest.raises(ArgumentError, match=r"constant isa\.avx2\.\w+ is missing"):
        heir("isca24", "[isa.avx2]\n")


def test_a_cycle_of_machines_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pidcomm.model.machines.FOLDER", tmp_path)
    for name, parent in ("one", "two"), ("two", "three"), ("three", "two"), ("own", "own"):
        (tmp_path / f"{name}.toml").write_text(f'title = "{name}"\ninherits = "{parent}"\n')
    with pytest.raises(
        ArgumentError, match=r"three\.toml: inherits = 'two' closes a circle \(two inherits three\)"
    ):
        load_machine("one")
    with pytest.raises(ArgumentError, match=r"own\.toml: inherits = 'own' closes a circle \(own\)"):
        load_machine("own")


def test_a_machine_needs_an_instruction_set(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(load_machine("emulated-host").to_toml().partition("[isa.")[0])
    with pytest.raises(ArgumentError, match="no instruction set"):
        load_machine(str(path))


@pytest.mark.parametrize("error", ["pass", "sdk", "work", "kernel", "launch", "load"])
def test_a_low_bound_above_the_high_bound_is_an_error(error: str, tmp_path: Path) -> None:
    machine = load_machine("emulated-host")
    high = machine[f"error.{error}_high"]
    path = tmp_path / "mine.toml"
    for low in (high, 2 * high):
        changed = machine.with_values({f"error.{error}_low": low}, "assumed: a test")
        path.write_text(changed.to_toml())
        if low == high:
            load_machine(str(path))
    rule = f"error.{error}_low is {2 * high:g}; it must be at most error.{error}_high, which is"
    with pytest.raises(ArgumentError, match=re.escape(rule)):
        load_machine(str(path))


def test_missing_machines_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="machine 'vax' is unknown; use emulated-host, isca24"):
        load_machine("vax")
    with pytest.raises(ArgumentError, match=r"cannot read .*vax\.toml"):
        load_machine(str(tmp_path / "vax.toml"))
    with pytest.raises(ArgumentError, match=r"has no constant bus\.speed"):
        load_machine("isca24").with_values({"bus.speed": 1})


@pytest.mark.parametrize(("shape", "mask"), [((8, 8), "10"), ((4, 16), "10"), ((64,), "1")])
def test_modelled_times_of_reordering_follow_the_emulator(
    shape: tuple[int, ...], mask: str
) -> None:
    machine = load_machine("emulated-host")
    with pidcomm.allocate(pes=64) as pes:
        cube = pes.hypercube(*shape)
        for block_bytes in (8, 32, 56, 64, 128, 256, 512, 2048, 16384):
            size = block_bytes * shape[0]
            cube.arrays.alltoall(np.zeros((64, size // 8), np.int64), mask, technique="pr")
            trace = cube.last_trace
            assert trace is not None
            modelled = predict(
                "alltoall",
                shape,
                mask,
                bytes=size,
                machine=machine,
                technique="pr",
                scratch=1 << 24,
            ).phases["pe"]
            assert 1 / 1.3 < modelled / trace.pe_seconds < 1.3, block_bytes


def test_constants_that_follow_a_fit_equal_the_fitted_ones() -> None:
    fitted = load_machine("upmem-2560")
    copies = [
        (name, constant.value)
        for machine in map(load_machine, ("emulated-host", "isca24"))
        for name, constant in machine.constants.items()
        if constant.source == "assumed: as fitted for upmem-2560"
    ]
    assert len(copies) > 10
    assert copies == [(name, fitted[name]) for name, _ in copies]


def test_a_load_grows_with_the_words_of_the_program_and_with_the_ranks() -> None:
    machine = load_machine("upmem-2560").with_values(
        {
            "pe.load_us": 100,
            "pe.load_rank_us": 10,
            "pe.load_word_us": 2,
            "pe.load_rank_word_us": 0.5,
            "pe.load_words": 30,
        }
    )
    assert machine.load_us(65) == 100 + 2 * 10 + 30 * (2 + 2 * 0.5)
    predicted = predict(
        "alltoall", (128,), "1", bytes=1024, technique="pr", scratch=1 << 20, machine=machine
    )
    assert predicted.phases["load"] == pytest.approx(2e-6 * machine.load_us(128))
