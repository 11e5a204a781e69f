// Functions of the SDK that a test which links interposed_sdk.cpp can have answer otherwise than dpuemu's do.
#pragma once

#include <dpu.h>
#include <dpu_memory.h>
#include <dpu_transfer_matrix.h>

#include <functional>

namespace interposed {

/// While one lives dpu_sync returns no fault: what the SDK's does once a launch or an earlier dpu_sync has returned it.
class FaultsHaveBeenReturned {
 public:
  FaultsHaveBeenReturned();
  ~FaultsHaveBeenReturned();
  FaultsHaveBeenReturned(const FaultsHaveBeenReturned &) = delete;
  FaultsHaveBeenReturned &operator=(const FaultsHaveBeenReturned &) = delete;

  /// How often dpu_sync would have returned one.
  int count() const;
};

/// While one lives dpu_load_from_memory fails with DPU_ERR_TIMEOUT and does nothing.
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

/// While one lives `copy` stands for both functions. Other threads may call them, but none may when it comes or goes.
class CopiesAre {
 public:
  explicit CopiesAre(std::function<dpu_error_t(const Copy &)> copy);
  ~CopiesAre();
  CopiesAre(const CopiesAre &) = delete;
  CopiesAre &operator=(const CopiesAre &) = delete;
};

}  // namespace interposed
