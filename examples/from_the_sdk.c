/* AllReduce over all PEs with the SDK alone, and with pidcomm in one call: for programs that are to leave the former behind.
 *
 * Both add the rows of 128 PEs; the results are compared with each other and with a loop. */
#include <pidcomm/pidcomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "require.h"

enum { kPes = 128, kWords = 1024, kBytes = kWords * sizeof(uint32_t) };

static uint32_t input[kPes][kWords], by_sdk[kPes][kWords], by_pidcomm[kPes][kWords], expected[kWords];

static void push(struct dpu_set_t dpu_set, uint32_t rows[kPes][kWords], dpu_xfer_t direction) {
  struct dpu_set_t dpu;
  uint32_t i;
  DPU_FOREACH(dpu_set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, rows[i])); }
  DPU_ASSERT(dpu_push_xfer(dpu_set, direction, DPU_MRAM_HEAP_POINTER_NAME, 0, kBytes, DPU_XFER_DEFAULT));
}

int main(void) {
  for (uint32_t i = 0; i < kPes * kWords; ++i) {
    input[i / kWords][i % kWords] = i * 2654435761u;
    expected[i % kWords] += i * 2654435761u;
  }
  struct dpu_set_t dpu_set;
  DPU_ASSERT(dpu_alloc(kPes, NULL, &dpu_set));

  push(dpu_set, input, DPU_XFER_TO_DPU);
  /* [sdk] */
  push(dpu_set, by_sdk, DPU_XFER_FROM_DPU); /* every row through host memory, twice */
  for (uint32_t pe = 1; pe < kPes; ++pe) {
    for (uint32_t i = 0; i < kWords; ++i) by_sdk[0][i] += by_sdk[pe][i];
  }
  for (uint32_t pe = 1; pe < kPes; ++pe) memcpy(by_sdk[pe], by_sdk[0], kBytes);
  push(dpu_set, by_sdk, DPU_XFER_TO_DPU);
  /* [end] */
  push(dpu_set, by_sdk, DPU_XFER_FROM_DPU);

  push(dpu_set, input, DPU_XFER_TO_DPU);
  /* [pidcomm] */
  uint32_t axis_len[1] = {kPes};
  hypercube_manager *manager;
  require(pidcomm_hypercube_create(dpu_set, 1, axis_len, &manager));
  require(pidcomm_allreduce(manager, "1", kBytes, 0, 0, PIDCOMM_UINT32, PIDCOMM_SUM));
  /* [end] */
  push(dpu_set, by_pidcomm, DPU_XFER_FROM_DPU);

  /* [foreach_pe] */
  struct dpu_set_t dpu;
  uint32_t pe;
  static uint32_t in_pe_order[kPes][kWords]; /* row = PE; DPU_FOREACH has another order */
  PIDCOMM_FOREACH_PE(manager, dpu, pe) { DPU_ASSERT(dpu_prepare_xfer(dpu, in_pe_order[pe])); }
  DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, kBytes, DPU_XFER_DEFAULT));
  /* [end] */
  pidcomm_hypercube_destroy(manager);
  DPU_ASSERT(dpu_free(dpu_set));

  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kPes * kWords; ++i) {
    const uint32_t sum = expected[i % kWords];
    wrong += by_sdk[i / kWords][i % kWords] != sum || by_pidcomm[i / kWords][i % kWords] != sum;
    wrong += in_pe_order[i / kWords][i % kWords] != sum;
  }
  printf("allreduce over %d PEs with the SDK and with pidcomm: %u of %d words wrong\n", kPes, wrong, kPes * kWords);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
