// The profiles of dpu_alloc.
#pragma once

#include <dpu_error.h>

#include <cstdint>

/// Reads the profile, a list "key=value,key=value" with spaces around entries. A value may be
/// empty, but not a key. NULL and "" are the default profile. Stores the limit of
/// Machine::allocate. Errors: DPU_ERR_INVALID_PROFILE.
dpu_error_t read_profile(const char *profile, uint32_t &sg_max_blocks);
