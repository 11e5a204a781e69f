// What goes wrong in PE programs, or would if the emulator were a little different from a DPU. First what the hardware does silently, then
// faults, then what published programs rely on.
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

#include "program_fixture.h"
#include "programs/fault_kind.h"

using namespace fixture;

namespace {

#include "programs/shared_struct.h"

constexpr uint32_t kMram = 0x08000000, kMramBytes = 64 << 20;
constexpr int kStrict = 1, kLenient = 2;

struct DmaCall {
  uint32_t is_write, mram, wram, bytes;
};

std::string rank_id(dpu_set_t dpu) { return std::to_string(dpu_get_rank_id(dpu_get_rank(dpu_from_set(dpu)))); }

/// How every sentence about a fault of this PE begins.
std::string place_of(dpu_set_t dpu, uint32_t tasklet) {
  dpu_t *const pe = dpu_from_set(dpu);
  return "rank " + rank_id(dpu) + ", chip " + std::to_string(dpu_get_slice_id(pe)) + ", bank " + std::to_string(dpu_get_member_id(pe)) +
         ", tasklet " + std::to_string(tasklet) + ": ";
}

/// One DPU that makes DMA calls. MRAM holds noise(1, position) in the first 8 KiB, the buffer in WRAM noise(2, position).
class Dma {
 public:
  explicit Dma(int strict) {
    pe_machine(1, strict);
    set = std::make_unique<Loaded>(1, "dma");
    mram = noise_bytes(1, 8192);
    wram = noise_bytes(2, 8192);
    CHECK_OK(dpu_copy_to(dpu(), kHeap, 0, mram.data(), mram.size()));
    CHECK_OK(dpu_copy_to(dpu(), "buffer", 0, wram.data(), wram.size()));
  }
  dpu_set_t dpu() const { return set->all[0]; }
  dpu_error_t run(const std::vector<DmaCall> &calls) {
    CHECK_OK(dpu_copy_to(dpu(), "calls", 0, calls.data(), calls.size() * sizeof(DmaCall)));
    put<uint32_t>(dpu(), "count", static_cast<uint32_t>(calls.size()));
    return dpu_launch(dpu(), DPU_SYNCHRONOUS);
  }
  std::vector<uint8_t> buffer() const {
    std::vector<uint8_t> bytes(8192);
    CHECK_OK(dpu_copy_from(dpu(), "buffer", 0, bytes.data(), bytes.size()));
    return bytes;
  }
  /// What the buffer should be after `bytes` bytes of MRAM came to the offset.
  std::vector<uint8_t> buffer_with(uint32_t offset, uint32_t mram_offset, uint32_t bytes) const {
    std::vector<uint8_t> want = wram;
    std::copy_n(mram.begin() + mram_offset, bytes, want.begin() + offset);
    return want;
  }
  std::vector<uint8_t> mram_with(uint32_t offset, uint32_t wram_offset, uint32_t bytes) const {
    std::vector<uint8_t> want = mram;
    std::copy_n(wram.begin() + wram_offset, bytes, want.begin() + offset);
    return want;
  }

  std::unique_ptr<Loaded> set;
  std::vector<uint8_t> mram, wram;
};

/// In strict mode the call is a fault of tasklet 0 whose sentence says `word`, nothing moves, and the report counts no DMA.
void check_strict_fault(const DmaCall &call, const std::string &word) {
  Dma dma(kStrict);
  CHECK_STATUS(dma.run({call}), DPU_ERR_DPU_FAULT);
  const std::string sentence = fault_of(dma.dpu());
  CHECK_EQ(sentence.substr(0, place_of(dma.dpu(), 0).size()), place_of(dma.dpu(), 0));
  if (sentence.find(word) == std::string::npos) harness::fail(__FILE__, __LINE__, sentence + " does not say " + word);
  CHECK(dma.buffer() == dma.wram);
  CHECK(heap_bytes(dma.dpu(), 0, 8192) == dma.mram);
  CHECK_EQ(number(dma.dpu(), "ended"), 0u);
  const dpuemu_report_t report = report_of(dma.dpu());
  CHECK_EQ(report.faulted_pes, 1u);
  CHECK_EQ(report.dma_reads + report.dma_writes, 0u);
}

/// Two ranks run faults.c; one PE does `what` in tasklet `who`. Everybody else must get through.
class Faults {
 public:
  static constexpr uint32_t kDpus = 128, kTasklets = 6, kBad = 77, kWho = 4;

