// A pairwise cover of factors that may interact, windows and sizes at their limits, and the bits of
// floating-point results.
#include <set>

#include "collective_cases.h"
#include "pairwise.h"
#include "tuned_passes.h"

namespace {

using namespace collective_cases;
using tuned_passes::ReductionsPrefetch;

constexpr int kFloats[] = {PIDCOMM_FLOAT32, PIDCOMM_FLOAT64, PIDCOMM_FLOAT16, PIDCOMM_BFLOAT16};

// ---- pairwise cover

TEST(EveryPairOfTypeOperatorSizeShapePlaceThreadsAndOptions_IsRight) {
  struct Shape {
    Axes axis_len;
    std::string mask;
  };
  const std::vector<Shape> shapes = {
      {{8, 4}, "10"},
      {{8, 4}, "01"},
      {{8, 4}, "11"},
      {{4, 8}, "01"},
      {{2, 4, 4}, "101"},
      {{2, 4, 4}, "010"},
      {{2, 2, 2, 4}, "1011"},
      {{2, 2, 2, 4}, "0100"},
      {{16, 3}, "10"},
      {{4, 6}, "01"},
      {{64}, "1"},
      {{8, 5}, "00"},
      {{32, 4}, "10"},
      {{3, 5}, "01"},
      {{12, 4}, "11"},
      {{6, 4}, "10"},
      {{5, 3, 2}, "101"},
  };
  // Below 1000: words per block. From 1000 on: bytes per PE, rounded up to whole blocks.
  const std::vector<std::size_t> sizes = {0, 1, 3, 8, 13, 63, 8200, 16384 + 24, 5 * 8192};
  // Offsets around the ends of runs (8 KiB) and of larger steps of the address map.
  const std::vector<std::size_t> places = {
      0, 64, 8192 - 24, 16384 - 8, 32768 - 8 * 5, (1u << 21) - 16, (1u << 22) - 16, (1u << 25) - 8};
  const std::vector<int> threads = {1, 2, 3, 7};
  const std::vector<int> isas = machine::available_isas();
  const std::vector<Element> kinds = elements();
  enum Factor {
    kCollective,
    kElement,
    kShape,
    kSize,
    kSrc,
    kDst,
    kThreads,
    kIsa,
    kCoherence,
    kTechnique,
    kInPlace,
    kFill
  };
  const auto is_possible = [&](std::size_t f, std::size_t i, std::size_t g, std::size_t j) {
    if (f == kCollective && g == kTechnique) return kTechniques[j].is_for(kCollectives[i]);
    if (f == kCollective && g == kInPlace) return j == 0 || can_be_in_place(kCollectives[i]);
    return f != kShape || g != kTechnique || !kTechniques[j].needs_lane_split ||
           machine::is_fast(shapes[i].axis_len);
  };
  const std::vector<std::vector<std::size_t>> rows = pairwise::table(
      {std::size(kCollectives), kinds.size(), shapes.size(), sizes.size(), places.size(),
       places.size(), threads.size(), isas.size(), 2, kTechniques.size(), 2, 2},
      is_possible);

  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  Grid grid("pairwise");
  for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
    const Axes &axis_len = shapes[shape].axis_len;
    const Hypercube cube(set, axis_len);
    const std::uint32_t group_pes = verify::groups_of(axis_len, shapes[shape].mask).group_pes;
    for (const std::vector<std::size_t> &row : rows) {
      if (row[kShape] != shape) continue;
      const int collective = kCollectives[row[kCollective]];
      std::size_t bytes = sizes[row[kSize]];
      if (bytes < 1000)
        bytes = bytes_for_blocks(collective, group_pes, 8 * bytes);
      else
        bytes = (bytes + 8 * group_pes - 1) / (8 * group_pes) * (8 * group_pes);
      Case c = make_case(collective, axis_len, shapes[shape].mask, bytes, kinds[row[kElement]],
                         row[kSrc] * 8 + row[kDst]);
      if (c.takes_op() && row[kFill] == 1) c.fill = Fill::kSpecial;
      c.src = places[row[kSrc]];
      c.dst = row[kInPlace] ? c.src : (1u << 24) + places[row[kDst]];
      c.options = {.size = sizeof(pidcomm_options),
                   .technique = 0,
                   .isa = isas[row[kIsa]],
                   .threads = threads[row[kThreads]],
                   .coherence = kBothPolicies[row[kCoherence]],
                   .scratch_offset = 0};
      use_technique(c, kTechniques[row[kTechnique]].code, (1u << 23) - 8 * (1 + row[kDst]));
      grid.run([&] { machine::run_case(cube, c); });
    }
  }
  grid.finish();
}

