// The object behind a pidcomm_hypercube.
#pragma once

#include <atomic>
#include <cstdint>

#include "exec/executor.h"
#include "pidcomm/pidcomm.h"

struct pidcomm_hypercube {
  pidcomm::Executor executor;
  std::atomic<uint32_t> pending = 0;  // number of calls for which the program has not waited
};
