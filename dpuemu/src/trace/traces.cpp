#include "trace/traces.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/json.h"
#include "base/report_file.h"
#include "base/worker_pool.h"
#include "trace/trace.h"

namespace dpuemu {

void append_us(std::string &json, uint64_t ns) {
  char text[32];
  char *end = std::to_chars(text, std::end(text), ns / 1000).ptr;
  const uint64_t rest = ns % 1000;
  *end++ = '.';
  for (const uint64_t digit : {rest / 100, rest / 10 % 10, rest % 10})
    *end++ = static_cast<char>('0' + digit);
  json.append(text, end);
}

namespace {

constexpr size_t kBlockBytes = 1 << 20;
constexpr uint64_t kPeriodNs = 1000000000;
constexpr uint64_t kPart = 4;  // hosts, ranks and new launches may take this part of the limit

const std::string &trace_folder() {
  static const auto *const name = [] {
    const char *const value = std::getenv("DPUEMU_TRACE");
    return new std::string(value != nullptr ? value : "");
  }();
  return *name;
}

void append_name(std::string &json, uint64_t pid, uint64_t row, const char *kind,
                 const std::string &name) {
  json += R"({"ph":"M","pid":)" + std::to_string(pid) + R"(,"tid":)" + std::to_string(row) +
          R"(,"name":")" + kind + R"(","args":{"name":)" + quoted(name) + "}}\n";
}

void append_event(std::string &json, char phase, uint64_t pid, uint64_t row, const char *category,
                  uint64_t ns, const std::string &quoted_name) {
  char number[24];
  const auto add = [&](const char *field, uint64_t value) {
    json += field;
    json.append(number, std::to_chars(number, std::end(number), value).ptr);
  };
  json.append(R"({"ph":")").append(1, phase);
  add(R"(","pid":)", pid);
  add(R"(,"tid":)", row);
  json += R"(,"ts":)";
  append_us(json, ns);
  json.append(R"(,"cat":")").append(category).append(R"(","name":)").append(quoted_name);
}

}  // namespace

bool trace_is_on() {
  static const bool is_on = !trace_folder().empty();
  return is_on;
}

uint64_t host_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

void append_span(std::string &json, uint64_t pid, uint64_t row, const char *category,
                 uint64_t begin_ns, uint64_t end_ns, const std::string &quoted_name) {
  append_event(json, 'X', pid, row, category, begin_ns, quoted_name);
  json += R"(,"dur":)";
  append_us(json, end_ns - begin_ns);
}

void append_instant(std::string &json, uint64_t pid, uint64_t row, const char *category,
                    uint64_t ns, const std::string &quoted_name, char scope) {
  append_event(json, 'i', pid, row, category, ns, quoted_name);
  json.append(R"(,"s":")").append(1, scope) += '"';
}

Traces &Traces::instance() { return of_this_process<Traces>(); }

Traces::Traces() {
  const std::string prefix = trace_folder() + "/", process = std::to_string(getpid());
  host_.path = prefix + "dpuemu." + process + ".jsonl";
  ranks_.path = prefix + process + ".ranks";
  pes_.path = prefix + process + ".pes";
  totals_path_ = prefix + process + ".totals";
  std::ifstream settings(prefix + "settings");
  settings >> origin_ns_ >> limit_bytes_ >> sample_;
  for (uint32_t number; settings >> number;)
    if (number < shown_.size()) shown_[number] = true;
  static const int at_exit = std::atexit([] { instance().write(); });
  static_cast<void>(at_exit);
}

void Traces::choose(const std::vector<uint32_t> &numbers) {
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t wanted = std::min<size_t>(sample_ - sampled_, numbers.size());
  for (size_t i = 0; i < wanted; ++i)
    sampled_ += !shown_[numbers[i * numbers.size() / wanted]].exchange(true);
}

void Traces::name(const Program &program, const std::string &path) {
  std::lock_guard<std::mutex> lock(mutex_);
  names_[&program] = path.substr(path.rfind('/') + 1);
}

std::string Traces::name_of(const Program &program) {
  std::lock_guard<std::mutex> lock(mutex_);
  return names_[&program];
}

std::string Traces::place_of(const Program &program, uint32_t address) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [place, is_new] = places_.try_emplace({&program, address});
  if (is_new) {
    std::string text = program.function_at(address);  // such as "main (folder/task.c:12)"
    if (const size_t file = text.find('('), end = text.rfind('/');
        file != std::string::npos && end != std::string::npos && end > file)
      text.erase(file + 1, end - file);
    place->second = quoted(text);
  }
  return place->second;
}

