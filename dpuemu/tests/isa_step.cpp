// Executes single instructions for test_isa.py. Standard input has records Before; for each, the
// program writes a record After.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "isa/core.h"

using namespace dpuemu::isa;

namespace {

constexpr uint32_t kWramBytes = 64;
constexpr size_t kTestsPerProgram = 2048;

struct Before {
  uint64_t word;
  uint32_t registers[kGeneralRegisters];
  uint32_t zero, carry, tasklet, unused;
  uint8_t wram[kWramBytes];
};

struct After {
  uint32_t registers[kGeneralRegisters];
  uint32_t zero, carry;
  uint32_t pc;            // Before record n has the number 2 * n modulo 4096
  uint32_t instructions;  // that have ended
  uint32_t is_fault, address, bytes;
  uint8_t wram[kWramBytes];
};

After step(const Code &code, uint32_t pc, const Before &before) {
  Tasklet tasklet(before.tasklet);
  std::memcpy(tasklet.registers, before.registers, sizeof before.registers);
  tasklet.flags = {before.zero != 0, before.carry != 0};
  tasklet.pc = pc;
  After after{};
  std::memcpy(after.wram, before.wram, kWramBytes);
  const Outcome outcome = interpret(code, tasklet, {after.wram, kWramBytes}, 1);
  std::memcpy(after.registers, tasklet.registers, sizeof after.registers);
  after.zero = tasklet.flags.zero;
  after.carry = tasklet.flags.carry;
  after.pc = tasklet.pc;
  after.instructions = static_cast<uint32_t>(outcome.instructions);
  after.is_fault = outcome.stop == Stop::kAddress;
  after.address = outcome.address;
  after.bytes = outcome.bytes;
  return after;
}

}  // namespace

int main() {
  const uint64_t stop = *encode({.operation = Operation::stop});
  std::vector<Before> tests(kTestsPerProgram);
  while (const size_t count = std::fread(tests.data(), sizeof(Before), tests.size(), stdin)) {
    std::vector<uint64_t> words;  // an instruction that does not jump goes on to a stop
    for (size_t i = 0; i < count; ++i) words.insert(words.end(), {tests[i].word, stop});
    const Code code(words);
    for (size_t i = 0; i < count; ++i) {
      const After after = step(code, static_cast<uint32_t>(2 * i), tests[i]);
      std::fwrite(&after, sizeof after, 1, stdout);
    }
  }
}
