// Calls for single ranks and DPUs, and calls that the emulator refuses.
#include <dpu_config.h>
#include <dpu_management.h>
#include <dpu_memory.h>
#include <dpu_probe.h>
#include <dpu_runner.h>
#include <dpu_target_macros.h>
#include <dpu_transfer_matrix.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "program_fixture.h"

using namespace fixture;

namespace {

/// A rank without a set.
struct OwnRank {
  OwnRank() { CHECK_OK(dpu_get_rank_of_type(nullptr, &rank)); }
  ~OwnRank() { dpu_free_rank(rank); }
  OwnRank(const OwnRank &) = delete;
  OwnRank &operator=(const OwnRank &) = delete;
  dpu_set_t set() { return dpu_set_from_rank(&rank); }
  dpu_rank_t *rank = nullptr;
};

/// Lets the PEs of the program "gate" end, also after a failed check.
struct OpensGate {
  explicit OpensGate(OwnRank &own) : own_(own) {}
  ~OpensGate() {
    const uint32_t one = 1;
    dpu_broadcast_to(own_.set(), "gate", 0, &one, 4, DPU_XFER_PARALLEL);
  }
  OpensGate(const OpensGate &) = delete;
  OpensGate &operator=(const OpensGate &) = delete;

 private:
  OwnRank &own_;
};

void wait_for(dpu_rank_t *rank, bool &fault) {
  bool done = false;
  while (!done) {
    CHECK_OK(dpu_poll_rank(rank));
    CHECK_OK(dpu_status_rank(rank, &done, &fault));
  }
}

}  // namespace

TEST(RankCalls_AllocateAndFreeOneRank) {
  pe_machine(2);
  dpu_rank_t *first = nullptr, *second = nullptr, *third = nullptr;
  CHECK_OK(dpu_get_rank_of_type("chipId=4", &first));
  CHECK_OK(dpu_get_rank_of_type(nullptr, &second));
  CHECK(dpu_get_rank_id(first) == 0 && dpu_get_rank_id(second) == 1);
  CHECK_STATUS(dpu_get_rank_of_type(nullptr, &third), DPU_ERR_ALLOCATION);
  CHECK_OK(dpu_free_rank(first));
  CHECK_STATUS(dpu_free_rank(first), DPU_ERR_INVALID_DPU_SET);
  CHECK_STATUS(dpu_boot_rank(first), DPU_ERR_INVALID_DPU_SET);
  CHECK_OK(dpu_free_rank(second));
  Set both(128);
  CHECK_STATUS(dpu_free_rank(both.rank(0)), DPU_ERR_INVALID_DPU_SET);  // a part of an allocation
}

TEST(RankCalls_BootAndStatusRunTheProgram) {
  pe_machine(1);
  OwnRank own;
  bool done, fault = true;
  CHECK_STATUS(dpu_boot_rank(own.rank), DPU_ERR_NO_PROGRAM_LOADED);
  load(own.set(), "other");
  CHECK_OK(dpu_boot_rank(own.rank));
  wait_for(own.rank, fault);
  CHECK(!fault);
  dpu_t *const dpu = dpu_get(own.rank, 3, 5);
  CHECK_EQ(number(dpu_set_from_dpu(dpu), "output"), 18u);
  put<uint32_t>(dpu_set_from_dpu(dpu), "input", 7);
  CHECK_OK(dpu_boot_dpu(dpu));
  bool running = true;
  while (running) CHECK_OK(dpu_poll_dpu(dpu, &running, &fault));
  CHECK_OK(dpu_status_dpu(dpu, &done, &fault));
  CHECK(done && !fault);
  CHECK_EQ(number(dpu_set_from_dpu(dpu), "output"), 21u);
  CHECK_EQ(number(dpu_set_from_dpu(dpu_get(own.rank, 3, 4)), "output"), 18u);
}

TEST(RankCalls_ResetClearsFaultsAndKeepsMemories) {
  pe_machine(1);
  OwnRank own;
  bool done, fault = false;
  load(own.set(), "counter");
  CHECK_OK(dpuemu_begin_run(own.rank));
  CHECK_OK(dpuemu_end_run(own.rank, true, 9));
  CHECK_OK(dpu_status_rank(own.rank, &done, &fault));
  CHECK(done && fault);
  CHECK_OK(dpu_reset_rank(own.rank));
  CHECK_OK(dpu_status_rank(own.rank, &done, &fault));
  CHECK(done && !fault);
  CHECK_OK(dpu_sync(own.set()));
  CHECK_EQ(number(dpu_set_from_dpu(dpu_get(own.rank, 1, 1)), "clocks"),
           0u);  // the program is still loaded
  CHECK_STATUS(dpu_reset_rank(nullptr), DPU_ERR_INVALID_DPU_SET);
}

