#include "emulated_regions.h"

#include <dpuemu.h>

#include <fstream>
#include <sstream>
#include <string>

#include "rank_access/rank_access.h"
#include "sdk_access.h"

std::function<std::vector<pidcomm::RegionMapping>()> region_source = places_for_regions;

std::vector<pidcomm::RegionMapping> places_for_regions() {
  constexpr uint64_t kStep = uint64_t{1} << 30;  // regions are aligned to it
  // Lower addresses hold the sanitizers' shadow memory, which changes with every thread.
  constexpr uint64_t kLowest = uint64_t{0x7c} << 40;
  std::vector<pidcomm::RegionMapping> places;
  const auto add_places = [&](uint64_t begin, uint64_t end) {
    for (uint64_t place = (begin + kStep - 1) / kStep * kStep; place + DPUEMU_REGION_BYTES <= end;
         place += kStep)
      places.push_back({reinterpret_cast<std::byte *>(place), DPUEMU_REGION_BYTES, "memory"});
  };
  // On a strict machine, a region consists of mappings of one file that follow each other.
  uint64_t run_begin = 0, run_end = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    uint64_t begin = 0, end = 0, offset = 0, inode = 0;
    char dash = 0;
    std::string permissions, device, name;
    fields >> std::hex >> begin >> dash >> end >> permissions >> offset >> device >> inode >> name;
    const bool is_memory = name.empty() ? inode == 0 : name.starts_with("/memfd:");
    if (permissions != "rw-p" || !is_memory || begin < kLowest) continue;
    if (begin != run_end) {
      add_places(run_begin, run_end);
      run_begin = begin;
    }
    run_end = end;
  }
  add_places(run_begin, run_end);
  return places;
}

namespace pidcomm {

std::vector<RegionMapping> region_mappings() { return region_source(); }

}  // namespace pidcomm

bool pidcomm_test_is_open(struct dpu_rank_t *rank) {
  std::byte *base = nullptr;
  return pidcomm::rank_access_acquire(rank, &base) != DPU_ERR_INTERNAL;
}
