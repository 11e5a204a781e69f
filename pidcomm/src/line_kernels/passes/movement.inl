// Helpers for lines and steps, and the passes that move lanes: transpose (alltoall), replicate
// (allgather). A part of passes.inl.

constexpr int kMaxTileLines = 8;

/// A line of zeros.
constexpr Line kZeroLine = {};

Line load_words(const std::byte *from) {
  Line line;
  for (int i = 0; i < Line::kParts; ++i)
    __builtin_memcpy(&line.part[i], from + i * Line::kPartBytes, Line::kPartBytes);
  return line;
}
void store_words(std::byte *to, Line line) {
  for (int i = 0; i < Line::kParts; ++i)
    __builtin_memcpy(to + i * Line::kPartBytes, &line.part[i], Line::kPartBytes);
}

bool is_aligned(const std::byte *pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % sizeof(Line) == 0;
}

/// Stores 8 words of a host row.
void store_row_words(const SweepCall &call, std::byte *to, Line words) {
  if (call.non_temporal_rows && is_aligned(to))
    Isa::store_words_non_temporal(to, words);
  else
    store_words(to, words);
}

uint64_t load_word(const std::byte *from) {
  uint64_t word;
  __builtin_memcpy(&word, from, sizeof word);
  return word;
}
void store_word(std::byte *to, uint64_t word) { __builtin_memcpy(to, &word, sizeof word); }

std::byte *bytes_of(Line *line) { return reinterpret_cast<std::byte *>(line); }

/// Calls visit(step) for every step of a call. The first step has the call's first_words words, and
/// later steps have step_words words; the last step may have fewer words.
template <class Visit>
void each_step(const SweepCall &call, const Visit &visit, uint32_t step_words = kStepWords) {
  Step step = {0, call.first_words < kStepWords ? call.first_words : step_words};
  for (; step.word < call.words; step.word += step.count, step.count = step_words) {
    if (step.count > call.words - step.word) step.count = call.words - step.word;
    visit(step);
  }
}

/// Calls visit(part) for every kStepWords words of a step; the last part may have fewer words.
template <class Visit>
void each_part(Step step, const Visit &visit) {
  for (uint32_t done = 0; done < step.count; done += kStepWords)
    visit(Step{step.word + done, step.count - done < kStepWords ? step.count - done : kStepWords});
}

/// Returns the line of word `w` of a stream.
template <class Pointer>
Pointer line_at(Pointer stream, uint32_t w) {
  return stream + kLineStride * w;
}

/// Prefetches a line into the cache that the tuning of the pass gives.
void prefetch(const SweepCall &call, const std::byte *line) {
  call.tuning.ahead_level == 1 ? Isa::prefetch_line(line) : Isa::prefetch_far(line);
}

/// Returns how many words a pass prefetches ahead: at most the words of a call, so that a call with
/// few words prefetches the first lines of the next call.
uint32_t prefetch_distance(const SweepCall &call) {
  return call.prefetch_end < call.tuning.ahead ? call.prefetch_end : call.tuning.ahead;
}

/// Prefetches the line that follows word `w` of input stream `s` of an item at the distance of the
/// pass, or a line of the next call.
[[gnu::always_inline]] inline void prefetch_after(const SweepCall &call, uint32_t item, uint32_t s,
                                                  uint32_t w) {
  const uint32_t ahead = w + prefetch_distance(call);
  if (ahead < call.prefetch_end)
    prefetch(call, line_at(call.items[item].in[s], ahead));
  else if (item < call.next.item_count && s < call.next.in_count &&
           ahead - call.prefetch_end < call.next.prefetch_end)
    prefetch(call, line_at(call.next.items[item].in[s], ahead - call.prefetch_end));
}

/// Loads line `w` of input stream `s` of an item, and prefetches a later line.
Line next_line(const SweepCall &call, uint32_t item, uint32_t s, uint32_t w) {
  prefetch_after(call, item, s, w);
  return Isa::load_line(line_at(call.items[item].in[s], w));
}

