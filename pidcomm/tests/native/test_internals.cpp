// The library's internals: integer maths, plans and every line kernel of every instruction set,
// each compared with a plain definition.
#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <set>

#include "base/geometry.h"
#include "every_collective.h"
#include "harness.h"
#include "line_kernels/kernels.h"
#include "model/work.h"
#include "plan/plan.h"
#include "topology/hypercube.h"

using namespace pidcomm;

namespace {

const std::vector<std::vector<uint32_t>> kShapes = {
    {8},       {64},      {7},          {1},       {32, 32},     {4, 6},    {12, 16},
    {24, 8},   {5, 7, 8}, {2, 2, 2, 2}, {2, 3, 4}, {8, 3, 5},    {16, 3},   {1, 8, 1, 3},
    {2, 4, 9}, {40, 3},   {4, 2, 5},    {3, 8},    {2, 2, 6, 5}, {16, 8, 8}};

template <class Visit>
void each_mask(const Visit &visit) {
  for (const std::vector<uint32_t> &lengths : kShapes) {
    const Hypercube cube = Hypercube::of(lengths);
    for (uint32_t bits = 0; bits < 1u << lengths.size(); ++bits) {
      std::string mask;
      for (std::size_t axis = 0; axis < lengths.size(); ++axis)
        mask += bits >> axis & 1 ? '1' : '0';
      visit(cube, mask);
    }
  }
}

uint32_t compress(uint32_t lane, uint32_t mask) {
  uint32_t result = 0, bit = 0;
  for (uint32_t i = 0; i < 3; ++i)
    if (mask >> i & 1) result |= (lane >> i & 1) << bit++;
  return result;
}

uint32_t walk(const std::vector<EgLoop> &loops, uint32_t index) {
  uint32_t eg = 0;
  for (const EgLoop &loop : loops) eg += index / loop.index_stride % loop.count * loop.eg_stride;
  return eg;
}

constexpr Options kTile = {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_ISA_SCALAR, 1, PIDCOMM_COHERENCE_NONE,
                           0};

Plan plan_of(const std::vector<uint32_t> &lengths, int collective, const char *mask, uint64_t bytes,
             uint64_t dst, const Options &options = kTile) {
  pidcomm_request request{};
  request.collective = collective;
  request.mask = mask;
  request.bytes = bytes;
  request.dst = dst;
  request.type = PIDCOMM_INT32;
  return make_plan(Hypercube::of(lengths), request, options, 0);
}

using LineBytes = std::array<uint8_t, 64>;

LineBytes transposed(const LineBytes &line) {
  LineBytes result{};
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) result[8 * i + j] = line[8 * j + i];
  return result;
}

std::vector<int> available_isas() {
  std::vector<int> isas;
#define PIDCOMM_ROW(ENUM, code, name, rank) \
  if (isa_available(code)) isas.push_back(code);
  PIDCOMM_ISAS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  return isas;
}

/// Runs a pass on one word of some line streams, without an executor.
struct OneWordCall {
  explicit OneWordCall(std::size_t ins, std::size_t outs) : in_lines(ins), out_lines(outs) {
    std::mt19937 random(7);
    for (Storage &line : in_lines)
      for (uint8_t &byte : line.bytes) byte = static_cast<uint8_t>(random());
    for (Storage &line : in_lines) in.push_back(reinterpret_cast<std::byte *>(line.bytes.data()));
    for (Storage &line : out_lines) out.push_back(reinterpret_cast<std::byte *>(line.bytes.data()));
  }
  void run(const Kernels &kernels, Pass pass, uint32_t lane_mask) {
    const SweepItem item = {in.data(), out.data()};
    SweepCall call{};
    call.items = &item;
    call.item_count = 1;
    call.in_count = static_cast<uint32_t>(in.size());
    call.out_count = static_cast<uint32_t>(out.size());
    call.words = 1;
    call.lane_mask = lane_mask;
    call.item_buffers = reinterpret_cast<std::byte *>(item_buffers);
    kernels.pass[static_cast<int>(pass)](call);
    kernels.fence();
  }
  struct alignas(64) Storage {
    LineBytes bytes{};
  };
  std::vector<Storage> in_lines, out_lines;
  std::vector<const std::byte *> in;
  std::vector<std::byte *> out;
  alignas(64) uint8_t item_buffers[kCallBufferBytes];
};

}  // namespace

