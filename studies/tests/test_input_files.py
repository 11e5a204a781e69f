"""Malformed, oversized and special input files of all readers: one sentence, little memory, and
an exit code.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pidcomm import ArgumentError, Error
from pidcomm.cli import app
from pidcomm.cli.app import ExitCode
from pidcomm.errors import MAX_SHOWN, FileContentError, shown
from pidcomm.files import require_file
from pidcomm_studies.apps import graphs
from pidcomm_studies.apps.dlrm import criteo

ROOT = Path(__file__).parents[2] / "pidcomm"
ROW = json.loads((ROOT / "bench" / "reference" / "collectives.jsonl").read_text().splitlines()[0])
MACHINE = (ROOT / "machines" / "emulated-host.toml").read_text()
MATRIX = "%%MatrixMarket matrix coordinate pattern general\n"
CLICK = ["0", *["1"] * 13, *["a"] * 26]
DIGITS = "9" * 5000

COMMANDS = {  # the command of each reader, and the suffix of its files
    "graph": (["app", "bfs", "--pes", "8", "--data"], ".txt"),
    "packed graph": (["app", "bfs", "--pes", "8", "--data"], ".gz"),
    "packed clicks": (["app", "dlrm", "--pes", "8", "--data"], ".gz"),
    "packed bags": (["app", "embedding", "--pes", "8", "--data"], ".gz"),
    "polynomials": (["app", "ntt", "--pes", "8", "--data"], ".npz"),
    "clicks": (["app", "dlrm", "--pes", "8", "--data"], ".log"),
    "arrays": (["app", "mlp", "--pes", "8", "--data"], ".npz"),
    "features": (["app", "gnn", "--quick", "--pes", "8", "--features-data"], ".npy"),
    "matrix": (["app", "gnn", "--quick", "--pes", "8", "--features-data"], ".npz"),
    "machine": (["model", "predict", "gather", "--machine"], ".toml"),
    "rows": (["plot", "--out", "x.svg"], ".jsonl"),
    "report": (["report", "x.html", "--from"], ".jsonl"),
}


def row(**changes: object) -> str:
    """Return a row of a benchmark as a JSON line."""
    return json.dumps({**ROW, **changes})


def click(**changes: str) -> str:
    """Return a click; field_3="x" changes field 3."""
    return (
        "\t".join(changes.get(f"field_{place}", field) for place, field in enumerate(CLICK)) + "\n"
    )


def machine(value: str) -> str:
    """Return the description of a machine whose first constant has another value."""
    return re.sub(r"value = [^,]+,", lambda _: f"value = {value},", MACHINE, count=1)


def archive(**arrays: bytes) -> bytes:
    """Return a packed .npz file of files with the given bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in arrays.items():
            packed.writestr(f"{name}.npy", content)
    return file.getvalue()


def header(shape: str) -> bytes:
    """Return an .npy file without elements, whose header has the given shape."""
    text = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


