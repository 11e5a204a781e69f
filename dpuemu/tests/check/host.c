// Runs one CASE of a program: host PROGRAM NUMBER [again|beside|once|queued|early]. again: launches
// twice, with argument 0 and 1. beside: writes WRAM while the launch runs. once: writes it after
// each of two launches, without a wait. queued: queues these writes. early: writes the input before
// it loads the program, while another program is loaded.
#include <dpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_BYTES 1024

int main(int count, char **words) {
  struct dpu_set_t set, dpu;
  uint8_t results[64];
  const char *mode = count > 3 ? words[3] : "";
  uint32_t number = (uint32_t)atoi(words[2]);
  uint64_t input[INPUT_BYTES / 8];
  for (uint32_t i = 0; i < INPUT_BYTES / 8; ++i) input[i] = i;
  bool is_once = strcmp(mode, "once") == 0;
  DPU_ASSERT(dpu_alloc(is_once ? 64 : 1, NULL, &set));
  bool is_early = strcmp(mode, "early") == 0;
  DPU_ASSERT(dpu_load(set, is_early ? "races" : words[1], NULL));
  DPU_ASSERT(
      dpu_broadcast_to(set, DPU_MRAM_HEAP_POINTER_NAME, 0, input, sizeof input, DPU_XFER_DEFAULT));
  if (is_early) DPU_ASSERT(dpu_load(set, words[1], NULL));
  DPU_ASSERT(dpu_broadcast_to(set, "chosen", 0, &number, sizeof number, DPU_XFER_DEFAULT));
  if (is_once || strcmp(mode, "queued") == 0) {
    uint32_t value = 7;
    for (uint32_t launch = 0; launch < 2; ++launch) {
      DPU_ASSERT(dpu_launch(set, DPU_ASYNCHRONOUS));
      DPU_ASSERT(dpu_broadcast_to(set, "argument", 0, &value, sizeof value,
                                  is_once ? DPU_XFER_PARALLEL : DPU_XFER_ASYNC));
    }
    DPU_ASSERT(dpu_sync(set));
    return 0;
  }
  if (strcmp(mode, "beside") == 0) {
    DPU_ASSERT(dpu_launch(set, DPU_ASYNCHRONOUS));
    bool has_ended = false, has_fault = false;
    for (uint32_t i = 0; !has_ended; ++i) {
      DPU_ASSERT(dpu_broadcast_to(set, "parameter", 0, &i, sizeof i, DPU_XFER_PARALLEL));
      DPU_ASSERT(dpu_status(set, &has_ended, &has_fault));
    }
    DPU_ASSERT(dpu_sync(set));
    return 0;
  }
  DPU_FOREACH(set, dpu) break;
  for (uint32_t launch = 0; launch < (strcmp(mode, "again") == 0 ? 2u : 1u); ++launch) {
    DPU_ASSERT(dpu_broadcast_to(set, "argument", 0, &launch, sizeof launch, DPU_XFER_DEFAULT));
    if (dpu_launch(set, DPU_SYNCHRONOUS) != DPU_OK) return 3;
  }
  DPU_ASSERT(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, 0x100000, results, sizeof results));
  return 0;
}
