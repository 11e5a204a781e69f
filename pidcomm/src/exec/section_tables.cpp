#include "exec/section_tables.h"

#include <algorithm>
#include <bit>
#include <new>

namespace pidcomm {

namespace {

/// Lines that stay in the second-level cache.
constexpr uint32_t kCachedLines = 12288;

/// Input streams of a unit. The bandwidth of the memory is lower if a thread visits more streams at
/// a time.
constexpr uint32_t kUnitStreams = 24;

/// Sets the lane of the source from which a lane comes.
void set_lane(MergeSource &source, uint32_t lane, uint32_t from) {
  source.lane_map = (source.lane_map & ~(uint64_t{0xFF} << 8 * lane)) | uint64_t{from} << 8 * lane;
}

/// The lane_map of a source from which no lane comes.
constexpr uint64_t kNoLanes = kNoLane * 0x0101010101010101u;

/// Returns the lines whose lanes make up an output line.
std::vector<MergeSource> merge_sources_of(const SectionTables::LineSources &sources) {
  std::vector<MergeSource> lines;
  lines.reserve(kLanes);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (sources[lane].stream == SectionTables::kNoStream) continue;
    auto line = std::find_if(lines.begin(), lines.end(), [&](const MergeSource &other) {
      return other.stream == sources[lane].stream;
    });
    if (line == lines.end()) line = lines.insert(line, {kNoLanes, sources[lane].stream});
    set_lane(*line, lane, sources[lane].lane);
  }
  return lines;
}

/// Returns the tile_mask of a tile for this number of targets.
uint32_t tile_mask_of(std::size_t targets) {
  return std::max<uint32_t>(static_cast<uint32_t>(std::bit_ceil(targets)), 2) - 1;
}

/// Returns the 8 sources of a tile that makes the lines of some targets.
std::vector<MergeSource> tile_of(const std::vector<SectionTables::LineSources> &targets) {
  const uint32_t mask = tile_mask_of(targets.size());
  std::vector<MergeSource> sources;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const bool has_pe = targets[0][lane].stream != SectionTables::kNoStream;
    MergeSource source = {kNoLanes, targets[0][has_pe ? lane : 0].stream};
    for (uint32_t n = 0; has_pe && n < targets.size(); ++n)
      set_lane(source, (lane & ~mask) | n, targets[n][lane].lane);
    sources.push_back(source);
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
  std::size_t other_instructions = 0;
  for (const SectionTables::LineSources &sources : targets)
    other_instructions += 3 * merge_sources_of(sources).size();
  return tile_instructions < other_instructions;
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
  const bool has_tiles = plan.in.per_member && !is_buffered;
  constexpr uint32_t kNever = ~0u;
  // By stream: the value of `before` at the last unit that loads the stream.
  std::vector<uint32_t> visited_at(in_streams, kNever);
  uint32_t before = 0,     // streams of earlier units
      longest_reload = 0;  // streams between two units with the same stream
  const auto begin_unit = [&](uint32_t tile_mask) {
    if (!units_.empty()) before += units_.back().stream_count;
    units_.push_back({static_cast<uint32_t>(streams_.size()), 0,
                      static_cast<uint32_t>(targets_.size()), 0, tile_mask});
  };
  /// Adds a stream to the last unit, unless the unit has it.
  const auto add_stream = [&](uint32_t stream) {
    uint32_t &visited = visited_at[stream];
    if (visited == before) return;
    if (visited != kNever) longest_reload = std::max(longest_reload, before - visited);
    visited = before;
    streams_.push_back(stream);
    ++units_.back().stream_count;
  };
  const auto add_target = [&](uint32_t eg, uint32_t block, uint32_t first_source) {
    targets_.push_back({block * egs + eg, first_source,
                        static_cast<uint32_t>(sources_.size()) - first_source,
                        eg + 1 == egs ? keep_lanes_ : 0});
    ++units_.back().target_count;
  };
  const auto add_tile = [&](uint32_t eg, uint32_t block, const std::vector<LineSources> &targets) {
    begin_unit(tile_mask_of(targets.size()));
    const auto first_source = static_cast<uint32_t>(sources_.size());
    for (const MergeSource &line : tile_of(targets)) {
      add_stream(line.stream);
      sources_.push_back(line);
    }
    for (std::size_t n = 0; n < targets.size(); ++n) add_target(eg, block++, first_source);
  };
  const auto add_without_tile = [&](uint32_t eg, uint32_t block, const LineSources &sources) {
    const std::vector<MergeSource> lines = merge_sources_of(sources);
    const auto is_new = [&](const MergeSource &line) { return visited_at[line.stream] != before; };
    const auto added = std::count_if(lines.begin(), lines.end(), is_new);
    if (units_.empty() || units_.back().tile_mask != 0 ||
        (!is_buffered && units_.back().stream_count + added > kUnitStreams))
      begin_unit(0);
    const auto first_source = static_cast<uint32_t>(sources_.size());
    for (const MergeSource &line : lines) {
      add_stream(line.stream);
      sources_.push_back(line);
    }
    add_target(eg, block, first_source);
  };
  for (uint32_t eg = 0; eg < egs; ++eg) {
    for (uint32_t block = 0; block < out_blocks_;) {
      const std::vector<LineSources> targets = targets_of_same_streams(eg, block);
      if (has_tiles && is_faster_as_tile(targets))
        add_tile(eg, block, targets);
      else
        for (std::size_t i = 0; i < targets.size(); ++i)
          add_without_tile(eg, block + static_cast<uint32_t>(i), targets[i]);
      block += static_cast<uint32_t>(targets.size());
    }
  }
  const uint32_t directions = sweep.exchange && split_.member_sections() > 1 ? 2 : 1;
  const uint32_t items = static_cast<uint32_t>(iterations_of(sweep.lockstep));
  const uint32_t reused =
      items > 1 ? items * in_streams : longest_reload;  // streams to keep in the cache
  const uint32_t strip =
      is_buffered   ? std::clamp(kCachedLines / 2 / (in_streams * directions), 1u, kStepWords)
      : reused == 0 ? kStripWords
                    : std::clamp(kCachedLines / reused, 1u, kStripWords);
  const uint32_t step =
      reused == 0 ? kRunWords : std::max(kCachedLines / reused / strip, 1u) * strip;
  merge_ = {units_.data(),
            streams_.data(),
            targets_.data(),
            sources_.data(),
            static_cast<uint32_t>(units_.size()),
            in_streams,
            out_streams,
            step,
            strip,
            is_buffered};
  if (is_buffered) buffer_bytes_ = uint64_t{in_streams} * directions * strip * kLineBytes;
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

std::vector<SectionTables::LineSources> SectionTables::targets_of_same_streams(
    uint32_t eg, uint32_t block) const {
  std::vector<LineSources> targets = {sources_of(eg, block)};
  while (++block < out_blocks_) {
    const LineSources next = sources_of(eg, block);
    const bool has_same_streams =
        std::equal(next.begin(), next.end(), targets[0].begin(),
                   [](const LaneSource &a, const LaneSource &b) { return a.stream == b.stream; });
    if (!has_same_streams) break;
    targets.push_back(next);
  }
  return targets;
}

void SectionTables::make_rows(const Plan &plan, const Sweep &sweep) {
  const uint32_t egs = split_.section_egs, members = split_.section.group_pes,
                 pes = split_.section_pes();
  const bool has_row_per_pe = plan.in.per_member;  // else per group
  const bool has_sums = split_.member_sections() > 1;
  const bool has_long_steps =
      (has_sums || sweep.pass == Pass::reduce_rows_to_host) && in_blocks_ * egs <= kLongStepStreams;
  const auto row_of = [&](uint32_t pe) { return has_row_per_pe ? pe : group_of_[pe]; };
  row_in_.assign(uint64_t{in_blocks_} * egs * kLanes, kNoRow);
  row_out_.assign(uint64_t{egs} * kLanes, kNoRow);
  rows_ = {row_in_.data(),
           row_out_.data(),
           in_blocks_ * egs,
           egs,
           has_row_per_pe ? pes : split_.section.groups,
           has_long_steps ? kRowStepWords : kStripWords};
  std::vector<bool> is_used(rows_.rows, false);
  for (uint32_t block = 0; block < in_blocks_; ++block) {
    for (uint32_t pe = 0; pe < pes; ++pe) {
      const uint32_t row = row_of(has_row_per_pe ? pe_at_[group_of_[pe] * members + block] : pe);
      row_in_[uint64_t{block} * egs * kLanes + pe] = row | (is_used[row] ? 0 : kFirstOfRow);
      is_used[row] = true;
    }
  }
  for (uint32_t pe = 0; pe < pes; ++pe) row_out_[pe] = row_of(pe);
  const uint64_t row_lines = rows_.step_words / kStepWords,
                 sums = has_sums ? uint64_t{rows_.in_streams} * rows_.step_words : 0;
  buffer_bytes_ = (rows_.rows * row_lines + sums) * kLineBytes;
}

std::size_t SectionTables::bytes() const {
  const auto bytes_of = [](const auto &table) { return table.size() * sizeof table[0]; };
  return bytes_of(units_) + bytes_of(streams_) + bytes_of(targets_) + bytes_of(sources_) +
         bytes_of(row_in_) + bytes_of(row_out_);
}

}  // namespace pidcomm
