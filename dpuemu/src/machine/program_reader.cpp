#include "machine/program_reader.h"

#include <elf.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "machine/symbols.h"

namespace dpuemu {
namespace {

constexpr uint32_t kFormat = 2;
constexpr uint16_t kNoSection = 0;
constexpr uint32_t kIramBytes = 4096 * kInstructionBytes;
constexpr uint32_t kFirstDpuMutex = 200;
constexpr uint16_t kDpuMachine = 0xF5;  // e_machine of the programs of the vendor's compiler
constexpr const char *kNoProgram = "not a program of dpu-upmem-dpurte-clang";

enum class Memory : uint8_t { kWram, kMutexes, kMram, kText, kCounters };
/// The addresses of a memory in a program file.
struct AddressRange {
  Memory memory;
  uint32_t origin, bytes;
  dpu_error_t too_large;  // the error of a section that leaves the memory
};
// In order of the origins.
constexpr AddressRange
    kRanges[] = {{Memory::kWram, PE_WRAM_ORIGIN, PE_WRAM_BYTES, DPU_ERR_INVALID_WRAM_ACCESS},
                 {Memory::kMutexes, PE_ATOMIC_ORIGIN, PE_ATOMIC_BYTES, DPU_ERR_INVALID_WRAM_ACCESS},
                 {Memory::kMram, PE_MRAM_ORIGIN, PE_MRAM_BYTES, DPU_ERR_INVALID_MRAM_ACCESS},
                 {Memory::kText, PE_TEXT_ORIGIN, PE_TEXT_BYTES, DPU_ERR_INVALID_IRAM_ACCESS},
                 {Memory::kCounters, PE_COUNTERS_ORIGIN, PE_COUNTERS_BYTES,
                  DPU_ERR_INVALID_IRAM_ACCESS}},
    kMachineCodeRanges[] = {
        {Memory::kWram, PE_WRAM_ORIGIN, PE_WRAM_BYTES, DPU_ERR_INVALID_WRAM_ACCESS},
        {Memory::kMram, PE_MRAM_ORIGIN, PE_MRAM_BYTES, DPU_ERR_INVALID_MRAM_ACCESS},
        {Memory::kText, kIramAddress, kIramBytes, DPU_ERR_INVALID_IRAM_ACCESS},
        {Memory::kMutexes, kMutexAddress, PE_ATOMIC_BYTES, DPU_ERR_INVALID_WRAM_ACCESS}};

}  // namespace

/// Reads a program file and checks every access to the file, so that the loader refuses a broken
/// file.
class ProgramReader {
 public:
  ProgramReader(std::span<const uint8_t> file, Program &program) : file_(file), program_(program) {}

  dpu_error_t read() {
    if (!read_header() || !read_sections()) return DPU_ERR_ELF_INVALID_FILE;
    if (!read_symbols() || !(is_machine_code_ ? read_machine_code() : read_constants()))
      return DPU_ERR_ELF_INVALID_FILE;
    if (status_ != DPU_OK || is_machine_code_) return status_;
    return read_relocations() ? DPU_OK : DPU_ERR_ELF_INVALID_FILE;
  }

  /// Returns the reason of DPU_ERR_ELF_INVALID_FILE.
  const std::string &problem() const { return problem_; }

 private:
  using Area = Program::Area;

  /// Returns the objects at the offset, or nullptr unless all `count` objects are in the file.
  template <class T>
  const T *at(uint64_t offset, uint64_t count = 1) const {
    if (offset > file_.size() || count > (file_.size() - offset) / sizeof(T) ||
        offset % alignof(uint32_t) != 0)
      return nullptr;
    return reinterpret_cast<const T *>(file_.data() + offset);
  }

  bool read_header() {
    header_ = at<Elf32_Ehdr>(0);
    const bool is_elf = header_ != nullptr && std::memcmp(header_->e_ident, ELFMAG, SELFMAG) == 0;
    if (!is_elf) return refuse(kNoProgram);
    is_machine_code_ = header_->e_machine == kDpuMachine;
    if (header_->e_type == ET_REL)
      return refuse("an object file; link a program with dpu-upmem-dpurte-clang");
    const bool is_program =
        header_->e_ident[EI_CLASS] == ELFCLASS32 && header_->e_ident[EI_DATA] == ELFDATA2LSB &&
        (is_machine_code_ || header_->e_machine == EM_X86_64) && header_->e_type == ET_EXEC &&
        header_->e_shentsize == sizeof(Elf32_Shdr);
    if (!is_program) return refuse(kNoProgram);
    sections_ = at<Elf32_Shdr>(header_->e_shoff, header_->e_shnum);
    return sections_ != nullptr;
  }

