#include "isa/encoding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>
#include <vector>

namespace dpuemu::isa {
namespace {

constexpr uint32_t kWordBits = 48, kCodes = 64;

constexpr const char *kConditionClasses[] = {
#define CONDITION_CLASS(name, ...) __VA_ARGS__,
#include "runtime/instructions.inc"
};

struct Identifier {
  const char *identifier, *name;
};
constexpr Identifier kConditionIdentifiers[] = {
    {"", ""},
#define CONDITION(identifier, name, ...) {#identifier, name},
#include "runtime/instructions.inc"
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end != at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// The conditions of a class by their codes; kNone: no condition has this code.
struct Codes {
  std::array<Condition, kCodes> of_jump{}, of_set{};
};

Codes codes_of(std::string_view text) {
  Codes codes;
  bool sets = false;
  for (const std::string &word : words_of(text)) {
    if (word == "set:") {
      sets = true;
      continue;
    }
    const size_t equals = word.find('=');
    const auto row = std::find_if(
        std::begin(kConditionIdentifiers), std::end(kConditionIdentifiers),
        [&](const Identifier &each) { return word.substr(equals + 1) == each.identifier; });
    (sets ? codes.of_set : codes.of_jump)[std::stoul(word.substr(0, equals))] =
        static_cast<Condition>(row - std::begin(kConditionIdentifiers));
  }
  return codes;
}

const Codes &codes_of(Operation operation) {
  static const std::vector<Codes> all = [] {
    std::vector<Codes> codes;
    for (const char *text : kConditionClasses) codes.push_back(codes_of(text));
    return codes;
  }();
  return all[static_cast<size_t>(row_of(operation).conditions)];
}

void add_bits(Encoding &row, uint32_t &at, const std::string &token) {
  const char letter = token[0];
  if (letter == '0' || letter == '1') {
    for (const char digit : token) {
      --at;
      row.mask |= UINT64_C(1) << at;
      if (digit == '1') row.bits |= UINT64_C(1) << at;
    }
    return;
  }
  if (letter == '-') {
    at -= static_cast<uint32_t>(std::stoul(token.substr(1)));
    return;
  }
  const size_t colon = token.find(':');
  const auto first = static_cast<int>(std::stoul(token.substr(1)));
  const int last =
      colon == std::string::npos ? first : static_cast<int>(std::stoul(token.substr(colon + 1)));
  for (int bit = first;; bit += first < last ? 1 : -1) {
    row.fields.push_back({letter, static_cast<uint8_t>(bit), static_cast<uint8_t>(--at)});
    if (bit == last) break;
  }
}

Encoding row_of(const std::string &bits, std::string_view syntax, std::string_view operations) {
  Encoding row;
  row.syntax = syntax;
  uint32_t at = kWordBits;
  for (const std::string &token : words_of(bits)) add_bits(row, at, token);
  for (const std::string &word : words_of(operations)) {
    const auto found =
        std::find_if(std::begin(kOperations), std::end(kOperations),
                     [&](const OperationRow &each) { return word == each.identifier; });
    row.operations.push_back(
        static_cast<Operation>(found - std::begin(kOperations)));  // kCount for "."
  }
  return row;
}

/// Adds the rows of ENCODING.
void add_rows(std::vector<Encoding> &rows, std::string bits, const std::string &syntax,
              const char *operations) {
  const char family = bits[0];
  if (family != 'A' && family != 'L') {
    rows.push_back(row_of(bits, syntax, operations));
    return;
  }
  bits.erase(0, 1);
  const bool is_jump = syntax.find('@') != std::string::npos,
             has_immediate = bits.find(" i") != std::string::npos;
  const std::string more = !has_immediate ? "-3"
                           : is_jump      ? "i10:8"
                                          : "i26:24",
                    most = !has_immediate ? "-1"
                           : is_jump      ? "i11"
                                          : "i27";
  const auto with = [&](char destination) { return destination + syntax.substr(1); };
  const bool is_arithmetic = family == 'A';
  rows.push_back(row_of((is_arithmetic ? "0011 11 " + more : "100 " + most + " 11 " + more) + bits,
                        with('z'), operations));
  rows.push_back(
      row_of((is_arithmetic ? "00 c4:3 11 c2:0" : "1000 c4:0") + bits, with('c'), operations));
  rows.push_back(row_of((is_arithmetic ? "01 d4:3 11 d2:1 g0" : "1001 d4:1 g0") + bits, with('d'),
                        operations));
}

}  // namespace

const std::vector<Encoding> &encodings() {
  static const std::vector<Encoding> rows = [] {
    std::vector<Encoding> all;
#define ENCODING(bits, syntax, operations) add_rows(all, bits, syntax, operations);
#include "runtime/instructions.inc"
    return all;
  }();
  return rows;
}

std::string_view name_of(Operation operation) { return row_of(operation).name; }

std::string_view name_of(Condition condition) {
  return kConditionIdentifiers[static_cast<size_t>(condition)].name;
}

namespace {

struct FieldValues {
  uint32_t of[128] = {};
  uint32_t widths[128] = {};
};

uint32_t with_sign(uint32_t value, uint32_t bits) {
  return bits == 0 || bits >= 32 || (value >> (bits - 1) & 1) == 0 ? value : value | ~0u << bits;
}

FieldValues fields_of(const Encoding &row, uint64_t word) {
  FieldValues values;
  for (const Encoding::Field &field : row.fields) {
    const auto name = static_cast<size_t>(field.name);
    values.of[name] |= static_cast<uint32_t>(word >> field.place & 1) << field.bit;
    values.widths[name] = std::max<uint32_t>(values.widths[name], field.bit + 1u);
  }
  return values;
}

std::optional<Instruction> decode_as(const Encoding &row, uint64_t word) {
  if ((word & row.mask) != row.bits) return {};
  const FieldValues values = fields_of(row, word);
  const auto value = [&](char name) { return values.of[static_cast<size_t>(name)]; };
  const auto has = [&](char name) { return values.widths[static_cast<size_t>(name)] != 0; };
  for (const char name : {'c', 'd', 'b', 'e', 'r'})
    if (value(name) >= kGeneralRegisters) return {};
  if ((value('d') | value('e')) % 2 != 0 || (has('q') && value('q') < kGeneralRegisters)) return {};
  if (value('f') >= row.operations.size() || row.operations[value('f')] == Operation::kCount)
    return {};

  Instruction result;
  result.operation = row.operations[value('f')];
  const auto pair = static_cast<uint32_t>(row_of(result.operation).pair);
  if (has('c')) {
    result.destination = Destination::kRegister;
    result.c = static_cast<uint8_t>(value('c'));
  } else if (has('d')) {
    if (has('g') ? (pair >> value('g') & 1) == 0 : pair != 0) return {};
    result.destination = value('g') ? Destination::kSignedPair : Destination::kUnsignedPair;
    result.c = static_cast<uint8_t>(value('d'));
  }
  if (has('a') || has('r') || has('q'))
    result.a = static_cast<uint8_t>(value('a') | value('r') | value('q'));
  if (has('b') || has('e')) result.b = static_cast<uint8_t>(value('b') | value('e'));
  result.is_immediate = has('i') || (has('s') && !has('b') && !has('e'));
  result.shift = static_cast<uint8_t>(value('s'));
  result.is_big_endian = value('n') != 0;
  result.immediate = with_sign(value('i'), values.widths['i']);
  result.offset = with_sign(value('o'), values.widths['o']);

  const bool may_jump = row.has('@') || row.has('?'), may_set = row.has('!') || row.has('?');
  if (has('k')) {
    const Codes &codes = codes_of(result.operation);
    const Condition of_jump = codes.of_jump[value('k')], of_set = codes.of_set[value('k')];
    if (may_jump && of_jump != Condition::kNone) {
      result.condition = of_jump;
      result.target = static_cast<uint16_t>(value('p') % kReachableInstructions);
    } else if (may_set && of_set != Condition::kNone) {
      result.condition = of_set;
      result.sets = true;
    } else if (row.has('@') || value('k') != 0) {
      return {};
    }
  }
  return result;
}

std::optional<uint32_t> code_of(const Encoding &row, const Instruction &instruction) {
  if (instruction.condition == Condition::kNone)
    return row.has('@') ? std::nullopt : std::optional<uint32_t>(0);
  if (instruction.sets ? row.has('@') : row.has('!')) return {};
  const Codes &codes = codes_of(instruction.operation);
  const auto &of = instruction.sets ? codes.of_set : codes.of_jump;
  const auto found = std::find(of.begin(), of.end(), instruction.condition);
  if (found == of.end()) return {};
  return static_cast<uint32_t>(found - of.begin());
}

}  // namespace

std::optional<Instruction> decode(uint64_t word) {
  if (word >> kWordBits != 0) return {};
  for (const Encoding &row : encodings())
    if (const auto result = decode_as(row, word)) return result;
  return {};
}

std::optional<uint64_t> encode(const Instruction &instruction) {
  for (const Encoding &row : encodings()) {
    const auto place =
        std::find(row.operations.begin(), row.operations.end(), instruction.operation);
    if (place == row.operations.end()) continue;
    const std::optional<uint32_t> code = code_of(row, instruction);
    if (!code) continue;
    uint64_t word = row.bits;
    for (const Encoding::Field &field : row.fields) {
      const uint32_t value = [&]() -> uint32_t {
        switch (field.name) {
          case 'f':
            return static_cast<uint32_t>(place - row.operations.begin());
          case 'c':
          case 'd':
            return instruction.c;
          case 'a':
          case 'r':
          case 'q':
            return instruction.a;
          case 'b':
          case 'e':
            return instruction.b;
          case 'g':
            return instruction.destination == Destination::kSignedPair;
          case 'i':
            return instruction.immediate;
          case 'o':
            return instruction.offset;
          case 's':
            return instruction.shift;
          case 'k':
            return *code;
          case 'p':
            return instruction.target;
          default:
            return instruction.is_big_endian;
        }
      }();
      word |= uint64_t{value >> field.bit & 1} << field.place;
    }
    // Also checks that every operand has a field, and fits into it.
    if (decode(word) == instruction) return word;
  }
  return {};
}

}  // namespace dpuemu::isa
