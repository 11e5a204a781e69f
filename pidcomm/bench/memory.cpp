// Measures how fast this machine's memory handles lines, without the library: the basis of the host
// pass's design.
//
//   make -C .. test-native-pidcomm
//   ../build/pidcomm/release/bench/bench_memory [MiB per side = 1024] [threads = 2]
//
// One side is a block of memory on huge pages. Every row is the median of 5 sweeps over it; GB/s
// count bytes read and written (1 GB = 1e9 bytes). Needs AVX-512. Not part of the library; `pidcomm
// bench` measures the collectives themselves.
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kLine = 64,
                      kChunk = 128 << 10;  // a chunk is as long as the run of a pair of banks
constexpr std::size_t kRow = 1 << 20, kRows = 16;  // host rows of a pair of entangled groups

std::size_t g_side_bytes = std::size_t{1} << 30;
std::size_t g_threads = 2;
char *g_in, *g_out;

using Clock = std::chrono::steady_clock;

/// Prints the rate of work(unit) over all units, shared evenly among the threads.
template <class Work>
void report(const std::string &what, std::size_t units, double bytes, const Work &work) {
  std::vector<double> seconds;
  for (int round = 0; round < 5; ++round) {
    const auto begin = Clock::now();
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < g_threads; ++t)
      threads.emplace_back([&, t] {
        for (std::size_t unit = units * t / g_threads; unit < units * (t + 1) / g_threads; ++unit)
          work(unit);
        _mm_mfence();
      });
    for (std::thread &thread : threads) thread.join();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("%-64s %8.1f ms %7.2f GB/s\n", what.c_str(), 1e3 * seconds[2],
              bytes / seconds[2] / 1e9);
  std::fflush(stdout);
}

template <class Work>
void report_chunks(const std::string &what, int sides, const Work &work) {
  report(what, g_side_bytes / kChunk,
         static_cast<double>(sides) * static_cast<double>(g_side_bytes),
         [&](std::size_t chunk) { work(g_in + chunk * kChunk, g_out + chunk * kChunk); });
}

void report_banks() {
  for (const std::size_t lines : {1, 8, 16, 64})
    report_chunks("stores, " + std::to_string(lines) + " line(s) of each bank of a pair in turn", 1,
                  [lines](const char *, char *out) {
                    for (std::size_t pair = 0; pair < kChunk; pair += 2 * kLine * lines)
                      for (std::size_t bank = 0; bank < 2; ++bank)
                        for (std::size_t n = 0; n < lines; ++n)
                          _mm512_stream_si512(
                              reinterpret_cast<__m512i *>(out + pair + kLine * (2 * n + bank)),
                              _mm512_setzero_si512());
                  });
}

enum class Fetch { none, first_level, second_level, non_temporal };
constexpr const char *kFetchNames[] = {"no prefetch", "prefetch into L1", "prefetch into L2",
                                       "prefetch non-temporal"};

template <Fetch How>
void fetch(const char *line) {
  if constexpr (How == Fetch::first_level) _mm_prefetch(line, _MM_HINT_T0);
  if constexpr (How == Fetch::second_level) _mm_prefetch(line, _MM_HINT_T1);
  if constexpr (How == Fetch::non_temporal) _mm_prefetch(line, _MM_HINT_NTA);
}

__m512i load(const char *line) { return _mm512_load_si512(line); }
void copy(const char *from, char *to) {
  _mm512_stream_si512(reinterpret_cast<__m512i *>(to), load(from));
}
void flush(const char *begin, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kLine) _mm_clflushopt(const_cast<char *>(begin + i));
}
void keep(__m512i value) { __asm__ volatile("" : : "v"(value)); }

template <Fetch How>
void report_prefetch() {
  for (std::size_t ahead : {1024, 4096, 16384}) {
    if (How == Fetch::none && ahead != 1024) break;
    const std::string suffix =
        std::string(", ") + kFetchNames[static_cast<int>(How)] +
        (How == Fetch::none ? "" : ", " + std::to_string(ahead) + " bytes ahead");
    report_chunks("loads" + suffix, 1, [ahead](const char *in, char *) {
      __m512i sum = _mm512_setzero_si512();
      for (std::size_t i = 0; i < kChunk; i += kLine) {
        fetch<How>(in + i + ahead);
        sum = _mm512_or_si512(sum, load(in + i));
      }
      keep(sum);
    });
    report_chunks("copy" + suffix, 2, [ahead](const char *in, char *out) {
      for (std::size_t i = 0; i < kChunk; i += kLine) {
        fetch<How>(in + i + ahead);
        copy(in + i, out + i);
      }
    });
  }
}

