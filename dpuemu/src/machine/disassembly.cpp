#include "machine/disassembly.h"

#include <elf.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "base/explanation.h"
#include "isa/instruction.h"
#include "machine/debug_info.h"
#include "machine/program_file.h"
#include "machine/symbols.h"

namespace dpuemu {
namespace {

constexpr uint16_t kCodeMachine = 0xF5;
constexpr uint32_t kInstructionBytes = 8;

struct CodeSection {
  uint32_t address;
  std::span<const char> bytes;
  uint32_t end() const { return address + static_cast<uint32_t>(bytes.size()); }
};

struct CodeSymbol {
  uint32_t address, bytes;
  bool is_label;  // not a function
  std::string name;
};

/// The parts of a program file that the text needs.
class ProgramCode {
 public:
  explicit ProgramCode(std::span<const char> file) : file_(file) {}

  /// Returns the problem of the file, or "".
  std::string read() {
    const auto header = objects<Elf32_Ehdr>(0, 1);
    const bool is_program = header && std::memcmp(header->front().e_ident, ELFMAG, SELFMAG) == 0 &&
                            header->front().e_ident[EI_CLASS] == ELFCLASS32 &&
                            header->front().e_ident[EI_DATA] == ELFDATA2LSB &&
                            header->front().e_machine == kCodeMachine &&
                            header->front().e_type == ET_EXEC &&
                            header->front().e_shentsize == sizeof(Elf32_Shdr);
    if (!is_program)
      return "not a program of the SDK's compiler (ELF32, machine " + std::to_string(kCodeMachine) +
             ")";
    const auto sections = objects<Elf32_Shdr>(header->front().e_shoff, header->front().e_shnum);
    const bool is_complete =
        sections && read_sections(*sections, header->front().e_shstrndx) && read_symbols(*sections);
    return is_complete ? "" : "a section lies outside the file, or sections overlap";
  }

  const std::vector<CodeSection> &sections() const { return sections_; }
  /// Sorted by address; functions come before labels.
  const std::vector<CodeSymbol> &symbols() const { return symbols_; }

  std::string source_line(uint32_t address) const {
    const SourceLine source = find_line(debug_line_, address);
    return source.line == 0 ? "" : source.file + ":" + std::to_string(source.line);
  }

  /// Returns the name of an instruction, as name or name+n, or "". number: of the instruction.
  std::string name_of(uint32_t number) const {
    const uint64_t address = kIramAddress + uint64_t{number} * kInstructionBytes;
    const bool is_code =
        std::any_of(sections_.begin(), sections_.end(), [&](const CodeSection &section) {
          return address >= section.address && address < section.end();
        });
    const auto after = std::upper_bound(
        symbols_.begin(), symbols_.end(), address,
        [](uint64_t place, const CodeSymbol &symbol) { return place < symbol.address; });
    if (!is_code || after == symbols_.begin()) return "";
    const uint32_t begin = std::prev(after)->address;
    const auto symbol = std::find_if(symbols_.begin(), after,
                                     [&](const CodeSymbol &each) { return each.address == begin; });
    const uint64_t offset = (address - begin) / kInstructionBytes;
    return offset == 0 ? symbol->name : symbol->name + "+" + std::to_string(offset);
  }

 private:
  /// Returns the objects at the offset, or nothing unless all are in the file.
  template <class T>
  std::optional<std::vector<T>> objects(uint64_t offset, uint64_t count) const {
    if (offset > file_.size() || count > (file_.size() - offset) / sizeof(T)) return {};
    std::vector<T> result(count);
    if (count != 0) std::memcpy(result.data(), file_.data() + offset, count * sizeof(T));
    return result;
  }

  std::string text(const Elf32_Shdr &strings, uint32_t offset) const {
    const uint64_t begin = uint64_t{strings.sh_offset} + offset;
    if (begin >= file_.size()) return "";
    const auto first = file_.begin() + static_cast<ptrdiff_t>(begin);
    return std::string(first, std::find(first, file_.end(), '\0'));
  }

  bool read_sections(const std::vector<Elf32_Shdr> &headers, uint16_t names) {
    uint64_t total = 0;
    for (const Elf32_Shdr &header : headers) {
      if (header.sh_type == SHT_NOBITS || header.sh_size == 0) continue;
      total += header.sh_size;
      if (total > file_.size() || header.sh_offset > file_.size() - header.sh_size) return false;
      const std::span<const char> bytes = file_.subspan(header.sh_offset, header.sh_size);
      if ((header.sh_flags & SHF_EXECINSTR) != 0) sections_.push_back({header.sh_addr, bytes});
      if (names < headers.size() && text(headers[names], header.sh_name) == ".debug_line")
        debug_line_ = {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()};
    }
    return true;
  }

