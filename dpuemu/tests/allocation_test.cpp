// Sets: their DPUs, the order of the DPUs, and calls after dpu_free.
#include <dpu_log.h>
#include <dpu_memory.h>
#include <dpu_program.h>
#include <dpu_transfer_matrix.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "machine_fixture.h"

using namespace fixture;

namespace {

uint32_t count_dpus(const dpu_set_t &set) {
  uint32_t count = 0;
  CHECK_OK(dpu_get_nr_dpus(set, &count));
  return count;
}

uint32_t count_ranks(const dpu_set_t &set) {
  uint32_t count = 0;
  CHECK_OK(dpu_get_nr_ranks(set, &count));
  return count;
}

std::vector<dpu_id_t> ids(Set &set) {
  std::vector<dpu_id_t> out;
  for (const dpu_set_t &dpu : set.dpus()) out.push_back(dpu_get_id(dpu_from_set(dpu)));
  return out;
}

dpu_error_t no_callback(dpu_set_t, uint32_t, void *) { return DPU_OK; }

}  // namespace

TEST(Foreach_VisitsRanksInOrderThenChipThenBankAndSkipsDisabled) {
  machine(3, {place(1, 0, 0), place(1, 7, 7), place(2, 3, 4)});
  Set set(DPU_ALLOCATE_ALL);
  CHECK_EQ(count_ranks(set.set), 3u);
  CHECK_EQ(count_dpus(set.set), 3u * 64 - 3);
  dpu_set_t dpu;
  uint32_t i, expected = 0;
  std::vector<dpu_id_t> want;
  for (uint32_t rank = 0; rank < 3; ++rank)
    for (uint32_t chip = 0; chip < 8; ++chip)
      for (uint32_t bank = 0; bank < 8; ++bank) {
        const uint32_t here = place(rank, chip, bank);
        if (here != place(1, 0, 0) && here != place(1, 7, 7) && here != place(2, 3, 4))
          want.push_back(rank << 16 | chip << 8 | bank);
      }
  DPU_FOREACH(set.set, dpu, i) {
    CHECK_EQ(i, expected);
    CHECK_EQ(dpu_get_id(dpu.dpu), want.at(expected));
    CHECK(dpu_is_enabled(dpu.dpu));
    ++expected;
  }
  CHECK_EQ(expected, want.size());
}

TEST(RankForeach_VisitsEachRankAsASetThatForeachAccepts) {
  machine(3);
  Set set(3 * 64);
  dpu_set_t rank, dpu;
  uint32_t rank_index, ranks = 0, dpus = 0;
  DPU_RANK_FOREACH(set.set, rank, rank_index) {
    CHECK_EQ(rank_index, ranks);
    CHECK_EQ(dpu_get_rank_id(dpu_rank_from_set(rank)), ranks);
    ++ranks;
    DPU_FOREACH(rank, dpu)++ dpus;
  }
  CHECK_EQ(ranks, 3u);
  CHECK_EQ(dpus, 192u);
  DPU_RANK_FOREACH(set.set, rank) CHECK_EQ(count_dpus(rank), 64u);
  dpus = 0;
  dpu_set_t one = set.dpus()[5];
  DPU_FOREACH(one, dpu)++ dpus;
  CHECK_EQ(dpus, 1u);
}

TEST(Alloc_DisablesTheSurplusInTheLastBankFromTheLastChipDown) {
  machine(2);
  Set set(60);
  CHECK_EQ(count_ranks(set.set), 1u);
  std::vector<dpu_id_t> want;
  for (uint32_t chip = 0; chip < 8; ++chip)
    for (uint32_t bank = 0; bank < 8; ++bank)
      if (bank != 7 || chip < 4) want.push_back(chip << 8 | bank);
  CHECK(ids(set) == want);
}

TEST(Alloc_DisablesTheSurplusInABankThatLacksADpuAlready) {
  machine(2, {place(0, 2, 3)});  // rank 0 has 63
  Set set(120);  // 127 available: 7 too many, exactly the remaining DPUs of that bank
  for (const dpu_set_t &dpu : set.dpus())
    CHECK(dpu_get_rank_id(dpu_get_rank(dpu.dpu)) != 0 || dpu_get_member_id(dpu.dpu) != 3);
  CHECK_EQ(count_dpus(set.set), 120u);
}

