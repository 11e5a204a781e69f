// The requirements and errors of the paper's techniques, `ring` and `tree`.
#include <dpu_program.h>

#include "collective_cases.h"
#include "pidcomm/model.h"

namespace {

using namespace collective_cases;

// ---- the paper's techniques

TEST(SymbolWindow_IsAVariableOfTheLoadedProgram) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  std::size_t window = 77;
  const auto refuses = [&](int status, const char *name, std::size_t offset, std::size_t bytes,
                           const char *words) {
    machine::check_refused(pidcomm_symbol_window(cube.get(), name, offset, bytes, &window), status,
                           words);
    CHECK_EQ(window, std::size_t{77});
  };
  refuses(PIDCOMM_ERR_DEVICE, "variable", 0, 8, "PE 0 has no program");
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  refuses(PIDCOMM_ERR_ARGUMENT, nullptr, 0, 8, "name");
  refuses(PIDCOMM_ERR_ARGUMENT, "gradient", 0, 8, "has no variable gradient");
  refuses(PIDCOMM_ERR_WINDOW, "variable", 8, 1 << 16, "65536 bytes at offset 8 passes the end");
  refuses(PIDCOMM_ERR_WINDOW, "variable", SIZE_MAX, 8, "variable");
  refuses(PIDCOMM_ERR_WINDOW, "variable", 4, 8, "not a multiple of 8");
  struct dpu_symbol_t symbol;
  DPU_OK_OR_FAIL(dpu_get_symbol(dpu_get_program(dpu_from_set(cube.dpu(0))), "variable", &symbol));
  CHECK_EQ(pidcomm_symbol_window(cube.get(), "variable", 8, 640, &window), +PIDCOMM_OK);
  CHECK_EQ(window, PIDCOMM_MRAM_WINDOW + symbol.address - PIDCOMM_MRAM_ADDRESS + 8);

  // The same bytes in the variable and in the heap give the same result.
  std::vector<std::uint8_t> rows(64 * 640), results(64 * 640), expected(64 * 640);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint8_t>(i * i >> 3);
  for (const std::size_t source : {window, std::size_t{1} << 20}) {
    CHECK_EQ(
        pidcomm_scatter(cube.get(), "11", 640, rows.data(), rows.size(), source, PIDCOMM_UINT8),
        +PIDCOMM_OK);
    CHECK_EQ(pidcomm_allreduce(cube.get(), "10", 640, source, 4096, PIDCOMM_INT32, PIDCOMM_SUM),
             +PIDCOMM_OK);
    CHECK_EQ(
        pidcomm_gather(cube.get(), "11", 640, 4096, results.data(), results.size(), PIDCOMM_UINT8),
        +PIDCOMM_OK);
    if (source == window) expected = results;
    CHECK(results == expected);
    std::fill(results.begin(), results.end(), std::uint8_t{0});
  }
}

