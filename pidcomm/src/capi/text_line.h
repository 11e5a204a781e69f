// A text of limited length, which signal handlers can make: without allocations and locks.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/utf8.h"

namespace pidcomm {

/// Drops the end of a text that is too long, and no part of a character. `end_line` always fits.
class TextLine {
 public:
  TextLine &operator<<(const char *text) {
    for (; *text != '\0' && !is_full_; ++text) {
      text_[length_] = *text;
      is_full_ = length_ == kCapacity;
      length_ = is_full_ ? cut_before(text_, length_) : length_ + 1;
    }
    return *this;
  }
  TextLine &operator<<(uint64_t value) {
    char digits[21] = {};
    char *begin = digits + sizeof digits - 1;
    do *--begin = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    return *this << begin;
  }
  /// Adds value / 1000 with three decimals.
  TextLine &thousandths(uint64_t value) {
    const char digits[] = {'.', static_cast<char>('0' + value / 100 % 10),
                           static_cast<char>('0' + value / 10 % 10),
                           static_cast<char>('0' + value % 10), '\0'};
    return *this << value / 1000 << digits;
  }
  /// Adds a time of at least 0 with three digits or more.
  TextLine &seconds(double value) {
    const bool is_short = value < 1e-3, is_long = value >= 1;
    const double unit = is_short ? 1e-6 : is_long ? 1 : 1e-3;
    return thousandths(static_cast<uint64_t>(std::min(value / unit * 1e3 + 0.5, 1e18)))
           << (is_short  ? " us"
               : is_long ? " s"
                         : " ms");
  }
  TextLine &end_line() {
    text_[length_++] = '\n';
    return *this;
  }
  bool is_full() const { return is_full_; }
  std::string_view text() const { return {text_, length_}; }

 private:
  static constexpr std::size_t kCapacity = 2046;
  char text_[kCapacity + 2];  // with the first byte that does not fit, and the end of the line
  std::size_t length_ = 0;
  bool is_full_ = false;
};

/// Writes a text to a file descriptor. Returns whether all of it is written.
inline bool write_all(int file_descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file_descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace pidcomm
