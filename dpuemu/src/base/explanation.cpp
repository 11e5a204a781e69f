#include "base/explanation.h"

#include <mutex>
#include <new>
#include <thread>

namespace dpuemu {
namespace {

std::mutex mutex;
std::thread::id last_thread;
dpu_error_t last_status = DPU_OK;
auto *const last_text = new std::string;  // never destroyed: threads may outlive static objects

}  // namespace

dpu_error_t explained(dpu_error_t status, const std::string &text) noexcept {
  std::lock_guard<std::mutex> lock(mutex);
  last_status = DPU_OK;
  try {
    *last_text = text;
  } catch (const std::bad_alloc &) {
    return status;
  }
  last_status = status;
  last_thread = std::this_thread::get_id();
  return status;
}

std::string explanation_of(dpu_error_t status) {
  std::lock_guard<std::mutex> lock(mutex);
  return status != DPU_OK && status == last_status && last_thread == std::this_thread::get_id()
             ? *last_text
             : std::string();
}

}  // namespace dpuemu
