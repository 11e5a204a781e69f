// The functions that checked programs call (runtime/check.S).
#pragma once

#include <span>

namespace dpuemu {

/// Returns the addresses of the functions of PE_CHECK_TABLE, in its order. Without `dpuemu check`,
/// these functions do nothing.
std::span<void (*const)()> check_callbacks();

}  // namespace dpuemu
