// The functions that checked programs call (runtime/check.S).
#pragma once

#include <span>

#include "machine/program.h"

namespace dpuemu {

/// Returns the addresses of the functions of PE_CHECK_TABLE, in its order. Without `dpuemu check`,
/// these functions do nothing.
std::span<const CheckCallback> check_callbacks();

}  // namespace dpuemu
