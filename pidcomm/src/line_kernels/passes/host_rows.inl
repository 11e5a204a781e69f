// The passes between lines and host rows: to_host (gather), from_host (scatter, broadcast). A part
// of passes.inl.

/// Moves a few words of stream `e` of an item to rows: word w of lane l goes to word w - first of
/// rows[l].
void words_to_rows(const SweepCall &call, uint32_t item, uint32_t e, Step step,
                   std::byte *const *rows, uint32_t first) {
  for (uint32_t w = step.word; w < step.word + step.count; ++w) {
    Line line = Isa::transpose(next_line(call, item, e, w));
    finish_lines(call, &line, 1);
    for (uint32_t lane = 0; lane < 8; ++lane)
      if (rows[lane] != nullptr)
        store_word(host_word(rows[lane], w - first), load_word(bytes_of(&line) + 8 * lane));
  }
}

/// How a tile is stored to host rows. `whole`: no lane lacks a row, and there is no Finish; then
/// the tile stays in registers.
enum class TileKind { plain_stores, non_temporal, non_temporal_whole };

/// Prefetches 8 words of a stream at the distance of the pass, if they lie before `end`. `in`
/// points to word `word`. One condition for all lines, because conditions for each line take time.
[[gnu::always_inline]] inline void prefetch_tile(const SweepCall &call, const std::byte *in,
                                                 uint32_t word, uint32_t end) {
  if (word + call.tuning.ahead + kStepWords > end) return;
  const std::byte *const ahead = line_at(in, call.tuning.ahead);
  if (call.tuning.ahead_level == 1)
    for (uint32_t w = 0; w < kStepWords; ++w) Isa::prefetch_line(line_at(ahead, w));
  else
    for (uint32_t w = 0; w < kStepWords; ++w) Isa::prefetch_far(line_at(ahead, w));
}

/// Loads 8 words of stream `e` of an item; line i becomes the words of lane i.
template <TileKind Kind>
[[gnu::always_inline]] inline void load_tile(const SweepCall &call, uint32_t item, uint32_t e,
                                             uint32_t word, Line *tile) {
  const std::byte *const in = line_at(call.items[item].in[e], word);
  prefetch_tile(call, in, word, call.prefetch_end);
  for (uint32_t w = 0; w < kStepWords; ++w)
    tile[w] = Isa::transpose(Isa::load_line(line_at(in, w)));
  transpose_tile<7, HostOrder>(tile);
  if constexpr (Kind != TileKind::non_temporal_whole) finish_lines(call, tile, kStepWords);
}

/// Does the same as words_to_rows for Tiles * 8 words. The bandwidth of the memory is higher if 128
/// adjacent bytes of a row are stored directly after each other.
template <TileKind Kind, uint32_t Tiles>
[[gnu::always_inline]] inline void tiles_to_rows(const SweepCall &call, uint32_t item, uint32_t e,
                                                 Step step, std::byte *const *rows,
                                                 uint32_t first) {
  Line tile[Tiles][kMaxTileLines];
  for (uint32_t t = 0; t < Tiles; ++t)
    load_tile<Kind>(call, item, e, step.word + t * kStepWords, tile[t]);
  for (uint32_t lane = 0; lane < 8; ++lane) {
    if (Kind != TileKind::non_temporal_whole && rows[lane] == nullptr) continue;
    std::byte *const to = host_word(rows[lane], step.word - first);
    for (uint32_t t = 0; t < Tiles; ++t)
      if constexpr (Kind == TileKind::plain_stores)
        store_words(host_word(to, t * kStepWords), tile[t][lane]);
      else
        Isa::store_words_non_temporal(host_word(to, t * kStepWords), tile[t][lane]);
  }
}

/// Moves the first or last words of a call, which are less than a line of each row. Plain stores to
/// a part of a line take long, because the CPU first loads the line. Therefore, if calls follow
/// each other, the last words of a call wait in the buffers of the items, and the next call stores
/// whole lines.
void part_to_rows(const SweepCall &call, Step part, bool is_first) {
  const bool waits = is_first ? call.follows : call.is_followed;
  for (uint32_t i = 0; part.count != 0 && i < call.item_count; ++i) {
    std::byte *const *const rows = call.items[i].out;
    if (!waits) {
      words_to_rows(call, i, 0, part, rows, 0);
      continue;
    }
    const uint32_t begin = is_first ? kStepWords - part.count : 0;
    std::byte *waiting[kLanes];
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      waiting[lane] = host_word(bytes_of(&lines_of(call, i)[lane]), begin);
    words_to_rows(call, i, 0, part, waiting, part.word);
    for (uint32_t lane = 0; is_first && lane < kLanes; ++lane)
      Isa::store_words_non_temporal(rows[lane] - 8 * begin, lines_of(call, i)[lane]);
  }
}

