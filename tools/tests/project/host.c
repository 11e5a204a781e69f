// Doubles a number on each of PES PEs: host -n PES.
#include <dpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  if (argc != 3 || strcmp(argv[1], "-n") != 0) return 2;
  const uint32_t pes = (uint32_t)atoi(argv[2]);
  uint32_t number = 21, wrong = 0;
  struct dpu_set_t set, pe;
  DPU_ASSERT(dpu_alloc(pes, NULL, &set));
  DPU_ASSERT(dpu_load(set, "./pe", NULL));
  DPU_ASSERT(dpu_broadcast_to(set, "number", 0, &number, sizeof number, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  DPU_FOREACH(set, pe) {
    DPU_ASSERT(dpu_copy_from(pe, "number", 0, &number, sizeof number));
    wrong += number != 42;
  }
  DPU_ASSERT(dpu_free(set));
  printf("%u PEs, %u wrong\n", pes, wrong);
  return wrong != 0;
}
