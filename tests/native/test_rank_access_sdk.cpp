// Rank access as compiled against an UPMEM SDK, on emulated DIMMs.
#include <pidcomm/pidcomm.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "emulated_regions.h"
#include "interposed_sdk.h"
#include "machine.h"
#include "pidcomm/sdk_error.hpp"
#include "rank_access/rank_access.h"

namespace {

using machine::Bytes;
using machine::DpuSet;
using pidcomm::RegionMapping;

constexpr uint64_t kGib = uint64_t{1} << 30;

/// Replaces the places where rank access looks, for its lifetime.
class RegionsAre {
 public:
  explicit RegionsAre(std::vector<RegionMapping> regions) {
    region_source = [regions] { return regions; };
  }
  ~RegionsAre() { region_source = places_for_regions; }
  RegionsAre(const RegionsAre &) = delete;
  RegionsAre &operator=(const RegionsAre &) = delete;
};

/// The emulated region of a rank.
RegionMapping region_of(struct dpu_rank_t *rank) {
  dpuemu_window_t window;
  DPU_OK_OR_FAIL(dpuemu_window_acquire(rank, &window));
  DPU_OK_OR_FAIL(dpuemu_window_release(rank));
  return {reinterpret_cast<std::byte *>(window.base), window.size_bytes, "region"};
}

/// Memory in which a region could be.
class Decoy {
 public:
  Decoy() : words_(new std::byte[kBytes]) {}
  RegionMapping mapping() const { return {words_.get(), kBytes, "decoy"}; }

 private:
  static constexpr uint64_t kBytes = 8 * kGib;  // the pages that nobody touches are not there
  std::unique_ptr<std::byte[]> words_;
};

/// What opening the rank answers. It is closed again.
struct Answer {
  dpu_error_t status;
  std::string why;
};
Answer open_and_close(struct dpu_rank_t *rank) {
  Answer answer;
  answer.status = pidcomm::rank_access_open(rank, &answer.why);
  if (answer.status == DPU_OK) pidcomm::rank_access_close(rank);
  return answer;
}

/// Rows of the words at some MRAM bytes of all enabled PEs of a set, in the order of DPU_FOREACH.
class MramWords {
 public:
  explicit MramWords(struct dpu_set_t set) : set_(set) {
    for (uint32_t bit = 3; bit < 26; ++bit) offsets_.insert(offsets_.end(), {1u << bit, (1u << bit) - 8});
    offsets_.push_back(static_cast<uint32_t>(machine::kMramBytes - 8));
    DPU_OK_OR_FAIL(dpu_get_nr_dpus(set, &pes_));
  }
  void write(uint64_t seed) const {
    for (uint32_t offset : offsets_) {
      Bytes rows(8 * pes_);
      verify::fill_distinct(seed ^ offset, 8, rows);
      transfer(DPU_XFER_TO_DPU, offset, rows);
    }
  }
  std::vector<Bytes> read() const {
    std::vector<Bytes> all;
    for (uint32_t offset : offsets_) {
      all.emplace_back(8 * pes_);
      transfer(DPU_XFER_FROM_DPU, offset, all.back());
    }
    return all;
  }

 private:
  void transfer(dpu_xfer_t direction, uint32_t offset, Bytes &rows) const {
    struct dpu_set_t set = set_, dpu;
    uint32_t row;
    DPU_FOREACH(set, dpu, row) DPU_OK_OR_FAIL(dpu_prepare_xfer(dpu, rows.data() + 8 * row));
    DPU_OK_OR_FAIL(dpu_push_xfer(set_, direction, DPU_MRAM_HEAP_POINTER_NAME, offset, 8, DPU_XFER_DEFAULT));
  }
  struct dpu_set_t set_;
  uint32_t pes_ = 0;
  std::vector<uint32_t> offsets_;
};

/// What the transfers of a proof are for; each has one per probe.
enum class For { saving, tagging, restoring, restoring_again, reading_back };

/// Docs promise these.
constexpr uint32_t kProbes[] = {0, 8 << 10, 16 << 10, 32 << 10, 2 << 20, 4 << 20, machine::kMramBytes - 8};

/// Stands for the transfers of one proof, for its lifetime.
class ProofIs {
 public:
  using Act = std::function<dpu_error_t(For, uint32_t offset, const interposed::Copy &)>;
  explicit ProofIs(Act act)
      : act_(std::move(act)), copies_([this](const interposed::Copy &copy) {
          const std::size_t number = copy.is_write ? writes_++ : reads_++;
          const auto turn = static_cast<int>(number / std::size(kProbes));
          const For what = copy.is_write ? (turn == 0   ? For::tagging
                                            : turn == 1 ? For::restoring
                                                        : For::restoring_again)
                                         : (turn == 0 ? For::saving : For::reading_back);
          return act_(what, copy.matrix->offset, copy);
        }) {}
  std::size_t transfers() const { return reads_ + writes_; }

