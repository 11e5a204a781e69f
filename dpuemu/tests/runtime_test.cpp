// The runtime of PE programs: each call follows the SDK's headers.
#include <cstdint>
#include <numeric>

#include "program_fixture.h"

using namespace fixture;

namespace {

#include "programs/arithmetic_case.h"
#include "programs/string_case.h"

/// Runs a program, which contains the checks, on one DPU.
void run_topic(const char *name, uint32_t topic, uint32_t launches = 1) {
  pe_machine(1);
  Loaded set(1, name);
  for (uint32_t i = 0; i < launches; ++i) CHECK_PROGRAM(set.all[0], name, topic);
}

uint64_t noise_word(uint64_t seed, uint64_t position) {
  uint64_t word = 0;
  for (uint32_t i = 0; i < 8; ++i) word = word << 8 | noise(seed, 8 * position + i);
  return word;
}

/// The host's output for printed.def. long has 64 bits on both sides, so the formats mean the same.
std::string printed_by_host() {
  std::string out;
  char line[512];
#define P(...)                                   \
  std::snprintf(line, sizeof line, __VA_ARGS__); \
  out += line;
#include "programs/printed.def"
#undef P
  return out;
}

std::string printed(uint32_t topic) {
  pe_machine(1);
  Loaded set(1, "print");
  put<uint32_t>(set.set, "topic", topic);
  launch(set.set);
  return log_of(set.all[0]);
}

}  // namespace

// --- Heaps in WRAM

TEST(MemAlloc_ReturnsConsecutiveAlignedBuffersAndMemResetFreesThem) { run_topic("allocators", 0); }
TEST(MemAlloc_ContinuesInTheNextLaunchWithoutMemReset) { run_topic("allocators", 1, 3); }
TEST(MemAllocNolock_ReturnsConsecutiveBuffersUnderTheHeapsLock) { run_topic("heap_lock", 0); }
TEST(FsbAlloc_AllocatesAndFreesItsBlocks) { run_topic("allocators", 2); }
TEST(BuddyAlloc_FillsItsHeapInPowersOfTwoAndMergesFreeBlocks) { run_topic("allocators", 3); }
TEST(BuddyAlloc_SetsErrno) { run_topic("allocators", 4); }
TEST(BuddyRealloc_KeepsTheContents) { run_topic("allocators", 5); }

// --- Start-up, addresses, functions

TEST(Boot_FreesAllMutexes) {
  pe_machine(1);
  Loaded set(1, "hardware");
  for (uint32_t launches = 1; launches <= 3; ++launches) {
    launch(set.set);
    CHECK_EQ(number(set.all[0], "trylocks"), 2 * launches);
  }
}

