// Plans and the work of their passes, compared with counts worked out by hand.
#include <algorithm>

#include "every_collective.h"
#include "exec/plan_cache.h"
#include "exec/section_tables.h"
#include "harness.h"
#include "model/work.h"
#include "plan/plan.h"
#include "topology/hypercube.h"

using namespace pidcomm;

namespace {

constexpr Options kTile = {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_ISA_SCALAR, 1, PIDCOMM_COHERENCE_NONE,
                           0};

Plan plan_of(const std::vector<uint32_t> &lengths, int collective, const char *mask, uint64_t bytes,
             uint64_t dst, const Options &options = kTile, int type = PIDCOMM_INT32) {
  pidcomm_request request{};
  request.collective = collective;
  request.mask = mask;
  request.bytes = bytes;
  request.dst = dst;
  request.type = type;
  return make_plan(Hypercube::of(lengths), request, options, 0);
}

/// For plans that name their technique.
class NoPlanner : public Planner {
 public:
  uint64_t version() const override { return 0; }
  std::vector<int> techniques(const Hypercube &, const pidcomm_request &, const Options &,
                              uint64_t) const override {
    return {};
  }
};

}  // namespace

TEST(Plan_Of32x32AlltoallHasThisForm) {
  const std::string json =
      to_json(plan_of({32, 32}, PIDCOMM_ALLTOALL, "10", 1 << 20, 1 << 20), false);
  const char *want =
      "{\"collective\": \"alltoall\", \"technique\": \"tile\", \"path\": \"tile\", \"shape\": "
      "\"32x32\", \"mask\": \"10\", "
      "\"dtype\": \"int32\", \"pes\": 1024, \"groups\": 32, \"group_pes\": 32, \"bytes_per_pe\": "
      "1048576, \"block_bytes\": 32768, "
      "\"mram_bytes_read\": 1073741824, \"mram_bytes_written\": 1073741824, \"host_bytes\": 0, "
      "\"sweeps\": [{\"pass\": \"transpose\", "
      "\"does\": \"load 2^k lines, exchange selected lane bits with line bits in registers, store "
      "2^k lines\", \"lane_mask\": 7, \"k\": 3, "
      "\"section_pes\": 8, \"host_order\": false, \"words\": 4096, \"exchange\": false, "
      "\"ordered_downwards\": false, "
      "\"outer\": [{\"name\": \"set\", \"count\": 16, \"in_egs\": 8, \"in_bytes\": 0, \"out_egs\": "
      "8, \"out_bytes\": 0}, "
      "{\"name\": \"destination\", \"count\": 4, \"in_egs\": 0, \"in_bytes\": 262144, \"out_egs\": "
      "1, \"out_bytes\": 0}, "
      "{\"name\": \"source\", \"count\": 4, \"in_egs\": 1, \"in_bytes\": 0, \"out_egs\": 0, "
      "\"out_bytes\": 262144}], \"ordered\": [], "
      "\"lockstep\": [{\"name\": \"set_pair\", \"count\": 2, \"in_egs\": 4, \"in_bytes\": 0, "
      "\"out_egs\": 4, \"out_bytes\": 0}], "
      "\"in\": {\"space\": \"mram\", \"offset_bytes\": 0, \"streams\": [{\"count\": 8, \"egs\": 0, "
      "\"bytes\": 32768}], \"pair_banks\": 1}, "
      "\"out\": {\"space\": \"mram\", \"offset_bytes\": 1048576, \"streams\": [{\"count\": 8, "
      "\"egs\": 0, \"bytes\": 32768}], "
      "\"pair_banks\": 1}}]}";
  CHECK_EQ(json, std::string(want));
}

/// With long blocks, the pair step of the destination is not in lockstep.
TEST(Plan_OfAlltoallOverAllPesStoresLongBlocksToOneBankAfterTheOther) {
  const auto pairs_in_lockstep = [](std::size_t bytes) {
    const Plan plan = plan_of({32, 32}, PIDCOMM_ALLTOALL, "11", bytes, 1 << 20);
    const Sweep &sweep = std::get<TileForm>(plan.form).sweep;
    if (sweep.lockstep.size() == 1) CHECK_EQ(sweep.outer.back().name, "destination_pair");
    return sweep.lockstep.size();
  };
  CHECK_EQ(pairs_in_lockstep(1024 * 31 * 8), std::size_t{2});
  CHECK_EQ(pairs_in_lockstep(1024 * 32 * 8), std::size_t{1});
}