  explicit Faults(int strict = kLenient, uint32_t patience_seconds = 60) {
    pe_machine(2, strict, 2, patience_seconds);
    set = std::make_unique<Loaded>(kDpus, "faults");
    for (uint32_t i = 0; i < kDpus; ++i) put<uint32_t>(set->all[i], "input", 1000 * i);
    put<uint32_t>(set->set, "who", kWho);
  }
  dpu_set_t bad() const { return set->all[kBad]; }

  void check_fault(fault_kind what, const std::string &word, uint32_t tasklet = kWho) {
    const std::string name = "fault_kind " + std::to_string(what) + ": ";
    put<uint32_t>(set->set, "what", FAULT_NONE);
    put<uint32_t>(set->set, "finished", 0);
    put<uint32_t>(bad(), "what", what);
    const uint64_t zeros[kTasklets] = {};
    CHECK_OK(dpu_copy_to(set->set, kHeap, 0, zeros, sizeof zeros));
    CHECK_EQ(name + text(dpu_launch(set->set, DPU_SYNCHRONOUS)), name + text(DPU_ERR_DPU_FAULT));
    CHECK_EQ(name + text(dpu_sync(set->set)), name + text(DPU_ERR_DPU_FAULT));
    bool done = false, fault = false;
    CHECK_OK(dpu_status(set->set, &done, &fault));
    CHECK(done && fault);

    const std::string sentence = fault_of(set->set), place = place_of(bad(), tasklet);
    CHECK_EQ(name + sentence.substr(0, place.size()), name + place);
    if (sentence.find(word) == std::string::npos) harness::fail(__FILE__, __LINE__, name + sentence + " does not say " + word);
    CHECK_EQ(fault_of(bad()), sentence);
    CHECK_EQ(fault_of(set->all[0]), std::string());
    const dpuemu_report_t report = report_of(set->set);
    CHECK_EQ(report.pes, uint64_t{kDpus});
    CHECK_EQ(report.faulted_pes, 1u);
    CHECK_EQ(report_of(set->all[kBad + 1]).faulted_pes, 0u);

    for (uint32_t i = 0; i < kDpus; ++i) {
      // All PEs got as far as this, also the bad one.
      uint64_t words[kTasklets];
      CHECK_OK(dpu_copy_from(set->all[i], kHeap, 0, words, sizeof words));
      for (uint32_t j = 0; j < kTasklets; ++j) CHECK_EQ(words[j], uint64_t{1000 * i + j * j});
      if (i != kBad) CHECK_EQ(number(set->all[i], "finished"), kTasklets);
    }
    CHECK(number(bad(), "finished") < kTasklets);
  }

  /// With the cause gone everything runs again.
  void check_recovery() {
    put<uint32_t>(set->set, "what", FAULT_NONE);
    put<uint32_t>(set->set, "finished", 0);
    load(bad(), "faults");
    launch(set->set);
    CHECK_OK(dpu_sync(set->set));
    bool done = false, fault = true;
    CHECK_OK(dpu_status(set->set, &done, &fault));
    CHECK(done && !fault);
    CHECK_EQ(fault_of(set->set), std::string());
    CHECK_EQ(report_of(set->set).faulted_pes, 0u);
    for (dpu_set_t dpu : set->all) CHECK_EQ(number(dpu, "finished"), kTasklets);
  }

  std::unique_ptr<Loaded> set;
};

}  // namespace

// --- DMA: what the hardware masks

