// Loading programs from files and from memory; refused files.
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "program_fixture.h"

using namespace fixture;

namespace {

/// A program file that tests can modify.
class File {
 public:
  explicit File(const std::string &name) : bytes(program_bytes(name)) {}

  Elf32_Ehdr &header() { return at<Elf32_Ehdr>(0); }
  void set_constant(const std::string &name, uint32_t value) {
    CHECK_EQ(symbol(name).st_shndx, SHN_ABS);
    symbol(name).st_value = value;
  }
  Elf32_Sym &symbol(const std::string &name) {
    Elf32_Sym *found = nullptr;
    for_each_section([&](Elf32_Shdr &section, const char *) {
      if (section.sh_type != SHT_SYMTAB) return;
      const uint32_t names =
          at<Elf32_Shdr>(header().e_shoff + section.sh_link * sizeof(Elf32_Shdr)).sh_offset;
      for (uint32_t i = 0; i < section.sh_size / sizeof(Elf32_Sym); ++i) {
        auto &symbol = at<Elf32_Sym>(section.sh_offset + i * sizeof(Elf32_Sym));
        if (name == reinterpret_cast<const char *>(&bytes[names + symbol.st_name])) found = &symbol;
      }
    });
    CHECK(found != nullptr);
    return *found;
  }
  Elf32_Shdr &section(const std::string &name) {
    Elf32_Shdr *found = nullptr;
    for_each_section([&](Elf32_Shdr &section, const char *own) {
      if (name == own) found = &section;
    });
    CHECK(found != nullptr);
    return *found;
  }
  dpu_error_t load(dpu_set_t set) {
    return dpu_load_from_memory(set, bytes.data(), bytes.size(), nullptr);
  }

  std::vector<uint8_t> bytes;

 private:
  template <class T>
  T &at(size_t offset) {
    CHECK(offset + sizeof(T) <= bytes.size());
    return *reinterpret_cast<T *>(&bytes[offset]);
  }
  template <class Act>
  void for_each_section(Act act) {
    const uint32_t names =
        at<Elf32_Shdr>(header().e_shoff + header().e_shstrndx * sizeof(Elf32_Shdr)).sh_offset;
    for (uint32_t i = 0; i < header().e_shnum; ++i) {
      auto &section = at<Elf32_Shdr>(header().e_shoff + i * sizeof(Elf32_Shdr));
      act(section, reinterpret_cast<const char *>(&bytes[names + section.sh_name]));
    }
  }
};

}  // namespace

TEST(Load_RefusesAFileThatDoesNotExist) {
  pe_machine(1);
  Set set(1);
  CHECK_STATUS(dpu_load(set.set, program_path("absent").c_str(), nullptr),
               DPU_ERR_ELF_NO_SUCH_FILE);
  CHECK_STATUS(dpu_load(set.set, nullptr, nullptr), DPU_ERR_ELF_NO_SUCH_FILE);
}

TEST(Load_RefusesFilesThatAreNotPePrograms) {
  pe_machine(1);
  Set set(1);
  CHECK_STATUS(dpu_load(set.set, "/proc/self/exe", nullptr), DPU_ERR_ELF_INVALID_FILE);
  const std::string text = "#!/bin/sh\necho this is not a program\n";
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
  later.set_constant("__pe_format", 3);
  CHECK_STATUS(later.load(set.set), DPU_ERR_ELF_INVALID_FILE);
  CHECK_OK(File("other").load(set.set));
}

