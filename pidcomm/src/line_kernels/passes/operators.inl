// Reductions: element types, operators, and the accumulation of lines. A part of passes.inl.

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

/// The largest value of members_at_a_time for an instance.
template <int Members>
constexpr uint32_t kMostMembers = Members == kAny ? 8 : Members;

/// Returns the number of group members that a pass reads side by side.
[[gnu::always_inline]] inline uint32_t members_at_a_time(const SweepCall &call, uint32_t blocks) {
  const uint32_t members = call.in_count / blocks;
  const auto fits = [&](uint32_t count) {
    return count <= call.tuning.members && count <= call.rank_members && members % count == 0;
  };
  return fits(8) ? 8 : fits(4) ? 4 : fits(2) ? 2 : 1;
}

/// Goes through the visits of a reduction in their order. In a visit, the pass reads the streams of
/// `members` group members for one block side by side, for the words of a step. The visits of the
/// other blocks follow, then those of the other members, then those of the next step.
template <int Members>
struct VisitCursor {
  const SweepCall &call;
  uint32_t blocks;
  Step step;
  [[no_unique_address]] Parameter<Members> members;
  uint32_t block = 0, member = 0;

  uint32_t visits_of_step() const { return call.in_count / members; }
  void advance() {
    if (++block < blocks) return;
    block = 0;
    member += members;
    if (member * blocks < call.in_count) return;
    member = 0;
    step.word += step.count;
  }
  /// Goes from the first visit of a step to a later visit.
  void skip(uint32_t count) {
    const uint32_t of_step = count % visits_of_step();
    step.word += count / visits_of_step() * step.count;
    member = of_step / blocks * members;
    block = of_step % blocks;
  }
};

/// Returns the number of output streams that the pass must have stored after `visited` of `visits`
/// visits.
uint32_t share_of_streams(const SweepCall &call, uint32_t visited, uint32_t visits) {
  const uint32_t pairs = call.out_count / call.out_pair_banks;
  return pairs * visited / visits * call.out_pair_banks;
}

/// Returns the first line of an item to store to stream o.
const Line *waiting_lines(const SweepCall &call, const Store &store, uint32_t item, uint32_t o) {
  const uint32_t version = o / call.out_pair_banks & (store.versions - 1);
  return reinterpret_cast<const Line *>(store.lines) + item * kItemBufferLines +
         version * store.step.count;
}

/// The first lines of the streams of a visit, those of item 0, those of item 1, ..., and the number
/// of words that may be read. The functions that run once per visit are not inlined, because every
/// type and operator would compile them again.
template <int Members>
struct VisitLines {
  const std::byte *first[kMaxItems * kMostMembers<Members>];
  uint32_t words;
  [[gnu::noinline]] void move_to(const VisitCursor<Members> &visit, uint32_t end_word) {
    const SweepCall &call = visit.call;
    const uint32_t left = visit.step.word < end_word ? end_word - visit.step.word : 0;
    words = left < visit.step.count ? left : visit.step.count;
    for (uint32_t i = 0; i < call.item_count; ++i)
      for (uint32_t m = 0; m < visit.members; ++m)
        first[i * visit.members + m] = line_at(
            call.items[i].in[(visit.member + m) * visit.blocks + visit.block], visit.step.word);
  }
};

/// The lines that a pass stores in a visit while it loads, word by word: for the first stream those
/// of item 0, those of item 1, ..., then for the second stream. A call that stores has at most as
/// many output streams as input streams, so a visit stores to at most Members streams of an item,
/// rounded up to whole bank pairs.
template <int Members>
struct VisitStores {
  static constexpr uint32_t kMost = kMaxItems * (kMostMembers<Members> + 1);
  const Line *from[kMost];
  std::byte *to[kMost];
  uint32_t count = 0, words = 0;
  [[gnu::noinline]] VisitStores(const SweepCall &call, const Store *store, uint32_t index,
                                uint32_t visits) {
    if (store == nullptr) return;
    words = store->step.count;
    const uint32_t last = share_of_streams(call, index + 1, visits);
    for (uint32_t o = share_of_streams(call, index, visits); o < last; ++o)
      for (uint32_t i = 0; i < call.item_count; ++i, ++count) {
        from[count] = waiting_lines(call, *store, i, o);
        to[count] = line_at(call.items[i].out[o], store->step.word);
      }
  }
};

