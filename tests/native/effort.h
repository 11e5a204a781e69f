// How much of a grid runs: all of it, or about a tenth of it with PIDCOMM_TEST_EFFORT=small, for sanitizers and for a second rank access.
#pragma once

#include <cstdlib>
#include <string>

namespace effort {

constexpr int kSmallPart = 10;

inline bool is_small() {
  const char *effort = std::getenv("PIDCOMM_TEST_EFFORT");
  return effort != nullptr && std::string(effort) == "small";
}

}  // namespace effort
