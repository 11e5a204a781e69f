// The instruction set: words decode and encode again, and the host code of random programs has the
// effect of the interpreter. To compare 100,000 programs instead of 1,500:
//
//   PIDCOMM_TEST_EFFORT=full dpuemu_tests Translation_DoesTheSame
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "effort.h"
#include "harness.h"
#include "isa/encoding.h"
#include "isa/translation.h"

using namespace dpuemu::isa;

namespace {

constexpr uint32_t kWramBytes = 64 << 10;
constexpr uint64_t kIllegalWord = UINT64_C(0xFFFFFFFFFFFF);

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }
  uint64_t word() { return random_(); }
  bool is_one_of(uint32_t count) { return below(count) == 0; }

  /// Returns a value that often is an address, a small number, or near a sign change.
  uint32_t operand() {
    constexpr uint32_t special[] = {0, 1, 31, 32, 0xFF00, 0x7FFFFFFF, 0x80000000, ~0u};
    switch (below(4)) {
      case 0:
        return below(64);
      case 1:
        return 8 * below(kWramBytes / 8);
      case 2:
        return special[below(std::size(special))];
      default:
        return static_cast<uint32_t>(random_());
    }
  }

  /// Returns a random word of an encoding, which may have no instruction.
  uint64_t word_of(const Encoding &row) {
    return row.bits | (random_() & ~row.mask & kIllegalWord);
  }

  /// Returns an instruction of a program. Most jumps stay in the program; most loads and stores
  /// have a small offset.
  Instruction instruction(uint32_t size) {
    for (;;) {
      std::optional<Instruction> drawn = decode(word_of(encodings()[below(rows())]));
      if (!drawn || (calls_scheduler(drawn->operation) && !is_one_of(8))) continue;
      if (drawn->jumps() && !is_one_of(16)) drawn->target = static_cast<uint16_t>(below(size));
      if (row_of(drawn->operation).bytes != 0 && !is_one_of(8)) drawn->offset = 8 * below(32);
      if (drawn->operation == Operation::call && drawn->is_immediate && !is_one_of(4)) {
        drawn->a = kZero;
        drawn->immediate = below(size);
      }
      if (encode(*drawn)) return *drawn;
    }
  }

 private:
  static uint32_t rows() { return static_cast<uint32_t>(encodings().size()); }
  std::mt19937_64 random_;
};

/// Returns the text of an instruction for a message.
std::string show(const Code &code, uint32_t pc) {
  std::ostringstream out;
  out << std::hex << "instruction 0x" << pc;
  if (pc < code.size()) out << ", word 0x" << code.word(pc);
  if (const Instruction *const at = code.at(pc))
    out << ": " << name_of(at->operation) << ' ' << name_of(at->condition);
  return out.str();
}

std::string show(const Tasklet &tasklet, const Outcome &outcome) {
  std::ostringstream out;
  out << "stop " << static_cast<int>(outcome.stop) << " after " << outcome.instructions
      << " instructions, address " << outcome.address << " of " << outcome.bytes << " bytes, pc "
      << tasklet.pc << ", zero " << tasklet.flags.zero << ", carry " << tasklet.flags.carry
      << ", registers" << std::hex;
  for (const uint32_t value : tasklet.registers) out << ' ' << value;
  return out.str();
}

bool are_equal(const Tasklet &a, const Tasklet &b) {
  return std::memcmp(a.registers, b.registers, sizeof a.registers) == 0 && a.pc == b.pc &&
         a.flags.zero == b.flags.zero && a.flags.carry == b.flags.carry;
}

/// Executes a program with the interpreter and with its translation, and compares them.
class Comparison {
 public:
  Comparison(const Code &code, const Translation &translation, uint64_t seed)
      : code_(code), translation_(translation), seed_(seed), want_wram_(kWramBytes) {
    Random random(seed);
    for (size_t i = 0; i < kWramBytes; i += 512) {  // differs near each place
      const uint64_t word = random.word();
      for (size_t byte = 0; byte < 512; ++byte)
        want_wram_[i + byte] = static_cast<uint8_t>((word >> byte % 57) + byte);
    }
    got_wram_ = want_wram_;
  }

