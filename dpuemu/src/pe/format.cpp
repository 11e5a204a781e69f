#include "pe/format.h"

#include <algorithm>
#include <bit>
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

/// The arguments of printf, in their order. A function without a result has reached the end of the
/// memory.
class Arguments {
 public:
  static constexpr uint64_t kNoLimit = UINT64_MAX;

  virtual ~Arguments() = default;
  /// bytes: the size of the argument on a DPU, 1 (a character), 4 or 8.
  virtual std::optional<uint64_t> integer(uint32_t bytes) = 0;
  virtual std::optional<double> real() = 0;
  /// Returns at most `limit` characters.
  virtual std::optional<std::string> string(uint64_t limit) = 0;
};

/// The arguments in a va_list of a program of the host's processor.
class ListArguments : public Arguments {
 public:
  ListArguments(const BytesAt &bytes_at, const VaList &list) : bytes_at_(bytes_at), list_(list) {}

  std::optional<uint64_t> integer(uint32_t) override {
    return take(list_.integer_offset, kIntegerAreaEnd, 8);
  }
  std::optional<double> real() override {
    const std::optional<uint64_t> word = take(list_.float_offset, kFloatAreaEnd, 16);
    if (!word) return {};
    return std::bit_cast<double>(*word);
  }
  std::optional<std::string> string(uint64_t limit) override {
    const std::optional<uint64_t> address = integer(4);
    if (!address) return {};
    return string_at(bytes_at_, static_cast<uint32_t>(*address), limit);
  }

  static std::optional<std::string> string_at(const BytesAt &bytes_at, uint32_t address,
                                              uint64_t limit) {
    std::string out;
    for (; out.size() < limit; ++address) {
      const uint8_t *byte = bytes_at(address, 1);
      if (byte == nullptr) return std::nullopt;
      if (*byte == 0) break;
      out += static_cast<char>(*byte);
    }
    return out;
  }

 private:
  std::optional<uint64_t> take(uint32_t &offset, uint32_t area_end, uint32_t bytes) {
    uint32_t address;
    if (offset < area_end) {
      address = list_.register_area + offset;
      offset += bytes;
    } else {
      address = list_.overflow_area;
      list_.overflow_area += 8;
    }
    const uint8_t *const at = bytes_at_(address, sizeof(uint64_t));
    if (at == nullptr) return {};
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }

  const BytesAt &bytes_at_;
  VaList list_;
};

/// The arguments in the log of a program of the vendor's compiler.
class LogArguments : public Arguments {
 public:
  explicit LogArguments(std::span<const uint8_t> &log) : log_(log) {}

  std::optional<uint64_t> integer(uint32_t bytes) override {
    if (log_.size() < bytes) return {};
    uint64_t word = 0;
    std::memcpy(&word, log_.data(), bytes);
    log_ = log_.subspan(bytes);
    return word;
  }
  std::optional<double> real() override {
    const std::optional<uint64_t> word = integer(8);
    if (!word) return {};
    return std::bit_cast<double>(*word);
  }
  std::optional<std::string> string(uint64_t limit) override {
    const auto end = std::find(log_.begin(), log_.end(), 0);
    if (end == log_.end()) return {};
    const std::string all(log_.begin(), end);
    log_ = log_.subspan(all.size() + 1);
    return all.substr(0, limit);
  }

 private:
  std::span<const uint8_t> &log_;
};

class Formatter {
 public:
  Formatter(Arguments &arguments, std::string &text)
      : arguments_(arguments), text_(text), begin_(text.size()) {}

  /// Prints a text with conversions. Returns the error, or "" on success.
  std::string run(const std::string &format) {
    for (const char *next = format.c_str(); *next != '\0';) {
      if (*next != '%') {
        text_ += *next++;
      } else if (std::string problem = convert(next); !problem.empty()) {
        return problem;
      }
    }
    return {};
  }

 private:
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
    if (std::strchr("diuoxXp", conversion) != nullptr) {
      const std::optional<uint64_t> word = arguments_.integer(is_wide ? 8 : 4);
      if (!word) return kNoMemory;
      if (conversion == 'p')
        return append("0x%llx", static_cast<unsigned long long>(*word & UINT32_MAX));
      if (conversion == 'd' || conversion == 'i')
        return append(spec + "ll" + conversion, signed_value(*word, length, is_wide));
      return append(spec + "ll" + conversion, unsigned_value(*word, length, is_wide));
    }
    if (conversion == 'c') {
      const std::optional<uint64_t> word = arguments_.integer(1);
      return word ? append(spec + conversion, static_cast<int>(*word)) : kNoMemory;
    }
    if (std::strchr("eEfFgG", conversion) != nullptr) {
      const std::optional<double> value = arguments_.real();
      return value ? append(spec + conversion, *value) : kNoMemory;
    }
    if (conversion == 's') {
      const uint64_t limit = precision ? static_cast<uint64_t>(*precision) : Arguments::kNoLimit;
      const std::optional<std::string> string = arguments_.string(limit);
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
      const std::optional<uint64_t> word = arguments_.integer(4);
      if (!word) return kNoMemory;
      ++next;
      value = static_cast<int32_t>(*word);
    } else if (*next >= '0' && *next <= '9') {
      for (value = 0; *next >= '0' && *next <= '9'; ++next)
        value = std::min<int64_t>(10 * *value + (*next - '0'), INT32_MAX);
    }
    if (!value || (*value >= -kMostBytes && *value <= kMostBytes)) return {};
    return "printf has a width or precision of " + std::to_string(*value) + "; at most " +
           std::to_string(kMostBytes) + " are possible";
  }

  template <class Value>
  std::string append(const std::string &spec, Value value) {
    const int length = std::snprintf(nullptr, 0, spec.c_str(), value);
    const size_t begin = text_.size();
    const size_t printed = begin - begin_ + static_cast<size_t>(length);
    if (length < 0 || printed > kMostBytes)
      return "printf prints " + std::to_string(printed) + " characters or more; at most " +
             std::to_string(kMostBytes) + " are possible";
    text_.resize(begin + static_cast<size_t>(length) + 1);
    std::snprintf(text_.data() + begin, static_cast<size_t>(length) + 1, spec.c_str(), value);
    text_.pop_back();
    return {};
  }

  inline static const std::string kNoMemory = "the arguments of printf are outside the PE's memory";
  static constexpr int64_t kMostBytes =
      1 << 20;  // a limit, because the time of a runtime call does not count as computing

  Arguments &arguments_;
  std::string &text_;
  const size_t begin_;  // of the output
};

}  // namespace

bool format_for_pe(uint32_t format, uint32_t arguments, const BytesAt &bytes_at, std::string &text,
                   std::string &problem) {
  VaList list;
  const uint8_t *const at = bytes_at(arguments, sizeof list);
  const auto pattern = ListArguments::string_at(bytes_at, format, Arguments::kNoLimit);
  if (at == nullptr || !pattern) {
    problem = "the format of printf is outside the PE's memory";
    return false;
  }
  std::memcpy(&list, at, sizeof list);
  ListArguments values(bytes_at, list);
  problem = Formatter(values, text).run(*pattern);
  return problem.empty();
}

bool format_log(std::span<const uint8_t> log, std::string &text) {
  for (;;) {
    const auto begin = std::find(log.begin(), log.end(), '%'), end = std::find(begin, log.end(), 0);
    if (end == log.end()) return true;
    const std::string format(begin, end);
    log = log.subspan(static_cast<size_t>(end - log.begin()) + 1);
    LogArguments arguments(log);
    if (!Formatter(arguments, text).run(format).empty()) return false;
  }
}

}  // namespace dpuemu
