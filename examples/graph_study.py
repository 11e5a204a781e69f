"""A study in cells, for editors and Jupyter (jupytext): how far apart people are in a made-up network, on 64 PEs.

Breadth-first search as an application of pidcomm.apps, with arrays in and out; checked against SciPy.
"""

# %% A graph of one's own: two arrays. Files and generators are read by pidcomm.apps.graphs.
import sys
import tempfile
from pathlib import Path

import numpy as np
from pidcomm.apps import compare, picture
from pidcomm.apps.bfs import BreadthFirstSearch
from pidcomm.apps.graphs import Graph
from pidcomm.apps.report import Conditions, rows_of
from pidcomm.evaluation.pictures import style

random = np.random.default_rng(1)
people, friendships = 4096, 12000
ends = random.integers(0, people, (2, friendships), np.uint32)
graph = Graph("friends", people, sources=ends[0], targets=ends[1])

# %% Search from person 0 with three techniques. Each result has been compared with that of the CPUs.
problem = BreadthFirstSearch(graph, source=0)
runs = list(compare(problem, pes=64, techniques=["conventional", "pr+im+cm", "tile"]))

# %% What came out: an array of levels.
levels = runs[-1].result
found = levels[levels >= 0]
histogram = np.bincount(found)

# %% The same with SciPy.
from scipy.sparse.csgraph import shortest_path  # noqa: E402

expected = shortest_path(graph.undirected().matrix(), unweighted=True, indices=0)
wrong = np.count_nonzero(np.where(np.isinf(expected), -1, expected) != levels) + sum(run.wrong for run in runs)

# %% Where the time goes: rows as `pidcomm app` prints them, and its picture. Kernels are modelled, the rest measured.
rows = rows_of(runs, Conditions(iters=3, options={}))  # `pidcomm app` also finds out whether speed-ups are fair
shares = {row.technique: f"{100 - row.kernel_pct:.0f}%" for row in rows}
with tempfile.TemporaryDirectory() as folder:
    style.save(picture.draw(rows), Path(folder) / "bfs.svg")

# %%
most = int(histogram.argmax())
print(
    f"{len(found)} of {people} people within {len(histogram) - 1} steps, most {most} away; {wrong} levels wrong; "
    f"time in collectives: {shares}"
)
sys.exit(1 if wrong else 0)
