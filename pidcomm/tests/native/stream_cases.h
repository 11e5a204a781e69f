// Random streams, and their steps one after another.
#pragma once

#include <pidcomm/messages.h>
#include <pidcomm/operators.h>
#include <pidcomm/stream.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <random>

#include "machine.h"

namespace stream_cases {

using namespace machine;

constexpr std::size_t kBytes = 2048, kSlots = 5, kHostBuffers = 2;
constexpr std::size_t kStrideBytes = 64;  // at most, beyond a host row
constexpr std::uint32_t kRanks = 4, kNoPe = ~0u;
constexpr int kStopped = 7;

/// The variable `job` of stream_program.c.
struct Job {
  std::uint32_t src, dst, bytes, factor, fault_pe;
};

/// A function that combines the bytes of host memory with others.
struct Call {
  const std::uint8_t *from;
  std::uint8_t *to;
  std::uint8_t factor;
  int status;
};

inline int combine(void *context) {
  const Call &call = *static_cast<const Call *>(context);
  for (std::size_t i = 0; i < kBytes && call.status == 0; ++i)
    call.to[i] = static_cast<std::uint8_t>(call.to[i] * call.factor + call.from[i] + i);
  return call.status;
}

/// The `store` of an operator: changes each byte by the byte of the context.
template <std::size_t element_bytes>
void change(void *elements, const void *partials, std::size_t count, std::size_t,
            const void *context) {
  const std::uint8_t key = *static_cast<const std::uint8_t *>(context);
  const auto *const from = static_cast<const std::uint8_t *>(partials);
  auto *const to = static_cast<std::uint8_t *>(elements);
  for (std::size_t i = 0; i < count * element_bytes; ++i)
    to[i] = static_cast<std::uint8_t>(from[i] ^ key);
}

/// A launch with its job, a call of `combine`, or a collective.
struct Step {
  enum class Kind { launch, call, collective } kind = Kind::collective;
  std::uint32_t parts = 1;
  Job job{};
  std::uint64_t window_base = 0;  // of `job`
  Call call{};
  pidcomm_hypercube *cube = nullptr;
  std::string mask{};
  std::vector<pidcomm_pe_message> messages{};
  pidcomm_request request{};
  std::optional<pidcomm_operator> operation{};
};

struct Destroy {
  void operator()(pidcomm_stream *stream) const { pidcomm_stream_destroy(stream); }
};
using StreamPointer = std::unique_ptr<pidcomm_stream, Destroy>;

inline void ok(int status) {
  if (status != PIDCOMM_OK) fail(pidcomm_last_error());
}

inline StreamPointer stream_of(const DpuSet &set, std::uint32_t rank_groups) {
  pidcomm_stream *stream = nullptr;
  ok(pidcomm_stream_create(set.get(), rank_groups, &stream));
  return StreamPointer(stream);
}

/// Four ranks with the test's program, and host buffers.
struct Setting {
  Setting()
      : set((power_up(kRanks), DpuSet::of_ranks(kRanks))),
        cube(set, {16, 4, kRanks}),
        short_last_axis(set, {32, 4, 2}),
        foreach_order(set, {8, 8, kRanks}, 0, PIDCOMM_FOREACH_ORDER) {
    load();
    mram.cover(0, kSlots * kBytes);
    mram.poison(cube, 1);
    host_before.resize(cube.pes() * (kBytes + kStrideBytes));
    verify::fill_distinct(7, host_before.size(), host_before);
  }
  void load() const {
    DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_STREAM_PROGRAM, &program));
    ok(pidcomm_fill_variables(cube.get(), nullptr));
  }
  void reset() {
    mram.write(cube);
    for (Bytes &buffer : host) buffer = host_before;
  }
  /// The window of a byte of the heap, by its place in MRAM.
  std::uint64_t absolute_base() const {
    struct dpu_symbol_t symbol{};
    DPU_OK_OR_FAIL(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &symbol));
    return PIDCOMM_MRAM_WINDOW + symbol.address % kMramBytes;
  }
  DpuSet set;
  mutable struct dpu_program_t *program = nullptr;
  Hypercube cube, short_last_axis, foreach_order;  // the same PEs
  Picture mram;
  Bytes host_before, host[kHostBuffers];
};

