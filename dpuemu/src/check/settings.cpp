#include "check/settings.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace dpuemu {
namespace {

std::string variable_text(const char *variable) {
  const char *const text = std::getenv(variable);
  return text != nullptr ? text : "";
}

bool is_number(const std::string &text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

void complain(const char *variable, const char *rule) {
  std::fprintf(stderr, "dpuemu check: %s is %s, which is not %s\n", variable,
               variable_text(variable).c_str(), rule);
}

CheckSettings read_settings() {
  CheckSettings settings;
  const std::string on = variable_text("DPUEMU_CHECK");
  settings.is_on = !on.empty() && on != "0";
  if (!settings.is_on) return settings;
  settings.file = variable_text("DPUEMU_CHECK_FILE");
  const std::string suppressions = variable_text("DPUEMU_CHECK_SUPPRESSIONS");
  std::ifstream hidden(suppressions);
  if (!suppressions.empty() && !hidden) complain("DPUEMU_CHECK_SUPPRESSIONS", "a readable file");
  for (std::string line; std::getline(hidden, line);)
    if (!line.empty() && line[0] != '#') settings.hidden.push_back(line);
  const std::string schedules = variable_text("DPUEMU_CHECK_SCHEDULES"),
                    seed = variable_text("DPUEMU_CHECK_SEED");
  settings.pe = variable_text("DPUEMU_CHECK_PE");
  settings.is_exhaustive = schedules == "all";
  if (!settings.is_exhaustive && !is_number(schedules))
    complain("DPUEMU_CHECK_SCHEDULES", "a number or `all`");
  if (!is_number(seed)) complain("DPUEMU_CHECK_SEED", "a number");
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