TEST(RankCalls_LaunchOnlyTheBootThread) {
  pe_machine(1);
  OwnRank own;
  load(own.set(), "other");
  bool fault = true;
  CHECK_OK(dpu_launch_thread_on_rank(own.rank, DPU_BOOT_THREAD, false));
  wait_for(own.rank, fault);
  dpu_t *const dpu = dpu_get(own.rank, 3, 5);
  CHECK_EQ(number(dpu_set_from_dpu(dpu), "output"), 18u);
  put<uint32_t>(dpu_set_from_dpu(dpu), "input", 7);
  CHECK_OK(dpu_launch_thread_on_dpu(dpu, DPU_BOOT_THREAD, false));
  wait_for(own.rank, fault);
  CHECK_EQ(number(dpu_set_from_dpu(dpu), "output"), 21u);
  CHECK_STATUS(dpu_launch_thread_on_rank(own.rank, 3, false), DPU_ERR_INVALID_THREAD_ID);
  char *const sentence = dpu_error_to_string(DPU_ERR_INVALID_THREAD_ID);
  CHECK(std::strstr(sentence, "starts thread 3") != nullptr);
  std::free(sentence);
  CHECK_STATUS(dpu_launch_thread_on_dpu(dpu, 0, true), DPU_ERR_INVALID_THREAD_ID);
  CHECK_STATUS(dpu_launch_thread_on_dpu(nullptr, 0, false), DPU_ERR_INVALID_DPU_SET);
}

TEST(RankCalls_ResetOfOneDpuKeepsTheFaultsOfTheOthers) {
  pe_machine(1);
  OwnRank own;
  bool done, fault = false;
  dpu_t *const dpu = dpu_get(own.rank, 0, 0), *const other = dpu_get(own.rank, 1, 1);
  CHECK_OK(dpuemu_begin_run(own.rank));
  CHECK_OK(dpuemu_end_run(own.rank, true, 9));
  CHECK_OK(dpu_reset_dpu(dpu));
  CHECK_OK(dpu_status_dpu(other, &done, &fault));
  CHECK(fault);
  CHECK_OK(dpu_reset_dpu(other));
  CHECK_OK(dpu_status_dpu(other, &done, &fault));
  CHECK(!fault);
  CHECK_STATUS(dpu_reset_dpu(nullptr), DPU_ERR_INVALID_DPU_SET);
}

TEST(RankCalls_IterateOverTheEnabledDpusInTheOrderOfForeach) {
  pe_machine(1);
  Set set(61);  // three DPUs of the rank are disabled
  dpu_rank_t *const rank = set.rank(0);
  std::vector<dpu_t *> expected, visited;
  for (dpu_set_t dpu : set.dpus()) expected.push_back(dpu.dpu);
  dpu_t *dpu;
  uint32_t i;
  STRUCT_DPU_FOREACH(rank, dpu) visited.push_back(dpu);
  CHECK(visited == expected);
  STRUCT_DPU_FOREACH(rank, dpu, i) CHECK(dpu == expected[i]);
  CHECK_EQ(i, 61u);
  STRUCT_DPU_FOREACH(nullptr, dpu) CHECK(false);
}

TEST(RankCalls_LockARankForOneThread) {
  pe_machine(2);
  Set set(128);
  dpu_lock_rank(set.rank(0));
  CHECK_EQ(dpu_trylock_rank(set.rank(0)), EBUSY);
  CHECK_EQ(dpu_trylock_rank(set.rank(1)), 0);
  std::atomic<bool> has_lock = false;
  std::thread other([&] {
    dpu_lock_rank(set.rank(0));
    has_lock = true;
    dpu_unlock_rank(set.rank(0));
  });
  CHECK(!has_lock);
  dpu_unlock_rank(set.rank(0));
  other.join();
  CHECK(has_lock);
  dpu_unlock_rank(set.rank(1));
  CHECK_EQ(dpu_trylock_rank(set.rank(0)), 0);
  dpu_unlock_rank(set.rank(0));
}

