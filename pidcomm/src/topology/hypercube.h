// The integer arithmetic of the hypercube, without memory or devices.
//
// Each axis has a length and a PE stride. The stride of an axis is the product of the lengths of
// all axes before this axis. The coordinate of PE p along an axis is p / stride % length. Under an
// axis mask the PEs that agree in the unselected coordinates form a group. The place of a PE is 8 *
// e + lane, where e counts entangled groups: PE p has place p in PeOrder::chips; see place_of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/geometry.h"

namespace pidcomm {

inline constexpr uint32_t kMaxAxes = 16;
// 1600 times the PEs of the largest machine, for cubes over hosts, and small enough that PE
// arithmetic cannot overflow.
inline constexpr uint64_t kMaxPes = uint64_t{1} << 22;

/// The order of PE numbers. chips: the chip (lane) varies fastest, then the bank, then the rank.
/// foreach: the bank varies fastest, then the chip, then the rank, as in DPU_FOREACH of the SDK.
enum class PeOrder { chips, foreach };

struct Axis {
  uint32_t length;
  uint32_t stride_pes;
};

/// An ordered list of axes that covers PEs 0 .. pes-1 exactly.
struct Hypercube {
  std::vector<Axis> axes;
  uint32_t pes = 0;
  PeOrder order = PeOrder::chips;

  /// Errors: ERR_SHAPE (there is no axis, there are more than kMaxAxes axes, a length is 0, or the
  /// product of the lengths exceeds kMaxPes; with PeOrder::foreach also: the product of the lengths
  /// up to an axis is not 1, 2, 4, 8, 16, 32 or a multiple of 64, or the PEs do not fill ranks).
  static Hypercube of(const std::vector<uint32_t> &lengths, PeOrder order = PeOrder::chips);

  /// Returns the place of PE `pe`.
  uint32_t place_of(uint32_t pe) const;

  uint32_t coordinate(uint32_t pe, uint32_t axis) const {
    return pe / axes[axis].stride_pes % axes[axis].length;
  }

  /// Whether the shape has a lane split (see Split) under every mask.
  bool has_lane_split() const;

  /// Returns text such as "32x32", or "8x8 (order of DPU_FOREACH)", for error sentences and plans.
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
  uint32_t pe_at(uint32_t group, uint32_t member) const {
    return pe_of(unselected, group) + pe_of(selected, member);
  }

 private:
  static uint32_t index_of(const std::vector<Digit> &digits, uint32_t pe);
  static uint32_t pe_of(const std::vector<Digit> &digits, uint32_t index);
};

/// A loop over sections. Step i of the `count` steps begins at entangled group i * eg_stride, and
/// adds i * index_stride to member indices or group indices.
struct EgLoop {
  uint32_t count, eg_stride, index_stride;
};

/// A grouping, cut into sections: the same groups and members, at other places, in every section.
///
/// Axes are cut at the chips, banks and ranks if the order of PEs is PeOrder::foreach. Neighbours
/// among the cut axes that the mask treats alike count as one axis here. Let `axis` be the first
/// axis, in the order of places, with stride * length divisible by 8. A section is a run of
/// entangled groups. The section holds all axes before `axis` completely, and 8 / gcd(8, stride)
/// consecutive indices of `axis`, so that its PEs fill whole entangled groups. Then
///   member index = member_stride * (member index in the section) + sum over `members`
///   group index  = group_stride  * (group index in the section)  + sum over `sets`
/// where a loop adds step * index_stride. In PeOrder::chips, both strides are 1.
/// If 8 does not divide the number of PEs, the section is the complete hypercube, and its last
/// entangled group has fewer than 8 PEs.
///
/// The shape has a lane split if a section is one entangled group. Then all lengths in the section
/// are powers of two, and
///   member index in the section = compress(lane, lane_mask)
///   group index in the section  = compress(lane, ~lane_mask)
/// where compress(lane, mask) returns the bits of `lane` at the positions that are set in the mask,
/// as adjacent bits, lowest bit first.
struct Split {
  Grouping section;  // groups and members of the places of one section, numbered from 0
  uint32_t member_stride = 1, group_stride = 1;
  uint32_t section_egs = 1;  // entangled groups of a section
  uint32_t lane_mask =
      0;           // if the shape has a lane split, bit i: lane bit i belongs to a selected axis
  uint32_t k = 0;  // number of bits set in lane_mask
  std::vector<EgLoop>
      members;               // the first entangled groups of the sections of one set, fastest first
  std::vector<EgLoop> sets;  // the first entangled group of every set, fastest first

  uint32_t section_pes() const { return section.groups * section.group_pes; }
  bool has_lane_split() const { return section_pes() == kLanes; }

  /// The number of sections of a set.
  uint32_t member_sections() const;

  static Split of(const Hypercube &cube, const char *mask);
};

}  // namespace pidcomm
