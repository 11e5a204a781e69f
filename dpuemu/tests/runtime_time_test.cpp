// The modelled time of PE programs: costs of instructions and calls, the chip's clock and
// perfcounter.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "program_fixture.h"

using namespace fixture;

namespace {

constexpr uint32_t kTurns = 1000;
enum {
  kMultiply,
  kDivide,
  kDivideSigned,
  kDma,
  kMutex,
  kMutexWait,
  kSemaphoreWait,
  kAdd,
  kCopy,
  kMultiplyBytes,
  kMultiplyHalves,
  kMoveInMram,
  kScale,
  kSum,
  kSumOfUnknownLength,
  kSumToAnEnd
};  // as in costs.c

dpuemu_report_t report_of_costs(uint32_t topic, uint32_t left = 0, uint32_t right = 0,
                                const char *program = "costs") {
  pe_machine(1);
  Loaded set(1, program);
  put<uint32_t>(set.set, "topic", topic);
  put<uint32_t>(set.set, "turns", kTurns);
  put<uint32_t>(set.set, "left", left);
  put<uint32_t>(set.set, "right", right);
  launch(set.set);
  return report_of(set.set);
}

}  // namespace

TEST(Costs_OfMultiplicationGrowWithTheBitsOfTheSmallerFactor) {
  const uint64_t least = report_of_costs(kMultiply, 1, 0xFFFFFFFF).instructions;
  for (uint32_t bits = 2; bits <= 32; ++bits) {
    CHECK_EQ(report_of_costs(kMultiply, 0xFFFFFFFF, 1u << (bits - 1)).instructions - least,
             (bits - 1) * uint64_t{kTurns});
    CHECK_EQ(report_of_costs(kMultiply, 1u << (bits - 1), 0xFFFFFFFF).instructions - least,
             (bits - 1) * uint64_t{kTurns});
  }
  CHECK_EQ(report_of_costs(kMultiply, 0, 12345).instructions, least);
}

TEST(Costs_OfProductsIncludeTheMoveOfAFactorThatStaysInItsRegister) {
  const auto per_turn = [](uint32_t topic) {
    return report_of_costs(topic, 1000, 2000).instructions / kTurns;
  };
  CHECK_EQ(per_turn(kScale), per_turn(kMultiply));  // a move instead of a load
}

TEST(Costs_OfLoopsOfUnknownLengthAreThreeInstructionsMorePerIteration) {
  const auto per_element = [](uint32_t topic) {
    return static_cast<double>(report_of_costs(topic, 0, 256).instructions) / kTurns / 256;
  };
  const double known = per_element(kSum);
  CHECK(std::abs(per_element(kSumOfUnknownLength) - known - 3) < 0.05);
  CHECK(std::abs(per_element(kSumToAnEnd) - known) < 1.05);
}

TEST(Costs_OfProductsOfBytesAndHalvesAreOneAndSevenInstructions) {
  const auto per_turn = [](uint32_t topic, uint32_t left, uint32_t right) {
    return report_of_costs(topic, left, right).instructions / kTurns;
  };
  constexpr uint64_t kLoop = 2, kLoads = 2, kStore = 1;
  for (uint32_t value : {1u, 100u}) {
    CHECK_EQ(per_turn(kMultiplyBytes, value, value), kLoop + kLoads + 1 + kStore);
    CHECK_EQ(per_turn(kMultiplyHalves, value, value), kLoop + kLoads + 7 + kStore);
  }
}

TEST(Costs_OfDivisionGrowWithTheBitsOfTheQuotient) {
  for (uint32_t topic : {kDivide, kDivideSigned}) {
    const uint64_t least = report_of_costs(topic, 5, 5).instructions;
    for (uint32_t bits = 2; bits <= 31; ++bits) {
      CHECK_EQ(report_of_costs(topic, 1u << (bits - 1), 1).instructions - least,
               (bits - 1) * uint64_t{kTurns});
      CHECK_EQ(report_of_costs(topic, 1u << (bits - 1), 1u << (bits - 1)).instructions, least);
    }
  }
  CHECK_EQ(report_of_costs(kDivideSigned, 0u - 1024u, 2).instructions,
           report_of_costs(kDivideSigned, 1024, 0u - 2u).instructions);
}

