// Errors of hypercubes, sets and devices: the status, and no changed byte.
#include <pidcomm/batch.h>

#include <chrono>
#include <thread>

#include "error_cases.h"
#include "interposed_sdk.h"

namespace {

using namespace error_cases;

// ---- hypercubes and sets

int create(const DpuSet &set, const Axes &axis_len, std::uint32_t first = 0) {
  pidcomm_hypercube *cube = nullptr;
  const std::uint32_t none = 0;
  const std::uint32_t *len = axis_len.empty() ? &none : axis_len.data();
  const int status = pidcomm_hypercube_create_at(
      set.get(), first, static_cast<std::uint32_t>(axis_len.size()), len, &cube);
  if (status == PIDCOMM_OK) {
    pidcomm_hypercube_destroy(cube);
  } else {
    CHECK(cube == nullptr);
  }
  return status;
}

TEST(Hypercube_MustHaveAxesAndNoMorePesThanTheSet) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(1);
  const std::vector<int> shape = {PIDCOMM_ERR_SHAPE};
  check_error(create(set, {}), shape, {"0"}, "no axis");
  check_error(create(set, Axes(17, 1)), shape, {"17", "16"}, "17 axes");
  check_error(create(set, {8, 0}), shape, {"0"}, "length 0");
  check_error(create(set, {0}), shape, {"0"}, "only length 0");
  check_error(create(set, {65}), shape, {"65", "64"}, "65 PEs of 64");
  check_error(create(set, {8, 9}), shape, {"72", "64"}, "72 PEs of 64");
  check_error(create(set, {65536, 65536}), shape, {"4294967296"}, "product 2^32");
  check_error(create(set, {65536, 65536, 65536, 65536}), shape, {"axis"}, "product 2^64");
  check_error(create(set, {UINT32_MAX, UINT32_MAX, UINT32_MAX}), shape, {"axis"},
              "product of largest lengths");
  check_error(create(set, {1u << 31, 2, 0}), shape, {}, "product 2^32 times 0");
  CHECK_EQ(create(set, {64}), +PIDCOMM_OK);
  Axes sixteen(16, 1);
  sixteen[3] = sixteen[15] = 8;
  CHECK_EQ(create(set, sixteen), +PIDCOMM_OK);

  const std::uint32_t len[] = {8, 8};
  pidcomm_hypercube *cube = nullptr;
  check_error(pidcomm_hypercube_create(set.get(), 2, nullptr, &cube), {PIDCOMM_ERR_ARGUMENT}, {},
              "null lengths");
  check_error(pidcomm_hypercube_create(set.get(), 2, len, nullptr), {PIDCOMM_ERR_ARGUMENT}, {},
              "null cube");
  struct dpu_set_t nothing{};
  check_error(pidcomm_hypercube_create(nothing, 2, len, &cube), {PIDCOMM_ERR_SET}, {}, "empty set");
}

TEST(Hypercube_BeginsAtAMultipleOf8AndEndsInTheSet) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_dpus(68);
  CHECK_EQ(create(set, {8, 7}, 8), +PIDCOMM_OK);
  for (const std::uint32_t first : {1u, 4u, 65u, UINT32_MAX})
    check_error(create(set, {8}, first), {PIDCOMM_ERR_ARGUMENT},
                {std::to_string(first), "multiple of 8"}, "first PE inside an entangled group");
  check_error(create(set, {8, 8}, 8), {PIDCOMM_ERR_SHAPE}, {"8x8 from pe 8 on", "72", "68"},
              "4 PEs too many");
  check_error(create(set, {1}, UINT32_MAX - 7), {PIDCOMM_ERR_SHAPE}, {"4294967289", "68"},
              "first PE far outside");
  std::uint32_t usable = 0;
  CHECK_EQ(pidcomm_usable_pes(set.get(), nullptr, 0, &usable), +PIDCOMM_OK);
  const std::uint32_t last = usable / 8 * 8;
  if (last != usable) CHECK_EQ(create(set, {usable - last}, last), +PIDCOMM_OK);
  check_error(create(set, {usable - last + 1}, last), {PIDCOMM_ERR_SHAPE},
              {std::to_string(usable + 1), "68"}, "one PE too many");
  const std::uint32_t length = 8;
  check_error(pidcomm_hypercube_create_at(set.get(), 8, 1, &length, nullptr),
              {PIDCOMM_ERR_ARGUMENT}, {"cube"}, "null cube");
}