  Outcome run(Tasklet &tasklet, uint32_t wram_bytes, uint64_t budget) {
    const uint32_t first = tasklet.pc;
    Tasklet translated = tasklet;
    const Outcome want = interpret(code_, tasklet, {want_wram_.data(), wram_bytes}, budget);
    const Outcome got = translation_.run(translated, {got_wram_.data(), wram_bytes}, budget);
    const bool are_same = want.stop == got.stop && want.instructions == got.instructions &&
                          want.address == got.address && want.bytes == got.bytes &&
                          are_equal(tasklet, translated) && want_wram_ == got_wram_;
    if (!are_same)
      harness::fail(__FILE__, __LINE__,
                    "seed " + std::to_string(seed_) + ", budget " + std::to_string(budget) +
                        ", WRAM " + (want_wram_ == got_wram_ ? "equal" : "different") +
                        "\n  from " + show(code_, first) + "\n  to   " + show(code_, tasklet.pc) +
                        "\n  want " + show(tasklet, want) + "\n  got  " + show(translated, got));
    return want;
  }

 private:
  const Code &code_;
  const Translation &translation_;
  uint64_t seed_;
  std::vector<uint8_t> want_wram_, got_wram_;
};

/// What the random programs of a test reached.
struct Reached {
  std::array<uint64_t, 4> stops{};  // by Stop
  std::set<Operation> operations;
  std::set<Condition> conditions;
};

std::vector<uint64_t> random_program(Random &random, Reached &reached) {
  const bool is_long = random.is_one_of(8), is_straight = random.is_one_of(8);
  const uint32_t size = 1 + random.below(is_long ? 300 : 24);
  std::vector<uint64_t> words;
  while (words.size() < size) {
    if (random.is_one_of(100) && !is_straight) {
      words.push_back(random.is_one_of(2) ? kIllegalWord : random.word() & kIllegalWord);
      continue;
    }
    const Instruction instruction = random.instruction(size);
    if (is_straight && (instruction.jumps() || instruction.operation >= Operation::call)) continue;
    reached.operations.insert(instruction.operation);
    reached.conditions.insert(instruction.condition);
    words.push_back(*encode(instruction));
  }
  return words;
}

/// Runs tasklets of a program in turn, for a random number of instructions each.
void run_tasklets(Comparison &comparison, Random &random, uint32_t size, Reached &reached) {
  constexpr uint32_t wram_sizes[] = {kWramBytes, kWramBytes, 63488, 4096, 8};
  const uint32_t wram_bytes = wram_sizes[random.below(std::size(wram_sizes))];
  std::vector<Tasklet> tasklets;
  for (uint32_t i = 0; i < 3; ++i) tasklets.emplace_back(random.below(24));
  for (Tasklet &tasklet : tasklets) tasklet.pc = random.below(size);
  for (uint32_t turn = 0; turn < 20; ++turn) {
    Tasklet &tasklet = tasklets[random.below(3)];
    for (uint32_t reg = 0; reg < kGeneralRegisters; ++reg)
      if (turn < 3 || random.is_one_of(4)) tasklet.registers[reg] = random.operand();
    if (random.is_one_of(2)) tasklet.flags = {random.is_one_of(2), random.is_one_of(2)};
    const Outcome outcome = comparison.run(tasklet, wram_bytes, random.below(200));
    ++reached.stops[static_cast<size_t>(outcome.stop)];
    if (outcome.stop != Stop::kBudget) tasklet.pc = random.below(size + random.is_one_of(8));
  }
}

/// Returns a load of register 2, or a store of register 4 or of 0, at the address in register 1.
Instruction load_or_store(Operation operation) {
  Instruction instruction;
  instruction.operation = operation;
  instruction.a = 1;
  if (operation <= Operation::ld) {
    const bool is_pair = operation == Operation::ld;
    instruction.destination = is_pair ? Destination::kUnsignedPair : Destination::kRegister;
    instruction.c = 2;
  } else if (operation <= Operation::sd) {
    instruction.b = 4;
  } else {
    instruction.is_immediate = true;
  }
  return instruction;
}

/// Starts a child process that calls `act`. The child exits with 0 if no check fails.
pid_t start_child(const std::function<void()> &act) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    act();
  } catch (const harness::Failure &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    _exit(1);
  }
  _exit(0);
}

void check_child(pid_t child) {
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

/// Returns the number of mappings of memory for host code that this process has.
uint32_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  uint32_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("memfd:dpuemu-code") != std::string::npos;
  return count;
}

/// Returns an instruction that jumps.
Instruction jump_to(uint16_t target) {
  Instruction instruction;
  instruction.operation = Operation::or_;
  instruction.is_immediate = true;
  instruction.condition = Condition::true_;
  instruction.target = target;
  return instruction;
}

}  // namespace

