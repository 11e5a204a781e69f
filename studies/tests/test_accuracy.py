"""Samples, calibration and validation: their draws, fits and reports."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import PIDCOMM, fields_of, objects
from typer.testing import CliRunner

from pidcomm import COLLECTIVES, DEFAULT_ISA, ArgumentError, Error, Options, plan
from pidcomm.bench import info
from pidcomm.cli import app
from pidcomm.model import Machine, load_machine, machine_names
from pidcomm.model.prediction import PreparedCase
from pidcomm_studies.models import measured, paper_fit
from pidcomm_studies.models.calibrate import (
    calibrate,
    fit,
    interval_constants,
)
from pidcomm_studies.models.samples import DST, SCRATCH, Timed, Timer, draw, host_seconds
from pidcomm_studies.models.validate import (
    FITTED,
    FITTED_TO,
    HELD_OUT,
    NOT_USED,
    Compared,
    Errors,
    check_published,
    compare,
    distributions,
)
from pidcomm_studies.papers.pidcomm.published import PUBLISHED

SMALL = 1 << 20


def run_cli(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [*PIDCOMM, *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == status, result.stderr
    return result


@pytest.fixture(scope="module")
def machine() -> Machine:
    return load_machine("emulated-host")


def test_samples_depend_on_the_seed_only() -> None:
    assert draw(7, 20, threads=2) == draw(7, 20, threads=2)
    assert draw(7, 20, threads=2) != draw(8, 20, threads=2)


def test_samples_are_of_every_kind_and_within_their_limits() -> None:
    samples = draw(3, 400, threads=3, max_pes=256, max_total=SMALL)
    assert {sample.problem.collective for sample in samples} == set(COLLECTIVES)
    assert {sample.path for sample in samples} >= {"tile", "paper", "sdk"}
    assert {sample.options["threads"] for sample in samples} == {1, 2, 3}
    assert {sample.options["coherence"] for sample in samples} == {"none", "hardware"}
    for sample in samples:
        problem = sample.problem
        assert problem.pes <= 256
        assert problem.bytes * problem.pes <= 2 * SMALL
        assert problem.bytes <= DST
        sides: dict[str, Any] = {
            "bytes": problem.bytes,
            "dst": DST,
            "dtype": problem.dtype,
            "op": problem.op,
        }
        options: Options = {**sample.options, "scratch": SCRATCH}
        planned = plan(problem.collective, problem.shape, problem.mask, **sides, **options)
        assert planned["path"] == sample.path
        is_like_conventional = sample.path == "sdk" and not planned.keys() & {"before", "after"}
        assert not is_like_conventional or not str(sample.options["technique"]).startswith("pr")


def test_a_sample_is_timed() -> None:
    samples = draw(5, 3, threads=2, max_pes=64, max_total=1 << 17)
    with Timer(samples) as timer:
        timed = [timer.time(sample) for sample in samples]
    assert all(0 < timing.seconds < 1 for timing in timed)
    assert [timing.sample for timing in timed] == samples


def test_fitting_recovers_a_machine(machine: Machine) -> None:
    """A fit to the predicted times of a machine returns that machine, starting from another."""
    samples = draw(11, 120, threads=2)
    truth = machine.with_values(
        {name: machine[name] * 1.6 for name in machine.constants if name.startswith("isa.")}
    )
    timed = [Timed(sample, host_seconds(sample.case(), truth.numbers)) for sample in samples]
    kept = [name for name in machine.constants if not name.startswith("isa.")]
    fitted = fit(machine, timed, kept, "fitted: in a test")

    def errors(on: Machine) -> np.ndarray:
        modelled = [host_seconds(timing.sample.case(), on.numbers) for timing in timed]
        return np.abs(np.array(modelled) / [timing.seconds for timing in timed] - 1)

    assert np.median(errors(machine)) > 0.1
    assert np.percentile(errors(fitted), 95) < 0.05
    assert all(fitted[name] == machine[name] for name in kept)
    assert fitted.constants["isa.avx2.store_ns"].source == "fitted: in a test"


def test_the_description_of_the_papers_machine_is_the_result_of_the_fit() -> None:
    fitted, paper = paper_fit.fit(), load_machine("isca24")
    for name in paper_fit.START:
        assert paper.constants[name].source == FITTED_TO
        assert fitted[name] == pytest.approx(paper[name], rel=0.02)


@pytest.mark.parametrize("whole_figures", [False, True])
def test_a_number_that_is_left_out_does_not_move_the_fit(
    monkeypatch: pytest.MonkeyPatch, whole_figures: bool
) -> None:
    used: list[list[str]] = []

    def fit(points: list[str], first: Machine) -> Machine:
        used.append(points)
        return first

    monkeypatch.setattr(paper_fit, "fit", fit)
    paper_fit.left_out(whole_figures=whole_figures)
    for key, points in zip(paper_fit.POINTS, used, strict=True):
        figure = key.partition(".")[0]
        left = set(paper_fit.POINTS) - set(points)
        of_figure = {other for other in paper_fit.POINTS if other.partition(".")[0] == figure}
        assert left == (of_figure if whole_figures else {key})


def test_published_numbers_are_fitted_held_out_or_not_in_the_fit() -> None:
    checks = {check.published.key: check for check in check_published()}
    assert set(checks) == set(PUBLISHED)
    assert all((check.use == NOT_USED) == (check.why is not None) for check in checks.values())
    assert {key for key, check in checks.items() if check.use == FITTED} == set(paper_fit.POINTS)
    other = load_machine("isca24").with_values({name: 30 for name in paper_fit.START})
    assert {check.use for check in check_published(other)} == {HELD_OUT, NOT_USED}


TRANSFERS = "api,direction,space,dpus,bytes_per_dpu,ms,note,repository,path\n"


def write_rows(folder: Path, machine: Machine) -> None:
    """Write the times that the model gives a machine, as rows of two experiments."""
    kinds = [
        (kind, pes, size)
        for kind in ("to", "to all", "from", "direct to", "direct from", "jobs")
        for pes in (1, 64, 128, 512, 2048)
        for size in ((32, 64) if kind == "jobs" else (64, 1024, 8192, 1 << 16, 1 << 20))
        if kind != "jobs" or pes >= 64
    ]
    rows = [measured.Row(kind, "us/here/a", pes, size, 1, (), 1.0) for kind, pes, size in kinds]
    with (folder / "transfers.csv").open("w") as file:
        file.write(TRANSFERS)
        for number, timed in enumerate(measured.check(machine, rows)):
            kind = timed.row.kind.replace("to all", "broadcast to").replace("jobs", "to")
            api, _, direction = f"sdk {kind}".rpartition(" ")
            file.write(
                f"{api},{direction}_dpu,{'wram' if timed.row.kind == 'jobs' else 'mram'},"
                f"{timed.row.pes},{timed.row.bytes},{1e3 * timed.modelled},,us/here,"
                f"{'ab'[number % 2]}/1.json\n"
            )
    with (folder / "launches.csv").open("w") as file:
        file.write("operation,dpus,elements,ms,note,repository,path\n")
        for pes, elements, start in product((1, 64, 512, 2048), (8, 4096), measured.LOADS):
            ranks, where = ceil(pes / 64), f"{start}{pes}_{elements}.json".split("/", 2)
            at = f"{'/'.join(where[:2])},{where[2]}"
            launch, load, word = (
                machine[f"pe.{name}_us"] + ranks * machine[f"pe.{per_rank}_us"]
                for name, per_rank in (
                    ("launch", "launch_rank"),
                    ("load", "load_rank"),
                    ("load_word", "load_rank_word"),
                )
            )
            for words in measured.LOADS[start]:
                ms = 1e-3 * (load + (words + elements) * word)
                file.write(f"dpu_load,{pes},,{ms},,{at}\n")
            ms = 1e-3 * launch + 2e-3 * elements
            file.write(f"dpu_launch_sync,{pes},{elements},{ms},i<{elements} in WRAM,{at}\n")


def test_a_fit_to_rows_of_dimms_finds_the_constants_that_made_them(tmp_path: Path) -> None:
    start = load_machine("upmem-2560")
    names = [name for stage in measured.STAGES for name in stage.names]
    truth = start.with_values(
        {name: start[name] * (1.3 if place % 2 else 0.8) for place, name in enumerate(names)}
    )
    write_rows(tmp_path, truth)
    rows = measured.read_rows(tmp_path)
    assert {row.kind for row in rows} == {kind for stage in measured.STAGES for kind in stage.kinds}
    fitted, held_out = measured.fit_to_rows(start, rows)
    errors = [abs(check.error_pct) for check in measured.check(fitted, rows)]
    assert np.median(errors) < 1
    assert max(errors) < 5
    assert {test.row.experiment for test in held_out} >= {"us/here/a", "us/here/b"}
    assert fitted["pe.launch_us"] == pytest.approx(truth["pe.launch_us"], rel=0.02)
    source = fitted.constants["sdk.to_gb_s"].source
    assert source.startswith("fitted: to times measured on DIMMs by us/here, 20")
    assert "us/here" not in fitted.constants["pe.load_us"].source
    assert 0.9 < fitted["error.sdk_low"] <= fitted["error.sdk_high"] < 1.1
    assert all(measured.is_in_interval(fitted, test) for test in held_out if test.row.kind == "to")


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("bytes_per_dpu", "bytes", "transfers.csv:1: the column bytes_per_dpu is missing"),
        (",8192,", ",many,", "bytes_per_dpu is 'many'; it must be a number from 0 to 1e12"),
        (",8192,", ",-8,", "bytes_per_dpu is '-8'"),
        ("mram", "disk", "the rows have 0 times of kind to or to all or from; the fit of sdk.to_c"),
        ("from_dpu", "across", "direction 'across' is unknown; use to_dpu or from_dpu"),
        (",us/here,a/1.json", "", "the line does not have 9 fields, as the first line has"),
        (",us/here,a/1.json", ",,,", "the line does not have 9 fields"),
        (",us/here,", ",\udcff,", "transfers.csv: not a CSV file: 'utf-8' codec"),
        (",us/here,", f",{'x' * 200_000},", "transfers.csv: not a CSV file: field larger than"),
    ],
)
def test_rows_that_cannot_be_fitted_are_errors(
    old: str, new: str, rule: str, tmp_path: Path
) -> None:
    start = load_machine("upmem-2560")
    write_rows(tmp_path, start)
    file = tmp_path / "transfers.csv"
    file.write_bytes(file.read_text().replace(old, new).encode(errors="surrogateescape"))
    with pytest.raises(ArgumentError, match=re.escape(rule)):
        measured.fit_to_rows(start, measured.read_rows(tmp_path))


def test_a_fit_does_not_start_from_zeros(tmp_path: Path) -> None:
    start = load_machine("upmem-2560")
    write_rows(tmp_path, start)
    with pytest.raises(ArgumentError, match=r"machine upmem-2560 has sdk.pe_us = 0, but the fit"):
        measured.fit_to_rows(start.with_values({"sdk.pe_us": 0}), measured.read_rows(tmp_path))


def test_rows_of_known_programs_have_the_facts_of_their_sources(tmp_path: Path) -> None:
    write_rows(tmp_path, load_machine("upmem-2560"))
    known = {row.experiment for row in measured.read_rows(tmp_path)}
    mlp = "oscarferraz/MLP_UPMEM,Official_code/results/MRAM_original_sizes/lenet/1024/1.json"
    with (tmp_path / "transfers.csv").open("a") as file:
        for number, direction, size in ((1, "to", 64), (2, "to", 64), (3, "from", 64)):
            file.write(
                f"sdk,{direction}_dpu,mram,1024,{size},1,transfer {number} of an MLP,{mlp}\n"
            )
        file.write(f"sdk,from_dpu,mram,1024,{1 << 12},1,transfer 6 of an MLP,{mlp}\n")  # faults
        file.write("sdk,to_dpu,mram,64,64,1,,Loremkang/upmem-sdk-light,results/UPMEM_1.txt\n")
    added = [row for row in measured.read_rows(tmp_path) if row.experiment not in known]
    assert [(row.kind, row.bytes, row.sockets) for row in added] == [
        ("from", 64, 1),
        ("to", 64, 2),
        ("to", 64, 1),
        ("to all", 64, 1),
    ]


def test_rows_of_gemv_check_the_fit_only(tmp_path: Path) -> None:
    machine = load_machine("upmem-2560")
    write_rows(tmp_path, machine)
    (tmp_path / "kernels.csv").write_text(
        "program,args,dpus,h2d_ms,d2h_ms,repository,path\n"
        "PrIM GEMV,-m 100 -n 256 BL=10,4,1,2,us/there,a/1\n"
        "PrIM VA,-i 100,4,1,2,us/there,a/2\n"
    )
    rows = measured.read_rows(tmp_path)
    there = [row for row in rows if row.experiment == "us/there/a"]
    sent = (("to", 16), ("to all", 1024))
    assert [(row.kind, row.pes, row.bytes, row.also, row.seconds) for row in there] == [
        ("PrIM GEMV from", 4, 4 * 26, (), 2e-3),
        ("PrIM GEMV to", 4, 4 * 26 * 256, sent, 1e-3),
    ]
    fitted, held_out = measured.fit_to_rows(machine, rows)
    assert not [check for check in measured.check(fitted, rows) if check.row in there]
    [gemv] = [test for test in held_out if test.row == there[1]]
    how: Any = {"dst": 0, "technique": "conventional"}
    parts = [
        PreparedCase("scatter", (4,), "1", bytes=4 * 26 * 256, **how).predict(fitted),
        PreparedCase("scatter", (4,), "1", bytes=16, **how).predict(fitted),
        PreparedCase("broadcast", (4,), "1", bytes=1024, **how).predict(fitted),
    ]
    assert gemv.modelled == pytest.approx(sum(part.seconds for part in parts))


def test_256_pes_of_two_channels_receive_as_fast_as_512() -> None:
    def rate(pes: int, alternating: int) -> float:
        machine = load_machine("upmem-2560").with_values({"ranks.alternating": alternating})
        case = PreparedCase("scatter", (pes,), "1", bytes=1 << 20, technique="conventional", dst=0)
        return pes / case.predict(machine).seconds

    assert rate(256, 2) == pytest.approx(rate(512, 2), rel=0.02)
    assert rate(256, 1) < 0.7 * rate(512, 1)
    assert rate(512, 1) == pytest.approx(rate(512, 2))


def test_launches_of_complete_ranks_have_the_slope_of_their_experiment(tmp_path: Path) -> None:
    write_rows(tmp_path, load_machine("upmem-2560"))
    rows = measured.read_rows(tmp_path)
    assert not [row for row in rows if row.kind == "launch" and row.pes == 1]
    with (tmp_path / "launches.csv").open("a") as file:
        file.write("dpu_alloc,64,8,9,i<8,us/there,b/1.json\n")
        for elements, ms in ((8, 7 + 8e-3), (9, 20), (1 << 20, 7 + (1 << 20) * 1e-3)):
            file.write(f"dpu_launch_sync,64,{elements},{ms},i<{elements},us/there,b/1.json\n")
    added = set(measured.read_rows(tmp_path)) - set(rows)
    assert {(row.kind, row.experiment, row.bytes) for row in added} == {
        ("launch", "us/there/b", 32),
        ("launch", "us/there/b", 36),
    }
    assert min(row.seconds for row in added) == pytest.approx(7e-3, rel=1e-3)


def test_loads_have_the_words_of_programs_and_of_arrays_in_wram(tmp_path: Path) -> None:
    write_rows(tmp_path, load_machine("upmem-2560"))
    rows = measured.read_rows(tmp_path)
    folder, words = max(measured.LOADS.items(), key=lambda item: len(item[1]))
    owner, name, path = folder.split("/", 2)
    with (tmp_path / "launches.csv").open("a") as file:
        for _ in range(len(words) + 1):  # the last program has no known size
            file.write(f"dpu_load,128,,1,,{owner}/{name},{path}1.json\n")
        file.write(f"dpu_launch_sync,128,8,1,i<8 in MRAM,{owner}/{name},{path}1.json\n")
        file.write("dpu_load,128,,1,,us/there,b/1.json\n")
    added = [row for row in measured.read_rows(tmp_path) if row not in rows and row.kind == "load"]
    assert sorted(row.bytes for row in added) == sorted(4 * count for count in words)


def test_fit_dimms_writes_a_machine_and_its_errors(tmp_path: Path) -> None:
    write_rows(tmp_path, load_machine("upmem-2560"))
    transfers = tmp_path / "transfers.csv"
    lines = transfers.read_text().splitlines(keepends=True)
    transfers.write_text(
        "".join(line for line in lines if "sdk direct" not in line or "a/1" in line)
    )
    file, rows = tmp_path / "mine.toml", tmp_path / "rows.jsonl"
    printed = run_cli("model", "fit-dimms", str(file), "--rows", str(tmp_path), "--json", str(rows))
    assert all(words in printed.stdout for words in ("direct to", "held out median"))
    assert re.search(r"^direct from +1\d .* 100%", printed.stdout, re.MULTILINE)
    assert load_machine(str(file)).inherits == "isca24"
    again = tmp_path / "again.toml"
    run_cli("model", "fit-dimms", str(again), "--rows", str(tmp_path), "--machine", str(file))
    assert load_machine(str(again)).numbers == load_machine(str(file)).numbers
    held_out = [json.loads(line) for line in rows.read_text().splitlines()]
    assert {row["experiment"] for row in held_out} >= {"us/here/a", "us/here/b"}
    assert {"kind", "experiment", "pes", "bytes", "seconds", "modelled", "error_pct"} <= set(
        held_out[0]
    )


def test_an_interval_is_the_narrowest_that_holds_95_percent_and_the_modelled_time() -> None:
    ratios = [0.5, *np.linspace(0.9, 1.1, 38).tolist(), 3.0]
    assert interval_constants("load", ratios) == {"error.load_low": 0.9, "error.load_high": 1.1}
    assert interval_constants("load", [1.2] * 9) == {"error.load_low": 1, "error.load_high": 1.2}
    assert interval_constants("load", []) == {}


def test_an_interval_contains_the_modelled_time_and_grows_with_the_errors() -> None:
    machine = load_machine("upmem-2560")
    exact = machine.with_values({name: 1 for name in machine.constants if "error." in name})
    for technique in ("tile", "conventional", "pr+im+cm"):
        case = PreparedCase(
            "alltoall", (32, 32), "10", bytes=1 << 20, technique=technique, scratch=2 << 20
        )
        estimate = case.predict(machine)
        assert estimate.interval is not None
        low, high = estimate.interval
        assert low < estimate.seconds < high
        assert case.predict(exact).interval == pytest.approx((estimate.seconds, estimate.seconds))


@pytest.mark.parametrize("name", machine_names())
def test_constants_from_other_descriptions_equal_the_originals(name: str) -> None:
    for constant, described in load_machine(name).constants.items():
        if taken_over := re.fullmatch("assumed: as fitted for (.*)", described.source):
            assert described.value == load_machine(taken_over[1])[constant], constant


@pytest.mark.parametrize("name", ["isca24", "upmem-2560"])
def test_descriptions_of_unavailable_machines_claim_no_measurement(name: str) -> None:
    described = load_machine(name)
    assert not [claimed for claimed in described.constants.values() if claimed.kind == "measured"]
    assert described["isa.avx512bw.slow_combine_ns"] >= described["isa.avx512bw.combine_ns"]
    assert described["work.slow_combine_gb_s"] <= described["work.combine_gb_s"]


def test_samples_that_a_machine_was_fitted_to_do_not_validate_it(machine: Machine) -> None:
    with pytest.raises(ArgumentError, match="fitted to the samples of seed 1"):
        compare(machine, seed=1, samples=1)


def test_too_small_a_limit_of_bytes_is_refused() -> None:
    with pytest.raises(ArgumentError, match="must be more than 65536"):
        draw(1, 1, threads=1, max_total=1)


def test_an_error_is_relative_to_the_measured_time() -> None:
    sample = draw(1, 1, threads=1)[0]
    compared = [Compared(sample, 100.0, modelled) for modelled in (50.0, 90.0, 100.0, 130.0, 300.0)]
    assert [comparison.error_pct for comparison in compared] == pytest.approx(
        [-50, -10, 0, 30, 200]
    )
    errors = Errors.of("all", compared)
    assert errors.count == 5
    assert errors.median_abs == pytest.approx(30)
    assert errors.percentiles[50] == pytest.approx(0)
    assert [distribution.name for distribution in distributions(compared)] == [
        "all",
        sample.options["technique"],
        sample.problem.collective,
    ]


def test_calibrate_writes_a_machine_that_validate_accepts(tmp_path: Path) -> None:
    file, rows = tmp_path / "mine.toml", tmp_path / "rows.jsonl"
    run_cli(
        "model",
        "calibrate",
        str(file),
        "--samples",
        "50",
        "--max-total",
        "1MiB",
        "--force",
        "--json",
        str(rows),
    )
    assert "; other programs used " in file.read_text()
    machine = load_machine(str(file))
    kinds = {constant.kind for constant in machine.constants.values()}
    assert {"measured", "fitted"} <= kinds
    assert machine.inherits == "emulated-host"
    assert "mux_us" not in file.read_text()
    timed = objects(rows.read_text())
    assert len(timed) == 50
    assert {name for row in timed for name in row} == fields_of("model calibrate")
    result = run_cli(
        "model",
        "validate",
        "--machine",
        str(file),
        "--samples",
        "5",
        "--max-total",
        "256KiB",
        "--json",
        "-",
    )
    compared = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(compared) == 5
    for row in compared:
        assert row["error_pct"] == pytest.approx(
            100 * (row["modelled_us"] / row["measured_us"] - 1)
        )
        assert row["machine"] == str(file)


def test_validate_separates_modelled_from_measured() -> None:
    text = run_cli("model", "validate", "--samples", "3", "--max-total", "256KiB").stdout
    assert "modelled" in text
    assert "measured here" in text
    text = run_cli("model", "validate", "--published").stdout
    assert text.index("fitted: published and modelled") < text.index(
        "not in the fit: published and modelled"
    )


def test_calibrate_refuses_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(info, "busy_cpus", lambda: 1.5)
    with pytest.raises(Error, match=r"other programs use 1\.5 CPUs .*--force"):
        calibrate("mine.toml", "mine")


def test_the_use_of_cpus_is_a_number_of_cpus() -> None:
    assert 0 <= info.busy_cpus(0.05) <= info.cpus()


def test_calibrate_refuses_files_that_it_cannot_write(tmp_path: Path) -> None:
    for name, words in (("mine.txt", ".toml"), ("none/mine.toml", "cannot write")):
        refused = CliRunner().invoke(app, ["model", "calibrate", str(tmp_path / name)])
        assert refused.exit_code == 2
        assert words in refused.stderr


def test_a_machine_without_the_hosts_instruction_set_is_refused(machine: Machine) -> None:
    constants = {
        name: constant
        for name, constant in machine.constants.items()
        if not name.startswith("isa.avx512")
    }
    if not DEFAULT_ISA.startswith("avx512"):
        pytest.skip("the host has no AVX-512")
    with pytest.raises(ArgumentError, match="no costs for avx512"):
        compare(Machine("small", "without AVX-512", constants), samples=40, max_total=1 << 17)