TEST(Hypercube_NamesTheRankAndLaneOfDisabledPes) {
  machine::power_up(2, {{1, 3, 2}});
  const DpuSet set = DpuSet::of_ranks(2);
  CHECK_EQ(create(set, {8, 15}), +PIDCOMM_OK);
  check_error(create(set, {8, 16}), {PIDCOMM_ERR_SHAPE}, {"128", "120", "rank 1", "chip 3"},
              "one lane missing");
  CHECK_EQ(create(set, {123}), +PIDCOMM_OK);  // ends in lanes 0 to 2 of that EG
  check_error(create(set, {124}), {PIDCOMM_ERR_SHAPE}, {"124", "rank 1", "chip 3"},
              "the missing lane needed last");
}

TEST(FreedSet_IsRefusedByEveryCallAlsoWhenItsRanksAreAllocatedAgain) {
  machine::power_up(1);
  DpuSet set = DpuSet::of_ranks(1);
  const struct dpu_set_t copy = set.get();
  const std::uint32_t len[] = {8, 8};
  pidcomm_hypercube *cube = nullptr;
  CHECK_EQ(pidcomm_hypercube_create(copy, 2, len, &cube), +PIDCOMM_OK);
  set.free();
  const std::vector<int> status = {PIDCOMM_ERR_SET};
  Bytes host(64 * 64);
  const auto check_all = [&](const std::string &when) {
    check_error(pidcomm_alltoall(cube, "10", 64, 0, 4096, PIDCOMM_INT32), status, {},
                "alltoall " + when);
    check_error(pidcomm_allreduce(cube, "10", 0, 0, 4096, PIDCOMM_INT32, PIDCOMM_SUM), status, {},
                "allreduce of no bytes " + when);
    check_error(pidcomm_scatter(cube, "10", 64, host.data(), host.size(), 0, PIDCOMM_INT32), status,
                {}, "scatter " + when);
    check_error(pidcomm_write(cube, 0, 64, host.data()), status, {}, "write " + when);
    check_error(pidcomm_read(cube, 0, 64, host.data()), status, {}, "read " + when);
    std::size_t window = 77;
    check_error(pidcomm_symbol_window(cube, "variable", 0, 8, &window), status, {},
                "symbol window " + when);
    CHECK_EQ(window, std::size_t{77});
    check_error(pidcomm_fill_variables(cube, nullptr), status, {}, "variables " + when);
    pidcomm_hypercube *other = nullptr;
    check_error(pidcomm_hypercube_create(copy, 2, len, &other), status, {}, "create " + when);
    std::uint32_t count = 77;
    int is_replaced = 77;
    check_error(pidcomm_usable_pes(copy, nullptr, 0, &count), status, {}, "usable PEs " + when);
    check_error(pidcomm_program_replaced(copy, &is_replaced), status, {}, "program " + when);
    CHECK(count == 77 && is_replaced == 77);
    const pidcomm_options conventional = {
        sizeof(pidcomm_options), PIDCOMM_TECHNIQUE_CONVENTIONAL, 0, 0, 0, 0};
    const pidcomm_request alltoall = pidcomm::request::alltoall("10", 64, 0, 4096, PIDCOMM_INT32);
    check_error(pidcomm_run(cube, &alltoall, &conventional, nullptr), status, {},
                "conventional " + when);
  };
  check_all("after dpu_free");
  {
    const DpuSet next = DpuSet::of_ranks(1);
    const Hypercube cube(next, {8, 8});
    const machine::Picture mram = [&] {
      machine::Picture picture;
      picture.cover(0, 8192);
      picture.poison(cube, 1);
      picture.write(cube);
      return picture;
    }();
    check_all("after the ranks were allocated again");
    CHECK_EQ(mram.read(cube).difference(cube, mram), "");
  }
  pidcomm_hypercube_destroy(cube);
}

// ---- devices

TEST(FaultOfAPe_IsReportedAndNothingMoves) {
  Fixture fixture;
  constexpr std::uint32_t kChip = 3, kBank = 2;  // PE 19
  struct dpu_rank_t *rank = fixture.set.rank(0);
  for (int technique : {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL})
    for (int collective = kFirst; collective <= kLast; ++collective)
      for (std::size_t bytes : {Fixture::kBytes, std::size_t{0}}) {
        DPU_OK_OR_FAIL(dpuemu_begin_run(rank));
        DPU_OK_OR_FAIL(dpuemu_end_run(rank, true, kChip * 8 + kBank));
        pidcomm_request request = fixture.good(collective);
        request.bytes = bytes;
        request.host_bytes = Fixture::host_bytes(collective, bytes);
        pidcomm_options options{};
        options.technique = technique;
        if (bytes != 0)
          check_error(pidcomm_run(fixture.cube.get(), &request, &options, nullptr),
                      {PIDCOMM_ERR_DEVICE}, {"rank 0", "chip 3", "bank 2", "(pe 19) is"}, "fault");
        else
          pidcomm_run(fixture.cube.get(), &request, &options,
                      nullptr);  // no bytes: the call may skip the device, but must not hang
        DPU_OK_OR_FAIL(dpuemu_begin_run(rank));  // the next run clears the fault
        DPU_OK_OR_FAIL(dpuemu_end_run(rank, false, 0));
        fixture.unchanged.check();
      }
  pidcomm_request request = fixture.good(PIDCOMM_ALLTOALL);
  CHECK_EQ(pidcomm_run(fixture.cube.get(), &request, nullptr, nullptr), +PIDCOMM_OK);
}