/// Loads 8 words of a stream and transposes them; line i of the tile becomes the words of lane i.
/// Stores: between the loads, stores the previous tile to word `word` of `rows`. The loops are
/// unrolled, so that the tile stays in registers if a line is one register.
template <bool Stores>
[[gnu::always_inline]] inline void next_tile(const std::byte *in, Line *tile,
                                             std::byte *const *rows, uint32_t word) {
  Line next[kMaxTileLines];
#pragma GCC unroll 8
  for (uint32_t w = 0; w < kStepWords; ++w) {
    next[w] = Isa::transpose(Isa::load_line(line_at(in, w)));
    if constexpr (Stores) Isa::store_words_non_temporal(host_word(rows[w], word), tile[w]);
  }
  transpose_tile<7, HostOrder>(next);
#pragma GCC unroll 8
  for (uint32_t w = 0; w < kStepWords; ++w) tile[w] = next[w];
}

/// Moves the words of two items with one stream each to rows whose lines begin at the same words.
/// No lane lacks a row, and there is no Finish. Loads and stores alternate, which takes less time
/// than all loads of a tile and then all stores.
void pair_to_rows(const SweepCall &call) {
  const uint32_t to_line = call.first_words % kStepWords,
                 begin = to_line < call.words ? to_line : call.words,
                 end = call.words - (call.words - begin) % kStepWords,
                 prefetch_end = call.tuning.prefetches != 0 ? call.prefetch_end : 0;
  part_to_rows(call, {0, begin}, true);
  if (begin != end) {
    const std::byte *const in[2] = {call.items[0].in[0], call.items[1].in[0]};
    std::byte *rows[2][kLanes];
    for (uint32_t i = 0; i < 2; ++i)
      for (uint32_t lane = 0; lane < kLanes; ++lane) rows[i][lane] = call.items[i].out[lane];
    uint32_t word = begin;
    const auto tile_of = [&](uint32_t i) {
      const std::byte *const from = line_at(in[i], word);
      prefetch_tile(call, from, word, prefetch_end);
      return from;
    };
    Line tile[kMaxTileLines];
    next_tile<false>(tile_of(0), tile, nullptr, 0);
    for (;;) {
      next_tile<true>(tile_of(1), tile, rows[0], word);
      word += kStepWords;
      if (word == end) break;
      next_tile<true>(tile_of(0), tile, rows[1], word - kStepWords);
    }
#pragma GCC unroll 8
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      Isa::store_words_non_temporal(host_word(rows[1][lane], end - kStepWords), tile[lane]);
  }
  part_to_rows(call, {end, call.words - end}, false);
}

/// Moves the words of stream `e` of all items to rows.
template <TileKind Kind>
void stream_to_rows(const SweepCall &call, uint32_t e) {
  // Not with small registers, where a tile does not stay in registers.
  if (Line::kParts <= 2 && Kind == TileKind::non_temporal_whole && call.item_count == 2 &&
      call.in_count == 1 && call.tuning.step_words == kStepWords)
    return pair_to_rows(call);
  each_step(
      call,
      [&](Step step) {
        for (uint32_t i = 0; i < call.item_count; ++i) {
          std::byte *const *const rows = call.items[i].out + 8 * e;
          if (step.count == 2 * kStepWords)
            tiles_to_rows<Kind, 2>(call, i, e, step, rows, 0);
          else
            each_part(step, [&](Step part) {
              part.count == kStepWords ? tiles_to_rows<Kind, 1>(call, i, e, part, rows, 0)
                                       : words_to_rows(call, i, e, part, rows, 0);
            });
        }
      },
      call.tuning.step_words);
}

/// Words that pass_to_host collects for each row if rows are not aligned, and the bytes from row to
/// row in its buffer: words that wait for their line of host memory, and the words of a strip.
constexpr uint32_t kToHostStripWords = 64, kToHostRowBytes = 8 * (kStepWords + kToHostStripWords);
static_assert(kLanes * kToHostRowBytes <= kItemBufferBytes);

/// Stores the words of a strip, at `words`, to a row: complete lines of host memory by non-temporal
/// stores, other words by plain stores. The words after the last complete line wait in front of the
/// words of the next strip, if the call has one.
void store_strip(const SweepCall &call, Step strip, std::byte *words, std::byte *row) {
  const auto words_in_line = [](const std::byte *to) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(to) % sizeof(Line) / 8);
  };
  const bool is_last = strip.word + strip.count == call.words;
  std::byte *const begin = words;
  std::byte *to = host_word(row, strip.word);
  std::byte *const end = host_word(to, strip.count);
  const auto store_plain = [&](std::byte *until) {
    const auto bytes = static_cast<std::size_t>(until - to);
    __builtin_memcpy(to, words, bytes);
    words += bytes;
    to = until;
  };
  const uint32_t before = words_in_line(to);
  if (strip.word != 0) {
    to -= 8 * before;
    words -= 8 * before;
  } else if (before != 0) {
    std::byte *const line_end = to + 8 * (kStepWords - before);
    store_plain(line_end < end ? line_end : end);
  }
  for (; end - to >= static_cast<std::ptrdiff_t>(sizeof(Line));
       to += sizeof(Line), words += sizeof(Line))
    Isa::store_words_non_temporal(to, load_words(words));
  if (is_last)
    store_plain(end);
  else
    __builtin_memmove(begin - (end - to), words, static_cast<std::size_t>(end - to));
}