TEST(MramAddresses_OfAProgramBeginAt0) { run_topic("hardware", 1); }
TEST(Dialect_OfTheSdksCompilerCompilesAndRuns) {
  run_topic("dialect", 0);
  run_topic("dialect_O0", 0);
}
constexpr const char *kAsmBlocks[] = {"asm_blocks", "asm_blocks_O0", "asm_blocks_Os"};
TEST(Instruction_InAnAsmBlockComputesItsResult) { run_topic("instructions", 0); }
TEST(Instruction_AcquireAndReleaseExcludeOtherTasklets) { run_topic("instructions", 1); }
TEST(Instruction_StopEndsItsTasklet) { run_topic("instructions", 2); }
TEST(Instruction_NopTakesTheTimeOfOneInstruction) { run_topic("instructions", 3); }
TEST(AsmBlock_OfSeveralInstructionsComputesItsResults) {
  for (const char *program : kAsmBlocks) run_topic(program, 0);
}
TEST(AsmBlock_WithALockExcludesOtherTasklets) {
  for (const char *program : kAsmBlocks) run_topic(program, 1);
}
TEST(AsmBlock_CountsEachInstructionAsOne) {
  for (const char *program : kAsmBlocks) run_topic(program, 2);
}
constexpr const char *kAsmThreads[] = {"asm_threads", "asm_threads_O0"};
TEST(AsmBlock_TransfersByDma) {
  for (const char *program : kAsmThreads) run_topic(program, 0);
}
TEST(AsmBlock_UsesTheRunRegister) {
  for (const char *program : kAsmThreads) run_topic(program, 1);
}
TEST(AsmBlock_StopsAndResumesTasklets) {
  for (const char *program : kAsmThreads) run_topic(program, 2);
}
TEST(AsmBlock_ReadsAndConfiguresTheTime) {
  for (const char *program : kAsmThreads) run_topic(program, 3);
}
constexpr const char *kAssembly[] = {"assembly", "assembly_O0"};
TEST(Assembly_AndCCallEachOther) {
  for (const char *program : kAssembly) run_topic(program, 0);
}
TEST(Assembly_HasDataInWram) {
  for (const char *program : kAssembly) run_topic(program, 1);
}
TEST(Assembly_CountsEachInstructionAsOne) { run_topic("assembly", 4); }
/// Checks the fault of a topic of a program.
void check_fault(const char *name, uint32_t topic, const char *reason) {
  pe_machine(1);
  Loaded set(1, name);
  put(set.set, "topic", topic);
  CHECK_EQ(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
  CHECK(fault_of(set.set).find(reason) != std::string::npos);
}

TEST(AsmBlock_ThatCannotResumeOrClearATaskletFaults) {
  check_fault("asm_threads", 4, "resume of tasklet 1, which waits at the barrier at");
  check_fault("asm_threads", 5, "resume of tasklet 4, but the program has 4 tasklets");
  check_fault("asm_threads", 6, "clr_run of tasklet 1 is not supported; use stop");
}
TEST(Assembly_ThatBreaksTheCallingConventionFaults) {
  check_fault("assembly", 2,
              ".S:114 (a jump to an address that is not the return address), in wrong_return");
  check_fault("assembly", 3, ".S: changes_r15 changes one of r14 to r22, which it must preserve");
}
TEST(Functions_OfTheProgramReplaceMathFunctionsOfC) { run_topic("hardware", 2); }

TEST(Loops_ThatWaitForAnotherTaskletsStoreEndAtTheSameModelledTime) {
  std::string first;
  for (int strict : {kLenient, kStrict}) {
    pe_machine(1, strict);
    Loaded set(4, "stores");
    launch(set.set);
    for (dpu_set_t dpu : set.all) check_expectations(dpu, "stores", __FILE__, __LINE__);
    if (first.empty()) first = modelled(report_of(set.set));
    CHECK_EQ(modelled(report_of(set.set)), first);
  }
}

// Thread sanitizer delays the signal that interrupts a tasklet until the thread makes a call that
// it intercepts; this program makes none.
#if !defined(__SANITIZE_THREAD__)
TEST(Loops_ThatTheCompilerDoesNotRecogniseAreInterrupted) { run_topic("stores", 1); }
#endif

TEST(Interruption_ChangesNoRegister) {
  pe_machine(1);
  Loaded set(1, "stores");
  CHECK_PROGRAM(set.all[0], "stores", 2);
  uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
  double x = 1, y = 2, z = 3;
  for (uint32_t i = 0; i < 20000000; ++i) {
    a = a * 6364136223846793005u + 1, b ^= a >> 7, c += b, d ^= c << 3, e += d ^ i,
    f = (f << 1 | f >> 63) + e;
    x = x * 0.5 + 1, y = y * 0.25 + x, z = z * 0.125 + y;
  }
  for (uint32_t tasklet = 0; tasklet < 24; ++tasklet) {
    CHECK_EQ(get<uint64_t>(set.all[0], "mixed", 8 * tasklet), a ^ b ^ c ^ d ^ e ^ f);
    CHECK_EQ(get<double>(set.all[0], "summed", 8 * tasklet), x + y + z);
  }
}

// --- Tasklets that wait for each other

TEST(Barrier_BlocksEveryTaskletInEveryRound) { run_topic("synchronisation", 0); }
TEST(Barrier_WorksFor1To24TaskletsIfTheProgramSetsItsFields) { run_topic("synchronisation", 1); }

TEST(Mutex_ExcludesOtherTaskletsAndWithoutItUpdatesAreLost) {
  pe_machine(1);
  Loaded set(1, "synchronisation");
  CHECK_PROGRAM(set.all[0], "synchronisation", 2);
  CHECK(number(set.all[0], "lost_without_lock") > 0);
}

TEST(Mutex_GoesToTheTaskletThatHasWaitedLongest) { run_topic("synchronisation", 15); }
TEST(MutexTrylock_ReturnsWhetherItTookTheMutex) { run_topic("synchronisation", 3); }
TEST(MutexPool_GuardsEachNumberByTheMutexOfItsLowBits) { run_topic("synchronisation", 4); }
TEST(Vmutex_GuardsEachNumberByASeparateBit) { run_topic("synchronisation", 5); }
TEST(Semaphore_AdmitsOneTaskletPerUnitAlsoFromBelowZero) { run_topic("synchronisation", 6); }
TEST(Semaphore_ImplementsABoundedQueue) { run_topic("synchronisation", 7); }
TEST(Handshake_WaiterFirst) { run_topic("synchronisation", 8); }
TEST(Handshake_NotifierFirstWaitsForTheWaiter) { run_topic("synchronisation", 9); }
TEST(Handshake_ReturnsEalreadyToASecondWaiter) { run_topic("synchronisation", 10); }

TEST(Handshake_PassesPrefixSumsAlongAllTasklets) {
  pe_machine(1);
  Loaded set(1, "synchronisation");
  CHECK_PROGRAM(set.all[0], "synchronisation", 11);
  for (uint32_t i = 0; i < 24; ++i)
    CHECK_EQ(number(set.all[0], "orders", i), (i + 1) * (i + 2) / 2);
}

TEST(AtomicBit_IsALockAloneAndInArrays) { run_topic("synchronisation", 12); }
TEST(Allocators_SerialiseTaskletsInTheOrderOfTheirTime) { run_topic("synchronisation", 13); }
#if !defined(__SANITIZE_THREAD__)  // see Loops_ThatTheCompilerDoesNotRecogniseAreInterrupted
TEST(Allocators_WaitForAnInterruptedTaskletThatHasTheirLock) { run_topic("synchronisation", 14); }
#endif

// --- Reading MRAM

TEST(Seqread_CrossesAllPageBordersWithEveryCacheSize) {
  pe_machine(1);
  std::vector<uint8_t> pattern(8192 + 2048);
  for (uint32_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<uint8_t>(i * 7 + i / 251);
  for (const char *name : {"sequential_32", "sequential_64", "sequential_128", "sequential_256",
                           "sequential_512", "sequential_1024"}) {
    Loaded set(1, name);
    CHECK_OK(dpu_copy_to(set.set, kHeap, 0, pattern.data(), pattern.size()));
    CHECK_PROGRAM(set.all[0], name, 0);
  }
}

TEST(Seqread_AllocatesSeparateBuffersForTasklets) {
  pe_machine(1);
  std::vector<uint32_t> words(12 * 200);
  std::iota(words.begin(), words.end(), 1u);
  Loaded set(1, "readers");
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, words.data(), words.size() * sizeof words[0]));
  CHECK_PROGRAM(set.all[0], "readers", 0);
}

