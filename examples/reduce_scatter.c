/* ReduceScatter along the y axis of a 4 x 8 x 2 hypercube, as in figure 10 of the PID-Comm paper.
 *
 * Every PE holds 2048 words. The 8 PEs that agree in x and z form a group; member q of it ends with block q (256 words) of the sum.
 * Build: cc -std=c11 reduce_scatter.c -lpidcomm -ldpuemu */
#include <pidcomm/pidcomm.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPes = 64, kWords = 2048, kMembers = 8, kBlockWords = kWords / kMembers };

int main(void) {
  struct dpu_set_t dpu_set;
  DPU_ASSERT(dpu_alloc(kPes, NULL, &dpu_set));
  /* [call] */
  uint32_t axis_len[3] = {4, 8, 2};
  hypercube_manager *manager = init_hypercube_manager(dpu_set, 3, axis_len);
  /* [end] */
  uint32_t *input = malloc(sizeof(uint32_t) * kPes * kWords);
  uint32_t *output = malloc(sizeof(uint32_t) * kPes * kBlockWords);
  if (manager == NULL || input == NULL || output == NULL) {
    fprintf(stderr, "set-up failed: %s\n", pidcomm_last_error());
    return EXIT_FAILURE;
  }
  for (uint32_t i = 0; i < kPes * kWords; ++i) input[i] = i * 2654435761u;

  int status = pidcomm_write(manager, 0, sizeof(uint32_t) * kWords, input);
  /* [call] */
  if (status == PIDCOMM_OK) status = pidcomm_reduce_scatter(manager, "010", 8192, 0, 0, sizeof(uint32_t), PIDCOMM_SUM);
  /* [end] */
  if (status == PIDCOMM_OK) status = pidcomm_read(manager, 0, sizeof(uint32_t) * kBlockWords, output);
  /* [error] */
  if (status != PIDCOMM_OK) {
    fprintf(stderr, "%s: %s\n", pidcomm_status_name(status), pidcomm_last_error());
    return EXIT_FAILURE;
  }
  /* [end] */

  uint32_t wrong = 0;
  for (uint32_t pe = 0; pe < kPes; ++pe) {
    const uint32_t x = pe % 4, y = pe / 4 % 8, z = pe / 32;
    for (uint32_t i = 0; i < kBlockWords; ++i) {
      uint32_t sum = 0;
      for (uint32_t member = 0; member < kMembers; ++member) sum += input[(x + 4 * member + 32 * z) * kWords + y * kBlockWords + i];
      wrong += output[pe * kBlockWords + i] != sum;
    }
  }
  free(input);
  free(output);
  pidcomm_hypercube_destroy(manager);
  DPU_ASSERT(dpu_free(dpu_set));
  printf("%d passed, %d failed\n", wrong == 0, wrong != 0);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
