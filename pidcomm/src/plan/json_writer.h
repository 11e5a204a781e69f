// Writes plans as JSON. Strings are numbers, or names that do not need escaping.
#pragma once

#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>

namespace pidcomm {

/// Writes JSON objects and arrays, with commas between their elements.
class JsonWriter {
 public:
  void open(const char *key, char bracket) {
    start(key);
    text_ << bracket;
    is_first_ = true;
  }
  void close(char bracket) {
    text_ << bracket;
    is_first_ = false;
  }
  void number(const char *key, uint64_t value) {
    start(key);
    text_ << value;
  }
  void real(const char *key, double value) {
    start(key);
    text_ << std::setprecision(9) << value;
  }
  void boolean(const char *key, bool value) {
    start(key);
    text_ << (value ? "true" : "false");
  }
  void string(const char *key, const std::string &value) {
    start(key);
    text_ << '"' << value << '"';
  }
  std::string text() const { return text_.str(); }

 private:
  void start(const char *key) {
    if (!is_first_) text_ << ", ";
    is_first_ = false;
    if (key != nullptr) text_ << '"' << key << "\": ";
  }
  std::ostringstream text_;
  bool is_first_ = true;
};

}  // namespace pidcomm
