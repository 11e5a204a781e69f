// Where the SDK's rank access looks for regions in tests: regions of emulated DIMMs are no devices.
#pragma once

#include <functional>

#include "rank_access/region_mappings.h"

/// What pidcomm::region_mappings() returns. By default every place in the process's anonymous memory where a region may begin: those of the
/// ranks, and many wrong ones.
extern std::function<std::vector<pidcomm::RegionMapping>()> region_source;

std::vector<pidcomm::RegionMapping> places_for_regions();
