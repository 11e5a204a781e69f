#include "exec/device.h"

#include <sstream>

#include "base/error.h"
#include "exec/pe_reorder.h"
#include "exec/placement.h"
#include "pidcomm/sdk_error.hpp"
#include "plan/request.h"
#include "rank_access/rank_access.h"

namespace pidcomm {

namespace {

/// Returns text such as "; rank 0 chip 1 bank 2 (PE 17) is in fault" for the first few faulted PEs
/// of the set. The text has no PE number for a DPU outside the hypercube.
std::string faults_of(struct dpu_set_t set, const Placement &placement) {
  constexpr uint32_t kNamed = 8;
  std::ostringstream text;
  uint32_t faults = 0;
  struct dpu_set_t dpu_set;
  DPU_FOREACH(set, dpu_set) {
    bool is_done = false, is_faulted = false;
    if (dpu_status(dpu_set, &is_done, &is_faulted) != DPU_OK || !is_faulted || ++faults > kNamed)
      continue;
    struct dpu_t *const dpu = dpu_from_set(dpu_set);
    text << "; rank " << dpu_get_rank_id(dpu_get_rank(dpu)) << " chip "
         << int{dpu_get_slice_id(dpu)} << " bank " << int{dpu_get_member_id(dpu)};
    for (std::size_t pe = 0; pe < placement.dpus.size(); ++pe)
      if (placement.dpus[pe] == dpu) text << " (PE " << pe << ")";
    text << " is in fault";
  }
  if (faults > kNamed) text << "; and " << faults - kNamed << " more";
  return text.str();
}

constexpr const char *kWaiting = "waiting for earlier work of the set";

}  // namespace

void check_device(dpu_error_t status, const std::string &doing) {
  if (status == DPU_OK) return;
  if (status == DPU_ERR_INVALID_DPU_SET)
    fail(PIDCOMM_ERR_SET, doing, ": the DPU set is not allocated (was it freed?)");
  fail(PIDCOMM_ERR_DEVICE, doing, ": ", sdk_error_text(status));
}

void check_pes(dpu_error_t status, std::string doing, struct dpu_set_t set,
               const Placement &placement) {
  if (status != DPU_ERR_INVALID_DPU_SET) {
    if (has_reorder_program(placement.dpus.front()))
      doing +=
          "; a collective has replaced the program of these PEs by its program that reorders "
          "blocks: load yours again before a launch";
    doing += faults_of(set, placement);
  }
  check_device(status, doing);
}

void wait_for_set(struct dpu_set_t set, const Placement &placement, dpu_error_t earlier) {
  dpu_error_t status = dpu_sync(set);
  if (earlier != DPU_OK) status = earlier;
  if (status != DPU_OK) check_pes(status, kWaiting, set, placement);
  check_faults(set, placement);  // the SDK returns a fault only once: a launch or an earlier
                                 // dpu_sync may already have returned it
}

void check_faults(struct dpu_set_t set, const Placement &placement) {
  bool is_done = false, is_faulted = false;
  dpu_error_t status = dpu_status(set, &is_done, &is_faulted);
  if (status == DPU_OK && is_faulted) status = DPU_ERR_DPU_FAULT;
  if (status != DPU_OK) check_pes(status, kWaiting, set, placement);
}

uint64_t heap_base_of(struct dpu_program_t *program) {
  if (program == nullptr) return 0;
  struct dpu_symbol_t symbol;
  check_device(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &symbol),
               "reading the MRAM heap base");
  return symbol.address - kMramAddress;
}

uint64_t heap_base_of(const Placement &placement) {
  struct dpu_program_t *program = nullptr;
  uint64_t base = 0;
  for (std::size_t pe = 0; pe < placement.dpus.size(); ++pe) {
    struct dpu_program_t *const own = dpu_get_program(placement.dpus[pe]);
    if (pe != 0 && own == program) continue;
    const uint64_t own_base = heap_base_of(own);
    if (pe != 0 && own_base != base)
      fail(PIDCOMM_ERR_DEVICE, "the PEs disagree about the MRAM heap base: PE 0 says ", base,
           ", PE ", pe, " says ", own_base, "; load the same program on every rank of the set");
    program = own;
    base = own_base;
  }
  return base;
}

std::optional<struct dpu_symbol_t> find_symbol(const Placement &placement, const char *name) {
  std::optional<struct dpu_symbol_t> first;
  struct dpu_program_t *program = nullptr;
  for (std::size_t pe = 0; pe < placement.dpus.size(); ++pe) {
    struct dpu_program_t *const own = dpu_get_program(placement.dpus[pe]);
    if (own == nullptr) fail(PIDCOMM_ERR_DEVICE, "PE ", pe, " has no program with variable ", name);
    if (own == program) continue;
    struct dpu_symbol_t symbol;
    const dpu_error_t status = dpu_get_symbol(own, name, &symbol);
    const bool is_declared = status != DPU_ERR_UNKNOWN_SYMBOL;
    if (is_declared) check_device(status, "finding a variable");
    const bool is_same =
        is_declared == first.has_value() &&
        (!is_declared || (symbol.address == first->address && symbol.size == first->size));
    if (program != nullptr && !is_same)
      fail(PIDCOMM_ERR_DEVICE, "PE 0 and PE ", pe, " have variable ", name,
           " at different places, or one has it not; load the same program on every rank of the "
           "set");
    program = own;
    if (is_declared) first = symbol;
  }
  return first;
}

struct dpu_symbol_t symbol_of(const Placement &placement, const char *name) {
  const std::optional<struct dpu_symbol_t> symbol = find_symbol(placement, name);
  if (!symbol) fail(PIDCOMM_ERR_ARGUMENT, "the program of the PEs has no variable ", name);
  return *symbol;
}

uint64_t KeptHeapBase::of(const Placement &placement) {
  const std::optional<uint64_t> changes = program_changes();
  if (!changes || changes != changes_) {
    base_ = heap_base_of(placement);
    changes_ = changes;
  }
  return *base_;
}

}  // namespace pidcomm
