// A test runner in one header, for the emulator and for libraries that use it. It works with
// sanitizers.
//
//   TEST(AllToAll_MovesBlockQOfMemberPToBlockPOfMemberQ) { CHECK_EQ(got, want); }
//   int main(int argc, char **argv) { return harness::run_all(argc, argv); }   // arguments: only
//   tests whose name contains one of them
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

inline int run_all(int argc, char **argv) {
  std::size_t passed = 0, failed = 0;
  const bool prints_times = std::getenv("PIDCOMM_TEST_TIMES") != nullptr;
  for (const Test &test : tests()) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted = wanted || test.name.find(argv[i]) != std::string::npos;
    if (!wanted) continue;
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
