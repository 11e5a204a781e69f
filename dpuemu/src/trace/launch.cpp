// The events of the host, and of launches.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "machine/machine.h"
#include "trace/trace.h"
#include "trace/traces.h"

namespace dpuemu {
namespace {

constexpr double kNsPerSecond = 1e9;

void append_argument(std::string &arguments, const char *field, const std::string &value) {
  arguments += arguments.empty() ? R"(,"args":{)" : ",";
  arguments += quoted(field) + ":" + value;
}

uint64_t thread_id() { return static_cast<uint64_t>(syscall(SYS_gettid)); }

std::string in_us(double ns) {
  std::string text;
  append_us(text, static_cast<uint64_t>(std::llround(ns)));
  return text;
}

}  // namespace

void write_trace() {
  if (!trace_is_on()) return;
  try {
    Traces::instance().write();
  } catch (const std::bad_alloc &) {  // the host has no memory for the trace
  }
}

HostSpan::HostSpan(const char *name, bool is_transfer)
    : name_(trace_is_on() ? name : nullptr), is_transfer_(is_transfer) {
  if (is_on()) begin_ns_ = host_ns();
}

void HostSpan::add(const char *field, double value) {
  if (is_on()) append_argument(arguments_, field, number(value));
}

void HostSpan::add(const char *field, const std::string &value) {
  if (is_on()) append_argument(arguments_, field, quoted(value));
}

HostSpan::~HostSpan() {
  if (!is_on()) return;
  try {
    std::string line;
    const uint64_t end_ns = host_ns();
    append_span(line, static_cast<uint64_t>(getpid()), thread_id(), "measured", begin_ns_, end_ns,
                quoted(name_));
    if (is_transfer_)
      Traces::instance().count([&](Totals &totals) {
        ++totals.transfers;
        totals.moved.add(begin_ns_, end_ns);
      });
    Traces::instance().add_host(line + arguments_ + (arguments_.empty() ? "}\n" : "}}\n"));
  } catch (const std::bad_alloc &) {  // the host has no memory for the trace
  }
}

void choose_traced_pes(const std::vector<uint32_t> &numbers) { Traces::instance().choose(numbers); }

void name_traced_program(const Program &program, const std::string &path) {
  Traces::instance().name(program, path);
}

TracedLaunch::TracedLaunch(std::vector<TracedRank> ranks, bool caller_waits)
    : ranks_(std::move(ranks)),
      number_(Traces::instance().count_launch()),
      thread_(caller_waits ? thread_id() : kRankThread + ranks_[0].rank->id()),
      host_begin_ns_(host_ns()),
      begin_ns_(static_cast<double>(host_begin_ns_ - Traces::instance().origin_ns())),
      ns_per_cycle_(kNsPerSecond / Machine::instance().chip().cycles_per_second()) {
  Traces &traces = Traces::instance();
  uint64_t shown = 0;
  const Program *program = nullptr;
  for (const TracedRank &traced : ranks_) {
    begin_ns_ = std::max(begin_ns_, traces.rank_free_ns(traced.rank->id()));
    for_each_dpu(traced.dpus, [&](uint32_t i) {
      shown += traces.shows(pe_number(traced.rank->id(), i));
      if (program == nullptr) program = traced.rank->pes[i].program;
    });
  }
  name_.append("launch ").append(std::to_string(number_));
  if (program != nullptr) name_.append(": ").append(traces.name_of(*program));
  traces.write_now_and_then();
  bytes_per_pe_ = traces.room() / std::max<uint64_t>(shown, 1);
}

bool TracedLaunch::shows(uint32_t number) const { return Traces::instance().shows(number); }

void TracedLaunch::end() {
  const uint64_t end_ns = host_ns();
  try {
    write(end_ns);
    // A process may end by _exit() after a single launch.
    if (number_ == 1)
      Traces::instance().write();
    else
      Traces::instance().write_now_and_then();
  } catch (const std::bad_alloc &) {  // the host has no memory for the trace
  }
}

void TracedLaunch::write(uint64_t host_end_ns) {
  Traces &traces = Traces::instance();
  const std::string host_us = in_us(static_cast<double>(host_end_ns - host_begin_ns_));
  double slowest_of_all = 0;
  uint64_t pes = 0;
  const auto at = [&](double ns) { return static_cast<uint64_t>(std::llround(begin_ns_ + ns)); };
  for (const TracedRank &traced : ranks_) {
    double slowest = 0, sum = 0;
    uint32_t slowest_dpu = 0, count = 0;
    std::string times, dpus;
    std::array<double, kDpusPerRank> pe_ns = {};
    for_each_dpu(traced.dpus, [&](uint32_t i) {
      const double ns = pe_ns[i] = traced.rank->pes[i].report.cycles * ns_per_cycle_;
      if (ns > slowest) slowest_dpu = i;
      slowest = std::max(slowest, ns);
      sum += ns;
      ++count;
      times += (times.empty() ? "" : ",") + in_us(ns);
      dpus += (dpus.empty() ? "" : ",") + std::to_string(i);
    });
    if (count == 0) continue;
    pes += count;
    slowest_of_all = std::max(slowest_of_all, slowest);
    const uint32_t rank = traced.rank->id();
    traces.count([&](Totals &totals) {
      ++totals.launches;
      totals.launched.add(host_begin_ns_, host_end_ns);
      totals.modelled.add(at(0), at(slowest));
      for_each_dpu(traced.dpus, [&](uint32_t i) {
        totals.pe_ns[pe_number(rank, i)] += pe_ns[i];
        totals.has_launched.set(pe_number(rank, i));
      });
    });
    std::string lines, arguments;
    append_span(lines, kRanksPid, rank, "modelled", at(0), at(slowest), quoted(name_));
    append_argument(arguments, "host_us", host_us);
    append_argument(arguments, "slowest_pe", std::to_string(pe_number(rank, slowest_dpu)));
    append_argument(arguments, "mean_pe_us", in_us(sum / count));
    if (count != kDpusPerRank) append_argument(arguments, "dpus", "[" + dpus + "]");
    append_argument(arguments, "pe_us", "[" + times + "]");
    lines += arguments + "}}\n";
    append_span(lines, kRanksPid, rank, "modelled", at(0), at(sum / count), R"("mean of the PEs")");
    traces.add_rank(rank, lines + "}\n");
  }
  for (const TracedRank &traced : ranks_)
    traces.set_rank_free(traced.rank->id(), begin_ns_ + slowest_of_all);
  std::string line, arguments;
  append_span(line, static_cast<uint64_t>(getpid()), thread_, "measured", host_begin_ns_,
              host_end_ns, quoted(name_));
  append_argument(arguments, "pes", std::to_string(pes));
  append_argument(arguments, "modelled_us", in_us(slowest_of_all));
  traces.add_host(line + arguments + "}}\n");
}

}  // namespace dpuemu
