// The model's C interface: its errors, and the choice of auto on the machine in use.

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "harness.h"
#include "pidcomm/model.h"

namespace {

constexpr uint32_t kAxes[] = {8, 8};

pidcomm_request request_of(int collective) {
  pidcomm_request request{};
  request.collective = collective;
  request.mask = "10";
  request.bytes = request.dst = 1 << 16;
  request.type = PIDCOMM_INT32;
  request.op = PIDCOMM_SUM;
  return request;
}

std::vector<pidcomm_machine> builtin_machines() {
  std::vector<pidcomm_machine> machines;
  const char *name = nullptr;
  pidcomm_machine machine;
  while (pidcomm_machine_builtin(machines.size(), &name, &machine) == PIDCOMM_OK)
    machines.push_back(machine);
  return machines;
}

pidcomm_prediction predict(const pidcomm_machine *machine,
                           const pidcomm_options *options = nullptr) {
  pidcomm_prediction prediction{};
  const pidcomm_request request = request_of(PIDCOMM_ALLTOALL);
  CHECK_EQ(pidcomm_predict(2, kAxes, &request, options, machine, &prediction), PIDCOMM_OK);
  return prediction;
}

void check_error(int status, int wanted, const std::string &words) {
  CHECK_EQ(status, wanted);
  const std::string sentence = pidcomm_last_error();
  if (sentence.find(words) == std::string::npos)
    harness::fail(__FILE__, __LINE__, "\"" + words + "\" is missing in \"" + sentence + "\"");
}

/// A machine on which either SDK transfers or line kernels take almost no time.
pidcomm_machine favouring(int technique, pidcomm_machine machine) {
  const bool is_sdk = technique == PIDCOMM_TECHNIQUE_CONVENTIONAL;
  machine.sdk_from_gb_s = machine.sdk_to_gb_s = machine.sdk_thread_from_gb_s =
      machine.sdk_thread_to_gb_s = is_sdk ? 1e3 : 1e-3;
  machine.work_copy_gb_s = is_sdk ? 1e3 : 1e-3;
  for (pidcomm_line_costs &costs : machine.isa) {
#define PIDCOMM_ROW(key, ...) costs.key##_ns *= is_sdk ? 1e4 : 1;
    PIDCOMM_LINE_COSTS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  }
  return machine;
}

}  // namespace

TEST(BuiltinMachines_EndWithAnError) {
  const std::vector<pidcomm_machine> machines = builtin_machines();
  CHECK(machines.size() >= 3);
  const char *name = nullptr;
  pidcomm_machine machine;
  for (std::size_t index : {machines.size(), SIZE_MAX})
    check_error(pidcomm_machine_builtin(index, &name, &machine), PIDCOMM_ERR_ARGUMENT,
                "machine number " + std::to_string(index));
  check_error(pidcomm_machine_builtin(0, nullptr, &machine), PIDCOMM_ERR_ARGUMENT, "name");
  check_error(pidcomm_machine_builtin(0, &name, nullptr), PIDCOMM_ERR_ARGUMENT, "machine");
}

TEST(Predict_RefusesMissingArguments) {
  const pidcomm_request request = request_of(PIDCOMM_ALLTOALL);
  pidcomm_prediction prediction{};
  check_error(pidcomm_predict(2, kAxes, nullptr, nullptr, nullptr, &prediction),
              PIDCOMM_ERR_ARGUMENT, "request");
  check_error(pidcomm_predict(2, kAxes, &request, nullptr, nullptr, nullptr), PIDCOMM_ERR_ARGUMENT,
              "prediction");
  CHECK(pidcomm_predict(2, nullptr, &request, nullptr, nullptr, &prediction) != PIDCOMM_OK);
  CHECK_EQ(pidcomm_predict(0, kAxes, &request, nullptr, nullptr, &prediction), PIDCOMM_ERR_SHAPE);
  CHECK_EQ(prediction.seconds_total, 0.0);
}

