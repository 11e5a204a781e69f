// Texts and numbers in JSON, in each locale.
#pragma once

#include <charconv>
#include <iterator>
#include <string>
#include <string_view>

namespace dpuemu {

/// Calls put(character) for each character of the text as a string of JSON. Does not allocate.
template <class Put>
void put_quoted(std::string_view text, Put put) {
  constexpr char kDigits[] = "0123456789abcdef";
  put('"');
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
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
