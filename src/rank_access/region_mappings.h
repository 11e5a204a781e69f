// The mappings of this process that may be the regions of its ranks. region_mappings_linux.cpp finds those of the UPMEM driver; tests
// provide those of emulated DIMMs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace pidcomm {

struct RegionMapping {
  std::byte *begin = nullptr;
  uint64_t bytes = 0;
  std::string source;  // device number, inode and path

  bool operator==(const RegionMapping &) const = default;
};

/// Mappings of the UPMEM driver's devices, large or small, in order of address. Throws std::bad_alloc.
std::vector<RegionMapping> region_mappings();

/// The lines of /proc/<pid>/maps that are readable, writable, shared mappings of /dev/dax* (the region of a rank in the region mode `perf`,
/// where the SDK maps it whole) or /dev/dpu* (in other modes at most the control interfaces are mapped).
std::vector<RegionMapping> parse_region_mappings(std::istream &maps);

}  // namespace pidcomm
