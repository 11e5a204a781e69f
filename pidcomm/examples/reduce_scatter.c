/* ReduceScatter and AllGather along the y axis of a 4 x 8 x 2 hypercube: the calls of figure 10 of
 * the PID-Comm paper (ISCA 2024).
 *
 * Every PE holds 2048 words. The 8 PEs that agree in x and z form a group. After reduce_scatter
 * member q of a group holds block q (256 words) of the group's sum; allgather then gives all
 * members all blocks. Both results are compared with loops. */
#include <pidcomm/pidcomm.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPes = 64, kWords = 2048, kMembers = 8, kBlockWords = kWords / kMembers, kGathered = 16384 };

static uint32_t input[kPes][kWords], blocks[kPes][kBlockWords], sums[kPes][kWords];

/* Returns word i of the sum over the group of a PE. */
static uint32_t sum_of_group(uint32_t pe, uint32_t i) {
  const uint32_t x = pe % 4, z = pe / 32;
  uint32_t sum = 0;
  for (uint32_t y = 0; y < kMembers; ++y) sum += input[x + 4 * y + 32 * z][i];
  return sum;
}

int main(void) {
  for (uint32_t pe = 0; pe < kPes; ++pe) {
    for (uint32_t i = 0; i < kWords; ++i) input[pe][i] = (pe * kWords + i) * 2654435761u;
  }
  struct dpu_set_t dpu_set;
  DPU_ASSERT(dpu_alloc(kPes, NULL, &dpu_set));
  /* [reduce_scatter] */
  uint32_t axis_len[3] = {4, 8, 2};
  pidcomm_hypercube *cube;
  PIDCOMM_CHECK(pidcomm_hypercube_create(dpu_set, 3, axis_len, &cube));
  PIDCOMM_CHECK(pidcomm_write(cube, 0, sizeof input[0], input)); /* row = PE */
  PIDCOMM_CHECK(pidcomm_reduce_scatter(cube, "010", 8192, 0, 0, PIDCOMM_UINT32, PIDCOMM_SUM));
  PIDCOMM_CHECK(pidcomm_read(cube, 0, sizeof blocks[0], blocks));
  /* [end] */
  /* [check] */
  PIDCOMM_CHECK(pidcomm_allgather(cube, "010", 8192, 0, kGathered, PIDCOMM_UINT32));
  /* [end] */
  PIDCOMM_CHECK(pidcomm_read(cube, kGathered, sizeof sums[0], sums));
  pidcomm_hypercube_destroy(cube);
  DPU_ASSERT(dpu_free(dpu_set));

  uint32_t wrong = 0;
  for (uint32_t pe = 0; pe < kPes; ++pe) {
    const uint32_t y = pe / 4 % 8; /* the member index */
    for (uint32_t i = 0; i < kBlockWords; ++i)
      wrong += blocks[pe][i] != sum_of_group(pe, y * kBlockWords + i);
    for (uint32_t i = 0; i < kWords; ++i) wrong += sums[pe][i] != sum_of_group(pe, i);
  }
  printf("reduce_scatter and allgather along y of 4x8x2 PEs: %u of %u words wrong\n", wrong,
         kPes * (kBlockWords + kWords));
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
