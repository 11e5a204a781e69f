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
  for (uint32_t w = 0; w < visit.words; ++w) {
    const bool wraps = w + visit.ahead >= visit.words;
    const VisitLines *later = visit.later[wraps];
    std::size_t later_word = w + visit.ahead - (wraps ? visit.words : 0);
    if (later_word >=
        later->words) {  // nothing is left: prefetch the line itself, without branches
      later = visit.now;
      later_word = w;
    }
    const std::byte *const *from = visit.now->first, *const *ahead = later->first;
    Line *sum = reinterpret_cast<Line *>(sums) + w;
    for (uint32_t i = 0; i < visit.items; ++i, sum += kItemBufferLines) {
      const auto next = [&](uint32_t m) {
        const std::byte *const later_line = ahead[m] + later_word * kLineStride;
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

/// Loads 8 lines in host order. transposes: as for accumulate_rows.
[[gnu::always_inline]] inline void load_tile(Line *tile, const std::byte *from, bool transposes) {
  if (transposes)
    for (uint32_t w = 0; w < kStepWords; ++w)
      tile[w] = Isa::transpose(Isa::load_line(line_at(from, w)));
  else
    for (uint32_t w = 0; w < kStepWords; ++w) tile[w] = reinterpret_cast<const Line *>(from)[w];
}

/// Does the same with at most 8 lines; the others become 0.
[[gnu::noinline]] void load_part_of_tile(Line *tile, const std::byte *from, uint32_t words,
                                         bool transposes) {
  if (words >= kStepWords) return load_tile(tile, from, transposes);
  for (uint32_t w = 0; w < kStepWords; ++w)
    tile[w] = w >= words   ? kZeroLine
              : transposes ? Isa::transpose(Isa::load_line(line_at(from, w)))
                           : reinterpret_cast<const Line *>(from)[w];
}

/// Makes line l the words of lane l.
[[gnu::noinline]] void call_transpose_tile(Line *tile) { transpose_tile<7, HostOrder>(tile); }

/// Combines 8 words of 8 lanes with rows. Lanes of one row that follow each other are combined in a
/// register: if each lane added to the row in memory, it would wait for the store of the lane
/// before it.
template <class T, int Op, bool IsUnrolled>
[[gnu::always_inline]] inline void combine_mixed_lanes(Line *rows, const uint32_t *row_of,
                                                       const Line *tile) {
  uint32_t sum_row = kNoRow;
  Line sum = kZeroLine;
  const auto combine_lane = [&](uint32_t lane) __attribute__((always_inline)) {
    if (row_of[lane] == kNoRow) return;
    const uint32_t lane_row = row_of[lane] & ~kFirstOfRow;
    if (lane_row == sum_row) {
      sum = combine_lines<T, Op>(sum, tile[lane]);
      return;
    }
    if (sum_row != kNoRow) rows[sum_row] = sum;
    sum_row = lane_row;
    sum = (row_of[lane] & kFirstOfRow) != 0 ? tile[lane]
                                            : combine_lines<T, Op>(rows[lane_row], tile[lane]);
  };
  if constexpr (IsUnrolled) {
#pragma GCC unroll 8
    for (uint32_t lane = 0; lane < kLanes; ++lane) combine_lane(lane);
  } else {
#pragma GCC unroll 0
    for (uint32_t lane = 0; lane < kLanes; ++lane) combine_lane(lane);
  }
  if (sum_row != kNoRow) rows[sum_row] = sum;
}

/// Whether the result of a reduction does not depend on the order of its elements.
template <class T>
constexpr bool kIsInteger = !__is_class(T);
template <>
constexpr bool kIsInteger<float> = false;
template <>
constexpr bool kIsInteger<double> = false;

/// Loads at most 8 lines of each stream of a bundle, at `offset` bytes, and combines them. Not
/// inlined, because every type and operator would compile it again.
[[gnu::noinline]] void load_bundle(Line *tile, const std::byte *const *from, uint32_t streams,
                                   std::size_t offset, uint32_t words, bool transposes,
                                   decltype(Reducer::combine) combine) {
  load_part_of_tile(tile, from[0] + offset, words, transposes);
  for (uint32_t s = 1; s < streams; ++s) {
    Line more[kStepWords];
    load_part_of_tile(more, from[s] + offset, words, true);
    combine(bytes_of(tile), bytes_of(more), sizeof more);
  }
}

/// See Accumulator::accumulate_rows.
template <class T, int Op>
void accumulate_rows(std::byte *first_row, uint32_t row_count, const RowBundle &bundle,
                     const std::byte *const *from, uint32_t words, bool transposes) {
  // If a line is one register, the unrolled loops keep the tile in registers.
  constexpr bool kIsUnrolled = Line::kParts == 1 && !__is_class(T);
  constexpr decltype(Reducer::combine) kCombine = kIsInteger<T> ? combine<T, Op> : nullptr;
  const uint32_t *const row_of = bundle.rows;
  const uint32_t streams = bundle.stream_count;
  Line *rows = reinterpret_cast<Line *>(first_row);
  const std::size_t tile_bytes = kStepWords * (transposes ? kLineStride : sizeof(Line));
  for (std::size_t offset = 0; words != 0; offset += tile_bytes, rows += row_count) {
    Line combined[kStepWords], tile[kMaxTileLines];
    const bool is_part = words < kStepWords;
    if constexpr (kIsUnrolled) {
      if (is_part) load_bundle(combined, from, streams, offset, words, transposes, kCombine);
      load_tile(tile, is_part ? bytes_of(combined) : from[0] + offset, transposes && !is_part);
      if constexpr (kIsInteger<T>) {
        for (uint32_t s = 1; s < streams && !is_part; ++s) {
          const std::byte *const lines = from[s] + offset;
#pragma GCC unroll 8
          for (uint32_t w = 0; w < kStepWords; ++w)
            tile[w] =
                combine_lines<T, Op>(tile[w], Isa::transpose(Isa::load_line(line_at(lines, w))));
        }
      }
      transpose_tile<7, HostOrder>(tile);
    } else {
      load_bundle(tile, from, streams, offset, words, transposes, kCombine);
      call_transpose_tile(tile);
    }
    words -= is_part ? words : kStepWords;
    if (kIsUnrolled && bundle.lanes == LaneRows::same) {
      Line *const row = rows + (row_of[0] & ~kFirstOfRow);
      Line sum = tile[0];
      if ((row_of[0] & kFirstOfRow) == 0) sum = combine_lines<T, Op>(*row, sum);
#pragma GCC unroll 8
      for (uint32_t lane = 1; lane < kLanes; ++lane) sum = combine_lines<T, Op>(sum, tile[lane]);
      *row = sum;
    } else if (kIsUnrolled && bundle.lanes == LaneRows::distinct) {
#pragma GCC unroll 8
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        rows[row_of[lane]] = combine_lines<T, Op>(rows[row_of[lane]], tile[lane]);
    } else {
      combine_mixed_lanes<T, Op, kIsUnrolled>(rows, row_of, tile);
    }
  }
}

/// Floats of 16 bits, which are structs, have one function for all lane masks, to compile sooner.
template <class T>
constexpr int mask_instance(int mask) {
  return __is_class(T) ? kAny : instance_for(mask);
}

/// Floats of 16 bits have one function for all numbers of members if a line is several registers,
/// because arithmetic then takes most of their time.
template <class T>
constexpr int members_instance(uint32_t members) {
  return __is_class(T) && Line::kParts > 1 ? kAny : instance_for(static_cast<int>(members));
}

/// Returns accumulate_unprefetched, or null.
template <class T, int Op, bool Bytewise, int Members>
constexpr auto unprefetched_entry() {
  if constexpr (Isa::kHasUnprefetchedVisits && !__is_class(T))
    return accumulate_unprefetched<T, Op, !Bytewise, Members>;
  else
    return nullptr;
}

/// Make the entries of the tables for an element type and operator.
template <class T, int Op, bool Bytewise>
constexpr Accumulator entry_of(const Accumulator *) {
  constexpr auto kMembers = Accumulator::kMembers;
#define PIDCOMM_EACH_MEMBERS(transposes)                               \
  accumulate<T, Op, transposes, members_instance<T>(kMembers[0])>,     \
      accumulate<T, Op, transposes, members_instance<T>(kMembers[1])>, \
      accumulate<T, Op, transposes, members_instance<T>(kMembers[2])>, \
      accumulate<T, Op, transposes, members_instance<T>(kMembers[3])>, \
      accumulate<T, Op, transposes, kAny>
#define PIDCOMM_UNPREFETCHED(k) unprefetched_entry<T, Op, Bytewise, instance_for(kMembers[k])>()
#define PIDCOMM_EACH_UNPREFETCHED                                              \
  {                                                                            \
    PIDCOMM_UNPREFETCHED(0), PIDCOMM_UNPREFETCHED(1), PIDCOMM_UNPREFETCHED(2), \
        PIDCOMM_UNPREFETCHED(3)                                                \
  }
  if constexpr (Bytewise)
    return {{{PIDCOMM_EACH_MEMBERS(false)}, {PIDCOMM_EACH_MEMBERS(true)}},
            {PIDCOMM_EACH_UNPREFETCHED},
            accumulate_rows<T, Op>};
  return {
      {{}, {PIDCOMM_EACH_MEMBERS(true)}}, {{}, PIDCOMM_EACH_UNPREFETCHED}, accumulate_rows<T, Op>};
#undef PIDCOMM_EACH_UNPREFETCHED
#undef PIDCOMM_UNPREFETCHED
#undef PIDCOMM_EACH_MEMBERS
}
template <class T, int Op, bool Bytewise>
constexpr Reducer entry_of(const Reducer *) {
#define PIDCOMM_FOR_MASK(function, mask) function<T, Op, Bytewise, mask_instance<T>(mask)>
#define PIDCOMM_EACH_MASK(function)                                                              \
  {                                                                                              \
    PIDCOMM_FOR_MASK(function, 0), PIDCOMM_FOR_MASK(function, 1), PIDCOMM_FOR_MASK(function, 2), \
        PIDCOMM_FOR_MASK(function, 3), PIDCOMM_FOR_MASK(function, 4),                            \
        PIDCOMM_FOR_MASK(function, 5), PIDCOMM_FOR_MASK(function, 6),                            \
        PIDCOMM_FOR_MASK(function, 7)                                                            \
  }
  return {PIDCOMM_EACH_MASK(reduce_tiles_over), combine<T, Op>};
#undef PIDCOMM_EACH_MASK
#undef PIDCOMM_FOR_MASK
}

/// Returns an entry of Kernels::accumulators or Kernels::reducers. If the operator is not defined
/// for the type, the functions are null.
template <class Entry, int Op, OpKind Kind, class T, bool IsFloating>
constexpr Entry entry_for() {
  constexpr bool kIsByte = sizeof(T) == 1;
  constexpr const Entry *kEntry = nullptr;
  if constexpr (Kind == OpKind::arith)
    return entry_of<typename Unsigned<T>::Type, Op, kIsByte>(kEntry);
  else if constexpr (Kind == OpKind::order)
    return entry_of<T, Op, kIsByte>(kEntry);
  else if constexpr (IsFloating)
    return {};
  else
    return entry_of<uint64_t, Op, true>(kEntry);
}

template <class Entry, class T, bool IsFloating>
constexpr Entry kRowOfOps[] = {
#define PIDCOMM_ROW(ENUM, code, name, kind) entry_for<Entry, code, OpKind::kind, T, IsFloating>(),
    PIDCOMM_OPS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};
