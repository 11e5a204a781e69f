// The worker pool: loops run every index once, with busy threads and without threads.
#include "base/worker_pool.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

#include "harness.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#elif __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

using namespace dpuemu;

namespace {

/// Whether a loop calls its body once per index. The counts are not atomic: the pool has to order
/// the accesses.
bool runs_each_once(uint64_t count, uint32_t threads) {
  std::vector<int> calls(count, 0);
  parallel_for(count, threads, [&](uint64_t i) { ++calls[i]; });
  return std::all_of(calls.begin(), calls.end(), [](int number) { return number == 1; });
}

/// A job that blocks its threads until it is released, as PEs may.
class Blocker : public WorkerPool::Job {
 public:
  void run() override {
    ++inside;
    inside.notify_all();
    is_released.wait(false);
    ++left;
  }
  void wait_for(int threads) {
    for (int now; (now = inside.load()) < threads;) inside.wait(now);
  }
  void release() {
    is_released = true;
    is_released.notify_all();
  }
  std::atomic<int> inside{0}, left{0};
  std::atomic<bool> is_released{false};
};

/// Runs `body` in a child process and returns its exit status; -1 if a signal ended it.
int status_of_child(const std::function<int()> &body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  CHECK(child > 0);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST(Pool_CallsEachIndexOnceForEveryCountAndNumberOfThreads) {
  for (uint64_t count : {0, 1, 2, 3, 64, 1000})
    for (uint32_t threads : {0, 1, 2, 5}) CHECK(runs_each_once(count, threads));
}

TEST(Pool_RunsLoopsOfManyCallersAndLoopsInLoops) {
  std::atomic<int> wrong{0};
  const auto repeat = [&] {
    for (int round = 0; round < 300; ++round) wrong += !runs_each_once(20, 3);
  };
  std::thread other(repeat), third(repeat);
  repeat();
  other.join();
  third.join();
  parallel_for(10, 3, [&](uint64_t) { wrong += !runs_each_once(10, 3); });
  CHECK_EQ(wrong.load(), 0);
}

TEST(Pool_RunsALoopInItsCallerWhileAnotherJobHasAllThreads) {
  auto &pool = *new WorkerPool;  // its threads stay
  Blocker blocker;
  CHECK(pool.invite(blocker, 3, 3));
  blocker.wait_for(3);
  Blocker none;
  CHECK(pool.invite(none, 2, 3));  // these joins stay pending, since no thread is free
  pool.withdraw(none);
  CHECK_EQ(none.inside.load(), 0);
  blocker.release();
  pool.withdraw(blocker);
  CHECK_EQ(blocker.left.load(), 3);
}

TEST(Pool_ServesJobsInTheOrderOfTheirInvitations) {
  auto &pool = *new WorkerPool;
  Blocker first, second, third;
  CHECK(pool.invite(first, 1, 1));
  first.wait_for(1);
  CHECK(pool.invite(second, 1, 1));
  CHECK(pool.invite(third, 1, 1));
  first.release();
  second.wait_for(1);
  CHECK_EQ(third.inside.load(), 0);
  CHECK(pool.invite(third, 0, 1));  // cancels the pending join
  second.release();
  pool.withdraw(second);
  pool.withdraw(third);
  CHECK_EQ(third.inside.load(), 0);
  pool.withdraw(first);
}

TEST(Pool_RunsLoopsInTheirCallerInAChildOfFork) {
  CHECK(runs_each_once(100, 3));
  const auto body = [] {
    const std::thread::id caller = std::this_thread::get_id();
    bool is_alone = true;
    parallel_for(1000, 3,
                 [&](uint64_t) { is_alone = is_alone && std::this_thread::get_id() == caller; });
    return is_alone ? 0 : 1;
  };
  CHECK_EQ(status_of_child(body), 0);
  CHECK(runs_each_once(100, 3));
}

#ifndef __SANITIZE_THREAD__  // it does not support threads in a child of a process with threads
TEST(Pool_OfAChildOfForkHasItsOwnThreads) {
  WorkerPool *const parents = &of_this_process<WorkerPool>();
  const auto body = [parents] {
    WorkerPool &own = of_this_process<WorkerPool>();
    Blocker blocker;
    if (&own == parents || !own.invite(blocker, 2, 2)) return 1;
    blocker.wait_for(2);
    blocker.release();
    own.withdraw(blocker);
    return 0;
  };
  CHECK_EQ(status_of_child(body), 0);
}

#ifndef __SANITIZE_ADDRESS__  // it needs address space itself
TEST(Pool_WithoutThreadsRefusesJobs) {
  const auto body = [] {
    const rlimit none = {1, 1};  // bytes of address space: no stack for a thread
    if (setrlimit(RLIMIT_AS, &none) != 0) return 1;
    try {
      for (;;) std::thread(pause).detach();  // use up the stacks of threads that have ended
    } catch (const std::system_error &) {
    }
    static WorkerPool pool;
    static Blocker blocker;
    const bool is_refused = !pool.invite(blocker, 1, 3);
    pool.withdraw(blocker);
    return is_refused ? 0 : 2;
  };
  CHECK_EQ(status_of_child(body), 0);
}
#endif
#endif
