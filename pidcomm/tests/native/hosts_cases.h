// Hosts that are threads of this process, and calls on them against the oracle.
#pragma once

#include <pidcomm/pool.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <random>
#include <thread>

#include "machine.h"
#include "queue_transport.h"

namespace over_hosts {

using machine::Axes;
using machine::Bytes;

inline std::size_t product(const Axes &axes) {
  std::size_t result = 1;
  for (const auto length : axes) result *= length;
  return result;
}

/// How the hosts are connected: by queues, or by a pool of this size.
struct Connection {
  std::size_t pool_bytes = 0, coherence = PIDCOMM_COHERENCE_NONE;
  bool has_switch = false;
};

/// A pool in memory of this process, so that sanitizers see all accesses at one address.
class Pools {
 public:
  Pools(std::uint32_t hosts, const Connection &connection) : pools_(hosts) {
    if (connection.pool_bytes == 0) return;
    memory_.reset(static_cast<std::byte *>(std::aligned_alloc(4096, connection.pool_bytes)));
    settings_.memory = memory_.get();
    settings_.bytes = connection.pool_bytes;
    settings_.hosts = hosts;
    settings_.coherence = connection.coherence;
    settings_.has_switch = connection.has_switch ? 1 : 0;
    settings_.timeout_s = 60;
    if (connection.has_switch)
      switch_ = std::thread([settings = settings_] { pidcomm_switch_run(&settings); });
  }
  Pools(const Pools &) = delete;
  Pools &operator=(const Pools &) = delete;

  bool are_used() const { return memory_ != nullptr; }
  int open(std::uint32_t host, pidcomm_transport &transport) {
    pidcomm_pool_settings own = settings_;
    own.host = host;
    const int status = pidcomm_pool_open(&own, &pools_[host]);
    return status != PIDCOMM_OK ? status : pidcomm_pool_transport(pools_[host], 0, &transport);
  }
  void close() {
    for (pidcomm_pool *pool : pools_) pidcomm_pool_close(pool);
    if (switch_.joinable()) switch_.join();
  }

 private:
  struct Free {
    void operator()(std::byte *memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  pidcomm_pool_settings settings_{};
  std::vector<pidcomm_pool *> pools_;
  std::thread switch_;
};

/// Hosts with a hypercube each, connected by queues or by a pool.
class Hosts {
 public:
  Hosts(std::uint32_t hosts, Axes shape, const pidcomm_hosts_settings &settings = {},
        const Connection &connection = {})
      : shape_(std::move(shape)), network_(hosts), pools_(hosts, connection) {
    machine::power_up(hosts);
    for (std::uint32_t host = 0; host < hosts; ++host) {
      sets_.push_back(machine::DpuSet::of_ranks(1));
      local_.push_back(std::make_unique<machine::Hypercube>(sets_.back(), shape_));
    }
    cubes_.resize(hosts);
    const std::vector<int> statuses = each([&](std::uint32_t host) {
      pidcomm_transport transport = network_.transport(host);
      if (pools_.are_used()) {
        transport.close(transport.context);
        if (const int status = pools_.open(host, transport)) return status;
      }
      return pidcomm_hosts_connect(local_[host]->get(), &transport, &settings, &cubes_[host]);
    });
    for (std::uint32_t host = 0; host < hosts; ++host)
      if (statuses[host] != PIDCOMM_OK) machine::fail("connect: " + sentences[host]);
  }
  ~Hosts() {
    for (pidcomm_hosts *cube : cubes_) pidcomm_hosts_disconnect(cube);
    pools_.close();
  }
  Hosts(const Hosts &) = delete;
  Hosts &operator=(const Hosts &) = delete;

