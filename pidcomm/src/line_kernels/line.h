// The type of a line, and small tables for lane operations. This header must contain only types,
// constants, constexpr data and functions that are always inline. Otherwise, the linker could share
// a function between files compiled for different instruction sets.
#pragma once

#include <cstdint>

namespace pidcomm {
namespace {

/// A line as a value: 8 words of 64 bits, in registers of PartBytes bytes. In PIM order, byte
/// `lane` of word r is byte r of that lane's word. In host order, word `lane` is the word of that
/// lane.
template <int PartBytes>
struct LineOf {
  static constexpr int kPartBytes = PartBytes;
  static constexpr int kParts = 64 / PartBytes;
  typedef uint64_t Part __attribute__((vector_size(PartBytes)));
  typedef float Floats __attribute__((vector_size(PartBytes)));
  Part part[kParts];
};

/// An effect that gcc must keep. Without it, gcc removes calls of functions that only prefetch.
[[gnu::always_inline]] inline void keep_calls() { asm volatile(""); }

template <class T, int N>
struct Table {
  T entry[N];
};

/// A byte shuffle that exchanges lanes l and l ^ (1 << Bit) within each beat. Byte indices are
/// relative to the start of a group of 16 bytes, as the instruction pshufb expects.
template <int Bit>
inline constexpr Table<uint8_t, 64> kLaneXor = [] {
  Table<uint8_t, 64> table{};
  for (int i = 0; i < 64; ++i) table.entry[i] = static_cast<uint8_t>(i % 16 ^ 1 << Bit);
  return table;
}();

/// A byte mask for a beat: selects the bytes of the lanes in whose lane number bit `bit` is set.
constexpr uint64_t lanes_with(uint32_t bit) {
  return bit == 0 ? 0xFF00FF00FF00FF00u : bit == 1 ? 0xFFFF0000FFFF0000u : 0xFFFFFFFF00000000u;
}

}  // namespace
}  // namespace pidcomm
