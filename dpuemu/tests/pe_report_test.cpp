// Reports of launches: deterministic; counters are exact, modelled values are plausible.
#include <cmath>

#include "program_fixture.h"

using namespace fixture;

TEST(Determinism_AllLaunchesAndNumbersOfThreadsReturnTheSameReport) {
  std::set<std::string> reports;
  std::set<uint64_t> cycles;
  for (uint32_t threads : {1u, 2u, 5u}) {
    pe_machine(2, kLenient, threads);
    Loaded set(128, "increment");
    std::vector<uint8_t> zeros(10000);
    for (uint32_t round = 0; round < 2; ++round) {
      load(set.set, "increment");
      put<uint32_t>(set.set, "bytes", 10000);
      CHECK_OK(dpu_copy_to(set.set, kHeap, 0, zeros.data(), zeros.size()));
      launch(set.set);
      reports.insert(modelled(report_of(set.set)));
      cycles.insert(get<uint64_t>(set.all[0], "cycles"));
      cycles.insert(get<uint64_t>(set.all[127], "cycles"));
    }
  }
  CHECK_EQ(reports.size(), 1u);
  CHECK_EQ(cycles.size(), 1u);
  CHECK(*cycles.begin() > 10000);
}

TEST(Determinism_HoldsForTaskletsThatContendForLocks) {
  std::set<std::string> reports;
  for (uint32_t threads : {1u, 2u}) {
    pe_machine(1, kLenient, threads);
    Loaded set(64, "synchronisation");
    for (uint32_t round = 0; round < 2; ++round) {
      load(set.set, "synchronisation");
      put<uint32_t>(set.set, "topic", 2);
      launch(set.set);
      reports.insert(modelled(report_of(set.set)) + " " +
                     std::to_string(number(set.all[63], "lost_without_lock")));
    }
  }
  CHECK_EQ(reports.size(), 1u);
}

TEST(Report_CountsExactlyAndIsTheSumOverPes) {
  pe_machine(1);
  Loaded set(64, "increment");
  std::vector<uint8_t> zeros(5000);
  put<uint32_t>(set.set, "bytes", 5000);
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, zeros.data(), zeros.size()));
  launch(set.set);
  const dpuemu_report_t all = report_of(set.set), one = report_of(set.all[30]);
  CHECK_EQ(one.pes, 1u);
  CHECK_EQ(one.dma_reads, 20u);  // pieces of 256 bytes
  CHECK_EQ(one.dma_writes, 20u);
  CHECK_EQ(one.dma_read_bytes, 5000u);
  CHECK_EQ(one.dma_write_bytes, 5000u);
  CHECK_EQ(all.pes, 64u);
  CHECK_EQ(all.dma_reads, 64 * 20u);
  CHECK_EQ(all.dma_read_bytes, 64 * 5000u);
  CHECK_EQ(all.instructions, 64 * one.instructions);
  CHECK_EQ(all.cycles_max, one.cycles_max);
  CHECK(std::abs(all.cycles_sum / (64 * one.cycles_sum) - 1) < 1e-9);  // summed in another order
  CHECK(one.instructions > 1250 * 3 && one.instructions < 1250 * 30);
  CHECK(one.cycles_max >= static_cast<double>(one.instructions));
  CHECK(all.host_seconds > 0);
}

TEST(Report_OfMoreWorkHasMoreInstructionsAndCycles) {
  pe_machine(1);
  Loaded set(1, "increment");
  std::vector<uint8_t> zeros(40000);
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, zeros.data(), zeros.size()));
  put<uint32_t>(set.set, "bytes", 4000);
  launch(set.set);
  const dpuemu_report_t small = report_of(set.set);
  put<uint32_t>(set.set, "bytes", 40000);
  launch(set.set);
  const dpuemu_report_t large = report_of(set.set);
  CHECK(large.instructions > 5 * small.instructions);
  CHECK(large.cycles_max > 3 * small.cycles_max);
  // More tasklets fill the pipeline better: 5 take longer than 16 for the same work.
  load(set.set, "increment_5");
  put<uint32_t>(set.set, "bytes", 40000);
  launch(set.set);
  CHECK(report_of(set.set).cycles_max > 1.5 * large.cycles_max);
}
