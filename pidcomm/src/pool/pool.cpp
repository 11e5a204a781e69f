#include "pool/pool.h"

#include <emmintrin.h>

#include <cstring>
#include <iterator>

#include "base/error.h"
#include "base/geometry.h"
#include "line_kernels/kernels.h"
#include "pool/layout.h"
#include "pool/wait.h"

namespace pidcomm {

namespace {

constexpr uint32_t kVersion = 1;  // of the layout

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/// Copies bytes to host memory, and to the pool unless `pool` is null. If they fill a large part of
/// a second-level cache, the stores to host memory are non-temporal: they do not first load the
/// lines that they replace.
void copy_to_host(std::byte *host, std::byte *pool, const std::byte *from, std::size_t bytes) {
  constexpr std::size_t kCachedBytes = std::size_t{512} << 10;
  const auto copy = [&](std::size_t begin, std::size_t end) {
    std::memcpy(host + begin, from + begin, end - begin);
    if (pool != nullptr) std::memcpy(pool + begin, from + begin, end - begin);
  };
  if (bytes < kCachedBytes) return copy(0, bytes);
  const std::size_t head = -reinterpret_cast<uintptr_t>(host) % kLineBytes,
                    tail = (bytes - head) % kLineBytes;
  copy(0, head);
  for (std::size_t at = head; at != bytes - tail; at += kLineBytes) {
    __m128i line[kLineBytes / sizeof(__m128i)];
    std::memcpy(line, from + at, sizeof line);
    if (pool != nullptr) std::memcpy(pool + at, line, sizeof line);
    for (std::size_t i = 0; i < std::size(line); ++i)
      _mm_stream_si128(reinterpret_cast<__m128i *>(host + at) + i, line[i]);
  }
  copy(bytes - tail, bytes);
  _mm_sfence();
}

}  // namespace

uint64_t Pool::own_bytes(uint32_t hosts) {
  return round_up(sizeof(Head) + (uint64_t{hosts} + 1) * sizeof(Seat), PIDCOMM_POOL_PAGE_BYTES);
}

Pool::Head &Pool::head() const { return *reinterpret_cast<Head *>(data()); }
Pool::Seat &Pool::seat(uint32_t number) const {
  return reinterpret_cast<Seat *>(data() + sizeof(Head))[number];
}
Pool::Facts Pool::facts() const {
  return {settings_.bytes, settings_.hosts, static_cast<uint32_t>(settings_.has_switch),
          static_cast<uint32_t>(settings_.coherence), kVersion};
}

uint64_t Pool::allocate(uint64_t bytes) {
  const uint64_t size = round_up(bytes, kLineBytes);
  if (bytes > settings_.bytes || size > free_bytes())
    fail(PIDCOMM_ERR_MEMORY, memory_->title(), " has ", free_bytes(), " free bytes of ",
         settings_.bytes, "; ", bytes, " are needed");
  allocated_ += size;
  return allocated_ - size;
}

void Pool::free_last(uint64_t offset, uint64_t bytes) {
  if (offset + round_up(bytes, kLineBytes) == allocated_) allocated_ = offset;
}

void Pool::check_range(const char *what, uint64_t offset, uint64_t bytes) const {
  if (offset < own_bytes(hosts()) || offset > allocated_ || bytes > allocated_ - offset)
    fail(PIDCOMM_ERR_ARGUMENT, memory_->title(), ": bytes ", offset, " to ", offset + bytes,
         " of a ", what, " must be in allocated memory, ", own_bytes(hosts()), " to ", allocated_);
}

void Pool::write(uint64_t offset, uint64_t bytes, const void *host, void *copy) const {
  check_range("write", offset, bytes);
  if (bytes != 0 && copy != nullptr)
    copy_to_host(static_cast<std::byte *>(copy), data() + offset,
                 static_cast<const std::byte *>(host), bytes);
  else if (bytes != 0)
    std::memcpy(data() + offset, host, bytes);
  flush(data() + offset, bytes);
}

void Pool::read(uint64_t offset, uint64_t bytes, void *host) const {
  check_range("read", offset, bytes);
  flush(data() + offset, bytes);
  if (bytes != 0) copy_to_host(static_cast<std::byte *>(host), nullptr, data() + offset, bytes);
}

void Pool::sync(double timeout_s) {
  guarded([&] {
    Seat &own = seat(number_);
    const uint32_t count = ++syncs_;
    const auto check = [this] { check_alive(); };
    // Hosts that never wait long would not notice the end of the switch.
    if (const double time = clock_s(); has_switch() && time - checked_s_ > kCheckSeconds) {
      checked_s_ = time;
      check();
    }
    own.allocated = allocated_;
    kernels_.fence();
    set(own.arrived, count);
    if (number_ != seat_of(0)) {
      const auto is_released = [&] {
        return has_reached(head().released, count) || load(head().refusal) != PIDCOMM_OK;
      };
      wait(&head().released, timeout_s, is_released, check, [] { return std::string("host 0"); });
      if (!has_reached(head().released, count)) check_refused();
    } else {
      for (uint32_t host = 0; host < hosts(); ++host) {
        Seat &other = seat(seat_of(host));
        wait(
            &other.arrived, timeout_s, [&] { return has_reached(other.arrived, count); }, check,
            [&] { return name_of(seat_of(host)); });
        if (other.allocated != allocated_)
          fail(PIDCOMM_ERR_ARGUMENT, memory_->title(), ": host 0 has allocated ", allocated_,
               " bytes with those of the library, host ", host, " ", other.allocated,
               "; all hosts must make the same allocations");
      }
      set(head().released, count);
    }
  });
}

}  // namespace pidcomm
