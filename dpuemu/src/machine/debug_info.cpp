#include "machine/debug_info.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace dpuemu {
namespace {

/// Reads values in sequence. After the end, all values are 0 and at_end() is true.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool at_end() const { return next_ >= bytes_.size(); }
  size_t position() const { return next_; }
  void skip(uint64_t count) { next_ += std::min<uint64_t>(count, bytes_.size() - next_); }
  Reader part(uint64_t count) {
    const size_t begin = next_;
    skip(count);
    return Reader(bytes_.subspan(begin, next_ - begin));
  }

  template <class T>
  T number() {
    T value = 0;
    if (bytes_.size() - next_ < sizeof value) {
      next_ = bytes_.size();
    } else {
      std::memcpy(&value, bytes_.data() + next_, sizeof value);
      next_ += sizeof value;
    }
    return value;
  }
  uint8_t byte() { return number<uint8_t>(); }

  uint64_t uleb() { return leb(nullptr); }
  int64_t sleb() {
    uint32_t bits = 0;
    const uint64_t value = leb(&bits);
    const bool is_negative = bits < 64 && bits != 0 && (value >> (bits - 1) & 1) != 0;
    return static_cast<int64_t>(is_negative ? value | ~UINT64_C(0) << bits : value);
  }

  std::string text() {
    std::string value;
    for (uint8_t next = byte(); next != 0; next = byte()) value += static_cast<char>(next);
    return value;
  }

 private:
  uint64_t leb(uint32_t *bits) {
    uint64_t value = 0;
    uint32_t shift = 0;
    for (bool more = true; more && !at_end(); shift += 7) {
      const uint8_t next = byte();
      if (shift < 64) value |= uint64_t{next & 0x7Fu} << shift;
      more = (next & 0x80) != 0;
    }
    if (bits != nullptr) *bits = shift;
    return value;
  }

  std::span<const uint8_t> bytes_;
  size_t next_ = 0;
};

// --- Source lines

/// One program of .debug_line: its header, then its opcodes.
class LineProgram {
 public:
  explicit LineProgram(Reader unit) : code_(unit) {
    version_ = code_.number<uint16_t>();
    Reader header = code_.part(code_.number<uint32_t>());
    if (version_ < 2 || version_ > 4) return;
    header.skip(version_ == 4
                    ? 2
                    : 1);  // the length of an instruction, and the operations of one instruction
    header.skip(1);        // whether a line begins a statement
    line_base_ = header.number<int8_t>();
    line_range_ = header.byte();
    opcode_base_ = header.byte();
    operands_.assign(opcode_base_, 0);
    for (uint32_t i = 1; i < opcode_base_; ++i) operands_[i] = header.byte();
    folders_.emplace_back();  // number 0: the folder of the compiler
    for (std::string name = header.text(); !name.empty(); name = header.text())
      folders_.push_back(name);
    files_.emplace_back();  // number 0: an unknown file
    for (std::string name = header.text(); !name.empty(); name = header.text()) {
      const uint64_t folder = header.uleb();
      header.uleb(), header.uleb();  // time and size
      const bool has_folder = folder != 0 && folder < folders_.size();
      files_.push_back(has_folder ? folders_[folder] + "/" + name : name);
    }
  }

  /// Returns whether `use` returned true.
  bool for_each_line(const UseLine &use) {
    if (line_range_ == 0) return false;
    Row row, last;
    bool has_last = false;
    while (!code_.at_end()) {
      const uint8_t opcode = code_.byte();
      bool is_row = false, ends = false;
      if (opcode >= opcode_base_) {
        const int step = opcode - opcode_base_;
        row.address += static_cast<uint32_t>(step / line_range_);
        row.line += static_cast<uint32_t>(line_base_ + step % line_range_);
        is_row = true;
      } else if (opcode == 0) {
        Reader extended = code_.part(code_.uleb());
        const uint8_t kind = extended.byte();
        ends = kind == 1;
        if (kind == 2) row.address = extended.number<uint32_t>();
      } else {
        is_row = run_standard(opcode, row);
      }
      if (!is_row && !ends) continue;
      // The last row covers the addresses up to this row.
      const std::string &file = files_[last.file < files_.size() ? last.file : 0];
      if (has_last && last.address < row.address && use(last.address, row.address, file, last.line))
        return true;
      last = row;
      has_last = is_row;
      if (ends) row = Row();
    }
    return false;
  }

 private:
  struct Row {
    uint32_t address = 0, line = 1;
    uint64_t file = 1;
  };

  bool run_standard(uint8_t opcode, Row &row) {
    switch (opcode) {
      case 1:  // copy
        return true;
      case 2:  // advance_pc
        row.address += static_cast<uint32_t>(code_.uleb());
        return false;
      case 3:  // advance_line
        row.line += static_cast<uint32_t>(code_.sleb());
        return false;
      case 4:  // set_file
        row.file = code_.uleb();
        return false;
      case 8:  // const_add_pc
        row.address += (255u - opcode_base_) / line_range_;
        return false;
      case 9:  // fixed_advance_pc
        row.address += code_.number<uint16_t>();
        return false;
      default:
        for (uint8_t i = 0; i < operands_[opcode]; ++i) code_.uleb();
        return false;
    }
  }

  Reader code_;
  uint16_t version_ = 0;
  int8_t line_base_ = 0;
  uint8_t line_range_ = 0, opcode_base_ = 0;
  std::vector<uint8_t> operands_;
  std::vector<std::string> folders_, files_;
};

// --- Stack frames

/// How to find the caller's registers, at one instruction.
struct FrameRules {
  uint64_t base_register = 0,
           base_offset = 0;  // the frame's base is the value of a register plus an offset
  bool is_known = true;      // false after a rule that this reader does not support
  bool is_saved[FrameRegisters::kCount] = {};
  int64_t offset[FrameRegisters::kCount] = {};  // of the saved register from the base
};

