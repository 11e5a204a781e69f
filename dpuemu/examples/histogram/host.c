/* A program for the UPMEM SDK: every PE makes a histogram of its words, and the host checks it. */
#include <dpu.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPes = 64, kWords = 65536, kBytes = kWords * sizeof(uint32_t), kBins = 256 };

static uint32_t in[kPes][kWords], out[kPes][kBins];

int main(void) {
  struct dpu_set_t set, dpu;
  uint32_t pe, seed = 1, wrong = 0;
  DPU_ASSERT(dpu_alloc(kPes, NULL, &set));
  DPU_ASSERT(dpu_load(set, "kernel", NULL));
  for (uint32_t i = 0; i < kPes * kWords; ++i) {
    seed = seed * 1664525u + 1013904223u;
    in[i / kWords][i % kWords] = seed >> 24;
  }
  DPU_FOREACH(set, dpu, pe) DPU_ASSERT(dpu_prepare_xfer(dpu, in[pe]));
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "words", 0, kBytes, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  DPU_FOREACH(set, dpu, pe) DPU_ASSERT(dpu_prepare_xfer(dpu, out[pe]));
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "bins", 0, sizeof out[0], DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_free(set));
  for (pe = 0; pe < kPes; ++pe) {
    for (uint32_t i = 0; i < kWords; ++i) --out[pe][in[pe][i] % kBins];
    for (uint32_t bin = 0; bin < kBins; ++bin) wrong += out[pe][bin] != 0;
  }
  printf("%u bins on %u PEs, %u wrong\n", (uint32_t)kPes * kBins, (uint32_t)kPes, wrong);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
