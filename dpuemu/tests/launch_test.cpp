// Launches: the PEs that run, the calls that the host may make meanwhile, and the order of
// asynchronous work.
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "program_fixture.h"

using namespace fixture;

namespace {

/// A set whose PEs run from the constructor until open() or the destructor.
class Running {
 public:
  explicit Running(dpu_set_t set) : set_(set) {
    put<uint32_t>(set_, "gate", 0);
    put<uint32_t>(set_, "started", 0);
    CHECK_OK(dpu_launch(set_, DPU_ASYNCHRONOUS));
  }
  ~Running() {
    if (!is_open_) open();
    dpu_sync(set_);
  }
  Running(const Running &) = delete;
  Running &operator=(const Running &) = delete;
  /// Lets the PEs end.
  dpu_error_t open() {
    const uint32_t one = 1;
    is_open_ = true;
    return dpu_broadcast_to(set_, "gate", 0, &one, 4, DPU_XFER_PARALLEL);
  }
  /// Waits until this PE runs.
  static void wait_for(dpu_set_t dpu) {
    for (int i = 0; i < 5000; ++i) {
      if (read_beside(dpu, "started") != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(!"the PE does not start");
  }
  static uint32_t read_beside(dpu_set_t dpu, const char *symbol) {
    uint32_t value = 0;
    CHECK_OK(dpu_prepare_xfer(dpu, &value));
    CHECK_OK(dpu_push_xfer(dpu, DPU_XFER_FROM_DPU, symbol, 0, 4, DPU_XFER_PARALLEL));
    return value;
  }

 private:
  dpu_set_t set_;
  bool is_open_ = false;
};

}  // namespace

TEST(Launch_WithoutAProgramOnEveryPeRunsNone) {
  pe_machine(2);
  Set set(128);
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
  CHECK_STATUS(dpu_launch(set.set, DPU_ASYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
  const dpu_set_t rank = dpu_set_from_rank(&set.set.list.ranks[0]);
  load(rank, "other");
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
  CHECK_EQ(number(set.dpus()[0], "output"), 0u);
  CHECK_STATUS(dpu_launch(rank, static_cast<dpu_launch_policy_t>(7)),
               DPU_ERR_INVALID_LAUNCH_POLICY);
  dpuemu_report_t report;
  CHECK_STATUS(dpuemu_get_report(set.set, &report), DPU_ERR_NO_PROGRAM_LOADED);
  launch(rank);
  CHECK_EQ(number(set.dpus()[63], "output"), 18u);
  CHECK_EQ(report_of(rank).pes, 64u);
}

TEST(Launch_OfOneDpuDoesNotChangeTheOthers) {
  pe_machine(1);
  Loaded set(64, "other");
  launch(set.all[20]);
  for (size_t i = 0; i < set.all.size(); ++i)
    CHECK_EQ(number(set.all[i], "output"), i == 20 ? 18u : 0u);
  CHECK_EQ(report_of(set.set).pes, 1u);
  CHECK_EQ(report_of(set.all[20]).pes, 1u);
}

TEST(Launch_SkipsARankWithoutEnabledDpus) {
  std::vector<uint32_t> absent;
  for (uint32_t chip = 0; chip < 8; ++chip)
    for (uint32_t bank = 0; bank < 8; ++bank) absent.push_back(place(1, chip, bank));
  dpuemu_machine_t wanted = {};
  wanted.ranks = 3;
  wanted.threads = 2;
  CHECK_OK(dpuemu_configure(&wanted, absent.data(), static_cast<uint32_t>(absent.size())));
  dpu_set_t set;
  CHECK_OK(dpu_alloc_ranks(3, nullptr, &set));
  load(set, "other");
  launch(set);
  CHECK_OK(dpu_launch(set, DPU_ASYNCHRONOUS));
  CHECK_OK(dpu_sync(set));
  CHECK_EQ(report_of(set).pes, 128u);
  CHECK_OK(dpu_free(set));
}

TEST(Launch_OfOneRankDoesNotChangeTheOther) {
  pe_machine(2);
  Loaded set(128, "other");
  launch(dpu_set_from_rank(&set.set.list.ranks[1]));
  for (size_t i = 0; i < set.all.size(); ++i)
    CHECK_EQ(number(set.all[i], "output"), i >= 64 ? 18u : 0u);
}

TEST(Launch_RunsEveryPeOfManyRanksOnItsOwnMram) {
  pe_machine(2);
  Loaded set(128, "increment");
  std::vector<std::vector<uint32_t>> sent(set.all.size(), std::vector<uint32_t>(3000));
  for (uint32_t i = 0; i < sent.size(); ++i)
    for (uint32_t j = 0; j < sent[i].size(); ++j) sent[i][j] = i * 100000 + j;
  for (uint32_t i = 0; i < sent.size(); ++i) CHECK_OK(dpu_prepare_xfer(set.all[i], sent[i].data()));
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_TO_DPU, kHeap, 0, 12000, DPU_XFER_DEFAULT));
  put<uint32_t>(set.set, "bytes", 12000);
  put<uint32_t>(set.set, "amount", 9);
  launch(set.set);
  for (uint32_t i = 0; i < sent.size(); ++i) {
    std::vector<uint32_t> got(3000);
    CHECK_OK(dpu_copy_from(set.all[i], kHeap, 0, got.data(), 12000));
    uint32_t sum = 0;
    for (uint32_t j = 0; j < got.size(); ++j) {
      CHECK_EQ(got[j], sent[i][j] + 9);
      sum += got[j];
    }
    CHECK_EQ(number(set.all[i], "sum"), sum);
  }
}

TEST(WhilePesRun_LaunchesTransfersLoadsAndLogsAreRefused) {
  pe_machine(1);
  Loaded set(2, "gate");
  uint64_t word = 0;
  Running run(set.set);
  Running::wait_for(set.all[0]);
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_DPU_ALREADY_RUNNING);
  CHECK_STATUS(dpu_launch(set.all[0], DPU_SYNCHRONOUS), DPU_ERR_DPU_ALREADY_RUNNING);
  CHECK_STATUS(dpu_copy_to(set.set, kHeap, 0, &word, 8), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_copy_from(set.all[1], kHeap, 0, &word, 8), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_copy_to(set.set, "input", 0, &word, 4), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_load(set.set, program_path("other").c_str(), nullptr), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_log_read(set.all[0], stdout), DPU_ERR_MRAM_BUSY);
  char text[100];
  dpuemu_report_t report;
  CHECK_STATUS(dpuemu_get_fault(set.set, text, sizeof text), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpuemu_get_report(set.set, &report), DPU_ERR_MRAM_BUSY);
  bool done = true, fault = true;
  CHECK_OK(dpu_status(set.set, &done, &fault));
  CHECK(!done && !fault);
  CHECK_OK(run.open());
  CHECK_OK(dpu_sync(set.set));
  CHECK_OK(dpu_status(set.set, &done, &fault));
  CHECK(done && !fault);
  for (dpu_set_t dpu : set.all) CHECK_EQ(number(dpu, "output"), 10u);
}

TEST(WhilePesRun_TheHostCanAccessWramButNotMram) {
  pe_machine(1);
  Loaded set(2, "gate");
  uint64_t word = 0;
  Running run(set.set);
  Running::wait_for(set.all[0]);
  const uint32_t input = 21;
  CHECK_OK(dpu_broadcast_to(set.set, "input", 0, &input, 4, DPU_XFER_PARALLEL));
  CHECK_EQ(Running::read_beside(set.all[1], "input"), 21u);
  CHECK_EQ(Running::read_beside(set.all[0], "finished"), 0u);
  CHECK_STATUS(dpu_broadcast_to(set.set, kHeap, 0, &word, 8, DPU_XFER_PARALLEL),
               DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER);
  CHECK_OK(run.open());
  CHECK_OK(dpu_sync(set.set));
  for (dpu_set_t dpu : set.all) {
    CHECK_EQ(number(dpu, "output"), 42u);
    CHECK_EQ(number(dpu, "finished"), 1u);
  }
}

TEST(WhilePesRun_OtherRanksAreUsable) {
  pe_machine(2);
  Loaded set(128, "gate");
  dpu_set_t ranks[2] = {dpu_set_from_rank(&set.set.list.ranks[0]),
                        dpu_set_from_rank(&set.set.list.ranks[1])};
  put<uint32_t>(ranks[1], "gate", 1);
  Running run(set.all[0]);
  Running::wait_for(set.all[0]);
  uint64_t word = 3;
  CHECK_OK(dpu_copy_to(ranks[1], kHeap, 0, &word, 8));
  launch(ranks[1]);
  CHECK_EQ(number(set.all[100], "output"), 10u);
  CHECK_STATUS(dpu_copy_to(ranks[0], kHeap, 0, &word, 8), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_DPU_ALREADY_RUNNING);
  CHECK_OK(dpu_load(ranks[1], program_path("other").c_str(), nullptr));
}

TEST(AsyncLaunch_ReturnsAtOnceAndSyncWaitsForTheEnd) {
  pe_machine(1);
  Loaded set(1, "gate");
  Running run(set.set);
  bool is_done = true, has_fault = true;
  const dpu_error_t early_status = dpu_status(set.set, &is_done, &has_fault);
  std::atomic<bool> is_open{false};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    is_open = true;
    run.open();
  });
  const dpu_error_t status = dpu_sync(set.set);
  const bool at_end = is_open;
  opener.join();
  CHECK_OK(early_status);
  CHECK(!is_done && !has_fault);  // the launch has returned while the gate was closed
  CHECK_OK(status);
  CHECK(at_end);
  CHECK_EQ(number(set.all[0], "finished"), 1u);
}

