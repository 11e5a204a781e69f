// Non-blocking calls (pidcomm_irun), pidcomm_wait, pidcomm_test.
#include <dpu_program.h>

#include <cstring>

#include "every_collective.h"
#include "nonblocking_calls.h"

using namespace nonblocking_calls;
using machine::Case;
using machine::start_and_poll;
using machine::start_and_wait;

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
  const Bytes rows = write_distinct(cube, 7, kLongBytes);
  Bytes back(64 * kLongBytes);
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
  write_distinct(cube, 9, kLongBytes);
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
  if (is_over_sdk_access()) CHECK_EQ(pidcomm_sync(cube), +PIDCOMM_OK);
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
  for (std::uint64_t turn = 0; turn < 5; ++turn) {
    const Bytes rows = write_distinct(cube, 20 + turn, kLongBytes);
    pidcomm_pending *first = start(cube, alltoall_of(kLongBytes, 0, 1 << 20), reordering);
    pidcomm_pending *second = start(cube, alltoall_of(kLongBytes, 1 << 20, 2 << 20), reordering);
    before_sdk(cube);
    CHECK(cube.read(2 << 20, kLongBytes) == rows);  // by dpu_push_xfer
    CHECK_EQ(pidcomm_wait(&first, nullptr), +PIDCOMM_OK);
    CHECK_EQ(pidcomm_wait(&second, nullptr), +PIDCOMM_OK);
  }
}

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
