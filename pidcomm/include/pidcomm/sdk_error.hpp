/// sdk_error.hpp: turns a status of the UPMEM SDK into a std::string.
#pragma once

#include <pidcomm/dpu_api.h>

#include <cstdlib>
#include <string>

namespace pidcomm {

/// Returns the text of dpu_error_to_string. Since SDK 2025.1, the caller of dpu_error_to_string
/// must free the text; in SDKs before 2025.1, the text is a constant.
inline std::string sdk_error_text(dpu_error_t status) {
  struct Owned {
    static void free_text(char *text) { std::free(text); }
    static void free_text(const char *) {}
  };
  auto *text = dpu_error_to_string(status);
  const std::string copy = text == nullptr ? "unknown error" : text;
  Owned::free_text(text);
  return copy;
}

}  // namespace pidcomm
