// Reads the debug information that the compiler adds to PE programs (DWARF 2 to 4, 32 bits): source
// lines and stack frames. Unknown or damaged information gives no result.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace dpuemu {

struct SourceLine {
  std::string file;   // as in the compiler's command
  uint32_t line = 0;  // 0 if the line is unknown
};

/// Calls `use` for each range of addresses that has one source line, in the order of the section,
/// until `use` returns true. debug_line: the contents of section .debug_line; end: after the range.
using UseLine =
    std::function<bool(uint32_t begin, uint32_t end, const std::string &file, uint32_t line)>;
void for_each_line(std::span<const uint8_t> debug_line, const UseLine &use);

/// Returns the source line of the instruction at `address`.
SourceLine find_line(std::span<const uint8_t> debug_line, uint32_t address);

/// Registers of x86-64 with DWARF's numbers.
struct FrameRegisters {
  static constexpr uint32_t kRbx = 3, kRbp = 6, kRsp = 7, kR12 = 12, kRip = 16, kCount = 17;
  uint64_t value[kCount] = {};
};

/// Replaces the registers of a function by the registers at its return to its caller. Returns
/// success. debug_frame: the contents of section .debug_frame; address: of an instruction of the
/// function, in the program file; read_word: reads 64 bits of the stack, or returns false.
bool leave_frame(std::span<const uint8_t> debug_frame, uint32_t address, FrameRegisters &registers,
                 const std::function<bool(uint64_t address, uint64_t &word)> &read_word);

}  // namespace dpuemu
