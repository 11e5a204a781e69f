// The functions that flush lines, and the copy function of the streaming limit. passes.inl includes this file.

void flush_lines(const std::byte *line, uint32_t words, uint32_t banks) {
  for (uint32_t w = 0; w < words; ++w)
    for (uint32_t bank = 0; bank < banks; ++bank) Isa::flush_line(line + kLineStride * w + kLineBytes * bank);
}

void copy_lines(const CopyCall &call) {
  Line sink = kZeroLine;
  for (uint32_t turn = 0; turn < call.words; turn += call.turn_words) {
    const uint32_t end = turn + call.turn_words < call.words ? turn + call.turn_words : call.words;
    for (uint32_t s = 0; s < call.streams; ++s) {
      for (uint32_t w = turn; w < end; ++w) {
        const bool prefetches = call.ahead_words != 0 && w + call.ahead_words < call.prefetch_end;
        for (uint32_t bank = 0; bank < call.banks; ++bank) {
          const uint64_t at = kLineStride * w + kLineBytes * bank;
          Line line = kZeroLine;
          if (call.in != nullptr) {
            if (prefetches)
              call.ahead_level == 1 ? Isa::prefetch_line(line_at(call.in[s] + at, call.ahead_words))
                                    : Isa::prefetch_far(line_at(call.in[s] + at, call.ahead_words));
            line = Isa::load_line(call.in[s] + at);
          }
          if (call.out != nullptr)
            Isa::store_line(call.out[s] + at, line);
          else
            sink = combine_lines<uint64_t, PIDCOMM_OR>(sink, line);
        }
      }
    }
  }
  __asm__ volatile("" : : "m"(sink));  // prevents the compiler from removing the loads
}
