// Programs of the vendor's compiler: their execution, time, faults and files. Small programs in
// assembly stand for them.
#include "machine_code.h"

#include <algorithm>
#include <random>

using namespace fixture;

namespace {

/// Boots the tasklets 1 to `tasklets` - 1 one after another. Uses r22 and r23.
const std::string kBootTasklets =
    "lw r22, zero, tasklets\n add r23, id, 1\n jeq r23, r22, .+2\n boot id, 1\n";
const std::string kEnd = "end: stop true, end\n";

/// A program whose tasklets add 1 to a counter 100 times each. lock: an instruction before the
/// addition, in the middle of which other tasklets run.
MachineCode counting_program(uint64_t tasklets = 24,
                             const std::string &lock = "acquire zero, 200, nz, .") {
  MachineCode program(kBootTasklets + "move r0, 100\nloop: " + lock +
                      "\n"
                      "lw r1, zero, counter\n time r2\n add r1, r1, 1\n sw zero, counter, r1\n"
                      "release zero, 200, nz, .+1\n"
                      "add r0, r0, -1, nz, loop\n" +
                      kEnd);
  program.variable("counter", {0});
  program.variable("tasklets", {tasklets});
  return program;
}

/// Runs a program on one PE and returns its fault, or "".
std::string fault_of(MachineCode program, int strict = kLenient) {
  pe_machine(1, strict, 2, 1);
  Set set(1);
  program.load(set.set);
  const dpu_error_t status = dpu_launch(set.set, DPU_SYNCHRONOUS);
  const std::string text = fixture::fault_of(set.set);
  CHECK_EQ(status == DPU_OK, text.empty());
  const std::string prefix = "rank 0, chip 0, bank 0, ";
  return text.substr(std::min(text.size(), prefix.size()));
}

}  // namespace

TEST(MachineCode_HostReachesArrays) {
  pe_machine(1);
  Set set(3);
  MachineCode program(
      "move r0, 0\n move r1, values\n"
      "loop: ld d2, r1, 0\n add r0, r0, r3\n add r1, r1, 8\n jltu r1, sum, loop\n"
      "sw zero, sum, r0\n" +
      kEnd);
  program.variable("values", {1, 2, 3, 4});
  program.variable("sum", {0});
  program.load(set.set);
  const auto dpus = set.dpus();
  for (uint32_t i = 0; i < dpus.size(); ++i) put(dpus[i], "values", uint64_t{100 * i}, 8);
  launch(set.set);
  for (uint32_t i = 0; i < dpus.size(); ++i) CHECK_EQ(number(dpus[i], "sum"), 8 + 100 * i);
  // A load restores the variables and keeps MRAM; a launch keeps both.
  CHECK_EQ(get<uint64_t>(dpus[0], "values", 8), 0u);
  CHECK_EQ(get<uint64_t>(dpus[0], kHeap), 0x0807060504030201u);
  program.load(set.set);
  CHECK_EQ(get<uint64_t>(dpus[0], "values", 8), 2u);
  CHECK_EQ(number(dpus[0], "sum"), 0u);
}

TEST(MachineCode_MutexesExcludeTasklets) {
  for (const int strict : {kStrict, kLenient}) {
    pe_machine(1, strict);
    Set set(64);
    counting_program().load(set.set);
    launch(set.set);
    const std::string first = modelled(report_of(set.set));
    for (const dpu_set_t dpu : set.dpus()) CHECK_EQ(number(dpu, "counter"), 2400u);
    launch(set.set);  // the same time again
    CHECK_EQ(modelled(report_of(set.set)), first);
    for (const dpu_set_t dpu : set.dpus()) CHECK_EQ(number(dpu, "counter"), 4800u);
    counting_program(24, "nop").load(set.set);
    launch(set.set);
    for (const dpu_set_t dpu : set.dpus()) CHECK(number(dpu, "counter") < 2400u);
  }
}

TEST(MachineCode_TaskletsStopAndResume) {
  pe_machine(1);
  Set set(1);
  // Tasklet 1 stops; tasklet 0 resumes it, which first waits until it has stopped, and then waits
  // until it has stopped again.
  MachineCode program(
      "jnz id, other\n boot id, 1\n resume id, 1, nz, .\n read_run id, 1, nz, .\n"
      "lw r0, zero, order\n add r0, r0, r0\n sw zero, order, r0\n" +
      kEnd +
      "other: move r1, 50\n"
      "wait: add r1, r1, -1, nz, wait\n"
      "stop true, resumed\n"
      "resumed: lw r0, zero, order\n add r0, r0, 7\n sw zero, order, r0\n jump end\n");
  program.variable("order", {1});
  program.load(set.set);
  launch(set.set);
  CHECK_EQ(number(set.dpus()[0], "order"), 16u);
}

