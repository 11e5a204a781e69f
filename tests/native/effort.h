// How much of a grid runs: all of it, or a small part of it with PIDCOMM_TEST_EFFORT=small, for sanitizers and for a second rank access.
#pragma once

#include <cstdlib>
#include <string>

namespace effort {

#ifdef __SANITIZE_THREAD__
constexpr int kSmallPart = 40;  // TSan is slow, and a race shows at any size
#else
constexpr int kSmallPart = 10;
#endif

inline bool is_small() {
  const char *effort = std::getenv("PIDCOMM_TEST_EFFORT");
  return effort != nullptr && std::string(effort) == "small";
}

}  // namespace effort
