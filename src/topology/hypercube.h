// The integer arithmetic of the hypercube, without memory or devices.
//
// PE p = 8 * e + lane. Each axis has a length and a PE stride. The stride of an axis is the product of the lengths of all axes before this
// axis. The coordinate of PE p along an axis is p / stride % length. Under an axis mask the PEs that agree in the unselected coordinates
// form a group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/geometry.h"

namespace pidcomm {

inline constexpr uint32_t kMaxAxes = 16;
inline constexpr uint64_t kMaxPes = uint64_t{1}
                                    << 20;  // 400 times the PEs of the largest machine, and small enough that PE arithmetic cannot overflow

struct Axis {
  uint32_t length;
  uint32_t stride_pes;
};

/// An ordered list of axes that covers PEs 0 .. pes-1 exactly.
struct Hypercube {
  std::vector<Axis> axes;
  uint32_t pes = 0;

  /// Errors: ERR_SHAPE (there is no axis, there are more than kMaxAxes axes, a length is 0, or the product of the lengths exceeds kMaxPes).
  static Hypercube of(const std::vector<uint32_t> &lengths);

  uint32_t coordinate(uint32_t pe, uint32_t axis) const { return pe / axes[axis].stride_pes % axes[axis].length; }

  /// Returns text such as "32x32", for error sentences.
  std::string to_string() const;
};

/// The groups of PEs under an axis mask. The PEs of group g are pe_at(g, 0 .. group_pes-1).
struct Grouping {
  struct Digit {
    uint32_t length, pe_stride, index_stride;
  };
  std::vector<Digit> selected, unselected;
  uint32_t group_pes = 1;
  uint32_t groups = 1;

  /// mask: one '0' or '1' per axis. Errors: ERR_MASK.
  static Grouping of(const Hypercube &cube, const char *mask);

  uint32_t member_of(uint32_t pe) const { return index_of(selected, pe); }
  uint32_t group_of(uint32_t pe) const { return index_of(unselected, pe); }
  uint32_t pe_at(uint32_t group, uint32_t member) const { return pe_of(unselected, group) + pe_of(selected, member); }

 private:
  static uint32_t index_of(const std::vector<Digit> &digits, uint32_t pe);
  static uint32_t pe_of(const std::vector<Digit> &digits, uint32_t index);
};

/// A loop over entangled groups. The loop has `count` steps. Each step adds `eg_stride` to the number of the entangled group, and
/// `index_stride` to the member index or group index that the loop counts.
struct EgLoop {
  uint32_t count, eg_stride, index_stride;
};

/// A grouping, split into lanes and entangled groups. The split exists if every axis meets one of three conditions: the axis runs only over
/// lanes of one entangled group, the axis runs only over entangled groups, or the lanes divide the axis length without remainder. Then all
/// groups that share an entangled group share the same set of entangled groups, and
///   member index = compress(lane, lane_mask)  + 2^k     * (index over `members`)
///   group index  = compress(lane, ~lane_mask) + 2^(3-k) * (index over `sets`)
/// where compress(lane, mask) returns the bits of `lane` at the positions that are set in the mask, as adjacent bits, lowest bit first.
struct LaneSplit {
  uint32_t lane_mask = 0;       // bit i: lane bit i belongs to a selected axis
  uint32_t k = 0;               // number of bits set in lane_mask
  std::vector<EgLoop> members;  // the entangled groups of one set, fastest first
  std::vector<EgLoop> sets;     // the first entangled group of every set, fastest first
  uint32_t member_egs = 1, set_count = 1;

  /// Returns std::nullopt if the shape has no lane split, or if its number of PEs is not a multiple of 8.
  static std::optional<LaneSplit> of(const Hypercube &cube, const char *mask);
};

}  // namespace pidcomm
