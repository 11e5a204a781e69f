// Element types and operators, and what a reduction does with each of them: accumulate lines of
// group members, and combine lanes. A part of passes.inl.

/// Applies an operator to two vectors of elements.
template <int Op>
struct Operator;
template <>
struct Operator<PIDCOMM_SUM> {
  template <class V>
  static V apply(V a, V b) {
    return a + b;
  }
};
template <>
struct Operator<PIDCOMM_PROD> {
  template <class V>
  static V apply(V a, V b) {
    if constexpr (sizeof(a[0]) == 1) {
      // Vector units multiply 16-bit words, not bytes. The low bytes of the words give one product,
      // and the high bytes give the other.
      typedef uint16_t Words __attribute__((vector_size(sizeof(V))));
      const Words low = (Words)a * (Words)b, high = ((Words)a >> 8) * ((Words)b & 0xFF00);
      return (V)((low & 0x00FF) | high);
    } else {
      return a * b;
    }
  }
};
template <>
struct Operator<PIDCOMM_AND> {
  template <class V>
  static V apply(V a, V b) {
    return a & b;
  }
};
template <>
struct Operator<PIDCOMM_OR> {
  template <class V>
  static V apply(V a, V b) {
    return a | b;
  }
};
/* [operator] */
template <>
struct Operator<PIDCOMM_XOR> {
  template <class V>
  static V apply(V a, V b) {
    return a ^ b;
  }
};
/* [end] */

/// Returns the smaller (larger) of two elements. For floats, the function follows minimum (maximum)
/// of IEEE 754-2019: if one element is NaN, the result is NaN, and -0 is below +0.
template <bool IsMin, class V>
V extreme(V a, V b) {
  using Element = __typeof__(a[0] + 0);
  if constexpr (__is_same(Element, float) || __is_same(Element, double)) {
    // If a == b, only the sign of a zero can differ: `or` returns -0 if a or b is -0, and `and`
    // returns -0 only if a and b are -0.
    typedef Line::Part Bits;
    if constexpr (IsMin) {
      const V either = (V)((Bits)a | (Bits)b);  // NaN if a or b is NaN
      return a < b ? a : (a > b ? b : either);
    } else {
      const V larger = a > b ? a : b;  // b if a or b is NaN
      const V result = a == b ? (V)((Bits)a & (Bits)b) : larger;
      return a == a ? result : a;
    }
  } else {
    return (IsMin ? a < b : a > b) ? a : b;
  }
}
template <>
struct Operator<PIDCOMM_MIN> {
  template <class V>
  static V apply(V a, V b) {
    return extreme<true>(a, b);
  }
};
template <>
struct Operator<PIDCOMM_MAX> {
  template <class V>
  static V apply(V a, V b) {
    return extreme<false>(a, b);
  }
};

/// Operators that ignore the sign use the unsigned type, so that wrapping is defined and the
/// compiler generates one version.
template <class T>
struct Unsigned {
  typedef T Type;
};
template <>
struct Unsigned<int8_t> {
  typedef uint8_t Type;
};
template <>
struct Unsigned<int16_t> {
  typedef uint16_t Type;
};
template <>
struct Unsigned<int32_t> {
  typedef uint32_t Type;
};
template <>
struct Unsigned<int64_t> {
  typedef uint64_t Type;
};

/// Computes with the elements of two parts of lines.
template <class T, int Op>
struct Combine {
  static Line::Part parts(Line::Part a, Line::Part b) {
    typedef T Elements __attribute__((vector_size(Line::kPartBytes)));
    return (Line::Part)Operator<Op>::apply((Elements)a, (Elements)b);
  }
};
template <int Op>
struct Combine<pidcomm_float16, Op> {
  static Line::Part parts(Line::Part a, Line::Part b) {
    return Isa::narrow(Operator<Op>::apply(Isa::widen<false>(a), Isa::widen<false>(b)),
                       Operator<Op>::apply(Isa::widen<true>(a), Isa::widen<true>(b)));
  }
};
/// A 32-bit word has an even element in its low half and an odd element in its high half.
template <int Op>
struct Combine<pidcomm_bfloat16, Op> {
  typedef uint32_t Words __attribute__((vector_size(Line::kPartBytes)));

