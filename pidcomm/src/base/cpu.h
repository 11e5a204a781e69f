// The CPU on which the library runs.
#pragma once

#include <cpuid.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace pidcomm {

struct Cpu {
  std::string vendor;  // as CPUID reports it, such as GenuineIntel
  uint32_t family, model;
};

/// Source: CPUID leaves 0 and 1 in the manuals of Intel and AMD. AMD CPUs have an extended model
/// only in family 15, as base family 6 is older.
inline Cpu cpu() {
  uint32_t largest = 0, ebx = 0, ecx = 0, edx = 0, eax = 0;
  __get_cpuid(0, &largest, &ebx, &ecx, &edx);
  char vendor[12];
  std::memcpy(vendor, &ebx, 4);
  std::memcpy(vendor + 4, &edx, 4);
  std::memcpy(vendor + 8, &ecx, 4);
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  const uint32_t family = eax >> 8 & 0xF, model = eax >> 4 & 0xF;
  const bool is_extended = family == 6 || family == 15;
  return {std::string(vendor, sizeof vendor), family == 15 ? family + (eax >> 20 & 0xFF) : family,
          is_extended ? model | (eax >> 12 & 0xF0) : model};
}

/// Returns a line that names the CPU in the library's files.
inline std::string cpu_line() {
  const Cpu found = cpu();
  return "cpu " + found.vendor + " " + std::to_string(found.family) + " " +
         std::to_string(found.model);
}

}  // namespace pidcomm
