/* The PE part of a training step of linear regression, between the collectives. Phase 0 computes
 * the gradient and the loss from all weights and this PE's samples. Phase 1 updates this PE's shard
 * of the weights from its shard of the gradient. training_step.py defines the offsets in the MRAM
 * heap. */
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>

enum { kFeatures = 64, kSamples = 32, kShard = 8 };
enum {
  kTargets = 4 * kSamples * kFeatures,
  kWeights = kTargets + 4 * kSamples,
  kGradient = kWeights + 4 * kFeatures
};
enum {
  kLoss = kGradient + 4 * kFeatures,
  kShardOfWeights = kLoss + 8,
  kShardOfGradient = kShardOfWeights + 4 * kShard
};

BARRIER_INIT(all, NR_TASKLETS);
__host uint32_t phase;
__host float rate; /* the learning rate divided by the number of all samples */
__dma_aligned float samples[kSamples][kFeatures], targets[kSamples], errors[kSamples];
__dma_aligned float weights[kFeatures], gradient[kFeatures], loss[2];

static void find_gradient(__mram_ptr uint8_t *heap) {
  if (me() == 0) {
    mram_read(heap + kTargets, targets, sizeof targets);
    mram_read(heap + kWeights, weights, sizeof weights);
  }
  for (unsigned i = me(); i < kSamples; i += NR_TASKLETS)
    mram_read(heap + i * sizeof samples[0], samples[i], sizeof samples[0]);
  barrier_wait(&all);
  for (unsigned i = me(); i < kSamples; i += NR_TASKLETS) {
    errors[i] = -targets[i];
    for (unsigned j = 0; j < kFeatures; j++) errors[i] += samples[i][j] * weights[j];
  }
  barrier_wait(&all);
  for (unsigned j = me(); j < kFeatures; j += NR_TASKLETS) {
    gradient[j] = 0;
    for (unsigned i = 0; i < kSamples; i++) gradient[j] += errors[i] * samples[i][j];
  }
  barrier_wait(&all);
  if (me() != 0) return;
  loss[0] = 0;
  for (unsigned i = 0; i < kSamples; i++) loss[0] += errors[i] * errors[i];
  mram_write(gradient, heap + kGradient, sizeof gradient);
  mram_write(loss, heap + kLoss, sizeof loss);
}

static void update_shard(__mram_ptr uint8_t *heap) {
  mram_read(heap + kShardOfWeights, weights, 4 * kShard);
  mram_read(heap + kShardOfGradient, gradient, 4 * kShard);
  for (unsigned j = 0; j < kShard; j++) weights[j] -= rate * gradient[j];
  mram_write(weights, heap + kShardOfWeights, 4 * kShard);
}

int main(void) {
  if (phase == 0) find_gradient(DPU_MRAM_HEAP_POINTER);
  if (phase == 1 && me() == 0) update_shard(DPU_MRAM_HEAP_POINTER);
  return 0;
}