TEST(Plan_NeverHasMoreItemsInLockstepThanBuffers) {
  uint32_t most = 0;
  for (const std::vector<uint32_t> &lengths : std::vector<std::vector<uint32_t>>{{8, 16, 4, 3},
                                                                                 {8, 16, 4},
                                                                                 {16, 8, 8},
                                                                                 {32, 32},
                                                                                 {1024},
                                                                                 {8, 8, 16},
                                                                                 {8, 2, 4, 8},
                                                                                 {4, 4, 64}}) {
    for (uint32_t bits = 0; bits < 1u << lengths.size(); ++bits) {
      std::string mask;
      for (std::size_t axis = 0; axis < lengths.size(); ++axis)
        mask += (bits >> axis & 1) != 0 ? '1' : '0';
      for (const int collective : kCollectives) {
        const Plan plan = plan_of(lengths, collective, mask.c_str(), 1536 * 64, 1 << 20);
        uint32_t items = 1;
        for (const Loop &loop : std::get<TileForm>(plan.form).sweep.lockstep) items *= loop.count;
        CHECK(items <= kMaxItems);
        most = std::max(most, items);
      }
    }
  }
  CHECK_EQ(most, kMaxItems);
}

/// The rounds, sweeps and lines that each_sweep visits. stepped() compares them with the plan's own
/// counts.
struct Stepped {
  uint32_t rounds = 0, sweeps = 0;
  uint64_t lines_in = 0, lines_out = 0;
};
Stepped stepped(const Plan &plan) {
  Stepped all;
  uint32_t last_round = 0;
  each_sweep(plan, [&](const Sweep &sweep) {
    CHECK(sweep.round >= last_round);
    last_round = sweep.round;
    all.rounds = sweep.round + 1;
    all.sweeps += 1;
    uint64_t lines = sweep.words, items = 1;
    for (const std::vector<Loop> *loops : {&sweep.outer, &sweep.ordered, &sweep.lockstep})
      for (const Loop &loop : *loops) lines *= loop.count;
    for (const Loop &loop : sweep.lockstep) items *= loop.count;
    CHECK(items <= kMaxItems);
    all.lines_in += sweep.in.streams.empty() ? lines : lines * sweep.in.streams.front().count;
    all.lines_out += lines;
  });
  const MemberSteps *steps = member_steps_of(plan);
  CHECK_EQ(steps->rounds, all.rounds);
  CHECK_EQ(steps->lines_read, all.lines_in);
  CHECK_EQ(steps->lines_written, all.lines_out);
  return all;
}