TEST(Alloc_DisablesFirstInTheFullestRankAndAmongEqualsInTheLast) {
  machine(3);
  Set set(3 * 64 -
          9);  // a whole bank of the last rank, then one DPU of the second rank, then the fullest
  CHECK_EQ(count_dpus(set.set), 183u);
  uint64_t missing_in_rank[3] = {64, 64, 64};
  for (const dpu_set_t &dpu : set.dpus()) --missing_in_rank[dpu_get_rank_id(dpu_get_rank(dpu.dpu))];
  CHECK_EQ(missing_in_rank[0], 0u);
  CHECK_EQ(missing_in_rank[1], 1u);
  CHECK_EQ(missing_in_rank[2], 8u);
}

TEST(Alloc_AllocatesNothingIfTooFewDpusAreFree) {
  machine(2);
  dpu_set_t set = {};
  CHECK_STATUS(dpu_alloc(129, nullptr, &set), DPU_ERR_ALLOCATION);
  CHECK_STATUS(dpu_alloc(0, nullptr, &set), DPU_ERR_ALLOCATION);
  CHECK_STATUS(dpu_alloc_ranks(3, nullptr, &set), DPU_ERR_ALLOCATION);
  CHECK_STATUS(dpu_alloc_ranks(0, nullptr, &set), DPU_ERR_ALLOCATION);
  CHECK(set.list.ranks == nullptr);
  Set all(128);
  CHECK_STATUS(dpu_alloc(1, nullptr, &set), DPU_ERR_ALLOCATION);
  CHECK_STATUS(dpu_alloc(DPU_ALLOCATE_ALL, nullptr, &set), DPU_ERR_ALLOCATION);
}

TEST(Alloc_AcceptsKeyValueListsAndRefusesOthers) {
  machine(1);
  for (const char *profile :
       {"", "backend=simulator", "nrThreadPerPool=8,nrThreadsPerRank=1", "empty=", "a=b=c"}) {
    Set set;
    CHECK_OK(dpu_alloc(1, profile, &set.set));
  }
  for (const char *profile : {"backend", "=x", ",", "a=b,", "a=b,,c=d", "a=b,c"}) {
    dpu_set_t set;
    CHECK_STATUS(dpu_alloc(1, profile, &set), DPU_ERR_INVALID_PROFILE);
  }
}

TEST(AllocRanks_TakesAllDpusOfTheFirstFreeRanks) {
  machine(4, {place(1, 0, 0)});
  Set first(64);
  Set second;
  CHECK_OK(dpu_alloc_ranks(2, nullptr, &second.set));
  CHECK_EQ(count_dpus(second.set), 127u);
  CHECK_EQ(dpu_get_rank_id(second.rank(0)), 1u);
  CHECK_EQ(dpu_get_rank_id(second.rank(1)), 2u);
}

TEST(Free_EnablesTheSurplusDpusAgain) {
  machine(1);
  {
    Set set(3);
  }
  Set set(DPU_ALLOCATE_ALL);
  CHECK_EQ(count_dpus(set.set), 64u);
}

