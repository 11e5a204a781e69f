// Streams have the results of their steps one after another.
#include <algorithm>
#include <map>
#include <tuple>

#include "interposed_sdk.h"
#include "stream_cases.h"

namespace {

using namespace stream_cases;

std::vector<pidcomm_stream_piece> timeline_of(const pidcomm_stream *stream) {
  std::size_t count = 0;
  ok(pidcomm_stream_timeline(stream, nullptr, 0, &count));
  std::vector<pidcomm_stream_piece> pieces(count);
  ok(pidcomm_stream_timeline(stream, pieces.data(), count, &count));
  return pieces;
}

TEST(RandomStreams_HaveTheBytesOfTheirStepsOneAfterAnother) {
  Setting setting;
  Grid grid("random streams");
  for (unsigned seed = 0; seed < (effort::is_full() ? 2000u : 120u); ++seed)
    grid.run([&] { run_random(setting, seed); });
  grid.finish();
}

TEST(PiecesOfATimeline_DoNotShareRanksAtTheSameTime) {
  Setting setting;
  setting.reset();
  std::mt19937 random(3);
  const StreamPointer stream = stream_of(setting.set, kRanks);
  std::vector<Step> steps[4];
  for (std::vector<Step> &own : steps) {
    own = random_steps(setting, random);
    record(stream.get(), own, true);
  }
  pidcomm_stream_trace trace{};
  ok(pidcomm_stream_execute(stream.get(), &trace));
  const std::vector<pidcomm_stream_piece> pieces = timeline_of(stream.get());
  CHECK_EQ(pieces.size(), trace.pieces);
  CHECK(trace.seconds_setup > 0 && trace.seconds_setup <= pieces[0].begin_s);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    CHECK(pieces[i].end_s <= trace.seconds_total);
    for (std::size_t j = 0; j < i; ++j) {
      const pidcomm_stream_piece &a = pieces[j], &b = pieces[i];
      CHECK(a.begin_s <= b.begin_s);
      const bool shares =
          a.first_rank < b.first_rank + b.ranks && b.first_rank < a.first_rank + a.ranks;
      const bool are_passes = a.kind != PIDCOMM_STREAM_LAUNCH && b.kind != PIDCOMM_STREAM_LAUNCH;
      if (shares || are_passes) CHECK(a.end_s <= b.begin_s || b.end_s <= a.begin_s);
    }
  }
}

TEST(HostPasses_RunWhileOtherRanksCompute) {
  Setting setting;
  setting.reset();
  const StreamPointer stream = stream_of(setting.set, kRanks);
  std::vector<Step> steps(2);
  steps[0].kind = Step::Kind::launch;
  steps[0].job = {0, 0, kBytes, 3, kNoPe};
  steps[1].cube = setting.cube.get();
  steps[1].mask = "110";
  steps[1].request.collective = PIDCOMM_ALLREDUCE;
  steps[1].request.bytes = kBytes;
  steps[1].request.type = PIDCOMM_INT32;
  steps[1].request.op = PIDCOMM_SUM;
  for (int i = 0; i < 3; ++i) record(stream.get(), steps, true);
  pidcomm_stream_trace trace{};
  ok(pidcomm_stream_execute(stream.get(), &trace));
  std::size_t overlaps = 0;
  const std::vector<pidcomm_stream_piece> pieces = timeline_of(stream.get());
  for (const pidcomm_stream_piece &launch : pieces)
    for (const pidcomm_stream_piece &pass : pieces)
      overlaps += launch.kind == PIDCOMM_STREAM_LAUNCH && pass.kind != PIDCOMM_STREAM_LAUNCH &&
                  launch.begin_s < pass.end_s && pass.begin_s < launch.end_s;
  CHECK(overlaps != 0);
  CHECK_EQ(trace.is_mixed, is_over_sdk_access() ? 0u : 1u);
}

