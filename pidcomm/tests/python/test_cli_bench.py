"""The commands that measure: bench and its ablation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from command_line import KEYS, RUN_KEYS, run
from typer.testing import CliRunner

import pidcomm
from pidcomm.bench import info as information
from pidcomm.bench import timing as benchmark
from pidcomm.bench.ablation import Assumed
from pidcomm.cli import app
from pidcomm.sizes import format_duration


def test_bench_rows_have_exactly_the_keys(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    command = (
        "bench all --shape 8x8 --bytes 64KiB --iters 2 --warmup 1 --coherence hardware --threads 2"
    )
    result = run(*command.split(), "--json", str(path))
    assert result.returncode == 0, result
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["collective"], row["technique"]) for row in rows] == [
        (name, technique) for name in pidcomm.COLLECTIVES for technique in benchmark.COMPARED
    ]
    for row in rows:
        assert list(row) == KEYS + RUN_KEYS
        assert (row["version"], row["hugepages"], row["sdk_flush"]) == (
            pidcomm.__version__,
            True,
            "once",
        )
        busy = row["machine"].pop("busy_cpus")
        assert 0 <= busy <= information.cpus()
        assert row["machine"] == {"cpu": information.cpu_name(), "cpus": information.cpus()}
        assert row["wrong"] == 0
        assert (row["source"], row["coherence"], row["threads"]) == ("measured", "hardware", 2)
        times = [row[f"t_{name}_us"] for name in ("min", "p25", "p50", "p75", "p99")]
        assert min(times) > 0
        assert times == sorted(times)
        assert row["limit_pct"] == pytest.approx(100 * row["bus_gb_s"] / row["limit_gb_s"])
        assert row["limit_copy_order"] in pidcomm.COPY_ORDERS
        assert 0 < row["outside_us"] < row["t_p50_us"]
        assert row["plan_us"] > 0
        assert (row["op"] is None) == (not pidcomm.COLLECTIVES[row["collective"]].takes_op)
    lines = result.stdout.splitlines()
    comments = [line for line in lines if line.startswith("#")]
    text = "\n".join(comments)
    for word in (
        pidcomm.__version__,
        "commit",
        "CPU",
        "ISA",
        "threads 2",
        "policy hardware",
        "geometry",
        "huge pages",
        "dpu_push_xfer",
        "includes the flushes",
        "hypercube made in",
        *pidcomm.COPY_ORDERS,
    ):
        assert word in text
    assert len(lines) == len(comments) + 1 + len(rows) + 1  # titles, and how many are wrong


def test_bench_runs_without_limit_and_without_huge_pages(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    command = "bench allreduce --shape 8x3 --bytes 4KiB --dtype float32 --op max --technique tile"
    options = "--iters 1 --warmup 0 --no-limit --hugepages off"
    result = run(*command.split(), *options.split(), "--json", str(path))
    assert result.returncode == 0, result
    assert "huge pages off" in result.stdout
    (row,) = map(json.loads, path.read_text().splitlines())
    assert row["limit_gb_s"] is row["limit_pct"] is row["limit_copy_order"] is None
    assert "includes the flushes" not in result.stdout
    assert "flushes of the emulated SDK: off" in result.stdout
    assert (row["dtype"], row["op"], row["shape"]) == ("float32", "max", "8x3")


@pytest.mark.parametrize(
    ("choice", "words"), [([], "once, before"), (["--sdk-flush", "stock"], "before and after")]
)
def test_bench_says_how_the_emulated_sdk_flushes(choice: list[str], words: str) -> None:
    command = "bench gather --shape 8x8 --bytes 4KiB --iters 1 --warmup 0 --coherence hardware"
    result = run(*command.split(), *choice)
    assert result.returncode == 0, result
    assert f"flushes of the emulated SDK: {words}" in result.stdout


def test_bench_fails_on_a_wrong_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_row(*_: Any, **__: Any) -> benchmark.Timed:
        fields = {**dict.fromkeys(KEYS, 1), "technique": "tile", "collective": "alltoall"}
        return benchmark.Timed([benchmark.Row(**fields)], np.ones((1, 1)))  # type: ignore[arg-type]

    def invoke(*arguments: str) -> Any:
        return CliRunner().invoke(app, list(arguments))

    monkeypatch.setattr("pidcomm.cli.bench.measure_rows", wrong_row)
    monkeypatch.setattr("pidcomm.bench.platform.configure", lambda **_: None)
    assert (
        invoke(
            "bench", "alltoall", "--shape", "8x8", "--bytes", "4KiB", "--technique", "tile"
        ).exit_code
        == 1
    )
    assert invoke("bench", "--quick", "--shape", "8x8", "--bytes", "4KiB").exit_code == 1


@pytest.mark.parametrize("sizes", [("--bytes", "8,64"), ("--sweep", "bytes=8,64")])
def test_bench_writes_json_alone_to_stdout(sizes: tuple[str, str]) -> None:
    arguments = (
        "--shape",
        "8x8",
        "--technique",
        "tile",
        "--json",
        "-",
        "--iters",
        "1",
        "--warmup",
        "3",
    )
    result = run("bench", "alltoall", "reduce", *arguments, *sizes)
    assert result.returncode == 0, result
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["collective"], row["bytes_per_pe"]) for row in rows] == [
        ("reduce", 8),
        ("alltoall", 64),
        ("reduce", 64),
    ]
    assert all(row["sdk_flush"] == "off" and row["speed_up"] is None for row in rows)
    assert "skipped: mask 10 of 8x8 selects 8 PEs; alltoall needs bytes (8)" in result.stderr


def test_bench_over_hosts_measures_every_size() -> None:
    arguments = "allreduce --shape 8 --mask 1 --technique tile --bytes 64,128 --hosts 2 --iters 1"
    result = run("bench", *arguments.split(), "--json", "-")
    assert result.returncode == 0, result
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["bytes_per_pe"] for row in rows] == [64, 128]


def test_bench_refuses_an_unwritable_file_before_it_measures(tmp_path: Path) -> None:
    result = run(
        "bench",
        "gather",
        "--shape",
        "8x8",
        "--bytes",
        "4KiB",
        "--json",
        str(tmp_path / "no" / "rows"),
    )
    assert result.returncode == 2
    assert "cannot write" in result.stderr
    assert result.stdout == ""


STEP_KEYS = [
    *("collective", "technique", "dtype", "op", "shape", "mask", "bytes_per_pe"),
    *(
        "host_us",
        "step_gain",
        "step_low",
        "step_high",
        "from_us",
        "work_us",
        "to_us",
        "outside_us",
        "bus_us",
        "host_memory_us",
        "dt_us",
        "modulation_us",
    ),
    *(
        "pe_us",
        "launches",
        "launch_us",
        "loads",
        "load_us",
        "total_us",
        "mram_bytes",
        "host_bytes",
        "pe_bytes",
    ),
    *("wrong", "source", "coherence", "threads", "isa"),
]


def test_ablation_times_the_steps_of_the_paper() -> None:
    command = (
        "bench --ablation alltoall reduce_scatter scatter --shape 8x8 --mask 10 --bytes 64KiB"
        " --iters 2 --json -"
    )
    result = run(*command.split(), "--launch-us", "7", "--load-us", "50")
    assert result.returncode == 0, result
    steps = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(list(step) == STEP_KEYS + RUN_KEYS for step in steps)
    techniques: dict[str, list[str]] = {}
    for step in steps:
        techniques.setdefault(step["collective"], []).append(step["technique"])
    assert techniques == {
        "alltoall": ["conventional", "pr", "pr+im", "pr+im+cm", "tile"],
        "reduce_scatter": [
            "conventional",
            "pr",
            "pr+im",
            "tile",
        ],  # int32: no cross-domain modulation
        "scatter": ["conventional", "tile"],  # pr as conventional, in-register modulation as tile
    }
    launches = {"alltoall": 2, "reduce_scatter": 1, "scatter": 0}
    total_bytes = 64 * 65536
    for step in steps:
        parts = ("outside_us", "bus_us", "host_memory_us", "modulation_us")
        assert step["host_us"] == pytest.approx(
            sum(step[part] for part in parts) + (step["dt_us"] or 0)
        )
        assert (step["dt_us"] is None) == (
            (step["collective"], step["technique"]) != ("alltoall", "pr+im")
        )
        assert (step["from_us"] + step["to_us"] > 0) == (
            step["technique"] in ("conventional", "pr")
        )
        reorders = launches[step["collective"]] if "pr" in step["technique"] else 0
        assert step["launches"] == reorders
        assert (step["launch_us"], step["loads"]) == (7 * reorders, 2 if reorders else 0)
        assert step["load_us"] == 50 * step["loads"]
        assert step["pe_bytes"] == 2 * reorders * total_bytes
        assert (step["pe_us"] > 0) == (reorders > 0)
        assert step["source"] == ("mixed" if reorders else "measured")
        assert step["total_us"] == pytest.approx(
            sum(step[part] for part in ("host_us", "pe_us", "launch_us", "load_us"))
        )
        assert step["wrong"] == 0
        if step["collective"] == "alltoall":
            staged = 4 if step["technique"] in ("conventional", "pr") else 0
            assert (step["mram_bytes"], step["host_bytes"]) == (
                2 * total_bytes,
                staged * total_bytes,
            )
    words = run(
        "bench", "--ablation", "alltoall", "--shape", "8x8", "--bytes", "8KiB", "--iters", "1"
    ).stdout
    launch = format_duration(1e-6 * Assumed().launch_us)
    assert f"a launch is assumed to take {launch}" in words
    assert [
        line.split()[1] for line in words.splitlines() if line.startswith("alltoall")
    ] == techniques["alltoall"]


def rows_of(result: Any) -> list[dict[str, str]]:
    """Return the rows of a printed table by column, without the op and the speed-up, which may
    be empty.
    """
    assert result.returncode == 0, result
    title, *lines, last = (line for line in result.stdout.splitlines() if not line.startswith("#"))
    assert last == "every element compared with the oracle: 0 wrong"
    names = title.replace("limit by", "limit_by").split()
    return [dict(zip(names, line.split(), strict=True)) for line in lines]


QUICK = ("--iters", "1", "--warmup", "0", "--wide")


def test_bench_sweeps_over_bytes_and_pes_and_names_skipped_rows() -> None:
    sweeps = ("--sweep", "bytes=256..1KiB", "--sweep", "pes=64,128", "--mask", "11")
    result = run("bench", "alltoall", "reduce", *sweeps, "--technique", "tile", *QUICK)
    assert [(row["collective"], row["shape"], row["bytes/PE"]) for row in rows_of(result)] == [
        ("reduce", "8x8", "256"),
        ("alltoall", "8x8", "512"),
        ("reduce", "8x8", "512"),
        ("alltoall", "8x8", "1024"),
        ("reduce", "8x8", "1024"),
        ("reduce", "16x8", "256"),
        ("reduce", "16x8", "512"),
        ("alltoall", "16x8", "1024"),
        ("reduce", "16x8", "1024"),
    ]
    for left_out in (
        "8x8 selects 64 PEs; alltoall needs bytes (256)",
        "16x8 selects 128 PEs; alltoall needs bytes (256)",
        "16x8 selects 128 PEs; alltoall needs bytes (512)",
    ):
        assert result.stdout.count(f"# skipped: mask 11 of {left_out}") == 1
    for shape in ("64 PEs as 8x8", "128 PEs as 16x8"):
        for size in ("256 bytes", "512 bytes", "1 KiB"):
            assert f"# {shape}, {size} per PE, ISA {pidcomm.DEFAULT_ISA}" in result.stdout
    assert "# reduce         tile            6 rows, limit%" in result.stdout


def test_bench_covers_every_combination() -> None:
    lists = (
        "--shape",
        "8x8,4x4x4",
        "--mask",
        "all",
        "--dtype",
        "int8,float64",
        "--isa",
        "all",
        "--bytes",
        "512",
    )
    result = run("bench", "allreduce", *lists, *QUICK, "--no-limit", "--no-summary")
    isas = [name for name, isa in pidcomm.ISAS.items() if isa.is_available and name != "audit"]
    combinations = [
        (row["shape"], row["mask"], row["dtype"], row["technique"]) for row in rows_of(result)
    ]
    masks = {"8x8": ["10", "01", "11"], "4x4x4": ["100", "010", "110", "001", "101", "011", "111"]}
    assert combinations == [
        (shape, mask, dtype, technique)
        for shape in masks
        for _ in isas
        for mask in masks[shape]
        for dtype in ("int8", "float64")
        for technique in benchmark.COMPARED
    ]
    assert "summary" not in result.stdout
    for isa in isas:
        assert result.stdout.count(f"per PE, ISA {isa};") == 2
    result = run(
        "bench",
        "gather",
        "--shape",
        "8x8,64",
        "--mask",
        "1,01",
        "--bytes",
        "512",
        *QUICK,
        "--summary",
    )
    assert {(row["shape"], row["mask"]) for row in rows_of(result)} == {("8x8", "01"), ("64", "1")}
    assert "# gather         tile            2 rows, limit%" in result.stdout


def test_bench_skips_rows_that_do_not_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 1 << 20)
    monkeypatch.setattr("pidcomm.bench.platform.configure", lambda **_: None)
    arguments = ["bench", "gather", "--shape", "8x8", "--technique", "tile", *QUICK, "--sweep"]
    result = CliRunner().invoke(app, [*arguments, "bytes=1KiB,64KiB"])
    assert [row["bytes/PE"] for row in rows_of(_Result(result.exit_code, result.output))] == [
        "1024"
    ]
    assert "# skipped: 64 KiB for each of 64 PEs need about " in result.output
    result = CliRunner().invoke(app, [*arguments, "bytes=64KiB"])
    assert result.exit_code == 2


class _Result(NamedTuple):
    returncode: int
    stdout: str
