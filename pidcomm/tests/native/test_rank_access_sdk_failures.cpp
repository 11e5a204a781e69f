// The SDK's rank access when the SDK fails, several mappings match, or threads wait for each other.
#include <atomic>
#include <future>
#include <thread>

#include "pidcomm/sdk_error.hpp"
#include "rank_access_cases.h"

namespace {

using namespace rank_access_cases;

TEST(TagThatCannotBeWritten_IsAnErrorAndMramIsUnchanged) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const MramWords words(set.get());
  words.write(21);
  const std::vector<Bytes> before = words.read();
  for (const uint32_t failing : kProbes) {
    const ProofIs proof([&](For what, uint32_t offset, const interposed::Copy &copy) {
      return what == For::tagging && offset == failing ? DPU_ERR_TIMEOUT : copy.carry_out();
    });
    const Answer answer = open_and_close(set.rank(0));
    CHECK_EQ(answer.status, DPU_ERR_TIMEOUT);
    CHECK_EQ(answer.why, "");
    CHECK(words.read() == before);
  }
}

TEST(WordsThatCannotBeReadAtFirst_AreNotTagged) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const ProofIs proof([](For what, uint32_t offset, const interposed::Copy &copy) {
    CHECK(!copy.is_write);
    return what == For::saving && offset == kProbes[3] ? DPU_ERR_TIMEOUT : copy.carry_out();
  });
  const Answer answer = open_and_close(set.rank(0));
  CHECK_EQ(answer.status, DPU_ERR_TIMEOUT);
  CHECK_EQ(answer.why, "");
}

TEST(PesLaunchedDuringAProof_AreWaitedForAndTheWordsAreRestored) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const MramWords words(set.get());
  words.write(22);
  const std::vector<Bytes> before = words.read();
  for (const For launched : {For::tagging, For::restoring}) {
    std::promise<void> refused;
    std::jthread pes;
    const ProofIs proof([&](For what, uint32_t offset, const interposed::Copy &copy) {
      if (what == launched && offset == kProbes[4]) {
        DPU_OK_OR_FAIL(dpuemu_begin_run(copy.rank));
        pes = std::jthread([&] {
          refused.get_future().wait_for(kTooLong);
          std::this_thread::sleep_for(kMoment);
          dpuemu_end_run(set.rank(0), false, 0);
        });
      }
      const dpu_error_t status = copy.carry_out();
      if (what == For::restoring && offset == std::end(kProbes)[-1]) refused.set_value();
      return status;
    });
    const Answer answer = open_and_close(set.rank(0));
    CHECK_EQ(answer.status, launched == For::restoring ? DPU_OK : DPU_ERR_MRAM_BUSY);
    CHECK_EQ(answer.why, "");
    CHECK(words.read() == before);
  }
}

TEST(WordsThatCannotBeRestored_AreNamedWithTheSdksError) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const std::string timeout = pidcomm::sdk_error_text(DPU_ERR_TIMEOUT);
  const auto check = [&](const ProofIs::Act &act, const std::string &offsets,
                         const std::string &reason) {
    const ProofIs proof(act);
    pidcomm_hypercube *cube = nullptr;
    const uint32_t axis_len[] = {8, 8};
    CHECK_EQ(pidcomm_hypercube_create(set.get(), 2, axis_len, &cube), +PIDCOMM_ERR_DEVICE);
    CHECK_EQ(std::string(pidcomm_last_error()),
             "finding the memory of rank 0 of the set: the words at MRAM bytes " + offsets +
                 " of its PEs could not be restored and are undefined now: " + reason);
  };
  const auto is_restoring = [](For what) {
    return what == For::restoring || what == For::restoring_again;
  };
  check(
      [&](For what, uint32_t offset, const interposed::Copy &copy) {
        return is_restoring(what) && (offset == 16384 || offset == 67108856) ? DPU_ERR_TIMEOUT
                                                                             : copy.carry_out();
      },
      "16384 67108856", timeout);
  check(  // the error names the first failure, and no tag that was never written
      [&](For what, uint32_t offset, const interposed::Copy &copy) {
        if (what == For::tagging && offset >= 16384) return DPU_ERR_TIMEOUT;
        return is_restoring(what) ? DPU_ERR_MRAM_BUSY : copy.carry_out();
      },
      "0 8192", timeout);
  check(
      [&](For what, uint32_t offset, const interposed::Copy &copy) {
        return what == For::reading_back && offset == 32768 ? DPU_ERR_TIMEOUT : copy.carry_out();
      },
      "32768", timeout);
  check(
      [&](For what, uint32_t offset, const interposed::Copy &copy) {
        const dpu_error_t status = copy.carry_out();
        if (what == For::reading_back && offset == 2097152)
          *static_cast<std::byte *>(copy.matrix->ptr[63]) ^= std::byte{1};
        return status;
      },
      "2097152", "the words read back differ from those that the SDK wrote");
}

