// Faults of PEs: each kind is reported to the host, and the other PEs finish. Then strict mode.
#include <cstring>
#include <memory>

#include "program_fixture.h"
#include "programs/fault_kind.h"

using namespace fixture;

namespace {

/// Two ranks run faults.c; in one PE, tasklet `who` does `what`. All other PEs must finish.
class Faults {
 public:
  static constexpr uint32_t kDpus = 128, kTasklets = 6, kBad = 77, kWho = 4;

  explicit Faults(int strict = kLenient, uint32_t patience_seconds = 60, uint32_t threads = 2) {
    pe_machine(2, strict, threads, patience_seconds);
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

    const std::string sentence = fault_of(set->set), place = fault_prefix(bad(), tasklet);
    CHECK_EQ(name + sentence.substr(0, place.size()), name + place);
    if (sentence.find(word) == std::string::npos)
      harness::fail(__FILE__, __LINE__, name + sentence + " does not say " + word);
    CHECK_EQ(fault_of(bad()), sentence);
    CHECK_EQ(fault_of(set->all[0]), std::string());
    const dpuemu_report_t report = report_of(set->set);
    CHECK_EQ(report.pes, uint64_t{kDpus});
    CHECK_EQ(report.faulted_pes, 1u);
    CHECK_EQ(report_of(set->all[kBad + 1]).faulted_pes, 0u);

    for (uint32_t i = 0; i < kDpus; ++i) {
      // All PEs have written these words, also the bad one.
      uint64_t words[kTasklets];
      CHECK_OK(dpu_copy_from(set->all[i], kHeap, 0, words, sizeof words));
      for (uint32_t j = 0; j < kTasklets; ++j) CHECK_EQ(words[j], uint64_t{1000 * i + j * j});
      if (i != kBad) CHECK_EQ(number(set->all[i], "finished"), kTasklets);
    }
    CHECK(number(bad(), "finished") < kTasklets);
  }

