"""The commands that predict: their output says that it is modelled, and adds up."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import pidcomm
from pidcomm.cli import app
from pidcomm.model import KINDS, PHASES, load_machine, machine_names, predict
from pidcomm_studies.cli.model.predict import MATTERS
from pidcomm_studies.machines import load_pim_machine, pim_machines
from pidcomm_studies.models import advise, compare


def run(*arguments: str) -> Any:
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(arguments))


def lines(*arguments: str) -> list[dict[str, Any]]:
    """Return the JSON lines that a command writes."""
    result = run(*arguments, "--json", "-")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_model_lists_every_possible_technique_the_fastest_first() -> None:
    rows = lines(
        "model", "predict", "alltoall", "--shape", "8x8", "--bytes", "64KiB", "--machine", "isca24"
    )
    names = {"tile", "conventional", "baseline", "pr", "pr+im", "pr+im+cm"}
    assert {row["technique"] for row in rows} == names
    assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)
    for row in rows:
        assert (row["source"], row["machine"], row["carried_out"]) == (
            "modelled",
            "isca24",
            row["technique"],
        )
        assert list(row["phases"]) == list(PHASES)
        assert math.isclose(sum(row["phases"].values()), row["seconds"])
        assert row["algbw_gb_s"] == pytest.approx(64 * 64 * 1024 / row["seconds"] / 1e9)
        assert (
            row["replaces_program"]
            == row["technique"].startswith("pr")
            == (row["scratch_bytes"] > 0)
        )
    # A shape without a lane split: the techniques of the paper are left out.
    names = {
        row["technique"]
        for row in lines("model", "predict", "alltoall", "--shape", "6x4", "--bytes", "480")
    }
    assert names == {"tile", "conventional", "baseline"}


def test_model_says_that_it_is_modelled_and_names_the_machine() -> None:
    result = run(
        "model", "predict", "reduce", "--machine", "upmem-2560", "--technique", "tile,conventional"
    )
    assert (
        "modelled on upmem-2560: reduce sum of int32, 1 MiB per PE, 32x32 mask 10" in result.stdout
    )
    assert re.findall(
        r"^(tile|conventional) .* (?:combine|transpose) ", result.stdout, re.MULTILINE
    ) == [
        "tile",
        "conventional",
    ]
    machine = load_machine("upmem-2560")
    named = [
        name
        for name in machine.constants
        if f"{name} ({machine.constants[name].kind}) " in result.stdout
    ]
    assert named
    rows = lines(
        "model", "predict", "reduce", "--machine", "upmem-2560", "--technique", "tile,conventional"
    )
    shares = {
        name: abs(share)
        for row in rows
        for name, share in row["influences"].items()
        if abs(share) >= MATTERS
    }
    assumed = {name for name in shares if machine.constants[name].kind == "assumed"}
    said = re.findall(r"^assumed, of the constants that matter: (.*)$", result.stdout, re.MULTILINE)
    assert {name for names in said for name in names.split(", ")} == assumed


def test_options_of_model_match_the_options_of_predictions() -> None:
    row, *others = lines(
        *(
            "model",
            "predict",
            "allreduce",
            "--machine",
            "emulated-host",
            "--technique",
            "auto",
            "--threads",
            "1",
            "--isa",
            "avx2",
        ),
        *("--coherence", "hardware", "--dtype", "float32", "--op", "max", "--bytes", "96KiB"),
    )
    prediction = predict(
        *("allreduce", (32, 32), "10"),
        bytes=96 << 10,
        dtype="float32",
        op="max",
        threads=1,
        isa="avx2",
        coherence="hardware",
        technique="auto",
        machine="emulated-host",
    )
    assert others == []
    assert (row["seconds"], row["technique"], row["carried_out"]) == (
        prediction.seconds,
        "auto",
        prediction.technique,
    )
    assert (row["threads"], row["isa"], row["coherence"]) == (1, "avx2", "hardware")


def test_scratch_at_0_is_scratch_behind_the_windows() -> None:
    arguments = ("model", "predict", "allreduce", "--bytes", "64KiB")
    assert (
        lines(*arguments, "--scratch", "0")
        == lines(*arguments)
        == lines(*arguments, "--scratch", "128KiB")
    )


def test_a_machine_can_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "slow.toml"
    slow = load_machine("isca24").with_values({"call.us": 1e6})
    path.write_text(slow.to_toml())
    (row,) = lines(
        "model",
        "predict",
        "alltoall",
        "--bytes",
        "0",
        "--technique",
        "tile",
        "--machine",
        str(path),
    )
    assert (row["seconds"], row["machine"], row["influences"]) == (
        1,
        str(path),
        {"call.us": pytest.approx(1, rel=1e-3)},
    )
    shown = {row["constant"]: row for row in lines("model", "machines", str(path))}
    assert shown["call.us"]["value"] == 1e6
    assert shown["call.us"]["kind"] == "assumed"
    assert set(shown) == set(slow.constants)


def test_machines_are_listed_with_the_kinds_of_their_constants() -> None:
    rows = lines("model", "machines")
    assert [row["machine"] for row in rows] == sorted([*machine_names(), *pim_machines()])
    for row in rows:
        is_pim = row["machine"] in pim_machines()
        machine = (load_pim_machine if is_pim else load_machine)(row["machine"])
        assert (row["title"], row["pes"], row["isas"]) == (machine.title, machine.pes, machine.isas)
        assert sum(row[kind] for kind in KINDS) == len(machine.constants)
    text = run("model", "machines", "isca24", "--wide").stdout
    for name, constant in load_machine("isca24").constants.items():
        assert re.search(rf"^{re.escape(name)} .* {constant.kind}", text, re.MULTILINE)


def test_advice_is_the_same_as_in_python_and_says_that_it_is_modelled() -> None:
    arguments = (
        "--pes",
        "64",
        "--group",
        "8",
        "--bytes",
        "64KiB",
        "--machine",
        "isca24",
        "--top",
        "4",
    )
    rows = lines("model", "advise", "alltoall", *arguments)
    arrangements = advise("alltoall", pes=64, group=8, bytes=64 << 10, machine="isca24", top=4)
    assert [(row["seconds"], row["reason"], len(row["alike"])) for row in rows] == [
        (arrangement.prediction.seconds, arrangement.reason, len(arrangement.alike))
        for arrangement in arrangements
    ]
    for row in rows:
        assert (row["source"], row["machine"]) == ("modelled", "isca24")
        again = predict(
            "alltoall",
            [int(length) for length in row["shape"].split("x")],
            row["mask"],
            bytes=64 << 10,
            machine="isca24",
            technique=row["technique"],
            scratch=128 << 10,
        )
        assert again.seconds == row["seconds"]
    text = run("model", "advise", "alltoall", *arguments).stdout
    assert "modelled on isca24: alltoall of int32, 64 KiB per PE, 64 PEs in groups of 8" in text
    assert len([line for line in text.splitlines() if re.match(r"\d+(x\d+)* ", line)]) == 4


def test_more_pes_than_the_machine_has_are_reported() -> None:
    for arguments in (
        ["model", "predict", "alltoall", "--shape", "64x32"],
        ["model", "advise", "allreduce", "--pes", "2048"],
    ):
        assert "isca24 has 1024 PEs; for 2048" in run(*arguments, "--machine", "isca24").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["model", "predict", "alltoall", "--machine", "vax"],
            "machine 'vax' is unknown; use emulated-host",
        ),
        (["model", "predict", "alltoall", "--technique", "best"], "technique 'best' is unknown"),
        (
            [
                "model",
                "predict",
                "alltoall",
                "--technique",
                "tile,pr",
                "--shape",
                "6x4",
                "--bytes",
                "480",
            ],
            "6x4",
        ),
        (["model", "predict", "allsum"], "collective 'allsum' is unknown"),
        (["model", "machines", "vax"], "machine 'vax' is unknown"),
        (
            ["model", "advise", "alltoall", "--pes", "64", "--group", "7"],
            "groups of 7 PEs do not divide 64 PEs",
        ),
        (["model", "advise", "alltoall", "--pes", "64", "--bytes", "12"], "divisible by 64 * 8"),
        (["model", "advise", "allreduce", "--dtype", "int33"], "int33"),
        (["model", "advise", "gather", "--pes", "8388608"], "8388608"),
    ],
)
def test_invalid_arguments_are_errors_of_one_line(arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_plan_with_auto_shows_the_chosen_technique() -> None:
    result = run(
        "plan",
        "alltoall",
        "--shape",
        "8x8",
        "--bytes",
        "64KiB",
        "--technique",
        "auto",
        "--json",
        "-",
    )
    prediction = predict("alltoall", (8, 8), "10", bytes=64 << 10, technique="auto")
    assert json.loads(result.stdout)["technique"] == prediction.technique


def test_bench_shows_auto_and_the_chosen_technique(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    arguments = (
        "bench",
        "alltoall",
        "--shape",
        "8x8",
        "--bytes",
        "8KiB",
        "--iters",
        "1",
        "--warmup",
        "0",
        "--no-limit",
    )
    result = run(*arguments, "--technique", "auto,conventional", "--json", str(rows))
    assert result.exit_code == 0, result.output
    auto, conventional = (json.loads(line) for line in rows.read_text().splitlines())
    assert (auto["technique"], conventional["technique"]) == ("auto", "conventional")
    assert auto["carried_out"] in pidcomm.TECHNIQUES
    assert conventional["carried_out"] == "conventional"
    assert f" auto={auto['carried_out']} " in result.stdout
    picture = tmp_path / "bars.svg"
    assert run("plot", str(rows), "--out", str(picture)).exit_code == 0
    assert "auto" in picture.read_text()


@pytest.mark.parametrize("collective", ["alltoall", "scatter"])
def test_worth_compares_iterations_and_decides_by_the_gain(collective: str) -> None:
    case = ["model", "worth", collective, "--shape", "8x8", "--bytes", "64KiB"]
    for kernel_us in (0, 1e4, 1e9):
        by_hand, base, best = lines(*case, "--kernel-us", str(kernel_us))
        estimates = compare(collective, (8, 8), "10", bytes=64 << 10)  # type: ignore[arg-type]
        seconds = {item.prediction.technique: item.prediction.seconds for item in estimates}
        assert [by_hand["technique"], base["technique"]] == ["by hand", "conventional"]
        assert by_hand["seconds"] >= base["seconds"] == seconds["conventional"]
        assert best["seconds"] == seconds[best["technique"]]
        assert not best["scratch_bytes"]
        assert not best["replaces_program"]
        for row in (by_hand, base, best):
            assert row["source"] == "modelled"
            assert row["iteration_seconds"] == pytest.approx(1e-6 * kernel_us + row["seconds"])
            assert row["speed_up"] == pytest.approx(base["seconds"] / row["seconds"])
            assert row["is_worth"] == (best["iteration_speed_up"] >= 1.1)
        gain = base["iteration_seconds"] / best["iteration_seconds"]
        assert best["iteration_speed_up"] == pytest.approx(gain)
        words = run(*case, "--kernel-us", str(kernel_us)).output.splitlines()[-1]
        assert words.startswith("worth it (modelled)" if best["is_worth"] else "not worth it (mod")
        (low, _), (_, high) = sorted((base["interval"], best["interval"]), reverse=True)
        assert words.endswith("; the 95% intervals of the collectives overlap") == (high >= low)
    assert best["is_worth"] is False  # the PE programs take nearly all the time


def test_worth_refuses_sizes_and_times_without_a_meaning() -> None:
    for options in (["--bytes", "0"], ["--kernel-us", "nan"], ["--kernel-us", "-1"]):
        result = run("model", "worth", "alltoall", *options)
        assert (result.exit_code, result.stdout) == (2, "")