TEST(Decode_GivesTheInstructionThatWasEncoded) {
  Random random(1);
  for (const Encoding &row : encodings()) {
    uint32_t decoded = 0;
    for (uint32_t i = 0; i < 400; ++i) {
      const uint64_t word = random.word_of(row);
      const std::optional<Instruction> instruction = decode(word);
      if (!instruction) continue;
      ++decoded;
      const std::optional<uint64_t> encoded = encode(*instruction);
      CHECK(encoded.has_value());
      CHECK(decode(*encoded) == instruction);
    }
    CHECK(decoded > 0);
  }
}

TEST(Decode_RefusesWordsThatNoEncodingHas) {
  Random random(2);
  uint32_t decoded = 0, refused = 0;
  for (uint32_t i = 0; i < 30000; ++i) {
    const uint64_t long_word = random.word(), word = long_word & kIllegalWord;
    if (long_word != word) CHECK(!decode(long_word));
    const std::optional<Instruction> instruction = decode(word);
    const bool has_encoding =
        std::any_of(encodings().begin(), encodings().end(),
                    [&](const Encoding &row) { return (word & row.mask) == row.bits; });
    CHECK(has_encoding || !instruction);
    if (instruction) CHECK(decode(encode(*instruction).value()) == instruction);
    decoded += instruction.has_value();
    refused += !has_encoding;
  }
  CHECK(decoded > 1000);
  CHECK(refused > 1000);
}

TEST(Translation_DoesTheSameAsTheInterpreterForRandomPrograms) {
#ifdef __x86_64__
  CHECK(HostCodeMemory(4096).bytes() == 4096);  // else the interpreter runs twice
#endif
  Reached reached;
  const uint64_t programs = effort::is_full() ? 100'000 : effort::is_small() ? 400 : 1500;
  for (uint64_t seed = 0; seed < programs; ++seed) {
    Random random(seed);
    const Code code(random_program(random, reached));
    // A small memory for host code gets full.
    const Translation translation(code, random.is_one_of(8) ? random.below(4096) : 1 << 20);
    Comparison comparison(code, translation, seed);
    run_tasklets(comparison, random, code.size(), reached);
  }
  for (const uint64_t count : reached.stops) CHECK(count > programs);
  CHECK_EQ(reached.operations.size(), static_cast<size_t>(Operation::kCount));
  CHECK_EQ(reached.conditions.size(), static_cast<size_t>(Condition::nc14) + 1);
}

TEST(Translation_ServesSeveralThreads) {
  Reached unused;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const Code code(random_program(random, unused));
    const Translation translation(code);
    std::vector<std::string> errors(4);
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        try {
          Reached of_thread;
          Random own(4 * seed + i);
          Comparison comparison(code, translation, seed);
          for (uint32_t turn = 0; turn < 5; ++turn)
            run_tasklets(comparison, own, code.size(), of_thread);
        } catch (const harness::Failure &failure) {
          errors[i] = failure.what();
        }
      });
    for (std::thread &thread : threads) thread.join();
    for (const std::string &error : errors) CHECK_EQ(error, std::string());
  }
}

TEST(Translation_WorksInAChildProcessToo) {
  Reached reached;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Random random(seed);
    const Code code(random_program(random, reached));
    const Translation translation(code);
    const auto runs = [&](uint64_t of_run) {
      Comparison comparison(code, translation, seed);
      Random own(of_run);
      run_tasklets(comparison, own, code.size(), reached);
    };
    runs(1);
    const pid_t child = start_child([&] { runs(2); });
    runs(3);
    check_child(child);
    runs(2);
  }
}

#ifdef __x86_64__

TEST(Translation_OfAChildProcessAddsToItsParents) {
  const std::optional<uint64_t> to_first = encode(jump_to(0)), to_third = encode(jump_to(2));
  CHECK(to_first.has_value() && to_third.has_value());
  const Code code(std::array{*to_third, kIllegalWord, *to_first});
  const uint32_t others = count_mappings();
  const Translation translation(code);
  CHECK_EQ(count_mappings(), others);  // nothing before the first run
  Comparison comparison(code, translation, 0);
  const auto run = [&](uint32_t pc, uint64_t budget) {
    Tasklet tasklet;
    tasklet.pc = pc;
    CHECK(comparison.run(tasklet, kWramBytes, budget).stop == Stop::kBudget);
  };
  run(0, 1);
  CHECK_EQ(count_mappings(), others + 2);
  CHECK(translation.is_translated(0) && !translation.is_translated(2));
  const pid_t child = start_child([&] {
    run(0, 1);  // the block of the parent
    CHECK_EQ(count_mappings(), others + 2);
    run(0, 1000);  // jumps between both memories
    CHECK_EQ(count_mappings(), others + 4);
    CHECK(translation.is_translated(2));
    check_child(start_child([&] { run(2, 1000); }));
  });
  check_child(child);
  CHECK(!translation.is_translated(2));
  run(0, 1000);
  CHECK(translation.is_translated(2));
  CHECK_EQ(count_mappings(), others + 2);
}

