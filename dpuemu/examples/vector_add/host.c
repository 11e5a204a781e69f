/* A program for the UPMEM SDK, without pidcomm: every PE adds its two vectors, and the host checks
 * every sum. */
#include <dpu.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPes = 128, kWords = 4096, kBytes = kWords * sizeof(uint32_t) };

static uint32_t in[2][kPes][kWords], out[kPes][kWords];

int main(void) {
  struct dpu_set_t set, dpu;
  uint32_t pe, words = kWords, wrong = 0;
  DPU_ASSERT(dpu_alloc(kPes, NULL, &set));
  DPU_ASSERT(dpu_load(set, "kernel", NULL));
  DPU_ASSERT(dpu_broadcast_to(set, "words", 0, &words, sizeof words, DPU_XFER_DEFAULT));
  for (int vector = 0; vector < 2; ++vector) {
    for (uint32_t i = 0; i < kPes * kWords; ++i)
      in[vector][i / kWords][i % kWords] = (i + 1) * (vector == 0 ? 2654435761u : 40503u);
    DPU_FOREACH(set, dpu, pe) DPU_ASSERT(dpu_prepare_xfer(dpu, in[vector][pe]));
    DPU_ASSERT(
        dpu_push_xfer(set, DPU_XFER_TO_DPU, vector == 0 ? "a" : "b", 0, kBytes, DPU_XFER_DEFAULT));
  }
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  DPU_FOREACH(set, dpu, pe) DPU_ASSERT(dpu_prepare_xfer(dpu, out[pe]));
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "c", 0, kBytes, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_free(set));
  for (pe = 0; pe < kPes; ++pe) {
    for (uint32_t i = 0; i < kWords; ++i) wrong += out[pe][i] != in[0][pe][i] + in[1][pe][i];
  }
  printf("%u sums on %u PEs, %u wrong\n", (uint32_t)kPes * kWords, (uint32_t)kPes, wrong);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
