// Reads program files.
#pragma once

#include <dpu_error.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "machine/program.h"

namespace dpuemu {

/// Fills in the program. Errors: those of Program::parse; for DPU_ERR_ELF_INVALID_FILE, `problem`
/// is a part of a sentence about the file. file: aligned to 8 bytes.
dpu_error_t read_program(std::span<const uint8_t> file, Program &program, std::string &problem);

/// Adds to a word of 32 bits. In a word of 64 bits, the upper half stays zero.
inline void add_to_word(uint8_t *bytes, uint32_t addend) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  word += addend;
  std::memcpy(bytes, &word, sizeof word);
}

}  // namespace dpuemu