TEST(ConstantThatIsNotANumber_IsRefusedByName) {
  const double bad[] = {-1, std::nan(""), std::numeric_limits<double>::infinity()};
  const pidcomm_request request = request_of(PIDCOMM_ALLTOALL);
  for (const pidcomm_machine &machine : builtin_machines())
    for (double value : bad) {
      pidcomm_prediction prediction{};
      const auto check = [&](const pidcomm_machine &broken, const std::string &name) {
        check_error(pidcomm_predict(2, kAxes, &request, nullptr, &broken, &prediction),
                    PIDCOMM_ERR_ARGUMENT, name);
        check_error(pidcomm_use_machine(&broken), PIDCOMM_ERR_ARGUMENT, name);
      };
      pidcomm_machine broken;
#define PIDCOMM_ROW(section, key, ...)                        \
  broken = machine, broken.section##_##key = value;           \
  check(broken, "machine constant " #section "." #key " is"); \
  CHECK_EQ(prediction.seconds_total, 0.0);
      PIDCOMM_MACHINE_CONSTANTS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(key, ...)                                      \
  broken = machine, broken.isa[PIDCOMM_ISA_AVX2].key##_ns = value; \
  check(broken, "isa.avx2");
      PIDCOMM_LINE_COSTS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    }
}

TEST(ZeroRatesAndCountsAndMissingInstructionSets_AreRefused) {
  const pidcomm_machine machine = builtin_machines()[0];
  const std::vector<std::pair<double pidcomm_machine::*, std::string>> above_zero = {
      {&pidcomm_machine::bus_read_gb_s, "bus.read_gb_s"},
      {&pidcomm_machine::host_overlap, "host.overlap"},
      {&pidcomm_machine::pe_clock_mhz, "pe.clock_mhz"},
      {&pidcomm_machine::host_threads, "host.threads"},
      {&pidcomm_machine::ranks_per_channel, "ranks.per_channel"},
      {&pidcomm_machine::ranks_channels, "ranks.channels"},
      {&pidcomm_machine::ranks_alternating, "ranks.alternating"},
      {&pidcomm_machine::sdk_host_gb_s, "sdk.host_gb_s"},
      {&pidcomm_machine::work_combine_gb_s, "work.combine_gb_s"}};
  for (const auto &[constant, name] : above_zero) {
    pidcomm_machine broken = machine;
    broken.*constant = 0;
    check_error(pidcomm_use_machine(&broken), PIDCOMM_ERR_ARGUMENT, name + " is 0; it must be ");
  }
  pidcomm_machine broken = machine;
  std::memset(broken.isa, 0, sizeof broken.isa);
  check_error(pidcomm_use_machine(&broken), PIDCOMM_ERR_ARGUMENT, "no instruction set");
}

TEST(Predict_AcceptsOnlyInstructionSetsOfTheMachine) {
  pidcomm_machine machine = builtin_machines()[0];
  std::memset(&machine.isa[PIDCOMM_ISA_AVX2], 0, sizeof machine.isa[0]);
  const pidcomm_request request = request_of(PIDCOMM_ALLTOALL);
  pidcomm_options options{};
  pidcomm_prediction prediction{};
  options.isa = PIDCOMM_ISA_AVX2;
  check_error(pidcomm_predict(2, kAxes, &request, &options, &machine, &prediction),
              PIDCOMM_ERR_OPTION, "avx2");
}

TEST(Auto_ChoosesTheFastestTechniqueOfTheMachineInUse) {
  pidcomm_options options{};
  options.technique = PIDCOMM_TECHNIQUE_AUTO;
  const pidcomm_prediction before = predict(nullptr, &options);
  for (int technique : {PIDCOMM_TECHNIQUE_CONVENTIONAL, PIDCOMM_TECHNIQUE_TILE}) {
    const pidcomm_machine machine = favouring(technique, builtin_machines()[0]);
    CHECK_EQ(pidcomm_use_machine(&machine), PIDCOMM_OK);
    CHECK_EQ(predict(nullptr, &options).technique, technique);
    CHECK_EQ(predict(&machine, &options).technique, technique);
    CHECK_EQ(predict(nullptr, &options).seconds_total, predict(&machine, &options).seconds_total);
  }
  CHECK_EQ(pidcomm_use_machine(nullptr), PIDCOMM_OK);
  const pidcomm_prediction after = predict(nullptr, &options);
  CHECK_EQ(after.technique, before.technique);
  CHECK_EQ(after.seconds_total, before.seconds_total);
}