/// Moves the words of stream `e` of all items to rows that are not aligned to lines.
void stream_to_unaligned_rows(const SweepCall &call, uint32_t e) {
  for (Step strip = {0, kToHostStripWords}; strip.word < call.words; strip.word += strip.count) {
    if (strip.count > call.words - strip.word) strip.count = call.words - strip.word;
    for (uint32_t i = 0; i < call.item_count; ++i) {
      std::byte *const *const out = call.items[i].out + 8 * e;
      std::byte *rows[kLanes];
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        rows[lane] = bytes_of(lines_of(call, i)) + lane * kToHostRowBytes + sizeof(Line);
      each_part(strip, [&](Step part) {
        part.count == kStepWords
            ? tiles_to_rows<TileKind::plain_stores, 1>(call, i, e, part, rows, strip.word)
            : words_to_rows(call, i, e, part, rows, strip.word);
      });
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        if (out[lane] != nullptr) store_strip(call, strip, rows[lane], out[lane]);
    }
  }
}

void pass_to_host(const SweepCall &call) {
  // Non-temporal stores to rows need complete aligned lines. Either all steps use them, or no step
  // does.
  bool has_words = true, has_lines = true, is_whole = call.finish == nullptr;
  for (uint32_t i = 0; i < call.item_count; ++i)
    for (uint32_t o = 0; o < call.out_count; ++o) {
      const std::byte *const row = call.items[i].out[o];
      is_whole &= row != nullptr;
      if (row == nullptr) continue;
      has_words &= reinterpret_cast<uintptr_t>(row) % 8 == 0;
      has_lines &= is_aligned(host_word(row, call.first_words));
    }
  auto move = stream_to_rows<TileKind::plain_stores>;
  if (call.non_temporal_rows && has_lines)
    move = is_whole ? stream_to_rows<TileKind::non_temporal_whole>
                    : stream_to_rows<TileKind::non_temporal>;
  else if (call.non_temporal_rows && has_words)
    move = stream_to_unaligned_rows;
  for (uint32_t e = 0; e < call.in_count; ++e) move(call, e);
}

/// Returns whether 8 lanes share one row, have a row each, or lack rows.
enum class RowLanes { some_missing, all, shared };
RowLanes row_lanes(const std::byte *const *rows) {
  bool has_all = true, is_shared = rows[0] != nullptr;
  for (uint32_t lane = 0; lane < 8; ++lane) {
    has_all &= rows[lane] != nullptr;
    is_shared &= rows[lane] == rows[0];
  }
  return is_shared ? RowLanes::shared : has_all ? RowLanes::all : RowLanes::some_missing;
}

/// Prefetches a line of a host row. Past the end of the row, this does not fault.
void prefetch_row(const SweepCall &call, const std::byte *line) {
  call.tuning.ahead_level == 1 ? __builtin_prefetch(line, 0, 3) : __builtin_prefetch(line, 0, 2);
}

/// Turns 8 words of the rows of 8 lanes into lines in PIM order, and calls put(w, line) for each
/// line. Whole is true if no lane lacks a row.
template <bool Whole, class Put>
void tile_from_host(const SweepCall &call, const std::byte *const *in, uint32_t word,
                    const Put &put) {
  Line tile[kMaxTileLines];
  for (uint32_t lane = 0; lane < 8; ++lane) {
    tile[lane] = kZeroLine;
    if (!Whole && in[lane] == nullptr) continue;
    const std::byte *const from = host_word(in[lane], word);
    prefetch_row(call, host_word(from, call.tuning.ahead));
    tile[lane] = load_words(from);
  }
  transpose_tile<7, HostOrder>(tile);
  for (uint32_t w = 0; w < kStepWords; ++w) put(w, Isa::transpose(tile[w]));
}

/// Does the same as tile_from_host if all lanes share one row.
template <class Put>
void shared_from_host(const SweepCall &call, const std::byte *row, uint32_t word, const Put &put) {
  prefetch_row(call, host_word(row, word + call.tuning.ahead));
  for (uint32_t w = 0; w < kStepWords; ++w) {
    Line line;
    for (Line::Part &part : line.part) part = Line::Part{} + load_word(host_word(row, word + w));
    put(w, Isa::transpose(line));
  }
}