  bool refuse(const std::string &problem) {
    problem_ = problem;
    return false;
  }

  static bool lies_in(uint64_t begin, uint64_t bytes, uint64_t origin, uint64_t room) {
    return begin >= origin && begin - origin <= room && bytes <= room - (begin - origin);
  }

  /// Fills the images. If a section is larger than the memory for the section, sets status_.
  bool read_sections() {
    areas_.assign(header_->e_shnum, Area::kFixed);
    uint64_t contents_bytes = 0;
    for (uint16_t i = 0; i < header_->e_shnum; ++i) {
      const Elf32_Shdr &section = sections_[i];
      // Sections do not overlap in the file. So a small file cannot become a large program.
      if (section.sh_type != SHT_NOBITS && (contents_bytes += section.sh_size) > file_.size())
        return false;
      if (lies_in(section.sh_addr, 0, PE_MRAM_ORIGIN, PE_MRAM_BYTES))
        areas_[i] = Area::kMram;  // also an empty section, which has symbols
      if (section.sh_size == 0) continue;
      const uint8_t *contents = nullptr;
      if (section.sh_type != SHT_NOBITS) {
        if (section.sh_offset > file_.size() || section.sh_size > file_.size() - section.sh_offset)
          return false;
        contents = file_.data() + section.sh_offset;
      }
      if (!(section.sh_flags & SHF_ALLOC)) {
        if (contents != nullptr) keep_section(i, {contents, section.sh_size});
        continue;
      }
      if (!read_section(i, contents)) return false;
    }
    return !program_.text_.empty() || status_ != DPU_OK;
  }

  const AddressRange &range_of(uint32_t address) const {
    const AddressRange *found = kRanges;
    using Ranges = std::span<const AddressRange>;
    for (const AddressRange &range :
         is_machine_code_ ? Ranges(kMachineCodeRanges) : Ranges(kRanges))
      if (range.origin <= address) found = &range;
    return *found;
  }

  /// contents: nullptr for zeros.
  bool read_section(uint16_t index, const uint8_t *contents) {
    const Elf32_Shdr &section = sections_[index];
    const AddressRange &range = range_of(section.sh_addr);
    const uint32_t offset = section.sh_addr - range.origin, end = offset + section.sh_size;
    const bool fits = lies_in(section.sh_addr, section.sh_size, range.origin, range.bytes);
    if (!fits) status_ = range.too_large;
    switch (range.memory) {
      case Memory::kText:
        areas_[index] = Area::kText;
        if (fits) put(program_.text_, offset, contents, section.sh_size);
        break;
      case Memory::kCounters:
        areas_[index] = Area::kText;  // counters move with the text
        if (!fits) break;
        if (contents != nullptr || section.sh_size % sizeof(uint64_t) != 0)
          return refuse("the section of counters has contents, or a size that no counters have");
        program_.counter_bytes_ = std::max(program_.counter_bytes_, end);
        break;
      case Memory::kMram:
        if (!fits || contents == nullptr) break;
        if (offset % sizeof(uint64_t) != 0 ||
            (section.sh_size % sizeof(uint64_t) != 0 && !is_machine_code_))
          return refuse("a section in MRAM has an address or a size that is not a multiple of 8");
        program_.mram_.push_back({offset, {contents, contents + section.sh_size}});
        program_.mram_.back().bytes.resize((section.sh_size + 7) / 8 * 8);
        break;
      case Memory::kMutexes:
        areas_[index] = Area::kWram;
        // The SDK's linker puts the mutexes behind addresses that it does not use.
        program_.mutexes_ = std::max(program_.mutexes_,
                                     is_machine_code_ ? end - std::min(end, kFirstDpuMutex) : end);
        break;
      case Memory::kWram:
        areas_[index] = Area::kWram;
        if (!fits) break;
        program_.wram_end_ = std::max(program_.wram_end_, end);
        // At a load, a DPU's stacks and heap keep their contents.
        if (contents != nullptr || !is_machine_code_)
          put(program_.wram_, offset, contents, section.sh_size);
        if (section_name(index) == ".dpu_host" || section_name(index) == ".data.__sys_host")
          program_.host_variables_ = {offset, end};
        break;
    }
    return true;
  }