inline std::vector<Step> random_steps(Setting &setting, std::mt19937 &random) {
  const auto below = [&](std::size_t end) { return static_cast<std::uint32_t>(random() % end); };
  constexpr int kCollectives[] = {PIDCOMM_ALLTOALL,  PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE,
                                  PIDCOMM_ALLGATHER, PIDCOMM_SCATTER,        PIDCOMM_GATHER,
                                  PIDCOMM_REDUCE,    PIDCOMM_BROADCAST,      PIDCOMM_SCAN,
                                  PIDCOMM_EXSCAN,    PIDCOMM_SENDRECV};
  // No floats: the payload of a NaN is unspecified, and a later step would read it.
  constexpr struct {
    int type;
    std::uint32_t bytes;
    decltype(pidcomm_operator::store) change;
  } kTypes[] = {
      {PIDCOMM_INT16, 2, change<2>}, {PIDCOMM_INT32, 4, change<4>}, {PIDCOMM_UINT64, 8, change<8>}};
  constexpr int kOps[] = {PIDCOMM_SUM, PIDCOMM_MIN, PIDCOMM_PROD};
  constexpr Step::Kind kKinds[] = {Step::Kind::launch,     Step::Kind::launch,
                                   Step::Kind::launch,     Step::Kind::call,
                                   Step::Kind::collective, Step::Kind::collective};
  const std::vector<std::string> masks = masks_of(3);
  const auto part_of_host = [&] {
    Bytes &buffer = setting.host[below(kHostBuffers)];
    return buffer.data() + below(below(2) == 0 ? kBytes : buffer.size() - kBytes + 1);
  };
  const std::array cubes = {&setting.cube, &setting.short_last_axis, &setting.foreach_order};
  std::vector<Step> steps(1 + below(12));
  for (Step &step : steps) {
    step.kind = kKinds[below(std::size(kKinds))];
    const auto src = below(kSlots) * kBytes, dst = below(kSlots) * kBytes;
    step.job = {static_cast<std::uint32_t>(src), static_cast<std::uint32_t>(dst), kBytes,
                below(1000), kNoPe};
    step.window_base = below(4) == 0 ? setting.absolute_base() : 0;
    step.cube = cubes[below(cubes.size())]->get();
    step.call = {part_of_host(), part_of_host(), static_cast<std::uint8_t>(below(256)), 0};
    step.mask = masks[below(masks.size())];
    pidcomm_request &request = step.request;
    request.collective = kCollectives[below(std::size(kCollectives))];
    request.bytes = kBytes;
    request.src = step.window_base + src;
    request.dst = step.window_base + dst;
    const auto &type = kTypes[below(std::size(kTypes))];
    request.type = type.type;
    request.op = kOps[below(std::size(kOps))];
    std::uint32_t groups = 0, group_pes = 0;
    ok(pidcomm_groups(step.cube, step.mask.c_str(), &groups, &group_pes));
    const bool has_members =
        request.collective == PIDCOMM_SCATTER || request.collective == PIDCOMM_GATHER;
    const std::size_t buffer = below(kHostBuffers);
    request.host = setting.host[buffer].data();
    const std::size_t row_bytes = kBytes * (has_members ? group_pes : 1);
    request.host_stride = below(3) == 0 ? row_bytes + below(2) * kStrideBytes : 0;
    request.host_bytes = (groups - 1) * std::max(request.host_stride, row_bytes) + row_bytes;
    if (request.collective == PIDCOMM_SENDRECV) {
      const std::uint32_t pes = 64 * kRanks, distance = below(pes);
      for (std::uint32_t pe = 0; pe < pes; ++pe)
        step.messages.push_back({pe, (pe + distance) % pes, 0, 0, kBytes, 1, 0, 0});
      request.dst = step.window_base + (src + kBytes) % (kSlots * kBytes);  // not in place
      request.host_stride = 0;
      request.host_bytes = step.messages.size() * sizeof step.messages[0];
    }
    const bool has_parts =
        step.kind == Step::Kind::launch || request.collective == PIDCOMM_ALLREDUCE ||
        request.collective == PIDCOMM_REDUCE || request.collective == PIDCOMM_BROADCAST;
    step.parts = has_parts ? 1u << below(3) : 1;
    if (below(3) == 0 &&
        (request.collective == PIDCOMM_ALLREDUCE || request.collective == PIDCOMM_REDUCE_SCATTER ||
         request.collective == PIDCOMM_REDUCE)) {
      pidcomm_operator &operation = step.operation.emplace();
      operation.element_bytes = type.bytes;
      operation.store = type.change;
      operation.context = setting.host[1 - buffer].data() + below(kBytes);
    }
  }
  return steps;
}

