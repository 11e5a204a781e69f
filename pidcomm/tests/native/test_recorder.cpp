// The records of the last calls: of calls that have ended, that run, and that wait.
#include <pidcomm/batch.h>
#include <pidcomm/recorder.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "hosts_cases.h"
#include "nonblocking_calls.h"
#include "omp_num_threads.h"

namespace {

using namespace nonblocking_calls;
using over_hosts::Hosts;

constexpr std::size_t kDst = 1 << 20;

std::vector<pidcomm_record> all_records() {
  std::vector<pidcomm_record> records(1);
  for (std::size_t count = 0;;) {
    CHECK_EQ(pidcomm_recorder_read(records.data(), records.size(), &count), +PIDCOMM_OK);
    const bool is_complete = count <= records.size();
    records.resize(count, pidcomm_record{});
    if (is_complete) return records;
  }
}

/// Records of the hypercube that was created last.
std::vector<pidcomm_record> last_records() {
  std::vector<pidcomm_record> all = all_records(), last;
  for (const pidcomm_record &record : all)
    if (record.hypercube == all.back().hypercube) last.push_back(record);
  return last;
}

std::string text_of(const pidcomm_record &record) {
  std::string text(4096, '\0');
  std::size_t length = 0;
  CHECK_EQ(pidcomm_record_text(&record, text.data(), text.size(), &length), +PIDCOMM_OK);
  text.resize(length);
  return text;
}

pidcomm_request allreduce_of(std::size_t bytes, int op = PIDCOMM_SUM) {
  return request::allreduce("10", bytes, 0, kDst, PIDCOMM_INT32, op);
}

int run(pidcomm_hypercube *cube, const pidcomm_request &request, pidcomm_trace *trace = nullptr) {
  return pidcomm_run(cube, &request, nullptr, trace);
}

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// Calls look() until it returns true. Many looks without success are a failure: the test ends
/// instead of hanging, also on a slow machine.
void look_until(const char *awaited, const std::function<bool()> &look) {
  constexpr int kLooks = 100'000;
  for (int i = 0; !look(); ++i) {
    if (i == kLooks) machine::fail(std::string("never happened: ") + awaited);
    usleep(1000);
  }
}

/// Waits until a record fulfils a condition, and returns it.
pidcomm_record wait_for(const std::function<bool(const pidcomm_record &)> &is_awaited) {
  pidcomm_record found{};
  look_until("the record", [&] {
    for (const pidcomm_record &record : all_records())
      if (is_awaited(record)) {
        found = record;
        return true;
      }
    return false;
  });
  return found;
}

/// A job of the set for which calls wait until `may_end`.
std::atomic<bool> may_end = false;
dpu_error_t wait_for_may_end(struct dpu_set_t, std::uint32_t, void *) {
  while (!may_end) usleep(1000);
  return DPU_OK;
}
void block(const DpuSet &set) {
  may_end = false;
  CHECK_EQ(dpu_callback(set.get(), wait_for_may_end, nullptr, DPU_CALLBACK_ASYNC), DPU_OK);
}

/// A thread that `block` blocks, until `join`.
class Blocked {
 public:
  explicit Blocked(const std::function<void()> &body) : thread_(body) {}
  ~Blocked() { join(); }
  void join() const {
    may_end = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  mutable std::thread thread_;
};

/// A file in memory, which has room for all lines.
class File {
 public:
  File() { CHECK(descriptor_ >= 0); }
  ~File() { close(descriptor_); }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  int descriptor() const { return descriptor_; }
  std::string text() const {
    std::string text;
    char part[4096];
    for (ssize_t bytes;
         (bytes = pread(descriptor_, part, sizeof part, static_cast<off_t>(text.size()))) > 0;)
      text.append(part, static_cast<std::size_t>(bytes));
    return text;
  }
  /// Waits until the text contains `part`, and returns the text.
  std::string read_until(const std::string &part) const {
    look_until(part.c_str(), [&] { return has(text(), part); });
    return text();
  }

