#include "pe/mram_port.h"

#include <algorithm>

#include "base/address_map.h"
#include "base/line_kernels.h"

namespace dpuemu {
namespace {

/// Calls act(first line in the region, words) for each piece of [offset, offset + bytes) within one
/// run.
template <class Act>
void for_each_run(uint8_t *region, uint32_t bank, uint64_t offset, uint64_t bytes, Act act) {
  for (const uint64_t end = offset + bytes; offset < end;) {
    const uint64_t piece = std::min(end, (offset / kRunBytes + 1) * kRunBytes) - offset;
    act(region + line_offset(bank, offset), static_cast<uint32_t>(piece / kWordBytes));
    offset += piece;
  }
}

}  // namespace

void MramPort::read(uint64_t offset, uint64_t bytes, uint8_t *to) const {
  const LineKernels &kernels = line_kernels();
  for_each_run(region_, bank_, offset, bytes, [&](const uint8_t *lines, uint32_t words) {
    kernels.read_lane(lines, chip_, words, to);
    to += kWordBytes * words;
  });
}

void MramPort::write(uint64_t offset, uint64_t bytes, const uint8_t *from) const {
  const LineKernels &kernels = line_kernels();
  for_each_run(region_, bank_, offset, bytes, [&](uint8_t *lines, uint32_t words) {
    kernels.write_lane(lines, chip_, words, from);
    from += kWordBytes * words;
  });
}

}  // namespace dpuemu
