"""An allreduce over the PEs of several hosts.

pidcomm hosts run -n 2 --pes 64 -- python examples/hosts.py
"""

# [hosts]
import numpy as np
from mpi4py import MPI

import pidcomm

pes = pidcomm.allocate(pes=64)
local = pes.hypercube(8, 8)  # the PEs of this host
cube = pidcomm.hosts.connect(local, MPI.COMM_WORLD)  # 8x8xhosts
x = np.arange(64 * 32, dtype=np.int32).reshape(64, 32) + 1000 * cube.host
y = cube.arrays.allreduce(x, "101")  # along x, and over the hosts
# [end]

want = sum(
    np.arange(64 * 32).reshape(8, 8, 32).sum(axis=1) + 8000 * host for host in range(cube.hosts)
)
wrong = np.count_nonzero(y.reshape(8, 8, 32) != want[:, None, :])
print(f"host {cube.host} of {cube.hosts}: {wrong} wrong elements")
cube.close()
pes.free()
raise SystemExit(int(wrong > 0))
