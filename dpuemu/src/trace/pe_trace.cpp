#include "trace/pe_trace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "trace/traces.h"

namespace dpuemu {
namespace {

constexpr uint64_t kLeastEventBytes = 72;  // of a formatted event
constexpr uint64_t kRegionPart = 2;  // regions may take this part of the bytes, the rest the others

}  // namespace

void PeUse::clear() {
  width_ = kLeastWidth;
  pipeline_.fill(0);
  engine_.fill(0);
}

void PeUse::add(Bins &bins, double begin, double end, double amount) {
  while (end >= width_ * kBins) {
    for (Bins *all : {&pipeline_, &engine_}) {
      for (size_t i = 0; i < kBins / 2; ++i) (*all)[i] = (*all)[2 * i] + (*all)[2 * i + 1];
      std::fill(all->begin() + kBins / 2, all->end(), 0.0);
    }
    width_ *= 2;
  }
  const auto first = static_cast<size_t>(begin / width_), last = static_cast<size_t>(end / width_);
  if (first == last) {
    bins[first] += amount;
    return;
  }
  for (size_t i = first; i <= last; ++i) {
    const double from = std::max(begin, width_ * static_cast<double>(i)),
                 to = std::min(end, width_ * static_cast<double>(i + 1));
    bins[i] += amount * (to - from) / (end - begin);
  }
}

void PeTrace::set(std::shared_ptr<TracedLaunch> launch, uint32_t number) {
  launch_ = std::move(launch);
  number_ = number;
}

void PeTrace::begin(const Program &program, const PePlace &) {
  if (std::exchange(program_, &program) != &program) places_.clear();
  for (Tasklet &tasklet : tasklets_) tasklet = Tasklet();
  runs_.clear();
  regions_.clear();
  events_.clear();
  dropped_ = 0;
  use_.clear();
}

void PeTrace::add(std::vector<Event> &events, const Event &event) {
  if (events.size() < launch_->bytes_per_pe() / kLeastEventBytes) return events.push_back(event);
  drop(event, 1);
}

void PeTrace::drop(const Event &first, uint64_t events) {
  complete_until_ = dropped_ == 0 ? first.end : std::min(complete_until_, first.end);
  dropped_ += events;
}

void PeTrace::start(uint32_t number, double now, uint64_t instructions) {
  Tasklet &tasklet = tasklets_[number];
  if (!std::exchange(tasklet.runs, true)) tasklet.begin = now;
  tasklet.computes = true;
  tasklet.computes_since = now;
  tasklet.instructions = instructions;
}

void PeTrace::pause(uint32_t number, double now) {
  Tasklet &tasklet = tasklets_[number];
  if (std::exchange(tasklet.computes, false))
    use_.add_instructions(tasklet.computes_since, now, static_cast<double>(tasklet.instructions));
}

void PeTrace::wait(uint32_t number, Wait what, double now) {
  Tasklet &tasklet = tasklets_[number];
  tasklet.waits = true;
  tasklet.waits_since = now;
  tasklet.dma_bytes = 0;
  tasklet.waits_for = static_cast<Kind>(kWait + static_cast<uint8_t>(what));
}

void PeTrace::wait_for_dma(uint32_t number, double now, const Dma &dma) {
  const Kind kind = dma.is_read ? kRead : kWrite;
  wait(number, Wait::kDma, now);
  tasklets_[number].dma_bytes = dma.bytes;
  tasklets_[number].waits_for = kind;
  use_.add_transfer(dma.engine_begin, dma.engine_end);
  add(events_, {dma.engine_begin, dma.engine_end, dma.bytes, 0, kEngineRow, kind});
}

void PeTrace::resume(uint32_t number, double now, uint64_t) {
  Tasklet &tasklet = tasklets_[number];
  if (!std::exchange(tasklet.waits, false)) return;  // it begins
  add(events_, {tasklet.waits_since, now, tasklet.dma_bytes, tasklet.at,
                static_cast<uint8_t>(number + 1), tasklet.waits_for});
}

void PeTrace::end_tasklet(uint32_t number, double now) {
  Tasklet &tasklet = tasklets_[number];
  while (!tasklet.regions.empty()) end_region(number, now);
  if (std::exchange(tasklet.runs, false))
    runs_.push_back({tasklet.begin, now, 0, 0, static_cast<uint8_t>(number + 1), kRun});
}

void PeTrace::read_counter(uint32_t number, double now, uint64_t value) {
  add(events_, {now, now, value, tasklets_[number].at, static_cast<uint8_t>(number + 1), kCounter});
}

void PeTrace::begin_region(uint32_t number, double now, uint32_t name) {
  tasklets_[number].regions.emplace_back(now, name);
}

void PeTrace::end_region(uint32_t number, double now) {
  Tasklet &tasklet = tasklets_[number];
  if (tasklet.regions.empty()) return;
  const auto [begin, name] = tasklet.regions.back();
  tasklet.regions.pop_back();
  add(regions_, {begin, now, name, 0, static_cast<uint8_t>(number + 1), kRegion});
}

void PeTrace::end(const PeReport &report) {
  try {
    for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i) {
      // A tasklet of machine code ends by stopping for ever.
      const bool has_stopped = program_->code() != nullptr && tasklets_[i].waits &&
                               tasklets_[i].waits_for == kWait + static_cast<int>(Wait::kStop);
      const double until = has_stopped ? tasklets_[i].waits_since : report.cycles;
      pause(i, report.cycles);
      if (!has_stopped) resume(i, report.cycles, 0);
      end_tasklet(i, until);
    }
    write(report.cycles);
  } catch (const std::bad_alloc &) {  // the host has no memory for the trace
  }
  if (dropped_ != 0)
    Traces::instance().count([&](Totals &totals) { totals.dropped_events += dropped_; });
  launch_.reset();
}

