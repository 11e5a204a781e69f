// The rows of ENCODING in instructions.inc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isa/instruction.h"

namespace dpuemu::isa {

struct Encoding {
  struct Field {
    char name;
    uint8_t bit;    // of the field
    uint8_t place;  // of this bit in the word
  };
  uint64_t mask = 0, bits = 0;  // the bits of the word that are fixed, and their values
  std::vector<Field> fields;
  std::string syntax;
  std::vector<Operation> operations;  // by field f; kCount: none

  bool has(char in_syntax) const { return syntax.find(in_syntax) != std::string::npos; }
};

const std::vector<Encoding> &encodings();

}  // namespace dpuemu::isa
