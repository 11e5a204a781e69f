// The test runner: which tests its arguments select.
#include "harness.h"

#include <map>

namespace {

std::vector<harness::Test> selected(std::vector<std::string> arguments) {
  std::vector<char *> argv = {nullptr};
  for (std::string &argument : arguments) argv.push_back(argument.data());
  return harness::Selection(static_cast<int>(argv.size()), argv.data()).selected();
}

TEST(Harness_ShardsRunEveryTestOnce) {
  for (const char *word : {"", "Harness"}) {
    std::map<std::string, int> runs;
    for (int shard = 1; shard <= 3; ++shard)
      for (const harness::Test &test : selected({"--shard", std::to_string(shard) + "/3", word}))
        ++runs[test.name];
    CHECK_EQ(runs.size(), selected({word}).size());
    for (const auto &[name, count] : runs) CHECK_EQ(count, 1);
  }
  CHECK_EQ(selected({}).size(), harness::tests().size());
}

TEST(Harness_RefusesWrongShards) {
  for (const char *shard : {"", "1", "0/2", "3/2", "1/2x"}) {
    bool is_refused = false;
    try {
      selected({"--shard", shard});
    } catch (const std::runtime_error &) {
      is_refused = true;
    }
    CHECK(is_refused);
  }
}

}  // namespace
