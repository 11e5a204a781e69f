// The SDK's rank access on emulated DIMMs.
#include <sstream>
#include <thread>

#include "rank_access_cases.h"

namespace {

using namespace rank_access_cases;

TEST(Mappings_AreSharedWritableDevicesOfTheUpmemDriver) {
  std::istringstream maps(
      "555500000000-555500001000 r--p 00000000 fe:00 12 /usr/bin/program\n"
      "7f0000000000-7f0200000000 rw-s 00000000 00:05 611 /dev/dax0.0\n"
      "7f0200000000-7f0400000000 rw-s 00000000 00:05 612 /dev/dax1.0\n"
      "7f0400000000-7f0600000000 r--s 00000000 00:05 613 /dev/dax2.0\n"
      "7f0600000000-7f0800000000 rw-p 00000000 00:05 614 /dev/dax3.0\n"
      "7f0800000000-7f0800020000 rw-s 00000000 00:05 700 /dev/dpu_rank7\n"
      "7f0900000000-7f0b00000000 rw-s 00000000 00:01 9 /dev/shm/pool\n"
      "7f0b00000000-7f0d00000000 rw-p 00000000 00:00 0 \n"
      "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]\n");
  const std::vector<RegionMapping> found = pidcomm::parse_region_mappings(maps);
  CHECK_EQ(found.size(), 3u);
  CHECK(found[0] == (RegionMapping{reinterpret_cast<std::byte *>(0x7f0000000000), 8 * kGib,
                                   "00:05 611 /dev/dax0.0"}));
  CHECK_EQ(found[1].source, "00:05 612 /dev/dax1.0");
  CHECK(found[2] == (RegionMapping{reinterpret_cast<std::byte *>(0x7f0800000000), 0x20000,
                                   "00:05 700 /dev/dpu_rank7"}));
}

TEST(Region_IsFoundAmongAllAnonymousMemoryOfTheProcess) {
  machine::power_up(3);
  const DpuSet set = DpuSet::of_ranks(3);
  std::vector<RegionMapping> regions;
  for (uint32_t r = 0; r < 3; ++r) regions.push_back(region_of(set.rank(r)));
  const Decoy decoy;
  std::vector<RegionMapping> places = places_for_regions();
  places.insert(places.begin(), decoy.mapping());
  const RegionsAre more(places);
  for (uint32_t r = 0; r < 3; ++r) {
    std::string why;
    CHECK_EQ(pidcomm::rank_access_open(set.rank(r), &why), DPU_OK);
    CHECK_EQ(why, "");
    std::byte *base = nullptr;
    CHECK_EQ(pidcomm::rank_access_acquire(set.rank(r), &base), DPU_OK);
    CHECK(base == regions[r].begin);
    pidcomm::rank_access_release(set.rank(r));
    pidcomm::rank_access_close(set.rank(r));
  }
}

TEST(WrongMappings_AreRefusedAndMramIsUnchanged) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const RegionMapping own = region_of(set.rank(0)), other = region_of(set.rank(1));
  const Decoy decoy;
  const RegionMapping shifted{own.begin + 64, own.bytes, "shifted"};
  const MramWords words(set.get());
  words.write(11);
  const std::vector<Bytes> before = words.read();
  {
    const RegionsAre regions({decoy.mapping(), other, shifted});
    const Answer answer = open_and_close(set.rank(0));
    CHECK_EQ(answer.status, DPU_ERR_DRIVER);
    CHECK(contains(
        answer.why,
        "none of 3 mappings that may be its region shows the words that the SDK wrote to the PEs"));
    CHECK(contains(answer.why, "decoy"));
    CHECK(contains(answer.why, "regionMode=perf"));
    CHECK(words.read() == before);
  }
  {
    const RegionsAre regions({decoy.mapping(), other, shifted, own});
    CHECK_EQ(open_and_close(set.rank(0)).status, DPU_OK);
    CHECK(words.read() == before);
  }
  {
    const RegionsAre regions({own, other, own});
    const Answer answer = open_and_close(set.rank(0));
    CHECK_EQ(answer.status, DPU_ERR_DRIVER);
    CHECK(contains(answer.why, "several mappings show the words that the SDK wrote"));
    CHECK(words.read() == before);
  }
}

TEST(RankWithoutALargeEnoughMapping_IsRefusedBeforeAnyTransfer) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const RegionMapping own = region_of(set.rank(0));
  for (const std::vector<RegionMapping> &all :
       {std::vector<RegionMapping>{}, {{own.begin, 0x20000, "00:05 700 /dev/dpu_rank0"}}}) {
    const RegionsAre regions(all);
    pidcomm_hypercube *cube = nullptr;
    const uint32_t axis_len[] = {8, 8};
    CHECK_EQ(pidcomm_hypercube_create(set.get(), 2, axis_len, &cube), +PIDCOMM_ERR_DEVICE);
    CHECK(cube == nullptr);
    const std::string sentence = pidcomm_last_error();
    CHECK(contains(sentence,
                   "finding the memory of rank 0 of the set: the process has no readable and "
                   "writable shared mapping of /dev/dax*"));
    CHECK(contains(sentence, all.empty() ? "mappings of such devices: none" : "131072 bytes at"));
    CHECK(contains(sentence, "regionMode=perf"));
  }
}