TEST(Dma_DropsTheLowThreeBitsOfAnMramAddress) {
  {
    Dma dma(kLenient);
    CHECK_OK(dma.run({{0, kMram + 107, 16, 24}}));
    CHECK(dma.buffer() == dma.buffer_with(16, 104, 24));
    const dpuemu_report_t report = report_of(dma.dpu());
    CHECK_EQ(report.masked_addresses, 1u);
    CHECK_EQ(report.masked_sizes, 0u);
    CHECK_EQ(report.dma_reads, 1u);
    CHECK_EQ(report.dma_read_bytes, 24u);
  }
  {
    Dma dma(kLenient);
    CHECK_OK(dma.run({{1, kMram + 111, 16, 8}}));
    CHECK(heap_bytes(dma.dpu(), 0, 8192) == dma.mram_with(104, 16, 8));
  }
  check_strict_fault({0, kMram + 107, 16, 24}, "multiple of 8");
  check_strict_fault({1, kMram + 1, 16, 8}, "multiple of 8");
}

TEST(Dma_DropsTheLowThreeBitsOfAWramAddress) {
  {
    Dma dma(kLenient);
    CHECK_OK(dma.run({{0, kMram + 64, 21, 16}}));
    CHECK(dma.buffer() == dma.buffer_with(16, 64, 16));
    CHECK_EQ(report_of(dma.dpu()).masked_addresses, 1u);
  }
  {
    Dma dma(kLenient);
    CHECK_OK(dma.run({{1, kMram + 7, 47, 16}}));
    CHECK(heap_bytes(dma.dpu(), 0, 8192) == dma.mram_with(0, 40, 16));
    CHECK_EQ(report_of(dma.dpu()).masked_addresses, 2u);
  }
  check_strict_fault({0, kMram + 64, 21, 16}, "multiple of 8");
  check_strict_fault({1, kMram + 64, 4, 16}, "multiple of 8");
}

TEST(Dma_MovesTheSizeThatEightBitsOfWordsCanSay) {
  const struct {
    uint32_t asked, moved;
  } sizes[] = {{0, 2048}, {7, 2048}, {12, 8}, {15, 8}, {2047, 2040}, {2056, 8}, {2064, 16}, {4096, 2048}, {4100, 2048}};
  for (const auto &size : sizes) {
    for (uint32_t is_write : {0u, 1u}) {
      Dma dma(kLenient);
      CHECK_OK(dma.run({{is_write, kMram + 8, 512, size.asked}}));
      CHECK(dma.buffer() == (is_write ? dma.wram : dma.buffer_with(512, 8, size.moved)));
      CHECK(heap_bytes(dma.dpu(), 0, 8192) == (is_write ? dma.mram_with(8, 512, size.moved) : dma.mram));
      const dpuemu_report_t report = report_of(dma.dpu());
      CHECK_EQ(report.masked_sizes, 1u);
      CHECK_EQ(is_write ? report.dma_write_bytes : report.dma_read_bytes, size.moved);
    }
  }
  for (uint32_t bytes : {0u, 12u, 2056u, 4096u}) {
    check_strict_fault({0, kMram, 0, bytes}, "size");
    check_strict_fault({1, kMram, 0, bytes}, "size");
  }
}

TEST(Dma_OfRightAddressesAndSizesIsCountedAndNoFaultInStrictMode) {
  Dma dma(kStrict);
  CHECK_OK(dma.run({{0, kMram + 1024, 0, 2048},
                    {1, kMram + 4096, 0, 8},
                    {0, kMram + kMramBytes - 8, 4096, 8},
                    {1, kMram + kMramBytes - 2048, 8, 2048}}));
  CHECK_EQ(number(dma.dpu(), "ended"), 1u);
  const dpuemu_report_t report = report_of(dma.dpu());
  CHECK_EQ(report.dma_reads, 2u);
  CHECK_EQ(report.dma_read_bytes, 2056u);
  CHECK_EQ(report.dma_writes, 2u);
  CHECK_EQ(report.dma_write_bytes, 2056u);
  CHECK_EQ(report.masked_addresses + report.masked_sizes + report.wrapped_addresses, 0u);
  CHECK(heap_bytes(dma.dpu(), 4096, 8) == std::vector<uint8_t>(dma.mram.begin() + 1024, dma.mram.begin() + 1032));
}