  std::string_view section_name(uint16_t index) const {
    return header_->e_shstrndx < header_->e_shnum
               ? text_of(sections_[header_->e_shstrndx], sections_[index].sh_name)
               : "";
  }

  /// Keeps the contents of the sections that explain faults.
  void keep_section(uint16_t index, std::span<const uint8_t> contents) {
    const std::string_view name = section_name(index);
    for (const auto &[wanted, kept] : {std::pair{".debug_line", &program_.debug_line_},
                                       {".debug_frame", &program_.debug_frame_},
                                       {".pe_strings", &program_.texts_}})
      if (name == wanted) kept->assign(contents.begin(), contents.end());
    if (name != ".debug_pe_counters") return;
    Program::CounterRow row;
    for (; contents.size() >= sizeof row; contents = contents.subspan(sizeof row)) {
      std::memcpy(&row, contents.data(), sizeof row);
      if (row.counter != 0) program_.counter_rows_.push_back(row);
    }
  }

  static void put(std::vector<uint8_t> &image, uint32_t offset, const uint8_t *contents,
                  uint32_t bytes) {
    if (image.size() < offset + bytes) image.resize(offset + bytes);
    if (contents != nullptr) std::copy(contents, contents + bytes, image.begin() + offset);
  }

  bool read_symbols() {
    for (uint16_t i = 0; i < header_->e_shnum; ++i) {
      if (sections_[i].sh_type != SHT_SYMTAB) continue;
      symbol_count_ = sections_[i].sh_size / sizeof(Elf32_Sym);
      symbols_ = at<Elf32_Sym>(sections_[i].sh_offset, symbol_count_);
      if (symbols_ == nullptr || sections_[i].sh_link >= header_->e_shnum) return false;
      names_ = &sections_[sections_[i].sh_link];
      if (names_->sh_offset > file_.size() || names_->sh_size > file_.size() - names_->sh_offset)
        return false;
    }
    uint64_t names_bytes = 0;
    for (uint32_t i = 0; i < symbol_count_; ++i) {
      const Elf32_Sym &symbol = symbols_[i];
      const std::string_view name = name_of(symbol);
      // Names may overlap in the file. So a small file cannot become a large program.
      if ((names_bytes += name.size()) > file_.size()) return false;
      if (name.empty()) continue;
      if (symbol.st_shndx == SHN_ABS) {
        constants_.emplace(name, symbol.st_value);
      } else if (symbol.st_shndx != kNoSection && symbol.st_shndx < header_->e_shnum) {
        const bool is_heap = name == Program::kHeapName && status_ == DPU_OK;
        if (is_heap && (symbol.st_value % 8 != 0 ||
                        !lies_in(symbol.st_value, 0, PE_MRAM_ORIGIN, PE_MRAM_BYTES)))
          return refuse("the heap base " + std::string(Program::kHeapName) + " (" +
                        std::to_string(symbol.st_value) + ") is not a multiple of 8 in MRAM");
        add_symbol(name, symbol);
      }
    }
    std::sort(program_.text_symbols_.begin(), program_.text_symbols_.end(),
              [](const Program::TextSymbol &a, const Program::TextSymbol &b) {
                return std::tie(a.address, a.is_label, a.name) <
                       std::tie(b.address, b.is_label, b.name);
              });
    return symbols_ != nullptr || is_machine_code_;
  }