TEST(FillVariables_WritesThePlaceOfEachPeToTheVariablesOfTheProgram) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 6}, 40), deep(set, {2, 2, 2, 2, 3}), wide(set, Axes(16, 1));
  const auto values_of = [&](const char *name) {
    std::vector<std::uint32_t> values(cube.rows());
    for (std::size_t row = 0; row < cube.rows(); ++row)
      DPU_OK_OR_FAIL(dpu_copy_from(cube.dpu(row), name, 0, &values[row], 4));
    return values;
  };
  const auto refuses = [&](const Hypercube &on, const char *const *names, int status,
                           const char *words) {
    machine::check_refused(pidcomm_fill_variables(on.get(), names), status, words);
  };
  refuses(cube, nullptr, PIDCOMM_ERR_DEVICE, "PE 0 has no program");
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  CHECK_EQ(pidcomm_fill_variables(nullptr, nullptr), +PIDCOMM_ERR_ARGUMENT);
  const char *const names[][2] = {{"wide", "x"}, {"x", "x"}, {"x", nullptr}};
  const char *const words[] = {"pidcomm_coord_wide has 8 bytes", "two axes have the name x",
                               "a name in axis_names"};
  for (std::size_t i = 0; i < std::size(names); ++i)
    refuses(cube, names[i], PIDCOMM_ERR_ARGUMENT, words[i]);
  for (const char *name : {"pidcomm_pe", "pidcomm_coord_x", "pidcomm_member_10"})
    CHECK(values_of(name) == std::vector<std::uint32_t>(128, 77));

  CHECK_EQ(pidcomm_fill_variables(cube.get(), nullptr), +PIDCOMM_OK);
  const auto filled = [&](const char *name, const auto &value_of) {
    std::vector<std::uint32_t> values(cube.rows(), 77);
    for (std::uint32_t pe = 0; pe < cube.pes(); ++pe) values[pe] = value_of(pe);
    if (values_of(name) != values) machine::fail(std::string(name) + " is wrong");
  };
  filled("pidcomm_pe", [](std::uint32_t pe) { return pe; });
  filled("pidcomm_coord_x", [](std::uint32_t pe) { return pe % 8; });
  filled("pidcomm_length_x", [](std::uint32_t) { return 8u; });
  filled("pidcomm_coord_y", [](std::uint32_t pe) { return pe / 8; });
  filled("pidcomm_group_10", [](std::uint32_t pe) { return pe / 8; });
  filled("pidcomm_member_10", [](std::uint32_t pe) { return pe % 8; });
  filled("pidcomm_member_11", [](std::uint32_t pe) { return pe; });
  CHECK(values_of("pidcomm_length_nothing") == std::vector<std::uint32_t>(128, 77));
  const char *const other[] = {"row", "x"};
  CHECK_EQ(pidcomm_fill_variables(cube.get(), other), +PIDCOMM_OK);
  filled("pidcomm_length_row", [](std::uint32_t) { return 8u; });
  filled("pidcomm_coord_x", [](std::uint32_t pe) { return pe / 8; });
  filled("pidcomm_coord_y", [](std::uint32_t pe) { return pe / 8; });  // not of these axes

  CHECK_EQ(pidcomm_fill_variables(deep.get(), nullptr), +PIDCOMM_OK);
  for (std::uint32_t pe : {0u, 17u, 47u}) {
    std::uint32_t value = 0;
    DPU_OK_OR_FAIL(dpu_copy_from(deep.dpu(pe), "pidcomm_coord_axis4", 0, &value, 4));
    CHECK_EQ(value, pe / 16);
  }
  CHECK_EQ(pidcomm_fill_variables(wide.get(), nullptr), +PIDCOMM_OK);

  // Ranks with other programs, and the program that reorders.
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_OTHER_TEST_PROGRAM, nullptr));
  const char *const remote[] = {"x", "remote"};
  refuses(cube, remote, PIDCOMM_ERR_ARGUMENT, "pidcomm_length_remote has 4 bytes");
  struct dpu_rank_t *first = set.rank(0);
  DPU_OK_OR_FAIL(dpu_load(dpu_set_from_rank(&first), PIDCOMM_TEST_PROGRAM, nullptr));
  refuses(cube, nullptr, PIDCOMM_ERR_DEVICE, "load the same program on every rank");
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  const pidcomm_options options = {sizeof options, PIDCOMM_TECHNIQUE_PR, 0, 0, 0, 1 << 20};
  CHECK_EQ(
      machine::run(cube, pidcomm::request::alltoall("10", 512, 0, 4096, PIDCOMM_INT32), options),
      +PIDCOMM_OK);
  refuses(cube, nullptr, PIDCOMM_ERR_DEVICE, "load yours again");
}

