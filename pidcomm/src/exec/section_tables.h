// The tables that the passes for sections use: which lanes of which input streams make up an output
// stream, and which rows accumulate which PEs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "line_kernels/kernels.h"
#include "plan/plan.h"

namespace pidcomm {

/// The lists of a MergeTable.
struct MergeLists {
  std::vector<MergeUnit> units;
  std::vector<uint32_t> streams;
  std::vector<MergeTarget> targets;
  std::vector<MergeSource> sources;
};

/// A part of the work on a section; see parts_of. The table of the part numbers its streams: stream
/// n is stream in[n] or out[n] of the section. If `in` and `out` are empty, the part has all
/// streams, with the numbers that they have in the section.
struct SectionPart {
  std::vector<uint32_t> in{}, out{};
  MergeTable merge{};       // of the pass merge
  RowTable rows{};          // of the passes with rows
  uint32_t keep_lanes = 0;  // of the passes with rows: lanes without a PE
};

/// The row of each lane of a stream, or kNoRow; see RowTable.
using LaneEntries = std::array<uint32_t, kLanes>;

/// The tables of one sweep. Streams of a section are numbered in the order of the sweep: block
/// after block, and in a block, entangled group after entangled group. Without a lane split, the
/// size of the tables is O(members * PEs of a section).
class SectionTables {
 public:
  /// Empty if the pass of the sweep does not use tables. Throws std::bad_alloc.
  SectionTables(const Plan &plan, const Sweep &sweep);
  SectionTables(const SectionTables &) = delete;
  SectionTables &operator=(const SectionTables &) = delete;

  /// Empty if the pass does not use tables.
  const std::vector<SectionPart> &parts() const { return parts_; }
  /// Lanes of the last entangled group without a PE.
  uint32_t keep_lanes() const { return keep_lanes_; }
  /// Bytes of the tables.
  std::size_t bytes() const;
  /// Bytes of the buffer that each thread needs.
  std::size_t buffer_bytes() const { return buffer_bytes_; }

  /// Where the bytes of a lane of an output line come from: an input stream and a lane of it.
  struct LaneSource {
    uint32_t stream, lane;
  };
  /// The stream of a lane without a PE.
  static constexpr uint32_t kNoStream = ~0u;
  using LineSources = std::array<LaneSource, kLanes>;

 private:
  void make_merge(const Plan &plan, const Sweep &sweep);
  /// Sets lists_: joins units of one tile or one target into units with few input streams, into one
  /// unit, or, if joined_targets is not 0, into units with this number of targets. Units that share
  /// streams follow each other. The streams of a unit of `lists` are those of its sources. Returns
  /// the largest number of streams that are loaded between two units that load the same stream.
  uint32_t join_units(const MergeLists &lists, uint32_t in_streams, bool is_one_unit,
                      uint32_t joined_targets);
  /// Sets `previous` and `next` of all targets.
  void find_other_banks();
  /// Removes from each unit the streams that an earlier unit of its part loads.
  void keep_first_loads();
  /// Cuts the units of the table of the section into parts.
  void cut_merge(const MergeTable &table);
  void make_rows(const Plan &plan, const Sweep &sweep);
  /// Sets row_bundles_ and row_streams_. rows: for each input stream, the row of each lane.
  /// joins_streams: whether a bundle can have several streams.
  void make_bundles(const std::vector<LaneEntries> &rows, bool joins_streams);
  /// Returns the sources of the output stream of one entangled group and output block.
  LineSources sources_of(uint32_t eg, uint32_t block) const;
  /// Sets `targets` to the sources of this output stream, and of those of the next blocks that have
  /// the same input stream in each lane.
  void find_targets_of_same_streams(uint32_t eg, uint32_t block,
                                    std::vector<LineSources> &targets) const;

  const Split &split_;
  uint32_t in_blocks_, out_blocks_;  // of a section
  uint32_t keep_lanes_;
  std::size_t buffer_bytes_ = 0;

  std::vector<uint32_t> group_of_, member_of_,
      pe_at_;  // of the PEs of a section; pe_at_[group * members + member]

  std::vector<SectionPart> parts_;
  MergeLists lists_;

  std::vector<RowBundle> row_bundles_;
  std::vector<uint32_t> row_streams_, row_out_, row_out_egs_;  // see RowTable
};

}  // namespace pidcomm
