#include "exec/prepared_sweep.h"

#include <algorithm>
#include <compare>

#include "base/geometry.h"
#include "line_kernels/tuning.h"

namespace pidcomm {

namespace {

std::vector<StreamStart> starts_of(const Side &side, const Split &split) {
  std::vector<StreamStart> starts = {{0, 0}};
  for (const StreamLoop &loop : side.streams) {
    std::vector<StreamStart> next;
    next.reserve(starts.size() * loop.count);
    for (const StreamStart &start : starts)
      for (uint32_t i = 0; i < loop.count; ++i)
        next.push_back({start.bytes + i * loop.bytes, start.egs + i * loop.egs});
    starts = std::move(next);
  }
  if (side.row_lanes == 0) return starts;
  std::vector<StreamStart> rows;
  for (const StreamStart &start : starts)
    for (uint32_t pe = 0; pe < side.row_lanes; ++pe)
      rows.push_back({start.bytes + split.section.member_of(pe) * side.member_bytes +
                          split.section.group_of(pe) * side.group_bytes,
                      start.egs, pe >= split.section_pes()});
  return rows;
}

/// Returns the first entangled group of the bank pair of entangled group `eg`.
uint32_t pair_of(uint32_t eg) { return eg % kBanks < kPairEgs ? eg : eg - kPairEgs; }

/// Returns the streams with some numbers, or all if `numbers` is empty.
std::vector<StreamStart> selected(const std::vector<StreamStart> &starts,
                                  const std::vector<uint32_t> &numbers) {
  if (numbers.empty()) return starts;
  std::vector<StreamStart> selection;
  selection.reserve(numbers.size());
  for (const uint32_t number : numbers) selection.push_back(starts[number]);
  return selection;
}

std::vector<SubItem> sub_items_of(const Sweep &sweep, const SectionTables &tables) {
  const SubItem all = {starts_of(sweep.in, sweep.split), starts_of(sweep.out, sweep.split), 0,
                       tables.keep_lanes()};
  const uint32_t egs = sweep.split.section_egs;
  if (!tables.parts().empty()) {
    std::vector<SubItem> sub_items;
    for (const SectionPart &part : tables.parts())
      sub_items.push_back(
          {selected(all.in, part.in), selected(all.out, part.out), 0, part.keep_lanes, &part});
    return sub_items;
  }
  const bool moves_rows = sweep.pass == Pass::to_host || sweep.pass == Pass::from_host;
  if (!moves_rows || all.in.size() + all.out.size() != egs * (kLanes + 1)) return {all};
  std::vector<SubItem> sub_items(egs);
  for (uint32_t eg = 0; eg < egs; ++eg) {
    const auto streams_of_eg = [&](const std::vector<StreamStart> &starts) {
      const auto first = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / egs * eg);
      return std::vector<StreamStart>(first,
                                      first + static_cast<std::ptrdiff_t>(starts.size() / egs));
    };
    sub_items[eg] = {streams_of_eg(all.in), streams_of_eg(all.out), eg,
                     eg + 1 == egs ? all.keep_lanes : 0};
  }
  return sub_items;
}

/// Whether the streams visit both banks of the pair of their first entangled group.
bool visit_both_banks(const std::vector<StreamStart> &streams) {
  const uint32_t first = streams[0].egs;
  const uint32_t other = pair_of(first) == first ? first + kPairEgs : first - kPairEgs;
  return std::any_of(streams.begin(), streams.end(),
                     [&](const StreamStart &stream) { return stream.egs == other; });
}

}  // namespace

