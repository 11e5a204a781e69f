#include "hosts/hosts.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <sstream>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "exec/clock.h"
#include "exec/default_options.h"
#include "exec/flush.h"
#include "exec/parallel.h"
#include "exec/reducer.h"

namespace pidcomm {

namespace {

constexpr uint64_t kCombineBytes = 65536;  // of a unit of work of Round::combines

/// Adds the work of a local collective to the trace of the call.
void add_to(pidcomm_trace &sum, const pidcomm_trace &trace) {
  const auto codes = std::tuple(trace.technique, trace.isa, trace.threads, trace.coherence);
#define PIDCOMM_ROW(ctype, name, ...) sum.name += trace.name;
  PIDCOMM_TRACE_FIELDS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  std::tie(sum.technique, sum.isa, sum.threads, sum.coherence) = codes;
}

/// The options of the local collectives, without a PE scratch that the plan refuses.
pidcomm_options local_options(const HostsPlan &plan, const pidcomm_options *options) {
  pidcomm_options local = options == nullptr ? pidcomm_options{} : *options;
  local.scratch_offset = plan.options.scratch_offset;
  return local;
}

/// Carries out one plan.
class Runner {
 public:
  Runner(const HostsPlan &plan, Executor &local, Link &link, const pidcomm_options *options,
         const Memories &memories)
      : plan_(plan),
        local_(local),
        link_(link),
        options_(local_options(plan, options)),
        memories_(memories) {}

  pidcomm_trace run(bool overlaps) {
    const bool has_local_work = plan_.pieces.size() > 1 || !plan_.meanwhile.empty();
    if (!overlaps || !has_local_work || !overlapped()) one_after_another();
    all(plan_.last);
    for (const bool is_send : {true, false})
      (is_send ? trace_.bytes_sent : trace_.bytes_received) = traffic_of(plan_, is_send).bytes;
    trace_.bytes_staged += plan_.window_bytes;
    trace_.seconds_exchange = seconds_exchange_;
    return trace_;
  }

 private:
  void all(const std::vector<Local> &locals) {
    for (const Local &one : locals) {
      const auto read = pool_areas(plan_, one, false), written = pool_areas(plan_, one, true);
      pidcomm_trace trace{};
      use_pool(read, written,
               [&] { local_.run(local_request(plan_, one, memories_), &options_, trace); });
      add_to(trace_, trace);
    }
  }

  void one_after_another() {
    for (const Piece &piece : plan_.pieces) {
      all(piece.before);
      exchange(piece);
      if (&piece == &plan_.pieces.front()) all(plan_.meanwhile);
      all(piece.after);
    }
  }

  /// Runs the local collectives on another thread, and the exchanges on this thread. Two pieces are
  /// under way at a time, because the buffers of pieces j and j + 2 are the same. Returns false if
  /// the system starts no thread.
  bool overlapped() {
    std::thread thread;
    try {
      thread = std::thread([this] { run_locals(); });
    } catch (const std::system_error &) {
      return false;
    }
    try {
      for (std::size_t j = 0; j < plan_.pieces.size() && wait_for(prepared_, j + 1); ++j) {
        exchange(plan_.pieces[j]);
        advance(exchanged_);
      }
    } catch (...) {
      stop(std::current_exception());
    }
    thread.join();
    if (error_) std::rethrow_exception(error_);
    return true;
  }

  void run_locals() {
    const std::vector<Piece> &pieces = plan_.pieces;
    try {
      for (std::size_t j = 0; j <= pieces.size(); ++j) {
        if (j < pieces.size()) {
          all(pieces[j].before);
          advance(prepared_);
        }
        if (j == std::min<std::size_t>(1, pieces.size() - 1)) all(plan_.meanwhile);
        if (j == 0) continue;
        if (!wait_for(exchanged_, j)) return;
        all(pieces[j - 1].after);
      }
    } catch (...) {
      stop(std::current_exception());
    }
  }

