#include "exec/section_tables.h"

#include <algorithm>
#include <bit>
#include <map>
#include <new>
#include <numeric>

#include "line_kernels/tuning.h"

namespace pidcomm {

namespace {

/// The largest number of lines of the sums of a batch (see RowPass::accumulate). More lines take
/// more time: sums, rows and loaded lines share the caches of a CPU.
constexpr uint32_t kSumLines = 1024;
static_assert(kSumLines >= kRowStepWords && kSumLines >= kStripWords);

/// Largest number of input streams of a unit. The bandwidth of the memory is lower if a thread
/// visits more streams at a time. It is also lower with few: all 8 streams of a tile can be in the
/// same bank of a bank pair, and loads that alternate between the two banks take down to half the
/// time.
constexpr uint32_t kUnitStreams = 24;

/// Sets the lane of the source from which a lane comes.
void set_lane(MergeSource &source, uint32_t lane, uint32_t from) {
  source.lane_map = (source.lane_map & ~(uint64_t{0xFF} << 8 * lane)) | uint64_t{from} << 8 * lane;
}

/// The lane_map of a source from which no lane comes.
constexpr uint64_t kNoLanes = kNoLane * 0x0101010101010101u;

/// At most 8 sources.
struct MergeSources {
  std::array<MergeSource, kLanes> list;
  uint32_t count = 0;

  const MergeSource *begin() const { return list.data(); }
  const MergeSource *end() const { return list.data() + count; }
};

/// Returns the lines whose lanes make up an output line.
MergeSources merge_sources_of(const SectionTables::LineSources &sources) {
  MergeSources lines;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (sources[lane].stream == SectionTables::kNoStream) continue;
    uint32_t line = 0;
    while (line < lines.count && lines.list[line].stream != sources[lane].stream) ++line;
    if (line == lines.count) lines.list[lines.count++] = {kNoLanes, sources[lane].stream};
    set_lane(lines.list[line], lane, sources[lane].lane);
  }
  return lines;
}

/// Returns the 8 sources of a tile that makes the lines of some targets.
MergeSources tile_of(const std::vector<SectionTables::LineSources> &targets) {
  const uint32_t mask = tile_mask_of(static_cast<uint32_t>(targets.size()));
  MergeSources sources;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const bool has_pe = targets[0][lane].stream != SectionTables::kNoStream;
    MergeSource source = {kNoLanes, targets[0][has_pe ? lane : 0].stream};
    for (uint32_t n = 0; has_pe && n < targets.size(); ++n)
      set_lane(source, (lane & ~mask) | n, targets[n][lane].lane);
    sources.list[sources.count++] = source;
  }
  return sources;
}

/// Whether a tile makes the lines of some targets with fewer instructions. A tile takes 8 loads, 8
/// shuffles, an OR for each source after the first of a line, and its transposition. Otherwise, the
/// pass loads, shuffles and combines each source of each target.
bool is_faster_as_tile(const std::vector<SectionTables::LineSources> &targets) {
  const uint32_t mask = tile_mask_of(static_cast<uint32_t>(targets.size())), lines = mask + 1;
  const uint32_t tile_instructions =
      kLanes + kLanes + (kLanes - lines) + lines * static_cast<uint32_t>(std::popcount(mask));
  return tile_instructions < 3 * merge_sources_of(targets[0]).count * targets.size();
}

/// Returns how the rows of a bundle differ, from its 8 entries.
LaneRows lane_rows_of(const uint32_t *entries) {
  const uint32_t *const end = entries + kLanes;
  const uint32_t row = entries[0] & ~kFirstOfRow;
  if (entries[0] != kNoRow && std::count(entries + 1, end, row) == kLanes - 1)
    return LaneRows::same;
  for (const uint32_t *entry = entries; entry != end; ++entry)
    if (*entry >= kFirstOfRow || std::find(entries, entry, *entry) != entry) return LaneRows::mixed;
  return LaneRows::distinct;
}