TEST(MachineCode_CountsTaskletsThatNobodyResumes) {
  const std::string text =
      kBootTasklets + "jeq id, 0, end\n stop true, resumed\nresumed: nop\n" + kEnd;
  MachineCode program(text);
  program.variable("tasklets", {4});
  pe_machine(1);
  {
    Set set(2);
    program.load(set.set);
    launch(set.set);
    CHECK_EQ(report_of(set.set).waiting_tasklets, 6u);
  }
  CHECK_EQ(fault_of(program, kStrict),
           "tasklet 1: deadlock: tasklet 1 waits for another tasklet to resume it, at 0x80000030 "
           "in resumed");
}

TEST(MachineCode_MutexesGoToTheTaskletThatWaitsLongest) {
  pe_machine(1);
  Set set(1);
  // Tasklet 0 locks the mutex before it boots the others, which then wait in the order of their
  // numbers, or, if they first wait 40 times the number, in the opposite order.
  for (const bool is_reversed : {false, true}) {
    MachineCode program(
        std::string("jeq id, 0, first\n") +
        (is_reversed ? "move r0, 1000\n lsl r1, id, 5\n sub r0, r0, r1\n"
                     : "move r0, 1\n lsl r1, id, 5\n add r0, r0, r1\n") +
        "wait: add r0, r0, -1, nz, wait\n"
        "acquire zero, 200, nz, .\n"
        "lw r3, zero, count\n lsl r2, r3, 3\n move r4, id\n sw r2, order, r4\n add r3, r3, 1\n"
        "sw zero, count, r3\n release zero, 200, nz, .+1\n jump end\n"
        "first: acquire zero, 200, nz, .\n move r0, 1\n"
        "next: boot r0, 0\n add r0, r0, 1\n jneq r0, 9, next\n"
        "move r0, 5000\n hold: add r0, r0, -1, nz, hold\n release zero, 200, nz, .+1\n" +
        kEnd);
    program.variable("order", std::vector<uint64_t>(8));
    program.variable("count", {0});
    program.load(set.set);
    launch(set.set);
    for (uint32_t i = 0; i < 8; ++i)
      CHECK_EQ(get<uint64_t>(set.dpus()[0], "order", 8 * i), is_reversed ? 8 - i : i + 1);
  }
}

TEST(MachineCode_RunRegisterHasBitsWithoutTasklets) {
  pe_machine(1);
  Set set(1);
  MachineCode program(
      "resume zero, 30, z, .+1\n move r0, 0\n"
      "read_run zero, 30, z, .+2\n or r0, r0, 1\n"
      "clr_run zero, 94, z, .+2\n or r0, r0, 2\n"  // 94 is bit 30 of 64
      "read_run zero, 30, z, .+2\n or r0, r0, 4\n"
      "sw zero, bits, r0\n" +
      kEnd);
  program.variable("bits", {0});
  program.load(set.set);
  launch(set.set);
  CHECK_EQ(number(set.dpus()[0], "bits"), 3u);
}

TEST(MachineCode_DmaTakesItsSizeFromBothOperands) {
  pe_machine(1);
  Set set(1);
  // The highest byte of the WRAM address adds to the length: 2 + 1 + 1 words.
  MachineCode program(
      "move r0, buffer\n or r0, r0, 0x2000000\n move r1, 0x08000400\n"
      "ldma r0, r1, 1\n add r1, r1, 0x100\n sdma r0, r1, 1\n" +
      kEnd);
  const std::vector<uint64_t> before(6, 9);
  program.variable("buffer", before);
  program.load(set.set);
  for (uint64_t i = 0; i < 8; ++i)
    put(set.set, kHeap, 1000 + i, static_cast<uint32_t>(0x400 + 8 * i));
  launch(set.set);
  const dpu_set_t dpu = set.dpus()[0];
  for (uint32_t i = 0; i < 6; ++i)
    CHECK_EQ(get<uint64_t>(dpu, "buffer", 8 * i), i < 4 ? 1000 + i : 9u);
  for (uint32_t i = 0; i < 5; ++i)
    CHECK_EQ(get<uint64_t>(dpu, kHeap, 0x500 + 8 * i), i < 4 ? 1000 + i : 0u);
  const dpuemu_report_t report = report_of(set.set);
  CHECK_EQ(report.dma_read_bytes, 32u);
  CHECK_EQ(report.dma_write_bytes, 32u);
}