  void exchange(const Piece &piece) {
    const Stopwatch exchanging;
    for (const Round &round : piece.rounds) {
      std::vector<Transfer> transfers;
      for (const Message &message : round.messages) {
        const Area &area = message.area;
        transfers.push_back({message.host, message.is_send, memories_.at(area), area.rows,
                             area.bytes, area.stride});
      }
      if (round.syncs)
        link_.sync();
      else
        link_.exchange(transfers);
      for (const Combine &one : round.combines)
        if (!round.is_on_switch)
          use_pool(pool_areas(one, false), pool_areas(one, true), [&] { combine(one); });
        else if (plan_.host == 0)
          link_.reduce(reduction_of(one));
    }
    seconds_exchange_ += exchanging.seconds();
  }

  /// Runs a function that reads and writes areas of the pool.
  template <class Run>
  void use_pool(const std::vector<const Area *> &read, const std::vector<const Area *> &written,
                const Run &run) const {
    if (read.empty() && written.empty()) return run();
    const double begin = clock_s();
    flush(read);
    run();
    flush(written);
    const auto bytes_of = [](const std::vector<const Area *> &areas) {
      uint64_t bytes = 0;
      for (const Area *area : areas) bytes += area->size_bytes();
      return bytes;
    };
    link_.pay(begin, bytes_of(written), bytes_of(read));
  }

  void flush(const std::vector<const Area *> &areas) const {
    if (!link_.needs_flush()) return;
    for (const Area *area : areas)
      for (uint64_t row = 0; row < area->rows; ++row)
        flush_bytes(kernels_of(plan_.whole.options.isa), memories_.at(*area) + row * area->stride,
                    area->bytes);
  }

  /// The rows of all hosts in the pool, one after the other; see plan_pool.cpp.
  pidcomm_reduction reduction_of(const Combine &one) const {
    pidcomm_reduction reduction{};
    reduction.type = plan_.whole.type.code;
    reduction.op = plan_.whole.op;
    reduction.rows = static_cast<uint32_t>(1 + one.from.size());
    reduction.offset = one.into.offset;
    reduction.bytes = one.into.size_bytes();
    reduction.stride = one.from.front().offset - one.into.offset;
    return reduction;
  }

  void combine(const Combine &one) const {
    const Options &options = plan_.whole.options;
    const Reducer *const reducer =
        reducer_of(kernels_of(options.isa), plan_.whole);  // null if all of them are copies
    const uint64_t width = std::min(one.into.bytes, kCombineBytes),
                   columns = (one.into.bytes + width - 1) / width;
    WorkQueue queue(one.into.rows * columns, options.threads);
    run_threads(options.threads, [&](int thread) {
      queue.each(thread, [&](uint64_t unit) {
        const uint64_t row = unit / columns, first = unit % columns * width,
                       size = std::min(width, one.into.bytes - first);
        std::byte *const into = memories_.at(one.into) + one.into.row_offset(row) + first;
        bool is_copy = one.replaces;
        for (const Area &from : one.from) {
          const std::byte *const operand =
              memories_.at(from) + (from.rows == 1 ? row * one.into.bytes : from.row_offset(row)) +
              first;
          if (std::exchange(is_copy, false))
            std::memcpy(into, operand, size);
          else
            reducer->combine(into, operand, size);
        }
      });
    });
  }

  /// Waits until a counter has reached `count`. Returns false if the other thread has failed.
  bool wait_for(const std::size_t &counter, std::size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return counter >= count || error_; });
    return !error_;
  }
  void advance(std::size_t &counter) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counter;
    changed_.notify_all();
  }
  void stop(std::exception_ptr error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

  const HostsPlan &plan_;
  Executor &local_;
  Link &link_;
  const pidcomm_options options_;
  const Memories memories_;
  pidcomm_trace trace_{};  // of the thread that runs the local collectives
  double seconds_exchange_ = 0;
  std::mutex mutex_;  // guards all later members
  std::condition_variable changed_;
  std::size_t prepared_ = 0, exchanged_ = 0;  // pieces whose `before` and whose exchange have ended
  std::exception_ptr error_;
};

