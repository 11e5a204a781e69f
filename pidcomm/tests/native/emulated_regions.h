// The mappings that the SDK's rank access searches in tests: emulated DIMMs have no device files.
#pragma once

#include <functional>

#include "rank_access/region_mappings.h"

/// The result of pidcomm::region_mappings(). By default every address in the process's anonymous
/// memory where a region may begin: the regions of the ranks, and many wrong ones.
extern std::function<std::vector<pidcomm::RegionMapping>()> region_source;

std::vector<pidcomm::RegionMapping> places_for_regions();