ItemStart advanced(ItemStart item, const std::vector<Loop> &loops, uint64_t index) {
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

PreparedSweep::PreparedSweep(const Plan &plan, const Sweep &sweep)
    : sweep_(sweep),
      tables_(plan, sweep),
      origin_{sweep.in.eg, sweep.out.eg, sweep.in.offset, sweep.out.offset},
      sub_items_(sub_items_of(sweep, tables_)),
      reduces_(plan.reduces) {
  for (const SubItem &sub_item : sub_items_) {
    in_streams_ = std::max(in_streams_, sub_item.in.size());
    out_streams_ = std::max(out_streams_, sub_item.out.size());
  }
  if (tables_.parts().empty()) make_batches();
}

uint64_t PreparedSweep::streams_below(uint32_t egs) const {
  return static_cast<uint64_t>(
      std::count_if(sub_items_[0].in.begin(), sub_items_[0].in.end(),
                    [=](const StreamStart &stream) { return stream.egs < egs; }));
}

uint32_t PreparedSweep::rank_members() const {
  return reduces_ ? static_cast<uint32_t>(streams_below(kBanks) / streams_below(1)) : 1;
}

bool PreparedSweep::loads_from_ranks() const {
  return reduces_ && streams_below(kBanks) < sub_items_[0].in.size();
}

std::size_t PreparedSweep::bytes() const {
  std::size_t bytes = tables_.bytes() + sub_items_.capacity() * sizeof sub_items_[0] +
                      items_.capacity() * sizeof items_[0] + begins_.capacity() * sizeof begins_[0];
  for (const SubItem &sub_item : sub_items_)
    bytes += (sub_item.in.capacity() + sub_item.out.capacity()) * sizeof sub_item.in[0];
  return bytes;
}

/// Puts items in one batch if they load and store the entangled groups of the same bank pairs. If
/// lockstep loops visit the bank pairs, or if the output is much larger than the input and visits
/// both banks of each pair, every item is a batch. Cuts longer runs of such items into equal
/// batches, because a thread uses less of the bandwidth in a short batch.
void PreparedSweep::make_batches() {
  constexpr uint64_t kMaxSortedItems = 131072;  // because sorting takes time
  const uint64_t items = iterations_of(sweep_.outer);
  const bool stores_to_members = sub_items_[0].out.back().egs != 0;
  const std::size_t streams = std::max(sub_items_[0].in.size(), sub_items_[0].out.size());
  const bool stores_to_many =
      stores_to_members && streams > kFewStreams && visit_both_banks(sub_items_[0].out);
  if (sub_items_.size() == 1 && (!sweep_.split.has_lane_split() || !sweep_.lockstep.empty() ||
                                 stores_to_many || items > kMaxSortedItems))
    return;
  // One bank pair does not use the whole bandwidth. Therefore, if items have few streams, the banks
  // of a rank take the place of a bank pair. Reductions that load from several ranks also need all
  // banks of a rank, so that they change the rank less often.
  const auto rank_of = [](uint32_t eg) { return eg - eg % kBanks; };
  const auto place_in = [&](uint32_t eg) {
    return streams <= 2 || stores_to_members || reduces_ ? rank_of(eg) : pair_of(eg);
  };
  const auto place_out = [&](uint32_t eg) { return stores_to_members ? rank_of(eg) : pair_of(eg); };
  // Entries of a batch have equal places. In a batch, the bank pair of the output varies fastest.
  struct Entry {
    uint64_t key;  // place of the output, place of the input, whether it keeps lanes, and for the
                   // input and the output the entangled group in the place
    uint32_t item, sub_item;
    auto operator<=>(const Entry &) const = default;
    bool is_with(const Entry &other) const {
      return key / (kBanks * kBanks) == other.key / (kBanks * kBanks);
    }
  };
  const auto key_of = [&](uint32_t in_eg, uint32_t out_eg, uint32_t keep_lanes) {
    const uint64_t in = place_in(in_eg), out = place_out(out_eg);
    return (((out * (kMaxPes / kLanes) + in) * 2 + (keep_lanes != 0)) * kBanks + (in_eg - in)) *
               kBanks +
           (out_eg - out);
  };
  std::vector<Entry> entries;
  entries.reserve(items * sub_items_.size());
  for (uint32_t i = 0; i < items; ++i) {
    const ItemStart item = advanced(origin_, sweep_.outer, i);
    for (uint32_t p = 0; p < sub_items_.size(); ++p) {
      const uint32_t in = sweep_.in.space == Space::mram ? item.in_eg + sub_items_[p].eg : 0;
      const uint32_t out = sweep_.out.space == Space::mram ? item.out_eg + sub_items_[p].eg : 0;
      entries.push_back({key_of(in, out, sub_items_[p].keep_lanes), i, p});
    }
  }
  std::sort(entries.begin(), entries.end());
  const uint32_t most_items = tuning_of(sweep_.pass, loads_from_ranks()).items;
  for (uint32_t first = 0, end = 0; first < entries.size(); first = end) {
    while (end < entries.size() && entries[end].is_with(entries[first])) ++end;
    const uint32_t count = end - first, batches = (count + most_items - 1) / most_items;
    for (uint32_t batch = 0; batch < batches; ++batch)
      begins_.push_back(first + count * batch / batches);
    largest_batch_ = std::max(largest_batch_, (count + batches - 1) / batches);
  }
  items_.reserve(entries.size());
  for (const Entry &entry : entries)
    items_.push_back({advanced(origin_, sweep_.outer, entry.item), &sub_items_[entry.sub_item]});
  begins_.push_back(static_cast<uint32_t>(entries.size()));
}

}  // namespace pidcomm
