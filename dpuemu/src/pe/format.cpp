#include "pe/format.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

namespace dpuemu {
namespace {

/// va_list of x86-64 with 32-bit pointers. An integer takes 8 bytes in the area of saved registers
/// or on the stack. A floating-point value takes 16 bytes in the area of saved registers, or 8
/// bytes on the stack.
struct VaList {
  uint32_t integer_offset, float_offset, overflow_area, register_area;
};
constexpr uint32_t kIntegerAreaEnd = 48, kFloatAreaEnd = 176;

class Formatter {
 public:
  Formatter(const BytesAt &bytes_at, std::string &text) : bytes_at_(bytes_at), text_(text) {}

  /// Returns the error, or "" on success.
  std::string run(uint32_t format, uint32_t arguments) {
    const uint8_t *list = bytes_at_(arguments, sizeof list_);
    const std::optional<std::string> pattern = string_at(format, kNoLimit);
    if (list == nullptr || !pattern) return "the format of printf is outside the PE's memory";
    std::memcpy(&list_, list, sizeof list_);
    for (const char *next = pattern->c_str(); *next != '\0';) {
      if (*next != '%') {
        text_ += *next++;
      } else if (std::string problem = convert(next); !problem.empty()) {
        return problem;
      }
    }
    return {};
  }

 private:
  static constexpr uint64_t kNoLimit = UINT64_MAX;

  /// Prints the conversion at `next` and advances past it. Returns the error, or "" on success.
  std::string convert(const char *&next) {
    std::string spec = "%";
    for (++next; *next != '\0' && std::strchr("-+ #0", *next) != nullptr; ++next) spec += *next;
    std::optional<int64_t> width, precision;
    if (std::string problem = take_number(next, width); !problem.empty()) return problem;
    if (width) spec += std::to_string(*width);
    if (*next == '.') {
      ++next;
      precision = 0;
      if (std::string problem = take_number(next, precision); !problem.empty()) return problem;
      if (*precision >= 0)
        (spec += '.') += std::to_string(*precision);
      else
        precision.reset();  // a negative precision counts as no precision
    }
    std::string length;
    for (; *next != '\0' && std::strchr("hlztjL", *next) != nullptr; ++next) length += *next;
    const char conversion = *next;
    if (conversion == '\0') return "the format of printf ends inside a conversion";
    ++next;
    if (conversion == '%') {
      text_ += '%';
      return {};
    }
    const bool is_wide = length == "l" || length == "ll" || length == "j";
    if (std::strchr("di", conversion) != nullptr) {
      uint64_t word;
      if (!take(false, word)) return kNoMemory;
      return append(spec + "ll" + conversion, signed_value(word, length, is_wide));
    }
    if (std::strchr("uoxXp", conversion) != nullptr) {
      uint64_t word;
      if (!take(false, word)) return kNoMemory;
      if (conversion == 'p')
        return append("0x%llx", static_cast<unsigned long long>(word & UINT32_MAX));
      return append(spec + "ll" + conversion, unsigned_value(word, length, is_wide));
    }
    if (conversion == 'c') {
      uint64_t word;
      if (!take(false, word)) return kNoMemory;
      return append(spec + conversion, static_cast<int>(word));
    }
    if (std::strchr("eEfFgG", conversion) != nullptr) {
      uint64_t word;
      if (!take(true, word)) return kNoMemory;
      double value;
      std::memcpy(&value, &word, sizeof value);
      return append(spec + conversion, value);
    }
    if (conversion == 's') {
      uint64_t word;
      if (!take(false, word)) return kNoMemory;
      const uint64_t limit = precision ? static_cast<uint64_t>(*precision) : kNoLimit;
      const std::optional<std::string> string = string_at(static_cast<uint32_t>(word), limit);
      if (!string) return "printf got a string outside the PE's memory";
      return append(spec + conversion, string->c_str());
    }
    return "the format of printf has a conversion that a DPU lacks";
  }

  static long long signed_value(uint64_t word, const std::string &length, bool is_wide) {
    if (is_wide) return static_cast<long long>(word);
    if (length == "hh") return static_cast<int8_t>(word);
    if (length == "h") return static_cast<int16_t>(word);
    return static_cast<int32_t>(word);
  }

  static unsigned long long unsigned_value(uint64_t word, const std::string &length, bool is_wide) {
    if (is_wide) return word;
    if (length == "hh") return static_cast<uint8_t>(word);
    if (length == "h") return static_cast<uint16_t>(word);
    return static_cast<uint32_t>(word);
  }

  /// Reads a width or precision: digits, or `*` for an argument. Without both, keeps `value`.
  /// Returns the error, or "" on success.
  std::string take_number(const char *&next, std::optional<int64_t> &value) {
    if (*next == '*') {
      uint64_t word;
      if (!take(false, word)) return kNoMemory;
      ++next;
      value = static_cast<int32_t>(word);
    } else if (*next >= '0' && *next <= '9') {
      for (value = 0; *next >= '0' && *next <= '9'; ++next)
        value = std::min<int64_t>(10 * *value + (*next - '0'), INT32_MAX);
    }
    if (!value || (*value >= -kMostBytes && *value <= kMostBytes)) return {};
    return "printf has a width or precision of " + std::to_string(*value) + "; at most " +
           std::to_string(kMostBytes) + " are possible";
  }

  bool take(bool is_float, uint64_t &word) {
    uint32_t &offset = is_float ? list_.float_offset : list_.integer_offset;
    uint32_t address;
    if (offset < (is_float ? kFloatAreaEnd : kIntegerAreaEnd)) {
      address = list_.register_area + offset;
      offset += is_float ? 16 : 8;
    } else {
      address = list_.overflow_area;
      list_.overflow_area += 8;
    }
    const uint8_t *bytes = bytes_at_(address, sizeof word);
    if (bytes != nullptr) std::memcpy(&word, bytes, sizeof word);
    return bytes != nullptr;
  }

  std::optional<std::string> string_at(uint32_t address, uint64_t limit) const {
    std::string out;
    for (; out.size() < limit; ++address) {
      const uint8_t *byte = bytes_at_(address, 1);
      if (byte == nullptr) return std::nullopt;
      if (*byte == 0) break;
      out += static_cast<char>(*byte);
    }
    return out;
  }

  template <class Value>
  std::string append(const std::string &spec, Value value) {
    const int length = std::snprintf(nullptr, 0, spec.c_str(), value);
    const size_t begin = text_.size();
    if (length < 0 || begin + static_cast<size_t>(length) > kMostBytes)
      return "printf prints " + std::to_string(begin + static_cast<size_t>(length)) +
             " characters or more; at most " + std::to_string(kMostBytes) + " are possible";
    text_.resize(begin + static_cast<size_t>(length) + 1);
    std::snprintf(text_.data() + begin, static_cast<size_t>(length) + 1, spec.c_str(), value);
    text_.pop_back();
    return {};
  }

  static constexpr const char *kNoMemory = "the arguments of printf are outside the PE's memory";
  static constexpr int64_t kMostBytes =
      1 << 20;  // a limit, because the time of a runtime call does not count as computing

  const BytesAt &bytes_at_;
  std::string &text_;
  VaList list_ = {};
};

}  // namespace

bool format_for_pe(uint32_t format, uint32_t arguments, const BytesAt &bytes_at, std::string &text,
                   std::string &problem) {
  problem = Formatter(bytes_at, text).run(format, arguments);
  return problem.empty();
}

}  // namespace dpuemu