TEST(FreedSets_AreRefusedByEveryCallEvenIfTheirRanksAreAllocatedAgain) {
  machine(2);
  dpu_set_t stale = {}, stale_rank, stale_dpu;
  CHECK_OK(dpu_alloc(128, nullptr, &stale));
  DPU_RANK_FOREACH(stale, stale_rank) break;
  DPU_FOREACH(stale, stale_dpu) break;
  dpu_rank_t *rank = stale_rank.list.ranks[0];
  const dpu_set_t stale_copy_of_rank = dpu_set_from_rank(&rank);
  dpu_t *dpu = stale_dpu.dpu;
  CHECK_OK(dpu_free(stale));

  for (bool is_allocated_again : {false, true}) {
    Set again;
    if (is_allocated_again) CHECK_OK(dpu_alloc(128, nullptr, &again.set));
    uint64_t word = 0;
    uint32_t count = 0;
    bool done, fault;
    dpu_set_t each;
    const dpu_symbol_t mram = {0x08000000, 64};
    for (dpu_set_t set : {stale, stale_rank, stale_dpu, stale_copy_of_rank}) {
      CHECK_STATUS(dpu_get_nr_ranks(set, &count), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_get_nr_dpus(set, &count), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_prepare_xfer(set, &word), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_push_xfer(set, DPU_XFER_TO_DPU, kHeap, 0, 8, DPU_XFER_DEFAULT),
                   DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_push_xfer_symbol(set, DPU_XFER_TO_DPU, mram, 0, 8, DPU_XFER_ASYNC),
                   DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_broadcast_to(set, kHeap, 0, &word, 8, DPU_XFER_DEFAULT),
                   DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_broadcast_to_symbol(set, mram, 0, &word, 8, DPU_XFER_DEFAULT),
                   DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_copy_to(set, kHeap, 0, &word, 8), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_copy_to_symbol(set, mram, 0, &word, 8), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_copy_from(set, kHeap, 0, &word, 8), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_copy_from_symbol(set, mram, 0, &word, 8), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_sync(set), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_status(set, &done, &fault), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_callback(set, no_callback, nullptr, DPU_CALLBACK_DEFAULT),
                   DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_load(set, "/", nullptr), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_launch(set, DPU_SYNCHRONOUS), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_log_read(set, stdout), DPU_ERR_INVALID_DPU_SET);
      CHECK_STATUS(dpu_free(set), DPU_ERR_INVALID_DPU_SET);
      DPU_FOREACH(set, each) CHECK(false);
      DPU_RANK_FOREACH(set, each) CHECK(false);
      CHECK(dpu_rank_from_set(set) == nullptr);
      CHECK(dpu_from_set(set) == nullptr);
    }
    dpuemu_rank_access_t access;
    CHECK_STATUS(dpuemu_rank_acquire(rank, &access), DPU_ERR_INVALID_DPU_SET);
    CHECK_STATUS(dpuemu_rank_release(rank), DPU_ERR_INVALID_DPU_SET);
    CHECK_STATUS(dpuemu_begin_run(rank), DPU_ERR_INVALID_DPU_SET);
    CHECK_STATUS(dpuemu_end_run(rank, false, 0), DPU_ERR_INVALID_DPU_SET);
    CHECK_STATUS(dpu_copy_to_mram(dpu, 0, reinterpret_cast<uint8_t *>(&word), 8),
                 DPU_ERR_INVALID_DPU_SET);
    dpu_transfer_matrix matrix = {};
    CHECK_STATUS(dpu_copy_from_mrams(rank, &matrix), DPU_ERR_INVALID_DPU_SET);
    CHECK_STATUS(dpulog_read_for_dpu(dpu, stdout), DPU_ERR_INVALID_DPU_SET);
    CHECK(!dpu_is_enabled(dpu));
    CHECK(dpu_get_rank(dpu) == nullptr);
    CHECK(dpu_get(rank, 0, 0) == nullptr);
    CHECK_EQ(dpu_get_id(dpu), UINT32_MAX);
    CHECK_EQ(dpu_get_rank_id(rank), UINT32_MAX);
    CHECK_EQ(dpu_get_rank_numa_node(rank), -1);
    if (is_allocated_again) CHECK_EQ(count_dpus(again.set), 128u);
  }
}

TEST(Free_AcceptsOnlyWholeSetsAndOnlyOnce) {
  machine(2);
  Set set(128);
  dpu_set_t rank, dpu, empty = {};
  DPU_RANK_FOREACH(set.set, rank) CHECK_STATUS(dpu_free(rank), DPU_ERR_INVALID_DPU_SET);
  DPU_FOREACH(set.set, dpu) CHECK_STATUS(dpu_free(dpu), DPU_ERR_INVALID_DPU_SET);
  CHECK_STATUS(dpu_free(empty), DPU_ERR_INVALID_DPU_SET);
  CHECK_OK(dpu_free(set.set));
  CHECK_STATUS(dpu_free(set.set), DPU_ERR_INVALID_DPU_SET);
  set.forget();
}

TEST(Free_ReturnsTheMemoryToTheSystem) {
  for (int strict : {1, 2}) {
    machine(1, {}, 2, strict);
    uint64_t bytes = 1;
    const std::vector<uint8_t> data(1 << 20, 1);
    {
      Set set(1);
      std::vector<uint8_t> unwritten(1 << 20);
      CHECK_OK(dpu_copy_from(set.dpus()[0], kHeap, 0, unwritten.data(), unwritten.size()));
      CHECK_OK(dpu_copy_to(set.set, kHeap, 0, data.data(), data.size()));
      CHECK_OK(dpuemu_resident_bytes(&bytes));
      CHECK(bytes >= 8 * data.size());   // whole lines, with the bytes of all chips
      CHECK(bytes <= 16 * data.size());  // and the bytes of one more bank
    }
    CHECK_OK(dpuemu_resident_bytes(&bytes));
    CHECK_EQ(bytes, 0u);
  }
}