/// Replaces the bytes of some lanes in `line` by their bytes in memory.
Line with_kept_lanes(Line line, const std::byte *memory, uint32_t keep_lanes) {
  uint64_t keep_beat = 0;
  for (uint32_t lane = 0; lane < 8; ++lane)
    if (keep_lanes >> lane & 1) keep_beat |= uint64_t{0xFF} << 8 * lane;
  const Line old = Isa::load_line(memory);
  for (int i = 0; i < Line::kParts; ++i)
    line.part[i] = (line.part[i] & ~keep_beat) | (old.part[i] & keep_beat);
  return line;
}

/// Returns the address of word `w` in a host row.
template <class Pointer>
Pointer host_word(Pointer row, uint32_t w) {
  return row + 8 * w;
}

uint32_t count_bits(uint32_t mask) { return static_cast<uint32_t>(__builtin_popcount(mask)); }

/// A parameter of a function template whose value callers pass at run time. The instruction sets
/// without Isa::kHasInstances have this instance alone, and the others an instance per value.
constexpr int kAny = -1;
constexpr int instance_for(int value) { return Isa::kHasInstances ? value : kAny; }

/// The value of a parameter: a constant, or, for kAny, a variable.
template <int Value>
struct Parameter {
  constexpr explicit Parameter(uint32_t) {}
  constexpr operator uint32_t() const { return Value; }
};
template <>
struct Parameter<kAny> {
  uint32_t value;
  constexpr explicit Parameter(uint32_t at_run_time) : value(at_run_time) {}
  constexpr operator uint32_t() const { return value; }
};

/// PimOrder and HostOrder exchange a bit of the line index with a bit of the lane, in PIM order or
/// in host order.
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

/// Carries out one stage of a tile transposition: a butterfly over lane bit Bit on each pair of
/// lines i and i | Index.
template <int Lines, int Index, int Bit, class Order>
[[gnu::always_inline]] inline void exchange_stage(Line *tile) {
  for (int i = 0; i < Lines; ++i)
    if ((i & Index) == 0) Order::template butterfly<Bit>(tile[i], tile[i | Index]);
}

/// Transposes Lines = 2^k lines over the lane bits of Mask. The data of `lane` in line i (a byte of
/// every beat, or a word) moves to the lane whose selected bits are i, in the line whose index is
/// the selected bits of `lane`.
template <int Mask, class Order = PimOrder>
[[gnu::always_inline]] inline void transpose_tile(Line *tile) {
  constexpr int kLines = 1 << __builtin_popcount(Mask);
  constexpr int kAfter0 = Mask & 1 ? 2 : 1;
  constexpr int kAfter1 = Mask & 2 ? 2 * kAfter0 : kAfter0;
  if constexpr ((Mask & 1) != 0) exchange_stage<kLines, 1, 0, Order>(tile);
  if constexpr ((Mask & 2) != 0) exchange_stage<kLines, kAfter0, 1, Order>(tile);
  if constexpr ((Mask & 4) != 0) exchange_stage<kLines, kAfter1, 2, Order>(tile);
}

/// Transposes one tile for each word of a strip, or exchanges two tiles in place (Tiles == 2). The
/// function loads both tiles before it stores a tile. Finds the lines to prefetch once for a strip,
/// because conditions for each line take time. Without a next call, the function prefetches the
/// lines that it loads.
template <int Mask, int Tiles>
void transpose_strip(const SweepCall &call, uint32_t item, Step strip) {
  constexpr uint32_t kLines = 1 << __builtin_popcount(Mask), kStreams = Tiles * kLines;
  const SweepItem &streams = call.items[item];
  const uint32_t ahead = strip.word + prefetch_distance(call),
                 words_of_call = ahead < call.prefetch_end ? call.prefetch_end - ahead : 0;
  const bool has_next = item < call.next.item_count && call.next.in_count == call.in_count &&
                        ahead + strip.count <= call.prefetch_end + call.next.prefetch_end;
  const auto past_end = static_cast<std::ptrdiff_t>(ahead) - call.prefetch_end;
  const std::byte *later[2][kStreams];  // lines of this call, and lines of the next call
  for (uint32_t s = 0; s < kStreams; ++s) {
    later[0][s] = line_at(streams.in[s], ahead);
    later[1][s] =
        has_next ? call.next.items[item].in[s] + past_end * static_cast<std::ptrdiff_t>(kLineStride)
                 : line_at(streams.in[s], strip.word);
  }
  const bool is_near = call.tuning.ahead_level == 1;
  for (uint32_t w = 0; w < strip.count; ++w) {
    const std::byte *const *const from = later[w >= words_of_call];
    Line tile[Tiles][kLines];
    for (uint32_t s = 0; s < kStreams; ++s) {
      const std::byte *const line = line_at(from[s], w);
      is_near ? Isa::prefetch_line(line) : Isa::prefetch_far(line);
      tile[s / kLines][s % kLines] = Isa::load_line(line_at(streams.in[s], strip.word + w));
    }
    for (int t = 0; t < Tiles; ++t) transpose_tile<Mask>(tile[t]);
    for (uint32_t s = 0; s < kStreams; ++s)
      Isa::store_line(line_at(streams.out[s], strip.word + w), tile[s / kLines][s % kLines]);
  }
}

