// Collectives on several threads, in callbacks of their set, after fork, and after asynchronous
// work of the set.
#include <dpu_program.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "collective_cases.h"
#include "pidcomm/pidcomm.hpp"

namespace {

using namespace collective_cases;

/// Runs `body(i)` in `count` threads at once and rethrows the first failure.
template <class Body>
void in_threads(int count, const Body &body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&body, &errors, i] {
        try {
          body(i);
        } catch (...) {
          errors[static_cast<std::size_t>(i)] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr &error : errors)
    if (error) std::rethrow_exception(error);
}

TEST(HypercubesOfDifferentSets_RunInParallel) {
  machine::power_up(2);
  const DpuSet sets[] = {DpuSet::of_ranks(1), DpuSet::of_ranks(1)};
  const Hypercube cubes[] = {{sets[0], {8, 8}}, {sets[1], {5, 7}}};
  in_threads(2, [&](int i) {
    std::uint64_t seed = 100u * static_cast<unsigned>(i);
    for (int round = 0; round < (effort::is_small() ? 1 : 8); ++round)
      for (int collective : kCollectives)
        for (const char *mask : {"10", "01", "11"}) {
          const std::uint32_t group_pes = verify::groups_of(cubes[i].axis_len(), mask).group_pes;
          Case c = make_case(collective, cubes[i].axis_len(), mask,
                             bytes_for_blocks(collective, group_pes, 72),
                             {PIDCOMM_INT32, PIDCOMM_SUM}, ++seed);
          place(c, 64, false);
          c.options.threads = 1 + round % 2;
          machine::run_case(cubes[i], c);
        }
  });
}

TEST(CallsOnTheHypercubesOfOneSet_AreSerialised) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cubes[] = {{set, {8, 8}}, {set, {8, 8}}};
  const verify::Problem problem{PIDCOMM_ALLTOALL, {8, 8}, "01", 8 * 1024, PIDCOMM_INT32, 0};
  Bytes before(verify::rows_before(problem).bytes());
  verify::fill_distinct(1, problem.bytes, before);
  constexpr std::size_t kStep = 1 << 16;
  for (std::size_t i = 0; i < 4; ++i) cubes[0].write(i * kStep, problem.bytes, before);
  in_threads(4, [&](int i) {
    const std::size_t src = static_cast<std::size_t>(i) * kStep;
    const int technique = i < 2 ? PIDCOMM_TECHNIQUE_TILE
                                : PIDCOMM_TECHNIQUE_PR;  // `pr` loads and launches a PE program
    const pidcomm_options options = {sizeof options, technique, 0, 0, 0, src + kStep * 3 / 4};
    const pidcomm_request request = {sizeof request,  PIDCOMM_ALLTOALL, "01", problem.bytes, src,
                                     src + kStep / 2, nullptr,          0,    PIDCOMM_INT32, 0};
    for (int round = 0; round < 20; ++round)
      if (pidcomm_run(cubes[i % 2].get(), &request, &options, nullptr) != PIDCOMM_OK)
        machine::fail(pidcomm_last_error());
  });
  for (std::size_t i = 0; i < 4; ++i)
    CHECK_EQ(
        verify::check(problem, before, cubes[1].read(i * kStep + kStep / 2, problem.bytes)).first,
        "");
}

