/* The calls that replace the calls of the published PID-Comm artifact, on 64 PEs as 8 x 4 x 2.
 * Loops check the results. docs/porting.md lists the calls of both;
 * artifact/tests/test_artifact_program.c has the artifact's calls. Build: cc -std=c11
 * from_artifact.c -lpidcomm -ldpuemu */
#include <pidcomm/pidcomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kX = 8,
  kY = 4,
  kZ = 2,
  kPes = kX * kY * kZ,
  kBytes = 256,
  kWords = kBytes / 4,
  kTarget = 4096
};

static int32_t in[kPes * kWords], out[kPes * kWords];
static int passed, failed;

static void expect(int is_right, const char *what) {
  is_right ? ++passed : ++failed;
  if (!is_right) printf("FAILED %s\n", what);
  memset(out, 0, sizeof out);
}

/* Word i of the sum, or of the maximum, over the PEs that differ from `pe` in y only. */
static int32_t reduced(uint32_t pe, uint32_t i, int is_max) {
  int32_t result = 0;
  for (uint32_t y = 0; y < kY; ++y) {
    const int32_t value = in[(pe % kX + kX * y + pe / (kX * kY) * kX * kY) * kWords + i];
    result = y == 0 || (is_max && value > result) ? value : is_max ? result : result + value;
  }
  return result;
}

int main(void) {
  for (uint32_t i = 0; i < kPes * kWords; ++i) in[i] = (int32_t)(i * 2654435761u >> 8) - 8000000;
  struct dpu_set_t dpu_set;
  pidcomm_hypercube *cube;
  const uint32_t axis_len[3] = {kX, kY, kZ};
  DPU_ASSERT(dpu_alloc(kPes, NULL, &dpu_set));
  PIDCOMM_CHECK(pidcomm_hypercube_create(dpu_set, 3, axis_len, &cube));

  PIDCOMM_CHECK(pidcomm_write(cube, 0, kBytes, in));
  PIDCOMM_CHECK(
      pidcomm_reduce_scatter(cube, "010", kBytes, 0, kTarget, PIDCOMM_INT32, PIDCOMM_SUM));
  PIDCOMM_CHECK(pidcomm_read(cube, kTarget, kBytes / kY, out));
  int wrong = 0;
  for (uint32_t pe = 0; pe < kPes; ++pe)
    for (uint32_t i = 0; i < kWords / kY; ++i)
      wrong += out[pe * (kWords / kY) + i] != reduced(pe, pe / kX % kY * (kWords / kY) + i, 0);
  expect(wrong == 0, "reduce_scatter");

  PIDCOMM_CHECK(pidcomm_allreduce(cube, "010", kBytes, 0, kTarget, PIDCOMM_INT32, PIDCOMM_MAX));
  PIDCOMM_CHECK(pidcomm_read(cube, kTarget, kBytes, out));
  wrong = 0;
  for (uint32_t at = 0; at < kPes * kWords; ++at)
    wrong += out[at] != reduced(at / kWords, at % kWords, 1);
  expect(wrong == 0, "allreduce");

  PIDCOMM_CHECK(pidcomm_gather(cube, "111", kBytes, 0, out, sizeof out,
                               PIDCOMM_INT32)); /* row p of `out` is PE p */
  expect(memcmp(out, in, sizeof in) == 0, "gather");

  PIDCOMM_CHECK(pidcomm_broadcast(cube, "111", kBytes, in, kBytes, kTarget, PIDCOMM_INT32));
  PIDCOMM_CHECK(pidcomm_read(cube, kTarget, kBytes, out));
  wrong = 0;
  for (uint32_t pe = 0; pe < kPes; ++pe) wrong += memcmp(out + pe * kWords, in, kBytes) != 0;
  expect(wrong == 0, "broadcast");

  pidcomm_hypercube_destroy(cube);
  DPU_ASSERT(dpu_free(dpu_set));
  printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
