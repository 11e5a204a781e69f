#include "exec/choices.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/cpu.h"
#include "base/settings_file.h"
#include "pidcomm/pidcomm.h"
#include "plan/request.h"

namespace pidcomm {

namespace {

/// Returns the code of a technique, or 0.
int technique_named(const std::string &name) {
#define PIDCOMM_ROW(ENUM, code, its_name, ...) \
  if (name == its_name) return code;
  PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  return 0;
}

/// Times of another version of the library or of another CPU say nothing about this one.
std::string first_line() { return std::string("pidcomm ") + pidcomm_version() + " " + cpu_line(); }

}  // namespace

Trial::Trial(const std::vector<int> &techniques) {
  for (const int technique : techniques) running_.push_back({technique});
}

int Trial::turn() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::min_element(running_.begin(), running_.end(),
                          [](const Candidate &a, const Candidate &b) { return a.calls < b.calls; })
      ->technique;
}

bool Trial::is_much_slower(const Candidate &candidate, const Candidate &other) {
  constexpr double kFirst = 4, kLater = 1.5;
  if (candidate.calls == 0 || other.calls == 0) return false;
  if (candidate.calls > 1 && other.calls > 1)
    return candidate.least_seconds > kLater * other.least_seconds;
  return candidate.first_seconds > kFirst * other.first_seconds;
}

bool Trial::record(int technique, double seconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto timed = std::find_if(running_.begin(), running_.end(), [&](const Candidate &each) {
    return each.technique == technique;
  });
  if (running_.size() == 1 || timed == running_.end()) return false;
  ++timed->calls;
  if (timed->calls == 1)
    timed->first_seconds = seconds;
  else
    timed->least_seconds = timed->calls == 2 ? seconds : std::min(timed->least_seconds, seconds);

  const std::vector<Candidate> all = running_;
  std::erase_if(running_, [&](const Candidate &candidate) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Candidate &other) { return is_much_slower(candidate, other); });
  });
  const bool have_ended = std::all_of(running_.begin(), running_.end(),
                                      [](const Candidate &each) { return each.calls >= kCalls; });
  if (have_ended) {
    constexpr double kEqual = 1.02;
    Candidate fastest = running_[0];
    for (const Candidate &each : running_)
      if (kEqual * each.least_seconds < fastest.least_seconds) fastest = each;
    running_ = {fastest};
  }
  return running_.size() == 1;
}

int Trial::decided() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return running_.size() == 1 ? running_[0].technique : 0;
}

Choices::Choice Choices::choice_for(const std::string &key, uint64_t version,
                                    const std::function<std::vector<int>()> &techniques) {
  constexpr std::size_t kMostEntries = 16384;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end() && found->second.version == version) {
      Entry &entry = found->second;
      if (entry.trial == nullptr) return {entry.technique, nullptr};
      return {entry.trial->turn(), entry.trial};
    }
  }
  const std::vector<int> rivals = techniques();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.size() >= kMostEntries) entries_.clear();
  Entry entry = {version, rivals[0], nullptr};
  if (rivals.size() > 1) {
    read_file();
    const auto known = of_file_.find(key);
    const bool is_known = known != of_file_.end() &&
                          std::find(rivals.begin(), rivals.end(), known->second) != rivals.end();
    if (is_known)
      entry.technique = known->second;
    else
      entry.trial = std::make_shared<Trial>(rivals);
  }
  entries_[key] = entry;
  return {entry.trial == nullptr ? entry.technique : entry.trial->turn(), entry.trial};
}

void Choices::record(const std::string &key, Trial &trial, int technique, double seconds) {
  if (!trial.record(technique, seconds)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.trial.get() != &trial) return;
  found->second.technique = trial.decided();
  found->second.trial = nullptr;
  append(key, found->second.technique);
}

void Choices::read_file() {
  if (std::exchange(is_read_, true) || path_.empty()) return;
  std::ifstream file(path_);
  std::string line;
  is_of_this_machine_ = std::getline(file, line) && line == first_line();
  while (is_of_this_machine_ && std::getline(file, line)) {
    const std::size_t space = std::min(line.find(' '), line.size());
    if (const int technique = technique_named(line.substr(0, space)); technique != 0)
      of_file_[line.substr(std::min(space + 1, line.size()))] = technique;
  }
}

/// Other processes may append too, so each decision is one write.
void Choices::append(const std::string &key, int technique) {
  const std::filesystem::path path = path_;
  if (path.empty()) return;
  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  const std::string line = std::string(name_of_technique(technique)) + " " + key + "\n";
  std::ofstream file(path, is_of_this_machine_ ? std::ios::app : std::ios::trunc);
  file << (is_of_this_machine_ ? line : first_line() + "\n" + line) << std::flush;
  is_of_this_machine_ = true;
}

Choices &choices() {
  static Choices choices(settings_path("PIDCOMM_CHOICES", "choices"));
  return choices;
}

}  // namespace pidcomm