/// A short strip keeps prefetched lines in the caches: if streams are a power of two apart, equal
/// lines of all streams compete for a few places there. A strip with fewer than 4 lines of an item
/// takes more time.
template <int Mask, int Tiles>
void transpose_words(const SweepCall &call) {
  constexpr uint32_t kLeastWords = 4 >> __builtin_popcount(Mask);
  const uint32_t words =
      call.tuning.step_words < kLeastWords ? kLeastWords : call.tuning.step_words;
  for (Step strip = {0, words}; strip.word < call.words; strip.word += strip.count) {
    if (strip.count > call.words - strip.word) strip.count = call.words - strip.word;
    for (uint32_t item = 0; item < call.item_count; ++item)
      transpose_strip<Mask, Tiles>(call, item, strip);
  }
}

template <int Mask>
void transpose_items(const SweepCall &call) {
  if (call.in_count == 1u << __builtin_popcount(Mask))
    transpose_words<Mask, 1>(call);
  else
    transpose_words<Mask, 2>(call);
}

/// Calls the instance of a function template for the lane mask, with one jump per call of the pass.
#define PIDCOMM_BY_LANE_MASK(function, ...)                                                      \
  do {                                                                                           \
    using Function = decltype(&function<0>);                                                     \
    static constexpr Function kByMask[8] = {function<0>, function<1>, function<2>, function<3>,  \
                                            function<4>, function<5>, function<6>, function<7>}; \
    kByMask[call.lane_mask](__VA_ARGS__);                                                        \
  } while (false)

void pass_transpose(const SweepCall &call) { PIDCOMM_BY_LANE_MASK(transpose_items, call); }

/// Returns the lines in the buffer of an item.
Line *lines_of(const SweepCall &call, uint32_t item) {
  return reinterpret_cast<Line *>(call.item_buffers + kItemBufferBytes * item);
}

/// Stores the step's lines, at lines[item * pitch], to the streams [first, last) of every item. The
/// function stores the two lines of a bank pair directly after each other.
void put_streams(const SweepCall &call, Step step, const Line *lines, uint32_t pitch,
                 uint32_t first, uint32_t last) {
  for (uint32_t o = first; o < last; o += call.out_pair_banks) {
    std::byte *to[2 * kMaxItems];
    const Line *from[2 * kMaxItems];
    uint32_t count = 0;
    for (uint32_t i = 0; i < call.item_count; ++i)
      for (uint32_t n = 0; n < call.out_pair_banks; ++n, ++count) {
        to[count] = line_at(call.items[i].out[o + n], step.word);
        from[count] = lines + i * pitch;
      }
    for (uint32_t w = 0; w < step.count; ++w)
      for (uint32_t k = 0; k < count; ++k) Isa::store_line(line_at(to[k], w), from[k][w]);
  }
}

/// Whether two streams are at the same words of the first and the second bank of a pair. Either may
/// be null.
bool are_bank_pair(const std::byte *first, const std::byte *second) {
  const auto address = reinterpret_cast<uintptr_t>(first);
  return address % kLineStride == 0 &&
         reinterpret_cast<uintptr_t>(second) == address + sizeof(Line);
}

/// Stores `words` lines to a bank.
void put_bank(std::byte *to, const Line *lines, uint32_t words) {
  for (uint32_t w = 0; w < words; ++w) Isa::store_line(line_at(to, w), lines[w]);
}

