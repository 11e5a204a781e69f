// What the passes share.
#include "exec/host_pass.h"

#include "hostpass/address_map.h"

namespace pidcomm {

LinePosition position_of(std::byte *eg_base, uint64_t word) {
  return {eg_base + word_offset(word), static_cast<uint32_t>(kRunWords - word % kRunWords)};
}

bool streams_rows(const Plan &plan) {
  constexpr uint64_t kCacheBytes = uint64_t{16} << 20;
  return plan.out_row_bytes * plan.grouping.groups >= kCacheBytes;
}

uint32_t words_to_line(const void *row) {
  const uint64_t past_bytes = reinterpret_cast<uintptr_t>(row) % kLineBytes;
  return past_bytes % kWordBytes == 0 ? static_cast<uint32_t>((kLineBytes - past_bytes) / kWordBytes) : kStepWords;
}

}  // namespace pidcomm
