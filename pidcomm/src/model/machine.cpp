#include "model/machine.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/price.h"
#include "rank_access/rank_access.h"

namespace pidcomm {

namespace {

struct Number {
  const char *name;  // section.key
  double value;
};
struct Builtin {
  const char *name;
  std::vector<Number> numbers;
};

// The files of machines/ as rows; cmake/machines.cmake generates them.
const std::vector<Builtin> &builtins() {
  static const std::vector<Builtin> all = {
#include "machines.inc"
  };
  return all;
}

/// Returns the cost "<isa>.<key>_ns" of a line, or null if the name is unknown.
double *find_cost(pidcomm_machine &machine, const std::string &name) {
  const auto in = [&name](pidcomm_line_costs &costs, const std::string &isa) -> double * {
#define PIDCOMM_ROW(key, ...) \
  if (name == isa + "." #key "_ns") return &costs.key##_ns;
    PIDCOMM_LINE_COSTS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    return nullptr;
  };
#define PIDCOMM_ROW(ENUM, code, isa_name, ...) \
  if (double *const cost = in(machine.isa[code], isa_name)) return cost;
  PIDCOMM_ISAS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  return nullptr;
}

/// Returns the constant "section.key" or the cost "isa.<isa>.<key>_ns", or null if the name is
/// unknown.
double *find(pidcomm_machine &machine, const std::string &name) {
#define PIDCOMM_ROW(section, key, ...) \
  if (name == #section "." #key) return &machine.section##_##key;
  PIDCOMM_MACHINE_CONSTANTS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  constexpr const char kIsa[] = "isa.";
  return name.rfind(kIsa, 0) == 0 ? find_cost(machine, name.substr(sizeof kIsa - 1)) : nullptr;
}

pidcomm_machine make_machine(const Builtin &builtin) {
  pidcomm_machine machine = {};
  for (const Number &number : builtin.numbers) {
    double *const place = find(machine, number.name);
    if (place == nullptr)
      fail(PIDCOMM_ERR_INTERNAL, "machine ", builtin.name, ": no constant is called ", number.name);
    *place = number.value;
  }
  check_machine(machine);
  return machine;
}

/// Returns the machines of builtins() in their order; makes them only once.
const std::vector<pidcomm_machine> &builtin_machines() {
  static const std::vector<pidcomm_machine> all = [] {
    std::vector<pidcomm_machine> made;
    for (const Builtin &builtin : builtins()) made.push_back(make_machine(builtin));
    return made;
  }();
  return all;
}

std::mutex in_use_mutex;
std::optional<pidcomm_machine> in_use;
std::atomic<uint64_t> version = 1;

}  // namespace

std::pair<const char *, pidcomm_machine> builtin_machine(std::size_t index) {
  if (index >= builtins().size()) {
    std::string names;
    for (const Builtin &builtin : builtins()) names += std::string(" ") + builtin.name;
    fail(PIDCOMM_ERR_ARGUMENT, "machine number ", index, " does not exist; there are ",
         builtins().size(), ":", names);
  }
  return {builtins()[index].name, builtin_machines()[index]};
}

pidcomm_machine machine_in_use() {
  {
    const std::lock_guard<std::mutex> lock(in_use_mutex);
    if (in_use) return *in_use;
  }
  const char *const builtin = ranks_are_coherent() ? "emulated-host" : "upmem-2560";
  for (std::size_t index = 0; index < builtins().size(); ++index)
    if (std::strcmp(builtins()[index].name, builtin) == 0) return builtin_machines()[index];
  fail(PIDCOMM_ERR_INTERNAL, "there is no machine ", builtin);
}

bool is_machine_set() {
  const std::lock_guard<std::mutex> lock(in_use_mutex);
  return in_use.has_value();
}

uint64_t machine_version() { return version; }

void use_machine(const pidcomm_machine *machine) {
  if (machine != nullptr) check_machine(*machine);
  const std::lock_guard<std::mutex> lock(in_use_mutex);
  if (machine == nullptr)
    in_use.reset();
  else
    in_use = *machine;
  ++version;
}

}  // namespace pidcomm
