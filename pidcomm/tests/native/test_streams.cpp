// Streams have the results of their steps one after another.
#include <pidcomm/stream.h>

#include <memory>
#include <random>

#include "machine.h"

namespace {

using namespace machine;

constexpr std::size_t kBytes = 2048, kSlots = 5, kHostBuffers = 2;
constexpr std::uint32_t kRanks = 4, kNoPe = ~0u;

struct Job {
  std::uint32_t src, dst, bytes, factor, fault_pe;
};

/// A launch with its job, or a collective.
struct Step {
  bool is_launch;
  std::uint32_t parts;
  Job job;
  std::string mask;
  pidcomm_request request;
};

struct Destroy {
  void operator()(pidcomm_stream *stream) const { pidcomm_stream_destroy(stream); }
};
using StreamPointer = std::unique_ptr<pidcomm_stream, Destroy>;

void ok(int status) {
  if (status != PIDCOMM_OK) fail(pidcomm_last_error());
}

StreamPointer stream_of(const DpuSet &set, std::uint32_t rank_groups) {
  pidcomm_stream *stream = nullptr;
  ok(pidcomm_stream_create(set.get(), rank_groups, &stream));
  return StreamPointer(stream);
}

std::vector<pidcomm_stream_piece> timeline_of(const pidcomm_stream *stream) {
  std::size_t count = 0;
  ok(pidcomm_stream_timeline(stream, nullptr, 0, &count));
  std::vector<pidcomm_stream_piece> pieces(count);
  ok(pidcomm_stream_timeline(stream, pieces.data(), count, &count));
  return pieces;
}

/// Four ranks with the test's program, and host buffers.
struct Setting {
  Setting() : set((power_up(kRanks), DpuSet::of_ranks(kRanks))), cube(set, {16, 4, kRanks}) {
    load();
    mram.cover(0, kSlots * kBytes);
    mram.poison(cube, 1);
  }
  void load() const {
    DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_STREAM_PROGRAM, nullptr));
    ok(pidcomm_fill_variables(cube.get(), nullptr));
  }
  void reset() {
    mram.write(cube);
    for (Bytes &buffer : host) {
      buffer.resize(cube.pes() * kBytes);
      verify::fill_distinct(7, buffer.size(), buffer);
    }
  }
  DpuSet set;
  Hypercube cube;
  Picture mram;
  Bytes host[kHostBuffers];
};

std::vector<Step> random_steps(Setting &setting, std::mt19937 &random) {
  const auto below = [&](std::size_t end) { return static_cast<std::uint32_t>(random() % end); };
  constexpr int kCollectives[] = {PIDCOMM_ALLTOALL,  PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE,
                                  PIDCOMM_ALLGATHER, PIDCOMM_SCATTER,        PIDCOMM_GATHER,
                                  PIDCOMM_REDUCE,    PIDCOMM_BROADCAST};
  constexpr int kTypes[] = {PIDCOMM_INT32, PIDCOMM_UINT64, PIDCOMM_FLOAT32};
  constexpr int kOps[] = {PIDCOMM_SUM, PIDCOMM_MIN, PIDCOMM_PROD};
  const std::vector<std::string> masks = masks_of(3);
  std::vector<Step> steps(1 + below(12));
  for (Step &step : steps) {
    step = {};
    step.is_launch = below(2) == 0;
    const auto src = below(kSlots) * kBytes, dst = below(kSlots) * kBytes;
    step.parts = 1u << below(3);
    step.job = {static_cast<std::uint32_t>(src), static_cast<std::uint32_t>(dst), kBytes,
                below(1000), kNoPe};
    step.mask = masks[below(masks.size())];
    pidcomm_request &request = step.request;
    request.collective = kCollectives[below(std::size(kCollectives))];
    request.bytes = kBytes;
    request.src = src;
    request.dst = dst;
    request.type = kTypes[below(std::size(kTypes))];
    request.op = kOps[below(std::size(kOps))];
    std::uint32_t groups = 0, group_pes = 0;
    ok(pidcomm_groups(setting.cube.get(), step.mask.c_str(), &groups, &group_pes));
    const bool has_members =
        request.collective == PIDCOMM_SCATTER || request.collective == PIDCOMM_GATHER;
    request.host = setting.host[below(kHostBuffers)].data();
    request.host_bytes = kBytes * groups * (has_members ? group_pes : 1);
    if (!step.is_launch && request.collective != PIDCOMM_ALLREDUCE &&
        request.collective != PIDCOMM_REDUCE && request.collective != PIDCOMM_BROADCAST)
      step.parts = 1;
  }
  return steps;
}

void run_in_order(const Setting &setting, const std::vector<Step> &steps) {
  for (const Step &step : steps) {
    if (step.is_launch) {
      const std::uint32_t whole[2] = {0, 1};
      DPU_OK_OR_FAIL(dpu_broadcast_to(setting.set.get(), "job", 0, &step.job, sizeof step.job,
                                      DPU_XFER_DEFAULT));
      DPU_OK_OR_FAIL(
          dpu_broadcast_to(setting.set.get(), "part", 0, whole, sizeof whole, DPU_XFER_DEFAULT));
      DPU_OK_OR_FAIL(dpu_launch(setting.set.get(), DPU_SYNCHRONOUS));
    } else {
      pidcomm_request request = step.request;
      request.mask = step.mask.c_str();
      ok(pidcomm_run(setting.cube.get(), &request, nullptr, nullptr));
    }
  }
}