TEST(MramUnaligned_ReadsWritesAndUpdatesAtAnyAddress) {
  pe_machine(1);
  for (uint32_t topic = 0; topic < 4; ++topic) {
    Loaded set(1, "unaligned");
    std::vector<uint8_t> bytes(4096);
    for (uint32_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
    CHECK_OK(dpu_copy_to(set.set, kHeap, 0, bytes.data(), bytes.size()));
    CHECK_PROGRAM(set.all[0], "unaligned", topic);
  }
}

TEST(DirectAccess_ReadsWritesAndUpdatesMramVariablesOfAllTypes) {
  pe_machine(1);
  Loaded set(2, "direct");
  put<uint32_t>(set.set, "topic", 0);
  launch(set.set);
  for (dpu_set_t dpu : set.all) {
    check_expectations(dpu, "direct", __FILE__, __LINE__);
    CHECK_EQ(get<uint64_t>(dpu, "wides"), 0x01020304050607F7u);
    CHECK_EQ(get<uint64_t>(dpu, "wides", 8), UINT64_C(5) << 40);
    CHECK_EQ(get_mram<uint32_t>(dpu, "words", 8), 0xFFFFFFFFu);
    CHECK_EQ(get_mram<uint8_t>(dpu, "bytes", 3), 0xAB);
  }
}

TEST(DirectAccess_AndDmaSeeEachOthersWrites) { run_topic("direct", 1); }
TEST(DirectAccess_OfAllTaskletsReachesTheSameMram) { run_topic("direct", 2); }

TEST(DirectAccess_ReachesAllOfMramSeesTheHostsBytesAndIsCounted) {
  pe_machine(1);
  Loaded set(1, "direct");
  const dpu_set_t dpu = set.all[0];
  for (uint32_t i = 0; i < 20; ++i) put_mram<uint32_t>(dpu, kHeap, 1000 * i, 200000 * i);
  dpu_symbol_t heap;
  CHECK_OK(dpu_get_symbol(dpu_get_program(dpu.dpu), kHeap, &heap));
  put_mram<uint8_t>(dpu, kHeap, 41, heap.size - 1);
  CHECK_PROGRAM(dpu, "direct", 3);
  for (uint32_t i = 0; i < 20; ++i) CHECK_EQ(get_mram<uint32_t>(dpu, kHeap, 200000 * i), 1001 * i);
  CHECK_EQ(get_mram<uint8_t>(dpu, kHeap, heap.size - 1), 42);
  CHECK_EQ(report_of(dpu).direct_pages, 21u);
  launch(dpu);
  CHECK_EQ(get_mram<uint8_t>(dpu, kHeap, heap.size - 1), 43);
}

TEST(DirectAccess_OfEachPeReachesOnlyItsOwnMram) {
  pe_machine(1);
  Loaded set(64, "direct");
  for (uint32_t topic : {0u, 1u, 2u, 3u}) {
    load(set.set, "direct");
    for (uint32_t i = 0; i < 64; ++i) put_mram<uint32_t>(set.all[i], kHeap, 10000 * i, 200000 * 7);
    put<uint32_t>(set.set, "topic", topic);
    launch(set.set);
    for (uint32_t i = 0; i < 64; ++i) {
      check_expectations(set.all[i], "direct", __FILE__, __LINE__);
      CHECK_EQ(get_mram<uint32_t>(set.all[i], kHeap, 200000 * 7), 10000 * i + (topic == 3 ? 7 : 0));
    }
  }
}

TEST(Arithmetic_HasTheResultsOfADpuWhereCHasNone) {
  for (const char *name : {"values", "values_O0", "values_O3"}) {
    pe_machine(1);
    Loaded set(1, name);
    CHECK_PROGRAM(set.all[0], "values", 0);
  }
}

TEST(Runtime_BehavesTheSameAtEveryOptimisationLevel) {
  pe_machine(1);
  const struct {
    const char *name, *plain;
    uint32_t topics;
  } programs[] = {{"synchronisation_O0", "synchronisation", 14},
                  {"direct_O0", "direct", 3},
                  {"allocators_O3", "allocators", 6},
                  {"synchronisation_Os", "synchronisation", 14},
                  {"direct_O3", "direct", 3}};
  for (const auto &program : programs)
    for (uint32_t topic = 0; topic < program.topics; ++topic) {
      Loaded set(1, program.name);
      CHECK_PROGRAM(set.all[0], program.plain, topic);
    }
}

// --- The C library

TEST(String_FunctionsEqualTheHostsLibrary) {
  pe_machine(1);
  Loaded set(16, "strings");
  struct Input {
    uint8_t bytes[CASE_BYTES];
    string_case cases[CASES];
  };
  std::vector<Input> inputs(set.all.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (uint32_t j = 0; j < CASE_BYTES; ++j)
      inputs[i].bytes[j] =
          static_cast<uint8_t>('a' + noise(i, j) % 4 + (noise(i + 99, j) % 16 == 0 ? 120 : 0));
    for (uint32_t j : {noise(i, 500) % 20 + 4u, 25u, 31u, 45u, 63u, 95u, 127u})
      inputs[i].bytes[j] = 0;
    for (uint32_t j = 0; j < CASES; ++j)
      inputs[i].cases[j] = {static_cast<uint32_t>((i * CASES + j) % CASE_FUNCTIONS),
                            noise(i, 1000 + 4 * j) % 32u, noise(i, 1001 + 4 * j) % 32u,
                            noise(i, 1002 + 4 * j) % 24u};
    CHECK_OK(dpu_copy_to(set.all[i], "bytes", 0, inputs[i].bytes, CASE_BYTES));
    CHECK_OK(dpu_copy_to(set.all[i], "cases", 0, inputs[i].cases, sizeof inputs[i].cases));
  }
  launch(set.set);
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_expectations(set.all[i], "strings", __FILE__, __LINE__);
    for (uint32_t j = 0; j < CASES; ++j) {
      uint8_t copy[CASE_BYTES];
      std::memcpy(copy, inputs[i].bytes, CASE_BYTES);
      const uint32_t value = call_case(copy, &inputs[i].cases[j]);
      const auto got = get<string_result>(set.all[i], "results", j * sizeof(string_result));
      const std::string which =
          "function " + std::to_string(inputs[i].cases[j].function) + " of string_case.h: ";
      CHECK_EQ(which + std::to_string(got.value), which + std::to_string(value));
      CHECK_EQ(which + std::to_string(got.checksum), which + std::to_string(case_checksum(copy)));
    }
  }
}