uint64_t Traces::room() {
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t used = host_.bytes + ranks_.bytes + pes_.bytes;
  return (limit_bytes_ - std::min(used, limit_bytes_)) / kPart;
}

double Traces::rank_free_ns(uint32_t rank) {
  std::lock_guard<std::mutex> lock(mutex_);
  return rank_free_ns_[rank];
}

void Traces::set_rank_free(uint32_t rank, double ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  rank_free_ns_[rank] = ns;
}

void Traces::add_host(const std::string &lines) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto process = static_cast<uint64_t>(getpid());  // also the number of its main thread
  add_limited_locked(host_, lines, process, process, host_ns());
}

void Traces::add_rank(uint32_t rank, const std::string &lines) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (uint64_t &rows = rows_[kRanksPid]; (rows >> rank & 1) == 0) {
    rows |= UINT64_C(1) << rank;
    std::string name;
    append_name(name, kRanksPid, rank, "thread_name",
                std::string("rank ").append(std::to_string(rank)));
    add_locked(ranks_, name);
  }
  add_limited_locked(ranks_, lines, kRanksPid, rank, host_ns() - origin_ns_);
}

bool Traces::add_pe(uint32_t number, uint64_t rows, const std::string &lines) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (host_.bytes + ranks_.bytes + pes_.bytes + lines.size() > limit_bytes_) return false;
  const uint64_t pid = kFirstPePid + number;
  uint64_t &named = rows_[pid];
  std::string names;
  if (named == 0)
    append_name(names, pid, 0, "process_name",
                "PE " + std::to_string(number) + " (" +
                    pe_name(number / kDpusPerRank, number % kDpusPerRank) + "), modelled time");
  for (uint64_t row = 1; row <= kEngineRow; ++row)
    if ((rows & ~named) >> row & 1)
      append_name(names, pid, row, "thread_name",
                  row == kEngineRow ? "DMA engine"
                                    : std::string("tasklet ").append(std::to_string(row - 1)));
  named |= rows;
  add_locked(pes_, names);
  add_locked(pes_, lines);
  return true;
}

void Traces::add_limited_locked(Output &output, const std::string &lines, uint64_t pid,
                                uint64_t row, uint64_t ns) {
  const bool was_full = output.is_full;
  output.is_full = was_full || output.bytes + lines.size() > limit_bytes_ / kPart;
  if (!output.is_full) return add_locked(output, lines);
  totals_.dropped_events += static_cast<uint64_t>(std::ranges::count(lines, '\n'));
  if (was_full) return;
  std::string end;
  append_instant(end, pid, row, "measured", ns, R"("limit: later events are missing")", 'p');
  add_locked(output, end + "}\n");
}

void Traces::add_locked(Output &output, const std::string &lines) {
  output.lines += lines;
  output.bytes += lines.size();
  if (output.lines.size() >= kBlockBytes) write_locked(output);
}

void Traces::write_locked(Output &output) {
  if (!output.lines.empty())
    append_line(output.path.c_str(), output.lines.data(), output.lines.size());
  output.lines.clear();
}

void Traces::write_totals_locked() const {
  // A signal may end the process at any time, so the earlier file stays until this one is complete.
  const std::string draft = totals_path_ + ".draft";
  std::ofstream file(draft);
  file << totals_.json() << "\n" << std::flush;
  if (file) std::rename(draft.c_str(), totals_path_.c_str());
}

void Traces::write() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Output *output : {&host_, &ranks_, &pes_}) write_locked(*output);
  if (host_.bytes != 0) write_totals_locked();
  next_write_ns_ = host_ns() + kPeriodNs;
}

void Traces::write_now_and_then() {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool is_due = host_ns() >= next_write_ns_;
  lock.unlock();
  if (is_due) write();
}

}  // namespace dpuemu
