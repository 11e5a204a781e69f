// The results and conditions of instructions.inc as functions.
#pragma once

#include <bit>
#include <cstdint>

#include "isa/instruction.h"

namespace dpuemu::isa {

struct Flags {
  bool zero = false, carry = false;
};

struct Operands {
  uint32_t a, b;
  uint32_t shift;  // 0 to 31
};

struct Result {
  uint32_t value;
  Flags flags;
  bool holds;  // the condition
};

namespace detail {

inline uint32_t as_unsigned(int32_t value) { return static_cast<uint32_t>(value); }
inline int32_t as_signed(uint32_t value) { return static_cast<int32_t>(value); }
inline uint32_t low_half(uint64_t value) { return static_cast<uint32_t>(value); }
inline uint32_t high_half(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
/// Returns a number with `count` ones at the low end; count: below 32.
inline uint32_t low_ones(uint32_t count) { return (1u << count) - 1; }
inline uint32_t signed_byte(uint32_t value) { return as_unsigned(static_cast<int8_t>(value)); }
/// Returns 1 in each byte in which the two words are equal.
inline uint32_t equal_bytes(uint32_t a, uint32_t b) {
  uint32_t result = 0;
  for (uint32_t shift = 0; shift < 32; shift += 8)
    if (((a ^ b) >> shift & 0xFF) == 0) result |= 1u << shift;
  return result;
}

}  // namespace detail

/// Computes the result of an operation with a value.
inline Result compute(Operation operation, Condition condition, const Operands &operands,
                      Flags before) {
  using namespace detail;
  const uint32_t a = operands.a, b = operands.b, shift = operands.shift;
  uint32_t value = 0;
  bool carry = before.carry, overflow = false;
  std::optional<bool> tested_zero;
  const auto sum = [&](uint32_t x, uint32_t y, bool carry_in) {
    const uint64_t total = uint64_t{x} + y + carry_in;
    value = low_half(total);
    carry = high_half(total) != 0;
    overflow = ((x ^ value) & (y ^ value)) >> 31 != 0;
  };
  const auto tested = [&](uint32_t x) {
    tested_zero = x == 0;
    return x;
  };
  switch (operation) {
#define OPERATION(identifier, name, pair, conditions, ...) \
  case Operation::identifier:                              \
    __VA_ARGS__;                                           \
    break;
#include "isa/instructions.inc"
    case Operation::kCount:
      break;
  }
  const bool zero = before.zero, is_zero = tested_zero.value_or(value == 0);
  bool holds = false;
  switch (condition) {
    case Condition::kNone:
      break;
#define CONDITION(identifier, name, ...) \
  case Condition::identifier:            \
    holds = __VA_ARGS__;                 \
    break;
#include "isa/instructions.inc"
  }
  return {value, {is_zero, carry}, holds};
}

}  // namespace dpuemu::isa