 private:
  Act act_;
  std::size_t reads_ = 0, writes_ = 0;
  interposed::CopiesAre copies_;
};

/// Carries out what tags a region, and copies the lines to another place.
ProofIs::Act tags_also_go_to(std::byte *place, const RegionMapping &region, uint32_t but_offset = UINT32_MAX, uint32_t but_bank = 0) {
  return [=, from = region.begin](For what, uint32_t offset, const interposed::Copy &copy) {
    const dpu_error_t status = copy.carry_out();
    for (uint32_t bank = 0; bank < DPUEMU_BANKS_PER_CHIP && what == For::tagging; ++bank) {
      const uint64_t line = dpuemu_region_offset(0, bank, offset);
      if (offset != but_offset || bank != but_bank) std::memcpy(place + line, from + line, 64);
    }
    return status;
  };
}

/// The base of an open rank.
std::byte *base_of(struct dpu_rank_t *rank) {
  std::byte *base = nullptr;
  DPU_OK_OR_FAIL(pidcomm::rank_access_acquire(rank, &base));
  pidcomm::rank_access_release(rank);
  return base;
}

/// The same place, but not the same mapping: what is open there has to be proved again.
RegionMapping mapped_again(RegionMapping region) {
  region.source += ", mapped again";
  return region;
}

constexpr auto kMoment = std::chrono::milliseconds(30);  // in which a thread that should wait would have gone on
constexpr auto kTooLong = std::chrono::seconds(10);      // for a thread that should not

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

/// The first word of every bank, lane 0, as the region shows it. DIMMs would want the line flushed.
uint64_t first_byte_of_bank(std::byte *base, uint32_t bank) { return std::to_integer<uint64_t>(base[dpuemu_region_offset(0, bank, 0)]); }

}  // namespace

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
  CHECK(found[0] == (RegionMapping{reinterpret_cast<std::byte *>(0x7f0000000000), 8 * kGib, "00:05 611 /dev/dax0.0"}));
  CHECK_EQ(found[1].source, "00:05 612 /dev/dax1.0");
  CHECK(found[2] == (RegionMapping{reinterpret_cast<std::byte *>(0x7f0800000000), 0x20000, "00:05 700 /dev/dpu_rank7"}));
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

TEST(WrongMappings_AreRefusedAndMramIsAsItWas) {
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
    CHECK(contains(answer.why, "of 3 mappings that may be its region none shows what the SDK wrote to the PEs"));
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
    CHECK(contains(answer.why, "several mappings show what the SDK wrote"));
    CHECK(words.read() == before);
  }
}

TEST(NoMappingLargeEnough_IsRefusedBeforeAnyTransfer) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const RegionMapping own = region_of(set.rank(0));
  for (const std::vector<RegionMapping> &all : {std::vector<RegionMapping>{}, {{own.begin, 0x20000, "00:05 700 /dev/dpu_rank0"}}}) {
    const RegionsAre regions(all);
    hypercube_manager *manager = nullptr;
    const uint32_t axis_len[] = {8, 8};
    CHECK_EQ(pidcomm_hypercube_create(set.get(), 2, axis_len, &manager), +PIDCOMM_ERR_DEVICE);
    CHECK(manager == nullptr);
    const std::string sentence = pidcomm_last_error();
    CHECK(contains(sentence,
                   "finding the memory of rank 0 of the set: the process has no readable and writable shared mapping of /dev/dax*"));
    CHECK(contains(sentence, all.empty() ? "mappings of such devices: none" : "131072 bytes at"));
    CHECK(contains(sentence, "regionMode=perf"));
  }
}