TEST(FaultThatTheSdkReturnedBefore_IsReportedAgain) {
  Fixture fixture;
  const interposed::FaultsHaveBeenReturned returned_before;
  const std::vector<std::string> words = {"waiting for earlier work", "rank 0", "chip 3", "bank 2",
                                          "(pe 19) is"};
  DPU_OK_OR_FAIL(dpuemu_begin_run(fixture.set.rank(0)));
  DPU_OK_OR_FAIL(dpuemu_end_run(fixture.set.rank(0), true, 3 * 8 + 2));
  for (int technique :
       {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL, PIDCOMM_TECHNIQUE_PR})
    for (int collective = kFirst; collective <= kLast; ++collective) {
      const pidcomm_request request = fixture.good(collective);
      pidcomm_options options{};
      options.technique = technique;
      if (technique == PIDCOMM_TECHNIQUE_PR) options.scratch_offset = 2 * kMiB;
      check_error(pidcomm_run(fixture.cube.get(), &request, &options, nullptr),
                  {PIDCOMM_ERR_DEVICE}, words, "a fault returned before");
    }
  check_error(pidcomm_read(fixture.cube.get(), kSrc, 8, fixture.host.data()), {PIDCOMM_ERR_DEVICE},
              words, "read, a fault returned before");
  CHECK(returned_before.count() > 0);
  DPU_OK_OR_FAIL(dpuemu_begin_run(fixture.set.rank(0)));
  DPU_OK_OR_FAIL(dpuemu_end_run(fixture.set.rank(0), false, 0));
  fixture.unchanged.check();
}

TEST(ReorderProgramThatCannotBeLoaded_IsReportedAndNothingMoves) {
  Fixture fixture;
  pidcomm_request request = fixture.good(PIDCOMM_ALLREDUCE);
  pidcomm_options options{};
  options.technique = PIDCOMM_TECHNIQUE_PR_IM;
  options.scratch_offset = 2 * kMiB;
  {
    const interposed::LoadsFail fail;
    check_error(pidcomm_run(fixture.cube.get(), &request, &options, nullptr), {PIDCOMM_ERR_DEVICE},
                {"loading the reorder program", "no window has changed", "time"},
                "a load that fails");
  }
  fixture.unchanged.check();
  CHECK_EQ(pidcomm_run(fixture.cube.get(), &request, &options, nullptr), +PIDCOMM_OK);
}

TEST(FaultOfAPe_StopsABatchBeforeAByteMoves) {
  Fixture fixture;
  struct dpu_rank_t *rank = fixture.set.rank(0);
  const std::vector<pidcomm_request> requests = {fixture.good(PIDCOMM_ALLTOALL),
                                                 fixture.good(PIDCOMM_REDUCE)};
  pidcomm_options conventional{};
  conventional.technique = PIDCOMM_TECHNIQUE_CONVENTIONAL;
  for (const std::vector<pidcomm_options> &options :
       {std::vector<pidcomm_options>(2), std::vector<pidcomm_options>(2, conventional)}) {
    DPU_OK_OR_FAIL(dpuemu_begin_run(rank));
    DPU_OK_OR_FAIL(dpuemu_end_run(rank, true, 3 * 8 + 2));
    check_error(pidcomm_batch(fixture.cube.get(), requests.data(), 2, options.data(), nullptr),
                {PIDCOMM_ERR_DEVICE}, {"rank 0", "chip 3", "bank 2", "(pe 19) is"},
                "a fault before");
    DPU_OK_OR_FAIL(dpuemu_begin_run(rank));  // the ranks are free for launches
    DPU_OK_OR_FAIL(dpuemu_end_run(rank, false, 0));
    fixture.unchanged.check();
  }
  CHECK_EQ(pidcomm_batch(fixture.cube.get(), requests.data(), 2, nullptr, nullptr), +PIDCOMM_OK);
}