TEST(Costs_OfOperationsOn64BitsAreThoseOfTheSdksCompiler) {
  enum { kLogic, kComplements, kRotation, kRotationBy32, kVariableRotation };  // as in wide_costs.c
  const auto per_turn = [](uint32_t topic) {
    pe_machine(1);
    Loaded set(1, "wide_costs");
    put<uint32_t>(set.set, "topic", topic);
    put<uint32_t>(set.set, "turns", kTurns);
    put<uint32_t>(set.set, "left", 5u);
    launch(set.set);
    return report_of(set.set).instructions / kTurns;
  };
  constexpr uint64_t kLoop = 2, kLoad = 1, kStore = 1;
  CHECK_EQ(per_turn(kLogic), kLoop + 3 * kLoad + 2 + 2 + kStore);
  CHECK_EQ(per_turn(kComplements), kLoop + 3 * kLoad + 2 + 2 + kStore);  // andn
  CHECK_EQ(per_turn(kRotation), kLoop + kLoad + 4 + kStore);
  CHECK_EQ(per_turn(kRotationBy32), kLoop + kLoad + 1 + kStore);
  CHECK_EQ(per_turn(kVariableRotation), kLoop + kLoad + 6 + kStore);
}

TEST(Costs_OfDmaAndMutexesAreOneInstructionEach) {
  const dpuemu_report_t dma = report_of_costs(kDma);
  CHECK(dma.instructions < 4 * kTurns + 200);  // the call and the loop
  // The transfer takes 49.2 cycles, and the tasklet issues an instruction every 11 cycles.
  CHECK(dma.cycles_max > 49.0 * kTurns && dma.cycles_max < (50.0 + 4 * 11) * kTurns + 2200);
  // The loop also adds, loads its bound, jumps, and moves the address of the mutex.
  CHECK(report_of_costs(kMutex).instructions < 7 * kTurns + 200);
}

TEST(Cycles_OfAdditionsAreThoseOfDimmsForAllNumbersOfTasklets) {
  // Cycles per element on DIMMs: PrIM's Arithmetic-Throughput, pull request 7 of
  // CMU-SAFARI/prim-benchmarks.
  for (const auto &[tasklets, measured] :
       {std::pair{1u, 66.08}, {4u, 16.52}, {8u, 8.26}, {11u, 6.02}, {16u, 5.99}, {24u, 5.99}}) {
    const double elements = 256.0 * kTurns * tasklets,
                 cycles = report_of_costs(kAdd, tasklets, 3, "costs_24").cycles_max;
    CHECK(std::abs(cycles / elements / measured - 1) < 0.02);
  }
}

TEST(Cycles_OfTransfersAreLatencyForOneTaskletAndBandwidthForMany) {
  const auto per_transfer = [](uint32_t tasklets, uint32_t bytes) {
    return report_of_costs(kCopy, tasklets, bytes, "costs_24").cycles_max / kTurns / tasklets;
  };
  constexpr double kMostInstructions = 16;  // of the call and the loop
  for (uint32_t bytes : {8u, 256u, 2048u}) {
    const double one = per_transfer(1, bytes), latency = 44.9 + 0.534 * bytes;
    CHECK(one > latency && one < latency + kMostInstructions * 11);
    CHECK(std::abs(per_transfer(16, bytes) / std::max(38.0, 0.5 * bytes) - 1) < 0.02);
  }
}

TEST(Cycles_OfMemcpyInMramAreThoseOfDimms) {
  constexpr double kWords = 2048 / 8 * kTurns;
  const dpuemu_report_t copies = report_of_costs(kMoveInMram);
  CHECK_EQ(static_cast<double>(copies.dma_reads), kWords);
  // 31 MiB take 2,185 ms on DIMMs (s9770652/pim-memcpy).
  const double measured = 2.185 * 350e6 / (31 << 17);
  CHECK(std::abs(copies.cycles_max / kWords / measured - 1) < 0.15);
}

TEST(Costs_OfWaitingForAMutexAreInstructionsButNotOfWaitingForASemaphore) {
  const uint64_t spinning = report_of_costs(kMutexWait).instructions,
                 stopped = report_of_costs(kSemaphoreWait).instructions;
  CHECK(stopped > 2 * kTurns);
  CHECK(spinning > 2 * stopped - 1000);  // tasklet 1 issues as many instructions as tasklet 0
}