 private:
  const int descriptor_ = memfd_create("records", 0);
};

}  // namespace

TEST(Ring_KeepsTheLastCallsOfAHypercubeInOrder) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  constexpr std::size_t kCalls = PIDCOMM_RECORDED_CALLS + 10;
  pidcomm_trace trace{};
  for (std::size_t i = 1; i <= kCalls; ++i)
    CHECK_EQ(run(cube.get(), allreduce_of(64 * i), &trace), +PIDCOMM_OK);
  const std::vector<pidcomm_record> records = last_records();
  CHECK_EQ(records.size(), std::size_t{PIDCOMM_RECORDED_CALLS});
  for (std::size_t i = 0; i < records.size(); ++i) {
    const pidcomm_record &record = records[i];
    CHECK_EQ(record.call, i + 11);
    CHECK_EQ(record.bytes, 64 * record.call);
    CHECK_EQ(record.state, +PIDCOMM_CALL_DONE);
    CHECK_EQ(record.collective, +PIDCOMM_ALLREDUCE);
    CHECK_EQ(record.type, +PIDCOMM_INT32);
    CHECK_EQ(record.op, +PIDCOMM_SUM);
    CHECK_EQ(record.requests, 1u);
    CHECK_EQ(std::string(record.shape), "8x8");
    CHECK_EQ(std::string(record.mask), "10");
  }
  const pidcomm_record &last = records.back();
  CHECK_EQ(last.trace.technique, trace.technique);
  CHECK_EQ(last.trace.isa, trace.isa);
  CHECK_EQ(last.trace.threads, trace.threads);
  CHECK_EQ(last.trace.coherence, trace.coherence);
  const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-6 * b; };
  CHECK(near(last.elapsed_s, trace.seconds_total));
#define PIDCOMM_ROW(ctype, name, ...)                     \
  if (std::string_view(#name).substr(0, 8) == "seconds_") \
    CHECK(near(static_cast<double>(last.trace.name), static_cast<double>(trace.name)));
  PIDCOMM_TRACE_FIELDS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  CHECK(has(text_of(last), "(8x8), call 74: allreduce 10, 4736 bytes of int32, sum: done, "));
}

TEST(FailedCall_IsRecordedWithItsErrorSentence) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  pidcomm_recorder_place("program.c", 12);
  CHECK_EQ(run(cube.get(), alltoall_of(100, 0, kDst)), +PIDCOMM_ERR_SIZE);
  const std::string sentence = pidcomm_last_error();
  pidcomm_recorder_place(nullptr, 0);
  pidcomm_request wrong = allreduce_of(64);
  wrong.mask = nullptr;
  CHECK_EQ(run(cube.get(), wrong), +PIDCOMM_ERR_MASK);
  wrong.collective = 99;
  CHECK_EQ(run(cube.get(), wrong), +PIDCOMM_ERR_ARGUMENT);
  const std::vector<pidcomm_record> records = last_records();
  CHECK_EQ(records.size(), 3u);
  CHECK_EQ(records[0].state, +PIDCOMM_CALL_FAILED);
  CHECK_EQ(records[0].status, +PIDCOMM_ERR_SIZE);
  CHECK_EQ(std::string(records[0].sentence), sentence);
  CHECK_EQ(std::string(records[0].file), "program.c");
  CHECK_EQ(records[0].line, 12);
  CHECK(has(text_of(records[0]), "ERR_SIZE: " + sentence + ", program.c:12"));
  CHECK_EQ(records[1].status, +PIDCOMM_ERR_MASK);
  CHECK_EQ(records[2].status, +PIDCOMM_ERR_ARGUMENT);
  for (const std::size_t i : {1, 2}) {
    CHECK_EQ(std::string(records[i].mask), "");
    CHECK(records[i].file == nullptr);
  }
}

TEST(Batch_IsOneRecord) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  const std::vector<pidcomm_request> requests = {allreduce_of(64), alltoall_of(64, 0, kDst),
                                                 allreduce_of(128)};
  CHECK_EQ(pidcomm_batch(cube.get(), requests.data(), 3, nullptr, nullptr), +PIDCOMM_OK);
  const std::vector<pidcomm_record> records = last_records();
  CHECK_EQ(records.size(), 1u);
  CHECK_EQ(records[0].requests, 3u);
  CHECK_EQ(records[0].request, 2u);
  CHECK_EQ(records[0].bytes, 64u);
  CHECK_EQ(records[0].state, +PIDCOMM_CALL_DONE);
  CHECK(has(text_of(records[0]), ", sum, a batch of 3: done, "));
  pidcomm_record running = records[0];
  running.state = PIDCOMM_CALL_RUNS;
  CHECK(has(text_of(running), ", sum, request 2 of a batch of 3: runs, "));
}

