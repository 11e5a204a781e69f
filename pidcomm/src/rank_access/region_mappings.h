// The memory mappings of this process that may be the regions of ranks. region_mappings_linux.cpp
// finds the mappings of the UPMEM driver; tests provide mappings of emulated DIMMs.
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

/// Returns all memory mappings of the UPMEM driver's devices, sorted by address. Throws
/// std::bad_alloc.
std::vector<RegionMapping> region_mappings();

/// Returns the readable, writable, shared mappings of /dev/dax* and /dev/dpu* in the lines of
/// /proc/<pid>/maps. In the region mode `perf`, the SDK maps the complete region of a rank from
/// /dev/dax*; in all modes except `perf`, the SDK maps at most the control interfaces, from
/// /dev/dpu*.
std::vector<RegionMapping> parse_region_mappings(std::istream &maps);

}  // namespace pidcomm
