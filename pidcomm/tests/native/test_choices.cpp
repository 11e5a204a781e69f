// The choices of technique `auto`: trials by given times, and the choices file.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "exec/choices.h"
#include "harness.h"
#include "pidcomm/pidcomm.h"

using namespace pidcomm;

namespace {

constexpr int kTileCode = PIDCOMM_TECHNIQUE_TILE,
              kConventionalCode = PIDCOMM_TECHNIQUE_CONVENTIONAL;

std::string first_line() { return std::string("pidcomm ") + pidcomm_version() + " " + cpu_line(); }

/// Runs a trial to its end; seconds(technique, call): the time of call 0, 1, ... of the technique.
/// Returns the number of calls.
template <class Seconds>
int run(Trial &trial, const Seconds &seconds) {
  int calls[3] = {}, all = 0;
  while (trial.decided() == 0) {
    const int technique = trial.turn();
    const bool decides = trial.record(technique, seconds(technique, calls[technique]++));
    CHECK_EQ(decides, trial.decided() != 0);
    CHECK(++all <= 8);
  }
  return all;
}

/// A file in a folder that does not exist yet; removed with the folder at the end.
struct ChoicesFile {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("pidcomm-choices-" + std::to_string(getpid()));
  const std::filesystem::path path = folder / "choices";
  ~ChoicesFile() { std::filesystem::remove_all(folder); }

  std::string text() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string &text) const {
    std::filesystem::create_directories(folder);
    std::ofstream(path) << text;
  }
};

const std::vector<int> kBoth = {kConventionalCode, kTileCode};

/// Decides the choice of `key` for `fastest`.
void decide(Choices &choices, const std::string &key, int fastest) {
  for (int call = 0; call < 8; ++call) {
    const Choices::Choice choice = choices.choice_for(key, 1, [] { return kBoth; });
    if (choice.trial == nullptr) return;
    choices.record(key, *choice.trial, choice.technique, choice.technique == fastest ? 1.0 : 1.4);
  }
}

TEST(Trial_TakesTheTechniqueWithTheShortestCallAfterTheFirst) {
  Trial slow_start(kBoth);  // the first call does not count
  CHECK_EQ(run(slow_start,
               [](int technique, int call) {
                 return technique == kTileCode ? (call == 0 ? 3.0 : 1.0) : 1.1;
               }),
           8);
  CHECK_EQ(slow_start.decided(), kTileCode);
  Trial noisy(kBoth);  // one slow call does not count
  run(noisy, [](int technique, int call) {
    return technique == kTileCode ? (call == 2 ? 1.4 : 1.0) : 1.2;
  });
  CHECK_EQ(noisy.decided(), kTileCode);
  Trial equal(kBoth);
  run(equal, [](int technique, int) { return technique == kTileCode ? 1.0 : 1.01; });
  CHECK_EQ(equal.decided(), kConventionalCode);
}

TEST(Trial_EndsEarlyIfATechniqueIsMuchSlower) {
  Trial trial(kBoth);
  CHECK_EQ(run(trial, [](int technique, int) { return technique == kTileCode ? 1.0 : 2.0; }), 4);
  CHECK_EQ(trial.decided(), kTileCode);
  Trial at_once(kBoth);
  CHECK_EQ(run(at_once, [](int technique, int) { return technique == kTileCode ? 1.0 : 5.0; }), 2);
  CHECK_EQ(at_once.decided(), kTileCode);
  CHECK(!at_once.record(kConventionalCode, 0.1));  // a call that began before the end
  CHECK_EQ(at_once.decided(), kTileCode);
}

TEST(Choices_StayUntilThePredictionsChange) {
  Choices choices("");
  const auto choose = [&](std::uint64_t version, const std::vector<int> &techniques) {
    return choices.choice_for("key", version, [&] { return techniques; });
  };
  CHECK_EQ(choose(1, {kTileCode}).technique, kTileCode);
  CHECK_EQ(choose(1, {kConventionalCode}).technique, kTileCode);
  CHECK_EQ(choose(2, {kConventionalCode}).technique, kConventionalCode);
  CHECK(choose(2, kBoth).trial == nullptr);
  CHECK(choose(3, kBoth).trial != nullptr);
}

TEST(ChoicesFile_KeepsTheResultsOfTrials) {
  const ChoicesFile file;
  {
    Choices choices(file.path);
    decide(choices, "gather 8x8", kTileCode);
    decide(choices, "scatter 8x8", kConventionalCode);
    CHECK_EQ(choices.choice_for("broadcast 8x8", 1, [] { return std::vector<int>{kTileCode}; })
                 .technique,
             kTileCode);  // without a trial
  }
  CHECK_EQ(file.text(), first_line() + "\ntile gather 8x8\nconventional scatter 8x8\n");
  Choices choices(file.path);
  const auto choice_of = [&](const std::string &key, const std::vector<int> &techniques) {
    return choices.choice_for(key, 1, [&] { return techniques; });
  };
  CHECK_EQ(choice_of("gather 8x8", kBoth).technique, kTileCode);
  CHECK(choice_of("gather 8x8", kBoth).trial == nullptr);
  CHECK_EQ(choice_of("scatter 8x8", {kTileCode}).technique, kTileCode);  // no longer a rival
  CHECK(choice_of("broadcast 8x8", kBoth).trial != nullptr);
}

TEST(ChoicesFile_OfAnotherCpuOrWithWrongLines_HasNoEffect) {
  const ChoicesFile file;
  file.write("pidcomm 0.0.1 cpu Other 1 2\nconventional key\n");
  {
    Choices choices(file.path);
    CHECK(choices.choice_for("key", 1, [] { return kBoth; }).trial != nullptr);
    decide(choices, "key", kTileCode);
  }
  CHECK_EQ(file.text(), first_line() + "\ntile key\n");
  file.write(first_line() + "\n\nvax key\nconventional\ntile\n");
  Choices wrong_lines(file.path);
  CHECK(wrong_lines.choice_for("key", 1, [] { return kBoth; }).trial != nullptr);
  file.write("");
  std::filesystem::remove_all(file.folder);
  std::ofstream(file.folder) << "a file where the folder should be";
  Choices unwritable(file.path);
  decide(unwritable, "key", kTileCode);
  CHECK_EQ(unwritable.choice_for("key", 1, [] { return kBoth; }).technique, kTileCode);
}

}  // namespace