/// Returns the indices of a list, ordered by the first entry that is equal, and then by index. So
/// the indices of equal entries follow each other.
std::vector<uint32_t> by_first_equal(const std::vector<LaneEntries> &list) {
  std::map<LaneEntries, std::size_t> first_equal;
  std::vector<std::size_t> first(list.size());
  for (std::size_t n = 0; n < list.size(); ++n)
    first[n] = n != 0 && list[n] == list[n - 1] ? first[n - 1]
                                                : first_equal.try_emplace(list[n], n).first->second;
  std::vector<uint32_t> indices(list.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::stable_sort(indices.begin(), indices.end(),
                   [&](uint32_t a, uint32_t b) { return first[a] < first[b]; });
  return indices;
}

/// Returns the numbers of units in breadth-first order: after a unit come the units that load one
/// of its streams. Then few streams are loaded between two units that load the same stream. The
/// streams of a unit are those of its sources. in_streams: the number of input streams of the
/// section.
std::vector<uint32_t> breadth_first(const MergeLists &lists, uint32_t in_streams) {
  const auto each_stream = [&](uint32_t number, const auto &visit) {
    const MergeUnit &unit = lists.units[number];
    for (uint32_t n = 0; n < unit.stream_count; ++n)
      visit(lists.sources[unit.first_stream + n].stream);
  };
  const auto units = static_cast<uint32_t>(lists.units.size());
  // The units that load a stream are entries begin[stream] to end[stream] - 1 of `users`.
  std::vector<uint32_t> end(in_streams, 0), users(lists.sources.size());
  for (const MergeSource &source : lists.sources) ++end[source.stream];
  std::partial_sum(end.begin(), end.end(), end.begin());
  std::vector<uint32_t> begin = end;
  for (uint32_t unit = units; unit-- > 0;)
    each_stream(unit, [&](uint32_t stream) { users[--begin[stream]] = unit; });

  std::vector<uint32_t> order;
  order.reserve(units);
  std::vector<bool> is_in_order(units, false);
  const auto add = [&](uint32_t unit) {
    if (!is_in_order[unit]) order.push_back(unit);
    is_in_order[unit] = true;
  };
  std::size_t visited = 0;
  for (uint32_t unit = 0; unit < units; ++unit) {
    for (add(unit); visited < order.size(); ++visited)
      each_stream(order[visited], [&](uint32_t stream) {
        for (; begin[stream] < end[stream]; ++begin[stream]) add(users[begin[stream]]);
      });
  }
  return order;
}

}  // namespace

SectionTables::SectionTables(const Plan &plan, const Sweep &sweep)
    : split_(sweep.split),
      in_blocks_(plan.in.per_member ? split_.section.group_pes : 1),
      out_blocks_(plan.out.per_member ? split_.section.group_pes : 1),
      keep_lanes_(0xFFu << ((split_.section_pes() - 1) % kLanes + 1) & 0xFFu) {
  const bool merges = sweep.pass == Pass::merge;
  if (!merges && sweep.pass != Pass::reduce_rows && sweep.pass != Pass::reduce_rows_to_host) return;
  const Grouping &section = split_.section;
  const uint32_t pes = split_.section_pes();
  if (uint64_t{std::max(in_blocks_, out_blocks_)} * split_.section_egs > UINT32_MAX)
    throw std::bad_alloc();
  pe_at_.resize(pes);
  for (uint32_t pe = 0; pe < pes; ++pe) {
    group_of_.push_back(section.group_of(pe));
    member_of_.push_back(section.member_of(pe));
    pe_at_[group_of_[pe] * section.group_pes + member_of_[pe]] = pe;
  }
  merges ? make_merge(plan, sweep) : make_rows(plan, sweep);
}