/// The request of a collective; it points into the step.
inline pidcomm_request request_of(Step &step) {
  pidcomm_request request = step.request;
  request.mask = step.mask.c_str();
  if (step.operation) request.operation = &*step.operation;
  if (!step.messages.empty()) request.mask = nullptr, request.host = step.messages.data();
  return request;
}

inline void run_in_order(const Setting &setting, std::vector<Step> &steps) {
  const auto write = [&](const char *name, const void *data, std::size_t bytes) {
    DPU_OK_OR_FAIL(dpu_broadcast_to(setting.set.get(), name, 0, data, bytes, DPU_XFER_DEFAULT));
  };
  for (Step &step : steps) {
    if (step.kind == Step::Kind::launch) {
      const std::uint32_t whole[2] = {0, 1};
      write("job", &step.job, sizeof step.job);
      write("part", whole, sizeof whole);
      DPU_OK_OR_FAIL(dpu_launch(setting.set.get(), DPU_SYNCHRONOUS));
    } else if (step.kind == Step::Kind::call) {
      Call call = step.call;
      combine(&call);
    } else {
      const pidcomm_request request = request_of(step);
      ok(pidcomm_run(step.cube, &request, nullptr, nullptr));
    }
  }
}

/// declares: whether launches and calls name the memory that they use. The steps must outlive the
/// stream.
inline void record(pidcomm_stream *stream, std::vector<Step> &steps, bool declares) {
  for (Step &step : steps) {
    if (step.kind == Step::Kind::launch) {
      const pidcomm_access accesses[] = {{step.window_base + step.job.src, kBytes, 0, 1},
                                         {step.window_base + step.job.dst, kBytes, 1, 1}};
      ok(pidcomm_stream_write(stream, "job", &step.job, sizeof step.job));
      ok(pidcomm_stream_launch(stream, accesses, declares ? 2 : 0, step.parts, "part"));
    } else if (step.kind == Step::Kind::call) {
      const pidcomm_stream_host_access ranges[] = {{step.call.from, kBytes, 0},
                                                   {step.call.to, kBytes, 1}};
      ok(pidcomm_stream_call(stream, combine, &step.call, ranges, declares ? 2 : 0));
    } else {
      pidcomm_request request = request_of(step);
      const std::string mask = step.mask;  // the stream copies mask and operator
      if (request.mask != nullptr) request.mask = mask.c_str();
      const std::optional<pidcomm_operator> operation = step.operation;
      if (operation) request.operation = &*operation;
      ok(pidcomm_stream_run(stream, step.cube, &request, nullptr, step.parts));
    }
  }
}

/// The number in the stream of a step, which `record` records after all earlier ones.
inline std::size_t number_of(const std::vector<Step> &steps, std::size_t step) {
  std::size_t number = step;
  for (std::size_t i = 0; i <= step; ++i) number += steps[i].kind == Step::Kind::launch;
  return number;
}

