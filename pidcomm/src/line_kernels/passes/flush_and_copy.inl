// The functions that flush and prefetch lines, and the copy function of the streaming limit.
// passes.inl includes this file.

void flush_lines(const std::byte *line, uint32_t words, uint32_t banks) {
  for (uint32_t w = 0; w < words; ++w)
    for (uint32_t bank = 0; bank < banks; ++bank)
      Isa::flush_line(line + kLineStride * w + kLineBytes * bank);
}

void prefetch_lines(const std::byte *line, uint32_t words) {
  for (uint32_t w = 0; w < words; ++w) Isa::prefetch_far(line + kLineStride * w);
}

/// See Kernels::copy_non_temporal.
void copy_non_temporal(std::byte *to, std::byte *cached, const std::byte *from, std::size_t lines) {
  for (std::size_t at = 0; at < lines * sizeof(Line); at += sizeof(Line)) {
    const Line line = load_words(from + at);
    if (cached != nullptr) store_words(cached + at, line);
    Isa::store_words_non_temporal(to + at, line);
  }
}

/// Lets the compiler assume that a line is used, so that it keeps the load of the line.
void keep_load(const Line &line) {
  for (int i = 0; i < Line::kParts; ++i) __asm__ volatile("" : : "x"(line.part[i]));
}

void copy_lines(const CopyCall &call) {
  Line
      filler;  // not zeros: some processors store lines of zeros three times as fast as other lines
  for (int i = 0; i < Line::kParts; ++i) filler.part[i] = Line::Part{} + 0x0123456789ABCDEF;
  for (uint32_t strip = 0; strip < call.words; strip += call.strip_words) {
    const uint32_t end =
        strip + call.strip_words < call.words ? strip + call.strip_words : call.words;
    for (uint32_t s = 0; s < call.streams; ++s) {
      for (uint32_t w = strip; w < end; ++w) {
        const bool prefetches = call.ahead_words != 0 && w + call.ahead_words < call.prefetch_end;
        for (uint32_t bank = 0; bank < call.banks; ++bank) {
          const uint64_t at = kLineStride * w + kLineBytes * bank;
          Line line = filler;
          if (call.in != nullptr) {
            if (prefetches)
              call.ahead_level == 1 ? Isa::prefetch_line(line_at(call.in[s] + at, call.ahead_words))
                                    : Isa::prefetch_far(line_at(call.in[s] + at, call.ahead_words));
            line = Isa::load_line(call.in[s] + at);
          }
          if (call.out != nullptr)
            Isa::store_line(call.out[s] + at, line);
          else
            keep_load(line);
        }
      }
    }
  }
}
