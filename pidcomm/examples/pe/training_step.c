/* The PE part of a training step of linear regression, between the collectives. Phase 0 computes
 * the gradient and the loss from all weights and this PE's samples. Phase 1 updates this PE's shard
 * of the weights from its shard of the gradient. */
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>

enum { kFeatures = 64, kSamples = 32, kShard = 8 };
__mram_noinit float samples[kSamples][kFeatures], targets[kSamples], weights[kFeatures];
__mram_noinit float gradient[kFeatures], loss[2], shard_of_weights[kShard];
__mram_noinit float shard_of_gradient[kShard];
__host uint32_t phase;
__host float rate; /* the learning rate divided by the number of all samples */

BARRIER_INIT(all, NR_TASKLETS);
__dma_aligned float x[kSamples][kFeatures], y[kSamples], error[kSamples];
__dma_aligned float w[kFeatures], g[kFeatures], squares[2];

static void find_gradient(void) {
  if (me() == 0) {
    mram_read(targets, y, sizeof y);
    mram_read(weights, w, sizeof w);
  }
  for (unsigned i = me(); i < kSamples; i += NR_TASKLETS) mram_read(samples[i], x[i], sizeof x[0]);
  barrier_wait(&all);
  for (unsigned i = me(); i < kSamples; i += NR_TASKLETS) {
    error[i] = -y[i];
    for (unsigned j = 0; j < kFeatures; j++) error[i] += x[i][j] * w[j];
  }
  barrier_wait(&all);
  for (unsigned j = me(); j < kFeatures; j += NR_TASKLETS) {
    g[j] = 0;
    for (unsigned i = 0; i < kSamples; i++) g[j] += error[i] * x[i][j];
  }
  barrier_wait(&all);
  if (me() != 0) return;
  squares[0] = 0;
  for (unsigned i = 0; i < kSamples; i++) squares[0] += error[i] * error[i];
  mram_write(g, gradient, sizeof g);
  mram_write(squares, loss, sizeof squares);
}

static void update_shard(void) {
  mram_read(shard_of_weights, w, sizeof(float) * kShard);
  mram_read(shard_of_gradient, g, sizeof(float) * kShard);
  for (unsigned j = 0; j < kShard; j++) w[j] -= rate * g[j];
  mram_write(w, shard_of_weights, sizeof(float) * kShard);
}

int main(void) {
  if (phase == 0) find_gradient();
  if (phase == 1 && me() == 0) update_shard();
  return 0;
}
