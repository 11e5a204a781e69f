// Line primitives in plain 64-bit arithmetic, but for memory access: struct Isa derives from ScalarOps and adds it.
struct ScalarOps {
  static void fence() { __builtin_ia32_mfence(); }

  /// 8 x 8 byte transpose: three stages of swapping ever larger squares off the diagonal.
  static Line transpose(Line line) {
    uint64_t row[8];
    __builtin_memcpy(row, &line, sizeof row);
    const auto stage = [&row](int step, uint64_t low) {
      for (int i = 0; i < 8; ++i) {
        if ((i & step) != 0) continue;
        const uint64_t swapped = ((row[i] >> 8 * step) ^ row[i | step]) & low;
        row[i | step] ^= swapped;
        row[i] ^= swapped << 8 * step;
      }
    };
    stage(1, ~lanes_with(0));
    stage(2, ~lanes_with(1));
    stage(4, ~lanes_with(2));
    __builtin_memcpy(&line, row, sizeof row);
    return line;
  }

  template <int Bit>
  static void butterfly(Line &a, Line &b) {
    constexpr uint64_t kHigh = lanes_with(Bit);
    constexpr int kShift = 8 << Bit;
    const Line new_a = (a & ~kHigh) | (b << kShift & kHigh);
    b = (b & kHigh) | (a >> kShift & ~kHigh);
    a = new_a;
  }

  template <int Bit>
  static Line swap_lanes(Line line) {
    constexpr uint64_t kHigh = lanes_with(Bit);
    constexpr int kShift = 8 << Bit;
    return (line << kShift & kHigh) | (line >> kShift & ~kHigh);
  }

  static Line swap_words(Line line, int bit) {
    Line swapped;
    for (int i = 0; i < 8; ++i) swapped[i] = line[i ^ 1 << bit];
    return swapped;
  }

  static uint64_t lane_control(uint64_t map) { return map; }

  static Line shuffle_lanes(Line line, uint64_t map) {
    Line shuffled{};
    for (int lane = 0; lane < 8; ++lane) shuffled |= (line >> 8 * (map >> 8 * lane & 7) & 0xFF) << 8 * lane;
    return shuffled;
  }
};
