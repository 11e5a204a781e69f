#include "machine/disassembly.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/explanation.h"
#include "isa/instruction.h"
#include "machine/debug_info.h"
#include "machine/program.h"
#include "machine/program_file.h"
#include "machine/symbols.h"

namespace dpuemu {
namespace {

constexpr uint64_t address_of_instruction(uint32_t number) {
  return kIramAddress + uint64_t{number} * kInstructionBytes;
}

/// The addresses of a function, up to its size, or else up to the next symbol.
struct Range {
  uint64_t begin = 0, end = UINT64_MAX;
};

class Listing {
 public:
  explicit Listing(const Program &program)
      : code_(*program.code()), symbols_(program.text_symbols()), lines_(code_.size()) {
    for_each_line(program.debug_line(),
                  [&](uint32_t begin, uint32_t end, const std::string &file, uint32_t line) {
                    if (line != 0) add_line(begin, end, file + ":" + std::to_string(line));
                    return false;
                  });
  }

  std::optional<Range> range_of(std::string_view function) const {
    const auto symbol = std::find_if(symbols_.begin(), symbols_.end(),
                                     [&](const auto &each) { return each.name == function; });
    if (symbol == symbols_.end()) return {};
    const uint64_t begin = symbol->address;
    if (symbol->bytes != 0) return Range{begin, begin + symbol->bytes};
    const auto next = first_after(begin);
    return Range{begin, next == symbols_.end() ? UINT64_MAX : next->address};
  }

  void print(const Range &range, const std::function<void(const std::string &)> &print_line) const {
    const std::string *source = nullptr;  // of the instruction before
    bool is_first = true;
    auto symbol = symbols_.begin();
    for (uint32_t number = 0; number < code_.size(); ++number) {
      const uint64_t address = address_of_instruction(number);
      if (address < range.begin || address >= range.end) continue;
      for (; symbol != symbols_.end() && symbol->address <= address; ++symbol)
        if (symbol->address == address) {
          if (!symbol->is_label && !is_first) print_line("");
          print_line(padded(address, 8) + " <" + symbol->name + ">:");
        }
      const std::string &line = lines_[number];
      if (!line.empty() && (source == nullptr || line != *source)) {
        source = &line;
        print_line("; " + line);
      }
      print_line("  " + padded(address, 8) + ":  " + padded(code_.word(number), 12) + "  " +
                 instruction_text(number));
      is_first = false;
    }
  }

 private:
  using Symbols = std::vector<Program::TextSymbol>;

  static std::string padded(uint64_t value, int digits) {
    char text[24];
    std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(value));
    return text;
  }

  /// Sets the source line of the instructions at these addresses, up to the first that has one.
  void add_line(uint32_t begin, uint32_t end, const std::string &line) {
    const uint32_t offset = std::max(begin, kIramAddress) - kIramAddress;
    uint32_t number = offset / kInstructionBytes + (offset % kInstructionBytes != 0);
    for (; number < lines_.size() && address_of_instruction(number) < end; ++number) {
      if (!lines_[number].empty()) return;
      lines_[number] = line;
    }
  }

  Symbols::const_iterator first_after(uint64_t address) const {
    return std::upper_bound(symbols_.begin(), symbols_.end(), address,
                            [](uint64_t place, const auto &each) { return place < each.address; });
  }

  /// Returns the name of an instruction, as name or name+n, or "".
  std::string name_of(uint32_t number) const {
    const uint64_t address = address_of_instruction(number);
    const auto after = first_after(address);
    if (number >= code_.size() || after == symbols_.begin()) return "";
    const uint32_t begin = std::prev(after)->address;
    const auto symbol =
        std::lower_bound(symbols_.begin(), after, begin,
                         [](const auto &each, uint32_t place) { return each.address < place; });
    const uint64_t offset = (address - begin) / kInstructionBytes;
    return offset == 0 ? symbol->name : symbol->name + "+" + std::to_string(offset);
  }

  std::string instruction_text(uint32_t number) const {
    const isa::Instruction *const instruction = code_.at(number);
    if (instruction == nullptr) return ".quad " + hexadecimal(code_.word(number));
    return isa::text_of(*instruction, [&](uint32_t target) { return name_of(target); });
  }

  const isa::Code &code_;
  const Symbols &symbols_;
  std::vector<std::string> lines_;  // file:line or "", by the number of the instruction
};

}  // namespace

dpu_error_t disassemble(const std::string &path, std::string_view function,
                        const std::function<void(const std::string &)> &print) {
  std::vector<char> bytes;
  if (const dpu_error_t status = read_program_file(path, bytes); status != DPU_OK) return status;
  std::shared_ptr<const Program> program;
  const dpu_error_t status = Program::parse(
      {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}, path, program);
  if (status != DPU_OK) return status;
  if (program->code() == nullptr)
    return explained(DPU_ERR_ELF_INVALID_FILE, path +
                                                   ": code for the host's processor; only the "
                                                   "UPMEM vendor's compiler makes code for DPUs");
  const Listing listing(*program);
  const std::optional<Range> range = function.empty() ? Range() : listing.range_of(function);
  if (!range)
    return explained(DPU_ERR_UNKNOWN_SYMBOL, path + " has no function " + std::string(function));
  listing.print(*range, print);
  return DPU_OK;
}

}  // namespace dpuemu