TEST(Allocation_LeavesBytesThatAreNotZeroInMramInStrictMode) {
  constexpr uint64_t kOffset = 12 << 20, kBytes = 4096;
  const std::vector<uint8_t> data = noise_bytes(3, 8), zeros(kBytes), leftovers(kBytes, 0xCB);
  for (int strict : {2, 1, 1, 2}) {
    machine(40, {}, 2, strict);
    Set set(2560);
    const std::vector<dpu_set_t> dpus = set.dpus();
    CHECK_OK(dpu_copy_to(dpus[1], kHeap, kOffset + 8, data.data(), data.size()));
    const std::vector<uint8_t> &unwritten = strict == 1 ? leftovers : zeros;
    std::vector<uint8_t> want = unwritten, got(kBytes);
    std::copy(data.begin(), data.end(), want.begin() + 8);
    for (const size_t dpu : {size_t{0}, size_t{1}, size_t{9}, size_t{2559}}) {
      CHECK_OK(dpu_copy_from(dpus[dpu], kHeap, kOffset, got.data(), kBytes));
      CHECK(got == (dpu == 1 ? want : unwritten));
    }
    uint64_t bytes;
    CHECK_OK(dpuemu_resident_bytes(&bytes));
    CHECK(bytes < 1 << 20);
  }
}

TEST(Allocation_Of2000SetsInTurnNeverConfusesThem) {
  machine(1);
  dpu_set_t previous = {};
  for (int i = 0; i < 2000; ++i) {
    dpu_set_t set;
    CHECK_OK(dpu_alloc(64, nullptr, &set));
    if (i > 0) CHECK_STATUS(dpu_sync(previous), DPU_ERR_INVALID_DPU_SET);
    CHECK_OK(dpu_free(set));
    previous = set;
  }
}

TEST(Threads_AllocateTransferAndFreeSetsInParallel) {
  machine(4);
  std::atomic<int> failures{0};
  const auto work = [&failures](uint64_t seed) {
    for (uint64_t round = 0; round < 20; ++round) {
      dpu_set_t set, dpu;
      if (dpu_alloc(64, nullptr, &set) != DPU_OK) {
        ++failures;
        continue;
      }
      std::vector<std::vector<uint8_t>> sent, got;
      uint32_t i;
      DPU_FOREACH(set, dpu, i) {
        sent.push_back(noise_bytes(seed * 1000 + round * 64 + i, 4096));
        dpu_prepare_xfer(dpu, sent.back().data());
      }
      failures += dpu_push_xfer(set, DPU_XFER_TO_DPU, kHeap, 64, 4096, DPU_XFER_DEFAULT) != DPU_OK;
      got.assign(sent.size(), std::vector<uint8_t>(4096));
      DPU_FOREACH(set, dpu, i) dpu_prepare_xfer(dpu, got[i].data());
      failures +=
          dpu_push_xfer(set, DPU_XFER_FROM_DPU, kHeap, 64, 4096, DPU_XFER_DEFAULT) != DPU_OK;
      failures += sent != got;
      failures += dpu_free(set) != DPU_OK;
    }
  };
  std::thread one(work, 1), two(work, 2), three(work, 3);
  one.join();
  two.join();
  three.join();
  CHECK_EQ(failures.load(), 0);
}

TEST(Management_ReturnsRanksChipsAndBanks) {
  machine(2, {place(1, 6, 5)});
  Set set(127);
  dpu_t *dpu = dpu_get(set.rank(1), 6, 4);
  CHECK_EQ(dpu_get_slice_id(dpu), 6);
  CHECK_EQ(dpu_get_member_id(dpu), 4);
  CHECK(dpu_get_rank(dpu) == set.rank(1));
  CHECK(dpu_is_enabled(dpu));
  CHECK(!dpu_is_enabled(dpu_get(set.rank(1), 6, 5)));
  CHECK(dpu_get(set.rank(1), 8, 0) == nullptr);
  CHECK(dpu_get(set.rank(1), 0, 8) == nullptr);
  CHECK(dpu_get_program(dpu) == nullptr);
  CHECK(dpu_from_set(dpu_set_from_dpu(dpu)) == dpu);
  CHECK(dpu_rank_from_set(set.set) == nullptr);
}

