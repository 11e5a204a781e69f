// The passes of `ring` and `tree`, which move data from one group member to another. A part of
// passes.inl.

void pass_member_step(const SweepCall &call) {
  const auto control = Isa::lane_control(call.lane_map);
  each_step(call, [&](Step step) {
    for (uint32_t i = 0; i < call.item_count; ++i)
      for (uint32_t w = 0; w < step.count; ++w)
        lines_of(call, i)[w] = Isa::shuffle_lanes(next_line(call, i, 0, step.word + w), control);
    put_everywhere(call, step);
  });
}

/// Moves lanes always in PIM order, as bytes of a beat.
void pass_member_step_reduce(const SweepCall &call) {
  const auto control = Isa::lane_control(call.lane_map);
  each_step(call, [&](Step step) {
    for (uint32_t i = 0; i < call.item_count; ++i) {
      Line *const first = lines_of(call, i), *const second = first + kStepWords;
      for (uint32_t w = 0; w < step.count; ++w) {
        const Line line = next_line(call, i, 0, step.word + w);
        const Line other = call.in_count == 1 ? line : next_line(call, i, 1, step.word + w);
        first[w] = reordered(line, call.load_transposes);
        second[w] = reordered(Isa::shuffle_lanes(other, control), call.load_transposes);
      }
      call.reducer->combine(bytes_of(first), bytes_of(second), step.count * sizeof(Line));
      if (call.store_transposes) transpose_lines(first, step.count);
    }
    put_everywhere(call, step);
  });
}
