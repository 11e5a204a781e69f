// The items of the check list. Each function returns a detail for the report, or throws Failed or
// Skipped.
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

/// Makes a hypercube on each rank separately. The library must find the rank's memory, and read the
/// words that the SDK writes.
std::string check_mappings(const Ranks &ranks);

enum class Direction { kSdkToLibrary, kLibraryToSdk };
/// Writes words by the SDK and reads them by the library, or the reverse. The words are at
/// addresses that differ in each bit, at random places, and in long blocks.
std::string check_address_map(const Cube &cube, Direction direction, const Settings &settings);

/// Checks that the library never reads stale lines: dpu_push_xfer repeatedly changes lines that are
/// in the host's caches.
std::string check_stale_lines(const Cube &cube, const Settings &settings);

/// Does the same check with PEs that change the lines: launch, collective, launch.
std::string check_launches(const Ranks &ranks, const Cube &cube, const PeProgram &program,
                           const Settings &settings);

/// Checks a technique with all masks of a shape. `technique` and `collectives` are columns of
/// PIDCOMM_TECHNIQUES. If PEs reorder blocks, the library replaces their program.
std::string check_technique(const Ranks &ranks, int technique, uint32_t collectives,
                            const Settings &settings);

/// Checks a collective on several shapes, with all masks and several types and operators.
std::string check_collective(const Ranks &ranks, int collective, const Settings &settings);

/// Returns the GB/s of a streaming copy in its fastest order.
double copy_gb_s(const Cube &cube, const Settings &settings);
/// Measures the GB/s of a collective on the memory bus, also as a percentage of the copy's GB/s.
std::string measure_collective(const Cube &cube, int collective, double limit_gb_s,
                               const Settings &settings);

/// Runs random collectives until `seconds` have passed.
std::string soak(const Ranks &ranks, double seconds, const Settings &settings);

}  // namespace doctor
