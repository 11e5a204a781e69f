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

/// Reduces the sums of the blocks of every item over the lanes of their groups into the first
/// block.
void reduce_blocks(const SweepCall &call, Step step, uint32_t blocks) {
  for (uint32_t i = 0; i < call.item_count; ++i) {
    Line *const sums = lines_of(call, i);
    const std::byte *first[kMaxTileLines];
    for (uint32_t block = 0; block < blocks; ++block)
      first[block] = bytes_of(sums + block * step.count);
    reduce_tiles(call, sums, {first, 0, nullptr, step.count, call.lane_mask, false, false});
  }
}