TEST(MachineCode_LoadsInstructionsFromMram) {
  pe_machine(1);
  Set set(3);
  // PE i loads `move r0, 100 + i`, the last PE loads nothing.
  MachineCode program(
      "call r23, function\n sw zero, before, r0\n"
      "lw r0, zero, loads\n jz r0, call\n"
      "move r0, function\n lsl r0, r0, 3\n move r1, 0x08000400\n ldmai r0, r1, 1\n"
      "call: call r23, function\n sw zero, after, r0\n" +
      kEnd + "function: move r0, 1\n jump r23\n");
  program.variable("before", {0});
  program.variable("after", {0});
  program.variable("loads", {1});
  const auto dpus = set.dpus();
  const auto run = [&](uint32_t loaded, uint32_t before) {
    for (uint32_t i = 0; i < dpus.size(); ++i) {
      put(dpus[i], kHeap, word_of("move r0, " + std::to_string(loaded + i)), 0x400);
      put(dpus[i], kHeap, word_of("jump r23"), 0x408);
    }
    put(dpus[2], "loads", uint64_t{0});
    launch(set.set);
    for (uint32_t i = 0; i < dpus.size(); ++i) {
      CHECK_EQ(number(dpus[i], "before"), i == 2 || before == 0 ? 1 : before + i);
      CHECK_EQ(number(dpus[i], "after"), i == 2 ? 1 : loaded + i);
    }
  };
  program.load(set.set);
  run(100, 0);
  const dpuemu_report_t report = report_of(set.set);
  CHECK_EQ(report.dma_reads, 2u);
  CHECK_EQ(report.dma_read_bytes, 32u);
  run(200, 100);  // a launch keeps the instructions
  program.load(set.set);
  run(300, 0);  // a load restores them
}

TEST(MachineCode_TaskletsGoOnWithInstructionsThatReplaceTheirs) {
  pe_machine(1);
  Set set(1);
  // Tasklet 0 replaces four instructions by `nop`, while the tasklets 1 to 4 wait for a mutex, or
  // have not reached a fault, an illegal word and a misaligned load in modelled time.
  std::string text =
      "jnz id, other\n acquire zero, 200, nz, .\n boot zero, 1\n boot zero, 2\n boot zero, 3\n"
      "boot zero, 4\n move r2, 100\ndelay: add r2, r2, -1, nz, delay\n";
  for (const std::string at : {"at1", "at2", "at3", "at4"})
    text += "move r0, " + at + "\n lsl r0, r0, 3\n move r1, 0x400\n ldmai r0, r1, 0\n";
  MachineCode program(
      text +
      "jump end\n"
      "other: move r3, 1500\n jeq id, 1, at1\n"
      "wait: add r3, r3, -1, nz, wait\n jeq id, 2, at2\n jeq id, 3, at3\n jump at4\n"
      "at1: acquire zero, 200, nz, .\n jump go_on\n"
      "at2: fault 7\n jump go_on\n"
      "at3: fault 8\n jump go_on\n"
      "at4: lw r0, zero, 1\n"
      "go_on: sb id, results, 1\n" +
      kEnd);
  program.variable("results", {0});
  program.set_word(35, 0xFFFFFFFFFFFF);  // at3
  program.load(set.set);
  put(set.set, kHeap, word_of("nop"), 0x400);
  launch(set.set);
  CHECK_EQ(get<uint64_t>(set.dpus()[0], "results"), 0x0101010100u);
}

TEST(MachineCode_LoadsInstructionsUpToTheEndOfIram) {
  // The highest byte of the IRAM address adds to the length: 1 word and 1 + 1 + 1 words.
  const auto fault = [](const std::string &address, int strict = kLenient) {
    return fault_of(MachineCode("move r0, " + address + "\n move r1, 0\n ldmai r0, r1, 1\n" + kEnd),
                    strict);
  };
  const std::string where = ", at 0x80000010";
  CHECK_EQ(fault("0x7FF0"), "");
  CHECK_EQ(fault("0x1007FE8"), "");
  CHECK_EQ(fault("0x7FF8"),
           "tasklet 0: ldmai of 16 bytes between IRAM address 0x7ff8 and MRAM address 0x0: beyond "
           "the end of IRAM" +
               where);
  CHECK_EQ(fault("0x1007FF0"),
           "tasklet 0: ldmai of 24 bytes between IRAM address 0x7ff0 and MRAM address 0x0: beyond "
           "the end of IRAM" +
               where);
  CHECK_EQ(fault("0x804"), "");
  CHECK(fault("0x804", kStrict).find("must be multiples of 8") != std::string::npos);
  // The last loaded instruction runs; before it are words without an instruction.
  MachineCode program("move r0, 0x7FF8\n move r1, 0\n ldmai r0, r1, 0\n move r0, 4094\n jump r0\n");
  CHECK_EQ(fault_of(program), "tasklet 0: the word 0x0 is not an instruction, at 0x80007ff0");
}

