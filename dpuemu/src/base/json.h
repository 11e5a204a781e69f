// Texts and numbers in JSON, in each locale.
#pragma once

#include <charconv>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace dpuemu {

/// Returns the bytes of the first character if it is valid UTF-8, otherwise 0. text: not empty.
inline size_t utf8_bytes(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (at(0) < 0x80) return 1;
  const size_t bytes = at(0) >= 0xf0 ? 4 : at(0) >= 0xe0 ? 3 : 2;
  if (at(0) < 0xc2 || at(0) > 0xf4 || text.size() < bytes) return 0;
  // Some second bytes would encode a shorter character, a surrogate or a number over 0x10ffff.
  const unsigned char least = at(0) == 0xe0 ? 0xa0 : at(0) == 0xf0 ? 0x90 : 0x80;
  const unsigned char most = at(0) == 0xed ? 0x9f : at(0) == 0xf4 ? 0x8f : 0xbf;
  if (at(1) < least || at(1) > most) return 0;
  for (size_t i = 2; i < bytes; ++i)
    if (at(i) < 0x80 || at(i) > 0xbf) return 0;
  return bytes;
}

/// Calls put(character) for each character of the text as a string of JSON, with U+FFFD in place of
/// each byte that is not UTF-8. Does not allocate.
template <class Put>
void put_quoted(std::string_view text, Put put) {
  constexpr char kDigits[] = "0123456789abcdef";
  put('"');
  size_t valid = 0;  // bytes of the current character that remain
  for (size_t i = 0; i < text.size(); ++i) {
    const char character = text[i];
    const auto code = static_cast<unsigned char>(character);
    if (valid == 0) valid = utf8_bytes(text.substr(i));
    if (valid == 0) {
      for (const char next : {'\xef', '\xbf', '\xbd'}) put(next);
      continue;
    }
    --valid;
    if (code < ' ') {
      for (const char next : {'\\', 'u', '0', '0', kDigits[code >> 4], kDigits[code & 15]})
        put(next);
      continue;
    }
    if (character == '"' || character == '\\') put('\\');
    put(character);
  }
  put('"');
}

/// The same for a finite number, with all its digits.
template <class Put>
void put_number(double value, Put put) {
  constexpr int kAllDigits = 17;
  char text[32];
  const char *const end =
      std::to_chars(text, std::end(text), value, std::chars_format::general, kAllDigits).ptr;
  for (const char *next = text; next != end; ++next) put(*next);
}

/// Returns the text as a string of JSON.
inline std::string quoted(const std::string &text) {
  std::string result;
  put_quoted(text, [&](char character) { result += character; });
  return result;
}

/// Returns the finite number in JSON.
inline std::string number(double value) {
  std::string result;
  put_number(value, [&](char character) { result += character; });
  return result;
}

}  // namespace dpuemu
