#include "topology/hypercube.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace pidcomm {

namespace {

std::string shape_text(const std::vector<uint32_t> &lengths) {
  std::string text;
  for (uint32_t length : lengths) {
    if (!text.empty()) text += 'x';
    text += std::to_string(length);
  }
  return text;
}

}  // namespace

Hypercube Hypercube::of(const std::vector<uint32_t> &lengths) {
  if (lengths.empty() || lengths.size() > kMaxAxes)
    fail(PIDCOMM_ERR_SHAPE, "a hypercube has 1 to ", kMaxAxes, " axes, not ", lengths.size());
  Hypercube cube;
  uint64_t pes = 1;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0) fail(PIDCOMM_ERR_SHAPE, "axis ", i, " has length 0; every axis needs at least 1");
    cube.axes.push_back({lengths[i], static_cast<uint32_t>(pes)});
    pes *= lengths[i];
    if (pes > kMaxPes)
      fail(PIDCOMM_ERR_SHAPE, "the axis lengths ", shape_text(lengths), " need ", pes, " PEs or more; the limit is ", kMaxPes);
  }
  cube.pes = static_cast<uint32_t>(pes);
  return cube;
}

std::string Hypercube::to_string() const {
  std::vector<uint32_t> lengths;
  for (const Axis &axis : axes) lengths.push_back(axis.length);
  return shape_text(lengths);
}

namespace {

void check_mask(const Hypercube &cube, const char *mask) {
  if (mask == nullptr)
    fail(PIDCOMM_ERR_MASK, "the axis mask is null; shape ", cube.to_string(), " needs ", cube.axes.size(), " characters");
  const std::size_t length = std::strlen(mask);
  if (length != cube.axes.size() || std::strspn(mask, "01") != length)
    fail(PIDCOMM_ERR_MASK, "axis mask \"", mask, "\" must be ", cube.axes.size(), " characters '0' or '1', one per axis of ",
         cube.to_string());
}

}  // namespace

Grouping Grouping::of(const Hypercube &cube, const char *mask) {
  check_mask(cube, mask);
  Grouping grouping;
  for (std::size_t i = 0; i < cube.axes.size(); ++i) {
    const bool is_selected = mask[i] == '1';
    uint32_t &count = is_selected ? grouping.group_pes : grouping.groups;
    (is_selected ? grouping.selected : grouping.unselected).push_back({cube.axes[i].length, cube.axes[i].stride_pes, count});
    count *= cube.axes[i].length;
  }
  return grouping;
}

uint32_t Grouping::index_of(const std::vector<Digit> &digits, uint32_t pe) {
  uint32_t index = 0;
  for (const Digit &digit : digits) index += pe / digit.pe_stride % digit.length * digit.index_stride;
  return index;
}

uint32_t Grouping::pe_of(const std::vector<Digit> &digits, uint32_t index) {
  uint32_t pe = 0;
  for (const Digit &digit : digits) pe += index / digit.index_stride % digit.length * digit.pe_stride;
  return pe;
}

std::optional<LaneSplit> LaneSplit::of(const Hypercube &cube, const char *mask) {
  check_mask(cube, mask);
  if (cube.pes % kLanes != 0) return std::nullopt;
  LaneSplit split;
  for (std::size_t i = 0; i < cube.axes.size(); ++i) {
    const auto [length, stride] = cube.axes[i];
    const bool is_selected = mask[i] == '1';
    // The part of the axis length inside the lanes, and the remaining part of the axis length, in entangled groups.
    const uint32_t lane_room = stride < kLanes ? kLanes / stride : 1;
    const uint32_t lane_length = std::min(length, lane_room);
    if (lane_room % lane_length != 0 || length % lane_length != 0) return std::nullopt;
    if (is_selected) split.lane_mask |= (lane_length - 1) * stride;
    const uint32_t egs = length / lane_length;
    uint32_t &count = is_selected ? split.member_egs : split.set_count;
    if (egs > 1) (is_selected ? split.members : split.sets).push_back({egs, std::max(stride / kLanes, 1u), count});
    count *= egs;
  }
  split.k = static_cast<uint32_t>(std::popcount(split.lane_mask));
  return split;
}

}  // namespace pidcomm
