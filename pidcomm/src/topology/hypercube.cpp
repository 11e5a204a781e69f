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

constexpr uint32_t kRankPes = kLanes * kBanks;

/// A digit of a PE number in PeOrder::foreach: the bank, the chip, or the rank. One step of the
/// digit adds `begin` to the PE number, up to `end`, and `place_stride` to the place.
struct PeDigit {
  uint32_t begin, end, place_stride;
};
constexpr PeDigit kForeachDigits[] = {
    {1, kBanks, kLanes}, {kBanks, kRankPes, 1}, {kRankPes, UINT32_MAX, kRankPes}};

/// Whether an axis may end at this PE number in PeOrder::foreach.
bool may_end_axis(uint32_t pes) {
  return kBanks % pes == 0 || (pes % kBanks == 0 && kRankPes % pes == 0) || pes % kRankPes == 0;
}

void check_foreach(const Hypercube &cube) {
  for (const Axis &axis : cube.axes) {
    const uint32_t end = axis.stride_pes * axis.length;
    if (!may_end_axis(end))
      fail(PIDCOMM_ERR_SHAPE, "shape ", cube.to_string(),
           ": the product of the lengths up to each axis must be 1, 2, 4, 8, 16, 32 or a multiple "
           "of ",
           kRankPes, ", not ", end);
  }
  if (cube.pes % kRankPes != 0)
    fail(PIDCOMM_ERR_SHAPE, "shape ", cube.to_string(), " has ", cube.pes,
         " PEs, which must be a multiple of ", kRankPes);
}

}  // namespace

Hypercube Hypercube::of(const std::vector<uint32_t> &lengths, PeOrder order) {
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
  cube.order = order;
  if (order == PeOrder::foreach) check_foreach(cube);
  return cube;
}

uint32_t Hypercube::place_of(uint32_t pe) const {
  if (order == PeOrder::chips) return pe;
  uint32_t place = 0;
  for (const PeDigit &digit : kForeachDigits)
    place += pe % digit.end / digit.begin * digit.place_stride;
  return place;
}

bool Hypercube::has_lane_split() const {
  if (order == PeOrder::foreach) return true;
  const auto fills_egs = [](const Axis &axis) {
    return axis.stride_pes * axis.length % kLanes == 0;
  };
  const auto axis = std::find_if(axes.begin(), axes.end(), fills_egs);
  return axis != axes.end() && kLanes % axis->stride_pes == 0;
}

std::string Hypercube::to_string() const {
  std::vector<uint32_t> lengths;
  for (const Axis &axis : axes) lengths.push_back(axis.length);
  return shape_text(lengths) + (order == PeOrder::foreach ? " (order of DPU_FOREACH)" : "");
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
  uint32_t length, place_stride;
  bool is_selected;
  uint32_t index_stride;  // of member indices if is_selected, else of group indices
};

/// Returns the axis, or its parts that count banks, chips and ranks.
std::vector<MaskedAxis> parts_of(const MaskedAxis &axis, uint32_t stride_pes, PeOrder order) {
  if (order == PeOrder::chips) return {axis};
  std::vector<MaskedAxis> parts;
  for (const PeDigit &digit : kForeachDigits) {
    const uint32_t begin = std::max(stride_pes, digit.begin),
                   end = std::min(stride_pes * axis.length, digit.end);
    if (begin < end)
      parts.push_back({end / begin, begin / digit.begin * digit.place_stride, axis.is_selected,
                       axis.index_stride * (begin / stride_pes)});
  }
  return parts;
}

/// Returns the axes with more than one index in the order of places; neighbouring axes that the
/// mask treats alike are one axis.
std::vector<MaskedAxis> merged_axes(const Hypercube &cube, const char *mask) {
  std::vector<MaskedAxis> axes, merged;
  uint32_t members = 1, groups = 1;
  for (std::size_t i = 0; i < cube.axes.size(); ++i) {
    const auto [length, stride_pes] = cube.axes[i];
    const bool is_selected = mask[i] == '1';
    uint32_t &indices = is_selected ? members : groups;
    for (const MaskedAxis &part :
         parts_of({length, stride_pes, is_selected, indices}, stride_pes, cube.order))
      if (part.length > 1) axes.push_back(part);
    indices *= length;
  }
  std::stable_sort(axes.begin(), axes.end(), [](const MaskedAxis &a, const MaskedAxis &b) {
    return a.place_stride < b.place_stride;
  });
  for (const MaskedAxis &axis : axes) {
    if (!merged.empty() && merged.back().is_selected == axis.is_selected &&
        merged.back().index_stride * merged.back().length == axis.index_stride)
      merged.back().length *= axis.length;
    else
      merged.push_back(axis);
  }
  return merged;
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
  const auto add_loop = [&](const MaskedAxis &axis) {
    if (axis.length > 1)
      (axis.is_selected ? split.members : split.sets)
          .push_back({axis.length, axis.place_stride / kLanes, axis.index_stride});
  };
  const auto add_to_section = [&](const MaskedAxis &axis, uint32_t indices) {
    Grouping &section = split.section;
    uint32_t &count = axis.is_selected ? section.group_pes : section.groups;
    if (count == 1)
      (axis.is_selected ? split.member_stride : split.group_stride) = axis.index_stride;
    (axis.is_selected ? section.selected : section.unselected)
        .push_back({indices, axis.place_stride, count});
    count *= indices;
  };
  for (const MaskedAxis &axis : merged_axes(cube, mask)) {
    if (is_complete) {
      add_loop(axis);
      continue;
    }
    is_complete = axis.place_stride * axis.length % kLanes == 0;
    const uint32_t indices =
        is_complete ? kLanes / std::gcd(kLanes, axis.place_stride) : axis.length;
    add_to_section(axis, indices);
    if (is_complete)
      add_loop({axis.length / indices, axis.place_stride * indices, axis.is_selected,
                axis.index_stride * indices});
  }
  split.section_egs = (split.section_pes() + kLanes - 1) / kLanes;
  if (!split.has_lane_split()) return split;
  for (const Grouping::Digit &digit : split.section.selected)
    split.lane_mask |= (digit.length - 1) * digit.pe_stride;
  split.k = static_cast<uint32_t>(std::popcount(split.lane_mask));
  return split;
}

}  // namespace pidcomm
