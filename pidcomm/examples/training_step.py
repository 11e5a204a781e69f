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
PES = GRID * GRID
F32 = np.float32

random = np.random.default_rng(1)
samples = random.standard_normal((PES * SAMPLES, FEATURES), dtype=F32)
targets = samples @ random.standard_normal(FEATURES, dtype=F32)

pes = pidcomm.allocate(pes=PES)
pes.load(Path(__file__).parent / "pe" / "training_step.c", tasklets=16)
pes.symbol("rate")[...] = RATE / len(samples)
cube = pes.hypercube(GRID, GRID)
weights, gradient, loss = (pes.symbol(name) for name in ("weights", "gradient", "loss"))
shard_of_weights, shard_of_gradient = (
    pes.symbol("shard_of_weights"),
    pes.symbol("shard_of_gradient"),
)
# One group of all PEs: each receives its part of the samples.
cube.scatter(samples.reshape(1, -1), "11", out=pes.symbol("samples"))
cube.scatter(targets.reshape(1, -1), "11", out=pes.symbol("targets"))
shard_of_weights[:] = 0


def launch(phase: int) -> None:
    """Run a part of the PE program."""
    pes.symbol("phase")[...] = phase
    pes.launch()


losses = []
for _ in range(STEPS):
    # [step]
    cube.allgather(shard_of_weights, "10", out=weights)
    launch(phase=0)  # samples and weights -> gradient and loss
    cube.reduce_scatter(gradient, "10", op="sum", out=shard_of_gradient)
    cube.allreduce(shard_of_gradient, "01", op="sum", out=shard_of_gradient)
    launch(phase=1)  # gradient -> weights
    losses.append(cube.reduce(loss, "11", op="sum")[0, 0] / len(samples))
    # [end]
trained = shard_of_weights.get().reshape(GRID, FEATURES)
pes.free()

expected, expected_losses = np.zeros(FEATURES), []
for _ in range(STEPS):
    errors = samples.astype(float) @ expected - targets
    expected_losses.append(np.mean(errors**2))
    expected -= RATE * (samples.T @ errors) / len(samples)
is_right = np.allclose(trained, expected, rtol=0, atol=1e-4) and np.allclose(
    losses, expected_losses, rtol=1e-4
)
verdict = "as in NumPy" if is_right else "NOT as in NumPy"
print(
    f"{STEPS} training steps on {GRID}x{GRID} PEs: loss {losses[0]:.2f} -> {losses[-1]:.4f},"
    f" {verdict}"
)
sys.exit(0 if is_right else 1)
