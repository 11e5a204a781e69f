// Reductions: the passes reduce_blocks (reduce_scatter), reduce_lanes (allreduce), reduce_to_host
// (reduce), and the order in which they visit lines. A part of passes.inl.

/// Transposes a line if one of its source and destination is in PIM order and the other is in host
/// order.
Line reordered(Line line, bool transposes) { return transposes ? Isa::transpose(line) : line; }

void transpose_lines(Line *lines, uint32_t count) {
  for (uint32_t w = 0; w < count; ++w) lines[w] = Isa::transpose(lines[w]);
}

/// Returns the number of group members of an item with `blocks` blocks.
uint32_t members_of(const SweepCall &call, uint32_t blocks) { return call.in_count / blocks; }

/// Returns the number of group members that a reduction loads side by side.
uint32_t members_at_a_time(const SweepCall &call, uint32_t blocks) {
  uint32_t count =
      call.tuning.members < call.rank_members ? call.tuning.members : call.rank_members;
  while (members_of(call, blocks) % count != 0) --count;
  return count;
}

/// A batch of the blocks of an item: `size` blocks from `first` on, or all that remain.
struct BlockBatch {
  uint32_t blocks, size, first = 0;

  uint32_t count() const { return size < blocks - first ? size : blocks - first; }
};
BlockBatch one_batch(uint32_t blocks) { return {blocks, blocks}; }

/// Goes through the visits of a reduction in their order. In a visit, the pass loads the streams of
/// `members` group members for one block side by side, for the words of a step. The visits of the
/// other blocks of the batch follow, then those of the other members, then those of the next batch,
/// then those of the next step.
struct VisitCursor {
  const SweepCall &call;
  BlockBatch batch;
  uint32_t members;
  Step step;
  uint32_t block = batch.first, member = 0;

  uint32_t visits_of_batch() const {
    return members_of(call, batch.blocks) / members * batch.count();
  }
  void advance() {
    if (++block < batch.first + batch.count()) return;
    block = batch.first;
    member += members;
    if (member == members_of(call, batch.blocks)) next_batch();
  }
  /// Goes from the first visit of a batch to a later visit.
  void skip(uint32_t count) {
    for (; count >= visits_of_batch(); next_batch()) count -= visits_of_batch();
    member = count / batch.count() * members;
    block = batch.first + count % batch.count();
  }

 private:
  void next_batch() {
    member = 0;
    batch.first += batch.count();
    if (batch.first == batch.blocks) {
      batch.first = 0;
      step.word += step.count;
    }
    block = batch.first;
  }
};

/// Points to the lines of a visit at `word`, in `items`: those of this call or of the next call.
/// The pass may read the words before end_word.
void move_to(VisitLines &lines, const VisitCursor &visit, const SweepItem *items, uint32_t word,
             uint32_t end_word) {
  const uint32_t left = word < end_word ? end_word - word : 0;
  lines.words = left < visit.step.count ? left : visit.step.count;
  const std::byte **first = lines.first;
  for (uint32_t i = 0; i < visit.call.item_count; ++i)
    for (uint32_t m = 0; m < visit.members; ++m)
      *first++ = line_at(items[i].in[(visit.member + m) * visit.batch.blocks + visit.block], word);
}

/// Points to the lines of a visit to prefetch. If the visit is at word `end` or later, these are
/// lines of the next call, if it has as many items and streams.
void move_to_later(VisitLines &lines, const VisitCursor &visit, uint32_t end) {
  const SweepCall &call = visit.call;
  if (visit.step.word < end)
    move_to(lines, visit, call.items, visit.step.word, call.prefetch_end);
  else if (call.next.item_count == call.item_count && call.next.in_count == call.in_count)
    move_to(lines, visit, call.next.items, visit.step.word - end, call.next.prefetch_end);
  else
    lines.words = 0;
}

/// Returns the number of output streams that the pass must have stored after `visited` of `visits`
/// visits.
uint32_t share_of_streams(const SweepCall &call, uint32_t visited, uint32_t visits) {
  const uint32_t pairs = call.out_count / call.out_pair_banks;
  return pairs * visited / visits * call.out_pair_banks;
}

/// Returns the `store` of accumulate_step: null if no lines wait.
const Store *waiting(const Store &store) { return store.lines == nullptr ? nullptr : &store; }

/// Returns the first line of an item to store to stream o.
const Line *waiting_lines(const SweepCall &call, const Store &store, uint32_t item, uint32_t o) {
  const uint32_t version = o / call.out_pair_banks % store.versions;
  return reinterpret_cast<const Line *>(store.lines) + item * kItemBufferLines +
         version * store.step.count;
}

