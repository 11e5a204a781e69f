#include "rank_access/region_mappings.h"

#include <sstream>

namespace pidcomm {

std::vector<RegionMapping> parse_region_mappings(std::istream &maps) {
  std::vector<RegionMapping> mappings;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string permissions, offset, device, inode, path;
    if (!(fields >> std::hex >> begin >> dash >> end >> permissions >> offset >> device >> inode >>
          path))
      continue;
    const bool is_open = permissions.starts_with("rw") && permissions.ends_with('s');
    if (!is_open || !(path.starts_with("/dev/dax") || path.starts_with("/dev/dpu"))) continue;
    mappings.push_back(
        {reinterpret_cast<std::byte *>(begin), end - begin, device + " " + inode + " " + path});
  }
  return mappings;
}

}  // namespace pidcomm
