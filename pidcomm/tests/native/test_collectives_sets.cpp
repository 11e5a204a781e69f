// Collectives on sets of every kind.
#include <dpu_program.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "collective_cases.h"
#include "pidcomm/pidcomm.hpp"

namespace {

using namespace collective_cases;

/// Checks where the PEs are. `egs`: rank and bank of each entangled group in PE order, a partial
/// one last.
void check_pe_order(const Hypercube &cube,
                    const std::vector<std::pair<std::uint32_t, std::uint32_t>> &egs) {
  for (std::size_t pe = 0; pe < cube.pes(); ++pe) {
    struct dpu_t *dpu = dpu_from_set(cube.dpu(pe));
    CHECK(dpu != nullptr);
    CHECK_EQ(dpu_get_slice_id(dpu), pe % 8);
    CHECK_EQ(dpu_get_member_id(dpu), egs[pe / 8].second);
    CHECK_EQ(dpu_get_rank_id(dpu_get_rank(dpu)), egs[pe / 8].first);
    std::uint32_t rank = 77, chip = 77, bank = 77;
    CHECK_EQ(pidcomm_pe_location(cube.get(), static_cast<std::uint32_t>(pe), &rank, &chip, &bank),
             +PIDCOMM_OK);
    CHECK_EQ(rank, egs[pe / 8].first);  // the sets here begin with the machine's first rank
    CHECK_EQ(chip, pe % 8);
    CHECK_EQ(bank, egs[pe / 8].second);
  }
}

/// Checks pidcomm_usable_pes: the set has `pes` usable PEs, in the order of the hypercube with as
/// many PEs, and no larger hypercube.
void check_usable_pes(const DpuSet &set, std::uint32_t pes) {
  const std::vector<pidcomm_usable_pe> usable = pidcomm::usable_pes(set.get());
  CHECK_EQ(usable.size(), pes);
  const std::uint32_t larger = pes + 1;
  pidcomm_hypercube *none = nullptr;
  CHECK_EQ(pidcomm_hypercube_create(set.get(), 1, &larger, &none), +PIDCOMM_ERR_SHAPE);
  if (pes == 0) return;
  const Hypercube cube(set, {pes});
  for (std::uint32_t pe = 0; pe < pes; ++pe) {
    CHECK_EQ(dpu_from_set(usable[pe].dpu), dpu_from_set(cube.dpu(pe)));
    std::uint32_t rank = 77, chip = 77, bank = 77;
    CHECK_EQ(pidcomm_pe_location(cube.get(), pe, &rank, &chip, &bank), +PIDCOMM_OK);
    CHECK(usable[pe].rank == rank && usable[pe].chip == chip && usable[pe].bank == bank);
  }
}

/// Runs all collectives with all masks on a shape of a set.
void run_some(const DpuSet &set, const Axes &axis_len, Grid &grid) {
  const Hypercube cube(set, axis_len);
  std::uint64_t seed = 0;
  for (const std::string &mask : machine::masks_of(axis_len.size()))
    for (int collective : kCollectives)
      for (int technique : {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL}) {
        const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
        Case c = make_case(collective, axis_len, mask, bytes_for_blocks(collective, group_pes, 40),
                           {PIDCOMM_INT64, PIDCOMM_SUM}, ++seed);
        place(c, 8192 - 64, false);
        c.options.technique = technique;
        grid.run([&] { machine::run_case(cube, c); });
      }
}

TEST(EgsWithADisabledLane_AreSkipped) {
  machine::power_up(2, {{0, 3, 2}, {0, 7, 2}, {1, 0, 0}, {1, 5, 7}});
  const DpuSet set = DpuSet::of_ranks(2);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> egs;
  for (std::uint32_t rank : {0u, 1u})
    for (std::uint32_t bank = 0; bank < 8; ++bank)
      if (!(rank == 0 && bank == 2) && !(rank == 1 && (bank == 0 || bank == 7)))
        egs.push_back({rank, bank});
  check_pe_order(Hypercube(set, {8, 13}), egs);
  Grid grid("disabled lanes");
  for (const Axes &axis_len : {Axes{8, 13}, Axes{4, 26}, Axes{2, 2, 2, 8}, Axes{10, 10}, Axes{104}})
    run_some(set, axis_len, grid);
  grid.finish();
}

TEST(RanksWithADisabledLane_ComeLast) {
  machine::power_up(3, {{0, 3, 2}, {2, 1, 5}});
  const DpuSet set = DpuSet::of_ranks(3);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> egs;
  for (std::uint32_t rank : {1u, 0u, 2u})
    for (std::uint32_t bank = 0; bank < 8; ++bank)
      if (!(rank == 0 && bank == 2) && !(rank == 2 && bank == 5)) egs.push_back({rank, bank});
  check_pe_order(Hypercube(set, {8, 22}), egs);
  egs.resize(12);
  check_pe_order(Hypercube(set, {32, 3}), egs);
  Grid grid("ranks with a disabled lane");
  for (const Axes &axis_len : {Axes{8, 8}, Axes{16, 11}, Axes{12, 8}, Axes{171}})
    run_some(set, axis_len, grid);
  grid.finish();
}

TEST(PartialLastEg_MayHaveADisabledLaneAfterItsPes) {
  machine::power_up(1, {{0, 3, 2}});
  const DpuSet set = DpuSet::of_ranks(1);
  Grid grid("partial EG with a disabled lane");
  std::vector<std::pair<std::uint32_t, std::uint32_t>> egs;
  for (std::uint32_t bank : {0u, 1u, 3u, 4u, 5u, 6u, 7u, 2u}) egs.push_back({0, bank});
  check_pe_order(Hypercube(set, {59}), egs);  // 7 whole EGs and lanes 0 to 2 of bank 2
  for (const Axes &axis_len : {Axes{59}, Axes{29, 2}, Axes{19, 3}}) run_some(set, axis_len, grid);
  grid.finish();
}

TEST(ForeachOrder_IsThatOfDpuForeach) {
  machine::power_up(2);
  const DpuSet owner = DpuSet::of_ranks(2);
  struct dpu_set_t set = owner.get();
  for (const Axes &axis_len : {Axes{128}, Axes{8, 16}, Axes{2, 32, 2}}) {
    pidcomm::Hypercube cube(set, axis_len, 0, PIDCOMM_FOREACH_ORDER);
    for (int collective : {PIDCOMM_ALLTOALL, PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLGATHER})
      for (const std::string &mask : machine::masks_of(axis_len.size())) {
        const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
        const verify::Problem problem{collective,     axis_len,   mask, 16 * std::size_t{group_pes},
                                      PIDCOMM_UINT32, PIDCOMM_SUM};
        const verify::Rows in = verify::rows_before(problem), out = verify::rows_after(problem);
        Bytes rows(in.bytes()), got(out.bytes());
        verify::fill_distinct(7, in.row_bytes, rows);
        struct dpu_set_t dpu;
        std::uint32_t i;
        DPU_FOREACH(set, dpu, i) {
          CHECK_EQ(dpu_from_set(dpu), dpu_from_set(pidcomm_pe_set(cube.get(), i)));
          DPU_OK_OR_FAIL(dpu_prepare_xfer(dpu, &rows[i * in.row_bytes]));
        }
        DPU_OK_OR_FAIL(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0,
                                     in.row_bytes, DPU_XFER_DEFAULT));
        pidcomm_request request = {};
        request.collective = collective;
        request.mask = mask.c_str();
        request.bytes = problem.bytes;
        request.dst = 1 << 20;
        request.type = problem.type;
        request.op = problem.op;
        cube.run(request);
        DPU_FOREACH(set, dpu, i)
        DPU_OK_OR_FAIL(dpu_prepare_xfer(dpu, &got[i * out.row_bytes]));
        DPU_OK_OR_FAIL(dpu_push_xfer(set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME, 1 << 20,
                                     out.row_bytes, DPU_XFER_DEFAULT));
        CHECK(got == verify::expected(problem, rows));
      }
  }
}