  void add_symbol(std::string_view name, const Elf32_Sym &symbol) {
    const auto type = ELF32_ST_TYPE(symbol.st_info);
    if (type == STT_SECTION || type == STT_FILE) return;
    dpu_symbol_t found = {symbol.st_value, symbol.st_size};
    const bool is_text = areas_[symbol.st_shndx] == Area::kText;
    if (is_text && (type == STT_FUNC || type == STT_NOTYPE))
      program_.text_symbols_.push_back(
          {symbol.st_value, symbol.st_size, type != STT_FUNC, std::string(name)});
    if (is_text && !is_machine_code_)
      found.address = symbol.st_value - PE_TEXT_ORIGIN + kIramAddress;
    if (name == Program::kHeapName)
      found.size = static_cast<uint32_t>(PE_MRAM_ORIGIN + PE_MRAM_BYTES - symbol.st_value);
    if (name == "__pe_gate") program_.gate_offset_ = symbol.st_value - PE_TEXT_ORIGIN;
    if (name == "__pe_check_gate" && !is_machine_code_) {
      program_.check_offset_ = symbol.st_value - PE_TEXT_ORIGIN;
      check_bytes_ = symbol.st_size;
    }
    if (name == "__stdout_buffer") program_.stdout_bytes_ = symbol.st_size;
    if (name == "__sys_heap_pointer_reset") {
      program_.heap_address_ = symbol.st_value;
      // The heap is not a variable, so loading does not change its contents.
      if (symbol.st_value < program_.wram_.size()) program_.wram_.resize(symbol.st_value);
    }
    // A global symbol overrides a local symbol with the same name.
    if (ELF32_ST_BIND(symbol.st_info) == STB_LOCAL)
      program_.symbols_.emplace(name, found);
    else
      program_.symbols_.insert_or_assign(std::string(name), found);
  }

  std::string_view name_of(const Elf32_Sym &symbol) const {
    return text_of(*names_, symbol.st_name);
  }

  /// Returns the text at an offset of a section.
  std::string_view text_of(const Elf32_Shdr &section, uint32_t offset) const {
    if (section.sh_offset > file_.size() || section.sh_size > file_.size() - section.sh_offset ||
        offset >= section.sh_size)
      return {};
    const char *begin = reinterpret_cast<const char *>(file_.data() + section.sh_offset + offset);
    return {begin, strnlen(begin, section.sh_size - offset)};
  }

  bool constant(const std::string &name, uint32_t &out) const {
    const auto found = constants_.find(name);
    if (found != constants_.end()) out = found->second;
    return found != constants_.end();
  }

  bool read_constants() {
    uint32_t format = 0, default_stack = 0;
    if (!constant("__pe_format", format) || format != kFormat ||
        !constant("__pe_tasklets", program_.tasklets_) ||
        !constant("__pe_stack_bytes", default_stack) ||
        !constant("__pe_instructions", program_.instructions_))
      return false;
    if (program_.tasklets_ == 0) return false;
    if (program_.tasklets_ > PE_MAX_TASKLETS) {
      status_ = DPU_ERR_TOO_MANY_TASKLETS;
      return true;
    }
    for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i) {
      program_.stack_bytes_[i] = default_stack;
      constant("__pe_stack_bytes_" + std::to_string(i), program_.stack_bytes_[i]);
    }
    const uint64_t text_bytes = program_.text_.size();
#define DPUEMU_COUNT(...) +1
    constexpr uint64_t kGateBytes = 2 * sizeof(uint64_t),
                       kCheckBytes = (0 PE_CHECK_TABLE(DPUEMU_COUNT)) * sizeof(uint64_t);
#undef DPUEMU_COUNT
    if (status_ == DPU_OK &&
        (program_.gate_offset_ + kGateBytes > text_bytes ||
         program_.check_offset_ + kCheckBytes * program_.is_checked() > text_bytes))
      return false;
    if (program_.is_checked() && check_bytes_ != kCheckBytes)
      return refuse("another version of `dpuemu check` compiled it; compile it again");
    program_.entry_offset_ = header_->e_entry - PE_TEXT_ORIGIN;
    return status_ != DPU_OK || program_.entry_offset_ < text_bytes;
  }

  /// Takes the instructions out of the text.
  bool read_machine_code() {
    const auto &text = program_.text_;
    if (text.size() % kInstructionBytes != 0 || header_->e_entry != kIramAddress)
      return refuse("its instructions do not begin at the start of IRAM, or are incomplete");
    std::vector<uint64_t> words(text.size() / kInstructionBytes);
    if (!words.empty()) std::memcpy(words.data(), text.data(), text.size());
    program_.code_ = std::make_unique<isa::Code>(words);
    program_.translation_ = std::make_unique<isa::Translation>(*program_.code_);
    program_.instructions_ = static_cast<uint32_t>(words.size());
    program_.text_.clear();
    program_.tasklets_ = PE_MAX_TASKLETS;
    constant("NR_TASKLETS", program_.tasklets_);
    if (program_.tasklets_ > PE_MAX_TASKLETS) status_ = DPU_ERR_TOO_MANY_TASKLETS;
    return program_.tasklets_ != 0 || refuse("it has no tasklets (NR_TASKLETS)");
  }

