// The passes for sections of several entangled groups: merge (alltoall, allgather), reduce_rows
// (reduce_scatter, allreduce) and reduce_rows_to_host (reduce). A part of passes.inl.

/// Makes and stores the lines of a strip in one output stream. Buffered: the input lines are in the
/// buffer at `buffered`.
template <uint32_t Sources, bool Buffered>
void merge_target(const SweepCall &call, Step strip, const MergeTarget &target,
                  const std::byte *const *in, const Line *buffered, std::byte *out) {
  const MergeSource *const source = call.merge->sources + target.first_source;
  decltype(Isa::lane_control(0)) controls[Sources];
  const std::byte *from[Sources];
  for (uint32_t s = 0; s < Sources; ++s) {
    controls[s] = Isa::lane_control(source[s].lane_map);
    from[s] = Buffered ? reinterpret_cast<const std::byte *>(buffered + source[s].stream *
                                                                            call.merge->strip_words)
                       : line_at(in[source[s].stream], strip.word);
  }
  for (uint32_t w = 0; w < strip.count; ++w) {
    const auto moved = [&](uint32_t s) {
      const Line line = Buffered ? reinterpret_cast<const Line *>(from[s])[w]
                                 : Isa::load_line(line_at(from[s], w));
      return Isa::shuffle_lanes(line, controls[s]);
    };
    Line line = moved(0);
    for (uint32_t s = 1; s < Sources; ++s)
      line = combine_lines<uint64_t, PIDCOMM_OR>(line, moved(s));
    std::byte *const to = line_at(out, strip.word + w);
    if (target.keep_lanes != 0) line = with_kept_lanes(line, to, target.keep_lanes);
    Isa::store_line(to, line);
  }
}

/// The instances of merge_target by the number of sources less 1.
template <bool Buffered>
constexpr decltype(&merge_target<1, Buffered>) kMergeTarget[] = {
    merge_target<1, Buffered>, merge_target<2, Buffered>, merge_target<3, Buffered>,
    merge_target<4, Buffered>, merge_target<5, Buffered>, merge_target<6, Buffered>,
    merge_target<7, Buffered>, merge_target<8, Buffered>};

/// Prefetches lines in the order in which a pass first loads them: step after step, in a step item
/// after item, in an item unit after unit, in a unit strip after strip, and in a strip stream after
/// stream.
class SectionPrefetch {
 public:
  /// Prefetches the lines of the tuned distance and `lead` more strips. streams: the numbers of the
  /// streams of the units; null if there is one unit with the streams 0, 1, ...
  SectionPrefetch(const SweepCall &call, const MergeUnit *units, uint32_t unit_count,
                  const uint32_t *streams, uint32_t step_words, uint32_t strip_words,
                  uint64_t lead = 0)
      : call_(call),
        units_(units),
        unit_count_(unit_count),
        streams_(streams),
        step_words_(step_words),
        strip_words_(strip_words) {
    const uint64_t ahead = call.tuning.ahead + lead * strip_words;
    for (uint64_t lines = 0; unit_count != 0 && lines < ahead; lines += strip_words) next();
  }

  /// The pass calls this function `calls` times in a strip. Distributes the prefetches of a strip
  /// with `streams` streams over these calls, so that prefetches and stores alternate.
  void advance(uint32_t streams, uint32_t calls) {
    for (due_ += streams; due_ >= calls; due_ -= calls) next();
  }

 private:
  /// Prefetches the next strip of a stream.
  void next() {
    if (step_ >= call_.words) return;
    const MergeUnit &unit = units_[unit_];
    const uint32_t stream = streams_ == nullptr ? stream_ : streams_[unit.first_stream + stream_];
    const std::byte *const from = call_.items[item_].in[stream];
    for (uint32_t w = word_; w < word_ + strip_words_ && w < call_.words; ++w)
      prefetch(call_, line_at(from, w));
    if (++stream_ != unit.stream_count) return;
    stream_ = 0;
    word_ += strip_words_;
    if (word_ < step_ + step_words_ && word_ < call_.words) return;
    do {
      if (++unit_ != unit_count_) continue;
      unit_ = 0;
      if (++item_ != call_.item_count) continue;
      item_ = 0;
      step_ += step_words_;
    } while (units_[unit_].stream_count == 0);
    word_ = step_;
  }

