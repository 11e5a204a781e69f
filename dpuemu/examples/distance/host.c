/* A program for the UPMEM SDK: every PE sums the distances of its pairs of words, and the host
 * checks the sums. */
#include <dpu.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPes = 64, kWords = 65536, kBytes = kWords * sizeof(uint32_t), kTasklets = 16 };

static uint32_t a[kPes][kWords], b[kPes][kWords], sums[kPes][kTasklets];

static void write_all(struct dpu_set_t set, const char *symbol, uint32_t words[kPes][kWords]) {
  struct dpu_set_t dpu;
  uint32_t pe;
  DPU_FOREACH(set, dpu, pe) DPU_ASSERT(dpu_prepare_xfer(dpu, words[pe]));
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, symbol, 0, kBytes, DPU_XFER_DEFAULT));
}

int main(void) {
  struct dpu_set_t set, dpu;
  uint32_t pe, seed = 1, wrong = 0;
  DPU_ASSERT(dpu_alloc(kPes, NULL, &set));
  DPU_ASSERT(dpu_load(set, "kernel", NULL));
  for (uint32_t i = 0; i < kPes * kWords; ++i) {
    seed = seed * 1664525u + 1013904223u;
    a[i / kWords][i % kWords] = seed >> 24;
    b[i / kWords][i % kWords] = seed >> 16 & 255;
  }
  write_all(set, "a", a);
  write_all(set, "b", b);
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  DPU_FOREACH(set, dpu, pe) DPU_ASSERT(dpu_prepare_xfer(dpu, sums[pe]));
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "sums", 0, sizeof sums[0], DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_free(set));
  for (pe = 0; pe < kPes; ++pe) {
    uint32_t rest = 0;
    for (uint32_t i = 0; i < kTasklets; ++i) rest += sums[pe][i];
    for (uint32_t i = 0; i < kWords; ++i)
      rest -= a[pe][i] > b[pe][i] ? a[pe][i] - b[pe][i] : b[pe][i] - a[pe][i];
    wrong += rest != 0;
  }
  printf("%u sums, %u wrong\n", (uint32_t)kPes, wrong);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