TEST(UsablePes_AreThePesOfTheLargestHypercube) {
  const struct {
    std::uint32_t ranks;
    std::vector<machine::Place> disabled;
    std::uint32_t usable;
  } rows[] = {
      {2, {}, 128},
      {2, {{0, 0, 2}, {1, 0, 5}}, 112},
      {2, {{0, 3, 2}, {1, 0, 5}}, 115},             // lanes 0 to 2 of bank 2
      {3, {{0, 3, 2}, {2, 7, 5}, {2, 6, 4}}, 175},  // lanes 0 to 6 of bank 5
  };
  for (const auto &row : rows) {
    machine::power_up(row.ranks, row.disabled);
    check_usable_pes(DpuSet::of_ranks(row.ranks), row.usable);
  }
  machine::power_up(2);
  for (const std::uint32_t dpus : {1u, 12u, 20u, 96u}) {
    const DpuSet set = DpuSet::of_dpus(dpus);
    check_usable_pes(set, static_cast<std::uint32_t>(pidcomm::usable_pes(set.get()).size()));
  }
}

TEST(PeNumbers_AreTheSameInEveryHypercubeOfASet) {
  // Bank 0 has 5 PEs from chip 0 on, bank 1 has 7, bank 3 of rank 1 has 2, bank 4 none.
  machine::power_up(2, {{0, 5, 0}, {0, 7, 1}, {0, 7, 6}, {1, 2, 3}, {1, 3, 3}, {1, 0, 4}});
  const DpuSet set = DpuSet::of_ranks(2);
  const std::vector<pidcomm_usable_pe> usable = pidcomm::usable_pes(set.get());
  CHECK_EQ(usable.size(), 95u);  // 11 whole EGs and lanes 0 to 6 of bank 1
  CHECK(usable.back().rank == 0 && usable.back().bank == 1);
  for (std::uint32_t first = 0; first < usable.size(); first += 8)
    for (std::uint32_t pes = 1; pes <= usable.size() - first; pes += first == 0 ? 1 : 7) {
      const Hypercube cube(set, {pes}, first);
      for (std::uint32_t pe = 0; pe < pes; ++pe) {
        const pidcomm_usable_pe &same = usable[first + pe];
        CHECK_EQ(dpu_from_set(cube.dpu(pe)), dpu_from_set(same.dpu));
        std::uint32_t rank = 77, chip = 77, bank = 77;
        CHECK_EQ(pidcomm_pe_location(cube.get(), pe, &rank, &chip, &bank), +PIDCOMM_OK);
        CHECK(same.rank == rank && same.chip == chip && same.bank == bank);
      }
    }
}