  const SweepCall &call_;
  const MergeUnit *units_;
  uint32_t unit_count_;
  const uint32_t *streams_;
  uint32_t step_words_, strip_words_;
  uint32_t step_ = 0, item_ = 0, unit_ = 0, word_ = 0, stream_ = 0, due_ = 0;
};

/// Makes and stores the lines of a strip in the output streams of a tile; see MergeSource.
template <int Mask>
void merge_tile(const SweepCall &call, Step strip, const MergeUnit &unit,
                const MergeTarget *targets, const std::byte *const *in, std::byte *const *out,
                SectionPrefetch &prefetch) {
  constexpr uint32_t kLines = Mask + 1;
  const MergeSource *const sources = call.merge->sources + targets->first_source;
  decltype(Isa::lane_control(0)) controls[kLanes];
  const std::byte *from[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    controls[lane] = Isa::lane_control(sources[lane].lane_map);
    from[lane] = line_at(in[sources[lane].stream], strip.word);
  }
  const uint32_t keep_lanes = targets->keep_lanes, count = targets->tile_targets,
                 streams = unit.stream_count * count, calls = unit.target_count * strip.count;
  std::byte *to[kLines];
  for (uint32_t n = 0; n < count; ++n) to[n] = line_at(out[targets[n].stream], strip.word);
  for (uint32_t w = 0; w < strip.count; ++w) {
    Line tile[kLines];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const Line line = Isa::shuffle_lanes(Isa::load_line(line_at(from[lane], w)), controls[lane]);
      Line &sum = tile[lane % kLines];
      sum = lane < kLines ? line : combine_lines<uint64_t, PIDCOMM_OR>(sum, line);
    }
    transpose_tile<Mask>(tile);
#pragma GCC unroll 8
    for (uint32_t n = 0; n < kLines; ++n) {
      if (n == count) break;
      std::byte *const line = line_at(to[n], w);
      Isa::store_line(line, keep_lanes == 0 ? tile[n] : with_kept_lanes(tile[n], line, keep_lanes));
    }
    prefetch.advance(streams, calls);
  }
}

/// Returns the instance of merge_tile for this number of targets.
auto merge_tile_of(uint32_t targets) {
  const uint32_t mask = tile_mask_of(targets);
  return mask == 1 ? merge_tile<1> : mask == 3 ? merge_tile<3> : merge_tile<7>;
}

/// The output of an item has the streams of one section (alltoall) or of all sections of the set
/// (allgather).
void merge_lines(const SweepCall &call) {
  const MergeTable &table = *call.merge;
  const uint32_t copies = call.out_count / table.out_streams;
  SectionPrefetch prefetch(call, table.units, table.unit_count, table.streams, table.step_words,
                           table.strip_words);
  for (uint32_t step = 0; step < call.words; step += table.step_words) {
    const uint32_t end =
        call.words - step < table.step_words ? call.words : step + table.step_words;
    for (uint32_t i = 0; i < call.item_count; ++i) {
      const SweepItem &item = call.items[i];
      for (uint32_t p = 0; p < table.unit_count; ++p) {
        const MergeUnit &unit = table.units[p];
        for (Step strip = {step, table.strip_words}; strip.word < end; strip.word += strip.count) {
          if (strip.count > end - strip.word) strip.count = end - strip.word;
          for (uint32_t c = 0; c < copies; ++c) {
            std::byte *const *const out = item.out + c * table.out_streams;
            const MergeTarget *target = table.targets + unit.first_target;
            const MergeTarget *const last = target + unit.target_count;
            for (; target != last; target += target->tile_targets) {
              if (target->tile_targets > 1) {
                merge_tile_of(target->tile_targets)(call, strip, unit, target, item.in, out,
                                                    prefetch);
                continue;
              }
              kMergeTarget<false>[target->source_count - 1](call, strip, *target, item.in, nullptr,
                                                            out[target->stream]);
              prefetch.advance(unit.stream_count, unit.target_count * copies);
            }
          }
        }
      }
    }
  }
}