// PrIM's Arithmetic-Throughput on DIMMs (CMU-SAFARI/prim-benchmarks, pull request 7): cycles per
// addition of int32, whose loop has 6 instructions, of 1 to 24 tasklets.
TEST(MachineCode_AdditionsTakeTheTimeOfDimms) {
  constexpr double kMeasured[] = {66.08, 33.04, 22.04, 16.52, 13.23, 11.02, 9.46, 8.26,
                                  7.36,  6.62,  6.02,  6.02,  6.02,  6.01,  6.01, 5.99,
                                  5.99,  6.00,  6.00,  5.98,  6.01,  6.01,  6.00, 5.99};
  constexpr uint32_t kAdditions = 2000;
  pe_machine(1);
  Set set(1);
  for (uint32_t tasklets = 1; tasklets <= std::size(kMeasured); ++tasklets) {
    MachineCode program(kBootTasklets + "move r0, " + std::to_string(kAdditions) +
                        "\n move r1, number\n"
                        "loop: lw r2, r1, 0\n add r2, r2, r0\n sw r1, 0, r2\n move r3, r1\n"
                        "add r0, r0, -1\n jnz r0, loop\n" +
                        kEnd);
    program.variable("number", {0});
    program.variable("tasklets", {tasklets});
    program.load(set.set);
    launch(set.set);
    const dpuemu_report_t report = report_of(set.set);
    const double cycles = report.cycles_max / (kAdditions * tasklets);
    CHECK(std::abs(cycles / kMeasured[tasklets - 1] - 1) < 0.01);
    CHECK(report.instructions >= 6u * kAdditions * tasklets);
    CHECK(report.instructions < 6u * kAdditions * tasklets + 10u * tasklets);
  }
}

TEST(MachineCode_CountersCountCyclesOrInstructions) {
  pe_machine(1);
  Set set(1);
  // time_cfg: bit 0 resets; 1 counts cycles, 2 instructions. The register has the value / 16.
  const std::string loop =
      "move r1, 1000\n"
      "loopN: add r1, r1, -1, nz, loopN\n"
      "time r2\n sw zero, resultN, r2\n";
  std::string text;
  for (const auto &[name, mode] : {std::pair{"A", "3"}, {"B", "5"}}) {
    std::string part = std::string("move r0, ") + mode + "\n time_cfg zero, r0\n" + loop;
    for (size_t at; (at = part.find('N')) != std::string::npos;) part.replace(at, 1, name);
    text += part;
  }
  MachineCode program(text + kEnd);
  program.variable("resultA", {0});
  program.variable("resultB", {0});
  program.load(set.set);
  launch(set.set);
  CHECK_EQ(number(set.dpus()[0], "resultA"), 11u * 1002 / 16);
  CHECK_EQ(number(set.dpus()[0], "resultB"), 1002u / 16);
}