TEST(DisjointHypercubesOfOneSet_RunInThreads) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const pidcomm::Hypercube cubes[] = {{set.get(), {8, 4}},
                                      {set.get(), {5, 7}, 32},
                                      {set.get(), {4, 4}, 72},
                                      {set.get(), {3, 13}, 88}};
  const Axes shapes[] = {{8, 4}, {5, 7}, {4, 4}, {3, 13}};
  in_threads(4, [&](int i) {
    pidcomm_hypercube *const cube = cubes[i].get();
    for (int round = 0; round < (effort::is_small() ? 2 : 20); ++round)
      for (const std::string mask : {"10", "01"}) {
        const std::uint32_t group_pes = verify::groups_of(shapes[i], mask).group_pes;
        for (const int collective : {PIDCOMM_ALLTOALL, PIDCOMM_ALLREDUCE}) {
          const verify::Problem problem{collective,        shapes[i],     mask,
                                        72ull * group_pes, PIDCOMM_INT64, PIDCOMM_SUM};
          Bytes before(verify::rows_before(problem).bytes());
          verify::fill_distinct(static_cast<unsigned>(100 * i + round), problem.bytes, before);
          Bytes after(before.size());
          pidcomm_options options{};
          // `pr` loads and launches a PE program on all PEs of the set.
          if (i % 2 == 0 && round % 4 == 0) options.technique = PIDCOMM_TECHNIQUE_CONVENTIONAL;
          if (i % 2 == 0 && round % 4 == 1 && collective == PIDCOMM_ALLTOALL) {
            options.technique = PIDCOMM_TECHNIQUE_PR;
            options.scratch_offset = 1 << 20;
          }
          pidcomm_request request{};
          request.collective = collective;
          request.mask = mask.c_str();
          request.bytes = problem.bytes;
          request.dst = 1 << 16;
          request.type = PIDCOMM_INT64;
          request.op = PIDCOMM_SUM;
          if (pidcomm_write(cube, 0, problem.bytes, before.data()) != PIDCOMM_OK ||
              pidcomm_run(cube, &request, &options, nullptr) != PIDCOMM_OK ||
              pidcomm_read(cube, 1 << 16, problem.bytes, after.data()) != PIDCOMM_OK)
            machine::fail(pidcomm_last_error());
          CHECK_EQ(verify::check(problem, before, after).first, "");
        }
      }
  });
}

/// Through the SDK's rank access, a collective in a callback is an error.
TEST(CallbackOfASet_MayCallItsOwnHypercubeWhileAnotherCallWaits) {
  if (is_over_sdk_access()) return;
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube main_cube(set, {64}), own_cube(set, {64});
  struct Call {
    pidcomm_hypercube *cube;
    std::string sentence = "not called";
  } call = {own_cube.get()};
  const auto callback = [](struct dpu_set_t, uint32_t, void *argument) {
    auto *const it = static_cast<Call *>(argument);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(100));  // the other call waits for this callback
    pidcomm_alltoall(it->cube, "1", 512, 0, 4096, PIDCOMM_INT32);
    it->sentence = pidcomm_last_error();
    return DPU_OK;
  };
  CHECK_EQ(dpu_callback(
               set.get(), callback, &call,
               static_cast<dpu_callback_flags_t>(DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL)),
           DPU_OK);
  CHECK_EQ(pidcomm_alltoall(main_cube.get(), "1", 512, 8192, 16384, PIDCOMM_INT32), +PIDCOMM_OK);
  CHECK_EQ(call.sentence, "");
}

TEST(CallbackOfASet_MayUseAnotherSetWhileACollectiveLoadsItsProgram) {
  if (is_over_sdk_access()) return;
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(1), other_set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8}), other(other_set, {8, 8});
  const auto callback = [](struct dpu_set_t, uint32_t, void *other_cube) {
    const int status = pidcomm_alltoall(static_cast<pidcomm_hypercube *>(other_cube), "10", 64, 0,
                                        4096, PIDCOMM_INT32);
    return status == PIDCOMM_OK ? DPU_OK : DPU_ERR_INTERNAL;
  };
  std::atomic<bool> has_ended = false;
  std::atomic<int> failures = 0;
  std::thread caller([&] {
    for (unsigned i = 0; !has_ended; ++i) {
      failures += dpu_callback(set.get(), callback, other.get(),
                               static_cast<dpu_callback_flags_t>(
                                   DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL)) != DPU_OK;
      std::this_thread::sleep_for(std::chrono::microseconds(i * 37 % 300));
    }
  });
  const pidcomm_request request = pidcomm::request::alltoall("10", 64, 0, 65536, PIDCOMM_INT32);
  pidcomm_options options{};
  options.technique = PIDCOMM_TECHNIQUE_PR;
  options.scratch_offset = 1 << 20;
  for (int round = 0; round < 100; ++round) {
    failures += dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr) !=
                DPU_OK;  // so that the collective loads its program again
    failures += pidcomm_run(cube.get(), &request, &options, nullptr) != PIDCOMM_OK;
  }
  has_ended = true;
  caller.join();
  CHECK_EQ(dpu_sync(set.get()), DPU_OK);
  CHECK_EQ(failures.load(), 0);
}