/// Lists what a pass stores in visit `index` of `visits` visits.
void list_stores(VisitStores &stores, const SweepCall &call, const Store &store, uint32_t index,
                 uint32_t visits) {
  stores.count = 0;
  stores.words = store.step.count;
  const uint32_t last = share_of_streams(call, index + 1, visits);
  for (uint32_t o = share_of_streams(call, index, visits); o < last; ++o)
    for (uint32_t i = 0; i < call.item_count; ++i, ++stores.count) {
      stores.from[stores.count] =
          reinterpret_cast<const std::byte *>(waiting_lines(call, store, i, o));
      stores.to[stores.count] = line_at(call.items[i].out[o], store.step.word);
    }
}

/// Whether the visits of a batch are without prefetches.
bool is_unprefetched(const SweepCall &call, Step step, const BlockBatch &batch) {
  const uint32_t members = members_of(call, batch.blocks);
  return call.tuning.prefetches == 0 && members >= kUnprefetchedMembers &&
         members * batch.count() * step.count >= kUnprefetchedLines &&
         call.accumulator->accumulate_unprefetched[call.load_transposes][0] != nullptr;
}

/// Does what accumulate_step does, without prefetches.
void accumulate_unprefetched_step(const SweepCall &call, Step step, Line *sums,
                                  const BlockBatch &batch) {
  const auto &accumulate = call.accumulator->accumulate_unprefetched[call.load_transposes];
  UnprefetchedVisit visit = {call.items, call.item_count, 0, batch.blocks, 0, step, false};
  const uint32_t members = members_of(call, batch.blocks);
  for (uint32_t member = 0; member < members;) {
    uint32_t k = Accumulator::kFunctions - 2;
    while (1u << k > call.tuning.members || 1u << k > members - member) --k;
    visit.members = 1u << k;  // Accumulator::kMembers[k]
    for (uint32_t n = 0; n < batch.count(); ++n) {
      visit.stream = member * batch.blocks + batch.first + n;
      accumulate[k](bytes_of(sums + n * step.count), visit);
    }
    visit.adds = true;
    member += visit.members;
  }
}

/// Points to the lines to prefetch in a step in which a pass loads all streams of the items.
void move_ahead(VisitLines &later, const SweepCall &call, Step step) {
  const uint32_t tuned_words = call.tuning.ahead / (call.in_count * call.item_count);
  step.word += tuned_words < call.prefetch_end ? tuned_words : call.prefetch_end;
  move_to_later(later, {call, one_batch(1), call.in_count, step}, call.prefetch_end);
}

/// Does what accumulate_step does for items with one input stream, without `store`. Visits the two
/// banks of a pair, which are often two items, word by word.
void load_step(const SweepCall &call, Step step, Line *sums) {
  each_part(step, [&](Step part) {
    VisitLines now, later;
    move_to(now, {call, one_batch(1), 1, part}, call.items, part.word, call.words);
    move_ahead(later, call, part);
    const VisitLines &ahead = later.words == part.count ? later : now;
    Line *lines = sums + (part.word - step.word);
    for (uint32_t w = 0; w < part.count; ++w, ++lines)
      for (uint32_t i = 0; i < call.item_count; ++i) {
        prefetch(call, line_at(ahead.first[i], w));
        lines[i * kItemBufferLines] =
            reordered(Isa::load_line(line_at(now.first[i], w)), call.load_transposes);
      }
  });
}

/// One or two items. Two are often the two banks of a pair.
struct ItemPair {
  uint32_t first, count;
};
template <class Visit>
void each_item_pair(const SweepCall &call, const Visit &visit) {
  for (uint32_t i = 0; i < call.item_count; i += 2)
    visit(ItemPair{i, i + 1 < call.item_count ? 2u : 1u});
}

/// Prefetches the words [word, end_word) of the lines of a pair that move_ahead found, word by
/// word, because the two banks of a pair have adjacent lines.
void prefetch_pair(const SweepCall &call, const VisitLines &later, ItemPair pair, uint32_t word,
                   uint32_t end_word) {
  const std::byte *const *const first = later.first + pair.first * call.in_count;
  const uint32_t streams = pair.count * call.in_count;
  if (end_word > later.words) end_word = later.words;
  for (; word < end_word; ++word)
    for (uint32_t s = 0; s < streams; ++s) prefetch(call, line_at(first[s], word));
}

