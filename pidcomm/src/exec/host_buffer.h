// A buffer of the library in host memory. The buffer is aligned to a line of 64 bytes, and its
// bytes are not initialised. A large buffer uses huge pages if the system has them, so that the
// first pass over the buffer causes few page faults.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace pidcomm {

class HostBuffer {
 public:
  HostBuffer() = default;
  explicit HostBuffer(std::size_t bytes)
      : bytes_(bytes),
        data_(bytes == 0 ? nullptr : static_cast<std::byte *>(::operator new(bytes, kAlignment))) {
    constexpr std::size_t kHugePageBytes = std::size_t{2} << 20, kPageBytes = 4096;
    if (bytes < 2 * kHugePageBytes) return;  // contains no complete huge page, or only one
    const std::size_t head = -reinterpret_cast<std::uintptr_t>(data()) % kPageBytes;
    madvise(data() + head, bytes - head,
            MADV_HUGEPAGE);  // after an error, the buffer has small pages
  }

  /// If the buffer is smaller than `bytes` bytes, grows the buffer to this size. The contents of
  /// the smaller buffer are then lost.
  void require(std::size_t bytes) {
    if (bytes_ >= bytes) return;
    *this = HostBuffer();  // first frees the old memory, because the host may lack memory for both
                           // buffers
    *this = HostBuffer(bytes);
  }

  std::byte *data() const { return data_.get(); }
  std::size_t size() const { return bytes_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(std::byte *data) const { ::operator delete(data, kAlignment); }
  };
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte, Delete> data_;
};

}  // namespace pidcomm
