// The values of tuning.h: ranges, and results that do not depend on the values.
#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "collective_cases.h"
#include "tuned_passes.h"

namespace {

using namespace collective_cases;
using namespace tuned_passes;

TEST(Results_DoNotDependOnTheTuning) {
  const Restored restored;
  const std::vector<Pass> &before = restored.before;
  CHECK(!before.empty());
  std::mt19937 random(5);
  const auto from = [&](std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random);
  };
  std::vector<int> isas;
#define PIDCOMM_ROW(ENUM, code, ...) \
  if (pidcomm_isa_available(code)) isas.push_back(code);
  PIDCOMM_ISAS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  Grid grid("tuning");
  for (const Axes &axis_len :
       {Axes{8, 16}, Axes{4, 4, 8}, Axes{12, 10}, Axes{5, 7, 3}, Axes{8, 12}, Axes{8, 21}}) {
    machine::power_up(ranks_for(axis_len));
    const DpuSet set = DpuSet::of_ranks(ranks_for(axis_len));
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      for (const Pass &pass : before) {
        pidcomm_tuning values = pass.values;
#define PIDCOMM_ROW(key, least, most, ...) values.key = from(least, most);
        PIDCOMM_TUNING(PIDCOMM_ROW)
#undef PIDCOMM_ROW
        values.step_words = std::bit_floor(from(pass.least_step_words, pass.most_step_words));
        CHECK_EQ(pidcomm_tune(pass.name, &values), +PIDCOMM_OK);
      }
      const Hypercube cube(set, axis_len);
      for (const std::string &mask : machine::masks_of(axis_len.size()))
        for (int collective : kCollectives) {
          const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
          const std::size_t block_bytes = 8 * from(1, 300), src = 8 * from(0, 1023);
          const bool is_in_place = from(0, 1) != 0 && can_be_in_place(collective);
          Case c = make_case(collective, axis_len, mask,
                             bytes_for_blocks(collective, group_pes, block_bytes),
                             from(0, 1) == 0 ? Element{PIDCOMM_FLOAT32, PIDCOMM_SUM}
                                             : Element{PIDCOMM_INT8, PIDCOMM_XOR},
                             seed);
          place(c, src, is_in_place);
          c.options.isa = isas[seed % isas.size()];
          grid.run([&] { machine::run_case(cube, c); });
        }
    }
  }
  grid.finish();
}

/// A section of these shapes has two batches. With {17, 32}, the loads of whole steps can be
/// without prefetches, and those of the last step have too few lines for that.
TEST(SectionsOfSeveralBatches_DoNotDependOnPrefetches) {
  for (const Axes &axis_len : {Axes{17, 24}, Axes{17, 32}}) {
    machine::power_up(ranks_for(axis_len));
    const DpuSet set = DpuSet::of_ranks(ranks_for(axis_len));
    const Hypercube cube(set, axis_len);
    for (const std::uint32_t prefetches : {0, 1}) {
      const ReductionsPrefetch restored(prefetches);
      for (const int isa : {+PIDCOMM_ISA_DEFAULT, +PIDCOMM_ISA_AUDIT})
        for (const int collective : {PIDCOMM_ALLREDUCE, PIDCOMM_REDUCE_SCATTER, PIDCOMM_REDUCE})
          for (const bool is_in_place : {false, true}) {
            if (is_in_place && !can_be_in_place(collective)) continue;
            const std::size_t bytes = bytes_for_blocks(collective, axis_len[1], 8 * 79);
            Case c = make_case(collective, axis_len, "01", bytes, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
            place(c, 0, is_in_place);
            c.options.isa = isa;
            c.options.threads = 1;
            machine::run_case(cube, c);
          }
    }
  }
}

/// The host rows of a gather that moves 16 MiB or more bypass the caches. In {5, 27}, lanes lack
/// rows.
TEST(RowsThatBypassTheCaches_DoNotDependOnTheTuning) {
  for (const Axes &axis_len : {Axes{8, 16}, Axes{5, 27}}) {
    if (effort::is_small() && axis_len[0] != 5) continue;
    const Restored restored;
    machine::power_up(ranks_for(axis_len));
    const DpuSet set = DpuSet::of_ranks(ranks_for(axis_len));
    const Hypercube cube(set, axis_len);
    for (const Pass &pass : restored.before) {
      if (std::string(pass.name) != "to_host") continue;
      for (const auto &[step_words, prefetches] :
           std::vector<std::pair<std::uint32_t, std::uint32_t>>{{8, 0}, {8, 1}, {16, 1}}) {
        pidcomm_tuning values = pass.values;
        values.step_words = step_words;
        values.prefetches = prefetches;
        CHECK_EQ(pidcomm_tune(pass.name, &values), +PIDCOMM_OK);
        for (const std::size_t block_bytes :
             {std::size_t{128} << 10, (std::size_t{128} << 10) + 104}) {
          Case c = make_case(PIDCOMM_GATHER, axis_len, "10", block_bytes,
                             {PIDCOMM_INT64, PIDCOMM_SUM}, 1);
          for (const std::size_t src : {8192 - 64, 8192 - 24}) {
            place(c, src, false);
            machine::run_case(cube, c);
          }
        }
      }
    }
  }
}

TEST(ValuesOutsideTheirRanges_AreRefused) {
  const auto check_refused = [](const char *pass, pidcomm_tuning values, const char *sentence) {
    CHECK_EQ(pidcomm_tune(pass, &values), +PIDCOMM_ERR_ARGUMENT);
    CHECK(std::strstr(pidcomm_last_error(), sentence) != nullptr);
  };
  for (const Pass &pass : passes()) {
    pidcomm_tuning values = pass.values;
    values.step_words = 2 * pass.most_step_words;
    check_refused(pass.name, values, "step_words");
    values = pass.values;
    values.members = 9;
    check_refused(pass.name, values, "members of pass");
    values = pass.values;
    values.ahead = 0;
    check_refused(pass.name, values, "it must be 1 to 1024");
    if (pass.most_step_words >= 16) {
      values = pass.values;
      values.step_words = pass.most_step_words - 4;
      check_refused(pass.name, values, "power of two");
    }
  }
  check_refused("gather", passes()[0].values, "no tuned pass has the name gather");
  const char *name = nullptr;
  pidcomm_tuning values PIDCOMM_TUNING_INITIALIZER;
  std::uint32_t least = 0, most = 0;
  CHECK_EQ(pidcomm_tuned_pass(passes().size(), &name, &values, &least, &most),
           +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_tune("merge", nullptr), +PIDCOMM_ERR_ARGUMENT);
}

}  // namespace
