// Manages the addresses of PE programs in this process: these addresses are below 2 GiB, reserved
// at their first use, and never move.
#pragma once

#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "base/address_map.h"
#include "machine/program.h"

namespace dpuemu {

/// The WRAM, mutexes and text of the PEs of a rank. Inaccessible addresses surround each of these
/// areas.
class RankPlaces {
 public:
  /// Reserves the addresses at the first call. Returns success.
  bool reserve();
  /// Requires reserve().
  PePlace of(uint32_t dpu_index) const;

  /// Makes the PE's WRAM accessible if it is not accessible yet. Returns whether the WRAM is now
  /// accessible.
  bool open_wram(uint32_t dpu_index);
  /// Makes `bytes` bytes of text writable, or executable and read-only. Returns whether the change
  /// succeeded.
  bool set_text(uint32_t dpu_index, uint32_t bytes, bool executable);

  /// Makes `bytes` bytes of counters accessible. Returns success.
  bool open_counters(uint32_t dpu_index, uint32_t bytes);

  /// For strict mode: the WRAM and mutexes of a PE are accessible only between enter() and leave(),
  /// whose calls may nest. After the first leave(), an access at any other time faults. enter()
  /// returns whether the PE's memory is accessible. Requires open_wram().
  bool enter(uint32_t dpu_index);
  void leave(uint32_t dpu_index);
  /// Returns the PE whose WRAM contains the address, or kDpusPerRank.
  uint32_t owner(uint64_t address) const;

  /// Frees the memory of the PEs and makes all addresses inaccessible.
  void drop();

  static constexpr uint32_t kPesPerChunk =
      8;  // small chunks fit into the gaps in the process's address space below 2 GiB

 private:
  uint8_t *chunks_[kDpusPerRank / kPesPerChunk] = {};
  std::mutex mutex_;                   // guards users_ and the access rights of WRAM in strict mode
  uint32_t users_[kDpusPerRank] = {};  // number of calls of enter() without leave()
};

/// The use of a PE's WRAM by the host or by the run of the PE. Without strict mode, does nothing.
class WramUse {
 public:
  /// If the host has no memory, throws std::bad_alloc.
  WramUse(RankPlaces &places, uint32_t dpu_index, bool is_strict)
      : places_(is_strict ? &places : nullptr), dpu_index_(dpu_index) {
    if (is_strict && !places.enter(dpu_index)) throw std::bad_alloc();
  }
  WramUse(WramUse &&other) noexcept
      : places_(std::exchange(other.places_, nullptr)), dpu_index_(other.dpu_index_) {}
  WramUse &operator=(WramUse &&) = delete;
  ~WramUse() {
    if (places_ != nullptr) places_->leave(dpu_index_);
  }

 private:
  RankPlaces *places_;
  uint32_t dpu_index_;
};

/// The stacks of the tasklets of one running PE.
class Stacks {
 public:
  Stacks() = default;
  ~Stacks();
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;

  /// Reserves the addresses at the first call. Returns success.
  bool reserve();
  /// Makes `usable_bytes` (complete pages, at most kMostBytes) of the tasklet's stack accessible;
  /// lower addresses are inaccessible. Returns success.
  bool set_usable(uint32_t tasklet, uint32_t usable_bytes);
  uint64_t end(uint32_t tasklet) const {
    return begin() + uint64_t{PE_STACK_BLOCK_BYTES} * (tasklet + 1);
  }
  /// Returns the tasklet whose block contains the address, or PE_MAX_TASKLETS if no block contains
  /// it.
  uint32_t owner(uint64_t address) const;
  /// Returns whether the bytes are in the accessible part of one stack.
  bool contains(uint64_t address, uint64_t bytes) const;

  static constexpr uint32_t kMostBytes = PE_STACK_BLOCK_BYTES - 4096;

 private:
  /// The size of all stacks, including an inaccessible block below the first stack.
  static constexpr uint64_t kBytes = uint64_t{PE_STACK_BLOCK_BYTES} * (PE_MAX_TASKLETS + 1);
  uint64_t begin() const { return reinterpret_cast<uint64_t>(base_) + PE_STACK_BLOCK_BYTES; }
  uint8_t *base_ = nullptr;
  uint32_t usable_bytes_[PE_MAX_TASKLETS] = {};  // 0 if set_usable failed
};

}  // namespace dpuemu
