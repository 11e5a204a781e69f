// Loading, launching, symbols, logs: what the API promises about PE programs.
#include <elf.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>

#include "program_fixture.h"

using namespace fixture;

namespace {

/// A program file whose parts can be changed.
class File {
 public:
  explicit File(const std::string &name) : bytes(program_bytes(name)) {}

  Elf32_Ehdr &header() { return at<Elf32_Ehdr>(0); }
  void set_constant(const std::string &name, uint32_t value) {
    Elf32_Sym *found = nullptr;
    for_each_section([&](Elf32_Shdr &section, const char *) {
      if (section.sh_type != SHT_SYMTAB) return;
      const uint32_t names = at<Elf32_Shdr>(header().e_shoff + section.sh_link * sizeof(Elf32_Shdr)).sh_offset;
      for (uint32_t i = 0; i < section.sh_size / sizeof(Elf32_Sym); ++i) {
        auto &symbol = at<Elf32_Sym>(section.sh_offset + i * sizeof(Elf32_Sym));
        if (name == reinterpret_cast<const char *>(&bytes[names + symbol.st_name])) found = &symbol;
      }
    });
    CHECK(found != nullptr);
    CHECK_EQ(found->st_shndx, SHN_ABS);
    found->st_value = value;
  }
  Elf32_Shdr &section(const std::string &name) {
    Elf32_Shdr *found = nullptr;
    for_each_section([&](Elf32_Shdr &section, const char *own) {
      if (name == own) found = &section;
    });
    CHECK(found != nullptr);
    return *found;
  }
  dpu_error_t load(dpu_set_t set) { return dpu_load_from_memory(set, bytes.data(), bytes.size(), nullptr); }

  std::vector<uint8_t> bytes;