TEST(WindowsAtTheEndOfMramAndAdjacentWindows_AreRight) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {4, 2, 4});
  for (int collective : kCollectives)
    for (std::size_t block_words : {1, 5}) {
      Case c = make_case(collective, cube.axis_len(), "101",
                         bytes_for_blocks(collective, 16, 8 * block_words),
                         {PIDCOMM_UINT32, PIDCOMM_SUM}, block_words);
      const std::size_t in = verify::rows_before(c.problem).row_bytes,
                        out = verify::rows_after(c.problem).row_bytes;
      c.src = machine::kMramBytes - in;
      c.dst = c.src - out;
      machine::run_case(cube, c);
      c.dst = machine::kMramBytes - out;
      c.src = c.dst - in;
      machine::run_case(cube, c);
      c.src = 0;
      c.dst = in;
      machine::run_case(cube, c);
    }
}

TEST(LargeBlocks_AreRightAcrossRunsAndThreads) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {4, 4, 4});
  Grid grid("large blocks");
  for (int collective : kCollectives)
    for (const char *mask : {"100", "010", "011"})
      for (bool is_in_place : {false, true}) {
        if (is_in_place && !can_be_in_place(collective)) continue;
        const std::uint32_t group_pes = verify::groups_of(cube.axis_len(), mask).group_pes;
        for (int technique : techniques_for(collective, cube.axis_len())) {
          Case c = make_case(collective, cube.axis_len(), mask, group_pes * (8192 + 8 * 7),
                             {PIDCOMM_INT32, PIDCOMM_SUM}, 17);
          c.src = 16384 - 8;
          c.dst = is_in_place ? c.src : (1u << 22) - 8 * 1000;
          c.options.threads = 2;
          use_technique(c, technique, (1u << 23) + 8);
          grid.run([&] { machine::run_case(cube, c); });
        }
      }
  grid.finish();
}

/// Runs a collective that stores host rows, and checks the rows and the bytes around them. The rows
/// of two shifts have different places in lines of host memory.
void check_rows(const Hypercube &cube, pidcomm_request request, const Bytes &rows,
                std::size_t shift, int isa) {
  constexpr std::size_t kGuard = 64;
  Bytes guarded(rows.size() + 2 * kGuard, 0xEE), want = guarded;
  std::memcpy(&want[kGuard + shift], rows.data(), rows.size());
  request.host = &guarded[kGuard + shift];
  request.host_bytes = rows.size();
  pidcomm_options options{};
  options.isa = isa;
  options.threads = 2;
  CHECK_EQ(pidcomm_run(cube.get(), &request, &options, nullptr), +PIDCOMM_OK);
  CHECK(guarded == want);
}

/// If a call moves at least 16 MiB, rows are stored by non-temporal stores, which need complete
/// aligned lines of host memory.
TEST(GatherToLargeRows_IsRightForEveryAlignmentOfTheRows) {
  const tuned_passes::Restored restored;
  for (tuned_passes::Pass pass : restored.before)
    if (std::string(pass.name) == "to_host") {
      pass.values.step_words = 8;
      CHECK_EQ(pidcomm_tune(pass.name, &pass.values), +PIDCOMM_OK);
    }
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  for (const std::size_t bytes_past : {8, 136, 64}) {  // per PE, past 16 MiB / 64
    if (effort::is_small() && bytes_past != 136) continue;
    const std::size_t bytes = (std::size_t{1} << 18) + bytes_past;
    for (const std::size_t shift : {0, 4, 24})
      for (const int isa : machine::available_isas()) {
        const std::size_t src = isa % 2 == 0 ? 40 : 8192 - 24;  // the first run has a few words
        Bytes rows(64 * bytes);
        verify::fill_distinct(bytes + shift, bytes, rows);
        CHECK_EQ(pidcomm_write(cube.get(), src, bytes, rows.data()), +PIDCOMM_OK);
        // A row of the mask 10 has the PEs 8 g to 8 g + 7.
        check_rows(cube, pidcomm::request::gather("10", bytes, src, nullptr, 0, PIDCOMM_INT64),
                   rows, shift, isa);
      }
  }
}