TEST(RankCalls_DescribeTheRanksOfAProfile) {
  pe_machine(1);
  dpu_description_t description = nullptr;
  CHECK_OK(dpu_get_profile_description(nullptr, &description));
  CHECK_EQ(description->hw.timings.fck_frequency_in_mhz, 350u);
  CHECK_OK(dpu_get_profile_description("nrJobPerRank=64,cycleAccurate=true", &description));
  OwnRank own;
  CHECK(dpu_get_description(own.rank) == description);
  CHECK_STATUS(dpu_get_profile_description("chipId=1", &description), DPU_ERR_INVALID_PROFILE);
  CHECK_STATUS(dpu_get_profile_description("fast", &description), DPU_ERR_INVALID_PROFILE);
  CHECK_STATUS(dpu_get_profile_description(nullptr, nullptr), DPU_ERR_INTERNAL);
  CHECK_EQ(dpu_get_rank_id(own.rank) & DPU_TARGET_MASK, 0u);
}

TEST(RankCalls_CopyWordsOfWram) {
  pe_machine(1);
  OwnRank own;
  load(own.set(), "other");
  dpu_symbol_t before;
  CHECK_OK(dpu_get_symbol(dpu_get_program(dpu_get(own.rank, 0, 0)), "before", &before));
  const uint32_t at = before.address / 4;
  std::vector<dpuword_t> same(10), one(10), got(10);
  for (uint32_t i = 0; i < 10; ++i) same[i] = 1000 + i, one[i] = 2000 + i;
  CHECK_OK(dpu_copy_to_wram_for_rank(own.rank, at, same.data(), 10));
  CHECK_OK(dpu_copy_to_wram_for_dpu(dpu_get(own.rank, 2, 6), at, one.data(), 10));
  for (uint32_t chip : {2u, 5u}) {
    CHECK_OK(dpu_copy_from_wram_for_dpu(dpu_get(own.rank, static_cast<uint8_t>(chip), 6),
                                        got.data(), at, 10));
    CHECK(got == (chip == 2 ? one : same));
    CHECK_EQ(
        number(dpu_set_from_dpu(dpu_get(own.rank, static_cast<uint8_t>(chip), 6)), "before", 9),
        got[9]);
  }
  dpu_transfer_matrix matrix;
  dpu_transfer_matrix_clear_all(own.rank, &matrix);
  dpu_transfer_matrix_add_dpu(dpu_get(own.rank, 7, 0), &matrix, one.data());
  dpu_transfer_matrix_add_dpu(dpu_get(own.rank, 0, 7), &matrix, same.data());
  matrix.offset = at + 20;
  matrix.size = 3;
  CHECK_OK(dpu_copy_to_wram_for_matrix(own.rank, &matrix));
  CHECK_EQ(number(dpu_set_from_dpu(dpu_get(own.rank, 7, 0)), "before", 22), 2002u);
  CHECK_EQ(number(dpu_set_from_dpu(dpu_get(own.rank, 0, 7)), "before", 22), 1002u);
  CHECK_EQ(number(dpu_set_from_dpu(dpu_get(own.rank, 0, 7)), "before", 23), 0u);
  dpu_transfer_matrix_clear_dpu(dpu_get(own.rank, 0, 7), &matrix);
  dpu_transfer_matrix_add_dpu(dpu_get(own.rank, 7, 0), &matrix, got.data());
  CHECK_OK(dpu_copy_from_wram_for_matrix(own.rank, &matrix));
  CHECK(got[0] == 2000 && got[2] == 2002 && got[3] == 1003);  // three words

  dpu_t *const dpu = dpu_get(own.rank, 0, 0);
  for (const auto &[offset, count] :
       {std::pair{0x4000u, 1u}, {0x3FFFu, 2u}, {0u, 0x4001u}, {0x40000000u, 1u}}) {
    CHECK_STATUS(dpu_copy_to_wram_for_dpu(dpu, offset, one.data(), count),
                 DPU_ERR_INVALID_WRAM_ACCESS);
    CHECK_STATUS(dpu_copy_from_wram_for_dpu(dpu, one.data(), offset, count),
                 DPU_ERR_INVALID_WRAM_ACCESS);
    CHECK_STATUS(dpu_copy_to_wram_for_rank(own.rank, offset, one.data(), count),
                 DPU_ERR_INVALID_WRAM_ACCESS);
    matrix.offset = offset;
    matrix.size = count;
    CHECK_STATUS(dpu_copy_to_wram_for_matrix(own.rank, &matrix), DPU_ERR_INVALID_WRAM_ACCESS);
  }
}

