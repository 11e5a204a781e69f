// Keeps exceptions inside the C API.
#pragma once

#include <dpu_error.h>

#include <new>
#include <system_error>

namespace dpuemu {

/// Runs `body` and returns its status. If `body` throws an exception because the host lacks memory
/// or threads, returns DPU_ERR_SYSTEM.
template <class Body>
dpu_error_t guarded(Body &&body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return DPU_ERR_SYSTEM;
  } catch (const std::system_error &) {
    return DPU_ERR_SYSTEM;
  }
}

}  // namespace dpuemu
