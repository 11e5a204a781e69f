// A test runner in one header, for the emulator and for libraries that use it. It works with
// sanitizers.
//
//   TEST(AllToAll_MovesBlockQOfMemberPToBlockPOfMemberQ) { CHECK_EQ(got, want); }
//   int main(int argc, char **argv) { return harness::run_all(argc, argv); }
//
// Arguments: words select the tests whose names contain one of them. `--shard I/N` selects every
// Nth of these tests from test I on (I from 1 to N): the N shards run each test once.
//
// If the environment variable PIDCOMM_TEST_TIMES is set, each test is listed with its seconds. The
// last line printed is `N passed, M failed`; the exit status is 1 if any test failed or none ran.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace harness {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Test {
  std::string name;
  std::function<void()> body;
};

inline std::vector<Test> &tests() {
  static std::vector<Test> all;
  return all;
}

struct Registrar {
  Registrar(std::string name, std::function<void()> body) {
    tests().push_back({std::move(name), std::move(body)});
  }
};

template <class T>
std::string show(const T &value) {
  std::ostringstream out;
  if constexpr (requires { out << value; })
    out << value;
  else
    out << "(value)";
  return out.str();
}

[[noreturn]] inline void fail(const char *file, int line, const std::string &what) {
  throw Failure(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

/// The tests that the arguments of a program select.
struct Selection {
  std::vector<std::string> words;
  std::size_t shard = 1, shards = 1;

  /// Throws std::runtime_error if the arguments are wrong.
  Selection(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
      if (std::string(argv[i]) != "--shard") {
        words.push_back(argv[i]);
        continue;
      }
      char rest = 0;
      if (++i == argc || std::sscanf(argv[i], "%zu/%zu%c", &shard, &shards, &rest) != 2 ||
          shard < 1 || shard > shards)
        throw std::runtime_error("--shard needs I/N with I from 1 to N");
    }
  }

  std::vector<Test> selected() const {
    std::vector<Test> all;
    std::size_t count = 0;
    for (const Test &test : tests()) {
      bool has_word = words.empty();
      for (const std::string &word : words)
        has_word = has_word || test.name.find(word) != std::string::npos;
      if (has_word && count++ % shards == shard - 1) all.push_back(test);
    }
    return all;
  }
};

inline int run_all(int argc, char **argv) {
  std::size_t passed = 0, failed = 0;
  const bool prints_times = std::getenv("PIDCOMM_TEST_TIMES") != nullptr;
  std::vector<Test> selected;
  try {
    selected = Selection(argc, argv).selected();
  } catch (const std::runtime_error &error) {
    std::printf("%s\n", error.what());
    return 2;
  }
  for (const Test &test : selected) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      test.body();
      ++passed;
    } catch (const std::exception &error) {
      ++failed;
      std::printf("FAILED %s\n  %s\n", test.name.c_str(), error.what());
    }
    if (prints_times)
      std::printf("%8.3f s  %s\n",
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
                  test.name.c_str());
  }
  std::printf("%zu passed, %zu failed\n", passed, failed);
  return failed != 0 || passed == 0;
}

}  // namespace harness

#define TEST(name)                                                \
  static void test_##name();                                      \
  static harness::Registrar registrar_##name(#name, test_##name); \
  static void test_##name()

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) harness::fail(__FILE__, __LINE__, #condition); \
  } while (0)

#define CHECK_EQ(got, want)                                                                     \
  do {                                                                                          \
    const auto &got_ = (got);                                                                   \
    const auto &want_ = (want);                                                                 \
    if (!(got_ == want_))                                                                       \
      harness::fail(__FILE__, __LINE__,                                                         \
                    std::string(#got " == " #want ": got ") + harness::show(got_) + ", want " + \
                        harness::show(want_));                                                  \
  } while (0)
