/// instructions.h: the results and conditions of instructions.inc as functions, in C and C++.
///
/// The interpreter of machine code uses them (src/isa/semantics.h), and the C code that the
/// compiler writes in place of asm blocks (compiler/asm_blocks.py).
#define PE_INSTRUCTION static __inline__ __attribute__((always_inline, unused))

/// The value of an instruction, and its flags. carry, overflow, is_zero: 1 or 0.
struct __pe_result {
  uint32_t value, carry, overflow, is_zero;
};

/// Returns 1 in each byte in which the two words are equal.
PE_INSTRUCTION uint32_t __pe_equal_bytes(uint32_t a, uint32_t b) {
  uint32_t result = 0;
  for (uint32_t shift = 0; shift < 32; shift += 8)
    if (((a ^ b) >> shift & 0xFF) == 0) result |= 1u << shift;
  return result;
}

// The macros of the rows.
#define wide(x) ((uint64_t)(x))
#define low_half(x) ((uint32_t)(x))
#define high_half(x) ((uint32_t)((x) >> 32))
#define low_ones(count) ((1u << (count)) - 1)                                  // count: below 32
#define rotated(x, places) ((x) << ((places) & 31) | (x) >> (-(places) & 31))  // to the left
#define ones(x) ((uint32_t)__builtin_popcount(x))
#define leading_zeros(x) ((x) == 0 ? 32u : (uint32_t)__builtin_clz(x))
#define signed_byte(x) ((uint32_t)(int8_t)(x))
#define signed_half(x) ((uint32_t)(int16_t)(x))
#define signed_shift(x, shift) ((uint32_t)((int32_t)(x) >> (shift)))
#define equal_bytes __pe_equal_bytes
#define sum(x, y, c)                                                               \
  (total = wide(x) + (y) + (c), value = low_half(total), carry = high_half(total), \
   overflow = ((x) ^ value) & ((y) ^ value))
#define tested(x) low_half(test = (x))

/// The result of an operation. shift: 0 to 31; carry: the flag before.
#define OPERATION(identifier, name, pair, conditions, ...)                                       \
  PE_INSTRUCTION struct __pe_result __pe_do_##identifier(uint32_t a, uint32_t b, uint32_t shift, \
                                                         uint32_t carry) {                       \
    struct __pe_result result;                                                                   \
    uint32_t value, overflow = 0;                                                                \
    uint64_t total = 0, test = ~total; /* all ones: no tested(x) */                              \
    (void)a, (void)b, (void)shift;                                                               \
    __VA_ARGS__;                                                                                 \
    result.value = value;                                                                        \
    result.carry = carry;                                                                        \
    result.overflow = overflow >> 31;                                                            \
    result.is_zero = (test == ~wide(0) ? value : low_half(test)) == 0;                           \
    (void)total;                                                                                 \
    return result;                                                                               \
  }
#include "instructions.inc"

/// Returns whether a condition holds for a result. zero: the flag before.
#define CONDITION(identifier, name, ...)                                                          \
  PE_INSTRUCTION uint32_t __pe_is_##identifier(struct __pe_result result, uint32_t a, uint32_t b, \
                                               uint32_t zero) {                                   \
    const uint32_t value = result.value, carry = result.carry, overflow = result.overflow,        \
                   is_zero = result.is_zero;                                                      \
    (void)a, (void)b, (void)zero, (void)value, (void)carry, (void)overflow, (void)is_zero;        \
    return __VA_ARGS__;                                                                           \
  }
#include "instructions.inc"

/// mul_step: one bit of a product. pair: the remaining factor above the sum. Returns the pair of
/// the result, which was `before`; its lower half may not change.
PE_INSTRUCTION uint64_t __pe_do_step_mul(uint32_t a, uint32_t shift, uint64_t pair,
                                         uint64_t before) {
  const uint32_t factor = high_half(pair);
  const uint32_t next = factor & 1 ? low_half(pair) + (a << shift) : low_half(before);
  return wide(factor >> 1) << 32 | next;
}
/// div_step: one bit of a quotient. pair: the quotient above the remainder.
PE_INSTRUCTION uint64_t __pe_do_step_div(uint32_t a, uint32_t shift, uint64_t pair,
                                         uint64_t before) {
  const uint32_t remainder = low_half(pair), subtracted = a << shift;
  const uint32_t fits = remainder >= subtracted;
  const uint32_t next = fits ? remainder - subtracted : low_half(before);
  return wide(high_half(pair) << 1 | fits) << 32 | next;
}

#undef wide
#undef low_half
#undef high_half
#undef low_ones
#undef rotated
#undef ones
#undef leading_zeros
#undef signed_byte
#undef signed_half
#undef signed_shift
#undef equal_bytes
#undef sum
#undef tested
