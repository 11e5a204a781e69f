// The value the kernels work on, and the small tables that lane operations need. Only types, constants and constexpr data: nothing here
// may become a function that the linker could share between instruction sets.
#pragma once

#include <cstdint>

namespace pidcomm {
namespace {

/// A line as a value, in registers of PartBytes bytes: 8 words of 64 bits. In PIM order byte `lane` of word r is byte r of that lane's
/// word; in host order word `lane` is the lane's word.
template <int PartBytes>
struct LineOf {
  static constexpr int kPartBytes = PartBytes;
  static constexpr int kParts = 64 / PartBytes;
  typedef uint64_t Part __attribute__((vector_size(PartBytes)));
  Part part[kParts];
};

template <class T, int N>
struct Table {
  T entry[N];
};

/// Byte shuffle within each beat that exchanges lanes l and l ^ (1 << bit); indices are relative to 16-byte halves, as pshufb expects.
template <int Bit>
inline constexpr Table<uint8_t, 64> kLaneXor = [] {
  Table<uint8_t, 64> table{};
  for (int i = 0; i < 64; ++i) table.entry[i] = static_cast<uint8_t>(i % 16 ^ 1 << Bit);
  return table;
}();

/// Bytes whose lane has the bit set.
constexpr uint64_t lanes_with(uint32_t bit) {
  return bit == 0 ? 0xFF00FF00FF00FF00u : bit == 1 ? 0xFFFF0000FFFF0000u : 0xFFFFFFFF00000000u;
}

}  // namespace
}  // namespace pidcomm