std::string description_of(const HostsPlan &plan, const pidcomm_request &request) {
  const Plan &whole = plan.whole;
  std::ostringstream text;
  text << name_of_collective(whole.collective) << " with mask " << whole.mask << " of "
       << whole.cube.to_string() << ", " << request.bytes << " bytes of "
       << name_of_type(whole.type.code);
  if (whole.reduces) text << ", " << name_of_op(whole.op);
  if (plan.selects_hosts() && (whole.in.space == Space::host || whole.out.space == Space::host))
    text << ", root " << plan.root;
  if (plan.transposes) text << ", transposed rows";
  return text.str();
}

/// Checks the caller's host buffer. The host that has the rows gives a buffer for all rows; the
/// other hosts give none.
void check_rows(const HostsPlan &plan, const pidcomm_request &request) {
  if (plan.runs_alone()) return;  // the local call checks its rows
  if (plan.has_rows()) return check_host(plan.whole, request);
  if (request.host != nullptr || request.host_bytes != 0)
    fail(PIDCOMM_ERR_HOST_BUFFER, name_of_collective(plan.whole.collective), ": host ", plan.host,
         " gives a host buffer of ", request.host_bytes, " bytes; only the root, host ", plan.root,
         ", has rows");
}

/// Shared memory is aligned, and has room for the headers of the hosts.
void check_transport(const pidcomm_transport &transport, const Link &link) {
  if (transport.shared == nullptr) return;
  if (reinterpret_cast<uintptr_t>(transport.shared) % kLineBytes != 0)
    fail(PIDCOMM_ERR_ARGUMENT, "the shared memory (", transport.shared,
         ") of a transport must be aligned to ", kLineBytes, " bytes");
  if (link.pool_bytes() > transport.shared_bytes)
    fail(PIDCOMM_ERR_ARGUMENT, "the shared memory of a transport has ", transport.shared_bytes,
         " bytes; ", transport.hosts, " hosts need at least ",
         transport.shared_bytes - link.pool_bytes(), " for the comparison of their calls");
}

}  // namespace

HostsSettings HostsSettings::of(const pidcomm_hosts_settings &settings) {
  HostsSettings own;
  const auto check = [](const char *name, double value) {
    if (!(value >= 0 && value < 1e9))
      fail(PIDCOMM_ERR_ARGUMENT, name, " (", value, ") must be at least 0 and below 1e9");
  };
  check("timeout_s", settings.timeout_s);
  check("link_gb_s", settings.link_gb_s);
  check("link_latency_us", settings.link_latency_us);
  if (settings.overlap > PIDCOMM_OVERLAP_OFF)
    fail(PIDCOMM_ERR_ARGUMENT, "overlap code ", settings.overlap,
         " is unknown; use 0 (auto), 1 (on) or 2 (off)");
  if (settings.timeout_s > 0) own.link.timeout_s = settings.timeout_s;
  own.link.gb_s = settings.link_gb_s;
  own.link.latency_us = settings.link_latency_us;
  own.overlap = settings.overlap;
  if (settings.transport > PIDCOMM_TRANSPORT_SWITCH)
    fail(PIDCOMM_ERR_ARGUMENT, "transport code ", settings.transport,
         " is unknown; use 0 (mpi), 1 (pool) or 2 (switch)");
  own.transport = static_cast<pidcomm_transport_kind>(settings.transport);
  return own;
}

std::string HostsSettings::to_string() const {
  std::ostringstream text;
  text << "link " << link.gb_s << " GB/s and " << link.latency_us << " us, overlap " << overlap;
  return text.str();
}

/// The place of a call in the FIFO queue of calls. The next call may begin when the ticket is
/// destroyed.
class HostsCube::Ticket {
 public:
  explicit Ticket(HostsCube &cube) {
    const std::lock_guard<std::mutex> lock(cube.tickets_);
    before_ = std::exchange(cube.last_, done_.get_future().share());
  }
  ~Ticket() {
    wait();
    done_.set_value();
  }
  Ticket(const Ticket &) = delete;
  Ticket &operator=(const Ticket &) = delete;
  void wait() const {
    if (before_.valid()) before_.wait();
  }

