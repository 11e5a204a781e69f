// Executes the instructions of tasklets as machine code of the host processor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "isa/block.h"
#include "isa/core.h"

namespace dpuemu::isa {

/// Memory that one mapping can write and another one can execute. No page can do both.
class CodeMemory {
 public:
  CodeMemory() = default;
  /// If the system or the processor is not an x86-64 Linux, or refuses, the memory has no bytes.
  explicit CodeMemory(size_t bytes);
  CodeMemory(const CodeMemory &) = delete;
  CodeMemory &operator=(const CodeMemory &) = delete;
  ~CodeMemory();

  size_t bytes() const { return bytes_; }
  const uint8_t *at(size_t place) const { return executable_ + place; }
  void write(size_t place, const std::vector<uint8_t> &code);

 private:
  size_t bytes_ = 0;
  uint8_t *writable_ = nullptr, *executable_ = nullptr;
};

/// A program as machine code. Several threads may use it at a time, each with another tasklet.
/// It translates an instruction, and those after it, when a run first gets there.
class Translation {
 public:
  /// code: lives longer than this object. most_bytes: of machine code; instructions beyond it, and
  /// all instructions if the system does not let this process execute memory, are interpreted.
  explicit Translation(const Code &code, size_t most_bytes = size_t{16} << 20);

  /// The same as interpret().
  Outcome run(Tasklet &tasklet, Wram wram, uint64_t budget) const;

 private:
  /// Returns whether the instruction has an entry now.
  bool translate(uint32_t pc) const;
  const uint8_t *untranslated() const;

  const Code &code_;
  const Frame frame_;
  const int process_;  // that may write the memory
  mutable CodeMemory memory_;
  mutable std::mutex mutex_;
  mutable size_t used_ = 0;  // bytes of the memory
  // By the number of the instruction: where the machine code goes on.
  mutable std::vector<std::atomic<const uint8_t *>> entries_;
};

}  // namespace dpuemu::isa
