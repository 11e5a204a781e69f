"""The applications without PEs (apps/*/cpu.cpp)."""

import numpy as np
from numpy.typing import NDArray

def bfs(
    starts: NDArray[np.int64], targets: NDArray[np.uint32], source: int, is_symmetric: bool
) -> NDArray[np.int32]: ...
def cc(starts: NDArray[np.int64], targets: NDArray[np.uint32]) -> NDArray[np.uint32]: ...