/// Combines word `w` of a visit with the sums (adds), or replaces the sums, and prefetches word
/// `later_word` of a later visit.
template <class T, int Op, int Transposes, int Members>
[[gnu::always_inline]] inline void accumulate_word(const VisitCursor<Members> &visit,
                                                   const VisitLines<Members> &now, uint32_t w,
                                                   const VisitLines<Members> &later,
                                                   uint32_t later_word, bool adds, Line *sum) {
  const Parameter<Transposes> transposes(visit.call.load_transposes);
  for (uint32_t i = 0; i < visit.call.item_count; ++i, sum += kItemBufferLines) {
    const auto next = [&](uint32_t m) {
      if (later_word < later.words)
        prefetch(visit.call, line_at(later.first[i * visit.members + m], later_word));
      const Line line = Isa::load_line(line_at(now.first[i * visit.members + m], w));
      return transposes ? Isa::transpose(line) : line;
    };
    Line line = next(0);
    if (adds) line = combine_lines<T, Op>(*sum, line);
    for (uint32_t m = 1; m < visit.members; ++m) line = combine_lines<T, Op>(line, next(m));
    *sum = line;
  }
}

template <class T, int Op, int Transposes, int Members>
void accumulate_members(const SweepCall &call, Step step, std::byte *sums, uint32_t blocks,
                        const Store *store) {
  const Parameter<Members> members(members_at_a_time(call, blocks));
  const uint32_t ahead_words = call.tuning.ahead / (members * call.item_count),
                 ahead_in_step = ahead_words % step.count;
  VisitCursor<Members> visit = {call, blocks, step, members}, later = {call, blocks, step, members};
  later.skip(ahead_words / step.count);
  VisitLines<Members> now, later_lines[2];
  later_lines[0].move_to(later, call.prefetch_end);
  const uint32_t visits = visit.visits_of_step();
  for (uint32_t index = 0; index < visits; ++index, visit.advance()) {
    later.advance();
    later_lines[(index + 1) % 2].move_to(later, call.prefetch_end);
    now.move_to(visit, call.words);
    const VisitStores<Members> stores(call, store, index, visits);
    const uint32_t words = stores.words > step.count ? stores.words : step.count;
    for (uint32_t w = 0; w < words; ++w) {
      if (w < step.count) {
        Line *const sum = reinterpret_cast<Line *>(sums) + visit.block * step.count + w;
        const bool wraps = w + ahead_in_step >= step.count;
        const VisitLines<Members> &lines = later_lines[(index + (wraps ? 1 : 0)) % 2];
        const uint32_t later_word = w + ahead_in_step - (wraps ? step.count : 0);
        if (visit.member == 0)
          accumulate_word<T, Op, Transposes>(visit, now, w, lines, later_word, false, sum);
        else
          accumulate_word<T, Op, Transposes>(visit, now, w, lines, later_word, true, sum);
      }
      if (w < stores.words)
        for (uint32_t k = 0; k < stores.count; ++k)
          Isa::store_line(line_at(stores.to[k], w), stores.from[k][w]);
    }
  }
}

template <class T, int Op, int Transposes>
void accumulate(const SweepCall &call, Step step, std::byte *sums, uint32_t blocks,
                const Store *store) {
  const uint32_t members = members_at_a_time(call, blocks);
  const auto function = members == 8 ? accumulate_members<T, Op, Transposes, instance_for(8)>
                                     : accumulate_members<T, Op, Transposes, kAny>;
  function(call, step, sums, blocks, store);
}

/// Transposes and combines pairs of lines over lane bit Bit, if `mask` has this bit: line i becomes
/// the combination of the two lanes that differ in the bit, for line i in lanes without the bit,
/// and for line i | 1 << Bit in lanes with the bit. The bits of a line's index are those of `mask`
/// and `others`; lower bits of `mask` are already combined, so they are 0.
template <class T, int Op, bool Bytewise, int Bit>
[[gnu::always_inline]] inline void reduce_stage(Line *tile, uint32_t mask, uint32_t others) {
  if ((mask >> Bit & 1) == 0) return;
  const uint32_t zero_bits = (mask & ((2 << Bit) - 1)) | (7 & ~mask & ~others);
  for (int i = 0; i < kMaxTileLines; ++i) {
    if ((i & zero_bits) != 0) continue;
    if constexpr (Bytewise)
      Isa::template butterfly<Bit>(tile[i], tile[i | 1 << Bit]);
    else
      Isa::template pair_words<Bit>(tile[i], tile[i | 1 << Bit]);
    tile[i] = combine_lines<T, Op>(tile[i], tile[i | 1 << Bit]);
  }
}
template <class T, int Op, bool Bytewise>
[[gnu::always_inline]] inline void reduce_tile(Line *tile, uint32_t mask, uint32_t others) {
  reduce_stage<T, Op, Bytewise, 0>(tile, mask, others);
  reduce_stage<T, Op, Bytewise, 1>(tile, mask, others);
  reduce_stage<T, Op, Bytewise, 2>(tile, mask, others);
}

