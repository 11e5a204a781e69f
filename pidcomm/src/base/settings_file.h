// Where the library finds the user's files.
#pragma once

#include <cstdlib>
#include <string>

namespace pidcomm {

/// Returns the path that environment variable `variable` names. If the variable is not set, returns
/// pidcomm/NAME in $XDG_CONFIG_HOME or in ~/.config. Returns "" if the variable is empty, or if
/// neither XDG_CONFIG_HOME nor HOME is set.
inline std::string settings_path(const char *variable, const std::string &name) {
  const auto value_of = [](const char *of) {
    const char *const value = std::getenv(of);
    return std::string(value == nullptr ? "" : value);
  };
  if (std::getenv(variable) != nullptr) return value_of(variable);
  if (const std::string folder = value_of("XDG_CONFIG_HOME"); !folder.empty())
    return folder + "/pidcomm/" + name;
  const std::string home = value_of("HOME");
  return home.empty() ? "" : home + "/.config/pidcomm/" + name;
}

}  // namespace pidcomm
