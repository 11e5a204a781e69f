// Functions that do not need a device: the rows of tables.h and model.h, plans and predictions.

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pidcomm/hosts.h>
#include <pidcomm/model.h>
#include <pidcomm/pidcomm.h>
#include <pidcomm/tuning.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "bindings.h"
#include "cube.h"
#include "gil.h"
#include "status.h"
#include "values.h"

using namespace nanobind::literals;

namespace core {

namespace {

nb::dict tables() {
  nb::list collectives, types, ops, techniques, isas, coherences, copy_orders, statuses;
#define PIDCOMM_ROW(ENUM, code, name, takes_op, pes_before, pes_after, blocks_before,            \
                    blocks_after, steps, ...)                                                    \
  collectives.append(nb::make_tuple(#name, code, takes_op != 0, pes_before != 0, pes_after != 0, \
                                    blocks_before != 0, blocks_after != 0, steps));
  PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name, ctype, kind) \
  types.append(                                    \
      nb::make_tuple(#name, code, sizeof(ctype), std::string_view(#kind) == "floating", #ctype));
  PIDCOMM_TYPES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name, kind) ops.append(nb::make_tuple(name, code, #kind));
  PIDCOMM_OPS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name, path, steps, collectives, needs_lane_split, is_for_auto,   \
                    ...)                                                                         \
  techniques.append(nb::make_tuple(name, code, #path, steps, collectives, needs_lane_split != 0, \
                                   is_for_auto != 0));
  PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name, level) \
  isas.append(nb::make_tuple(name, code, level, pidcomm_isa_available(code) != 0));
  PIDCOMM_ISAS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name) coherences.append(nb::make_tuple(name, code));
  PIDCOMM_COHERENCES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name, ...) copy_orders.append(nb::make_tuple(name, code));
  PIDCOMM_COPY_ORDERS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, text) statuses.append(nb::make_tuple(#ENUM, code, text));
  PIDCOMM_STATUSES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  nb::list overlaps;
#define PIDCOMM_ROW(ENUM, code, name) overlaps.append(nb::make_tuple(name, code));
  PIDCOMM_OVERLAPS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  nb::list transports;
#define PIDCOMM_ROW(ENUM, code, name) transports.append(nb::make_tuple(name, code));
  PIDCOMM_TRANSPORTS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  nb::dict dict;
  dict["overlaps"] = overlaps;
  dict["transports"] = transports;
  dict["collectives"] = collectives;
  dict["types"] = types;
  dict["ops"] = ops;
  dict["techniques"] = techniques;
  dict["isas"] = isas;
  dict["coherences"] = coherences;
  dict["copy_orders"] = copy_orders;
  dict["statuses"] = statuses;
  return dict;
}

std::string plan_json(const std::vector<uint32_t> &lengths, uint32_t order, const Request &request,
                      OptionCodes codes, bool expand, const std::optional<Bytes> &messages) {
  const pidcomm_request value = Cube::value_of(request, messages, std::nullopt);
  const pidcomm_options options = options_of(codes);
  return text_of([&](char *json, std::size_t capacity, std::size_t *length) {
    return pidcomm_plan_json(static_cast<uint32_t>(lengths.size()) | order, lengths.data(), &value,
                             &options, expand ? 1 : 0, json, capacity, length);
  });
}

/// The rows of model.h, in the order of the doubles in pidcomm_machine and pidcomm_prediction.
nb::dict model_tables() {
  nb::list constants, line_costs, phases;
#define PIDCOMM_ROW(section, key, unit, meaning) \
  constants.append(nb::make_tuple(#section, #key, unit, meaning));
  PIDCOMM_MACHINE_CONSTANTS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(key, meaning) line_costs.append(nb::make_tuple(#key "_ns", meaning));
  PIDCOMM_LINE_COSTS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(name, meaning) phases.append(nb::make_tuple(#name, meaning));
  PIDCOMM_MODEL_PHASES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  nb::dict dict;
  dict["constants"] = constants;
  dict["line_costs"] = line_costs;
  dict["phases"] = phases;
  return dict;
}

// A pidcomm_machine has its size as the first field; all other fields are doubles.
constexpr std::size_t kMachineNumbers =
    (sizeof(pidcomm_machine) - sizeof(std::size_t)) / sizeof(double);
char *numbers_of(pidcomm_machine &machine) {
  return reinterpret_cast<char *>(&machine) + sizeof machine.size;
}

pidcomm_machine machine_of(const std::vector<double> &numbers) {
  pidcomm_machine machine{};
  if (numbers.size() != kMachineNumbers)
    throw nb::value_error("a machine has another number of constants");
  std::memcpy(numbers_of(machine), numbers.data(), kMachineNumbers * sizeof(double));
  return machine;
}

nb::dict builtin_machines() {
  nb::dict dict;
  const char *name;
  pidcomm_machine machine{};
  for (std::size_t index = 0; pidcomm_machine_builtin(index, &name, &machine) == PIDCOMM_OK;
       ++index) {
    std::vector<double> numbers(kMachineNumbers);
    std::memcpy(numbers.data(), numbers_of(machine), kMachineNumbers * sizeof(double));
    dict[name] = numbers;
  }
  return dict;
}

void use_machine(const std::optional<std::vector<double>> &numbers) {
  const std::optional<pidcomm_machine> machine =
      numbers ? std::optional(machine_of(*numbers)) : std::nullopt;
  check(pidcomm_use_machine(machine ? &*machine : nullptr));
}

/// For each tuned pass, its values and the range of its step_words.
nb::dict tuning() {
  nb::dict passes;
  const char *pass;
  pidcomm_tuning values{};
  uint32_t least, most;
  for (std::size_t index = 0;
       pidcomm_tuned_pass(index, &pass, &values, &least, &most) == PIDCOMM_OK; ++index) {
    nb::dict dict;
#define PIDCOMM_ROW(key, ...) dict[#key] = values.key;
    PIDCOMM_TUNING(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    passes[pass] = nb::make_tuple(dict, least, most);
  }
  return passes;
}

void tune(const std::string &pass, const std::map<std::string, uint32_t> &given) {
  pidcomm_tuning values{};
#define PIDCOMM_ROW(key, ...) values.key = given.at(#key);
  PIDCOMM_TUNING(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  check(pidcomm_tune(pass.c_str(), &values));
}

/// Technique, instruction set, threads and coherence; then the seconds of the call (modelled, least
/// and most) and the seconds of each phase.
using Predicted = std::tuple<std::string, std::string, int, std::string,
                             std::tuple<double, double, double>, std::vector<double>>;

Predicted predict(const std::vector<uint32_t> &lengths, const Request &request, OptionCodes codes,
                  const std::vector<double> &numbers) {
  const pidcomm_request value = request.value();
  const pidcomm_options options = options_of(codes);
  const pidcomm_machine machine = machine_of(numbers);
  pidcomm_prediction it{};
  check(pidcomm_predict(static_cast<uint32_t>(lengths.size()), lengths.data(), &value, &options,
                        &machine, &it));
  std::vector<double> seconds(sizeof it.seconds / sizeof(double));
  std::memcpy(seconds.data(), &it.seconds, sizeof it.seconds);
  return Predicted(pidcomm_name(PIDCOMM_TABLE_TECHNIQUE, it.technique),
                   pidcomm_name(PIDCOMM_TABLE_ISA, it.isa), it.threads,
                   pidcomm_name(PIDCOMM_TABLE_COHERENCE, it.coherence),
                   std::tuple(it.seconds_total, it.seconds_low, it.seconds_high), seconds);
}

std::string hosts_plan_json(const std::vector<uint32_t> &lengths, uint32_t order, uint32_t host,
                            const Request &request, uint32_t root, const OptionCodes &codes,
                            const HostsSettings &settings,
                            const std::optional<std::vector<double>> &numbers) {
  const pidcomm_request value = request.value();
  const pidcomm_options options = options_of(codes);
  const pidcomm_hosts_settings values = settings_of(settings);
  const std::optional<pidcomm_machine> machine =
      numbers ? std::optional(machine_of(*numbers)) : std::nullopt;
  return text_of([&](char *json, std::size_t capacity, std::size_t *length) {
    return pidcomm_hosts_plan_json(static_cast<uint32_t>(lengths.size()) | order, lengths.data(),
                                   host, &value, root, &options, &values,
                                   machine ? &*machine : nullptr, json, capacity, length);
  });
}

}  // namespace

void bind_tables(nb::module_ &m) {
  m.attr("FOREACH_ORDER") = PIDCOMM_FOREACH_ORDER;
  m.def("version", [] { return std::string(pidcomm_version()); });
  m.def("default_threads", [] {
    int is_ignored = 0;
    const int threads = pidcomm_default_threads(&is_ignored);
    return std::tuple(threads, is_ignored != 0);
  });
  m.def("axis_names", [] { return std::vector<std::string>{PIDCOMM_AXIS_NAMES}; });
  m.def("tables", tables);
  m.def("plan_json", plan_json, "axis_len"_a, "order"_a, "request"_a, "options"_a, "expand"_a,
        "messages"_a.noconvert().none());
  m.def("hosts_plan_json", hosts_plan_json, "axis_len"_a, "order"_a, "host"_a, "request"_a,
        "root"_a, "options"_a, "settings"_a, "numbers"_a.none());
  m.def("model_tables", model_tables);
  m.def("builtin_machines", builtin_machines);
  m.def("tuning", tuning);
  m.def("tune", tune, "pass_"_a, "values"_a);
  m.def("tuning_source", [] { return std::string(pidcomm_tuning_source()); });
  m.def("tuning_path", [] { return std::string(pidcomm_tuning_path()); });
  m.def("tuning_cpu", [] { return std::string(pidcomm_tuning_cpu()); });
  m.def("use_machine", use_machine, "numbers"_a.none());
  m.def("predict", predict, "axis_len"_a, "request"_a, "options"_a, "numbers"_a);
}

}  // namespace core
