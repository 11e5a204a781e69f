// Implements printf of PE programs. The format and the arguments are in the PE's memory; code for
// the x32 ABI passes the arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace dpuemu {

/// A function that returns the bytes at an address of the program, or nullptr if a byte is outside
/// the PE's memory.
using BytesAt = std::function<const uint8_t *(uint32_t address, uint64_t bytes)>;

/// Appends the output of printf. arguments: address of the program's va_list. Conversions: d i u o
/// x X c s p e E f F g G and %, with flags, width, precision, and the lengths hh h l ll z t j (l
/// and j are 64 bits, z and t 32, as on a DPU). If the format has any other conversion, an address
/// is outside the program's memory, or the output exceeds 1 MiB, returns false and sets `problem`
/// (a part of an error sentence).
bool format_for_pe(uint32_t format, uint32_t arguments, const BytesAt &bytes_at, std::string &text,
                   std::string &problem);

/// Appends the output of a program of the vendor's compiler: it writes its conversions and their
/// arguments to a log in MRAM. Returns false if the log has a conversion that a DPU lacks, or ends
/// inside the arguments.
bool format_log(std::span<const uint8_t> log, std::string &text);

}  // namespace dpuemu