TEST(Arithmetic_OfAllTypesEqualsTheHostsBits) {
  pe_machine(1);
  Loaded set(8, "arithmetic");
  std::vector<arithmetic_case> cases(set.all.size() * ARITHMETIC_CASES);
  for (size_t i = 0; i < cases.size(); ++i) {
    const uint32_t narrow = i % 4 == 0 ? 40 : 0;
    cases[i].a = static_cast<int64_t>(noise_word(1, i)) >> narrow;
    cases[i].b = static_cast<int64_t>(noise_word(2, i)) >> (i % 3 == 0 ? 45 : narrow);
    if (cases[i].b == 0) cases[i].b = 3;
    cases[i].x = (static_cast<double>(noise_word(3, i) >> 11) / 9007199254740992.0 - 0.5) * 2000;
    cases[i].y = (static_cast<double>(noise_word(4, i) >> 11) / 9007199254740992.0 + 0.001) * 1000;
  }
  for (size_t i = 0; i < set.all.size(); ++i)
    CHECK_OK(dpu_copy_to(set.all[i], "cases", 0, &cases[i * ARITHMETIC_CASES],
                         ARITHMETIC_CASES * sizeof(arithmetic_case)));
  launch(set.set);
  for (size_t i = 0; i < cases.size(); ++i) {
    uint64_t want[ARITHMETIC_RESULTS], got[ARITHMETIC_RESULTS];
    compute_case(&cases[i], want);
    CHECK_OK(dpu_copy_from(set.all[i / ARITHMETIC_CASES], "results",
                           i % ARITHMETIC_CASES * sizeof got, got, sizeof got));
    for (uint32_t j = 0; j < ARITHMETIC_RESULTS; ++j) {
      const std::string which = "result " + std::to_string(j) + ": ";
      CHECK_EQ(which + std::to_string(got[j]), which + std::to_string(want[j]));
    }
  }
}

