#include "check/findings.h"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "base/json.h"
#include "base/report_file.h"
#include "check/settings.h"

namespace dpuemu {
namespace {

constexpr struct {
  const char *word, *what, *remedy;
} kKinds[] = {
#define DPUEMU_FINDING(name, word, what, remedy) {word, what, remedy},
    DPUEMU_FINDING_TABLE(DPUEMU_FINDING)
#undef DPUEMU_FINDING
};

const auto &row_of(const Finding &finding) { return kKinds[static_cast<size_t>(finding.kind)]; }

/// Splits "main (task.c:12)" into function, file and line.
std::string side_as_json(const Side &side) {
  const size_t bracket = side.function.rfind(" ("), colon = side.function.rfind(':');
  std::string json = "{\"act\": " + quoted(side.act);
  if (side.tasklet >= 0) json += ", \"tasklet\": " + std::to_string(side.tasklet);
  json += ", \"function\": " + quoted(side.function.substr(0, bracket));
  if (bracket != std::string::npos && colon != std::string::npos && colon > bracket) {
    json += ", \"file\": " + quoted(side.function.substr(bracket + 2, colon - bracket - 2));
    json += ", \"line\": " + side.function.substr(colon + 1, side.function.size() - colon - 2);
  }
  return json + "}";
}

class Findings {
 public:
  void note(const Finding &finding, uint64_t count) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::string first = finding.now.function, second = finding.before.function;
    if (second < first) std::swap(first, second);
    const auto [entry, is_new] =
        counts_.try_emplace(std::string(row_of(finding).word) + '\n' + first + '\n' + second);
    entry->second.count += count;
    if (is_new) entry->second.process = getpid();
    if (!is_new) return;
    if (counts_.size() == 1) std::atexit([] { instance().write_counts(); });
    entry->second.number = is_hidden(finding) ? 0 : ++last_;
    if (entry->second.number == 0) return;
    print(finding);
    append(finding, entry->second.number);
  }

  static Findings &instance() {
    static auto *const findings = new Findings;
    return *findings;
  }

 private:
  struct Entry {
    pid_t process = 0;    // that noted it, perhaps the parent of this one
    uint64_t number = 0;  // 0: hidden
    uint64_t count = 0;
  };

  /// A line `kind:pattern` or `pattern` of the suppressions hides findings of which one place
  /// matches the pattern.
  static bool is_hidden(const Finding &finding) {
    const auto &lines = check_settings().hidden;
    return std::any_of(lines.begin(), lines.end(), [&](const std::string &line) {
      const std::string prefix = line.substr(0, line.find(':'));
      const bool has_kind = std::any_of(std::begin(kKinds), std::end(kKinds),
                                        [&](const auto &row) { return prefix == row.word; });
      if (has_kind && prefix != row_of(finding).word) return false;
      std::string pattern("*");
      pattern.append(has_kind ? line.substr(prefix.size() + 1) : line).append("*");
      return fnmatch(pattern.c_str(), finding.now.function.c_str(), 0) == 0 ||
             fnmatch(pattern.c_str(), finding.before.function.c_str(), 0) == 0;
    });
  }

  static void print(const Finding &finding) {
    const auto &row = row_of(finding);
    std::string text = "dpuemu check: " + std::string(row.word) + ": " + row.what + "\n";
    const auto add = [&](const Side &side) {
      if (!side.act.empty())
        text += "  " + side.act + (side.function.empty() ? "" : " in " + side.function) + "\n";
    };
    if (!finding.object.empty()) text += "  " + finding.object + "\n";
    add(finding.now);
    add(finding.before);
    if (!finding.detail.empty()) text += "  " + finding.detail + "\n";
    text += "  " + finding.pe + "\n  " + row.remedy + "\n";
    std::fputs(text.c_str(), stderr);
  }

  static void append_to_file(const std::string &lines) {
    const std::string &path = check_settings().file;
    if (!path.empty() && !append_line(path.c_str(), lines.data(), lines.size()))
      std::perror(("dpuemu check: cannot write " + path).c_str());
  }

  static std::string key(uint64_t number) {
    return "\"id\": \"" + std::to_string(getpid()) + "." + std::to_string(number) + "\"";
  }

  static void append(const Finding &finding, uint64_t number) {
    const auto &row = row_of(finding);
    std::string json("{");
    json += key(number) + ", \"kind\": " + quoted(row.word) + ", \"what\": " + quoted(row.what) +
            ", \"pe\": " + quoted(finding.pe) + ", \"object\": " + quoted(finding.object) +
            ", \"places\": [" + side_as_json(finding.now);
    if (!finding.before.act.empty()) json += ", " + side_as_json(finding.before);
    json += "], \"detail\": " + quoted(finding.detail) + ", \"remedy\": " + quoted(row.remedy) +
            ", \"count\": 1}\n";
    append_to_file(json);
  }

  /// Appends the number of occurrences of each finding.
  void write_counts() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::string lines;
    for (const auto &[places, entry] : counts_)
      if (entry.number != 0 && entry.count > 1 && entry.process == getpid())
        lines.append("{")
            .append(key(entry.number))
            .append(", \"count\": ")
            .append(std::to_string(entry.count))
            .append("}\n");
    if (!lines.empty()) append_to_file(lines);
  }

  std::mutex mutex_;
  std::map<std::string, Entry> counts_;
  uint64_t last_ = 0;
};

}  // namespace

void note_schedules(const std::string &pe, uint64_t tried, uint64_t remaining, const char *stop) {
  const std::string rest = stop != nullptr  ? stop
                           : remaining == 0 ? "all schedules"
                                            : "at least " + std::to_string(remaining) + " remain";
  std::fprintf(stderr, "dpuemu check: %s: tried %llu schedules: %s\n", pe.c_str(),
               static_cast<unsigned long long>(tried), rest.c_str());
}

void note_finding(const Finding &finding, uint64_t count) {
  Findings::instance().note(finding, count);
}

}  // namespace dpuemu