TEST(Hypercube_ThatCannotOpenItsSecondRankLeavesTheFirstUsable) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const uint32_t axis_len[] = {8, 16};
  hypercube_manager *manager = nullptr;
  {
    const RegionsAre regions({region_of(set.rank(0))});
    CHECK_EQ(pidcomm_hypercube_create(set.get(), 2, axis_len, &manager), +PIDCOMM_ERR_DEVICE);
    CHECK(contains(pidcomm_last_error(), "finding the memory of rank 1 of the set"));
  }
  CHECK_EQ(pidcomm_hypercube_create(set.get(), 2, axis_len, &manager), +PIDCOMM_OK);
  pidcomm_hypercube_destroy(manager);
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

TEST(DisabledPes_AreNotTouchedAndDoNotHinder) {
  machine::power_up(1, {{0, 0, 0}, {0, 7, 3}, {0, 2, 7}});
  const DpuSet set = DpuSet::of_ranks(1);
  const RegionMapping own = region_of(set.rank(0));
  constexpr std::byte kMark{0xA5};
  std::vector<std::byte *> marked;
  for (const auto &[chip, bank] : {std::pair{0u, 0u}, {7u, 3u}, {2u, 7u}})
    for (uint64_t offset : {uint64_t{0}, uint64_t{1} << 13, uint64_t{1} << 21, uint64_t{DPUEMU_MRAM_BYTES - 8}})
      for (uint64_t byte = 0; byte < 8; ++byte) marked.push_back(own.begin + dpuemu_region_offset(chip, bank, offset + byte));
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
  CHECK_EQ(pidcomm_alltoall_ex(cube.get(), "10", 64, 0, 64, PIDCOMM_INT32, &options), +PIDCOMM_ERR_OPTION);
  CHECK(contains(pidcomm_last_error(), "coherence none is for emulated DIMMs"));
  options.coherence = PIDCOMM_COHERENCE_DEFAULT;
  CHECK_EQ(pidcomm_alltoall_ex(cube.get(), "10", 64, 0, 64, PIDCOMM_INT32, &options), +PIDCOMM_OK);
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
  DPU_OK_OR_FAIL(dpu_push_xfer(set.get(), DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 64, 8, DPU_XFER_DEFAULT));
  DPU_FOREACH(dpus, dpu, row) DPU_OK_OR_FAIL(dpu_prepare_xfer(dpu, back.data() + 8 * row));
  DPU_OK_OR_FAIL(dpu_push_xfer(set.get(), DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME, 64, 8, DPU_XFER_DEFAULT));
  CHECK(back == rows);
}

TEST(RankAllocatedAgain_IsFoundWhereItIsNow) {
  machine::power_up(2);
  std::byte *bases[2];
  for (int turn = 0; turn < 2; ++turn) {
    // The second time a set of its own holds the first rank, so that another one is taken.
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
  CHECK_EQ(pidcomm::rank_access_acquire(set.rank(0), &base), DPU_ERR_INTERNAL);  // nobody knows where it is
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
  strict.strict = 1;  // who touches what the PEs own ends the process
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

TEST(PesThatRun_AreWaitedFor) {
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

TEST(PeInFault_IsRefusedByOpenAndAcquire) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  std::string why;
  CHECK_EQ(pidcomm::rank_access_open(set.rank(0), &why), DPU_OK);
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(0)));
  DPU_OK_OR_FAIL(dpuemu_end_run(set.rank(0), true, 5));
  for (const bool is_told_to_others : {false, true}) {
    std::optional<interposed::FaultsHaveBeenReturned> before;
    if (is_told_to_others) before.emplace();
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
    hypercube_manager *manager = nullptr;
    const uint32_t axis_len[] = {8, 8};
    CHECK_EQ(pidcomm_hypercube_create(set.get(), 2, axis_len, &manager), +PIDCOMM_ERR_DEVICE);
    CHECK(contains(pidcomm_last_error(), "finding the memory of rank 0 of the set; rank 0 lane 3 bank 2 (PE 19) is in fault: "));
  };
  check();
  const interposed::FaultsHaveBeenReturned before;
  check();
  CHECK(before.count() > 0);
}