TEST(MemberSteps_TakeTheRoundsAndLinesOfTheirTopology) {
  constexpr uint64_t kBytes = 8 * 8192, kWords = kBytes / 8;
  const Options ring = {PIDCOMM_TECHNIQUE_RING, PIDCOMM_ISA_SCALAR, 1, PIDCOMM_COHERENCE_NONE,
                        8 * kBytes};
  const Options tree = {PIDCOMM_TECHNIQUE_TREE, PIDCOMM_ISA_SCALAR, 1, PIDCOMM_COHERENCE_NONE, 0};
  // 128 entangled groups. The ring: 7 rounds between lanes, 2 * 127 between entangled groups, 8
  // back to all lanes.
  {
    const Stepped all = stepped(plan_of({1024}, PIDCOMM_ALLREDUCE, "1", kBytes, kBytes, ring));
    CHECK_EQ(all.rounds, 7u + 2 * 127 + 8);
    CHECK(all.sweeps <= 4 * all.rounds);
    const uint64_t slot_lines = 128 * kWords / 8;
    CHECK_EQ(all.lines_out, slot_lines * (7 + 8) + slot_lines / 128 * 2 * 127);
    CHECK_EQ(all.lines_in, slot_lines * (2 * 7 + 8) + slot_lines / 128 * 3 * 127);
  }
  // The tree: 3 rounds between lanes and 7 between entangled groups, up and down; 127 entangled
  // groups are reduced into one.
  {
    const Stepped all = stepped(plan_of({1024}, PIDCOMM_ALLREDUCE, "1", kBytes, kBytes, tree));
    CHECK_EQ(all.rounds, 2u * (3 + 7));
    CHECK_EQ(all.sweeps, all.rounds);
    CHECK_EQ(all.lines_out, kWords * (2 * 3 * 128 + 2 * 127));
    CHECK_EQ(all.lines_in, kWords * (2 * 3 * 128 + 3 * 127));
  }
  // Selected axes with one between them are two rings, adjacent ones are one. A group of one PE
  // copies, and in place does nothing.
  CHECK_EQ(stepped(plan_of({8, 4, 3, 5}, PIDCOMM_ALLREDUCE, "0101", kBytes, kBytes, ring)).rounds,
           1u + 2 * 3 + 2 * 4);
  CHECK_EQ(stepped(plan_of({8, 4, 3, 5}, PIDCOMM_ALLREDUCE, "0011", kBytes, kBytes, ring)).rounds,
           1u + 2 * 14);
  CHECK_EQ(stepped(plan_of({8, 4, 3, 5}, PIDCOMM_ALLREDUCE, "0011", kBytes, 0, tree)).rounds,
           2u * 4);
  CHECK_EQ(stepped(plan_of({8, 4}, PIDCOMM_ALLREDUCE, "00", kBytes, kBytes, tree)).rounds, 1u);
  CHECK_EQ(stepped(plan_of({8, 4}, PIDCOMM_ALLREDUCE, "00", kBytes, 0, tree)).rounds, 0u);
  CHECK_EQ(stepped(plan_of({8, 4}, PIDCOMM_ALLREDUCE, "11", 0, 0, ring)).rounds, 0u);
}

TEST(MemberSteps_HaveChunksOfAllWordsForEveryCount) {
  const Options ring = {PIDCOMM_TECHNIQUE_RING, PIDCOMM_ISA_SCALAR, 1, PIDCOMM_COHERENCE_NONE, 0};
  for (uint64_t words = 1; words < 40; ++words) {
    const Stepped all = stepped(plan_of({8, 7}, PIDCOMM_ALLREDUCE, "01", 8 * words, 0, ring));
    CHECK_EQ(all.lines_out, 2 * 6 * words);
    CHECK_EQ(all.lines_in, 3 * 6 * words);
  }
}

TEST(Plan_SizeDoesNotDependOnThePes) {
  const std::size_t small =
      to_json(plan_of({32, 32}, PIDCOMM_ALLREDUCE, "01", 64, 64), false).size();
  const std::size_t large =
      to_json(plan_of({64, 4096}, PIDCOMM_ALLREDUCE, "01", 64, 64), false).size();
  CHECK(large < small + 200);
}

namespace {

/// The work of 256 PEs as 16x16 with mask 10: groups of 16 in two entangled groups; L lines hold
/// `bytes` of every PE.
Work work_of_square(int collective, int technique, int type, uint64_t bytes) {
  pidcomm_request request{};
  request.collective = collective;
  request.mask = "10";
  request.bytes = bytes;
  request.dst = bytes;
  request.type = type;
  request.op = PIDCOMM_SUM;
  const Options options{technique, PIDCOMM_ISA_SCALAR, 1, PIDCOMM_COHERENCE_NONE, 4 * bytes};
  return work_of(make_plan(Hypercube::of({16, 16}), request, options, 0), PIDCOMM_ISA_SCALAR);
}

double sum_of(const Work &work, LineWork what) {
  double sum = 0;
  for (const Phase &phase : work.phases) sum += phase.count(what);
  return sum;
}

}  // namespace