TEST(Configure_RefusesInvalidMachines) {
  machine(2);
  dpuemu_machine_t machine_now;
  const uint32_t beyond = 64 * 2;
  const dpuemu_machine_t cases[] = {{41, 0, 0, 0, 0, 0, 0, 0, 0}, {4, 1, 2, 0, 0, 0, 0, 0, 0},
                                    {0, 0, 0, 0, 3, 0, 0, 0, 0},  {0, 0, 0, 0, 0, 4, 0, 0, 0},
                                    {0, 0, 0, 0, 0, 0, -1, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 1000001, 0},
                                    {0, 0, 0, 0, 0, 0, 0, 0, 4},  {0, 0, 0, 0, 0, 0, 0, 0, -1}};
  for (const dpuemu_machine_t &wanted : cases)
    CHECK_STATUS(dpuemu_configure(&wanted, nullptr, 0), DPU_ERR_INVALID_PROFILE);
  const dpuemu_machine_t two_ranks = {2, 0, 0, 0, 0, 0, 0, 0, 0};
  CHECK_STATUS(dpuemu_configure(&two_ranks, &beyond, 1), DPU_ERR_INVALID_PROFILE);
  CHECK_STATUS(dpuemu_set_transfer(0, 4), DPU_ERR_INVALID_PROFILE);
  CHECK_OK(dpuemu_get_machine(&machine_now));
  CHECK_EQ(machine_now.ranks, 2u);  // unchanged
  Set set(1);
  CHECK_STATUS(dpuemu_configure(&two_ranks, nullptr, 0), DPU_ERR_ALLOCATION);
}

TEST(Configure_TakesMissingSettingsFromTheEnvironment) {
  setenv("DPUEMU_RANKS", "6", 1);
  setenv("DPUEMU_RANKS_PER_CHANNEL", "2", 1);
  setenv("DPUEMU_DISABLED", "0.1.2,5.7.7", 1);
  setenv("DPUEMU_FLUSH", "on", 1);
  setenv("DPUEMU_CHIP", "v1B", 1);
  CHECK_OK(dpuemu_configure(nullptr, nullptr, 0));
  dpuemu_machine_t got;
  CHECK_OK(dpuemu_get_machine(&got));
  {
    Set set(DPU_ALLOCATE_ALL);
    CHECK_EQ(count_dpus(set.set), 6u * 64 - 2);
  }
  for (const char *malformed : {"0.1", "0.8.0", "6.0.0", "0.1.2;", "x"}) {
    setenv("DPUEMU_DISABLED", malformed, 1);
    CHECK_STATUS(dpuemu_configure(nullptr, nullptr, 0), DPU_ERR_INVALID_PROFILE);
  }
  unsetenv("DPUEMU_DISABLED");
  setenv("DPUEMU_HUGEPAGES", "once", 1);
  CHECK_STATUS(dpuemu_configure(nullptr, nullptr, 0), DPU_ERR_INVALID_PROFILE);
  unsetenv("DPUEMU_HUGEPAGES");
  setenv("DPUEMU_CHIP", "v2", 1);
  CHECK_STATUS(dpuemu_configure(nullptr, nullptr, 0), DPU_ERR_INVALID_PROFILE);
  CHECK(text(DPU_ERR_INVALID_PROFILE).find("DPUEMU_CHIP is v2; the chips are generic, v1A, v1B") !=
        std::string::npos);
  unsetenv("DPUEMU_CHIP");
  setenv("DPUEMU_RANKS", "six", 1);
  CHECK_STATUS(dpuemu_configure(nullptr, nullptr, 0), DPU_ERR_INVALID_PROFILE);
  for (const char *variable : {"DPUEMU_RANKS", "DPUEMU_RANKS_PER_CHANNEL", "DPUEMU_FLUSH"})
    unsetenv(variable);
  CHECK_EQ(got.ranks, 6u);
  CHECK_EQ(got.channels, 3u);
  CHECK_EQ(got.flush, 1);
  CHECK_EQ(got.chip, int{DPUEMU_CHIP_V1B});
}