TEST(TagThatCannotBeWritten_IsAnErrorAndMramIsAsItWas) {
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

TEST(PesThatAreLaunchedWithinAProof_AreWaitedForAndTheWordsRestored) {
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

TEST(WordsThatCannotBeRestored_AreNamedWithTheWordsOfTheSdk) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const std::string timeout = pidcomm::sdk_error_text(DPU_ERR_TIMEOUT);
  const auto check = [&](const ProofIs::Act &act, const std::string &offsets, const std::string &reason) {
    const ProofIs proof(act);
    hypercube_manager *manager = nullptr;
    const uint32_t axis_len[] = {8, 8};
    CHECK_EQ(pidcomm_hypercube_create(set.get(), 2, axis_len, &manager), +PIDCOMM_ERR_DEVICE);
    CHECK_EQ(std::string(pidcomm_last_error()), "finding the memory of rank 0 of the set: the words at MRAM bytes " + offsets +
                                                    " of its PEs could not be restored and are undefined now: " + reason);
  };
  const auto is_restoring = [](For what) { return what == For::restoring || what == For::restoring_again; };
  check(
      [&](For what, uint32_t offset, const interposed::Copy &copy) {
        return is_restoring(what) && (offset == 16384 || offset == 67108856) ? DPU_ERR_TIMEOUT : copy.carry_out();
      },
      "16384 67108856", timeout);
  check(  // what failed first is told, and tags that were never written need no mention
      [&](For what, uint32_t offset, const interposed::Copy &copy) {
        if (what == For::tagging && offset >= 16384) return DPU_ERR_TIMEOUT;
        return is_restoring(what) ? DPU_ERR_MRAM_BUSY : copy.carry_out();
      },
      "0 8192", timeout);
  check([&](For what, uint32_t offset,
            const interposed::Copy &copy) { return what == For::reading_back && offset == 32768 ? DPU_ERR_TIMEOUT : copy.carry_out(); },
        "32768", timeout);
  check(
      [&](For what, uint32_t offset, const interposed::Copy &copy) {
        const dpu_error_t status = copy.carry_out();
        if (what == For::reading_back && offset == 2097152) *static_cast<std::byte *>(copy.matrix->ptr[63]) ^= std::byte{1};
        return status;
      },
      "2097152", "what the SDK wrote there reads back as something else");
}

TEST(MappingThatShowsAllTagsButOneLine_IsRefused) {
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
      CHECK(contains(answer.why, "of 1 mappings that may be its region none shows what the SDK wrote to the PEs"));
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
  CHECK_EQ(answer.why, "it has no enabled PE to prove its mapping by");
  CHECK_EQ(proof.transfers(), 0u);
}

TEST(AcquireThatFails_KeepsNoWindow) {
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
  std::future<Answer> proof = std::async(std::launch::async, [&] { return open_and_close(set.rank(0)); });  // waits for releases
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
  std::future<Answer> proof = std::async(std::launch::async, [&] { return open_and_close(set.rank(0)); });
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
  std::future<Answer> proof = std::async(std::launch::async, [&] { return open_and_close(set.rank(0)); });
  const bool has_begun = tags.get_future().wait_for(kTooLong) == std::future_status::ready;
  std::future<std::byte *> base = std::async(std::launch::async, [&] { return base_of(set.rank(0)); });
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
        for (uint32_t r : {t % 2, 1 - t % 2}) is_good = pidcomm::rank_access_open(set.rank(r), &why) == DPU_OK && is_good;
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