TEST(MachineCode_FaultsNameTheInstruction) {
  const auto fault = [](const std::string &text) {
    return fault_of(MachineCode("start: " + text));
  };
  const std::string where = ", at 0x80000000 in start";
  CHECK_EQ(
      fault("lw r0, zero, 2\n"),
      "tasklet 0: an access of 4 bytes to WRAM address 0x2, which is not a multiple of 4" + where);
  CHECK_EQ(
      fault("sd lneg, -7, d0\n"),
      "tasklet 0: an access of 8 bytes to WRAM address 0xfffffff8, beyond the end of WRAM" + where);
  CHECK_EQ(fault("fault 2\n"), "tasklet 0: division by zero" + where);
  CHECK_EQ(fault("fault 77\n"), "tasklet 0: the program executed the instruction fault 77" + where);
  CHECK_EQ(fault("jump 4000\n"), "tasklet 0: the program has no instruction, at 0x80007d00");
  CHECK_EQ(fault("clr_run zero, 3\n"),
           "tasklet 0: clr_run of tasklet 3 is not supported; use stop" + where);
  CHECK(fault("move r0, 12\n time_cfg zero, r0\n").find("mode 6 is not supported") !=
        std::string::npos);
  CHECK(fault("read_run id, 1, z, .\n").find("waits for bit 1 of RUN to change") !=
        std::string::npos);
  CHECK_EQ(fault("acquire zero, 200, true, .+1\n acquire zero, 200, nz, .\n"),
           "tasklet 0: deadlock: tasklet 0 waits for mutex 200, at 0x80000008");
  CHECK(fault("jump start\n").find("an endless loop, or a long program") != std::string::npos);
  CHECK_EQ(fault("move r0, 0xFFF8\n move r1, 0x03FFFFF0\n sdma r0, r1, 1\n"),
           "tasklet 0: sdma of 16 bytes between WRAM address 0xfff8 and MRAM address 0x3fffff0: "
           "beyond the end of WRAM, at 0x80000010");
  CHECK_EQ(fault("move r0, 64\n move r1, 0x04000000\n ldma r0, r1, 0\n"),
           "tasklet 0: ldma of 8 bytes between WRAM address 0x40 and MRAM address 0x4000000: "
           "outside MRAM, at 0x80000010");
  MachineCode illegal("start: nop\n");
  illegal.set_word(0, 0xFFFFFFFFFFFF);
  CHECK_EQ(fault_of(illegal), "tasklet 0: the word 0xffffffffffff is not an instruction" + where);
}

TEST(MachineCode_StrictRefusesRoundedAddresses) {
  const MachineCode program("move r0, 0x1004\n move r1, 0\n ldma r0, r1, 0\n" + kEnd);
  CHECK_EQ(fault_of(program), "");
  CHECK(fault_of(program, kStrict).find("must be multiples of 8") != std::string::npos);
}

TEST(MachineCode_LogHasTheOutputOfPrintf) {
  pe_machine(1);
  Set set(1);
  MachineCode program(kEnd);
  program.variable("__stdout_buffer_state", {0});
  program.symbol("__stdout_buffer", 0x08000000, 4096);
  program.load(set.set);
  const auto print = [&](std::string log, uint32_t has_wrapped = 0) {
    log.resize((log.size() + 7) / 8 * 8);
    CHECK_OK(dpu_copy_to(set.set, "__stdout_buffer", 0, log.data(), log.size()));
    put(set.set, "__stdout_buffer_state",
        std::array<uint32_t, 2>{static_cast<uint32_t>(log.size()), has_wrapped});
    launch(set.set);
  };
  using namespace std::string_literals;
  print("%s%d%s%08lx%s\0value \0"s + "\xFE\xFF\xFF\xFF"s + ", \0\x78\x56\x34\x12\0\0\0\0!\n\0"s);
  CHECK_EQ(log_of(set.dpus()[0]), "value -2, 12345678!\n");
  print("%c%s%.2f%s\0x: \0"s + "\0\0\0\0\0\0\xF8\x3F"s + ";\0"s);
  CHECK_EQ(log_of(set.dpus()[0]), "x: 1.50;");
  char *text = nullptr;
  size_t size = 0;
  FILE *const stream = open_memstream(&text, &size);
  print("%n\0\0\0\0\0"s);
  CHECK_STATUS(dpu_log_read(set.dpus()[0], stream), DPU_ERR_LOG_FORMAT);
  print("%s\0a\n\0"s, 1);
  CHECK_STATUS(dpu_log_read(set.dpus()[0], stream), DPU_ERR_LOG_BUFFER_TOO_SMALL);
  std::fclose(stream);
  std::free(text);
}

TEST(MachineCode_SharesAProcessWithOtherPrograms) {
  pe_machine(2);
  Set code(64), native(64);
  counting_program().load(code.set);
  load(native.set, "synchronisation");
  CHECK_OK(dpu_launch(code.set, DPU_ASYNCHRONOUS));
  launch(native.set);
  CHECK_OK(dpu_sync(code.set));
  CHECK_EQ(number(code.dpus()[0], "counter"), 2400u);
  // One set runs programs of both kinds, one after another.
  load(code.set, "synchronisation");
  launch(code.set);
  counting_program(5).load(code.set);
  launch(code.set);
  for (const dpu_set_t dpu : code.dpus()) CHECK_EQ(number(dpu, "counter"), 500u);
}