// Lines are transposed when they come from MRAM or go there, a result for several members once.
// Counted in the passes by hand.
TEST(Work_CountsTheDomainTransfersOfThePasses) {
  constexpr uint64_t kBytes = 1 << 15;
  constexpr double kLines = 256 / 8 * (kBytes / 8);  // L
  struct Case {
    int collective, technique, type;
    double of_lines;
  };
  const Case cases[] = {
      {PIDCOMM_ALLTOALL, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT32, 0},
      {PIDCOMM_ALLTOALL, PIDCOMM_TECHNIQUE_PR_IM, PIDCOMM_INT32, 2},
      {PIDCOMM_ALLTOALL, PIDCOMM_TECHNIQUE_PR_IM_CM, PIDCOMM_INT32, 0},
      {PIDCOMM_ALLREDUCE, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT32, 1 + 1.0 / 2},
      {PIDCOMM_ALLREDUCE, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT8, 0},
      {PIDCOMM_ALLREDUCE, PIDCOMM_TECHNIQUE_PR_IM, PIDCOMM_INT32, 1 + 1.0 / 16},
      {PIDCOMM_REDUCE_SCATTER, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT32, 1 + 1.0 / 16},
      {PIDCOMM_REDUCE_SCATTER, PIDCOMM_TECHNIQUE_PR_IM, PIDCOMM_INT32, 1 + 1.0 / 16},
      {PIDCOMM_REDUCE, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT32, 1},
      {PIDCOMM_REDUCE, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT8, 1.0 / 2},
      {PIDCOMM_REDUCE, PIDCOMM_TECHNIQUE_PR_IM, PIDCOMM_INT32, 1},
      {PIDCOMM_ALLGATHER, PIDCOMM_TECHNIQUE_PR_IM, PIDCOMM_INT32, 1.0 / 16 + 1.0 / 2},
      {PIDCOMM_GATHER, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT32, 1},
      {PIDCOMM_SCATTER, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT32, 1},
  };
  for (const Case &it : cases)
    CHECK_EQ(
        sum_of(work_of_square(it.collective, it.technique, it.type, kBytes), LineWork::transpose),
        it.of_lines * kLines);
}

// n values take n - 1 operators; the lanes of a line take one for every lane bit.
TEST(Work_CountsTheOperatorsOfThePasses) {
  constexpr uint64_t kBytes = 1 << 15;
  constexpr double kLines = 256 / 8 * (kBytes / 8);
  const auto combines = [](int collective, int technique) {
    return sum_of(work_of_square(collective, technique, PIDCOMM_INT32, kBytes), LineWork::combine);
  };
  for (int technique : {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_PR_IM})
    CHECK_EQ(combines(PIDCOMM_REDUCE_SCATTER, technique), kLines * 15 / 16);  // 16 lines to one
  CHECK_EQ(combines(PIDCOMM_ALLREDUCE, PIDCOMM_TECHNIQUE_TILE),
           kLines * (1 + 3) / 2);  // 2 lines to one, and its 3 lane bits
  CHECK_EQ(combines(PIDCOMM_ALLREDUCE, PIDCOMM_TECHNIQUE_PR_IM),
           kLines * 15 / 16);  // 2 x 8 slots to one
}

TEST(Work_ReadsAndWritesTheBytesOfThePlan) {
  constexpr uint64_t kBytes = 1 << 15;
  const Work work =
      work_of_square(PIDCOMM_ALLGATHER, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT32, kBytes);
  CHECK_EQ(work.phases.size(), std::size_t{1});
  CHECK_EQ(work.phases[0].mram_read, 256.0 * kBytes / 16);
  CHECK_EQ(work.phases[0].mram_written, 256.0 * kBytes);
  CHECK_EQ(work.reorders.size(), std::size_t{0});
  CHECK_EQ(
      work_of_square(PIDCOMM_ALLTOALL, PIDCOMM_TECHNIQUE_PR, PIDCOMM_INT32, kBytes).reorders.size(),
      std::size_t{2});
}

TEST(SectionsWithVeryManyStreams_AreCutIntoPartsIfPartsLoadNoLineTwice) {
  const auto parts = [](uint32_t pes, int collective, uint64_t block_words, uint64_t dst) {
    const Plan plan = plan_of({pes}, collective, "1", 8 * block_words * pes, dst);
    const Sweep &sweep = std::get<TileForm>(plan.form).sweep;
    const uint64_t batches = PreparedSweep(plan, sweep).batches();
    CHECK_EQ(batches > 1, parts_of(sweep) > 1);
    return batches;
  };
  constexpr uint64_t kElsewhere = 1 << 20;
  CHECK(parts(259, PIDCOMM_ALLTOALL, 1, kElsewhere) >= 8);
  CHECK(parts(259, PIDCOMM_REDUCE_SCATTER, 100, kElsewhere) >= 4);
  CHECK(parts(259, PIDCOMM_ALLGATHER, 1, kElsewhere) >= 4);
  CHECK_EQ(parts(259, PIDCOMM_ALLGATHER, 400, kElsewhere), 1u);  // inputs leave the cache
  CHECK_EQ(parts(259, PIDCOMM_ALLTOALL, 1, 0), 1u);              // in place
  CHECK_EQ(parts(63, PIDCOMM_ALLTOALL, 1, kElsewhere), 1u);      // few streams
}

