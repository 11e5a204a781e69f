// Line primitives in plain 64-bit arithmetic. struct Isa adds the memory access to ScalarOps.
typedef LineOf<16> Line;  // baseline x86-64 has registers of 16 bytes

struct ScalarOps {
  static constexpr bool kHasInstances = false;  // small and fast to compile, not fast to run
  static bool is_supported() { return true; }
  static void fence() { __builtin_ia32_mfence(); }

  /// Transposes 8 x 8 bytes in three stages. Each stage swaps the two off-diagonal squares of
  /// larger blocks.
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
    for (int i = 0; i < Line::kParts; ++i) {
      const Line::Part old_a = a.part[i];
      a.part[i] = (old_a & ~kHigh) | (b.part[i] << kShift & kHigh);
      b.part[i] = (b.part[i] & kHigh) | (old_a >> kShift & ~kHigh);
    }
  }

  template <int Bit>
  static void butterfly_words(Line &a, Line &b) {
    uint64_t first[8], second[8];
    __builtin_memcpy(first, &a, sizeof first);
    __builtin_memcpy(second, &b, sizeof second);
    for (int i = 0; i < 8; ++i) {
      if ((i >> Bit & 1) != 0) continue;
      const uint64_t swapped = first[i | 1 << Bit];
      first[i | 1 << Bit] = second[i];
      second[i] = swapped;
    }
    __builtin_memcpy(&a, first, sizeof first);
    __builtin_memcpy(&b, second, sizeof second);
  }

  template <int Bit>
  static void pair_words(Line &a, Line &b) {
    butterfly_words<Bit>(a, b);
  }

  template <int Bit>
  static Line swap_lanes(Line line) {
    constexpr uint64_t kHigh = lanes_with(Bit);
    constexpr int kShift = 8 << Bit;
    for (Line::Part &part : line.part) part = (part << kShift & kHigh) | (part >> kShift & ~kHigh);
    return line;
  }

  static Line swap_words(Line line, int bit) {
    uint64_t word[8];
    __builtin_memcpy(word, &line, sizeof word);
    uint64_t swapped[8];
    for (int i = 0; i < 8; ++i) swapped[i] = word[i ^ 1 << bit];
    __builtin_memcpy(&line, swapped, sizeof swapped);
    return line;
  }

  typedef uint32_t Words __attribute__((vector_size(Line::kPartBytes)));
  typedef Line::Floats Floats;

  /// A 32-bit word has an element of the low half in its low half. The exponents of float16 and
  /// float32 differ by 112; the product with 2^112 is exact, also for subnormal elements.
  template <bool High>
  static Floats widen(Line::Part halves) {
    const Words word = High ? (Words)halves >> 16 : (Words)halves & 0xFFFF;
    const Words magnitude = (word & 0x7FFF) << 13, sign = (word & 0x8000) << 16;
    const Words scaled = (Words)((Floats)magnitude * 0x1p112f);
    const Words special = magnitude | 0x7F800000;  // infinity or NaN
    return (Floats)((magnitude >= 0x0F800000 ? special : scaled) | sign);
  }
  static Line::Part narrow(Floats low, Floats high) {
    return (Line::Part)(rounded(low) | rounded(high) << 16);
  }

  static uint64_t lane_control(uint64_t map) { return map; }
  static uint64_t word_control(uint64_t map) { return map; }

  static Line shuffle_words(Line line, uint64_t map) {
    uint64_t word[8], shuffled[8];
    __builtin_memcpy(word, &line, sizeof word);
    for (int i = 0; i < 8; ++i) shuffled[i] = word[map >> 8 * i & 7];
    __builtin_memcpy(&line, shuffled, sizeof shuffled);
    return line;
  }

  static Line shuffle_lanes(Line line, uint64_t map) {
    Line shuffled = {};
    for (int lane = 0; lane < 8; ++lane) {
      const uint64_t from = map >> 8 * lane & 0xFF;
      if (from == kNoLane) continue;
      for (int i = 0; i < Line::kParts; ++i)
        shuffled.part[i] |= (line.part[i] >> 8 * from & 0xFF) << 8 * lane;
    }
    return shuffled;
  }

 private:
  /// Returns floats as float16, in the low halves of words.
  static Words rounded(Floats floats) {
    const Words bits = (Words)floats, magnitude = bits & 0x7FFFFFFF, sign = bits >> 16 & 0x8000;
    // The fraction of a float16 begins at bit 13. Adding 0.5 makes the smallest subnormal float16
    // the last bit of a float.
    const Words normal = (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    const Words subnormal = (Words)((Floats)magnitude + 0.5f) - 0x3F000000;
    const Words special = magnitude > 0x7F800000 ? sign - sign + 0x7E00 : sign - sign + 0x7C00;
    const Words result = magnitude < (113u << 23) ? subnormal : normal;
    return (magnitude >= (143u << 23) ? special : result) | sign;
  }
};