  bool read_symbols(const std::vector<Elf32_Shdr> &headers) {
    for (const Elf32_Shdr &header : headers) {
      if (header.sh_type != SHT_SYMTAB) continue;
      const auto symbols = objects<Elf32_Sym>(header.sh_offset, header.sh_size / sizeof(Elf32_Sym));
      if (!symbols || header.sh_link >= headers.size()) return false;
      for (const Elf32_Sym &symbol : *symbols) {
        const auto type = ELF32_ST_TYPE(symbol.st_info);
        const bool is_code = symbol.st_shndx < headers.size() &&
                             (headers[symbol.st_shndx].sh_flags & SHF_EXECINSTR) != 0 &&
                             (type == STT_FUNC || type == STT_NOTYPE);
        if (is_code)
          symbols_.push_back({symbol.st_value, symbol.st_size, type != STT_FUNC,
                              text(headers[header.sh_link], symbol.st_name)});
      }
    }
    std::sort(symbols_.begin(), symbols_.end(), [](const CodeSymbol &a, const CodeSymbol &b) {
      return std::tie(a.address, a.is_label, a.name) < std::tie(b.address, b.is_label, b.name);
    });
    return true;
  }

  std::span<const char> file_;
  std::vector<CodeSection> sections_;
  std::vector<CodeSymbol> symbols_;
  std::span<const uint8_t> debug_line_;
};

std::string formatted(const char *format, auto... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string instruction_text(const ProgramCode &code, uint64_t word) {
  const std::optional<isa::Instruction> instruction = isa::decode(word);
  return instruction
             ? isa::text_of(*instruction, [&](uint32_t number) { return code.name_of(number); })
             : formatted(".quad 0x%llx", static_cast<unsigned long long>(word));
}

/// The addresses of a function, up to its size, or else up to the next symbol.
struct Range {
  uint64_t begin = 0, end = UINT64_MAX;
};

std::optional<Range> range_of(const ProgramCode &code, std::string_view function) {
  const auto &symbols = code.symbols();
  const auto symbol = std::find_if(symbols.begin(), symbols.end(),
                                   [&](const CodeSymbol &each) { return each.name == function; });
  if (symbol == symbols.end()) return {};
  if (symbol->bytes != 0) return Range{symbol->address, uint64_t{symbol->address} + symbol->bytes};
  const auto next = std::find_if(symbol, symbols.end(), [&](const CodeSymbol &each) {
    return each.address > symbol->address;
  });
  return Range{symbol->address, next == symbols.end() ? UINT64_MAX : next->address};
}

void print_section(const ProgramCode &code, const CodeSection &section, const Range &range,
                   const std::function<void(const std::string &)> &print) {
  std::string source;  // of the instruction before
  bool is_first = true;
  auto symbol = code.symbols().begin();
  for (uint32_t at = 0; at + kInstructionBytes <= section.bytes.size(); at += kInstructionBytes) {
    const uint32_t address = section.address + at;
    if (address < range.begin || address >= range.end) continue;
    for (; symbol != code.symbols().end() && symbol->address <= address; ++symbol)
      if (symbol->address == address) {
        if (!symbol->is_label && !is_first) print("");
        print(formatted("%08x ", address) + "<" + symbol->name + ">:");
      }
    if (std::string line = code.source_line(address); !line.empty() && line != source) {
      source = std::move(line);
      print("; " + source);
    }
    uint64_t word;
    std::memcpy(&word, section.bytes.data() + at, sizeof word);
    print(formatted("  %08x:  %012llx  ", address, static_cast<unsigned long long>(word)) +
          instruction_text(code, word));
    is_first = false;
  }
}

}  // namespace

dpu_error_t disassemble(const std::string &path, std::string_view function,
                        const std::function<void(const std::string &)> &print) {
  std::vector<char> bytes;
  if (const dpu_error_t status = read_program_file(path, bytes); status != DPU_OK) return status;
  ProgramCode code(bytes);
  if (const std::string problem = code.read(); !problem.empty())
    return explained(DPU_ERR_ELF_INVALID_FILE, path + ": " + problem);
  const std::optional<Range> range = function.empty() ? Range() : range_of(code, function);
  if (!range)
    return explained(DPU_ERR_UNKNOWN_SYMBOL, path + " has no function " + std::string(function));
  for (const CodeSection &section : code.sections()) print_section(code, section, *range, print);
  return DPU_OK;
}

}  // namespace dpuemu