X = header("(3,)") + np.arange(3, dtype=np.int32).tobytes()
CONTENTS: list[tuple[str, str | bytes, str]] = [
    ("graph", f"1 2\n{DIGITS} 3\n", ":2: vertex number '999"),
    ("graph", f"1 2\n-{DIGITS} 3\n", ":2: vertex number '-999"),
    ("graph", f"1 2\n{'x' * 5000} 3\n", ":2: vertex number 'xxx"),
    ("graph", MATRIX + f"{DIGITS} {DIGITS} 1\n", ":2: '999"),
    ("graph", MATRIX + f"3 3 1\n1 {DIGITS}\n", ":3: vertex number '999"),
    ("graph", MATRIX.replace("pattern", "x" * 5000), ":1: field 'xxx"),
    ("graph", "1 2\n" + "7" * (1 << 18), ":2: the line has 65536 bytes or more"),
    ("graph", gzip.compress(b"1 2\n"), ": the file is packed by gzip; its name must end in .gz"),
    (
        "packed graph",
        gzip.compress(b"1 2\n" + bytes(1 << 24)),
        ":2: the line has 65536 bytes or more",
    ),
    *(
        (reader, content, ": not valid gzip data: ")
        for reader in ("packed graph", "packed clicks", "packed bags")
        for content in (
            "1 2\n",
            gzip.compress(b"1 2\n")[:-8],
            b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 100,
        )
    ),
    ("polynomials", "1 2\n", ": not an .npz file"),
    ("polynomials", gzip.compress(b"1 2\n"), ": not an .npz file"),
    ("clicks", click() + click(field_2="1" * 5000), ":2: number 2 is '111"),
    ("clicks", click(field_39="a" * 5000), ":1: category 26 is 'aaa"),
    ("clicks", click(field_0="1" * 5000), ":1: label '111"),
    ("clicks", "1" * (1 << 18), ":1: the line has 65536 bytes or more"),
    ("clicks", "", ": the file is empty"),
    ("arrays", archive(w0=header("(1000000, 1000000)"), x=X), ": w0 cannot be read"),
    ("arrays", archive(w0=header("(" * 2000), x=X), ": w0 cannot be read"),
    ("arrays", archive(w0=header("(nan,)"), x=X), ": w0 cannot be read"),
    ("arrays", archive(w0=header(f"({'9' * 500},)"), x=X), ": w0 cannot be read"),
    ("arrays", archive(**{"y" * 5000: X, "x": X}), ": arrays must be w0, w1, ... without a gap"),
    ("arrays", archive(w0=X, x=X), ": w0 has shape"),
    ("arrays", b"PK\x03\x04" + bytes(100), ": not an .npz file"),
    ("features", header("(1000000, 1000000)"), ": not an .npy file"),
    ("features", gzip.compress(X), ": not an .npy file"),
    ("features", X, ": features of int32 and shape (3,)"),
    ("matrix", b"PK\x03\x04" + bytes(100), ": not an .npz file"),
    ("matrix", archive(feature=header("(1000000, 1000000)")), ": feature cannot be read"),
    ("matrix", archive(x=X), ": arrays shape, indptr, indices, data are missing"),
    ("machine", "a = " + "[" * 4000, ": not valid TOML for a machine"),
    (
        "machine",
        "title = 'x'\n" + ".".join(["a"] * 2000) + " = 1\n",
        ": not valid TOML for a machine",
    ),
    (
        "machine",
        "\n" + ".".join(["a"] * 30000) + " = 1\n",
        ":2: the line has 60003 characters; at most 4096",
    ),
    ("machine", machine(DIGITS), ":4: the line has 5093 characters; at most 4096"),
    ("machine", machine(str(10**400)), ": host.threads = an integer of 1329 bits is larger than"),
    ("machine", machine("nan"), ": machine constant host.threads is nan"),
    ("machine", "#" * (1 << 17), ": 131072 bytes; at most 65536 are possible"),
    ("machine", b"\xff\xfe", ": not a text file"),
    *(
        (reader, content, message)
        for reader in ("rows", "report")
        for content, message in (
            (row() + "\n" + "[" * 100000, ":2: no JSON object"),
            (row(threads=1) + "\n" + '{"a":' * 100000, ":2: no JSON object"),
            (row(bytes_per_pe=10**400), ":1: an integer of 1329 bits for 'bytes_per_pe'"),
            (row(t_p50_us=float("nan")), ":1: nan for 't_p50_us'"),
            (row(t_p50_us=1e300), ":1: 1e+300 for 't_p50_us'"),
            (row(threads=10**400), ":1: an integer of 1329 bits for 'threads'"),
            (row(threads=1).replace('"threads": 1', f'"threads": {DIGITS}'), ":1: no JSON object"),
            (row(isa="\ud800"), ":1: '\\ud800' for 'isa'"),
            (row(commit="\udfff"), ":1: '\\udfff' for 'commit'"),
            (row(version="v" * 5000), ":1: 'vvv"),
            (row(shape="8x" * 3000 + "8"), ":1: '8x8"),
            (row(shape="99999x99999"), ":1: shape 99999x99999 has 9999800001 PEs"),
            (row(shape="8y"), ":1: shape '8y'"),
            (row(machine={"cpu": ["x"]}), ":1: {'cpu': ['x']} for 'machine'"),
            (b"\x1f\x8b\x08", ": not a text file"),
        )
    ),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(command: list[str], code: ExitCode) -> str:
    """Run a command; return its error, one short sentence."""
    result = CliRunner().invoke(app, command)
    assert result.exit_code == code, result.output
    assert len(result.output.splitlines()) == 1
    assert len(result.output) < 600
    return result.output


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    CONTENTS,
    ids=[f"{reader} {message}" for reader, _, message in CONTENTS],
)
def test_invalid_content_is_one_sentence_with_file_and_line(
    reader: str, content: str | bytes, message: str
) -> None:
    command, suffix = COMMANDS[reader]
    path = Path(f"file{suffix}")
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert f"{path}{message}" in refused([*command, str(path)], ExitCode.WRONG_RESULT)