TEST(HypercubesThatBeginAtAnotherPe_ChangeNoOtherPe) {
  machine::power_up(2, {{0, 7, 3}, {1, 5, 4}});
  const DpuSet set = DpuSet::of_ranks(2);  // 14 whole EGs, then lanes 0 to 6 of bank 3
  Grid grid("first PE");
  const struct {
    std::uint32_t first;
    Axes axis_len;
  } rows[] = {{8, {8, 8}}, {48, {4, 2, 8}}, {48, {64}},   {72, {8, 5}}, {104, {2, 4}},
              {8, {3, 5}}, {40, {5, 7}},    {64, {55}},   {96, {23}},   {112, {7}},
              {16, {1}},   {16, {10, 10}},  {80, {3, 13}}};
  std::uint64_t seed = 0;
  for (const auto &row : rows) {
    const Hypercube cube(set, row.axis_len, row.first);
    for (const std::string &mask : machine::masks_of(row.axis_len.size()))
      for (int collective : kCollectives)
        for (int technique : techniques_for(collective, row.axis_len))
          for (int isa : {+PIDCOMM_ISA_DEFAULT, +PIDCOMM_ISA_AUDIT}) {
            const std::uint32_t group_pes = verify::groups_of(row.axis_len, mask).group_pes;
            Case c = make_case(collective, row.axis_len, mask,
                               bytes_for_blocks(collective, group_pes, 64),
                               {PIDCOMM_INT64, PIDCOMM_SUM}, ++seed);
            place(c, 8192 - 64, false);
            use_technique(c, technique, 1 << 20);
            c.options.isa = isa;
            grid.run([&] {
              machine::run_case(cube, c);
              if (isa == PIDCOMM_ISA_AUDIT) CHECK_EQ(machine::audit_of(cube).lines_outside, 0u);
            });
          }
  }
  grid.finish();
}

TEST(UsablePes_OfASetWithoutLane0AreNone) {
  std::vector<machine::Place> disabled;
  for (std::uint32_t bank = 0; bank < 8; ++bank) disabled.push_back({0, 0, bank});
  machine::power_up(1, disabled);
  check_usable_pes(DpuSet::of_ranks(1), 0);
}

