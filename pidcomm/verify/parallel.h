/// Loops over independent items on all CPUs. The loops use plain threads, because sanitizers
/// support plain threads without extra annotations.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace verify {

/// Calls body(i) for every i in [0, items), in any order, and by several threads if `work_bytes` is
/// large. `body` must not throw in parallel.
template <class Body>
void parallel_for(std::size_t items, std::size_t work_bytes, const Body &body) {
  constexpr std::size_t kSmallBytes = std::size_t{4} << 20;
  const std::size_t threads =
      work_bytes <= kSmallBytes ? 1
                                : std::min<std::size_t>(items, std::thread::hardware_concurrency());
  if (threads <= 1) {
    for (std::size_t i = 0; i < items; ++i) body(i);
    return;
  }
  constexpr std::size_t kBatch = 16;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t begin; (begin = next.fetch_add(kBatch)) < items;)
      for (std::size_t i = begin; i < std::min(items, begin + kBatch); ++i) body(i);
  };
  std::vector<std::jthread> helpers;
  for (std::size_t t = 1; t < threads; ++t) helpers.emplace_back(work);
  work();
}

}  // namespace verify
