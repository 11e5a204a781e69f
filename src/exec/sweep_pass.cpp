// Carries out the affine form of a plan: this file has the loops, the chunks of words and the addresses, and calls line kernels for the
// passes.
#include <algorithm>
#include <compare>
#include <memory>
#include <span>

#include "base/geometry.h"
#include "exec/host_buffer.h"
#include "exec/host_pass.h"
#include "exec/parallel.h"
#include "exec/section_tables.h"

namespace pidcomm {

namespace {

/// The starts of the streams on one side (input or output) of an item, relative to the start of the item.
struct StreamStart {
  uint32_t egs;
  uint64_t bytes;
  bool is_missing = false;  // there is no PE
};

std::vector<StreamStart> starts_of(const Side &side, const Split &split) {
  std::vector<StreamStart> starts = {{0, 0}};
  for (const StreamLoop &loop : side.streams) {
    std::vector<StreamStart> next;
    next.reserve(starts.size() * loop.count);
    for (const StreamStart &start : starts)
      for (uint32_t i = 0; i < loop.count; ++i) next.push_back({start.egs + i * loop.egs, start.bytes + i * loop.bytes});
    starts = std::move(next);
  }
  if (side.row_lanes == 0) return starts;
  std::vector<StreamStart> rows;
  for (const StreamStart &start : starts)
    for (uint32_t pe = 0; pe < side.row_lanes; ++pe)
      rows.push_back({start.egs,
                      start.bytes + split.section.member_of(pe) * side.member_bytes + split.section.group_of(pe) * side.group_bytes,
                      pe >= split.section_pes()});
  return rows;
}

/// Returns the first entangled group of the bank pair of entangled group `eg`.
uint32_t pair_of(uint32_t eg) { return eg % kBanks < kPairEgs ? eg : eg - kPairEgs; }

/// The streams of a part of an item that a pass can visit on its own.
struct Part {
  std::vector<StreamStart> in, out;
  uint32_t eg = 0;  // of the part in the section
  uint32_t keep_lanes = 0;
};

/// Cuts an item into parts. In gather and scatter, each entangled group of the section is a part, because it has host rows of its own. In
/// all other collectives, the item is one part.
std::vector<Part> parts_of(const Sweep &sweep, uint32_t keep_lanes) {
  const Part all = {starts_of(sweep.in, sweep.split), starts_of(sweep.out, sweep.split), 0, keep_lanes};
  const uint32_t egs = sweep.split.section_egs;
  const bool moves_rows = sweep.pass == Pass::to_host || sweep.pass == Pass::from_host;
  if (!moves_rows || all.in.size() + all.out.size() != egs * (kLanes + 1)) return {all};
  std::vector<Part> parts(egs);
  for (uint32_t eg = 0; eg < egs; ++eg) {
    const auto streams_of_eg = [&](const std::vector<StreamStart> &starts) {
      const auto first = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / egs * eg);
      return std::vector<StreamStart>(first, first + static_cast<std::ptrdiff_t>(starts.size() / egs));
    };
    parts[eg] = {streams_of_eg(all.in), streams_of_eg(all.out), eg, eg + 1 == egs ? keep_lanes : 0};
  }
  return parts;
}

/// The start of an item: the entangled group and the byte at which its input and its output start.
struct Item {
  uint32_t in_eg, out_eg;
  uint64_t in_offset, out_offset;
};

/// Returns `item` moved to step `index` of a nest of loops (slowest loop first).
Item advanced(Item item, const std::vector<Loop> &loops, uint64_t index) {
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    const uint64_t i = index % loop->count;
    index /= loop->count;
    item.in_eg += static_cast<uint32_t>(i) * loop->in_egs;
    item.out_eg += static_cast<uint32_t>(i) * loop->out_egs;
    item.in_offset += i * loop->in_bytes;
    item.out_offset += i * loop->out_bytes;
  }
  return item;
}

