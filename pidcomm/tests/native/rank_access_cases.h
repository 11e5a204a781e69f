// Shared by the tests of the SDK's rank access: the regions it finds, the words it tags, and its
// proofs.
#pragma once

#include <pidcomm/pidcomm.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "emulated_regions.h"
#include "interposed_sdk.h"
#include "machine.h"
#include "rank_access/rank_access.h"

namespace rank_access_cases {

using machine::Bytes;
using machine::DpuSet;
using pidcomm::RegionMapping;

inline constexpr uint64_t kGib = uint64_t{1} << 30;

/// Replaces the mappings that rank access searches, for its lifetime.
class RegionsAre {
 public:
  explicit RegionsAre(std::vector<RegionMapping> regions) {
    region_source = [regions] { return regions; };
  }
  ~RegionsAre() { region_source = places_for_regions; }
  RegionsAre(const RegionsAre &) = delete;
  RegionsAre &operator=(const RegionsAre &) = delete;
};

inline RegionMapping region_of(struct dpu_rank_t *rank) {
  dpuemu_rank_access_t access;
  DPU_OK_OR_FAIL(dpuemu_rank_acquire(rank, &access));
  DPU_OK_OR_FAIL(dpuemu_rank_release(rank));
  return {reinterpret_cast<std::byte *>(access.base), access.size_bytes, "region"};
}

/// Memory that could contain a region.
class Decoy {
 public:
  Decoy() : words_(new std::byte[kBytes]) {}
  RegionMapping mapping() const { return {words_.get(), kBytes, "decoy"}; }

 private:
  static constexpr uint64_t kBytes = 8 * kGib;  // untouched pages take no memory
  std::unique_ptr<std::byte[]> words_;
};

/// The result of opening a rank. open_and_close closes it again.
struct Answer {
  dpu_error_t status;
  std::string why;
};
inline Answer open_and_close(struct dpu_rank_t *rank) {
  Answer answer;
  answer.status = pidcomm::rank_access_open(rank, &answer.why);
  if (answer.status == DPU_OK) pidcomm::rank_access_close(rank);
  return answer;
}

/// Rows of the words at some MRAM bytes of all enabled PEs of a set, in DPU_FOREACH order.
class MramWords {
 public:
  explicit MramWords(struct dpu_set_t set) : set_(set) {
    for (uint32_t bit = 3; bit < 26; ++bit)
      offsets_.insert(offsets_.end(), {1u << bit, (1u << bit) - 8});
    offsets_.push_back(static_cast<uint32_t>(machine::kMramBytes - 8));
    DPU_OK_OR_FAIL(dpu_get_nr_dpus(set, &pes_));
  }
  void write(uint64_t seed) const {
    for (uint32_t offset : offsets_) {
      Bytes rows(8 * pes_);
      verify::fill_distinct(seed ^ offset, 8, rows);
      transfer(DPU_XFER_TO_DPU, offset, rows);
    }
  }
  std::vector<Bytes> read() const {
    std::vector<Bytes> all;
    for (uint32_t offset : offsets_) {
      all.emplace_back(8 * pes_);
      transfer(DPU_XFER_FROM_DPU, offset, all.back());
    }
    return all;
  }

 private:
  void transfer(dpu_xfer_t direction, uint32_t offset, Bytes &rows) const {
    struct dpu_set_t set = set_, dpu;
    uint32_t row;
    DPU_FOREACH(set, dpu, row) DPU_OK_OR_FAIL(dpu_prepare_xfer(dpu, rows.data() + 8 * row));
    DPU_OK_OR_FAIL(
        dpu_push_xfer(set_, direction, DPU_MRAM_HEAP_POINTER_NAME, offset, 8, DPU_XFER_DEFAULT));
  }
  struct dpu_set_t set_;
  uint32_t pes_ = 0;
  std::vector<uint32_t> offsets_;
};

/// The purposes of a proof's transfers; each purpose has one transfer per probe.
enum class For { saving, tagging, restoring, restoring_again, reading_back };

/// The seven words of docs/hardware.md.
inline constexpr uint32_t kProbes[] = {
    0, 8 << 10, 16 << 10, 32 << 10, 2 << 20, 4 << 20, machine::kMramBytes - 8};

/// Replaces the transfers of one proof, for its lifetime.
class ProofIs {
 public:
  using Act = std::function<dpu_error_t(For, uint32_t offset, const interposed::Copy &)>;
  explicit ProofIs(Act act)
      : act_(std::move(act)), copies_([this](const interposed::Copy &copy) {
          const std::size_t number = copy.is_write ? writes_++ : reads_++;
          const auto turn = static_cast<int>(number / std::size(kProbes));
          const For what = copy.is_write ? (turn == 0   ? For::tagging
                                            : turn == 1 ? For::restoring
                                                        : For::restoring_again)
                                         : (turn == 0 ? For::saving : For::reading_back);
          return act_(what, copy.matrix->offset, copy);
        }) {}
  std::size_t transfers() const { return reads_ + writes_; }

 private:
  Act act_;
  std::size_t reads_ = 0, writes_ = 0;
  interposed::CopiesAre copies_;
};

/// Carries out the transfers, and copies the tagged lines to `place`, except the line of
/// `but_offset` and `but_bank`.
inline ProofIs::Act tags_also_go_to(std::byte *place, const RegionMapping &region,
                                    uint32_t but_offset = UINT32_MAX, uint32_t but_bank = 0) {
  return [=, from = region.begin](For what, uint32_t offset, const interposed::Copy &copy) {
    const dpu_error_t status = copy.carry_out();
    for (uint32_t bank = 0; bank < DPUEMU_BANKS_PER_CHIP && what == For::tagging; ++bank) {
      const uint64_t line = dpuemu_region_offset(0, bank, offset);
      if (offset != but_offset || bank != but_bank) std::memcpy(place + line, from + line, 64);
    }
    return status;
  };
}

inline std::byte *base_of(struct dpu_rank_t *rank) {
  std::byte *base = nullptr;
  DPU_OK_OR_FAIL(pidcomm::rank_access_acquire(rank, &base));
  pidcomm::rank_access_release(rank);
  return base;
}

/// The same memory as another mapping: rank access must prove it again.
inline RegionMapping mapped_again(RegionMapping region) {
  region.source += ", mapped again";
  return region;
}

inline constexpr auto kMoment =
    std::chrono::milliseconds(30);  // a thread that fails to wait goes on within it
inline constexpr auto kTooLong = std::chrono::seconds(10);  // limit for a thread that must not wait

inline bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// The first byte of a bank, lane 0, read from the region. On DIMMs, the line would need a flush
/// first.
inline uint64_t first_byte_of_bank(std::byte *base, uint32_t bank) {
  return std::to_integer<uint64_t>(base[dpuemu_region_offset(0, bank, 0)]);
}

}  // namespace rank_access_cases
