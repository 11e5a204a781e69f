// Implements dpu_runner.h, dpu_config.h, dpu_description.h, dpu_probe.h, and functions of
// dpu_management.h and dpu_memory.h: calls for single ranks, and calls that the emulator refuses.
#include <dpu.h>
#include <dpu_config.h>
#include <dpu_management.h>
#include <dpu_memory.h>
#include <dpu_probe.h>
#include <dpu_runner.h>

#include <array>
#include <string>

#include "api/profile.h"
#include "base/explanation.h"
#include "base/guard.h"
#include "machine/host_ownership.h"
#include "machine/machine.h"

using namespace dpuemu;

dpu_error_t dpu_get_rank_of_type(const char *profile, struct dpu_rank_t **rank) {
  if (rank == nullptr) return DPU_ERR_INTERNAL;
  dpu_set_t set;
  const dpu_error_t status = dpu_alloc_ranks(1, profile, &set);
  if (status == DPU_OK) *rank = set.list.ranks[0];
  return status;
}

dpu_error_t dpu_free_rank(struct dpu_rank_t *rank) {
  return guarded([&] { return Machine::instance().free_rank(rank); });
}

namespace {

dpu_error_t reset(const dpu_set_t &dpus) {
  return guarded([&] {
    PinnedSet set;
    if (const dpu_error_t status = set.pin(dpus); status != DPU_OK) return status;
    Rank &own = *set.ranks()[0];
    if (CallbackScope::contains(&own)) return DPU_ERR_INTERNAL;
    own.wait_until_idle();
    HostOwnership ownership;
    if (const dpu_error_t status = ownership.take(own); status != DPU_OK) return status;
    for_each_dpu(set.members(0), [&](uint32_t i) { own.pes[i].fault = {}; });
    own.forget_faults(set.members(0));
    return DPU_OK;
  });
}

dpu_error_t launch_thread(const dpu_set_t &dpus, dpu_thread_t thread, bool should_resume) {
  if (thread != DPU_BOOT_THREAD || should_resume)
    return explained(DPU_ERR_INVALID_THREAD_ID,
                     "the call " + std::string(should_resume ? "resumes" : "starts") + " thread " +
                         std::to_string(thread) + "; only a start of thread 0 is possible");
  return dpu_launch(dpus, DPU_ASYNCHRONOUS);
}

}  // namespace

dpu_error_t dpu_reset_rank(struct dpu_rank_t *rank) { return reset(dpu_set_from_rank(&rank)); }
dpu_error_t dpu_reset_dpu(struct dpu_t *dpu) { return reset(dpu_set_from_dpu(dpu)); }

dpu_error_t dpu_boot_rank(struct dpu_rank_t *rank) {
  return dpu_launch(dpu_set_from_rank(&rank), DPU_ASYNCHRONOUS);
}
dpu_error_t dpu_boot_dpu(struct dpu_t *dpu) {
  return dpu_launch(dpu_set_from_dpu(dpu), DPU_ASYNCHRONOUS);
}
dpu_error_t dpu_launch_thread_on_rank(struct dpu_rank_t *rank, dpu_thread_t thread,
                                      bool should_resume) {
  return launch_thread(dpu_set_from_rank(&rank), thread, should_resume);
}
dpu_error_t dpu_launch_thread_on_dpu(struct dpu_t *dpu, dpu_thread_t thread, bool should_resume) {
  return launch_thread(dpu_set_from_dpu(dpu), thread, should_resume);
}

dpu_error_t dpu_status_rank(struct dpu_rank_t *rank, bool *done, bool *fault) {
  return dpu_status(dpu_set_from_rank(&rank), done, fault);
}
dpu_error_t dpu_status_dpu(struct dpu_t *dpu, bool *done, bool *fault) {
  return dpu_status(dpu_set_from_dpu(dpu), done, fault);
}

dpu_error_t dpu_poll_rank(struct dpu_rank_t *rank) {
  bool done, fault;
  return dpu_status_rank(rank, &done, &fault);
}

