// Translates the instructions of DPUs to host code, which is code for the host's processor, and
// runs it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "isa/block.h"
#include "isa/core.h"

namespace dpuemu::isa {

/// Memory for host code that one mapping can write and another one can execute. No page can do
/// both.
class HostCodeMemory {
 public:
  HostCodeMemory() = default;
  /// If the system or the processor is not an x86-64 Linux, or refuses, the memory has no bytes.
  explicit HostCodeMemory(size_t bytes);
  HostCodeMemory(const HostCodeMemory &) = delete;
  HostCodeMemory &operator=(const HostCodeMemory &) = delete;
  ~HostCodeMemory();

  size_t bytes() const { return bytes_; }
  const uint8_t *at(size_t place) const { return executable_ + place; }
  void write(size_t place, const std::vector<uint8_t> &host_code);

 private:
  size_t bytes_ = 0;
  uint8_t *writable_ = nullptr, *executable_ = nullptr;
};

/// The host code of a program that one process makes.
class HostCode {
 public:
  /// before: of the parent process, or nullptr. This object goes on with its blocks. It exists as
  /// long as this one.
  HostCode(const Code &code, const Frame &frame, size_t most_bytes, const HostCode *before);

  /// Returns whether the instruction has a block.
  bool has(uint32_t pc) const {
    return pc < entries_.size() && entries_[pc].load(std::memory_order_acquire) != untranslated_;
  }
  bool is_full() const { return is_full_.load(std::memory_order_relaxed); }
  /// Returns whether this process made the object, so that it may add blocks.
  bool is_of_this_process() const;
  /// Makes the block of an instruction, if the memory has room.
  void add(uint32_t pc);
  /// Runs the block of an instruction. Requires has(tasklet.pc).
  Left run(Tasklet &tasklet, Wram wram, int64_t budget) const;

  const HostCode *const before;

 private:
  const Code &code_;
  const Frame &frame_;
  const int process_;
  HostCodeMemory memory_;
  const uint8_t *const untranslated_;  // the entry of an instruction without a block
  std::mutex mutex_;
  size_t used_;  // bytes of the memory
  std::atomic<bool> is_full_;
  // By the number of the instruction: where the host code goes on.
  std::vector<std::atomic<const uint8_t *>> entries_;
};

/// A program, executed as host code. Several threads may use it at a time, each with another
/// tasklet. It translates an instruction, and those after it, when a run first gets there. After a
/// fork, the child uses its parent's host code and makes more in memory of the child.
class Translation {
 public:
  /// code: lives longer than this object. most_bytes: of host code in a process; instructions
  /// beyond it, and all instructions if the system does not let this process execute memory, are
  /// interpreted.
  explicit Translation(const Code &code, size_t most_bytes = size_t{16} << 20)
      : code_(code), frame_(make_frame()), most_bytes_(most_bytes) {}
  Translation(const Translation &) = delete;
  Translation &operator=(const Translation &) = delete;
  ~Translation();

  /// Has the effect of interpret().
  Outcome run(Tasklet &tasklet, Wram wram, uint64_t budget) const;

  /// Returns whether runs execute the instruction as host code from now on.
  bool is_translated(uint32_t pc) const;

 private:
  /// Returns the host code that has a block of the instruction, or nullptr if there is no room.
  const HostCode *translate(uint32_t pc) const;

  const Code &code_;
  const Frame frame_;
  const size_t most_bytes_;
  // nullptr before the first translation. A lock would not do: fork() could copy it while a thread
  // holds it.
  mutable std::atomic<HostCode *> host_code_ = nullptr;
};

}  // namespace dpuemu::isa