TEST(UsablePes_StoresAsManyPesAsTheCallerHasRoomFor) {
  machine::power_up(1, {{0, 3, 2}});
  const DpuSet set = DpuSet::of_ranks(1);
  const std::vector<pidcomm_usable_pe> all = pidcomm::usable_pes(set.get());
  CHECK_EQ(all.size(), 59u);
  std::vector<pidcomm_usable_pe> some(all.size() + 1);
  for (const std::uint32_t capacity : {0u, 1u, 58u, 60u}) {
    for (pidcomm_usable_pe &pe : some) pe.rank = 77;
    std::uint32_t count = 0;
    CHECK_EQ(pidcomm_usable_pes(set.get(), some.data(), capacity, &count), +PIDCOMM_OK);
    CHECK_EQ(count, 59u);
    for (std::uint32_t pe = 0; pe < some.size(); ++pe)
      if (pe < std::min(capacity, count))
        CHECK(some[pe].rank == 0 && some[pe].chip == all[pe].chip && some[pe].bank == all[pe].bank);
      else
        CHECK_EQ(some[pe].rank, 77u);
  }
}

TEST(UsablePes_DoesNotWaitForRunningPes) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(0)));
  const std::size_t usable = pidcomm::usable_pes(set.get()).size();
  DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(0), false, 0));
  CHECK_EQ(usable, 64u);
}

TEST(Location_NumbersTheRanksOfTheSet) {
  machine::power_up(3);
  const DpuSet before = DpuSet::of_ranks(1), set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {128});
  std::uint32_t rank = 77, chip = 77, bank = 77;
  CHECK_EQ(pidcomm_pe_location(cube.get(), 64 + 43, &rank, &chip, &bank), +PIDCOMM_OK);
  CHECK(rank == 1 && chip == 3 && bank == 5);
  CHECK_EQ(dpu_get_rank_id(dpu_get_rank(dpu_from_set(cube.dpu(64 + 43)))), 2u);
}

TEST(SetsOfAnyNumberOfDpus_UseTheirWholeEgs) {
  machine::power_up(2);
  Grid grid("dpu_alloc");
  const struct {
    std::uint32_t dpus;
    Axes axis_len;
  } rows[] = {{96, {8, 12}}, {96, {4, 2, 12}}, {72, {8, 9}}, {8, {2, 4}}, {16, {4, 4}},
              {20, {4, 5}},  {20, {20}},       {12, {3, 4}}, {4, {2, 2}}, {1, {1}}};
  for (const auto &row : rows) {
    const DpuSet set = DpuSet::of_dpus(row.dpus);
    run_some(set, row.axis_len, grid);
  }
  grid.finish();
}

TEST(PeOrder_IsBankThenChipAndNotTheOrderOfDpuForeach) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 16});
  std::vector<std::pair<std::uint32_t, std::uint32_t>> egs;
  for (std::uint32_t eg = 0; eg < 16; ++eg) egs.push_back({eg / 8, eg % 8});
  check_pe_order(cube, egs);

  // The i-th DPU of DPU_FOREACH receives number i, which is chip * 8 + bank; PE order is bank * 8 +
  // chip.
  std::vector<std::uint64_t> numbers(128);
  struct dpu_set_t all = set.get(), dpu;
  std::uint32_t i;
  DPU_FOREACH(all, dpu, i) {
    numbers[i] = i;
    DPU_OK_OR_FAIL(dpu_prepare_xfer(dpu, &numbers[i]));
  }
  DPU_OK_OR_FAIL(
      dpu_push_xfer(all, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, 8, DPU_XFER_DEFAULT));
  std::vector<std::uint64_t> rows(128);
  CHECK_EQ(pidcomm_read(cube.get(), 0, 8, rows.data()), +PIDCOMM_OK);
  for (std::uint64_t pe = 0; pe < 128; ++pe)
    CHECK_EQ(rows[pe], pe / 64 * 64 + pe % 8 * 8 + pe % 64 / 8);
  CHECK_EQ(
      rows[1],
      8u);  // PE 1 is the second chip's DPU; the second DPU of DPU_FOREACH is the second bank's
}