 private:
  template <class T>
  T &at(size_t offset) {
    CHECK(offset + sizeof(T) <= bytes.size());
    return *reinterpret_cast<T *>(&bytes[offset]);
  }
  template <class Act>
  void for_each_section(Act act) {
    const uint32_t names = at<Elf32_Shdr>(header().e_shoff + header().e_shstrndx * sizeof(Elf32_Shdr)).sh_offset;
    for (uint32_t i = 0; i < header().e_shnum; ++i) {
      auto &section = at<Elf32_Shdr>(header().e_shoff + i * sizeof(Elf32_Shdr));
      act(section, reinterpret_cast<const char *>(&bytes[names + section.sh_name]));
    }
  }
};

/// A file in the folder of the programs for the time of a test.
class TemporaryFile {
 public:
  TemporaryFile(const std::string &name, const std::vector<uint8_t> &bytes) : path(program_path(name)) {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  ~TemporaryFile() { std::remove(path.c_str()); }
  const std::string path;
};

/// A set whose PEs run from the construction on, until open() or the end.
class Running {
 public:
  explicit Running(dpu_set_t set) : set_(set) {
    put<uint32_t>(set_, "gate", 0);
    put<uint32_t>(set_, "started", 0);
    CHECK_OK(dpu_launch(set_, DPU_ASYNCHRONOUS));
  }
  ~Running() {
    if (!is_open_) open();
    dpu_sync(set_);
  }
  Running(const Running &) = delete;
  Running &operator=(const Running &) = delete;
  /// Lets the PEs end.
  dpu_error_t open() {
    const uint32_t one = 1;
    is_open_ = true;
    return dpu_broadcast_to(set_, "gate", 0, &one, 4, DPU_XFER_PARALLEL);
  }
  /// Returns when this PE runs.
  static void wait_for(dpu_set_t dpu) {
    for (int i = 0; i < 5000; ++i) {
      if (read_beside(dpu, "started") != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(!"the PE does not start");
  }
  static uint32_t read_beside(dpu_set_t dpu, const char *symbol) {
    uint32_t value = 0;
    CHECK_OK(dpu_prepare_xfer(dpu, &value));
    CHECK_OK(dpu_push_xfer(dpu, DPU_XFER_FROM_DPU, symbol, 0, 4, DPU_XFER_PARALLEL));
    return value;
  }

 private:
  dpu_set_t set_;
  bool is_open_ = false;
};

bool is_compiled(const std::string &text) {
  const TemporaryFile source("tried.c", {text.begin(), text.end()});
  const std::string program = program_path("tried");
  const std::string command = DPUEMU_TEST_COMPILER " -O2 -o " + program + " " + source.path + " >/dev/null 2>&1";
  const bool is_made = std::system(command.c_str()) == 0;
  std::remove(program.c_str());
  return is_made;
}

uint64_t heap_address(const char *program) {
  Loaded set(1, program);
  dpu_symbol_t heap;
  CHECK_OK(dpu_get_symbol(dpu_get_program(set.all[0].dpu), kHeap, &heap));
  CHECK_EQ(heap.address + heap.size, 0x0C000000u);
  launch(set.set);
  CHECK_EQ(number(set.all[0], "own_heap"), heap.address);
  return heap.address - 0x08000000u;
}

}  // namespace

// --- Loading

TEST(Load_RefusesAFileThatDoesNotExist) {
  pe_machine(1);
  Set set(1);
  CHECK_STATUS(dpu_load(set.set, program_path("absent").c_str(), nullptr), DPU_ERR_ELF_NO_SUCH_FILE);
  CHECK_STATUS(dpu_load(set.set, nullptr, nullptr), DPU_ERR_ELF_NO_SUCH_FILE);
}

TEST(Load_RefusesWhatIsNoPeProgram) {
  pe_machine(1);
  Set set(1);
  CHECK_STATUS(dpu_load(set.set, "/proc/self/exe", nullptr), DPU_ERR_ELF_INVALID_FILE);
  const std::string text = "#!/bin/sh\necho this is no program\n";
  const TemporaryFile script("script", {text.begin(), text.end()}), empty("empty", {});
  CHECK_STATUS(dpu_load(set.set, script.path.c_str(), nullptr), DPU_ERR_ELF_INVALID_FILE);
  CHECK_STATUS(dpu_load(set.set, empty.path.c_str(), nullptr), DPU_ERR_ELF_INVALID_FILE);
  CHECK_STATUS(dpu_load(set.set, DPUEMU_TEST_PROGRAMS, nullptr), DPU_ERR_ELF_INVALID_FILE);
  CHECK_STATUS(dpu_load_from_memory(set.set, nullptr, 0, nullptr), DPU_ERR_ELF_INVALID_FILE);
  CHECK_STATUS(dpu_load_from_incbin(set.set, nullptr, nullptr), DPU_ERR_ELF_INVALID_FILE);
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
}

TEST(Load_RefusesTheProgramOfARealDpuAndOtherElfFiles) {
  pe_machine(1);
  Set set(1);
  constexpr uint16_t kDpuMachine = 245;
  File real("other"), wide("other"), object("other"), later("other");
  real.header().e_machine = kDpuMachine;
  CHECK_STATUS(real.load(set.set), DPU_ERR_ELF_INVALID_FILE);
  wide.header().e_ident[EI_CLASS] = ELFCLASS64;
  CHECK_STATUS(wide.load(set.set), DPU_ERR_ELF_INVALID_FILE);
  object.header().e_type = ET_REL;
  CHECK_STATUS(object.load(set.set), DPU_ERR_ELF_INVALID_FILE);
  later.set_constant("__pe_format", 2);
  CHECK_STATUS(later.load(set.set), DPU_ERR_ELF_INVALID_FILE);
  CHECK_OK(File("other").load(set.set));
}

TEST(Load_RefusesEveryTruncatedFile) {
  pe_machine(1);
  Set set(1);
  const std::vector<uint8_t> whole = program_bytes("other");
  for (size_t length = 0; length < whole.size(); length += 1 + whole.size() / 150) {
    std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK_STATUS(dpu_load_from_memory(set.set, part.data(), part.size(), nullptr), DPU_ERR_ELF_INVALID_FILE);
  }
}

TEST(Load_OfAFileWithWrongBytesHarmsNothing) {
  pe_machine(1);
  Set set(1);
  const std::vector<uint8_t> whole = program_bytes("layout_both");
  for (uint32_t round = 0; round < 300; ++round) {
    std::vector<uint8_t> wrong = whole;
    // The header, the section headers and the symbols: where offsets and sizes are.
    const size_t place = round < 52 ? round : wrong.size() - 1 - (noise(1, round) * 256u + noise(2, round)) % (wrong.size() / 2);
    wrong[place] = static_cast<uint8_t>(wrong[place] ^ (1u << noise(3, round) % 8));
    dpu_load_from_memory(set.set, wrong.data(), wrong.size(), nullptr);
  }
  load(set.set, "other");
  launch(set.set);
  CHECK_EQ(number(set.dpus()[0], "output"), 18u);
}

TEST(Load_RefusesWhatIsTooLargeForIram) {
  pe_machine(1);
  Set set(1);
  File file("other");
  // The number is an estimate: up to one and a half times of 4096 is let through.
  file.set_constant("__pe_instructions", 4096);
  CHECK_OK(file.load(set.set));
  file.set_constant("__pe_instructions", 6145);
  CHECK_STATUS(file.load(set.set), DPU_ERR_INVALID_IRAM_ACCESS);
  File text("other");
  text.section(".text").sh_addr = 0x40000000 + 0x20000 - 8;
  CHECK_STATUS(text.load(set.set), DPU_ERR_INVALID_IRAM_ACCESS);
}

TEST(Load_RefusesWhatIsTooLargeForWram) {
  pe_machine(1);
  Set set(1);
  File file("variables");
  Elf32_Shdr &bss = file.section(".bss");
  CHECK_EQ(bss.sh_type, uint32_t{SHT_NOBITS});
  bss.sh_size = 0x10000 - bss.sh_addr + 8;
  CHECK_STATUS(file.load(set.set), DPU_ERR_INVALID_WRAM_ACCESS);
}

TEST(Load_RefusesWhatIsTooLargeForMram) {
  pe_machine(1);
  Set set(1);
  File file("layout_prints");
  Elf32_Shdr &log = file.section(".mram.noinit");
  CHECK_EQ(log.sh_type, uint32_t{SHT_NOBITS});
  log.sh_size = 0x04000000;
  CHECK_OK(file.load(set.set));
  log.sh_size = 0x04000008;
  CHECK_STATUS(file.load(set.set), DPU_ERR_INVALID_MRAM_ACCESS);
}

TEST(Load_RefusesMoreThan24Tasklets) {
  pe_machine(1);
  Set set(1);
  File file("other");
  file.set_constant("__pe_tasklets", 25);
  CHECK_STATUS(file.load(set.set), DPU_ERR_TOO_MANY_TASKLETS);
  file.set_constant("__pe_tasklets", 24);
  CHECK_OK(file.load(set.set));
}

TEST(Load_ThatFailsLeavesTheProgramBefore) {
  pe_machine(1);
  Loaded set(3, "other");
  put<uint32_t>(set.set, "input", 7);
  CHECK_STATUS(dpu_load(set.set, program_path("absent").c_str(), nullptr), DPU_ERR_ELF_NO_SUCH_FILE);
  File large("gate");
  large.set_constant("__pe_tasklets", 25);
  CHECK_STATUS(large.load(set.set), DPU_ERR_TOO_MANY_TASKLETS);
  launch(set.set);
  for (dpu_set_t dpu : set.all) CHECK_EQ(number(dpu, "output"), 21u);
}

TEST(Load_FromMemoryAndFromAnIncbinIsAsFromAFile) {
  pe_machine(1);
  Set set(2);
  // At an odd address, and gone after the call.
  std::vector<uint8_t> bytes = program_bytes("other");
  bytes.insert(bytes.begin(), 0);
  dpu_program_t *program = nullptr;
  CHECK_OK(dpu_load_from_memory(set.set, bytes.data() + 1, bytes.size() - 1, &program));
  CHECK(program != nullptr);
  std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  launch(set.set);
  CHECK_EQ(number(set.dpus()[1], "output"), 18u);
  std::vector<uint8_t> again = program_bytes("gate");
  dpu_incbin_t incbin = {};
  incbin.buffer = again.data();
  incbin.size = again.size();
  CHECK_OK(dpu_load_from_incbin(set.set, &incbin, nullptr));
  put<uint32_t>(set.set, "gate", 1);
  launch(set.set);
  CHECK_EQ(number(set.dpus()[1], "output"), 10u);
}

TEST(Load_SetsWramVariablesAndInitialisedMramAndKeepsTheRestOfMram) {
  pe_machine(1);
  Loaded set(2, "variables");
  const dpu_set_t dpu = set.all[1];
  put<uint64_t>(set.set, "left_in_mram", 500);
  const auto heap = noise_bytes(3, 5000);
  CHECK_OK(dpu_copy_to(set.set, kHeap, 24, heap.data(), heap.size()));
  launch(set.set);
  CHECK_EQ(number(dpu, "launches"), 101u);
  CHECK_EQ(get<uint64_t>(dpu, "initialised_in_mram"), 78u);
  load(set.set, "variables");
  CHECK_EQ(number(dpu, "launches"), 100u);
  CHECK_EQ(get<uint64_t>(dpu, "plain"), 0x1122334455667788u);
  CHECK_EQ(number(dpu, "zeroed", 2), 0u);
  CHECK_EQ(get<uint64_t>(dpu, "initialised_in_mram"), 77u);
  CHECK_EQ(get<uint64_t>(dpu, "left_in_mram"), 501u);
  CHECK(heap_bytes(dpu, 24, heap.size()) == heap);
}

TEST(Load_OfAnotherProgramKeepsMram) {
  pe_machine(1);
  Loaded set(1, "increment");
  const auto heap = noise_bytes(4, 4096);
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, heap.data(), heap.size()));
  load(set.set, "other");
  launch(set.set);
  load(set.set, "increment");
  CHECK(heap_bytes(set.all[0], 0, heap.size()) == heap);
}

// --- Symbols

TEST(Symbols_TellAddressAndSize) {
  pe_machine(1);
  Set set(1);
  dpu_program_t *program = nullptr;
  CHECK_OK(dpu_load(set.set, program_path("variables").c_str(), &program));
  CHECK(program != nullptr && program == dpu_get_program(set.dpus()[0].dpu));
  dpu_symbol_t symbol;
  CHECK_OK(dpu_get_symbol(program, "six_bytes", &symbol));
  CHECK(symbol.size == 6 && symbol.address % 8 == 0 && symbol.address < 0x10000);
  CHECK_OK(dpu_get_symbol(program, "zeroed", &symbol));
  CHECK_EQ(symbol.size, 16u);
  CHECK_OK(dpu_get_symbol(program, "initialised_in_mram", &symbol));
  CHECK(symbol.size == 8 && symbol.address >= 0x08000000 && symbol.address < 0x08000020);
  CHECK_OK(dpu_get_symbol(program, "main", &symbol));
  CHECK(symbol.address >= 0x80000000);
  CHECK_STATUS(dpu_get_symbol(program, "nobody", &symbol), DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_STATUS(dpu_get_symbol(program, nullptr, &symbol), DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_STATUS(dpu_get_symbol(nullptr, "launches", &symbol), DPU_ERR_NO_PROGRAM_LOADED);
}

TEST(Transfer_OfASymbolIsRefusedByNameSizeAndPlace) {
  pe_machine(1);
  Loaded set(2, "variables");
  const dpu_set_t dpu = set.all[0];
  std::vector<uint8_t> bytes(64);
  CHECK_STATUS(dpu_copy_to(set.set, "nobody", 0, bytes.data(), 4), DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_STATUS(dpu_copy_from(dpu, "nobody", 0, bytes.data(), 4), DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_STATUS(dpu_copy_to(set.set, "zeroed", 0, bytes.data(), 20), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(dpu_copy_to(set.set, "zeroed", 12, bytes.data(), 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(dpu_copy_to(set.set, "zeroed", UINT32_MAX - 3, bytes.data(), 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(dpu_copy_to(set.set, "left_in_mram", 8, bytes.data(), 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(dpu_copy_to(set.set, "six_bytes", 0, bytes.data(), 6), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_STATUS(dpu_copy_to(set.set, "zeroed", 2, bytes.data(), 4), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_STATUS(dpu_copy_from(dpu, "zeroed", 4, bytes.data(), 3), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_STATUS(dpu_copy_from(dpu, "main", 0, bytes.data(), 8), DPU_ERR_INVALID_IRAM_ACCESS);
  const dpu_symbol_t beyond = {0xFFF8, 64};
  CHECK_STATUS(dpu_copy_from_symbol(dpu, beyond, 0, bytes.data(), 16), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_OK(dpu_copy_from_symbol(dpu, beyond, 0, bytes.data(), 8));
  CHECK_EQ(number(dpu, "zeroed"), 0u);
}

TEST(Transfer_ReachesEveryPesOwnWram) {
  pe_machine(2);
  Loaded set(128, "variables");
  std::vector<uint32_t> sent(set.all.size()), got(set.all.size());
  for (uint32_t i = 0; i < sent.size(); ++i) {
    sent[i] = 1000 + i;
    CHECK_OK(dpu_prepare_xfer(set.all[i], &sent[i]));
  }
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_TO_DPU, "number", 0, 4, DPU_XFER_DEFAULT));
  launch(set.set);
  for (uint32_t i = 0; i < got.size(); ++i) CHECK_OK(dpu_prepare_xfer(set.all[i], &got[i]));
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, "results", 16, 4, DPU_XFER_DEFAULT));
  for (uint32_t i = 0; i < got.size(); ++i) CHECK_EQ(got[i], 3 * (1000 + i));
}

TEST(HeapPointer_IsBehindTheLogAndTheMramVariables) {
  pe_machine(1);
  CHECK_EQ(heap_address("layout_silent"), 0u);
  CHECK_EQ(heap_address("layout_prints"), 1u << 20);
  CHECK_EQ(heap_address("layout_small_log"), 64u);
  CHECK_EQ(heap_address("layout_variables"), 40u);
  CHECK_EQ(heap_address("layout_both"), 64u + 40u);
}

TEST(WramHeap_BeginsBehindTheDeclaredStacks) {
  pe_machine(1);
  Set set(1);
  dpu_program_t *many = nullptr, *few = nullptr;
  CHECK_OK(dpu_load(set.set, program_path("increment").c_str(), &many));
  CHECK_OK(dpu_load(set.set, program_path("increment_5").c_str(), &few));
  dpu_symbol_t with_many, with_few;
  CHECK_OK(dpu_get_symbol(many, "__sys_heap_pointer_reset", &with_many));
  CHECK_OK(dpu_get_symbol(few, "__sys_heap_pointer_reset", &with_few));
  CHECK_EQ(with_many.address - with_few.address, 11u * 1024);
  CHECK(with_few.address > 5 * 1024 && with_many.address < 24 * 1024);
}

TEST(Globals_OfAllKindsPersistAcrossLaunchesAndPointersInThemAreRight) {
  pe_machine(1);
  Loaded set(3, "variables");
  put<uint32_t>(set.set, "number", 14);
  for (uint32_t round = 1; round <= 3; ++round) {
    launch(set.set);
    for (dpu_set_t dpu : set.all) {
      CHECK_EQ(number(dpu, "launches"), 100 + round);
      CHECK_EQ(get<uint64_t>(dpu, "plain"), 0x1122334455667788u + round);
      CHECK_EQ(number(dpu, "zeroed", 2), 5 * round);
      const uint32_t want[] = {8, 5 * round, 30, 17, 42, 'e'};
      for (uint32_t i = 0; i < 6; ++i) CHECK_EQ(number(dpu, "results", i), want[i]);
      CHECK_EQ(get<uint64_t>(dpu, "initialised_in_mram"), 77u + round);
    }
  }
}

TEST(WramHeap_KeepsItsContentsAcrossLaunchesAndLoads) {
  pe_machine(1);
  Loaded set(1, "variables");
  launch(set.set);
  launch(set.set);
  CHECK_EQ(get<uint64_t>(set.all[0], "heap_word"), 0xABCD0000u + 101);
  load(set.set, "variables");
  launch(set.set);
  CHECK_EQ(get<uint64_t>(set.all[0], "heap_word"), 0xABCD0000u + 102);
}

// --- Launching

TEST(Launch_WithoutAProgramOnEveryPeRunsNone) {
  pe_machine(2);
  Set set(128);
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
  CHECK_STATUS(dpu_launch(set.set, DPU_ASYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
  const dpu_set_t rank = dpu_set_from_rank(&set.set.list.ranks[0]);
  load(rank, "other");
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
  CHECK_EQ(number(set.dpus()[0], "output"), 0u);
  CHECK_STATUS(dpu_launch(rank, static_cast<dpu_launch_policy_t>(7)), DPU_ERR_INVALID_LAUNCH_POLICY);
  dpuemu_report_t report;
  CHECK_STATUS(dpuemu_get_report(set.set, &report), DPU_ERR_NO_PROGRAM_LOADED);
  launch(rank);
  CHECK_EQ(number(set.dpus()[63], "output"), 18u);
  CHECK_EQ(report_of(rank).pes, 64u);
}

TEST(Launch_OfOneDpuLeavesTheOthersAlone) {
  pe_machine(1);
  Loaded set(64, "other");
  launch(set.all[20]);
  for (size_t i = 0; i < set.all.size(); ++i) CHECK_EQ(number(set.all[i], "output"), i == 20 ? 18u : 0u);
  CHECK_EQ(report_of(set.set).pes, 1u);
  CHECK_EQ(report_of(set.all[20]).pes, 1u);
}

TEST(Launch_PassesOverARankWithoutEnabledDpus) {
  std::vector<uint32_t> absent;
  for (uint32_t chip = 0; chip < 8; ++chip)
    for (uint32_t bank = 0; bank < 8; ++bank) absent.push_back(place(1, chip, bank));
  dpuemu_machine_t wanted = {};
  wanted.ranks = 3;
  wanted.threads = 2;
  CHECK_OK(dpuemu_configure(&wanted, absent.data(), static_cast<uint32_t>(absent.size())));
  dpu_set_t set;
  CHECK_OK(dpu_alloc_ranks(3, nullptr, &set));
  load(set, "other");
  launch(set);
  CHECK_OK(dpu_launch(set, DPU_ASYNCHRONOUS));
  CHECK_OK(dpu_sync(set));
  CHECK_EQ(report_of(set).pes, 128u);
  CHECK_OK(dpu_free(set));
}

TEST(Launch_OfOneRankLeavesTheOtherAlone) {
  pe_machine(2);
  Loaded set(128, "other");
  launch(dpu_set_from_rank(&set.set.list.ranks[1]));
  for (size_t i = 0; i < set.all.size(); ++i) CHECK_EQ(number(set.all[i], "output"), i >= 64 ? 18u : 0u);
}

TEST(Launch_RunsEveryPeOfManyRanksOnItsOwnMram) {
  pe_machine(2);
  Loaded set(128, "increment");
  std::vector<std::vector<uint32_t>> sent(set.all.size(), std::vector<uint32_t>(3000));
  for (uint32_t i = 0; i < sent.size(); ++i)
    for (uint32_t j = 0; j < sent[i].size(); ++j) sent[i][j] = i * 100000 + j;
  for (uint32_t i = 0; i < sent.size(); ++i) CHECK_OK(dpu_prepare_xfer(set.all[i], sent[i].data()));
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_TO_DPU, kHeap, 0, 12000, DPU_XFER_DEFAULT));
  put<uint32_t>(set.set, "bytes", 12000);
  put<uint32_t>(set.set, "amount", 9);
  launch(set.set);
  for (uint32_t i = 0; i < sent.size(); ++i) {
    std::vector<uint32_t> got(3000);
    CHECK_OK(dpu_copy_from(set.all[i], kHeap, 0, got.data(), 12000));
    uint32_t sum = 0;
    for (uint32_t j = 0; j < got.size(); ++j) {
      CHECK_EQ(got[j], sent[i][j] + 9);
      sum += got[j];
    }
    CHECK_EQ(number(set.all[i], "sum"), sum);
  }
}

TEST(WhilePesRun_LaunchesTransfersLoadsAndLogsAreRefused) {
  pe_machine(1);
  Loaded set(2, "gate");
  uint64_t word = 0;
  Running run(set.set);
  Running::wait_for(set.all[0]);
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_DPU_ALREADY_RUNNING);
  CHECK_STATUS(dpu_launch(set.all[0], DPU_SYNCHRONOUS), DPU_ERR_DPU_ALREADY_RUNNING);
  CHECK_STATUS(dpu_copy_to(set.set, kHeap, 0, &word, 8), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_copy_from(set.all[1], kHeap, 0, &word, 8), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_copy_to(set.set, "input", 0, &word, 4), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_load(set.set, program_path("other").c_str(), nullptr), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_log_read(set.all[0], stdout), DPU_ERR_MRAM_BUSY);
  char text[100];
  dpuemu_report_t report;
  CHECK_STATUS(dpuemu_get_fault(set.set, text, sizeof text), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpuemu_get_report(set.set, &report), DPU_ERR_MRAM_BUSY);
  bool done = true, fault = true;
  CHECK_OK(dpu_status(set.set, &done, &fault));
  CHECK(!done && !fault);
  CHECK_OK(run.open());
  CHECK_OK(dpu_sync(set.set));
  CHECK_OK(dpu_status(set.set, &done, &fault));
  CHECK(done && !fault);
  for (dpu_set_t dpu : set.all) CHECK_EQ(number(dpu, "output"), 10u);
}

TEST(WhilePesRun_WramCanBeReadAndWrittenBesideThemAndMramCannot) {
  pe_machine(1);
  Loaded set(2, "gate");
  uint64_t word = 0;
  Running run(set.set);
  Running::wait_for(set.all[0]);
  const uint32_t input = 21;
  CHECK_OK(dpu_broadcast_to(set.set, "input", 0, &input, 4, DPU_XFER_PARALLEL));
  CHECK_EQ(Running::read_beside(set.all[1], "input"), 21u);
  CHECK_EQ(Running::read_beside(set.all[0], "finished"), 0u);
  CHECK_STATUS(dpu_broadcast_to(set.set, kHeap, 0, &word, 8, DPU_XFER_PARALLEL), DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER);
  CHECK_OK(run.open());
  CHECK_OK(dpu_sync(set.set));
  for (dpu_set_t dpu : set.all) {
    CHECK_EQ(number(dpu, "output"), 42u);
    CHECK_EQ(number(dpu, "finished"), 1u);
  }
}

TEST(WhilePesRun_TheOtherRanksAreFree) {
  pe_machine(2);
  Loaded set(128, "gate");
  dpu_set_t ranks[2] = {dpu_set_from_rank(&set.set.list.ranks[0]), dpu_set_from_rank(&set.set.list.ranks[1])};
  put<uint32_t>(ranks[1], "gate", 1);
  Running run(set.all[0]);
  Running::wait_for(set.all[0]);
  uint64_t word = 3;
  CHECK_OK(dpu_copy_to(ranks[1], kHeap, 0, &word, 8));
  launch(ranks[1]);
  CHECK_EQ(number(set.all[100], "output"), 10u);
  CHECK_STATUS(dpu_copy_to(ranks[0], kHeap, 0, &word, 8), DPU_ERR_MRAM_BUSY);
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_DPU_ALREADY_RUNNING);
  CHECK_OK(dpu_load(ranks[1], program_path("other").c_str(), nullptr));
}

TEST(AsyncLaunch_ReturnsAtOnceAndSyncWaitsForTheEnd) {
  pe_machine(1);
  Loaded set(1, "gate");
  std::atomic<bool> is_open{false};
  Running run(set.set);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    is_open = true;
    run.open();
  });
  const bool early = is_open;
  const dpu_error_t status = dpu_sync(set.set);
  const bool at_end = is_open;
  opener.join();
  CHECK_OK(status);
  CHECK(!early && at_end);
  CHECK_EQ(number(set.all[0], "finished"), 1u);
}

TEST(AsyncWork_LaunchesTransfersAndCallbacksComeInOrder) {
  pe_machine(2);
  Loaded set(128, "other");
  struct Callback {
    std::mutex mutex;
    std::vector<uint32_t> outputs;
    static dpu_error_t call(dpu_set_t rank, uint32_t, void *self_pointer) {
      auto *self = static_cast<Callback *>(self_pointer);
      dpu_set_t dpu;
      DPU_FOREACH(rank, dpu) break;
      uint32_t output = 0;
      const dpu_error_t status = dpu_copy_from(dpu, "output", 0, &output, 4);
      std::lock_guard<std::mutex> lock(self->mutex);
      self->outputs.push_back(output);
      return status;
    }
  } callback;
  constexpr uint32_t kRounds = 4;
  uint32_t inputs[kRounds];
  std::vector<uint32_t> got(kRounds * set.all.size());
  for (uint32_t round = 0; round < kRounds; ++round) {
    inputs[round] = 10 + round;
    CHECK_OK(dpu_broadcast_to(set.set, "input", 0, &inputs[round], 4, DPU_XFER_ASYNC));
    CHECK_OK(dpu_launch(set.set, DPU_ASYNCHRONOUS));
    for (size_t i = 0; i < set.all.size(); ++i) CHECK_OK(dpu_prepare_xfer(set.all[i], &got[round * set.all.size() + i]));
    CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, "output", 0, 4, DPU_XFER_ASYNC));
    CHECK_OK(dpu_callback(set.set, Callback::call, &callback, DPU_CALLBACK_ASYNC));
  }
  CHECK_OK(dpu_sync(set.set));
  for (size_t i = 0; i < got.size(); ++i) CHECK_EQ(got[i], 3 * (10 + static_cast<uint32_t>(i / set.all.size())));
  CHECK_EQ(callback.outputs.size(), 2 * size_t{kRounds});
  std::sort(callback.outputs.begin(), callback.outputs.end());
  for (uint32_t i = 0; i < 2 * kRounds; ++i) CHECK_EQ(callback.outputs[i], 3 * (10 + i / 2));
  CHECK_EQ(number(set.all[5], "output"), 3 * (9 + kRounds));
}

TEST(AsyncLaunch_ComesAsOftenAsItIsQueued) {
  pe_machine(2);
  Loaded set(128, "variables");
  for (int i = 0; i < 5; ++i) CHECK_OK(dpu_launch(set.set, DPU_ASYNCHRONOUS));
  CHECK_OK(dpu_sync(set.set));
  for (dpu_set_t dpu : set.all) CHECK_EQ(number(dpu, "launches"), 105u);
}

TEST(AsyncParallelTransfer_DoesNotWaitForTheRunningPes) {
  pe_machine(1);
  Loaded set(1, "gate");
  Running run(set.set);
  Running::wait_for(set.all[0]);
  const uint32_t one = 1;
  CHECK_OK(dpu_broadcast_to(set.set, "gate", 0, &one, 4, static_cast<dpu_xfer_flags_t>(DPU_XFER_ASYNC | DPU_XFER_PARALLEL)));
  CHECK_OK(dpu_sync(set.set));
  CHECK_EQ(number(set.all[0], "finished"), 1u);
}

TEST(Callback_MayLaunchItsRank) {
  pe_machine(2);
  Loaded set(128, "other");
  const auto callback = [](dpu_set_t rank, uint32_t index, void *) -> dpu_error_t {
    const uint32_t input = 30 + index;
    const dpu_error_t status = dpu_copy_to(rank, "input", 0, &input, 4);
    return status == DPU_OK ? dpu_launch(rank, DPU_SYNCHRONOUS) : status;
  };
  for (int how : {0, int{DPU_CALLBACK_ASYNC}}) {
    load(set.set, "other");
    CHECK_OK(dpu_callback(set.set, callback, nullptr, static_cast<dpu_callback_flags_t>(how)));
    CHECK_OK(dpu_sync(set.set));
    for (uint32_t i = 0; i < 128; ++i) CHECK_EQ(number(set.all[i], "output"), 3 * (30 + i / 64));
  }
}

TEST(DisabledDpus_AreNeitherLoadedNorLaunched) {
  machine(1, {place(0, 2, 3)});
  Loaded set(63, "other");
  CHECK_EQ(set.all.size(), 63u);
  launch(set.set);
  CHECK_EQ(report_of(set.set).pes, 63u);
  for (dpu_set_t dpu : set.all) CHECK_EQ(number(dpu, "output"), 18u);
  const dpu_set_t absent = dpu_set_from_dpu(dpu_get(set.rank(0), 2, 3));
  CHECK_STATUS(dpu_launch(absent, DPU_SYNCHRONOUS), DPU_ERR_DPU_DISABLED);
  CHECK_STATUS(dpu_load(absent, program_path("other").c_str(), nullptr), DPU_ERR_DPU_DISABLED);
}

TEST(DifferentPrograms_RunSideBySideAndHaveNoCommonSymbols) {
  pe_machine(2);
  Set set(128);
  const auto dpus = set.dpus();
  const dpu_set_t ranks[2] = {dpu_set_from_rank(&set.set.list.ranks[0]), dpu_set_from_rank(&set.set.list.ranks[1])};
  load(ranks[0], "gate");
  load(ranks[1], "other");
  put<uint32_t>(ranks[0], "gate", 1);
  launch(set.set);
  CHECK_EQ(number(dpus[0], "output"), 10u);
  CHECK_EQ(number(dpus[127], "output"), 18u);
  const uint32_t word = 1;
  CHECK_STATUS(dpu_copy_to(set.set, "input", 0, &word, 4), DPU_ERR_DIFFERENT_DPU_PROGRAMS);
  CHECK_OK(dpu_copy_to(ranks[1], "input", 0, &word, 4));
}

TEST(TwoSets_RunTheirOwnProgramsAtTheSameTime) {
  pe_machine(2);
  Loaded first(64, "gate"), second(64, "increment");
  put<uint32_t>(second.set, "bytes", 1024);
  std::vector<uint8_t> zeros(1024);
  CHECK_OK(dpu_copy_to(second.set, kHeap, 0, zeros.data(), zeros.size()));
  Running run(first.all[7]);
  Running::wait_for(first.all[7]);
  for (uint32_t round = 1; round <= 5; ++round) {
    launch(second.set);
    CHECK_EQ(number(second.all[63], "sum"), 256 * round);
  }
  CHECK_EQ(Running::read_beside(first.all[7], "finished"), 0u);
  CHECK_OK(run.open());
  CHECK_OK(dpu_sync(first.set));
  CHECK_EQ(number(first.all[7], "finished"), 1u);
}

TEST(TwoThreads_LaunchTheirOwnSets) {
  pe_machine(2);
  std::exception_ptr failures[2];
  const auto work = [&](uint32_t who) {
    try {
      Loaded set(64, who == 0 ? "increment" : "increment_5");
      std::vector<uint8_t> zeros(4096);
      put<uint32_t>(set.set, "bytes", 4096);
      CHECK_OK(dpu_copy_to(set.set, kHeap, 0, zeros.data(), zeros.size()));
      for (uint32_t round = 1; round <= 5; ++round) {
        launch(set.set);
        for (dpu_set_t dpu : set.all) CHECK_EQ(number(dpu, "sum"), 1024 * round);
      }
    } catch (...) {
      failures[who] = std::current_exception();
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (const auto &failure : failures)
    if (failure) std::rethrow_exception(failure);
}

TEST(Free_WaitsForAnAsyncLaunch) {
  pe_machine(1);
  auto set = std::make_unique<Loaded>(1, "gate");
  const dpu_set_t freed = set->set;
  put<uint32_t>(freed, "patience", 300000);  // it ends by itself
  CHECK_OK(dpu_launch(freed, DPU_ASYNCHRONOUS));
  CHECK_OK(dpu_free(freed));
  set->forget();
  CHECK_STATUS(dpu_launch(freed, DPU_SYNCHRONOUS), DPU_ERR_INVALID_DPU_SET);
  Loaded next(1, "other");
  launch(next.set);
  CHECK_EQ(number(next.all[0], "output"), 18u);
}

TEST(Free_ForgetsThePrograms) {
  pe_machine(1);
  {
    Loaded set(64, "other");
    launch(set.set);
  }
  Set set(64);
  CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
  CHECK(dpu_get_program(set.dpus()[0].dpu) == nullptr);
  uint32_t word;
  CHECK_STATUS(dpu_copy_from(set.dpus()[0], "output", 0, &word, 4), DPU_ERR_NO_PROGRAM_LOADED);
}

TEST(Launch_IsRefusedWhileARankAccessIsOpen) {
  pe_machine(1);
  Loaded set(64, "other");
  {
    RankAccess access(set.rank(0));
    CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS), DPU_ERR_MRAM_BUSY);
  }
  launch(set.set);
}

TEST(RankAccess_ShowsWhatThePesWroteAndThePesSeeWhatItWrote) {
  pe_machine(1);
  Loaded set(64, "increment");
  put<uint32_t>(set.set, "bytes", 1024);
  std::vector<uint8_t> zeros(1024);
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, zeros.data(), zeros.size()));
  {
    RankAccess access(set.rank(0));
    access.byte(3, 5, 400) = 41;
  }
  launch(set.set);
  RankAccess access(set.rank(0));
  CHECK_EQ(access.byte(3, 5, 400), 42);
  CHECK_EQ(access.byte(3, 5, 404), 1);
  CHECK_EQ(access.byte(4, 5, 400), 1);
}

// --- Logs

TEST(Log_TellsWhatEachDpuPrintedOnce) {
  pe_machine(1);
  Loaded set(3, "layout_prints");
  put<uint32_t>(set.all[1], "log_repeats", 3);
  launch(set.set);
  CHECK_EQ(log_of(set.all[0]), std::string("line 0\n"));
  CHECK_EQ(log_of(set.all[1]), std::string("line 0\nline 1\nline 2\n"));
  CHECK_EQ(log_of(set.all[1]), std::string());
  launch(set.set);
  CHECK_EQ(log_of(set.all[0]), std::string("line 0\n"));
}

TEST(Log_OfAProgramThatDoesNotPrintIsAbsent) {
  pe_machine(1);
  Loaded set(2, "layout_silent");
  launch(set.set);
  CHECK_STATUS(dpu_log_read(set.all[0], stdout), DPU_ERR_LOG_CONTEXT_MISSING);
  load(set.set, "layout_prints");
  CHECK_STATUS(dpu_log_read(set.set, stdout), DPU_ERR_INVALID_DPU_SET);
  CHECK_EQ(log_of(set.all[0]), std::string());
}

TEST(Log_ThatIsFullSaysSoAndThePeGoesOn) {
  pe_machine(1);
  Loaded set(1, "layout_small_log");
  put<uint32_t>(set.set, "log_repeats", 20);
  launch(set.set);
  FILE *nowhere = std::fopen("/dev/null", "w");
  const dpu_error_t status = dpu_log_read(set.all[0], nowhere);
  std::fclose(nowhere);
  CHECK_STATUS(status, DPU_ERR_LOG_BUFFER_TOO_SMALL);
  put<uint32_t>(set.set, "log_repeats", 2);
  launch(set.set);
  CHECK_EQ(log_of(set.all[0]), std::string("line 0\nline 1\n"));
}

// --- The stand-in compiler, where published programs trip it

TEST(Compiler_TakesAnMramPointerDeclaredRightAfterALoop) {
  CHECK(
      is_compiled("#include <mram.h>\n"
                  "int main(void) {\n"
                  "  int sum = 0;\n"
                  "  for (int i = 0; i < 3; i++) sum += i;\n"
                  "  __mram_ptr int *numbers = (__mram_ptr int *)DPU_MRAM_HEAP_POINTER;\n"
                  "  return sum + numbers[0];\n"
                  "}\n"));
}

TEST(Compiler_KeepsAVariableWhoseNeighbourUsesIt) {
  CHECK(
      is_compiled("#include <alloc.h>\n"
                  "int main(void) {\n"
                  "  char *begin = mem_alloc(64), *end = begin + 64;\n"
                  "  return end - begin;\n"
                  "}\n"));
}