 private:
  std::promise<void> done_;
  std::shared_future<void> before_;
};

struct HostsCube::Prepared {
  HostsPlan plan;
  Schedule schedule;
  Memories memories;
};

HostsCube::HostsCube(Executor &local, const pidcomm_transport &transport,
                     const pidcomm_hosts_settings &settings,
                     const std::function<pidcomm_machine()> &machine)
    : local_(local), machine_(machine), link_(transport) {
  if (transport.host >= transport.hosts)
    fail(PIDCOMM_ERR_ARGUMENT, "the transport's host (", transport.host,
         ") must be below its hosts (", transport.hosts, ")");
  check_transport(transport, link_);
  if (transport.shared != nullptr)
    link_.sync();  // all hosts have left an earlier connection on the same memory
  Intent intent;
  try {
    settings_ = HostsSettings::of(settings);
    link_.use(settings_.link);
    intent.text = "connect " + cube_over(local.cube(), transport.hosts).to_string() + ", " +
                  settings_.to_string();
  } catch (const Error &error) {
    intent = {error.status(), error.what()};
  }
  agree(link_, intent);
}

/// Throws the errors that the local collectives of a plan would throw before they move bytes.
void HostsCube::check_locals(const HostsPlan &plan, const pidcomm_request &request,
                             const pidcomm_options *options, bool checks_rows) {
  const pidcomm_options own = local_options(plan, options);
  each_local(plan, [&](const Local &one) {
    pidcomm_request asked = local_request(plan, one, {});
    if (plan.runs_alone()) {
      asked.host = request.host;
      asked.host_bytes = request.host_bytes;
      asked.host_stride = request.host_stride;
      asked.host_transposes = request.host_transposes;
      if (checks_rows)
        check_host(make_plan(plan.local, asked, plan.whole.options, plan.whole.heap_base), asked);
      return local_.validate(asked, &own);
    }
    asked.host_bytes = 0;
    try {
      local_.validate(asked, &own);
    } catch (const Error &error) {
      fail_local(plan, one, error);
    }
  });
}

/// The smallest number of pieces whose rows fit into the pool. Errors: ERR_MEMORY (no number fits).
Schedule HostsCube::fitting(const MakePlan &make) const {
  Schedule schedule;
  for (;; schedule.pieces *= 2) {
    const HostsPlan plan = make(schedule.pieces);
    if (plan.pool_bytes <= link_.pool_bytes()) return schedule;
    if (plan.pieces.size() < schedule.pieces)
      fail(PIDCOMM_ERR_MEMORY, name_of_collective(plan.whole.collective), " with mask ",
           plan.whole.mask, " of ", plan.whole.cube.to_string(), ", ", plan.whole.bytes,
           " bytes, needs ", plan.pool_bytes, " bytes of the pool in ", plan.pieces.size(),
           " pieces; the pool has ", link_.pool_bytes());
  }
}

HostsCube::Prepared HostsCube::prepare(const MakePlan &make, const pidcomm_request &request,
                                       const pidcomm_options *options, bool checks_rows) {
  Prepared prepared{make(1), {}, {}};
  if (checks_rows) check_rows(prepared.plan, request);
  const bool is_pool = link_.kind() != PIDCOMM_TRANSPORT_MPI;
  if (is_pool) {
    prepared.schedule = fitting(make);
    if (prepared.schedule.pieces > 1) prepared.plan = make(prepared.schedule.pieces);
  }
  check_locals(prepared.plan, request, options, checks_rows);
  if (is_pool) return prepared;
  prepared.schedule.overlaps = settings_.overlap != PIDCOMM_OVERLAP_OFF;
  if (link_.host() == 0 && !prepared.plan.pieces.empty()) {  // host 0 decides for all hosts
    const pidcomm_machine machine = machine_();
    const HostsPricer pricer(machine, prepared.plan.options,
                             rate_of(settings_.link, machine, link_.kind(), link_.hosts()));
    prepared.schedule = choose_schedule(settings_.overlap, pricer, make);
  }
  return prepared;
}