void report_streams() {
  for (std::size_t streams : {2, 4, 8, 16, 32}) {
    for (std::size_t turn : {std::size_t{1}, std::size_t{16}}) {
      const std::size_t length = kChunk / streams, step = turn * kLine;
      report_chunks("copy, " + std::to_string(streams) + " streams, " + std::to_string(turn) +
                        " line(s) of each in turn",
                    2, [=](const char *in, char *out) {
                      for (std::size_t i = 0; i < length; i += step)
                        for (std::size_t s = 0; s < streams; ++s)
                          for (std::size_t j = i; j < i + step && j < length; j += kLine)
                            copy(in + s * length + j, out + s * length + j);
                    });
    }
  }
  for (std::size_t phase : {512, 2048, 8192, 32768}) {
    alignas(kLine) static thread_local char held[32768];
    report_chunks("copy, " + std::to_string(phase / kLine) + " lines read, then as many written", 2,
                  [=](const char *in, char *out) {
                    for (std::size_t i = 0; i < kChunk; i += phase) {
                      for (std::size_t j = 0; j < phase; j += kLine)
                        _mm512_store_si512(held + j, load(in + i + j));
                      for (std::size_t j = 0; j < phase; j += kLine) copy(held + j, out + i + j);
                    }
                  });
  }
}

void report_flushes() {
  report_chunks("flushes of lines that are in no cache", 1,
                [](const char *in, char *) { flush(in, kChunk); });
  for (std::size_t batch : {512, 4096, 32768, 131072}) {
    const std::string suffix = ", batches of " + std::to_string(batch / kLine) + " lines";
    const auto copy_batches = [batch](bool before, bool after) {
      return [=](const char *in, char *out) {
        for (std::size_t b = 0; b < kChunk; b += batch) {
          if (before) {
            flush(in + b, batch);
            _mm_mfence();
          }
          for (std::size_t i = b; i < b + batch; i += kLine) copy(in + i, out + i);
          if (after) flush(in + b, batch);
        }
      };
    };
    report_chunks("copy, flush and fence before" + suffix, 2, copy_batches(true, false));
    report_chunks("copy, flush after, no fence" + suffix, 2, copy_batches(false, true));
    report_chunks("copy, flush and fence before, flush after" + suffix, 2,
                  copy_batches(true, true));
    report_chunks("copy, flush of the next batch between its lines" + suffix, 2,
                  [batch](const char *in, char *out) {
                    flush(in, batch);
                    for (std::size_t b = 0; b < kChunk; b += batch) {
                      _mm_mfence();
                      for (std::size_t i = b; i < b + batch; i += kLine) {
                        if (b + batch < kChunk) flush(in + i + batch, kLine);
                        copy(in + i, out + i);
                      }
                    }
                  });
  }
}

/// Adjacent lines <-> 16 rows that are 1 MiB apart, as in scatter and gather.
void report_rows() {
  const double bytes = 2.0 * static_cast<double>(g_side_bytes);
  const std::size_t units = g_side_bytes / (kRows * kRow);
  for (std::size_t turn : {64, 128, 512}) {
    for (std::size_t ahead : {0, 512, 4096}) {
      const std::string suffix = ", " + std::to_string(turn) +
                                 " bytes of a row in turn, prefetch " + std::to_string(ahead) +
                                 " bytes ahead";
      const auto visit = [=](std::size_t unit, const auto &move) {
        for (std::size_t at = 0; at < kRow; at += turn)
          for (std::size_t row = 0; row < kRows; ++row)
            for (std::size_t i = 0; i < turn; i += kLine) {
              const std::size_t base = unit * kRows * kRow;
              move(base + at * kRows + row * turn + i, base + row * kRow + at + i);
            }
      };
      report("lines to rows" + suffix, units, bytes, [=](std::size_t unit) {
        visit(unit, [=](std::size_t line, std::size_t row) {
          if (ahead != 0) fetch<Fetch::first_level>(g_in + line + ahead);
          copy(g_in + line, g_out + row);
        });
      });
      report("rows to lines" + suffix, units, bytes, [=](std::size_t unit) {
        visit(unit, [=](std::size_t line, std::size_t row) {
          if (ahead != 0) fetch<Fetch::first_level>(g_in + row + ahead);
          copy(g_in + row, g_out + line);
        });
      });
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (!__builtin_cpu_supports("avx512f")) {
    std::fputs("bench_memory needs AVX-512\n", stderr);
    return EXIT_FAILURE;
  }
  const std::size_t mib = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1024;
  g_threads = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 2;
  g_side_bytes = mib / 16 * 16 << 20;
  if (g_side_bytes == 0 || g_threads == 0) {
    std::fputs("usage: bench_memory [MiB per side, at least 16] [threads, at least 1]\n", stderr);
    return EXIT_FAILURE;
  }
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const std::size_t mapped = 2 * g_side_bytes + 2 * kHuge;  // prefetches may run past the end
  void *memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    return EXIT_FAILURE;
  }
  g_in = reinterpret_cast<char *>((reinterpret_cast<std::uintptr_t>(memory) + kHuge - 1) / kHuge *
                                  kHuge);
  g_out = g_in + g_side_bytes;
  madvise(g_in, 2 * g_side_bytes, MADV_HUGEPAGE);
  std::memset(g_in, 1, 2 * g_side_bytes);

  report_prefetch<Fetch::none>();
  report_prefetch<Fetch::first_level>();
  report_prefetch<Fetch::second_level>();
  report_prefetch<Fetch::non_temporal>();
  report_chunks("stores", 1, [](const char *, char *out) {
    for (std::size_t i = 0; i < kChunk; i += kLine)
      _mm512_stream_si512(reinterpret_cast<__m512i *>(out + i), _mm512_setzero_si512());
  });
  report_banks();
  report_streams();
  report_flushes();
  report_rows();
}
