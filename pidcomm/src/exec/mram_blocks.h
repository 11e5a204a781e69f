// Blocks of MRAM that all PEs of some ranks have at the same place.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "rank_access/sdk.h"

namespace pidcomm {

/// Owns a block of MRAM until its destructor. Blocks that share a rank do not overlap. A block
/// begins at a multiple of 8, as near to the end of MRAM as possible.
class MramBlock {
 public:
  /// bytes: at least 1. heap_base: the block begins there or behind. Errors: ERR_MEMORY (the
  /// sentence lists the blocks of the ranks).
  MramBlock(std::vector<struct dpu_rank_t *> ranks, std::string name, uint64_t bytes,
            uint64_t heap_base);
  ~MramBlock();
  MramBlock(const MramBlock &) = delete;
  MramBlock &operator=(const MramBlock &) = delete;

  const std::string &name() const { return name_; }
  uint64_t begin() const { return begin_; }  // MRAM byte
  uint64_t bytes() const { return bytes_; }  // without padding
  uint64_t end() const;                      // MRAM byte behind the padding

  /// Throws ERR_WINDOW if the variables of a program, which end at heap_base, reach the block, or
  /// if an earlier call found this.
  void require_kept(uint64_t heap_base) const;

 private:
  struct Blocks;
  static Blocks &all_blocks();

  std::vector<struct dpu_rank_t *> ranks_;  // in the order of their addresses
  std::string name_;
  uint64_t begin_ = 0, bytes_;
  mutable std::atomic<uint64_t> overwritten_to_ = 0;  // a heap base behind the begin, or 0
};

}  // namespace pidcomm
