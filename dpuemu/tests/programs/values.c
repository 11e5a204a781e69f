// Operations without a result in C that have a result on a DPU.
#include <stdint.h>

#include "expect.h"

#define TYPE float
#define CHECK_CONVERSIONS check_float
#include "conversion_case.h"
#undef TYPE
#undef CHECK_CONVERSIONS
#define TYPE double
#define CHECK_CONVERSIONS check_double
#include "conversion_case.h"

volatile int32_t least = INT32_MIN, minus_one = -1;
volatile uint32_t count;
volatile int64_t least_wide = INT64_MIN, minus_one_wide = -1;

volatile double large = 1e19, negative = -5, middle = 4e9;
uint64_t wide;
int64_t wide_signed;
uint32_t narrow;
#define CONVERT_ALL wide = large, wide_signed = negative, narrow = middle

static uint32_t low_bits(double x) { return x < 0 ? (uint32_t)(int64_t)x : (uint32_t)x; }

/// Several types at one location, and conversions that gcc merges.
static void check_unknown_types(void) {
  CONVERT_ALL;
  EXPECT(wide == 10000000000000000000u && wide_signed == -5 && narrow == 4000000000u);
  EXPECT(low_bits(negative) == (uint32_t)-5 && low_bits(middle) == 4000000000u);
}

int main(void) {
  check_float();
  check_double();
  check_unknown_types();
  EXPECT(least / minus_one == INT32_MIN);
  EXPECT(least % minus_one == 0);
  EXPECT(least_wide / minus_one_wide == INT64_MIN);
  EXPECT(least_wide % minus_one_wide == 0);
  const int32_t divisor = minus_one;
  EXPECT(least / divisor == INT32_MIN && 17 / divisor == -17 && 17 % divisor == 0);
  EXPECT(least / (divisor - 1) == 1 << 30 && least_wide / (minus_one_wide - 1) == 1ll << 62);
  // A shift uses the low 5 bits of its count, or 6 bits for a shift of 64 bits.
  count = 33;
  EXPECT(minus_one << count == -2 && least >> count == -(1 << 30) && 6u >> count == 3);
  count = 65 + 128;
  EXPECT(minus_one_wide << count == -2 && least_wide >> count == -(1ll << 62));
  return 0;
}
