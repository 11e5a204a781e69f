// Instructions as text: the assembler reads what the disassembler prints, in every encoding; both
// know the short forms of the vendor's assembler.
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "effort.h"
#include "harness.h"
#include "isa/encoding.h"

using namespace dpuemu::isa;

namespace {

constexpr uint32_t kHere = 100;  // the number of the instruction that is read

/// Returns the value of a number, of `.`, of `.+n`, or of `main` (5).
std::optional<int64_t> value_of(std::string_view text) {
  if (text == "main") return 5;
  if (text == ".") return kHere;
  const bool is_relative = text.starts_with(".+");
  const std::string number(is_relative ? text.substr(2) : text);
  char *end = nullptr;
  const long long value = std::strtoll(number.c_str(), &end, 0);
  if (number.empty() || *end != '\0') return {};
  return is_relative ? kHere + value : value;
}

std::string name_of_target(uint32_t target) { return target == 5 ? "main" : ""; }

std::optional<Instruction> parsed(const std::string &text) {
  std::string problem;
  const auto result = parse(text, value_of, problem);
  CHECK_EQ(problem, "");
  return result;
}

std::string problem_of(const std::string &text) {
  std::string problem;
  CHECK(!parse(text, value_of, problem));
  return problem;
}

/// Returns a word of a row. The bits of its fields are random; often they are mostly 0.
uint64_t random_word(const Encoding &row, std::mt19937_64 &random) {
  const uint64_t bits = random() % 2 == 0 ? random() : random() & random() & random();
  uint64_t word = row.bits;
  for (const Encoding::Field &field : row.fields) word |= bits & UINT64_C(1) << field.place;
  return word;
}

}  // namespace

TEST(IsaText_ReadsWhatItPrintsInEveryEncoding) {
  std::mt19937_64 random(1);
  std::set<std::pair<Operation, Condition>> seen;
  const uint32_t words = effort::is_small() ? 100 : 400;
  for (const Encoding &row : encodings()) {
    uint32_t instructions = 0;
    for (uint32_t i = 0; i < words; ++i) {
      const auto instruction = decode(random_word(row, random));
      if (!instruction) continue;
      ++instructions;
      seen.insert({instruction->operation, instruction->condition});
      const std::string text = text_of(*instruction, i % 2 == 0 ? nullptr : name_of_target);
      if (parsed(text) != instruction)
        harness::fail(__FILE__, __LINE__, text + " is read as another instruction");
      CHECK(encode(*instruction).has_value());
    }
    CHECK(instructions > 0);
  }
  std::set<Operation> operations;
  std::set<Condition> conditions;
  for (const auto &[operation, condition] : seen) {
    operations.insert(operation);
    conditions.insert(condition);
  }
  CHECK_EQ(operations.size(), static_cast<size_t>(Operation::kCount));
#define CONDITION(identifier, ...) CHECK(conditions.contains(Condition::identifier));
#include "runtime/instructions.inc"
}