TEST(LaunchesRun_WhileTheHostPassOfTheNextRankBegins) {
  Setting setting;
  setting.reset();
  const StreamPointer stream = stream_of(setting.set, kRanks);
  const Job job{0, 0, kBytes, 3, kNoPe};
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLREDUCE;
  request.mask = "110";
  request.bytes = kBytes;
  request.type = PIDCOMM_INT32;
  ok(pidcomm_stream_write(stream.get(), "job", &job, sizeof job));
  ok(pidcomm_stream_run(stream.get(), setting.cube.get(), &request, nullptr, 1));
  ok(pidcomm_stream_launch(stream.get(), nullptr, 0, 1, nullptr));
  const interposed::CallsAreRecorded recorded;
  ok(pidcomm_stream_execute(stream.get(), nullptr));  // the first: passes in recorded order
  const std::vector<interposed::SetCall> calls = recorded.calls();
  std::vector<std::size_t> launches;
  for (std::size_t i = 0; i < calls.size(); ++i)
    if (calls[i].policy) launches.push_back(i);
  CHECK_EQ(launches.size(), std::size_t{kRanks});
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const std::size_t launch = launches[rank];
    CHECK(calls[launch].first_rank == setting.set.rank(rank));
    CHECK_EQ(*calls[launch].policy, is_over_sdk_access() ? DPU_ASYNCHRONOUS : DPU_SYNCHRONOUS);
    if (rank + 1 == kRanks) continue;
    // The pass of the next rank begins with a dpu_sync of this rank.
    CHECK(!calls.at(launch + 1).policy);
    CHECK(calls.at(launch + 1).first_rank == setting.set.rank(rank + 1));
  }
}

TEST(PlanOfAStream_HasTheCutsAndPiecesOfTheNextExecute) {
  Setting setting;
  setting.reset();
  std::mt19937 random(5);
  std::vector<Step> steps = random_steps(setting, random);
  for (const std::uint32_t rank_groups : {0u, 1u, 2u}) {
    const StreamPointer stream = stream_of(setting.set, rank_groups);
    record(stream.get(), steps, true);
    for (int run = 0; run < 5; ++run) {
      pidcomm_stream_trace plan{}, trace{};
      ok(pidcomm_stream_plan(stream.get(), &plan));
      auto planned = timeline_of(stream.get());
      ok(pidcomm_stream_execute(stream.get(), &trace));
      auto ran = timeline_of(stream.get());
      CHECK_EQ(plan.rank_groups, trace.rank_groups);
      CHECK_EQ(plan.parts, trace.parts);
      if (rank_groups != 0) CHECK_EQ(trace.rank_groups, rank_groups);
      if (rank_groups == 0 && run == 0) CHECK_EQ(trace.rank_groups * trace.parts, 1u);
      const auto key = [](const pidcomm_stream_piece &piece) {
        return std::tuple(piece.step, piece.part, piece.first_rank, piece.ranks, piece.kind);
      };
      const auto is_before = [&](const auto &a, const auto &b) { return key(a) < key(b); };
      std::sort(planned.begin(), planned.end(), is_before);
      std::sort(ran.begin(), ran.end(), is_before);
      CHECK_EQ(planned.size(), ran.size());
      for (std::size_t i = 0; i < ran.size(); ++i) CHECK(key(planned[i]) == key(ran[i]));
      if (run != 0) CHECK(plan.seconds_total > 0);
    }
  }
}

TEST(PiecesOfAStream_HaveTheKindsOfTheirSteps) {
  Setting setting;
  setting.reset();
  const StreamPointer stream = stream_of(setting.set, 2);
  const Job job{0, kBytes, kBytes, 3, kNoPe};
  Call call{setting.host[0].data(), setting.host[1].data(), 1, 0};
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLREDUCE;
  request.mask = "111";
  request.bytes = 64;
  request.type = PIDCOMM_INT32;
  ok(pidcomm_stream_write(stream.get(), "job", &job, sizeof job));
  ok(pidcomm_stream_launch(stream.get(), nullptr, 0, 2, "part"));
  ok(pidcomm_stream_run(stream.get(), setting.cube.get(), &request, nullptr, 1));
  ok(pidcomm_stream_call(stream.get(), combine, &call, nullptr, 0));
  ok(pidcomm_stream_execute(stream.get(), nullptr));
  std::map<std::pair<std::size_t, int>, std::size_t> counts;
  for (const pidcomm_stream_piece &piece : timeline_of(stream.get()))
    ++counts[{piece.step, piece.kind}];
  const std::map<std::pair<std::size_t, int>, std::size_t> want = {
      {{0, PIDCOMM_STREAM_WRITE}, 2},
      {{1, PIDCOMM_STREAM_LAUNCH}, 4},
      {{2, PIDCOMM_STREAM_COLLECTIVE}, 4},
      {{2, PIDCOMM_STREAM_COMBINE}, 1},
      {{3, PIDCOMM_STREAM_CALL}, 1}};
  CHECK(counts == want);
}

