// Reductions: the passes reduce_blocks (reduce_scatter), reduce_lanes (allreduce), reduce_to_host (reduce). A part of passes.inl.

/// Exchanges the sums of a step so that line i of an item holds the contributions of all group members to lane i.
template <int Mask, class Order>
void exchange_sums_in(const SweepCall &call, Step step) {
  constexpr int kLines = 1 << __builtin_popcount(Mask);
  for (uint32_t item = 0; item < call.item_count; ++item) {
    Line *const sums = lines_of(call, item);
    for (uint32_t w = 0; w < step.count; ++w) {
      Line tile[kLines];
      for (uint32_t i = 0; i < kLines; ++i) tile[i] = sums[i * step.count + w];
      const uint32_t ahead = step.word + step.count + w;
      if (ahead < call.prefetch_end)  // prefetches the first member's lines of the next step, to keep memory busy
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

/// Computes the sums of a step; see Reducer::accumulate.
void accumulate_step(const SweepCall &call, Step step, Line *sums, uint32_t blocks, const Store *store) {
  call.reducer->accumulate[call.load_transposes](call, step, bytes_of(sums), blocks, store);
}

/// Combines the sums of `blocks` blocks of an item pairwise into the first block.
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

/// Reduces the sums of every item over the lanes, and leaves the lines in PIM order or in host order.
void reduce_sums(const SweepCall &call, Step step, Line *sums, bool to_pim_order) {
  for (uint32_t i = 0; i < call.item_count; ++i) {
    Line *const lines = sums + i * kItemBufferLines;
    call.reducer->reduce_lanes(bytes_of(lines), step.count, call.lane_mask);
    if (call.host_order == to_pim_order) transpose_lines(lines, step.count);
  }
}

/// Stores all lines of `store`.
void put_waiting(const SweepCall &call, const Store &store) {
  for (uint32_t o = 0; o < call.out_count; o += call.out_pair_banks)
    put_streams(call, store.step, waiting_lines(call, store, 0, o), kItemBufferLines, o, o + call.out_pair_banks);
}

/// The pass stores the lines of one step while it loads the lines of the next step.
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

/// Stores the first lines in the buffer of every item, which are in host order, to host rows. Stream number o receives the words of the
/// o-th lane that is set in the mask `lanes`.
void put_words(const SweepCall &call, Step step, uint32_t lanes) {
  for (uint32_t i = 0; i < call.item_count; ++i) {
    if (step.count == kStepWords && call.out_count > 1) {
      Line *const tile = lines_of(call, i);
      transpose_tile<7, HostOrder>(tile);
      for (uint32_t o = 0; o < call.out_count; ++o)
        store_row_words(call, host_word(call.items[i].out[o], step.word), tile[deposit_bits(o, lanes)]);
      continue;
    }
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
