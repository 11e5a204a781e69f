// The results and conditions of instructions.inc as functions.
#pragma once

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

#include "runtime/instructions.h"

/// Computes the result of an operation with a value.
inline Result compute(Operation operation, Condition condition, const Operands &operands,
                      Flags before) {
  const auto [a, b, shift] = operands;
  __pe_result result{};
  switch (operation) {
#define OPERATION(identifier, ...)                            \
  case Operation::identifier:                                 \
    result = __pe_do_##identifier(a, b, shift, before.carry); \
    break;
#include "runtime/instructions.inc"
    default:
      break;
  }
  uint32_t holds = 0;
  switch (condition) {
    case Condition::kNone:
      break;
#define CONDITION(identifier, ...)                           \
  case Condition::identifier:                                \
    holds = __pe_is_##identifier(result, a, b, before.zero); \
    break;
#include "runtime/instructions.inc"
  }
  return {result.value, {result.is_zero != 0, result.carry != 0}, holds != 0};
}

}  // namespace dpuemu::isa
