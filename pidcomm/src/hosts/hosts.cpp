#include "hosts/hosts.h"

#include <exception>
#include <mutex>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "exec/clock.h"
#include "exec/default_options.h"
#include "hosts/runner.h"

namespace pidcomm {

namespace {

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

template <class Body>
pidcomm_trace recorded(Recording &recording, const Body &body) {
  pidcomm_trace trace;
  recording.guard([&] { trace = body(); });
  recording.done(trace);
  return trace;
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
  /// recorded: arguments of Recording after the recorder; none: the call has no record. The records
  /// have the order of the tickets.
  template <class... Recorded>
  explicit Ticket(HostsCube &cube, const Recorded &...recorded) {
    const std::lock_guard<std::mutex> lock(cube.tickets_);
    if constexpr (sizeof...(recorded) != 0) recording_.emplace(cube.recorder_, recorded...);
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
  Recording &recording() { return *recording_; }

 private:
  std::optional<Recording> recording_;
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
    : local_(local),
      machine_(machine),
      link_(transport),
      recorder_(local.cube().to_string() + "x" + std::to_string(transport.hosts) + ", host " +
                std::to_string(transport.host)) {
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

/// Prepares a call, and returns when all hosts have agreed on it. recording: of the call, or null.
HostsCube::Prepared HostsCube::agreed(const pidcomm_request &request, uint32_t root,
                                      const pidcomm_options *options, bool checks_rows,
                                      Recording *recording) {
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
  if (recording != nullptr) recording->enter(PIDCOMM_CALL_WAITS_FOR_HOSTS);
  prepared.schedule.pieces = agree(link_, intent);
  if (prepared.schedule.pieces > 1) prepared.plan = make(prepared.schedule.pieces);
  prepared.memories.window = link_.window(prepared.plan.window_bytes);
  if (link_.kind() != PIDCOMM_TRANSPORT_MPI) prepared.memories.pool = link_.pool();
  return prepared;
}

pidcomm_trace HostsCube::carry_out(Recording &recording, const pidcomm_request &request,
                                   uint32_t root, const pidcomm_options *options) {
  const Stopwatch total;
  const Recording::Scope scope(recording);
  recording.enter(PIDCOMM_CALL_WAITS_FOR_PES);
  Prepared prepared = agreed(request, root, options, true, &recording);
  recording.enter(PIDCOMM_CALL_RUNS);
  prepared.memories.user = static_cast<std::byte *>(request.host);
  const double seconds_plan = total.seconds("plan");
  pidcomm_trace trace;
  try {
    trace = run_plan(prepared.plan, local_, link_, options, prepared.memories,
                     prepared.schedule.overlaps);
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
  agreed(request, root, options, request.host != nullptr || request.host_bytes != 0, nullptr);
}

pidcomm_trace HostsCube::run(const pidcomm_request &request, uint32_t root,
                             const pidcomm_options *options) {
  Ticket ticket(*this, request, std::size_t{1}, clock_ns());
  ticket.wait();
  return recorded(ticket.recording(),
                  [&] { return carry_out(ticket.recording(), request, root, options); });
}

std::future<pidcomm_trace> HostsCube::start(const pidcomm_request &request, uint32_t root,
                                            const pidcomm_options *options) {
  if (!link_.allows_any_thread())
    fail(PIDCOMM_ERR_OPTION,
         "a call that does not wait needs a transport that any thread may use: start MPI with "
         "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE");
  auto ticket = std::make_unique<Ticket>(*this, request, std::size_t{1}, clock_ns());
  if (const auto start = ticket->recording().start_part()) start->report();
  try {
    return std::async(
        std::launch::async, [this, call = pidcomm_request(request), root,
                             options = options == nullptr ? pidcomm_options{} : *options,
                             mask = std::string(request.mask == nullptr ? "" : request.mask),
                             ticket = std::move(ticket)]() mutable {
          const std::unique_ptr<Ticket> own = std::move(ticket);
          own->wait();
          call.mask = mask.c_str();
          Recording &recording = own->recording();
          recording.take_over();
          return recorded(recording, [&] { return carry_out(recording, call, root, &options); });
        });
  } catch (const std::system_error &) {
    fail(PIDCOMM_ERR_MEMORY, "the system starts no thread for a call that does not wait");
  }
}

void HostsCube::refuse(pidcomm_status status, const std::string &sentence) {
  Ticket ticket(*this, clock_ns());
  ticket.wait();
  Recording &recording = ticket.recording();
  const Recording::Scope scope(recording);
  recording.guard([&] {
    if (link_.hosts() == 1) fail(status, sentence);
    recording.enter(PIDCOMM_CALL_WAITS_FOR_HOSTS);
    agree(link_, {status, sentence});
  });
}

}  // namespace pidcomm
