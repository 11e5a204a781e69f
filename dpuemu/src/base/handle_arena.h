// Pages whose addresses are never reused, so a handle that a program keeps after dpu_free differs
// from all live handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dpuemu {

/// Not synchronised: the caller holds the machine's mutex.
class HandleArena {
 public:
  static constexpr size_t kPageBytes = 4096;

  /// Returns `pages` contiguous zeroed pages. Throws std::bad_alloc.
  void *allocate(size_t pages);

  /// Frees the memory of the pages but keeps their addresses: the retired pages read as zero.
  void retire(void *first_page, size_t pages);

  /// Returns the page of `address` if the arena has ever allocated the page, else nullptr.
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
