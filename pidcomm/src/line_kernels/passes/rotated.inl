// The passes that follow PE-assisted reordering. These passes rotate lines over the lanes of their
// groups. A part of passes.inl.

/// Rotates lines over the lanes of their groups. Lines are in the order of the call (PIM order or
/// host order).
class Rotation {
 public:
  explicit Rotation(const SweepCall &call)
      : slots_(1u << count_bits(call.lane_mask)), is_host_order_(call.host_order) {
    for (uint32_t slot = 0; slot < slots_; ++slot) {
      uint64_t map = 0;
      for (uint32_t lane = 0; lane < 8; ++lane) {
        const uint32_t index = extract_bits(lane, call.lane_mask);
        const uint32_t from = deposit_bits((index - slot) & (slots_ - 1), call.lane_mask);
        map |= uint64_t{(lane & ~call.lane_mask) | from} << 8 * lane;
      }
      lanes_[slot] = Isa::lane_control(map);
      words_[slot] = Isa::word_control(map);
    }
  }

  uint32_t slots() const { return slots_; }

  /// Moves the data of the lane with index c to the lane with index c + slot.
  Line rotated(Line line, uint32_t slot) const {
    return is_host_order_ ? Isa::shuffle_words(line, words_[slot]) : rotated_lanes(line, slot);
  }
  /// Does the same for lines in PIM order, even if the lines of the call are in host order.
  Line rotated_lanes(Line line, uint32_t slot) const {
    return Isa::shuffle_lanes(line, lanes_[slot]);
  }

 private:
  uint32_t slots_;
  bool is_host_order_;
  decltype(Isa::lane_control(0)) lanes_[8];
  decltype(Isa::word_control(0)) words_[8];
};

void pass_rotate(const SweepCall &call) {
  const Rotation rotation(call);
  Line lines[2 * kMaxTileLines];
  for (uint32_t w = 0; w < call.words; ++w) {
    for (uint32_t i = 0; i < call.item_count; ++i) {
      const SweepItem &streams = call.items[i];
      for (uint32_t s = 0; s < call.in_count; ++s) lines[s] = next_line(call, i, s, w);
      for (uint32_t s = 0; s < call.in_count; ++s) {
        const Line rotated =
            rotation.rotated(reordered(lines[s], call.load_transposes), s & (rotation.slots() - 1));
        Isa::store_line(line_at(streams.out[s], w), reordered(rotated, call.store_transposes));
      }
    }
  }
}

void pass_replicate_rotated(const SweepCall &call) {
  const Rotation rotation(call);
  const auto load = [&](uint32_t item, uint32_t w) {
    return reordered(next_line(call, item, 0, w), call.load_transposes);
  };
  put_versions(call, rotation.slots(), load, [&](Line line, uint32_t slot) {
    return reordered(rotation.rotated(line, slot), call.store_transposes);
  });
}

/// For every item: accumulates the slots, rotates each slot to its lanes, and combines the slots
/// into the first lines of the buffer.
void reduce_slots(const SweepCall &call, Step step, const Rotation &rotation, const Store *store) {
  accumulate_step(call, step, lines_of(call, 0), one_batch(rotation.slots()), store);
  for (uint32_t i = 0; i < call.item_count; ++i) {
    Line *const sums = lines_of(call, i);
    for (uint32_t slot = 0; slot < rotation.slots(); ++slot) {
      for (uint32_t w = 0; w < step.count; ++w) {
        const uint32_t ahead = step.word + step.count + w;
        if (ahead < call.prefetch_end)
          Isa::prefetch_far(line_at(call.items[i].in[slot], ahead));  // for the next step
        Line &sum = sums[slot * step.count + w];
        sum = rotation.rotated(sum, slot);
      }
    }
    combine_blocks(call, step, sums, rotation.slots());
  }
}

void pass_reduce_rotated(const SweepCall &call) {
  const Rotation rotation(call);
  each_step(
      call,
      [&](Step step) {
        reduce_slots(call, step, rotation, nullptr);
        for (uint32_t i = 0; call.store_transposes && i < call.item_count; ++i)
          transpose_lines(lines_of(call, i), step.count);
        put_everywhere(call, step);
      },
      call.tuning.step_words);
}

/// Like pass_reduce_lanes, stores the lines of one step while it loads the lines of the next step.
void pass_reduce_rotated_replicate(const SweepCall &call) {
  const Rotation rotation(call);
  constexpr uint32_t kSumLines =
      kMaxTileLines * kStepWords;  // the buffer has the lines to store behind the sums
  static_assert(2 * kSumLines <= kItemBufferLines);
  Store store = {nullptr, {0, 0}, rotation.slots()};
  each_step(call, [&](Step step) {
    reduce_slots(call, step, rotation, waiting(store));
    for (uint32_t i = 0; i < call.item_count; ++i) {
      Line *const sums = lines_of(call, i);
      Line *const waiting = sums + kSumLines;
      if (call.store_transposes)
        transpose_lines(sums, step.count);  // afterwards, the sums are in PIM order
      for (uint32_t slot = 0; slot < rotation.slots(); ++slot)
        for (uint32_t w = 0; w < step.count; ++w)
          waiting[slot * step.count + w] = rotation.rotated_lanes(sums[w], slot);
    }
    store = {bytes_of(lines_of(call, 0) + kSumLines), step, rotation.slots()};
  });
  put_waiting(call, store);
}

void pass_reduce_rotated_to_host(const SweepCall &call) {
  const Rotation rotation(call);
  each_step(call, [&](Step step) {
    reduce_slots(call, step, rotation, nullptr);
    for (uint32_t i = 0; !call.host_order && i < call.item_count; ++i)
      transpose_lines(lines_of(call, i), step.count);
    put_words(call, step);
  });
}
