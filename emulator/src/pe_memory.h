// Where PE programs lie in this process: addresses below 2 GiB, reserved when first needed and never moved.
#pragma once

#include <cstdint>

#include "address_map.h"
#include "program.h"

namespace dpuemu {

/// The WRAM, mutexes and text of a rank's PEs, each with inaccessible addresses on either side.
class RankPlaces {
 public:
  /// Reserves the addresses if that has not been done yet. Returns whether they are there.
  bool reserve();
  /// Requires reserve().
  PePlace of(uint32_t dpu_index) const;

  /// Makes the PE's WRAM usable; the PE may have it already. Returns success.
  bool open_wram(uint32_t dpu_index);
  /// Makes `bytes` of text writable, or executable and read-only. Returns success.
  bool set_text(uint32_t dpu_index, uint32_t bytes, bool executable);

  /// Forgets the contents and gives the memory back; nothing is accessible any more.
  void drop();

  static constexpr uint32_t kPesPerChunk = 8;  // small pieces fit between what else a process has below 2 GiB

 private:
  uint8_t *chunks_[kDpusPerRank / kPesPerChunk] = {};
};

/// The stacks of one running PE's tasklets.
class Stacks {
 public:
  Stacks() = default;
  ~Stacks();
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;

  /// Takes the addresses if that has not been done yet. Returns whether they are there.
  bool reserve();
  /// Makes the stacks usable, each `usable_bytes` (whole pages, at most kMostBytes) deep; what lies below is inaccessible.
  void set_usable(uint32_t usable_bytes);
  uint64_t end(uint32_t tasklet) const { return begin() + uint64_t{PE_STACK_BLOCK_BYTES} * (tasklet + 1); }
  /// The tasklet whose block the address lies in, PE_MAX_TASKLETS if none.
  uint32_t owner(uint64_t address) const;
  /// Whether the bytes lie in one usable stack.
  bool contains(uint64_t address, uint64_t bytes) const;

  static constexpr uint32_t kMostBytes = PE_STACK_BLOCK_BYTES - 4096;

 private:
  /// With a block that stays inaccessible: no stack ends where something else begins.
  static constexpr uint64_t kBytes = uint64_t{PE_STACK_BLOCK_BYTES} * (PE_MAX_TASKLETS + 1);
  uint64_t begin() const { return reinterpret_cast<uint64_t>(base_) + PE_STACK_BLOCK_BYTES; }
  uint8_t *base_ = nullptr;
  uint32_t usable_bytes_ = 0;
};

}  // namespace dpuemu
