"""Hypercubes: the names of their axes, their first PE, and the place of PEs in PE programs."""

from __future__ import annotations

import itertools
import threading
from itertools import permutations
from typing import Any, cast

import numpy as np
import pytest
from definitions import COLLECTIVES, groups_of, payload, result_of
from numpy.typing import NDArray

import pidcomm
from pidcomm import hosts
from pidcomm.bench.over_hosts import _Alone
from pidcomm.sizes import format_shape
from pidcomm.tables import TechniqueName

HEAP = "__sys_used_mram_end"
NAMED = [
    ((4, 2, 8), {}, ("x", "y", "z")),
    ((4, 2, 8), {"row": 4, "l": 2, "first_": 8}, ("row", "l", "first_")),
    ((2,) * 6, {}, ("x", "y", "z", "w", "axis4", "axis5")),
]


def selections(names: tuple[str, ...], mask: str) -> list[Any]:
    """Return the names of a mask in every order, and one name as a str."""
    selected = [name for name, bit in zip(names, mask, strict=True) if bit == "1"]
    orders = [*permutations(selected), selected]
    return [*orders, selected[0]] if len(selected) == 1 else orders


@pytest.mark.parametrize(("shape", "named", "names"), NAMED)
def test_names_select_the_axes_of_a_mask(
    pes: pidcomm.PeSet, shape: tuple[int, ...], named: dict[str, int], names: tuple[str, ...]
) -> None:
    cube = pes.hypercube(**cast(Any, named)) if named else pes.hypercube(*shape)
    assert (cube.axes, cube.shape) == (names, shape)
    for mask in ("0" * len(shape), "1" + "0" * (len(shape) - 1), "01" * (len(shape) // 2)):
        mask = mask.ljust(len(shape), "1")
        groups = groups_of(shape, mask)
        for axis in selections(names, mask):
            assert cube.mask_of(axis) == mask
            assert cube.groups(axis) == (len(groups), len(groups[0]))
            for number, group in enumerate(groups):
                assert [cube.group_of(pe, axis) for pe in group] == [number] * len(group)
                assert [cube.member_of(pe, axis) for pe in group] == [*range(len(group))]
            plan = cube.plan("allreduce", axis, bytes=64, dtype="int32")
            assert plan == cube.plan("allreduce", mask, bytes=64, dtype="int32")
            cube.validate("allreduce", axis, bytes=64, dtype="int32")


@pytest.mark.parametrize("name", pidcomm.COLLECTIVES)
def test_collectives_with_names_equal_their_definitions(pes: pidcomm.PeSet, name: str) -> None:
    cube = pes.hypercube(row=4, column=2, plane=8)
    mask, axis = "101", ("plane", "row")
    x = payload(name, cube.shape, mask, "int32", block_bytes=24)
    expected = result_of(name, x, cube.shape, mask)
    np.testing.assert_array_equal(getattr(cube.arrays, name)(x, axis), expected)
    row, members = pidcomm.COLLECTIVES[name], cube.groups(axis).group_pes
    with hosts.connect(cube, _Alone(1)) as over_hosts:
        np.testing.assert_array_equal(getattr(over_hosts.arrays, name)(x, axis), expected)
        for where in (cube, over_hosts):
            if row.at_pes_before:
                where.write(x)
                size = 24 * row.blocks_per_pe(members)
                arguments: dict[str, Any] = {"bytes": size, "dtype": np.int32}
            else:
                arguments = {"host": x}
            result = getattr(where, name)(axis, **arguments)
            if row.at_pes_after:
                result = where.read(expected.shape[1], np.int32)
            np.testing.assert_array_equal(result, expected)


def test_wrong_names_are_errors_that_list_the_axes(pes: pidcomm.PeSet) -> None:
    cube = pes.hypercube(row=8, column=8)
    with hosts.connect(pes.hypercube(8, 8), _Alone(1)) as over_hosts:
        wrong: list[tuple[Any, str]] = [
            ("x", "axis 'x' is unknown; use row, column"),
            ("colum", "did you mean 'column'"),
            (("row", "10"), "axis '10' is unknown; use row, column"),
            (("row", None), "axis None is unknown; use row, column"),
            (("row", "row"), r"\('row', 'row'\) contain 'row' twice; name each of row, column"),
            (["row", "x"], "axis 'x' is unknown"),
            (("row",) * 1000, "twice"),
            ("rov column", "'rov column' contains ' '"),
            ("lO", r"contains 'O'; .*did you mean '10'\?"),
            (b"row", "must be a str of '0' and '1'"),
            ({"row"}, "must be a str of '0' and '1'"),
        ]
        for axis, message in wrong:
            for call in (
                cube.mask_of,
                cube.groups,
                lambda axis: cube.carry_out("alltoall", axis, options={}),
            ):
                with pytest.raises(pidcomm.ArgumentError, match=message) as caught:
                    call(axis)
                assert caught.value.status == "ERR_MASK"
        with pytest.raises(pidcomm.ArgumentError, match="'w' is unknown; use x, y, host"):
            over_hosts.mask_of("w")


def test_the_axis_of_the_hosts_has_a_name(pes: pidcomm.PeSet) -> None:
    for local in (pes.hypercube(8, 4), pes.hypercube(row=8, column=4)):
        with hosts.connect(local, _Alone(3)) as cube:
            assert (cube.axes, cube.shape) == ((*local.axes, "host"), (8, 4, 3))
            assert cube.mask_of(("host", local.axes[1])) == "011"
            assert cube.groups(("host", local.axes[1])) == (8, 12)
            assert cube.has_rows("host", 0)
            assert not cube.has_rows(["host"], 1)
            assert cube.has_rows(local.axes[0], 1)
            plan = cube.plan("allreduce", "host", bytes=64, dtype="int32")
            assert plan == cube.plan("allreduce", "001", bytes=64, dtype="int32")
    assert repr(cube) == "<hosts.Cube row=8 column=4 host=3, host 0 of 3>"
    with pytest.raises(pidcomm.ArgumentError, match="has an axis 'host', the name of the axis of"):
        hosts.connect(pes.hypercube(host=8), _Alone(2))


def test_axes_have_lengths_by_position_or_by_name(pes: pidcomm.PeSet) -> None:
    assert repr(pes.hypercube(self=4, x=2)) == "<Hypercube self=4 x=2 of 8 PEs, 120 unused>"
    with pytest.raises(pidcomm.ArgumentError, match=r"position \(8\) or by name \(y\), not both"):
        pes.hypercube(8, y=8)
    for name in ("", "1", "a b", "a\0", "\ud800"):
        with pytest.raises(pidcomm.ArgumentError, match="must be an identifier"):
            pes.hypercube(**cast(Any, {name: 8}))
    with pytest.raises(pidcomm.ArgumentError, match="1 to 16 axes, not 17"):
        pes.hypercube(**cast(Any, {f"a{axis}": 1 for axis in range(17)}))


@pytest.mark.parametrize(
    ("shape", "first", "technique"),
    [
        ((8, 8), 64, "tile"),
        ((8, 8), 24, "pr"),
        ((4, 4), 8, "conventional"),
        ((4, 4), 112, "pr+im+cm"),
        ((3, 5), 40, "tile"),
        ((31, 1), 96, "conventional"),
        ((31, 1), 96, "tile"),
    ],
)
def test_a_hypercube_uses_the_pes_from_the_first_on(
    pes: pidcomm.PeSet, shape: tuple[int, ...], first: int, technique: TechniqueName
) -> None:
    cube, everything = pes.hypercube(*shape, first=first), pes.hypercube(128)
    assert (cube.first, cube.unused_pes) == (first, 128 - cube.pes)
    assert repr(cube).endswith(f" PEs from PE {first} on, {128 - cube.pes} unused>")
    for pe in (0, cube.pes - 1):
        assert cube.location(pe) == everything.location(first + pe)
    used = slice(first, first + cube.pes)
    x = payload("alltoall", shape, "10", "int32", block_bytes=64)
    count, size = x.shape[1], x.nbytes // cube.pes
    rows = np.random.default_rng(first).integers(0, 1 << 30, (128, 3 * count), np.int32)
    everything.write(rows)
    cube.write(x, size)
    rows[used, count : 2 * count] = x
    assert (pes.symbol(HEAP).read(np.int32, 3 * count) == rows).all()
    cube.alltoall("10", bytes=size, src=size, dst=0, technique=technique, scratch=1 << 20)
    rows[used, :count] = result_of("alltoall", x, shape, "10")
    assert (everything.read(3 * count, np.int32) == rows).all()


def test_a_buffer_of_the_set_serves_hypercubes_on_any_pes(pes: pidcomm.PeSet) -> None:
    buffer = pes.buffer("counts", 16, np.int32)
    rows = np.arange(128 * 16, dtype=np.int32).reshape(128, 16)
    buffer[:] = rows
    cube = pes.hypercube(8, 4, first=72)
    cube.allreduce(buffer, "y", out=buffer)
    rows[72:104] = result_of("allreduce", rows[72:104], (8, 4), "01")
    np.testing.assert_array_equal(buffer.get(), rows)


def test_disjoint_hypercubes_run_in_threads(pes: pidcomm.PeSet) -> None:
    cubes = [
        pes.hypercube(*shape, first=first)
        for shape, first in (((8, 4), 0), ((5, 7), 32), ((4, 4), 72), ((3, 13), 88))
    ]
    errors: list[BaseException] = []

    def work(cube: pidcomm.Hypercube) -> None:
        try:
            for seed in range(10):
                for name, technique in (
                    ("alltoall", "tile"),
                    ("allreduce", "conventional"),
                    ("alltoall", "pr" if cube.shape[0] in (4, 8) else "auto"),
                    ("reduce", "tile"),
                ):
                    x = payload(name, cube.shape, "10", "int64", 64, seed=cube.first + seed)
                    result = getattr(cube.arrays, name)(x, "x", technique=technique)
                    np.testing.assert_array_equal(result, result_of(name, x, cube.shape, "10"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(cube,)) for cube in cubes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_fault_outside_a_hypercube_has_no_pe_number() -> None:
    program = "#include <assert.h>\n#include <defs.h>\n__host unsigned is_wrong;"
    program += "\nint main(void) { assert(!is_wrong); return 0; }"
    with pidcomm.allocate(pes=128) as pes:
        pes.load(program)
        pes.symbol("is_wrong").write((np.arange(128) == 70).astype(np.uint32).reshape(128, 1))
        cubes = [pes.hypercube(8, 4), pes.hypercube(8, 4, first=64)]
        with pytest.raises(pidcomm.Error, match="in fault: PE 70"):
            pes.launch()
        for cube, number in zip(cubes, ("", r" \(PE 6\)"), strict=True):
            with pytest.raises(pidcomm.Error, match=f"chip 6 bank 0{number} is in fault"):
                cube.alltoall("10", bytes=64)


def test_the_first_pe_is_a_multiple_of_8_inside_the_set(pes: pidcomm.PeSet) -> None:
    for first, shape, message in (
        (4, (8,), r"the first PE \(4\) of a hypercube must be a multiple of 8"),
        (-8, (8,), r"first \(-8\) must be between 0"),
        (True, (8,), "first .True. must be an integer"),
        (2**32, (8,), "first .4294967296. must be between"),
        (120, (4, 4), "shape 4x4 from PE 120 on needs 136 PEs; the set has 128 PEs"),
        (128, (1,), "needs 129 PEs"),
    ):
        with pytest.raises(pidcomm.ArgumentError, match=message):
            pes.hypercube(*shape, first=first)
    assert pes.hypercube(x=8, first=120).shape == (8,)


FOREACH_SHAPES = [
    (64,), (128,), (8, 8), (2, 32), (32, 4), (16, 4, 2), (4, 2, 8, 2), (1, 2, 2, 4, 4, 2),
]  # fmt: skip


def foreach_places(pes: int) -> NDArray[Any]:
    """Return the number in the set of the PEs that DPU_FOREACH visits: bank, chip, rank."""
    pe = np.arange(pes)
    return pe // 64 * 64 + pe % 8 * 8 + pe // 8 % 8


def selects(shape: tuple[int, ...], mask: str, begin: int, end: int) -> bool:
    """Whether a mask selects PE numbers that differ by a multiple of `begin` below `end`."""
    strides = np.cumprod([1, *shape])
    return any(
        bit == "1" and max(begin, strides[axis]) < min(end, strides[axis + 1])
        for axis, bit in enumerate(mask)
    )


@pytest.mark.parametrize("shape", FOREACH_SHAPES, ids=format_shape)
def test_rows_and_members_have_the_order_of_dpu_foreach(
    pes: pidcomm.PeSet, shape: tuple[int, ...]
) -> None:
    cube = pes.hypercube(*shape, first=128 - int(np.prod(shape)), order="foreach")
    rank = cube.first // 64
    for pe in range(cube.pes):
        assert cube.location(pe) == (rank + pe // 64, pe // 8 % 8, pe % 8)
    rows = np.random.default_rng(7).integers(0, 1 << 30, (cube.pes, 4), np.int32)
    cube.write(rows)
    places = cube.first + foreach_places(cube.pes)
    np.testing.assert_array_equal(pes.symbol(HEAP).read(np.int32, 4)[places], rows)
    for name in sorted(COLLECTIVES):
        for bits in itertools.product("01", repeat=len(shape)):
            mask = "".join(bits)
            has_blocks = name in ("alltoall", "allgather", "reduce_scatter")
            is_mixed = selects(shape, mask, 1, 8) and selects(shape, mask, 8, 64)
            x = payload(name, shape, mask, "int16", 64)
            expected = result_of(name, x, shape, mask)
            collective = getattr(cube.arrays, name)
            for technique in ("tile", "conventional", *["ring", "tree"] * (name == "allreduce")):
                np.testing.assert_array_equal(collective(x, mask, technique=technique), expected)
            for technique in ("pr", "pr+im+cm"):
                if has_blocks and is_mixed:
                    with pytest.raises(pidcomm.ArgumentError, match="not contiguous; use tile"):
                        collective(x, mask, technique=technique)
                else:
                    np.testing.assert_array_equal(
                        collective(x, mask, technique=technique), expected
                    )


@pytest.mark.parametrize("technique", ["tile", "conventional"])
def test_calls_in_place_have_the_order_of_dpu_foreach(
    pes: pidcomm.PeSet, technique: TechniqueName
) -> None:
    for shape, mask in (((128,), "1"), ((16, 8), "01"), ((16, 8), "10"), ((2, 32, 2), "010")):
        cube = pes.hypercube(*shape, order="foreach")
        for name in ("alltoall", "reduce_scatter", "allreduce", "allgather"):
            x = payload(name, shape, mask, "int64", 16)
            expected = result_of(name, x, shape, mask)
            cube.write(x)
            size = max(x.nbytes, expected.nbytes) // cube.pes
            getattr(cube, name)(mask, bytes=size, src=0, dst=0, dtype="int64", technique=technique)
            np.testing.assert_array_equal(cube.read(expected.shape[1], "int64"), expected)


def test_buffers_of_a_hypercube_have_its_order(pes: pidcomm.PeSet) -> None:
    cube = pes.hypercube(8, 8, first=64, order="foreach")
    x = np.arange(64 * 2, dtype=np.int64).reshape(64, 2)
    buffer = cube.array(x)
    for pe in (0, 1, 8, 63):
        np.testing.assert_array_equal(buffer.at(pe).get(), x[pe])
    x[9] = buffer.at(9)[:] = -1
    np.testing.assert_array_equal(buffer.get(), x)
    np.testing.assert_array_equal(
        cube.allreduce(buffer, "y").get(), result_of("allreduce", x, (8, 8), "01")
    )
    cube.load(PLACES, tasklets=1)
    places = 64 + foreach_places(64)
    values = {
        name: pes.symbol(name).read(np.uint32)[places, 0]
        for name in ("pidcomm_pe", "pidcomm_member_01")
    }
    assert values["pidcomm_pe"].tolist() == list(range(64))
    assert values["pidcomm_member_01"].tolist() == [pe // 8 for pe in range(64)]


def test_the_order_of_dpu_foreach_has_axes_that_fill_banks_and_chips(pes: pidcomm.PeSet) -> None:
    rule = "must be 1, 2, 4, 8, 16, 32 or a multiple of 64"
    for shape, first, message in (
        ((12, 16), 0, f"{rule}, not 12"),
        ((8, 3, 8), 0, f"{rule}, not 24"),
        ((32,), 0, r"shape 32 \(order of DPU_FOREACH\) has 32 PEs, which must be a multiple of 64"),
        ((64,), 8, r"first PE \(8\) of a hypercube must be a multiple of 64 in the order of"),
        ((256,), 0, "needs 256 PEs; the set has 128 PEs"),
    ):
        with pytest.raises(pidcomm.ArgumentError, match=message):
            pes.hypercube(*shape, first=first, order="foreach")
    with pytest.raises(pidcomm.ArgumentError, match="order 'banks' is unknown"):
        pes.hypercube(64, order="banks")  # type: ignore[arg-type]
    cube = pes.hypercube(8, 8, order="foreach")
    assert repr(cube) == "<Hypercube 8x8 order=foreach of 64 PEs, 64 unused>"
    plans = [
        same.plan("alltoall", "11", bytes=512, expand=True) for same in (cube, pes.hypercube(8, 8))
    ]
    assert plans[0] != plans[1]
    assert plans[0]["mram_bytes_read"] == plans[1]["mram_bytes_read"]


PLACES = """
#include <defs.h>
#include <stdint.h>
__host uint32_t pidcomm_pe = 9, pidcomm_coord_row = 9, pidcomm_length_column = 9, pidcomm_coord_x;
__host uint32_t pidcomm_group_01 = 9, pidcomm_member_01 = 9, sum;
int main(void) { sum = 100 * pidcomm_pe + 10 * pidcomm_group_01 + pidcomm_member_01; return 0; }
"""


def test_pe_programs_know_their_place(pes: pidcomm.PeSet) -> None:
    cube, other = pes.hypercube(row=4, column=8, first=32), pes.hypercube(8, 8, first=64)
    cube.load(PLACES, tasklets=1, options=["-O1"])

    def rows(name: str) -> Any:
        return pes.symbol(name).read(np.uint32)[:, 0]

    for name, place in (
        ("pe", list(range(32))),
        ("coord_row", [cube.coords(pe)[0] for pe in range(32)]),
        ("length_column", [8] * 32),
        ("group_01", [cube.group_of(pe, "column") for pe in range(32)]),
        ("member_01", [cube.member_of(pe, "column") for pe in range(32)]),
    ):
        assert rows(f"pidcomm_{name}").tolist() == [9] * 32 + place + [9] * 64
    assert not rows("pidcomm_coord_x").any()
    pes.launch()
    assert rows("sum")[32:64].tolist() == [
        100 * pe + 10 * cube.group_of(pe, "01") + cube.member_of(pe, "01") for pe in range(32)
    ]
    other.fill_variables()
    assert rows("pidcomm_pe").tolist() == [9] * 32 + [*range(32), *range(64)]
    assert rows("pidcomm_coord_x").tolist() == [0] * 64 + [*range(8)] * 8


def test_variables_of_a_wrong_size_are_refused(pes: pidcomm.PeSet) -> None:
    cube = pes.hypercube(8, 8)
    text = (
        "#include <mram.h>\n#include <stdint.h>\n{} pidcomm_pe;\n__host uint32_t pidcomm_coord_x;"
    )
    for kind, message in (
        ("__host uint64_t", "variable pidcomm_pe has 8 bytes"),
        ("__host uint8_t", "variable pidcomm_pe has 1 bytes"),
        ("__mram_noinit_keep uint32_t", "declare it as __host uint32_t, with 4 bytes in WRAM"),
    ):
        with pytest.raises(pidcomm.ArgumentError, match=message):
            cube.load(f"{text.format(kind)}\nint main(void) {{ return 0; }}")
        assert not pes.symbol("pidcomm_coord_x").read(np.uint32).any()
    cube.load("int main(void) { return 0; }")  # no variable to fill
    cube.alltoall("10", bytes=512, dst=4096, technique="pr", scratch=8192)
    with pytest.raises(pidcomm.Error, match="load yours again"):
        cube.fill_variables()


def test_warnings_about_a_program_point_at_the_call(pes: pidcomm.PeSet) -> None:
    text = "int main(void) {\n#warning odd\nreturn 0; }"
    for call in (pes.load, pes.hypercube(8).load):
        with pytest.warns(UserWarning, match="odd") as caught:
            call(text)
        assert caught[0].filename == __file__
