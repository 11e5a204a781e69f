// Cuts of texts between the characters of UTF-8.
#pragma once

#include <cstddef>

namespace pidcomm {

/// Returns at most `bytes`: where a text can be cut without cutting a character. text[bytes] is the
/// first byte that is left out.
inline std::size_t cut_before(const char *text, std::size_t bytes) {
  const auto continues = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
  };
  std::size_t cut = bytes;
  while (cut != 0 && bytes - cut < 3 && continues(cut)) --cut;
  return continues(cut) ? bytes : cut;  // not UTF-8
}

}  // namespace pidcomm
