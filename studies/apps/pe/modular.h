/* Arithmetic modulo a prime q on a PE, whose only products are 8 x 8 bits and a software routine
 * with a step per bit. The host defines WORD_BITS, the width of the words that hold residues: 64
 * for q < 2^54, or 32 for q < 2^30.
 *
 * The upper half of a product is the sum of products of 16-bit pieces. With 64-bit words it is
 * approximate: it leaves out the products that cannot change it by more than 7. This needs 10 of 16
 * products, each of 16 steps. Results that are too large by a few q do not matter: q < 2^54 leaves
 * 10 bits. With 32-bit words, q leaves 2 bits, so the upper half is exact. The lower half is the
 * product of two words, for which the compiler has a routine.
 *
 * If a factor is known in advance (twiddles), `times` uses its quotient, which the host computes
 * (Shoup's method). If not, `product` uses Barrett's method. Both need a single quotient and not
 * twice an exact upper half, as Montgomery's method would. */
#ifndef PIDCOMM_APPS_MODULAR_H
#define PIDCOMM_APPS_MODULAR_H

#include <stdint.h>

#if WORD_BITS == 32
typedef uint32_t word_t;
#define TIMES_BOUND 2u   /* times() < 2 q */
#define TIMES_LIMIT 0u   /* times() < 2^(0 + 1) q */
#define PRODUCT_LIMIT 1u /* product() < 2^(1 + 1) q */
#else
typedef uint64_t word_t;
#define TIMES_BOUND 9u
#define TIMES_LIMIT 3u
#define PRODUCT_LIMIT 3u
#endif

/* A factor w < q and floor(w * 2^WORD_BITS / q). Entry 0 of a table is q and
 * floor(2^(2 WORD_BITS - 2s) / q), s being the leading zeros of q. */
struct factor {
  word_t value, quotient;
};

#if WORD_BITS == 32
/* Returns floor(a b / 2^32). */
static inline word_t high_product(word_t a, word_t b) {
  const uint32_t a0 = a & 0xffff, a1 = a >> 16, b0 = b & 0xffff, b1 = b >> 16;
  const uint32_t upper = a1 * b0 + ((a0 * b0) >> 16), lower = a0 * b1 + (upper & 0xffff);
  return a1 * b1 + (upper >> 16) + (lower >> 16);
}
#else
/* Returns h with floor(a b / 2^64) - 7 <= h <= floor(a b / 2^64). */
static inline word_t high_product(word_t a, word_t b) {
  const uint32_t a_low = (uint32_t)a, a_high = (uint32_t)(a >> 32), b_low = (uint32_t)b,
                 b_high = (uint32_t)(b >> 32);
  const uint32_t a0 = a_low & 0xffff, a1 = a_low >> 16, a2 = a_high & 0xffff, a3 = a_high >> 16;
  const uint32_t b0 = b_low & 0xffff, b1 = b_low >> 16, b2 = b_high & 0xffff, b3 = b_high >> 16;
  const uint32_t carry =
      ((a0 * b3) >> 16) + ((a1 * b2) >> 16) + ((a2 * b1) >> 16) + ((a3 * b0) >> 16);
  const uint64_t low = (uint64_t)(a1 * b3) + a2 * b2 + a3 * b1 + carry;
  const uint64_t middle = (uint64_t)(a2 * b3) + a3 * b2;
  return ((uint64_t)(a3 * b3) << 32) + (middle << 16) + low;
}
#endif

/* Returns a value below TIMES_BOUND q that is congruent to a w, for any a. Not inline: a program
 * has one copy in its 4096 instructions. */
static __attribute__((noinline)) word_t times(word_t a, const struct factor *w, word_t q) {
  return a * w->value - high_product(a, w->quotient) * q;
}

/* Returns v modulo q, for v < 2^(limit + 1) q. */
static inline word_t reduced(word_t v, word_t q, uint32_t limit) {
  for (word_t multiple = q << limit; multiple >= q; multiple >>= 1)
    if (v >= multiple) v -= multiple;
  return v;
}

/* Returns a value below 2^(PRODUCT_LIMIT + 1) q that is congruent to a b, for a, b < q. modulus:
 * entry 0 of a table. */
static __attribute__((noinline)) word_t product(word_t a, word_t b, const struct factor *modulus) {
  const word_t q = modulus->value;
  const uint32_t shift = (uint32_t)__builtin_clzll(q) - (64 - WORD_BITS);
  return a * b - high_product(high_product(a << shift, b << shift), modulus->quotient) * q;
}

#endif
