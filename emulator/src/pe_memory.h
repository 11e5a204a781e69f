// Manages the addresses of PE programs in this process: these addresses are below 2 GiB, reserved at their first use, and never move.
#pragma once

#include <cstdint>

#include "address_map.h"
#include "program.h"

namespace dpuemu {

/// The WRAM, mutexes and text of the PEs of a rank. Inaccessible addresses surround each of these areas.
class RankPlaces {
 public:
  /// Reserves the addresses at the first call. Returns success.
  bool reserve();
  /// Requires reserve().
  PePlace of(uint32_t dpu_index) const;

  /// Makes the PE's WRAM accessible if it is not accessible yet. Returns whether the WRAM is now accessible.
  bool open_wram(uint32_t dpu_index);
  /// Makes `bytes` bytes of text writable, or executable and read-only. Returns whether the change succeeded.
  bool set_text(uint32_t dpu_index, uint32_t bytes, bool executable);

  /// Frees the memory of the PEs and makes all addresses inaccessible.
  void drop();

  static constexpr uint32_t kPesPerChunk = 8;  // small chunks fit into the gaps in the process's address space below 2 GiB

 private:
  uint8_t *chunks_[kDpusPerRank / kPesPerChunk] = {};
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
  /// Makes `usable_bytes` (complete pages, at most kMostBytes) of each stack accessible; lower addresses are inaccessible. Returns success.
  bool set_usable(uint32_t usable_bytes);
  uint64_t end(uint32_t tasklet) const { return begin() + uint64_t{PE_STACK_BLOCK_BYTES} * (tasklet + 1); }
  /// Returns the tasklet whose block contains the address, or PE_MAX_TASKLETS if no block contains it.
  uint32_t owner(uint64_t address) const;
  /// Returns whether the bytes are in the accessible part of one stack.
  bool contains(uint64_t address, uint64_t bytes) const;

  static constexpr uint32_t kMostBytes = PE_STACK_BLOCK_BYTES - 4096;

 private:
  /// The size of all stacks, including an inaccessible block below the first stack.
  static constexpr uint64_t kBytes = uint64_t{PE_STACK_BLOCK_BYTES} * (PE_MAX_TASKLETS + 1);
  uint64_t begin() const { return reinterpret_cast<uint64_t>(base_) + PE_STACK_BLOCK_BYTES; }
  uint8_t *base_ = nullptr;
  uint32_t usable_bytes_ = 0;  // 0 if set_usable failed
};

}  // namespace dpuemu