void SectionTables::make_merge(const Plan &plan, const Sweep &sweep) {
  const uint32_t egs = split_.section_egs, in_streams = in_blocks_ * egs,
                 out_streams = out_blocks_ * egs;
  const bool is_buffered = sweep.is_in_place();
  bool has_tiles = false;
  MergeLists lists;  // a unit for each tile, and for each target without a tile
  lists.targets.reserve(out_streams);
  lists.sources.reserve(out_streams);
  const auto add_unit = [&](const MergeSources &sources, uint32_t eg, uint32_t first_block,
                            uint32_t count) {
    const auto first_source = static_cast<uint32_t>(lists.sources.size());
    lists.units.push_back(
        {first_source, sources.count, static_cast<uint32_t>(lists.targets.size()), count});
    lists.sources.insert(lists.sources.end(), sources.begin(), sources.end());
    for (uint32_t n = 0; n < count; ++n)
      lists.targets.push_back({(first_block + n) * egs + eg, first_source, sources.count,
                               eg + 1 == egs ? keep_lanes_ : 0, n == 0 ? count : 1});
  };
  // An allgather stores much more than it loads. On an Intel Xeon, it takes less time if it first
  // makes the lines of whole blocks and then stores to both banks of each pair; alltoall takes more
  // time that way, and so do sections with few pairs.
  const bool joins_banks =
      in_blocks_ == 1 && !is_buffered && (egs >= 2 * kPairEgs || split_.member_sections() > 1);
  const uint32_t joined_targets = joins_banks ? std::max(kJoinedTargets / egs, 1u) * egs : 0;
  std::vector<LineSources> targets;
  for (uint32_t block = 0; joins_banks && block < out_blocks_; ++block)
    for (uint32_t first = 0; first < kPairEgs; ++first)
      for (uint32_t eg = first; eg < egs; eg += kPairEgs)
        add_unit(merge_sources_of(sources_of(eg, block)), eg, block, 1);
  for (uint32_t eg = 0; !joins_banks && eg < egs; ++eg) {
    for (uint32_t block = 0; block < out_blocks_;) {
      find_targets_of_same_streams(eg, block, targets);
      const auto count = static_cast<uint32_t>(targets.size());
      if (plan.in.per_member && !is_buffered && is_faster_as_tile(targets)) {
        add_unit(tile_of(targets), eg, block, count);
        has_tiles = true;
      } else {
        for (uint32_t n = 0; n < count; ++n)
          add_unit(merge_sources_of(targets[n]), eg, block + n, 1);
      }
      block += count;
    }
  }
  const uint32_t directions = sweep.exchange && split_.member_sections() > 1 ? 2 : 1;
  const uint32_t items = static_cast<uint32_t>(iterations_of(sweep.lockstep));
  const uint32_t longest_reload = join_units(lists, in_streams, is_buffered, joined_targets);
  if (joins_banks) find_other_banks();
  const uint32_t reused = items > 1 ? items * in_streams : longest_reload;  // streams
  // Streams whose lines stay in the caches. The buffer takes half of the space. The tiles of a unit
  // share lines, which short strips keep in the first-level cache.
  const uint32_t cached = is_buffered ? 2 * in_streams * directions : std::max(reused, 1u);
  const uint32_t strip =
      std::clamp(kCachedLines / cached, 1u, has_tiles || is_buffered ? kStepWords : kStripWords);
  const uint32_t step =
      reused == 0 ? kRunWords : std::max(kCachedLines / reused / strip, 1u) * strip;
  const MergeTable table = {lists_.units.data(),
                            lists_.streams.data(),
                            lists_.targets.data(),
                            lists_.sources.data(),
                            static_cast<uint32_t>(lists_.units.size()),
                            in_streams,
                            out_streams,
                            step,
                            strip,
                            is_buffered,
                            joins_banks};
  if (parts_of(sweep) > 1)
    cut_merge(table);
  else
    parts_.push_back({.merge = table});
  keep_first_loads();
  if (is_buffered) buffer_bytes_ = uint64_t{in_streams} * directions * strip * kLineBytes;
}

