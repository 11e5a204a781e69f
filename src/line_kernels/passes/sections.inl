// The passes for sections of several entangled groups: merge (alltoall, allgather), reduce_rows (reduce_scatter, allreduce) and
// reduce_rows_to_host (reduce). A part of passes.inl.

/// Lines between a load of `reduce_rows` and the prefetch of a later line.
constexpr uint32_t kSectionAheadLines = 64;

/// Copies the words of a step from the input streams of a part to the buffer.
void stage_part(const SweepCall &call, Step step, const MergePart &part, const std::byte *const *in, Line *buffer) {
  const MergeTable &table = *call.merge;
  for (uint32_t i = 0; i < part.stream_count; ++i) {
    const std::byte *const from = in[table.streams[part.first_stream + i]];
    Line *const to = buffer + i * table.step_words;
    for (uint32_t w = 0; w < step.count; ++w) to[w] = next_line<&Isa::prefetch_far>(call, from, step.word + w);
  }
}

/// Makes and stores the lines of a step in one output stream.
template <uint32_t Sources>
void merge_target(const SweepCall &call, Step step, const MergeTarget &target, const Line *buffer, std::byte *out) {
  const MergeSource *const source = call.merge->sources + target.first_source;
  decltype(Isa::lane_control(0)) controls[Sources];
  const Line *lines[Sources];
  for (uint32_t s = 0; s < Sources; ++s) {
    controls[s] = Isa::lane_control(source[s].lane_map);
    lines[s] = buffer + source[s].line * call.merge->step_words;
  }
  for (uint32_t w = 0; w < step.count; ++w) {
    Line line = Isa::shuffle_lanes(lines[0][w], controls[0]);
    for (uint32_t s = 1; s < Sources; ++s) line = combine_lines<uint64_t, PIDCOMM_OR>(line, Isa::shuffle_lanes(lines[s][w], controls[s]));
    std::byte *const to = line_at(out, step.word + w);
    if (target.keep_lanes != 0) line = with_kept_lanes(line, to, target.keep_lanes);
    Isa::store_line(to, line);
  }
}

/// The input has the streams of a section, or of the two sections that an in-place alltoall exchanges. The output has the streams of one
/// section (alltoall), of all sections of the set (allgather), or of two exchanged sections.
void pass_merge(const SweepCall &call) {
  using Merge = decltype(&merge_target<1>);
  static constexpr Merge kMerge[] = {merge_target<1>, merge_target<2>, merge_target<3>, merge_target<4>,
                                     merge_target<5>, merge_target<6>, merge_target<7>, merge_target<8>};
  const MergeTable &table = *call.merge;
  const SweepItem &item = call.items[0];
  const uint32_t directions = call.in_count / table.in_streams, copies = call.out_count / table.out_streams / directions;
  for (Step step = {0, table.step_words}; step.word < call.words; step.word += step.count) {
    if (step.count > call.words - step.word) step.count = call.words - step.word;
    for (uint32_t p = 0; p < table.part_count; ++p) {
      const MergePart &part = table.parts[p];
      Line *const buffer = reinterpret_cast<Line *>(call.section_buffer);
      const uint32_t buffer_lines = part.stream_count * table.step_words;
      for (uint32_t d = 0; d < directions; ++d) stage_part(call, step, part, item.in + d * table.in_streams, buffer + d * buffer_lines);
      for (uint32_t c = 0; c < directions * copies; ++c) {
        for (uint32_t t = part.first_target; t < part.first_target + part.target_count; ++t) {
          const MergeTarget &target = table.targets[t];
          kMerge[target.source_count - 1](call, step, target, buffer + c / copies * buffer_lines,
                                          item.out[c * table.out_streams + target.stream]);
        }
      }
    }
  }
}

/// Returns the words of a row.
Line *row_of(const SweepCall &call, uint32_t row) { return reinterpret_cast<Line *>(call.section_buffer) + row * kTurnLines; }

/// Combines the words of a step from all input streams into the rows.
void accumulate_rows(const SweepCall &call, Step step) {
  const RowTable &table = *call.rows;
  constexpr uint32_t kAheadStreams = kSectionAheadLines / kTurnWords;
  const uint32_t tiles = (step.count + kStepWords - 1) / kStepWords;
  for (uint32_t i = 0; i < call.in_count; ++i) {
    const std::byte *const from = line_at(call.items[0].in[i], step.word);
    const uint32_t next = i + kAheadStreams, ahead_word = next < call.in_count ? step.word : step.word + step.count;
    const std::byte *const ahead = line_at(call.items[0].in[next % call.in_count], ahead_word);
    const uint32_t ahead_end = ahead_word < call.prefetch_end ? call.prefetch_end - ahead_word : 0;
    Line words[8][kTurnLines];
    for (uint32_t t = 0; t < tiles; ++t) {
      Line tile[kMaxTileLines];
      for (uint32_t w = 0; w < kStepWords; ++w) {
        const uint32_t word = t * kStepWords + w;
        if (word < ahead_end) Isa::prefetch_far(line_at(ahead, word));
        tile[w] = word < step.count ? Isa::transpose(Isa::load_line(line_at(from, word))) : kZeroLine;
      }
      transpose_tile<7, HostOrder>(tile);
      for (uint32_t lane = 0; lane < 8; ++lane) words[lane][t] = tile[lane];
    }
    call.reducer->combine_rows(call.section_buffer, table.in + i % table.in_streams * 8, bytes_of(&words[0][0]), tiles,
                               i < table.in_streams);
  }
}

void pass_reduce_rows(const SweepCall &call) {
  const RowTable &table = *call.rows;
  for (Step step = {0, kTurnWords}; step.word < call.words; step.word += step.count) {
    if (step.count > call.words - step.word) step.count = call.words - step.word;
    accumulate_rows(call, step);
    for (uint32_t e = 0; e < table.egs; ++e) {
      const uint32_t *const row = table.out + e * 8;
      Line lines[kTurnWords];
      for (uint32_t t = 0; t * kStepWords < step.count; ++t) {
        Line tile[kMaxTileLines];
        for (uint32_t lane = 0; lane < 8; ++lane) tile[lane] = row[lane] == kNoRow ? kZeroLine : row_of(call, row[lane])[t];
        transpose_tile<7, HostOrder>(tile);
        for (uint32_t w = 0; w < kStepWords; ++w) lines[t * kStepWords + w] = Isa::transpose(tile[w]);
      }
      const uint32_t keep_lanes = e + 1 == table.egs ? call.keep_lanes : 0;
      for (uint32_t o = e; o < call.out_count; o += table.egs) {
        std::byte *const to = line_at(call.items[0].out[o], step.word);
        for (uint32_t w = 0; w < step.count; ++w)
          Isa::store_line(line_at(to, w), keep_lanes == 0 ? lines[w] : with_kept_lanes(lines[w], line_at(to, w), keep_lanes));
      }
    }
  }
}

void pass_reduce_rows_to_host(const SweepCall &call) {
  for (Step step = {0, kTurnWords}; step.word < call.words; step.word += step.count) {
    if (step.count > call.words - step.word) step.count = call.words - step.word;
    accumulate_rows(call, step);
    for (uint32_t row = 0; row < call.rows->rows; ++row)
      for (uint32_t w = 0; w < step.count; ++w)
        store_word(host_word(call.items[0].out[row], step.word + w), load_word(bytes_of(row_of(call, row)) + 8 * w));
  }
}