/// Makes a launch end in a fault of a PE, or a call return an error, if the steps have one. Returns
/// the start of the error of the stream and a sentence in it.
inline std::optional<std::pair<std::string, std::string>> break_one(std::vector<Step> &steps,
                                                                    std::mt19937 &random) {
  const std::size_t number = random() % steps.size();
  Step &step = steps[number];
  const std::string start = "step " + std::to_string(number_of(steps, number));
  if (step.kind == Step::Kind::call) {
    step.call.status = kStopped;
    return {{start + ":", "the function returned " + std::to_string(kStopped)}};
  }
  if (step.kind != Step::Kind::launch) return std::nullopt;
  const std::uint32_t pe = step.job.fault_pe = static_cast<std::uint32_t>(random() % (64 * kRanks));
  return {{start + ", ranks", "rank " + std::to_string(pe / 64) + " chip " +
                                  std::to_string(pe % 8) + " bank " + std::to_string(pe / 8 % 8) +
                                  " (PE " + std::to_string(pe) + ") is in fault"}};
}

/// Runs random steps one after another and as a stream: with given cuts or planned ones, twice or
/// more, and at times first with an error in one of the steps. Fails unless all bytes are equal.
/// prepare: called with the stream before its runs.
inline void run_random(Setting &setting, std::uint64_t seed,
                       const std::function<void(pidcomm_stream *)> &prepare = nullptr) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  setting.reset();
  std::vector<Step> steps = random_steps(setting, random);
  run_in_order(setting, steps);
  const Picture want = setting.mram.read(setting.cube);
  const Bytes want_host[] = {setting.host[0], setting.host[1]};
  const std::uint32_t rank_groups = seed % 4 == 3 ? 0 : 1u << seed % 4;
  const bool declares = seed % 5 != 0;
  std::vector<Step> broken = steps;
  const auto error = seed % 3 == 0 ? break_one(broken, random) : std::nullopt;
  const StreamPointer faulty = stream_of(setting.set, rank_groups);
  if (error) {
    record(faulty.get(), broken, declares);
    const int status = pidcomm_stream_execute(faulty.get(), nullptr);
    const std::string sentence = pidcomm_last_error();
    const bool is_call = sentence.find("function") != std::string::npos;
    CHECK_EQ(status, is_call ? +PIDCOMM_ERR_FUNCTION : +PIDCOMM_ERR_DEVICE);
    if (sentence.find(error->first) != 0 || sentence.find(error->second) == std::string::npos)
      fail("'" + sentence + "' has not '" + error->first + "' and '" + error->second + "'");
    if (!is_call) setting.load();  // clears the fault
    for (Step &step : broken) step.call.status = 0;
  }
  const bool runs_again = error && error->second.find("function") != std::string::npos;
  StreamPointer own = stream_of(setting.set, rank_groups);
  pidcomm_stream *const stream = runs_again ? faulty.get() : own.get();
  if (!runs_again) record(stream, steps, declares);
  if (prepare) prepare(stream);
  for (int run = 0; run < (rank_groups == 0 ? 5 : 2); ++run) {
    setting.reset();
    pidcomm_stream_trace trace{};
    ok(pidcomm_stream_execute(stream, &trace));
    const std::string difference = setting.mram.read(setting.cube).difference(setting.cube, want);
    if (!difference.empty()) fail("seed " + std::to_string(seed) + ": " + difference);
    for (std::size_t i = 0; i < kHostBuffers; ++i)
      if (setting.host[i] != want_host[i])
        fail("seed " + std::to_string(seed) + ": host buffer " + std::to_string(i) + " differs");
    if (trace.is_mixed)  // then no time passes between pieces
      CHECK(trace.seconds_setup + trace.seconds_host + trace.seconds_pes >=
            trace.seconds_total * (1 - 1e-9));
  }
}

}  // namespace stream_cases