uint64_t PeTrace::at(double time, double cycles) const {
  return static_cast<uint64_t>(
      std::llround(launch_->begin_ns() + std::min(time, cycles) * launch_->ns_per_cycle()));
}

void PeTrace::write(double cycles) {
  std::string lines;
  const uint64_t bytes = launch_->bytes_per_pe();
  size_t written = append_all(lines, runs_, UINT64_MAX, cycles);
  const size_t run_bytes = lines.size();
  written += append_all(lines, regions_, bytes / kRegionPart, cycles);
  written += append_all(lines, events_, bytes - (lines.size() - run_bytes), cycles);
  uint64_t rows = 0;
  for (const std::vector<Event> *events : {&runs_, &events_})
    for (const Event &event : *events) rows |= UINT64_C(1) << event.row;
  const std::string pid = std::to_string(kFirstPePid + number_);
  const auto append_use = [&](double time, double pipeline, double engine) {
    char values[64];
    std::snprintf(values, sizeof values, R"({"pipeline":%d,"dma":%d})",
                  static_cast<int>(std::lround(100 * pipeline)),
                  static_cast<int>(std::lround(100 * engine)));
    lines += R"({"ph":"C","pid":)" + pid + R"(,"tid":0,"ts":)";
    append_us(lines, at(time, cycles));
    lines += R"(,"cat":"modelled","name":"use in percent","args":)";
    lines += std::string(values) + "}\n";
  };
  use_.for_each(cycles, [&](double begin, double, double pipeline, double engine) {
    append_use(begin, pipeline, engine);
  });
  append_use(cycles, 0, 0);
  if (dropped_ != 0) {
    append_instant(lines, kFirstPePid + number_, 1, "modelled", at(complete_until_, cycles),
                   R"("limit: later events of this launch are missing")", 'p');
    lines += "}\n";
  }
  if (!Traces::instance().add_pe(number_, rows, lines)) dropped_ += written;
}

size_t PeTrace::append_all(std::string &lines, const std::vector<Event> &events, uint64_t bytes,
                           double cycles) {
  std::string line;
  for (size_t i = 0; i < events.size(); ++i) {
    line.clear();
    append(line, events[i], cycles);
    if (line.size() > bytes) {
      drop(events[i], events.size() - i);
      return i;
    }
    bytes -= line.size();
    lines += line;
  }
  return events.size();
}

void PeTrace::append(std::string &lines, const Event &event, double cycles) {
  const uint64_t pid = kFirstPePid + number_, begin = at(event.begin, cycles);
  if (event.kind == kCounter)
    append_instant(lines, pid, event.row, "modelled", begin, name_of(event), 't');
  else
    append_span(lines, pid, event.row, "modelled", begin, at(event.end, cycles), name_of(event));
  bool has_arguments = false;
  const auto append_argument = [&](const char *field, const std::string &value) {
    lines.append(std::exchange(has_arguments, true) ? "," : R"(,"args":{)");
    lines.append(field).append(value);
  };
  if (event.kind == kRead || event.kind == kWrite)
    append_argument(R"("bytes":)", std::to_string(event.value));
  if (event.kind == kCounter) append_argument(R"("value":)", std::to_string(event.value));
  if (event.at != 0) append_argument(R"("at":)", place_of(event.at));
  lines.append(has_arguments ? "}}\n" : "}\n");
}

const std::string &PeTrace::place_of(uint32_t place) {
  const auto [known, is_new] = places_.try_emplace(place);
  // The place of dpuemu's compiler is the end of a call.
  if (is_new)
    known->second = Traces::instance().place_of(
        *program_, program_->code() != nullptr ? place : PE_TEXT_ORIGIN + place - 1);
  return known->second;
}

std::string PeTrace::name_of(const Event &event) const {
  switch (event.kind) {
    case kRun:
      return R"("run")";
    case kRegion:
      return quoted(program_->text_at(static_cast<uint32_t>(event.value)));
    case kCounter:
      return R"("perfcounter")";
    case kRead:
      return R"("DMA read")";
    case kWrite:
      return R"("DMA write")";
    default: {
      static const auto *const names = [] {
        auto *const all = new std::array<std::string, kWaits>;
        for (size_t i = 0; i < kWaits; ++i) (*all)[i] = quoted(kWaitNames[i]);
        return all;
      }();
      return (*names)[event.kind - kWait];
    }
  }
}

}  // namespace dpuemu
