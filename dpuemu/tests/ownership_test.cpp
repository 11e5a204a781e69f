// Ownership of a rank's MRAM, and the calls that each owner allows.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "machine_fixture.h"

using namespace fixture;

namespace {

/// Ends the run of a rank after 20 ms.
std::thread end_run_soon(dpu_rank_t *rank, std::atomic<bool> &has_ended) {
  return std::thread([rank, &has_ended] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    has_ended = true;
    dpuemu_end_run(rank, false, 0);
  });
}

/// Runs `body` in a child process and returns its stderr; signal_number: the signal that ended it,
/// or 0.
template <class Body>
std::string stderr_of_child(Body body, int &signal_number) {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    try {
      body();
    } catch (const std::exception &failure) {
      std::fprintf(stderr, "%s\n", failure.what());
    }
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char buffer[256];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return said;
}

}  // namespace

TEST(RankAccess_ReturnsBaseSizeAndEnabledPes) {
  machine(1, {place(0, 3, 5), place(0, 7, 7)});
  Set set(62);
  dpuemu_rank_access_t access;
  CHECK_OK(dpuemu_rank_acquire(set.rank(0), &access));
  CHECK_EQ(access.size_bytes, UINT64_C(8) << 30);
  CHECK_EQ(reinterpret_cast<uintptr_t>(access.base) % (2 << 20), 0u);
  CHECK_EQ(access.enabled, ~(UINT64_C(1) << (5 * 8 + 3) | UINT64_C(1) << 63));
  CHECK_EQ(access.numa_node, dpu_get_rank_numa_node(set.rank(0)));
  access.base[dpuemu_region_offset(2, 6, 12345)] = 77;
  CHECK_OK(dpuemu_rank_release(set.rank(0)));
  uint8_t word[8];
  CHECK_OK(dpu_copy_from(dpu_set_from_dpu(dpu_get(set.rank(0), 2, 6)), kHeap, 12344, word, 8));
  CHECK_EQ(word[1], 77);
}

TEST(RankAccesses_NestAndRefuseLaunchesAndFree) {
  machine(1);
  Set set(64);
  dpuemu_rank_access_t access;
  CHECK_OK(dpuemu_rank_acquire(set.rank(0), &access));
  CHECK_OK(dpuemu_rank_acquire(set.rank(0), &access));
  CHECK_STATUS(dpuemu_begin_run(set.rank(0)), DPU_ERR_MRAM_BUSY);
  CHECK_OK(dpuemu_rank_release(set.rank(0)));
  CHECK_STATUS(dpuemu_begin_run(set.rank(0)), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_free(set.set), DPU_ERR_MRAM_BUSY);
  uint64_t word = 1;
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, &word,
                       8));  // the set is still there, and the host owns its MRAM
  CHECK_OK(dpuemu_rank_release(set.rank(0)));
  CHECK_STATUS(dpuemu_rank_release(set.rank(0)), DPU_ERR_INTERNAL);
  CHECK_OK(dpuemu_begin_run(set.rank(0)));
  CHECK_OK(dpuemu_end_run(set.rank(0), false, 0));
}

TEST(RunningPes_RefuseTransfersWithoutEffect) {
  machine(2);
  Set set(128);
  uint64_t word = 1, other = 2, got = 0;
  bool done, fault;
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, &word, 8));
  CHECK_OK(dpuemu_begin_run(set.rank(1)));
  CHECK_STATUS(dpuemu_begin_run(set.rank(1)), DPU_ERR_DPU_ALREADY_RUNNING);
  CHECK_STATUS(dpu_copy_to(set.set, kHeap, 0, &other, 8), DPU_ERR_MRAM_BUSY);
  CHECK_OK(dpu_prepare_xfer(set.set, &other));
  CHECK_STATUS(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, kHeap, 0, 8, DPU_XFER_DEFAULT),
               DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_copy_from(set.dpus()[64], kHeap, 0, &got, 8), DPU_ERR_MRAM_BUSY);
  CHECK_OK(dpu_status(set.set, &done, &fault));
  CHECK(!done && !fault);
  CHECK_OK(dpu_copy_from(set.dpus()[0], kHeap, 0, &got, 8));  // the other rank is free
  CHECK_EQ(got, 1u);
  CHECK_OK(dpuemu_end_run(set.rank(1), false, 0));
  CHECK_STATUS(dpuemu_end_run(set.rank(1), false, 0), DPU_ERR_INTERNAL);
  CHECK_OK(dpu_copy_from(set.dpus()[64], kHeap, 0, &got, 8));
  CHECK_EQ(got, 1u);
  CHECK_EQ(other, 2u);
}