uint32_t SectionTables::join_units(const MergeLists &lists, uint32_t in_streams, bool is_one_unit,
                                   uint32_t joined_targets) {
  constexpr uint32_t kNever = ~0u;
  std::vector<uint32_t> loaded_at(in_streams, kNever);  // loads before the last unit that loads it
  uint32_t loads_before = 0, loads = 0;                 // before the last unit, of the last unit
  uint32_t longest_reload = 0;
  bool has_tiles = false;
  lists_.streams.reserve(lists.sources.size());
  lists_.targets.reserve(lists.targets.size());
  lists_.sources.reserve(lists.sources.size());
  // In an allgather, all entangled groups need each stream: no order brings the units together.
  const bool is_ordered = !is_one_unit && in_blocks_ > 1 && lists.sources.size() > in_streams;
  const std::vector<uint32_t> order =
      is_ordered ? breadth_first(lists, in_streams) : std::vector<uint32_t>();
  for (std::size_t n = 0; n < lists.units.size(); ++n) {
    const MergeUnit &unit = lists.units[is_ordered ? order[n] : n];
    const MergeTarget *const targets = &lists.targets[unit.first_target];
    const MergeSource *const sources = &lists.sources[unit.first_stream];
    const auto added = std::count_if(
        sources, sources + unit.stream_count,
        [&](const MergeSource &source) { return loaded_at[source.stream] != loads_before; });
    const bool is_tile = targets->tile_targets > 1;
    if (lists_.units.empty() ||
        (!is_one_unit &&
         (joined_targets != 0 ? lists_.units.back().target_count == joined_targets
                              : loads + added > kUnitStreams || is_tile != has_tiles))) {
      lists_.units.push_back({static_cast<uint32_t>(lists_.streams.size()), 0,
                              static_cast<uint32_t>(lists_.targets.size()), 0});
      loads_before += loads;
      loads = 0;
      has_tiles = is_tile;
    }
    for (uint32_t s = 0; s < unit.stream_count; ++s) {
      uint32_t &at = loaded_at[sources[s].stream];
      if (at == loads_before) continue;
      if (at != kNever) longest_reload = std::max(longest_reload, loads_before - at);
      at = loads_before;
      ++loads;
      lists_.streams.push_back(sources[s].stream);
    }
    lists_.units.back().stream_count = loads;
    for (uint32_t t = 0; t < unit.target_count; ++t) {
      lists_.targets.push_back(targets[t]);
      lists_.targets.back().first_source = static_cast<uint32_t>(lists_.sources.size());
    }
    lists_.units.back().target_count += unit.target_count;
    lists_.sources.insert(lists_.sources.end(), sources, sources + unit.stream_count);
  }
  return longest_reload;
}

void SectionTables::find_other_banks() {
  std::vector<uint32_t> target_of(lists_.targets.size());  // by stream
  for (uint32_t t = 0; t < target_of.size(); ++t) target_of[lists_.targets[t].stream] = t;
  for (uint32_t t = 0; t < target_of.size(); ++t) {
    MergeTarget &target = lists_.targets[t];
    const uint32_t egs = split_.section_egs, eg = target.stream % egs, next = eg + kPairEgs;
    target.next = {target_of[target.stream - eg + next % egs], next / egs};
    lists_.targets[target.next.target].previous = {t, target.next.sections_away};
  }
}

void SectionTables::keep_first_loads() {
  auto unit = lists_.units.begin();
  for (const SectionPart &part : parts_) {
    std::vector<bool> is_loaded(part.merge.in_streams, false);
    for (uint32_t n = 0; n < part.merge.unit_count; ++n, ++unit) {
      const auto streams = lists_.streams.begin() + unit->first_stream;
      const auto end = std::remove_if(streams, streams + unit->stream_count, [&](uint32_t stream) {
        const bool is_loaded_before = is_loaded[stream];
        is_loaded[stream] = true;
        return is_loaded_before;
      });
      unit->stream_count = static_cast<uint32_t>(end - streams);
    }
  }
}

void SectionTables::cut_merge(const MergeTable &table) {
  constexpr uint32_t kNone = ~0u;
  std::vector<uint32_t> in_numbers(table.in_streams, kNone), out_numbers(table.out_streams, kNone);
  const auto renumber = [](uint32_t &stream, std::vector<uint32_t> &part,
                           std::vector<uint32_t> &numbers) {
    uint32_t &number = numbers[stream];
    if (number == kNone) {
      number = static_cast<uint32_t>(part.size());
      part.push_back(stream);
    }
    stream = number;
  };
  for (auto unit = lists_.units.begin(); unit != lists_.units.end();) {
    SectionPart part{.merge = table};
    part.merge.units = &*unit;
    while (unit != lists_.units.end() && part.in.size() + part.out.size() < kPartStreams) {
      for (uint32_t n = 0; n < unit->stream_count; ++n)
        renumber(lists_.streams[unit->first_stream + n], part.in, in_numbers);
      MergeTarget *const targets = &lists_.targets[unit->first_target];
      const MergeTarget &last = targets[unit->target_count - 1];
      for (uint32_t n = targets->first_source; n < last.first_source + last.source_count; ++n)
        renumber(lists_.sources[n].stream, part.in, in_numbers);
      for (uint32_t n = 0; n < unit->target_count; ++n)
        renumber(targets[n].stream, part.out, out_numbers);
      ++unit;
    }
    for (const uint32_t stream : part.in) in_numbers[stream] = kNone;
    for (const uint32_t stream : part.out) out_numbers[stream] = kNone;
    part.merge.unit_count = static_cast<uint32_t>(&*unit - part.merge.units);
    part.merge.in_streams = static_cast<uint32_t>(part.in.size());
    part.merge.out_streams = static_cast<uint32_t>(part.out.size());
    parts_.push_back(std::move(part));
  }
}