@pytest.mark.parametrize("reader", COMMANDS)
def test_files_that_are_no_regular_files_are_refused_and_not_opened(reader: str) -> None:
    command, suffix = COMMANDS[reader]
    pipe, directory, missing = (
        Path(f"{name}{suffix}") for name in ("pipe", "directory", "missing")
    )
    os.mkfifo(pipe)  # a reader that opens it waits forever
    directory.mkdir()
    for path, reason in (
        (pipe, "it is a pipe or device"),
        (directory, "it is a folder"),
        (missing, "No such file"),
    ):
        assert f"cannot read {path}: {reason}" in refused([*command, str(path)], ExitCode.USAGE)


MEMORY: dict[str, Callable[[], bytes]] = {
    "graph": lambda: b"1 2\n" * 100000,
    "packed graph": lambda: gzip.compress(b"\n" * (1 << 24)),
    "arrays": lambda: archive(x=X, w0=header("(2000, 2000)") + bytes(16000000)),
    "features": lambda: header("(2000, 2000)") + bytes(16000000),
    "matrix": lambda: archive(feature=header("(2000, 2000)") + bytes(16000000)),
    "rows": lambda: (row() + "\n").encode() * 1000,
    "report": lambda: (row() + "\n").encode() * 1000,
}


@pytest.mark.parametrize("reader", MEMORY)
def test_files_that_need_more_memory_than_is_available_are_not_read(
    reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 1 << 20)
    command, suffix = COMMANDS[reader]
    path = Path(f"file{suffix}")
    path.write_bytes(MEMORY[reader]())
    sentence = refused([*command, str(path)], ExitCode.USAGE)
    assert str(path) in sentence
    assert "of memory; 1 MiB are available" in sentence


def test_clicks_that_need_more_memory_than_is_available_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 1 << 20)
    Path("log").write_text(click() * 10000)
    assert len(criteo.read(Path("log"), 100).labels) == 100
    with pytest.raises(ArgumentError, match=r"log: .* lines need about"):
        criteo.read(Path("log"), 10000)


def test_a_graph_from_a_pipe_loses_no_edges_because_it_is_refused() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"1 2\n" * 100)
    os.close(writer)
    with pytest.raises(Error, match="it is a pipe or device; give a regular file"):
        graphs.read_graph(Path(f"/dev/fd/{reader}"))
    os.close(reader)


def test_leading_zeros_and_signs_of_vertex_numbers_are_read() -> None:
    Path("a.txt").write_text(f"+1 {'0' * 30}2\n")
    graph = graphs.read_graph(Path("a.txt"))
    assert graph.ids is not None
    assert graph.ids.tolist() == [1, 2]


def test_numpy_unpacks_no_file_that_the_other_readers_do_not_unpack() -> None:
    for name in ("a.xz", "a.bz2"):
        Path(name).write_text("0 1\n")
        assert graphs.read_graph(Path(name)).edges == 1


def test_a_path_with_a_null_character_cannot_be_read() -> None:
    with pytest.raises(Error, match="cannot read"):
        require_file(Path("a\0b"))


def test_quoted_values_are_short() -> None:
    assert shown("abc") == "'abc'"
    assert shown(10**18) == str(10**18)
    for value in ("x" * 10**6, 10**5000, ["x"] * 10**5):
        assert len(shown(value)) < 2 * MAX_SHOWN
    assert issubclass(FileContentError, ArgumentError)
