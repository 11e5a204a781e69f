"""Other PIM machines: address maps against public documents, plans against the oracle, prices, and
wrong input.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents import ROOT
from machine_cases import check, draw
from typer.testing import CliRunner

import pidcomm.cli.plan
from pidcomm import ArgumentError, Error
from pidcomm.cli import app
from pidcomm.model import predict
from pidcomm.tables import COLLECTIVES
from pidcomm_studies.machines import (
    Geometry,
    PimMachine,
    load_pim_machine,
    pim_machines,
    plan,
    price,
    run,
    ways,
)
from pidcomm_studies.machines.geometry import FOLDER
from pidcomm_studies.machines.pricing import work
from pidcomm_studies.models import predict_links

MACHINES = {name: load_pim_machine(name) for name in pim_machines()}
EVERY_MACHINE = pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))
HBM, AXDIMM, CXL = (MACHINES[name] for name in ("hbm-pim", "axdimm", "cxl-nmp"))
UPMEM = MACHINES["upmem-2560+dsa"]

# Decoded by SAITPublic/PIMSimulator (commit b464dde, src/AddressMapping.cpp, Scheme8) with the
# constants of system_hbm_64ch.ini and ini/HBM2_samsung_2M_16B_x64.ini: address, channel, bank, row,
# column. Bank b belongs to PIM block b // 2 (README, section 2.3).
PIM_SIMULATOR = [
    (0x000000020, 1, 0, 0, 0),
    (0x000000800, 0, 1, 0, 0),
    (0x000002000, 0, 4, 0, 0),
    (0x000008000, 0, 0, 0, 1),
    (0x000100000, 0, 0, 1, 0),
    (0x123456780, 60, 12, 4660, 10),
    (0x3FFFFFFE0, 63, 15, 16383, 31),
    (0x2AAAAAAA0, 21, 5, 10922, 21),
    (0x155555540, 42, 10, 5461, 10),
]
# Decoded by umd-memsys/DRAMsim3 (src/configuration.cc) with configs/DDR4_8Gb_x8_3200.ini and 8
# channels: address, channel, rank, bank group, bank, row, column.
DRAMSIM = [
    (0x0000000040, 0, 0, 0, 0, 0, 1),
    (0x0000002000, 0, 0, 1, 0, 0, 0),
    (0x0000008000, 0, 0, 0, 1, 0, 0),
    (0x0000020000, 0, 1, 0, 0, 0, 0),
    (0x0000040000, 1, 0, 0, 0, 0, 0),
    (0x0000200000, 0, 0, 0, 0, 1, 0),
    (0x0123456780, 1, 0, 3, 2, 2330, 30),
    (0x1FFFFFFFC0, 7, 1, 3, 3, 65535, 127),
    (0x1555555540, 5, 0, 2, 2, 43690, 85),
]
# AlisonSchofield/cxl-addrtest, addrx_sample.out, by an author of the Linux driver, for CXL 3.0,
# section 8.2.4.19.13: granularity, ways, position, host address of device address 0x40000008.
CXL_SAMPLES = [
    (256, 8, 5, 0x200000508),
    (256, 2, 1, 0x80000108),
    (256, 3, 2, 0xC0000208),
    (256, 6, 4, 0x180000408),
    (256, 12, 11, 0x300000B08),
    (512, 4, 3, 0x100000608),
    (512, 16, 13, 0x400001A08),
    (1024, 8, 7, 0x200001C08),
    (1024, 12, 9, 0x300002408),
]


@pytest.mark.parametrize(("address", "channel", "bank", "row", "column"), PIM_SIMULATOR)
def test_addresses_of_hbm_pim_are_decoded_as_by_samsungs_simulator(
    address: int, channel: int, bank: int, row: int, column: int
) -> None:
    pe, byte = HBM.geometry.places(np.array(address))
    assert pe == bank // 2 + 8 * channel
    assert byte == 32 * (column + 32 * (bank % 2 + 2 * row))


@pytest.mark.parametrize(("address", "channel", "rank", "group", "bank", "row", "column"), DRAMSIM)
def test_addresses_of_axdimm_are_decoded_as_by_dramsim3(
    address: int, channel: int, rank: int, group: int, bank: int, row: int, column: int
) -> None:
    pe, byte = AXDIMM.geometry.places(np.array(address))
    assert pe == rank + 2 * channel
    assert byte == 64 * (column + 128 * (group + 4 * (bank + 4 * row)))


@pytest.mark.parametrize(("granularity", "device_count", "position", "address"), CXL_SAMPLES)
def test_addresses_of_cxl_devices_are_those_of_the_sample_of_the_specifications_logic(
    granularity: int, device_count: int, position: int, address: int
) -> None:
    layout = {**dict(CXL.geometry.layout), "byte": granularity, "channel": device_count}
    geometry = replace(CXL.geometry, layout=tuple(layout.items()))
    pe = 8 * np.array(position)  # the first PE of the device, which has the lowest 4 GiB
    assert geometry.addresses(pe, np.array(0x40000008)) == address
    assert [int(place) for place in geometry.places(np.array(address))] == [pe, 0x40000008]


def test_addresses_of_upmem_follow_the_formula_of_the_design_page() -> None:
    numbers = np.random.default_rng(1)
    pe, m = numbers.integers(2560, size=1000), numbers.integers(1 << 26, size=1000)
    bank, lane, chunk = pe // 8 % 8, pe % 8, m >> 13
    chunk = (chunk & ~0x1FE) | (chunk >> 1 & 0xFE) | (chunk & 2) << 7
    line = (bank % 4 << 18) + (bank // 4 << 6) + (chunk << 20) + (m % 8192 & ~7) * 16
    assert (UPMEM.geometry.addresses(pe, m) == (pe // 64 << 33) + line + 8 * (m % 8) + lane).all()


@EVERY_MACHINE
def test_a_map_gives_each_byte_of_each_pe_its_own_address(machine: PimMachine) -> None:
    numbers = np.random.default_rng(1)
    geometry = machine.geometry
    pe, byte = (
        numbers.integers(geometry.pes, size=2000),
        numbers.integers(geometry.pe_bytes, size=2000),
    )
    address = geometry.addresses(pe, byte)
    assert (address < geometry.address_bytes).all()
    assert (np.stack(geometry.places(address)) == np.stack([pe, byte])).all()
    small = geometry.cut(min(geometry.pes, 64), 1)
    pes, count = np.arange(min(small.pes, 4)), min(small.pe_bytes, 1 << 16)
    every = small.addresses(pes[:, None], np.arange(count)[None, :])
    assert len(np.unique(every)) == every.size


@EVERY_MACHINE
def test_random_collectives_equal_the_oracle(machine: PimMachine) -> None:
    for seed in range(250):
        choice = random.Random(seed)
        case = draw(machine, choice)
        verdict = check(case, seed)
        assert not verdict.wrong, f"{case}, {case.problem}: {verdict.first}"


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("way", ["host", "buffer"])
@pytest.mark.parametrize("shape", [(4, 4, 2), (3, 5, 4), (16, 3)])
def test_every_mask_on_two_levels(collective: Any, way: str, shape: tuple[int, ...]) -> None:
    """The shapes put groups inside a buffer, across buffers, and unequally into several."""
    for bits in product("01", repeat=len(shape)):
        mask = "".join(bits)
        members = int(np.prod([n for n, bit in zip(shape, mask, strict=True) if bit == "1"]))
        size = 24 * COLLECTIVES[collective].blocks_per_pe(members)
        case = plan(collective, shape, mask, bytes=size, machine=CXL, way=way)
        assert check(case, 7).wrong == 0


def test_the_oracle_notices_a_plan_that_writes_to_a_wrong_place() -> None:
    case = plan("alltoall", (8, 2), "11", bytes=1024, machine=CXL)
    step = case.passes[-1]
    rows = step.writes.row.copy()
    rows[:2] = rows[1::-1]
    wrong = replace(step, writes=step.writes._replace(row=rows))
    assert check(replace(case, passes=(*case.passes[:-1], wrong)), 1).wrong > 0


def bus_bytes(collective: Any, mask: str, way: str) -> int:
    """Return the bytes on the buses of a collective of 1 MiB per PE on 8 devices of 8 PEs."""
    return price(plan(collective, (8, 8), mask, bytes=1 << 20, machine=CXL, way=way)).bus_bytes


@pytest.mark.parametrize("mask", ["11", "01", "10"])
def test_buffers_keep_everything_but_the_rest_between_buffers_from_the_buses(mask: str) -> None:
    mib = 1 << 20
    of_buffer = {"11": 8, "01": 1, "10": 8}[mask]  # members of a group in a buffer
    is_outside = mask != "10"
    # One partial result, and one result, per buffer and group.
    assert bus_bytes("allreduce", mask, "buffer") == is_outside * 128 * mib // of_buffer
    # Blocks for other buffers: 7 of 8.
    assert bus_bytes("alltoall", mask, "buffer") == is_outside * 128 * mib * 7 // 8
    assert bus_bytes("alltoall", mask, "host") == bus_bytes("allreduce", mask, "host") == 128 * mib
    # Every block goes to host memory.
    assert bus_bytes("gather", mask, "buffer") == bus_bytes("gather", mask, "host")


def test_only_machines_with_several_lanes_transpose_and_shuffle() -> None:
    for machine, expected in ((HBM, False), (AXDIMM, False), (CXL, False), (UPMEM, True)):
        case = plan("allreduce", (8, 2), "11", bytes=1024, machine=machine, way="host")
        done = work(case.passes[0], case)
        assert (done.transposed > 0, done.shuffled > 0) == (expected, expected)


def test_small_blocks_cost_whole_lines() -> None:
    """Members send 8 bytes to each other: a PE's blocks fill lines of 32 bytes, which the host
    accesses once, and an engine once for each block.
    """
    for way, factor in (("host", 1), ("engine", 4)):
        case = plan("alltoall", (64,), "1", bytes=512, machine="hbm-pim+dsa", way=way)
        assert price(case).bus_bytes == 2 * 64 * 512 * factor
    odd = plan("scatter", (64,), "1", bytes=40, machine=HBM)
    assert price(odd).bus_bytes == 64 * 64


def test_an_engine_copies_only_whole_lines() -> None:
    """On UPMEM the masks that select no lane axis; on HBM-PIM all masks; never a reduction."""
    hbm = MACHINES["hbm-pim+dsa"]
    for collective, mask in product(COLLECTIVES, ("010", "001", "011", "100", "111")):
        size = 8 * 64 if COLLECTIVES[collective].blocks_per_pe(2) > 1 else 64
        for machine in (hbm, UPMEM):
            case = plan(
                collective,
                (8, 4, 2),
                mask,
                bytes=size,
                machine=machine,
            )
            copies = not COLLECTIVES[collective].takes_op
            lines = machine is hbm or (mask[0] == "0" and collective in ("alltoall", "allgather"))
            assert [step.by for step in case.passes] == ["engine" if copies and lines else "host"]
            assert check(case, 3).wrong == 0


def assert_price_is_near(collective: Any, mask: str, dtype: str, op: Any) -> None:
    """Compare the price of the host on UPMEM with the model's prediction for `tile`."""
    arguments: dict[str, Any] = {"bytes": 1 << 20, "dtype": dtype, "op": op}
    ours = price(plan(collective, (32, 32), mask, machine=UPMEM, way="host", **arguments))
    model = predict(collective, (32, 32), mask, machine="upmem-2560", technique="tile", **arguments)
    assert ours.seconds == pytest.approx(model.seconds, rel=0.25)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("mask", ["10", "01"])
