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

/// Finds the faster of several techniques by timing calls of the program. Techniques take turns;
/// each runs kCalls calls at most, of which the first does not count, because it may be the first
/// to touch memory. A technique that is much slower loses earlier. Any thread may use a trial.
class Trial {
 public:
  /// techniques: two or more codes; of equally fast techniques, the trial prefers the first.
  explicit Trial(const std::vector<int> &techniques);

  /// Returns the technique that the next call uses.
  int turn() const;
  /// Adds the time of a call. Returns whether this call decided the trial.
  bool record(int technique, double seconds);
  /// Returns the fastest technique, or 0 if the trial is not decided.
  int decided() const;

 private:
  static constexpr int kCalls = 4;
  struct Candidate {
    int technique;
    int calls = 0;
    double first_seconds = 0, least_seconds = 0;  // least: of the calls after the first
  };
  static bool is_much_slower(const Candidate &candidate, const Candidate &other);

  mutable std::mutex mutex_;
  std::vector<Candidate> running_;  // those that have not lost
};

/// Choices of techniques. A key describes a request in one line. The choices file has the results
/// of trials: its first line names library and CPU, and each other line is a technique and a key. A
/// file of another library or CPU, or that cannot be read, counts as missing; the next result of a
/// trial replaces it. If the file cannot be written, the process keeps its results alone. Any
/// thread may use the object.
class Choices {
 public:
  /// path: of the choices file; "": no file.
  explicit Choices(std::string path) : path_(std::move(path)) {}

  struct Choice {
    int technique;                 // for the next call
    std::shared_ptr<Trial> trial;  // null if the choice is final
  };

  /// Returns the choice for a key. techniques(): the techniques that may be the fastest; called if
  /// the process has no choice for this key and this version.
  Choice choice_for(const std::string &key, uint64_t version,
                    const std::function<std::vector<int>()> &techniques);

  /// Adds the time of a call to a trial that choice_for has returned.
  void record(const std::string &key, Trial &trial, int technique, double seconds);

 private:
  struct Entry {
    uint64_t version;
    int technique;
    std::shared_ptr<Trial> trial;
  };
  void read_file();
  void append(const std::string &key, int technique);

  const std::string path_;
  std::mutex mutex_;  // guards the members below
  std::unordered_map<std::string, Entry> entries_;
  std::unordered_map<std::string, int> of_file_;
  bool is_read_ = false, is_of_this_machine_ = false;
};

/// The choices of the process. Their file is the one that environment variable PIDCOMM_CHOICES
/// names (empty: no file), else `choices` in the folder of the tuning file.
Choices &choices();

}  // namespace pidcomm