// 63 entangled groups: in the order of the output streams, there would be over 1000 uses of other
// lines between two uses of a line.
TEST(MergeTables_UseALineAgainSoon) {
  const Plan plan = plan_of({7, 9, 16}, PIDCOMM_ALLTOALL, "101", 120960, 1 << 20);
  const SectionTables tables(plan, std::get<TileForm>(plan.form).sweep);
  CHECK_EQ(tables.parts().size(), std::size_t{1});
  const MergeTable &table = tables.parts()[0].merge;
  constexpr uint32_t kNever = ~0u;
  std::vector<uint32_t> targets_of(table.out_streams, 0), prefetches_of(table.in_streams, 0),
      used_at(table.in_streams, kNever);
  uint32_t uses = 0;  // of lines, by the targets so far
  for (uint32_t u = 0; u < table.unit_count; ++u) {
    const MergeUnit &unit = table.units[u];
    for (uint32_t n = 0; n < unit.stream_count; ++n)
      ++prefetches_of[table.streams[unit.first_stream + n]];
    for (uint32_t t = unit.first_target; t < unit.first_target + unit.target_count; ++t) {
      const MergeTarget &target = table.targets[t];
      ++targets_of[target.stream];
      for (uint32_t n = 0; n < target.source_count; ++n) {
        const uint32_t stream = table.sources[target.first_source + n].stream;
        CHECK_EQ(prefetches_of[stream], 1u);
        uint32_t &at = used_at[stream];
        CHECK(at == kNever || uses - at < 1000);
        at = uses++;
      }
    }
  }
  CHECK_EQ(std::count(targets_of.begin(), targets_of.end(), 1u), table.out_streams);
  CHECK_EQ(std::count(prefetches_of.begin(), prefetches_of.end(), 1u), table.in_streams);
}

// The other bank of a pair is 4 entangled groups further. {3, 5, 64} has sections of 15 and 3 of
// them, {33, 31} one section.
TEST(MergeTablesOfAllgather_HaveTheOtherBanksOfTheirTargets) {
  const struct {
    std::vector<uint32_t> shape;
    const char *mask;
  } cases[] = {{{3, 5, 64}, "101"}, {{3, 5, 64}, "001"}, {{12, 80}, "01"}, {{33, 31}, "10"}};
  for (const auto &[shape, mask] : cases) {
    const Plan plan = plan_of(shape, PIDCOMM_ALLGATHER, mask, 8 * 960 * 33, 1 << 20);
    const Sweep &sweep = std::get<TileForm>(plan.form).sweep;
    const SectionTables tables(plan, sweep);
    CHECK_EQ(tables.parts().size(), std::size_t{1});
    const MergeTable &table = tables.parts()[0].merge;
    CHECK(table.joins_banks);
    const uint32_t egs = sweep.split.section_egs;
    uint32_t targets = 0;
    for (const MergeUnit *unit = table.units; unit != table.units + table.unit_count; ++unit) {
      CHECK_EQ(unit->first_target, targets);
      CHECK_EQ(unit->target_count % egs, 0u);  // the banks of whole blocks
      targets += unit->target_count;
      for (uint32_t t = unit->first_target; t < targets; ++t) {
        const MergeTarget &target = table.targets[t];
        const auto [next, sections] = target.next;
        CHECK(next >= unit->first_target && next < targets);
        CHECK_EQ(table.targets[next].stream + sections * egs, target.stream + kPairEgs);
        CHECK_EQ(table.targets[next].stream / egs, target.stream / egs);
        CHECK_EQ(table.targets[next].previous.target, t);
        CHECK_EQ(table.targets[next].previous.sections_away, sections);
      }
    }
    CHECK_EQ(targets, table.out_streams);
  }
}

