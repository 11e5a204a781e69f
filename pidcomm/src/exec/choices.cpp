#include "exec/choices.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>
#include <system_error>

#include "base/cpu.h"
#include "base/settings_file.h"
#include "pidcomm/pidcomm.h"
#include "plan/request.h"

namespace pidcomm {

namespace {

/// Returns the code of the technique with this name, or 0 if no technique has the name.
int technique_named(const std::string &name) {
#define PIDCOMM_ROW(ENUM, code, its_name, ...) \
  if (name == its_name) return code;
  PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  return 0;
}

/// Times of another version of the library or of another CPU say nothing about this one.
std::string start_of_line() {
  return std::string("pidcomm ") + pidcomm_version() + " " + cpu_line() + ": ";
}

}  // namespace

Trial::Trial(std::string class_key, const std::vector<int> &techniques)
    : key(std::move(class_key)) {
  for (const int technique : techniques) candidates_.push_back({technique});
}

int Trial::next_technique() const {
  return std::min_element(candidates_.begin(), candidates_.end(),
                          [](const Candidate &a, const Candidate &b) { return a.calls < b.calls; })
      ->technique;
}

const Trial::Candidate &Trial::fastest() const {
  constexpr double kEqual = 1.02;
  const Candidate *fastest = &candidates_[0];
  for (const Candidate &each : candidates_)
    if (each.calls > 1 && fastest->calls > 1 &&
        kEqual * each.least_seconds < fastest->least_seconds)
      fastest = &each;
  return *fastest;
}

int Trial::best_technique() const { return fastest().technique; }

bool Trial::is_much_slower(const Candidate &candidate, const Candidate &other) {
  constexpr double kAfterOneCall = 2, kAfterTwoCalls = 1.4;
  const int counted = std::min(candidate.calls, other.calls) - 1;
  return counted >= 1 && candidate.least_seconds >
                             (counted == 1 ? kAfterOneCall : kAfterTwoCalls) * other.least_seconds;
}

bool Trial::record(int technique, double seconds) {
  const auto timed =
      std::find_if(candidates_.begin(), candidates_.end(),
                   [&](const Candidate &each) { return each.technique == technique; });
  if (candidates_.size() == 1 || timed == candidates_.end()) return false;
  if (++timed->calls > 1)
    timed->least_seconds = timed->calls == 2 ? seconds : std::min(timed->least_seconds, seconds);

  const std::vector<Candidate> all = candidates_;
  std::erase_if(candidates_, [&](const Candidate &candidate) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Candidate &other) { return is_much_slower(candidate, other); });
  });
  const bool have_run = std::all_of(candidates_.begin(), candidates_.end(),
                                    [](const Candidate &each) { return each.calls >= kCalls; });
  if (have_run) candidates_ = {fastest()};
  return candidates_.size() == 1;
}

bool Trial::drop(int technique) {
  if (candidates_.size() == 1) return false;
  std::erase_if(candidates_, [&](const Candidate &each) { return each.technique == technique; });
  return candidates_.size() == 1;
}

Choices::Choice Choices::choice_for(const std::string &key, uint64_t version,
                                    const std::function<std::vector<int>()> &predicted) {
  constexpr std::size_t kMostEntries = 16384;
  const auto choice_of = [](const Entry &entry) {
    const Trial *const trial = entry.trial.get();
    return trial == nullptr ? Choice{entry.technique, nullptr, entry.technique}
                            : Choice{trial->best_technique(), entry.trial, trial->next_technique()};
  };
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end() && found->second.version == version)
      return choice_of(found->second);
  }
  const std::vector<int> techniques = predicted();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.size() >= kMostEntries) entries_.clear();
  Entry entry = {version, techniques[0], nullptr};
  if (techniques.size() > 1) {
    read_file();
    const auto result = results_.find(key);
    const bool has_result =
        result != results_.end() &&
        std::find(techniques.begin(), techniques.end(), result->second) != techniques.end();
    if (has_result)
      entry.technique = result->second;
    else
      entry.trial = std::make_shared<Trial>(key, techniques);
  }
  return choice_of(entries_[key] = entry);
}

/// Makes the choice of a trial final. Requires: the caller has the mutex.
void Choices::end(const Trial &trial) {
  const auto found = entries_.find(trial.key);
  if (found != entries_.end() && found->second.trial.get() == &trial)
    found->second = {found->second.version, trial.best_technique(), nullptr};
}

void Choices::record(Trial &trial, int technique, double seconds) noexcept {
  try {
    int fastest = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!trial.record(technique, seconds)) return;
      fastest = trial.best_technique();
      results_[trial.key] = fastest;
      end(trial);
    }
    append(trial.key, fastest);
  } catch (const std::exception &) {  // the trial goes on, or other processes do not get its result
  }
}

void Choices::drop(Trial &trial, int technique) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (trial.drop(technique)) end(trial);
}

/// Requires: the caller has the mutex.
void Choices::read_file() {
  if (std::exchange(is_read_, true) || path_.empty()) return;
  const std::string start = start_of_line();
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    const std::size_t space = line.rfind(' ');
    if (line.compare(0, start.size(), start) != 0 || space == std::string::npos ||
        space <= start.size())
      continue;
    if (const int technique = technique_named(line.substr(space + 1)); technique != 0)
      results_[line.substr(start.size(), space - start.size())] = technique;
  }
}

/// Adds a line by one write at the end of the file, because other processes may do so too.
void Choices::append(const std::string &key, int technique) const {
  if (path_.empty()) return;
  const std::filesystem::path path = path_;
  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream(path, std::ios::app)
      << start_of_line() + key + " " + name_of_technique(technique) + "\n";
}

Choices &choices() {
  static Choices *const choices = [] {
    auto made = std::make_unique<Choices>(settings_path("PIDCOMM_CHOICES", "choices"));
    const int status = pthread_atfork([] { pidcomm::choices().mutex_.lock(); },
                                      [] { pidcomm::choices().mutex_.unlock(); },
                                      [] { pidcomm::choices().mutex_.unlock(); });
    if (status != 0) throw std::bad_alloc();
    return made.release();  // never destroyed: threads may use it while the process exits
  }();
  return *choices;
}

}  // namespace pidcomm
