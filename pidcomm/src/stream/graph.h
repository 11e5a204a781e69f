// The pieces of a stream, and their conflicts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace pidcomm {

struct ByteRange {
  uint64_t begin = 0, end = 0;
  bool writes = false;
};

/// A launch or a host pass on consecutive ranks.
struct StreamPiece {
  std::size_t step = 0, part = 0;
  uint32_t first_rank = 0, ranks = 0;
  bool is_launch = false;
  bool uses_wram = false;        // launches, and work that writes variables or loads programs
  std::vector<ByteRange> mram;   // of each PE of the ranks
  std::vector<ByteRange> host;   // addresses
  std::function<void()> work{};  // a launch: what precedes it; else the host pass

  bool shares_rank(const StreamPiece &other) const {
    return first_rank < other.first_rank + other.ranks && other.first_rank < first_rank + ranks;
  }
};

/// Whether the pieces must keep their order; see stream.h.
bool conflict(const StreamPiece &a, const StreamPiece &b);

/// Pieces in recorded order. A piece follows each earlier piece with which it conflicts.
class StreamGraph {
 public:
  /// After an exception, the graph is unchanged.
  void add(std::vector<StreamPiece> pieces);
  const std::vector<StreamPiece> &pieces() const { return pieces_; }
  /// The earlier pieces that must end before a piece begins.
  const std::vector<std::size_t> &before(std::size_t piece) const { return before_[piece]; }

 private:
  std::vector<StreamPiece> pieces_;
  std::vector<std::vector<std::size_t>> before_;
};

}  // namespace pidcomm
