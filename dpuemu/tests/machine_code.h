// Shared by the tests of machine code: an assembler of small programs, and their ELF files.
#pragma once

#include <elf.h>

#include <cstring>
#include <map>
#include <sstream>

#include "isa/instruction.h"
#include "program_fixture.h"

namespace fixture {

using Value = std::function<std::optional<int64_t>(std::string_view)>;

inline std::optional<int64_t> value_of_number(std::string_view expression) {
  size_t end = 0;
  const int64_t value = std::stoll(std::string(expression), &end, 0);
  return end == expression.size() ? std::optional(value) : std::nullopt;
}

/// Returns the word of an instruction. value: of an expression.
inline uint64_t word_of(const std::string &line, const Value &value = value_of_number) {
  std::string problem;
  const auto instruction = dpuemu::isa::parse(line, value, problem);
  CHECK_EQ(problem, "");
  const auto word = dpuemu::isa::encode(*instruction);
  CHECK(word.has_value());
  return *word;
}

/// A program of machine code: its text, and variables in WRAM, which begin at kVariables.
class MachineCode {
 public:
  static constexpr uint32_t kVariables = 64;

  /// text: a line per instruction; `name:` in front of an instruction is a label.
  explicit MachineCode(const std::string &text, uint32_t tasklets = 24)
      : text_(text), tasklets_(tasklets) {}

  /// Adds a variable with 8 bytes per element and returns its address.
  uint32_t variable(const std::string &name, const std::vector<uint64_t> &values) {
    const auto address = static_cast<uint32_t>(kVariables + 8 * data_.size());
    symbols_.push_back({name, address, static_cast<uint32_t>(8 * values.size()), kData});
    data_.insert(data_.end(), values.begin(), values.end());
    return address;
  }
  void symbol(const std::string &name, uint32_t address, uint32_t bytes) {
    symbols_.push_back({name, address, bytes, address >= kMram ? kMramSection : kData});
  }
  /// Replaces the text's `index`-th instruction by this word.
  void set_word(uint32_t index, uint64_t word) { words_[index] = word; }

  std::vector<uint8_t> file() {
    const std::vector<uint64_t> text = assemble();
    std::vector<uint8_t> bytes(sizeof(Elf32_Ehdr));
    const auto append = [&](const void *from, size_t size) {
      bytes.resize((bytes.size() + 7) / 8 * 8);
      const auto at = static_cast<uint32_t>(bytes.size());
      const auto *first = static_cast<const uint8_t *>(from);
      bytes.insert(bytes.end(), first, first + size);
      return at;
    };
    std::string names(1, '\0');
    std::vector<Elf32_Sym> table(1);
    const auto add = [&](const std::string &name, uint32_t value, uint32_t size, uint16_t section,
                         unsigned char type) {
      Elf32_Sym symbol = {};
      symbol.st_name = static_cast<uint32_t>(names.size());
      symbol.st_value = value;
      symbol.st_size = size;
      symbol.st_shndx = section;
      symbol.st_info = ELF32_ST_INFO(STB_GLOBAL, type);
      table.push_back(symbol);
      names += name + '\0';
    };
    for (const Symbol &each : symbols_)
      add(each.name, each.address, each.bytes, each.section, STT_OBJECT);
    for (const auto &[name, pc] : labels_) add(name, kIram + 8 * pc, 8, kText, STT_FUNC);
    add(kHeap, kMram, 0, kMramSection, STT_NOTYPE);
    add("NR_TASKLETS", tasklets_, 0, SHN_ABS, STT_NOTYPE);
    const uint8_t mram[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    Elf32_Shdr sections[7] = {};
    const auto section = [&](uint16_t i, uint32_t type, uint32_t flags, uint32_t address,
                             const void *from, size_t size, uint32_t link = 0) {
      sections[i].sh_type = type;
      sections[i].sh_flags = flags;
      sections[i].sh_addr = address;
      sections[i].sh_offset = append(from, size);
      sections[i].sh_size = static_cast<uint32_t>(size);
      sections[i].sh_link = link;
    };
    section(kText, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kIram, text.data(), 8 * text.size());
    section(kData, SHT_PROGBITS, SHF_ALLOC, kVariables, data_.data(), 8 * data_.size());
    section(kMramSection, SHT_PROGBITS, SHF_ALLOC, kMram, mram, sizeof mram);
    section(4, SHT_SYMTAB, 0, 0, table.data(), table.size() * sizeof table[0], 5);
    section(5, SHT_STRTAB, 0, 0, names.data(), names.size());
    Elf32_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS32;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_EXEC;
    header.e_machine = 0xF5;
    header.e_entry = kIram;
    header.e_shentsize = sizeof(Elf32_Shdr);
    header.e_shnum = 6;
    header.e_shoff = append(sections, sizeof sections);
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }

  void load(dpu_set_t set) {
    const std::vector<uint8_t> bytes = file();
    CHECK_OK(dpu_load_from_memory(set, const_cast<uint8_t *>(bytes.data()), bytes.size(), nullptr));
  }

 private:
  static constexpr uint32_t kIram = 0x80000000, kMram = 0x08000000;
  static constexpr uint16_t kText = 1, kData = 2, kMramSection = 3;
  struct Symbol {
    std::string name;
    uint32_t address, bytes;
    uint16_t section;
  };

  std::vector<uint64_t> assemble() {
    std::vector<std::string> lines;
    std::istringstream text(text_);
    for (std::string line; std::getline(text, line);) {
      for (size_t colon; (colon = line.find(':')) != std::string::npos; line.erase(0, colon + 1))
        labels_[line.substr(line.find_first_not_of(' '), colon - line.find_first_not_of(' '))] =
            static_cast<uint32_t>(lines.size());
      const size_t begin = line.find_first_not_of(' ');
      if (begin != std::string::npos) lines.push_back(line.substr(begin));
    }
    std::vector<uint64_t> words;
    for (const std::string &line : lines) {
      const auto here = static_cast<int64_t>(words.size());
      words.push_back(word_of(line, [&](std::string_view expression) -> std::optional<int64_t> {
        const std::string name(expression);
        if (name == ".") return here;
        if (name.starts_with(".+")) return here + std::stoll(name.substr(2));
        if (const auto label = labels_.find(name); label != labels_.end()) return label->second;
        for (const Symbol &each : symbols_)
          if (each.name == name) return each.address;
        return value_of_number(expression);
      }));
    }
    for (const auto &[index, word] : words_) words.at(index) = word;
    return words;
  }

  std::string text_;
  uint32_t tasklets_;
  std::map<std::string, uint32_t> labels_;
  std::map<uint32_t, uint64_t> words_;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> data_;
};

}  // namespace fixture
