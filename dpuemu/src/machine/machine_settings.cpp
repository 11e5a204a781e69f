#include "machine/machine_settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/address_map.h"
#include "base/chip.h"
#include "base/line_kernels.h"

namespace dpuemu {
namespace {

struct CountSetting {
  uint32_t dpuemu_machine_t::*field;
  const char *variable;
  uint32_t (*fallback)(
      const dpuemu_machine_t &);  // may read the machine's fields of earlier table rows
  uint32_t max;
};

constexpr CountSetting kCounts[] = {
    {&dpuemu_machine_t::ranks, "DPUEMU_RANKS",
     [](const dpuemu_machine_t &) { return DPUEMU_MAX_RANKS; }, DPUEMU_MAX_RANKS},
    {&dpuemu_machine_t::ranks_per_channel, "DPUEMU_RANKS_PER_CHANNEL",
     [](const dpuemu_machine_t &) { return 4u; }, DPUEMU_MAX_RANKS},
    {&dpuemu_machine_t::channels, "DPUEMU_CHANNELS",
     [](const dpuemu_machine_t &m) {
       return (m.ranks + m.ranks_per_channel - 1) / m.ranks_per_channel;
     },
     DPUEMU_MAX_RANKS},
    {&dpuemu_machine_t::threads, "DPUEMU_THREADS",
     [](const dpuemu_machine_t &) { return std::max(1u, std::thread::hardware_concurrency()); },
     1024},
    {&dpuemu_machine_t::patience_seconds, "DPUEMU_PATIENCE",
     [](const dpuemu_machine_t &) { return 60u; }, 1000000},
};

struct SwitchSetting {
  int dpuemu_machine_t::*field;
  const char *variable;
  int fallback;
  int last;  // the largest valid value; the smallest valid value is kOn
};

constexpr SwitchSetting kSwitches[] = {
    {&dpuemu_machine_t::hugepages, "DPUEMU_HUGEPAGES", kOn, kOff},
    {&dpuemu_machine_t::flush, "DPUEMU_FLUSH", kOff, kOnce},
    {&dpuemu_machine_t::strict, "DPUEMU_STRICT", kOff, kOff},
};

/// Returns the value of an environment variable, or nullptr if the variable is not set or empty.
const char *environment(const char *variable) {
  const char *text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

/// Returns 0 unless the text is a number from 1 to `max`.
uint32_t parse_count(const char *text, uint32_t max) {
  char *end;
  const unsigned long value = std::strtoul(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == '\0' && value <= max ? static_cast<uint32_t>(value)
                                                                      : 0;
}

int parse_switch(const char *text) {
  constexpr struct {
    const char *word;
    int value;
  } kWords[] = {{"on", kOn}, {"1", kOn}, {"off", kOff}, {"0", kOff}, {"once", kOnce}};
  for (const auto &known : kWords)
    if (std::strcmp(text, known.word) == 0) return known.value;
  return 0;
}

/// Returns the value of dpuemu_chip_t, or 0 if no chip has this name.
int parse_chip(std::string_view name) {
  const auto found = std::find_if(kChipRows.begin(), kChipRows.end(),
                                  [&](const Chip &chip) { return chip.name == name; });
  return found != kChipRows.end()
             ? static_cast<int>(found - kChipRows.begin()) + DPUEMU_CHIP_GENERIC
             : 0;
}

}  // namespace

dpu_error_t complete_settings(dpuemu_machine_t &machine) {
  for (const CountSetting &setting : kCounts) {
    uint32_t &value = machine.*setting.field;
    if (value == 0) {
      const char *text = environment(setting.variable);
      value = text != nullptr ? parse_count(text, setting.max) : setting.fallback(machine);
    }
    if (value == 0 || value > setting.max) return DPU_ERR_INVALID_PROFILE;
  }
  for (const SwitchSetting &setting : kSwitches) {
    int &value = machine.*setting.field;
    if (value == 0) {
      const char *text = environment(setting.variable);
      value = text != nullptr ? parse_switch(text) : setting.fallback;
    }
    if (value < kOn || value > setting.last) return DPU_ERR_INVALID_PROFILE;
  }
  if (machine.chip == 0) {
    const char *text = environment("DPUEMU_CHIP");
    machine.chip = text != nullptr ? parse_chip(text) : DPUEMU_CHIP_GENERIC;
  }
  if (machine.chip < 1 || machine.chip > static_cast<int>(kChipRows.size()))
    return DPU_ERR_INVALID_PROFILE;
  const bool is_valid = machine.channels * machine.ranks_per_channel >= machine.ranks &&
                        environment_problem().empty();
  return is_valid ? DPU_OK : DPU_ERR_INVALID_PROFILE;
}

std::string environment_problem() {
  std::string names;
  if (const char *chip = environment("DPUEMU_CHIP"); chip != nullptr && parse_chip(chip) == 0) {
    for (const Chip &row : kChipRows) names += (names.empty() ? "" : ", ") + std::string(row.name);
    return "DPUEMU_CHIP is " + std::string(chip) + "; the chips are " + names;
  }
  const char *isa = environment("DPUEMU_ISA");
  if (isa == nullptr || line_kernels_by_name(isa) != nullptr) return {};
  for (uint32_t i = 0; const LineKernels *kernels = supported_line_kernels(i); ++i)
    names += (i == 0 ? "" : ", ") + std::string(kernels->isa);
  return "DPUEMU_ISA is " + std::string(isa) + "; this machine supports " + names;
}

std::optional<std::vector<uint32_t>> disabled_from_environment() {
  std::vector<uint32_t> disabled;
  const char *text = environment("DPUEMU_DISABLED");
  while (text != nullptr && *text != '\0') {
    unsigned rank, chip, bank;
    int length = 0;
    if (std::sscanf(text, "%4u.%1u.%1u%n", &rank, &chip, &bank, &length) != 3 || chip >= kChips ||
        bank >= kBanks)
      return std::nullopt;
    disabled.push_back(rank * kDpusPerRank + chip * kBanks + bank);
    text += length;
    if (*text == ',')
      ++text;
    else if (*text != '\0')
      return std::nullopt;
  }
  return disabled;
}

}  // namespace dpuemu