TEST(Load_NamesTheFileAndWhatToDo) {
  pe_machine(1);
  Set set(1);
  const auto check = [&](const std::string &path, const std::string &words) {
    const std::string sentence = text(dpu_load(set.set, path.c_str(), nullptr));
    if (sentence.find(words) == std::string::npos)
      harness::fail(__FILE__, __LINE__, sentence + " does not say " + words);
  };
  const std::string absent = program_path("absent");
  check(absent, "no such program file: " + absent);
  File real("other"), object("other"), heap("other"), far_heap("other");
  real.header().e_machine = 245;
  const TemporaryFile real_file("real", real.bytes);
  check(real_file.path, real_file.path + ": its instructions do not begin at the start of IRAM");
  object.header().e_type = ET_REL;
  const TemporaryFile object_file("object.o", object.bytes);
  check(object_file.path, object_file.path + ": an object file; link a program with");
  heap.symbol(kHeap).st_value += 4;
  const TemporaryFile heap_file("heap", heap.bytes);
  check(heap_file.path,
        heap_file.path + ": the heap base __sys_used_mram_end (134217732) is not a multiple of 8");
  far_heap.symbol(kHeap).st_value = 0x0C000008;
  const TemporaryFile far_heap_file("far_heap", far_heap.bytes);
  check(far_heap_file.path,
        "the heap base __sys_used_mram_end (201326600) is not a multiple of 8 in MRAM");
  check("/proc/self/exe", "/proc/self/exe: not a program of dpu-upmem-dpurte-clang");
}

TEST(Load_RefusesFilesWithoutEnd) {
  pe_machine(1);
  Set set(1);
  CHECK_STATUS(dpu_load(set.set, "/dev/zero", nullptr), DPU_ERR_ELF_INVALID_FILE);
  CHECK(text(DPU_ERR_ELF_INVALID_FILE).find("/dev/zero: not a regular file") != std::string::npos);
  const std::string pipe = program_path("pipe");
  CHECK_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const dpu_error_t status = dpu_load(set.set, pipe.c_str(), nullptr);
  std::remove(pipe.c_str());
  CHECK_STATUS(status, DPU_ERR_ELF_INVALID_FILE);
  const TemporaryFile large("large", {1});
  CHECK_EQ(truncate(large.path.c_str(), (off_t{256} << 20) + 1), 0);
  CHECK_STATUS(dpu_load(set.set, large.path.c_str(), nullptr), DPU_ERR_ELF_INVALID_FILE);
  CHECK(text(DPU_ERR_ELF_INVALID_FILE).find("268435457 bytes; a program has at most 268435456") !=
        std::string::npos);
}

TEST(Load_RefusesSectionsThatOverlapInTheFile) {
  pe_machine(1);
  Set set(1);
  File file("layout_variables");
  Elf32_Shdr &part = file.section(".mram");
  CHECK_EQ(part.sh_type, uint32_t{SHT_PROGBITS});
  part.sh_offset = 0;
  part.sh_size = static_cast<uint32_t>(file.bytes.size());
  CHECK_STATUS(file.load(set.set), DPU_ERR_ELF_INVALID_FILE);
}

TEST(Load_RefusesEveryTruncatedFile) {
  pe_machine(1);
  Set set(1);
  const std::vector<uint8_t> whole = program_bytes("other");
  for (size_t length = 0; length < whole.size(); length += 1 + whole.size() / 150) {
    std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK_STATUS(dpu_load_from_memory(set.set, part.data(), part.size(), nullptr),
                 DPU_ERR_ELF_INVALID_FILE);
  }
}

TEST(Load_OfAFileWithWrongBytesIsHarmless) {
  pe_machine(1);
  Set set(1);
  const std::vector<uint8_t> whole = program_bytes("layout_both");
  for (uint32_t round = 0; round < 300; ++round) {
    std::vector<uint8_t> wrong = whole;
    // The header, the section headers and the symbols hold offsets and sizes.
    const size_t place =
        round < 52
            ? round
            : wrong.size() - 1 - (noise(1, round) * 256u + noise(2, round)) % (wrong.size() / 2);
    wrong[place] = static_cast<uint8_t>(wrong[place] ^ (1u << noise(3, round) % 8));
    dpu_load_from_memory(set.set, wrong.data(), wrong.size(), nullptr);
  }
  load(set.set, "other");
  launch(set.set);
  CHECK_EQ(number(set.dpus()[0], "output"), 18u);
}