TEST(WriteAndRead_MoveRowsInPeOrderAndTouchNoOtherByte) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  for (const Axes &axis_len : {Axes{8, 10}, Axes{3, 5}, Axes{70}})
    for (std::size_t bytes : {0u, 8u, 8208u})
      for (std::size_t offset :
           {std::size_t{0}, std::size_t{8192 - 16}, machine::kMramBytes - bytes}) {
        const Hypercube cube(set, axis_len);
        machine::Picture mram;
        mram.cover(offset, bytes);
        mram.poison(cube, 7);
        mram.write(cube);
        Bytes rows(cube.pes() * bytes);
        if (bytes != 0) verify::fill_distinct(8, bytes, rows);
        CHECK_EQ(pidcomm_write(cube.get(), offset, bytes, rows.data()), +PIDCOMM_OK);
        mram.put(cube, offset, bytes, rows);
        CHECK_EQ(mram.read(cube).difference(cube, mram), "");
        Bytes read(rows.size());
        CHECK_EQ(pidcomm_read(cube.get(), offset, bytes, read.data()), +PIDCOMM_OK);
        CHECK(read == rows);
        CHECK_EQ(mram.read(cube).difference(cube, mram), "");
      }
}

TEST(RepeatedWritesAndReads_UseTheHostRowsOfEachCall) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  constexpr std::size_t kBytes = 16;
  Bytes rows(cube.pes() * kBytes), read(rows.size());
  for (unsigned seed = 0; seed < 4; ++seed) {
    verify::fill_distinct(seed, kBytes, rows);
    const Bytes copy = rows;
    CHECK_EQ(pidcomm_write(cube.get(), 8, kBytes, (seed < 2 ? copy : rows).data()), +PIDCOMM_OK);
    Bytes other(rows.size());
    for (Bytes *into : {&read, &other}) {
      CHECK_EQ(pidcomm_read(cube.get(), 8, kBytes, into->data()), +PIDCOMM_OK);
      CHECK(*into == rows);
    }
  }
}

TEST(CoordinatesGroupsAndMembers_MatchTheDefinition) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  for (const Axes &axis_len : {Axes{2, 3, 4}, Axes{8, 12}, Axes{5, 1, 7}, Axes{1}}) {
    const Hypercube cube(set, axis_len);
    CHECK_EQ(pidcomm_pes(cube.get()), pes_of(axis_len));
    for (std::uint32_t pe = 0; pe < cube.pes(); ++pe) {
      Axes coords(axis_len.size());
      CHECK_EQ(pidcomm_coords(cube.get(), pe, coords.data()), +PIDCOMM_OK);
      CHECK(coords == verify::coordinates(axis_len, pe));
    }
    for (const std::string &mask : machine::masks_of(axis_len.size())) {
      const verify::Groups want = verify::groups_of(axis_len, mask);
      std::uint32_t groups = 0, group_pes = 0;
      CHECK_EQ(pidcomm_groups(cube.get(), mask.c_str(), &groups, &group_pes), +PIDCOMM_OK);
      CHECK_EQ(groups, want.count);
      CHECK_EQ(group_pes, want.group_pes);
      for (std::uint32_t pe = 0; pe < cube.pes(); ++pe) {
        std::uint32_t group = 0, member = 0;
        CHECK_EQ(pidcomm_group_of(cube.get(), mask.c_str(), pe, &group), +PIDCOMM_OK);
        CHECK_EQ(pidcomm_member_of(cube.get(), mask.c_str(), pe, &member), +PIDCOMM_OK);
        CHECK_EQ(group, want.group[pe]);
        CHECK_EQ(member, want.member[pe]);
      }
    }
  }
}

TEST(HypercubesOfOneSet_MayCoexistAndBeCreatedAgain) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Grid grid("hypercubes of one set");
  for (int round = 0; round < 3; ++round) {
    const Hypercube large(set, {8, 8});
    run_some(set, {4, 4}, grid);
    Case c = make_case(PIDCOMM_ALLTOALL, {8, 8}, "10", 64, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
    place(c, 0, false);
    machine::run_case(large, c);
  }
  grid.finish();
  CHECK_EQ(pidcomm_pes(nullptr), 0u);
  pidcomm_hypercube_destroy(nullptr);
}

}  // namespace
