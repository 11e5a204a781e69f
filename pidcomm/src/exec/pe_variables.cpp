#include "exec/pe_variables.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/geometry.h"
#include "exec/device.h"
#include "exec/pe_reorder.h"
#include "exec/prepared_transfer.h"

namespace pidcomm {

namespace {

constexpr std::size_t kMostMaskedAxes = 8;  // above, looking for a variable of each mask takes long

struct Variable {
  struct dpu_symbol_t symbol;
  std::vector<uint32_t> values;  // by PE
};

/// The variables that the program declares, with their values.
class Variables {
 public:
  explicit Variables(const Placement &placement) : placement_(placement) {}

  /// value_of(pe): the value at a PE.
  template <class ValueOf>
  void add(const std::string &name, const ValueOf &value_of) {
    const std::optional<struct dpu_symbol_t> symbol = find_symbol(placement_, name.c_str());
    if (!symbol) return;
    if (symbol->size != sizeof(uint32_t) || symbol->address >= kMramAddress)
      fail(PIDCOMM_ERR_ARGUMENT, "variable ", name, " has ", symbol->size, " bytes at address ",
           symbol->address, "; declare it as __host uint32_t, with ", sizeof(uint32_t),
           " bytes in WRAM");
    Variable variable{*symbol, {}};
    for (uint32_t pe = 0; pe < placement_.dpus.size(); ++pe)
      variable.values.push_back(value_of(pe));
    all_.push_back(std::move(variable));
  }

  std::vector<Variable> &all() { return all_; }

 private:
  const Placement &placement_;
  std::vector<Variable> all_;
};

}  // namespace

void fill_variables(struct dpu_set_t set, const Placement &placement, const Hypercube &cube,
                    const std::vector<std::string> &axis_names) {
  if (std::any_of(placement.dpus.begin(), placement.dpus.end(), has_reorder_program))
    fail(PIDCOMM_ERR_DEVICE,
         "a collective has replaced the program of these PEs by its program that reorders blocks: "
         "load yours again before you fill its variables");
  Variables variables(placement);
  variables.add("pidcomm_pe", [](uint32_t pe) { return pe; });
  const auto axes = static_cast<uint32_t>(cube.axes.size());
  for (uint32_t axis = 0; axis < axes; ++axis) {
    variables.add("pidcomm_coord_" + axis_names[axis],
                  [&](uint32_t pe) { return cube.coordinate(pe, axis); });
    variables.add("pidcomm_length_" + axis_names[axis],
                  [&](uint32_t) { return cube.axes[axis].length; });
  }
  for (uint32_t bits = 0; axes <= kMostMaskedAxes && bits < 1u << axes; ++bits) {
    std::string mask;
    for (uint32_t axis = 0; axis < axes; ++axis) mask += (bits >> axis & 1) != 0 ? '1' : '0';
    const Grouping grouping = Grouping::of(cube, mask.c_str());
    variables.add("pidcomm_group_" + mask, [&](uint32_t pe) { return grouping.group_of(pe); });
    variables.add("pidcomm_member_" + mask, [&](uint32_t pe) { return grouping.member_of(pe); });
  }
  for (Variable &variable : variables.all())
    transfer_rows(DPU_XFER_TO_DPU, set, placement, variable.symbol, 0, sizeof(uint32_t),
                  [&](uint32_t pe) { return &variable.values[pe]; });
}

}  // namespace pidcomm
