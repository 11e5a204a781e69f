#include "line_kernels/tuning.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <system_error>

#include "base/cpu.h"
#include "base/error.h"
#include "base/settings_file.h"

namespace pidcomm {

namespace {

/// The CPUs with a column in PIDCOMM_TUNED_PASSES. A CPU uses the last row with its vendor whose
/// least_family is not above its family; other vendors use row 0.
constexpr struct {
  const char *name, *vendor;
  uint32_t least_family;
} kCpus[] = {{"AMD CPUs", "AuthenticAMD", 0},
             {"AMD CPUs of family 26 or later", "AuthenticAMD", 26},
             {"Intel CPUs", "GenuineIntel", 0}};

/// X(pass, least and most step_words, values on each CPU of kCpus), and OVER_RANKS for the values
/// of reductions that load from several ranks. The values are step_words, ahead, ahead_level,
/// members, items, prefetches. They were measured with emulated DIMMs on 2 CPUs of each of an AMD
/// EPYC (family 25, model 17), an AMD EPYC (family 26, model 2) and an Intel Xeon (family 6, model
/// 207). On the second EPYC, these were not compared: other step_words of replicate, over ranks and
/// of reduce_rows, and values of `ahead` that are not powers of two. On the Xeon, 128 and 256 lines
/// ahead were not compared on sections.
#define PIDCOMM_TUNED_PASSES(X, OVER_RANKS)                                                    \
  X(transpose, 1, 64, {4, 24, 2, 1, 8, 1}, {4, 24, 1, 1, 8, 1}, {1, 16, 2, 1, 8, 1})           \
  X(replicate, 8, 32, {16, 8, 1, 1, 8, 1}, {8, 8, 1, 1, 8, 1}, {8, 8, 1, 1, 8, 1})             \
  X(reduce_blocks, 8, 32, {32, 160, 2, 8, 8, 1}, {32, 128, 1, 8, 1, 0}, {16, 256, 2, 8, 8, 1}) \
  OVER_RANKS(reduce_blocks, 8, 256, {64, 224, 2, 8, 8, 1}, {256, 128, 1, 8, 1, 0},             \
             {256, 256, 2, 8, 8, 1})                                                           \
  X(reduce_lanes, 8, 32, {16, 224, 2, 8, 8, 1}, {16, 128, 1, 8, 8, 1}, {16, 256, 2, 8, 8, 1})  \
  OVER_RANKS(reduce_lanes, 8, 64, {64, 224, 2, 8, 8, 1}, {64, 128, 1, 8, 8, 1},                \
             {64, 256, 2, 8, 8, 1})                                                            \
  X(reduce_to_host, 8, 32, {8, 64, 2, 8, 2, 1}, {8, 128, 1, 8, 1, 0}, {8, 256, 2, 8, 8, 1})    \
  OVER_RANKS(reduce_to_host, 8, 256, {64, 224, 2, 4, 2, 1}, {256, 128, 1, 8, 1, 0},            \
             {256, 256, 2, 8, 8, 1})                                                           \
  X(merge, 8, 8, {8, 256, 2, 1, 8, 1}, {8, 256, 1, 1, 8, 1}, {8, 128, 2, 1, 8, 1})             \
  X(reduce_rows, 16, 64, {64, 256, 2, 8, 8, 1}, {64, 256, 1, 8, 8, 0}, {32, 128, 2, 8, 8, 1})  \
  X(reduce_rows_to_host, 16, 64, {64, 256, 2, 8, 8, 1}, {64, 128, 1, 8, 8, 0},                 \
    {32, 128, 2, 8, 8, 1})                                                                     \
  X(to_host, 8, 16, {8, 64, 2, 1, 8, 0}, {8, 32, 1, 1, 8, 1}, {16, 64, 2, 1, 8, 1})            \
  X(from_host, 8, 512, {256, 256, 2, 1, 8, 1}, {512, 256, 1, 1, 8, 1}, {8, 64, 2, 1, 8, 1})

/// The values of the other passes, on all CPUs.
constexpr struct {
  Pass pass;
  PassTuning values;
} kOtherPasses[] = {
    {Pass::rotate, {8, 8, 2, 1, 8, 1}},
    {Pass::replicate_rotated, {8, 8, 1, 1, 8, 1}},
    {Pass::reduce_rotated, {16, 256, 2, 8, 8, 1}},
    {Pass::reduce_rotated_replicate, {8, 256, 2, 8, 8, 1}},
    {Pass::reduce_rotated_to_host, {8, 256, 2, 8, 8, 1}},
    {Pass::member_step, {8, 8, 1, 1, 8, 1}},
    {Pass::member_step_reduce, {8, 8, 1, 1, 8, 1}},
};

constexpr bool has_buffer_for(Pass pass, bool over_ranks, uint32_t step_words) {
  if (pass == Pass::replicate) return step_words * kLanes * kLineBytes <= kItemBufferBytes;
  if (pass == Pass::reduce_lanes) return step_words <= kAllreduceStepLines;
  if (pass == Pass::reduce_rows || pass == Pass::reduce_rows_to_host)
    return step_words <= kRowStepWords;
  const bool reduces = pass == Pass::reduce_blocks || pass == Pass::reduce_to_host;
  return !reduces || step_words <= (over_ranks ? kRankStepLines : kReduceStepWords);
}
#define PIDCOMM_ROW(pass, least, most, ...) static_assert(has_buffer_for(Pass::pass, false, most));
#define PIDCOMM_RANKS_ROW(pass, least, most, ...) \
  static_assert(has_buffer_for(Pass::pass, true, most));
PIDCOMM_TUNED_PASSES(PIDCOMM_ROW, PIDCOMM_RANKS_ROW)
#undef PIDCOMM_RANKS_ROW
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(key, least, most, ...) \
  static_assert(most <= std::numeric_limits<decltype(PassTuning::key)>::max());
PIDCOMM_TUNING(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/// Returns the values that the library keeps. Errors: ERR_ARGUMENT.
PassTuning checked(const TunedPass &pass, const pidcomm_tuning &tuning) {
  const auto check = [&](const char *key, uint32_t value, uint32_t least, uint32_t most) {
    if (value < least || value > most)
      fail(PIDCOMM_ERR_ARGUMENT, key, " of pass ", pass.name, " is ", value, "; it must be ", least,
           " to ", most);
  };
#define PIDCOMM_ROW(key, least, most, ...) check(#key, tuning.key, least, most);
  PIDCOMM_TUNING(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  check("step_words", tuning.step_words, pass.least_step_words, pass.most_step_words);
  if (!std::has_single_bit(tuning.step_words))
    fail(PIDCOMM_ERR_ARGUMENT, "step_words of pass ", pass.name, " is ", tuning.step_words,
         "; it must be a power of two");
  PassTuning values{};
#define PIDCOMM_ROW(key, ...) values.key = static_cast<decltype(values.key)>(tuning.key);
  PIDCOMM_TUNING(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  return values;
}

#define PIDCOMM_NO_ROW(...)
#define PIDCOMM_ROW(...) +1
constexpr std::size_t kRowsOverRanks = 0 PIDCOMM_TUNED_PASSES(PIDCOMM_NO_ROW, PIDCOMM_ROW);
#undef PIDCOMM_ROW
#undef PIDCOMM_NO_ROW

constexpr const char *kVariable = "PIDCOMM_TUNING";

class Table {
 public:
  Table() : path(settings_path(kVariable, "tuning")), cpu_line(pidcomm::cpu_line()) {
    for (std::size_t pass = 0; pass < kPasses; ++pass) over_ranks_[pass] = pass;
    for (const auto &other : kOtherPasses)
      values_[static_cast<std::size_t>(other.pass)] = other.values;
    const Cpu this_cpu = cpu();
    std::size_t column = 0;
    for (std::size_t i = 0; i < std::size(kCpus); ++i)
      if (this_cpu.vendor == kCpus[i].vendor && this_cpu.family >= kCpus[i].least_family)
        column = i;
    using Columns = std::array<PassTuning, std::size(kCpus)>;
    const auto add = [&](std::size_t index, const char *name, uint32_t least, uint32_t most,
                         const Columns &columns) {
      values_[index] = columns[column];
      passes.push_back({index, name, least, most});
    };
    std::size_t next = kPasses;
    const auto add_over_ranks = [&](Pass pass) {
      return over_ranks_[static_cast<std::size_t>(pass)] = next++;
    };
#define PIDCOMM_ROW(pass, least, most, ...)                     \
  add(static_cast<std::size_t>(Pass::pass), #pass, least, most, \
      std::to_array<PassTuning>({__VA_ARGS__}));
#define PIDCOMM_RANKS_ROW(pass, least, most, ...)                   \
  add(add_over_ranks(Pass::pass), #pass "_over_ranks", least, most, \
      std::to_array<PassTuning>({__VA_ARGS__}));
    PIDCOMM_TUNED_PASSES(PIDCOMM_ROW, PIDCOMM_RANKS_ROW)
#undef PIDCOMM_RANKS_ROW
#undef PIDCOMM_ROW
    source = std::string("built-in values for ") + kCpus[column].name;
    if (path.empty()) return;
    std::ifstream file(path);
    if (!file) {
      if (std::getenv(kVariable) != nullptr) source += ", not " + path + ": cannot be opened";
      return;
    }
    try {
      values_ = values_in(file);
      source = path;
    } catch (const Error &error) {
      source += ", not " + path + ": " + error.what();
    }
  }

  const TunedPass &pass_named(const std::string &name) const {
    const auto found = std::find_if(passes.begin(), passes.end(),
                                    [&](const TunedPass &pass) { return pass.name == name; });
    if (found == passes.end()) fail(PIDCOMM_ERR_ARGUMENT, "no tuned pass has the name ", name);
    return *found;
  }
  std::size_t index_of(Pass pass, bool over_ranks) const {
    const auto index = static_cast<std::size_t>(pass);
    return over_ranks ? over_ranks_[index] : index;
  }
  PassTuning at(std::size_t index) {
    return std::atomic_ref(values_[index]).load(std::memory_order_relaxed);
  }
  void set(std::size_t index, PassTuning tuning) {
    std::atomic_ref(values_[index]).store(tuning, std::memory_order_relaxed);
  }

  const std::string path, cpu_line;
  std::string source;
  std::vector<TunedPass> passes;

 private:
  using Values = std::array<PassTuning, kPasses + kRowsOverRanks>;

  /// Returns the values with those of a tuning file. Errors: ERR_ARGUMENT.
  Values values_in(std::istream &file) const {
    Values values = values_;
    std::set<std::string> names;
    std::string line;
    if (!std::getline(file, line) || line != cpu_line)
      fail(PIDCOMM_ERR_ARGUMENT, "its first line is '", line, "', not '", cpu_line, "'");
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string name, word;
      words >> name;
      if (!names.insert(name).second) fail(PIDCOMM_ERR_ARGUMENT, "pass ", name, " has two lines");
      pidcomm_tuning tuning PIDCOMM_TUNING_INITIALIZER;
      const TunedPass &pass = pass_named(name);
      std::set<std::string> keys;
      while (words >> word) {
        const std::string key = set_key(tuning, word);
        if (!keys.insert(key).second)
          fail(PIDCOMM_ERR_ARGUMENT, "pass ", name, " has two values for ", key);
      }
#define PIDCOMM_ROW(key, ...) \
  if (keys.count(#key) == 0) fail(PIDCOMM_ERR_ARGUMENT, "pass ", name, " has no value for " #key);
      PIDCOMM_TUNING(PIDCOMM_ROW)
#undef PIDCOMM_ROW
      values[pass.index] = checked(pass, tuning);
    }
    return values;
  }

  /// word: KEY=VALUE. Returns the key.
  static std::string set_key(pidcomm_tuning &tuning, const std::string &word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals);
    uint32_t value = 0;
    const char *const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(std::min(word.data() + equals + 1, end), end, value);
    bool is_known = false;
#define PIDCOMM_ROW(name, ...) \
  if (key == #name) tuning.name = value, is_known = true;
    PIDCOMM_TUNING(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    if (!is_known || error != std::errc() || rest != end)
      fail(PIDCOMM_ERR_ARGUMENT, "'", word, "' is not KEY=NUMBER");
    return key;
  }

  // Arrays have no destructor, so that a call that is pending at exit can still read them.
  Values values_{};                                // of the passes, then of reductions over ranks
  std::array<std::size_t, kPasses> over_ranks_{};  // by pass: index of its values over ranks
};

Table &table() {
  static Table table;
  return table;
}

}  // namespace

const std::vector<TunedPass> &tuned_passes() { return table().passes; }
const TunedPass &tuned_pass(const std::string &name) { return table().pass_named(name); }
PassTuning tuning_of(Pass pass, bool over_ranks) {
  return table().at(table().index_of(pass, over_ranks));
}
PassTuning tuning_of(const TunedPass &pass) { return table().at(pass.index); }
void set_tuning(const TunedPass &pass, const pidcomm_tuning &tuning) {
  table().set(pass.index, checked(pass, tuning));
}
const std::string &tuning_source() { return table().source; }
const std::string &tuning_path() { return table().path; }
const std::string &tuning_cpu() { return table().cpu_line; }

}  // namespace pidcomm
