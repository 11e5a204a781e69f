// Pages whose addresses are never used twice: what a program keeps after dpu_free can be told from what is alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dpuemu {

/// Not synchronised: the caller holds the machine's mutex.
class HandleArena {
 public:
  static constexpr size_t kPageBytes = 4096;

  /// `pages` zeroed pages, next to each other. Throws std::bad_alloc.
  void *allocate(size_t pages);

  /// Gives the memory back but not the addresses: the pages read as zero from now on.
  void retire(void *first_page, size_t pages);

  /// The page that `address` lies in if the arena ever handed it out, else nullptr.
  void *page_of(const void *address) const;

 private:
  static constexpr size_t kChunkBytes = size_t{1} << 30;
  struct Chunk {
    uint8_t *begin;
    size_t used_bytes;
  };
  std::vector<Chunk> chunks_;
};

}  // namespace dpuemu
