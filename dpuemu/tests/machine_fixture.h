// Shared by the tests: a machine per test, sets that free themselves, and payloads in which bytes
// of different places differ.
#pragma once

#include <dpu.h>
#include <dpu_management.h>
#include <dpuemu.h>

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

#include "harness.h"

namespace fixture {

inline const char *const kHeap = DPU_MRAM_HEAP_POINTER_NAME;

#define CHECK_OK(call) CHECK_EQ(fixture::text(call), fixture::text(DPU_OK))
#define CHECK_STATUS(call, status) CHECK_EQ(fixture::text(call), fixture::text(status))

inline std::string text(dpu_error_t status) {
  char *sentence = dpu_error_to_string(status);
  std::string out = std::to_string(status) + " " + sentence;
  std::free(sentence);
  return out;
}

/// Configures `ranks` ranks, two threads and 4 KiB pages (small tests use little memory), without
/// the DPUs in `absent`.
inline void machine(uint32_t ranks, std::initializer_list<uint32_t> absent = {}, int flush = 2,
                    int strict = 2) {
  dpuemu_machine_t wanted = {};
  wanted.ranks = ranks;
  wanted.threads = 2;
  wanted.hugepages = 2;
  wanted.flush = flush;
  wanted.strict = strict;
  const std::vector<uint32_t> list(absent);
  const uint32_t none = 0;
  CHECK_OK(dpuemu_configure(&wanted, list.empty() ? &none : list.data(),
                            static_cast<uint32_t>(list.size())));
}

/// Number of a DPU in dpuemu_configure's list.
inline uint32_t place(uint32_t rank, uint32_t chip, uint32_t bank) {
  return rank * 64 + chip * 8 + bank;
}

class Set {
 public:
  Set() = default;
  explicit Set(uint32_t dpus) { CHECK_OK(dpu_alloc(dpus, nullptr, &set)); }
  ~Set() {
    if (set.list.ranks != nullptr) dpu_free(set);
  }
  Set(const Set &) = delete;
  Set &operator=(const Set &) = delete;

  std::vector<dpu_set_t> dpus() {
    std::vector<dpu_set_t> all;
    dpu_set_t dpu;
    DPU_FOREACH(set, dpu) all.push_back(dpu);
    return all;
  }
  dpu_rank_t *rank(uint32_t i) const { return set.list.ranks[i]; }
  void forget() { set = {}; }

  dpu_set_t set = {};
};

/// A different byte for nearly every (seed, position).
inline uint8_t noise(uint64_t seed, uint64_t position) {
  uint64_t x = seed * 0x9E3779B97F4A7C15 + position * 0xBF58476D1CE4E5B9 + 1;
  x ^= x >> 31;
  x *= 0x94D049BB133111EB;
  return static_cast<uint8_t>(x >> 56);
}

inline std::vector<uint8_t> noise_bytes(uint64_t seed, size_t bytes) {
  std::vector<uint8_t> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = noise(seed, i);
  return out;
}

/// The region of one rank while the host owns it.
class RankAccess {
 public:
  explicit RankAccess(dpu_rank_t *rank) : rank_(rank) {
    CHECK_OK(dpuemu_rank_acquire(rank, &access));
  }
  ~RankAccess() { dpuemu_rank_release(rank_); }
  RankAccess(const RankAccess &) = delete;
  RankAccess &operator=(const RankAccess &) = delete;
  uint8_t &byte(uint32_t chip, uint32_t bank, uint64_t mram_offset) const {
    return access.base[dpuemu_region_offset(chip, bank, mram_offset)];
  }
  dpuemu_rank_access_t access;

 private:
  dpu_rank_t *rank_;
};

}  // namespace fixture
