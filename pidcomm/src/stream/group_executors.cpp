#include "stream/group_executors.h"

#include "stream/device_runner.h"

namespace pidcomm {

namespace {

std::vector<uint32_t> lengths_of(const Hypercube &cube) {
  std::vector<uint32_t> lengths;
  for (const Axis &axis : cube.axes) lengths.push_back(axis.length);
  return lengths;
}

}  // namespace

Hypercube group_cube(const Hypercube &whole, uint32_t groups) {
  std::vector<uint32_t> lengths = lengths_of(whole);
  lengths.back() /= groups;
  return Hypercube::of(lengths, whole.order);
}

Executor &GroupExecutors::of(Executor &whole, uint32_t group, uint32_t groups) {
  if (groups == 1) return whole;
  std::vector<uint32_t> key = lengths_of(whole.cube());
  key.insert(key.end(), {static_cast<uint32_t>(whole.cube().order), group, groups});
  std::unique_ptr<Executor> &executor = executors_[key];
  const uint32_t ranks = set_.list.nr_ranks / groups;
  if (executor == nullptr)
    executor = std::make_unique<Executor>(ranks_of(set_, group * ranks, ranks), 0,
                                          group_cube(whole.cube(), groups), whole.planner());
  return *executor;
}

}  // namespace pidcomm
