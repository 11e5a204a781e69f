// Arithmetic functions that gcc calls where x86-64 has no instruction. gcc's own library does not
// exist for x32.
#include <stdint.h>

// This is not a loop, because gcc would turn a loop into a call of this function. The function
// counts bits in fields of 2, 4 and 8 bits.
int __popcountdi2(uint64_t value) {
  value -= value >> 1 & 0x5555555555555555;
  value = (value & 0x3333333333333333) + (value >> 2 & 0x3333333333333333);
  value = (value + (value >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return (int)(value * 0x0101010101010101 >> 56);
}

int __paritydi2(uint64_t value) { return __popcountdi2(value) & 1; }

// Returns the number of bits below the sign bit that equal the sign bit.
int __clrsbdi2(int64_t value) {
  uint64_t differing = (uint64_t)(value < 0 ? ~value : value);
  return differing == 0 ? 63 : __builtin_clzll(differing) - 1;
}

#define DEFINE_POWER(name, type)                                                             \
  type name(type base, int exponent) {                                                       \
    type power = 1;                                                                          \
    for (uint32_t left = exponent < 0 ? -(uint32_t)exponent : (uint32_t)exponent; left != 0; \
         left >>= 1) {                                                                       \
      if ((left & 1) != 0) power *= base;                                                    \
      base *= base;                                                                          \
    }                                                                                        \
    return exponent < 0 ? 1 / power : power;                                                 \
  }
DEFINE_POWER(__powidf2, double)
DEFINE_POWER(__powisf2, float)