TEST(AsyncWork_LaunchesTransfersAndCallbacksRunInOrder) {
  pe_machine(2);
  Loaded set(128, "other");
  struct Callback {
    std::mutex mutex;
    std::vector<uint32_t> outputs;
    static dpu_error_t call(dpu_set_t rank, uint32_t, void *self_pointer) {
      auto *self = static_cast<Callback *>(self_pointer);
      dpu_set_t dpu;
      DPU_FOREACH(rank, dpu) break;
      uint32_t output = 0;
      const dpu_error_t status = dpu_copy_from(dpu, "output", 0, &output, 4);
      std::lock_guard<std::mutex> lock(self->mutex);
      self->outputs.push_back(output);
      return status;
    }
  } callback;
  constexpr uint32_t kRounds = 4;
  uint32_t inputs[kRounds];
  std::vector<uint32_t> got(kRounds * set.all.size());
  for (uint32_t round = 0; round < kRounds; ++round) {
    inputs[round] = 10 + round;
    CHECK_OK(dpu_broadcast_to(set.set, "input", 0, &inputs[round], 4, DPU_XFER_ASYNC));
    CHECK_OK(dpu_launch(set.set, DPU_ASYNCHRONOUS));
    for (size_t i = 0; i < set.all.size(); ++i)
      CHECK_OK(dpu_prepare_xfer(set.all[i], &got[round * set.all.size() + i]));
    CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, "output", 0, 4, DPU_XFER_ASYNC));
    CHECK_OK(dpu_callback(set.set, Callback::call, &callback, DPU_CALLBACK_ASYNC));
  }
  CHECK_OK(dpu_sync(set.set));
  for (size_t i = 0; i < got.size(); ++i)
    CHECK_EQ(got[i], 3 * (10 + static_cast<uint32_t>(i / set.all.size())));
  CHECK_EQ(callback.outputs.size(), 2 * size_t{kRounds});
  std::sort(callback.outputs.begin(), callback.outputs.end());
  for (uint32_t i = 0; i < 2 * kRounds; ++i) CHECK_EQ(callback.outputs[i], 3 * (10 + i / 2));
  CHECK_EQ(number(set.all[5], "output"), 3 * (9 + kRounds));
}

