"""Give damaged graphs, networks, logs and rows to their readers, as parsers.py does."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
from attack import Attack
from parsers import Reader, run

from pidcomm_studies.apps.dlrm import criteo
from pidcomm_studies.apps.graphs import read_graph
from pidcomm_studies.apps.mlp import Mlp
from pidcomm_studies.pictures.rows import read_rows

REFERENCE = Path(__file__).resolve().parents[3] / "pidcomm" / "bench" / "reference"


def npz() -> bytes:
    """Return a small network."""
    memory = io.BytesIO()
    np.savez(
        memory, w0=np.ones((4, 4), np.int32), w1=np.ones((4, 4), np.int32), x=np.ones(4, np.int32)
    )
    return memory.getvalue()


def make_readers() -> list[Reader]:
    """Return the readers of the studies."""
    graphs = [
        b"%%MatrixMarket matrix coordinate real general\n% comment\n3 3 2\n1 2 0.5\n3 1 1\n",
        b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n",
        b"# edges\n0 1\n1\t2\n7 0\n",
    ]
    clicks = [
        b"\t".join([b"1", *[b"5"] * criteo.NUMBERS, *[b"00ff00ff"] * criteo.CATEGORIES]) + b"\n"
    ] * 2
    rows = [path.read_bytes().splitlines(keepends=True)[0] for path in REFERENCE.glob("*.jsonl")]
    bomb = gzip.compress(bytes(1 << 24)) * 300  # 5 GB of zeros
    return [
        Reader(read_graph, ".txt", graphs),
        Reader(read_graph, ".txt.gz", [bomb, *([gzip.compress(graph) for graph in graphs] * 10)]),
        Reader(Mlp.load, ".npz", [npz()]),
        Reader(lambda path: read_rows([path]), ".jsonl", [*rows, b'{"shape": [8]}']),
        Reader(lambda path: criteo.read(path, 100), ".log", [b"".join(clicks), clicks[0]]),
    ]


if __name__ == "__main__":
    run(Attack(), make_readers())