/// The same stores. The passes differ for groups of one entangled group, of two, and without a lane
/// split.
TEST(ReduceOfMuchData_IsRightForEveryAlignmentOfTheRows) {
  machine::power_up(1);
  for (const Axes &axis_len : {Axes{8, 8}, Axes{16, 4}, Axes{12, 5}}) {
    if (effort::is_small() && axis_len[0] != 12) continue;
    const std::size_t group_pes = axis_len[0], groups = axis_len[1];
    const DpuSet set = DpuSet::of_ranks(1);
    const Hypercube cube(set, axis_len);
    const std::size_t bytes = (std::size_t{1} << 18) + 136, words = bytes / 8;
    const std::size_t src = 8192 - 24;  // the first run has a few words
    Bytes data(group_pes * groups * bytes);
    verify::fill_distinct(group_pes, bytes, data);
    CHECK_EQ(pidcomm_write(cube.get(), src, bytes, data.data()), +PIDCOMM_OK);
    std::vector<std::uint64_t> sums(groups * words);
    for (std::size_t i = 0; i < group_pes * groups * words; ++i) {
      std::uint64_t word;
      std::memcpy(&word, &data[8 * i], sizeof word);
      sums[i / (group_pes * words) * words + i % words] += word;
    }
    Bytes rows(groups * bytes);
    std::memcpy(rows.data(), sums.data(), rows.size());
    for (const std::size_t shift : {0, 4, 24})
      for (const int isa : machine::available_isas())
        check_rows(
            cube,
            pidcomm::request::reduce("10", bytes, src, nullptr, 0, PIDCOMM_INT64, PIDCOMM_SUM),
            rows, shift, isa);
  }
}

TEST(ZeroBytes_AreANoOp) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 4});
  for (int collective : kCollectives)
    for (int technique : techniques_for(collective, cube.axis_len()))
      for (const char *mask : {"00", "10", "01", "11"}) {
        Case c = make_case(collective, cube.axis_len(), mask, 0, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
        c.src = c.dst = 4096;
        c.options.technique = technique;
        const pidcomm_trace trace = machine::run_case(cube, c);
        CHECK_EQ(trace.mram_bytes_read + trace.mram_bytes_written + trace.host_bytes_read +
                     trace.host_bytes_written,
                 0u);
        CHECK_EQ(trace.pe_launches, 0u);
      }
}

// ---- the same bits everywhere

TEST(FloatReductions_HaveTheDocumentedOrderOnEveryIsaThreadCountAndPolicy) {
  Grid grid("float order");
  for (const Axes &axis_len : {Axes{8, 4}, Axes{4, 8}, Axes{2, 4, 4}, Axes{2, 2, 2, 4}, Axes{24},
                               Axes{4, 6}, Axes{8, 5}, Axes{12, 2}, Axes{5, 7}, Axes{3, 5, 8}}) {
    machine::power_up(ranks_for(axis_len));
    const DpuSet set = DpuSet::of_ranks(ranks_for(axis_len));
    const Hypercube cube(set, axis_len);
    std::size_t turn = 0;
    for (const std::string &mask : machine::masks_of(axis_len.size()))
      for (int collective : {PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE, PIDCOMM_REDUCE})
        for (int type : kFloats)
          for (int op : {PIDCOMM_SUM, PIDCOMM_PROD})
            for (int isa : machine::available_isas())
              for (int threads : {1, 2, 7}) {
                const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
                Case c = make_case(collective, axis_len, mask,
                                   bytes_for_blocks(collective, group_pes, 56), {type, op}, ++turn);
                c.fill = Fill::kRounding;
                place(c, 128, turn % 4 == 0 && can_be_in_place(collective));
                c.options = {sizeof(pidcomm_options),
                             PIDCOMM_TECHNIQUE_TILE,
                             isa,
                             threads,
                             kBothPolicies[turn % 2],
                             0};
                grid.run([&] {
                  machine::run_case(cube, c);
                });  // the oracle has the documented order, the comparison is bitwise
              }
  }
  grid.finish();
}

/// Long blocks, because only long steps of a reduction load without prefetches.
TEST(FloatReductions_HaveTheDocumentedOrderWithAndWithoutPrefetches) {
  Grid grid("float order with and without prefetches");
  for (const Axes &axis_len : {Axes{8, 16}, Axes{8, 21}, Axes{4, 4, 8}, Axes{3, 64}}) {
    machine::power_up(ranks_for(axis_len));
    const DpuSet set = DpuSet::of_ranks(ranks_for(axis_len));
    const Hypercube cube(set, axis_len);
    std::size_t turn = 0;
    for (const std::uint32_t prefetches : {0, 1}) {
      const ReductionsPrefetch setting(prefetches);
      for (const std::string &mask : machine::masks_of(axis_len.size()))
        for (int collective : {PIDCOMM_REDUCE_SCATTER, PIDCOMM_REDUCE})
          for (int type : {PIDCOMM_FLOAT32, PIDCOMM_FLOAT64}) {
            const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
            Case c =
                make_case(collective, axis_len, mask, bytes_for_blocks(collective, group_pes, 2408),
                          {type, PIDCOMM_SUM}, ++turn);
            c.fill = Fill::kRounding;
            place(c, 128, false);
            grid.run([&] { machine::run_case(cube, c); });
          }
    }
  }
  grid.finish();
}