/// The input has the streams of a section, or of the two sections that an alltoall exchanges. The
/// output has the streams of the same sections (alltoall), or of all sections of the set
/// (allgather).
void merge_in_place(const SweepCall &call) {
  const MergeTable &table = *call.merge;
  const MergeUnit &unit = table.units[0];
  const uint32_t in_sections = call.in_count / table.in_streams,
                 out_sections = call.out_count / table.out_streams;
  Line *const buffer = reinterpret_cast<Line *>(call.section_buffer);
  const MergeUnit all = {0, call.in_count, 0, unit.target_count};
  SectionPrefetch prefetch(call, &all, 1, nullptr, table.strip_words, table.strip_words);
  for (Step strip = {0, table.strip_words}; strip.word < call.words; strip.word += strip.count) {
    if (strip.count > call.words - strip.word) strip.count = call.words - strip.word;
    for (uint32_t i = 0; i < call.item_count; ++i) {
      const SweepItem &item = call.items[i];
      for (uint32_t s = 0; s < call.in_count; ++s) {
        for (uint32_t w = 0; w < strip.count; ++w)
          buffer[s * table.strip_words + w] = Isa::load_line(line_at(item.in[s], strip.word + w));
        prefetch.advance(1, 1);
      }
      for (uint32_t n = 0; n < out_sections; ++n) {
        const Line *const lines = buffer + n % in_sections * table.in_streams * table.strip_words;
        std::byte *const *const out = item.out + n * table.out_streams;
        for (uint32_t t = 0; t < unit.target_count; ++t) {
          const MergeTarget &target = table.targets[t];
          kMergeTarget<true>[target.source_count - 1](call, strip, target, nullptr, lines,
                                                      out[target.stream]);
        }
      }
    }
  }
}

void pass_merge(const SweepCall &call) {
  call.merge->is_buffered ? merge_in_place(call) : merge_lines(call);
}

/// The passes with rows. They visit item after item in every step.
class RowPass {
 public:
  /// stores: the pass calls `store`.
  RowPass(const SweepCall &call, bool stores)
      : call_(call),
        table_(*call.rows),
        has_sums_(call.in_count != table_.in_streams),
        stores_later_(table_.stores_later &&
                      !(has_sums_ && is_unprefetched(call, {0, table_.step_words}, batch()))),
        stored_streams_(stores && !stores_later_ ? call.out_count : 0),
        streams_{0, table_.in_streams, 0, 0},
        prefetch_(call, &streams_, has_sums_ ? 0 : 1, table_.streams, table_.step_words,
                  table_.step_words, streams_to_lead()) {}

  /// Calls visit(item, step) for every step and item, when the rows are complete.
  template <class VisitRows>
  void each(const VisitRows &visit) {
    each_step(
        call_,
        [&](Step step) {
          for (uint32_t i = 0; i < call_.item_count; ++i) {
            if (stores_later_ && !has_sums_) row_set_ ^= 1;
            accumulate(call_.items[i], step);
            finish_lines(call_, row(0), lines_of_step(step) * table_.rows);
            visit(call_.items[i], step);
          }
        },
        table_.step_words);
  }

  /// Stores the lines of the rows of a step to the output streams of an item: now, or while the
  /// pass loads the next lines.
  void store(const SweepItem &item, Step step) {
    waiting_ = {&item, step, row(0), 0};
    if (!stores_later_) return store_waiting();
    if (!has_sums_) return;
    Line *const lines = sums() + table_.batch_streams * table_.step_words;
    for (uint32_t eg = 0; eg < table_.egs; ++eg) make_lines(eg, lines + eg * step.count);
    waiting_.stored = table_.egs;
    made_ = {bytes_of(lines), step, table_.egs};
  }

