#include "exec/section_tables.h"

#include <algorithm>
#include <bit>
#include <new>

namespace pidcomm {

namespace {

/// The largest number of lines of the sums of a batch (see RowPass::accumulate). More lines take
/// more time: sums, rows and loaded lines share the caches of a CPU.
constexpr uint32_t kSumLines = 1024;
static_assert(kSumLines >= kRowStepWords && kSumLines >= kStripWords);

/// Input streams of a unit. The bandwidth of the memory is lower if a thread visits more streams at
/// a time.
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

/// Returns the tile_mask of a tile for this number of targets.
uint32_t tile_mask_of(std::size_t targets) {
  return std::max<uint32_t>(static_cast<uint32_t>(std::bit_ceil(targets)), 2) - 1;
}

/// Returns the 8 sources of a tile that makes the lines of some targets.
MergeSources tile_of(const std::vector<SectionTables::LineSources> &targets) {
  const uint32_t mask = tile_mask_of(targets.size());
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
  const uint32_t mask = tile_mask_of(targets.size()), lines = mask + 1;
  const uint32_t tile_instructions =
      kLanes + kLanes + (kLanes - lines) + lines * static_cast<uint32_t>(std::popcount(mask));
  return tile_instructions < 3 * merge_sources_of(targets[0]).count * targets.size();
}

/// Returns how the rows of a stream in a RowTable differ, from its 8 entries.
LaneRows lane_rows_of(const uint32_t *entries) {
  const uint32_t *const end = entries + kLanes;
  const uint32_t row = entries[0] & ~kFirstOfRow;
  if (entries[0] != kNoRow && std::count(entries + 1, end, row) == kLanes - 1)
    return LaneRows::same;
  for (const uint32_t *entry = entries; entry != end; ++entry)
    if (*entry >= kFirstOfRow || std::find(entries, entry, *entry) != entry) return LaneRows::mixed;
  return LaneRows::distinct;
}

/// Appends units to the lists of a MergeTable.
class MergeUnits {
 public:
  /// egs: the entangled groups of a section. streams: its input streams. keep_lanes: those of the
  /// last entangled group. is_one_unit: all targets without a tile are in one unit.
  MergeUnits(MergeLists &lists, uint32_t egs, uint32_t streams, uint32_t keep_lanes,
             bool is_one_unit)
      : lists_(lists),
        egs_(egs),
        keep_lanes_(keep_lanes),
        is_one_unit_(is_one_unit),
        visited_at_(streams, kNever) {}

  /// Adds a unit that makes the lines of an entangled group and the blocks from first_block on.
  void add_tile(uint32_t eg, uint32_t first_block,
                const std::vector<SectionTables::LineSources> &targets) {
    begin_unit(tile_mask_of(targets.size()));
    const uint32_t first_source = add_sources(tile_of(targets));
    for (uint32_t n = 0; n < targets.size(); ++n) add_target(eg, first_block + n, first_source);
  }

  /// Adds the line of an entangled group and a block to the last unit, or to a new unit if the last
  /// unit has a tile or many streams.
  void add_without_tile(uint32_t eg, uint32_t block, const SectionTables::LineSources &sources) {
    const MergeSources lines = merge_sources_of(sources);
    const auto is_new = [&](const MergeSource &line) {
      return visited_at_[line.stream] != before_;
    };
    const auto added = std::count_if(lines.begin(), lines.end(), is_new);
    if (lists_.units.empty() || lists_.units.back().tile_mask != 0 ||
        (!is_one_unit_ && lists_.units.back().stream_count + added > kUnitStreams))
      begin_unit(0);
    add_target(eg, block, add_sources(lines));
  }

  /// Returns the largest number of streams between two units that load the same stream.
  uint32_t longest_reload() const { return longest_reload_; }

 private:
  static constexpr uint32_t kNever = ~0u;

  void begin_unit(uint32_t tile_mask) {
    if (!lists_.units.empty()) before_ += lists_.units.back().stream_count;
    lists_.units.push_back({static_cast<uint32_t>(lists_.streams.size()), 0,
                            static_cast<uint32_t>(lists_.targets.size()), 0, tile_mask});
  }

  /// Adds sources, and those of their streams that the last unit does not have yet. Returns the
  /// number of sources before.
  uint32_t add_sources(const MergeSources &sources) {
    const auto first_source = static_cast<uint32_t>(lists_.sources.size());
    for (const MergeSource &source : sources) {
      uint32_t &visited = visited_at_[source.stream];
      if (visited != before_) {
        if (visited != kNever) longest_reload_ = std::max(longest_reload_, before_ - visited);
        visited = before_;
        lists_.streams.push_back(source.stream);
        ++lists_.units.back().stream_count;
      }
      lists_.sources.push_back(source);
    }
    return first_source;
  }

