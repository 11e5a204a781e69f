#include "topology/hypercube.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

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
    if (lengths[i] == 0)
      fail(PIDCOMM_ERR_SHAPE, "axis ", i, " has length 0; every axis needs at least 1");
    cube.axes.push_back({lengths[i], static_cast<uint32_t>(pes)});
    pes *= lengths[i];
    if (pes > kMaxPes)
      fail(PIDCOMM_ERR_SHAPE, "the axis lengths ", shape_text(lengths), " need ", pes,
           " PEs or more; the limit is ", kMaxPes);
  }
  cube.pes = static_cast<uint32_t>(pes);
  return cube;
}

bool Hypercube::has_lane_split() const {
  const auto fills_egs = [](const Axis &axis) {
    return axis.stride_pes * axis.length % kLanes == 0;
  };
  const auto axis = std::find_if(axes.begin(), axes.end(), fills_egs);
  return axis != axes.end() && kLanes % axis->stride_pes == 0;
}

std::string Hypercube::to_string() const {
  std::vector<uint32_t> lengths;
  for (const Axis &axis : axes) lengths.push_back(axis.length);
  return shape_text(lengths);
}

namespace {

void check_mask(const Hypercube &cube, const char *mask) {
  if (mask == nullptr)
    fail(PIDCOMM_ERR_MASK, "the axis mask is null; shape ", cube.to_string(), " needs ",
         cube.axes.size(), " characters");
  const std::size_t length = std::strlen(mask);
  if (length != cube.axes.size() || std::strspn(mask, "01") != length)
    fail(PIDCOMM_ERR_MASK, "axis mask \"", mask, "\" must be ", cube.axes.size(),
         " characters '0' or '1', one per axis of ", cube.to_string());
}

}  // namespace

Grouping Grouping::of(const Hypercube &cube, const char *mask) {
  check_mask(cube, mask);
  Grouping grouping;
  for (std::size_t i = 0; i < cube.axes.size(); ++i) {
    const bool is_selected = mask[i] == '1';
    uint32_t &count = is_selected ? grouping.group_pes : grouping.groups;
    (is_selected ? grouping.selected : grouping.unselected)
        .push_back({cube.axes[i].length, cube.axes[i].stride_pes, count});
    count *= cube.axes[i].length;
  }
  return grouping;
}

uint32_t Grouping::index_of(const std::vector<Digit> &digits, uint32_t pe) {
  uint32_t index = 0;
  for (const Digit &digit : digits)
    index += pe / digit.pe_stride % digit.length * digit.index_stride;
  return index;
}

uint32_t Grouping::pe_of(const std::vector<Digit> &digits, uint32_t index) {
  uint32_t pe = 0;
  for (const Digit &digit : digits)
    pe += index / digit.index_stride % digit.length * digit.pe_stride;
  return pe;
}

namespace {

struct MaskedAxis {
  uint32_t length, stride;
  bool is_selected;
};

/// Returns the axes with more than one index; neighbouring axes that the mask treats alike are one
/// axis.
std::vector<MaskedAxis> merged_axes(const Hypercube &cube, const char *mask) {
  std::vector<MaskedAxis> axes;
  for (std::size_t i = 0; i < cube.axes.size(); ++i) {
    const bool is_selected = mask[i] == '1';
    if (cube.axes[i].length == 1) continue;
    if (!axes.empty() && axes.back().is_selected == is_selected)
      axes.back().length *= cube.axes[i].length;
    else
      axes.push_back({cube.axes[i].length, cube.axes[i].stride_pes, is_selected});
  }
  return axes;
}

}  // namespace

uint32_t Split::member_sections() const {
  uint32_t count = 1;
  for (const EgLoop &loop : members) count *= loop.count;
  return count;
}

Split Split::of(const Hypercube &cube, const char *mask) {
  check_mask(cube, mask);
  Split split;
  bool is_complete = false;
  uint32_t sections_of_set = 1, set_count = 1;
  const auto add_loop = [&](bool is_selected, uint32_t count, uint32_t eg_stride) {
    uint32_t &sections = is_selected ? sections_of_set : set_count;
    if (count > 1)
      (is_selected ? split.members : split.sets).push_back({count, eg_stride, sections});
    sections *= count;
  };
  const auto add_to_section = [&](const MaskedAxis &axis, uint32_t indices) {
    Grouping &section = split.section;
    uint32_t &count = axis.is_selected ? section.group_pes : section.groups;
    (axis.is_selected ? section.selected : section.unselected)
        .push_back({indices, axis.stride, count});
    count *= indices;
  };
  for (const MaskedAxis &axis : merged_axes(cube, mask)) {
    if (is_complete) {
      add_loop(axis.is_selected, axis.length, axis.stride / kLanes);
      continue;
    }
    is_complete = axis.stride * axis.length % kLanes == 0;
    const uint32_t indices = is_complete ? kLanes / std::gcd(kLanes, axis.stride) : axis.length;
    add_to_section(axis, indices);
    if (is_complete)
      add_loop(axis.is_selected, axis.length / indices, axis.stride * indices / kLanes);
  }
  split.section_egs = (split.section_pes() + kLanes - 1) / kLanes;
  if (!split.has_lane_split()) return split;
  for (const Grouping::Digit &digit : split.section.selected)
    split.lane_mask |= (digit.length - 1) * digit.pe_stride;
  split.k = static_cast<uint32_t>(std::popcount(split.lane_mask));
  return split;
}

}  // namespace pidcomm