TEST(PaperTechnique_KeepsTheHeapBaseAndNeedsScratch) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  const auto heap_base = [&] {
    struct dpu_symbol_t symbol;
    DPU_OK_OR_FAIL(dpu_get_symbol(dpu_get_program(dpu_from_set(cube.dpu(0))),
                                  DPU_MRAM_HEAP_POINTER_NAME, &symbol));
    return symbol.address;
  };
  const std::uint32_t before = heap_base();
  CHECK(before != 0x08000000u);
  Case c = make_case(PIDCOMM_ALLREDUCE, {8, 8}, "10", 640, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
  c.src = 64;
  c.dst = 4096;
  c.options.technique = PIDCOMM_TECHNIQUE_PR_IM;
  c.options.scratch_offset = 8192;
  const auto is_replaced = [&] {
    int answer = 77;
    CHECK_EQ(pidcomm_program_replaced(set.get(), &answer), +PIDCOMM_OK);
    return answer;
  };
  CHECK_EQ(is_replaced(), 0);
  dpuemu_report_t report{};
  for (int times = 0; times < 2; ++times) {
    const pidcomm_trace trace = machine::run_case(cube, c);
    CHECK_EQ(trace.pe_loads, times == 0 ? 1u : 0u);
    CHECK_EQ(heap_base(), before);
    CHECK_EQ(is_replaced(), 1);
    DPU_OK_OR_FAIL(dpuemu_get_report(set.get(), &report));
    const double seconds = static_cast<double>(trace.pe_cycles) / report.cycles_per_second;
    CHECK(seconds > 0 && std::abs(trace.pe_seconds - seconds) < 1e-9 * seconds);
  }
  // A launch without loading the program again is a fault, and the next call says why. A load
  // clears the fault.
  CHECK_EQ(dpu_launch(set.get(), DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
  std::vector<std::uint8_t> host(64);
  pidcomm_request request = {
      sizeof(pidcomm_request), PIDCOMM_ALLREDUCE, "10", 640, 64, 4096, nullptr, 0,
      PIDCOMM_INT32,           PIDCOMM_SUM};
  CHECK_EQ(pidcomm_run(cube.get(), &request, &c.options, nullptr), +PIDCOMM_ERR_DEVICE);
  CHECK(std::string(pidcomm_last_error()).find("load yours again") != std::string::npos);
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  CHECK_EQ(is_replaced(), 0);
  DPU_OK_OR_FAIL(dpu_launch(set.get(), DPU_SYNCHRONOUS));
  machine::run_case(cube, c);

  // Errors come before data moves and before the program is replaced.
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  const auto refuses = [&](int status, const char *word, std::size_t scratch, std::size_t bytes) {
    request.bytes = bytes;
    pidcomm_options options = c.options;
    options.scratch_offset = scratch;
    machine::check_refused(pidcomm_run(cube.get(), &request, &options, nullptr), status, word);
  };
  refuses(PIDCOMM_ERR_WINDOW, "scratch offset", 0, 640);
  refuses(PIDCOMM_ERR_WINDOW, "source", 64 + 632, 640);
  refuses(PIDCOMM_ERR_WINDOW, "destination", 4096 - 632, 640);
  refuses(PIDCOMM_ERR_WINDOW, "multiple", 8196, 640);
  refuses(PIDCOMM_ERR_WINDOW, "past the", machine::kMramBytes - 632 - (before - 0x08000000u), 640);
  refuses(PIDCOMM_ERR_SIZE, "divisible by 8 * 8", 8192, 648);
  DPU_OK_OR_FAIL(dpu_launch(set.get(), DPU_SYNCHRONOUS));
}

TEST(Auto_IgnoresAScratchThatIsNotValid) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  for (const Axes &axis_len : {Axes{8, 8}, Axes{64}, Axes{6, 5}}) {
    const Hypercube cube(set, axis_len);
    const std::string mask(axis_len.size(), '1');
    const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
    for (const int collective : kCollectives)
      for (const std::size_t scratch : {std::size_t{0}, std::size_t{64}, std::size_t{65536 + 64},
                                        std::size_t{200004}, machine::kMramBytes}) {
        Case c = make_case(collective, axis_len, mask, bytes_for_blocks(collective, group_pes, 64),
                           {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
        c.src = 0;
        c.dst = 65536;
        c.options.technique = PIDCOMM_TECHNIQUE_AUTO;
        c.options.scratch_offset = scratch;
        CHECK_EQ(machine::run_case(cube, c).pe_loads, 0u);
      }
  }
}

TEST(Default_TimesCallsAndKeepsAChoice_AndNeverReplacesTheProgram) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  constexpr std::size_t kTrialCalls = 12;  // at most
  std::set<int> of_trials;
  for (const Axes &axis_len : {Axes{8, 16}, Axes{6, 5}}) {
    const Hypercube cube(set, axis_len);
    const std::string mask = "10";
    const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
    for (const int collective : kCollectives)
      for (const pidcomm_type type : {PIDCOMM_INT32, PIDCOMM_FLOAT32}) {
        Case c = make_case(collective, axis_len, mask, bytes_for_blocks(collective, group_pes, 264),
                           {type, PIDCOMM_SUM}, 1);
        c.src = 0;
        c.dst = 1 << 20;
        c.options.technique = PIDCOMM_TECHNIQUE_DEFAULT;
        c.options.scratch_offset = 2 << 20;
        const bool rounds = c.takes_op() && type == PIDCOMM_FLOAT32;
        int chosen = rounds ? +PIDCOMM_TECHNIQUE_TILE : 0;
        for (std::size_t call = 0; call < kTrialCalls + 3; ++call) {
          const pidcomm_trace trace = machine::run_case(cube, c);
          CHECK_EQ(trace.pe_loads, 0u);
          of_trials.insert(trace.technique);
          if (call == kTrialCalls && !rounds) chosen = trace.technique;
          if (chosen != 0) CHECK_EQ(trace.technique, chosen);
          // A program may prepare buffers while a non-blocking call runs.
          if (call == 1)
            CHECK_EQ(machine::run_case(cube, c, machine::start_and_wait).technique,
                     +PIDCOMM_TECHNIQUE_TILE);
        }
      }
  }
  // `tile` and `conventional` took turns. For real DIMMs, the predictions are sure.
  if (!is_over_sdk_access()) CHECK_EQ(of_trials.size(), std::size_t{2});
}

/// With scratch, the techniques of `auto` depend on the windows of each call.
TEST(Auto_WithScratch_ConsidersTheWindowsOfEachCall) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 16});
  const char *name = nullptr;
  pidcomm_machine reordering PIDCOMM_MACHINE_INITIALIZER;  // where PEs reorder blocks in no time
  CHECK_EQ(pidcomm_machine_builtin(0, &name, &reordering), +PIDCOMM_OK);
  reordering.pe_jobs_us = reordering.pe_job_us = reordering.pe_launch_us = 0;
  reordering.pe_launch_rank_us = reordering.pe_load_us = reordering.pe_load_rank_us = 0;
  reordering.pe_load_word_us = reordering.pe_load_rank_word_us = 0;
  reordering.pe_clock_mhz = 1e9;
  for (pidcomm_line_costs &isa : reordering.isa)
    if (isa.load_ns != 0) isa.transpose_ns = 1e6;
  CHECK_EQ(pidcomm_use_machine(&reordering), +PIDCOMM_OK);
  std::vector<bool> replaced;
  for (const std::size_t dst : {std::size_t{65536}, std::size_t{131072}, std::size_t{65536}}) {
    Case c = make_case(PIDCOMM_ALLTOALL, {8, 16}, "10", 8192, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
    c.src = 0;
    c.dst = dst;
    c.options.technique = PIDCOMM_TECHNIQUE_AUTO;
    c.options.scratch_offset = 131072;  // the second call writes there
    replaced.push_back(machine::run_case(cube, c).pe_launches != 0);
  }
  CHECK_EQ(pidcomm_use_machine(nullptr), +PIDCOMM_OK);
  CHECK(replaced == (std::vector<bool>{true, false, true}));
}

