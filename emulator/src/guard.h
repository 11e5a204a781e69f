// No exception leaves the C API.
#pragma once

#include <dpu_error.h>

#include <new>
#include <system_error>

namespace dpuemu {

/// Runs `body`; what it throws when memory or threads run out becomes DPU_ERR_SYSTEM.
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
