#include "stream/graph.h"

#include <algorithm>
#include <iterator>

namespace pidcomm {

namespace {

bool conflict(const std::vector<ByteRange> &ranges, const std::vector<ByteRange> &others) {
  for (const ByteRange &a : ranges)
    for (const ByteRange &b : others)
      if ((a.writes || b.writes) && a.begin < b.end && b.begin < a.end) return true;
  return false;
}

}  // namespace

bool conflict(const StreamPiece &a, const StreamPiece &b) {
  if (conflict(a.host, b.host)) return true;
  return a.shares_rank(b) && ((a.uses_wram && b.uses_wram) || conflict(a.mram, b.mram));
}

void StreamGraph::add(std::vector<StreamPiece> pieces) {
  std::vector<std::vector<std::size_t>> all_before;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::vector<std::size_t> &before = all_before.emplace_back();
    for (std::size_t j = 0; j < pieces_.size() + i; ++j)
      if (conflict(j < pieces_.size() ? pieces_[j] : pieces[j - pieces_.size()], pieces[i]))
        before.push_back(j);
  }
  pieces_.reserve(pieces_.size() + pieces.size());
  before_.reserve(before_.size() + pieces.size());
  std::move(pieces.begin(), pieces.end(), std::back_inserter(pieces_));
  std::move(all_before.begin(), all_before.end(), std::back_inserter(before_));
}

}  // namespace pidcomm