SectionTables::LineSources SectionTables::sources_of(uint32_t eg, uint32_t block) const {
  const uint32_t egs = split_.section_egs, members = split_.section.group_pes;
  LineSources sources;
  sources.fill({kNoStream, 0});
  for (uint32_t pe = eg * kLanes; pe < std::min(split_.section_pes(), (eg + 1) * kLanes); ++pe) {
    const uint32_t from = pe_at_[group_of_[pe] * members + block];
    sources[pe % kLanes] = {(in_blocks_ > 1 ? member_of_[pe] * egs : 0) + from / kLanes,
                            from % kLanes};
  }
  return sources;
}

void SectionTables::find_targets_of_same_streams(uint32_t eg, uint32_t block,
                                                 std::vector<LineSources> &targets) const {
  targets.assign(1, sources_of(eg, block));
  while (++block < out_blocks_) {
    const LineSources next = sources_of(eg, block);
    const bool has_same_streams =
        std::equal(next.begin(), next.end(), targets[0].begin(),
                   [](const LaneSource &a, const LaneSource &b) { return a.stream == b.stream; });
    if (!has_same_streams) break;
    targets.push_back(next);
  }
}

void SectionTables::make_rows(const Plan &plan, const Sweep &sweep) {
  const uint32_t egs = split_.section_egs, members = split_.section.group_pes,
                 pes = split_.section_pes();
  const bool has_row_per_pe = plan.in.per_member;  // else per group
  const uint32_t sections = split_.member_sections();
  const bool has_sums = sections > 1;
  // With one group, the PEs of entangled group e receive the blocks 8 e to 8 e + 7. A part has the
  // input streams of some of these blocks. All parts use the table of the first part.
  const bool is_cut = parts_of(sweep) > 1;
  const uint32_t part_egs = is_cut ? std::max(kPartStreams / (kLanes * egs), 1u) : egs;
  const uint32_t blocks = std::min(in_blocks_, part_egs * kLanes), streams = blocks * egs;
  const bool has_long_steps =
      sections >= kUnprefetchedMembers ||
      ((has_sums || sweep.pass == Pass::reduce_rows_to_host) && streams <= kLongStepStreams);
  const uint32_t step_words = has_long_steps ? tuning_of(sweep.pass).step_words : kStripWords;
  const uint32_t batches = (streams - 1) / (kSumLines / step_words) + 1;
  // allreduce stores as many lines as it loads; reduce_scatter stores few.
  const bool stores_later = sweep.pass == Pass::reduce_rows && !has_row_per_pe;
  const auto row_of = [&](uint32_t pe) { return has_row_per_pe ? pe : group_of_[pe]; };
  LaneEntries no_rows;
  no_rows.fill(kNoRow);
  std::vector<LaneEntries> in(streams, no_rows), out(egs, no_rows);
  for (uint32_t block = 0; block < blocks; ++block)
    for (uint32_t pe = 0; pe < pes; ++pe)
      in[block * egs + pe / kLanes][pe % kLanes] =
          row_of(has_row_per_pe ? pe_at_[group_of_[pe] * members + block] : pe);
  for (uint32_t pe = 0; pe < pes; ++pe) out[pe / kLanes][pe % kLanes] = row_of(pe);
  for (const LaneEntries &entries : out)
    row_out_.insert(row_out_.end(), entries.begin(), entries.end());
  row_out_egs_ = by_first_equal(out);
  // A reduce whose data are not in the caches takes more time with bundles of several streams.
  make_bundles(in, !has_sums && sweep.pass == Pass::reduce_rows &&
                       plan.type.kind != ElementType::Kind::floating);
  const RowTable table = {row_bundles_.data(),
                          row_streams_.data(),
                          row_out_.data(),
                          row_out_egs_.data(),
                          static_cast<uint32_t>(row_bundles_.size()),
                          streams,
                          part_egs,
                          has_row_per_pe ? std::min(pes, part_egs * kLanes) : split_.section.groups,
                          step_words,
                          has_sums ? (streams + batches - 1) / batches : 0,
                          stores_later};
  // See section_buffer.
  const uint64_t row_lines = uint64_t{table.rows} * (table.step_words / kStepWords),
                 sums = uint64_t{table.batch_streams} * table.step_words,
                 waiting = !stores_later ? 0
                           : has_sums    ? uint64_t{egs} * step_words
                                         : row_lines;
  buffer_bytes_ = (row_lines + sums + waiting) * kLineBytes;
  if (!is_cut) {
    parts_.push_back({.rows = table, .keep_lanes = keep_lanes_});
    return;
  }
  for (uint32_t eg = 0; eg < egs; eg += part_egs) {
    const uint32_t own_egs = std::min(part_egs, egs - eg), first_row = eg * kLanes,
                   own_rows = std::min(pes - first_row, part_egs * kLanes);
    const bool is_last = eg + own_egs == egs;
    SectionPart part{.rows = table, .keep_lanes = is_last ? keep_lanes_ : 0};
    for (uint32_t n = 0; n < own_rows * egs; ++n) part.in.push_back(first_row * egs + n);
    for (uint32_t n = 0; n < own_egs; ++n) part.out.push_back(eg + n);
    part.rows.in_streams = own_rows * egs;
    // Different blocks have different rows, so the streams of the bundles are 0, 1, ...
    while (table.bundles[part.rows.bundle_count - 1].first_stream >= part.rows.in_streams)
      --part.rows.bundle_count;
    part.rows.egs = own_egs;
    part.rows.rows = own_rows;
    if (is_last) {
      uint32_t *const last_out = &row_out_[uint64_t{part_egs} * kLanes];
      for (uint32_t n = 0; n < own_egs * kLanes; ++n) last_out[n] = n < own_rows ? n : kNoRow;
      part.rows.out = last_out;
    }
    parts_.push_back(std::move(part));
  }
}

