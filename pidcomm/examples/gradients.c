/* Adds two gradients of different types over 8 x 8 PEs. Loops on the host check the result. */
#include <pidcomm/buffer.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPes = 64, kWeights = 15, kCounts = 7 };

static float weights[kPes][kWeights], weight_sums[kPes][kWeights];
static int16_t counts[kPes][kCounts], count_sums[kPes][kCounts];

int main(void) {
  for (int i = 0; i < kPes * kWeights; ++i) weights[i / kWeights][i % kWeights] = (float)(i % 99);
  for (int i = 0; i < kPes * kCounts; ++i) counts[i / kCounts][i % kCounts] = (int16_t)(i % 99);

  struct dpu_set_t dpu_set;
  DPU_ASSERT(dpu_alloc(kPes, NULL, &dpu_set));
  /* [gradients] */
  const uint32_t axis_len[2] = {8, 8};
  pidcomm_hypercube *cube;
  PIDCOMM_CHECK(pidcomm_hypercube_create(dpu_set, 2, axis_len, &cube));
  pidcomm_buffer *w;
  PIDCOMM_CHECK(pidcomm_buffer_create(cube, "weights", kWeights, PIDCOMM_FLOAT32, &w));
  PIDCOMM_CHECK(pidcomm_buffer_write(cube, w, weights, sizeof weights)); /* row = PE */
  PIDCOMM_CHECK(pidcomm_buffer_run(cube, PIDCOMM_ALLREDUCE, "11", w, w, PIDCOMM_SUM));
  PIDCOMM_CHECK(pidcomm_buffer_read(cube, w, weight_sums, sizeof weight_sums));
  /* [end] */
  pidcomm_buffer *c;
  PIDCOMM_CHECK(pidcomm_buffer_create(cube, "counts", kCounts, PIDCOMM_INT16, &c));
  PIDCOMM_CHECK(pidcomm_buffer_write(cube, c, counts, sizeof counts));
  PIDCOMM_CHECK(pidcomm_buffer_run(cube, PIDCOMM_ALLREDUCE, "11", c, c, PIDCOMM_SUM));
  PIDCOMM_CHECK(pidcomm_buffer_read(cube, c, count_sums, sizeof count_sums));
  pidcomm_buffer_destroy(w);
  pidcomm_buffer_destroy(c);
  pidcomm_hypercube_destroy(cube);
  DPU_ASSERT(dpu_free(dpu_set));

  int wrong = 0;
  for (int i = 0; i < kWeights; ++i) {
    float sum = 0;
    for (int pe = 0; pe < kPes; ++pe) sum += weights[pe][i];
    for (int pe = 0; pe < kPes; ++pe) wrong += weight_sums[pe][i] != sum;
  }
  for (int i = 0; i < kCounts; ++i) {
    int sum = 0;
    for (int pe = 0; pe < kPes; ++pe) sum += counts[pe][i];
    for (int pe = 0; pe < kPes; ++pe) wrong += count_sums[pe][i] != (int16_t)sum;
  }
  printf("gradients of float and int16_t over %d PEs: %d sums wrong\n", kPes, wrong);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
