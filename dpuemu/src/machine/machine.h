// The emulated machine: its ranks, the allocation of ranks, and the meaning of a dpu_set_t.
#pragma once

#include <dpu.h>
#include <dpuemu.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/chip.h"
#include "base/handle_arena.h"
#include "machine/rank.h"

namespace dpuemu {

/// The kind of a page of HandleArena, which the first bytes of the page store. A retired page reads
/// as zero.
enum class HandleKind : uint32_t { kRetired = 0, kRank = 0x4B4E4152, kSet = 0x54455320 };

}  // namespace dpuemu

/// The handles of a DPU and of a rank that programs get. An allocation creates the handles in a
/// page of HandleArena, which reads as zero after dpu_free. `rank` outlives the handles.
struct dpu_t {
  uint8_t chip;
  uint8_t bank;
  const dpuemu::Pe *pe;
};

struct dpu_rank_t {
  dpuemu::HandleKind kind;
  dpuemu::Rank *rank;
  uint64_t enabled;                  // the enabled DPUs, as a bit set by dpu_index
  dpu_t dpus[dpuemu::kDpusPerRank];  // by dpu_index
};

namespace dpuemu {

struct SetRecord;

/// The ranks and DPUs of a dpu_set_t. The ranks cannot be freed while this object exists.
class PinnedSet {
 public:
  PinnedSet() = default;
  ~PinnedSet();
  PinnedSet(const PinnedSet &) = delete;
  PinnedSet &operator=(const PinnedSet &) = delete;

  /// Pins the ranks of the set. Call this function only once. Errors: DPU_ERR_INVALID_DPU_SET.
  dpu_error_t pin(const dpu_set_t &set);

  std::span<Rank *const> ranks() const { return {ranks_, count_}; }
  bool is_single_dpu() const { return is_single_dpu_; }
  /// Returns the enabled DPUs of the i-th rank that belong to the DPU set, as a bit set by
  /// dpu_index. Returns 0 if the DPU set is a single disabled DPU.
  uint64_t members(size_t i) const { return members_[i]; }

 private:
  Rank *ranks_[DPUEMU_MAX_RANKS];
  uint64_t members_[DPUEMU_MAX_RANKS];
  uint32_t count_ = 0;
  bool is_single_dpu_ = false;
};

class Machine {
 public:
  /// Returns the only machine of the process; the first call sets up the machine from environment
  /// variables.
  static Machine &instance();

  dpu_error_t configure(const dpuemu_machine_t &wanted,
                        std::optional<std::span<const uint32_t>> disabled);
  dpu_error_t settings(dpuemu_machine_t &out);
  dpu_error_t set_transfer(uint32_t threads, int flush);
  uint32_t threads() const { return threads_.load(std::memory_order_relaxed); }
  /// Returns when transfers flush lines from the caches: before and after loading (kOn), only
  /// before loading (kOnce), or never (kOff).
  int flush() const { return flush_.load(std::memory_order_relaxed); }
  uint32_t patience_seconds() const { return patience_seconds_.load(std::memory_order_relaxed); }
  const Chip &chip() const {
    return kChipRows[static_cast<size_t>(chip_.load(std::memory_order_relaxed) -
                                         DPUEMU_CHIP_GENERIC)];
  }
  bool is_strict() const { return is_strict_.load(std::memory_order_relaxed); }
  uint64_t resident_bytes();
  /// Returns the name of the PE whose WRAM contains the address, or "".
  std::string wram_owner(uint64_t address);

  enum class Unit { kDpus, kRanks };
  /// sg_max_blocks: of the ranks (rank.h); kAllDpus: the number of allocated DPUs.
  static constexpr uint32_t kAllDpus = UINT32_MAX;
  dpu_error_t allocate(Unit unit, uint32_t count, uint32_t sg_max_blocks, dpu_set_t &out);
  dpu_error_t free(const dpu_set_t &set);
  /// Frees a rank that is the only rank of its allocation.
  dpu_error_t free_rank(const dpu_rank_t *rank);

  bool is_live(const dpu_set_t &set);
  /// Copies the rank or DPU to which a pointer of the program refers; returns false if the rank or
  /// DPU is not allocated.
  bool find(const dpu_rank_t *rank, Rank *&out);
  bool find(const dpu_t *dpu, dpu_rank_t *&rank, dpu_t &out);
  /// Returns the first enabled DPU of the rank at or after `index`, else kDpusPerRank (also if the
  /// rank is not allocated).
  uint32_t next_enabled(const dpu_rank_t *rank, uint32_t index);

  /// Sets `buffer` as the host buffer of the next transfer for all members of a pinned set. Inside
  /// a callback, the callback's ranks use separate buffers.
  void prepare(const PinnedSet &set, uint8_t *buffer);
  std::vector<PreparedBuffers> prepared(const PinnedSet &set);

 private:
  friend class PinnedSet;
  Machine();

  dpu_error_t configure_locked(dpuemu_machine_t wanted,
                               std::optional<std::span<const uint32_t>> disabled);
  dpu_rank_t *live_rank(const dpu_rank_t *rank) const;
  dpu_rank_t *live_rank_of(const dpu_t *dpu) const;
  SetRecord *live_record(const dpu_set_t &set) const;
  dpu_rank_t *const *live_ranks(const dpu_set_t &set) const;
  void unpin(std::span<Rank *const> ranks);

  std::mutex mutex_;  // guards all members below except the atomics
  std::condition_variable unpinned_;
  HandleArena arena_;
  Rank ranks_[DPUEMU_MAX_RANKS];
  const Region *regions_[DPUEMU_MAX_RANKS];
  uint64_t present_[DPUEMU_MAX_RANKS] =
      {};  // the DPUs that exist in each rank, as a bit set by dpu_index
  int numa_node_ = -1;
  dpuemu_machine_t settings_ = {};
  dpu_error_t setup_status_ =
      DPU_OK;  // DPU_ERR_INVALID_PROFILE if an environment variable is invalid
  std::atomic<uint32_t> threads_{1};
  std::atomic<int> flush_{0};
  std::atomic<bool> is_strict_{false};
  std::atomic<uint32_t> patience_seconds_{60};
  std::atomic<int> chip_{DPUEMU_CHIP_GENERIC};

 public:
  int numa_node() const { return numa_node_; }  // set once, at construction
};

}  // namespace dpuemu