TEST(TechniquesWithoutAPeProgram_AreCutByRanks) {
  Setting setting;
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLREDUCE;
  request.bytes = kBytes;
  request.dst = kBytes;
  request.type = PIDCOMM_INT32;
  for (const auto &[technique, mask, pieces] : {std::tuple(PIDCOMM_TECHNIQUE_TREE, "110", 4u),
                                                {PIDCOMM_TECHNIQUE_TREE, "111", 1u},
                                                {PIDCOMM_TECHNIQUE_CONVENTIONAL, "111", 9u},
                                                {PIDCOMM_TECHNIQUE_BASELINE, "110", 4u},
                                                {PIDCOMM_TECHNIQUE_RING, "110", 1u}}) {
    pidcomm_options options{};
    options.technique = technique;
    options.scratch_offset = kSlots * kBytes;
    request.mask = mask;
    setting.reset();
    ok(pidcomm_run(setting.cube.get(), &request, &options, nullptr));
    const Picture want = setting.mram.read(setting.cube);
    setting.reset();
    const StreamPointer stream = stream_of(setting.set, 4);
    ok(pidcomm_stream_run(stream.get(), setting.cube.get(), &request, &options, 1));
    pidcomm_stream_trace trace{};
    ok(pidcomm_stream_execute(stream.get(), &trace));
    CHECK_EQ(trace.pieces, pieces);
    CHECK_EQ(setting.mram.read(setting.cube).difference(setting.cube, want), "");
  }
}

TEST(StreamOfASetWithAMissingPe_HasOneRankGroup) {
  power_up(2, {{1, 3, 4}});
  const DpuSet set = DpuSet::of_ranks(2);
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_STREAM_PROGRAM, nullptr));
  pidcomm_stream *none = nullptr;
  check_refused(pidcomm_stream_create(set.get(), 2, &none), PIDCOMM_ERR_SHAPE, "127 PEs");
  const StreamPointer stream = stream_of(set, 0);
  const Job job{0, kBytes, kBytes, 3, kNoPe};
  Bytes host(2 * kBytes);
  Call call{host.data(), host.data() + kBytes, 1, 0};
  ok(pidcomm_stream_write(stream.get(), "job", &job, sizeof job));
  ok(pidcomm_stream_launch(stream.get(), nullptr, 0, 4, "part"));
  ok(pidcomm_stream_call(stream.get(), combine, &call, nullptr, 0));
  for (int run = 0; run < 6; ++run) {
    pidcomm_stream_trace trace{};
    ok(pidcomm_stream_execute(stream.get(), &trace));
    CHECK_EQ(trace.rank_groups, 1u);
  }
}

TEST(FaultOfAPe_EndsTheStreamAndNamesStepAndPe) {
  for (const std::uint32_t pe : {0u, 70u, 255u}) {
    Setting setting;
    setting.reset();
    std::mt19937 random(pe);
    std::vector<Step> steps = random_steps(setting, random);
    Step faulty{};
    faulty.kind = Step::Kind::launch;
    faulty.parts = 2;
    faulty.job = {0, kBytes, kBytes, 3, pe};
    steps.push_back(faulty);
    for (int i = 0; i < 3; ++i) steps.push_back(steps.front());
    const StreamPointer stream = stream_of(setting.set, 2);
    record(stream.get(), steps, true);
    check_refused(pidcomm_stream_execute(stream.get(), nullptr), PIDCOMM_ERR_DEVICE,
                  "(PE " + std::to_string(pe) + ") is in fault");
    check_refused(pidcomm_stream_execute(stream.get(), nullptr), PIDCOMM_ERR_DEVICE, "in fault");
    setting.load();  // clears the fault
    const StreamPointer other = stream_of(setting.set, 2);
    ok(pidcomm_stream_execute(other.get(), nullptr));
  }
}

