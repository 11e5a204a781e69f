// The items of the check list. Each returns a detail for the report, or throws Failed or Skipped.
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

/// A hypercube on every rank by itself: the library finds the rank's memory, and reads the words that the SDK writes.
std::string check_mappings(const Ranks &ranks);

enum class Direction { kSdkToLibrary, kLibraryToSdk };
/// Words that differ in each address bit, at random places and in long blocks: one side writes all of them, then the other reads them.
std::string check_address_map(const Cube &cube, Direction direction, const Settings &settings);

/// dpu_push_xfer repeatedly changes lines that the host's caches hold.
std::string check_stale_lines(const Cube &cube, const Settings &settings);

/// The same by PEs: launch, collective, launch.
std::string check_launches(const Ranks &ranks, const Cube &cube, const PeProgram &program, const Settings &settings);

/// A technique (code, and collectives that it is for: a row of PIDCOMM_TECHNIQUES): all masks of a shape. Where PEs reorder blocks, the
/// library replaces their program.
std::string check_technique(const Ranks &ranks, int technique, uint32_t collectives, const Settings &settings);

/// A collective on several shapes, all masks, several types and operators.
std::string check_collective(const Ranks &ranks, int collective, const Settings &settings);

/// GB/s of the best order of a streaming copy.
double copy_gb_s(const Cube &cube, const Settings &settings);
/// GB/s of a collective on the memory bus, and its percentage of the copy's.
std::string measure_collective(const Cube &cube, int collective, double limit_gb_s, const Settings &settings);

/// Random collectives until `seconds` have passed.
std::string soak(const Ranks &ranks, double seconds, const Settings &settings);

}  // namespace doctor