TEST(AsyncLaunch_RunsOncePerCall) {
  pe_machine(2);
  Loaded set(128, "variables");
  for (int i = 0; i < 5; ++i) CHECK_OK(dpu_launch(set.set, DPU_ASYNCHRONOUS));
  CHECK_OK(dpu_sync(set.set));
  for (dpu_set_t dpu : set.all) CHECK_EQ(number(dpu, "launches"), 105u);
}

TEST(AsyncParallelTransfer_DoesNotWaitForTheRunningPes) {
  pe_machine(1);
  Loaded set(1, "gate");
  Running run(set.set);
  Running::wait_for(set.all[0]);
  const uint32_t one = 1;
  CHECK_OK(dpu_broadcast_to(set.set, "gate", 0, &one, 4,
                            static_cast<dpu_xfer_flags_t>(DPU_XFER_ASYNC | DPU_XFER_PARALLEL)));
  CHECK_OK(dpu_sync(set.set));
  CHECK_EQ(number(set.all[0], "finished"), 1u);
}

TEST(Callback_MayLaunchItsRank) {
  pe_machine(2);
  Loaded set(128, "other");
  const auto callback = [](dpu_set_t rank, uint32_t index, void *) -> dpu_error_t {
    const uint32_t input = 30 + index;
    const dpu_error_t status = dpu_copy_to(rank, "input", 0, &input, 4);
    return status == DPU_OK ? dpu_launch(rank, DPU_SYNCHRONOUS) : status;
  };
  for (int how : {0, int{DPU_CALLBACK_ASYNC}}) {
    load(set.set, "other");
    CHECK_OK(dpu_callback(set.set, callback, nullptr, static_cast<dpu_callback_flags_t>(how)));
    CHECK_OK(dpu_sync(set.set));
    for (uint32_t i = 0; i < 128; ++i) CHECK_EQ(number(set.all[i], "output"), 3 * (30 + i / 64));
  }
}

