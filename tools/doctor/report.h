// What the doctor says: a line per item of its check list, `ok`, `FAILED: sentence` or `skipped: reason`, with the time it took.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace doctor {

/// Ends an item.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Parts>
std::string joined(const Parts &...parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class Report {
 public:
  /// has_text: whether to print for people. json: where a JSON object per line goes, too, or nullptr; borrowed.
  Report(bool has_text, std::FILE *json) : has_text_(has_text), json_(json) {}

  /// Facts, in this order, before the items.
  void header(const std::vector<std::pair<std::string, std::string>> &facts) const;

  /// Runs an item and prints how it ended; body returns what else there is to say. Returns whether it did not fail.
  bool item(const std::string &name, const std::function<std::string()> &body);

  /// Prints the sums. Returns the exit code: 0 if nothing failed.
  int finish() const;

 private:
  void write_json(const std::string &object) const;

  bool has_text_;
  std::FILE *json_;
  unsigned passed_ = 0, failed_ = 0, skipped_ = 0;
  Stopwatch total_;
};

}  // namespace doctor
