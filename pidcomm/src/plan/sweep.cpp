#include "plan/sweep.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace pidcomm {

namespace {

/// Joins adjacent loops that together form one loop, and drops loops that have only one iteration.
void simplify(std::vector<Loop> &loops) {
  std::vector<Loop> joined;
  for (Loop &loop : loops) {
    if (loop.count == 1) continue;
    if (!joined.empty()) {
      Loop &slow = joined.back();
      const uint64_t n = loop.count;
      if (slow.name == loop.name && slow.in_egs == loop.in_egs * n &&
          slow.out_egs == loop.out_egs * n && slow.in_bytes == loop.in_bytes * n &&
          slow.out_bytes == loop.out_bytes * n) {
        const uint32_t count = slow.count * loop.count;
        slow = std::move(loop);
        slow.count = count;
        continue;
      }
    }
    joined.push_back(std::move(loop));
  }
  loops = std::move(joined);
}

/// The split of a loop at its pair step, which is the step between the two banks of a bank pair (d
/// and d + 4). The loop has `count` iterations of `egs` entangled groups. After the split, an inner
/// loop has `below` iterations and an outer loop has `above` iterations. If below is 0, the loop
/// has no pair step.
struct BankPairStep {
  uint32_t below, above;
};
BankPairStep bank_pair_step(uint32_t count, uint32_t egs) {
  const uint32_t below = egs != 0 && kPairEgs % egs == 0 ? kPairEgs / egs : 0;
  if (below == 0 || count % (2 * below) != 0) return {0, 0};
  return {below, count / (2 * below)};
}

/// Moves the pair steps of the outer loops into lockstep. Pair steps of the output vary fastest, so
/// that a thread stores the adjacent lines of a bank pair directly after each other. If an item has
/// few streams, the inner iterations also move into lockstep, because one bank pair does not
/// saturate memory. If every item is stored to all members, a pair step that moves only the input
/// stays in the outer loops, because the output is much larger than the input, and the streams of
/// the output already visit both banks of a pair together. If four items in lockstep would have
/// many streams of long blocks, the pair step of the output becomes the fastest outer loop, because
/// equal lines of many streams compete for a few places in the caches.
void visit_bank_pairs_in_lockstep(Sweep &sweep) {
  const bool stores_to_members = std::any_of(sweep.out.streams.begin(), sweep.out.streams.end(),
                                             [](const StreamLoop &loop) { return loop.egs != 0; });
  const uint64_t item_streams = std::max(streams_of(sweep.in), streams_of(sweep.out));
  const auto pair_of = [&](const Loop &loop) {
    return loop.out_egs == 0 && stores_to_members
               ? BankPairStep{0, 0}
               : bank_pair_step(loop.count, std::max(loop.in_egs, loop.out_egs));
  };
  uint32_t items = 1;
  for (const Loop &loop : sweep.outer)
    if (pair_of(loop).below != 0) items *= 2;
  if (items > kMaxItems)
    fail(PIDCOMM_ERR_INTERNAL, items, " items in lockstep; at most ", kMaxItems, " have a buffer");
  const bool has_both_pair_steps = items == 4;
  const bool has_many_streams = sweep.pass == Pass::transpose && has_both_pair_steps &&
                                items * item_streams >= kManyStreams && sweep.words >= kLongWords;
  std::vector<Loop> rest, fastest;
  for (const Loop &loop : sweep.outer) {
    const BankPairStep pair = pair_of(loop);
    const auto split_loop = [&](const char *suffix, uint32_t count, uint32_t times) {
      return Loop{loop.name + suffix,    count,
                  loop.in_egs * times,   loop.out_egs * times,
                  loop.in_bytes * times, loop.out_bytes * times};
    };
    if (pair.below == 0) {
      rest.push_back(loop);
      continue;
    }
    rest.push_back(split_loop("", pair.above, 2 * pair.below));
    const bool takes_low = items * pair.below * item_streams <= kFewStreams;
    if (takes_low) items *= pair.below;
    (takes_low ? sweep.lockstep : rest).push_back(split_loop("_low", pair.below, 1));
    const bool moves_output = loop.out_egs != 0;
    std::vector<Loop> &pairs = has_many_streams && moves_output ? fastest : sweep.lockstep;
    pairs.insert(moves_output ? pairs.end() : pairs.begin(), split_loop("_pair", 2, pair.below));
  }
  sweep.outer = std::move(rest);
  sweep.outer.insert(sweep.outer.end(), fastest.begin(), fastest.end());
}

/// If sections have fewer than 8 entangled groups, moves iterations of the fastest loop over
/// adjacent sections into lockstep, so that a thread visits both lines of most bank pairs close in
/// time.
void visit_sections_in_lockstep(Sweep &sweep) {
  const uint32_t egs = sweep.split.section_egs;
  const bool reduces_sections =
      (sweep.pass == Pass::reduce_rows || sweep.pass == Pass::reduce_rows_to_host) &&
      sweep.split.member_sections() > 1;
  if (sweep.outer.empty() || egs >= kBanks || reduces_sections) return;
  if (std::max(sweep.outer.back().in_egs, sweep.outer.back().out_egs) != egs) return;
  Loop &loop = sweep.outer.back();
  uint32_t items = std::min(kBanks / std::gcd(kBanks, egs), kMaxItems);
  while (loop.count % items != 0) --items;
  Loop low = loop;
  low.name += "_low";
  low.count = items;
  loop.count /= items;
  loop.in_egs *= items;
  loop.out_egs *= items;
  loop.in_bytes *= items;
  loop.out_bytes *= items;
  sweep.lockstep.push_back(low);
}

/// Makes the pair step of the output's members the fastest loop, so that a thread stores the
/// adjacent lines of a bank pair directly after each other. The order of the input's members does
/// not change, because this order determines the order of the reduction.
void store_bank_pairs_together(Side &side) {
  std::vector<StreamLoop> members, pairs, blocks;
  const auto add = [](std::vector<StreamLoop> &streams, const StreamLoop &loop) {
    if (loop.count > 1) streams.push_back(loop);
  };
  for (const StreamLoop &loop : side.streams) {
    const BankPairStep pair = bank_pair_step(loop.count, loop.egs);
    if (pair.below == 0) {
      add(loop.egs == 0 ? blocks : members, loop);
      continue;
    }
    add(members, {pair.above, 2 * pair.below * loop.egs, 2 * pair.below * loop.bytes});
    add(members, {pair.below, loop.egs, loop.bytes});
    add(pairs, {2, pair.below * loop.egs, pair.below * loop.bytes});
  }
  side.pair_banks = pairs.empty() ? 1 : 2;
  side.streams = std::move(members);
  side.streams.insert(side.streams.end(), blocks.begin(), blocks.end());
  side.streams.insert(side.streams.end(), pairs.begin(), pairs.end());
}

}  // namespace

