// The instructions of a DPU: decoding, encoding and text. instructions.inc has the tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace dpuemu::isa {

enum class Operation : uint8_t {
#define OPERATION(identifier, ...) identifier,
#define EFFECT(identifier, ...) identifier,
#include "runtime/instructions.inc"
  kCount
};

enum class ConditionClass : uint8_t {
#define CONDITION_CLASS(name, ...) name,
#include "runtime/instructions.inc"
};

/// VALUE: a row of OPERATION; the others are those of EFFECT.
enum class Kind : uint8_t { VALUE, STEP, MOVE, CALL, NOP, LOAD, STORE, STORE_ID, DMA, SCHEDULER };
/// What the upper half of a pair may get: bit 0 for zeros, bit 1 for copies of the sign.
enum class Pair : uint8_t { NONE, UNSIGNED, SIGNED, BOTH };

struct OperationRow {
  const char *identifier, *name;
  Pair pair;
  ConditionClass conditions;
  Kind kind;
  uint8_t bytes = 0;  // of a load or store
};
inline constexpr OperationRow kOperations[] = {
#define OPERATION(identifier, name, pair, conditions, ...) \
  {#identifier, name, Pair::pair, ConditionClass::conditions, Kind::VALUE},
#define EFFECT(identifier, name, pair, conditions, ...) \
  {#identifier, name, Pair::pair, ConditionClass::conditions, Kind::__VA_ARGS__},
#include "runtime/instructions.inc"
};
constexpr const OperationRow &row_of(Operation operation) {
  return kOperations[static_cast<size_t>(operation)];
}
/// Returns whether interpret() leaves the operation to its caller.
constexpr bool calls_scheduler(Operation operation) { return row_of(operation).kind >= Kind::DMA; }
/// Returns whether the second operand is a shift.
constexpr bool is_shift(Operation operation) {
  return row_of(operation).conditions == ConditionClass::SHIFT;
}

enum class Condition : uint8_t {
  kNone,
#define CONDITION(identifier, ...) identifier,
#include "runtime/instructions.inc"
};

/// The fixed registers that an operand can name. Their values: 0, 1, all bits, the highest bit, and
/// the number of the tasklet times 1, 2, 4, 8.
enum FixedRegister : uint8_t { kZero = 24, kOne, kLneg, kMneg, kId, kId2, kId4, kId8 };
constexpr uint32_t kGeneralRegisters = 24, kRegisters = 32;

/// The number of instructions that a jump can reach. The upper bits of its target have no meaning.
constexpr uint32_t kReachableInstructions = 4096;

/// Where a result goes. The upper half of a pair, its even register, gets zeros or copies of the
/// sign.
enum class Destination : uint8_t { kNowhere, kRegister, kUnsignedPair, kSignedPair };

struct Instruction {
  Operation operation = Operation::nop;
  Destination destination = Destination::kNowhere;
  Condition condition = Condition::kNone;
  bool sets = false;             // writes whether the condition holds
  bool is_immediate = false;     // the second operand is `immediate`, not register b
  bool is_big_endian = false;    // of a load or store
  uint8_t c = 0;                 // the destination: a register, or the even register of a pair
  uint8_t a = kZero, b = kZero;  // operands; b also: the even register of a pair
  uint8_t shift = 0;
  uint16_t target = 0;     // of a jump, as the number of an instruction
  uint32_t immediate = 0;  // the sign of a shorter number fills the upper bits
  uint32_t offset = 0;     // of a load or store; the sign of a shorter number fills the upper bits

  bool jumps() const { return condition != Condition::kNone && !sets; }
  bool operator==(const Instruction &) const = default;
};

/// Returns the instruction of a word, or nothing if no instruction has this word.
std::optional<Instruction> decode(uint64_t word);
/// Returns a word of the instruction, or nothing if it has none, for example because a number does
/// not fit.
std::optional<uint64_t> encode(const Instruction &instruction);

/// Returns the instruction in assembly. symbol: the name of an instruction's address, or "".
std::string text_of(const Instruction &instruction,
                    const std::function<std::string(uint32_t)> &symbol = {});
/// Reads one instruction of assembly. value: the value of an expression, or nothing. If the text
/// is not an instruction, returns nothing and sets `problem`.
std::optional<Instruction> parse(
    std::string_view text, const std::function<std::optional<int64_t>(std::string_view)> &value,
    std::string &problem);

std::string_view name_of(Operation operation);
std::string_view name_of(Condition condition);

}  // namespace dpuemu::isa
