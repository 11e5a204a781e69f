"""Every collective against its definition in plain NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from definitions import OPERATORS, REDUCTIONS, groups_of, payload, result_of
from emulated_machine import needs_emulated_access
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pidcomm
from pidcomm._rows import CoherenceName, CollectiveName, IsaName, TechniqueName
from pidcomm.explain.plan import stages

SHAPES = [
    ((8, 8), "10"),
    ((8, 8), "01"),
    ((4, 2, 8), "101"),
    ((2, 4, 5), "011"),
    ((3, 5), "10"),
    ((3, 2, 2), "111"),
]
GENERAL = ((3, 5), (3, 2, 2))
TECHNIQUES = list(pidcomm.TECHNIQUES)


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize(("shape", "mask"), SHAPES)
@pytest.mark.parametrize("name", pidcomm.COLLECTIVES)
def test_array_collective_equals_its_definition(
    pes: pidcomm.PeSet, name: str, shape: tuple[int, ...], mask: str, technique: TechniqueName
) -> None:
    cube = pes.hypercube(*shape)
    # 8 words: the paper's techniques cut it into up to 8.
    x = payload(name, shape, mask, "int32", block_bytes=64)
    row = pidcomm.TECHNIQUES[technique]
    if not row.is_for(pidcomm.COLLECTIVES[name]):
        with pytest.raises(pidcomm.ArgumentError, match=f"{name}: technique {technique} is for "):
            getattr(cube.arrays, name)(x, mask, technique=technique)
        return
    applies = not row.steps or row.steps & pidcomm.COLLECTIVES[name].steps
    if row.needs_lane_split and applies and shape in GENERAL:
        with pytest.raises(pidcomm.ArgumentError, match="needs a shape with a lane split"):
            getattr(cube.arrays, name)(x, mask, technique=technique)
        return
    result = getattr(cube.arrays, name)(x, mask, technique=technique)
    expected = result_of(name, x, shape, mask)
    assert result.dtype == x.dtype
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)
    assert cube.last_trace is not None
    assert cube.last_trace.technique == technique


# Zero to three selected lane bits; entangled groups that are adjacent, along two axes, and in
# threes and fives.
MEMBER_STEPS = [
    *(
        ((8, 8), "01"),
        ((2, 8, 5), "100"),
        ((4, 2, 8), "101"),
        ((8, 8), "11"),
        ((8, 2, 2, 3), "1011"),
    ),
    *(
        ((8, 2, 2, 3), "0101"),
        ((2, 2, 2, 5), "1011"),
        ((4, 4), "00"),
        ((128,), "1"),
        ((2, 4, 5), "011"),
    ),
]


@pytest.mark.parametrize(
    "technique", [name for name, row in pidcomm.TECHNIQUES.items() if row.path in ("ring", "tree")]
)
@pytest.mark.parametrize(("shape", "mask"), MEMBER_STEPS)
def test_ring_and_tree_reduce_every_type_in_place_and_out_of_place(
    pes: pidcomm.PeSet, shape: tuple[int, ...], mask: str, technique: TechniqueName
) -> None:
    cube = pes.hypercube(*shape)
    apart, in_place, scratch = 1 << 16, 8, 1 << 18
    for number, (dtype, op) in enumerate(product(pidcomm.TYPES, pidcomm.OPS)):
        if pidcomm.OPS[op].kind == "bits" and pidcomm.TYPES[dtype].is_float:
            continue
        x = payload("allreduce", shape, mask, dtype, block_bytes=64 * (1 + number % 5), seed=number)
        if op == "prod" and pidcomm.TYPES[dtype].is_float:
            x = np.where(x < 0, -1, 1).astype(dtype)  # exact in any order
        with np.errstate(all="ignore"):
            expected = result_of("allreduce", x, shape, mask, op)
        dst = (apart, in_place)[number % 2]
        cube.write(x, 8)
        row_bytes = x.shape[1] * x.itemsize
        trace = cube.allreduce(
            mask,
            bytes=row_bytes,
            src=8,
            dst=dst,
            dtype=dtype,
            op=op,
            technique=technique,
            scratch=scratch,
        )
        np.testing.assert_array_equal(cube.read(x.shape[1], dtype, dst), expected, f"{dtype} {op}")
        if dst == apart:
            np.testing.assert_array_equal(cube.read(x.shape[1], dtype, 8), x)
        plan = cube.plan(
            "allreduce", mask, bytes=row_bytes, src=8, dst=dst, technique=technique, scratch=scratch
        )
        assert (trace.mram_bytes_read, trace.mram_bytes_written) == (
            plan["mram_bytes_read"],
            plan["mram_bytes_written"],
        )


@pytest.mark.parametrize(("technique", "rounds"), [("ring", 7 + 2 * 7 + 8), ("tree", 2 * (3 + 3))])
def test_an_expanded_plan_lists_the_sweeps_of_every_round(
    technique: TechniqueName, rounds: int
) -> None:
    options: Any = {"bytes": 4096, "dst": 4096, "technique": technique, "scratch": 8192}
    plan = pidcomm.plan("allreduce", (8, 8), "11", expand=True, **options)
    assert plan["path"] == "member_steps"
    assert plan["member_steps"]["topology"] == technique
    assert plan["member_steps"]["rounds"] == rounds
    assert sorted({sweep["round"] for sweep in plan["sweeps"]}) == list(range(rounds))
    lines = sum(sweep["words"] * len(sweep["steps"]) for sweep in plan["sweeps"])
    assert plan["mram_bytes_written"] == 64 * lines
    assert "sweeps" not in pidcomm.plan("allreduce", (8, 8), "11", **options)


def test_pes_reorder_before_and_after_the_transfers_of_the_sdk() -> None:
    options: Any = {"bytes": 4096, "technique": "pr", "scratch": 8192}
    plan = pidcomm.plan("alltoall", (8, 8), "10", dst=4096, **options)
    first, transfers, last = (" ".join(stage) for stage in stages(plan))
    assert "before" in first
    assert "transfers" in transfers
    assert "after" in last


FORMS = {"ring": "member_steps", "tree": "member_steps", "baseline": "sdk"}  # of paths


@pytest.mark.parametrize("name", pidcomm.COLLECTIVES)
def test_plans_have_the_steps_of_their_techniques(pes: pidcomm.PeSet, name: CollectiveName) -> None:
    cube, collective = pes.hypercube(8, 8), pidcomm.COLLECTIVES[name]
    x = payload(name, (8, 8), "10", "int32", block_bytes=64)
    for technique, row in pidcomm.TECHNIQUES.items():
        if not row.is_for(collective):
            continue
        getattr(cube.arrays, name)(x, "10", technique=technique)
        size = 64 * collective.blocks_per_pe(8)
        plan = cube.plan(name, "10", bytes=size, technique=technique, scratch=size)
        path = row.path if not row.steps or row.steps & collective.steps else "sdk"
        assert plan["path"] == FORMS.get(path, path)
        assert row.runs_pe_program or not plan.keys() & {"before", "after"}
        assert cube.last_trace is not None
        assert (cube.last_trace.pe_launches > 0) == bool(plan.keys() & {"before", "after"})
        if plan["path"] == "sdk":
            assert plan["sdk"]["bytes_staged"] == cube.last_trace.bytes_staged
            assert plan["sdk"]["has_host_work"] == (cube.last_trace.bytes_staged > 0)


@pytest.mark.parametrize("dtype", pidcomm.TYPES)
@pytest.mark.parametrize("op", pidcomm.OPS)
@pytest.mark.parametrize("name", sorted(REDUCTIONS))
def test_reductions_of_every_type_and_operator_are_right(
    cube: pidcomm.Hypercube, name: str, op: str, dtype: str
) -> None:
    x = payload(name, cube.shape, "10", dtype)
    if pidcomm.OPS[op].kind == "bits" and pidcomm.TYPES[dtype].is_float:
        with pytest.raises(pidcomm.ArgumentError, match=f"{op}.*integers.*{dtype}"):
            getattr(cube.arrays, name)(x, "10", op=op)
        return
    with np.errstate(all="ignore"):
        expected = result_of(name, x, cube.shape, "10", op)
    np.testing.assert_array_equal(getattr(cube.arrays, name)(x, "10", op=op), expected)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_random_collectives_equal_their_definitions(
    pes: pidcomm.PeSet, data: st.DataObject
) -> None:
    shape = tuple(
        data.draw(
            st.lists(st.integers(1, 8), min_size=1, max_size=4).filter(lambda s: np.prod(s) <= 128)
        )
    )
    mask = data.draw(st.text("01", min_size=len(shape), max_size=len(shape)))
    name = data.draw(st.sampled_from(list(pidcomm.COLLECTIVES)))
    dtype = data.draw(
        st.sampled_from(
            ["int8", "uint16", "int32", "uint64", "float32", "float64", "float16", "bfloat16"]
        )
    )
    op = data.draw(st.sampled_from(["sum", "min", "max"]))
    x = payload(
        name,
        shape,
        mask,
        dtype,
        block_bytes=8 * data.draw(st.integers(0, 5)),
        seed=data.draw(st.integers(0, 9)),
    )
    keywords = {"op": op} if name in REDUCTIONS else {}
    result = getattr(pes.hypercube(*shape).arrays, name)(
        x, mask, base_offset=8 * data.draw(st.integers(0, 99)), **keywords
    )
    np.testing.assert_array_equal(result, result_of(name, x, shape, mask, op))


@pytest.mark.parametrize("name", pidcomm.COLLECTIVES)
def test_methods_move_data_between_windows(cube: pidcomm.Hypercube, name: str) -> None:
    row, mask, src, dst = pidcomm.COLLECTIVES[name], "10", 1 << 16, 1 << 17
    x = payload(name, cube.shape, mask, "int16")
    expected = result_of(name, x, cube.shape, mask, "max")
    members = cube.groups(mask).group_pes
    size_bytes = x.shape[1] * x.itemsize // row.blocks_before(members) * row.blocks_per_pe(members)
    keywords: dict[str, object] = {"op": "max"} if row.takes_op else {}
    if row.at_pes_before:
        cube.write(x, src)
        keywords |= {"bytes": size_bytes, "src": src, "dtype": x.dtype}
    else:
        keywords |= {"host": x}
    if row.at_pes_after:
        keywords |= {"dst": dst}
    outcome = getattr(cube, name)(mask, **keywords)
    if row.at_pes_after:
        assert isinstance(outcome, pidcomm.Trace)
        assert outcome is cube.last_trace
        outcome = cube.read(expected.shape[1], x.dtype, dst)
    np.testing.assert_array_equal(outcome, expected)
    if row.at_pes_before:
        np.testing.assert_array_equal(cube.read(x.shape[1], x.dtype, src), x)


def test_rows_are_in_pe_order_not_in_sdk_order(cube: pidcomm.Hypercube) -> None:
    x = np.arange(64 * 3, dtype=np.int64).reshape(64, 3)
    cube.write(x, 8)
    np.testing.assert_array_equal(cube.read(3, np.int64, 8), x)
    np.testing.assert_array_equal(
        cube.gather("11", bytes=24, src=8, dtype=np.int64), x.reshape(1, -1)
    )


def test_location_is_rank_chip_and_bank(cube: pidcomm.Hypercube) -> None:
    assert [cube.location(pe) for pe in (0, 1, 8, 43)] == [
        (0, 0, 0),
        (0, 1, 0),
        (0, 0, 1),
        (0, 3, 5),
    ]
    assert cube.location(43) == pidcomm.Location(rank=0, chip=3, bank=5)


def test_coordinates_groups_and_members_match_the_definition(pes: pidcomm.PeSet) -> None:
    cube = pes.hypercube(4, 3, 2)
    assert [cube.coords(pe) for pe in (0, 1, 4, 23)] == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (3, 2, 1)]
    for mask in ("101", "010", "000", "111"):
        groups = groups_of((4, 3, 2), mask)
        assert cube.groups(mask) == (len(groups), len(groups[0]))
        for number, group in enumerate(groups):
            assert [cube.group_of(pe, mask) for pe in group] == [number] * len(group)
            assert [cube.member_of(pe, mask) for pe in group] == list(range(len(group)))


def test_float_minimum_propagates_nan(cube: pidcomm.Hypercube) -> None:
    x = np.ones((64, 2), np.float32)
    x[3, 1] = np.nan
    result = cube.arrays.reduce(x, "11", op="min")
    assert result[0, 0] == 1
    assert np.isnan(result[0, 1])


def test_zero_bytes_are_a_no_op(cube: pidcomm.Hypercube) -> None:
    cube.write(np.full((64, 1), 7))
    trace = cube.alltoall("10", bytes=0)
    assert trace.mram_bytes_written == 0
    assert cube.arrays.allgather(np.empty((64, 0), np.int8), "10").shape == (64, 0)
    assert (cube.read(1, np.int64) == 7).all()


@pytest.mark.parametrize("isa", [name for name, isa in pidcomm.ISAS.items() if isa.is_available])
@pytest.mark.parametrize(
    "coherence", [pytest.param("none", marks=needs_emulated_access), "hardware"]
)
def test_options_do_not_change_the_result_and_are_in_the_trace(
    cube: pidcomm.Hypercube, isa: IsaName, coherence: CoherenceName
) -> None:
    x = payload("alltoall", (8, 8), "10", "uint8")
    result = cube.arrays.alltoall(x, "10", isa=isa, coherence=coherence, threads=3)
    np.testing.assert_array_equal(result, result_of("alltoall", x, (8, 8), "10"))
    trace = cube.last_trace
    assert trace is not None
    assert (trace.isa, trace.coherence, trace.threads) == (isa, coherence, 3)
    assert trace.mram_bytes_read == trace.mram_bytes_written == x.nbytes


def test_every_operator_has_a_definition_here() -> None:
    assert list(OPERATORS) == list(pidcomm.OPS)
