// Preparation of a sweep before its first byte moves: the tables of its pass, and the order in
// which threads visit its items.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/section_tables.h"
#include "plan/plan.h"

namespace pidcomm {

/// The starts of the streams on one side (input or output) of an item, relative to the start of the
/// item.
struct StreamStart {
  uint64_t bytes;
  uint32_t egs;
  bool is_missing = false;  // there is no PE
};

/// A sub-item: streams of an item that a pass can visit without the other streams. In gather and
/// scatter, an item has a sub-item for each entangled group of its section. In passes with
/// tables, an item has a sub-item for each part. In all other passes, an item has one sub-item.
struct SubItem {
  std::vector<StreamStart> in, out;
  uint32_t eg = 0;  // first entangled group of the sub-item, counted in its section
  uint32_t keep_lanes = 0;
  const SectionPart *part = nullptr;  // of a pass with tables
};

/// The start of an item: the entangled group and the byte at which its input and its output start.
struct ItemStart {
  uint32_t in_eg, out_eg;
  uint64_t in_offset, out_offset;
};

/// Returns `item` moved to iteration `index` of a nest of loops (slowest loop first).
ItemStart advanced(ItemStart item, const std::vector<Loop> &loops, uint64_t index);

/// The tables of a sweep, and the order in which threads visit its items. A batch is one or more
/// sub-items that a thread visits in lockstep. The sweep must exist as long as the object.
class PreparedSweep {
 public:
  /// A sub-item of an item of the outer loops.
  struct BatchItem {
    ItemStart start;
    const SubItem *sub_item;
  };

  /// Throws std::bad_alloc.
  PreparedSweep(const Plan &plan, const Sweep &sweep);
  PreparedSweep(const PreparedSweep &) = delete;
  PreparedSweep &operator=(const PreparedSweep &) = delete;

  const Sweep &sweep() const { return sweep_; }
  const SectionTables &tables() const { return tables_; }
  /// The largest numbers of streams of a sub-item, on the input side and on the output side.
  std::size_t in_streams() const { return in_streams_; }
  std::size_t out_streams() const { return out_streams_; }
  /// Number of group members with input streams in one rank, if the first item starts at the first
  /// entangled group of a rank. 1 if the sweep does not reduce.
  uint32_t rank_members() const;
  /// Whether the sweep reduces and an item that starts at the first entangled group of a rank loads
  /// from several ranks.
  bool loads_from_ranks() const;

  uint64_t batches() const {
    return begins_.empty() ? iterations_of(sweep_.outer) * sub_items_.size() : begins_.size() - 1;
  }
  uint32_t batch_size(uint64_t batch) const {
    return begins_.empty() ? 1 : begins_[batch + 1] - begins_[batch];
  }
  uint32_t largest_batch() const { return largest_batch_; }
  /// Bytes of the tables and lists.
  std::size_t bytes() const;
  BatchItem item(uint64_t batch, uint32_t index) const {
    if (!begins_.empty()) return items_[begins_[batch] + index];
    return {advanced(origin_, sweep_.outer, batch / sub_items_.size()),
            &sub_items_[batch % sub_items_.size()]};
  }

 private:
  void make_batches();
  /// Number of input streams of a sub-item in the first `egs` entangled groups.
  uint64_t streams_below(uint32_t egs) const;

  const Sweep &sweep_;
  const SectionTables tables_;
  const ItemStart origin_;
  const std::vector<SubItem> sub_items_;
  const bool reduces_;
  std::vector<BatchItem> items_;  // batch after batch
  std::vector<uint32_t> begins_;  // index of each batch's first item, then the number of items;
                                  // empty if every sub-item of every item is a batch
  uint32_t largest_batch_ = 1;
  std::size_t in_streams_ = 0, out_streams_ = 0;
};

}  // namespace pidcomm