TEST(RankCalls_CopyWordsOfWramWhilePesRun) {
  pe_machine(1);
  OwnRank own;
  bool fault = true;
  load(own.set(), "gate");
  dpu_t *const dpu = dpu_get(own.rank, 1, 2);
  const auto word_of = [&](const char *name) {
    dpu_symbol_t symbol;
    CHECK_OK(dpu_get_symbol(dpu_get_program(dpu), name, &symbol));
    return symbol.address / 4;
  };
  const wram_addr_t input = word_of("input"), gate = word_of("gate");
  put<uint32_t>(own.set(), "gate", 0);
  const OpensGate at_end(own);
  CHECK_OK(dpu_boot_rank(own.rank));
  const dpuword_t for_all = 5, for_one = 7, open = 1;
  dpuword_t for_matrix = 9, got = 0;
  CHECK_OK(dpu_copy_to_wram_for_rank(own.rank, input, &for_all, 1));
  CHECK_OK(dpu_copy_to_wram_for_dpu(dpu, input, &for_one, 1));
  CHECK_OK(dpu_copy_from_wram_for_dpu(dpu, &got, input, 1));
  CHECK_EQ(got, 7u);
  dpu_transfer_matrix matrix;
  dpu_transfer_matrix_clear_all(own.rank, &matrix);
  dpu_transfer_matrix_add_dpu(dpu_get(own.rank, 6, 0), &matrix, &for_matrix);
  matrix.offset = input;
  matrix.size = 1;
  CHECK_OK(dpu_copy_to_wram_for_matrix(own.rank, &matrix));
  dpu_transfer_matrix_add_dpu(dpu_get(own.rank, 6, 0), &matrix, &got);
  CHECK_OK(dpu_copy_from_wram_for_matrix(own.rank, &matrix));
  CHECK_EQ(got, 9u);
  uint8_t byte = 0;
  CHECK_STATUS(dpu_copy_from_mram(dpu, &byte, 0, 1), DPU_ERR_MRAM_BUSY);
  CHECK_OK(dpu_copy_to_wram_for_rank(own.rank, gate, &open, 1));
  wait_for(own.rank, fault);
  CHECK(!fault);
  CHECK_EQ(number(dpu_set_from_dpu(dpu), "output"), 14u);
  CHECK_EQ(number(dpu_set_from_dpu(dpu_get(own.rank, 6, 0)), "output"), 18u);
  CHECK_EQ(number(dpu_set_from_dpu(dpu_get(own.rank, 0, 0)), "output"), 10u);
}

TEST(RankCalls_DescribeTheChip) {
  for (const auto &[chip, id, clock, words, mutexes] :
       {std::tuple{DPUEMU_CHIP_V1A, 4, 350u, 16384u, 56u},
        {DPUEMU_CHIP_V1B, 68, 400u, 15872u, 64u}}) {
    pe_machine(1, kLenient, 1, 60, chip);
    OwnRank own;
    const dpu_description_t description = dpu_get_description(own.rank);
    CHECK_EQ(int{description->hw.signature.chip_id}, id);
    CHECK_EQ(description->hw.timings.fck_frequency_in_mhz / description->hw.timings.clock_division,
             clock);
    CHECK_EQ(description->hw.memories.wram_size, words);
    dpuword_t word = 0;
    CHECK_STATUS(dpu_copy_from_wram_for_dpu(dpu_get(own.rank, 0, 0), &word, words, 1),
                 DPU_ERR_INVALID_WRAM_ACCESS);
    CHECK_EQ(description->hw.dpu.nr_of_atomic_bits, mutexes);
    CHECK(description->hw.topology.nr_of_control_interfaces == 8 &&
          description->hw.topology.nr_of_dpus_per_control_interface == 8);
    dpu_set_t set;
    CHECK_STATUS(dpu_alloc(1, id == 4 ? "chipId=68" : "chipId=4", &set), DPU_ERR_INVALID_PROFILE);
  }
  CHECK(dpu_get_description(nullptr) == nullptr);
}

TEST(RankCalls_RefuseIramAndEnergy) {
  pe_machine(1);
  OwnRank own;
  dpuinstruction_t instruction = 0;
  CHECK_STATUS(dpu_copy_from_iram_for_dpu(dpu_get(own.rank, 0, 0), &instruction, 0, 1),
               DPU_ERR_INVALID_IRAM_ACCESS);
  CHECK_STATUS(dpu_copy_to_iram_for_rank(own.rank, 0, &instruction, 1),
               DPU_ERR_INVALID_IRAM_ACCESS);
  CHECK(text(DPU_ERR_INVALID_IRAM_ACCESS).find("x86-64 code") != std::string::npos);
  dpu_probe_t probe;
  CHECK_STATUS(dpu_probe_init("energy_probe", &probe), DPU_ERR_INTERNAL);
  CHECK(text(DPU_ERR_INTERNAL).find("no energy model") != std::string::npos);
}
