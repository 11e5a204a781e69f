// The doctor's report. Each item of the check list has a line with `ok`, `FAILED: sentence` or
// `skipped: reason`, and the time.
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

/// An exception that ends an item.
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
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class Report {
 public:
  /// has_text: whether to print text to stdout. json: a borrowed file that also receives one JSON
  /// object per line, or nullptr.
  Report(bool has_text, std::FILE *json) : has_text_(has_text), json_(json) {}

  /// Prints facts about the machine, in this order, before the items.
  void header(const std::vector<std::pair<std::string, std::string>> &facts) const;

  /// Runs an item and prints its result. body returns a detail to print. Returns false if the item
  /// failed.
  bool item(const std::string &name, const std::function<std::string()> &body);

  /// Prints the totals. Returns the exit code: 0 if nothing failed.
  int finish() const;

 private:
  void write_json(const std::string &object) const;

  bool has_text_;
  std::FILE *json_;
  unsigned passed_ = 0, failed_ = 0, skipped_ = 0;
  Stopwatch total_;
};

}  // namespace doctor