/// Prepares a call, and returns when all hosts have agreed on it.
HostsCube::Prepared HostsCube::agreed(const pidcomm_request &request, uint32_t root,
                                      const pidcomm_options *options, bool checks_rows) {
  const auto make = [&](uint32_t pieces) {
    return make_hosts_plan(local_.cube(), link_.hosts(), link_.host(), request, root,
                           resolve(options), local_.heap_base(), pieces, link_.kind());
  };
  Intent intent;
  Prepared prepared;
  try {
    prepared = prepare(make, request, options, checks_rows);
    intent.text = description_of(prepared.plan, request);
    intent.pieces = prepared.schedule.pieces;
    link_.window(prepared.plan.window_bytes);  // a lack of memory is an error of all hosts
  } catch (const Error &error) {
    if (link_.hosts() == 1) throw;
    intent = {error.status(), error.what()};
  } catch (const std::bad_alloc &) {
    if (link_.hosts() == 1) throw;
    intent = {PIDCOMM_ERR_MEMORY, "the host is out of memory"};
  }
  if (link_.hosts() == 1) return prepared;
  prepared.schedule.pieces = agree(link_, intent);
  if (prepared.schedule.pieces > 1) prepared.plan = make(prepared.schedule.pieces);
  prepared.memories.window = link_.window(prepared.plan.window_bytes);
  if (link_.kind() != PIDCOMM_TRANSPORT_MPI) prepared.memories.pool = link_.pool();
  return prepared;
}

pidcomm_trace HostsCube::carry_out(const pidcomm_request &request, uint32_t root,
                                   const pidcomm_options *options) {
  const Stopwatch total;
  Prepared prepared = agreed(request, root, options, true);
  prepared.memories.user = static_cast<std::byte *>(request.host);
  const double seconds_plan = total.seconds();
  Runner runner(prepared.plan, local_, link_, options, prepared.memories);
  pidcomm_trace trace;
  try {
    trace = runner.run(prepared.schedule.overlaps);
  } catch (const std::exception
               &error) {  // the other hosts wait for messages of this call until their time-out
    if (!prepared.plan.runs_alone()) link_.give_up(error.what());
    throw;
  }
  trace.seconds_plan += seconds_plan;
  trace.seconds_total = total.seconds();
  return trace;
}

void HostsCube::validate(const pidcomm_request &request, uint32_t root,
                         const pidcomm_options *options) {
  const Ticket ticket(*this);
  ticket.wait();
  agreed(request, root, options, request.host != nullptr || request.host_bytes != 0);
}

pidcomm_trace HostsCube::run(const pidcomm_request &request, uint32_t root,
                             const pidcomm_options *options) {
  const Ticket ticket(*this);
  ticket.wait();
  return carry_out(request, root, options);
}

std::future<pidcomm_trace> HostsCube::start(const pidcomm_request &request, uint32_t root,
                                            const pidcomm_options *options) {
  if (!link_.allows_any_thread())
    fail(PIDCOMM_ERR_OPTION,
         "a call that does not wait needs a transport that any thread may use: start MPI with "
         "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE");
  auto ticket = std::make_unique<Ticket>(*this);
  try {
    return std::async(std::launch::async,
                      [this, call = pidcomm_request(request), root,
                       options = options == nullptr ? pidcomm_options{} : *options,
                       mask = std::string(request.mask == nullptr ? "" : request.mask),
                       ticket = std::move(ticket)]() mutable {
                        const std::unique_ptr<Ticket> own = std::move(ticket);
                        own->wait();
                        call.mask = mask.c_str();
                        return carry_out(call, root, &options);
                      });
  } catch (const std::system_error &) {
    fail(PIDCOMM_ERR_MEMORY, "the system starts no thread for a call that does not wait");
  }
}

void HostsCube::refuse(pidcomm_status status, const std::string &sentence) {
  const Ticket ticket(*this);
  ticket.wait();
  if (link_.hosts() == 1) fail(status, sentence);
  agree(link_, {status, sentence});
}

}  // namespace pidcomm
