// The functions of model.h, and pidcomm_plan_json.
#include "capi/plans.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#include "base/sized.h"
#include "capi/guarded.h"
#include "capi/hypercube.h"
#include "exec/default_options.h"
#include "model/machine.h"
#include "model/price.h"
#include "pidcomm/audit.h"

namespace pidcomm {

namespace {

/// A planner that predicts times. If the program has set a machine, it returns only the technique
/// with the lowest predicted time, because times of this machine say nothing about another.
class PricingPlanner : public Planner {
 public:
  uint64_t version() const override { return machine_version(); }
  std::vector<int> techniques(const Hypercube &cube, const pidcomm_request &request,
                              const Options &options, uint64_t heap_base) const override {
    const std::vector<PricedPlan> plans =
        priced_plans(cube, request, options, heap_base, machine_in_use());
    if (is_machine_set()) return {plans[0].plan.options.technique};
    return rival_techniques(plans);
  }
};

}  // namespace

const Planner &planner() {
  static const PricingPlanner planner;
  return planner;
}

Hypercube cube_of(uint32_t axes, const uint32_t *axis_len) {
  require(axis_len, "axis_len");
  const uint32_t count = axes & ~PIDCOMM_FOREACH_ORDER;
  if (count > kMaxAxes)
    fail(PIDCOMM_ERR_SHAPE, "a hypercube has 1 to ", kMaxAxes, " axes, not ", count);
  return Hypercube::of({axis_len, axis_len + count},
                       count == axes ? PeOrder::chips : PeOrder::foreach);
}

void require_text(const char *text, const char *name, size_t capacity, const size_t *length) {
  require(length, "length");
  if (capacity != 0) require(text, name);
}

void deliver_text(const std::string &own, char *text, size_t capacity, size_t *length) {
  *length = own.size();
  if (capacity == 0) return;
  const std::size_t copied = std::min(own.size(), capacity - 1);
  std::memcpy(text, own.data(), copied);
  text[copied] = '\0';
}

}  // namespace pidcomm

using namespace pidcomm;

int pidcomm_plan_json(uint32_t axes, const uint32_t *axis_len, const pidcomm_request *request,
                      const pidcomm_options *options, int expand, char *json, size_t capacity,
                      size_t *length) {
  return guarded([&] {
    require_text(json, "json", capacity, length);
    const pidcomm_options given = received_options(options);
    const Hypercube cube = cube_of(axes, axis_len);
    const std::string text =
        to_json(plan_on(machine_in_use, cube, received(request, "request"), resolve(&given), 0),
                expand != 0);
    deliver_text(text, json, capacity, length);
  });
}

int pidcomm_machine_builtin(size_t index, const char **name, pidcomm_machine *machine) {
  return guarded([&] {
    require(name, "name");
    check_size(machine, "machine");
    std::tie(*name, *machine) = builtin_machine(index);
  });
}

int pidcomm_predict(uint32_t axes, const uint32_t *axis_len, const pidcomm_request *request,
                    const pidcomm_options *options, const pidcomm_machine *machine,
                    pidcomm_prediction *prediction) {
  return guarded([&] {
    check_size(prediction, "prediction");
    if (machine != nullptr) check_size(machine, "machine");
    const pidcomm_options given = received_options(options);
    const pidcomm_machine on = machine == nullptr ? machine_in_use() : *machine;
    if (machine != nullptr) check_machine(on);
    const Hypercube cube = cube_of(axes, axis_len);
    *prediction = price(
        plan_on([&] { return on; }, cube, received(request, "request"), resolve_for(on, &given), 0),
        on);
  });
}

int pidcomm_use_machine(const pidcomm_machine *machine) {
  return guarded([&] {
    if (machine != nullptr) check_size(machine, "machine");
    use_machine(machine);
  });
}
