// The rank access of the libpidcomm that a test runs with: the emulator's, or the SDK's in the
// library of the target pidcomm_sdk_access.
#pragma once

struct dpu_rank_t;

/// Whether a hypercube holds the rank. Only a library with the SDK's rank access has the function.
extern "C" __attribute__((weak)) bool pidcomm_test_is_open(struct dpu_rank_t *rank);

inline bool is_over_sdk_access() { return pidcomm_test_is_open != nullptr; }