  static Line::Part parts(Line::Part a, Line::Part b) {
    const Words even_a = (Words)a << 16, even_b = (Words)b << 16;
    const Words odd_a = (Words)a & kHigh, odd_b = (Words)b & kHigh;
    return (Line::Part)((combined(even_a, even_b) >> 16) | combined(odd_a, odd_b));
  }

 private:
  static constexpr uint32_t kHigh = 0xFFFF0000, kQuietNan = 0x7FC00000;

  /// Returns the results in the high halves.
  static Words combined(Words a, Words b) {
    typedef Line::Floats Floats;
    const Floats result = Operator<Op>::apply((Floats)a, (Floats)b);
    const Words bits = (Words)result;
    const Words rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & kHigh;
    return result == result ? rounded : bits - bits + kQuietNan;
  }
};

template <class T, int Op>
Line combine_lines(Line a, Line b) {
  Line result;
  for (int i = 0; i < Line::kParts; ++i)
    result.part[i] = Combine<T, Op>::parts(a.part[i], b.part[i]);
  return result;
}

/// Stores the lines of word w. Not inlined, because every type and operator would compile it again.
[[gnu::noinline]] void put_word(const VisitStores &stores, uint32_t w) {
  for (uint32_t k = 0; k < stores.count; ++k)
    Isa::store_line(line_at(stores.to[k], w),
                    *reinterpret_cast<const Line *>(stores.from[k] + w * kLineBytes));
}

/// See Accumulator::accumulate.
template <class T, int Op, bool Transposes, int Members>
void accumulate(std::byte *sums, const Visit &visit) {
  const Parameter<Members> members(visit.members);
  for (uint32_t w = visit.word; w < visit.end_word; ++w) {
    const VisitLines *later = visit.later;
    uint32_t later_word = w + visit.ahead - visit.past;
    if (later_word >= later->words) {  // nothing is left: prefetch the line itself
      later = visit.now;
      later_word = w;
    }
    const std::byte *const *from = visit.now->first, *const *ahead = later->first;
    Line *sum = reinterpret_cast<Line *>(sums) + w;
    for (uint32_t i = 0; i < visit.items; ++i, sum += kItemBufferLines) {
      const auto next = [&](uint32_t m) {
        const std::byte *const later_line = ahead[m] + std::size_t{later_word} * kLineStride;
        visit.is_near ? Isa::prefetch_line(later_line) : Isa::prefetch_far(later_line);
        const Line line = Isa::load_line(from[m] + std::size_t{w} * kLineStride);
        return Transposes ? Isa::transpose(line) : line;
      };
      Line result = next(0);
      if (visit.adds) result = combine_lines<T, Op>(*sum, result);
      for (uint32_t m = 1; m < members; ++m) result = combine_lines<T, Op>(result, next(m));
      *sum = result;
      from += members;
      ahead += members;
    }
    if (w < visit.stores->words && visit.stores->count != 0) put_word(*visit.stores, w);
  }
}

/// Accumulates Items items of a visit without prefetches. If Members is a constant, the addresses
/// of all streams stay in registers.
template <class T, int Op, bool Transposes, int Items, int Members>
[[gnu::always_inline]] inline void accumulate_items(std::byte *sums, const UnprefetchedVisit &visit,
                                                    const SweepItem *items) {
  const Parameter<Members> members(visit.members);
  const std::byte *from[Items][Members == kAny ? kMaxMembers : Members];
  for (int i = 0; i < Items; ++i)
    for (uint32_t m = 0; m < members; ++m)
      from[i][m] = line_at(items[i].in[visit.stream + m * visit.stride], visit.step.word);
  Line *sum = reinterpret_cast<Line *>(sums), *const end = sum + visit.step.count;
  bool adds = visit.adds;
  for (std::size_t at = 0; sum != end; ++sum, at += kLineStride) {
    // Otherwise, the compiler makes a loop for each value of `adds`, which is larger and not
    // faster.
    asm("" : "+r"(adds));
#pragma GCC unroll 2
    for (int i = 0; i < Items; ++i) {
      const auto next = [&](auto m) __attribute__((always_inline)) {
        const Line line = Isa::load_line(from[i][m] + at);
        return Transposes ? Isa::transpose(line) : line;
      };
      Line result = next(0);
      if (adds) result = combine_lines<T, Op>(sum[i * kItemBufferLines], result);
      if constexpr (Members > 1) {  // else gcc warns that the pragma has no effect
#pragma GCC unroll 8
        for (int m = 1; m < Members; ++m) result = combine_lines<T, Op>(result, next(m));
      } else {
        for (uint32_t m = 1; m < members; ++m) result = combine_lines<T, Op>(result, next(m));
      }
      sum[i * kItemBufferLines] = result;
    }
  }
}