/// Computes for every item and every block j of a batch, from left to right,
///   sum[j] = in[j] (op) in[blocks + j] (op) in[2 * blocks + j] ...
/// Word w of block j of item i is line i * kItemBufferLines + (j - first) * step.count + w. If
/// `store` is not null, the function also stores the lines of `store` to the streams of every item,
/// between its loads: each batch stores its share of the streams.
void accumulate_step(const SweepCall &call, Step step, Line *sums, const BlockBatch &batch,
                     const Store *store) {
  if (store == nullptr && call.in_count == 1) return load_step(call, step, sums);
  if (store == nullptr && is_unprefetched(call, step, batch))
    return accumulate_unprefetched_step(call, step, sums, batch);
  const uint32_t members = members_at_a_time(call, batch.blocks),
                 tuned_words = call.tuning.ahead / (members * call.item_count),
                 words_of_call = call.in_count / members * call.words,
                 ahead_words = tuned_words < words_of_call ? tuned_words : words_of_call;
  const auto accumulate =
      call.accumulator->accumulate[call.load_transposes][Accumulator::index_of(members)];
  VisitCursor cursor = {call, batch, members, step}, later = cursor;
  later.skip(ahead_words / step.count);
  // The first word after the steps of this call, if all have step.count words.
  const uint32_t end =
      step.word + (call.words - step.word + step.count - 1) / step.count * step.count;
  VisitLines now, later_lines[2];
  move_to_later(later_lines[0], later, end);
  VisitStores stores;
  stores.words = 0;
  const uint32_t visits = cursor.visits_of_batch(),
                 visits_of_block = members_of(call, batch.blocks) / members,
                 first_visit = visits_of_block * batch.first,
                 visits_of_step = visits_of_block * batch.blocks;
  for (uint32_t index = 0; index < visits; ++index, cursor.advance()) {
    later.advance();
    move_to_later(later_lines[(index + 1) % 2], later, end);
    move_to(now, cursor, call.items, cursor.step.word, call.words);
    if (store != nullptr) list_stores(stores, call, *store, first_visit + index, visits_of_step);
    // The last `ahead` words of the step prefetch lines of the visit after later_lines[index % 2].
    const uint32_t ahead = ahead_words % step.count;
    Visit visit = {.now = &now,
                   .later = &later_lines[index % 2],
                   .stores = &stores,
                   .word = 0,
                   .end_word = step.count - ahead,
                   .ahead = ahead,
                   .past = 0,
                   .items = call.item_count,
                   .members = members,
                   .is_near = call.tuning.ahead_level == 1,
                   .adds = cursor.member != 0};
    std::byte *const block = bytes_of(sums + (cursor.block - batch.first) * step.count);
    accumulate(block, visit);
    visit.later = &later_lines[(index + 1) % 2];
    visit.word = visit.end_word;
    visit.end_word = visit.past = step.count;
    accumulate(block, visit);
    for (uint32_t w = step.count; w < stores.words; ++w) put_word(stores, w);
  }
}

/// Combines the sums of `blocks` blocks of an item pairwise into the first block.
void combine_blocks(const SweepCall &call, Step step, Line *sums, uint32_t blocks) {
  for (uint32_t pace = 1; pace < blocks; pace *= 2)
    for (uint32_t i = 0; i < blocks; i += 2 * pace)
      call.reducer->combine(bytes_of(&sums[i * step.count]),
                            bytes_of(&sums[(i + pace) * step.count]), step.count * sizeof(Line));
}

/// Changes results in host order; see Finish.
void finish_lines(const SweepCall &call, Line *lines, uint32_t count) {
  if (call.finish != nullptr) call.finish->apply(bytes_of(lines), count * sizeof(Line));
}

/// Returns the number of words of a step: the tuned number, but at most `lines` lines for all
/// blocks. If each group member of an item is in another rank, a step has this largest number.
uint32_t reduce_step_words(const SweepCall &call, uint32_t blocks, uint32_t lines) {
  const uint32_t words = call.tuning.step_words, most = lines / blocks;
  const bool is_one_per_rank = call.rank_members == 1 && blocks < call.in_count;
  return is_one_per_rank || words > most ? most : words;
}

/// Lines of an item in a visit of reduce_block_tiles. A visit prefetches as many lines before it
/// loads; with longer visits, the pass takes more time.
constexpr uint32_t kTileVisitLines = 16;