/// Turns a few words of rows into lines in PIM order, and calls put(w, line) for each line.
template <class Put>
void words_from_host(const std::byte *const *in, Step step, const Put &put) {
  for (uint32_t w = 0; w < step.count; ++w) {
    Line line = kZeroLine;
    for (uint32_t lane = 0; lane < 8; ++lane)
      if (in[lane] != nullptr)
        store_word(bytes_of(&line) + 8 * lane, load_word(host_word(in[lane], step.word + w)));
    put(w, Isa::transpose(line));
  }
}

template <class Put>
void from_host(const SweepCall &call, const std::byte *const *in, Step step, const Put &put) {
  const RowLanes lanes = row_lanes(in);
  if (step.count != kStepWords)
    words_from_host(in, step, put);
  else if (lanes == RowLanes::shared)
    shared_from_host(call, in[0], step.word, put);
  else if (lanes == RowLanes::all)
    tile_from_host<true>(call, in, step.word, put);
  else
    tile_from_host<false>(call, in, step.word, put);
}

/// Makes the lines of a step for entangled group `e` of an item.
[[gnu::noinline]] void make_lines(const SweepCall &call, uint32_t i, uint32_t e, Step step,
                                  Line *lines) {
  const SweepItem &item = call.items[i];
  const uint32_t keep_lanes = 8 * (e + 1) == call.in_count ? call.keep_lanes : 0;
  each_part(step, [&](Step part) {
    from_host(call, item.in + 8 * e, part, [&](uint32_t w, Line line) {
      lines[w] = keep_lanes == 0
                     ? line
                     : with_kept_lanes(line, line_at(item.out[e], part.word + w), keep_lanes);
    });
    lines += kStepWords;
  });
}

/// Does what pass_from_host does, for several entangled groups. Collects the lines of as many of
/// them as the buffers have space for, so that it can store to the two banks of a pair together.
void collected_from_host(const SweepCall &call, uint32_t egs) {
  constexpr uint32_t kLines = kCallBufferBytes / sizeof(Line);
  constexpr uint32_t kMostWords = 32;  // for most shapes, the lines then stay in the nearest cache
  const uint32_t lines_of_item = kLines / call.item_count, most_egs = lines_of_item / kStepWords,
                 egs_at_a_time = egs < most_egs ? egs : most_egs,
                 words = lines_of_item / egs_at_a_time / kStepWords * kStepWords,
                 step_words = words < kMostWords ? words : kMostWords;
  const auto visit = [&](Step step, uint32_t first, uint32_t count) {
    const uint32_t streams = call.out_count / egs * count;
    const auto lines = [&](uint32_t i, uint32_t n) {
      return lines_of(call, 0) + (i * count + n) * step_words;
    };
    for (uint32_t i = 0; i < call.item_count; ++i)
      for (uint32_t n = 0; n < count; ++n) make_lines(call, i, first + n, step, lines(i, n));
    put_bank_pairs(
        call.item_count * streams, step.count,
        [&](uint32_t k) {
          const uint32_t n = k % streams, o = n / count * egs + first + n % count;
          return line_at(call.items[k / streams].out[o], step.word);
        },
        [&](uint32_t k) { return lines(k / streams, k % streams % count); });
  };
  each_step(
      call,
      [&](Step step) {
        for (uint32_t first = 0; first < egs; first += egs_at_a_time)
          visit(step, first, first + egs_at_a_time < egs ? egs_at_a_time : egs - first);
      },
      step_words);
}

/// Makes lines from the rows of each entangled group. Output stream o belongs to entangled group o
/// mod `egs` of the section.
void pass_from_host(const SweepCall &call) {
  const uint32_t egs = call.in_count / 8;
  if (call.out_count == egs && call.keep_lanes == 0) {
    for (uint32_t e = 0; e < egs; ++e) {
      each_step(
          call,
          [&](Step strip) {
            for (uint32_t i = 0; i < call.item_count; ++i)
              each_part(strip, [&](Step part) {
                std::byte *const to = line_at(call.items[i].out[e], part.word);
                from_host(call, call.items[i].in + 8 * e, part,
                          [to](uint32_t w, Line line) { Isa::store_line(line_at(to, w), line); });
              });
          },
          call.tuning.step_words);
    }
    return;
  }
  if (egs > 1) return collected_from_host(call, egs);
  constexpr uint32_t kCollectedWords = 128;  // longer steps take more time
  static_assert(kCollectedWords <= kItemBufferLines);
  each_step(
      call,
      [&](Step step) {
        for (uint32_t i = 0; i < call.item_count; ++i)
          make_lines(call, i, 0, step, lines_of(call, i));
        put_everywhere(call, step);
      },
      kCollectedWords);
}
