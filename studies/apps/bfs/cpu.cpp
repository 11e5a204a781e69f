/// Breadth-first search on all CPUs, level by level. Each level is searched in the direction that
/// visits fewer edges: top down from a list of the frontier, or bottom up from the unreached
/// vertices to a bitmap of the frontier.
///
/// Source: Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First Search" (SC'12), which
/// also gives the two thresholds.
#include "../cpu.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace {

using namespace pidcomm_apps;

constexpr int64_t kToBottomUp =
    15;  // bottom up if the frontier has more than 1/15 of the remaining edges
constexpr int64_t kToTopDown = 18;  // top down if the frontier has less than 1/18 of the vertices
constexpr size_t kQueue =
    1024;  // vertices that a thread collects before it appends them to the common list

struct Search {
  const int64_t *starts;
  const uint32_t *targets;
  int64_t vertices;
  int32_t *levels;
  std::unique_ptr<uint32_t[]> frontier, found;  // room for all vertices
  size_t frontier_vertices;
  std::vector<uint64_t> bits, found_bits;

  int64_t edges_of(uint32_t v) const { return starts[v + 1] - starts[v]; }

  // Returns the number of edges of the vertices that it finds.
  int64_t top_down(int32_t level) {
    std::atomic<size_t> end{0};
    int64_t edges = 0;
#pragma omp parallel reduction(+ : edges)
    {
      uint32_t queue[kQueue];
      size_t count = 0;
      const auto flush = [&] {
        std::copy(queue, queue + count, found.get() + end.fetch_add(count));
        count = 0;
      };
#pragma omp for schedule(dynamic, 64) nowait
      for (size_t i = 0; i < frontier_vertices; ++i)
        for (int64_t e = starts[frontier[i]]; e < starts[frontier[i] + 1]; ++e) {
          std::atomic_ref<int32_t> other(levels[targets[e]]);
          int32_t unreached = -1;
          if (other.load(std::memory_order_relaxed) != -1 ||
              !other.compare_exchange_strong(unreached, level))
            continue;
          edges += edges_of(targets[e]);
          queue[count++] = targets[e];
          if (count == kQueue) flush();
        }
      flush();
    }
    frontier_vertices = end;
    frontier.swap(found);
    return edges;
  }

  // Returns the number of vertices that it finds. There is no race: a word of 64 vertices belongs
  // to one thread.
  int64_t bottom_up(int32_t level) {
    int64_t count = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : count)
    for (size_t word = 0; word < bits.size(); ++word) {
      uint64_t mine = 0;
      for (int64_t v = 64 * word; v < std::min<int64_t>(64 * word + 64, vertices); ++v) {
        if (levels[v] != -1) continue;
        for (int64_t e = starts[v]; e < starts[v + 1]; ++e)
          if (bits[targets[e] / 64] >> (targets[e] % 64) & 1) {
            levels[v] = level;
            mine |= uint64_t{1} << (v % 64);
            ++count;
            break;
          }
      }
      found_bits[word] = mine;
    }
    bits.swap(found_bits);
    return count;
  }

  void list_to_bits() {
    bits.assign((vertices + 63) / 64, 0);
    found_bits.resize(bits.size());
    for (size_t i = 0; i < frontier_vertices; ++i)
      bits[frontier[i] / 64] |= uint64_t{1} << (frontier[i] % 64);
  }

  int64_t bits_to_list() {
    int64_t edges = 0;
    frontier_vertices = 0;
    for (size_t word = 0; word < bits.size(); ++word)
      for (uint64_t left = bits[word]; left != 0; left &= left - 1) {
        const uint32_t v = static_cast<uint32_t>(64 * word + __builtin_ctzll(left));
        frontier[frontier_vertices++] = v;
        edges += edges_of(v);
      }
    return edges;
  }

  void run(uint32_t source, bool is_symmetric) {
    levels[source] = 0;
    frontier = std::make_unique_for_overwrite<uint32_t[]>(vertices);
    found = std::make_unique_for_overwrite<uint32_t[]>(vertices);
    frontier[0] = source;
    frontier_vertices = 1;
    int64_t edges = edges_of(source), edges_left = starts[vertices];
    for (int32_t level = 1; frontier_vertices != 0;) {
      if (is_symmetric && edges > edges_left / kToBottomUp) {
        list_to_bits();
        int64_t count = static_cast<int64_t>(frontier_vertices), before;
        do {
          before = count;
          count = bottom_up(level++);
        } while (count >= before || count > vertices / kToTopDown);
        edges = bits_to_list();
      } else {
        edges_left -= edges;
        edges = top_down(level++);
      }
    }
  }
};

Out<int32_t> bfs(In<int64_t> starts, In<uint32_t> targets, uint32_t source, bool is_symmetric) {
  if (starts.size() == 0 || starts.data()[0] != 0 ||
      starts.data()[starts.size() - 1] != static_cast<int64_t>(targets.size()))
    throw nb::value_error("starts must be from 0 to the number of targets");
  const int64_t vertices = static_cast<int64_t>(starts.size()) - 1;
  if (vertices != 0 && source >= vertices) throw nb::value_error("the source must be a vertex");
  Owned<int32_t> levels(vertices);
  {
    const nb::gil_scoped_release released;
    std::fill_n(levels.data(), vertices, -1);
    if (vertices != 0)
      Search{starts.data(), targets.data(), vertices, levels.data(), {}, {}, 0, {}, {}}.run(
          source, is_symmetric);
  }
  return levels.array(vertices);
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  module.def("bfs", &bfs, nb::arg("starts").noconvert(), nb::arg("targets").noconvert(),
             nb::arg("source"), nb::arg("is_symmetric"));
}