def test_the_price_of_the_host_on_upmem_is_near_that_of_the_model(
    collective: str, mask: str
) -> None:
    assert_price_is_near(collective, mask, "int32", "sum")


@pytest.mark.parametrize(
    ("dtype", "op"), [("float32", "min"), ("int64", "prod"), ("int32", "xor"), ("int8", "prod")]
)
def test_the_price_knows_slow_and_bytewise_operators(dtype: str, op: str) -> None:
    assert_price_is_near("allreduce", "10", dtype, op)


def test_executors_refuse_what_the_hardware_cannot_do() -> None:
    across = plan("alltoall", (8, 2), "01", bytes=128, machine=CXL, way="host")
    payload = across.problem.payload(1)
    by_buffer = replace(across, passes=(replace(across.passes[0], by="buffer"),))
    with pytest.raises(Error, match="a buffer does not reach row"):
        run(by_buffer, payload)
    for collective, mask, words in (
        ("allreduce", "01", "does not combine"),
        ("alltoall", "10", "a lane to another lane"),
    ):
        case = plan(collective, (8, 2), mask, bytes=512, machine=UPMEM, way="host")  # type: ignore[arg-type]
        case = replace(case, passes=(replace(case.passes[0], by="engine"),))
        with pytest.raises(Error, match=words):
            run(case, case.problem.payload(1))
    with pytest.raises(ArgumentError, match=r"input rows have shape \(2, 8\)"):
        run(across, np.zeros((2, 8), np.uint8))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"collective": "scan"}, "collective 'scan' is unknown"),
        ({"shape": (8, 9)}, "8x9 has 72 PEs; cxl-nmp has 64, for example as 8x8"),
        ({"mask": "1"}, "mask '1' must have a 0 or 1 for each axis of 8x8"),
        ({"mask": "12"}, "mask '12'"),
        ({"mask": 11}, "mask 11 must have"),
        ({"dtype": "integer"}, "element type 'integer' is unknown"),
        ({"machine": "vax"}, "machine 'vax' is unknown; use axdimm"),
        ({"collective": 3}, "collective 3 is unknown"),
        ({"bytes": 100}, "bytes (100) must be a multiple of 512"),
        ({"bytes": 1 << 40}, "are needed"),
        ({"dtype": "complex64"}, "element type 'complex64' is unknown"),
        ({"collective": "reduce", "dtype": "float32", "op": "xor"}, "'xor' is not defined for"),
        ({"way": "engine"}, "way 'engine' does not exist on cxl-nmp: host, buffer"),
    ],
)
def test_wrong_requests_are_refused_with_their_values(changed: dict[str, Any], words: str) -> None:
    request: dict[str, Any] = {"collective": "alltoall", "shape": (8, 8), "mask": "11"}
    with pytest.raises(ArgumentError, match=re.escape(words)):
        plan(**{**request, "bytes": 512, "machine": CXL, **changed})