template <class T, int Op, bool Bytewise, int Mask>
void reduce_words_over(std::byte *lines, uint32_t lane_mask) {
  const Parameter<Mask> mask(lane_mask);
  Line *const line = reinterpret_cast<Line *>(lines);
  Line tile[kMaxTileLines];
  for (int i = 0; i < kMaxTileLines; ++i) tile[i] = line[i];
  reduce_tile<T, Op, Bytewise>(tile, mask, 7 & ~mask);
  for (int i = 0; i < kMaxTileLines; ++i)
    if ((i & mask) == 0) line[i] = tile[i];
}

template <class T, int Op, bool Bytewise, int Mask>
void reduce_blocks_over(std::byte *sums, uint32_t words, uint32_t lane_mask) {
  const Parameter<Mask> mask(lane_mask);
  Line *const sum = reinterpret_cast<Line *>(sums);
  for (uint32_t w = 0; w < words; ++w) {
    Line tile[kMaxTileLines];
    uint32_t block = 0;
    for (int i = 0; i < kMaxTileLines; ++i)
      if ((i & ~mask) == 0) tile[i] = sum[block++ * words + w];
    reduce_tile<T, Op, Bytewise>(tile, mask, 0);
    sum[w] = tile[0];
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

template <class T, int Op>
void combine_rows(std::byte *rows, const uint32_t *row_of, const std::byte *from, uint32_t lines) {
  for (uint32_t lane = 0; lane < 8; ++lane) {
    if (row_of[lane] == kNoRow) continue;
    Line *const row = reinterpret_cast<Line *>(rows) + (row_of[lane] & ~kFirstOfRow) * kStripLines;
    const Line *const more = reinterpret_cast<const Line *>(from) + lane * kStripLines;
    const bool replaces = (row_of[lane] & kFirstOfRow) != 0;
    for (uint32_t i = 0; i < lines; ++i)
      row[i] = replaces ? more[i] : combine_lines<T, Op>(row[i], more[i]);
  }
}

/// Floats of 16 bits, which are structs, have one function for all lane masks, to compile sooner.
template <class T>
constexpr int mask_instance(int mask) {
  return __is_class(T) ? kAny : instance_for(mask);
}

template <class T, int Op, bool Bytewise>
constexpr Reducer reducer_of() {
#define PIDCOMM_FOR_MASK(function, mask) function<T, Op, Bytewise, mask_instance<T>(mask)>
#define PIDCOMM_EACH_MASK(function)                                                              \
  {                                                                                              \
    PIDCOMM_FOR_MASK(function, 0), PIDCOMM_FOR_MASK(function, 1), PIDCOMM_FOR_MASK(function, 2), \
        PIDCOMM_FOR_MASK(function, 3), PIDCOMM_FOR_MASK(function, 4),                            \
        PIDCOMM_FOR_MASK(function, 5), PIDCOMM_FOR_MASK(function, 6),                            \
        PIDCOMM_FOR_MASK(function, 7)                                                            \
  }
  return {{Bytewise ? accumulate<T, Op, instance_for(false)> : nullptr,
           accumulate<T, Op, instance_for(true)>},
          PIDCOMM_EACH_MASK(reduce_words_over),
          PIDCOMM_EACH_MASK(reduce_blocks_over),
          combine<T, Op>,
          combine_rows<T, Op>};
#undef PIDCOMM_EACH_MASK
#undef PIDCOMM_FOR_MASK
}

/// Returns an entry of Kernels::reducers. If the operator is not defined for the type, the
/// functions are null.
template <int Op, OpKind Kind, class T, bool IsFloating>
constexpr Reducer reducer_for() {
  constexpr bool kIsByte = sizeof(T) == 1;
  if constexpr (Kind == OpKind::arith)
    return reducer_of<typename Unsigned<T>::Type, Op, kIsByte>();
  else if constexpr (Kind == OpKind::order)
    return reducer_of<T, Op, kIsByte>();
  else if constexpr (IsFloating)
    return {};
  else
    return reducer_of<uint64_t, Op, true>();
}

template <class T, bool IsFloating>
constexpr Reducer kReducerRow[] = {
#define PIDCOMM_ROW(ENUM, code, name, kind) reducer_for<code, OpKind::kind, T, IsFloating>(),
    PIDCOMM_OPS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};
