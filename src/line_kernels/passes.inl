// The passes, written once over an instruction set's line primitives. Included by each src/line_kernels/isa/*.cpp inside an anonymous
// namespace, after its type `Line` (a LineOf) and its `struct Isa`, which provides (all static, inline):
//   Line load_line(const std::byte *)            one line of the region
//   void store_line(std::byte *, Line)           one line of the region, whole, non-temporal
//   void store_words_non_temporal(std::byte *, Line)         64 aligned bytes of a host row, non-temporal
//   void flush_line(const std::byte *)           out of every cache
//   void prefetch_line(const std::byte *)          into the first cache
//   void prefetch_far(const std::byte *)           into the second, which leaves the first one's few line buffers to stores
//   void fence()                                 loads, flushes and non-temporal stores before it are done
//   Line transpose(Line)                         PIM order <-> host order (the domain transfer)
//   void butterfly<Bit>(Line &a, Line &b)        PIM order: a's lanes with the bit set <-> b's lanes without it
//   void butterfly_words<Bit>(Line &a, Line &b)  host order: the same for words
//   Line swap_lanes<Bit>(Line)                   PIM order: lanes l and l ^ (1 << Bit)
//   Line swap_words(Line, bit)                   host order: the same for words
//   Line shuffle_lanes(Line, control)            PIM order: lane l of every beat = lane map[l]; control = lane_control(map)
//   Line shuffle_words(Line, control)            host order: the same for words; control = word_control(map)
// A map has byte l for lane l.

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

/// visit(step) for every step of a call; the first one is as long as the call says, the others StepWords, but for the last.
template <uint32_t StepWords = kStepWords, class Visit>
void each_step(const SweepCall &call, const Visit &visit) {
  Step step = {0, call.first_words < kStepWords ? call.first_words : StepWords};
  for (; step.word < call.words; step.word += step.count, step.count = StepWords) {
    if (step.count > call.words - step.word) step.count = call.words - step.word;
    visit(step);
  }
}

/// Word `w` of a stream.
template <class Pointer>
Pointer line_at(Pointer stream, uint32_t w) {
  return stream + kLineStride * w;
}

/// Line `w` of a stream, and a prefetch of a later one.
template <void (*Prefetch)(const std::byte *) = &Isa::prefetch_line>
Line next_line(const SweepCall &call, const std::byte *stream, uint32_t w) {
  if (w + kPrefetchWords < call.prefetch_end) Prefetch(line_at(stream, w + kPrefetchWords));
  return Isa::load_line(line_at(stream, w));
}

/// Word `w` in a host row.
template <class Pointer>
Pointer host_word(Pointer row, uint32_t w) {
  return row + 8 * w;
}

uint32_t count_bits(uint32_t mask) { return static_cast<uint32_t>(__builtin_popcount(mask)); }

/// Exchanges a bit of the line index with a bit of the lane, in PIM order or in host order.
struct PimOrder {
  template <int Bit>
  static void butterfly(Line &a, Line &b) {
    Isa::template butterfly<Bit>(a, b);
  }
};
struct HostOrder {
  template <int Bit>
  static void butterfly(Line &a, Line &b) {
    Isa::template butterfly_words<Bit>(a, b);
  }
};

/// One stage of a tile transposition: lines i and i | Index exchange over lane bit Bit.
template <int Lines, int Index, int Bit, class Order>
void exchange_stage(Line *tile) {
  for (int i = 0; i < Lines; ++i)
    if ((i & Index) == 0) Order::template butterfly<Bit>(tile[i], tile[i | Index]);
}

/// Transposes Lines = 2^k lines over the lane bits of Mask: what `lane` has of line i (a byte of every beat, or a word) moves to the lane
/// whose selected bits are i, of the line whose number is the lane's selected bits.
template <int Mask, class Order = PimOrder>
void transpose_tile(Line *tile) {
  constexpr int kLines = 1 << __builtin_popcount(Mask);
  constexpr int kAfter0 = Mask & 1 ? 2 : 1;
  constexpr int kAfter1 = Mask & 2 ? 2 * kAfter0 : kAfter0;
  if constexpr ((Mask & 1) != 0) exchange_stage<kLines, 1, 0, Order>(tile);
  if constexpr ((Mask & 2) != 0) exchange_stage<kLines, kAfter0, 1, Order>(tile);
  if constexpr ((Mask & 4) != 0) exchange_stage<kLines, kAfter1, 2, Order>(tile);
}