/// Stores `words` lines to the first bank of a pair, and as many to the second. The two lines of a
/// word are adjacent. Some CPUs take up to twice the time if many other stores are between them;
/// see bench/memory.cpp.
[[gnu::noinline]] void put_bank_pair(std::byte *first, const Line *lines, const Line *second_lines,
                                     uint32_t words) {
  for (uint32_t w = 0; w < words; ++w) {
    Isa::store_line(line_at(first, w), lines[w]);
    Isa::store_line(line_at(first, w) + sizeof(Line), second_lines[w]);
  }
}

/// Stores `words` lines to each of `count` streams: the lines from(k) to the stream to(k). If these
/// are the streams of consecutive entangled groups, the function visits the two banks of a pair
/// together.
template <class To, class From>
[[gnu::always_inline]] inline void put_bank_pairs(uint32_t count, uint32_t words, const To &to,
                                                  const From &from) {
  for (uint32_t k = 0; k < count; ++k) {
    std::byte *const first = to(k);
    if (k >= kPairEgs && are_bank_pair(to(k - kPairEgs), first)) continue;
    const Line *const lines = from(k);
    if (k + kPairEgs < count && are_bank_pair(first, to(k + kPairEgs)))
      put_bank_pair(first, lines, from(k + kPairEgs), words);
    else
      put_bank(first, lines, words);
  }
}

constexpr uint32_t kItemBufferLines = kItemBufferBytes / sizeof(Line);

/// Stores the first lines in the buffer of every item to all output streams of the item.
void put_everywhere(const SweepCall &call, Step step) {
  const bool pairs_are_adjacent =
      call.out_pair_banks == 2 ||
      (call.item_count > 1 && are_bank_pair(call.items[0].out[0], call.items[1].out[0]));
  if (pairs_are_adjacent || call.out_count <= kPairEgs)
    return put_streams(call, step, lines_of(call, 0), kItemBufferLines, 0, call.out_count);
  put_bank_pairs(
      call.item_count * call.out_count, step.count,
      [&](uint32_t k) {
        return line_at(call.items[k / call.out_count].out[k % call.out_count], step.word);
      },
      [&](uint32_t k) { return lines_of(call, k / call.out_count); });
}

/// If blocks have fewer words, a pass stores all blocks of one destination before it continues with
/// the next destination, because these blocks are adjacent in the bank.
constexpr uint32_t kShortBlockWords = 32;

/// Stores `copies` versions of the lines that load(i, w) returns for every item and word. Block n
/// of every destination receives version(line, n).
template <class Load, class Version>
void put_versions(const SweepCall &call, uint32_t copies, const Load &load,
                  const Version &version) {
  const uint32_t step_words = call.tuning.step_words;
  each_step(
      call,
      [&](Step step) {
        for (uint32_t i = 0; i < call.item_count; ++i)
          for (uint32_t w = 0; w < step.count; ++w) {
            const Line line = load(i, step.word + w);
            for (uint32_t n = 0; n < copies; ++n)
              lines_of(call, i)[n * step_words + w] = version(line, n);
          }
        const auto put = [&](uint32_t o, uint32_t n) {
          put_streams(call, step, lines_of(call, 0) + n * step_words, kItemBufferLines, o,
                      o + call.out_pair_banks);
        };
        const uint32_t pairs = call.out_pair_banks, block_streams = copies * pairs;
        if (call.prefetch_end < kShortBlockWords) {
          for (uint32_t o = 0; o < call.out_count; o += pairs) put(o, o / pairs % copies);
        } else {
          for (uint32_t n = 0; n < copies; ++n)
            for (uint32_t o = n * pairs; o < call.out_count; o += block_streams) put(o, n);
        }
      },
      step_words);
}

void pass_replicate(const SweepCall &call) {
  const uint32_t copies = 1u << count_bits(call.lane_mask);
  decltype(Isa::lane_control(0)) controls[8];
  for (uint32_t copy = 0; copy < copies; ++copy) {
    const uint32_t from = deposit_bits(copy, call.lane_mask);
    uint64_t map = 0;
    for (uint32_t lane = 0; lane < 8; ++lane)
      map |= uint64_t{(lane & ~call.lane_mask) | from} << 8 * lane;
    controls[copy] = Isa::lane_control(map);
  }
  const auto load = [&](uint32_t item, uint32_t w) { return next_line(call, item, 0, w); };
  put_versions(call, copies, load,
               [&](Line line, uint32_t copy) { return Isa::shuffle_lanes(line, controls[copy]); });
}
