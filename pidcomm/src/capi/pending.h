// The object behind a pidcomm_pending.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <future>

#include "pidcomm/pidcomm.h"

struct pidcomm_pending {
  std::atomic<uint32_t> *pending;  // of the cube of the call
  std::future<pidcomm_trace> end;
  pid_t process;  // the process that started the call
};
