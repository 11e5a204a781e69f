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

std::string start_of_line() {
  return std::string("pidcomm ") + pidcomm_version() + " " + cpu_line() + ": ";
}

/// Runs a trial to its end; seconds(technique, call): the time of call 0, 1, ... of the technique.
/// Returns the number of calls.
template <class Seconds>
int run(Trial &trial, const Seconds &seconds) {
  int calls[3] = {}, all = 0;
  for (bool has_ended = false; !has_ended; ++all) {
    CHECK(all < 12);
    const int technique = trial.next_technique();
    has_ended = trial.record(technique, seconds(technique, calls[technique]++));
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

/// Carries out calls of a class until its choice is final. Returns the technique.
int decide(Choices &choices, const std::string &key, int fastest) {
  for (int call = 0; call < 20; ++call) {
    const Choices::Choice choice = choices.choice_for(key, 1, [] { return kBoth; });
    if (choice.trial == nullptr) return choice.technique;
    choices.record(*choice.trial, choice.timed_technique,
                   choice.timed_technique == fastest ? 1.0 : 1.3);
  }
  return 0;
}

bool has_trial(Choices &choices, const std::string &key) {
  return choices.choice_for(key, 1, [] { return kBoth; }).trial != nullptr;
}

TEST(Trial_TakesTheTechniqueWithTheShortestCallAfterTheFirst) {
  Trial slow_start("", kBoth);  // the first call does not count
  CHECK_EQ(run(slow_start,
               [](int technique, int call) {
                 return technique == kTileCode ? (call == 0 ? 9.0 : 1.0) : 1.1;
               }),
           12);
  CHECK_EQ(slow_start.best_technique(), kTileCode);
  Trial noisy("", kBoth);  // one slow call does not count
  run(noisy, [](int technique, int call) {
    return technique == kTileCode ? (call == 1 ? 1.9 : 1.0) : 1.2;
  });
  CHECK_EQ(noisy.best_technique(), kTileCode);
  Trial equal("", kBoth);
  run(equal, [](int technique, int) { return technique == kTileCode ? 1.0 : 1.01; });
  CHECK_EQ(equal.best_technique(), kConventionalCode);
}

TEST(Trial_EndsEarlyIfATechniqueIsMuchSlower) {
  Trial trial("", kBoth);
  CHECK_EQ(trial.best_technique(), kConventionalCode);
  CHECK_EQ(run(trial, [](int technique, int) { return technique == kTileCode ? 1.0 : 1.5; }), 6);
  CHECK_EQ(trial.best_technique(), kTileCode);
  Trial sooner("", kBoth);
  CHECK_EQ(run(sooner, [](int technique, int) { return technique == kTileCode ? 1.0 : 2.1; }), 4);
  CHECK_EQ(sooner.best_technique(), kTileCode);
  CHECK(!sooner.record(kConventionalCode, 0.1));  // a call that began before the end
  CHECK_EQ(sooner.best_technique(), kTileCode);
}

TEST(Trial_OfThreeTechniquesWithoutTheOneThatFails) {
  Trial trial("", {kConventionalCode, PIDCOMM_TECHNIQUE_PR_IM, kTileCode});
  CHECK(!trial.drop(kConventionalCode));
  for (int call = 0; call < 4; ++call) {
    const int technique = trial.next_technique();
    CHECK(technique != kConventionalCode);
    trial.record(technique, 1.0);
  }
  CHECK(trial.drop(PIDCOMM_TECHNIQUE_PR_IM));
  CHECK(!trial.drop(kTileCode));  // the last one stays
  CHECK_EQ(trial.next_technique(), kTileCode);
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
  const Choices::Choice open = choose(3, kBoth);
  CHECK(open.trial != nullptr);
  choices.record(*open.trial, open.timed_technique, 1.0);
  CHECK_EQ(choose(3, kBoth).technique, kConventionalCode);  // calls that are not timed take no turn
  CHECK_EQ(choose(3, kBoth).timed_technique, kTileCode);
  choices.drop(*open.trial, kConventionalCode);
  CHECK(choose(3, kBoth).trial == nullptr);
  CHECK_EQ(choose(3, kBoth).technique, kTileCode);
  CHECK_EQ(decide(choices, "other", kTileCode), kTileCode);
  CHECK_EQ(choices.choice_for("other", 4, [] { return kBoth; }).technique, kTileCode);
}

TEST(ChoicesFile_KeepsTheResultsOfTrials) {
  const ChoicesFile file;
  {
    Choices choices(file.path), of_another_process(file.path);
    CHECK(has_trial(choices, "gather 8x8"));
    CHECK(has_trial(of_another_process, "scatter 8x8"));
    decide(choices, "gather 8x8", kTileCode);
    decide(of_another_process, "scatter 8x8", kConventionalCode);
    CHECK_EQ(choices.choice_for("broadcast 8x8", 1, [] { return std::vector<int>{kTileCode}; })
                 .technique,
             kTileCode);  // without a trial
  }
  CHECK_EQ(file.text(),
           start_of_line() + "gather 8x8 tile\n" + start_of_line() + "scatter 8x8 conventional\n");
  Choices choices(file.path);
  CHECK(!has_trial(choices, "gather 8x8"));
  CHECK_EQ(decide(choices, "gather 8x8", kConventionalCode), kTileCode);
  CHECK(has_trial(choices, "broadcast 8x8"));
  // The result is no longer one of the techniques that may be the fastest.
  CHECK_EQ(
      choices.choice_for("scatter 8x8", 1, [] { return std::vector<int>{kTileCode}; }).technique,
      kTileCode);
}

TEST(ChoicesFile_LinesOfAnotherCpuAndWrongLinesHaveNoEffect) {
  const ChoicesFile file;
  const std::string others = "pidcomm 0.0.1 cpu Other 1 2: key tile\n\n" + start_of_line() + "\n" +
                             start_of_line() + "tile\n" + start_of_line() + "key vax\n" +
                             start_of_line() + "cut";
  file.write(others + "\n");
  {
    Choices choices(file.path);
    CHECK(has_trial(choices, "key"));
    CHECK_EQ(decide(choices, "key", kTileCode), kTileCode);
  }
  CHECK_EQ(file.text(), others + "\n" + start_of_line() + "key tile\n");
  std::filesystem::remove_all(file.folder);
  std::ofstream(file.folder) << "a file where the folder should be";
  Choices unwritable(file.path);
  CHECK_EQ(decide(unwritable, "key", kTileCode), kTileCode);
  CHECK(!has_trial(unwritable, "key"));
}

}  // namespace