uint64_t iterations_of(const std::vector<Loop> &loops) {
  uint64_t iterations = 1;
  for (const Loop &loop : loops) iterations *= loop.count;
  return iterations;
}

uint64_t items_of(const Sweep &sweep) {
  return iterations_of(sweep.outer) * iterations_of(sweep.ordered) * iterations_of(sweep.lockstep);
}

uint64_t streams_of(const Side &side) {
  uint64_t streams = std::max(side.row_lanes, 1u);
  for (const StreamLoop &loop : side.streams) streams *= loop.count;
  return streams;
}

void arrange(Sweep &sweep) {
  if (sweep.split.has_lane_split()) {
    visit_bank_pairs_in_lockstep(sweep);
    store_bank_pairs_together(sweep.out);
  } else if (sweep.pass != Pass::to_host && sweep.pass != Pass::from_host) {
    visit_sections_in_lockstep(sweep);
  }
  for (std::vector<Loop> *loops : {&sweep.outer, &sweep.ordered, &sweep.lockstep}) simplify(*loops);
}

Pieces pieces_of(uint64_t units, uint64_t words, int threads) {
  constexpr uint64_t kPiecesPerThread = 16, kLongChunk = 64, kShortChunk = 8;
  const auto thread_count = static_cast<uint64_t>(threads);
  if (threads == 1 || units >= kPiecesPerThread * thread_count) return {1, words, kLongChunk};
  const auto cut = [&](uint64_t chunk_words, uint64_t wanted_pieces) -> Pieces {
    const uint64_t chunks = std::max<uint64_t>((words + chunk_words - 1) / chunk_words, 1);
    return {std::min(chunks, (wanted_pieces + units - 1) / units), words, chunk_words};
  };
  const Pieces pieces = cut(kLongChunk, kPiecesPerThread * thread_count);
  if (units * pieces.count >= 2 * thread_count) return pieces;
  return cut(kShortChunk, thread_count);  // not more, because a piece needs pointers to all streams
}

uint64_t parts_of(const Sweep &sweep) {
  constexpr uint64_t kFewParts = 4;
  const Split &split = sweep.split;
  const uint64_t in = streams_of(sweep.in), out = streams_of(sweep.out),
                 parts = (in + out - 1) / kPartStreams + 1;
  // With one group, each line is the input of one part (alltoall, reduce_scatter) or of all parts
  // (allgather).
  const bool is_one_group = split.section.groups == 1 && split.member_sections() == 1;
  const bool has_parts = sweep.pass == Pass::merge ? in == out || in * sweep.words <= kCachedLines
                                                   : sweep.pass == Pass::reduce_rows && in > out;
  return has_parts && is_one_group && !sweep.is_in_place() && parts > kFewParts ? parts : 1;
}

void add_loops(std::vector<Loop> &loops, const char *name, const std::vector<EgLoop> &egs,
               bool in_moves, uint64_t in_bytes, bool out_moves, uint64_t out_bytes) {
  for (auto loop = egs.rbegin(); loop != egs.rend(); ++loop)
    loops.push_back({name, loop->count, in_moves ? loop->eg_stride : 0,
                     out_moves ? loop->eg_stride : 0, in_bytes * loop->index_stride,
                     out_bytes * loop->index_stride});
}

void add_slots(Sweep &sweep, Side &side, const Split &split, uint64_t vector_bytes) {
  const uint64_t slot_bytes = vector_bytes >> split.k;
  sweep.words = slot_bytes / kWordBytes;
  side.streams.push_back({1u << split.k, 0, slot_bytes});
}

void add_members(Side &side, const Split &split) {
  for (auto loop = split.members.rbegin(); loop != split.members.rend(); ++loop)
    side.streams.push_back({loop->count, loop->eg_stride, 0});
}

void add_blocks(Side &side, const Split &split, uint64_t block_bytes) {
  side.streams.push_back({split.section.group_pes, 0, block_bytes * split.member_stride});
}

void add_section(Side &side, const Split &split) {
  if (split.section_egs > 1) side.streams.push_back({split.section_egs, 1, 0});
}

void add_pe_rows(Side &side, const Split &split, uint64_t member_bytes, uint64_t group_bytes) {
  side.row_lanes = split.section_egs * kLanes;
  side.member_bytes = member_bytes;
  side.group_bytes = group_bytes * split.group_stride;
}

}  // namespace pidcomm
