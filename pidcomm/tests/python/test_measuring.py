"""How bench and its ablation measure: schedules, gains, limits and the summary."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from command_line import KEYS

import pidcomm
from pidcomm._rows import CollectiveName, TechniqueName
from pidcomm.bench import ablation
from pidcomm.bench import report as reporting
from pidcomm.bench import timing as benchmark
from pidcomm.bench.measure import Scratch, SdkCondition, Trial, best_limit, limit_rates
from pidcomm.bench.oracle import Problem
from pidcomm.bench.results import Results
from pidcomm.bench.sweep import even_shape


@pytest.mark.parametrize(
    ("collective", "dtype", "wanted"),
    [
        ("alltoall", "int32", ["conventional", "pr", "pr+im", "pr+im+cm", "tile"]),
        ("allgather", "int32", ["conventional", "pr", "pr+im", "pr+im+cm", "tile"]),
        ("allreduce", "int8", ["conventional", "pr", "pr+im", "pr+im+cm", "tile"]),
        ("allreduce", "int32", ["conventional", "pr", "pr+im", "tile"]),
        *((name, "int32", ["conventional", "tile"]) for name in ("scatter", "gather", "broadcast")),
    ],
)
@pytest.mark.parametrize("mask", ["10", "01", "11"])
def test_techniques_that_do_the_same_have_one_row(
    collective: CollectiveName, dtype: str, wanted: list[str], mask: str
) -> None:
    if mask == "01":  # PEs of a group are in different entangled groups, and reorder nothing
        wanted = [name for name in wanted if name != "pr"]
    assert ablation.steps_for(Problem(collective, (8, 8), mask, 4096, dtype), {}) == wanted


FAIR = SdkCondition(1.0, 1.0, {"plain": 1.0}, 1.0, has_flushes=False)
SLOW_SDK = SdkCondition(0.1, 0.1, {"plain": 1.0}, 1.0, has_flushes=False)


def ablated(
    monkeypatch: pytest.MonkeyPatch,
    pes: pidcomm.PeSet,
    seconds: dict[str, list[float]],
    condition: SdkCondition = FAIR,
) -> dict[str, ablation.Step]:
    """Ablate an alltoall with given times, by technique and round; other techniques take a
    second.
    """
    run_trial = Trial.run
    left = {technique: iter(times) for technique, times in seconds.items()}

    def timed(self: Trial, options: pidcomm.Options) -> pidcomm.Trace:
        trace = run_trial(self, options)
        took = next(left.get(str(options["technique"]), iter(())), 1.0)
        return replace(trace, seconds_total=took, seconds_load=0.0, seconds_launch=0.0)

    monkeypatch.setattr(Trial, "run", timed)
    problem = Problem("alltoall", (8, 8), "10", 4096, "int32")
    schedule = benchmark.Schedule(iters=len(next(iter(seconds.values()))), warmup=0)
    steps = ablation.ablate(
        pes, problem, ablation.Assumed(), {}, schedule, Scratch([problem]), condition
    )
    assert not any(step.wrong for step in steps)
    return {step.technique: step for step in steps}


def test_the_gain_of_a_step_is_the_median_of_its_gains_per_round(
    pes: pidcomm.PeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    drift = [
        1.0,
        2.0,
        4.0,
        8.0,
        16.0,
    ]  # the machine gets slower; the middle round has a different gain
    gains = [1.02, 1.05, 1.50, 1.04, 1.08]
    seconds = {
        "pr+im+cm": [slow * gain for slow, gain in zip(drift, gains, strict=True)],
        "tile": drift,
    }
    tile = ablated(monkeypatch, pes, seconds)["tile"]
    # The ratio of medians.
    assert np.median(seconds["pr+im+cm"]) / np.median(seconds["tile"]) == 1.5
    assert (tile.step_gain, tile.step_low, tile.step_high) == pytest.approx((1.05, 1.04, 1.08))
    assert "  1.05x 1.04-1.08 " in reporting.row_line(tile)


def test_an_unclear_gain_of_a_step_has_a_question_mark(
    pes: pidcomm.PeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {"pr+im": [0.97, 0.9, 1.02, 1.04, 1.3], "pr+im+cm": [1.0] * 5}
    step = ablated(monkeypatch, pes, seconds)["pr+im+cm"]
    assert (step.step_gain, step.step_low, step.step_high) == pytest.approx((1.02, 0.97, 1.04))
    assert " 1.02x? 0.97-1.04 " in reporting.row_line(step)


def test_few_rounds_have_no_quartiles(pes: pidcomm.PeSet, monkeypatch: pytest.MonkeyPatch) -> None:
    step = ablated(monkeypatch, pes, {"pr+im": [1.5, 1.5], "pr+im+cm": [1.0, 1.0]})["pr+im+cm"]
    assert (step.step_gain, step.step_low, step.step_high) == (1.5, None, None)
    assert "1.50x? " in reporting.row_line(step)


def test_no_gain_over_a_slow_sdk_is_claimed(
    pes: pidcomm.PeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for condition, claims in ((FAIR, True), (SLOW_SDK, False)):
        with monkeypatch.context() as patch:
            steps = ablated(patch, pes, {"conventional": [3.0] * 3}, condition)
        gains = {
            name: (step.step_gain, step.step_low, step.step_high) for name, step in steps.items()
        }
        assert gains["conventional"] == (None, None, None)
        assert gains["pr"] == ((3.0, 3.0, 3.0) if claims else (None, None, None))
        assert gains["pr+im"] == ((1.0, 1.0, 1.0) if claims else (None, None, None))
        assert gains["pr+im+cm"] == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("pes", "axes", "shape"),
    [
        (64, 2, (8, 8)),
        (128, 2, (16, 8)),
        (1024, 2, (32, 32)),
        (1024, 3, (16, 8, 8)),
        (2, 3, (2, 1, 1)),
        (8, 1, (8,)),
    ],
)
def test_even_shapes_have_axes_of_similar_length(
    pes: int, axes: int, shape: tuple[int, ...]
) -> None:
    assert even_shape(pes, axes) == shape


def test_the_summary_has_minimum_median_and_maximum() -> None:
    def row(
        collective: CollectiveName,
        technique: TechniqueName,
        limit_pct: float | None,
        speed_up: float | None,
    ) -> benchmark.Row:
        fields: dict[str, Any] = {
            **dict.fromkeys(KEYS, 1),
            "collective": collective,
            "technique": technique,
        }
        return benchmark.Row(**{**fields, "limit_pct": limit_pct, "speed_up": speed_up})

    rows = [
        row("alltoall", "tile", limit, gain)
        for limit, gain in ((90.0, 2.0), (50.0, 8.0), (70.0, 4.0))
    ]
    rows += [
        row("reduce", "tile", None, 9.0),
        row("reduce", "conventional", None, 1.0),
        row("gather", "tile", 1, None),
    ]
    _, alltoall, reduce, base, gather, mean = reporting.summary(rows)
    assert (
        re.sub(" +", " ", alltoall)
        == "alltoall tile 3 rows, limit% 50 / 70 / 90, speed-up 2.00 / 4.00 / 8.00"
    )
    assert re.sub(" +", " ", reduce) == "reduce tile 1 rows, limit% -, speed-up 9.00 / 9.00 / 9.00"
    assert base.split()[:2] == ["reduce", "conventional"]
    assert gather.endswith("speed-up -")
    assert mean == "tile: geometric mean of the median speed-ups of 2 collectives 6.00x"


def test_every_problem_is_measured_on_a_new_hypercube(
    pes: pidcomm.PeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem("allreduce", (8, 8), "10", 64, "int32")
    cubes = []
    run_trial = Trial.run

    def remember(self: Trial, options: pidcomm.Options) -> pidcomm.Trace:
        cubes.append(self.cube)
        return run_trial(self, options)

    monkeypatch.setattr(Trial, "run", remember)
    schedule = benchmark.Schedule(iters=1, warmup=0, with_limit=False)
    for _ in range(2):
        benchmark.measure_rows(
            pes, problem, ["tile", "conventional"], {}, schedule, Scratch([problem]), FAIR
        )
    runs = len(cubes) // 2
    assert [cube is cubes[0] for cube in cubes] == [True] * runs + [False] * runs
    assert [cube is cubes[-1] for cube in cubes] == [False] * runs + [True] * runs


def test_each_round_begins_with_the_next_technique(
    pes: pidcomm.PeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    run_trial = Trial.run

    def remember(self: Trial, options: pidcomm.Options) -> pidcomm.Trace:
        ran.append(str(options["technique"]))
        return run_trial(self, options)

    monkeypatch.setattr(Trial, "run", remember)
    problem = Problem("scatter", (8, 8), "10", 64, "int32")
    schedule = benchmark.Schedule(iters=3, warmup=0, with_limit=False)
    names = ["tile", "conventional", "pr"]
    timed = benchmark.measure_rows(pes, problem, names, {}, schedule, Scratch([problem]), FAIR)
    tile, conventional, pr = names
    assert ran[:9] == [*names, conventional, pr, tile, pr, tile, conventional]
    assert [row.carried_out for row in timed.rows] == names


def test_trial_counts_wrong_elements(pes: pidcomm.PeSet, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem("allreduce", (8, 8), "10", 64, "int32")
    trial = Trial(pes.hypercube(8, 8), problem, Scratch([problem]))
    assert trial.check({"technique": "tile"}).wrong == 0
    monkeypatch.setattr(Trial, "run", lambda self, options: None)
    assert trial.check({"technique": "tile"}).wrong == 64 * 16


def test_the_limit_is_the_best_order_and_a_low_one_is_explained() -> None:
    seconds = np.full((3, len(pidcomm.COPY_ORDERS)), 9.0)
    seconds[:, 2] = 2.0
    seconds[0, -1] = 1.0  # once the best, but not at the median
    rates = limit_rates(seconds, 10**9)
    assert list(rates) == list(pidcomm.COPY_ORDERS)
    assert best_limit(rates) == (list(pidcomm.COPY_ORDERS)[2], 0.5)
    explanation = "the limit is below 90%"
    for contiguous, has_flushes, explained in (
        (0.5, False, None),
        (0.6, False, "128 KiB"),
        (0.6, True, "does not flush"),
    ):
        lines = SdkCondition(1.0, 1.0, rates, contiguous, has_flushes).lines()
        explanations = [line for line in lines if explanation in line]
        assert explanations == [] if explained is None else explained in explanations[0]
        assert ("includes the flushes" in lines[0]) == has_flushes


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ([0.5, 0.6], None),
        ([0.5, 0.39, 0.6], "this is uncertain: 1 of 3 rounds lie on the other side of 40%"),
    ],
)
def test_an_uncertain_comparison_with_the_sdk_is_said(
    shares: list[float], said: str | None
) -> None:
    lines = SdkCondition(1.0, 1.0, {"plain": 2.0}, 2.0, False, shares).lines()
    assert [line for line in lines if "uncertain" in line] == ([said] if said else [])


@pytest.mark.parametrize("high", [120.0, 130.0])
def test_a_row_with_varying_times_has_a_comment(
    high: float, capsys: pytest.CaptureFixture[str]
) -> None:
    fields: dict[str, Any] = dict.fromkeys(KEYS, 1)
    texts = dict.fromkeys(("collective", "technique", "dtype", "op", "shape", "mask"), "x")
    times = {"t_p25_us": 99.0, "t_p50_us": 100.0, "t_p75_us": high}
    row = benchmark.Row(**{**fields, **texts, "carried_out": "x", **times})
    with Results(None) as results:
        reporting.Report(results).rows([row])
    comment = "# x varies: a quarter of the times is below 99 us, and a quarter above 130 us\n"
    assert (comment in capsys.readouterr().out) == (high == 130.0)
