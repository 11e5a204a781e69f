// The techniques that PIDCOMM_TECHNIQUE_AUTO has chosen in this process and on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pidcomm {

/// Finds the fastest of several techniques by timing calls of the program. The techniques take
/// turns until each has run kCalls calls; then the technique with the shortest call wins. The first
/// call of a technique does not count, because it may be the first to touch memory. A technique
/// whose later calls are much slower loses earlier. Not safe for several threads at a time.
class Trial {
 public:
  /// techniques: two or more codes, the one with the shortest predicted time first. If techniques
  /// are equally fast, the first of them wins.
  Trial(std::string key, const std::vector<int> &techniques);

  /// The request class of the calls; see Choices.
  const std::string key;

  /// Returns the technique whose turn it is.
  int next_technique() const;
  /// Returns the technique with the shortest call so far, or, before that, the first technique.
  int best_technique() const;
  /// Adds the time of a call. Returns whether this call ended the trial.
  bool record(int technique, double seconds);
  /// Takes a technique out of the trial, because memory was short; the last one stays. Returns
  /// whether this ended the trial.
  bool drop(int technique);

 private:
  static constexpr int kCalls = 6;
  struct Candidate {
    int technique;
    int calls = 0;
    double least_seconds = 0;  // of the calls after the first
  };
  static bool is_much_slower(const Candidate &candidate, const Candidate &other);
  const Candidate &fastest() const;

  std::vector<Candidate> candidates_;  // those that have not lost
};

/// Choices of techniques for request classes. The key of a class is a line of text. The choices
/// file has a line for each result of a trial: library, CPU, key, technique. Lines of another
/// library or CPU, and wrong lines, have no effect; of several lines with one key, the last counts.
/// If the file cannot be read or written, the process keeps its own results. Any thread may use the
/// object.
class Choices {
 public:
  /// path: of the choices file; "": no file.
  explicit Choices(std::string path) : path_(std::move(path)) {}

  struct Choice {
    int technique;                 // for calls that the trial does not time
    std::shared_ptr<Trial> trial;  // null if the choice is final
    int timed_technique;           // for a call that the trial times
  };

  /// Returns the choice for a key. predicted(): the techniques that may be the fastest; called if
  /// the process has no choice for this key and this version.
  Choice choice_for(const std::string &key, uint64_t version,
                    const std::function<std::vector<int>()> &predicted);

  /// Adds the time of a call to a trial that choice_for has returned. Throws nothing, because the
  /// bytes of the call have moved.
  void record(Trial &trial, int technique, double seconds) noexcept;
  /// Takes a technique out of a trial, because memory was short in its call.
  void drop(Trial &trial, int technique);

 private:
  struct Entry {
    uint64_t version;
    int technique;
    std::shared_ptr<Trial> trial;
  };
  friend Choices &choices();
  void end(const Trial &trial);
  void read_file();
  void append(const std::string &key, int technique) const;

  const std::string path_;
  std::mutex mutex_;  // guards the members below
  std::unordered_map<std::string, Entry> entries_;
  std::unordered_map<std::string, int> results_;  // of trials, also of those in the file
  bool is_read_ = false;
};

/// The choices of the process. Their file is the one that environment variable PIDCOMM_CHOICES
/// names (empty: no file), else `choices` in the folder of the tuning file.
Choices &choices();

}  // namespace pidcomm