/// The parts of the items of the outer loops, in groups. A thread visits the parts of a group in lockstep.
struct Groups {
  struct Member {
    Item item;
    const Part *part;
  };
  std::vector<Member> members;
  std::vector<uint32_t> begins;  // of the groups, and the number of members; empty if every item is a group
  uint32_t largest = 1;

  uint64_t count(const Sweep &sweep) const { return begins.empty() ? steps_of(sweep.outer) : begins.size() - 1; }
};

/// Makes groups of items that load and store the entangled groups of the same bank pairs. Every item is a group if lockstep loops visit the
/// bank pairs, or if the pass stores every output line to many entangled groups: then the output is much larger than the input, and visits
/// both banks of most pairs.
Groups groups_of(const Sweep &sweep, const Item &origin, const std::vector<Part> &parts) {
  constexpr uint64_t kMaxGroupedItems = 32768;  // because the grouping takes time
  const uint64_t items = steps_of(sweep.outer);
  const bool stores_to_members =
      std::any_of(sweep.out.streams.begin(), sweep.out.streams.end(), [](const StreamLoop &loop) { return loop.egs != 0; });
  const std::size_t streams = std::max(parts[0].in.size(), parts[0].out.size());
  const bool stores_to_many = stores_to_members && streams > kMaxItems;
  Groups groups;
  if (parts.size() == 1 && (!sweep.split.has_lane_split() || !sweep.lockstep.empty() || stores_to_many || items > kMaxGroupedItems))
    return groups;
  // One bank pair does not use the whole bandwidth. Therefore, if items have few streams, the banks of a rank take the place of a bank
  // pair.
  const auto rank_of = [](uint32_t eg) { return eg - eg % kBanks; };
  const auto place_in = [&](uint32_t eg) { return streams <= 2 || stores_to_members ? rank_of(eg) : pair_of(eg); };
  const auto place_out = [&](uint32_t eg) { return stores_to_members ? rank_of(eg) : pair_of(eg); };
  struct Entry {
    // Entries of a group have equal places. In a group, the bank pair of the output varies fastest.
    uint32_t out_place, in_place, keep_lanes, in_eg, out_eg, item, part;
    auto operator<=>(const Entry &) const = default;
    bool is_with(const Entry &other) const {
      return out_place == other.out_place && in_place == other.in_place && keep_lanes == other.keep_lanes;
    }
  };
  std::vector<Entry> entries;
  entries.reserve(items * parts.size());
  for (uint32_t i = 0; i < items; ++i) {
    const Item item = advanced(origin, sweep.outer, i);
    for (uint32_t p = 0; p < parts.size(); ++p) {
      const uint32_t in = sweep.in.space == Space::mram ? item.in_eg + parts[p].eg : 0;
      const uint32_t out = sweep.out.space == Space::mram ? item.out_eg + parts[p].eg : 0;
      entries.push_back({place_out(out), place_in(in), parts[p].keep_lanes, in, out, i, p});
    }
  }
  std::sort(entries.begin(), entries.end());
  for (uint32_t i = 0; i < entries.size(); ++i) {
    const bool continues = i != 0 && entries[i].is_with(entries[i - 1]) && i - groups.begins.back() < kMaxItems;
    if (!continues) groups.begins.push_back(i);
    groups.largest = std::max(groups.largest, i + 1 - groups.begins.back());
    groups.members.push_back({advanced(origin, sweep.outer, entries[i].item), &parts[entries[i].part]});
  }
  groups.begins.push_back(static_cast<uint32_t>(entries.size()));
  return groups;
}

