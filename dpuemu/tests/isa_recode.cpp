// Reads words of instructions from standard input, in hexadecimal. Prints each word that is not an
// instruction, or that changes its meaning if it is encoded again, or printed and read again.
#include <cstdio>
#include <cstdlib>

#include "isa/instruction.h"

using namespace dpuemu::isa;

namespace {

std::optional<int64_t> value_of(std::string_view number) {
  return std::strtoll(std::string(number).c_str(), nullptr, 0);
}

bool survives(uint64_t word) {
  const std::optional<Instruction> instruction = decode(word);
  if (!instruction) return false;
  const std::optional<uint64_t> encoded = encode(*instruction);
  std::string problem;
  return encoded && decode(*encoded) == instruction &&
         parse(text_of(*instruction), value_of, problem) == instruction;
}

}  // namespace

int main() {
  unsigned long long word = 0;
  while (std::scanf("%llx", &word) == 1)
    if (!survives(word)) std::printf("%llx\n", word);
}
