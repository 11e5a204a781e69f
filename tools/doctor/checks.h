// The items of the check list. Each item returns a detail for the report, or throws Failed or Skipped.
#pragma once

#include <cstdint>
#include <string>

#include "doctor/fixture.h"
#include "doctor/pe_program.h"
#include "doctor/report.h"

namespace doctor {

struct Settings {
  bool is_quick = false;
  bool is_emulated = false;
  uint64_t seed = 1;
};

/// Makes a hypercube on each rank: the library finds the rank's memory, and reads the words that the SDK writes.
std::string check_mappings(const Ranks &ranks);

enum class Direction { kSdkToLibrary, kLibraryToSdk };
/// Compares words whose addresses differ in each bit, at random places, and in long blocks: the library writes all words and the SDK reads
/// them, or the reverse.
std::string check_address_map(const Cube &cube, Direction direction, const Settings &settings);

/// Calls dpu_push_xfer repeatedly to change lines that the caches of the host hold.
std::string check_stale_lines(const Cube &cube, const Settings &settings);

/// Lets PEs change such lines: launch, collective, launch.
std::string check_launches(const Ranks &ranks, const Cube &cube, const PeProgram &program, const Settings &settings);

/// Checks a technique with all masks of a shape. A row of PIDCOMM_TECHNIQUES has its code and its collectives. If PEs reorder blocks, the
/// library replaces their program.
std::string check_technique(const Ranks &ranks, int technique, uint32_t collectives, const Settings &settings);

/// Checks a collective with several shapes, all masks, and several types and operators.
std::string check_collective(const Ranks &ranks, int collective, const Settings &settings);

/// Measures the GB/s of a streaming copy in its best order.
double copy_gb_s(const Cube &cube, const Settings &settings);
/// Measures the GB/s of a collective on the memory bus, also as a percentage of the copy.
std::string measure_collective(const Cube &cube, int collective, double limit_gb_s, const Settings &settings);

/// Checks random collectives until `seconds` have passed.
std::string soak(const Ranks &ranks, double seconds, const Settings &settings);

}  // namespace doctor
