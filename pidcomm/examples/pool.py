"""An allgather between processes through a memory pool, and an allreduce over their PEs through
another.

pidcomm hosts run -n 2 --pes 64 -- python examples/pool.py
"""

# [pool]
import numpy as np
from mpi4py import MPI

import pidcomm

comm = MPI.COMM_WORLD
name = comm.bcast(f"example-{comm.rank}-{MPI.Wtime():.0f}")
mine = np.arange(1000, dtype=np.int32) + 10000 * comm.rank
with pidcomm.pool.Pool(name, host=comm.rank, hosts=comm.size, bytes=1 << 20) as pool:
    offset = pool.allocate(comm.size * mine.nbytes)
    pool.write(offset + comm.rank * mine.nbytes, mine)
    pool.sync()  # all hosts have written
    everything = pool.read(offset, comm.size * mine.size, mine.dtype)

local = pidcomm.allocate(pes=64).hypercube(8, 8)
cube = pidcomm.hosts.connect(local, comm, transport="pool", pool_bytes=1 << 20)
x = np.arange(64 * 32, dtype=np.int32).reshape(64, 32) + 1000 * cube.host
y = cube.arrays.allreduce(x, "101")
# [end]

want = sum(
    np.arange(64 * 32).reshape(8, 8, 32).sum(axis=1) + 8000 * host for host in range(cube.hosts)
)
wrong = np.count_nonzero(y.reshape(8, 8, 32) != want[:, None, :])
wrong += np.count_nonzero(
    everything.reshape(comm.size, -1) != np.arange(1000) + 10000 * np.arange(comm.size)[:, None]
)
print(f"host {cube.host} of {cube.hosts}: {wrong} wrong elements")
cube.close()
local.pe_set.free()
raise SystemExit(int(wrong > 0))
