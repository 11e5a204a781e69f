// What a sweep needs besides addresses: its tables, and the order in which threads visit its items. A call prepares a sweep before it moves
// bytes, and keeps it with the plan for later calls.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/section_tables.h"
#include "plan/plan.h"

namespace pidcomm {

/// The starts of the streams on one side (input or output) of an item, relative to the start of the item.
struct StreamStart {
  uint32_t egs;
  uint64_t bytes;
  bool is_missing = false;  // there is no PE
};

/// The streams of a part of an item that a pass can visit on its own.
struct Part {
  std::vector<StreamStart> in, out;
  uint32_t eg = 0;  // of the part in the section
  uint32_t keep_lanes = 0;
};

/// The start of an item: the entangled group and the byte at which its input and its output start.
struct Item {
  uint32_t in_eg, out_eg;
  uint64_t in_offset, out_offset;
};

/// Returns `item` moved to step `index` of a nest of loops (slowest loop first).
Item advanced(Item item, const std::vector<Loop> &loops, uint64_t index);

/// The parts of the items of the outer loops, in groups. A thread visits the parts of a group in lockstep.
struct Groups {
  struct Member {
    Item item;
    const Part *part;
  };
  std::vector<Member> members;
  std::vector<uint32_t> begins;  // of the groups, and the number of members; empty if every item is a group
  uint32_t largest = 1;          // members of the largest group
};

/// The sweep must exist as long as the object.
class PreparedSweep {
 public:
  /// Throws std::bad_alloc.
  PreparedSweep(const Plan &plan, const Sweep &sweep);
  PreparedSweep(const PreparedSweep &) = delete;
  PreparedSweep &operator=(const PreparedSweep &) = delete;

  const Sweep &sweep() const { return sweep_; }
  const SectionTables &tables() const { return tables_; }
  /// Numbers of streams of an item, on the input side and on the output side.
  std::size_t in_streams() const { return parts_[0].in.size(); }
  std::size_t out_streams() const { return parts_[0].out.size(); }

  uint64_t groups() const { return groups_.begins.empty() ? steps_of(sweep_.outer) : groups_.begins.size() - 1; }
  /// The number of members of the largest group.
  uint32_t largest_group() const { return groups_.largest; }
  uint32_t group_size(uint64_t group) const { return groups_.begins.empty() ? 1 : groups_.begins[group + 1] - groups_.begins[group]; }
  Groups::Member member(uint64_t group, uint32_t index) const {
    return groups_.begins.empty() ? Groups::Member{advanced(origin_, sweep_.outer, group), parts_.data()}
                                  : groups_.members[groups_.begins[group] + index];
  }

 private:
  const Sweep &sweep_;
  const SectionTables tables_;
  const Item origin_;
  const std::vector<Part> parts_;
  const Groups groups_;
};

}  // namespace pidcomm
