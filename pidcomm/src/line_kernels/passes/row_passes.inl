// The passes with rows, for sections of several entangled groups: reduce_rows (reduce_scatter,
// allreduce) and reduce_rows_to_host (reduce). A part of passes.inl.

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
    rows_made_[0] = rows_made_[1] = nullptr;
    due_streams_ = 0;
    if (!stores_later_) return store_waiting();
    if (!has_sums_) return;
    Line *const lines = sums() + table_.batch_streams * table_.step_words;
    for (uint32_t eg = 0; eg < table_.egs; ++eg) make_lines(eg, lines + eg * step.count);
    waiting_.visited = table_.egs;
    made_ = {bytes_of(lines), step, table_.egs};
  }

  /// Stores all lines that are not yet stored.
  void store_waiting() {
    while (waiting_.visited != table_.egs) store_next();
    if (made_.lines != nullptr) put_waiting(call_, made_);
    made_.lines = nullptr;
  }

  /// Returns words 8 t to 8 t + 7 of a row. Line t of row 0 follows line t - 1 of the last row.
  Line *row(uint32_t index, uint32_t t = 0) const {
    const uint32_t set = row_set_ * table_.step_words / kStepWords;
    return reinterpret_cast<Line *>(call_.section_buffer) + (set + t) * table_.rows + index;
  }

 private:
  /// Complete rows of a step. store_next has visited the first `visited` entangled groups of
  /// out_egs.
  struct WaitingRows {
    const SweepItem *item;
    Step step;
    const Line *rows;
    uint32_t visited;
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

  /// Whether an output stream and a later one are at the two banks of a pair, and no lane is kept.
  bool begins_pair(uint32_t stream) const {
    const uint32_t other = stream + kPairEgs;
    std::byte *const *const out = waiting_.item->out;
    return other < call_.out_count && are_bank_pair(out[stream], out[other]) &&
           (call_.keep_lanes == 0 || other + 1 != call_.out_count);
  }

  /// Stores the lines of the waiting rows for the next entangled group, and those for the second
  /// bank of its pair. If the group itself is at a second bank, it is stored with the first bank.
  /// Returns the number of streams to which it stored. Not inlined: the library would be larger.
  [[gnu::noinline]] uint32_t store_next() {
    uint32_t streams = 0;
    const uint32_t eg = table_.out_egs[waiting_.visited++],
                   keep_lanes = eg + 1 == table_.egs ? call_.keep_lanes : 0;
    for (uint32_t o = eg; o < call_.out_count; o += table_.egs) {
      if (o >= kPairEgs && begins_pair(o - kPairEgs)) continue;
      const Line *const lines = lines_for(eg, 0);
      std::byte *const to = line_at(waiting_.item->out[o], waiting_.step.word);
      ++streams;
      if (begins_pair(o)) {
        put_bank_pair(to, lines, lines_for((eg + kPairEgs) % table_.egs, 1), waiting_.step.count);
        ++streams;
        if (stored_streams_ != 0) advance();
      } else {
        for (uint32_t w = 0; w < waiting_.step.count; ++w)
          Isa::store_line(
              line_at(to, w),
              keep_lanes == 0 ? lines[w] : with_kept_lanes(lines[w], line_at(to, w), keep_lanes));
      }
      if (stored_streams_ != 0) advance();
    }
    return streams;
  }

  /// Makes the lines of the waiting rows for an entangled group, in the first or second bank of a
  /// pair. If the lines that the function made last for this bank have the same rows, they are the
  /// same.
  [[gnu::noinline]] const Line *lines_for(uint32_t eg, uint32_t bank) {
    const uint32_t *const rows = table_.out + eg * kLanes;
    const uint32_t *&rows_before = rows_made_[bank];
    if (rows_before == nullptr || __builtin_memcmp(rows, rows_before, kLanes * sizeof *rows) != 0)
      make_lines(eg, lines_made_[bank]);
    rows_before = rows;
    return lines_made_[bank];
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
  /// later, it stores to an output stream for each stream that it loads (and after a bank pair, to
  /// one more), and thus to all while it loads a step. Not inlined: the library would be larger.
  [[gnu::noinline]] void accumulate_bundle(const SweepItem &item, Step step,
                                           const RowBundle &bundle) {
    const std::byte *from[kBundleStreams];
    for (uint32_t s = 0; s < bundle.stream_count; ++s) {
      from[s] = line_at(item.in[table_.streams[bundle.first_stream + s]], step.word);
      advance();
    }
    add_to_rows(bundle, from, step);
    due_streams_ += static_cast<int>(bundle.stream_count);
    while (due_streams_ > 0 && waiting_.visited != table_.egs)
      due_streams_ -= static_cast<int>(store_next());
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
  // Output streams to which the pass has to store before it loads more lines; below 0 after a pair.
  int due_streams_ = 0;
  // The rows and lines that lines_for made last for each bank of a pair.
  const uint32_t *rows_made_[2] = {};
  Line lines_made_[2][kRowStepWords];
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
