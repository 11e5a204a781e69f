#include "base/handle_arena.h"

#include <sys/mman.h>

#include <new>

namespace dpuemu {

void *HandleArena::allocate(size_t pages) {
  const size_t bytes = pages * kPageBytes;
  if (chunks_.empty() || kChunkBytes - chunks_.back().used_bytes < bytes) {
    chunks_.reserve(chunks_.size() + 1);
    void *begin = mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) throw std::bad_alloc();
    madvise(begin, kChunkBytes, MADV_NOHUGEPAGE);  // because retire() frees single pages
    madvise(begin, kChunkBytes, MADV_DONTDUMP);
    chunks_.push_back({static_cast<uint8_t *>(begin), 0});
  }
  Chunk &chunk = chunks_.back();
  void *first_page = chunk.begin + chunk.used_bytes;
  chunk.used_bytes += bytes;
  madvise(first_page, bytes, MADV_DODUMP);
  return first_page;
}

void HandleArena::retire(void *first_page, size_t pages) {
  madvise(first_page, pages * kPageBytes, MADV_DONTNEED);
}

void *HandleArena::page_of(const void *address) const {
  const auto value = reinterpret_cast<uintptr_t>(address);
  for (const Chunk &chunk : chunks_) {
    const auto begin = reinterpret_cast<uintptr_t>(chunk.begin);
    if (value >= begin && value - begin < chunk.used_bytes)
      return chunk.begin + (value - begin) / kPageBytes * kPageBytes;
  }
  return nullptr;
}

}  // namespace dpuemu