/// Does what accumulate_step and reduce_blocks do for items with one member. The blocks of such an
/// item are tiles in MRAM.
void reduce_block_tiles(const SweepCall &call, Step step) {
  const uint32_t visit_words = kTileVisitLines / call.in_count;
  VisitLines later;
  move_ahead(later, call, step);
  each_item_pair(call, [&](ItemPair pair) {
    for (uint32_t word = 0; word < step.count; word += visit_words) {
      const uint32_t left = step.count - word, words = left < visit_words ? left : visit_words;
      prefetch_pair(call, later, pair, word, word + words);
      for (uint32_t i = pair.first; i < pair.first + pair.count; ++i)
        reduce_tiles(call, lines_of(call, i) + word,
                     {call.items[i].in, step.word + word, nullptr, words, call.lane_mask, true,
                      call.load_transposes});
    }
  });
}

void pass_reduce_blocks(const SweepCall &call) {
  const uint32_t blocks = 1u << count_bits(call.lane_mask);
  const bool has_one_member = call.in_count == blocks;
  each_step(
      call,
      [&](Step step) {
        if (has_one_member) {
          reduce_block_tiles(call, step);
        } else {
          accumulate_step(call, step, lines_of(call, 0), one_batch(blocks), nullptr);
          if (blocks > 1) reduce_blocks(call, step, blocks);
        }
        for (uint32_t item = 0; item < call.item_count; ++item) {
          Line *const sums = lines_of(call, item);
          finish_lines(call, sums, step.count);
          if (call.host_order) transpose_lines(sums, step.count);
        }
        put_everywhere(call, step);
      },
      has_one_member ? kStepWords : reduce_step_words(call, blocks, kRankStepLines));
}

/// Stores all lines of `store`.
void put_waiting(const SweepCall &call, const Store &store) {
  for (uint32_t o = 0; o < call.out_count; o += call.out_pair_banks)
    put_streams(call, store.step, waiting_lines(call, store, 0, o), kItemBufferLines, o,
                o + call.out_pair_banks);
}

/// The results of reduce_tiles for 8 words, in PIM order.
template <int Mask>
struct LaneResults {
  static constexpr uint32_t kTiles = kStepWords >> __builtin_popcount(Mask);
  Line line[kTiles];

  LaneResults(const SweepCall &call, const Line *lines) {
    for (uint32_t t = 0; t < kTiles; ++t) line[t] = reordered(lines[t], call.host_order);
  }
  /// Returns the results for a word, which go from their lanes to all lanes of their groups.
  Line replicated(uint32_t w) const {
    if constexpr (Mask == 0) return line[w];
    constexpr uint64_t kLaneNumbers = 0x0706050403020100, kEachLane = 0x0101010101010101;
    return Isa::shuffle_lanes(
        line[extract_bits(w, ~Mask & 7)],
        Isa::lane_control((kLaneNumbers & (7 & ~Mask) * kEachLane) | (w & Mask) * kEachLane));
  }
};

/// Replaces the results of reduce_tiles by one line for each word.
template <int Mask>
void replicate_results(const SweepCall &call, Line *lines) {
  finish_lines(call, lines, LaneResults<Mask>::kTiles);
  const LaneResults<Mask> results(call, lines);
  for (uint32_t w = 0; w < kStepWords; ++w) lines[w] = results.replicated(w);
}

/// Stores the lines of replicate_results to MRAM, for a pair of items with one output stream. If a
/// line is one register, the lines of a whole step go there without the buffer.
template <int Mask>
void put_results(const SweepCall &call, ItemPair pair, Step step) {
  const uint32_t last = pair.first + pair.count - 1;
  Line *const lines[2] = {lines_of(call, pair.first), lines_of(call, last)};
  std::byte *const to[2] = {line_at(call.items[pair.first].out[0], step.word),
                            line_at(call.items[last].out[0], step.word)};
  if (Line::kParts == 1 && pair.count == 2 && step.count == kStepWords) {
    for (Line *sums : lines) finish_lines(call, sums, LaneResults<Mask>::kTiles);
    const LaneResults<Mask> results[2] = {{call, lines[0]}, {call, lines[1]}};
#pragma GCC unroll 8
    for (uint32_t w = 0; w < kStepWords; ++w)
      for (uint32_t n = 0; n < 2; ++n) Isa::store_line(line_at(to[n], w), results[n].replicated(w));
    return;
  }
  for (uint32_t n = 0; n < pair.count; ++n) replicate_results<Mask>(call, lines[n]);
  for (uint32_t w = 0; w < step.count; ++w)
    for (uint32_t n = 0; n < pair.count; ++n) Isa::store_line(line_at(to[n], w), lines[n][w]);
}