  /// Calls body(host) on a thread for each host, and returns the statuses. Keeps the error
  /// sentences. If a body throws, throws the first exception after all threads have ended.
  template <class Body>
  std::vector<int> each(const Body &body) {
    std::vector<int> statuses(size());
    sentences.assign(size(), "");
    std::vector<std::exception_ptr> thrown(size());
    std::vector<std::thread> threads;
    for (std::uint32_t host = 0; host < size(); ++host)
      threads.emplace_back([&, host] {
        try {
          statuses[host] = body(host);
          sentences[host] = pidcomm_last_error();
        } catch (...) {
          thrown[host] = std::current_exception();
        }
      });
    for (std::thread &thread : threads) thread.join();
    for (const std::exception_ptr &one : thrown)
      if (one != nullptr) std::rethrow_exception(one);
    return statuses;
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(cubes_.size()); }
  std::size_t pes() const { return product(shape_); }
  pidcomm_hypercube *local(std::uint32_t host) const { return local_[host]->get(); }
  pidcomm_hosts *cube(std::uint32_t host) const { return cubes_[host]; }
  QueueNetwork &network() { return network_; }
  Axes axes() const {
    Axes axes = shape_;
    axes.push_back(size());
    return axes;
  }

  std::vector<std::string> sentences;

 private:
  Axes shape_;
  QueueNetwork network_;
  Pools pools_;
  std::vector<machine::DpuSet> sets_;
  std::vector<std::unique_ptr<machine::Hypercube>> local_;
  std::vector<pidcomm_hosts *> cubes_;
};

#define EACH_OK(hosts, ...) \
  for (const int status : (hosts).each(__VA_ARGS__)) CHECK_EQ(status, +PIDCOMM_OK)

struct Call {
  verify::Problem problem;
  std::size_t src, dst;
  std::uint32_t root;
  bool waits;
};

/// Runs a call on all hosts and compares with the oracle. Returns the traces.
inline std::vector<pidcomm_trace> check_call(Hosts &hosts, const Call &call, std::uint64_t seed,
                                             const pidcomm_options &options = {}) {
  const verify::Problem &problem = call.problem;
  const verify::Rows in = verify::rows_before(problem), out = verify::rows_after(problem);
  Bytes before(in.bytes()), after(out.bytes(), 0xA5);
  verify::fill_distinct(seed, in.row_bytes, before);
  const bool has_axis = problem.mask.back() == '1';
  const std::size_t in_part = in.bytes() / hosts.size(), out_part = out.bytes() / hosts.size();
  // The part of a side at a host: PE rows and the rows of local groups are divided; the rows of
  // groups over all hosts are at the root.
  const auto part_of = [&](Bytes &bytes, const verify::Rows &rows, std::uint32_t host,
                           std::size_t part) -> std::pair<std::uint8_t *, std::size_t> {
    if (rows.at_pes || !has_axis) return {bytes.data() + host * part, part};
    return host == call.root ? std::pair(bytes.data(), bytes.size())
                             : std::pair<std::uint8_t *, std::size_t>(nullptr, 0);
  };
  std::vector<pidcomm_trace> traces(hosts.size());
  EACH_OK(hosts, [&](std::uint32_t host) {
    const auto [given, given_bytes] = part_of(before, in, host, in_part);
    const auto [taken, taken_bytes] = part_of(after, out, host, out_part);
    if (in.at_pes && in.row_bytes != 0)
      if (const int status = pidcomm_write(hosts.local(host), call.src, in.row_bytes, given))
        return status;
    pidcomm_request request{};
    request.collective = problem.collective;
    request.mask = problem.mask.c_str();
    request.bytes = problem.bytes;
    request.src = call.src;
    request.dst = call.dst;
    request.type = problem.type;
    request.op = problem.op;
    if (!in.at_pes || !out.at_pes) {
      request.host = in.at_pes ? taken : given;
      request.host_bytes = in.at_pes ? taken_bytes : given_bytes;
    }
    pidcomm_trace &trace = traces[host];
    trace.size = sizeof trace;
    if (call.waits) {
      if (const int status =
              pidcomm_hosts_run(hosts.cube(host), &request, call.root, &options, &trace))
        return status;
    } else {
      pidcomm_pending *pending = nullptr;
      if (const int status =
              pidcomm_hosts_irun(hosts.cube(host), &request, call.root, &options, &pending))
        return status;
      if (const int status = pidcomm_wait(&pending, &trace)) return status;
    }
    return out.at_pes ? pidcomm_read(hosts.local(host), call.dst, out.row_bytes, taken)
                      : +PIDCOMM_OK;
  });
  const Bytes want = verify::expected(problem, before);
  const verify::Verdict verdict = verify::compare(problem.type, out.row_bytes, after, want, false,
                                                  out.at_pes ? "PE" : "host row");
  if (verdict.wrong != 0) machine::fail(verdict.first);
  return traces;
}

inline std::size_t bytes_for(int collective, std::size_t members, std::size_t block_bytes) {
#define PIDCOMM_ROW(ENUM, code, name, op, before, after, in, out, ...) \
  if (collective == code)                                              \
    return ((before && in) || (after && out)) ? members * block_bytes : block_bytes;
  PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  return 0;
}

constexpr int kCollectives[] = {
#define PIDCOMM_ROW(ENUM, code, ...) code,
    PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};
constexpr int kIntegers[] = {PIDCOMM_INT8, PIDCOMM_UINT16, PIDCOMM_INT32, PIDCOMM_UINT64};

/// A random call on the hosts.
inline Call random_call(const Hosts &hosts, int collective, const std::string &mask,
                        std::mt19937 &random) {
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  Call call;
  call.problem = {collective, hosts.axes(),        mask,
                  0,          kIntegers[below(4)], static_cast<int>(below(7))};
  const std::size_t members = verify::groups_of(call.problem.axis_len, mask).group_pes;
  call.problem.bytes = bytes_for(collective, members, 8 * (1 + below(40)));
  call.src = 8 * below(100);
  call.dst = below(2) == 0 ? call.src : call.src + (std::size_t{1} << 20);
  call.root = below(hosts.size());
  call.waits = below(4) != 0;
  return call;
}

inline void check_all_collectives(std::uint32_t count, const Axes &shape,
                                  const pidcomm_hosts_settings &settings,
                                  const Connection &connection = {}) {
  Hosts hosts(count, shape, settings, connection);
  machine::Grid grid("hosts");
  std::mt19937 random(count * 1000 + static_cast<unsigned>(settings.overlap));
  for (const int collective : kCollectives)
    for (const std::string &mask : machine::masks_of(shape.size() + 1))
      for (const int technique : {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL}) {
        const Call call = random_call(hosts, collective, mask, random);
        pidcomm_options options{};
        options.technique = technique;
        options.threads = 2;
        grid.run([&] { check_call(hosts, call, random(), options); });
      }
  grid.finish();
}

/// Technique `auto` with a scratch that overlaps the destination window of the call.
inline void check_auto_ignores_scratch(const Connection &connection = {}) {
  Hosts hosts(2, {8, 4}, {}, connection);
  for (const int collective : kCollectives) {
    const std::size_t bytes = bytes_for(collective, 64, 64), dst = std::size_t{1} << 20;
    const Call call = {
        {collective, hosts.axes(), "111", bytes, PIDCOMM_INT32, PIDCOMM_SUM}, 0, dst, 0, true};
    pidcomm_options options{};
    options.technique = PIDCOMM_TECHNIQUE_AUTO;
    options.scratch_offset = dst + bytes - 8;
    for (const pidcomm_trace &trace : check_call(hosts, call, 3, options))
      CHECK_EQ(trace.pe_loads, 0u);
  }
}

inline void check_pr_techniques(const pidcomm_hosts_settings &settings,
                                const Connection &connection = {}) {
  Hosts hosts(2, {8, 4}, settings, connection);
  std::mt19937 random(5);
  for (const int collective : kCollectives)
    for (const char *mask : {"101", "111"}) {
      Call call = random_call(hosts, collective, mask, random);
      call.problem.bytes =
          bytes_for(collective, verify::groups_of(hosts.axes(), mask).group_pes, 64);
      pidcomm_options options{};
      options.technique = PIDCOMM_TECHNIQUE_PR_IM_CM;
      options.scratch_offset = std::size_t{8} << 20;
      check_call(hosts, call, 3, options);
    }
}

}  // namespace over_hosts