TEST(SmallCall_UsesOneThreadByDefault) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  std::optional<OmpNumThreads> variable("3");
  pidcomm_options two = PIDCOMM_OPTIONS_INITIALIZER;
  two.threads = 2;
  // 512 bytes read and written by each of 64 PEs are the limit.
  for (const auto &[bytes, options, threads] :
       {std::tuple<std::size_t, const pidcomm_options *, int>{448, nullptr, 1},
        {448, &two, 2},
        {512, nullptr, 3}}) {
    pidcomm_trace trace{};
    const pidcomm_request request = allreduce_of(bytes);
    CHECK_EQ(pidcomm_run(cube.get(), &request, options, &trace), +PIDCOMM_OK);
    CHECK_EQ(trace.threads, threads);
  }
  // A PE of a gather reads, and does not write.
  std::vector<std::byte> rows(64 * 1024);
  for (const auto &[bytes, threads] : {std::pair<std::size_t, int>{1016, 1}, {1024, 3}}) {
    pidcomm_request gather = PIDCOMM_REQUEST_INITIALIZER;
    gather.collective = PIDCOMM_GATHER;
    gather.mask = "11";
    gather.bytes = bytes;
    gather.host = rows.data();
    gather.host_bytes = 64 * bytes;
    gather.type = PIDCOMM_INT64;
    pidcomm_trace trace{};
    CHECK_EQ(run(cube.get(), gather, &trace), +PIDCOMM_OK);
    CHECK_EQ(trace.threads, threads);
  }
  const std::vector<pidcomm_request> small_and_large = {allreduce_of(64), allreduce_of(512)};
  pidcomm_trace sum{};
  CHECK_EQ(pidcomm_batch(cube.get(), small_and_large.data(), 2, nullptr, &sum), +PIDCOMM_OK);
  CHECK_EQ(sum.threads, 3);
  variable.reset();
  variable.emplace("2");
  pidcomm_trace trace{};
  CHECK_EQ(run(cube.get(), allreduce_of(512), &trace), +PIDCOMM_OK);
  CHECK_EQ(trace.threads, 2);
}

TEST(LongTexts_AreCutBetweenCharacters) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  std::string mask = "x", file;
  for (int i = 0; i < 20; ++i) mask += "\u00e9";
  while (file.size() < 4000) file += "\u20ac";
  pidcomm_recorder_place(file.c_str(), 1);
  const pidcomm_request request =
      request::allreduce(mask.c_str(), 64, 0, kDst, PIDCOMM_INT32, PIDCOMM_SUM);
  CHECK_EQ(run(cube.get(), request), +PIDCOMM_ERR_MASK);
  pidcomm_recorder_place(nullptr, 0);
  const pidcomm_record record = last_records().back();
  CHECK_EQ(std::string(record.mask), mask.substr(0, 15));
  const std::string text = text_of(record);
  CHECK_EQ(text.substr(text.size() - 3), "\u20ac");
  const File lines;
  pidcomm_recorder_write(lines.descriptor());
  CHECK(has(lines.text(), text + "\n"));
  std::size_t length = 0;
  for (std::size_t capacity = text.size() - 2; capacity <= text.size(); ++capacity) {
    std::string part(capacity, '?');
    CHECK_EQ(pidcomm_record_text(&record, part.data(), capacity, &length), +PIDCOMM_OK);
    CHECK_EQ(std::string(part.c_str()), text.substr(0, text.size() - 3));
  }
}

TEST(UnknownCodes_AreNotRecordedAsOtherCodes) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  pidcomm_request wrong = allreduce_of(64, 256 + PIDCOMM_SUM);
  CHECK_EQ(run(cube.get(), wrong), +PIDCOMM_ERR_OP);
  wrong = allreduce_of(64, -1);
  wrong.type = 256 + PIDCOMM_INT32;
  CHECK_EQ(run(cube.get(), wrong), +PIDCOMM_ERR_TYPE);
  wrong.collective = 256 + PIDCOMM_ALLREDUCE;
  CHECK_EQ(run(cube.get(), wrong), +PIDCOMM_ERR_ARGUMENT);
  const std::vector<pidcomm_record> records = last_records();
  CHECK_EQ(records[0].op, PIDCOMM_RECORDED_CODE);
  CHECK_EQ(records[1].op, PIDCOMM_RECORDED_CODE);
  CHECK_EQ(records[1].type, PIDCOMM_RECORDED_CODE);
  CHECK_EQ(records[2].collective, PIDCOMM_RECORDED_CODE);
}