TEST(WrongArguments_AreRefusedAndRecordNothing) {
  Setting setting;
  setting.reset();
  pidcomm_stream *none = nullptr;
  check_refused(pidcomm_stream_create(setting.set.get(), 3, &none), PIDCOMM_ERR_ARGUMENT,
                "rank_groups (3) must divide the 4 ranks");
  CHECK(none == nullptr);
  const StreamPointer stream = stream_of(setting.set, 2);
  pidcomm_stream *const s = stream.get();
  const pidcomm_access odd{0, 24, 1, 1}, far{kMramBytes, 8, 1, 0};
  check_refused(pidcomm_stream_launch(s, nullptr, 0, 0, nullptr), PIDCOMM_ERR_ARGUMENT,
                "parts is 0");
  check_refused(pidcomm_stream_launch(s, nullptr, 0, 2, nullptr), PIDCOMM_ERR_ARGUMENT,
                "part_variable is null");
  check_refused(pidcomm_stream_launch(s, nullptr, 0, 2, "job"), PIDCOMM_ERR_ARGUMENT, "20 bytes");
  check_refused(pidcomm_stream_launch(s, nullptr, 0, 2, "nothing"), PIDCOMM_ERR_ARGUMENT,
                "nothing");
  check_refused(pidcomm_stream_launch(s, &odd, 1, 2, "part"), PIDCOMM_ERR_SIZE, "(24)");
  check_refused(pidcomm_stream_launch(s, &far, 1, 1, nullptr), PIDCOMM_ERR_WINDOW, "launch");
  check_refused(pidcomm_stream_launch(s, nullptr, 1, 1, nullptr), PIDCOMM_ERR_ARGUMENT, "accesses");
  check_refused(pidcomm_stream_write(s, "job", "12345678901234567890123", 24), PIDCOMM_ERR_SIZE,
                "at most the 20 bytes");
  check_refused(pidcomm_stream_write(s, "job", "123", 3), PIDCOMM_ERR_SIZE, "multiple of 4");
  check_refused(pidcomm_stream_call(s, nullptr, nullptr, nullptr, 0), PIDCOMM_ERR_ARGUMENT,
                "function is null");
  check_refused(pidcomm_stream_call(s, combine, nullptr, nullptr, 1), PIDCOMM_ERR_ARGUMENT,
                "ranges is null");
  const pidcomm_stream_host_access endless{&odd, SIZE_MAX, 1};
  check_refused(pidcomm_stream_call(s, combine, nullptr, &endless, 1), PIDCOMM_ERR_ARGUMENT,
                "beyond the last address");
  check_refused(pidcomm_stream_plan(nullptr, nullptr), PIDCOMM_ERR_ARGUMENT, "stream is null");
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLREDUCE;
  request.mask = "111";
  request.bytes = 24;
  request.type = PIDCOMM_INT32;
  check_refused(pidcomm_stream_run(s, setting.cube.get(), &request, nullptr, 2), PIDCOMM_ERR_SIZE,
                "8 * parts (16)");
  check_refused(pidcomm_stream_run(s, setting.cube.get(), &request, nullptr, 0),
                PIDCOMM_ERR_ARGUMENT, "parts (0)");
  request.collective = PIDCOMM_GATHER;
  check_refused(pidcomm_stream_run(s, setting.cube.get(), &request, nullptr, 1),
                PIDCOMM_ERR_HOST_BUFFER, "host");
  request.collective = PIDCOMM_ALLREDUCE;
  request.type = 99;
  check_refused(pidcomm_stream_run(s, setting.cube.get(), &request, nullptr, 1), PIDCOMM_ERR_TYPE,
                "99");
  const Hypercube half(setting.set, {128});
  request.type = PIDCOMM_INT32;
  request.mask = "1";
  check_refused(pidcomm_stream_run(s, half.get(), &request, nullptr, 1), PIDCOMM_ERR_SHAPE,
                "all 256 PEs");
  pidcomm_stream_trace trace{};
  ok(pidcomm_stream_execute(s, &trace));
  CHECK_EQ(trace.pieces, 0u);
  CHECK_EQ(setting.mram.read(setting.cube).difference(setting.cube, setting.mram), "");
}

}  // namespace
