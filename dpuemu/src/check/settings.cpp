#include "check/settings.h"

#include <cstdlib>
#include <fstream>
#include <string_view>

namespace dpuemu {
namespace {

std::string variable_text(const char *variable) {
  const char *const text = std::getenv(variable);
  return text != nullptr ? text : "";
}

CheckSettings read_settings() {
  CheckSettings settings;
  const std::string on = variable_text("DPUEMU_CHECK");
  settings.is_on = !on.empty() && on != "0";
  if (!settings.is_on) return settings;
  settings.file = variable_text("DPUEMU_CHECK_FILE");
  std::ifstream hidden(variable_text("DPUEMU_CHECK_SUPPRESSIONS"));
  for (std::string line; std::getline(hidden, line);)
    if (!line.empty() && line[0] != '#') settings.hidden.push_back(line);
  const std::string schedules = variable_text("DPUEMU_CHECK_SCHEDULES"),
                    seed = variable_text("DPUEMU_CHECK_SEED");
  settings.pe = variable_text("DPUEMU_CHECK_PE");
  settings.is_exhaustive = schedules == "all";
  settings.schedules = static_cast<uint32_t>(std::strtoul(schedules.c_str(), nullptr, 10));
  if (!seed.empty()) settings.seed = std::strtoull(seed.c_str(), nullptr, 10);
  return settings;
}

}  // namespace

const CheckSettings &check_settings() {
  static const auto *const settings = new CheckSettings(read_settings());
  return *settings;
}

}  // namespace dpuemu