  void add_target(uint32_t eg, uint32_t block, uint32_t first_source) {
    lists_.targets.push_back({block * egs_ + eg, first_source,
                              static_cast<uint32_t>(lists_.sources.size()) - first_source,
                              eg + 1 == egs_ ? keep_lanes_ : 0});
    ++lists_.units.back().target_count;
  }

  MergeLists &lists_;
  const uint32_t egs_, keep_lanes_;
  const bool is_one_unit_;
  uint32_t before_ = 0;               // streams of earlier units
  std::vector<uint32_t> visited_at_;  // by stream: before_ at the last unit that loads the stream
  uint32_t longest_reload_ = 0;
};

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
  const bool has_tiles = plan.in.per_member && !is_buffered;
  lists_.targets.reserve(out_streams);
  lists_.sources.reserve(out_streams);
  MergeUnits units(lists_, egs, in_streams, keep_lanes_, is_buffered);
  std::vector<LineSources> targets;
  for (uint32_t eg = 0; eg < egs; ++eg) {
    for (uint32_t block = 0; block < out_blocks_;) {
      find_targets_of_same_streams(eg, block, targets);
      if (has_tiles && is_faster_as_tile(targets))
        units.add_tile(eg, block, targets);
      else
        for (std::size_t i = 0; i < targets.size(); ++i)
          units.add_without_tile(eg, block + static_cast<uint32_t>(i), targets[i]);
      block += static_cast<uint32_t>(targets.size());
    }
  }
  const uint32_t directions = sweep.exchange && split_.member_sections() > 1 ? 2 : 1;
  const uint32_t items = static_cast<uint32_t>(iterations_of(sweep.lockstep));
  const uint32_t reused =
      items > 1 ? items * in_streams : units.longest_reload();  // streams to keep in the cache
  const uint32_t strip =
      is_buffered   ? std::clamp(kCachedLines / 2 / (in_streams * directions), 1u, kStepWords)
      : reused == 0 ? kStripWords
                    : std::clamp(kCachedLines / reused, 1u, kStripWords);
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
                            is_buffered};
  if (parts_of(sweep) > 1)
    cut_merge(table);
  else
    parts_.push_back({.merge = table});
  if (is_buffered) buffer_bytes_ = uint64_t{in_streams} * directions * strip * kLineBytes;
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
  const uint32_t step_words = has_long_steps ? kRowStepWords : kStripWords;
  const uint32_t batches = (streams - 1) / (kSumLines / step_words) + 1;
  const auto row_of = [&](uint32_t pe) { return has_row_per_pe ? pe : group_of_[pe]; };
  row_in_.assign(uint64_t{streams} * kLanes, kNoRow);
  row_out_.assign(uint64_t{egs} * kLanes, kNoRow);
  row_lanes_.resize(streams);
  const RowTable table = {
      row_in_.data(),  row_lanes_.data(),
      row_out_.data(), streams,
      part_egs,        has_row_per_pe ? std::min(pes, part_egs * kLanes) : split_.section.groups,
      step_words,      has_sums ? (streams + batches - 1) / batches : 0};
  std::vector<bool> is_used(table.rows, false);
  for (uint32_t block = 0; block < blocks; ++block) {
    for (uint32_t pe = 0; pe < pes; ++pe) {
      const uint32_t row = row_of(has_row_per_pe ? pe_at_[group_of_[pe] * members + block] : pe);
      row_in_[uint64_t{block} * egs * kLanes + pe] = row | (is_used[row] ? 0 : kFirstOfRow);
      is_used[row] = true;
    }
  }
  for (std::size_t stream = 0; stream < row_lanes_.size(); ++stream)
    row_lanes_[stream] = lane_rows_of(&row_in_[stream * kLanes]);
  for (uint32_t pe = 0; pe < pes; ++pe) row_out_[pe] = row_of(pe);
  const uint64_t row_lines = table.step_words / kStepWords,
                 sums = uint64_t{table.batch_streams} * table.step_words;
  buffer_bytes_ = (table.rows * row_lines + sums) * kLineBytes;
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

std::size_t SectionTables::bytes() const {
  const auto bytes_of = [](const auto &table) { return table.capacity() * sizeof table[0]; };
  std::size_t of_parts = bytes_of(parts_);
  for (const SectionPart &part : parts_) of_parts += bytes_of(part.in) + bytes_of(part.out);
  return of_parts + bytes_of(lists_.units) + bytes_of(lists_.streams) + bytes_of(lists_.targets) +
         bytes_of(lists_.sources) + bytes_of(row_in_) + bytes_of(row_lanes_) + bytes_of(row_out_);
}

}  // namespace pidcomm
