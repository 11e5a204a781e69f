// What the native attacks share: arguments, random numbers, findings. campaign.py describes the
// output.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "../../verify/fill.h"

namespace campaign {

/// Random numbers that depend only on the seed and on the number of the case.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t number = 0)
      : state_(verify::mix(seed) ^ verify::mix(~number)) {}
  std::uint64_t next() { return verify::mix(++state_); }
  std::uint64_t below(std::uint64_t end) { return next() % end; }
  bool one_in(std::uint64_t chances) { return below(chances) == 0; }
  template <class List>
  auto of(const List &list) {
    return list[below(std::size(list))];
  }

 private:
  std::uint64_t state_;
};

/// The run of an attack: ATTACK SECONDS SEED [CASE]. With CASE, only this case runs.
class Run {
 public:
  Run(int argc, char **argv) : program_(argv[0]) {
    if (argc < 3 || argc > 4) {
      std::fprintf(stderr, "usage: %s SECONDS SEED [CASE]\n", argv[0]);
      std::exit(2);
    }
    end_ =
        std::chrono::steady_clock::now() + std::chrono::seconds(std::strtoll(argv[1], nullptr, 10));
    seed = std::strtoull(argv[2], nullptr, 10);
    only_one = argc == 4;
    if (only_one) only = std::strtoull(argv[3], nullptr, 10);
  }
  bool is_over() const {
    return findings_ >= kMostFindings || (!only_one && std::chrono::steady_clock::now() >= end_);
  }

  /// Counts a case.
  void count() { ++cases_; }

  /// Reports a failed case unless its sentence differs only in numbers from an earlier one. A
  /// repeated run of the case alone repeats the failure if `is_alone`.
  void find(std::uint64_t number, bool is_alone, std::string sentence) {
    for (char &c : sentence)
      if (c == '\n' || c == '\t') c = ' ';
    std::string kind = sentence;
    std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!kinds_.insert(kind).second) return;
    ++findings_;
    std::printf("finding: %s\trun: %s %s %llu", sentence.c_str(), program_.c_str(),
                is_alone ? "0" : "60", static_cast<unsigned long long>(seed));
    if (is_alone) std::printf(" %llu", static_cast<unsigned long long>(number));
    std::printf("\n");
    std::fflush(stdout);
  }

  /// Prints the number of cases and returns the exit status.
  int finish() {
    std::printf("cases: %llu\n", static_cast<unsigned long long>(cases_.load()));
    std::fflush(stdout);  // an error during exit must not hide it
    return findings_ != 0;
  }

  std::uint64_t seed = 0, only = 0;
  bool only_one = false;

 private:
  static constexpr int kMostFindings = 10;  // later findings rarely have another cause
  std::string program_;
  std::chrono::steady_clock::time_point end_;
  std::atomic<std::uint64_t> cases_{0};
  std::atomic<int> findings_{0};
  std::mutex mutex_;
  std::set<std::string> kinds_;
};

}  // namespace campaign