  bool read_relocations() {
    for (uint16_t i = 0; i < header_->e_shnum; ++i) {
      const Elf32_Shdr &section = sections_[i];
      if (section.sh_type != SHT_RELA || section.sh_info >= header_->e_shnum) continue;
      if (!(sections_[section.sh_info].sh_flags & SHF_ALLOC)) continue;
      const uint32_t count = section.sh_size / sizeof(Elf32_Rela);
      const auto *entries = at<Elf32_Rela>(section.sh_offset, count);
      if (entries == nullptr) return false;
      for (uint32_t j = 0; j < count; ++j)
        if (!read_relocation(entries[j], areas_[section.sh_info])) return false;
    }
    return true;
  }

  bool read_relocation(const Elf32_Rela &entry, Area own) {
    const uint32_t index = ELF32_R_SYM(entry.r_info), type = ELF32_R_TYPE(entry.r_info);
    if (index >= symbol_count_) return false;
    const uint16_t section = symbols_[index].st_shndx;
    // The lock of the allocators (program.ld) moves with WRAM. In a program without mutexes its
    // symbol is in another section.
    const bool is_lock =
        symbols_[index].st_value == PE_ATOMIC_ORIGIN + PE_ATOMIC_BYTES && section != SHN_ABS;
    const Area target = is_lock                                               ? Area::kWram
                        : section != kNoSection && section < header_->e_shnum ? areas_[section]
                                                                              : Area::kFixed;
    const bool is_distance = type == R_X86_64_PC32 || type == R_X86_64_PLT32;
    const bool is_address = type == R_X86_64_32 || type == R_X86_64_32S || type == R_X86_64_64;
    if (type == R_X86_64_NONE) return true;
    if (!is_distance && !is_address) return false;
    if (is_distance ? target == own : target == Area::kFixed)
      return true;  // the distance does not depend on the program's address
    const bool is_wide = type == R_X86_64_64;
    if (own == Area::kMram)
      return target == Area::kMram &&
             relocate_in_mram(entry.r_offset);  // such a variable cannot point to WRAM
    const uint32_t origin = own == Area::kText ? PE_TEXT_ORIGIN : PE_WRAM_ORIGIN;
    const auto &image = own == Area::kText ? program_.text_ : program_.wram_;
    auto &relocations =
        own == Area::kText ? program_.text_relocations_ : program_.wram_relocations_;
    if (!lies_in(entry.r_offset, is_wide ? 8 : 4, origin, image.size())) return false;
    relocations.push_back({entry.r_offset - origin, is_distance, is_wide, target});
    return true;
  }

  /// Changes an address of MRAM in an initialised MRAM variable.
  bool relocate_in_mram(uint32_t address) {
    for (Program::MramPart &part : program_.mram_) {
      if (!lies_in(address, sizeof(uint32_t), PE_MRAM_ORIGIN + part.offset, part.bytes.size()))
        continue;
      add_to_word(part.bytes.data() + (address - PE_MRAM_ORIGIN - part.offset),
                  0u - PE_MRAM_ORIGIN);
      return true;
    }
    return false;
  }

  std::span<const uint8_t> file_;
  Program &program_;
  std::string problem_ = "damaged, or made by another version of its compiler";
  dpu_error_t status_ = DPU_OK;  // the error of a well-formed program that does not fit in a memory
  bool is_machine_code_ = false;
  const Elf32_Ehdr *header_ = nullptr;
  const Elf32_Shdr *sections_ = nullptr;
  const Elf32_Sym *symbols_ = nullptr;
  const Elf32_Shdr *names_ = nullptr;
  uint32_t symbol_count_ = 0;
  std::vector<Area> areas_;  // the area of each section
  uint32_t check_bytes_ = 0;
  std::map<std::string, uint32_t, std::less<>> constants_;
};

dpu_error_t read_program(std::span<const uint8_t> file, Program &program, std::string &problem) {
  ProgramReader reader(file, program);
  const dpu_error_t status = reader.read();
  problem = reader.problem();
  return status;
}

}  // namespace dpuemu
