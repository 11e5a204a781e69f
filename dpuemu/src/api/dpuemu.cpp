// Implements dpuemu.h: the machine, rank access and runs.
#include <dpu_management.h>
#include <dpuemu.h>

#include "base/address_map.h"
#include "base/guard.h"
#include "machine/disassembly.h"
#include "machine/machine.h"

using namespace dpuemu;

namespace {

/// If the rank is allocated, calls act(rank, pinned set of the rank).
template <class Act>
dpu_error_t with_rank(dpu_rank_t *handle, Act act) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set_from_rank(&handle));
    return status == DPU_OK ? act(*set.ranks()[0], set) : status;
  });
}

}  // namespace

dpu_error_t dpuemu_configure(const dpuemu_machine_t *machine, const uint32_t *disabled,
                             uint32_t n_disabled) {
  return guarded([&] {
    std::optional<std::span<const uint32_t>> absent;
    if (disabled != nullptr) absent.emplace(disabled, n_disabled);
    return Machine::instance().configure(machine != nullptr ? *machine : dpuemu_machine_t{},
                                         absent);
  });
}

dpu_error_t dpuemu_get_machine(dpuemu_machine_t *machine) {
  return guarded([&] {
    return machine != nullptr ? Machine::instance().settings(*machine) : DPU_ERR_INTERNAL;
  });
}

const char *dpuemu_chip_name() {
  dpuemu_machine_t machine;
  const bool is_known = dpuemu_get_machine(&machine) == DPU_OK;
  return is_known ? kChipRows[static_cast<size_t>(machine.chip - DPUEMU_CHIP_GENERIC)].name
                  : nullptr;
}

dpu_error_t dpuemu_set_transfer(uint32_t threads, int flush) {
  return guarded([&] { return Machine::instance().set_transfer(threads, flush); });
}

uint64_t dpuemu_region_offset(uint32_t chip, uint32_t bank, uint64_t mram_offset) {
  return chip < kChips && bank < kBanks && mram_offset < kMramBytes
             ? byte_offset(chip, bank, mram_offset)
             : UINT64_MAX;
}

dpu_error_t dpuemu_rank_acquire(struct dpu_rank_t *handle, dpuemu_rank_access_t *access) {
  if (access == nullptr) return DPU_ERR_INTERNAL;
  return with_rank(handle, [&](Rank &rank, const PinnedSet &set) {
    const dpu_error_t status = rank.open_access();
    if (status != DPU_OK) return status;
    *access = {rank.region().base(), kRegionBytes, Machine::instance().numa_node(), 0};
    for (uint32_t chip = 0; chip < kChips; ++chip)
      for (uint32_t bank = 0; bank < kBanks; ++bank)
        access->enabled |= (set.members(0) >> dpu_index(chip, bank) & 1) << (bank * kChips + chip);
    return DPU_OK;
  });
}

dpu_error_t dpuemu_rank_release(struct dpu_rank_t *handle) {
  return with_rank(handle, [](Rank &rank, const PinnedSet &) { return rank.close_access(); });
}

dpu_error_t dpuemu_begin_run(struct dpu_rank_t *handle) {
  return with_rank(handle, [](Rank &rank, const PinnedSet &) {
    const dpu_error_t status = rank.begin_run(~UINT64_C(0));
    if (status == DPU_OK && Machine::instance().is_strict()) rank.protect_run();
    return status;
  });
}

dpu_error_t dpuemu_end_run(struct dpu_rank_t *handle, bool fault, uint32_t dpu_in_rank) {
  return with_rank(handle, [=](Rank &rank, const PinnedSet &) {
    if (fault && dpu_in_rank >= kDpusPerRank) return DPU_ERR_INTERNAL;
    return rank.end_run(fault ? UINT64_C(1) << dpu_in_rank : 0);
  });
}

uint64_t dpuemu_program_changes(void) { return LoadedProgram::changes(); }

dpu_error_t dpuemu_resident_bytes(uint64_t *bytes) {
  return guarded([&] {
    if (bytes == nullptr) return DPU_ERR_INTERNAL;
    *bytes = Machine::instance().resident_bytes();
    return DPU_OK;
  });
}

dpu_error_t dpuemu_disassemble(const char *path, const char *function,
                               void (*print)(const char *line, void *context), void *context) {
  return guarded([&] {
    if (path == nullptr || print == nullptr) return DPU_ERR_INTERNAL;
    return disassemble(path, function != nullptr ? function : "",
                       [&](const std::string &line) { print(line.c_str(), context); });
  });
}
