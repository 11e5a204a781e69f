// Replacements of SDK functions, for tests that link interposed_sdk.cpp.
#pragma once

#include <dpu.h>
#include <dpu_memory.h>
#include <dpu_transfer_matrix.h>

#include <functional>
#include <optional>
#include <vector>

namespace interposed {

/// For its lifetime, dpu_sync returns no fault, as in the SDK after a launch or an earlier dpu_sync
/// returned it.
class FaultsHaveBeenReturned {
 public:
  FaultsHaveBeenReturned();
  ~FaultsHaveBeenReturned();
  FaultsHaveBeenReturned(const FaultsHaveBeenReturned &) = delete;
  FaultsHaveBeenReturned &operator=(const FaultsHaveBeenReturned &) = delete;

  /// The number of faults that dpu_sync did not return.
  int count() const;
};

/// For its lifetime, dpu_load_from_memory fails with DPU_ERR_TIMEOUT and does nothing.
class LoadsFail {
 public:
  LoadsFail();
  ~LoadsFail();
  LoadsFail(const LoadsFail &) = delete;
  LoadsFail &operator=(const LoadsFail &) = delete;
};

/// A call of dpu_copy_to_mrams or dpu_copy_from_mrams.
struct Copy {
  bool is_write;
  struct dpu_rank_t *rank;
  struct dpu_transfer_matrix *matrix;

  dpu_error_t carry_out() const;
};

/// For its lifetime, `copy` replaces both functions. Other threads may call them, except during
/// construction and destruction.
class CopiesAre {
 public:
  explicit CopiesAre(std::function<dpu_error_t(const Copy &)> copy);
  ~CopiesAre();
  CopiesAre(const CopiesAre &) = delete;
  CopiesAre &operator=(const CopiesAre &) = delete;
};

/// A call of dpu_launch, or of dpu_sync if it has no policy.
struct SetCall {
  struct dpu_rank_t *first_rank;  // null: the set is no set of ranks
  std::optional<dpu_launch_policy_t> policy;
};

/// For its lifetime, records the calls of dpu_launch and dpu_sync.
class CallsAreRecorded {
 public:
  CallsAreRecorded();
  ~CallsAreRecorded();
  CallsAreRecorded(const CallsAreRecorded &) = delete;
  CallsAreRecorded &operator=(const CallsAreRecorded &) = delete;

  std::vector<SetCall> calls() const;
};

}  // namespace interposed