TEST(HostCode_StaysFullAfterABlockThatDoesNotFit) {
  const std::optional<uint64_t> to_first = encode(jump_to(0));
  CHECK(to_first.has_value());
  const Code code(std::array{*to_first, kIllegalWord});
  const Frame frame = make_frame();
  const size_t block = 64 * (frame.bytes.size() / 64 + 1);  // the place of the first block
  HostCode roomy(code, frame, block + 64, nullptr), small(code, frame, block + 1, nullptr);
  for (HostCode *const each : {&roomy, &small}) {
    CHECK(!each->is_full());
    each->add(0);
    CHECK_EQ(each->has(0), each == &roomy);
    CHECK_EQ(each->is_full(), each == &small);
  }
}

#endif

TEST(LoadsAndStores_FaultOutsideWramAndOffTheirAlignment) {
  constexpr Operation operations[] = {
      Operation::lbu,   Operation::lbs,   Operation::lhu,   Operation::lhs,  Operation::lw,
      Operation::ld,    Operation::sb,    Operation::sh,    Operation::sw,   Operation::sd,
      Operation::sb_id, Operation::sh_id, Operation::sw_id, Operation::sd_id};
  for (const Operation operation : operations) {
    const uint32_t bytes = row_of(operation).bytes;
    const std::optional<uint64_t> word = encode(load_or_store(operation));
    CHECK(word.has_value());
    const Code code(std::array{*word, kIllegalWord});
    const Translation translation(code);
    Comparison comparison(code, translation, 0);
    for (const uint32_t wram_bytes : {kWramBytes, 63488u, 8u}) {
      for (const uint32_t near : {0u, wram_bytes, kWramBytes, 0x80000000u}) {
        for (uint32_t address = near - 9; address != near + 9; ++address) {
          Tasklet tasklet;
          tasklet.registers[1] = address;
          tasklet.registers[4] = 0x01020304;
          const Outcome outcome = comparison.run(tasklet, wram_bytes, 100);
          const bool is_valid = address % bytes == 0 && uint64_t{address} + bytes <= wram_bytes;
          CHECK(outcome.stop == (is_valid ? Stop::kIllegal : Stop::kAddress));
          CHECK_EQ(outcome.instructions, uint64_t{is_valid});
          CHECK_EQ(tasklet.pc, uint32_t{is_valid});
          CHECK_EQ(outcome.address, is_valid ? 0 : address);
          CHECK_EQ(outcome.bytes, is_valid ? 0 : bytes);
        }
      }
    }
  }
}

TEST(Runs_EndAtIllegalWordsAndOutsideTheProgram) {
  Instruction call;
  call.operation = Operation::call;
  call.is_immediate = true;
  for (const uint32_t target : {0u, 1u, 2u, 3u, kReachableInstructions - 1}) {
    call.immediate = target + 5 * kReachableInstructions;  // the upper bits have no meaning
    for (const Instruction &instruction : {jump_to(static_cast<uint16_t>(target)), call}) {
      const std::optional<uint64_t> word = encode(instruction);
      CHECK(word.has_value());
      const uint64_t upper_bits = instruction.jumps() ? UINT64_C(0xF000) : 0;
      const Code code(std::array{*word | upper_bits, kIllegalWord});
      const Translation translation(code);
      Comparison comparison(code, translation, 0);
      for (const uint64_t budget : {UINT64_C(0), UINT64_C(1), UINT64_C(2), UINT64_MAX}) {
        if (target == 0 && budget == UINT64_MAX) continue;  // never ends
        Tasklet tasklet;
        const Outcome outcome = comparison.run(tasklet, kWramBytes, budget);
        CHECK_EQ(tasklet.pc, target);
        // A jump to the next instruction does not end a run; a call always may.
        const bool is_taken = target != 1 || instruction.operation == Operation::call;
        const bool ends = target == 0 || (budget <= 1 && is_taken);
        CHECK(outcome.stop == (ends ? Stop::kBudget : Stop::kIllegal));
        CHECK_EQ(outcome.instructions, target == 0 && budget > 1 ? budget : uint64_t{1});
      }
    }
  }
}