TEST(LoadBetweenCalls_MovesTheHeap_AndCallsFindRanksThatDisagree) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 16});
  const Bytes rows(128 * 64, 5), others(128 * 64, 6);
  const auto load_on = [&](std::uint32_t rank) {
    struct dpu_rank_t *one = set.rank(rank);
    DPU_OK_OR_FAIL(dpu_load(dpu_set_from_rank(&one), PIDCOMM_TEST_PROGRAM, nullptr));
  };
  const auto write = [&](const Bytes &all) { return pidcomm_write(cube.get(), 0, 64, all.data()); };
  CHECK_EQ(write(rows), +PIDCOMM_OK);
  CHECK_EQ(write(rows), +PIDCOMM_OK);
  load_on(1);
  CHECK_EQ(write(others), +PIDCOMM_ERR_DEVICE);
  CHECK(std::string(pidcomm_last_error()).find("disagree about the MRAM heap base") !=
        std::string::npos);
  load_on(0);
  CHECK(cube.read(0, 64) != others);  // through the SDK
  CHECK_EQ(write(others), +PIDCOMM_OK);
  CHECK(cube.read(0, 64) == others);
}

TEST(PesThatReorder_KeepTheHeapOfThePesOutsideTheHypercube) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 8});  // on the first rank
  struct dpu_rank_t *second = set.rank(1);
  DPU_OK_OR_FAIL(dpu_load(dpu_set_from_rank(&second), PIDCOMM_TEST_PROGRAM, nullptr));
  const auto heap_of = [](struct dpu_set_t dpu) {
    struct dpu_symbol_t heap{};
    struct dpu_program_t *const program = dpu_get_program(dpu_from_set(dpu));
    if (program != nullptr)
      DPU_OK_OR_FAIL(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &heap));
    return program == nullptr ? 0x08000000u : heap.address;
  };
  std::vector<std::uint32_t> before;
  for (std::size_t row = 0; row < cube.rows(); ++row) before.push_back(heap_of(cube.dpu(row)));
  CHECK(before.front() != before.back());
  const pidcomm_options options = {sizeof options, PIDCOMM_TECHNIQUE_PR, 0, 0, 0, 1 << 20};
  Bytes rows(64 * 64 * 8);
  verify::fill_distinct(1, 64 * 8, rows);
  CHECK_EQ(pidcomm_write(cube.get(), 0, 64 * 8, rows.data()), +PIDCOMM_OK);
  for (int round = 0; round < 2; ++round) {  // an alltoall undoes itself
    CHECK_EQ(
        machine::run(cube, pidcomm::request::alltoall("10", 64 * 8, 0, 0, PIDCOMM_INT32), options),
        +PIDCOMM_OK);
    for (std::size_t row = 0; row < cube.rows(); ++row)
      CHECK_EQ(heap_of(cube.dpu(row)), before[row]);
  }
  Bytes after(rows.size());
  CHECK_EQ(pidcomm_read(cube.get(), 0, 64 * 8, after.data()), +PIDCOMM_OK);
  CHECK(after == rows);
}