#ifndef __SANITIZE_THREAD__  // TSan supports no threads in the child of a process with threads
TEST(ChildOfFork_CanRunACollective) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  constexpr std::size_t kBytes = 8 * 1024, kDst = 1 << 16;
  Bytes before(cube.rows() * kBytes);
  verify::fill_distinct(3, kBytes, before);
  cube.write(0, kBytes, before);
  const pidcomm_options options = {sizeof(pidcomm_options), 0, 0, 4, 0, 0};
  const auto result = [&](std::size_t dst) {
    Bytes rows(before.size());
    CHECK_EQ(machine::run(cube, pidcomm::request::alltoall("10", kBytes, 0, dst, PIDCOMM_INT32),
                          options),
             +PIDCOMM_OK);
    CHECK_EQ(pidcomm_read(cube.get(), dst, kBytes, rows.data()), +PIDCOMM_OK);
    return rows;
  };
  const Bytes of_parent = result(kDst);
  const pid_t child = fork();
  if (child == 0) {
    bool is_same = false;
    try {
      is_same = result(2 * kDst) == of_parent;
    } catch (...) {
    }
    _exit(is_same ? 0 : 1);
  }
  CHECK(child > 0);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
  CHECK(result(3 * kDst) == of_parent);
}
#endif

TEST(Collective_WaitsForEarlierAsynchronousTransfersOfItsRanks) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  const verify::Problem problem{
      PIDCOMM_ALLTOALL, {8, 8}, "10", std::size_t{8} * (effort::is_small() ? 1024 : 16384),
      PIDCOMM_INT32,    0};
  Bytes before(verify::rows_before(problem).bytes());
  verify::fill_distinct(2, problem.bytes, before);
  for (std::size_t pe = 0; pe < 64; ++pe)
    DPU_OK_OR_FAIL(dpu_prepare_xfer(cube.dpu(pe), &before[pe * problem.bytes]));
  DPU_OK_OR_FAIL(dpu_push_xfer(set.get(), DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0,
                               problem.bytes, DPU_XFER_ASYNC));
  CHECK_EQ(pidcomm_alltoall(cube.get(), "10", problem.bytes, 0, 1 << 20, PIDCOMM_INT32),
           +PIDCOMM_OK);
  CHECK_EQ(verify::check(problem, before, cube.read(1 << 20, problem.bytes)).first, "");
}

TEST(Collective_WaitsForRunningPesOfItsRanks) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  const verify::Problem problem{PIDCOMM_ALLREDUCE, {8, 8}, "11", 256, PIDCOMM_INT32, PIDCOMM_SUM};
  Bytes before(verify::rows_before(problem).bytes());
  verify::fill_distinct(2, problem.bytes, before);
  cube.write(0, problem.bytes, before);
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(0)));
  std::atomic<bool> has_ended{false};
  {
    const std::jthread ends_the_run([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      has_ended = true;
      dpuemu_end_run(set.rank(0), false, 0);
    });
    CHECK_EQ(
        pidcomm_allreduce(cube.get(), "11", problem.bytes, 0, 4096, PIDCOMM_INT32, PIDCOMM_SUM),
        +PIDCOMM_OK);
    CHECK(has_ended);
  }
  CHECK_EQ(verify::check(problem, before, cube.read(4096, problem.bytes)).first, "");
}

}  // namespace
