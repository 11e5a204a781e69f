// Non-blocking calls (pidcomm_irun), pidcomm_wait, pidcomm_test.
#include <dpu_program.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pidcomm/pidcomm.hpp>
#include <thread>

#include "every_collective.h"
#include "machine.h"

namespace {

using machine::Bytes;
using machine::Case;
using machine::DpuSet;
using machine::Hypercube;
using machine::start_and_poll;
using machine::start_and_wait;
namespace request = pidcomm::request;

/// Options of a slow collective: the audit ISA counts every line.
constexpr std::size_t kLongBytes = 1 << 17;
pidcomm_options slow() {
  pidcomm_options options{};
  options.isa = PIDCOMM_ISA_AUDIT;
  options.threads = 1;
  return options;
}

pidcomm_request alltoall_of(std::size_t bytes, std::size_t src, std::size_t dst) {
  return pidcomm::request::alltoall("10", bytes, src, dst, PIDCOMM_INT32);
}

pidcomm_pending *start(const Hypercube &cube, const pidcomm_request &request,
                       const pidcomm_options &options = {}) {
  pidcomm_pending *pending = nullptr;
  CHECK_EQ(pidcomm_irun(cube.get(), &request, &options, &pending), +PIDCOMM_OK);
  CHECK(pending != nullptr);
  return pending;
}

/// On DIMMs, operations of the SDK do not wait for non-blocking calls.
void before_sdk([[maybe_unused]] const Hypercube &cube) {
#ifdef PIDCOMM_TEST_SDK_ACCESS
  CHECK_EQ(pidcomm_sync(cube.get()), +PIDCOMM_OK);
#endif
}

int irun(pidcomm_hypercube *cube, const pidcomm_request &request, pidcomm_pending **pending) {
  return pidcomm_irun(cube, &request, nullptr, pending);
}

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

TEST(EveryCollectiveAndTechnique_HasTheSameResultWithoutBlocking) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 16}), general(set, {5, 7});
  machine::Grid grid("non-blocking");
  std::uint64_t seed = 0;
  for (const Hypercube *shape : {&cube, &general})
    for (const std::string &mask : machine::masks_of(2))
      for (const int collective : kCollectives)
        for (const int technique :
             {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL, PIDCOMM_TECHNIQUE_PR_IM,
              PIDCOMM_TECHNIQUE_RING, PIDCOMM_TECHNIQUE_TREE})
          for (const machine::Run run : {start_and_wait, start_and_poll}) {
            if (shape == &general && technique >= PIDCOMM_TECHNIQUE_PR_IM) continue;
            if (collective != PIDCOMM_ALLREDUCE && technique >= PIDCOMM_TECHNIQUE_RING) continue;
            Case c{{collective, shape->axis_len(), mask, 8 * 128 * 35, PIDCOMM_INT32, PIDCOMM_SUM},
                   64,
                   1 << 17,
                   {},
                   {},
                   ++seed};
            c.options.technique = technique;
            if (technique >= PIDCOMM_TECHNIQUE_PR_IM) c.options.scratch_offset = 1 << 18;
            grid.run([&] { machine::run_case(*shape, c, run); });
          }
  grid.finish();
}