TEST(CallThatWaitsForPes_IsFoundByTheWatchAndByASignal) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  CHECK_EQ(run(cube.get(), allreduce_of(64)), +PIDCOMM_OK);
  const File watched, by_signal;
  CHECK_EQ(pidcomm_recorder_signal(SIGUSR1, by_signal.descriptor()), +PIDCOMM_OK);
  block(set);
  const Blocked caller([&] { run(cube.get(), allreduce_of(128)); });
  const pidcomm_record waiting = wait_for([](const pidcomm_record &record) {
    return record.bytes == 128 && record.state == PIDCOMM_CALL_WAITS_FOR_PES;
  });
  CHECK_EQ(waiting.call, 2u);
  CHECK_EQ(pidcomm_recorder_watch(0.001, watched.descriptor()), +PIDCOMM_OK);
  const std::string found = watched.read_until(
      "call 2: allreduce 10, 128 bytes of int32, sum: "
      "waits for PEs, ");
  CHECK(has(found, "pidcomm: a call has not ended after 1.000 ms:\n"));
  raise(SIGUSR1);
  const std::string text = by_signal.read_until(
      "call 2: allreduce 10, 128 bytes of int32, sum: "
      "waits for PEs, ");
  CHECK(has(text, "call 1: allreduce 10, 64 bytes of int32, sum: done, "));
  caller.join();
  CHECK_EQ(pidcomm_recorder_watch(0, -1), +PIDCOMM_OK);
  signal(SIGUSR1, SIG_DFL);
  const std::vector<pidcomm_record> records = last_records();
  CHECK_EQ(records[1].state, +PIDCOMM_CALL_DONE);
}

TEST(NonBlockingCalls_KeepTheirRecordsUntilTheyEnd) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  block(set);
  std::vector<pidcomm_pending *> pending;
  for (std::size_t i = 1; i <= PIDCOMM_RECORDED_CALLS + 3; ++i)
    pending.push_back(start(cube, allreduce_of(64 * i)));
  std::vector<pidcomm_record> records = last_records();
  CHECK_EQ(records.size(), std::size_t{PIDCOMM_RECORDED_CALLS});
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK_EQ(records[i].bytes, 64 * (i + 1));
    CHECK(records[i].state < PIDCOMM_CALL_RUNS);
  }
  may_end = true;
  for (pidcomm_pending *&call : pending) CHECK_EQ(pidcomm_wait(&call, nullptr), +PIDCOMM_OK);
  for (const pidcomm_record &record : last_records()) CHECK_EQ(record.state, +PIDCOMM_CALL_DONE);
  CHECK_EQ(run(cube.get(), allreduce_of(8)), +PIDCOMM_OK);
  records = last_records();
  CHECK_EQ(records.size(), std::size_t{PIDCOMM_RECORDED_CALLS});
  CHECK_EQ(records.back().bytes, 8u);
}

TEST(RecordsAreConsistent_WhileThreadsCall) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  constexpr std::size_t kThreads = 3, kCalls = 300;
  const int ops[] = {PIDCOMM_SUM, PIDCOMM_MIN, PIDCOMM_MAX};
  std::atomic<std::size_t> running = kThreads;
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < kCalls; ++i)
        run(cube.get(), allreduce_of(64 * (thread + 1), ops[thread]));
      --running;
    });
  std::string wrong;  // the first one
  do {
    std::uint64_t before = 0;
    for (const pidcomm_record &record : last_records()) {
      const bool is_right = record.call > before && record.bytes % 64 == 0 && record.bytes != 0 &&
                            record.bytes <= 64 * kThreads &&
                            record.op == ops[record.bytes / 64 - 1] &&
                            (record.state == PIDCOMM_CALL_DONE) == (record.trace.seconds_total > 0);
      if (!is_right && wrong.empty())
        wrong = text_of(record) + ", after call " + std::to_string(before);
      before = record.call;
    }
  } while (running != 0);
  for (std::thread &thread : threads) thread.join();
  CHECK_EQ(wrong, "");
  CHECK(last_records().back().call >= kThreads * kCalls);
}

TEST(RecordsOfADestroyedHypercube_StayUntilAnotherOneTakesTheirMemory) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  std::uint64_t number = 0;
  const auto count = [&number] {
    std::size_t found = 0;
    for (const pidcomm_record &record : all_records()) found += record.hypercube == number;
    return found;
  };
  {
    const Hypercube cube(set, {8, 8});
    CHECK_EQ(run(cube.get(), allreduce_of(64)), +PIDCOMM_OK);
    number = last_records().back().hypercube;
  }
  CHECK_EQ(count(), 1u);
  std::vector<std::unique_ptr<Hypercube>> others;
  // At most one ring per hypercube of the process exists.
  for (std::uint64_t i = 0; i < number; ++i)
    others.push_back(std::make_unique<Hypercube>(set, machine::Axes{8}));
  CHECK_EQ(count(), 0u);
}

