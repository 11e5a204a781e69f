#include "profile/profiles.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

#include "base/chip.h"
#include "base/json.h"
#include "base/worker_pool.h"
#include "machine/debug_info.h"
#include "machine/machine.h"

namespace dpuemu {
namespace {

const std::string &folder() {
  static const auto *const name = [] {
    const char *const value = std::getenv("DPUEMU_PROFILE");
    return new std::string(value != nullptr ? value : "");
  }();
  return *name;
}

/// A source line of a function.
using Line = std::tuple<std::string, std::string, uint32_t>;

/// Finds the lines of a program's text, whose addresses are those of the file.
class Lines {
 public:
  explicit Lines(const Program &program) : program_(program) {
    for_each_line(program.debug_line(),
                  [&](uint32_t begin, uint32_t end, const std::string &file, uint32_t line) {
                    if (line != 0 && begin >= PE_TEXT_ORIGIN)
                      ranges_.push_back({begin, end, line, file});
                    return false;
                  });
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range &a, const Range &b) { return a.begin < b.begin; });
  }

  Line at(uint32_t address) const {
    Line line;
    const auto function =
        std::find_if(program_.text_symbols().begin(), program_.text_symbols().end(),
                     [&](const Program::TextSymbol &symbol) {
                       return address - symbol.address < symbol.bytes && !symbol.is_label;
                     });
    if (function != program_.text_symbols().end())
      std::get<0>(line) = function->name.substr(0, function->name.find('.'));
    auto range = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                  [](uint32_t a, const Range &b) { return a < b.begin; });
    if (range != ranges_.begin() && address < (--range)->end)
      std::get<1>(line) = range->file, std::get<2>(line) = range->line;
    return line;
  }

 private:
  struct Range {
    uint32_t begin, end, line;
    std::string file;
  };
  const Program &program_;
  std::vector<Range> ranges_;
};

template <class Values>
std::string by_wait(const Values &values) {
  std::string json = "{";
  for (size_t i = 0; i < kWaits; ++i) {
    if (values[i] == 0) continue;
    if (json.size() > 1) json.append(", ");
    json.append(quoted(kWaitNames[i])).append(": ");
    json.append(number(static_cast<double>(values[i])));
  }
  return json.append("}");
}

}  // namespace

bool profile_is_on() { return !folder().empty(); }

void name_program(const Program &program, const char *name, std::string_view file) {
  if (profile_is_on()) Profiles::instance().name(program, name, file);
}

void note_profiled_launch(const std::vector<const Pe *> &pes) {
  Profiles::instance().end_launch(pes);
}

Profiles &Profiles::instance() { return of_this_process<Profiles>(); }

void Profiles::name(const Program &program, const char *name, std::string_view file) {
  static const int at_exit = std::atexit([] { instance().write(); });
  static_cast<void>(at_exit);
  const std::unique_ptr<char, decltype(&std::free)> path(realpath(name, nullptr), &std::free);
  std::lock_guard<std::mutex> lock(mutex_);
  OfProgram &own = programs_[&program];
  own.name = name;
  own.path = path != nullptr ? path.get() : "";
  own.hash = std::hash<std::string_view>()(file);
}

void Profiles::add(const Program &program, const Run &run) {
  std::lock_guard<std::mutex> lock(mutex_);
  OfProgram &own = programs_[&program];
  own.instructions += run.report.instructions;
  own.dma_bytes += run.report.dma_read_bytes + run.report.dma_write_bytes;
  own.cycles += run.report.cycles;
  own.computing_cycles += run.computing_cycles;
  own.engine_cycles += run.engine_cycles;
  own.counters.resize(run.counters.size());
  for (size_t i = 0; i < run.counters.size(); ++i) own.counters[i] += run.counters[i];
  for (const auto &[place, values] : run.places) own.places[place].add(values);
}

void Profiles::end_launch(const std::vector<const Pe *> &pes) {
  struct OfLaunch {
    uint64_t pes = 0;
    double slowest = 0, sum = 0;
  };
  std::map<const Program *, OfLaunch> launches;
  for (const Pe *pe : pes) {
    if (pe->fault.kind == FaultKind::kNoMemory) continue;
    OfLaunch &launch = launches[pe->program];
    ++launch.pes;
    launch.slowest = std::max(launch.slowest, pe->report.cycles);
    launch.sum += pe->report.cycles;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto &[program, launch] : launches) {
    OfProgram &own = programs_[program];
    ++own.launches;
    own.pes += launch.pes;
    own.slowest_cycles += launch.slowest;
    own.mean_cycles += launch.sum / static_cast<double>(launch.pes);
  }
  if (std::chrono::steady_clock::now() >= next_write_) write_locked();
}

