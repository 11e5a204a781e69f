// The passes, written once over an instruction set's line primitives. Included by each src/hostpass/isa/*.cpp inside an anonymous
// namespace, after its type `Line` (a LineOf) and its `struct Isa`, which provides (all static, inline):
//   Line load_line(const std::byte *)            one line of the region
//   void store_line(std::byte *, Line)           one line of the region, whole, non-temporal
//   void stream_words(std::byte *, Line)         64 aligned bytes of a host row, non-temporal
//   void flush_line(const std::byte *)           out of every cache
//   void prefetch_line(const std::byte *)
//   void fence()                                 loads, flushes and non-temporal stores before it are done
//   Line transpose(Line)                         PIM order <-> host order (the domain transfer)
//   void butterfly<Bit>(Line &a, Line &b)        PIM order: a's lanes with the bit set <-> b's lanes without it
//   Line swap_lanes<Bit>(Line)                   PIM order: lanes l and l ^ (1 << Bit)
//   Line swap_words(Line, bit)                   host order: the same for words
//   Line shuffle_lanes(Line, control)            PIM order: lane l of every beat = lane map[l]; control = lane_control(map)

constexpr int kMaxTileLines = 8;

/// A line of zeros.
constexpr Line kZeroLine = {};

Line load_words(const std::byte *from) {
  Line line;
  for (int i = 0; i < Line::kParts; ++i) __builtin_memcpy(&line.part[i], from + i * Line::kPartBytes, Line::kPartBytes);
  return line;
}
void store_words(std::byte *to, Line line) {
  for (int i = 0; i < Line::kParts; ++i) __builtin_memcpy(to + i * Line::kPartBytes, &line.part[i], Line::kPartBytes);
}

uint64_t load_word(const std::byte *from) {
  uint64_t word;
  __builtin_memcpy(&word, from, sizeof word);
  return word;
}
void store_word(std::byte *to, uint64_t word) { __builtin_memcpy(to, &word, sizeof word); }

std::byte *bytes_of(Line *line) { return reinterpret_cast<std::byte *>(line); }

/// Words by which loads run after prefetches.
constexpr uint32_t kPrefetchWords = kStepWords;

/// Line `w` of the call in a stream, and a prefetch of a later one.
Line next_line(const TileCall &call, const std::byte *stream, uint32_t w) {
  const uint32_t word = call.word + w;
  if (word + kPrefetchWords < call.prefetch_end) Isa::prefetch_line(stream + kLineStride * (word + kPrefetchWords));
  return Isa::load_line(stream + kLineStride * word);
}

void put_line(const TileCall &call, std::byte *stream, uint32_t w, Line line) {
  Isa::store_line(stream + kLineStride * (call.word + w), line);
}

/// Word `w` of the call in a host row.
template <class Pointer>
Pointer host_word(const TileCall &call, Pointer row, uint32_t w) {
  return row + 8 * (call.word + w);
}

uint32_t count_bits(uint32_t mask) { return static_cast<uint32_t>(__builtin_popcount(mask)); }

/// One stage of a tile transposition: lines i and i | Index exchange over lane bit Bit.
template <int Lines, int Index, int Bit>
void exchange_stage(Line *tile) {
  for (int i = 0; i < Lines; ++i)
    if ((i & Index) == 0) Isa::template butterfly<Bit>(tile[i], tile[i | Index]);
}

/// Transposes Lines = 2^k lines over the lane bits of Mask: byte `lane` of line i, in every beat, moves to the lane whose selected bits are
/// i, of the line whose number is the lane's selected bits.
template <int Mask>
void transpose_tile(Line *tile) {
  constexpr int kLines = 1 << __builtin_popcount(Mask);
  constexpr int kAfter0 = Mask & 1 ? 2 : 1;
  constexpr int kAfter1 = Mask & 2 ? 2 * kAfter0 : kAfter0;
  if constexpr ((Mask & 1) != 0) exchange_stage<kLines, 1, 0>(tile);
  if constexpr ((Mask & 2) != 0) exchange_stage<kLines, kAfter0, 1>(tile);
  if constexpr ((Mask & 4) != 0) exchange_stage<kLines, kAfter1, 2>(tile);
}

