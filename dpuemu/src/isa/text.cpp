// Instructions as text: the syntax of the rows of ENCODING, and the other forms of kForms.
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "isa/encoding.h"

namespace dpuemu::isa {
namespace {

using Words = std::vector<std::string>;

/// A row of FORM.
struct Form {
  const char *name, *operands, *full_name, *full_operands;
};

// text_of uses the first row whose full form fits, parse the first whose written form fits.
constexpr Form kForms[] = {
#define FORM(...) {__VA_ARGS__},
#include "runtime/instructions.inc"
};

constexpr const char *kFixedRegisters[] = {"zero", "one", "lneg", "mneg",
                                           "id",   "id2", "id4",  "id8"};
constexpr std::string_view kBigEndian = "!big", kLittleEndian = "!little", kNever = "false";

constexpr std::string_view kConditions[] = {
    "",
#define CONDITION(identifier, name, ...) name,
#include "runtime/instructions.inc"
};

std::string register_name(uint32_t number) {
  return number < kGeneralRegisters ? "r" + std::to_string(number)
                                    : kFixedRegisters[number - kGeneralRegisters];
}

std::string pair_name(uint32_t number) { return "d" + std::to_string(number); }

std::optional<uint8_t> register_number(std::string_view word) {
  for (uint32_t number = 0; number < kRegisters; ++number)
    if (word == register_name(number)) return static_cast<uint8_t>(number);
  return {};
}

std::optional<uint8_t> general_register_number(std::string_view word) {
  const auto number = register_number(word);
  return number < kGeneralRegisters ? number : std::nullopt;
}

std::optional<uint8_t> pair_number(std::string_view word) {
  for (uint32_t number = 0; number < kGeneralRegisters; number += 2)
    if (word == pair_name(number)) return static_cast<uint8_t>(number);
  return {};
}

bool is_condition(std::string_view word) {
  return std::find(std::begin(kConditions) + 1, std::end(kConditions), word) !=
         std::end(kConditions);
}

Words split(std::string_view text, char separator) {
  Words words;
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string joined(const Words &words) {
  std::string text;
  for (const std::string &word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

bool fits(char letter, std::string_view word) {
  const bool is_register = register_number(word).has_value(),
             is_pair = pair_number(word).has_value();
  switch (letter) {
    case 'G':
      return general_register_number(word).has_value();
    case 'P':
      return is_pair;
    case 'D':
      return is_pair || general_register_number(word).has_value();
    case 'R':
      return is_register;
    case 'I':
    case 'T':
      return !is_register && !is_pair;
    case 'C':
      return is_condition(word);
    default:
      return true;
  }
}

/// Returns the operands of the form `to` if `words` are operands of the form `from`.
std::optional<Words> rewritten(const Words &words, const char *from, const char *to) {
  std::array<Words, 128> operands;  // by the letter
  size_t at = 0;
  for (const std::string &part : split(from, ' ')) {
    const char letter = part[0];
    if (letter == '*') {
      operands['*'].assign(words.begin() + static_cast<ptrdiff_t>(at), words.end());
      at = words.size();
    } else if (at == words.size()) {
      return {};
    } else if (letter >= 'A' && letter <= 'Z') {
      if (!fits(letter, words[at])) return {};
      operands[static_cast<size_t>(letter)] = {words[at++]};
    } else if (words[at++] != part) {
      return {};
    }
  }
  if (at != words.size()) return {};
  Words result;
  for (const std::string &part : split(to, ' ')) {
    const bool is_letter = part == "*" || (part[0] >= 'A' && part[0] <= 'Z');
    const Words &more = is_letter ? operands[static_cast<size_t>(part[0])] : Words{part};
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

/// Returns whether the immediate has no sign: it is a number of blocks of 8 bytes, less one.
bool counts_blocks(Operation operation) { return row_of(operation).kind == Kind::DMA; }
constexpr uint32_t kBlocksMask = 0xFF;

bool has_immediate(const Encoding &row) {
  return row.has('i') || (row.has('s') && !row.has('b') && !row.has('e'));
}

/// Returns whether the upper half of the row's pair may have signs or zeros.
bool has_suffix(const Encoding &row) {
  return std::any_of(row.fields.begin(), row.fields.end(),
                     [](const Encoding::Field &field) { return field.name == 'g'; });
}

/// Returns a row with the syntax of the instruction.
const Encoding &row_with_syntax(const Instruction &instruction) {
  const auto fits_row = [&](const Encoding &row) {
    const bool is_register = instruction.destination == Destination::kRegister,
               is_nowhere = instruction.destination == Destination::kNowhere;
    const bool has_place = !row.has(instruction.jumps() ? '!' : '@');
    return std::find(row.operations.begin(), row.operations.end(), instruction.operation) !=
               row.operations.end() &&
           row.has('c') == is_register && row.has('d') == !(is_register || is_nowhere) &&
           has_immediate(row) == instruction.is_immediate && has_place;
  };
  return *std::find_if(encodings().begin(), encodings().end(), fits_row);
}

std::string hexadecimal(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

/// Numbers of more than 24 bits are usually addresses or masks.
std::string number_text(uint32_t value) {
  const auto number = static_cast<int32_t>(value);
  return number >= -0x800000 && number < 0x800000 ? std::to_string(number) : hexadecimal(value);
}

}  // namespace

std::string text_of(const Instruction &instruction,
                    const std::function<std::string(uint32_t)> &symbol) {
  const auto target_text = [&](uint32_t target) {
    const std::string name = symbol ? symbol(target) : "";
    return name.empty() ? hexadecimal(target) : name;
  };
  const Encoding &row = row_with_syntax(instruction);
  Words words;
  for (const char letter : row.syntax) {
    switch (letter) {
      case 'n':
        if (instruction.is_big_endian) words.emplace_back(kBigEndian);
        break;
      case 'z':
        words.push_back(register_name(kZero));
        break;
      case 'c':
        words.push_back(register_name(instruction.c));
        break;
      case 'd':
        words.push_back(pair_name(instruction.c));
        break;
      case 'a':
        words.push_back(register_name(instruction.a));
        break;
      case 'b':
        words.push_back(register_name(instruction.b));
        break;
      case 'e':
        words.push_back(pair_name(instruction.b));
        break;
      case 's':
        words.push_back(std::to_string(instruction.shift));
        break;
      case 'o':
        words.push_back(number_text(instruction.offset));
        break;
      case 'i':
        words.push_back(instruction.operation == Operation::call && instruction.a == kZero
                            ? target_text(instruction.immediate)
                        : counts_blocks(instruction.operation)
                            ? std::to_string(instruction.immediate & kBlocksMask)
                            : number_text(instruction.immediate));
        break;
      default:  // ? ! @ and spaces
        break;
    }
  }
  if (instruction.condition != Condition::kNone) words.emplace_back(name_of(instruction.condition));
  if (instruction.jumps()) words.push_back(target_text(instruction.target));

  std::string name(name_of(instruction.operation));
  for (const Form &form : kForms) {
    if (name != form.full_name) continue;
    if (auto others = rewritten(words, form.full_operands, form.operands)) {
      name = form.name;
      words = std::move(*others);
      break;
    }
  }
  if (has_suffix(row)) name += instruction.destination == Destination::kSignedPair ? ".s" : ".u";
  return words.empty() ? name : name + " " + joined(words);
}

namespace {

using Value = std::function<std::optional<int64_t>(std::string_view)>;

/// Reads the operands of one instruction in the syntax of a row.
class OperandReader {
 public:
  OperandReader(const Words &operands, const Value &value) : operands_(operands), value_(value) {}

  /// Returns whether the operands have this syntax. With a condition, `condition` is its name.
  bool read(const Encoding &row, Instruction &result, std::string_view &condition) {
    at_ = 0;
    result.is_immediate = has_immediate(row);
    for (const char letter : row.syntax)
      if (letter != ' ' && !read_operand(letter, result, condition)) return false;
    return at_ == operands_.size();
  }
  /// The last expression without a value, and the last number that is too large; or empty.
  const std::string &unknown() const { return unknown_; }
  const std::string &too_large() const { return too_large_; }

 private:
  bool is_at_end() const { return at_ == operands_.size(); }

  template <class Number>
  bool store(std::optional<uint8_t> number, Number &to) {
    if (number) to = *number;
    return number.has_value();
  }

  /// Reads a number from `least` to `most`; negative numbers are two's complements.
  template <class Number>
  bool read_number(int64_t least, int64_t most, Number &to) {
    const std::string &word = operands_[at_++];
    if (!fits('I', word)) return false;
    const std::optional<int64_t> number = value_(word);
    if (!number) {
      unknown_ = word;
      return false;
    }
    if (*number < least || *number > most) {
      too_large_ = word;
      return false;
    }
    to = static_cast<Number>(*number);
    return true;
  }

  bool read_condition(char letter, Instruction &result, std::string_view &condition) {
    if (is_at_end()) return letter != '@';
    condition = operands_[at_++];
    if (condition != kNever && !is_condition(condition)) return false;
    const bool has_target = letter != '!' && !is_at_end();
    if (has_target && !read_number(0, std::numeric_limits<uint16_t>::max(), result.target))
      return false;
    if (condition == kNever) {
      result.target = 0;
      condition = {};
      return letter != '@';
    }
    result.sets = !has_target;
    return true;
  }

  bool read_operand(char letter, Instruction &result, std::string_view &condition) {
    constexpr int64_t kLeast = std::numeric_limits<int32_t>::min(),
                      kMost = std::numeric_limits<uint32_t>::max();
    if (letter == '?' || letter == '!' || letter == '@')
      return read_condition(letter, result, condition);
    if (is_at_end()) return false;
    switch (letter) {
      case 'n':
        result.is_big_endian = operands_[at_] == kBigEndian;
        at_ += result.is_big_endian || operands_[at_] == kLittleEndian;
        return true;
      case 'z':
        return operands_[at_++] == kFixedRegisters[0];
      case 'c':
        result.destination = Destination::kRegister;
        return store(general_register_number(operands_[at_++]), result.c);
      case 'd':
        return store(pair_number(operands_[at_++]), result.c);
      case 'a':
        return store(register_number(operands_[at_++]), result.a);
      case 'b':
        return store(general_register_number(operands_[at_++]), result.b);
      case 'e':
        return store(pair_number(operands_[at_++]), result.b);
      case 's':
        return read_number(0, 31, result.shift);
      case 'o':
        return read_number(kLeast, kMost, result.offset);
      default:
        if (!counts_blocks(result.operation)) return read_number(kLeast, kMost, result.immediate);
        if (!read_number(0, kBlocksMask, result.immediate)) return false;
        result.immediate = static_cast<uint32_t>(static_cast<int8_t>(result.immediate));
        return true;
    }
  }

  const Words &operands_;
  const Value &value_;
  size_t at_ = 0;
  std::string unknown_, too_large_;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

/// Returns the instruction if it has an encoding with one of the conditions of this name.
std::optional<Instruction> with_condition(Instruction instruction, std::string_view condition) {
  for (size_t i = 0; i < std::size(kConditions); ++i) {
    if (kConditions[i] != condition) continue;
    instruction.condition = static_cast<Condition>(i);
    if (encode(instruction)) return instruction;
  }
  return {};
}

}  // namespace

std::optional<Instruction> parse(std::string_view text, const Value &value, std::string &problem) {
  text = trimmed(text);
  const size_t end = std::min(text.find_first_of(" \t"), text.size());
  Words operands;
  for (const std::string &operand : split(trimmed(text.substr(end)), ','))
    operands.emplace_back(trimmed(operand));
  std::string name(text.substr(0, end));
  Destination destination = Destination::kNowhere;  // of a name with a suffix
  if (name.ends_with(".s")) destination = Destination::kSignedPair;
  if (name.ends_with(".u")) destination = Destination::kUnsignedPair;
  if (destination != Destination::kNowhere) name.resize(name.size() - 2);

  bool is_known = false;
  for (const Form &form : kForms) {
    if (name != form.name) continue;
    is_known = true;
    if (auto others = rewritten(operands, form.operands, form.full_operands)) {
      name = form.full_name;
      operands = std::move(*others);
      break;
    }
  }
  OperandReader reader(operands, value);
  bool has_syntax = false;
  for (const Encoding &row : encodings()) {
    for (const Operation operation : row.operations) {
      if (operation == Operation::kCount || name != name_of(operation)) continue;
      is_known = true;
      if (has_suffix(row) != (destination != Destination::kNowhere)) continue;
      Instruction instruction;
      instruction.operation = operation;
      instruction.destination =
          row.has('d') && !has_suffix(row) ? Destination::kUnsignedPair : destination;
      std::string_view condition;
      if (!reader.read(row, instruction, condition)) continue;
      has_syntax = true;
      if (const auto result = with_condition(instruction, condition)) return result;
    }
  }
  const std::string quoted = "'" + std::string(text) + "'";
  if (!is_known)
    problem = quoted + ": a DPU has no instruction " + name;
  else if (!reader.unknown().empty())
    problem = quoted + ": the value of " + reader.unknown() + " is unknown";
  else if (!reader.too_large().empty())
    problem = quoted + ": the number " + reader.too_large() + " is too large for this operand";
  else if (has_syntax)
    problem = quoted + ": no encoding of " + name +
              " has this condition, or numbers of this size, with these operands";
  else
    problem = quoted + ": " + name + " has no form with these operands";
  return {};
}

}  // namespace dpuemu::isa