TEST(FailureInsideABatch_NamesItsRequestAndKeepsEarlierResults) {
  Fixture fixture;
  const std::vector<pidcomm_request> requests = {fixture.good(PIDCOMM_ALLTOALL),
                                                 fixture.good(PIDCOMM_ALLREDUCE),
                                                 fixture.good(PIDCOMM_REDUCE)};
  std::vector<pidcomm_options> options(3);
  options[1].technique = PIDCOMM_TECHNIQUE_PR_IM;
  options[1].scratch_offset = 2 * kMiB;
  machine::Picture mram;
  mram.cover(kSrc, Fixture::kBytes);
  mram.cover(kDst, Fixture::kBytes);
  machine::Picture before = mram.read(fixture.cube);
  CHECK_EQ(pidcomm_run(fixture.cube.get(), requests.data(), nullptr, nullptr), +PIDCOMM_OK);
  const machine::Picture want = mram.read(fixture.cube);
  before.write(fixture.cube);
  const Bytes host = fixture.host;
  {
    const interposed::LoadsFail fail;
    check_error(pidcomm_batch(fixture.cube.get(), requests.data(), 3, options.data(), nullptr),
                {PIDCOMM_ERR_DEVICE}, {"request 1: ", "loading the reorder program"},
                "a load that fails");
  }
  CHECK_EQ(mram.read(fixture.cube).difference(fixture.cube, want), "");
  CHECK(host == fixture.host);  // request 2 did not run
  CHECK_EQ(pidcomm_batch(fixture.cube.get(), requests.data(), 3, options.data(), nullptr),
           +PIDCOMM_OK);
  CHECK(host != fixture.host);
}

TEST(RunThatEndsInFault_IsReportedByTheCollectiveThatWaitsForIt) {
  Fixture fixture;
  struct dpu_rank_t *rank = fixture.set.rank(0);
  for (int technique : {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL}) {
    DPU_OK_OR_FAIL(dpuemu_begin_run(rank));
    {
      const std::jthread ends_the_run([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        dpuemu_end_run(rank, true, 0);
      });
      pidcomm_request request = fixture.good(PIDCOMM_ALLREDUCE);
      pidcomm_options options{};
      options.technique = technique;
      check_error(pidcomm_run(fixture.cube.get(), &request, &options, nullptr),
                  {PIDCOMM_ERR_DEVICE}, {"rank 0", "(pe 0) is"}, "fault while waiting");
    }
    DPU_OK_OR_FAIL(dpuemu_begin_run(rank));
    DPU_OK_OR_FAIL(dpuemu_end_run(rank, false, 0));
    fixture.unchanged.check();
  }
}

TEST(FaultInASecondRank_IsFoundBeforeTheFirstRankChanges) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 16});
  Bytes host(8);
  const Unchanged unchanged(cube, host);
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(1)));
  DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(1), true, 0));
  check_error(pidcomm_alltoall(cube.get(), "10", 64, kSrc, kDst, 4), {PIDCOMM_ERR_DEVICE},
              {"rank 1"}, "fault in rank 1");
  const Bytes rows(128 * 64);
  check_error(pidcomm_write(cube.get(), kDst, 64, rows.data()), {PIDCOMM_ERR_DEVICE}, {"rank 1"},
              "write, fault in rank 1");
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(1)));
  DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(1), false, 0));
  unchanged.check();
}

TEST(FailedCalls_LeaveTheRankFreeForLaunches) {
  Fixture fixture;
  pidcomm_alltoall(fixture.cube.get(), "1", 64, 0, 4096, PIDCOMM_INT32);
  pidcomm_alltoall(fixture.cube.get(), "101", 512, 0, 4096, PIDCOMM_INT32);
  DPU_OK_OR_FAIL(dpuemu_begin_run(
      fixture.set.rank(0)));  // refused with DPU_ERR_MRAM_BUSY while a window is open
  DPU_OK_OR_FAIL(dpuemu_end_run(fixture.set.rank(0), true, 5));
  pidcomm_alltoall(fixture.cube.get(), "101", 512, 0, 4096, PIDCOMM_INT32);
  DPU_OK_OR_FAIL(dpuemu_begin_run(fixture.set.rank(0)));
  DPU_OK_OR_FAIL(dpuemu_end_run(fixture.set.rank(0), false, 0));
}

TEST(LastError_BelongsToItsThreadAndIsEmptyAfterSuccess) {
  Fixture fixture;
  CHECK(pidcomm_alltoall(fixture.cube.get(), "1", 64, 0, 4096, PIDCOMM_INT32) != PIDCOMM_OK);
  const std::string sentence = pidcomm_last_error();
  CHECK(!sentence.empty());
  std::string in_other = "unset";
  std::thread([&] { in_other = pidcomm_last_error(); }).join();
  CHECK_EQ(in_other, "");
  std::thread([&] {
    pidcomm_alltoall(fixture.cube.get(), "1111", 64, 0, 4096, PIDCOMM_INT32);
  }).join();
  CHECK_EQ(std::string(pidcomm_last_error()), sentence);
  CHECK_EQ(pidcomm_alltoall(fixture.cube.get(), "101", 512, 0, 4096, PIDCOMM_INT32), +PIDCOMM_OK);
  CHECK_EQ(std::string(pidcomm_last_error()), "");
}

}  // namespace
