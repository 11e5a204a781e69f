#include "pool/pool.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/geometry.h"
#include "line_kernels/kernels.h"
#include "pool/layout.h"
#include "pool/wait.h"

namespace pidcomm {

namespace {

constexpr uint32_t kVersion = 2;  // of the layout

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

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

/// Copies bytes to host memory, and to the pool unless `pool` is null. If they are a part of
/// `all_bytes` that fill a large part of a second-level cache, the stores to host memory are
/// non-temporal: they do not first load the lines that they replace.
void Pool::copy_to_host(std::byte *host, std::byte *pool, const std::byte *from, std::size_t bytes,
                        std::size_t all_bytes) const {
  constexpr std::size_t kCachedBytes = std::size_t{512} << 10;
  const auto copy = [&](std::size_t begin, std::size_t end) {
    std::memcpy(host + begin, from + begin, end - begin);
    if (pool != nullptr) std::memcpy(pool + begin, from + begin, end - begin);
  };
  if (all_bytes < kCachedBytes) return copy(0, bytes);
  const std::size_t head = std::min(-reinterpret_cast<uintptr_t>(host) % kLineBytes, bytes),
                    lines = (bytes - head) / kLineBytes;
  copy(0, head);
  kernels_.copy_non_temporal(host + head, pool == nullptr ? nullptr : pool + head, from + head,
                             lines);
  copy(head + lines * kLineBytes, bytes);
  kernels_.fence();
}

void Pool::write(uint64_t offset, uint64_t bytes, const void *host, void *copy) const {
  check_range("write", offset, bytes);
  if (bytes != 0 && copy != nullptr)
    copy_to_host(static_cast<std::byte *>(copy), data() + offset,
                 static_cast<const std::byte *>(host), bytes, bytes);
  else if (bytes != 0)
    std::memcpy(data() + offset, host, bytes);
  flush(data() + offset, bytes);
}

void Pool::read(uint64_t offset, uint64_t bytes, void *host) const {
  check_range("read", offset, bytes);
  flush(data() + offset, bytes);
  if (bytes != 0)
    copy_to_host(static_cast<std::byte *>(host), nullptr, data() + offset, bytes, bytes);
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
        if (other.allocated == 0)
          fail(PIDCOMM_ERR_ARGUMENT, memory_->title(), ": host 0 is in a sync, host ", host,
               " in an allgather; all hosts must make the same calls");
        if (other.allocated != allocated_)
          fail(PIDCOMM_ERR_ARGUMENT, memory_->title(), ": host 0 has allocated ", allocated_,
               " bytes with those of the library, host ", host, " ", other.allocated,
               "; all hosts must make the same allocations");
      }
      set(head().released, count);
    }
  });
}

/// Waits until all hosts have written a chunk. Each host compares the calls, so that none waits for
/// another one, as in a sync.
void Pool::exchange(const Gather &gather) {
  Seat &own = seat(number_);
  own.allocated = 0;
  own.gather[gather.sync % 2] = gather;
  flush(own.gather, sizeof own.gather);
  kernels_.fence();
  set(own.arrived, gather.sync);
  for (uint32_t n = 1; n < hosts(); ++n) {
    const uint32_t host = (this->host() + n) % hosts();
    Seat &other = seat(seat_of(host));
    const auto has_arrived = [&] { return has_reached(other.arrived, gather.sync); };
    wait(
        &other.arrived, settings_.timeout_s,
        [&] { return has_arrived() || load(head().refusal) != PIDCOMM_OK; },
        [this] { check_alive(); }, [&] { return name_of(seat_of(host)); });
    if (!has_arrived()) check_refused();
    flush(other.gather, sizeof other.gather);
    if (other.gather[gather.sync % 2] != gather)
      fail(PIDCOMM_ERR_ARGUMENT, memory_->title(), ": host ", this->host(), " gathers ",
           gather.bytes, " bytes of each host through bytes ", gather.offset, " to ",
           gather.offset + gather.area_bytes, ", host ", host,
           " does not; all hosts must make the same calls");
  }
}

/// The area has two slots of a chunk for each host. Chunks use the first and the second slots in
/// turn: when all hosts have written a chunk, they have read the chunk before it.
void Pool::allgather(uint64_t offset, uint64_t area_bytes, uint64_t bytes, const void *host,
                     void *all) {
  check_range("gather", offset, area_bytes);
  const uint64_t most = area_bytes / 2 / hosts() / kLineBytes * kLineBytes;
  if (most == 0 || offset % kLineBytes != 0)
    fail(PIDCOMM_ERR_ARGUMENT, memory_->title(), ": the ", area_bytes, " bytes at ", offset,
         " for an allgather must begin at a multiple of ", kLineBytes, " and be at least ",
         2 * kLineBytes * hosts());
  const auto *const from = static_cast<const std::byte *>(host);
  auto *const to = static_cast<std::byte *>(all);
  guarded([&] {
    // Slots of another area may overlap those of this one.
    if (offset != gather_offset_ || area_bytes != gather_area_bytes_)
      exchange({offset, area_bytes, bytes, ++syncs_});
    gather_offset_ = offset;
    gather_area_bytes_ = area_bytes;
    for (uint64_t at = 0; at < bytes; at += most) {
      const uint64_t size = std::min(most, bytes - at);
      std::byte *const slots = data() + offset + ++chunks_ % 2 * hosts() * most;
      const auto copy = [&](uint32_t of, std::byte *written, const std::byte *read) {
        copy_to_host(to + of * bytes + at, written, read, size, bytes);
      };
      std::byte *const slot = slots + this->host() * most;
      copy(this->host(), slot, from + at);
      flush(slot, size);
      exchange({offset, area_bytes, bytes, ++syncs_});
      for (uint32_t n = 1; n < hosts(); ++n) {
        const uint32_t other = (this->host() + n) % hosts();
        flush(slots + other * most, size);
        copy(other, nullptr, slots + other * most);
      }
    }
  });
}

}  // namespace pidcomm
