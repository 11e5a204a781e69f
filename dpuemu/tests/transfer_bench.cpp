// Bandwidth of dpu_push_xfer, compared with a streaming copy of the same number of bytes between
// two contiguous arrays.
//
//   dpuemu_transfer_bench [PEs = 1024] [KiB per PE = 1024] [repetitions = 5]
//
// GB/s counts bytes read plus bytes written, 1 GB = 1e9 B, median of the repetitions; memory is
// touched before the clock starts.
#include <dpu.h>
#include <dpuemu.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

double median_seconds(int repetitions, const std::function<void()> &body) {
  std::vector<double> seconds;
  body();
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void stream_copy(uint8_t *to, const uint8_t *from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char *>(from) + i + 2048, _MM_HINT_T0);
    const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i *>(from + i));
    const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i *>(from + i + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i *>(to + i), low);
    _mm256_stream_si256(reinterpret_cast<__m256i *>(to + i + 32), high);
  }
  _mm_sfence();
}
#else
void stream_copy(uint8_t *to, const uint8_t *from, size_t bytes) { std::memcpy(to, from, bytes); }
#endif

uint8_t *touched_array(size_t bytes) {
  void *array = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (array == MAP_FAILED) std::exit(1);
  madvise(array, bytes, MADV_HUGEPAGE);
  std::memset(array, 1, bytes);
  return static_cast<uint8_t *>(array);
}

void print_row(const char *what, double bytes, double seconds, double limit_gb_s) {
  const double gb_s = bytes / seconds / 1e9;
  std::printf("%-28s %8.2f GB/s", what, gb_s);
  if (limit_gb_s > 0) std::printf("  %5.1f%% of the copy", 100 * gb_s / limit_gb_s);
  std::printf("\n");
}

}  // namespace

int main(int argc, char **argv) {
  const auto argument = [&](int i, unsigned long fallback) {
    return argc > i ? std::strtoul(argv[i], nullptr, 10) : fallback;
  };
  const auto pes = static_cast<uint32_t>(argument(1, 1024));
  const size_t bytes_per_pe = argument(2, 1024) << 10;
  const auto repetitions = static_cast<int>(argument(3, 5));
  const size_t total_bytes = pes * bytes_per_pe;

  dpuemu_machine_t machine;
  DPU_ASSERT(dpuemu_get_machine(&machine));
  const char *const flush_words[] = {"on", "off", "once"};
  std::printf("# %u PEs x %zu bytes, %u threads, huge pages %s, flush %s\n", pes, bytes_per_pe,
              machine.threads, machine.hugepages == 1 ? "on" : "off",
              flush_words[machine.flush - 1]);

  double limit_gb_s;
  {
    uint8_t *from = touched_array(total_bytes), *to = touched_array(total_bytes);
    const double seconds = median_seconds(repetitions, [&] {
      std::vector<std::thread> threads;
      const size_t share = total_bytes / machine.threads & ~size_t{63};
      for (uint32_t i = 0; i < machine.threads; ++i)
        threads.emplace_back(stream_copy, to + i * share, from + i * share, share);
      for (std::thread &thread : threads) thread.join();
    });
    limit_gb_s = 2.0 * static_cast<double>(total_bytes) / seconds / 1e9;
    print_row("streaming copy", 2.0 * static_cast<double>(total_bytes), seconds, 0);
    munmap(from, total_bytes);
    munmap(to, total_bytes);
  }

  dpu_set_t set, dpu;
  DPU_ASSERT(dpu_alloc(pes, nullptr, &set));
  uint8_t *host = touched_array(total_bytes + 64);
  const auto push = [&](dpu_xfer_t direction, size_t misalignment) {
    uint32_t i;
    DPU_FOREACH(set, dpu, i)
    DPU_ASSERT(dpu_prepare_xfer(dpu, host + misalignment + i * bytes_per_pe));
    DPU_ASSERT(dpu_push_xfer(set, direction, DPU_MRAM_HEAP_POINTER_NAME, 0, bytes_per_pe,
                             DPU_XFER_DEFAULT));
  };
  const double moved = 2.0 * static_cast<double>(total_bytes);
  print_row("to PEs", moved, median_seconds(repetitions, [&] { push(DPU_XFER_TO_DPU, 0); }),
            limit_gb_s);
  print_row("to PEs, host at 16 mod 64", moved,
            median_seconds(repetitions, [&] { push(DPU_XFER_TO_DPU, 16); }), limit_gb_s);
  print_row("from PEs", moved, median_seconds(repetitions, [&] { push(DPU_XFER_FROM_DPU, 0); }),
            limit_gb_s);
  print_row("from PEs, host at 16 mod 64", moved,
            median_seconds(repetitions, [&] { push(DPU_XFER_FROM_DPU, 16); }), limit_gb_s);
  print_row("broadcast (bytes written)", moved / 2,
            median_seconds(repetitions,
                           [&] {
                             DPU_ASSERT(dpu_broadcast_to(set, DPU_MRAM_HEAP_POINTER_NAME, 0, host,
                                                         bytes_per_pe, DPU_XFER_DEFAULT));
                           }),
            limit_gb_s);
  munmap(host, total_bytes + 64);
  DPU_ASSERT(dpu_free(set));
}
