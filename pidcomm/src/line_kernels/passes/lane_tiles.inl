// Tiles of lines that a reduction combines over the lanes of their groups; see LaneTiles. A part of
// passes.inl.

/// [mask][i] The word whose selected bits are i and whose other bits are 0. Word w of 8 words is
/// line i of tile t of a lane mask if w = kMaskWords[mask][i] + kMaskWords[~mask & 7][t].
constexpr Table<Table<uint32_t, kStepWords>, kLanes> kMaskWords = [] {
  Table<Table<uint32_t, kStepWords>, kLanes> table{};
  for (uint32_t mask = 0; mask < kLanes; ++mask)
    for (uint32_t i = 0; i < kStepWords; ++i) table.entry[mask].entry[i] = deposit_bits(i, mask);
  return table;
}();

void reduce_tiles(const SweepCall &call, Line *results, const LaneTiles &tiles) {
  call.reducer->reduce_tiles[tiles.lane_mask](bytes_of(results), tiles);
}

/// Returns the tiles of 8 words of a stream whose word 0 is at `stream`. Sets `first`, the lines of
/// tile 0.
LaneTiles tiles_of_words(const SweepCall &call, const std::byte *stream, bool in_mram,
                         const std::byte **first) {
  const uint32_t mask = call.lane_mask, tiles_of_mask = kStepWords >> count_bits(mask);
  const LaneTiles tiles = {first, 0,       kMaskWords.entry[~mask & 7].entry, tiles_of_mask,
                           mask,  in_mram, in_mram && call.load_transposes};
  for (uint32_t i = 0; i < 1u << count_bits(mask); ++i)
    first[i] = stream + kMaskWords.entry[mask].entry[i] * tiles.stride();
  return tiles;
}

/// Reduces 8 words of an item's sums over the lanes of their groups; only the first `words` words
/// have sums. Line t of the sums becomes the results of tile t of tiles_of_words.
void reduce_sums(const SweepCall &call, Line *sums, uint32_t words) {
  for (uint32_t w = 0; w < kStepWords; ++w)  // from 0: else the compiler calls a slow memset
    if (w >= words) sums[w] = kZeroLine;
  const std::byte *first[kMaxTileLines];
  reduce_tiles(call, sums, tiles_of_words(call, bytes_of(sums), false, first));
}

/// Reduces the sums of the blocks of an item over the lanes of their groups into the first block.
void reduce_blocks(const SweepCall &call, Step step, Line *sums, uint32_t blocks) {
  const std::byte *first[kMaxTileLines];
  for (uint32_t block = 0; block < blocks; ++block)
    first[block] = bytes_of(sums + block * step.count);
  reduce_tiles(call, sums, {first, 0, nullptr, step.count, call.lane_mask, false, false});
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

/// Prefetches the lines that follow a step at the distance of the pass: those of this call, or, if
/// the first is past prefetch_end, those of the next call. The lines of both items follow each
/// other, because the two banks of a pair have adjacent lines.
void prefetch_pair(const SweepCall &call, ItemPair pair, Step step) {
  const uint32_t ahead_words = call.tuning.ahead / (call.in_count * call.item_count);
  uint32_t end = call.prefetch_end, word = step.word + (ahead_words < end ? ahead_words : end);
  const SweepItem *items = call.items;
  if (word >= end) {
    const NextCall &next = call.next;
    if (next.item_count < pair.first + pair.count || next.in_count != call.in_count) return;
    items = next.items;
    word -= end;
    end = next.prefetch_end;
    if (word >= end) return;
  }
  const std::byte *lines[2 * kMaxTileLines];
  uint32_t count = 0;
  for (uint32_t s = 0; s < call.in_count; ++s)
    for (uint32_t i = pair.first; i < pair.first + pair.count; ++i)
      lines[count++] = line_at(items[i].in[s], word);
  const uint32_t words = end - word < step.count ? end - word : step.count;
  for (uint32_t w = 0; w < words; ++w)
    for (uint32_t k = 0; k < count; ++k) prefetch(call, line_at(lines[k], w));
}

/// Lines of an item in a visit of reduce_block_tiles. A visit prefetches as many lines before it
/// loads; with longer visits, the pass takes more time.
constexpr uint32_t kTileVisitLines = 16;

/// Does what accumulate_step and reduce_blocks do for items with one member. The blocks of such an
/// item are tiles in MRAM.
void reduce_block_tiles(const SweepCall &call, Step step) {
  const uint32_t visit_words = kTileVisitLines / call.in_count;
  each_item_pair(call, [&](ItemPair pair) {
    for (uint32_t word = 0; word < step.count; word += visit_words) {
      const uint32_t left = step.count - word;
      const Step visit = {step.word + word, left < visit_words ? left : visit_words};
      prefetch_pair(call, pair, visit);
      for (uint32_t i = pair.first; i < pair.first + pair.count; ++i)
        reduce_tiles(call, lines_of(call, i) + word,
                     {call.items[i].in, visit.word, nullptr, visit.count, call.lane_mask, true,
                      call.load_transposes});
    }
  });
}
