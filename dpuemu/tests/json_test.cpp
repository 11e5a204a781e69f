// Texts in JSON are valid UTF-8 for all bytes.
#include "base/json.h"

#include <string>

#include "effort.h"
#include "harness.h"

using namespace dpuemu;

namespace {

constexpr char32_t kCodes = 0x110000;
const std::string kReplacement = "\xef\xbf\xbd";

/// Encodes a number of at most 21 bits as UTF-8 does, in `bytes` bytes (2 to 4).
std::string encoded(char32_t code, int bytes) {
  constexpr int kFirst[] = {0xc0, 0xe0, 0xf0};
  std::string text(1, static_cast<char>(kFirst[bytes - 2] | code >> 6 * (bytes - 1)));
  for (int i = bytes - 2; i >= 0; --i) text += static_cast<char>(0x80 | (code >> 6 * i & 0x3f));
  return text;
}

/// The text with the replacement in place of each byte.
std::string replaced(size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += kReplacement;
  return text;
}

}  // namespace

TEST(Json_KeepsEachCharacterAndReplacesTheBytesOfOthers) {
  const char32_t step = effort::is_small() ? effort::kSmallPart : 1;
  for (int bytes = 2; bytes <= 4; ++bytes) {
    const char32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
    const char32_t numbers = bytes == 2 ? 0x800 : bytes == 3 ? 0x10000 : 0x200000;
    for (char32_t code = 0; code < numbers; code += step) {
      const bool is_valid = code >= least && code < kCodes && (code < 0xd800 || code > 0xdfff);
      const std::string text = encoded(code, bytes);
      const std::string expected = is_valid ? text : replaced(text.size());
      CHECK_EQ(quoted(text + "a"), "\"" + expected + "a\"");
    }
  }
}

TEST(Json_ReplacesBytesThatNoCharacterBeginsWithOrThatEndTooEarly) {
  for (int byte = 0x80; byte <= 0xff; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    CHECK_EQ(quoted(text), "\"" + kReplacement + "\"");
    CHECK_EQ(quoted(text + "\"\n"), "\"" + kReplacement + "\\\"\\u000a\"");
  }
  for (const char32_t code : {U'\u20ac', U'\U0001f600'}) {
    const std::string text = encoded(code, code < 0x10000 ? 3 : 4);
    for (size_t bytes = 1; bytes < text.size(); ++bytes)
      CHECK_EQ(quoted(text.substr(0, bytes) + text), "\"" + replaced(bytes) + text + "\"");
  }
}
