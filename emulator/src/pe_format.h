// Implements printf of PE programs. The format and the arguments are in the PE's memory; x32 code passes the arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dpuemu {

/// Returns the bytes at an address of the program; nullptr if a byte is outside the PE's memory.
using BytesAt = std::function<const uint8_t *(uint32_t address, uint64_t bytes)>;

/// Appends the output of printf. arguments: address of the program's va_list. Conversions: d i u o x X c s p e E f F g G and %, with
/// flags, width, precision, and the lengths hh h l ll z t j (l and j are 64 bits, z and t 32, as on a DPU). For other conversions, and for
/// memory outside the program, returns false and sets `problem` (a part of an error sentence).
bool format_for_pe(uint32_t format, uint32_t arguments, const BytesAt &bytes_at, std::string &text, std::string &problem);

}  // namespace dpuemu