MAP = "byte:256 channel:8 page:16777216 pe:8"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("title", "name", "title is missing"),
        (MAP, "byte:256 channel:8 page:3 pe", "map has 'pe'; a field is NAME:LENGTH"),
        (MAP, "byte:256 byte:8 channel:8 page:3 pe:8", "repeats a field"),
        (MAP, "byte:256 channel:0 page:3 pe:8", "a field without values: channel:0"),
        (MAP, f"{MAP} top:{1 << 40}", "at most 2^62"),
        (MAP, "byte:256 channel:8 page:3", "field pe is not in the map"),
        (MAP, "channel:8 byte:8 page:3 pe:8", "the fields in a line, channel, must be the first"),
        ('"pe channel"', '"pe byte"', "must have different fields"),
        ('value = "pe", unit = "fields of pe"', 'value = "channel", unit = "fields of pe"',
         "buffer.reach (channel) must be the first fields of pe"),
        ("gb_s = { value = 204.8", "gb_s = { value = -1", "buffer.gb_s = -1 must be above 0"),
        ("gb_s = { value = 204.8", "gb_s = { value = nan", "buffer.gb_s = nan must be"),
        ('unit = "GB/s per buffer"', 'unit = "MB/s"', "buffer.gb_s has unit 'MB/s'"),
        ('"assumed: 8 channels', '"guessed: 8 channels', "buffer.gb_s needs a source"),
        ("pass_us = {", "warp_us = {", "no constant is called buffer.warp_us"),
        ("line_bytes = {", "# line_bytes = {", "geometry.line_bytes is missing"),
        ("[bus]", "[bus", "is not valid TOML"),
        ('host = "upmem-2560"', 'host = "vax"', "'vax'"),
        ('host = "upmem-2560"', 'inherits = "vax"', "'vax'"),
    ],
)  # fmt: skip
def test_wrong_machine_files_are_refused_with_their_values(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    text = (FOLDER / "cxl-nmp.toml").read_text()
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ArgumentError, match=re.escape(words)):
        load_pim_machine(str(path))


