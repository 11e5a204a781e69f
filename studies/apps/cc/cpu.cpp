/// Connected components on all CPUs. First, each vertex is linked by its first edges only. Then all
/// vertices outside the largest component are linked by their remaining edges.
///
/// Source: Sutton, Ben-Nun, Barak, "Optimizing Parallel Graph Connectivity Computation via Subgraph
/// Sampling" (Afforest, IPDPS'18).
#include "../cpu.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <unordered_map>

namespace {

using namespace pidcomm_apps;

constexpr int64_t kFirstEdges = 2;
constexpr int64_t kSamples = 1024;
constexpr int kVerticesAtOnce = 4096;

using Label = std::atomic_ref<uint32_t>;

uint32_t load(uint32_t &label) { return Label(label).load(std::memory_order_relaxed); }

// Joins two trees: the smaller root becomes the parent of the larger, so a root is the smallest
// vertex of its tree.
void link(uint32_t a, uint32_t b, uint32_t *parent) {
  for (a = load(parent[a]), b = load(parent[b]); a != b;) {
    if (a < b) std::swap(a, b);
    uint32_t above = a;
    if (Label(parent[a]).compare_exchange_strong(above, b)) return;
    a = above;
    b = load(parent[b]);
  }
}

// Makes every vertex a child of its root.
void compress(int64_t vertices, uint32_t *parent) {
#pragma omp parallel for schedule(dynamic, kVerticesAtOnce)
  for (int64_t v = 0; v < vertices; ++v) {
    uint32_t root = load(parent[v]);
    for (uint32_t up; (up = load(parent[root])) != root;) root = up;
    Label(parent[v]).store(root, std::memory_order_relaxed);
  }
}

// Returns the most frequent label among evenly spaced samples.
uint32_t most_frequent(int64_t vertices, const uint32_t *labels) {
  std::unordered_map<uint32_t, int64_t> counts;
  for (int64_t i = 0; i < kSamples; ++i) ++counts[labels[i * vertices / kSamples]];
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto &a, const auto &b) { return a.second < b.second; })
      ->first;
}

void connect(const int64_t *starts, const uint32_t *targets, int64_t vertices, uint32_t *parent) {
#pragma omp parallel for
  for (int64_t v = 0; v < vertices; ++v) parent[v] = static_cast<uint32_t>(v);
#pragma omp parallel for schedule(dynamic, kVerticesAtOnce)
  for (int64_t v = 0; v < vertices; ++v)
    for (int64_t e = starts[v]; e < std::min(starts[v] + kFirstEdges, starts[v + 1]); ++e)
      link(static_cast<uint32_t>(v), targets[e], parent);
  compress(vertices, parent);
  const uint32_t largest = most_frequent(vertices, parent);
#pragma omp parallel for schedule(dynamic, kVerticesAtOnce)
  for (int64_t v = 0; v < vertices; ++v) {
    if (load(parent[v]) == largest)
      continue;  // edges to other components are linked from their other end
    for (int64_t e = starts[v] + kFirstEdges; e < starts[v + 1]; ++e)
      link(static_cast<uint32_t>(v), targets[e], parent);
  }
  compress(vertices, parent);
}

Out<uint32_t> cc(In<int64_t> starts, In<uint32_t> targets) {
  if (starts.size() == 0 || starts.data()[0] != 0 ||
      starts.data()[starts.size() - 1] != static_cast<int64_t>(targets.size()))
    throw nb::value_error("starts must be from 0 to the number of targets");
  const int64_t vertices = static_cast<int64_t>(starts.size()) - 1;
  Owned<uint32_t> labels(vertices);
  {
    const nb::gil_scoped_release released;
    if (vertices != 0) connect(starts.data(), targets.data(), vertices, labels.data());
  }
  return labels.array(vertices);
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  module.def("cc", &cc, nb::arg("starts").noconvert(), nb::arg("targets").noconvert());
}
