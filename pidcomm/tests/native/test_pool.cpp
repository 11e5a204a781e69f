// The threads of a call: every task runs once, for every caller and every state of the threads.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "exec/default_options.h"
#include "exec/parallel.h"
#include "harness.h"
#include "line_kernels/audit.h"
#include "line_kernels/kernels.h"
#include "omp_num_threads.h"

using namespace pidcomm;

namespace {

/// Runs a job and returns whether every number came exactly once. The tasks' writes are not atomic:
/// the pool must order them.
bool runs_each_once(int count) {
  std::vector<int> calls(static_cast<std::size_t>(count), 0);
  run_threads(count, [&](int i) { ++calls[static_cast<std::size_t>(i)]; });
  for (int number : calls)
    if (number != 1) return false;
  return true;
}

int threads_with(const char *omp_num_threads) {
  const OmpNumThreads environment(omp_num_threads);
  return resolve(nullptr).threads;
}

constexpr int kRounds = 2000;

}  // namespace

TEST(Pool_CallsEachNumberOnceForEveryCount) {
  for (int count : {0, 1, 2, 3, 7, 64, 200}) CHECK(runs_each_once(count));
}

TEST(WorkQueue_HasEachNumberOnceForEveryCountAndNumberOfThreads) {
  for (int threads : {1, 2, 3, 7})
    for (uint64_t count : {0, 1, 2, 6, 7, 100, 1000}) {
      std::vector<int> visits(count, 0);
      WorkQueue queue(count, threads);
      run_threads(threads, [&](int thread) {
        queue.each(thread, [&](uint64_t number) { ++visits[number]; });
      });
      CHECK(std::all_of(visits.begin(), visits.end(), [](int times) { return times == 1; }));
    }
}

TEST(WorkQueue_IdleThreadStealsFromSlowThreads) {
  constexpr int kThreads = 3;
  constexpr uint64_t kCount = 30;
  WorkQueue queue(kCount, kThreads);
  std::vector<uint64_t> taken[kThreads];
  queue.each(0, [&](uint64_t first) {
    taken[0].push_back(first);
    if (taken[0].size() > 1) return;
    for (int thread : {1, 2})
      queue.each(thread, [&](uint64_t number) { taken[thread].push_back(number); });
  });
  CHECK_EQ(taken[0].size(), 1u);
  CHECK_EQ(taken[1].size(), kCount - 1);
  CHECK_EQ(taken[1].front(),
           kCount / kThreads);  // its own items first, then the items of the next thread
  CHECK_EQ(taken[1].at(kCount / kThreads), 2 * kCount / kThreads);
  CHECK_EQ(taken[1].back(), kCount / kThreads - 1);
  CHECK(taken[2].empty());
}

TEST(Pool_RunsManyQuickJobsInARow) {
  for (int round = 0; round < kRounds; ++round) CHECK(runs_each_once(1 + round % 5));
}

TEST(Pool_RunsJobsAfterItsThreadsFellAsleep) {
  for (int round = 0; round < 50; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(kSpinMicroseconds * (round % 4)));
    CHECK(runs_each_once(2 + round % 3));
  }
}

TEST(Pool_RunsQuickJobsOfSeveralCallersAtOnce) {
  constexpr int kCallers = 6;
  std::atomic<int> right{0};
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < kCallers; ++caller)
      callers.emplace_back([&right, caller] {
        for (int round = 0; round < kRounds / kCallers; ++round)
          right += runs_each_once(1 + (round + caller) % 6);
      });
  }
  CHECK_EQ(right.load(), kRounds / kCallers * kCallers);
}

TEST(Pool_RunsJobsInsideTasks) {
  std::atomic<int> right{0};
  for (int round = 0; round < 50; ++round) run_threads(4, [&](int) { right += runs_each_once(3); });
  CHECK_EQ(right.load(), 200);
}