def test_a_machine_of_ones_own_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text((FOLDER / "cxl-nmp.toml").read_text().replace("channel:8", "channel:3"))
    mine = load_pim_machine(str(path))
    assert (mine.geometry.pes, ways(mine)) == (24, ["host", "buffer"])
    assert check(plan("alltoall", (8, 3), "11", bytes=24 * 8, machine=mine), 1).wrong == 0


def test_a_geometry_has_no_bytes_beyond_its_machine() -> None:
    with pytest.raises(ArgumentError, match="1000 PEs of 8 bytes are needed"):
        HBM.geometry.cut(1000, 8)
    geometry = Geometry((("byte", 8), ("pe", 2)), ("pe",), ("byte",), 8)
    assert (geometry.pes, geometry.pe_bytes, geometry.lanes, geometry.run_bytes) == (2, 8, 1, 8)


def invoke(*arguments: str) -> Any:
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(arguments))


def test_the_commands_plan_and_predict_agree() -> None:
    words = ["allreduce", "--shape", "8x8", "--mask", "11", "--machine", "cxl-nmp"]
    text = invoke("plan", *words).stdout
    assert "pass 3, buffer: 8 items, 64 PEs: read 8 MiB, written 56 MiB" in text
    assert "bytes on the buses: 16 MiB; modelled time:" in text
    planned = json.loads(invoke("plan", *words, "--json", "-").stdout)
    rows = [
        json.loads(line)
        for line in invoke("model", "predict", *words, "--json", "-").stdout.splitlines()
    ]
    assert [row["technique"] for row in rows] == ["host", "buffer"]
    assert planned == {**rows[1], "host_alone": rows[0]}
    assert (planned["source"], planned["bus_bytes"]) == ("modelled", 16 << 20)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("plan alltoall --machine hbm-pim --technique pr", "--technique pr does not apply"),
        ("plan alltoall --machine vax", "machine 'vax' is unknown"),
        ("plan alltoall --machine isca24", "isca24: leave out --machine"),
        ("model predict alltoall --machine hbm-pim --threads 2", "--threads 2 does not apply"),
        ("model scale pes alltoall --machine axdimm", "axdimm is another PIM machine"),
        ("model worth alltoall --machine axdimm", "axdimm is another PIM machine"),
        ("model advise alltoall --machine axdimm", "axdimm is another PIM machine"),
    ],
)
def test_commands_refuse_what_they_cannot_do_on_these_machines(words: str, sentence: str) -> None:
    result = invoke(*words.split())
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_without_this_package_the_command_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pidcomm.cli.plan, "entry_points", lambda group: [])
    result = invoke("plan", "alltoall", "--machine", "hbm-pim")
    assert (result.exit_code, "needs the package pidcomm-studies" in result.stderr) == (2, True)


