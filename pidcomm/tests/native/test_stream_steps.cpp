// The steps of streams: their order, what a stream copies, and programs that are loaded meanwhile.
#include <pidcomm/messages.h>
#include <pidcomm/model.h>
#include <pidcomm/operators.h>

#include <cmath>

#include "stream_cases.h"

namespace {

using namespace stream_cases;

pidcomm_request request_of(int collective, const char *mask, std::size_t bytes) {
  pidcomm_request request{};
  request.collective = collective;
  request.mask = mask;
  request.bytes = bytes;
  request.type = PIDCOMM_INT32;
  return request;
}

struct Factor {
  const float *from;
  double *to;
};

int take_factor(void *context) {
  const auto [from, to] = *static_cast<const Factor *>(context);
  *to = static_cast<double>(*from);
  return 0;
}

TEST(OperatorsOfAStream_ReadTheContextThatAnEarlierFunctionWrote) {
  Setting setting;
  setting.reset();
  pidcomm_hypercube *const cube = setting.cube.get();
  std::vector<float> rows(setting.cube.pes() * 2, 1);
  ok(pidcomm_write(cube, kBytes, 8, rows.data()));
  std::vector<float> threes(rows.size(), 3);
  ok(pidcomm_write(cube, 2 * kBytes, 8, threes.data()));
  double factor = 0;
  Factor context{rows.data(), &factor};
  const pidcomm_stream_host_access ranges[] = {{rows.data(), rows.size() * sizeof(float), 0},
                                               {&factor, sizeof factor, 1}};
  const pidcomm_access accesses[] = {{0, kBytes, 1, 1}, {2 * kBytes, kBytes, 1, 0}};
  const Job job{0, 0, kBytes, 3, kNoPe};
  const StreamPointer stream = stream_of(setting.set, 1);
  ok(pidcomm_stream_write(stream.get(), "job", &job, sizeof job));
  ok(pidcomm_stream_launch(stream.get(), accesses, 2, 1, nullptr));
  pidcomm_request request = request_of(PIDCOMM_GATHER, "111", 8);
  request.src = 2 * kBytes;
  request.host = rows.data();
  request.host_bytes = rows.size() * sizeof(float);
  ok(pidcomm_stream_run(stream.get(), cube, &request, nullptr, 1));
  ok(pidcomm_stream_call(stream.get(), take_factor, &context, ranges, 2));
  pidcomm_operator operation{};
  ok(pidcomm_operator_scaled_sum(PIDCOMM_FLOAT32, &factor, &operation));
  request = request_of(PIDCOMM_ALLREDUCE, "111", 8);
  request.src = request.dst = kBytes;
  request.type = PIDCOMM_FLOAT32;
  request.operation = &operation;
  ok(pidcomm_stream_run(stream.get(), cube, &request, nullptr, 1));
  operation = {};  // the stream has a copy
  ok(pidcomm_stream_execute(stream.get(), nullptr));
  CHECK_EQ(factor, 3.0);
  ok(pidcomm_read(cube, kBytes, 8, rows.data()));
  for (const float value : rows) CHECK_EQ(value, 3.0f * static_cast<float>(setting.cube.pes()));
}

void add_words(void *partials, const void *elements, std::size_t count, const void *) {
  auto *const sums = static_cast<std::uint32_t *>(partials);
  const auto *const words = static_cast<const std::uint32_t *>(elements);
  for (std::size_t i = 0; i < count; ++i) sums[i] += words[i];
}

TEST(OperatorsOfAStream_KeepTheIdentityThatTheyHadWhenRecorded) {
  Setting setting;
  setting.reset();
  std::uint32_t identity = 7;
  pidcomm_operator operation{};
  operation.element_bytes = sizeof identity;
  operation.combine = add_words;
  operation.identity = &identity;
  pidcomm_request request = request_of(PIDCOMM_EXSCAN, "111", 8);
  request.dst = kBytes;
  request.operation = &operation;
  const StreamPointer stream = stream_of(setting.set, 1);
  ok(pidcomm_stream_run(stream.get(), setting.cube.get(), &request, nullptr, 1));
  identity = 9;
  ok(pidcomm_stream_execute(stream.get(), nullptr));
  std::vector<std::uint32_t> rows(setting.cube.pes() * 2);
  ok(pidcomm_read(setting.cube.get(), kBytes, 8, rows.data()));
  CHECK_EQ(rows[0], 7u);
  CHECK_EQ(rows[1], 7u);
}

TEST(FloatsOfAStream_AreCombinedInTheOrderOfACall) {
  Setting setting;
  pidcomm_hypercube *const cube = setting.cube.get();
  std::mt19937 random(5);
  std::uniform_real_distribution<float> values(-1, 1);  // most sums depend on the order
  std::vector<float> from(setting.cube.pes() * kBytes / sizeof(float)), want(from.size()),
      got(from.size());
  for (float &value : from) value = values(random);
  ok(pidcomm_write(cube, 0, kBytes, from.data()));
  for (const char *mask : {"100", "011", "111"})
    for (const std::uint32_t rank_groups : {1u, 4u})
      for (const std::uint32_t parts : {1u, 4u}) {
        pidcomm_request request = request_of(PIDCOMM_ALLREDUCE, mask, kBytes);
        request.dst = kBytes;
        request.type = PIDCOMM_FLOAT32;
        ok(pidcomm_run(cube, &request, nullptr, nullptr));
        ok(pidcomm_read(cube, kBytes, kBytes, want.data()));
        const StreamPointer stream = stream_of(setting.set, rank_groups);
        request.dst = 2 * kBytes;
        ok(pidcomm_write(cube, request.dst, kBytes, from.data()));
        ok(pidcomm_stream_run(stream.get(), cube, &request, nullptr, parts));
        ok(pidcomm_stream_execute(stream.get(), nullptr));
        ok(pidcomm_read(cube, 2 * kBytes, kBytes, got.data()));
        CHECK(got == want);
      }
}

TEST(TimeOfPes_BeginsWhenTheHostHasStartedTheLaunch) {
  Setting setting;
  setting.reset();
  const Job job{0, 0, kBytes, 3, kNoPe};
  const StreamPointer stream = stream_of(setting.set, 1);
  ok(pidcomm_stream_write(stream.get(), "job", &job, sizeof job));
  ok(pidcomm_stream_launch(stream.get(), nullptr, 0, 1, "part"));
  pidcomm_stream_trace trace{};
  ok(pidcomm_stream_execute(stream.get(), &trace));
  pidcomm_stream_piece pieces[2];
  std::size_t count = 0;
  ok(pidcomm_stream_timeline(stream.get(), pieces, 2, &count));
  CHECK_EQ(count, 2u);
  const double write_s = pieces[0].end_s - pieces[0].begin_s,
               launch_s = pieces[1].end_s - pieces[1].begin_s;
  CHECK(trace.seconds_host > write_s);  // also the write of the part
  CHECK(trace.seconds_pes < launch_s);
  CHECK(std::abs(trace.seconds_host + trace.seconds_pes - write_s - launch_s) < 1e-9);
}

TEST(Stream_WaitsForPendingCalls) {
  Setting setting;
  const Job job{0, kBytes, kBytes, 3, kNoPe};
  pidcomm_request request = request_of(PIDCOMM_ALLREDUCE, "111", kBytes);
  std::optional<Picture> want;
  for (int run = 0; run < 4; ++run) {
    setting.reset();
    const StreamPointer stream = stream_of(setting.set, 2);
    ok(pidcomm_stream_write(stream.get(), "job", &job, sizeof job));
    ok(pidcomm_stream_launch(stream.get(), nullptr, 0, 1, "part"));
    pidcomm_pending *pending = nullptr;
    ok(pidcomm_irun(setting.cube.get(), &request, nullptr, &pending));
    if (!want) ok(pidcomm_wait(&pending, nullptr));
    ok(pidcomm_stream_execute(stream.get(), nullptr));
    if (want) ok(pidcomm_wait(&pending, nullptr));
    const Picture now = setting.mram.read(setting.cube);
    if (!want) want = now;
    CHECK_EQ(now.difference(setting.cube, *want), "");
  }
}

TEST(Launches_TakeTheLaunchCostOfTheMachineInUse) {
  if (is_over_sdk_access()) return;  // all times are measured
  constexpr double kFixed_s = 2, kRank_s = 0.5;
  const char *name = nullptr;
  pidcomm_machine machine{};
  ok(pidcomm_machine_builtin(0, &name, &machine));
  machine.pe_launch_us = kFixed_s * 1e6;
  machine.pe_launch_rank_us = kRank_s * 1e6;
  ok(pidcomm_use_machine(&machine));
  Setting setting;
  setting.reset();
  const Job job{0, 0, kBytes, 3, kNoPe};
  const StreamPointer stream = stream_of(setting.set, 2);  // of 2 ranks
  ok(pidcomm_stream_write(stream.get(), "job", &job, sizeof job));
  ok(pidcomm_stream_launch(stream.get(), nullptr, 0, 1, nullptr));
  for (const bool runs : {false, true}) {
    pidcomm_stream_trace trace{};
    ok((runs ? pidcomm_stream_execute : pidcomm_stream_plan)(stream.get(), &trace));
    // The host starts one group after another; the fixed costs overlap.
    const double host_s = 4 * kRank_s, total_s = host_s + kFixed_s, pes_s = total_s - 2 * kRank_s;
    const double own_s = runs ? 1e9 : 1e-9;  // a run also takes measured time
    CHECK(trace.seconds_host >= host_s - 1e-9 && trace.seconds_host < host_s + own_s);
    CHECK(trace.seconds_pes >= pes_s - 1e-9 && trace.seconds_pes < pes_s + own_s);
    CHECK(trace.seconds_total >= total_s - 1e-9 && trace.seconds_total < total_s + own_s);
  }
  ok(pidcomm_use_machine(nullptr));
}

TEST(LaunchesAndWrites_RequireTheProgramOfTheirRecording) {
  Setting setting;
  setting.reset();
  const Job job{0, 0, kBytes, 3, kNoPe};
  pidcomm_request request = request_of(PIDCOMM_ALLTOALL, "100", kBytes);
  request.dst = kBytes;
  pidcomm_options options{};
  options.technique = PIDCOMM_TECHNIQUE_PR_IM;
  options.scratch_offset = 1 << 20;
  pidcomm_hypercube *const cube = setting.cube.get();
  const StreamPointer launches = stream_of(setting.set, 2), writes = stream_of(setting.set, 2);
  ok(pidcomm_stream_launch(launches.get(), nullptr, 0, 1, nullptr));
  ok(pidcomm_stream_write(writes.get(), "job", &job, sizeof job));
  const auto check_all = [&](const std::string &sentence) {
    for (pidcomm_stream *stream : {launches.get(), writes.get()}) {
      check_refused(pidcomm_stream_execute(stream, nullptr), PIDCOMM_ERR_DEVICE, sentence);
      check_refused(pidcomm_stream_write(stream, "job", &job, sizeof job), PIDCOMM_ERR_DEVICE,
                    sentence);
      check_refused(pidcomm_stream_launch(stream, nullptr, 0, 1, nullptr), PIDCOMM_ERR_DEVICE,
                    sentence);
    }
  };
  for (pidcomm_stream *stream : {launches.get(), writes.get()})
    check_refused(pidcomm_stream_run(stream, cube, &request, &options, 1), PIDCOMM_ERR_ARGUMENT,
                  "may replace the program");
  ok(pidcomm_run(cube, &request, &options, nullptr));
  check_all("a collective has replaced the program");
  const StreamPointer loading = stream_of(setting.set, 2);
  check_refused(pidcomm_stream_write(loading.get(), "job", &job, sizeof job), PIDCOMM_ERR_DEVICE,
                "a collective has replaced the program");
  ok(pidcomm_stream_run(loading.get(), cube, &request, &options, 1));
  ok(pidcomm_stream_execute(loading.get(), nullptr));
  DPU_OK_OR_FAIL(dpu_load(setting.set.get(), PIDCOMM_OTHER_TEST_PROGRAM, nullptr));
  check_all("PE 0 has loaded another program since");
  check_refused(pidcomm_stream_launch(loading.get(), nullptr, 0, 1, nullptr), PIDCOMM_ERR_ARGUMENT,
                "may replace the program");
  ok(pidcomm_stream_execute(loading.get(), nullptr));
}

TEST(StreamWithTooManyPieces_IsRefused) {
  Setting setting;
  setting.reset();
  const StreamPointer stream = stream_of(setting.set, 2);
  ok(pidcomm_stream_launch(stream.get(), nullptr, 0, 1, "part"));
  check_refused(pidcomm_stream_launch(stream.get(), nullptr, 0, 1u << 31, "part"),
                PIDCOMM_ERR_ARGUMENT, "may have 4294967298 pieces; a stream has at most 65536");
  check_refused(pidcomm_stream_launch(stream.get(), nullptr, 0, 1u << 15, "part"),
                PIDCOMM_ERR_ARGUMENT, "may have 65538 pieces");
  const StreamPointer planned = stream_of(setting.set, 0);
  ok(pidcomm_stream_launch(planned.get(), nullptr, 0, 1u << 31, "part"));
  pidcomm_stream_trace trace{};
  ok(pidcomm_stream_plan(planned.get(), &trace));
  CHECK_EQ(trace.pieces, 1u);
}

struct Note {
  std::string *notes;
  char note;
};

int take_note(void *context) {
  const auto [notes, note] = *static_cast<const Note *>(context);
  *notes += note;
  return 0;
}

TEST(FunctionsOfAStream_KeepTheirOrderIfTheyShareHostMemory) {
  Setting setting;
  const Job job{0, 0, kBytes, 3, kNoPe};
  const pidcomm_access access{0, kBytes, 1, 1};
  Bytes rows(8 * setting.cube.pes());
  pidcomm_request request = request_of(PIDCOMM_GATHER, "111", 8);
  request.host = rows.data();
  request.host_bytes = rows.size();
  std::string notes;
  Note first{&notes, '1'}, second{&notes, '2'};
  const pidcomm_stream_host_access after_gather[] = {{rows.data(), rows.size(), 0}, {&notes, 1, 1}},
                                   shared{&notes, 1, 1}, other{&second, 1, 0};  // notes is missing
  const auto order_with = [&](const pidcomm_stream_host_access *ranges, std::size_t count) {
    setting.reset();
    notes.clear();
    const StreamPointer stream = stream_of(setting.set, 1);
    ok(pidcomm_stream_write(stream.get(), "job", &job, sizeof job));
    ok(pidcomm_stream_launch(stream.get(), &access, 1, 1, nullptr));
    ok(pidcomm_stream_run(stream.get(), setting.cube.get(), &request, nullptr, 1));
    ok(pidcomm_stream_call(stream.get(), take_note, &first, after_gather, 2));
    ok(pidcomm_stream_call(stream.get(), take_note, &second, ranges, count));
    ok(pidcomm_stream_execute(stream.get(), nullptr));
    return notes;
  };
  CHECK_EQ(order_with(&shared, 1), "12");
  CHECK_EQ(order_with(nullptr, 0), "12");
  CHECK_EQ(order_with(&other, 1), "21");  // runs beside the launch
}

int cancel(void *stream) {
  pidcomm_stream_cancel(static_cast<pidcomm_stream *>(stream));
  return 0;
}

TEST(CancelledStream_StartsNoOtherPieceAndCanRunAgain) {
  Setting setting;
  setting.reset();
  const StreamPointer stream = stream_of(setting.set, 2);
  Call call{setting.host[0].data(), setting.host[1].data(), 1, 0};
  const Bytes before = setting.host[1];
  pidcomm_stream_cancel(stream.get());  // nothing runs
  const Job job{0, 0, kBytes, 3, kNoPe};
  ok(pidcomm_stream_write(stream.get(), "job", &job, sizeof job));
  ok(pidcomm_stream_launch(stream.get(), nullptr, 0, 1, nullptr));
  ok(pidcomm_stream_call(stream.get(), cancel, stream.get(), nullptr, 0));
  ok(pidcomm_stream_call(stream.get(), combine, &call, nullptr, 0));
  for (int run = 0; run < 2; ++run)
    check_refused(pidcomm_stream_execute(stream.get(), nullptr), PIDCOMM_ERR_FUNCTION,
                  "pidcomm_stream_cancel has ended the stream before a piece of step 3");
  CHECK(setting.host[1] == before);
  const StreamPointer other = stream_of(setting.set, 2);
  ok(pidcomm_stream_call(other.get(), combine, &call, nullptr, 0));
  ok(pidcomm_stream_call(other.get(), cancel, other.get(), nullptr, 0));
  ok(pidcomm_stream_execute(other.get(), nullptr));  // all pieces have started
  CHECK(setting.host[1] != before);
}

TEST(MessagesOfAStream_AreThoseOfTheRecording) {
  Setting setting;
  setting.reset();
  const auto messages_to = [](std::uint32_t pe) {
    return std::vector<pidcomm_pe_message>{{1, pe, 0, 0, 64, 1, 0, 0}};
  };
  std::vector<pidcomm_pe_message> messages = messages_to(70);
  ok(pidcomm_sendrecv(setting.cube.get(), messages.data(), 1, 0, kBytes));
  const Picture want = setting.mram.read(setting.cube);
  setting.reset();
  const StreamPointer stream = stream_of(setting.set, 1);
  pidcomm_request request{};
  request.collective = PIDCOMM_SENDRECV;
  request.dst = kBytes;
  request.host = messages.data();
  request.host_bytes = sizeof messages[0];
  ok(pidcomm_stream_run(stream.get(), setting.cube.get(), &request, nullptr, 1));
  messages = messages_to(71);
  ok(pidcomm_stream_execute(stream.get(), nullptr));
  CHECK_EQ(setting.mram.read(setting.cube).difference(setting.cube, want), "");
}

}  // namespace
