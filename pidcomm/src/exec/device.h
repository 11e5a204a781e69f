// Wrappers for the calls of dpu.h that are not transfers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rank_access/sdk.h"

namespace pidcomm {

struct Placement;

/// Throws ERR_SET or ERR_DEVICE unless status is DPU_OK. The error sentence contains `doing` and
/// the SDK's error text.
void check_device(dpu_error_t status, const std::string &doing);

/// Throws for a status that is an error, like check_device. The error sentence also names the rank,
/// chip, bank and PE number of the first PEs in fault, and reports whether the reorder program is
/// loaded.
void check_pes(dpu_error_t status, std::string doing, struct dpu_set_t set,
               const Placement &placement);

/// Waits for earlier asynchronous work of the set. earlier: the status of a dpu_sync before.
/// Errors: ERR_SET, ERR_DEVICE (with the error sentence of check_pes; also if a PE was already in
/// fault before the call).
void wait_for_set(struct dpu_set_t set, const Placement &placement, dpu_error_t earlier = DPU_OK);

/// Throws the errors of wait_for_set if a PE of the set is in fault now. Does not wait.
void check_faults(struct dpu_set_t set, const Placement &placement);

/// Returns the heap base as an MRAM byte address: __sys_used_mram_end of the loaded program, or 0
/// if no program is loaded. Unless the SDK reports program changes (rank_access.h), no other thread
/// may load a program meanwhile. Errors: ERR_DEVICE if PEs have different heap bases.
uint64_t heap_base_of(const Placement &placement);

/// Returns the heap base of one program; null: no program is loaded.
uint64_t heap_base_of(struct dpu_program_t *program);

/// Returns a variable of the program of all PEs, or nothing if the program has no such variable.
/// Errors: ERR_DEVICE (a PE has no program, or the variable has different places).
std::optional<struct dpu_symbol_t> find_symbol(const Placement &placement, const char *name);
/// The same with ERR_ARGUMENT if the program has no such variable.
struct dpu_symbol_t symbol_of(const Placement &placement, const char *name);

/// Keeps the heap base of a placement until the program of a PE changes.
class KeptHeapBase {
 public:
  /// Returns heap_base_of(placement), with its errors. placement: the same in every call. Threads
  /// must not call `of` at the same time.
  uint64_t of(const Placement &placement);
  /// Returns the heap base that `of` returned last, or nothing.
  std::optional<uint64_t> last() const { return base_; }

 private:
  std::optional<uint64_t> changes_;  // program_changes() before the heap base was read
  std::optional<uint64_t> base_;
};

}  // namespace pidcomm