TEST(Chip_DecidesTheClockAndNotTheCycles) {
  double cycles[2];
  for (const auto &[chip, clock] :
       {std::pair{DPUEMU_CHIP_V1A, 350000000u}, {DPUEMU_CHIP_V1B, 400000000u}}) {
    pe_machine(1, kLenient, 1, 60, chip);
    Loaded set(1, "counter_v1B");
    launch(set.set);
    CHECK_EQ(number(set.all[0], "clocks"), clock);
    CHECK_EQ(report_of(set.set).cycles_per_second, static_cast<double>(clock));
    cycles[chip - DPUEMU_CHIP_V1A] = report_of(set.set).cycles_max;
  }
  CHECK_EQ(cycles[0], cycles[1]);
}

TEST(Perfcounter_GrowsWithWorkAndDmaAndCountsCyclesOrInstructions) {
  pe_machine(1);
  Loaded set(1, "counter");
  launch(set.set);
  const dpu_set_t dpu = set.all[0];
  std::vector<uint64_t> at(8);
  for (uint32_t i = 0; i < 8; ++i) at[i] = get<uint64_t>(dpu, "readings", 8 * i);
  CHECK_EQ(number(dpu, "clocks"), 350000000u);
  CHECK(at[0] < 1000);
  CHECK(at[1] > at[0] + 100 * 11);  // a tasklet alone issues an instruction every 11 cycles
  CHECK((at[2] - at[1]) > 8 * (at[1] - at[0]) && (at[2] - at[1]) < 12 * (at[1] - at[0]));
  CHECK(at[3] > at[2] + 1000);  // 2048 bytes at half a cycle each, and more
  CHECK(at[4] >= at[3]);
  CHECK(at[5] > 3000 && at[5] < 20000);
  CHECK(at[6] < at[5] + 100);
  CHECK(at[7] < 100);
}

TEST(PerfcounterGetBoth_ReturnsCyclesAndInstructions) {
  pe_machine(1);
  Loaded set(1, "counter");
  const dpu_set_t dpu = set.all[0];
  put<uint32_t>(dpu, "topic", 1);
  launch(set.set);
  uint64_t cycles[5], instructions[5];
  for (uint32_t i = 0; i < 5; ++i) {
    cycles[i] = get<uint64_t>(dpu, "cycles", 8 * i);
    instructions[i] = get<uint64_t>(dpu, "instructions", 8 * i);
  }
  const auto is_near = [](uint64_t value, uint64_t wanted, uint64_t most) {
    return value + most > wanted && value < wanted + most;
  };
  const uint64_t steps = instructions[0];
  CHECK(steps > 3000 && steps < 20000);
  CHECK(is_near(get<uint64_t>(dpu, "readings", 0), cycles[0], 1100));
  CHECK(is_near(instructions[1], steps, 100));      // since the reset
  CHECK(is_near(instructions[2], 2 * steps, 100));  // without the steps after COUNT_DISABLE_BOTH
  CHECK(is_near(instructions[3], 3 * steps, 200) &&
        is_near(get<uint64_t>(dpu, "readings", 8), 3 * steps, 200));
  CHECK(is_near(cycles[3], cycles[2], 1100));  // stopped by COUNT_INSTRUCTIONS
  CHECK(instructions[4] < 100 && cycles[4] < 1100);
  for (uint32_t i = 0; i < 5; ++i) {
    if (i != 3)
      CHECK(is_near(cycles[i], 11 * instructions[i],
                    1100));  // a tasklet alone issues an instruction every 11 cycles
    CHECK(cycles[i] % 16 == 0 && instructions[i] % 16 == 0);
  }
}

TEST(PerfcounterGetBoth_FaultsOnV1a) {
  pe_machine(1, kLenient, 1, 60, DPUEMU_CHIP_V1A);
  Loaded set(1, "counter");
  put<uint32_t>(set.all[0], "topic", 1);
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
  CHECK(fault_of(set.all[0]).find("mode 7, which needs chip v1B") != std::string::npos);
}