TEST(DisabledDpus_AreNeitherLoadedNorLaunched) {
  machine(1, {place(0, 2, 3)});
  Loaded set(63, "other");
  CHECK_EQ(set.all.size(), 63u);
  launch(set.set);
  CHECK_EQ(report_of(set.set).pes, 63u);
  for (dpu_set_t dpu : set.all) CHECK_EQ(number(dpu, "output"), 18u);
  const dpu_set_t absent = dpu_set_from_dpu(dpu_get(set.rank(0), 2, 3));
  CHECK_STATUS(dpu_launch(absent, DPU_SYNCHRONOUS), DPU_ERR_DPU_DISABLED);
  CHECK_STATUS(dpu_load(absent, program_path("other").c_str(), nullptr), DPU_ERR_DPU_DISABLED);
}

TEST(DifferentPrograms_RunSideBySideAndHaveNoCommonSymbols) {
  pe_machine(2);
  Set set(128);
  const auto dpus = set.dpus();
  const dpu_set_t ranks[2] = {dpu_set_from_rank(&set.set.list.ranks[0]),
                              dpu_set_from_rank(&set.set.list.ranks[1])};
  load(ranks[0], "gate");
  load(ranks[1], "other");
  put<uint32_t>(ranks[0], "gate", 1);
  launch(set.set);
  CHECK_EQ(number(dpus[0], "output"), 10u);
  CHECK_EQ(number(dpus[127], "output"), 18u);
  const uint32_t word = 1;
  CHECK_STATUS(dpu_copy_to(set.set, "input", 0, &word, 4), DPU_ERR_DIFFERENT_DPU_PROGRAMS);
  CHECK_OK(dpu_copy_to(ranks[1], "input", 0, &word, 4));
}

TEST(TwoSets_RunTheirOwnProgramsAtTheSameTime) {
  pe_machine(2);
  Loaded first(64, "gate"), second(64, "increment");
  put<uint32_t>(second.set, "bytes", 1024);
  std::vector<uint8_t> zeros(1024);
  CHECK_OK(dpu_copy_to(second.set, kHeap, 0, zeros.data(), zeros.size()));
  Running run(first.all[7]);
  Running::wait_for(first.all[7]);
  for (uint32_t round = 1; round <= 5; ++round) {
    launch(second.set);
    CHECK_EQ(number(second.all[63], "sum"), 256 * round);
  }
  CHECK_EQ(Running::read_beside(first.all[7], "finished"), 0u);
  CHECK_OK(run.open());
  CHECK_OK(dpu_sync(first.set));
  CHECK_EQ(number(first.all[7], "finished"), 1u);
}