dpu_error_t dpu_poll_dpu(struct dpu_t *dpu, bool *dpu_is_running, bool *dpu_is_in_fault) {
  if (dpu_is_running == nullptr) return DPU_ERR_INTERNAL;
  bool done;
  const dpu_error_t status = dpu_status_dpu(dpu, &done, dpu_is_in_fault);
  if (status == DPU_OK) *dpu_is_running = !done;
  return status;
}

namespace {

_dpu_description_t describe(const Chip &chip) {
  _dpu_description_t description = {};
  dpu_hw_description_t &hw = description.hw;
  hw.signature.chip_id = static_cast<dpu_chip_id_e>(chip.id);
  hw.timings = {chip.clock_mhz, 1};
  hw.topology = {kChips, kBanks, (1u << kChips) - 1};
  hw.memories = {static_cast<mram_size_t>(kMramBytes),
                 static_cast<wram_size_t>(chip.wram_bytes / sizeof(dpuword_t)),
                 static_cast<iram_size_t>(chip.instructions)};
  hw.dpu = {static_cast<uint8_t>(chip.tasklets), chip.mutexes, 24};
  return description;
}

dpu_description_t description_of_machine() {
  static std::array<_dpu_description_t, kChipRows.size()> descriptions = [] {
    std::array<_dpu_description_t, kChipRows.size()> all;
    for (size_t i = 0; i < all.size(); ++i) all[i] = describe(kChipRows[i]);
    return all;
  }();
  return &descriptions[static_cast<size_t>(&Machine::instance().chip() - kChipRows.data())];
}

}  // namespace

dpu_description_t dpu_get_description(struct dpu_rank_t *rank) {
  Rank *found;
  return Machine::instance().find(rank, found) ? description_of_machine() : nullptr;
}

dpu_error_t dpu_get_profile_description(const char *profile, dpu_description_t *description) {
  return guarded([&] {
    if (description == nullptr) return DPU_ERR_INTERNAL;
    uint32_t sg_max_blocks;
    const dpu_error_t status = read_profile(profile, sg_max_blocks);
    if (status == DPU_OK) *description = description_of_machine();
    return status;
  });
}

void dpu_acquire_description(dpu_description_t) {}
void dpu_free_description(dpu_description_t) {}

// --- Refused calls

namespace {

dpu_error_t without_iram() {
  return explained(DPU_ERR_INVALID_IRAM_ACCESS,
                   "PE programs of the emulator are x86-64 code, so IRAM cannot be copied");
}

dpu_error_t without_energy() {
  return explained(DPU_ERR_INTERNAL,
                   "the emulator has no energy model; build the program without ENERGY");
}

}  // namespace

dpu_error_t dpu_copy_to_iram_for_rank(struct dpu_rank_t *, iram_addr_t, const dpuinstruction_t *,
                                      iram_size_t) {
  return without_iram();
}
dpu_error_t dpu_copy_to_iram_for_dpu(struct dpu_t *, iram_addr_t, const dpuinstruction_t *,
                                     iram_size_t) {
  return without_iram();
}
dpu_error_t dpu_copy_from_iram_for_dpu(struct dpu_t *, dpuinstruction_t *, iram_addr_t,
                                       iram_size_t) {
  return without_iram();
}
dpu_error_t dpu_copy_to_iram_for_matrix(struct dpu_rank_t *, struct dpu_transfer_matrix *) {
  return without_iram();
}
dpu_error_t dpu_copy_from_iram_for_matrix(struct dpu_rank_t *, struct dpu_transfer_matrix *) {
  return without_iram();
}

dpu_error_t dpu_probe_init(const char *, struct dpu_probe_t *) { return without_energy(); }
dpu_error_t dpu_probe_start(struct dpu_probe_t *) { return without_energy(); }
dpu_error_t dpu_probe_stop(struct dpu_probe_t *) { return without_energy(); }
dpu_error_t dpu_probe_get(struct dpu_probe_t *, dpu_probe_metric_t, dpu_probe_aggregate_t,
                          double *) {
  return without_energy();
}
