// The door to a rank's memory. One of the files beside this header implements it, chosen at build time; nothing else in the library can
// obtain a pointer into a region.
#pragma once

#include <dpu.h>

#include <cstddef>
#include <cstdint>

namespace pidcomm {

/// A rank's region as the host sees it while it owns the rank's MRAM.
struct RankWindow {
  std::byte *base = nullptr;
};

/// Whether the PEs' stores go through the host's caches: true for emulated DIMMs, false for real ones.
bool rank_windows_are_coherent();

/// Waits for running PEs of the rank and earlier asynchronous work, and makes the host the owner of the rank's MRAM.
dpu_error_t rank_window_acquire(struct dpu_rank_t *rank, RankWindow *window);

/// Gives the rank back.
void rank_window_release(struct dpu_rank_t *rank);

}  // namespace pidcomm