  /// Stores all lines that are not yet stored.
  void store_waiting() {
    while (waiting_.stored != table_.egs) store_next();
    if (made_.lines != nullptr) put_waiting(call_, made_);
    made_.lines = nullptr;
  }

  /// Returns words 8 t to 8 t + 7 of a row. Line t of row 0 follows line t - 1 of the last row.
  Line *row(uint32_t index, uint32_t t = 0) const {
    const uint32_t set = row_set_ * table_.step_words / kStepWords;
    return reinterpret_cast<Line *>(call_.section_buffer) + (set + t) * table_.rows + index;
  }

 private:
  /// Complete rows of a step. The pass has stored the lines of the first `stored` entangled groups
  /// of out_egs.
  struct WaitingRows {
    const SweepItem *item;
    Step step;
    const Line *rows;
    uint32_t stored;
  };

  /// The sums of the sections, after the rows.
  Line *sums() const { return row(0, table_.step_words / kStepWords); }

  /// The first batch of the input streams of a section; see accumulate. Requires several sections.
  BlockBatch batch() const { return {table_.in_streams, table_.batch_streams}; }

  /// A pass prefetches also while it stores. So while it loads all input streams of a step, it
  /// prefetches fewer streams. Returns how many fewer.
  uint64_t streams_to_lead() const {
    return uint64_t{table_.in_streams} * stored_streams_ / (table_.in_streams + stored_streams_);
  }

  void advance() {
    if (!has_sums_) prefetch_.advance(table_.in_streams, table_.in_streams + stored_streams_);
  }

  /// Makes the lines of the waiting rows for an entangled group.
  void make_lines(uint32_t eg, Line *lines) const {
    const uint32_t *const rows = table_.out + eg * kLanes;
    bool is_one_row = true;
    for (uint32_t lane = 1; lane < kLanes; ++lane)
      is_one_row &= rows[lane] == rows[0] || rows[lane] == kNoRow;
    for (uint32_t t = 0; t < lines_of_step(waiting_.step); ++t, lines += kStepWords) {
      const Line *const words = waiting_.rows + t * table_.rows;
      is_one_row ? replicate_row(words[rows[0]], lines) : transpose_rows(words, rows, lines);
    }
  }

  /// Stores the lines of the waiting rows for the next entangled group. If the one before it in
  /// out_egs has the same rows, the lines are the same. Not inlined: the library would be larger.
  [[gnu::noinline]] void store_next() {
    const Step step = waiting_.step;
    const uint32_t eg = table_.out_egs[waiting_.stored];
    const uint32_t *const rows = table_.out + eg * kLanes;
    const uint32_t *const rows_before =
        waiting_.stored == 0 ? nullptr : table_.out + table_.out_egs[waiting_.stored - 1] * kLanes;
    if (rows_before == nullptr || __builtin_memcmp(rows, rows_before, kLanes * sizeof *rows) != 0)
      make_lines(eg, lines_);
    const uint32_t keep_lanes = eg + 1 == table_.egs ? call_.keep_lanes : 0;
    for (uint32_t o = eg; o < call_.out_count; o += table_.egs) {
      std::byte *const to = line_at(waiting_.item->out[o], step.word);
      for (uint32_t w = 0; w < step.count; ++w)
        Isa::store_line(
            line_at(to, w),
            keep_lanes == 0 ? lines_[w] : with_kept_lanes(lines_[w], line_at(to, w), keep_lanes));
      if (stored_streams_ != 0) advance();
    }
    ++waiting_.stored;
  }

  /// Makes 8 lines, one for each word, from the rows of 8 lanes. words: 8 words of each row.
  void transpose_rows(const Line *words, const uint32_t *rows, Line *lines) const {
    Line tile[kMaxTileLines];
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      tile[lane] = rows[lane] == kNoRow ? kZeroLine : words[rows[lane]];
    transpose_tile<7, HostOrder>(tile);
    for (uint32_t w = 0; w < kStepWords; ++w) lines[w] = Isa::transpose(tile[w]);
  }