TEST(Hypercube_ThatCannotOpenItsSecondRankLeavesTheFirstUsable) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const uint32_t axis_len[] = {8, 16};
  pidcomm_hypercube *cube = nullptr;
  {
    const RegionsAre regions({region_of(set.rank(0))});
    CHECK_EQ(pidcomm_hypercube_create(set.get(), 2, axis_len, &cube), +PIDCOMM_ERR_DEVICE);
    CHECK(contains(pidcomm_last_error(), "finding the memory of rank 1 of the set"));
  }
  CHECK_EQ(pidcomm_hypercube_create(set.get(), 2, axis_len, &cube), +PIDCOMM_OK);
  pidcomm_hypercube_destroy(cube);
}

TEST(Opening_ChangesNoWordOfMram) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const MramWords words(set.get());
  words.write(7);
  const std::vector<Bytes> before = words.read();
  const machine::Hypercube cube(set, {8, 8});
  CHECK(words.read() == before);
}

TEST(DisabledPes_AreNotTouchedAndPreventNothing) {
  machine::power_up(1, {{0, 0, 0}, {0, 7, 3}, {0, 2, 7}});
  const DpuSet set = DpuSet::of_ranks(1);
  const RegionMapping own = region_of(set.rank(0));
  constexpr std::byte kMark{0xA5};
  std::vector<std::byte *> marked;
  for (const auto &[chip, bank] : {std::pair{0u, 0u}, {7u, 3u}, {2u, 7u}})
    for (uint64_t offset :
         {uint64_t{0}, uint64_t{1} << 13, uint64_t{1} << 21, uint64_t{DPUEMU_MRAM_BYTES - 8}})
      for (uint64_t byte = 0; byte < 8; ++byte)
        marked.push_back(own.begin + dpuemu_region_offset(chip, bank, offset + byte));
  for (std::byte *at : marked) *at = kMark;
  CHECK_EQ(open_and_close(set.rank(0)).status, DPU_OK);
  for (const std::byte *at : marked) CHECK(*at == kMark);
}

TEST(PolicyIsHardware_AndNoneIsRefused) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const machine::Hypercube cube(set, {8, 8});
  pidcomm_options options{};
  options.coherence = PIDCOMM_COHERENCE_NONE;
  CHECK_EQ(machine::run(cube, pidcomm::request::alltoall("10", 64, 0, 64, PIDCOMM_INT32), options),
           +PIDCOMM_ERR_OPTION);
  CHECK(contains(pidcomm_last_error(), "coherence none is for emulated DIMMs"));
  options.coherence = PIDCOMM_COHERENCE_DEFAULT;
  CHECK_EQ(machine::run(cube, pidcomm::request::alltoall("10", 64, 0, 64, PIDCOMM_INT32), options),
           +PIDCOMM_OK);
}

TEST(PreparedBuffersOfTheCaller_StayPrepared) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Bytes rows(64 * 8), back(64 * 8);
  verify::fill_distinct(3, 8, rows);
  struct dpu_set_t dpus = set.get(), dpu;
  uint32_t row;
  DPU_FOREACH(dpus, dpu, row) DPU_OK_OR_FAIL(dpu_prepare_xfer(dpu, rows.data() + 8 * row));
  const machine::Hypercube cube(set, {64});
  Bytes other(64 * 64);
  CHECK_EQ(pidcomm_read(cube.get(), 4096, 64, other.data()), +PIDCOMM_OK);
  DPU_OK_OR_FAIL(dpu_push_xfer(set.get(), DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 64, 8,
                               DPU_XFER_DEFAULT));
  DPU_FOREACH(dpus, dpu, row) DPU_OK_OR_FAIL(dpu_prepare_xfer(dpu, back.data() + 8 * row));
  DPU_OK_OR_FAIL(dpu_push_xfer(set.get(), DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME, 64, 8,
                               DPU_XFER_DEFAULT));
  CHECK(back == rows);
}

