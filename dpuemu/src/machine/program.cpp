#include "machine/program.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "base/explanation.h"
#include "machine/debug_info.h"
#include "machine/debugger.h"
#include "machine/program_reader.h"

namespace dpuemu {

dpu_error_t Program::parse(std::span<const uint8_t> file, const std::string &name,
                           std::shared_ptr<const Program> &out) {
  // The parser reads a copy, because the bytes of the caller may be unaligned.
  std::vector<uint64_t> aligned((file.size() + 7) / 8);
  if (!file.empty()) std::memcpy(aligned.data(), file.data(), file.size());
  auto program = std::make_shared<Program>();
  std::string problem;
  const dpu_error_t status = read_program(
      {reinterpret_cast<const uint8_t *>(aligned.data()), file.size()}, *program, problem);
  if (status == DPU_ERR_ELF_INVALID_FILE) return explained(status, name + ": " + problem);
  if (status != DPU_OK) return status;
  if (is_debugger_attached()) program->file_.assign(file.begin(), file.end());
  out = std::move(program);
  return DPU_OK;
}

dpu_error_t Program::check_fit(const Chip &chip) const {
  struct {
    dpu_error_t status;
    const char *what;
    uint64_t needed, available;
  } const limits[] = {
      {DPU_ERR_TOO_MANY_TASKLETS, " tasklets", tasklets_, chip.tasklets},
      {DPU_ERR_INVALID_WRAM_ACCESS, " bytes of WRAM with the heap", wram_end_, chip.wram_bytes},
      {DPU_ERR_INVALID_WRAM_ACCESS, " mutexes", mutexes_, chip.mutexes},
      {DPU_ERR_INVALID_IRAM_ACCESS,
       code_ != nullptr ? " instructions" : " instructions (estimated)", instructions_,
       uint64_t{chip.instructions} * (code_ != nullptr ? 100 : PE_ESTIMATE_PERCENT) / 100},
  };
  for (const auto &limit : limits)
    if (limit.needed > limit.available)
      return explained(limit.status, "the program has " + std::to_string(limit.needed) +
                                         limit.what + "; a DPU of the chip " +
                                         std::string(chip.name) + " has at most " +
                                         std::to_string(limit.available) +
                                         "; to compile for a chip, set DPUEMU_CHIP");
  return DPU_OK;
}

const dpu_symbol_t *Program::find(std::string_view name) const {
  const auto found = symbols_.find(std::string(name));
  return found != symbols_.end() ? &found->second : nullptr;
}

std::string hexadecimal(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Program::address_and_variable(uint32_t shown, uint32_t address) const {
  const std::string name = variable_at(address);
  return hexadecimal(shown) + (name.empty() ? "" : " (" + name + ")");
}

std::string Program::variable_at(uint32_t address) const {
  std::string name;  // of several names, the first in alphabetical order
  uint32_t offset = 0;
  for (const auto &[candidate, symbol] : symbols_) {
    const bool is_here = address - symbol.address < std::max(symbol.size, 1u);
    if (!is_here || candidate == kHeapName || (!name.empty() && name < candidate)) continue;
    name = candidate;
    offset = address - symbol.address;
  }
  for (const std::string_view prefix :
       {"__atomic_bit_mutex_", "__atomic_bit_"})  // of MUTEX_INIT and ATOMIC_BIT_INIT
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return offset != 0 ? name + " + " + hexadecimal(offset) : name;
}

std::string Program::function_at(uint32_t address) const {
  for (const TextSymbol &symbol : text_symbols_) {
    if (address < symbol.address || address - symbol.address >= symbol.bytes) continue;
    const std::string name = symbol.name.substr(0, symbol.name.find('.'));
    const SourceLine source = find_line(debug_line_, address);
    return source.line == 0 ? name
                            : name + " (" + source.file + ":" + std::to_string(source.line) + ")";
  }
  return "";
}

std::string Program::text_at(uint32_t offset) const {
  const auto begin = texts_.begin() + std::min<ptrdiff_t>(offset, std::ssize(texts_));
  return std::string(begin, std::find(begin, texts_.end(), 0));
}

void Program::relocate(uint8_t *image, const std::vector<Relocation> &relocations, Area own,
                       const PePlace &place) {
  const auto shift_of = [&](Area area) -> uint32_t {
    if (area == Area::kText) return address_of(place.text) - PE_TEXT_ORIGIN;
    if (area == Area::kMram) return 0u - PE_MRAM_ORIGIN;
    return area == Area::kWram ? address_of(place.wram) - PE_WRAM_ORIGIN : 0;
  };
  const uint32_t own_shift = shift_of(own);
  for (const Relocation &relocation : relocations) {
    add_to_word(image + relocation.offset,
                shift_of(relocation.target) - (relocation.is_distance ? own_shift : 0));
  }
}

void Program::write_text(const PePlace &place, const Gates &gates) const {
  std::copy(text_.begin(), text_.end(), place.text);
  relocate(place.text, text_relocations_, Area::kText, place);
  std::memcpy(place.text + gate_offset_, &gates.call, sizeof gates.call);
  std::memcpy(place.text + gate_offset_ + sizeof gates.call, &gates.yield, sizeof gates.yield);
  if (is_checked())
    std::memcpy(place.text + check_offset_, gates.checks.data(), gates.checks.size_bytes());
}

void Program::write_wram(const PePlace &place, const Chip &chip) const {
  std::copy(wram_.begin(), wram_.end(), place.wram);
  if (code_ != nullptr) std::fill_n(place.wram + PE_ATOMIC_ORIGIN, PE_ATOMIC_BYTES, uint8_t{0});
  relocate(place.wram, wram_relocations_, Area::kWram, place);
  const uint32_t clock = chip.clock_mhz * 1000000;
  if (const dpu_symbol_t *variable = find("CLOCKS_PER_SEC");
      variable != nullptr && variable->address + sizeof clock <= wram_.size())
    std::memcpy(place.wram + variable->address, &clock, sizeof clock);
}

dpu_error_t find_or_parse_program(std::span<const uint8_t> file, const std::string &name,
                                  const Program *&out) {
  static std::mutex mutex;
  static auto *const programs =
      new std::map<std::string, std::shared_ptr<const Program>, std::less<>>;
  const std::string_view key(reinterpret_cast<const char *>(file.data()), file.size());
  std::lock_guard<std::mutex> lock(mutex);
  auto found = programs->find(key);
  if (found == programs->end()) {
    std::shared_ptr<const Program> program;
    const dpu_error_t status = Program::parse(file, name, program);
    if (status != DPU_OK) return status;
    found = programs->emplace(key, std::move(program)).first;
  }
  out = found->second.get();
  return DPU_OK;
}

}  // namespace dpuemu