// Group g of {33, 31}, mask 01, has PEs g, g + 33, ...: entangled groups e and e + 33 have the same
// groups in their lanes.
TEST(RowTables_JoinStreamsWithEqualRowsUnlessTheyHaveFloats) {
  constexpr uint32_t kGroups = 33, kPes = 33 * 31;
  for (const int type : {PIDCOMM_INT32, PIDCOMM_FLOAT32, PIDCOMM_FLOAT16}) {
    const Plan plan = plan_of({kGroups, 31}, PIDCOMM_ALLREDUCE, "01", 64, 1 << 20, kTile, type);
    const SectionTables tables(plan, std::get<TileForm>(plan.form).sweep);
    CHECK_EQ(tables.parts().size(), std::size_t{1});
    const RowTable &table = tables.parts()[0].rows;
    const auto row_of = [&](uint32_t stream, uint32_t lane) {
      const uint32_t pe = stream * kLanes + lane;
      return pe < kPes ? pe % kGroups : kNoRow;
    };
    std::vector<uint32_t> bundles_of(table.in_streams, 0), firsts_of(table.rows, 0);
    uint32_t streams = 0, longest = 0;
    for (const RowBundle *bundle = table.bundles; bundle != table.bundles + table.bundle_count;
         ++bundle) {
      CHECK_EQ(bundle->first_stream, streams);
      streams += bundle->stream_count;
      longest = std::max(longest, bundle->stream_count);
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const uint32_t entry = bundle->rows[lane];
        const uint32_t row = entry == kNoRow ? kNoRow : entry & ~kFirstOfRow;
        if (row != entry) CHECK_EQ(++firsts_of[row], 1u);
        if (row != kNoRow) CHECK_EQ(firsts_of[row], 1u);
        for (uint32_t n = bundle->first_stream; n < streams; ++n)
          CHECK_EQ(row_of(table.streams[n], lane), row);
      }
      for (uint32_t n = bundle->first_stream; n < streams; ++n) ++bundles_of[table.streams[n]];
    }
    CHECK_EQ(longest, type == PIDCOMM_INT32 ? kBundleStreams : 1u);
    CHECK_EQ(std::count(bundles_of.begin(), bundles_of.end(), 1u), table.in_streams);
    CHECK_EQ(std::count(firsts_of.begin(), firsts_of.end(), 1u), table.rows);
    // The 31 * 33 PEs have 128 entangled groups. The lanes of the last one are not full.
    std::vector<uint32_t> stored(table.out_egs, table.out_egs + table.egs);
    uint32_t changes = 0;
    for (uint32_t n = 1; n < table.egs; ++n)
      changes += !std::equal(table.out + stored[n] * kLanes, table.out + (stored[n] + 1) * kLanes,
                             table.out + stored[n - 1] * kLanes);
    CHECK_EQ(changes, kGroups);
    std::sort(stored.begin(), stored.end());
    for (uint32_t eg = 0; eg < table.egs; ++eg) CHECK_EQ(stored[eg], eg);
  }
}

TEST(PlanCache_ForgetsTheTablesOfTheLeastRecentlyUsedPlans) {
  constexpr std::size_t kPlans = 10, kBudget = std::size_t{256} << 20;
  constexpr uint32_t kPes = 1999;  // the tables of an alltoall of all PEs have over 40 MB
  const NoPlanner planner;
  const Hypercube cube = Hypercube::of({kPes});
  PlanCache cache(planner, cube, true);
  std::vector<std::shared_ptr<CachedPlan>> plans;
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLTOALL;
  request.mask = "1";
  request.bytes = 8 * kPes;
  request.type = PIDCOMM_UINT8;
  for (std::size_t i = 0; i < kPlans; ++i) {
    request.dst = (i + 1) * request.bytes;
    plans.push_back(cache.plan_for(request, kTile, 0, false).cached);
    cache.keep_prepared(*plans[i],
                        std::make_shared<const PreparedSweep>(
                            plans[i]->plan, std::get<TileForm>(plans[i]->plan.form).sweep));
    CHECK(plans[i]->prepared != nullptr);
  }
  std::size_t kept = 0, bytes = 0;
  for (std::size_t i = kPlans; i-- > 0;) {
    if (plans[i]->prepared == nullptr) continue;
    CHECK_EQ(kept++, kPlans - 1 - i);  // those of the last calls
    bytes += plans[i]->prepared->bytes();
  }
  CHECK(kept < kPlans);
  CHECK(bytes <= kBudget);
  CHECK(bytes + bytes / kept > kBudget);
}
