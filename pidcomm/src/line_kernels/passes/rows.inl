// accumulate_rows: adds lines to rows of words, for the passes reduce_rows and reduce_rows_to_host.
// A part of passes.inl.

/// Loads 8 lines in host order. transposes: as for accumulate_rows.
[[gnu::always_inline]] inline void load_tile(Line *tile, const std::byte *from, bool transposes) {
  if (transposes)
    for (uint32_t w = 0; w < kStepWords; ++w)
      tile[w] = Isa::transpose(Isa::load_line(line_at(from, w)));
  else
    for (uint32_t w = 0; w < kStepWords; ++w) tile[w] = reinterpret_cast<const Line *>(from)[w];
}

/// Does the same with the first `words` lines, at most 8. The others become 0.
[[gnu::noinline]] void load_some_lines(Line *tile, const std::byte *from, uint32_t words,
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

/// Loads at most 8 lines of each stream of a bundle, at `offset` bytes, and combines them. Not
/// inlined, because every type and operator would compile it again.
[[gnu::noinline]] void load_bundle(Line *tile, const std::byte *const *from, uint32_t streams,
                                   std::size_t offset, uint32_t words, bool transposes,
                                   decltype(Reducer::combine) combine) {
  load_some_lines(tile, from[0] + offset, words, transposes);
  for (uint32_t s = 1; s < streams; ++s) {
    Line more[kStepWords];
    load_some_lines(more, from[s] + offset, words, transposes);
    combine(bytes_of(tile), bytes_of(more), sizeof more);
  }
}

/// See Accumulator::accumulate_rows.
template <class T, int Op>
void accumulate_rows(std::byte *first_row, uint32_t row_count, const RowBundle &bundle,
                     const std::byte *const *from, uint32_t words, bool transposes) {
  // If a line is one register, the unrolled loops keep the tile in registers.
  constexpr bool kIsUnrolled = Line::kParts == 1 && !__is_class(T);
  const uint32_t *const row_of = bundle.rows;
  const uint32_t streams = bundle.stream_count;
  Line *rows = reinterpret_cast<Line *>(first_row);
  const std::size_t tile_bytes = kStepWords * (transposes ? kLineStride : sizeof(Line));
  for (std::size_t offset = 0; words != 0; offset += tile_bytes, rows += row_count) {
    Line combined[kStepWords], tile[kMaxTileLines];
    const bool is_part = words < kStepWords;
    if constexpr (kIsUnrolled) {
      if (is_part) load_bundle(combined, from, streams, offset, words, transposes, combine<T, Op>);
      load_tile(tile, is_part ? bytes_of(combined) : from[0] + offset, transposes && !is_part);
      if constexpr (static_cast<T>(0.5) == 0) {  // an integer: a bundle can have several streams
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
      load_bundle(tile, from, streams, offset, words, transposes, combine<T, Op>);
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
