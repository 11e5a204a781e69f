// host PROGRAM LAUNCHES [async]: launches the program on 8 PEs; with `async`, it queues all
// launches on the 128 PEs of two ranks, and then waits. If it has a variable `number`, each PE gets
// its own number. The process uses the locale of the environment. Exit code 3: a launch ended in a
// fault.
#include <dpu.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>

int main(int count, char **arguments) {
  struct dpu_set_t set, pe;
  struct dpu_program_t *program;
  struct dpu_symbol_t symbol;
  if (count != 3 && count != 4) return 2;
  setlocale(LC_ALL, "");
  const int is_async = count == 4;
  DPU_ASSERT(dpu_alloc(is_async ? 128 : 8, NULL, &set));
  DPU_ASSERT(dpu_load(set, arguments[1], &program));
  if (dpu_get_symbol(program, "number", &symbol) == DPU_OK) {
    uint32_t numbers[128], i = 0;
    DPU_FOREACH(set, pe) {
      numbers[i] = i;
      DPU_ASSERT(dpu_prepare_xfer(pe, &numbers[i++]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "number", 0, 4, DPU_XFER_DEFAULT));
  }
  for (int i = 0; i < atoi(arguments[2]); ++i)
    if (dpu_launch(set, is_async ? DPU_ASYNCHRONOUS : DPU_SYNCHRONOUS) != DPU_OK) return 3;
  if (dpu_sync(set) != DPU_OK) return 3;
  return dpu_free(set) == DPU_OK ? 0 : 1;
}