/// declares: whether launches name the windows they use.
void record(pidcomm_stream *stream, const Setting &setting, const std::vector<Step> &steps,
            bool declares) {
  for (const Step &step : steps) {
    if (step.is_launch) {
      const pidcomm_access accesses[] = {{step.job.src, kBytes, 0, 1},
                                         {step.job.dst, kBytes, 1, 1}};
      ok(pidcomm_stream_write(stream, "job", &step.job, sizeof step.job));
      ok(pidcomm_stream_launch(stream, accesses, declares ? 2 : 0, step.parts, "part"));
    } else {
      pidcomm_request request = step.request;
      const std::string mask = step.mask;  // the stream copies it
      request.mask = mask.c_str();
      ok(pidcomm_stream_run(stream, setting.cube.get(), &request, nullptr, step.parts));
    }
  }
}

TEST(RandomStreams_HaveTheBytesOfTheirStepsOneAfterAnother) {
  Setting setting;
  Grid grid("random streams");
  for (unsigned seed = 0; seed < (effort::is_full() ? 2000u : 120u); ++seed)
    grid.run([&] {
      std::mt19937 random(seed);
      setting.reset();
      const std::vector<Step> steps = random_steps(setting, random);
      run_in_order(setting, steps);
      const Picture want = setting.mram.read(setting.cube);
      const Bytes want_host[] = {setting.host[0], setting.host[1]};
      const StreamPointer stream = stream_of(setting.set, 1u << seed % 3);
      record(stream.get(), setting, steps, seed % 5 != 0);
      for (int run = 0; run < 2; ++run) {
        setting.reset();
        pidcomm_stream_trace trace{};
        ok(pidcomm_stream_execute(stream.get(), &trace));
        const std::string difference =
            setting.mram.read(setting.cube).difference(setting.cube, want);
        if (!difference.empty()) fail("seed " + std::to_string(seed) + ": " + difference);
        CHECK(setting.host[0] == want_host[0]);
        CHECK(setting.host[1] == want_host[1]);
        if (trace.is_mixed)  // then no time passes between pieces
          CHECK(trace.seconds_host + trace.seconds_pes >= trace.seconds_total * (1 - 1e-9));
      }
    });
  grid.finish();
}

TEST(PiecesOfATimeline_DoNotShareRanksAtTheSameTime) {
  Setting setting;
  setting.reset();
  std::mt19937 random(3);
  const StreamPointer stream = stream_of(setting.set, kRanks);
  for (int i = 0; i < 4; ++i) record(stream.get(), setting, random_steps(setting, random), true);
  pidcomm_stream_trace trace{};
  ok(pidcomm_stream_execute(stream.get(), &trace));
  const std::vector<pidcomm_stream_piece> pieces = timeline_of(stream.get());
  CHECK_EQ(pieces.size(), trace.pieces);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    CHECK(pieces[i].end_s <= trace.seconds_total);
    for (std::size_t j = 0; j < i; ++j) {
      const pidcomm_stream_piece &a = pieces[j], &b = pieces[i];
      CHECK(a.begin_s <= b.begin_s);
      const bool shares =
          a.first_rank < b.first_rank + b.ranks && b.first_rank < a.first_rank + a.ranks;
      const bool are_passes = a.is_launch == 0 && b.is_launch == 0;
      if (shares || are_passes) CHECK(a.end_s <= b.begin_s || b.end_s <= a.begin_s);
    }
  }
}

TEST(HostPasses_RunWhileOtherRanksCompute) {
  Setting setting;
  setting.reset();
  const StreamPointer stream = stream_of(setting.set, kRanks);
  std::vector<Step> steps(2);
  steps[0].is_launch = true;
  steps[0].parts = 1;
  steps[0].job = {0, 0, kBytes, 3, kNoPe};
  steps[1].parts = 1;
  steps[1].mask = "110";
  steps[1].request.collective = PIDCOMM_ALLREDUCE;
  steps[1].request.bytes = kBytes;
  steps[1].request.type = PIDCOMM_INT32;
  steps[1].request.op = PIDCOMM_SUM;
  for (int i = 0; i < 3; ++i) record(stream.get(), setting, steps, true);
  pidcomm_stream_trace trace{};
  ok(pidcomm_stream_execute(stream.get(), &trace));
  std::size_t overlaps = 0;
  const std::vector<pidcomm_stream_piece> pieces = timeline_of(stream.get());
  for (const pidcomm_stream_piece &launch : pieces)
    for (const pidcomm_stream_piece &pass : pieces)
      overlaps += launch.is_launch && !pass.is_launch && launch.begin_s < pass.end_s &&
                  pass.begin_s < launch.end_s;
  CHECK(overlaps != 0);
  CHECK_EQ(trace.is_mixed, is_over_sdk_access() ? 0u : 1u);
}

TEST(FaultOfAPe_EndsTheStreamAndNamesStepAndPe) {
  for (const std::uint32_t pe : {0u, 70u, 255u}) {
    Setting setting;
    setting.reset();
    std::mt19937 random(pe);
    std::vector<Step> steps = random_steps(setting, random);
    Step faulty{};
    faulty.is_launch = true;
    faulty.parts = 2;
    faulty.job = {0, kBytes, kBytes, 3, pe};
    steps.push_back(faulty);
    for (int i = 0; i < 3; ++i) steps.push_back(steps.front());
    const StreamPointer stream = stream_of(setting.set, 2);
    record(stream.get(), setting, steps, true);
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
  check_refused(pidcomm_stream_create(setting.set.get(), 0, &none), PIDCOMM_ERR_ARGUMENT,
                "rank_groups (0)");
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
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLREDUCE;
  request.mask = "111";
  request.bytes = 24;
  request.type = PIDCOMM_INT32;
  check_refused(pidcomm_stream_run(s, setting.cube.get(), &request, nullptr, 2), PIDCOMM_ERR_SIZE,
                "8 * parts (16)");
  check_refused(pidcomm_stream_run(s, setting.cube.get(), &request, nullptr, 0),
                PIDCOMM_ERR_ARGUMENT, "parts (0)");
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
