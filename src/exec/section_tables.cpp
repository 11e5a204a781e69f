#include "exec/section_tables.h"

#include <algorithm>

namespace pidcomm {

namespace {

/// Lines that a part of a merge keeps in the buffer, so that the buffer stays in the second-level cache.
constexpr uint32_t kBufferLines = 4096;

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
  pe_at_.resize(pes);
  for (uint32_t pe = 0; pe < pes; ++pe) {
    group_of_.push_back(section.group_of(pe));
    member_of_.push_back(section.member_of(pe));
    pe_at_[group_of_[pe] * section.group_pes + member_of_[pe]] = pe;
  }
  merges ? make_merge(plan, sweep) : make_rows(plan);
}

void SectionTables::make_merge(const Plan &plan, const Sweep &sweep) {
  const uint32_t egs = split_.section_egs, streams = in_blocks_ * egs;
  // If the output replaces the input, a part needs all input streams in the buffer before it stores a line.
  const bool is_one_part = !plan.in.per_member || sweep.is_in_place() || streams * kStepWords <= kBufferLines;
  uint32_t part_egs = egs;
  while (!is_one_part && part_egs > 1 && streams_for(0, part_egs).size() * kStepWords > kBufferLines) part_egs = (part_egs + 1) / 2;
  uint32_t most_streams = 0;
  for (uint32_t first = 0; first < egs; first += part_egs) {
    add_part(first, std::min(first + part_egs, egs));
    most_streams = std::max(most_streams, parts_.back().stream_count);
  }
  const uint32_t directions = sweep.exchange && split_.member_sections() > 1 ? 2 : 1;
  const uint32_t step_words = std::clamp(kBufferLines / most_streams / directions, 1u, kStepWords);
  merge_ = {parts_.data(), streams_.data(),   targets_.data(), sources_.data(), static_cast<uint32_t>(parts_.size()),
            streams,       out_blocks_ * egs, step_words};
  buffer_bytes_ = uint64_t{most_streams} * directions * step_words * kLineBytes;
}

template <class Visit>
void SectionTables::each_source(uint32_t first, uint32_t last, const Visit &visit) const {
  const uint32_t egs = split_.section_egs, members = split_.section.group_pes, end = std::min(split_.section_pes(), last * kLanes);
  for (uint32_t block = 0; block < out_blocks_; ++block) {
    for (uint32_t pe = first * kLanes; pe < end; ++pe) {
      const uint32_t from = pe_at_[group_of_[pe] * members + block];
      visit(block, pe, (in_blocks_ > 1 ? member_of_[pe] * egs : 0) + from / kLanes, from % kLanes);
    }
  }
}

std::vector<uint32_t> SectionTables::streams_for(uint32_t first, uint32_t last) const {
  std::vector<bool> is_needed(in_blocks_ * split_.section_egs, false);
  each_source(first, last, [&](uint32_t, uint32_t, uint32_t stream, uint32_t) { is_needed[stream] = true; });
  std::vector<uint32_t> streams;
  for (uint32_t stream = 0; stream < is_needed.size(); ++stream)
    if (is_needed[stream]) streams.push_back(stream);
  return streams;
}

void SectionTables::add_part(uint32_t first, uint32_t last) {
  const uint32_t egs = split_.section_egs;
  const std::vector<uint32_t> streams = streams_for(first, last);
  std::vector<uint32_t> line_of(in_blocks_ * egs);  // the line of the buffer, by input stream
  for (uint32_t line = 0; line < streams.size(); ++line) line_of[streams[line]] = line;
  parts_.push_back({static_cast<uint32_t>(streams_.size()), static_cast<uint32_t>(streams.size()), static_cast<uint32_t>(targets_.size()),
                    (last - first) * out_blocks_});
  streams_.insert(streams_.end(), streams.begin(), streams.end());
  each_source(first, last, [&](uint32_t block, uint32_t pe, uint32_t stream, uint32_t from_lane) {
    const uint32_t eg = pe / kLanes, shift = 8 * (pe % kLanes);
    if (shift == 0) targets_.push_back({block * egs + eg, static_cast<uint32_t>(sources_.size()), 0, eg + 1 == egs ? keep_lanes_ : 0});
    MergeTarget &target = targets_.back();
    auto source = std::find_if(sources_.begin() + target.first_source, sources_.end(),
                               [&](const MergeSource &other) { return other.line == line_of[stream]; });
    if (source == sources_.end()) {
      source = sources_.insert(source, {kNoLane * 0x0101010101010101u, line_of[stream]});
      ++target.source_count;
    }
    source->lane_map = (source->lane_map & ~(uint64_t{0xFF} << shift)) | uint64_t{from_lane} << shift;
  });
}

void SectionTables::make_rows(const Plan &plan) {
  const uint32_t egs = split_.section_egs, members = split_.section.group_pes, pes = split_.section_pes();
  const bool has_row_per_pe = plan.in.per_member;  // else per group
  const auto row_of = [&](uint32_t pe) { return has_row_per_pe ? pe : group_of_[pe]; };
  row_in_.assign(uint64_t{in_blocks_} * egs * kLanes, kNoRow);
  row_out_.assign(uint64_t{egs} * kLanes, kNoRow);
  rows_ = {row_in_.data(), row_out_.data(), in_blocks_ * egs, egs, has_row_per_pe ? pes : split_.section.groups};
  std::vector<bool> is_used(rows_.rows, false);
  for (uint32_t block = 0; block < in_blocks_; ++block) {
    for (uint32_t pe = 0; pe < pes; ++pe) {
      const uint32_t row = row_of(has_row_per_pe ? pe_at_[group_of_[pe] * members + block] : pe);
      row_in_[uint64_t{block} * egs * kLanes + pe] = row | (is_used[row] ? 0 : kFirstOfRow);
      is_used[row] = true;
    }
  }
  for (uint32_t pe = 0; pe < pes; ++pe) row_out_[pe] = row_of(pe);
  buffer_bytes_ = uint64_t{rows_.rows} * kTurnLines * kLineBytes;
}

}  // namespace pidcomm
