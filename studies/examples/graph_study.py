"""Study breadth-first search in a random network of people on 64 PEs, in cells for editors and
Jupyter (jupytext).

The application in pidcomm_studies.apps takes and returns arrays; SciPy checks the result.
"""

# %% Make a graph from two arrays. pidcomm_studies.apps.graphs also reads files and generates
# graphs.
import sys
import tempfile
from pathlib import Path

import numpy as np

from pidcomm_studies.apps import compare
from pidcomm_studies.apps.bfs import BreadthFirstSearch
from pidcomm_studies.apps.graphs import Graph
from pidcomm_studies.apps.report import Conditions, rows_of
from pidcomm_studies.pictures import applications as picture
from pidcomm_studies.pictures import style

random = np.random.default_rng(1)
people, friendships = 4096, 12000
ends = random.integers(0, people, (2, friendships), np.uint32)
graph = Graph("friends", people, sources=ends[0], targets=ends[1])

# %% Search from person 0 with three techniques. `compare` checks each result against the CPU
# reference.
problem = BreadthFirstSearch(graph, source=0)
runs = list(compare(problem, pes=64, techniques=["conventional", "pr+im+cm", "tile"]))

# %% The result is an array of levels.
levels = runs[-1].result
reached = levels[levels >= 0]
histogram = np.bincount(reached)

# %% Compute the same levels with SciPy.
from scipy.sparse.csgraph import shortest_path  # noqa: E402

expected = shortest_path(graph.undirected().matrix(), unweighted=True, indices=0)
wrong = np.count_nonzero(np.where(np.isinf(expected), -1, expected) != levels) + sum(
    run.wrong for run in runs
)

# %% Make rows and a picture as `pidcomm app` does. Kernel times are modelled, all other times are
# measured.
# `pidcomm app` also checks whether speed-ups are fair.
rows = rows_of(runs, Conditions(iters=3, options={}))
shares = {row.technique: f"{100 - row.kernel_pct:.0f}%" for row in rows}
with tempfile.TemporaryDirectory() as folder:
    style.save(picture.draw(rows), Path(folder) / "bfs.svg")

# %%
most = int(histogram.argmax())
print(
    f"{len(reached)} of {people} people within {len(histogram) - 1} steps, most {most} away; "
    f"{wrong} levels wrong; time in collectives: {shares}"
)
sys.exit(1 if wrong else 0)