TEST(Load_RefusesProgramsTooLargeForIram) {
  pe_machine(1);
  Set set(1);
  File file("other");
  // The number is an estimate, so up to 1.5 times 4096 is accepted.
  file.set_constant("__pe_instructions", 4096);
  CHECK_OK(file.load(set.set));
  file.set_constant("__pe_instructions", 6145);
  CHECK_STATUS(file.load(set.set), DPU_ERR_INVALID_IRAM_ACCESS);
  File text("other");
  text.section(".text").sh_addr = 0x40000000 + 0x20000 - 8;
  CHECK_STATUS(text.load(set.set), DPU_ERR_INVALID_IRAM_ACCESS);
}

TEST(Load_RefusesProgramsTooLargeForWram) {
  pe_machine(1);
  Set set(1);
  File file("variables");
  Elf32_Shdr &bss = file.section(".bss");
  CHECK_EQ(bss.sh_type, uint32_t{SHT_NOBITS});
  bss.sh_size = 0x10000 - bss.sh_addr + 8;
  CHECK_STATUS(file.load(set.set), DPU_ERR_INVALID_WRAM_ACCESS);
}

TEST(Load_RefusesProgramsTooLargeForMram) {
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

TEST(Load_ChecksTheLimitsOfTheChip) {
  const auto machine_of = [](int chip) { pe_machine(1, kLenient, 1, 60, chip); };
  {
    machine_of(DPUEMU_CHIP_V1B);
    Set set(1);
    CHECK_STATUS(File("synchronisation").load(set.set), DPU_ERR_TOO_MANY_TASKLETS);  // 24
    CHECK_STATUS(File("other").load(set.set),
                 DPU_ERR_INVALID_WRAM_ACCESS);  // its heap ends at 64 KiB
    CHECK(
        text(DPU_ERR_INVALID_WRAM_ACCESS)
            .find(
                "has 65536 bytes of WRAM with the heap; a DPU of the chip v1B has at most 63488") !=
        std::string::npos);
    File small("counter_v1B");
    CHECK_OK(small.load(set.set));
    small.set_constant("__pe_tasklets", 17);
    CHECK_STATUS(small.load(set.set), DPU_ERR_TOO_MANY_TASKLETS);
    small.set_constant("__pe_tasklets", 16);
    small.set_constant("__pe_instructions", 5952);  // 1.5 times 3968
    CHECK_OK(small.load(set.set));
    small.set_constant("__pe_instructions", 5953);
    CHECK_STATUS(small.load(set.set), DPU_ERR_INVALID_IRAM_ACCESS);
  }
  for (const auto &[chip, mutexes] : {std::pair{DPUEMU_CHIP_V1A, 56u}, {DPUEMU_CHIP_V1B, 64u}}) {
    machine_of(chip);
    Set set(1);
    File file("mutexes_v1B");
    Elf32_Shdr &atomic = file.section(".atomic");
    atomic.sh_size = mutexes;
    CHECK_OK(file.load(set.set));
    atomic.sh_size = mutexes + 1;
    CHECK_STATUS(file.load(set.set), DPU_ERR_INVALID_WRAM_ACCESS);
  }
}

TEST(Load_ThatFailsKeepsThePreviousProgram) {
  pe_machine(1);
  Loaded set(3, "other");
  put<uint32_t>(set.set, "input", 7);
  CHECK_STATUS(dpu_load(set.set, program_path("absent").c_str(), nullptr),
               DPU_ERR_ELF_NO_SUCH_FILE);
  File large("gate");
  large.set_constant("__pe_tasklets", 25);
  CHECK_STATUS(large.load(set.set), DPU_ERR_TOO_MANY_TASKLETS);
  launch(set.set);
  for (dpu_set_t dpu : set.all) CHECK_EQ(number(dpu, "output"), 21u);
}

TEST(Load_FromMemoryAndFromAnIncbinEqualsLoadFromAFile) {
  pe_machine(1);
  Set set(2);
  // The bytes have an odd address and vanish after the call.
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

TEST(Load_SetsWramVariablesAndInitialisedMramAndKeepsOtherMram) {
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
