// A buffer of host code for x86-64, with functions that append instructions.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace dpuemu::isa {

/// The registers of the processor, by their numbers in host code.
enum HostRegister : uint8_t { kAx, kCx, kDx, kBx, kSp, kBp, kSi, kDi, kR8, kR9, kR10, kR11, kR12 };

/// The numbers of conditions in host code. A number with its lowest bit inverted is the opposite
/// condition.
enum HostCondition : uint8_t {
  kOverflow,
  kNoOverflow,
  kBelow,
  kAboveEqual,
  kEqual,
  kNotEqual,
  kBelowEqual,
  kAbove,
  kNegative,
  kPositive,
  kLess = 12,
  kGreaterEqual,
  kLessEqual,
  kGreater
};

enum class Width : uint8_t { k16, k32, k64 };

/// An opcode has one byte, or two bytes of which the first is 0x0F.
class X86Code {
 public:
  const std::vector<uint8_t> &bytes() const { return bytes_; }
  uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }

  /// Appends bytes, which `hex` has as two digits each, with a space between them.
  void hex(std::string_view hex) {
    const auto digit = [&](size_t at) {
      return hex[at] <= '9' ? hex[at] - '0' : hex[at] - 'A' + 10;
    };
    for (size_t i = 0; i + 1 < hex.size(); i += 3) byte(16 * digit(i) + digit(i + 1));
  }
  void byte(int value) { bytes_.push_back(static_cast<uint8_t>(value)); }
  void number(uint32_t value) {
    for (uint32_t shift = 0; shift < 32; shift += 8) byte(static_cast<int>(value >> shift & 0xFF));
  }
  /// An instruction with two registers. rm: the operand that could be in memory.
  void with_registers(uint32_t opcode, uint32_t reg, uint32_t rm, Width width = Width::k32) {
    begin(opcode, reg, rm, width);
    byte(static_cast<int>(0xC0 | (reg & 7) << 3 | (rm & 7)));
  }
  /// An instruction with a register and the memory at rbx + offset.
  void with_state(uint32_t opcode, uint32_t reg, size_t offset) {
    begin(opcode, reg, kBx, Width::k32);
    const bool is_near = offset < 128;
    byte(static_cast<int>((is_near ? 0x40 : 0x80) | (reg & 7) << 3 | kBx));
    if (is_near)
      byte(static_cast<int>(offset));
    else
      number(static_cast<uint32_t>(offset));
  }
  /// An instruction with a register and the memory at r12 + rax.
  void with_wram(uint32_t opcode, uint32_t reg, Width width) {
    begin(opcode, reg, kR12, width);
    byte(static_cast<int>(0x04 | (reg & 7) << 3));
    byte(0x04);
  }
  void move(uint32_t to, uint32_t from) { with_registers(0x8B, to, from); }
  void move_number(uint32_t to, uint32_t value) {
    byte(static_cast<int>(0xB8 | to));  // of the first eight registers
    number(value);
  }
  void set(uint32_t condition, size_t offset) { with_state(0x0F90 | condition, 0, offset); }

  /// Appends a jump to a place that is not known yet. Returns the argument of bind().
  uint32_t jump(uint32_t condition) {
    byte(0x0F);
    byte(static_cast<int>(0x80 | condition));
    number(0);
    return size();
  }
  /// Lets a jump go to the end of the code.
  void bind(uint32_t jump) {
    const uint32_t distance = size() - jump;
    std::memcpy(&bytes_[jump - 4], &distance, sizeof distance);
  }
  /// Appends a jump to a place relative to the start of this code.
  void jump_to(uint32_t place) {
    byte(0xE9);
    number(place - (size() + 4));
  }
  void jump_to(uint32_t place, HostCondition condition) {
    byte(0x0F);
    byte(0x80 | condition);
    number(place - (size() + 4));
  }

 private:
  void begin(uint32_t opcode, uint32_t reg, uint32_t rm, Width width) {
    if (width == Width::k16) byte(0x66);
    const uint32_t prefix = (width == Width::k64) << 3 | (reg >> 3) << 2 | rm >> 3;
    if (prefix != 0) byte(static_cast<int>(0x40 | prefix));
    if (opcode > 0xFF) byte(static_cast<int>(opcode >> 8));
    byte(static_cast<int>(opcode & 0xFF));
  }

  std::vector<uint8_t> bytes_;
};

}  // namespace dpuemu::isa
