"""Run training steps of linear regression on 8 x 8 PEs with five collectives, and the same steps in
NumPy as a check.

Every PE has its own samples. To save memory, the weights are sharded along x: each of the 8 PEs of
a group keeps an eighth of the weights. A step gathers the weights, computes the gradients, sums
them shard by shard along x and then along y, and updates the shards. pe/training_step.c is the PE
program.
"""

import sys
from pathlib import Path

import numpy as np

import pidcomm

GRID, FEATURES, SAMPLES, STEPS, RATE = 8, 64, 32, 10, 0.2
PES, SHARD = GRID * GRID, FEATURES // GRID
F32 = np.float32

# Bytes from the start of the MRAM heap, as in pe/training_step.c.
TARGETS = 4 * SAMPLES * FEATURES
WEIGHTS = TARGETS + 4 * SAMPLES
GRADIENT = WEIGHTS + 4 * FEATURES
LOSS = GRADIENT + 4 * FEATURES
SHARD_OF_WEIGHTS = LOSS + 8
SHARD_OF_GRADIENT = SHARD_OF_WEIGHTS + 4 * SHARD

random = np.random.default_rng(1)
samples = random.standard_normal((PES * SAMPLES, FEATURES), dtype=F32)
targets = samples @ random.standard_normal(FEATURES, dtype=F32)

pes = pidcomm.allocate(pes=PES)
pes.load(Path(__file__).parent / "pe" / "training_step.c", tasklets=16)
pes.symbol("rate").write(F32(RATE / len(samples)))
cube = pes.hypercube(GRID, GRID)
# One group of all PEs: each receives its part of the samples.
cube.scatter("11", host=samples.reshape(1, -1))
cube.scatter("11", host=targets.reshape(1, -1), dst=TARGETS)
cube.broadcast("11", host=np.zeros((1, SHARD), F32), dst=SHARD_OF_WEIGHTS)


def launch(phase: int) -> None:
    """Run a part of the PE program."""
    pes.symbol("phase").write(np.uint32(phase))
    pes.launch()


losses = []
for _ in range(STEPS):
    # [step]
    cube.allgather("10", bytes=4 * FEATURES, src=SHARD_OF_WEIGHTS, dst=WEIGHTS)
    launch(phase=0)  # samples and weights -> gradient and loss
    cube.reduce_scatter(
        "10", bytes=4 * FEATURES, src=GRADIENT, dst=SHARD_OF_GRADIENT, dtype=F32, op="sum"
    )
    cube.allreduce(
        "01", bytes=4 * SHARD, src=SHARD_OF_GRADIENT, dst=SHARD_OF_GRADIENT, dtype=F32, op="sum"
    )
    launch(phase=1)  # gradient -> weights
    loss = cube.reduce("11", bytes=8, src=LOSS, dtype=F32, op="sum")[0, 0]
    # [end]
    losses.append(loss / len(samples))
weights = cube.read(count=SHARD, dtype=F32, offset=SHARD_OF_WEIGHTS).reshape(GRID, FEATURES)
pes.free()

expected, expected_losses = np.zeros(FEATURES), []
for _ in range(STEPS):
    errors = samples.astype(float) @ expected - targets
    expected_losses.append(np.mean(errors**2))
    expected -= RATE * (samples.T @ errors) / len(samples)
is_right = np.allclose(weights, expected, rtol=0, atol=1e-4) and np.allclose(
    losses, expected_losses, rtol=1e-4
)
verdict = "as in NumPy" if is_right else "NOT as in NumPy"
print(
    f"{STEPS} training steps on {GRID}x{GRID} PEs: loss {losses[0]:.2f} -> {losses[-1]:.4f},"
    f" {verdict}"
)
sys.exit(0 if is_right else 1)
