// printf of PE programs: the format and its arguments lie in the PE's memory, the arguments as x32 code passes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dpuemu {

/// The bytes at an address of the program; nullptr if they are not all its own.
using BytesAt = std::function<const uint8_t *(uint32_t address, uint64_t bytes)>;

/// Appends what printf would print. arguments: address of the program's va_list. Conversions: d i u o x X c s p e E f F g G and %, with
/// flags, width, precision, and the lengths hh h l ll z t j (l and j are 64 bits, z and t 32, as on a DPU). Returns false and sets
/// `problem` (a part of a sentence) for any other conversion, and for memory that is not the program's.
bool format_for_pe(uint32_t format, uint32_t arguments, const BytesAt &bytes_at, std::string &text, std::string &problem);

}  // namespace dpuemu
