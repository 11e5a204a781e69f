// The library's internals: integer maths and every line kernel of every instruction set, each
// compared with a plain definition.
#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <set>

#include "base/geometry.h"
#include "harness.h"
#include "line_kernels/kernels.h"
#include "line_kernels/tuning.h"
#include "plan/sweep.h"
#include "topology/hypercube.h"

using namespace pidcomm;

namespace {

const std::vector<std::vector<uint32_t>> kShapes = {
    {8},       {64},      {7},          {1},       {32, 32},     {4, 6},    {12, 16},
    {24, 8},   {5, 7, 8}, {2, 2, 2, 2}, {2, 3, 4}, {8, 3, 5},    {16, 3},   {1, 8, 1, 3},
    {2, 4, 9}, {40, 3},   {4, 2, 5},    {3, 8},    {2, 2, 6, 5}, {16, 8, 8}};

const std::vector<std::vector<uint32_t>> kForeachShapes = {
    {64}, {320}, {8, 8}, {2, 32, 3}, {32, 4}, {16, 4, 2}, {4, 2, 8, 5}, {1, 2, 4, 2, 2, 2, 3}};

template <class Visit>
void each_mask_of(const Hypercube &cube, const Visit &visit) {
  for (uint32_t bits = 0; bits < 1u << cube.axes.size(); ++bits) {
    std::string mask;
    for (std::size_t axis = 0; axis < cube.axes.size(); ++axis)
      mask += bits >> axis & 1 ? '1' : '0';
    visit(cube, mask);
  }
}

template <class Visit>
void each_mask(const Visit &visit) {
  for (const std::vector<uint32_t> &lengths : kShapes) each_mask_of(Hypercube::of(lengths), visit);
  for (const std::vector<uint32_t> &lengths : kForeachShapes)
    each_mask_of(Hypercube::of(lengths, PeOrder::foreach), visit);
}

uint32_t compress(uint32_t lane, uint32_t mask) {
  uint32_t result = 0, bit = 0;
  for (uint32_t i = 0; i < 3; ++i)
    if (mask >> i & 1) result |= (lane >> i & 1) << bit++;
  return result;
}

/// Returns the first entangled group of step `step` of a nest of loops, and what the nest adds to
/// an index.
std::pair<uint32_t, uint32_t> walk(const std::vector<EgLoop> &loops, uint32_t step) {
  uint32_t eg = 0, index = 0;
  for (const EgLoop &loop : loops) {
    eg += step % loop.count * loop.eg_stride;
    index += step % loop.count * loop.index_stride;
    step /= loop.count;
  }
  return {eg, index};
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
    call.tuning = tuning_of(pass);
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

TEST(PlacesInTheOrderOfDpuForeachCountBanksThenChipsThenRanks) {
  const Hypercube cube = Hypercube::of({16, 8, 3}, PeOrder::foreach);
  for (uint32_t rank = 0, pe = 0; rank < 6; ++rank)
    for (uint32_t chip = 0; chip < 8; ++chip)
      for (uint32_t bank = 0; bank < 8; ++bank, ++pe)
        CHECK_EQ(cube.place_of(pe), 64 * rank + 8 * bank + chip);
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
    std::vector<uint32_t> pe_at(cube.pes);
    for (uint32_t pe = 0; pe < cube.pes; ++pe) pe_at[cube.place_of(pe)] = pe;
    for (uint32_t set = 0; set < sets; ++set) {
      const auto [set_eg, group] = walk(split.sets, set);
      for (uint32_t m = 0; m < split.member_sections(); ++m) {
        const auto [section_eg, member] = walk(split.members, m);
        for (uint32_t at = 0; at < split.section_pes(); ++at, ++visited) {
          const uint32_t pe = pe_at[8 * (set_eg + section_eg) + at];
          CHECK_EQ(grouping.member_of(pe),
                   split.section.member_of(at) * split.member_stride + member);
          CHECK_EQ(grouping.group_of(pe), split.section.group_of(at) * split.group_stride + group);
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

TEST(Pieces_CoverAllWordsAndGiveEveryThreadWork) {
  for (const uint64_t units : {1, 2, 3, 5, 40})
    for (const uint64_t words : {0, 1, 7, 8, 9, 16, 60, 64, 100, 1000, 100000})
      for (const int threads : {1, 2, 3, 8, 64}) {
        const Pieces pieces = pieces_of(units, words, threads);
        CHECK(pieces.count >= 1);
        CHECK(pieces.start_of(0) == 0);
        CHECK(pieces.start_of(pieces.count) >= words);
        for (uint64_t piece = 0; piece < pieces.count; ++piece) {
          CHECK(words == 0 || pieces.start_of(piece) < std::min(pieces.start_of(piece + 1), words));
          CHECK(pieces.start_of(piece) % 8 == 0);
        }
        const auto of_all = static_cast<uint64_t>(threads);
        CHECK(units * pieces.count >= std::min(of_all, units * ((words + 7) / 8)));
      }
  CHECK(pieces_of(1, 100, 2).start_of(1) == 48);  // not 64, which would be unequal
  CHECK_EQ(pieces_of(1, 100000, 8).count, 128u);
  CHECK_EQ(pieces_of(128, 100000, 8).count, 1u);
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
