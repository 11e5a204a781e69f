/* The headers and their macros in C11; called from transfer_test.cpp. */
#include <complex.h>
#include <dpu.h>
#include <dpu_config.h>
#include <dpu_error.h>
#include <dpu_log.h>
#include <dpu_log_internals.h>
#include <dpu_macro_utils.h>
#include <dpu_management.h>
#include <dpu_memory.h>
#include <dpu_probe.h>
#include <dpu_program.h>
#include <dpu_runner.h>
#include <dpu_transfer_matrix.h>
#include <dpu_types.h>
#include <dpuemu.h>

_Static_assert(sizeof(struct dpu_set_t) == 24,
               "layout of the SDK: kind, padding, nr_ranks, padding, ranks");
_Static_assert(offsetof(struct dpu_set_t, list.ranks) == 16 && offsetof(struct dpu_set_t, dpu) == 8,
               "layout of the SDK");
_Static_assert(sizeof(struct dpu_symbol_t) == 8, "layout of the SDK");
_Static_assert(DPU_ERR_MRAM_BUSY == 12 && DPU_ERR_INVALID_PROFILE == 28 &&
                   DPU_ERR_SG_NOT_MRAM_SYMBOL == 42,
               "values of the SDK");

int sum_in_c(uint32_t nr_dpus);

/* Sends i to DPU i, reads it back and returns the sum. */
int sum_in_c(uint32_t nr_dpus) {
  struct dpu_set_t set, rank, dpu;
  uint32_t i, r;
  uint64_t words[64];
  int sum = 0;
  DPU_ASSERT(dpu_alloc(nr_dpus, NULL, &set));
  DPU_FOREACH(set, dpu, i) {
    words[i] = i;
    DPU_ASSERT(dpu_prepare_xfer(dpu, &words[i]));
  }
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, sizeof(uint64_t),
                           DPU_XFER_DEFAULT));
  DPU_RANK_FOREACH(set, rank, r) {
    DPU_FOREACH(rank, dpu) {
      uint64_t word;
      DPU_ASSERT(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, 0, &word, sizeof word));
      sum += (int)word + (int)r * 0x10000;
    }
  }
  DPU_RANK_FOREACH(set, rank) { sum += 1000; }
  int free = 5; /* DPU_ASSERT works beside such a variable */
  DPU_ASSERT(dpu_free(set));
  return sum + free - (int)sizeof _STR(_CONCAT(1, 234)); /* "1234" */
}