TEST(PaperTechnique_RefusesShapesWithoutALaneSplit) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {3, 8});
  const pidcomm_request request = {
      sizeof(pidcomm_request), PIDCOMM_ALLTOALL, "01", 64, 0, 4096, nullptr, 0, PIDCOMM_INT32, 0};
  const pidcomm_options options = {
      sizeof(pidcomm_options), PIDCOMM_TECHNIQUE_PR_IM_CM, 0, 0, 0, 8192};
  CHECK_EQ(pidcomm_run(cube.get(), &request, &options, nullptr), +PIDCOMM_ERR_OPTION);
  CHECK(std::string(pidcomm_last_error()).find("3x8") != std::string::npos);
}

// ---- ring and tree

TEST(RingAndTree_AreForAllreduceOnShapesWithALaneSplit) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8}), cut(set, {3, 8});
  for (int technique : {PIDCOMM_TECHNIQUE_RING, PIDCOMM_TECHNIQUE_TREE}) {
    pidcomm_options options = {sizeof(pidcomm_options), technique, 0, 0, 0, 8192};
    const auto refuses = [&](const Hypercube &on, const pidcomm_request &request, int status,
                             const std::vector<std::string> &words) {
      const Bytes before = on.read(0, 16384);
      CHECK_EQ(pidcomm_run(on.get(), &request, &options, nullptr), status);
      const std::string sentence = pidcomm_last_error();
      for (const std::string &word : words)
        if (sentence.find(word) == std::string::npos)
          machine::fail("no \"" + word + "\" in: " + sentence);
      CHECK(on.read(0, 16384) == before);
    };
    const std::string name = pidcomm_name(PIDCOMM_TABLE_TECHNIQUE, technique);
    std::vector<std::uint8_t> host(64 * 64);
    for (int collective : kCollectives) {
      if (collective == PIDCOMM_ALLREDUCE) continue;
      refuses(cube,
              {sizeof(pidcomm_request), collective, "10", 64, 0, 4096, host.data(), host.size(),
               PIDCOMM_INT32, PIDCOMM_SUM},
              PIDCOMM_ERR_OPTION,
              {name, "is for allreduce", pidcomm_name(PIDCOMM_TABLE_COLLECTIVE, collective)});
    }
    pidcomm_request request = {
        sizeof(pidcomm_request), PIDCOMM_ALLREDUCE, "10", 72, 0, 4096, nullptr, 0,
        PIDCOMM_INT32,           PIDCOMM_SUM};
    refuses(cut, request, PIDCOMM_ERR_OPTION, {name, "3x8"});
    if (technique == PIDCOMM_TECHNIQUE_TREE) continue;
    refuses(cube, request, PIDCOMM_ERR_SIZE, {name, "divisible by 8 * 8"});
    request.bytes = 64;
    options.scratch_offset = 0;
    refuses(cube, request, PIDCOMM_ERR_WINDOW, {name, "scratch offset"});
    options.scratch_offset = 4096 + 56;
    refuses(cube, request, PIDCOMM_ERR_WINDOW, {"scratch", "destination"});
  }
}

}  // namespace
