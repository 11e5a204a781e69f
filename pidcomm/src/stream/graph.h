// The pieces of a stream, and their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <variant>
#include <vector>

#include "line_kernels/kernels.h"
#include "pidcomm/stream.h"
#include "stream/steps.h"

namespace pidcomm {

struct LaunchWork {
  const LaunchStep *step;
};
/// A collective of one of `groups` groups of ranks.
struct CollectiveWork {
  const CollectiveStep *step;
  uint32_t group, groups;
  pidcomm_request request;
  Executor *executor = nullptr;  // null until the piece is about to run
};
/// Reduces `rows` rows of `bytes` bytes each to the first.
struct CombineWork {
  std::shared_ptr<std::byte[]> memory;
  std::size_t rows, bytes;
  const Reducer *reducer;
  int threads;
};
struct WriteWork {
  const WriteStep *step;
};
struct CallWork {
  const CallStep *step;
};

using StreamWork = std::variant<LaunchWork, CollectiveWork, CombineWork, WriteWork, CallWork>;
template <int kind, class Work>
constexpr bool kIsWorkOf = std::is_same_v<std::variant_alternative_t<kind, StreamWork>, Work>;
static_assert(kIsWorkOf<PIDCOMM_STREAM_LAUNCH, LaunchWork> &&
              kIsWorkOf<PIDCOMM_STREAM_COLLECTIVE, CollectiveWork> &&
              kIsWorkOf<PIDCOMM_STREAM_COMBINE, CombineWork> &&
              kIsWorkOf<PIDCOMM_STREAM_WRITE, WriteWork> &&
              kIsWorkOf<PIDCOMM_STREAM_CALL, CallWork>);

/// A launch or a host pass on consecutive ranks.
struct StreamPiece {
  std::size_t step = 0;
  uint32_t part = 0, parts = 1;
  uint32_t first_rank = 0, ranks = 0;
  StreamWork work{};
  bool uses_wram = false;       // launches, and work that writes variables or loads programs
  std::vector<ByteRange> mram;  // of each PE of the ranks
  std::vector<ByteRange> host;

  /// A code of PIDCOMM_STREAM_KINDS, whose order is that of `work`.
  int kind() const { return static_cast<int>(work.index()); }
  bool is_launch() const { return kind() == PIDCOMM_STREAM_LAUNCH; }
  bool is_collective() const { return kind() == PIDCOMM_STREAM_COLLECTIVE; }
  bool shares_rank(const StreamPiece &other) const {
    return first_rank < other.first_rank + other.ranks && other.first_rank < first_rank + ranks;
  }
};

/// Whether the pieces must keep their order; see stream.h.
bool conflict(const StreamPiece &a, const StreamPiece &b);

/// Pieces in recorded order. A piece follows each earlier piece with which it conflicts.
class StreamGraph {
 public:
  /// Adds a piece. Cost for the n-th piece: n tests of a bit, and a comparison of windows for each
  /// piece that is not yet ordered before it.
  void add(StreamPiece piece);

  /// Frees what only `add` needs. After it, no piece can be added.
  void finish() { all_before_ = {}; }

  const std::vector<StreamPiece> &pieces() const { return pieces_; }
  std::vector<StreamPiece> &pieces() { return pieces_; }
  /// The number of pieces that must end before a piece begins, and the pieces that wait for its
  /// end. Pieces that are ordered through others are not listed.
  std::size_t before(std::size_t piece) const { return before_[piece]; }
  const std::vector<std::size_t> &after(std::size_t piece) const { return after_[piece]; }

 private:
  std::vector<StreamPiece> pieces_;
  std::vector<std::size_t> before_;
  std::vector<std::vector<std::size_t>> after_;
  std::vector<std::vector<uint64_t>>
      all_before_;  // bit j of a piece: piece j ends before it begins
};

}  // namespace pidcomm