TEST(RankAllocatedAgain_IsFoundAtItsNewAddress) {
  machine::power_up(2);
  std::byte *bases[2];
  for (int turn = 0; turn < 2; ++turn) {
    // The second time, another set holds the first rank, so the allocation takes the second rank.
    const DpuSet first = DpuSet::of_ranks(1);
    const DpuSet second = turn == 1 ? DpuSet::of_ranks(1) : DpuSet::of_dpus(8);
    const DpuSet &set = turn == 1 ? second : first;
    const RegionMapping own = region_of(set.rank(0));
    std::string why;
    CHECK_EQ(pidcomm::rank_access_open(set.rank(0), &why), DPU_OK);
    std::byte *base = nullptr;
    CHECK_EQ(pidcomm::rank_access_acquire(set.rank(0), &base), DPU_OK);
    pidcomm::rank_access_release(set.rank(0));
    pidcomm::rank_access_close(set.rank(0));
    CHECK(base == own.begin);
    bases[turn] = base;
  }
  CHECK(bases[0] != bases[1]);
}

TEST(RankThatMovedWhileOpen_IsProvedAgainByTheNextOpen) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const RegionMapping own = region_of(set.rank(0));
  std::string why;
  {
    const RegionsAre regions({{own.begin, own.bytes, "as it was"}});
    CHECK_EQ(pidcomm::rank_access_open(set.rank(0), &why), DPU_OK);
  }
  {
    const Decoy decoy;
    const RegionsAre regions({decoy.mapping()});  // the old mapping is gone
    CHECK_EQ(pidcomm::rank_access_open(set.rank(0), &why), DPU_ERR_DRIVER);
  }
  std::byte *base = nullptr;
  CHECK_EQ(pidcomm::rank_access_acquire(set.rank(0), &base),
           DPU_ERR_INTERNAL);  // its address is unknown
  CHECK_EQ(pidcomm::rank_access_open(set.rank(0), &why), DPU_OK);
  CHECK_EQ(pidcomm::rank_access_acquire(set.rank(0), &base), DPU_OK);
  CHECK(base == own.begin);
  pidcomm::rank_access_release(set.rank(0));
  pidcomm::rank_access_close(set.rank(0));
  pidcomm::rank_access_close(set.rank(0));
}

TEST(HostOwnsTheMramAfterEveryAcquireThatFollowsARun) {
  machine::power_up(1);
  dpuemu_machine_t strict{};
  strict.ranks = 1;
  strict.strict = 1;  // a host access to MRAM that the PEs own ends the process
  DPU_OK_OR_FAIL(dpuemu_configure(&strict, nullptr, 0));
  {
    const DpuSet set = DpuSet::of_ranks(1);
    const machine::Hypercube cube(set, {8, 8});
    Bytes rows(64 * 64), back(64 * 64);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(0)));
      DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(0), false, 0));
      verify::fill_distinct(seed, 64, rows);
      CHECK_EQ(pidcomm_write(cube.get(), 0, 64, rows.data()), +PIDCOMM_OK);
      CHECK_EQ(pidcomm_read(cube.get(), 0, 64, back.data()), +PIDCOMM_OK);
      CHECK(back == rows);
      CHECK_EQ(first_byte_of_bank(region_of(set.rank(0)).begin, 0), rows[0]);
    }
  }
  machine::power_up(1);  // not strict any more
}

TEST(Open_WaitsForRunningPes) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(0)));
  std::thread pes([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(0), false, 0));
  });
  const Answer answer = open_and_close(set.rank(0));
  pes.join();
  CHECK_EQ(answer.status, DPU_OK);
}

TEST(OpenAndAcquire_RefuseAPeInFault) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  std::string why;
  CHECK_EQ(pidcomm::rank_access_open(set.rank(0), &why), DPU_OK);
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(0)));
  DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(0), true, 5));
  for (const bool is_returned_before : {false, true}) {
    std::optional<interposed::FaultsHaveBeenReturned> before;
    if (is_returned_before) before.emplace();
    std::byte *base = nullptr;
    CHECK_EQ(pidcomm::rank_access_acquire(set.rank(0), &base), DPU_ERR_DPU_FAULT);
    if (before) CHECK(before->count() > 0);
  }
  pidcomm::rank_access_close(set.rank(0));
  CHECK_EQ(open_and_close(set.rank(0)).status, DPU_ERR_DPU_FAULT);
  const interposed::FaultsHaveBeenReturned before;
  CHECK_EQ(open_and_close(set.rank(0)).status, DPU_ERR_DPU_FAULT);
  CHECK(before.count() > 0);
}

TEST(Hypercube_NamesThePesInFault) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(0)));
  DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(0), true, 3 * 8 + 2));
  const auto check = [&] {
    pidcomm_hypercube *cube = nullptr;
    const uint32_t axis_len[] = {8, 8};
    CHECK_EQ(pidcomm_hypercube_create(set.get(), 2, axis_len, &cube), +PIDCOMM_ERR_DEVICE);
    CHECK(contains(
        pidcomm_last_error(),
        "finding the memory of rank 0 of the set; rank 0 chip 3 bank 2 (PE 19) is in fault: "));
  };
  check();
  const interposed::FaultsHaveBeenReturned before;
  check();
  CHECK(before.count() > 0);
}

}  // namespace
