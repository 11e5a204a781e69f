// Moves the messages of a plan on acquired ranks, line by line.
#pragma once

#include "exec/sweep_pass.h"

namespace pidcomm {

/// Carries out the MessageForm of a plan. Returns the bytes of host memory for buffers. Throws
/// std::bad_alloc before a byte moves.
uint64_t run_messages(const HostPass &pass);

/// The bytes that run_messages needs at pass.host_lines.base.
uint64_t fill_bytes_of(const PeMessages &messages);

}  // namespace pidcomm