TEST(NonBlockingRequests_EqualTheNamedFunctions) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  const std::size_t bytes = 512, at = 4096;
  Bytes rows(64 * bytes), host(64 * bytes), wanted(64 * bytes);
  verify::fill_distinct(3, bytes, rows);
  const auto same = [&](auto blocking, auto non_blocking) {
    Bytes got[2], hosts[2];
    for (int i = 0; i < 2; ++i) {
      verify::fill_distinct(4, bytes, host);
      CHECK_EQ(pidcomm_write(cube.get(), 0, bytes, rows.data()), +PIDCOMM_OK);
      CHECK_EQ(pidcomm_write(cube.get(), at, bytes, host.data()), +PIDCOMM_OK);
      pidcomm_pending *pending = nullptr;
      CHECK_EQ(i == 0 ? blocking() : non_blocking(&pending), +PIDCOMM_OK);
      CHECK_EQ(pidcomm_wait(&pending, nullptr), +PIDCOMM_OK);
      CHECK(pending == nullptr);
      hosts[i] = host;
      got[i].resize(64 * bytes);
      CHECK_EQ(pidcomm_read(cube.get(), at, bytes, got[i].data()), +PIDCOMM_OK);
    }
    CHECK(got[0] == got[1]);
    CHECK(hosts[0] == hosts[1]);
  };
  pidcomm_hypercube *const m = cube.get();
  constexpr int kType = PIDCOMM_INT32, kOp = PIDCOMM_MAX;
  same([&] { return pidcomm_alltoall(m, "10", bytes, 0, at, kType); },
       [&](auto p) { return irun(m, request::alltoall("10", bytes, 0, at, kType), p); });
  same([&] { return pidcomm_reduce_scatter(m, "10", bytes, 0, at, kType, kOp); },
       [&](auto p) { return irun(m, request::reduce_scatter("10", bytes, 0, at, kType, kOp), p); });
  same([&] { return pidcomm_allreduce(m, "10", bytes, 0, at, kType, kOp); },
       [&](auto p) { return irun(m, request::allreduce("10", bytes, 0, at, kType, kOp), p); });
  same([&] { return pidcomm_allgather(m, "10", bytes, 0, at, kType); },
       [&](auto p) { return irun(m, request::allgather("10", bytes, 0, at, kType), p); });
  same([&] { return pidcomm_scatter(m, "10", bytes, host.data(), host.size(), at, kType); },
       [&](auto p) {
         return irun(m, request::scatter("10", bytes, host.data(), host.size(), at, kType), p);
       });
  same([&] { return pidcomm_gather(m, "10", bytes, 0, host.data(), host.size(), kType); },
       [&](auto p) {
         return irun(m, request::gather("10", bytes, 0, host.data(), host.size(), kType), p);
       });
  same([&] { return pidcomm_reduce(m, "10", bytes, 0, host.data(), 8 * bytes, kType, kOp); },
       [&](auto p) {
         return irun(m, request::reduce("10", bytes, 0, host.data(), 8 * bytes, kType, kOp), p);
       });
  same([&] { return pidcomm_broadcast(m, "10", bytes, host.data(), 8 * bytes, at, kType); },
       [&](auto p) {
         return irun(m, request::broadcast("10", bytes, host.data(), 8 * bytes, at, kType), p);
       });
}

TEST(Call_ReturnsBeforeItsCollectiveEnds) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  bool was_under_way = false;
  for (int turn = 0; turn < 10 && !was_under_way; ++turn) {
    pidcomm_pending *pending = start(cube, alltoall_of(kLongBytes, 0, 1 << 20), slow());
    int is_done = 1;
    CHECK_EQ(pidcomm_test(&pending, &is_done, nullptr), +PIDCOMM_OK);
    CHECK_EQ(pending == nullptr, is_done != 0);
    was_under_way = !is_done;
    pidcomm_trace trace{};
    CHECK_EQ(pidcomm_wait(&pending, &trace), +PIDCOMM_OK);
    if (was_under_way)
      CHECK(machine::audit_of(cube).distinct_lines_stored == kLongBytes / 8 * 8 &&
            trace.seconds_total >= trace.seconds_pass);
  }
  CHECK(was_under_way);
}

TEST(LaterCallsOnTheSet_SeeTheResult) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8}), other(set, {64});
  Bytes rows(64 * kLongBytes), back(64 * kLongBytes);
  verify::fill_distinct(7, kLongBytes, rows);
  CHECK_EQ(pidcomm_write(cube.get(), 0, kLongBytes, rows.data()), +PIDCOMM_OK);
  // Two alltoalls are a copy.
  pidcomm_pending *first = start(cube, alltoall_of(kLongBytes, 0, 1 << 20), slow());
  pidcomm_pending *second = start(cube, alltoall_of(kLongBytes, 1 << 20, 2 << 20), slow());
  CHECK_EQ(pidcomm_read(other.get(), 2 << 20, kLongBytes, back.data()),
           +PIDCOMM_OK);  // another hypercube of the set, blocking
  CHECK(back == rows);
  CHECK_EQ(pidcomm_wait(&second, nullptr), +PIDCOMM_OK);
  CHECK_EQ(pidcomm_wait(&first, nullptr), +PIDCOMM_OK);
  // The same through the SDK.
  pidcomm_pending *third = start(cube, alltoall_of(kLongBytes, 1 << 20, 3 << 20), slow());
  before_sdk(cube);
  CHECK(cube.read(3 << 20, kLongBytes) == cube.read(0, kLongBytes));
  CHECK_EQ(pidcomm_wait(&third, nullptr), +PIDCOMM_OK);
}

