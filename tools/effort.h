// How much the tests run: with PIDCOMM_TEST_EFFORT=small a part, for sanitizers and for a second
// rank access; with PIDCOMM_TEST_EFFORT=full also the cases of which they otherwise run a sample.
#pragma once

#include <cstdlib>
#include <string>

namespace effort {

#ifdef __SANITIZE_THREAD__
constexpr int kSmallPart = 40;  // TSan is slow, and a race shows at any size
#else
constexpr int kSmallPart = 10;
#endif

inline bool is(const char *wanted) {
  const char *effort = std::getenv("PIDCOMM_TEST_EFFORT");
  return effort != nullptr && std::string(effort) == wanted;
}
inline bool is_small() { return is("small"); }
inline bool is_full() { return is("full"); }

}  // namespace effort
