// Texts in JSON.
#pragma once

#include <cstdio>
#include <string>

namespace dpuemu {

/// Returns the text as a string of JSON.
inline std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (const char character : text) {
    char code[8];
    if (character == '"' || character == '\\') result += '\\';
    if (static_cast<unsigned char>(character) < ' ') {
      std::snprintf(code, sizeof code, "\\u%04x", character);
      result += code;
    } else {
      result += character;
    }
  }
  return result + '"';
}

}  // namespace dpuemu
