// dpu.h, dpu_program.h, dpu_log.h: PE programs, which this version does not execute.
#include <dpu.h>
#include <dpu_log.h>
#include <dpu_management.h>
#include <dpu_program.h>
#include <unistd.h>

#include <cstring>

#include "address_map.h"
#include "guard.h"
#include "machine.h"
#include "symbols.h"

using namespace dpuemu;

namespace {

dpu_error_t refuse_program(const dpu_set_t &dpu_set, bool exists) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    return exists ? DPU_ERR_ELF_INVALID_FILE : DPU_ERR_ELF_NO_SUCH_FILE;
  });
}

}  // namespace

dpu_error_t dpu_load(struct dpu_set_t dpu_set, const char *binary_path, struct dpu_program_t **) {
  return refuse_program(dpu_set, binary_path != nullptr && access(binary_path, F_OK) == 0);
}

dpu_error_t dpu_load_from_memory(struct dpu_set_t dpu_set, uint8_t *buffer, size_t, struct dpu_program_t **) {
  return refuse_program(dpu_set, buffer != nullptr);
}

dpu_error_t dpu_load_from_incbin(struct dpu_set_t dpu_set, struct dpu_incbin_t *incbin, struct dpu_program_t **) {
  return refuse_program(dpu_set, incbin != nullptr);
}

dpu_error_t dpu_get_symbol(struct dpu_program_t *, const char *symbol_name, struct dpu_symbol_t *symbol) {
  if (symbol == nullptr) return DPU_ERR_INTERNAL;
  if (symbol_name == nullptr) return DPU_ERR_UNKNOWN_SYMBOL;
  if (std::strcmp(symbol_name, DPU_MRAM_HEAP_POINTER_NAME) != 0) return DPU_ERR_NO_PROGRAM_LOADED;
  *symbol = {kMramAddress, static_cast<dpu_mem_max_size_t>(kMramBytes)};
  return DPU_OK;
}

dpu_error_t dpu_launch(struct dpu_set_t dpu_set, dpu_launch_policy_t policy) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    return policy == DPU_SYNCHRONOUS || policy == DPU_ASYNCHRONOUS ? DPU_ERR_NO_PROGRAM_LOADED : DPU_ERR_INVALID_LAUNCH_POLICY;
  });
}

dpu_error_t dpu_log_read(struct dpu_set_t dpu_set, FILE *) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    return set.is_single_dpu() ? DPU_ERR_LOG_CONTEXT_MISSING : DPU_ERR_INVALID_DPU_SET;
  });
}

dpu_error_t dpulog_read_for_dpu(struct dpu_t *dpu, FILE *stream) { return dpu_log_read(dpu_set_from_dpu(dpu), stream); }

struct dpu_program_t *dpu_get_program(struct dpu_t *) { return nullptr; }
