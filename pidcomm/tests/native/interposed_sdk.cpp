#include "interposed_sdk.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace interposed {

namespace {

std::atomic<bool> g_faults_have_been_returned{false};
std::atomic<int> g_faults{0};
std::atomic<bool> g_loads_fail{false};
std::function<dpu_error_t(const Copy &)> g_copy;
std::mutex g_calls_mutex;
bool g_records_calls = false;
std::vector<SetCall> g_calls;

/// The SDK function that the function of the same name in this file hides.
template <class Function>
Function *hidden(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

void note(const struct dpu_set_t &set, std::optional<dpu_launch_policy_t> policy) {
  const std::lock_guard lock(g_calls_mutex);
  if (!g_records_calls) return;
  g_calls.push_back({set.kind == DPU_SET_RANKS ? set.list.ranks[0] : nullptr, policy});
}

dpu_error_t copy(const Copy &call) { return g_copy ? g_copy(call) : call.carry_out(); }

}  // namespace

FaultsHaveBeenReturned::FaultsHaveBeenReturned() {
  g_faults = 0;
  g_faults_have_been_returned = true;
}
FaultsHaveBeenReturned::~FaultsHaveBeenReturned() { g_faults_have_been_returned = false; }
int FaultsHaveBeenReturned::count() const { return g_faults; }

LoadsFail::LoadsFail() { g_loads_fail = true; }
LoadsFail::~LoadsFail() { g_loads_fail = false; }

dpu_error_t Copy::carry_out() const {
  static auto *const to = hidden<decltype(dpu_copy_to_mrams)>("dpu_copy_to_mrams");
  static auto *const from = hidden<decltype(dpu_copy_from_mrams)>("dpu_copy_from_mrams");
  return (is_write ? to : from)(rank, matrix);
}

CopiesAre::CopiesAre(std::function<dpu_error_t(const Copy &)> copy) { g_copy = std::move(copy); }
CopiesAre::~CopiesAre() { g_copy = nullptr; }

CallsAreRecorded::CallsAreRecorded() {
  const std::lock_guard lock(g_calls_mutex);
  g_calls.clear();
  g_records_calls = true;
}
CallsAreRecorded::~CallsAreRecorded() {
  const std::lock_guard lock(g_calls_mutex);
  g_records_calls = false;
}
std::vector<SetCall> CallsAreRecorded::calls() const {
  const std::lock_guard lock(g_calls_mutex);
  return g_calls;
}

}  // namespace interposed

extern "C" {

dpu_error_t dpu_launch(struct dpu_set_t set, dpu_launch_policy_t policy) {
  static auto *const real = interposed::hidden<decltype(dpu_launch)>("dpu_launch");
  interposed::note(set, policy);
  return real(set, policy);
}

dpu_error_t dpu_sync(struct dpu_set_t set) {
  static auto *const real = interposed::hidden<decltype(dpu_sync)>("dpu_sync");
  interposed::note(set, std::nullopt);
  const dpu_error_t status = real(set);
  if (status != DPU_ERR_DPU_FAULT || !interposed::g_faults_have_been_returned) return status;
  ++interposed::g_faults;
  return DPU_OK;
}

dpu_error_t dpu_load_from_memory(struct dpu_set_t set, uint8_t *buffer, size_t bytes,
                                 struct dpu_program_t **program) {
  static auto *const real =
      interposed::hidden<decltype(dpu_load_from_memory)>("dpu_load_from_memory");
  return interposed::g_loads_fail ? DPU_ERR_TIMEOUT : real(set, buffer, bytes, program);
}

dpu_error_t dpu_copy_to_mrams(struct dpu_rank_t *rank, struct dpu_transfer_matrix *matrix) {
  return interposed::copy({true, rank, matrix});
}

dpu_error_t dpu_copy_from_mrams(struct dpu_rank_t *rank, struct dpu_transfer_matrix *matrix) {
  return interposed::copy({false, rank, matrix});
}

}  // extern "C"