TEST(Dma_PastTheEndOfMramGoesOnAtItsStart) {
  const uint32_t end = kMram + kMramBytes;
  {
    Dma dma(kLenient);
    CHECK_OK(dma.run({{1, end - 16, 0, 64}, {0, end - 8, 1024, 32}}));
    CHECK(heap_bytes(dma.dpu(), kMramBytes - 16, 16) == std::vector<uint8_t>(dma.wram.begin(), dma.wram.begin() + 16));
    CHECK(heap_bytes(dma.dpu(), 0, 8192) == dma.mram_with(0, 16, 48));
    std::vector<uint8_t> want = dma.wram;
    std::copy_n(dma.wram.begin() + 8, 32, want.begin() + 1024);
    CHECK(dma.buffer() == want);
    CHECK_EQ(report_of(dma.dpu()).wrapped_addresses, 2u);
  }
  check_strict_fault({0, end - 8, 0, 16}, "end of MRAM");
  check_strict_fault({1, end - 8, 0, 2048}, "end of MRAM");
}

TEST(Dma_TakesAnOffsetForAnMramAddress) {
  // Only 26 bits of the address count.
  for (int strict : {kLenient, kStrict}) {
    Dma dma(strict);
    CHECK_OK(dma.run({{0, 4096, 0, 16}}));
    CHECK(dma.buffer() == dma.buffer_with(0, 4096, 16));
  }
}

TEST(Dma_OutOfWramIsAFaultInBothModes) {
  for (int strict : {kLenient, kStrict})
    for (uint32_t address : {65536u - 8, 65536u + 256, 1u << 20}) {
      Dma dma(strict);
      put<uint32_t>(dma.dpu(), "moves_beyond", address);
      CHECK_STATUS(dma.run({{1, kMram, 0, 16}}), DPU_ERR_DPU_FAULT);
      const std::string sentence = fault_of(dma.dpu());
      CHECK_EQ(sentence.substr(0, place_of(dma.dpu(), 0).size()), place_of(dma.dpu(), 0));
      CHECK(sentence.find("mram_write") != std::string::npos);
      CHECK(heap_bytes(dma.dpu(), 0, 8192) == dma.mram);
    }
}

// --- Faults

TEST(Fault_OfMemoryNamesThePeAndTheOthersFinish) {
  Faults faults;
  for (fault_kind what : {FAULT_WILD_READ, FAULT_WILD_WRITE, FAULT_NULL_READ, FAULT_NULL_WRITE, FAULT_NULL_CALL, FAULT_OWN_TEXT_WRITE,
                          FAULT_MRAM_POINTER_AS_WRAM})
    faults.check_fault(what, "address");
  for (fault_kind what : {FAULT_FAR_BEHIND_WRAM, FAULT_BEFORE_WRAM}) faults.check_fault(what, "address");
  faults.check_fault(FAULT_DMA_OUT_OF_WRAM, "mram_read");
  faults.check_recovery();
}

TEST(Fault_OfTheFirstByteBehindWram) {
  Faults faults;
  faults.check_fault(FAULT_FIRST_BYTE_BEHIND_WRAM, "address");
}

TEST(Fault_OfAnMramPointerBeyondMramAlsoAfterRightOnes) {
  Faults faults;
  faults.check_fault(FAULT_DIRECT_BEYOND_MRAM, "address");
  faults.check_fault(FAULT_DIRECT_BEYOND_MRAM_AFTER_A_RIGHT_ONE, "address");
  faults.check_recovery();
}

TEST(Fault_OfAddressesInTheGapBehindWram) {
  Faults faults;
  for (uint32_t distance : {8u, 0x4000u, 0xE000u}) {
    put<uint32_t>(faults.bad(), "distance", distance);
    faults.check_fault(FAULT_FAR_PAST_WRAM, "address");
  }
}

