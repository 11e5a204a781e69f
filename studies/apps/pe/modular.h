/* Arithmetic modulo a prime q < 2^54 on a PE, whose only products are 8 x 8 bits and a software
 * routine with a step per bit.
 *
 * The upper half of a 64 x 64-bit product is approximate. It is the sum of products of 16-bit
 * pieces, and leaves out the products that cannot change it by more than 7. This needs 10 of 16
 * products, each of 16 steps. The lower half is the product of two uint64_t, for which the compiler
 * has a routine. Results that are too large by a few q do not matter: q < 2^54 leaves 10 bits.
 *
 * If a factor is known in advance (twiddles), `times` uses its quotient, which the host computes
 * (Shoup's method). If not, `product` uses Barrett's method. Both need a single approximate
 * quotient and no exact upper half, which Montgomery's method would need twice. */
#ifndef PIDCOMM_APPS_MODULAR_H
#define PIDCOMM_APPS_MODULAR_H

#include <stdint.h>

/* A factor w < q and floor(w * 2^64 / q). Entry 0 of a table is q and floor(2^(128 - 2s) / q), s
 * being the leading zeros of q. */
struct factor {
  uint64_t value, quotient;
};

#define TIMES_BOUND 9u   /* times() < 9 q */
#define PRODUCT_LIMIT 3u /* product() and times() are below 2^(3 + 1) q */

/* Returns h with floor(a b / 2^64) - 7 <= h <= floor(a b / 2^64). */
static inline uint64_t high_product(uint64_t a, uint64_t b) {
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

/* Returns a value below 9 q that is congruent to a w, for any a. Not inline: a program has one copy
 * in its 4096 instructions. */
static __attribute__((noinline)) uint64_t times(uint64_t a, const struct factor *w, uint64_t q) {
  return a * w->value - high_product(a, w->quotient) * q;
}

/* Returns v modulo q, for v < 2^(limit + 1) q. */
static inline uint64_t reduced(uint64_t v, uint64_t q, uint32_t limit) {
  for (uint64_t multiple = q << limit; multiple >= q; multiple >>= 1)
    if (v >= multiple) v -= multiple;
  return v;
}

/* Returns a value below 2^4 q that is congruent to a b, for a, b < q. modulus: entry 0 of a table.
 */
static __attribute__((noinline)) uint64_t product(uint64_t a, uint64_t b,
                                                  const struct factor *modulus) {
  const uint64_t q = modulus->value;
  const uint32_t shift = (uint32_t)__builtin_clzll(q);
  return a * b - high_product(high_product(a << shift, b << shift), modulus->quotient) * q;
}

#endif
