// Moves the messages of a plan on acquired ranks, line by line.
#pragma once

#include "exec/lines.h"
#include "exec/sweep_pass.h"
#include "pidcomm/pidcomm.h"

namespace pidcomm {

/// Carries out the MessageForm of a plan, and adds the bytes of loaded lines to the trace. Throws
/// std::bad_alloc before a byte moves.
void run_messages(const HostPass &pass, pidcomm_trace &trace);

/// Flushes the lines that run_messages loads from the caches.
void flush_messages(const HostPass &pass, const std::vector<BankPair> &bank_pairs);

/// The bytes that run_messages needs at pass.buffer.
uint64_t message_buffer_bytes(const PeMessages &messages, int threads);

}  // namespace pidcomm