TEST(Launch_WaitsForABusyRank) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  Bytes rows(64 * kLongBytes);
  verify::fill_distinct(9, kLongBytes, rows);
  CHECK_EQ(pidcomm_write(cube.get(), 0, kLongBytes, rows.data()), +PIDCOMM_OK);
  CHECK_EQ(pidcomm_alltoall(cube.get(), "10", kLongBytes, 0, 2 << 20, PIDCOMM_INT32), +PIDCOMM_OK);
  dpuemu_rank_access_t access;
  DPU_OK_OR_FAIL(dpuemu_rank_acquire(set.rank(0), &access));
  DPU_OK_OR_FAIL(dpuemu_rank_release(set.rank(0)));
  const auto line = [&](std::uint32_t word, std::size_t offset) {
    Bytes bytes(64);
    const auto *base = reinterpret_cast<const std::uint8_t *>(access.base);
    std::memcpy(bytes.data(),
                base + dpuemu_region_offset(0, 7, static_cast<std::uint32_t>(offset + 8 * word)),
                bytes.size());
    return bytes;
  };
  pidcomm_pending *pending = start(cube, alltoall_of(kLongBytes, 0, 1 << 20), slow());
  before_sdk(cube);
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(0)));  // as dpu_launch
  bool is_complete = true;
  for (std::uint32_t word = 0; word < kLongBytes / 8; ++word)
    is_complete = is_complete && line(word, 1 << 20) == line(word, 2 << 20);
  CHECK(is_complete);
  DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(0), false, 0));
  CHECK_EQ(pidcomm_wait(&pending, nullptr), +PIDCOMM_OK);
}

TEST(DestroyWhileACallIsPending_IsAnError_AndFreeWaits) {
  machine::power_up(1);
  DpuSet set = DpuSet::of_ranks(1);
  const std::uint32_t lengths[] = {8, 8};
  pidcomm_hypercube *cube = nullptr;
  CHECK_EQ(pidcomm_hypercube_create(set.get(), 2, lengths, &cube), +PIDCOMM_OK);
  pidcomm_pending *pending = nullptr;
  const pidcomm_request request = alltoall_of(kLongBytes, 0, 1 << 20);
  const pidcomm_options options = slow();
  CHECK_EQ(pidcomm_irun(cube, &request, &options, &pending), +PIDCOMM_OK);
  pidcomm_pending *const call = pending;
  CHECK_EQ(pidcomm_hypercube_destroy(cube), +PIDCOMM_ERR_BUSY);  // even if the call has ended
  CHECK(std::string(pidcomm_last_error())
            .find("8x8 has non-blocking calls that have not been waited for: 1") !=
        std::string::npos);
  CHECK(pending == call);
#ifdef PIDCOMM_TEST_SDK_ACCESS
  CHECK_EQ(pidcomm_sync(cube), +PIDCOMM_OK);
#endif
  set.free();
  CHECK_EQ(pidcomm_wait(&pending, nullptr), +PIDCOMM_OK);
  CHECK_EQ(pidcomm_hypercube_destroy(cube), +PIDCOMM_OK);
}

TEST(SeveralCalls_QueueInOrderWithoutWaiting) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 16}), other(set, {8, 4, 4});
  constexpr std::size_t kAt = 1 << 20;
  Bytes rows(128 * kLongBytes);
  verify::fill_distinct(11, kLongBytes, rows);
  pidcomm_options reordering{}, conventional{};
  reordering.technique = PIDCOMM_TECHNIQUE_PR_IM;
  reordering.scratch_offset = 8 * kAt;
  conventional.technique = PIDCOMM_TECHNIQUE_CONVENTIONAL;
  bool were_queued = false;
  for (int turn = 0; turn < 10 && !were_queued; ++turn) {
    CHECK_EQ(pidcomm_write(cube.get(), 0, kLongBytes, rows.data()), +PIDCOMM_OK);
    std::vector<pidcomm_pending *> calls = {start(cube, alltoall_of(kLongBytes, 0, kAt), slow())};
    for (std::size_t i = 1; i < 24; ++i) {  // more calls than the hypercube caches plans
      const pidcomm_request next = pidcomm::request::alltoall(
          i % 2 == 0 ? "10" : "100", kLongBytes, kAt * (i % 7), kAt * ((i + 1) % 7), PIDCOMM_INT32);
      calls.push_back(start(i % 2 == 0 ? cube : other, next,
                            i % 3 == 0   ? reordering
                            : i % 3 == 1 ? conventional
                                         : pidcomm_options{}));
    }
    int is_done = 1;
    CHECK_EQ(pidcomm_test(&calls[0], &is_done, nullptr), +PIDCOMM_OK);
    were_queued = !is_done;
    for (auto call = calls.rbegin(); call != calls.rend(); ++call)
      CHECK_EQ(pidcomm_wait(&*call, nullptr), +PIDCOMM_OK);
    CHECK(cube.read(kAt * (24 % 7), kLongBytes) ==
          rows);  // an even number of alltoalls over the same groups is a copy
  }
  CHECK(were_queued);
}

