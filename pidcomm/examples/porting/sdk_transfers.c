/* Communication written by hand with the SDK's transfers, and the calls that replace it. Both
 * versions run on 128 PEs as 16 x 8 and must produce equal arrays. docs/porting.md shows parts of
 * both. Build: cc -std=c11 sdk_transfers.c -lpidcomm -ldpuemu */
#include <pidcomm/pidcomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kX = 16,
  kY = 8,
  kPes = kX * kY,
  kWords = 1024,
  kBytes = kWords * sizeof(int32_t),
  kTo = kBytes
};

static struct dpu_set_t set;
static pidcomm_hypercube *cube;
static int32_t in[kPes * kWords], out_by_hand[kPes * kWords], out[kPes * kWords],
    staging[kPes * kWords];
static int passed, failed;

static void compare(const char *what) {
  const int is_equal = memcmp(out_by_hand, out, sizeof out) == 0;
  is_equal ? ++passed : ++failed;
  if (!is_equal) printf("FAILED %s\n", what);
  memset(out, 0, sizeof out);
}

static void transfer(dpu_xfer_t direction, uint32_t offset, int32_t *rows, size_t row_bytes) {
  struct dpu_set_t dpu;
  uint32_t i;
  DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, (char *)rows + i * row_bytes));
  DPU_ASSERT(dpu_push_xfer(set, direction, DPU_MRAM_HEAP_POINTER_NAME, offset, row_bytes,
                           DPU_XFER_DEFAULT));
}

static void allreduce_by_hand(void) {
  transfer(DPU_XFER_FROM_DPU, 0, staging, kBytes);
  for (int y = 0; y < kY; ++y) {
    int32_t *first = staging + y * kX * kWords;
    for (int x = 1; x < kX; ++x)
      for (int i = 0; i < kWords; ++i) first[i] += first[x * kWords + i];
    for (int x = 1; x < kX; ++x) memcpy(first + x * kWords, first, kBytes);
  }
  transfer(DPU_XFER_TO_DPU, kTo, staging, kBytes);
}

static void allreduce(void) {
  PIDCOMM_CHECK(pidcomm_allreduce(cube, "10", kBytes, 0, kTo, PIDCOMM_INT32, PIDCOMM_SUM));
}

static void alltoall_by_hand(void) {
  static int32_t sorted[kPes * kWords];
  enum { kBlockWords = kWords / kY };
  transfer(DPU_XFER_FROM_DPU, 0, staging, kBytes);
  for (int x = 0; x < kX; ++x)
    for (int p = 0; p < kY; ++p)
      for (int q = 0; q < kY; ++q)
        memcpy(sorted + (x + kX * q) * kWords + p * kBlockWords,
               staging + (x + kX * p) * kWords + q * kBlockWords, kBlockWords * sizeof(int32_t));
  transfer(DPU_XFER_TO_DPU, kTo, sorted, kBytes);
}

static void alltoall(void) {
  PIDCOMM_CHECK(pidcomm_alltoall(cube, "01", kBytes, 0, kTo, PIDCOMM_INT32));
}

/* Runs both versions on the rows of `in`. The hand-written transfers use the order of DPU_FOREACH,
 * the calls use PE order. */
static void run_both(const char *what, void (*by_hand)(void), void (*by_call)(void)) {
  transfer(DPU_XFER_TO_DPU, 0, in, kBytes);
  by_hand();
  transfer(DPU_XFER_FROM_DPU, kTo, out_by_hand, kBytes);
  PIDCOMM_CHECK(pidcomm_write(cube, 0, kBytes, in));
  by_call();
  PIDCOMM_CHECK(pidcomm_read(cube, kTo, kBytes, out));
  compare(what);
}

/* An SDK transfer that stays, in PE order. */
static void transfer_in_pe_order(void) {
  struct dpu_set_t dpu;
  uint32_t pe;
  PIDCOMM_FOREACH_PE(cube, dpu, pe) DPU_ASSERT(dpu_prepare_xfer(dpu, in + pe * kWords));
  DPU_ASSERT(
      dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, kBytes, DPU_XFER_DEFAULT));
}

/* Returns whether PE order differs from the order of DPU_FOREACH. A program that stores its data in
 * the order of DPU_FOREACH gets the wrong groups. */
static int groups_differ(void) {
  struct dpu_set_t dpu;
  uint32_t i, moved = 0;
  DPU_FOREACH(set, dpu, i) moved += pidcomm_pe_set(cube, i).dpu != dpu.dpu;
  return moved != 0;
}

int main(void) {
  DPU_ASSERT(dpu_alloc(kPes, NULL, &set));
  const uint32_t axis_len[2] = {16, 8};
  PIDCOMM_CHECK(pidcomm_hypercube_create(set, 2, axis_len, &cube));
  for (uint32_t i = 0; i < kPes * kWords; ++i) in[i] = (int32_t)(i * 2654435761u >> 8);

  run_both("allreduce", allreduce_by_hand, allreduce);
  run_both("alltoall", alltoall_by_hand, alltoall);

  transfer_in_pe_order();
  PIDCOMM_CHECK(pidcomm_read(cube, 0, kBytes, out));
  memcpy(out_by_hand, in, sizeof in);
  compare("transfer in PE order");

  groups_differ() ? ++passed : ++failed;
  pidcomm_hypercube_destroy(cube);
  DPU_ASSERT(dpu_free(set));
  printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