void SectionTables::make_bundles(const std::vector<LaneEntries> &rows, bool joins_streams) {
  row_streams_.resize(rows.size());
  std::iota(row_streams_.begin(), row_streams_.end(), 0);
  if (joins_streams) row_streams_ = by_first_equal(rows);
  if (!joins_streams) row_bundles_.reserve(rows.size());
  std::vector<bool> is_used(split_.section_pes(), false);
  for (uint32_t n = 0; n < row_streams_.size(); ++n) {
    const LaneEntries &own = rows[row_streams_[n]];
    if (joins_streams && n != 0 && own == rows[row_streams_[n - 1]] &&
        row_bundles_.back().stream_count < kBundleStreams) {
      ++row_bundles_.back().stream_count;
      continue;
    }
    RowBundle bundle = {n, 1, LaneRows::mixed, {}};
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t row = own[lane];
      const bool is_first = row != kNoRow && !is_used[row];
      if (is_first) is_used[row] = true;
      bundle.rows[lane] = row | (is_first ? kFirstOfRow : 0);
    }
    bundle.lanes = lane_rows_of(bundle.rows);
    row_bundles_.push_back(bundle);
  }
  row_bundles_.shrink_to_fit();
}

std::size_t SectionTables::bytes() const {
  const auto bytes_of = [](const auto &table) { return table.capacity() * sizeof table[0]; };
  std::size_t of_parts = bytes_of(parts_);
  for (const SectionPart &part : parts_) of_parts += bytes_of(part.in) + bytes_of(part.out);
  return of_parts + bytes_of(lists_.units) + bytes_of(lists_.streams) + bytes_of(lists_.targets) +
         bytes_of(lists_.sources) + bytes_of(row_bundles_) + bytes_of(row_streams_) +
         bytes_of(row_out_) + bytes_of(row_out_egs_);
}

}  // namespace pidcomm