TEST(Transfers_WaitForPesThatReorderBlocks) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  pidcomm_options reordering{};
  reordering.technique = PIDCOMM_TECHNIQUE_PR_IM;
  reordering.scratch_offset = 8 << 20;
  Bytes rows(64 * kLongBytes);
  for (std::uint64_t turn = 0; turn < 5; ++turn) {
    verify::fill_distinct(20 + turn, kLongBytes, rows);
    CHECK_EQ(pidcomm_write(cube.get(), 0, kLongBytes, rows.data()), +PIDCOMM_OK);
    pidcomm_pending *first = start(cube, alltoall_of(kLongBytes, 0, 1 << 20), reordering);
    pidcomm_pending *second = start(cube, alltoall_of(kLongBytes, 1 << 20, 2 << 20), reordering);
    before_sdk(cube);
    CHECK(cube.read(2 << 20, kLongBytes) == rows);  // by dpu_push_xfer
    CHECK_EQ(pidcomm_wait(&first, nullptr), +PIDCOMM_OK);
    CHECK_EQ(pidcomm_wait(&second, nullptr), +PIDCOMM_OK);
  }
}

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
  Bytes rows(128 * kLongBytes);
  verify::fill_distinct(13, kLongBytes, rows);
  CHECK_EQ(pidcomm_write(cube.get(), 0, kLongBytes, rows.data()), +PIDCOMM_OK);
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
  Bytes rows(64 * kRow), window(64 * 64);
  verify::fill_distinct(17, kRow, rows);
  CHECK_EQ(pidcomm_write(cube.get(), 0, kRow, rows.data()),
           +PIDCOMM_OK);  // no program is loaded, so the heap is at 0
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

#ifdef PIDCOMM_TEST_SDK_ACCESS  // otherwise, threads of the emulator carry out the calls
/// A thread that ends during fork may leave locks of the C library or of a sanitizer locked in the
/// child process.
TEST(DestroyedHypercube_HasNoThreadThatEndsDuringFork) {
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
#endif

TEST(Errors_ComeBeforeTheCallStarts) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  int is_done = 0;
  pidcomm_pending *pending = reinterpret_cast<pidcomm_pending *>(&is_done);
  CHECK_EQ(irun(cube.get(), request::alltoall("10", 12, 0, 0, PIDCOMM_INT32), &pending),
           +PIDCOMM_ERR_SIZE);
  CHECK(pending == nullptr);
  CHECK_EQ(irun(cube.get(), request::alltoall("10", 64, 0, 0, PIDCOMM_INT32), nullptr),
           +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(irun(nullptr, request::alltoall("10", 64, 0, 0, PIDCOMM_INT32), &pending),
           +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_irun(cube.get(), nullptr, nullptr, &pending), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_wait(nullptr, nullptr), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_test(nullptr, &is_done, nullptr), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_test(&pending, nullptr, nullptr), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_sync(nullptr), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_wait(&pending, nullptr), +PIDCOMM_OK);  // nothing to wait for
  CHECK_EQ(pidcomm_test(&pending, &is_done, nullptr), +PIDCOMM_OK);
  CHECK_EQ(is_done, 1);
}

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

TEST(PendingOfCpp_WaitsInItsDestructor) {
  machine::power_up(1);
  const pidcomm::DpuSet set(64);
  pidcomm::Hypercube cube(set.get(), {8, 8});
  {
    const pidcomm::Pending forgotten = cube.irun(alltoall_of(kLongBytes, 0, 1 << 20), slow());
    pidcomm::Pending moved = cube.irun(alltoall_of(kLongBytes, 0, 1 << 20));
    moved = cube.irun(alltoall_of(kLongBytes, 0, 2 << 20));
    CHECK(moved.wait().seconds_total > 0);
    CHECK(moved.test());
  }
}