TEST(AddressMap_AgreesWithLiteralAddresses) {
  // Bank d, MRAM byte -> line offset in the region, worked out by hand from the published bit
  // table: MRAM bits 3..12 -> region 7..16, 13 -> 20, 14 -> 28, 15..21 -> 21..27, 22..25 -> 29..32;
  // bank bits 0,1 -> 18,19, bit 2 -> 6.
  struct Golden {
    uint32_t bank;
    uint64_t mram, line;
  };
  constexpr Golden kGolden[] = {
      {0, 0, 0},
      {0, 8, 0x80},
      {0, 8184, 0x1FF80},
      {0, 8192, 0x100000},
      {0, 16384, 0x10000000},
      {0, 32768, 0x200000},
      {0, uint64_t{1} << 21, 0x8000000},
      {0, uint64_t{1} << 22, 0x20000000},
      {0, uint64_t{1} << 25, 0x100000000},
      {1, 0, 0x40000},
      {3, 0, 0xC0000},
      {4, 0, 0x40},
      {5, 8, 0x400C0},
      {7, 0, 0xC0040},
      {7, (uint64_t{64} << 20) - 8, 0x1FFFDFFC0},
      {2, 0x155550, 0x15495500},
  };
  for (const Golden &golden : kGolden)
    CHECK_EQ(bank_offset(golden.bank) + word_offset(golden.mram / 8), golden.line);
}

TEST(AddressMap_NeverTouchesTheControlWindowAndMapsWordsToDistinctLines) {
  std::set<uint64_t> lines;
  for (uint64_t run = 0; run < kMramBytes / kRunBytes; run += 3) {
    for (uint32_t bank = 0; bank < 8; ++bank) {
      for (uint64_t word : {run * kRunWords, run * kRunWords + 511, run * kRunWords + 1023}) {
        const uint64_t line = bank_offset(bank) + word_offset(word);
        CHECK_EQ(line >> 17 & 1, 0u);
        CHECK(line + kLineBytes <= uint64_t{8} << 30);
        CHECK(lines.insert(line).second);
      }
    }
  }
}

TEST(Grouping_IsABijectionThatAgreesWithTheCoordinates) {
  each_mask([](const Hypercube &cube, const std::string &mask) {
    const Grouping grouping = Grouping::of(cube, mask.c_str());
    CHECK_EQ(uint64_t{grouping.groups} * grouping.group_pes, cube.pes);
    for (uint32_t pe = 0; pe < cube.pes; ++pe) {
      uint32_t member = 0, group = 0, members = 1, groups = 1;
      for (uint32_t axis = 0; axis < cube.axes.size(); ++axis) {
        uint32_t &index = mask[axis] == '1' ? member : group,
                 &count = mask[axis] == '1' ? members : groups;
        index += cube.coordinate(pe, axis) * count;
        count *= cube.axes[axis].length;
      }
      CHECK_EQ(grouping.member_of(pe), member);
      CHECK_EQ(grouping.group_of(pe), group);
      CHECK_EQ(grouping.pe_at(group, member), pe);
    }
  });
}

TEST(Split_GivesMemberAndGroupOfEveryPe) {
  uint32_t lane_splits = 0, sections = 0;
  each_mask([&](const Hypercube &cube, const std::string &mask) {
    const Split split = Split::of(cube, mask.c_str());
    const Grouping grouping = Grouping::of(cube, mask.c_str());
    uint32_t sets = 1, visited = 0;
    for (const EgLoop &loop : split.sets) sets *= loop.count;
    CHECK_EQ(split.member_sections() * split.section.group_pes, grouping.group_pes);
    CHECK_EQ(sets * split.section.groups, grouping.groups);
    for (uint32_t set = 0; set < sets; ++set) {
      for (uint32_t m = 0; m < split.member_sections(); ++m) {
        for (uint32_t at = 0; at < split.section_pes(); ++at, ++visited) {
          const uint32_t pe = 8 * (walk(split.sets, set) + walk(split.members, m)) + at;
          CHECK_EQ(grouping.member_of(pe),
                   split.section.member_of(at) + m * split.section.group_pes);
          CHECK_EQ(grouping.group_of(pe), split.section.group_of(at) + set * split.section.groups);
          if (!split.has_lane_split()) continue;
          CHECK_EQ(split.section.member_of(at), compress(at, split.lane_mask));
          CHECK_EQ(split.section.group_of(at), compress(at, ~split.lane_mask & 7));
        }
      }
    }
    CHECK_EQ(visited, cube.pes);
    ++(split.has_lane_split() ? lane_splits : sections);
    CHECK(split.has_lane_split() || !cube.has_lane_split());
  });
  CHECK(lane_splits > 40);
  CHECK(sections > 10);
}

TEST(LaneSplit_ExistsIfAllAxesExceptTheLastArePowersOfTwoOrOneAxisFillsTheLanes) {
  for (const std::vector<uint32_t> &fast : std::vector<std::vector<uint32_t>>{
           {32, 32}, {4, 6}, {2, 4, 9}, {16, 3}, {24, 8}, {8, 3, 5}, {40, 3}})
    CHECK(Hypercube::of(fast).has_lane_split());
  for (const std::vector<uint32_t> &other :
       std::vector<std::vector<uint32_t>>{{12, 16}, {5, 7, 8}, {3, 8}, {7}, {2, 3, 4}})
    CHECK(!Hypercube::of(other).has_lane_split());
}

