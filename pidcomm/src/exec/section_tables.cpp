#include "exec/section_tables.h"

#include <algorithm>
#include <new>

namespace pidcomm {

namespace {

/// Lines that stay in the second-level cache.
constexpr uint32_t kCachedLines = 12288;

/// Input streams of a unit. The bandwidth of the memory is lower if a thread visits more streams at
/// a time.
constexpr uint32_t kUnitStreams = 24;

/// Words of a stream that an alltoall with few streams visits before the next stream. With more
/// streams it visits kStepWords.
constexpr uint32_t kShortStripWords = 4;

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
  merges ? make_merge(plan, sweep) : make_rows(plan);
}

void SectionTables::make_merge(const Plan &plan, const Sweep &sweep) {
  const uint32_t egs = split_.section_egs, in_streams = in_blocks_ * egs,
                 out_streams = out_blocks_ * egs;
  const bool is_buffered = sweep.is_in_place();
  constexpr uint32_t kNever = ~0u;
  std::vector<uint32_t> visited_at(
      in_streams,
      kNever);  // by stream: the value of `before` at the last unit that loads the stream
  uint32_t before = 0,
           longest_reload =
               0;  // streams of earlier units; streams between two units with the same stream
  units_.push_back({});
  for (uint32_t eg = 0; eg < egs; ++eg) {
    for (uint32_t block = 0; block < out_blocks_; ++block) {
      add_target(eg, block);
      const MergeTarget &target = targets_.back();
      const auto is_in_unit = [&](const MergeSource &source) {
        return visited_at[source.stream] == before;
      };
      const auto first = sources_.begin() + target.first_source;
      const auto added = static_cast<uint32_t>(target.source_count -
                                               std::count_if(first, sources_.end(), is_in_unit));
      if (!is_buffered && units_.back().target_count != 0 &&
          units_.back().stream_count + added > kUnitStreams) {
        before += units_.back().stream_count;
        units_.push_back({static_cast<uint32_t>(streams_.size()), 0,
                          static_cast<uint32_t>(targets_.size() - 1), 0});
      }
      MergeUnit &unit = units_.back();
      ++unit.target_count;
      std::for_each(first, sources_.end(), [&](const MergeSource &source) {
        uint32_t &visited = visited_at[source.stream];
        if (visited == before) return;
        if (visited != kNever) longest_reload = std::max(longest_reload, before - visited);
        visited = before;
        streams_.push_back(source.stream);
        ++unit.stream_count;
      });
    }
  }
  const uint32_t directions = sweep.exchange && split_.member_sections() > 1 ? 2 : 1;
  const uint32_t items = static_cast<uint32_t>(iterations_of(sweep.lockstep));
  const uint32_t reused =
      items > 1 ? items * in_streams : longest_reload;  // streams to keep in the cache
  const bool has_few_streams = plan.in.per_member && in_streams <= kUnitStreams;
  const uint32_t strip =
      is_buffered       ? std::clamp(kCachedLines / 2 / (in_streams * directions), 1u, kStepWords)
      : has_few_streams ? kShortStripWords
      : reused == 0     ? kStepWords
                        : std::clamp(kCachedLines / reused, 1u, kStepWords);
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

void SectionTables::add_target(uint32_t eg, uint32_t block) {
  const uint32_t egs = split_.section_egs, members = split_.section.group_pes;
  MergeTarget target = {block * egs + eg, static_cast<uint32_t>(sources_.size()), 0,
                        eg + 1 == egs ? keep_lanes_ : 0};
  for (uint32_t pe = eg * kLanes; pe < std::min(split_.section_pes(), (eg + 1) * kLanes); ++pe) {
    const uint32_t from = pe_at_[group_of_[pe] * members + block], shift = 8 * (pe % kLanes);
    const uint32_t stream = (in_blocks_ > 1 ? member_of_[pe] * egs : 0) + from / kLanes;
    auto source = std::find_if(sources_.begin() + target.first_source, sources_.end(),
                               [&](const MergeSource &other) { return other.stream == stream; });
    if (source == sources_.end()) {
      source = sources_.insert(source, {kNoLane * 0x0101010101010101u, stream});
      ++target.source_count;
    }
    source->lane_map = (source->lane_map & ~(uint64_t{0xFF} << shift)) | uint64_t{from % kLanes}
                                                                             << shift;
  }
  targets_.push_back(target);
}

void SectionTables::make_rows(const Plan &plan) {
  const uint32_t egs = split_.section_egs, members = split_.section.group_pes,
                 pes = split_.section_pes();
  const bool has_row_per_pe = plan.in.per_member;  // else per group
  const auto row_of = [&](uint32_t pe) { return has_row_per_pe ? pe : group_of_[pe]; };
  row_in_.assign(uint64_t{in_blocks_} * egs * kLanes, kNoRow);
  row_out_.assign(uint64_t{egs} * kLanes, kNoRow);
  rows_ = {row_in_.data(), row_out_.data(), in_blocks_ * egs, egs,
           has_row_per_pe ? pes : split_.section.groups};
  std::vector<bool> is_used(rows_.rows, false);
  for (uint32_t block = 0; block < in_blocks_; ++block) {
    for (uint32_t pe = 0; pe < pes; ++pe) {
      const uint32_t row = row_of(has_row_per_pe ? pe_at_[group_of_[pe] * members + block] : pe);
      row_in_[uint64_t{block} * egs * kLanes + pe] = row | (is_used[row] ? 0 : kFirstOfRow);
      is_used[row] = true;
    }
  }
  for (uint32_t pe = 0; pe < pes; ++pe) row_out_[pe] = row_of(pe);
  const uint64_t sums = split_.member_sections() > 1 ? uint64_t{rows_.in_streams} * kStripWords : 0;
  buffer_bytes_ = (uint64_t{rows_.rows} * kStripLines + sums) * kLineBytes;
}

std::size_t SectionTables::bytes() const {
  const auto bytes_of = [](const auto &table) { return table.size() * sizeof table[0]; };
  return bytes_of(units_) + bytes_of(streams_) + bytes_of(targets_) + bytes_of(sources_) +
         bytes_of(row_in_) + bytes_of(row_out_);
}

}  // namespace pidcomm