TEST(Configure_RefusesAnUnknownInstructionSetAndNamesTheValidOnes) {
  setenv("DPUEMU_ISA", "mmx", 1);
  CHECK_STATUS(dpuemu_configure(nullptr, nullptr, 0), DPU_ERR_INVALID_PROFILE);
  const std::string sentence = text(DPU_ERR_INVALID_PROFILE);
  for (const char *word : {"DPUEMU_ISA is mmx", "portable"})
    CHECK(sentence.find(word) != std::string::npos);
  for (const char *valid : {"portable", ""}) {
    setenv("DPUEMU_ISA", valid, 1);
    CHECK_OK(dpuemu_configure(nullptr, nullptr, 0));
  }
  unsetenv("DPUEMU_ISA");
}

TEST(Flush_ComesFromTheEnvironmentOrTheLastCall) {
  const auto flush_now = [] {
    dpuemu_machine_t now;
    CHECK_OK(dpuemu_get_machine(&now));
    return now.flush;
  };
  constexpr struct {
    const char *word;
    int flush;
  } kCases[] = {{"on", 1}, {"once", 3}, {"off", 2}, {"", 2}};
  for (const auto &it : kCases) {
    setenv("DPUEMU_FLUSH", it.word, 1);
    CHECK_OK(dpuemu_configure(nullptr, nullptr, 0));
    CHECK_EQ(flush_now(), it.flush);
  }
  unsetenv("DPUEMU_FLUSH");
  machine(1);
  for (int flush : {3, 1, 2}) {
    CHECK_OK(dpuemu_set_transfer(0, flush));
    CHECK_EQ(flush_now(), flush);
    CHECK_OK(dpuemu_set_transfer(1, 0));
    CHECK_EQ(flush_now(), flush);
  }
}

TEST(InvalidPrograms_AreRefusedByEveryCall) {
  machine(1);
  Set set(64);
  uint8_t byte = 0;
  dpu_symbol_t symbol;
  CHECK_STATUS(dpu_load(set.set, "/no/such/file", nullptr), DPU_ERR_ELF_NO_SUCH_FILE);
  CHECK_STATUS(dpu_load(set.set, "/proc/self/exe", nullptr), DPU_ERR_ELF_INVALID_FILE);
  CHECK_STATUS(dpu_load_from_memory(set.set, &byte, 1, nullptr), DPU_ERR_ELF_INVALID_FILE);
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
  CHECK_STATUS(dpu_launch(set.set, static_cast<dpu_launch_policy_t>(2)),
               DPU_ERR_INVALID_LAUNCH_POLICY);
  CHECK_STATUS(dpu_log_read(set.dpus()[0], stdout), DPU_ERR_LOG_CONTEXT_MISSING);
  CHECK_STATUS(dpu_get_symbol(nullptr, "other", &symbol), DPU_ERR_NO_PROGRAM_LOADED);
  CHECK_STATUS(dpu_get_symbol(nullptr, nullptr, &symbol), DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_OK(dpu_get_symbol(nullptr, kHeap, &symbol));
  CHECK_EQ(symbol.address, 0x08000000u);
  CHECK_EQ(symbol.size, 64u << 20);
}

TEST(ErrorToString_HasASentenceForEveryCode) {
  for (int code = DPU_OK; code <= DPU_ERR_SG_NOT_MRAM_SYMBOL; ++code)
    CHECK(text(static_cast<dpu_error_t>(code)).find("unknown error") == std::string::npos);
  CHECK(text(static_cast<dpu_error_t>(1000)).find("unknown error") != std::string::npos);
}

TEST(Alloc_RefusesTooManyDpusWithTheirNumber) {
  machine(2, {place(0, 3, 3)});
  Set one(63);
  dpu_set_t set;
  const auto check = [&](dpu_error_t status, const std::string &words) {
    CHECK_EQ(text(status), std::to_string(DPU_ERR_ALLOCATION) + " not enough free DPUs: " + words);
  };
  check(dpu_alloc(65, nullptr, &set),
        "the call asks for 65 DPUs; 64 of 127 DPUs (1 of 2 ranks) are free");
  check(dpu_alloc_ranks(2, nullptr, &set),
        "the call asks for 2 ranks; 64 of 127 DPUs (1 of 2 ranks) are free");
  check(dpu_alloc(0, nullptr, &set), "the call asks for 0; at least 1 is necessary");
  check(dpuemu_configure(nullptr, nullptr, 0),
        "rank 0 is allocated; the machine can change after dpu_free");
  Set other(64);
  check(dpu_alloc(DPU_ALLOCATE_ALL, nullptr, &set),
        "the call asks for all DPUs; 0 of 127 DPUs (0 of 2 ranks) are free");
}
