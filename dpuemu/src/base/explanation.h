// Details of refused calls, for dpu_error_to_string.
#pragma once

#include <dpu_error.h>

#include <string>

namespace dpuemu {

/// Stores the text, which names the values and the rule, as the explanation of `status` for the
/// calling thread. Returns `status`. Every return of DPU_ERR_ALLOCATION and DPU_ERR_ELF_* has an
/// explanation. The process keeps only the last explanation, or none if the host has no memory.
dpu_error_t explained(dpu_error_t status, const std::string &text) noexcept;

/// Returns the explanation of the calling thread's last refused call if this call returned
/// `status`, else "".
std::string explanation_of(dpu_error_t status);

}  // namespace dpuemu