TEST(Printf_PrintsAllConversionsAsTheHostDoes) { CHECK_EQ(printed(0), printed_by_host()); }

TEST(Printf_PrintsLongsWith64Bits) {
  CHECK_EQ(printed(1), std::string("-1234567890123456789 18446744073709551615 123456789abcdef\n"));
}

TEST(Printf_PrintsAnAddressInHexadecimal) {
  const std::string address = printed(2);
  CHECK(address.size() > 2);
  CHECK(address.find_first_not_of("0123456789abcdefABCDEFxX") == std::string::npos);
}

TEST(PutsAndPutchar_PrintALineAndACharacter) { CHECK_EQ(printed(3), std::string("a line\nx9\n")); }

TEST(Printf_OfAllTaskletsIsInTimeOrder) {
  CHECK_EQ(printed(4), std::string("tasklet 0\ntasklet 1\ntasklet 2\ntasklet 3\n"));
}

TEST(Types_HaveTheSizesOfTheSdksHeaders) { run_topic("basics", 0); }

TEST(Me_IsTheNumberOfTheTasklet) {
  pe_machine(1);
  Loaded set(1, "basics");
  put<uint32_t>(set.set, "topic", 1);
  launch(set.set);
  for (uint32_t i = 0; i < 24; ++i) CHECK_EQ(number(set.all[0], "numbers", i), 1000 + 2 * i);
}

TEST(Errno_BelongsToTheTasklet) { run_topic("basics", 2); }

TEST(CheckStack_ReturnsUnusedWordsOfTheDeclaredStack) {
  pe_machine(1);
  Loaded set(1, "basics");
  put<uint32_t>(set.set, "topic", 3);
  launch(set.set);
  for (uint32_t i = 0; i < 24; ++i) {
    const int declared_words = i == 3 ? 512 : 128;
    const int outside = get<int32_t>(set.all[0], "unused_words", 4 * i),
              inside = get<int32_t>(set.all[0], "unused_words", 4 * (24 + i));
    CHECK(outside < declared_words && outside > declared_words - 100);
    CHECK(inside < outside - 4 * 16);  // four frames of 16 words at least
  }
}

TEST(Stdlib_ConvertsDividesAndReportsRangeErrors) { run_topic("basics", 4); }
TEST(Ctype_ClassifiesAscii) { run_topic("basics", 5); }

TEST(Exit_EndsOnlyTheCallingTaskletForAnyStatus) {
  pe_machine(1);
  Loaded set(1, "basics");
  put<uint32_t>(set.set, "topic", 6);
  launch(set.set);
  for (uint32_t i = 0; i < 24; ++i)
    CHECK_EQ(number(set.all[0], "numbers", i), i % 2 == 0 ? 1u : 2u);
}

TEST(Programs_MayBeInCxx) {
  for (const char *name : {"classes", "classes_O0"}) {
    pe_machine(1, kStrict);
    Loaded set(1, name);
    CHECK_PROGRAM(set.all[0], "classes", 0);
  }
}