TEST(Split_TreatsNeighbouringAxesWithTheSameMaskBitAsOneAxis) {
  CHECK(Split::of(Hypercube::of({5, 7, 8}), "111").has_lane_split());
  CHECK(Split::of(Hypercube::of({3, 8, 5}), "001").has_lane_split());
  CHECK_EQ(Split::of(Hypercube::of({7, 9, 16}), "011").section.group_pes,
           Split::of(Hypercube::of({7, 144}), "01").section.group_pes);
}

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

TEST(Kernels_TransposeMovesByteOfLaneToLineOfLaneForEveryMaskAndIsa) {
  for (int isa : available_isas()) {
    for (uint32_t mask = 0; mask < 8; ++mask) {
      const uint32_t lines = 1u << std::popcount(mask);
      OneWordCall call(lines, lines);
      call.run(kernels_of(isa), Pass::transpose, mask);
      for (uint32_t i = 0; i < lines; ++i) {
        for (uint32_t byte = 0; byte < 64; ++byte) {
          const uint32_t lane = byte % 8;
          // line i, lane with selected bits j <-> line j, lane with selected bits i
          const uint32_t j = compress(lane, mask);
          uint32_t source_lane = lane & ~mask, bit = 0;
          for (uint32_t b = 0; b < 3; ++b)
            if (mask >> b & 1) source_lane |= (i >> bit++ & 1) << b;
          CHECK_EQ(call.out_lines[i].bytes[byte],
                   call.in_lines[j].bytes[byte / 8 * 8 + source_lane]);
        }
      }
    }
  }
}

TEST(Kernels_ReplicateRepeatsOneSelectedLaneForEveryMaskAndIsa) {
  for (int isa : available_isas()) {
    for (uint32_t mask = 0; mask < 8; ++mask) {
      const uint32_t copies = 1u << std::popcount(mask);
      OneWordCall call(1, copies);
      call.run(kernels_of(isa), Pass::replicate, mask);
      for (uint32_t i = 0; i < copies; ++i) {
        for (uint32_t byte = 0; byte < 64; ++byte) {
          uint32_t source_lane = byte % 8 & ~mask, bit = 0;
          for (uint32_t b = 0; b < 3; ++b)
            if (mask >> b & 1) source_lane |= (i >> bit++ & 1) << b;
          CHECK_EQ(call.out_lines[i].bytes[byte],
                   call.in_lines[0].bytes[byte / 8 * 8 + source_lane]);
        }
      }
    }
  }
}

TEST(Kernels_HostRowsAreTheDomainTransferOfTheLineForEveryIsa) {
  for (int isa : available_isas()) {
    OneWordCall to_host(1, 8);
    to_host.run(kernels_of(isa), Pass::to_host, 0);
    const LineBytes host_order = transposed(to_host.in_lines[0].bytes);
    for (uint32_t lane = 0; lane < 8; ++lane)
      CHECK(std::memcmp(to_host.out[lane], &host_order[8 * lane], 8) == 0);
    OneWordCall from_host(8, 1);
    from_host.run(kernels_of(isa), Pass::from_host, 0);
    for (uint32_t byte = 0; byte < 64; ++byte)
      CHECK_EQ(from_host.out_lines[0].bytes[byte], from_host.in_lines[byte % 8].bytes[byte / 8]);
  }
}

TEST(Kernels_ForcedTableIsUsed) {
  for (int isa : available_isas()) {
    CHECK_EQ(kernels_of(isa).isa, isa);
    CHECK_EQ(std::string(kernels_of(isa).name), std::string(name_of_isa(isa)));
  }
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
      {PIDCOMM_ALLTOALL, PIDCOMM_TECHNIQUE_PR, PIDCOMM_INT32, 2},
      {PIDCOMM_ALLTOALL, PIDCOMM_TECHNIQUE_PR_IM, PIDCOMM_INT32, 2},
      {PIDCOMM_ALLTOALL, PIDCOMM_TECHNIQUE_PR_IM_CM, PIDCOMM_INT32, 0},
      {PIDCOMM_ALLREDUCE, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT32, 1 + 1.0 / 2},
      {PIDCOMM_ALLREDUCE, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT8, 0},
      {PIDCOMM_ALLREDUCE, PIDCOMM_TECHNIQUE_PR, PIDCOMM_INT32, 1 + 1.0 / 16},
      {PIDCOMM_REDUCE_SCATTER, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT32, 1 + 1.0 / 16},
      {PIDCOMM_REDUCE_SCATTER, PIDCOMM_TECHNIQUE_PR, PIDCOMM_INT32, 1 + 1.0 / 16},
      {PIDCOMM_REDUCE, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT32, 1},
      {PIDCOMM_REDUCE, PIDCOMM_TECHNIQUE_TILE, PIDCOMM_INT8, 1.0 / 2},
      {PIDCOMM_REDUCE, PIDCOMM_TECHNIQUE_PR, PIDCOMM_INT32, 1},
      {PIDCOMM_ALLGATHER, PIDCOMM_TECHNIQUE_PR, PIDCOMM_INT32, 1.0 / 16 + 1.0 / 2},
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
  for (int technique : {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_PR})
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