TEST(TwoThreads_LaunchTheirOwnSets) {
  pe_machine(2);
  std::exception_ptr failures[2];
  const auto work = [&](uint32_t who) {
    try {
      Loaded set(64, who == 0 ? "increment" : "increment_5");
      std::vector<uint8_t> zeros(4096);
      put<uint32_t>(set.set, "bytes", 4096);
      CHECK_OK(dpu_copy_to(set.set, kHeap, 0, zeros.data(), zeros.size()));
      for (uint32_t round = 1; round <= 5; ++round) {
        launch(set.set);
        for (dpu_set_t dpu : set.all) CHECK_EQ(number(dpu, "sum"), 1024 * round);
      }
    } catch (...) {
      failures[who] = std::current_exception();
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (const auto &failure : failures)
    if (failure) std::rethrow_exception(failure);
}

TEST(Free_WaitsForAnAsyncLaunch) {
  pe_machine(1);
  auto set = std::make_unique<Loaded>(1, "gate");
  const dpu_set_t freed = set->set;
  put<uint32_t>(freed, "patience", 300000);  // the program ends by itself
  CHECK_OK(dpu_launch(freed, DPU_ASYNCHRONOUS));
  CHECK_OK(dpu_free(freed));
  set->forget();
  CHECK_STATUS(dpu_launch(freed, DPU_SYNCHRONOUS), DPU_ERR_INVALID_DPU_SET);
  Loaded next(1, "other");
  launch(next.set);
  CHECK_EQ(number(next.all[0], "output"), 18u);
}

TEST(Free_ForgetsThePrograms) {
  pe_machine(1);
  {
    Loaded set(64, "other");
    launch(set.set);
  }
  Set set(64);
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
  CHECK(dpu_get_program(set.dpus()[0].dpu) == nullptr);
  uint32_t word;
  CHECK_STATUS(dpu_copy_from(set.dpus()[0], "output", 0, &word, 4), DPU_ERR_NO_PROGRAM_LOADED);
}

TEST(TransfersAndLaunches_WaitForPesThatAQueuedCallbackRuns) {
  pe_machine(1);
  Loaded set(2, "gate");
  const auto run = [](dpu_set_t all, uint32_t, void *) { return dpu_launch(all, DPU_SYNCHRONOUS); };
  const uint64_t word = 5;
  const uint32_t zero = 0, one = 1;
  for (const bool launches : {false, true}) {
    CHECK_OK(dpu_copy_to(set.set, "gate", 0, &zero, 4));
    CHECK_OK(dpu_copy_to(set.set, "started", 0, &zero, 4));
    CHECK_OK(dpu_callback(
        set.set, run, nullptr,
        static_cast<dpu_callback_flags_t>(DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL)));
    Running::wait_for(set.all[0]);
    std::atomic<bool> has_ended = false;
    dpu_error_t status = DPU_ERR_INTERNAL;
    std::thread other([&] {
      status = launches ? dpu_launch(set.all[1], DPU_SYNCHRONOUS)
                        : dpu_copy_to(set.set, kHeap, 0, &word, 8);
      has_ended = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const bool has_waited = !has_ended;
    const dpu_error_t opened = dpu_broadcast_to(set.set, "gate", 0, &one, 4, DPU_XFER_PARALLEL);
    other.join();
    CHECK(has_waited);
    CHECK_OK(opened);
    CHECK_OK(status);
    CHECK_OK(dpu_sync(set.set));
  }
}

TEST(Launch_IsRefusedWhileARankAccessIsOpen) {
  pe_machine(1);
  Loaded set(64, "other");
  {
    RankAccess access(set.rank(0));
    CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_MRAM_BUSY);
  }
  launch(set.set);
}

TEST(RankAccess_AndPesSeeEachOthersWrites) {
  pe_machine(1);
  Loaded set(64, "increment");
  put<uint32_t>(set.set, "bytes", 1024);
  std::vector<uint8_t> zeros(1024);
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, zeros.data(), zeros.size()));
  {
    RankAccess access(set.rank(0));
    access.byte(3, 5, 400) = 41;
  }
  launch(set.set);
  RankAccess access(set.rank(0));
  CHECK_EQ(access.byte(3, 5, 400), 42);
  CHECK_EQ(access.byte(3, 5, 404), 1);
  CHECK_EQ(access.byte(4, 5, 400), 1);
}