class FrameProgram {
 public:
  FrameProgram(uint64_t code_align, int64_t data_align, uint32_t begin)
      : code_align_(code_align), data_align_(data_align), at_(begin) {}

  FrameRules rules;
  void keep_initial() { initial_ = rules; }

  /// Runs the instructions that apply at `address`.
  void run(Reader code, uint32_t address) {
    while (!code.at_end() && at_ <= address && rules.is_known) {
      const uint8_t opcode = code.byte(), low = opcode & 0x3F;
      switch (opcode & 0xC0) {
        case 0x40:
          advance(low);
          continue;
        case 0x80:
          save(low, static_cast<int64_t>(code.uleb()) * data_align_);
          continue;
        case 0xC0:
          restore(low);
          continue;
        default:
          run_extended(code, low);
      }
    }
  }

 private:
  void run_extended(Reader &code, uint8_t opcode) {
    switch (opcode) {
      case 0x00:  // nop
        return;
      case 0x02:
        return advance(code.byte());
      case 0x03:
        return advance(code.number<uint16_t>());
      case 0x04:
        return advance(code.number<uint32_t>());
      case 0x05: {  // offset_extended
        const uint64_t which = code.uleb();
        return save(which, static_cast<int64_t>(code.uleb()) * data_align_);
      }
      case 0x06:  // restore_extended
      case 0x08:  // same_value
        return restore(code.uleb());
      case 0x0A:
        return stack_.push_back(rules);
      case 0x0B:
        rules.is_known = !stack_.empty();
        if (stack_.empty()) return;
        rules = stack_.back();
        return stack_.pop_back();
      case 0x0C:  // def_cfa
        rules.base_register = code.uleb();
        rules.base_offset = code.uleb();
        return;
      case 0x0D:
        rules.base_register = code.uleb();
        return;
      case 0x0E:
        rules.base_offset = code.uleb();
        return;
      case 0x2E:  // GNU_args_size
        code.uleb();
        return;
      default:
        rules.is_known = false;
    }
  }

  void advance(uint64_t delta) { at_ += delta * code_align_; }
  void save(uint64_t which, int64_t offset) {
    if (which >= FrameRegisters::kCount) return;
    rules.is_saved[which] = true;
    rules.offset[which] = offset;
  }
  void restore(uint64_t which) {
    if (which >= FrameRegisters::kCount) return;
    rules.is_saved[which] = initial_.is_saved[which];
    rules.offset[which] = initial_.offset[which];
  }

  uint64_t code_align_;
  int64_t data_align_;
  uint64_t at_;
  FrameRules initial_;
  std::vector<FrameRules> stack_;
};

/// Returns the rules that apply at `address`. If the section has none, is_known is false.
FrameRules rules_at(std::span<const uint8_t> debug_frame, uint32_t address) {
  constexpr uint32_t kHeader = UINT32_MAX;
  FrameRules none;
  none.is_known = false;
  Reader all(debug_frame);
  while (!all.at_end()) {
    Reader entry = all.part(all.number<uint32_t>());
    const uint32_t header_at = entry.number<uint32_t>();
    if (header_at == kHeader) continue;
    const uint32_t begin = entry.number<uint32_t>(), bytes = entry.number<uint32_t>();
    if (address < begin || address - begin >= bytes || header_at >= debug_frame.size()) continue;
    Reader rest(debug_frame.subspan(header_at));
    Reader header = rest.part(rest.number<uint32_t>());
    const bool is_header = header.number<uint32_t>() == kHeader;
    const uint8_t version = header.byte();
    if (!is_header || !header.text().empty()) return none;
    if (version >= 4) header.skip(2);  // sizes of an address and of a segment selector
    const uint64_t code_align = header.uleb();
    const int64_t data_align = header.sleb();
    version == 1 ? static_cast<void>(header.byte())
                 : static_cast<void>(header.uleb());  // the register of the return address
    FrameProgram program(code_align, data_align, begin);
    program.run(header, address);
    program.keep_initial();
    program.run(entry, address);
    return program.rules;
  }
  return none;
}

}  // namespace

void for_each_line(std::span<const uint8_t> debug_line, const UseLine &use) {
  Reader all(debug_line);
  while (!all.at_end())
    if (LineProgram(all.part(all.number<uint32_t>())).for_each_line(use)) return;
}

SourceLine find_line(std::span<const uint8_t> debug_line, uint32_t address) {
  SourceLine found;
  for_each_line(debug_line,
                [&](uint32_t begin, uint32_t end, const std::string &file, uint32_t line) {
                  if (line == 0 || address < begin || address >= end) return false;
                  found = {file, line};
                  return true;
                });
  return found;
}

bool leave_frame(std::span<const uint8_t> debug_frame, uint32_t address, FrameRegisters &registers,
                 const std::function<bool(uint64_t address, uint64_t &word)> &read_word) {
  const FrameRules rules = rules_at(debug_frame, address);
  if (!rules.is_known || rules.base_register >= FrameRegisters::kCount ||
      !rules.is_saved[FrameRegisters::kRip])
    return false;
  const uint64_t base = registers.value[rules.base_register] + rules.base_offset;
  FrameRegisters caller = registers;
  for (uint32_t i = 0; i < FrameRegisters::kCount; ++i)
    if (rules.is_saved[i] &&
        !read_word(base + static_cast<uint64_t>(rules.offset[i]), caller.value[i]))
      return false;
  caller.value[FrameRegisters::kRsp] = base;
  registers = caller;
  return true;
}

}  // namespace dpuemu
