"""Messages, shifts, permutations, ghost planes and collectives with uneven sizes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from movement_cases import FILL, MOVEMENTS, Case, difference, difference_of

import pidcomm

CASES = 30


@pytest.mark.parametrize("movement", MOVEMENTS, ids=lambda movement: movement.__name__)
def test_movements_are_right(movement: Any) -> None:
    """Random cases have the result of the definition."""
    with pidcomm.allocate(pes=192) as pes:
        for number in range(CASES):
            case = Case(pes, random.Random(f"{movement.__name__} {number}"))
            case.name = movement.__name__
            assert difference_of(case, *movement(case)) is None


def test_a_wrong_movement_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison reports a wrong element."""

    def wrong(case: Case) -> tuple[Any, Any]:
        return np.arange(3), np.arange(1, 4)

    monkeypatch.setattr("movement_cases.MOVEMENTS", [wrong])
    with pidcomm.allocate(pes=192) as pes:
        sentence = difference(pes, random.Random(1))
    assert "element (0,) is 0, not 1" in str(sentence)


@pytest.fixture
def cube() -> Any:
    """Return a hypercube of 8 x 2 PEs."""
    with pidcomm.allocate(pes=16) as pes:
        yield pes.hypercube(8, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda c, x, **wait: c.halo(x, {"x": 0, "y": 1}, corners=True, **wait),
        lambda c, x, **wait: c.reduce_scatterv(x, "x", [0, 1, 0, 1, 0, 1, 0, 1], **wait),
        lambda c, x, **wait: c.scatterv(np.ones((2, 8), np.float32), "x", [1] * 8, **wait),
        lambda c, x, **wait: c.gatherv(x, "x", range(8), **wait),
    ],
)
def test_requests_of_several_steps_do_the_rest_in_wait(cube: Any, call: Any) -> None:
    """Every `wait` of a request returns the result of the blocking call."""
    rows = np.random.default_rng(1).integers(0, 99, (16, 8, 4)).astype(np.int64)
    want, request = call(cube, cube.array(rows)), call(cube, cube.array(rows), wait=False)
    assert isinstance(request, pidcomm.Request)
    while not request.test():
        pass
    result = request.wait()
    assert result is request.wait()
    for got, wanted in zip(result, want, strict=True):  # buffers of PEs, or arrays of groups
        assert (np.asarray(got) == np.asarray(wanted)).all()


