#include <fstream>

#include "rank_access/region_mappings.h"

namespace pidcomm {

std::vector<RegionMapping> region_mappings() {
  std::ifstream maps("/proc/self/maps");
  return parse_region_mappings(maps);
}

}  // namespace pidcomm