TEST(IsaText_PrintsTheFormsOfTheVendor) {
  // The text that is printed, and other texts of the same instruction.
  const std::vector<std::vector<std::string>> all = {
      {"add r0, r1, r2", "add r0, r1, r2, false", " add\tr0,r1 , r2 "},
      {"add r3, r4, -5, nz, main", "add r3, r4, -5, nz, 5"},
      {"add.s d2, id4, 300, z"},
      {"add r0, r1, 0x7fffffff", "add r0, r1, 2147483647"},
      {"addc zero, one, r23"},
      {"sub r0, 5, r1"},
      {"sub.u d4, 5, r1, gtu, main"},
      {"subc r0, -1, lneg, xnz"},
      {"rsub r0, r1, r2"},
      {"sub r0, r1, r2, ltu"},
      {"move r0, 0", "or r0, zero, 0", "move r0, zero"},
      {"move r0, 0x8000000", "or r0, zero, 0x8000000"},
      {"move r0, r1", "or r0, r1, 0"},
      {"move r0, id, true, main", "or r0, id, 0, true, main"},
      {"move r0, 7, true, main", "or r0, zero, 7, true, main"},
      {"move.u d0, r0, true, main"},
      {"move.s d2, -1", "and.s d2, lneg, -1", "move.s d2, 0xffffffff"},
      {"or zero, r1, 0"},
      {"neg r0, r1", "sub r0, 0, r1"},
      {"neg r0, r1, true, main"},
      {"not r0, r1", "xor r0, r1, -1"},
      {"not r1, z, main", "xor zero, r1, -1, z, main"},
      {"jump main", "call zero, zero, main", "jump 5", "jump zero, 5"},
      {"jump 0x65", "jump .+1"},
      {"jump r23", "call zero, r23, 0"},
      {"jump r2, 7", "call zero, r2, 7"},
      {"call r23, main", "call r23, zero, 5"},
      {"call r23, r0", "call r23, r0, 0"},
      {"call r23, r0, r1"},
      {"jz r0, main", "jeq r0, 0, main", "sub zero, r0, 0, z, main"},
      {"jnz id, main", "jneq id, 0, main"},
      {"jeq r0, r1, main", "sub zero, r0, r1, z, main"},
      {"jneq r0, 1, main"},
      {"jltu r0, r1, main", "sub zero, r0, r1, ltu, main"},
      {"jgeu r0, -4, main"},
      {"jleu r0, r1, main"},
      {"jgtu r0, 1023, main"},
      {"jlts r0, r1, main"},
      {"jges r0, -1024, main"},
      {"jles r0, r1, main"},
      {"jgts zero, r1, main"},
      {"lsl r0, r1, 31"},
      {"lsr r0, r1, r2, sh32, main"},
      {"lsl_add r0, r1, r2, 3"},
      {"cls r0, r1, max, main"},
      {"clz.u d0, r1, nmax, main"},
      {"mul_ul_uh r0, r1, r2, small, main"},
      {"mul_step d0, r2, d4, 1, z, main"},
      {"div_step d0, r2, d0, 0", "div_step d0, r2, d0, 0, false, 9"},
      {"movd d0, d2"},
      {"swapd d0, d2, true, main"},
      {"lbu r0, r1, -4", "lbu !little, r0, r1, -4"},
      {"lw !big, r0, r1, 2048", "lw !big, r0, r1, 0x800"},
      {"lhs.s d0, r1, 4"},
      {"ld d22, r22, -8"},
      {"sw r22, -8, r23"},
      {"sd !big, r22, -8, d22"},
      {"sd id8, 16, -1"},
      {"sb_id r0, 4", "sb_id r0, 4, 0"},
      {"sw_id !big, r0, 4, 16"},
      {"ldma r0, r1, 255"},
      {"sdma r0, r1, 0"},
      {"acquire r0, 0, nz, 0x64", "acquire r0, 0, nz, ."},
      {"release r0, 0, nz, 0x65", "release r0, 0, nz, .+1"},
      {"boot id, 1", "boot id, 1, false, 0"},
      {"resume r0, 0, nz, main"},
      {"stop"},
      {"stop true, main"},
      {"time r0"},
      {"time_cfg r23", "time_cfg zero, r23"},
      {"time_cfg.u d0, r1, true, main"},
      {"bkp", "fault 0"},
      {"fault 4"},
      {"tell r0, 3"},
      {"nop"},
  };
  for (const std::vector<std::string> &texts : all) {
    const auto instruction = parsed(texts[0]);
    for (const std::string &text : texts) CHECK(parsed(text) == instruction);
    CHECK_EQ(text_of(*instruction, name_of_target), texts[0]);
  }
}

TEST(IsaText_NamesTheTextThatIsNoInstruction) {
  CHECK_EQ(problem_of("mult r0, r1, r2"), "'mult r0, r1, r2': a DPU has no instruction mult");
  CHECK_EQ(problem_of("add r0, r1"), "'add r0, r1': add has no form with these operands");
  CHECK_EQ(problem_of("add r24, r1, 4"), "'add r24, r1, 4': add has no form with these operands");
  CHECK_EQ(problem_of("add d0, r1, r2"), "'add d0, r1, r2': add has no form with these operands");
  CHECK_EQ(problem_of("ld d1, r1, 0"), "'ld d1, r1, 0': ld has no form with these operands");
  CHECK_EQ(problem_of("jump there"), "'jump there': the value of there is unknown");
  CHECK_EQ(problem_of("move r0, 0x100000000"),
           "'move r0, 0x100000000': the number 0x100000000 is too large for this operand");
  CHECK_EQ(problem_of("lsl r0, r1, 32"),
           "'lsl r0, r1, 32': the number 32 is too large for this operand");
  CHECK_EQ(problem_of("jump 65536, z, 65536"),
           "'jump 65536, z, 65536': jump has no form with these operands");
  const std::string no_encoding =
      " has this condition, or numbers of this size, with these operands";
  CHECK_EQ(problem_of("jltu r0, 1024, main"),
           "'jltu r0, 1024, main': no encoding of sub" + no_encoding);
  CHECK_EQ(problem_of("add r0, r1, r2, ltu, main"),
           "'add r0, r1, r2, ltu, main': no encoding of add" + no_encoding);
  CHECK_EQ(problem_of("and r0, r1, 255, z, main"),
           "'and r0, r1, 255, z, main': no encoding of and" + no_encoding);
  CHECK_EQ(problem_of("extsb.u d0, r1"), "'extsb.u d0, r1': no encoding of extsb" + no_encoding);
}
