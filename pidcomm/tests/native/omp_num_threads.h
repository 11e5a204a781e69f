// OMP_NUM_THREADS during a test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

/// Sets OMP_NUM_THREADS for its lifetime.
class OmpNumThreads {
 public:
  explicit OmpNumThreads(const char *text) {
    if (const char *before = std::getenv(kName)) before_ = before;
    text == nullptr ? unsetenv(kName) : setenv(kName, text, 1);
  }
  ~OmpNumThreads() { before_ ? setenv(kName, before_->c_str(), 1) : unsetenv(kName); }

 private:
  static constexpr const char *kName = "OMP_NUM_THREADS";
  std::optional<std::string> before_;
};
