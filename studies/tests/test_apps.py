"""The rules of every application: its row, its runs, its command, its figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import pidcomm
from pidcomm import ArgumentError, Error
from pidcomm.arguments import Array
from pidcomm.cli import app
from pidcomm_studies import apps
from pidcomm_studies.apps import Application, stage
from pidcomm_studies.apps.application import TECHNIQUES_OF_APPLICATIONS, count_wrong, heaviest_bytes
from pidcomm_studies.apps.inputs import describe, generated, numbered_lines
from pidcomm_studies.apps.partition import bounds, padded, ragged_rows, share
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import Stage

FOLDER = Path(__file__).parents[1] / "apps"
SDK_HEADERS = {
    *(
        "defs.h",
        "mram.h",
        "barrier.h",
        "mutex.h",
        "mutex_pool.h",
        "handshake.h",
        "alloc.h",
        "attributes.h",
        "atomic_bit.h",
    ),
    *("stdint.h", "stddef.h", "stdbool.h", "string.h", "built_ins.h", "seqread.h"),
}
COMPARED = ["conventional", "pr+im+cm", "tile"]
PES = 8


def invoke(*words: str) -> Any:
    return CliRunner().invoke(app, ["app", *words])


class Scaled(Application):
    """A small problem: every PE multiplies its words, allreduce adds them, twice."""

    name, about, axes, data_help, generate_help = "scaled", "Scale words.", 2, "none", "none"
    words = 64

    @classmethod
    def make(
        cls,
        *,
        data: Path | None = None,
        generate: str | None = None,
        quick: bool = False,
        is_wrong: Annotated[bool, "Whether the reference is wrong."] = False,
    ) -> Scaled:
        return cls(is_wrong)

    def __init__(self, is_wrong: bool = False, in_place: bool = False) -> None:
        self.is_wrong, self.in_place = is_wrong, in_place
        self.runs = 0
        self.source = Path(__file__).with_name("scaled.c")

    @property
    def facts(self) -> Mapping[str, int | str]:
        return {"input": "words", "words": self.words}

    @classmethod
    def shape_of(cls, pes: int) -> tuple[int, ...]:
        return pes, 1

    def values(self, pes: int) -> Array:
        return np.arange(pes * self.words, dtype=np.uint32).reshape(pes, self.words)

    def place(self, shape: Sequence[int]) -> Placement:
        self.shape = tuple(shape)
        size = 4 * self.words
        return Placement(
            self.source,
            {"x": size},
            {"y": size, "z": size},
            tasklets=4,
            defines={"WORDS": self.words},
        )

    def run(self, stage: Stage) -> Array:
        stage.place("x", self.values(stage.pes))
        to = "y" if self.in_place else "z"
        for factor in (2, 3):
            stage.launch(factor=factor, own=np.arange(stage.pes))
            stage.allreduce("11", bytes=4 * self.words, src="y", dst=to, dtype=np.uint32)
        return stage.gather("11", bytes=4 * self.words, src=to, dtype=np.uint32)

    def reference(self) -> Array:
        self.runs += 1
        pes = int(np.prod(self.shape))
        own = np.arange(pes, dtype=np.uint32)[:, None]
        expected = np.tile((3 * self.values(pes) + own).sum(axis=0, dtype=np.uint32), pes).reshape(
            1, -1
        )
        expected[0, 0] += self.is_wrong
        return expected


class Clock:
    """A clock that moves only when a test moves it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def solved(problem: Application, **arguments: Any) -> apps.Run:
    return apps.run(problem, **{"pes": PES, "iters": 1, **arguments})


# ---- rows of the table


@pytest.mark.parametrize("name", apps.NAMES)
def test_an_application_is_a_folder_with_everything_in_it(name: str) -> None:
    application = apps.get(name)
    assert application.name == name
    for text in (application.about, application.data_help, application.generate_help):
        assert text
    assert {"__init__.py", "kernel.c", "cpu.cpp"} <= {
        path.name for path in (FOLDER / name).iterdir()
    }
    assert len(application.make(quick=True).shape_of(64)) == application.axes