TEST(MappingThatShowsAllTagsExceptOneLine_IsRefused) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const RegionMapping own = region_of(set.rank(0));
  const Decoy decoy;
  const RegionsAre regions({decoy.mapping()});
  for (const uint32_t offset : kProbes)
    for (uint32_t bank = 0; bank < DPUEMU_BANKS_PER_CHIP; ++bank) {
      const ProofIs proof(tags_also_go_to(decoy.mapping().begin, own, offset, bank));
      const Answer answer = open_and_close(set.rank(0));
      CHECK_EQ(answer.status, DPU_ERR_DRIVER);
      CHECK(contains(answer.why,
                     "none of 1 mappings that may be its region shows the words that the SDK wrote "
                     "to the PEs"));
    }
  const ProofIs proof(tags_also_go_to(decoy.mapping().begin, own));
  CHECK_EQ(open_and_close(set.rank(0)).status, DPU_OK);
}

TEST(MappingHeldByAnotherRank_IsTriedOnlyIfNoOtherMatches) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const RegionMapping first = region_of(set.rank(0)), second = region_of(set.rank(1));
  const Decoy decoy;
  const RegionMapping held = decoy.mapping();
  std::string why;
  {
    const RegionsAre regions({held});
    const ProofIs proof(tags_also_go_to(held.begin, second));
    CHECK_EQ(pidcomm::rank_access_open(set.rank(1), &why), DPU_OK);
  }
  for (const std::vector<RegionMapping> &all : {std::vector{held, first}, std::vector{held}}) {
    const RegionsAre regions(all);
    {
      const ProofIs proof(tags_also_go_to(held.begin, first));
      CHECK_EQ(pidcomm::rank_access_open(set.rank(0), &why), DPU_OK);
    }
    CHECK(base_of(set.rank(0)) == all.back().begin);
    pidcomm::rank_access_close(set.rank(0));
  }
  pidcomm::rank_access_close(set.rank(1));
}

TEST(RankWithoutEnabledPes_IsRefusedBeforeAnyTransfer) {
  std::vector<machine::Place> all;
  for (uint32_t chip = 0; chip < DPUEMU_CHIPS_PER_RANK; ++chip)
    for (uint32_t bank = 0; bank < DPUEMU_BANKS_PER_CHIP; ++bank) all.push_back({0, chip, bank});
  machine::power_up(1, all);
  const DpuSet set = DpuSet::of_ranks(1);
  const RegionsAre regions({region_of(set.rank(0))});
  const ProofIs proof([](For, uint32_t, const interposed::Copy &copy) { return copy.carry_out(); });
  const Answer answer = open_and_close(set.rank(0));
  CHECK_EQ(answer.status, DPU_ERR_DRIVER);
  CHECK_EQ(answer.why, "it has no enabled PE, so its mapping cannot be found");
  CHECK_EQ(proof.transfers(), 0u);
}

TEST(FailedAcquire_KeepsNoWindow) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const RegionMapping own = region_of(set.rank(0));
  std::string why;
  CHECK_EQ(pidcomm::rank_access_open(set.rank(0), &why), DPU_OK);
  {
    const interposed::CopiesAre failing([](const interposed::Copy &) { return DPU_ERR_TIMEOUT; });
    std::byte *base = nullptr;
    CHECK_EQ(pidcomm::rank_access_acquire(set.rank(0), &base), DPU_ERR_TIMEOUT);
  }
  const RegionsAre regions({mapped_again(own)});
  std::future<Answer> proof = std::async(
      std::launch::async, [&] { return open_and_close(set.rank(0)); });  // waits for releases
  const bool is_over = proof.wait_for(kTooLong) == std::future_status::ready;
  if (!is_over) pidcomm::rank_access_release(set.rank(0));
  CHECK_EQ(proof.get().status, DPU_OK);
  CHECK(is_over);
  pidcomm::rank_access_close(set.rank(0));
}

