// Non-blocking calls beside other work of the program: launches, jobs and programs of the SDK,
// exit, fork and threads.
#include <dpu_program.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "nonblocking_calls.h"

using namespace nonblocking_calls;

namespace {

/// A job that ends when `may_end` is true.
std::atomic<bool> may_end = false;
dpu_error_t wait_for_may_end(struct dpu_set_t, std::uint32_t, void *) {
  while (!may_end) usleep(1000);
  return DPU_OK;
}

/// If a call is pending at exit, waits for the call after the static objects of the library are
/// destroyed: functions that atexit registers before the constructors of these objects run after
/// their destructors.
pidcomm_pending *pending_at_exit = nullptr;
__attribute__((constructor(101))) void wait_at_exit() {
  std::atexit([] {
    if (pending_at_exit == nullptr) return;
    may_end = true;
    _exit(pidcomm_wait(&pending_at_exit, nullptr) == PIDCOMM_OK ? 0 : 1);
  });
}

/// Returns the exit status of a child process that calls body(), or -1 if a signal has ended the
/// child. After 30 s, a signal ends it.
template <class Body>
int status_of_child(const Body &body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    try {
      body();
    } catch (const std::exception &error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    _exit(1);
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST(FaultThatAnEarlierJobCauses_IsReportedByWait) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  CHECK_EQ(pidcomm_write(cube.get(), 2 << 20, 64, Bytes(64 * 64, 7).data()), +PIDCOMM_OK);
  pidcomm_pending *first = start(cube, alltoall_of(kLongBytes, 0, 1 << 20), slow());
  before_sdk(cube);
  const auto fault = [](struct dpu_set_t, std::uint32_t, void *rank) {
    const dpu_error_t status = dpuemu_begin_run(static_cast<struct dpu_rank_t *>(rank));
    return status == DPU_OK ? dpuemu_end_run(static_cast<struct dpu_rank_t *>(rank), true, 3)
                            : status;
  };
  DPU_OK_OR_FAIL(dpu_callback(set.get(), fault, set.rank(0), DPU_CALLBACK_ASYNC));
  pidcomm_pending *second = nullptr;
  const int started = irun(cube.get(), alltoall_of(64, 0, 2 << 20), &second);
  const int status = started == PIDCOMM_OK ? pidcomm_wait(&second, nullptr)
                                           : started;  // irun fails if the first call has ended
  CHECK_EQ(status, +PIDCOMM_ERR_DEVICE);
  CHECK(std::string(pidcomm_last_error()).find("chip") != std::string::npos);
  CHECK_EQ(pidcomm_wait(&first, nullptr), +PIDCOMM_OK);
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(0)));  // clears the fault
  DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(0), false, 0));
  CHECK(cube.read(2 << 20, 64) == Bytes(64 * 64, 7));
}

TEST(CallDuringALaunch_ReturnsBeforeThePesEnd) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 16});
  const Bytes rows = write_distinct(cube, 13, kLongBytes);
  for (std::uint32_t rank : {0u, 1u})
    DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(rank)));  // as an asynchronous launch
  pidcomm_pending *first = start(cube, alltoall_of(kLongBytes, 0, 1 << 20));
  pidcomm_pending *second = start(cube, alltoall_of(kLongBytes, 1 << 20, 2 << 20));
  usleep(50000);
  for (std::uint32_t rank : {0u, 1u}) {
    int is_done = 1;
    CHECK_EQ(pidcomm_test(&first, &is_done, nullptr), +PIDCOMM_OK);
    CHECK_EQ(is_done, 0);
    DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(rank), false, 0));
  }
  pidcomm_trace trace{};
  CHECK_EQ(pidcomm_wait(&second, &trace), +PIDCOMM_OK);
  CHECK(trace.seconds_acquire + trace.seconds_plan + trace.seconds_pass <= trace.seconds_total);
  CHECK(trace.seconds_acquire > 0.05);  // the PEs ran for 50 ms
  CHECK_EQ(pidcomm_wait(&first, nullptr), +PIDCOMM_OK);
  CHECK(cube.read(2 << 20, kLongBytes) == rows);
}

TEST(ProgramThatAnEarlierJobLoads_IsReportedByWait) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  const auto load = [](struct dpu_set_t own, std::uint32_t, void *) {
    return dpu_load(own, PIDCOMM_TEST_PROGRAM, nullptr);
  };
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(0)));
  DPU_OK_OR_FAIL(dpu_callback(set.get(), load, nullptr, DPU_CALLBACK_ASYNC));
  pidcomm_pending *pending = start(cube, alltoall_of(64, 0, 4096));
  DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(0), false, 0));
  CHECK_EQ(pidcomm_wait(&pending, nullptr), +PIDCOMM_ERR_DEVICE);
  CHECK(std::string(pidcomm_last_error()).find("heap base was 0") != std::string::npos);
  CHECK_EQ(pidcomm_alltoall(cube.get(), "10", 64, 0, 4096, PIDCOMM_INT32), +PIDCOMM_OK);
}