/// Tiles == 2: the in-place exchange; both tiles are loaded before either is stored.
template <int Mask, int Tiles>
void transpose_words(const TileCall &call) {
  constexpr int kLines = 1 << __builtin_popcount(Mask);
  for (uint32_t w = 0; w < call.words; ++w) {
    for (uint32_t item = 0; item < call.item_count; ++item) {
      const TileItem &streams = call.items[item];
      Line tile[Tiles][kLines];
      for (int t = 0; t < Tiles; ++t)
        for (int i = 0; i < kLines; ++i) tile[t][i] = next_line(call, streams.in[t * kLines + i], w);
      for (int t = 0; t < Tiles; ++t) {
        transpose_tile<Mask>(tile[t]);
        for (int i = 0; i < kLines; ++i) put_line(call, streams.out[t * kLines + i], w, tile[t][i]);
      }
    }
  }
}

template <int Mask>
void transpose_items(const TileCall &call) {
  if (call.in_count == 1u << __builtin_popcount(Mask))
    transpose_words<Mask, 1>(call);
  else
    transpose_words<Mask, 2>(call);
}

/// Calls the instance of a template for the lane mask: one jump per call.
#define PIDCOMM_BY_LANE_MASK(function, ...)                                                      \
  do {                                                                                           \
    using Function = decltype(&function<0>);                                                     \
    static constexpr Function kByMask[8] = {function<0>, function<1>, function<2>, function<3>,  \
                                            function<4>, function<5>, function<6>, function<7>}; \
    kByMask[call.lane_mask](__VA_ARGS__);                                                        \
  } while (false)

void pass_transpose(const TileCall &call) { PIDCOMM_BY_LANE_MASK(transpose_items, call); }

/// The scratch lines of an item.
Line *lines_of(const TileCall &call, uint32_t item) { return reinterpret_cast<Line *>(call.scratch + kItemScratchBytes * item); }

/// Stores word w of every item's lines to its stream o: neighbouring banks one after the other.
template <class LineAt>
void put_stream(const TileCall &call, uint32_t o, const LineAt &line_at) {
  for (uint32_t w = 0; w < call.words; ++w)
    for (uint32_t i = 0; i < call.item_count; ++i) put_line(call, call.items[i].out[o], w, line_at(lines_of(call, i)[w]));
}

void put_everywhere(const TileCall &call) {
  for (uint32_t o = 0; o < call.out_count; ++o) put_stream(call, o, [](Line line) { return line; });
}

void pass_spread(const TileCall &call) {
  for (uint32_t i = 0; i < call.item_count; ++i)
    for (uint32_t w = 0; w < call.words; ++w) lines_of(call, i)[w] = next_line(call, call.items[i].in[0], w);
  const uint32_t copies = 1u << count_bits(call.lane_mask);
  for (uint32_t copy = 0; copy < copies; ++copy) {
    const uint32_t from = deposit_bits(copy, call.lane_mask);
    uint64_t map = 0;
    for (uint32_t lane = 0; lane < 8; ++lane) map |= uint64_t{(lane & ~call.lane_mask) | from} << 8 * lane;
    const auto control = Isa::lane_control(map);
    for (uint32_t o = copy; o < call.out_count; o += copies)
      put_stream(call, o, [&](Line line) { return Isa::shuffle_lanes(line, control); });
  }
}

// ---- reductions: element types and operators ----

/// What an operator does to two vectors of elements.
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
    return a * b;
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
template <>
struct Operator<PIDCOMM_XOR> {
  template <class V>
  static V apply(V a, V b) {
    return a ^ b;
  }
};

