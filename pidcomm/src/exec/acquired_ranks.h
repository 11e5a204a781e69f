// Ranks whose MRAM belongs to the host, with the addresses of their entangled groups.
#pragma once

#include <cstddef>
#include <vector>

#include "exec/lines.h"
#include "exec/placement.h"

namespace pidcomm {

/// The addresses of the entangled groups in memory. They seldom change between calls.
struct MappedEgs {
  std::vector<std::byte *>
      rank_base;  // by rank of the placement; the other fields of MappedEgs derive from rank_base
  std::vector<std::byte *> eg_base;
  std::vector<BankPair> bank_pairs;
};

/// Acquires the ranks of a set, and releases them in its destructor.
class AcquiredRanks {
 public:
  /// mapped: the addresses from an earlier call on the placement; the constructor updates them.
  /// Errors: ERR_DEVICE.
  AcquiredRanks(const Placement &placement, MappedEgs &mapped);
  ~AcquiredRanks() { release(); }
  AcquiredRanks(const AcquiredRanks &) = delete;
  AcquiredRanks &operator=(const AcquiredRanks &) = delete;

  const std::vector<std::byte *> &eg_base() const { return mapped_.eg_base; }
  const std::vector<BankPair> &bank_pairs() const { return mapped_.bank_pairs; }

 private:
  void release();
  void map();

  const Placement &placement_;
  MappedEgs &mapped_;
  std::vector<std::byte *> rank_base_;  // of the acquired ranks
};

}  // namespace pidcomm