/// Does what pass_reduce_lanes does for items with one member, which have one input stream and one
/// output stream.
void reduce_lanes_of_one_member(const SweepCall &call) {
  const std::byte *first[kMaxItems][kMaxTileLines];
  LaneTiles tiles[kMaxItems];
  for (uint32_t i = 0; i < call.item_count; ++i)
    tiles[i] = tiles_of_words(call, call.items[i].in[0], true, first[i]);
  each_step(call, [&](Step step) {
    const bool is_whole = step.count == kStepWords;
    VisitLines later;
    if (is_whole)
      move_ahead(later, call, step);
    else
      load_step(call, step, lines_of(call, 0));
    each_item_pair(call, [&](ItemPair pair) {
      if (is_whole) prefetch_pair(call, later, pair, 0, step.count);
      for (uint32_t i = pair.first; i < pair.first + pair.count; ++i) {
        tiles[i].word = step.word;
        if (is_whole)
          reduce_tiles(call, lines_of(call, i), tiles[i]);
        else
          reduce_sums(call, lines_of(call, i), step.count);
      }
      PIDCOMM_BY_LANE_MASK(put_results, call, pair, step);
    });
  });
}

/// The pass stores the lines of one step while it loads the lines of the next step.
void pass_reduce_lanes(const SweepCall &call) {
  if (call.in_count == 1) return reduce_lanes_of_one_member(call);
  Line *const buffers[2] = {lines_of(call, 0), lines_of(call, 0) + kAllreduceStepLines};
  Store store = {nullptr, {0, 0}, 1};
  uint32_t next_buffer = 0;
  each_step(
      call,
      [&](Step step) {
        Line *const sums = buffers[next_buffer++ % 2];
        accumulate_step(call, step, sums, one_batch(1), waiting(store));
        for (uint32_t i = 0; i < call.item_count; ++i)
          each_part(step, [&](Step part) {
            Line *const lines = sums + i * kItemBufferLines + (part.word - step.word);
            if (call.lane_mask != 0) reduce_sums(call, lines, part.count);
            PIDCOMM_BY_LANE_MASK(replicate_results, call, lines);
          });
        store = {bytes_of(sums), step, 1};
      },
      reduce_step_words(call, 1, kAllreduceStepLines));
  put_waiting(call, store);
}

/// Stores the first lines in the buffer of every item, which are in host order, to host rows.
/// Stream number o receives the words of lane o.
void put_words(const SweepCall &call, Step step) {
  for (uint32_t i = 0; i < call.item_count; ++i) {
    if (step.count == kStepWords) {
      Line *const tile = lines_of(call, i);
      transpose_tile<7, HostOrder>(tile);
      for (uint32_t o = 0; o < call.out_count; ++o)
        store_row_words(call, host_word(call.items[i].out[o], step.word), tile[o]);
      continue;
    }
    for (uint32_t o = 0; o < call.out_count; ++o)
      for (uint32_t w = 0; w < step.count; ++w)
        store_word(host_word(call.items[i].out[o], step.word + w),
                   load_word(bytes_of(&lines_of(call, i)[w]) + 8 * o));
  }
}

/// Transposes the results of reduce_tiles for 8 words. Line n becomes the 8 words of group n.
template <int Mask>
void results_to_rows(const SweepCall &call, Line *lines) {
  call.host_order ? transpose_tile<~Mask & 7, HostOrder>(lines)
                  : transpose_tile<~Mask & 7, PimOrder>(lines);
}

void pass_reduce_to_host(const SweepCall &call) {
  each_step(
      call,
      [&](Step step) {
        accumulate_step(call, step, lines_of(call, 0), one_batch(1), nullptr);
        for (uint32_t i = 0; i < call.item_count; ++i)
          each_part(step, [&](Step part) {
            Line *const lines = lines_of(call, i) + (part.word - step.word);
            reduce_sums(call, lines, part.count);
            finish_lines(call, lines, kStepWords >> count_bits(call.lane_mask));
            PIDCOMM_BY_LANE_MASK(results_to_rows, call, lines);
            for (uint32_t o = 0; o < call.out_count; ++o) {
              const Line words = reordered(lines[o], !call.host_order);
              std::byte *const to = host_word(call.items[i].out[o], part.word);
              if (part.count == kStepWords)
                store_row_words(call, to, words);
              else
                __builtin_memcpy(to, &words, 8 * part.count);
            }
          });
      },
      reduce_step_words(call, 1, kRankStepLines));
}
