// Tests the published artifact's allocation of complete ranks, and its loop over PEs in the order
// of the hypercube.
#include <set>

#include "artifact_machine.h"

namespace {

using namespace artifact_machine;

/// Rows in the order of the loop over `count` PEs. Programs use this order to place data.
machine::Rows rows_of_loop(const DpuSet &set, std::size_t count) {
  std::vector<struct dpu_set_t> dpus;
  struct dpu_set_t dpu;
  std::uint32_t i;
  PIDCOMM_ARTIFACT_FOREACH(set.get(), dpu, i, static_cast<std::uint32_t>(count)) {
    CHECK_EQ(i, dpus.size());
    dpus.push_back(dpu);
  }
  return {set.get(), dpus};
}

}  // namespace

TEST(Allocation_TakesOnlyWholeRanks) {
  machine::power_up(4, {{0, 3, 2}, {2, 0, 0}});
  struct dpu_set_t set;
  std::uint32_t dpus = 0;
  CHECK_EQ(pidcomm_artifact_alloc(128, nullptr, &set, 1), DPU_OK);
  DPU_OK_OR_FAIL(dpu_get_nr_dpus(set, &dpus));
  CHECK_EQ(dpus, 128u);
  CHECK_EQ(dpu_get_rank_id(set.list.ranks[0]) * 10 + dpu_get_rank_id(set.list.ranks[1]), 13u);
  DPU_OK_OR_FAIL(dpu_free(set));
  CHECK_EQ(pidcomm_artifact_alloc(DPU_ALLOCATE_ALL, nullptr, &set, 0), DPU_OK);
  DPU_OK_OR_FAIL(dpu_get_nr_dpus(set, &dpus));
  CHECK_EQ(dpus, 128u);
  DPU_OK_OR_FAIL(dpu_free(set));
  CHECK_EQ(pidcomm_artifact_alloc(72, nullptr, &set, 1), DPU_OK);
  DPU_OK_OR_FAIL(dpu_get_nr_dpus(set, &dpus));
  CHECK_EQ(dpus, 72u);
  const Manager manager = manager_of(set, {8, 9});
  DPU_OK_OR_FAIL(dpu_free(set));
  for (const std::uint32_t count : {0u, 12u, 192u})
    CHECK_EQ(pidcomm_artifact_alloc(count, nullptr, &set, 1), DPU_ERR_ALLOCATION);
  CHECK_EQ(pidcomm_artifact_alloc(72, nullptr, &set, 2), DPU_ERR_ALLOCATION);
  CHECK_EQ(pidcomm_artifact_alloc(64, nullptr, nullptr, 1), DPU_ERR_ALLOCATION);
  CHECK_EQ(pidcomm_artifact_alloc(64, "nonsense", &set, 1), DPU_ERR_INVALID_PROFILE);
  const DpuSet everything = DpuSet::of_ranks(4);  // all ranks are free again
}

TEST(TheLoop_PlacesDataAsTheHypercubeNumbersIt) {
  const std::vector<std::vector<machine::Place>> machines = {
      {},
      {{0, 0, 0}},
      {{0, 0, 0}, {1, 7, 7}},
      {{0, 3, 1}, {0, 4, 1}, {0, 5, 6}, {1, 0, 0}},
      {{0, 0, 2}, {0, 5, 4}, {0, 6, 7}, {1, 1, 3}}};
  // On one of the machines, hypercubes of 98 to 118 PEs need an incomplete entangled group, which
  // is not always the first incomplete group.
  const std::vector<Axes> shapes = {{8, 8}, {16, 2, 3}, {2, 3, 5}, {17, 5}, {49, 2},
                                    {101},  {53, 2},    {109},     {19, 6}, {59, 2}};
  machine::Grid grid("the loop");
  std::uint64_t seed = 0;
  std::set<bool> ends_in_a_whole_eg;
  for (const std::vector<machine::Place> &disabled : machines) {
    machine::power_up(kRanks, disabled);
    const DpuSet set = DpuSet::of_ranks(kRanks);
    for (const Axes &axis_len : shapes) {
      pidcomm_hypercube *exists = nullptr;
      if (pidcomm_hypercube_create(set.get(), static_cast<std::uint32_t>(axis_len.size()),
                                   axis_len.data(), &exists) != PIDCOMM_OK)
        continue;
      pidcomm_hypercube_destroy(exists);
      const Hypercube cube(set, axis_len);
      const Manager manager = manager_of(set.get(), axis_len);
      const machine::Rows loop = rows_of_loop(set, cube.pes());
      struct dpu_t *const last = dpu_from_set(cube.dpu(cube.pes() - 1));
      ends_in_a_whole_eg.insert(
          std::none_of(disabled.begin(), disabled.end(), [&](const machine::Place &place) {
            return dpu_get_rank(last) == set.rank(place.rank) &&
                   dpu_get_member_id(last) == place.bank;
          }));
      for (const std::string &comm : masks(axis_len.size())) {
        const std::size_t total = place_of(axis_len, comm, 0).members * 8;
        for (const Call call :
             {Call::kAllToAll, Call::kReduceScatter, Call::kAllReduce, Call::kAllGather})
          grid.run([&] {
            run_case(loop, manager.get(), {call, comm, total, kStart + total, 8, 0}, kStart,
                     ++seed);
          });
      }
    }
  }
  grid.finish();
  CHECK_EQ(ends_in_a_whole_eg.size(), 2u);
}

TEST(TheLoop_HasTheSameOrderForEveryCount) {
  machine::power_up(1, {{0, 5, 0}, {0, 7, 1}});
  const DpuSet set = DpuSet::of_ranks(1);
  for (const std::uint32_t count : {48u, 50u, 55u}) {
    const Hypercube cube(set, {count});
    struct dpu_set_t dpu;
    std::uint32_t i = 0;
    PIDCOMM_ARTIFACT_FOREACH(set.get(), dpu, i, count) {
      if (i < count) CHECK(dpu_from_set(dpu) == dpu_from_set(cube.dpu(i)));
      if (i >= 48 && i < 55) CHECK_EQ(dpu_get_member_id(dpu_from_set(dpu)), 1u);
    }
  }
}

TEST(TheLoop_VisitsEveryEnabledPeOnceForEveryCount) {
  machine::power_up(2, {{0, 0, 0}, {1, 7, 7}});
  const DpuSet set = DpuSet::of_ranks(2);
  struct dpu_set_t dpu;
  std::uint32_t i = 0;
  for (const std::uint32_t count : {0u, 8u, 112u, 113u, 126u, 128u, 1000000u}) {
    std::set<struct dpu_t *> visited;
    PIDCOMM_ARTIFACT_FOREACH(set.get(), dpu, i, count) {
      struct dpu_t *const it = dpu_from_set(dpu);
      CHECK_EQ(i, visited.size());
      CHECK(dpu_is_enabled(it));
      // PEs of complete entangled groups come first.
      const bool is_of_incomplete =
          (dpu_get_rank(it) == set.rank(0) && dpu_get_member_id(it) == 0) ||
          (dpu_get_rank(it) == set.rank(1) && dpu_get_member_id(it) == 7);
      CHECK_EQ(is_of_incomplete, i >= 112);
      visited.insert(it);
    }
    CHECK_EQ(i, 126u);
    CHECK_EQ(visited.size(), 126u);
  }
  std::uint32_t singles = 0;
  struct dpu_set_t again;
  PIDCOMM_ARTIFACT_FOREACH(dpu, again, i, 1) {
    CHECK(dpu_from_set(again) == dpu_from_set(dpu));
    ++singles;
  }
  CHECK_EQ(singles, 1u);
}
