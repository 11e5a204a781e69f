// Compares the calls of all hosts before any byte of a call moves.
#pragma once

#include <string>

#include "base/error.h"
#include "hosts/link.h"

namespace pidcomm {

/// What a host is about to do: the description of its call, or the error with which it refuses the
/// call.
struct Intent {
  pidcomm_status status = PIDCOMM_OK;
  std::string text;
  uint32_t pieces = 1;  // the number of pieces that the host proposes
};

/// Exchanges the intents of all hosts, and waits for all hosts. If a host refuses, throws the error
/// of the first such host. If the descriptions differ, throws ERR_ARGUMENT with two different
/// descriptions. All hosts throw the same error. Returns the pieces of host 0, because predictions
/// may differ between hosts. Errors: also those of Link::exchange.
uint32_t agree(Link &link, const Intent &intent);

}  // namespace pidcomm