TEST(SyncRankAccessAndFree_WaitForRunningPes) {
  machine(1);
  Set set(64);
  dpuemu_rank_access_t access;
  const auto sync = [&] { return dpu_sync(set.set); };
  const auto acquire = [&] {
    const dpu_error_t status = dpuemu_rank_acquire(set.rank(0), &access);
    return status == DPU_OK ? dpuemu_rank_release(set.rank(0)) : status;
  };
  const auto free = [&] { return dpu_free(set.set); };
  const std::function<dpu_error_t()> waiting[] = {sync, acquire, free};
  for (const auto &wait : waiting) {
    std::atomic<bool> has_ended{false};
    CHECK_OK(dpuemu_begin_run(set.rank(0)));
    std::thread ender = end_run_soon(set.rank(0), has_ended);
    const dpu_error_t status = wait();
    CHECK(has_ended);
    ender.join();
    CHECK_OK(status);
  }
  set.forget();
}

TEST(Fault_IsReportedUntilTheNextRun) {
  machine(1);
  Set set(64);
  uint64_t word = 1;
  bool done, fault;
  dpuemu_rank_access_t access;
  CHECK_OK(dpuemu_begin_run(set.rank(0)));
  CHECK_STATUS(dpuemu_end_run(set.rank(0), true, 64), DPU_ERR_INTERNAL);
  CHECK_OK(dpuemu_end_run(set.rank(0), true, 8 * 2 + 1));
  for (int again = 0; again < 2; ++again) {
    CHECK_STATUS(dpu_sync(set.set), DPU_ERR_DPU_FAULT);
    CHECK_OK(dpu_copy_to(set.set, kHeap, 0, &word, 8));  // the host can still read and write MRAM
    CHECK_STATUS(dpuemu_rank_acquire(set.rank(0), &access), DPU_ERR_DPU_FAULT);
    CHECK_OK(dpu_status(set.set, &done, &fault));
    CHECK(done && fault);
  }
  CHECK_OK(dpuemu_begin_run(set.rank(0)));
  CHECK_OK(dpuemu_end_run(set.rank(0), false, 0));
  CHECK_OK(dpu_sync(set.set));
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, &word, 8));
}

TEST(StrictMode_EndsAProcessThatTouchesMramOfPesAndNamesTheRank) {
  int signal_number;
  const auto touch_while_owned = [](bool has_run_ended) {
    return [has_run_ended] {
      machine(3, {}, 2, 1);
      dpu_set_t set;
      dpu_alloc(192, nullptr, &set);
      dpuemu_rank_access_t access;
      dpuemu_rank_acquire(set.list.ranks[2], &access);
      access.base[1000] = 1;
      dpuemu_rank_release(set.list.ranks[2]);
      dpuemu_begin_run(set.list.ranks[2]);
      if (has_run_ended) dpuemu_end_run(set.list.ranks[2], false, 0);
      *const_cast<volatile uint8_t *>(access.base + 1000) = 2;
    };
  };
  for (bool has_run_ended : {false, true}) {
    const std::string said = stderr_of_child(touch_while_owned(has_run_ended), signal_number);
    CHECK(said.find("dpuemu: the host touched the MRAM of rank 2 (region offset 1000)") == 0);
#if !defined(__SANITIZE_THREAD__)
    CHECK_EQ(signal_number, SIGSEGV);
#endif
  }
}

TEST(StrictMode_LetsTransfersRankAccessesAndTheNextSetUseTheMemoryAgain) {
  int signal_number;
  const std::string said = stderr_of_child(
      [] {
        machine(1, {}, 2, 1);
        dpu_set_t set;
        uint64_t word = 1, got = 0;
        for (int round = 0; round < 3; ++round) {
          CHECK_OK(dpu_alloc(64, nullptr, &set));
          CHECK_OK(dpu_copy_to(set, kHeap, 0, &word, 8));
          CHECK_OK(dpuemu_begin_run(set.list.ranks[0]));
          CHECK_STATUS(dpu_copy_to(set, kHeap, 0, &word, 8), DPU_ERR_MRAM_BUSY);
          CHECK_OK(dpuemu_end_run(set.list.ranks[0], false, 0));
          if (round == 0) {
            RankAccess access(set.list.ranks[0]);
            CHECK_EQ(access.byte(0, 0, 0), 1);
          } else if (round == 1) {
            dpu_set_t dpu;
            DPU_FOREACH(set, dpu) break;
            CHECK_OK(dpu_copy_from(dpu, kHeap, 0, &got, 8));
            CHECK_EQ(got, 1u);
          }
          CHECK_OK(dpu_free(set));
        }
      },
      signal_number);
  CHECK_EQ(said, std::string());
  CHECK_EQ(signal_number, 0);
}

TEST(Fork_GivesTheChildAWorkingMachine) {
  machine(1);
  Set set(64);
  std::vector<uint8_t> bytes(8 << 20, 5);
  CHECK_OK(
      dpu_copy_to(set.set, kHeap, 0, bytes.data(), bytes.size() / 2));  // the pool has threads now
  int signal_number;
  const std::string said = stderr_of_child(
      [&] {
        uint64_t got = 0;
        CHECK_OK(dpu_copy_to(set.set, kHeap, 0, bytes.data(), bytes.size() / 2));
        CHECK_OK(dpu_copy_from(set.dpus()[63], kHeap, 96, &got, 8));
        CHECK_EQ(got, 0x0505050505050505u);
      },
      signal_number);
  CHECK_EQ(said, std::string());
  CHECK_EQ(signal_number, 0);
}