void Profiles::write() {
  std::lock_guard<std::mutex> lock(mutex_);
  write_locked();
}

std::string Profiles::as_json(const Program &program, const OfProgram &profile) {
  const Lines lines(program);
  std::map<Line, PeProfile::Place> rows;
  int64_t rest = static_cast<int64_t>(profile.instructions);
  for (const Program::CounterRow &row : program.counter_rows()) {
    const uint32_t index = (row.counter - PE_COUNTERS_ORIGIN) / sizeof(uint64_t);
    if (index >= profile.counters.size() || profile.counters[index] == 0) continue;
    PeProfile::Place place;
    place.instructions = profile.counters[index] * static_cast<uint64_t>(row.instructions);
    rest -= static_cast<int64_t>(place.instructions);
    rows[lines.at(row.address)].add(place);
  }
  for (const auto &[offset, place] : profile.places) {
    rest -= static_cast<int64_t>(place.instructions + place.repeated);
    rows[lines.at(PE_TEXT_ORIGIN + offset - 1)].add(place);  // the call precedes its return address
  }
  if (rest > 0) rows[{"(without counters)", "", 0}].instructions += static_cast<uint64_t>(rest);
  std::string json = "{";
  const auto name = [&](const char *field) {
    if (json.back() != '{') json.append(", ");
    json.append(quoted(field)).append(": ");
  };
  const auto add = [&](const char *field, double value) {
    name(field);
    json.append(number(value));
  };
  name("name");
  json.append(quoted(profile.name));
  name("path");
  json.append(quoted(profile.path));
  name("hash");  // a text, because a double has fewer bits
  json.append(quoted(std::to_string(profile.hash)));
  name("waits");
  json.append("[");
  for (const char *const wait : kWaitNames)
    json.append(json.back() == '[' ? "" : ", ").append(quoted(wait));
  json.append("]");
  add("full_pipeline", kIssueCycles);
  add("launches", static_cast<double>(profile.launches));
  add("pes", static_cast<double>(profile.pes));
  add("tasklets", program.tasklets());
  add("cycles_per_second", Machine::instance().chip().cycles_per_second());
  add("instructions", static_cast<double>(profile.instructions));
  add("dma_bytes", static_cast<double>(profile.dma_bytes));
  add("slowest_cycles", profile.slowest_cycles);
  add("mean_cycles", profile.mean_cycles);
  add("cycles", profile.cycles);
  add("computing_cycles", profile.computing_cycles);
  add("engine_cycles", profile.engine_cycles);
  name("rows");
  json.append("[");
  for (const auto &[line, place] : rows) {
    json.append(json.back() == '[' ? "\n{" : ",\n{");
    name("function");
    json.append(quoted(std::get<0>(line)));
    name("file");
    json.append(quoted(std::get<1>(line)));
    add("line", std::get<2>(line));
    add("instructions", static_cast<double>(place.instructions + place.repeated));
    add("repeated_instructions", static_cast<double>(place.repeated));
    add("dma_bytes", static_cast<double>(place.dma_bytes));
    name("waited_cycles");
    json.append(by_wait(place.waited));
    name("unfinished");
    json.append(by_wait(place.unfinished));
    json.append("}");
  }
  return json.append("]}");
}

void Profiles::write_locked() {
  const std::string path = folder() + "/" + std::to_string(getpid()) + ".json";
  std::string json;
  for (const auto &[program, profile] : programs_) {
    if (profile.cycles == 0 || program->code() != nullptr) continue;
    json.append(json.empty() ? "[" : ",\n").append(as_json(*program, profile));
  }
  // A reader finds a complete file.
  const std::string draft = path + ".draft";
  if (std::FILE *const file = std::fopen(draft.c_str(), "we"); file != nullptr) {
    json += json.empty() ? "[]\n" : "]\n";
    const bool is_written = std::fwrite(json.data(), 1, json.size(), file) == json.size();
    if (std::fclose(file) == 0 && is_written) std::rename(draft.c_str(), path.c_str());
  }
  next_write_ = std::chrono::steady_clock::now() + kPeriod;
}

}  // namespace dpuemu
