// Conversions of a TYPE to integers. The result is the nearest limit of the integer, except for
// int64_t: there, the magnitude (at most 2^64 - 1) gets the sign. Magnitudes that have one bit too
// many lose this bit.
static void CHECK_CONVERSIONS(void) {
  static const TYPE large[] = {3e9, 5e9, 9.5e18, 2e19, 1e30, __builtin_inf()};
  for (uint32_t i = 0; i < 6; ++i) {
    volatile TYPE x = large[i];
    const uint64_t magnitude = i == 0   ? 3000000000u
                               : i == 1 ? 5000000000u
                               : i == 2 ? 9500000000000000000u / 1099511627776u * 1099511627776u
                                        : UINT64_MAX;
    uint64_t wide = x;
    EXPECT(i == 2 ? wide - magnitude <= 1099511627776u : wide == magnitude);
    int64_t wide_signed = x, wide_negative = -x;
    EXPECT(wide_signed == (int64_t)wide && wide_negative == (int64_t)-wide);
    int32_t narrow_signed = x;
    EXPECT(narrow_signed == (i == 0 ? -1294967296 : INT32_MAX));
    int32_t narrow_negative = -x;
    EXPECT(narrow_negative == (i == 0 ? 1294967296 : INT32_MIN));
    uint32_t narrow = x;
    EXPECT(narrow == (i == 0 ? 3000000000u : UINT32_MAX));
    uint32_t narrow_of_negative = -x;
    EXPECT(narrow_of_negative == 0);
    uint64_t wide_of_negative = -x;
    EXPECT(wide_of_negative == 0);
  }
  volatile TYPE zero = 0, small = -0.75, negative = -1, least = -2147483648.0;
  volatile TYPE nan = zero / zero;
  int32_t narrow_signed = nan;
  uint32_t narrow = nan;
  EXPECT(narrow_signed == INT32_MAX && narrow == UINT32_MAX);
  int64_t wide_signed = nan;
  uint64_t wide = nan;
  EXPECT(wide_signed == -1 && wide == UINT64_MAX);
  narrow_signed = small;
  narrow = small;
  wide_signed = small;
  EXPECT(narrow_signed == 0 && narrow == 0 && wide_signed == 0);
  narrow_signed = negative;
  narrow = negative;
  wide_signed = negative;
  EXPECT(narrow_signed == -1 && narrow == 0 && wide_signed == -1);
  narrow = (uint32_t)(int64_t)negative;
  EXPECT(narrow == UINT32_MAX);
  narrow_signed = least;
  wide_signed = least;
  EXPECT(narrow_signed == INT32_MIN && wide_signed == INT32_MIN);
  narrow_signed = (uint8_t)(zero + 200);
  EXPECT(narrow_signed == 200);
}