def test_the_command_lists_every_constant_with_its_source() -> None:
    for name, machine in MACHINES.items():
        rows = [
            json.loads(line)
            for line in invoke("model", "machines", name, "--json", "-").stdout.splitlines()
        ]
        assert {row["constant"]: row["value"] for row in rows} == {
            key: constant.value for key, constant in machine.constants.items()
        }
        assert all(re.fullmatch(r"\w+: \S.*", row["source"]) for row in rows)


def test_the_page_has_the_numbers_of_the_commands() -> None:
    page = (ROOT / "studies" / "docs" / "machines.md").read_text()
    rows = re.findall(r"^\| ([\w+-]+), (\w+), (\d+) \| (\w+) \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) == 5
    for name, shape, mask, collective, numbers in rows:
        words = [collective, "--machine", name, "--shape", shape, "--mask", mask, "--json", "-"]
        plans = [
            json.loads(line) for line in invoke("model", "predict", *words).stdout.splitlines()
        ]
        columns = ("bus_bytes", 2**20), ("seconds", 1e-3), ("host_core_seconds", 1e-3)
        expected = [row[key] / unit for key, unit in columns for row in plans]
        assert [float(number) for number in re.findall(r"[\d.]+", numbers)] == pytest.approx(
            expected, rel=5e-3
        )
    gains = {
        name: predict("reduce_scatter", (256,), "1", bytes=32 << 10, technique="conventional",
                      machine="upmem-2560").seconds
        / predict_links("reduce_scatter", (256,), "1", bytes=32 << 10, machine=name).seconds
        for name in ("upmem-2560+pimnet", "upmem-2560+dimm-link")
    }  # fmt: skip
    quoted = re.search(r"gain ([\d.]+)x\s+and ([\d.]+)x over `conventional`", page)
    assert quoted is not None
    assert [float(number) for number in quoted.groups()] == pytest.approx(
        list(gains.values()), rel=5e-3
    )