/// Tiles == 2: the in-place exchange; both tiles are loaded before either is stored.
template <int Mask, int Tiles>
void transpose_words(const SweepCall &call) {
  constexpr int kLines = 1 << __builtin_popcount(Mask);
  for (uint32_t w = 0; w < call.words; ++w) {
    for (uint32_t item = 0; item < call.item_count; ++item) {
      const SweepItem &streams = call.items[item];
      Line tile[Tiles][kLines];
      for (int t = 0; t < Tiles; ++t)
        for (int i = 0; i < kLines; ++i) tile[t][i] = next_line<&Isa::prefetch_far>(call, streams.in[t * kLines + i], w);
      for (int t = 0; t < Tiles; ++t) {
        transpose_tile<Mask>(tile[t]);
        for (int i = 0; i < kLines; ++i) Isa::store_line(line_at(streams.out[t * kLines + i], w), tile[t][i]);
      }
    }
  }
}

template <int Mask>
void transpose_items(const SweepCall &call) {
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

void pass_transpose(const SweepCall &call) { PIDCOMM_BY_LANE_MASK(transpose_items, call); }

/// The lines in the buffer of an item.
Line *lines_of(const SweepCall &call, uint32_t item) { return reinterpret_cast<Line *>(call.item_buffers + kItemBufferBytes * item); }

/// Stores the step's lines, at lines[item * pitch], to the streams [first, last) of every item: the banks of a pair one after the other.
void put_streams(const SweepCall &call, Step step, const Line *lines, uint32_t pitch, uint32_t first, uint32_t last) {
  for (uint32_t o = first; o < last; o += call.out_pair_banks)
    for (uint32_t w = 0; w < step.count; ++w)
      for (uint32_t i = 0; i < call.item_count; ++i)
        for (uint32_t n = 0; n < call.out_pair_banks; ++n)
          Isa::store_line(line_at(call.items[i].out[o + n], step.word + w), lines[i * pitch + w]);
}

constexpr uint32_t kItemBufferLines = kItemBufferBytes / sizeof(Line);

/// Stores the first lines in the buffer of every item to all its streams.
void put_everywhere(const SweepCall &call, Step step) { put_streams(call, step, lines_of(call, 0), kItemBufferLines, 0, call.out_count); }

/// Stores `copies` versions of the step's lines, the first in every item's buffer: version(line, n) to block n of every destination.
template <class Version>
void put_versions(const SweepCall &call, Step step, uint32_t copies, const Version &version) {
  Line lines[kMaxItems][kStepWords];
  for (uint32_t n = 0; n < copies; ++n) {
    for (uint32_t i = 0; i < call.item_count; ++i)
      for (uint32_t w = 0; w < step.count; ++w) lines[i][w] = version(lines_of(call, i)[w], n);
    for (uint32_t o = n * call.out_pair_banks; o < call.out_count; o += copies * call.out_pair_banks)
      put_streams(call, step, lines[0], kStepWords, o, o + call.out_pair_banks);
  }
}

void pass_replicate(const SweepCall &call) {
  const uint32_t copies = 1u << count_bits(call.lane_mask);
  decltype(Isa::lane_control(0)) controls[8];
  for (uint32_t copy = 0; copy < copies; ++copy) {
    const uint32_t from = deposit_bits(copy, call.lane_mask);
    uint64_t map = 0;
    for (uint32_t lane = 0; lane < 8; ++lane) map |= uint64_t{(lane & ~call.lane_mask) | from} << 8 * lane;
    controls[copy] = Isa::lane_control(map);
  }
  each_step(call, [&](Step step) {
    for (uint32_t i = 0; i < call.item_count; ++i)
      for (uint32_t w = 0; w < step.count; ++w) lines_of(call, i)[w] = next_line(call, call.items[i].in[0], step.word + w);
    put_versions(call, step, copies, [&](Line line, uint32_t copy) { return Isa::shuffle_lanes(line, controls[copy]); });
  });
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
/* [operator] */
template <>
struct Operator<PIDCOMM_XOR> {
  template <class V>
  static V apply(V a, V b) {
    return a ^ b;
  }
};
/* [end] */

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

/// Lines, of all items, by which the loads of a reduction run after prefetches.
constexpr uint32_t kAheadLines = 64;

/// One visit of a reduction: the streams of Members members of a block, side by side.
struct Visit {
  uint32_t first_stream;
  Step step;
};

/// The visit that is `later` visits after number `index` of a step, cut to what may be fetched ahead.
Visit visit_after(const SweepCall &call, Step step, uint32_t index, uint32_t later, uint32_t members, uint32_t blocks) {
  const uint32_t visits = call.in_count / members, target = index + later;
  const uint32_t word = step.word + target / visits * step.count, v = target % visits;
  const uint32_t left = word < call.prefetch_end ? call.prefetch_end - word : 0;
  return {v / blocks * members * blocks + v % blocks, {word, left < step.count ? left : step.count}};
}

/// Streams to store by the time that `visited` of `visits` are done.
uint32_t share_of_streams(const SweepCall &call, uint32_t visited, uint32_t visits) {
  const uint32_t pairs = call.out_count / call.out_pair_banks;
  return pairs * visited / visits * call.out_pair_banks;
}

/// Where the lines of an item that wait for stream o begin.
const Line *waiting_lines(const SweepCall &call, const Store &store, uint32_t item, uint32_t o) {
  const uint32_t version = o / call.out_pair_banks & (store.versions - 1);
  return reinterpret_cast<const Line *>(store.lines) + item * kItemBufferLines + version * store.step.count;
}

template <class T, int Op, bool Transposes, int Members>
void accumulate_members(const SweepCall &call, Step step, std::byte *sums, uint32_t blocks, const Store *store) {
  const uint32_t visits = call.in_count / Members;
  const uint32_t visit_lines = Members * call.item_count * step.count;
  const uint32_t later = visit_lines < kAheadLines ? kAheadLines / visit_lines : 1;
  for (uint32_t index = 0; index < visits; ++index) {
    const uint32_t member = index / blocks * Members, block = index % blocks;
    const uint32_t s = member * blocks + block;
    const Visit ahead = visit_after(call, step, index, later, Members, blocks);
    const bool stores = store != nullptr;
    const uint32_t first_out = stores ? share_of_streams(call, index, visits) : 0;
    const uint32_t last_out = stores ? share_of_streams(call, index + 1, visits) : 0;
    const uint32_t words = stores && store->step.count > step.count ? store->step.count : step.count;
    for (uint32_t w = 0; w < words; ++w) {
      if (w < step.count) {
        for (uint32_t i = 0; i < call.item_count; ++i) {
          const std::byte *const *const in = call.items[i].in;
          Line *const sum = reinterpret_cast<Line *>(sums) + i * kItemBufferLines + block * step.count + w;
          Line line = kZeroLine;
          for (uint32_t m = 0; m < Members; ++m) {
            if (w < ahead.step.count) Isa::prefetch_line(line_at(in[ahead.first_stream + m * blocks], ahead.step.word + w));
            Line next = Isa::load_line(line_at(in[s + m * blocks], step.word + w));
            if constexpr (Transposes) next = Isa::transpose(next);
            line = m == 0 ? (member == 0 ? next : combine_lines<T, Op>(*sum, next)) : combine_lines<T, Op>(line, next);
          }
          *sum = line;
        }
      }
      if (stores && w < store->step.count)  // a share of what waits, so that reads and writes alternate
        for (uint32_t o = first_out; o < last_out; ++o)
          for (uint32_t i = 0; i < call.item_count; ++i)
            Isa::store_line(line_at(call.items[i].out[o], store->step.word + w), waiting_lines(call, *store, i, o)[w]);
    }
  }
}

template <class T, int Op, bool Transposes>
void accumulate(const SweepCall &call, Step step, std::byte *sums, uint32_t blocks, const Store *store) {
  const uint32_t members = call.in_count / blocks;
  const auto function = members % 8 == 0   ? accumulate_members<T, Op, Transposes, 8>
                        : members % 4 == 0 ? accumulate_members<T, Op, Transposes, 4>
                        : members % 2 == 0 ? accumulate_members<T, Op, Transposes, 2>
                                           : accumulate_members<T, Op, Transposes, 1>;
  function(call, step, sums, blocks, store);
}

template <class T, int Op, bool Bytewise, int Bit>
Line reduce_bit(Line line, uint32_t lane_mask) {
  if ((lane_mask >> Bit & 1) == 0) return line;
  if constexpr (Bytewise)
    return combine_lines<T, Op>(line, Isa::template swap_lanes<Bit>(line));
  else
    return combine_lines<T, Op>(line, Isa::swap_words(line, Bit));
}

template <class T, int Op, bool Bytewise>
void reduce_lanes(std::byte *lines, uint32_t words, uint32_t lane_mask) {
  Line *const line = reinterpret_cast<Line *>(lines);
  for (uint32_t w = 0; w < words; ++w) {
    Line reduced = reduce_bit<T, Op, Bytewise, 0>(line[w], lane_mask);
    reduced = reduce_bit<T, Op, Bytewise, 1>(reduced, lane_mask);
    line[w] = reduce_bit<T, Op, Bytewise, 2>(reduced, lane_mask);
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
  return {{accumulate<T, Op, false>, accumulate<T, Op, true>}, reduce_lanes<T, Op, Bytewise>, combine<T, Op>};
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

/// Exchanges the sums of a step so that line i of an item holds what lane i of the destination contributes.
template <int Mask, class Order>
void exchange_sums_in(const SweepCall &call, Step step) {
  constexpr int kLines = 1 << __builtin_popcount(Mask);
  for (uint32_t item = 0; item < call.item_count; ++item) {
    Line *const sums = lines_of(call, item);
    for (uint32_t w = 0; w < step.count; ++w) {
      Line tile[kLines];
      for (uint32_t i = 0; i < kLines; ++i) tile[i] = sums[i * step.count + w];
      const uint32_t ahead = step.word + step.count + w;
      if (ahead < call.prefetch_end)  // the first member's lines of the next step, so that memory does not idle here
        for (int stream = 0; stream < kLines; ++stream) Isa::prefetch_far(line_at(call.items[item].in[stream], ahead));
      transpose_tile<Mask, Order>(tile);
      for (uint32_t i = 0; i < kLines; ++i) sums[i * step.count + w] = tile[i];
    }
  }
}
template <int Mask>
void exchange_sums(const SweepCall &call, Step step) {
  call.host_order ? exchange_sums_in<Mask, HostOrder>(call, step) : exchange_sums_in<Mask, PimOrder>(call, step);
}

void transpose_lines(Line *lines, uint32_t count) {
  for (uint32_t w = 0; w < count; ++w) lines[w] = Isa::transpose(lines[w]);
}

/// Sums of a step: see Reducer::accumulate.
void accumulate_step(const SweepCall &call, Step step, Line *sums, uint32_t blocks, const Store *store) {
  call.reducer->accumulate[call.load_transposes](call, step, bytes_of(sums), blocks, store);
}

/// The sums of a step combined pairwise, over `blocks` blocks of an item, into the first.
void combine_blocks(const SweepCall &call, Step step, Line *sums, uint32_t blocks) {
  for (uint32_t pace = 1; pace < blocks; pace *= 2)
    for (uint32_t i = 0; i < blocks; i += 2 * pace)
      call.reducer->combine(bytes_of(&sums[i * step.count]), bytes_of(&sums[(i + pace) * step.count]), step.count * sizeof(Line));
}

void pass_reduce_blocks(const SweepCall &call) {
  const uint32_t blocks = 1u << count_bits(call.lane_mask);
  each_step<kReduceStepWords>(call, [&](Step step) {
    accumulate_step(call, step, lines_of(call, 0), blocks, nullptr);
    PIDCOMM_BY_LANE_MASK(exchange_sums, call, step);
    for (uint32_t item = 0; item < call.item_count; ++item) {
      combine_blocks(call, step, lines_of(call, item), blocks);
      if (call.host_order) transpose_lines(lines_of(call, item), step.count);
    }
    put_everywhere(call, step);
  });
}

/// Reduces the sums of every item over the lanes; the lines end in PIM order or in host order.
void reduce_sums(const SweepCall &call, Step step, Line *sums, bool to_pim_order) {
  for (uint32_t i = 0; i < call.item_count; ++i) {
    Line *const lines = sums + i * kItemBufferLines;
    call.reducer->reduce_lanes(bytes_of(lines), step.count, call.lane_mask);
    if (call.host_order == to_pim_order) transpose_lines(lines, step.count);
  }
}

/// Stores all that waits.
void put_waiting(const SweepCall &call, const Store &store) {
  for (uint32_t o = 0; o < call.out_count; o += call.out_pair_banks)
    put_streams(call, store.step, waiting_lines(call, store, 0, o), kItemBufferLines, o, o + call.out_pair_banks);
}

/// The lines of a step are stored while those of the next one are loaded.
void pass_reduce_lanes(const SweepCall &call) {
  Line *const buffers[2] = {lines_of(call, 0), lines_of(call, 0) + kStepWords};
  Store store = {nullptr, {0, 0}, 1};
  uint32_t turn = 0;
  each_step(call, [&](Step step) {
    Line *const sums = buffers[turn++ % 2];
    accumulate_step(call, step, sums, 1, store.lines == nullptr ? nullptr : &store);
    reduce_sums(call, step, sums, true);
    store = {bytes_of(sums), step, 1};
  });
  put_waiting(call, store);
}

/// Stores the first lines in the buffer of every item, in host order, to host rows: stream o receives the o-th of the lanes in a mask.
void put_words(const SweepCall &call, Step step, uint32_t lanes) {
  for (uint32_t i = 0; i < call.item_count; ++i) {
    for (uint32_t o = 0; o < call.out_count; ++o) {
      const uint32_t lane = deposit_bits(o, lanes);
      for (uint32_t w = 0; w < step.count; ++w)
        store_word(host_word(call.items[i].out[o], step.word + w), load_word(bytes_of(&lines_of(call, i)[w]) + 8 * lane));
    }
  }
}

void pass_reduce_to_host(const SweepCall &call) {
  each_step(call, [&](Step step) {
    accumulate_step(call, step, lines_of(call, 0), 1, nullptr);
    reduce_sums(call, step, lines_of(call, 0), false);
    put_words(call, step, ~call.lane_mask & 7);
  });
}

// ---- after PE-assisted reordering ----

/// Rotates lines over the lanes of their groups, in the order that the call works in.
class Rotation {
 public:
  explicit Rotation(const SweepCall &call) : slots_(1u << count_bits(call.lane_mask)), is_host_order_(call.host_order) {
    for (uint32_t slot = 0; slot < slots_; ++slot) {
      uint64_t map = 0;
      for (uint32_t lane = 0; lane < 8; ++lane) {
        const uint32_t index = extract_bits(lane, call.lane_mask);
        const uint32_t from = deposit_bits((index - slot) & (slots_ - 1), call.lane_mask);
        map |= uint64_t{(lane & ~call.lane_mask) | from} << 8 * lane;
      }
      lanes_[slot] = Isa::lane_control(map);
      words_[slot] = Isa::word_control(map);
    }
  }

  uint32_t slots() const { return slots_; }

  /// What the lane of index c has goes to the lane of index c + slot.
  Line rotated(Line line, uint32_t slot) const {
    return is_host_order_ ? Isa::shuffle_words(line, words_[slot]) : rotated_lanes(line, slot);
  }
  /// The same for lines in PIM order, whatever order the call works in.
  Line rotated_lanes(Line line, uint32_t slot) const { return Isa::shuffle_lanes(line, lanes_[slot]); }

 private:
  uint32_t slots_;
  bool is_host_order_;
  decltype(Isa::lane_control(0)) lanes_[8];
  decltype(Isa::word_control(0)) words_[8];
};

/// A line on its way from or to where the other order is used.
Line reordered(Line line, bool transposes) { return transposes ? Isa::transpose(line) : line; }

void pass_rotate(const SweepCall &call) {
  const Rotation rotation(call);
  Line lines[2 * kMaxTileLines];
  for (uint32_t w = 0; w < call.words; ++w) {
    for (uint32_t i = 0; i < call.item_count; ++i) {
      const SweepItem &streams = call.items[i];
      for (uint32_t s = 0; s < call.in_count; ++s) lines[s] = next_line<&Isa::prefetch_far>(call, streams.in[s], w);
      for (uint32_t s = 0; s < call.in_count; ++s) {
        const Line rotated = rotation.rotated(reordered(lines[s], call.load_transposes), s & (rotation.slots() - 1));
        Isa::store_line(line_at(streams.out[s], w), reordered(rotated, call.store_transposes));
      }
    }
  }
}

void pass_replicate_rotated(const SweepCall &call) {
  const Rotation rotation(call);
  each_step(call, [&](Step step) {
    for (uint32_t i = 0; i < call.item_count; ++i)
      for (uint32_t w = 0; w < step.count; ++w)
        lines_of(call, i)[w] = reordered(next_line(call, call.items[i].in[0], step.word + w), call.load_transposes);
    put_versions(call, step, rotation.slots(),
                 [&](Line line, uint32_t slot) { return reordered(rotation.rotated(line, slot), call.store_transposes); });
  });
}

/// Accumulates the slots of every item and combines them, each rotated to the lanes that it is for: the first lines in the buffer of the
/// item.
void reduce_slots(const SweepCall &call, Step step, const Rotation &rotation, const Store *store) {
  accumulate_step(call, step, lines_of(call, 0), rotation.slots(), store);
  for (uint32_t i = 0; i < call.item_count; ++i) {
    Line *const sums = lines_of(call, i);
    for (uint32_t slot = 0; slot < rotation.slots(); ++slot) {
      for (uint32_t w = 0; w < step.count; ++w) {
        const uint32_t ahead = step.word + step.count + w;
        if (ahead < call.prefetch_end) Isa::prefetch_far(line_at(call.items[i].in[slot], ahead));  // of the next step, meanwhile
        Line &sum = sums[slot * step.count + w];
        sum = rotation.rotated(sum, slot);
      }
    }
    combine_blocks(call, step, sums, rotation.slots());
  }
}

void pass_reduce_rotated(const SweepCall &call) {
  const Rotation rotation(call);
  each_step<kReduceStepWords>(call, [&](Step step) {
    reduce_slots(call, step, rotation, nullptr);
    for (uint32_t i = 0; call.store_transposes && i < call.item_count; ++i) transpose_lines(lines_of(call, i), step.count);
    put_everywhere(call, step);
  });
}

/// As pass_reduce_lanes, the lines of a step are stored while those of the next one are loaded.
void pass_reduce_rotated_replicate(const SweepCall &call) {
  const Rotation rotation(call);
  constexpr uint32_t kSumLines = kMaxTileLines * kStepWords;  // those that wait are behind them
  static_assert(2 * kSumLines <= kItemBufferLines);
  Store store = {nullptr, {0, 0}, rotation.slots()};
  each_step(call, [&](Step step) {
    reduce_slots(call, step, rotation, store.lines == nullptr ? nullptr : &store);
    for (uint32_t i = 0; i < call.item_count; ++i) {
      Line *const sums = lines_of(call, i);
      Line *const waiting = sums + kSumLines;
      if (call.store_transposes) transpose_lines(sums, step.count);  // once: PIM order from here on
      for (uint32_t slot = 0; slot < rotation.slots(); ++slot)
        for (uint32_t w = 0; w < step.count; ++w) waiting[slot * step.count + w] = rotation.rotated_lanes(sums[w], slot);
    }
    store = {bytes_of(lines_of(call, 0) + kSumLines), step, rotation.slots()};
  });
  put_waiting(call, store);
}

void pass_reduce_rotated_to_host(const SweepCall &call) {
  const Rotation rotation(call);
  each_step(call, [&](Step step) {
    reduce_slots(call, step, rotation, nullptr);
    for (uint32_t i = 0; !call.host_order && i < call.item_count; ++i) transpose_lines(lines_of(call, i), step.count);
    put_words(call, step, 0xFF);
  });
}

// ---- from member to member ----

void pass_member_step(const SweepCall &call) {
  const auto control = Isa::lane_control(call.lane_map);
  each_step(call, [&](Step step) {
    for (uint32_t i = 0; i < call.item_count; ++i)
      for (uint32_t w = 0; w < step.count; ++w)
        lines_of(call, i)[w] = Isa::shuffle_lanes(next_line(call, call.items[i].in[0], step.word + w), control);
    put_everywhere(call, step);
  });
}

/// The lanes are moved in PIM order in any case: bytes of a beat.
void pass_member_step_reduce(const SweepCall &call) {
  const auto control = Isa::lane_control(call.lane_map);
  each_step(call, [&](Step step) {
    for (uint32_t i = 0; i < call.item_count; ++i) {
      const std::byte *const *const in = call.items[i].in;
      Line *const first = lines_of(call, i), *const second = first + kStepWords;
      for (uint32_t w = 0; w < step.count; ++w) {
        const Line line = next_line(call, in[0], step.word + w);
        const Line other = call.in_count == 1 ? line : next_line(call, in[1], step.word + w);
        first[w] = reordered(line, call.load_transposes);
        second[w] = reordered(Isa::shuffle_lanes(other, control), call.load_transposes);
      }
      call.reducer->combine(bytes_of(first), bytes_of(second), step.count * sizeof(Line));
      if (call.store_transposes) transpose_lines(first, step.count);
    }
    put_everywhere(call, step);
  });
}

// ---- host rows ----

/// Bytes by which loads of host rows run after prefetches. Past the end of a row this touches nothing that can fault.
constexpr uint64_t kRowPrefetchBytes = 512;

bool is_aligned(const std::byte *pointer) { return reinterpret_cast<uintptr_t>(pointer) % sizeof(Line) == 0; }

/// Words of a row that go to the host in one turn, or come from it: rows are far apart, and memory likes a few lines of each at once.
constexpr uint32_t kTurnWords = 2 * kStepWords;

/// Lines -> rows, a few words.
void words_to_host(const SweepItem &item, const SweepCall &call, Step step) {
  for (uint32_t w = step.word; w < step.word + step.count; ++w) {
    Line line = Isa::transpose(next_line(call, item.in[0], w));
    for (uint32_t lane = 0; lane < 8; ++lane)
      if (item.out[lane] != nullptr) store_word(host_word(item.out[lane], w), load_word(bytes_of(&line) + 8 * lane));
  }
}

/// Words by which loads of lines that go to host rows run after prefetches.
constexpr uint32_t kToHostPrefetchWords = 32;

/// Lines -> rows, whole tiles of 8 words.
template <bool NonTemporal>
void tiles_to_host(const SweepItem &item, const SweepCall &call, Step turn) {
  Line rows[kTurnWords / kStepWords][8];
  const uint32_t tiles = turn.count / kStepWords;
  for (uint32_t t = 0; t < tiles; ++t) {
    Line tile[kMaxTileLines];
    for (uint32_t w = 0; w < kStepWords; ++w) tile[w] = Isa::transpose(Isa::load_line(line_at(item.in[0], turn.word + t * kStepWords + w)));
    transpose_tile<7, HostOrder>(tile);
    for (uint32_t lane = 0; lane < 8; ++lane) rows[t][lane] = tile[lane];
  }
  for (uint32_t lane = 0; lane < 8; ++lane) {
    if (item.out[lane] == nullptr) continue;
    std::byte *const to = host_word(item.out[lane], turn.word);
    for (uint32_t t = 0; t < tiles; ++t) {
      const uint32_t ahead = turn.word + t * kStepWords + lane + kToHostPrefetchWords;
      if (ahead < call.prefetch_end) Isa::prefetch_far(line_at(item.in[0], ahead));
      if (NonTemporal)
        Isa::store_words_non_temporal(to + sizeof(Line) * t, rows[t][lane]);
      else
        store_words(to + sizeof(Line) * t, rows[t][lane]);
    }
  }
}

/// visit_words(step) for the words before and after whole tiles, visit_tiles(turn) for a few tiles at once.
template <class VisitWords, class VisitTiles>
void each_turn(const SweepCall &call, const VisitWords &visit_words, const VisitTiles &visit_tiles) {
  uint32_t word = call.first_words == kStepWords ? 0 : call.first_words < call.words ? call.first_words : call.words;
  if (word != 0) visit_words({0, word});
  for (uint32_t left = call.words - word; left >= kStepWords; left = call.words - word) {
    const uint32_t count = left < kTurnWords ? left / kStepWords * kStepWords : kTurnWords;
    visit_tiles({word, count});
    word += count;
  }
  if (word != call.words) visit_words({word, call.words - word});
}

void pass_to_host(const SweepCall &call) {
  // Non-temporal stores to rows are of whole lines: the steps are such that either all or none can be.
  bool is_non_temporal = call.non_temporal_rows;
  for (uint32_t i = 0; i < call.item_count; ++i)
    for (uint32_t lane = 0; lane < 8; ++lane)
      is_non_temporal &= call.items[i].out[lane] == nullptr || is_aligned(host_word(call.items[i].out[lane], call.first_words));
  const auto for_items = [&](auto function) {
    return [&call, function](Step step) {
      for (uint32_t i = 0; i < call.item_count; ++i) function(call.items[i], call, step);
    };
  };
  if (is_non_temporal)
    each_turn(call, for_items(words_to_host), for_items(tiles_to_host<true>));
  else
    each_turn(call, for_items(words_to_host), for_items(tiles_to_host<false>));
}

/// How the lanes of an item have their rows.
enum class RowLanes { some_missing, all, shared };
RowLanes row_lanes(const std::byte *const *rows) {
  bool has_all = true, is_shared = rows[0] != nullptr;
  for (uint32_t lane = 0; lane < 8; ++lane) {
    has_all &= rows[lane] != nullptr;
    is_shared &= rows[lane] == rows[0];
  }
  return is_shared ? RowLanes::shared : has_all ? RowLanes::all : RowLanes::some_missing;
}

/// 8 words of 8 rows -> lines in PIM order; put(w, line) for each. Whole: no row is missing.
template <bool Whole, class Put>
void tile_from_host(const SweepItem &item, uint32_t word, const Put &put) {
  Line tile[kMaxTileLines];
  for (uint32_t lane = 0; lane < 8; ++lane) {
    tile[lane] = kZeroLine;
    if (!Whole && item.in[lane] == nullptr) continue;
    const std::byte *const from = host_word(item.in[lane], word);
    __builtin_prefetch(from + kRowPrefetchBytes);
    tile[lane] = load_words(from);
  }
  transpose_tile<7, HostOrder>(tile);
  for (uint32_t w = 0; w < kStepWords; ++w) put(w, Isa::transpose(tile[w]));
}

/// The same where all lanes have the same row.
template <class Put>
void shared_from_host(const std::byte *row, uint32_t word, const Put &put) {
  __builtin_prefetch(host_word(row, word) + kRowPrefetchBytes);
  for (uint32_t w = 0; w < kStepWords; ++w) {
    Line line;
    for (Line::Part &part : line.part) part = Line::Part{} + load_word(host_word(row, word + w));
    put(w, Isa::transpose(line));
  }
}

/// A few words of rows -> lines in PIM order; put(w, line) for each.
template <class Put>
void words_from_host(const SweepItem &item, Step step, const Put &put) {
  for (uint32_t w = 0; w < step.count; ++w) {
    Line line = kZeroLine;
    for (uint32_t lane = 0; lane < 8; ++lane)
      if (item.in[lane] != nullptr) store_word(bytes_of(&line) + 8 * lane, load_word(host_word(item.in[lane], step.word + w)));
    put(w, Isa::transpose(line));
  }
}

template <class Put>
void from_host(const SweepItem &item, Step step, RowLanes lanes, const Put &put) {
  if (step.count != kStepWords)
    words_from_host(item, step, put);
  else if (lanes == RowLanes::shared)
    shared_from_host(item.in[0], step.word, put);
  else if (lanes == RowLanes::all)
    tile_from_host<true>(item, step.word, put);
  else
    tile_from_host<false>(item, step.word, put);
}

/// Puts the bytes of the lanes to keep, as they are in memory, into the lines that will be stored there.
void keep_bytes(const SweepCall &call, Step step, const std::byte *stream, Line *lines) {
  uint64_t keep_beat = 0;
  for (uint32_t lane = 0; lane < 8; ++lane)
    if (call.keep_lanes >> lane & 1) keep_beat |= uint64_t{0xFF} << 8 * lane;
  for (uint32_t w = 0; w < step.count; ++w) {
    const Line old = Isa::load_line(line_at(stream, step.word + w));
    for (int i = 0; i < Line::kParts; ++i) lines[w].part[i] = (lines[w].part[i] & ~keep_beat) | (old.part[i] & keep_beat);
  }
}

void pass_from_host(const SweepCall &call) {
  RowLanes lanes[kMaxItems];
  for (uint32_t i = 0; i < call.item_count; ++i) lanes[i] = row_lanes(call.items[i].in);
  if (call.out_count == 1 && call.keep_lanes == 0) {
    each_step(call, [&](Step step) {
      for (uint32_t i = 0; i < call.item_count; ++i) {
        std::byte *const to = line_at(call.items[i].out[0], step.word);
        from_host(call.items[i], step, lanes[i], [to](uint32_t w, Line line) { Isa::store_line(line_at(to, w), line); });
      }
    });
    return;
  }
  each_step<kItemBufferLines>(call, [&](Step step) {
    for (uint32_t i = 0; i < call.item_count; ++i) {
      const SweepItem &item = call.items[i];
      Line *lines = lines_of(call, i);
      for (uint32_t done = 0; done < step.count; done += kStepWords, lines += kStepWords) {
        const Step part = {step.word + done, step.count - done < kStepWords ? step.count - done : kStepWords};
        from_host(item, part, lanes[i], [lines](uint32_t w, Line line) { lines[w] = line; });
        if (call.keep_lanes != 0) keep_bytes(call, part, item.out[0], lines);
      }
    }
    put_everywhere(call, step);
  });
}

// ---- coherence and the limit ----

void flush_lines(const std::byte *line, uint32_t words, uint32_t banks) {
  for (uint32_t w = 0; w < words; ++w)
    for (uint32_t bank = 0; bank < banks; ++bank) Isa::flush_line(line + kLineStride * w + kLineBytes * bank);
}

void copy_lines(const CopyCall &call) {
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
            if (prefetches)
              call.ahead_level == 1 ? Isa::prefetch_line(line_at(call.in[s] + at, call.ahead_words))
                                    : Isa::prefetch_far(line_at(call.in[s] + at, call.ahead_words));
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
#define PIDCOMM_KERNELS(ENUM, isa_name)                                                                                         \
  extern const Kernels kKernels##ENUM;                                                                                          \
  const Kernels kKernels##ENUM = {                                                                                              \
      PIDCOMM_ISA_##ENUM, isa_name,  {PIDCOMM_PASSES(PIDCOMM_PASS_ENTRY)}, {PIDCOMM_TYPES(PIDCOMM_REDUCER_ENTRY)}, flush_lines, \
      Isa::fence,         copy_lines};
#define PIDCOMM_PASS_ENTRY(name) pass_##name,
#define PIDCOMM_REDUCER_ENTRY(ENUM, code, name, ctype) kReducerRow<ctype>,