  /// Does the same if all lanes have the same row. words: the line of this row.
  static void replicate_row(Line words, Line *lines) {
    const Line lanes = Isa::transpose(words);  // lane w has word w
    for (uint32_t w = 0; w < kStepWords; ++w)
      lines[w] = Isa::shuffle_lanes(lanes, Isa::lane_control(w * 0x0101010101010101u));
  }

  /// Returns the number of lines of a row in a step.
  static uint32_t lines_of_step(Step step) { return (step.count + kStepWords - 1) / kStepWords; }

  /// Combines the words of a step from all input streams of an item into the rows. If the set has
  /// several sections, visits the streams of a section in batches: for each batch, combines the
  /// sections into sums, then adds the sums to the rows.
  void accumulate(const SweepItem &item, Step step) {
    const RowBundle *bundle = table_.bundles;
    if (!has_sums_) {
      for (; bundle != table_.bundles + table_.bundle_count; ++bundle)
        accumulate_bundle(item, step, *bundle);
      return;
    }
    for (BlockBatch now = batch(); now.first < now.blocks; now.first += now.size) {
      accumulate_step(call_, step, sums(), now, waiting(made_));
      for (uint32_t n = 0; n < now.count(); ++n) {
        const std::byte *const from = bytes_of(sums() + n * step.count);
        add_to_rows(*bundle++, &from, step);
      }
    }
    made_.lines = nullptr;
  }

  /// Combines the words of a step from the streams of a bundle into the rows. If the pass stores
  /// later, it stores to an entangled group for each stream, and thus to all while it loads a step.
  /// Not inlined: the library would be larger.
  [[gnu::noinline]] void accumulate_bundle(const SweepItem &item, Step step,
                                           const RowBundle &bundle) {
    const std::byte *from[kBundleStreams];
    for (uint32_t s = 0; s < bundle.stream_count; ++s) {
      from[s] = line_at(item.in[table_.streams[bundle.first_stream + s]], step.word);
      advance();
    }
    add_to_rows(bundle, from, step);
    for (uint32_t s = 0; s < bundle.stream_count && waiting_.stored != table_.egs; ++s)
      store_next();
  }

  void add_to_rows(const RowBundle &bundle, const std::byte *const *from, Step step) {
    call_.accumulator->accumulate_rows(bytes_of(row(0)), table_.rows, bundle, from, step.count,
                                       !has_sums_);
  }

  const SweepCall &call_;
  const RowTable &table_;
  const bool has_sums_;
  const bool stores_later_;        // not without prefetches: no store can be between such loads
  const uint32_t stored_streams_;  // those to which the pass stores when rows are complete
  const MergeUnit streams_;
  SectionPrefetch prefetch_;
  uint32_t row_set_ = 0;  // the set of rows that the pass makes
  WaitingRows waiting_ = {nullptr, {0, 0}, nullptr, table_.egs};
  Line lines_[kRowStepWords];  // those that store_next made last
  // The lines of complete rows. Several sections have whole entangled groups: no lane is kept.
  Store made_ = {nullptr, {0, 0}, 1};
};

void pass_reduce_rows(const SweepCall &call) {
  RowPass pass(call, true);
  pass.each([&](const SweepItem &item, Step step) { pass.store(item, step); });
  pass.store_waiting();
}

void pass_reduce_rows_to_host(const SweepCall &call) {
  RowPass pass(call, false);
  pass.each([&](const SweepItem &item, Step step) {
    for (uint32_t row = 0; row < call.rows->rows; ++row) {
      for (uint32_t w = 0; w < step.count; w += kStepWords) {
        std::byte *const to = host_word(item.out[row], step.word + w);
        const Line words = *pass.row(row, w / kStepWords);
        if (step.count - w >= kStepWords)
          store_row_words(call, to, words);
        else
          __builtin_memcpy(to, &words, 8 * (step.count - w));
      }
    }
  });
}