TEST(MachineCode_BrokenFilesAreRefused) {
  pe_machine(1);
  Set set(1);
  const std::vector<uint8_t> whole = counting_program().file();
  std::mt19937 random(1);
  uint32_t refused = 0;
  for (uint32_t i = 0; i < 3000; ++i) {
    std::vector<uint8_t> bytes = whole;
    if (i % 4 == 0) bytes.resize(random() % bytes.size());
    for (uint32_t j = 0; j < 1 + i % 8 && !bytes.empty(); ++j)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    const bool is_loaded =
        dpu_load_from_memory(set.set, bytes.data(), bytes.size(), nullptr) == DPU_OK;
    refused += !is_loaded;
    if (!is_loaded) continue;
    // The program may be an endless loop.
    CHECK_OK(dpu_launch(set.set, DPU_ASYNCHRONOUS));
    for (bool has_ended = false, has_fault; !has_ended;) {
      CHECK_OK(dpuemu_stop(set.set));
      CHECK_OK(dpu_status(set.set, &has_ended, &has_fault));
    }
    dpu_sync(set.set);
  }
  CHECK(refused > 500);
  CHECK(refused < 3000);
}

TEST(MachineCode_NamesOfSymbolsHaveAtMostTheBytesOfTheFile) {
  pe_machine(1);
  Set set(1);
  const std::string name(2000, 'n');
  const auto file_of = [&](bool overlaps) {
    MachineCode program(kEnd);
    for (uint32_t i = 0; i < 20; ++i) program.symbol(name + std::to_string(i), 64, 8);
    std::vector<uint8_t> bytes = program.file();
    Elf32_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    Elf32_Shdr names;
    std::memcpy(&names, &bytes[header.e_shoff + 5 * sizeof names], sizeof names);
    // The names of the symbols 1 to 20 become suffixes of one name.
    const auto first = bytes.begin() + names.sh_offset;
    if (overlaps) std::replace(first + 1, first + 20 * 2000, uint8_t{0}, uint8_t{'n'});
    return bytes;
  };
  for (const bool overlaps : {false, true}) {
    const TemporaryFile file("names", file_of(overlaps));
    CHECK_STATUS(dpu_load(set.set, file.path.c_str(), nullptr),
                 overlaps ? DPU_ERR_ELF_INVALID_FILE : DPU_OK);
    if (overlaps)
      CHECK(text(DPU_ERR_ELF_INVALID_FILE).find(file.path + ": damaged") != std::string::npos);
  }
}

TEST(MachineCode_ListingNeedsInstructionsOfADpu) {
  std::string listing;
  const auto append = [](const char *line, void *to) {
    *static_cast<std::string *>(to) += std::string(line) + '\n';
  };
  const TemporaryFile file("machine_code", MachineCode("main: nop\n" + kEnd).file());
  CHECK_OK(dpuemu_disassemble(file.path.c_str(), "end", append, &listing));
  CHECK_EQ(listing, "80000008 <end>:\n  80000008:  7ef321000001  stop true, end\n");
  listing.clear();
  CHECK_STATUS(dpuemu_disassemble(program_path("other").c_str(), nullptr, append, &listing),
               DPU_ERR_ELF_INVALID_FILE);
  CHECK(text(DPU_ERR_ELF_INVALID_FILE).find("other: code for the host's processor") !=
        std::string::npos);
  CHECK_EQ(listing, "");
}

TEST(MachineCode_MustFitIntoTheChip) {
  constexpr struct {
    int chip;
    uint32_t tasklets, instructions;
  } kChips[] = {{DPUEMU_CHIP_GENERIC, 24, 4096}, {DPUEMU_CHIP_V1B, 16, 3968}};
  for (const auto &chip : kChips) {
    pe_machine(1, kLenient, 2, 60, chip.chip);
    Set set(1);
    const auto status = [&](uint32_t tasklets, uint32_t instructions) {
      std::string text;
      for (uint32_t i = 0; i < instructions; ++i) text += "nop\n";
      const std::vector<uint8_t> file = MachineCode(text, tasklets).file();
      return dpu_load_from_memory(set.set, const_cast<uint8_t *>(file.data()), file.size(),
                                  nullptr);
    };
    CHECK_OK(status(chip.tasklets, chip.instructions));
    CHECK_STATUS(status(chip.tasklets, chip.instructions + 1), DPU_ERR_INVALID_IRAM_ACCESS);
    CHECK_STATUS(status(chip.tasklets + 1, 1), DPU_ERR_TOO_MANY_TASKLETS);
  }
}
