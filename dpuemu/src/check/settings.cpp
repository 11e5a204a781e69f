#include "check/settings.h"

#include <cstdlib>
#include <fstream>
#include <string_view>

namespace dpuemu {
namespace {

std::string text_of(const char *variable) {
  const char *const text = std::getenv(variable);
  return text != nullptr ? text : "";
}

CheckSettings read() {
  CheckSettings settings;
  settings.is_on = !text_of("DPUEMU_CHECK").empty();
  if (!settings.is_on) return settings;
  settings.file = text_of("DPUEMU_CHECK_FILE");
  std::ifstream hidden(text_of("DPUEMU_CHECK_SUPPRESSIONS"));
  for (std::string line; std::getline(hidden, line);)
    if (!line.empty() && line[0] != '#') settings.hidden.push_back(line);
  const std::string schedules = text_of("DPUEMU_CHECK_SCHEDULES"),
                    seed = text_of("DPUEMU_CHECK_SEED");
  settings.is_exhaustive = schedules == "all";
  settings.schedules = static_cast<uint32_t>(std::strtoul(schedules.c_str(), nullptr, 10));
  if (!seed.empty()) settings.seed = std::strtoull(seed.c_str(), nullptr, 10);
  return settings;
}

}  // namespace

const CheckSettings &check_settings() {
  static const auto *const settings = new CheckSettings(read());
  return *settings;
}

}  // namespace dpuemu