TEST(Fault_OfTheStack) {
  Faults faults;
  faults.check_fault(FAULT_STACK, "stack");
  faults.check_recovery();
}

TEST(Fault_OfDivision) {
  Faults faults;
  for (fault_kind what : {FAULT_DIVISION_32, FAULT_REMAINDER_32, FAULT_DIVISION_64, FAULT_DIVISION_UNSIGNED_64, FAULT_DIVISION_OVERFLOW})
    faults.check_fault(what, "division");
  faults.check_recovery();
}

TEST(Fault_OfTheProgramsOwnMaking) {
  Faults faults;
  faults.check_fault(FAULT_ASSERT, "assertion");
  faults.check_fault(FAULT_HALT, "halt");
  faults.check_fault(FAULT_ABORT, "abort");
  faults.check_fault(FAULT_TRAP, "");
  faults.check_fault(FAULT_UNALIGNED_MRAM, "mram_write_unaligned");
  faults.check_fault(FAULT_WILD_STRING, "string");
  faults.check_recovery();
}

TEST(Fault_OfAFullHeap) {
  Faults faults;
  faults.check_fault(FAULT_HEAP_FULL, "heap");
  faults.check_fault(FAULT_FSB_HEAP_FULL, "heap");
  faults.check_fault(FAULT_BUDDY_HEAP_FULL, "heap");
  load(faults.bad(), "faults");
  put<uint32_t>(faults.bad(), "input", 1000 * Faults::kBad);
  put<uint32_t>(faults.bad(), "who", Faults::kWho);
  faults.check_fault(FAULT_BUDDY_NOT_READY, "buddy");
  faults.check_recovery();
}

TEST(Fault_OfDeadlockTellsWhoWaits) {
  Faults faults;
  // At a barrier short of one tasklet all others wait, and the first of them is named.
  faults.check_fault(FAULT_BARRIER, "barrier", 0);
  const std::string sentence = fault_of(faults.bad());
  CHECK(sentence.find("deadlock") != std::string::npos);
  for (const char *waiter : {"tasklet 0", "tasklet 1", "tasklet 2", "tasklet 3", "tasklet 5"})
    CHECK(sentence.find(waiter, 20) != std::string::npos);
  CHECK(sentence.find("tasklet 4") == std::string::npos);
  load(faults.bad(), "faults");
  put<uint32_t>(faults.bad(), "input", 1000 * Faults::kBad);
  put<uint32_t>(faults.bad(), "who", Faults::kWho);
  faults.check_fault(FAULT_NEVER_NOTIFIED, "tasklet 5");
  faults.check_fault(FAULT_NEVER_AWAITED, "deadlock");
  faults.check_fault(FAULT_SEMAPHORE, "semaphore");
  load(faults.bad(), "faults");
  put<uint32_t>(faults.bad(), "input", 1000 * Faults::kBad);
  put<uint32_t>(faults.bad(), "who", Faults::kWho);
  faults.check_fault(FAULT_VMUTEX_TWICE, "vmutex");
  load(faults.bad(), "faults");
  faults.check_recovery();
}

