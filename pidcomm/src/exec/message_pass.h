// Moves the messages of a plan on acquired ranks, line by line.
#pragma once

#include "exec/sweep_pass.h"
#include "pidcomm/pidcomm.h"

namespace pidcomm {

/// Carries out the MessageForm of a plan, and adds the bytes of loaded lines to the trace. Throws
/// std::bad_alloc before a byte moves.
void run_messages(const HostPass &pass, pidcomm_trace &trace);

/// The bytes that run_messages needs at pass.host_lines.base.
uint64_t message_buffer_bytes(const PeMessages &messages, int threads);

}  // namespace pidcomm