def test_every_folder_is_in_the_table() -> None:
    assert {path.parent.name for path in FOLDER.glob("*/kernel.c")} == set(apps.NAMES)


@pytest.mark.parametrize(
    "path",
    [*FOLDER.glob("*/*.c"), *FOLDER.glob("pe/*.h")],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_pe_programs_need_only_headers_of_the_sdk(path: Path) -> None:
    text = path.read_text()
    own = {header.name for header in FOLDER.glob("pe/*.h")}
    assert set(re.findall(r"#include [<\"](.+?)[>\"]", text)) <= SDK_HEADERS | own
    assert not re.findall(
        r"\b(float|double|malloc|asm|__builtin_ia32\w*|__mram|__mram_noinit)\b", text
    )


@pytest.mark.parametrize("name", apps.NAMES)
def test_an_application_uses_the_public_interface(name: str) -> None:
    for path in (FOLDER / name).glob("*.py"):
        assert not re.findall(r"(?<!numpy\.)\b(_core|carry_out)\b", path.read_text())


def test_unknown_applications_are_named() -> None:
    with pytest.raises(ArgumentError, match="'pagerank' is unknown; use " + ", ".join(apps.NAMES)):
        apps.get("pagerank")


# ---- runs


# Sizes for applications whose quick input takes long on a strict machine.
SMALLER: dict[str, dict[str, Any]] = {
    "ckks": {"size": 256, "level": 1, "dnum": 2},
    "ntt": {"size": 256, "limbs": 2},
}


@pytest.mark.usefixtures("strict_machine")
@pytest.mark.parametrize("name", apps.NAMES)
def test_every_application_is_right_with_every_technique(name: str) -> None:
    problem = apps.get(name).make(quick=True, **SMALLER.get(name, {}))
    runs = list(apps.compare(problem, pes=PES, techniques=TECHNIQUES_OF_APPLICATIONS, iters=1))
    assert [run.technique for run in runs] == TECHNIQUES_OF_APPLICATIONS
    for run in runs:
        assert run.wrong == 0
        assert np.array_equal(run.result, runs[0].result)
        assert run.kernel.modelled > 0
        assert run.communication.measured > 0
        assert run.cpu_seconds is None
    assert len({run.kernel.modelled for run in runs}) == 1  # kernels do not depend on the technique


@pytest.mark.parametrize("name", apps.NAMES)
def test_a_problem_comes_from_one_source(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"give data .* or a generator .*, not both"):
        apps.get(name).make(data=tmp_path / "x", generate="y")
    with pytest.raises(ArgumentError, match="generator 'nothing' is unknown; use "):
        apps.get(name).make(generate="nothing")
    with pytest.raises(Error, match="none"):
        apps.get(name).make(data=tmp_path / "none")


def test_a_wrong_element_is_found() -> None:
    assert solved(Scaled(), technique="tile").wrong == 0
    assert solved(Scaled(is_wrong=True), technique="tile").wrong == 1
    assert count_wrong(np.zeros(3, np.int32), np.zeros(4, np.int32)) == 4
    assert count_wrong(np.zeros(3, np.int32), np.zeros(3, np.int64)) == 3


def test_the_result_of_one_technique_does_not_count_for_the_next() -> None:
    class OnlyOnce(Scaled):
        solved = 0

        def run(self, stage: Stage) -> Array:
            self.solved += 1
            if self.solved == 1:
                return super().run(stage)
            return stage.gather("11", bytes=4 * self.words, src="z", dtype=np.uint32)

    first, second = apps.compare(OnlyOnce(), pes=PES, techniques=["tile", "tile"], iters=1)
    assert (first.wrong, second.wrong) == (0, second.result.size)


@pytest.mark.parametrize("technique", TECHNIQUES_OF_APPLICATIONS)
def test_programs_and_variables_come_back_after_a_technique_that_replaces_them(
    technique: str,
) -> None:
    run = solved(Scaled(), technique=technique)
    assert run.wrong == 0
    replaces = technique in ("pr", "pr+im", "pr+im+cm")
    # Loads: the reorder program for each allreduce, and the application's program again after the
    # first.
    assert run.communication.loads == (3 if replaces else 0)
    assert (run.communication.modelled > 0) == replaces
    assert run.kernel.launches == run.kernel.calls == 2
    assert run.costs["allreduce"].calls == 2
    assert run.costs["allreduce"].bytes_per_pe == heaviest_bytes(run) == 4 * Scaled.words
    assert list(run.costs) == ["host", "kernel", "allreduce", "gather"]
    assert run.host.measured > 0  # the time to write variables
    assert run.setup.measured > 0
    assert run.total == run.kernel + run.communication + run.host


class Calls:
    """The collectives that stages carry out, as (technique, name), which take `seconds` in turn.
    `skipped` is the number of a call that does nothing.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        seconds: Sequence[float] = (1.0,),
        skipped: int | None = None,
    ) -> None:
        self.names: list[tuple[str, str]] = []
        original = pidcomm.Hypercube.carry_out
        endless = cycle(seconds)

        def carry_out(cube: pidcomm.Hypercube, name: str, mask: str, **arguments: Any) -> Any:
            if (technique := arguments["options"].get("technique")) is None:  # of the stage itself
                return original(cube, name, mask, **arguments)
            self.names.append((technique, name))
            if skipped == len(self.names) - 1:
                arguments["bytes"] = 0
                arguments["out"] = None
            trace, out = original(cube, name, mask, **arguments)
            took = next(endless)
            return replace(trace, seconds_total=took, seconds_load=0.0, seconds_launch=0.0), out

        monkeypatch.setattr(pidcomm.Hypercube, "carry_out", carry_out)


# Places of the techniques in the untimed round and in two timed ones, and in the run itself.
IN_TURN = [*(0, 1, 2), *(1, 2, 0), *(2, 0, 1), 0]


@pytest.mark.parametrize("in_place", [False, True])
def test_techniques_run_in_turn_on_equal_data(
    in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    runs = list(apps.compare(Scaled(in_place=in_place), pes=PES, techniques=COMPARED, iters=2))
    assert [run.wrong for run in runs] == [0, 0, 0]
    expected = [
        (COMPARED[index], name)
        for name in ("allreduce", "allreduce", "gather")
        for index in IN_TURN
    ]
    assert calls.names[: len(expected)] == expected
    assert calls.names[len(expected) :] == [
        (technique, name)
        for technique in COMPARED[1:]
        for name in ("allreduce", "allreduce", "gather")
    ]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("collective", [1, 2])  # the last allreduce, gather
def test_outputs_of_rounds_do_not_count(
    in_place: bool, collective: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    Calls(monkeypatch, skipped=3 + 4 * collective)  # the run itself comes after 3 rounds
    run = solved(Scaled(in_place=in_place), technique="tile", iters=2)
    assert run.wrong == run.result.size


def test_the_time_of_the_host_is_equal_for_all_techniques() -> None:
    hosts = [run.host for run in apps.compare(Scaled(), pes=PES, techniques=COMPARED)]
    assert hosts[0].measured > 0
    assert hosts == [hosts[0]] * 3


def test_the_clock_includes_the_work_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(stage, "perf_counter", clock)
    seconds = iter([6.0, 2.0, 1.0])

    class Slow(Scaled):
        def run(self, stage: Stage) -> Array:
            assert stage.host_work(self.act) == 7
            return super().run(stage)

        def act(self) -> int:
            clock.now += next(seconds)
            return 7

    host = solved(Slow(), technique="tile", iters=3).host
    assert host.measured == 2.0
    assert host.calls == 1


def test_the_reference_runs_with_all_cpus_and_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from pidcomm_studies.apps import _apps
    from pidcomm_studies.apps import application as module

    clock = Clock()
    monkeypatch.setattr(module, "perf_counter", clock)
    threads = [2]

    class Crowded(Scaled):
        def reference(self) -> Array:
            clock.now += 3.0 if threads[-1] > 1 else 1.0
            return super().reference()

    def set_threads(count: int) -> int:
        threads.append(count)
        return threads[-2]

    monkeypatch.setattr(_apps, "set_threads", set_threads)
    assert solved(Crowded(), technique="tile", with_cpu=True).cpu_seconds == 1.0
    assert threads == [2, 1, 2, 1, 2]


def test_the_quartiles_of_the_timed_rounds_count(monkeypatch: pytest.MonkeyPatch) -> None:
    untimed, own = 90.0, 80.0
    times = [untimed, untimed, 5.0, 40.0, 10.0, 1.0, 3.0, 20.0, own]  # pr+im+cm has 5, 1, 3
    Calls(monkeypatch, times)
    runs = list(apps.compare(Scaled(), pes=PES, techniques=["tile", "pr+im+cm"], iters=3))
    for run, (low, middle, high) in zip(runs, [(15, 20, 30), (2, 3, 4)], strict=True):
        assert run.wrong == 0
        for name, calls in (("allreduce", 2), ("gather", 1)):
            cost = run.costs[name]
            assert (cost.low, cost.measured, cost.high) == (
                calls * low,
                calls * middle,
                calls * high,
            )
            assert cost.calls == calls


# ---- errors


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"pes": None}, r"give pes \(None\) or shape \(None\)"),
        ({"shape": (2, 4)}, r"give pes \(8\) or shape \(\(2, 4\)\)"),
        ({"pes": 0}, r"pes \(0\) must be between 1"),
        ({"pes": None, "shape": (8,)}, "scaled needs a shape of 2 axes; 8 has 1"),
        (
            {"technique": "ring"},
            "technique 'ring' does not support all collectives; use tile, conventional",
        ),
        ({"iters": 0}, r"iters \(0\)"),
        ({"pes": 6, "technique": "pr"}, "^technique pr "),
        ({"pes": 2561}, r"pes \(2561\) must be between 1 and 2560"),
        ({"pes": None, "shape": (64, 64)}, "shape 64x64 has 4096 PEs; this machine has 2560"),
        ({"options": {"isa": "bogus"}}, "ISA 'bogus' is unknown"),
        ({"options": {"threads": -1}}, r"threads \(-1\)"),
        ({"options": {"scratch": 8}}, "options have 'scratch'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    problem = Scaled()
    with pytest.raises(ArgumentError, match=sentence):
        solved(problem, **arguments)
    assert problem.runs == 0


def test_a_problem_that_does_not_fit_a_pe_is_refused_before_allocation() -> None:
    problem = Scaled()
    problem.words = 6 << 20
    with pytest.raises(
        ArgumentError, match=r"a PE of 8 needs 72 MiB of MRAM \(x 24 MiB, y 24 MiB, z 24 MiB\)"
    ):
        solved(problem, technique="tile")
    problem.words = 5 << 20
    with pytest.raises(ArgumentError, match="scratch of the pr techniques"):
        solved(problem, technique="pr")


def test_a_problem_that_does_not_fit_this_machine_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 1000)
    with pytest.raises(ArgumentError, match="1000 bytes are available"):
        solved(Scaled())


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda on_stage: on_stage.place("y", np.zeros((8, 2), np.uint32)), "'y' is not one of x"),
        (
            lambda on_stage: on_stage.place("x", np.zeros((8, 66), np.uint32)),
            "264 bytes do not fit 'x', which has 256",
        ),
        (
            lambda on_stage: on_stage.gather("11", bytes=264, src="y", dtype=np.uint8),
            "264 bytes do not fit 'y'",
        ),
        (
            lambda on_stage: on_stage.allgather("11", bytes=264, src="y", dst="z"),
            "264 bytes do not fit 'z'",
        ),
        (
            lambda on_stage: on_stage.broadcast("11", np.zeros((1, 66), np.uint32), dst="y"),
            "264 bytes do not fit 'y'",
        ),
        (
            lambda on_stage: on_stage.scatter("11", np.zeros((1, 8 * 66), np.uint32), dst="y"),
            "264 bytes do not fit 'y'",
        ),
        (
            lambda on_stage: on_stage.alltoall("11", bytes=64, src="x", dst="z"),
            "'x' is not one of y, z",
        ),
        (lambda on_stage: on_stage.launch(speed=1), "no symbol|speed"),
    ],
)
def test_a_stage_keeps_windows_apart(act: Any, sentence: str) -> None:
    problem = Scaled()
    with (
        pidcomm.allocate(pes=PES) as pes,
        Stage(pes, (PES, 1), problem.place((PES, 1)), {"technique": "tile"}) as on_stage,
        pytest.raises(ArgumentError, match=sentence),
    ):
        act(on_stage)


# ---- inputs and shares


def make_pair(first: int = 1, second: str = "x", third: float = 0.5) -> tuple[int, str, float]:
    return first, second, third


def test_generators_take_parameters_of_the_type_of_their_default() -> None:
    table = {"pair": make_pair, "nothing": lambda: (0, "", 0.0)}
    assert generated("pair", table) == (1, "x", 0.5)
    assert generated("pair:third=2,first=7", table) == (7, "x", 2.0)
    assert generated("nothing", table) == (0, "", 0.0)
    assert describe(table) == "pair:first=1,second=x,third=0.5 or nothing"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("pairs", "generator 'pairs' is unknown; use pair:first=1"),
        (
            "pair:fourth=1",
            "'fourth=1' is not a parameter of generator pair; use pair:first=1,second=x",
        ),
        ("pair:first", "'first' is not a parameter"),
        ("pair:first=1.5", "'first=1.5': first must be of type int"),
    ],
)
def test_wrong_generators_are_refused(spec: str, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(sentence)):
        generated(spec, {"pair": make_pair})


def test_compressed_files_are_read_and_broken_ones_are_named(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\r\ntwo\n"))
    assert list(numbered_lines(tmp_path / "a.gz")) == [(1, "one"), (2, "two")]
    (tmp_path / "b.gz").write_bytes(b"no gzip")
    with pytest.raises(Error, match=r"b\.gz: not valid gzip data"):
        list(numbered_lines(tmp_path / "b.gz"))
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"one\n" * 1000)[:-10])
    with pytest.raises(Error, match=r"c\.gz: not valid gzip data"):
        list(numbered_lines(tmp_path / "c.gz"))


def test_shares_are_whole_words_and_cover_everything() -> None:
    for elements in (0, 1, 7, 64, 1000):
        for parts in (1, 3, 64):
            for dtype in (np.int8, np.int16, np.int32, np.int64):
                size = share(elements, parts, dtype)
                assert size > 0
                assert size * np.dtype(dtype).itemsize % 8 == 0
                assert size * parts >= elements
            edges = bounds(elements, parts)
            assert (edges[0], edges[-1]) == (0, elements)
            assert np.ptp(np.diff(edges)) <= 1
    assert share(10, 2, np.int32, 3) == 6


def test_rows_are_filled_up_with_zeros() -> None:
    assert padded(np.ones((1, 2), np.int8), (2, 3)).tolist() == [[1, 1, 0], [0, 0, 0]]
    assert ragged_rows(np.arange(1, 6), np.array([0, 2, 2, 5]), 4).tolist() == [
        [1, 2, 0, 0],
        [0] * 4,
        [3, 4, 5, 0],
    ]
    assert ragged_rows(np.arange(0), np.array([0, 0]), 2).tolist() == [[0, 0]]
