// The pass merge (alltoall, allgather) for sections of several entangled groups, and the prefetches
// of all passes for such sections. A part of passes.inl.

/// Makes the lines of a strip of one output stream. Buffered: the input lines are in the buffer at
/// `buffered`.
template <uint32_t Sources, bool Buffered>
void merge_target(const SweepCall &call, Step strip, const MergeTarget &target,
                  const std::byte *const *in, const Line *buffered, const std::byte *out,
                  Line *lines) {
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
    if (target.keep_lanes != 0)
      line = with_kept_lanes(line, line_at(out, strip.word + w), target.keep_lanes);
    lines[w] = line;
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

/// Makes the lines of a strip of one output stream, and stores them.
template <bool Buffered>
void merge_and_store(const SweepCall &call, Step strip, const MergeTarget &target,
                     const std::byte *const *in, const Line *buffered, std::byte *out) {
  Line lines[kStripWords];
  kMergeTarget<Buffered>[target.source_count - 1](call, strip, target, in, buffered, out, lines);
  put_bank(line_at(out, strip.word), lines, strip.count);
}

/// Makes the lines of a strip of some targets, and stores them in all sections of the output. The
/// two lines of a bank pair are stored directly after each other.
class JoinedTargets {
 public:
  /// first: number of the first target.
  JoinedTargets(const SweepCall &call, const SweepItem &item, Step strip, uint32_t first,
                uint32_t count)
      : table_(*call.merge),
        item_(item),
        sections_(call.out_count / table_.out_streams),
        strip_(strip),
        first_(first),
        count_(count) {
    for (uint32_t n = 0; n < count; ++n) {
      const MergeTarget &target = table_.targets[first + n];
      kMergeTarget<false>[target.source_count - 1](call, strip, target, item.in, nullptr,
                                                   item.out[target.stream], lines_[n]);
    }
  }

  /// Calls after_stream() after the stores to each stream.
  template <class AfterStream>
  void store(const AfterStream &after_stream) const {
    for (uint32_t section = 0; section < sections_; ++section)
      for (uint32_t n = 0; n < count_; ++n) {
        const MergeTarget &target = table_.targets[first_ + n];
        const OtherBank &previous = target.previous, &next = target.next;
        std::byte *const to = stream_of(first_ + n, section);
        std::byte *const other = stream_of(next.target, section + next.sections_away);
        if (are_bank_pair(to, other)) {
          put_bank_pair(line_at(to, strip_.word), lines_[n], lines_[next.target - first_],
                        strip_.count);
        } else if (!are_bank_pair(stream_of(previous.target, section - previous.sections_away),
                                  to)) {
          put_bank(line_at(to, strip_.word), lines_[n], strip_.count);
        }
        after_stream();
      }
  }

 private:
  /// Returns the output stream of a target in a section, or null if the lines are not here.
  std::byte *stream_of(uint32_t target, uint32_t section) const {
    if (target - first_ >= count_ || section >= sections_) return nullptr;
    return item_.out[section * table_.out_streams + table_.targets[target].stream];
  }

  const MergeTable &table_;
  const SweepItem &item_;
  const uint32_t sections_;
  const Step strip_;
  const uint32_t first_, count_;
  Line lines_[kJoinedTargets][kStripWords];  // by target
};

/// Makes and stores the lines of a strip for all targets of a unit.
void merge_unit(const SweepCall &call, const SweepItem &item, Step strip, const MergeUnit &unit,
                SectionPrefetch &prefetch) {
  const MergeTable &table = *call.merge;
  const uint32_t end = unit.first_target + unit.target_count,
                 calls = unit.target_count * (call.out_count / table.out_streams);
  const auto prefetch_some = [&] { prefetch.advance(unit.stream_count, calls); };
  for (uint32_t t = unit.first_target; t != end;) {
    const MergeTarget &target = table.targets[t];
    if (table.joins_banks) {
      const uint32_t count = end - t < kJoinedTargets ? end - t : kJoinedTargets;
      JoinedTargets(call, item, strip, t, count).store(prefetch_some);
      t += count;
      continue;
    }
    if (target.tile_targets > 1) {
      merge_tile_of(target.tile_targets)(call, strip, unit, &target, item.in, item.out, prefetch);
    } else {
      merge_and_store<false>(call, strip, target, item.in, nullptr, item.out[target.stream]);
      prefetch_some();
    }
    t += target.tile_targets;
  }
}

/// The output of an item has the streams of one section (alltoall) or of all sections of the set
/// (allgather).
void merge_lines(const SweepCall &call) {
  const MergeTable &table = *call.merge;
  SectionPrefetch prefetch(call, table.units, table.unit_count, table.streams, table.step_words,
                           table.strip_words);
  for (uint32_t step = 0; step < call.words; step += table.step_words) {
    const uint32_t end =
        call.words - step < table.step_words ? call.words : step + table.step_words;
    for (uint32_t i = 0; i < call.item_count; ++i)
      for (uint32_t p = 0; p < table.unit_count; ++p)
        for (Step strip = {step, table.strip_words}; strip.word < end; strip.word += strip.count) {
          if (strip.count > end - strip.word) strip.count = end - strip.word;
          merge_unit(call, call.items[i], strip, table.units[p], prefetch);
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
          merge_and_store<true>(call, strip, target, nullptr, lines, out[target.stream]);
        }
      }
    }
  }
}

void pass_merge(const SweepCall &call) {
  call.merge->is_buffered ? merge_in_place(call) : merge_lines(call);
}
