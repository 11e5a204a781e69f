#include "machine/symbols.h"

#include <bit>
#include <cstring>

namespace dpuemu {

dpu_error_t find_symbol(const Program *program, const char *name, dpu_symbol_t &symbol) {
  if (name == nullptr) return DPU_ERR_UNKNOWN_SYMBOL;
  if (program == nullptr) {
    if (std::strcmp(name, DPU_MRAM_HEAP_POINTER_NAME) != 0) return DPU_ERR_NO_PROGRAM_LOADED;
    symbol = {kMramAddress, static_cast<dpu_mem_max_size_t>(kMramBytes)};
    return DPU_OK;
  }
  const dpu_symbol_t *found = program->find(name);
  if (found == nullptr) return DPU_ERR_UNKNOWN_SYMBOL;
  symbol = *found;
  return DPU_OK;
}

dpu_error_t find_common_symbol(const PinnedSet &set, const char *name, dpu_symbol_t &symbol) {
  bool is_first = true;
  const Program *last = nullptr;
  for (size_t i = 0; i < set.ranks().size(); ++i)
    for (uint64_t left = set.members(i); left != 0; left &= left - 1) {
      const Program *program = set.ranks()[i]->pes[std::countr_zero(left)].program;
      if (!is_first && program == last) continue;
      dpu_symbol_t found;
      const dpu_error_t status = find_symbol(program, name, found);
      if (status != DPU_OK) return status;
      if (!is_first && (found.address != symbol.address || found.size != symbol.size))
        return DPU_ERR_DIFFERENT_DPU_PROGRAMS;
      symbol = found;
      last = program;
      is_first = false;
    }
  return is_first ? find_symbol(nullptr, name, symbol) : DPU_OK;
}

}  // namespace dpuemu