namespace {

/// Host 1 makes its call when host 0 is recorded as waiting for it.
void check_late_host(const over_hosts::Connection &connection) {
  const std::vector<pidcomm_record> older = all_records();
  const std::uint64_t before = older.empty() ? 0 : older.back().hypercube;
  Hosts hosts(2, {8, 2}, {}, connection);
  const auto call = [&](std::uint32_t host, std::size_t bytes) {
    const pidcomm_request request =
        request::allreduce("101", bytes, 0, kDst, PIDCOMM_INT32, PIDCOMM_SUM);
    return pidcomm_hosts_run(hosts.cube(host), &request, 0, nullptr, nullptr);
  };
  EACH_OK(hosts, [&](std::uint32_t host) { return call(host, 64); });
  pidcomm_record waiting{};
  EACH_OK(hosts, [&](std::uint32_t host) {
    if (host == 1)
      waiting = wait_for([before](const pidcomm_record &record) {
        return record.hypercube > before && record.state == PIDCOMM_CALL_WAITS_FOR_HOSTS &&
               record.awaited_hosts != 0;
      });
    return call(host, 128);
  });
  CHECK_EQ(waiting.awaited_host, 1u);
  CHECK_EQ(waiting.awaited_hosts, 1u);
  CHECK_EQ(waiting.call, 2u);
  CHECK_EQ(std::string(waiting.shape), "8x2x2, host 0");
  CHECK(has(text_of(waiting),
            "(8x2x2, host 0), call 2: allreduce 101, 128 bytes of int32, sum: "
            "waits for hosts, misses host 1, "));
  std::vector<std::string> done;
  for (const pidcomm_record &record : all_records())
    if (record.hypercube > before && std::string_view(record.shape).substr(0, 5) == "8x2x2" &&
        record.bytes == 128 && record.call == 2) {
      CHECK_EQ(record.state, +PIDCOMM_CALL_DONE);
      CHECK_EQ(record.awaited_hosts, 0u);
      done.push_back(record.shape);
    }
  std::sort(done.begin(), done.end());
  CHECK(done == std::vector<std::string>({"8x2x2, host 0", "8x2x2, host 1"}));
}

}  // namespace

TEST(HostThatMakesNoCall_IsNamedByTheRecordsOfTheOthers) { check_late_host({}); }

TEST(HostThatMakesNoCall_IsNamedByTheRecordsOfTheOthers_OverAPool) {
  check_late_host({std::size_t{1} << 20});
}

TEST(HostsThatMakeDifferentCalls_RecordBothCalls) {
  Hosts hosts(2, {8, 2});
  for (const int status : hosts.each([&](std::uint32_t host) {
         const pidcomm_request request =
             request::allreduce("101", host == 0 ? 64 : 128, 0, kDst, PIDCOMM_INT32, PIDCOMM_SUM);
         return pidcomm_hosts_run(hosts.cube(host), &request, 0, nullptr, nullptr);
       }))
    CHECK_EQ(status, +PIDCOMM_ERR_ARGUMENT);
  const pidcomm_record last = all_records().back();
  CHECK_EQ(last.state, +PIDCOMM_CALL_FAILED);
  CHECK(has(last.sentence,
            "the hosts make different calls: host 0: allreduce with mask 101 of "
            "8x2x2, 64 bytes of int32, sum; host 1: allreduce"));
}

TEST(WrongArguments_AreErrors) {
  std::size_t count = 0;
  pidcomm_record record{};
  char text[8];
  CHECK_EQ(pidcomm_recorder_read(nullptr, 0, nullptr), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_recorder_read(nullptr, 1, &count), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_recorder_read(nullptr, 0, &count), +PIDCOMM_OK);
  CHECK_EQ(pidcomm_record_text(nullptr, text, sizeof text, &count), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_record_text(&record, nullptr, 1, &count), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_record_text(&record, text, sizeof text, &count), +PIDCOMM_OK);
  CHECK_EQ(std::string(text),
           "hyperc"
           "u");
  record.size = 8;
  CHECK_EQ(pidcomm_recorder_read(&record, 1, &count), +PIDCOMM_ERR_ARGUMENT);
  for (const int number : {-1, 0, SIGKILL, 1000})
    CHECK_EQ(pidcomm_recorder_signal(number, 2), +PIDCOMM_ERR_ARGUMENT);
  for (const double seconds : {-1.0, 1e9, std::nan("")})
    CHECK_EQ(pidcomm_recorder_watch(seconds, 2), +PIDCOMM_ERR_ARGUMENT);
}