/// The state of one thread: the pointers of the items in lockstep, and the buffers of these items.
class SweepWorker {
 public:
  SweepWorker(const HostPass &pass, const Sweep &sweep, const std::vector<Part> &parts, uint32_t largest_group, const SectionTables &tables)
      : pass_(pass), sweep_(sweep), item_buffers_(kCallBufferBytes), section_buffer_(tables.buffer_bytes()) {
    const uint64_t sides = sweep_.exchange ? 2 : 1;
    const uint64_t items = steps_of(sweep_.lockstep) * largest_group;
    members_.reserve(items);
    for (uint64_t i = 0; i < items; ++i) pointers_.emplace_back(parts[0].in.size() * sides, parts[0].out.size() * sides);
    for (const Pointers &pointers : pointers_) items_.push_back({pointers.in.data(), pointers.out.data()});
    call_.items = items_.data();
    call_.out_pair_banks = sweep_.out.pair_banks;
    call_.lane_mask = sweep_.lane_mask;
    call_.lane_map = sweep_.lane_map;
    call_.host_order = sweep.host_order;
    call_.load_transposes = sweep.host_order && sweep.in.space == Space::mram;
    call_.store_transposes = sweep.host_order && sweep.out.space == Space::mram;
    call_.reducer = reducer_of(pass.kernels, pass.plan);
    call_.non_temporal_rows = stores_rows_non_temporally(pass.plan);
    call_.item_buffers = item_buffers_.data();
    call_.merge = tables.merge();
    call_.rows = tables.rows();
    call_.section_buffer = section_buffer_.data();
  }

  std::size_t buffer_bytes() const { return item_buffers_.size() + section_buffer_.size(); }

  /// Carries out words [first, last) of a group.
  void run(std::span<const Groups::Member> group, uint64_t first, uint64_t last) {
    const uint64_t ordered = steps_of(sweep_.ordered), lockstep = steps_of(sweep_.lockstep);
    call_.keep_lanes = group[0].part->keep_lanes;
    for (uint64_t o = 0; o < ordered; ++o) {
      const uint64_t step = sweep_.ordered_downwards ? ordered - 1 - o : o;
      members_.clear();
      for (const auto &[item, part] : group)
        for (uint64_t i = 0; i < lockstep; ++i)
          members_.push_back({advanced(advanced(item, sweep_.ordered, step), sweep_.lockstep, i), part});
      if (sweep_.exchange && members_[0].item.in_eg > members_[0].item.out_eg) continue;
      for (uint64_t word = first; word < last;) word += run_chunk(word, last);
    }
  }

 private:
  struct Pointers {
    std::vector<const std::byte *> in;
    std::vector<std::byte *> out;
    uint32_t in_count, out_count;
    Pointers(std::size_t ins, std::size_t outs) : in(ins), out(outs), in_count(0), out_count(0) {}
  };

  /// Carries out the words from `word` to the first end of a run in any stream, or to `last`. Returns the number of these words.
  uint32_t run_chunk(uint64_t word, uint64_t last) {
    uint32_t run_words = static_cast<uint32_t>(std::min<uint64_t>(sweep_.words - word, kRunWords));
    for (std::size_t i = 0; i < members_.size(); ++i) point(pointers_[i], members_[i], word, run_words);
    call_.item_count = static_cast<uint32_t>(members_.size());
    call_.in_count = pointers_.front().in_count;
    call_.out_count = pointers_.front().out_count;
    const uint32_t words = static_cast<uint32_t>(std::min<uint64_t>(last - word, run_words));
    call_.prefetch_end = run_words;
    call_.words = words;
    call_.first_words = first_step_words();
    pass_.kernels.pass[static_cast<int>(sweep_.pass)](call_);
    return words;
  }

  /// Returns the number of words in the first step of a chunk, so that all later steps start at a line boundary of host rows.
  uint32_t first_step_words() const {
    const void *row = sweep_.in.space == Space::host    ? static_cast<const void *>(items_[0].in[0])
                      : sweep_.out.space == Space::host ? static_cast<const void *>(items_[0].out[0])
                                                        : nullptr;
    return row == nullptr ? kStepWords : words_to_line(row);
  }

