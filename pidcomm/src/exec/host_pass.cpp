// Functions that several host passes use.
#include "exec/host_pass.h"

#include <algorithm>

#include "base/geometry.h"

namespace pidcomm {

const Reducer *reducer_of(const Kernels &kernels, const Plan &plan) {
  return plan.reduces ? &kernels.reducers[plan.type.code - PIDCOMM_INT8][plan.op] : nullptr;
}

LinePosition position_of(std::byte *eg_base, uint64_t word) {
  return {eg_base + word_offset(word), static_cast<uint32_t>(kRunWords - word % kRunWords)};
}

std::vector<BankPair> bank_pairs_of(std::vector<std::byte *> eg_base) {
  std::sort(eg_base.begin(), eg_base.end());
  std::vector<BankPair> bank_pairs;
  for (std::byte *base : eg_base) {
    const bool completes_pair =
        !bank_pairs.empty() && bank_pairs.back().banks == 1 &&
        base - bank_pairs.back().base == static_cast<std::ptrdiff_t>(kLineBytes);
    if (completes_pair)
      bank_pairs.back().banks = 2;
    else
      bank_pairs.push_back({base, 1});
  }
  return bank_pairs;
}

uint64_t HostLines::bytes_for(uint64_t egs, uint64_t words) {
  return (egs + 2 * kPairEgs - 1) / (2 * kPairEgs) * uint64_t{kPairEgs} * words * kLineStride;
}

std::byte *HostLines::line(uint32_t eg, uint64_t word) const {
  const uint64_t pair = uint64_t{eg} / (2 * kPairEgs) * kPairEgs + eg % kPairEgs;
  return base + (pair * words + word) * kLineStride + eg / kPairEgs % 2 * kLineBytes;
}

bool stores_rows_non_temporally(const Plan &plan) {
  constexpr uint64_t kCacheBytes = uint64_t{16} << 20;
  return plan.out_row_bytes * plan.grouping.groups >= kCacheBytes;
}

int useful_threads(uint64_t bytes, int threads) {
  constexpr uint64_t kSerialBytes = uint64_t{64} << 10;
  return bytes < kSerialBytes ? 1 : threads;
}

int useful_threads_of(const Plan &plan, int threads) {
  return useful_threads((plan.in_pe_bytes + plan.out_pe_bytes) * plan.cube.pes, threads);
}

uint32_t words_to_line(const void *row) {
  const uint64_t past_bytes = reinterpret_cast<uintptr_t>(row) % kLineBytes;
  return past_bytes % kWordBytes == 0
             ? static_cast<uint32_t>((kLineBytes - past_bytes) / kWordBytes)
             : kStepWords;
}

}  // namespace pidcomm