TEST(Pool_WaitsForASlowHelper) {
  for (int round = 0; round < 5; ++round) {
    std::vector<int> done(4, 0);
    run_threads(4, [&](int i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(i));
      done[static_cast<std::size_t>(i)] = 1;
    });
    CHECK(done == std::vector<int>(4, 1));
  }
}

TEST(Pool_RethrowsATasksExceptionAfterAllTasks) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> done{0};
    std::string caught;
    try {
      run_threads(4, [&](int i) {
        ++done;
        if (i == round % 4) throw std::runtime_error("task " + std::to_string(i));
      });
    } catch (const std::runtime_error &error) {
      caught = error.what();
    }
    CHECK_EQ(caught, "task " + std::to_string(round % 4));
    CHECK_EQ(done.load(), 4);
  }
}

#ifndef __SANITIZE_THREAD__  // TSan supports no threads in the child of a process with threads
TEST(Pool_WorksInAChildOfFork) {
  for (const auto pause :
       {std::chrono::microseconds(0), std::chrono::microseconds(20 * kSpinMicroseconds)}) {
    CHECK(runs_each_once(4));
    std::this_thread::sleep_for(pause);  // the parent's threads spin or sleep
    const pid_t child = fork();
    if (child == 0) {
      bool is_right = true;
      for (int round = 0; round < 100; ++round) is_right = is_right && runs_each_once(4);
      _exit(is_right ? 0 : 1);
    }
    CHECK(child > 0);
    CHECK(runs_each_once(4));
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
  }
}
#endif

TEST(DefaultThreads_ComeFromTheEnvironmentOrTheCpusOfTheCaller) {
  CHECK_EQ(threads_with("3"), 3);
  CHECK_EQ(threads_with("1"), 1);
  CHECK_EQ(threads_with("5000"), 1024);
  CHECK_EQ(threads_with("3,2"), 3);
  CHECK_EQ(threads_with(" 5 , 2"), 5);
  for (const char *no_number :
       {static_cast<const char *>(nullptr), "", "0", "-2", "many", "3x", ",3", " ", "99999999999"})
    CHECK_EQ(threads_with(no_number), usable_cpus());
}

TEST(DefaultThreads_ReportAVariableThatIsNotValid) {
  const auto is_ignored = [](const char *omp_num_threads) {
    const OmpNumThreads environment(omp_num_threads);
    int ignored = -1;
    CHECK_EQ(pidcomm_default_threads(&ignored), threads_with(omp_num_threads));
    CHECK_EQ(pidcomm_default_threads(nullptr), threads_with(omp_num_threads));
    return ignored;
  };
  for (const char *valid : {static_cast<const char *>(nullptr), "", "3", "3,2"})
    CHECK_EQ(is_ignored(valid), 0);
  for (const char *invalid : {"0", "-5", "abc", "3x", "2.5", " "}) CHECK_EQ(is_ignored(invalid), 1);
}

TEST(DefaultThreads_AreOneForACallerBoundToOneCpu) {
  std::optional<int> threads;
  std::jthread([&threads] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) threads = threads_with(nullptr);
  }).join();
  CHECK_EQ(threads.value_or(1), 1);  // no value: the system refuses to bind threads
}

TEST(Pool_AuditsTheTasksOfAThreadAndNoOtherThreads) {
  const Kernels &kernels = kernels_of(PIDCOMM_ISA_AUDIT);
  alignas(64) const std::byte line[64] = {};
  const auto flush = [&](int = 0) { kernels.flush(line, 1, 1); };
  AuditRecord record;
  {
    const AuditScope scope(&record);
    std::thread([&] { flush(); }).join();
    CHECK_EQ(record.counts().lines_flushed, 0u);
    run_threads(64, flush);
    CHECK_EQ(record.counts().lines_flushed, 64u);
  }
  flush();
  run_threads(64, flush);
  CHECK_EQ(record.counts().lines_flushed, 64u);
}