  void point(Pointers &pointers, const Groups::Member &member, uint64_t word, uint32_t &run_words) {
    const auto &[item, part] = member;
    pointers.in_count = pointers.out_count = 0;
    const auto add = [&](const Side &side, const std::vector<StreamStart> &starts, uint32_t eg, uint64_t offset, auto &list,
                         uint32_t &count) {
      for (const StreamStart &start : starts)
        list[count++] = start.is_missing ? nullptr : pointer_to(side, eg + start.egs, offset + start.bytes + word * kWordBytes, run_words);
    };
    add(sweep_.in, part->in, item.in_eg, item.in_offset, pointers.in, pointers.in_count);
    add(sweep_.out, part->out, item.out_eg, item.out_offset, pointers.out, pointers.out_count);
    if (sweep_.exchange && item.in_eg != item.out_eg) {  // the twin item reads the lines that this item writes, and the reverse
      add(sweep_.in, part->in, item.out_eg, item.out_offset, pointers.in, pointers.in_count);
      add(sweep_.out, part->out, item.in_eg, item.in_offset, pointers.out, pointers.out_count);
    }
  }

  std::byte *pointer_to(const Side &side, uint32_t eg, uint64_t byte, uint32_t &run_words) const {
    if (side.space == Space::host) return pass_.host + byte;
    if (side.space == Space::host_lines) return pass_.host_lines.line(eg, byte / kWordBytes);
    const LinePosition position = position_of(pass_.eg_base[eg], byte / kWordBytes);
    run_words = std::min(run_words, position.run_words);
    return position.line;
  }

  const HostPass &pass_;
  const Sweep &sweep_;
  std::vector<Pointers> pointers_;
  std::vector<SweepItem> items_;
  std::vector<Groups::Member> members_;  // in lockstep
  HostBuffer item_buffers_, section_buffer_;
  SweepCall call_{};
};

}  // namespace

uint64_t run_sweep(const HostPass &pass, const Sweep &sweep) {
  const SectionTables tables(pass.plan, sweep);
  const Item origin = {sweep.in.eg, sweep.out.eg, sweep.in.offset, sweep.out.offset};
  // A unit of work is one group on one piece of the words. There are enough units of work to give all threads equal shares.
  const std::vector<Part> parts = parts_of(sweep, tables.keep_lanes());
  const Groups groups = groups_of(sweep, origin, parts);
  const uint64_t outer = groups.count(sweep), pieces = pieces_of(outer, sweep.words, pass.threads);
  const uint64_t chunks = (sweep.words + kShareWords - 1) / kShareWords;
  // Allocate all memory before the first byte moves.
  const int threads = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(pass.threads), outer * pieces));
  std::vector<std::unique_ptr<SweepWorker>> workers;
  for (int thread = 0; thread < threads; ++thread)
    workers.push_back(std::make_unique<SweepWorker>(pass, sweep, parts, groups.largest, tables));
  WorkQueue queue(outer * pieces, threads);
  run_threads(threads, [&](int thread) {
    SweepWorker &worker = *workers[static_cast<std::size_t>(thread)];
    queue.each(thread, [&](uint64_t unit) {
      const uint64_t piece = unit % pieces;
      const uint64_t first = chunks * piece / pieces * kShareWords;
      const uint64_t last = std::min(chunks * (piece + 1) / pieces * kShareWords, sweep.words);
      const uint64_t group = unit / pieces;
      if (groups.begins.empty()) {
        const Groups::Member member = {advanced(origin, sweep.outer, group), parts.data()};
        worker.run({&member, 1}, first, last);
      } else {
        worker.run(std::span(groups.members).subspan(groups.begins[group], groups.begins[group + 1] - groups.begins[group]), first, last);
      }
    });
    pass.kernels.fence();  // complete non-temporal stores before the PEs own the MRAM again
  });
  return workers.front()->buffer_bytes() * workers.size();
}

}  // namespace pidcomm