/// The smaller (larger) of two; for floats as IEEE 754-2019 minimum (maximum): NaN if either is, and -0 below +0.
template <bool IsMin, class V>
V extreme(V a, V b) {
  const auto takes_a = IsMin ? a < b : a > b;
  V result = takes_a ? a : b;
  using Element = __typeof__(a[0] + 0);
  if constexpr (__is_same(Element, float) || __is_same(Element, double)) {
    // Where a == b only the sign of a zero can differ: or keeps a -0, and drops it.
    typedef Line::Part Bits;
    const Bits zeros = IsMin ? ((Bits)a | (Bits)b) : ((Bits)a & (Bits)b);
    result = a == b ? (V)zeros : result;
    result = (a != a) | (b != b) ? a + b : result;
  }
  return result;
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

/// Where the sign does not matter the unsigned type stands for both, so that wrapping is defined and code exists once.
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

template <class T, int Op>
Line combine_lines(Line a, Line b) {
  typedef T Elements __attribute__((vector_size(Line::kPartBytes)));
  Line result;
  for (int i = 0; i < Line::kParts; ++i) result.part[i] = (Line::Part)Operator<Op>::apply((Elements)a.part[i], (Elements)b.part[i]);
  return result;
}

template <class T, int Op, bool Bytewise>
void accumulate(const TileCall &call, uint32_t blocks) {
  for (uint32_t stream = 0; stream < call.in_count; ++stream) {
    const bool is_first = stream < blocks;
    for (uint32_t i = 0; i < call.item_count; ++i) {  // neighbouring banks one after the other
      Line *const sum = lines_of(call, i) + stream % blocks * call.words;
      for (uint32_t w = 0; w < call.words; ++w) {
        Line line = next_line(call, call.items[i].in[stream], w);
        if constexpr (!Bytewise) line = Isa::transpose(line);
        sum[w] = is_first ? line : combine_lines<T, Op>(sum[w], line);
      }
    }
  }
}

template <class T, int Op, bool Bytewise, int Bit>
Line fold_bit(Line line, uint32_t lane_mask) {
  if ((lane_mask >> Bit & 1) == 0) return line;
  if constexpr (Bytewise)
    return combine_lines<T, Op>(line, Isa::template swap_lanes<Bit>(line));
  else
    return combine_lines<T, Op>(line, Isa::swap_words(line, Bit));
}

template <class T, int Op, bool Bytewise>
void fold_lanes(std::byte *lines, uint32_t words, uint32_t lane_mask) {
  Line *const line = reinterpret_cast<Line *>(lines);
  for (uint32_t w = 0; w < words; ++w) {
    Line folded = fold_bit<T, Op, Bytewise, 0>(line[w], lane_mask);
    folded = fold_bit<T, Op, Bytewise, 1>(folded, lane_mask);
    line[w] = fold_bit<T, Op, Bytewise, 2>(folded, lane_mask);
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

template <class T, int Op, bool Bytewise>
constexpr Reducer reducer_of() {
  return {accumulate<T, Op, Bytewise>, fold_lanes<T, Op, Bytewise>, combine<T, Op>};
}

/// An entry of Kernels::reducers; no functions where the operator is not defined for the type.
template <int Op, OpKind Kind, class T>
constexpr Reducer reducer_for() {
  constexpr bool kIsByte = sizeof(T) == 1;
  if constexpr (Kind == OpKind::arith)
    return reducer_of<typename Unsigned<T>::Type, Op, kIsByte>();
  else if constexpr (Kind == OpKind::order)
    return reducer_of<T, Op, kIsByte>();
  else if constexpr (__is_same(T, float) || __is_same(T, double))
    return {};
  else
    return reducer_of<uint64_t, Op, true>();
}

template <class T>
constexpr Reducer kReducerRow[] = {
#define PIDCOMM_ROW(ENUM, code, name, kind) reducer_for<code, OpKind::kind, T>(),
    PIDCOMM_OPS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};

// ---- reductions: passes ----

/// The accumulators of an item become its result lines, in their first places.
template <int Mask>
void finish_blocks(const TileCall &call) {
  constexpr int kLines = 1 << __builtin_popcount(Mask);
  for (uint32_t item = 0; item < call.item_count; ++item) {
    Line *const acc = lines_of(call, item);
    for (uint32_t w = 0; w < call.words; ++w) {
      Line tile[kLines];
      for (int i = 0; i < kLines; ++i) {
        tile[i] = acc[static_cast<uint32_t>(i) * call.words + w];
        if (Mask != 0 && !call.bytewise) tile[i] = Isa::transpose(tile[i]);
      }
      transpose_tile<Mask>(tile);
      if (Mask != 0 && !call.bytewise)
        for (int i = 0; i < kLines; ++i) tile[i] = Isa::transpose(tile[i]);
      for (int step = 1; step < kLines; step *= 2)
        for (int i = 0; i < kLines; i += 2 * step) call.reducer->combine(bytes_of(&tile[i]), bytes_of(&tile[i + step]), sizeof(Line));
      acc[w] = call.bytewise ? tile[0] : Isa::transpose(tile[0]);
    }
  }
}

void pass_fold_blocks(const TileCall &call) {
  call.reducer->accumulate(call, 1u << count_bits(call.lane_mask));
  PIDCOMM_BY_LANE_MASK(finish_blocks, call);
  put_everywhere(call);
}

/// Reduces every item's streams and lanes; the lines end in PIM order or in host order.
void fold_items(const TileCall &call, bool to_pim_order) {
  call.reducer->accumulate(call, 1);
  for (uint32_t i = 0; i < call.item_count; ++i) {
    Line *const lines = lines_of(call, i);
    call.reducer->fold_lanes(bytes_of(lines), call.words, call.lane_mask);
    if (call.bytewise != to_pim_order)
      for (uint32_t w = 0; w < call.words; ++w) lines[w] = Isa::transpose(lines[w]);
  }
}

void pass_fold_lanes(const TileCall &call) {
  fold_items(call, true);
  put_everywhere(call);
}

void pass_fold_to_host(const TileCall &call) {
  fold_items(call, false);
  for (uint32_t i = 0; i < call.item_count; ++i) {
    for (uint32_t o = 0; o < call.out_count; ++o) {
      const uint32_t lane = deposit_bits(o, ~call.lane_mask & 7);
      for (uint32_t w = 0; w < call.words; ++w)
        store_word(host_word(call, call.items[i].out[o], w), load_word(bytes_of(&lines_of(call, i)[w]) + 8 * lane));
    }
  }
}

// ---- host rows ----

/// Bytes by which loads of host rows run after prefetches. Past the end of a row this touches nothing that can fault.
constexpr uint64_t kRowPrefetchBytes = 512;

bool is_aligned(const std::byte *pointer) { return reinterpret_cast<uintptr_t>(pointer) % sizeof(Line) == 0; }

void pass_to_host(const TileCall &call) {
  for (uint32_t i = 0; i < call.item_count; ++i) {
    const TileItem &item = call.items[i];
    if (call.words == kStepWords) {
      Line tile[kMaxTileLines];
      for (uint32_t w = 0; w < kStepWords; ++w) tile[w] = next_line(call, item.in[0], w);
      transpose_tile<7>(tile);
      for (uint32_t lane = 0; lane < 8; ++lane) {
        if (item.out[lane] == nullptr) continue;
        std::byte *const to = host_word(call, item.out[lane], 0);
        if (call.streams_rows && is_aligned(to))
          Isa::stream_words(to, Isa::transpose(tile[lane]));
        else
          store_words(to, Isa::transpose(tile[lane]));
      }
    } else {
      for (uint32_t w = 0; w < call.words; ++w) {
        Line line = Isa::transpose(next_line(call, item.in[0], w));
        for (uint32_t lane = 0; lane < 8; ++lane)
          if (item.out[lane] != nullptr) store_word(host_word(call, item.out[lane], w), load_word(bytes_of(&line) + 8 * lane));
      }
    }
  }
}

/// Words of 8 host rows become lines in PIM order, in `lines`.
void lines_from_rows(const TileCall &call, const TileItem &item, Line *lines) {
  if (call.words == kStepWords) {
    Line tile[kMaxTileLines];
    for (uint32_t lane = 0; lane < 8; ++lane) {
      tile[lane] = kZeroLine;
      if (item.in[lane] == nullptr) continue;
      const std::byte *const from = host_word(call, item.in[lane], 0);
      __builtin_prefetch(from + kRowPrefetchBytes);
      tile[lane] = Isa::transpose(load_words(from));
    }
    transpose_tile<7>(tile);
    for (uint32_t w = 0; w < kStepWords; ++w) lines[w] = tile[w];
  } else {
    for (uint32_t w = 0; w < call.words; ++w) {
      Line line = kZeroLine;
      for (uint32_t lane = 0; lane < 8; ++lane)
        if (item.in[lane] != nullptr) store_word(bytes_of(&line) + 8 * lane, load_word(host_word(call, item.in[lane], w)));
      lines[w] = Isa::transpose(line);
    }
  }
}

/// Puts the bytes of the lanes to keep, as they are in memory, into the lines that will be stored there.
void keep_bytes(const TileCall &call, const std::byte *stream, Line *lines) {
  uint64_t keep_beat = 0;
  for (uint32_t lane = 0; lane < 8; ++lane)
    if (call.keep_lanes >> lane & 1) keep_beat |= uint64_t{0xFF} << 8 * lane;
  for (uint32_t w = 0; w < call.words; ++w) {
    const Line old = Isa::load_line(stream + kLineStride * (call.word + w));
    for (int i = 0; i < Line::kParts; ++i) lines[w].part[i] = (lines[w].part[i] & ~keep_beat) | (old.part[i] & keep_beat);
  }
}

void pass_from_host(const TileCall &call) {
  for (uint32_t i = 0; i < call.item_count; ++i) {
    lines_from_rows(call, call.items[i], lines_of(call, i));
    if (call.keep_lanes != 0) keep_bytes(call, call.items[i].out[0], lines_of(call, i));
  }
  put_everywhere(call);
}

// ---- coherence and the limit ----

void flush_lines(const std::byte *line, uint32_t words, uint32_t banks) {
  for (uint32_t w = 0; w < words; ++w)
    for (uint32_t bank = 0; bank < banks; ++bank) Isa::flush_line(line + kLineStride * w + kLineBytes * bank);
}

void stream_lines(const StreamCall &call) {
  Line sink = kZeroLine;
  for (uint32_t turn = 0; turn < call.words; turn += call.turn_words) {
    const uint32_t end = turn + call.turn_words < call.words ? turn + call.turn_words : call.words;
    for (uint32_t s = 0; s < call.streams; ++s) {
      for (uint32_t w = turn; w < end; ++w) {
        const bool prefetches = call.ahead_words != 0 && w + call.ahead_words < call.prefetch_end;
        for (uint32_t bank = 0; bank < call.banks; ++bank) {
          const uint64_t at = kLineStride * w + kLineBytes * bank;
          Line line = kZeroLine;
          if (call.in != nullptr) {
            if (prefetches) Isa::prefetch_line(call.in[s] + at + kLineStride * call.ahead_words);
            line = Isa::load_line(call.in[s] + at);
          }
          if (call.out != nullptr)
            Isa::store_line(call.out[s] + at, line);
          else
            sink = combine_lines<uint64_t, PIDCOMM_OR>(sink, line);
        }
      }
    }
  }
  __asm__ volatile("" : : "m"(sink));  // the loads happen
}

/// The table of this instruction set.
#define PIDCOMM_KERNELS(ENUM, isa_name)                                                                                           \
  extern const Kernels kKernels##ENUM;                                                                                            \
  const Kernels kKernels##ENUM = {                                                                                                \
      PIDCOMM_ISA_##ENUM, isa_name,    {PIDCOMM_PASSES(PIDCOMM_PASS_ENTRY)}, {PIDCOMM_TYPES(PIDCOMM_REDUCER_ENTRY)}, flush_lines, \
      Isa::fence,         stream_lines};
#define PIDCOMM_PASS_ENTRY(name) pass_##name,
#define PIDCOMM_REDUCER_ENTRY(ENUM, code, name, ctype) kReducerRow<ctype>,
