#include "stream/graph.h"

#include <utility>

namespace pidcomm {

namespace {

constexpr std::size_t kBits = 64;

bool conflict(const std::vector<ByteRange> &ranges, const std::vector<ByteRange> &others) {
  for (const ByteRange &a : ranges)
    for (const ByteRange &b : others)
      if ((a.writes || b.writes) && a.begin < b.end && b.begin < a.end) return true;
  return false;
}

}  // namespace

bool conflict(const StreamPiece &a, const StreamPiece &b) {
  // The passes of a collective have different host rows, which may be interleaved.
  const bool are_of_one_collective = a.step == b.step && a.is_collective() && b.is_collective();
  if (!are_of_one_collective && conflict(a.host, b.host)) return true;
  return a.shares_rank(b) && ((a.uses_wram && b.uses_wram) || conflict(a.mram, b.mram));
}

void StreamGraph::add(StreamPiece piece) {
  const std::size_t number = pieces_.size();
  std::vector<uint64_t> all_before(number / kBits + 1);
  std::size_t before = 0;
  // The latest first, because it is ordered after most others.
  for (std::size_t i = number; i-- > 0;) {
    if ((all_before[i / kBits] >> i % kBits & 1) != 0 || !conflict(pieces_[i], piece)) continue;
    for (std::size_t word = 0; word < all_before_[i].size(); ++word)
      all_before[word] |= all_before_[i][word];
    all_before[i / kBits] |= uint64_t{1} << i % kBits;
    after_[i].push_back(number);
    ++before;
  }
  pieces_.push_back(std::move(piece));
  before_.push_back(before);
  after_.emplace_back();
  all_before_.push_back(std::move(all_before));
}

}  // namespace pidcomm