TEST(Proof_WaitsForWindowsOfItsRank) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const RegionMapping own = region_of(set.rank(0));
  std::string why;
  CHECK_EQ(pidcomm::rank_access_open(set.rank(0), &why), DPU_OK);
  std::byte *base = nullptr;
  CHECK_EQ(pidcomm::rank_access_acquire(set.rank(0), &base), DPU_OK);
  std::atomic<bool> is_released{false}, is_disturbed{false};
  std::promise<void> looks;
  const RegionsAre regions({mapped_again(own)});
  region_source = [&, source = region_source] {
    looks.set_value();
    return source();
  };
  const interposed::CopiesAre watched([&](const interposed::Copy &copy) {
    if (!is_released) is_disturbed = true;
    return copy.carry_out();
  });
  std::future<Answer> proof =
      std::async(std::launch::async, [&] { return open_and_close(set.rank(0)); });
  const bool has_begun = looks.get_future().wait_for(kTooLong) == std::future_status::ready;
  std::this_thread::sleep_for(kMoment);
  is_released = true;
  pidcomm::rank_access_release(set.rank(0));
  CHECK_EQ(proof.get().status, DPU_OK);
  CHECK(has_begun);
  CHECK(!is_disturbed);
  pidcomm::rank_access_close(set.rank(0));
}

TEST(Acquire_WaitsForAProofOfItsRank) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const RegionMapping own = region_of(set.rank(0));
  std::string why;
  CHECK_EQ(pidcomm::rank_access_open(set.rank(0), &why), DPU_OK);
  const RegionsAre regions({mapped_again(own)});
  std::promise<void> tags, goes_on;
  std::atomic<bool> has_tagged{false};
  const interposed::CopiesAre halted([&](const interposed::Copy &copy) {
    if (copy.is_write && !has_tagged.exchange(true)) {
      tags.set_value();
      goes_on.get_future().wait();
    }
    return copy.carry_out();
  });
  std::future<Answer> proof =
      std::async(std::launch::async, [&] { return open_and_close(set.rank(0)); });
  const bool has_begun = tags.get_future().wait_for(kTooLong) == std::future_status::ready;
  std::future<std::byte *> base =
      std::async(std::launch::async, [&] { return base_of(set.rank(0)); });
  const bool has_waited = base.wait_for(kMoment) == std::future_status::timeout;
  goes_on.set_value();
  CHECK_EQ(proof.get().status, DPU_OK);
  CHECK(base.get() == own.begin);
  CHECK(has_begun);
  CHECK(has_waited);
  pidcomm::rank_access_close(set.rank(0));
}

TEST(FreedRank_IsRefused) {
  machine::power_up(1);
  DpuSet set = DpuSet::of_ranks(1);
  struct dpu_rank_t *const rank = set.rank(0);
  std::string why;
  CHECK_EQ(pidcomm::rank_access_open(rank, &why), DPU_OK);
  set.free();
  std::byte *base = nullptr;
  CHECK_EQ(pidcomm::rank_access_acquire(rank, &base), DPU_ERR_INVALID_DPU_SET);
  pidcomm::rank_access_close(rank);
  CHECK_EQ(open_and_close(rank).status, DPU_ERR_INVALID_DPU_SET);
  CHECK_EQ(pidcomm::rank_access_acquire(rank, &base), DPU_ERR_INTERNAL);
}

TEST(OpenAndWindowsOfManyThreads_WaitForEachOther) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const MramWords words(set.get());
  words.write(5);
  const std::vector<Bytes> before = words.read();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t turn = 0; turn < 5; ++turn) {
        std::string why;
        bool is_good = true;
        for (uint32_t r : {t % 2, 1 - t % 2})
          is_good = pidcomm::rank_access_open(set.rank(r), &why) == DPU_OK && is_good;
        for (uint32_t r : {t % 2, 1 - t % 2}) {
          std::byte *base = nullptr;
          is_good = pidcomm::rank_access_acquire(set.rank(r), &base) == DPU_OK && is_good;
        }
        for (uint32_t r : {0u, 1u}) pidcomm::rank_access_release(set.rank(r));
        for (uint32_t r : {0u, 1u}) pidcomm::rank_access_close(set.rank(r));
        failures += !is_good;
      }
    });
  for (std::thread &thread : threads) thread.join();
  CHECK_EQ(failures.load(), 0);
  CHECK(words.read() == before);
}

}  // namespace