def test_a_request_reports_an_error_of_its_first_step(
    cube: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`wait` waits for the end of all steps, then raises the first error."""
    x = cube.array(np.ones((16, 8, 1), np.int64))
    request = cube.reduce_scatterv(x, "x", [1] * 8, wait=False)

    def fail() -> None:
        raise pidcomm.Error("the first step")

    monkeypatch.setattr(request._earlier[0], "wait", fail)
    with pytest.raises(pidcomm.Error, match="the first step"):
        request.wait()
    assert request.test()


def test_pairs_of_pes_move_the_buffer(cube: Any) -> None:
    """Sendrecv takes pairs of PE numbers; the other PEs keep their content."""
    x, y = cube.array(np.arange(32).reshape(16, 2)), cube.array(np.zeros((16, 2), np.int64))
    cube.sendrecv([(3, 0), (0, 5)], src=x, dst=y)
    want = np.zeros((16, 2), np.int64)
    want[0], want[5] = (6, 7), (0, 1)
    assert (y.get() == want).all()
    trace = cube.sendrecv([(1, 2)], src=0, dst=64, bytes=8)
    assert (trace.technique, trace.mram_bytes_written) == ("tile", 64)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda c, x: c.sendrecv([(0, 99)], src=x, dst=0, bytes=8), "to_pe 99"),
        (lambda c, x: c.sendrecv([(0, 1), (2, 1)], src=x, dst=0, bytes=8), "bytes of PE 1"),
        (lambda c, x: c.sendrecv([(0, 1)], src=0, dst=8), "need bytes="),
        (lambda c, x: c.sendrecv([(0, -1)], src=x, dst=0), "to_pe has values from -1"),
        (lambda c, x: c.sendrecv(np.zeros((2, 3)), src=x, dst=0), "shape (n, 2)"),
        (
            lambda c, x: c.sendrecv([(0, 1), (1, 2)], src=x, dst=x.window + 8, bytes=16),
            "another message",
        ),
        (lambda c, x: c.shift(x, "x", 1, cyclic=False), "out= or fill="),
        (lambda c, x: c.shift(x, "x", 1, fill=3), "cyclic=False"),
        (lambda c, x: c.shift(x, "q", 1), "'q'"),
        (lambda c, x: c.permute(x, "x", [0, 1]), "(8,)"),
        (lambda c, x: c.permute(x, "x", [8] * 8), "members 0 to 7"),
        (lambda c, x: c.halo(x, {"x": 0}, 2), "at least 6"),
        (lambda c, x: c.halo(x, {"x": 3}), "between 0 and 0"),
        (lambda c, x: c.halo(x, ["x"]), "must map"),
        (lambda c, x: pidcomm.displacements([1], 0), "not a NumPy dtype"),  # type: ignore[arg-type]
        (lambda c, x: c.halo(c.array(np.zeros((16, 3, 4))), {"x": 0, "zz": 1}), "'zz'"),
        (lambda c, x: c.alltoallv(x, "x", np.ones((7, 8), int)), "(8, 8)"),
        (lambda c, x: c.alltoallv(x, "x", np.full((8, 8), -1)), "counts are 0 to"),
        (lambda c, x: c.alltoallv(x, "x", np.full((8, 8), 9)), "pass the end"),
        (
            lambda c, x: c.allgatherv(x[:5], "x", [1] * 8, rdispls=list(range(8))),
            "positive multiples of 2",
        ),
        (lambda c, x: c.gatherv(x, "x", [9] * 8), "has 5 elements"),
        (lambda c, x: c.scatterv([[1.0], [2.0]], "x", [1] * 8), "the counts need"),
    ],
)
def test_wrong_arguments_are_named(cube: Any, call: Any, part: str) -> None:
    """Errors name the offending values before any byte moves."""
    x = cube.array(np.arange(80, dtype=np.int32).reshape(16, 5))
    with pytest.raises(pidcomm.ArgumentError) as error:
        call(cube, x)
    assert part in str(error.value)
    assert (x.get() == np.arange(80).reshape(16, 5)).all()


def test_displacements_begin_at_words() -> None:
    """Displacements pads blocks to words of 8 bytes."""
    assert pidcomm.displacements([3, 0, 5], np.int32).tolist() == [0, 4, 4]
    assert pidcomm.displacements([[1, 2], [8, 1]], np.int8).tolist() == [[0, 8], [0, 8]]
    assert pidcomm.displacements([1, 1], np.int32, (3,)).tolist() == [0, 2]


@pytest.mark.parametrize("is_even", [True, False])
def test_long_messages_of_several_ranks_are_right(is_even: bool) -> None:
    """With at least 256 KiB per PE, a thread visits more ranks side by side."""
    random = np.random.default_rng(5)
    words = 40_009
    with pidcomm.allocate(pes=320) as pes:
        cube = pes.hypercube(320)
        rows = random.integers(0, 1 << 60, (320, words))
        before = random.integers(0, 1 << 60, (320, words))
        x, y = cube.array(rows), cube.array(before)
        want = before.copy()
        table = []
        for pe in range(320):
            source = (pe + 36) % 320
            if is_even:
                table.append((source, pe, 0, 0, 8 * words, 1, 0, 0))
                want[pe] = rows[source]
            elif pe % 24 != 3:  # other PEs keep their words
                cut = 20_000 + 1_001 * (pe // 8 % 7)
                table.append((source, pe, 8 * 7, 0, 8 * cut, 1, 8 * 3, 0))
                want[pe, :cut] = rows[source, 7 : 7 + cut]
                other = (pe + 8) % 320
                length = words - cut - 90
                table.append((other, pe, 0, 8 * cut, 8 * length, 1, 0, 0))
                want[pe, cut : cut + length] = rows[other, :length]
                table.append((FILL, pe, 7, 8 * (words - 90), 8 * 60, 1, 0, 0))
                want[pe, words - 90 : words - 30] = 7
        cube.sendrecv(np.array(table, pidcomm.MESSAGE), src=x, dst=y, threads=3)
        np.testing.assert_array_equal(y.get(), want)