TEST(Fault_OfAMutexLockedTwiceHoldsUpWhoeverWantsItNext) {
  Faults faults;
  // Tasklet 4 keeps the mutex that all others want at the end.
  put<uint32_t>(faults.bad(), "what", FAULT_MUTEX_TWICE);
  CHECK_STATUS(dpu_launch(faults.set->set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
  const std::string sentence = fault_of(faults.set->set);
  CHECK(sentence.find("deadlock") != std::string::npos && sentence.find("mutex") != std::string::npos);
  CHECK(sentence.find("tasklet 4 waits") != std::string::npos);
  for (uint32_t i = 0; i < Faults::kDpus; ++i)
    if (i != Faults::kBad) CHECK_EQ(number(faults.set->all[i], "finished"), Faults::kTasklets);
  faults.check_recovery();
}

// Thread sanitizer holds back the signal that ends such a loop until the program makes a call that it knows, and this one makes none.
#if !defined(__SANITIZE_THREAD__)
TEST(Fault_OfAnEndlessLoopEndsWhenPatienceDoes) {
  const auto begin = std::chrono::steady_clock::now();
  Faults faults(kLenient, 1);
  // A second PE waits for another tasklet's store, which never comes since nothing lets that tasklet run.
  put<uint32_t>(faults.set->set, "what", FAULT_NONE);
  put<uint32_t>(faults.set->all[3], "what", FAULT_SPIN);
  put<uint32_t>(faults.bad(), "what", FAULT_ENDLESS);
  CHECK_STATUS(dpu_launch(faults.set->set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
  CHECK_EQ(report_of(faults.set->set).faulted_pes, 2u);
  for (dpu_set_t dpu : {faults.set->all[3], faults.bad()}) {
    const std::string sentence = fault_of(dpu), place = place_of(dpu, Faults::kWho);
    CHECK_EQ(sentence.substr(0, place.size()), place);
    CHECK(sentence.find("endless loop") != std::string::npos);
  }
  for (uint32_t i = 0; i < Faults::kDpus; ++i)
    if (i != 3 && i != Faults::kBad) CHECK_EQ(number(faults.set->all[i], "finished"), Faults::kTasklets);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  put<uint32_t>(faults.set->all[3], "finished", 0);
  load(faults.set->all[3], "faults");
  faults.check_recovery();
}
#endif

TEST(Fault_OfManyPesIsReportedForTheFirstAndForEach) {
  Faults faults;
  put<uint32_t>(faults.set->set, "what", FAULT_HALT);
  put<uint32_t>(faults.set->all[0], "what", FAULT_NONE);
  CHECK_STATUS(dpu_launch(faults.set->set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
  CHECK_EQ(report_of(faults.set->set).faulted_pes, uint64_t{Faults::kDpus - 1});
  const std::string first = place_of(faults.set->all[1], Faults::kWho);
  CHECK_EQ(fault_of(faults.set->set).substr(0, first.size()), first);
  const std::string last = place_of(faults.set->all[127], Faults::kWho);
  CHECK_EQ(fault_of(faults.set->all[127]).substr(0, last.size()), last);
}

TEST(Fault_OfAnAsyncLaunchComesWithSync) {
  Faults faults;
  put<uint32_t>(faults.bad(), "what", FAULT_HALT);
  CHECK_OK(dpu_launch(faults.set->set, DPU_ASYNCHRONOUS));
  CHECK_STATUS(dpu_sync(faults.set->set), DPU_ERR_DPU_FAULT);
  CHECK_OK(dpu_sync(dpu_set_from_rank(&faults.set->set.list.ranks[0])));
  dpuemu_rank_access_t access;
  CHECK_STATUS(dpuemu_rank_acquire(faults.set->rank(1), &access), DPU_ERR_DPU_FAULT);
  CHECK_OK(dpuemu_rank_acquire(faults.set->rank(0), &access));
  CHECK_OK(dpuemu_rank_release(faults.set->rank(0)));
  faults.check_recovery();
  CHECK_OK(dpuemu_rank_acquire(faults.set->rank(1), &access));
  CHECK_OK(dpuemu_rank_release(faults.set->rank(1)));
}

TEST(Fault_SentenceIsCutToTheBuffer) {
  Faults faults;
  put<uint32_t>(faults.bad(), "what", FAULT_HALT);
  CHECK_STATUS(dpu_launch(faults.set->set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
  const std::string whole = fault_of(faults.set->set);
  char few[11];
  std::memset(few, 'x', sizeof few);
  CHECK_OK(dpuemu_get_fault(faults.set->set, few, 10));
  CHECK_EQ(std::string(few), whole.substr(0, 9));
  CHECK_EQ(few[10], 'x');
}

TEST(Fault_LeavesWhatWasPrintedAndWrittenBefore) {
  Faults faults;
  faults.check_fault(FAULT_PRINT_AND_HALT, "halt");
  CHECK_EQ(log_of(faults.bad()), std::string("before the end\n"));
  CHECK_EQ(number(faults.bad(), "what"), uint32_t{FAULT_PRINT_AND_HALT});
}

TEST(StrictMode_HoldsTaskletsToTheirDeclaredStacks) {
  Faults lenient(kLenient);
  put<uint32_t>(lenient.bad(), "what", FAULT_DEEP_STACK);
  launch(lenient.set->set);
  CHECK_EQ(number(lenient.bad(), "finished"), Faults::kTasklets);
  lenient.set.reset();
  Faults strict(kStrict);
  strict.check_fault(FAULT_DEEP_STACK, "stack");
  strict.check_recovery();
}

TEST(StrictMode_RefusesAMutexThatIsNone) {
  // Otherwise the low 8 bits of any address name one, as on hardware.
  Faults strict(kStrict);
  strict.check_fault(FAULT_WILD_MUTEX, "mutex");
}

TEST(StrictMode_ChangesNothingForProgramsWithoutFault) {
  std::string reports[2];
  for (int strict : {kLenient, kStrict}) {
    pe_machine(1, strict);
    Loaded set(64, "increment");
    const std::vector<uint8_t> zeros(6000);
    put<uint32_t>(set.set, "bytes", 6000);
    CHECK_OK(dpu_copy_to(set.set, kHeap, 0, zeros.data(), zeros.size()));
    launch(set.set);
    CHECK_EQ(number(set.all[9], "sum"), 1500u);
    reports[strict - 1] = modelled(report_of(set.set));
  }
  CHECK_EQ(reports[0], reports[1]);
}

// --- The same run every time

TEST(Determinism_TwoLaunchesAndAnyNumberOfThreadsGiveTheSameReport) {
  std::set<std::string> reports;
  std::set<uint64_t> cycles;
  for (uint32_t threads : {1u, 2u, 5u}) {
    pe_machine(2, kLenient, threads);
    Loaded set(128, "increment");
    std::vector<uint8_t> zeros(10000);
    for (uint32_t round = 0; round < 2; ++round) {
      load(set.set, "increment");
      put<uint32_t>(set.set, "bytes", 10000);
      CHECK_OK(dpu_copy_to(set.set, kHeap, 0, zeros.data(), zeros.size()));
      launch(set.set);
      reports.insert(modelled(report_of(set.set)));
      cycles.insert(get<uint64_t>(set.all[0], "cycles"));
      cycles.insert(get<uint64_t>(set.all[127], "cycles"));
    }
  }
  CHECK_EQ(reports.size(), 1u);
  CHECK_EQ(cycles.size(), 1u);
  CHECK(*cycles.begin() > 10000);
}

TEST(Determinism_HoldsForTaskletsThatFightForLocks) {
  std::set<std::string> reports;
  for (uint32_t threads : {1u, 2u}) {
    pe_machine(1, kLenient, threads);
    Loaded set(64, "synchronisation");
    for (uint32_t round = 0; round < 2; ++round) {
      load(set.set, "synchronisation");
      put<uint32_t>(set.set, "topic", 2);
      launch(set.set);
      reports.insert(modelled(report_of(set.set)) + " " + std::to_string(number(set.all[63], "lost_without_lock")));
    }
  }
  CHECK_EQ(reports.size(), 1u);
}

TEST(Report_CountsExactlyAndAddsUpOverPes) {
  pe_machine(1);
  Loaded set(64, "increment");
  std::vector<uint8_t> zeros(5000);
  put<uint32_t>(set.set, "bytes", 5000);
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, zeros.data(), zeros.size()));
  launch(set.set);
  const dpuemu_report_t all = report_of(set.set), one = report_of(set.all[30]);
  CHECK_EQ(one.pes, 1u);
  CHECK_EQ(one.dma_reads, 20u);  // pieces of 256 bytes
  CHECK_EQ(one.dma_writes, 20u);
  CHECK_EQ(one.dma_read_bytes, 5000u);
  CHECK_EQ(one.dma_write_bytes, 5000u);
  CHECK_EQ(all.pes, 64u);
  CHECK_EQ(all.dma_reads, 64 * 20u);
  CHECK_EQ(all.dma_read_bytes, 64 * 5000u);
  CHECK_EQ(all.instructions, 64 * one.instructions);
  CHECK_EQ(all.cycles_max, one.cycles_max);
  CHECK(std::abs(all.cycles_sum / (64 * one.cycles_sum) - 1) < 1e-9);  // added up in another order
  CHECK(one.instructions > 1250 * 3 && one.instructions < 1250 * 30);
  CHECK(one.cycles_max >= static_cast<double>(one.instructions));
  CHECK(all.host_seconds > 0);
}

TEST(Report_OfMoreWorkHasMoreInstructionsAndCycles) {
  pe_machine(1);
  Loaded set(1, "increment");
  std::vector<uint8_t> zeros(40000);
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, zeros.data(), zeros.size()));
  put<uint32_t>(set.set, "bytes", 4000);
  launch(set.set);
  const dpuemu_report_t small = report_of(set.set);
  put<uint32_t>(set.set, "bytes", 40000);
  launch(set.set);
  const dpuemu_report_t large = report_of(set.set);
  CHECK(large.instructions > 5 * small.instructions);
  CHECK(large.cycles_max > 3 * small.cycles_max);
  // More tasklets fill the pipeline: 5 take longer than 16 for the same work.
  load(set.set, "increment_5");
  put<uint32_t>(set.set, "bytes", 40000);
  launch(set.set);
  CHECK(report_of(set.set).cycles_max > 1.5 * large.cycles_max);
}

// --- What published programs rely on

TEST(OldPrograms_KeepAddressesInIntegersAndUseOldC) {
  pe_machine(1);
  Loaded set(2, "old_style");
  std::vector<uint32_t> words(256);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < words.size(); ++i) sum += words[i] = i * 3;
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, words.data(), 4 * words.size()));
  launch(set.set);
  for (dpu_set_t dpu : set.all) {
    CHECK_EQ(number(dpu, "sum"), sum);
    const std::string log = log_of(dpu);  // a %lu that gets 32 bits may print anything, but what follows is right
    CHECK_EQ(log.substr(log.find(' ')), std::string(" 5 7\n"));
  }
}

TEST(SharedStructures_LieAlikeOnBothSides) {
  pe_machine(1);
  Loaded set(1, "old_style");
  shared sent = {}, got = {};
  sent.small = 50;
  sent.wide = -7000000000;
  sent.flag = true;
  sent.kind = FIRST;
  sent.bytes[2] = 200;
  sent.real = 2.5;
  dpu_symbol_t symbol;
  CHECK_OK(dpu_get_symbol(dpu_get_program(set.all[0].dpu), "arguments", &symbol));
  CHECK_EQ(symbol.size, sizeof(shared));
  put(set.set, "arguments", sent);
  launch(set.set);
  got = get<shared>(set.all[0], "answer");
  CHECK_EQ(number(set.all[0], "offset_of_next"), sizeof(shared));
  CHECK_EQ(got.small, 50u + 2 + 4 + 3 + 5);
  CHECK_EQ(got.wide, -7000000000 + 0x100 + 1);
  CHECK_EQ(got.flag, false);
  CHECK_EQ(got.kind, SECOND);
  CHECK_EQ(got.bytes[2], 200);
  CHECK_EQ(got.real, 2.5);
}

TEST(Globals_AreEveryPesOwn) {
  pe_machine(2);
  Loaded set(128, "variables");
  for (uint32_t i = 0; i < 128; ++i)
    for (uint32_t round = 0; round < i % 3; ++round) launch(set.all[i]);
  for (uint32_t i = 0; i < 128; ++i) {
    CHECK_EQ(number(set.all[i], "launches"), 100 + i % 3);
    CHECK_EQ(number(set.all[i], "zeroed", 2), 5 * (i % 3));
  }
}