TEST(ProgramThatAJobBetweenTwoCallsLoads_IsReportedByWait) {
  constexpr std::size_t kHeap = 1 << 16, kAt = 4096,
                        kRow = 1 << 17;  // program.c has its heap at kHeap
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  // No program is loaded, so the heap is at 0.
  const Bytes rows = write_distinct(cube, 17, kRow);
  Bytes window(64 * 64);
  const auto load = [](struct dpu_set_t own, std::uint32_t, void *) {
    return dpu_load(own, PIDCOMM_TEST_PROGRAM, nullptr);
  };
  pidcomm_pending *first = start(cube, alltoall_of(kLongBytes, 4 << 20, 5 << 20), slow());
  before_sdk(cube);
  may_end = false;
  DPU_OK_OR_FAIL(dpu_callback(set.get(), wait_for_may_end, nullptr, DPU_CALLBACK_ASYNC));
  DPU_OK_OR_FAIL(dpu_callback(set.get(), load, nullptr, DPU_CALLBACK_ASYNC));
  pidcomm_pending *second = start(cube, alltoall_of(64, 0, kAt));
  may_end = true;
  CHECK_EQ(pidcomm_wait(&first, nullptr), +PIDCOMM_OK);
  CHECK_EQ(pidcomm_wait(&second, nullptr), +PIDCOMM_ERR_DEVICE);
  for (const std::size_t at : {kAt, kHeap + kAt}) {  // the windows of both heaps
    for (std::size_t pe = 0; pe < 64; ++pe)
      if (at >= kHeap)
        DPU_OK_OR_FAIL(
            dpu_copy_from(cube.dpu(pe), DPU_MRAM_HEAP_POINTER_NAME, kAt, &window[64 * pe], 64));
      else
        DPU_OK_OR_FAIL(dpu_copy_from(cube.dpu(pe), "variable", kAt, &window[64 * pe], 64));
    for (std::size_t pe = 0; pe < 64; ++pe)
      CHECK(std::memcmp(&window[64 * pe], &rows[kRow * pe + at], 64) == 0);
  }
}

#ifndef __SANITIZE_THREAD__  // it refuses to start threads in a child of a process with several
                             // threads
TEST(CallThatIsPendingAtExit_StillEnds) {
  machine::power_up(1);
  CHECK_EQ(status_of_child([] {
             const DpuSet set = DpuSet::of_ranks(1);
             const Hypercube cube(set, {8, 8});
             may_end = false;
             DPU_OK_OR_FAIL(dpu_callback(set.get(), wait_for_may_end, nullptr, DPU_CALLBACK_ASYNC));
             pending_at_exit = start(cube, alltoall_of(64, 0, 4096));
             std::exit(1);  // wait_at_exit decides about the status
           }),
           0);
}

TEST(ChildOfFork_UsesAnotherSet_WhileCallsOfItsParentWait) {
  machine::power_up(2);
  const DpuSet busy_set = DpuSet::of_ranks(1), set = DpuSet::of_ranks(1);
  const Hypercube first(busy_set, {8, 8}), second(busy_set, {64}), cube(set, {8, 8});
  may_end = false;
  DPU_OK_OR_FAIL(dpu_callback(busy_set.get(), wait_for_may_end, nullptr, DPU_CALLBACK_ASYNC));
  pidcomm_pending *calls[] = {
      start(first, alltoall_of(64, 0, 4096)),
      start(second, pidcomm::request::alltoall("1", 512, 0, 4096, PIDCOMM_INT32))};
  usleep(100000);  // until the thread of the second call waits for the first call
  const int status = status_of_child([&] {
    for (int i = 0; i < 4; ++i) {
      pidcomm_pending *call = start(cube, alltoall_of(kLongBytes, 0, 1 << 20), slow());
      CHECK_EQ(pidcomm_alltoall(cube.get(), "10", 64, 0, 4096, PIDCOMM_INT32),
               +PIDCOMM_OK);  // waits for the turn of `call`
      CHECK_EQ(pidcomm_wait(&call, nullptr), +PIDCOMM_OK);
    }
    _exit(0);
  });
  may_end = true;
  for (pidcomm_pending *&call : calls) CHECK_EQ(pidcomm_wait(&call, nullptr), +PIDCOMM_OK);
  CHECK_EQ(status, 0);
}

/// A thread that ends during fork may leave locks of the C library or of a sanitizer locked in the
/// child process.
TEST(DestroyedHypercube_HasNoThreadThatEndsDuringFork) {
  if (!is_over_sdk_access()) return;  // threads of the emulator carry out the calls
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const auto call_once = [&set] {
    const Hypercube cube(set, {8, 8});
    pidcomm_pending *call = start(cube, alltoall_of(64, 0, 4096));
    CHECK_EQ(pidcomm_wait(&call, nullptr), +PIDCOMM_OK);
  };
  for (int i = 0; i < 20; ++i) {
    call_once();
    CHECK_EQ(status_of_child([&] {
               call_once();
               _exit(0);
             }),
             0);
  }
}
#endif

TEST(ManyThreads_StartAndWait) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 16}), other(set, {16, 8});
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const std::size_t base = t << 16, bytes = 1024;
      Bytes rows(128 * bytes), back(128 * bytes);
      verify::fill_distinct(t, bytes, rows);
      const Hypercube &mine = t % 2 == 0 ? cube : other;
      for (int turn = 0; turn < 10; ++turn) {
        bool is_good = pidcomm_write(mine.get(), base, bytes, rows.data()) == PIDCOMM_OK;
        pidcomm_pending *first = nullptr, *second = nullptr;
        is_good = is_good &&
                  irun(mine.get(), request::alltoall("10", bytes, base, base + 4096, PIDCOMM_INT8),
                       &first) == PIDCOMM_OK;
        is_good =
            is_good &&
            irun(mine.get(), request::alltoall("10", bytes, base + 4096, base + 8192, PIDCOMM_INT8),
                 &second) == PIDCOMM_OK;
        is_good = pidcomm_wait(&first, nullptr) == PIDCOMM_OK &&
                  pidcomm_wait(&second, nullptr) == PIDCOMM_OK && is_good;
        is_good = is_good &&
                  pidcomm_read(mine.get(), base + 8192, bytes, back.data()) == PIDCOMM_OK &&
                  back == rows;
        failures += !is_good;
      }
    });
  for (std::thread &thread : threads) thread.join();
  CHECK_EQ(failures.load(), 0);
}