  /// Without the cause, all PEs run again.
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

TEST(Fault_OfMemoryNamesThePeAndTheOthersFinish) {
  Faults faults;
  for (fault_kind what : {FAULT_WILD_READ, FAULT_WILD_WRITE, FAULT_NULL_READ, FAULT_NULL_WRITE,
                          FAULT_NULL_CALL, FAULT_OWN_TEXT_WRITE, FAULT_MRAM_POINTER_AS_WRAM})
    faults.check_fault(what, "address");
  for (fault_kind what : {FAULT_FAR_BEHIND_WRAM, FAULT_BEFORE_WRAM})
    faults.check_fault(what, "address");
  faults.check_fault(FAULT_DMA_OUT_OF_WRAM, "mram_read");
  faults.check_recovery();
}

TEST(Fault_OfTheFirstByteAfterWram) {
  Faults faults;
  faults.check_fault(FAULT_FIRST_BYTE_BEHIND_WRAM, "address");
}

TEST(Fault_OfAnMramPointerBeyondMramAlsoAfterValidPointers) {
  Faults faults;
  faults.check_fault(FAULT_DIRECT_BEYOND_MRAM, "MRAM address 0xc000000,");
  faults.check_fault(FAULT_DIRECT_BEYOND_MRAM_AFTER_A_RIGHT_ONE, "MRAM address 0xc000000,");
  faults.check_recovery();
}

TEST(Fault_OfAddressesInTheGapAfterWram) {
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
  for (fault_kind what :
       {FAULT_DIVISION_32, FAULT_REMAINDER_32, FAULT_DIVISION_64, FAULT_DIVISION_UNSIGNED_64})
    faults.check_fault(what, "division");
  faults.check_recovery();
}

TEST(Fault_RaisedByTheProgramItself) {
  Faults faults;
  faults.check_fault(FAULT_ASSERT, "assertion");
  faults.check_fault(FAULT_HALT, "halt");
  faults.check_fault(FAULT_ABORT, "abort");
  faults.check_fault(FAULT_TRAP, "");
  faults.check_fault(FAULT_INSTRUCTION, "the instruction fault 42");
  faults.check_fault(FAULT_ASSEMBLY, "(mul_step %0, %0, 7)");
  faults.check_fault(FAULT_ASSEMBLY, "with_assembly");
  faults.check_fault(FAULT_UNALIGNED_MRAM, "mram_write_unaligned");
  faults.check_fault(FAULT_WILD_STRING, "string");
  faults.check_recovery();
}

TEST(Fault_OfAPrintfThatPrintsTooManyCharacters) {
  Faults faults;
  put<uint32_t>(faults.bad(), "distance", 2000000000);
  faults.check_fault(FAULT_WIDE_PRINT, "width or precision of 2000000000; at most 1048576");
  put<int32_t>(faults.bad(), "distance",
               INT32_MIN);  // a negative width is a width with the flag `-`
  faults.check_fault(FAULT_WIDE_PRINT, "width or precision of -2147483648; at most 1048576");
  put<uint32_t>(faults.bad(), "distance", 600000);
  faults.check_fault(FAULT_WIDE_PRINT, "printf prints 1200000 characters or more; at most 1048576");
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

TEST(Fault_OfTaskletsThatWaitForEverIsCountedOutsideOfStrictMode) {
  Faults faults;
  for (const auto &[what, waiting] : {std::pair{FAULT_BARRIER, Faults::kTasklets - 1},
                                      {FAULT_NEVER_NOTIFIED, 1u},
                                      {FAULT_SEMAPHORE, 1u}}) {
    put<uint32_t>(faults.set->set, "what", FAULT_NONE);
    put<uint32_t>(faults.bad(), "what", what);
    launch(faults.set->set);
    CHECK_EQ(report_of(faults.set->set).waiting_tasklets, uint64_t{waiting});
    CHECK_EQ(report_of(faults.set->set).faulted_pes, 0u);
    load(faults.bad(), "faults");
    put<uint32_t>(faults.bad(), "who", Faults::kWho);
  }
  faults.check_recovery();
}

TEST(Fault_OfDeadlockNamesTheWaitingTasklets) {
  Faults faults(kStrict);
  // All tasklets except one wait at a barrier; the fault names the first of them.
  faults.check_fault(FAULT_BARRIER, "barrier", 0);
  const std::string sentence = fault_of(faults.bad());
  CHECK(sentence.find("deadlock") != std::string::npos &&
        sentence.find("(short_of_one)") != std::string::npos);
  CHECK(sentence.find("tasklets 0, 1, 2, 3, 5 wait at the barrier") != std::string::npos);
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

TEST(Fault_OfAMutexLockedTwiceIsADeadlock) {
  Faults faults;
  // Tasklet 4 holds the mutex that all others need at the end.
  put<uint32_t>(faults.bad(), "what", FAULT_MUTEX_TWICE);
  CHECK_STATUS(dpu_launch(faults.set->set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
  const std::string sentence = fault_of(faults.set->set);
  CHECK(sentence.find("deadlock") != std::string::npos &&
        sentence.find("mutex") != std::string::npos);
  CHECK(sentence.find("tasklet 4 waits for mutex 2 (lock, held by tasklet 4)") !=
        std::string::npos);
  for (uint32_t i = 0; i < Faults::kDpus; ++i)
    if (i != Faults::kBad) CHECK_EQ(number(faults.set->all[i], "finished"), Faults::kTasklets);
  faults.check_recovery();
}

// Thread sanitizer delays the signal that interrupts such a loop until the thread makes a call that
// it intercepts; this one makes none.
#if !defined(__SANITIZE_THREAD__)
TEST(Fault_OfEndlessLoopsComesAfterOnePatience) {
  for (const fault_kind what : {FAULT_ENDLESS, FAULT_ENDLESS_CALLS}) {
    Faults faults(kLenient, 2);
    put<uint32_t>(faults.set->set, "what", FAULT_NONE);
    for (uint32_t i = 16; i < Faults::kDpus; i += 8)
      put<uint32_t>(faults.set->all[i], "what", what);
    CHECK_STATUS(dpu_launch(faults.set->set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
    const std::string sentence = fault_of(faults.set->set);
    CHECK(sentence.find("tasklet 4") != std::string::npos &&
          sentence.find("endless loop") != std::string::npos);
    uint32_t stopped = 0, endless = 0;
    for (uint32_t i = 0; i < Faults::kDpus; ++i) {
      const std::string fault = fault_of(faults.set->all[i]);
      stopped += fault.find("stopped because another PE") != std::string::npos;
      const bool is_endless = fault.find("endless loop") != std::string::npos;
      endless += is_endless;
      if (is_endless) CHECK(i >= 16 && i % 8 == 0);
      if (fault.empty()) CHECK_EQ(number(faults.set->all[i], "finished"), Faults::kTasklets);
    }
    CHECK(stopped > 0);
    // The patience ends once for each of the 2 threads, not for each of the 14 PEs.
    CHECK(endless >= 1 && endless <= 2);
    load(faults.set->set, "faults");
    put<uint32_t>(faults.set->set, "who", Faults::kWho);
    faults.check_recovery();
  }
}
#endif

TEST(Fault_OfManyPesIsReportedForTheFirstAndForEach) {
  Faults faults;
  put<uint32_t>(faults.set->set, "what", FAULT_HALT);
  put<uint32_t>(faults.set->all[0], "what", FAULT_NONE);
  CHECK_STATUS(dpu_launch(faults.set->set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
  CHECK_EQ(report_of(faults.set->set).faulted_pes, uint64_t{Faults::kDpus - 1});
  const std::string first = fault_prefix(faults.set->all[1], Faults::kWho);
  CHECK_EQ(fault_of(faults.set->set).substr(0, first.size()), first);
  const std::string last = fault_prefix(faults.set->all[127], Faults::kWho);
  CHECK_EQ(fault_of(faults.set->all[127]).substr(0, last.size()), last);
}

TEST(Fault_OfAnAsyncLaunchIsReportedBySync) {
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

TEST(Fault_KeepsEarlierOutputAndWrites) {
  Faults faults;
  faults.check_fault(FAULT_PRINT_AND_HALT, "halt");
  CHECK_EQ(log_of(faults.bad()), std::string("before the end\n"));
  CHECK_EQ(number(faults.bad(), "what"), uint32_t{FAULT_PRINT_AND_HALT});
}

TEST(StrictMode_LimitsTaskletsToTheirDeclaredStacks) {
  Faults lenient(kLenient);
  put<uint32_t>(lenient.bad(), "what", FAULT_DEEP_STACK);
  launch(lenient.set->set);
  CHECK_EQ(number(lenient.bad(), "finished"), Faults::kTasklets);
  lenient.set.reset();
  Faults strict(kStrict);
  strict.check_fault(FAULT_DEEP_STACK, "stack");
  strict.check_recovery();
}

TEST(Fault_OfTheFirstByteBelowAStack) {
  constexpr uint32_t kMost = 60 * 1024 - 16, kDeclared = 1024;  // tasklet 15: 15 * 256 bytes less
  struct Limit {
    int strict;
    uint32_t tasklet, bytes;
  };
  for (const Limit &limit : {Limit{kLenient, 0, kMost}, Limit{kLenient, 15, kMost - 15 * 256},
                             Limit{kLenient, 16, kMost}, Limit{kLenient, 23, kMost - 7 * 256},
                             Limit{kStrict, 0, kDeclared}, Limit{kStrict, 15, kDeclared}}) {
    pe_machine(1, limit.strict);
    Loaded set(1, "faults_24");
    put<uint32_t>(set.set, "what", FAULT_STACK_OF);
    put<uint32_t>(set.set, "who", limit.tasklet);
    put<uint32_t>(set.set, "distance", limit.bytes);
    launch(set.set);
    CHECK_EQ(number(set.all[0], "finished"), 24u);
    for (uint32_t more : {1u, 4096u}) {
      put<uint32_t>(set.set, "distance", limit.bytes + more);
      CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
      const std::string sentence = fault_of(set.set),
                        place = fault_prefix(set.all[0], limit.tasklet);
      CHECK_EQ(sentence.substr(0, place.size()), place);
      CHECK(sentence.find("stack") != std::string::npos);
    }
  }
}

TEST(StrictMode_NamesThePeWhoseWramAnotherPeAccesses) {
  constexpr uint32_t kDistance = 0x50000;  // between two banks of a chip
  Faults lenient(kLenient);
  put<uint32_t>(lenient.bad(), "distance", kDistance);
  put<uint32_t>(lenient.bad(), "what", FAULT_OTHER_PE);
  launch(lenient.set->set);
  lenient.set.reset();
  Faults strict(kStrict, 60, 1);  // one thread: the other PE does not run at the same time
  for (uint32_t distance : {kDistance, 2 * kDistance, -kDistance}) {
    put<uint32_t>(strict.bad(), "distance", distance);
    // PE 77 is at rank 1, chip 1, bank 5.
    const uint32_t bank =
        5 + static_cast<uint32_t>(static_cast<int32_t>(distance) / static_cast<int32_t>(kDistance));
    strict.check_fault(FAULT_OTHER_PE,
                       "in the WRAM of rank 1, chip 1, bank " + std::to_string(bank));
  }
  strict.check_recovery();
}

TEST(StrictMode_HostAccessesTheWramOfARunningPe) {
  pe_machine(1, kStrict);
  Loaded set(2, "gate");
  CHECK_OK(dpu_launch(set.set, DPU_ASYNCHRONOUS));
  const uint32_t open = 1;
  dpu_set_t dpu;
  DPU_FOREACH(set.set, dpu) CHECK_OK(dpu_prepare_xfer(dpu, const_cast<uint32_t *>(&open)));
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_TO_DPU, "gate", 0, sizeof open, DPU_XFER_PARALLEL));
  CHECK_OK(dpu_sync(set.set));
  for (dpu_set_t pe : set.all) CHECK_EQ(number(pe, "output"), 10u);
}

TEST(StrictMode_RefusesAnAddressThatIsNotAMutex) {
  // Without strict mode, as on hardware, the low 8 bits of any address are a mutex number.
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