/// See Accumulator::accumulate_unprefetched. Two items are often the two banks of a pair, whose
/// lines are adjacent. The registers do not suffice for the addresses of more than 8 streams.
template <class T, int Op, bool Transposes, int Members>
void accumulate_unprefetched(std::byte *sums, const UnprefetchedVisit &visit) {
  constexpr int kItems = Members != kAny && Members <= 4 ? 2 : 1;
  uint32_t i = 0;
  for (; i + kItems <= visit.item_count; i += kItems)
    accumulate_items<T, Op, Transposes, kItems, Members>(sums + i * kItemBufferBytes, visit,
                                                         visit.items + i);
  if (i < visit.item_count)
    accumulate_items<T, Op, Transposes, 1, Members>(sums + i * kItemBufferBytes, visit,
                                                    visit.items + i);
}

/// Transposes and combines pairs of lines of a tile over lane bit Bit, if `mask` has this bit;
/// lower bits of `mask` are already combined.
template <class T, int Op, bool Bytewise, int Bit>
[[gnu::always_inline]] inline void reduce_stage(Line *tile, uint32_t mask, uint32_t lines) {
  if ((mask >> Bit & 1) == 0) return;
  const uint32_t apart = 1u << count_bits(mask & ((1u << Bit) - 1));
  for (uint32_t i = 0; i < lines; i += 2 * apart) {
    if constexpr (Bytewise)
      Isa::template butterfly<Bit>(tile[i], tile[i + apart]);
    else
      Isa::template pair_words<Bit>(tile[i], tile[i + apart]);
    tile[i] = combine_lines<T, Op>(tile[i], tile[i + apart]);
  }
}

/// Loads the `lines` lines of tile t.
[[gnu::always_inline]] inline void load_lane_tile(Line *tile, const LaneTiles &tiles, uint32_t t,
                                                  uint32_t lines) {
  const uint32_t word = tiles.words == nullptr ? t : tiles.words[t];
  const std::size_t at = (tiles.word + word) * tiles.stride();
  for (uint32_t i = 0; i < lines; ++i)
    tile[i] = tiles.in_mram ? Isa::load_line(tiles.first[i] + at)
                            : *reinterpret_cast<const Line *>(tiles.first[i] + at);
  if (tiles.transposes)
    for (uint32_t i = 0; i < lines; ++i) tile[i] = Isa::transpose(tile[i]);
}
[[gnu::noinline]] void call_load_lane_tile(Line *tile, const LaneTiles &tiles, uint32_t t,
                                           uint32_t lines) {
  load_lane_tile(tile, tiles, t, lines);
}

/// See Reducer::reduce_tiles. If the mask is a constant, the compiler unrolls the loops over the
/// lines of a tile, which then stays in registers.
template <class T, int Op, bool Bytewise, int Mask>
void reduce_tiles_over(std::byte *results, const LaneTiles &tiles) {
  const Parameter<Mask> mask(tiles.lane_mask);
  const uint32_t lines = 1u << count_bits(mask);
  for (uint32_t t = 0; t < tiles.count; ++t) {
    Line tile[kMaxTileLines];
    (Mask == kAny ? call_load_lane_tile : load_lane_tile)(tile, tiles, t, lines);
    reduce_stage<T, Op, Bytewise, 0>(tile, mask, lines);
    reduce_stage<T, Op, Bytewise, 1>(tile, mask, lines);
    reduce_stage<T, Op, Bytewise, 2>(tile, mask, lines);
    reinterpret_cast<Line *>(results)[t] = tile[0];
  }
}

template <class T, int Op>
void combine(std::byte *into, const std::byte *from, std::size_t bytes) {
  std::size_t i = 0;
  for (; i + sizeof(Line) <= bytes; i += sizeof(Line))
    store_words(into + i, combine_lines<T, Op>(load_words(into + i), load_words(from + i)));
  if (i == bytes) return;
  Line a = kZeroLine, b = kZeroLine;
  __builtin_memcpy(&a, into + i, bytes - i);
  __builtin_memcpy(&b, from + i, bytes - i);
  a = combine_lines<T, Op>(a, b);
  __builtin_memcpy(into + i, &a, bytes - i);
}