/// Random bits have values of every kind: results are inexact, subnormal, infinite or NaN.
TEST(RandomBitsOf16BitFloats_AreRightForEveryOperatorCollectiveMaskAndIsa) {
  Grid grid("random 16-bit floats");
  const Axes axis_len = {2, 4, 2};
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, axis_len);
  std::uint64_t seed = 0;
  for (const char *mask : {"100", "011"})
    for (int collective : {PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE, PIDCOMM_REDUCE})
      for (int type : {PIDCOMM_FLOAT16, PIDCOMM_BFLOAT16})
        for (int op : {PIDCOMM_SUM, PIDCOMM_PROD, PIDCOMM_MIN, PIDCOMM_MAX})
          for (int isa : machine::available_isas()) {
            const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
            Case c = make_case(collective, axis_len, mask,
                               bytes_for_blocks(collective, group_pes, 8192), {type, op}, ++seed);
            c.fill = Fill::kDistinct;
            c.options = {sizeof(pidcomm_options),
                         PIDCOMM_TECHNIQUE_TILE,
                         isa,
                         2,
                         PIDCOMM_COHERENCE_DEFAULT,
                         0};
            grid.run([&] { machine::run_case(cube, c); });
          }
  grid.finish();
}

TEST(SpecialFloats_AreRightForEveryOperatorCollectiveTechniqueAndIsa) {
  Grid grid("special floats");
  const std::vector<int> isas = machine::available_isas();
  for (const Axes &axis_len : {Axes{8, 4}, Axes{2, 4, 4}, Axes{3, 5}}) {
    machine::power_up(1);
    const DpuSet set = DpuSet::of_ranks(1);
    const Hypercube cube(set, axis_len);
    std::uint64_t seed = 0;
    for (const std::string &mask : machine::masks_of(axis_len.size()))
      for (int collective : {PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE, PIDCOMM_REDUCE})
        for (int type : kFloats)
          for (int op : {PIDCOMM_SUM, PIDCOMM_PROD, PIDCOMM_MIN, PIDCOMM_MAX})
            for (int technique : techniques_for(collective, axis_len)) {
              const std::vector<int> drawn = {isas[verify::mix(++seed) % isas.size()]};
              for (int isa : technique == PIDCOMM_TECHNIQUE_TILE ? isas : drawn) {
                const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
                Case c =
                    make_case(collective, axis_len, mask,
                              bytes_for_blocks(collective, group_pes, 104), {type, op}, ++seed);
                c.fill = Fill::kSpecial;
                c.options = {sizeof(pidcomm_options),   technique, isa, 2,
                             PIDCOMM_COHERENCE_DEFAULT, 0};
                use_technique(c, technique, 1u << 20);
                place(c, 128, false);
                grid.run([&] { machine::run_case(cube, c); });
              }
            }
  }
  grid.finish();
}

TEST(DefaultOptions_ChooseTheBestIsaAndNoFlushesOnEmulatedDimms) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  Case c = make_case(PIDCOMM_ALLTOALL, cube.axis_len(), "10", 64, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
  place(c, 0, false);
  c.options = {};
  const pidcomm_trace trace = machine::run_case(cube, c);
  int best_isa = 0, best_level = 0;
#define ISA_ROW(ENUM, code, name, level)                        \
  if (level > best_level && pidcomm_isa_available(code) != 0) { \
    best_level = level;                                         \
    best_isa = code;                                            \
  }
  PIDCOMM_ISAS(ISA_ROW)
#undef ISA_ROW
  CHECK_EQ(trace.isa, best_isa);
  CHECK(trace.technique == PIDCOMM_TECHNIQUE_TILE ||
        trace.technique == PIDCOMM_TECHNIQUE_CONVENTIONAL);
  CHECK_EQ(trace.coherence, machine::kDefaultCoherence);
  CHECK_EQ(machine::audit_of(cube).lines_loaded, 0u);  // counted by audit only
  CHECK(trace.seconds_total > 0);
  CHECK(trace.seconds_total >= trace.seconds_pass);
}

TEST(Tile_BytesStagedDoNotGrowWithBytes) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Grid grid("bytes staged");
  for (const Axes &axis_len : {Axes{8, 8}, Axes{4, 6}, Axes{3, 5}, Axes{12, 4}}) {
    const Hypercube cube(set, axis_len);
    const std::uint32_t group_pes = verify::groups_of(axis_len, "11").group_pes;
    for (int collective : kCollectives)
      grid.run([&] {
        std::set<std::uint64_t> bytes_staged;
        for (std::size_t blocks :
             {1024, 2048, 4096}) {  // both threads have work: at least 64 KiB of lines
          Case c = make_case(collective, axis_len, "11",
                             bytes_for_blocks(collective, group_pes, 8 * blocks),
                             {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
          place(c, 0, false);
          c.options.threads = 2;
          bytes_staged.insert(machine::run_case(cube, c).bytes_staged);
        }
        CHECK_EQ(bytes_staged.size(), 1u);
      });
  }
  grid.finish();
}

}  // namespace
