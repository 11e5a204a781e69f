#include "pool/pool.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/geometry.h"
#include "base/recorder.h"
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

/// Copies bytes to host memory, and to the pool unless `pool` is null. call_bytes: the bytes that
/// the whole call stores to host memory. If they fill a large part of a second-level cache, the
/// stores are non-temporal: they do not first load the lines that they replace.
void Pool::copy_to_host(std::byte *host, std::byte *pool, const std::byte *from, std::size_t bytes,
                        std::size_t call_bytes) const {
  constexpr std::size_t kCachedBytes = std::size_t{512} << 10;
  const auto copy = [&](std::size_t begin, std::size_t end) {
    std::memcpy(host + begin, from + begin, end - begin);
    if (pool != nullptr) std::memcpy(pool + begin, from + begin, end - begin);
  };
  if (call_bytes < kCachedBytes) return copy(0, bytes);
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

const std::byte *Pool::view(uint64_t offset, uint64_t bytes) const {
  check_range("read", offset, bytes);
  flush(data() + offset, bytes);
  return data() + offset;
}

void Pool::read(uint64_t offset, uint64_t bytes, void *host) const {
  const std::byte *const from = view(offset, bytes);
  if (bytes != 0) copy_to_host(static_cast<std::byte *>(host), nullptr, from, bytes, bytes);
}

/// Checks whether the switch is alive, if that is due: hosts that never wait long would not notice
/// its end.
void Pool::check_switch() {
  const double time = clock_s();
  if (!has_switch() || time - checked_s_ <= kCheckSeconds) return;
  checked_s_ = time;
  check_alive();
}

/// Records the hosts that have not arrived in a sync.
void Pool::record_missing(uint32_t sync) const {
  uint32_t first = 0, missing = 0;
  for (uint32_t host = hosts(); host-- > 0;) {
    if (has_reached(seat(seat_of(host)).arrived, sync)) continue;
    first = host;
    ++missing;
  }
  await_hosts(first, missing);
}

void Pool::sync(double timeout_s) {
  guarded([&] {
    Seat &own = seat(number_);
    const uint32_t count = ++syncs_;
    bool is_recorded = false;  // that the call waits for hosts
    const auto check = [&] {
      record_missing(count);
      is_recorded = true;
      check_alive();
    };
    check_switch();
    own.allocated = allocated_;
    gather_area_bytes_ = 0;  // after a sync, hosts may use the area of an allgather otherwise
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
    if (is_recorded) await_hosts(0, 0);
  });
}

/// Waits until all hosts have arrived, and compares their calls. In a sync only host 0 does so, and
/// the others wait until it has released them, which takes longer.
void Pool::exchange(const Gather &gather) {
  check_switch();
  Seat &own = seat(number_);
  own.allocated = 0;
  own.gather[gather.sync % 2] = gather;
  flush(own.gather, sizeof own.gather);
  kernels_.fence();
  set(own.arrived, gather.sync);
  bool is_recorded = false;  // that the call waits for hosts
  const auto check = [&] {
    record_missing(gather.sync);
    is_recorded = true;
    check_alive();
  };
  for (uint32_t n = 1; n < hosts(); ++n) {
    const uint32_t host = (this->host() + n) % hosts();
    Seat &other = seat(seat_of(host));
    const auto has_arrived = [&] { return has_reached(other.arrived, gather.sync); };
    wait(
        &other.arrived, settings_.timeout_s,
        [&] { return has_arrived() || load(head().refusal) != PIDCOMM_OK; }, check,
        [&] { return name_of(seat_of(host)); });
    if (!has_arrived()) check_refused();
    flush(other.gather, sizeof other.gather);
    const Gather &others = other.gather[gather.sync % 2];
    const auto text = [](const Gather &call) {
      return "gathers " + std::to_string(call.bytes) + " bytes of each host through bytes " +
             std::to_string(call.offset) + " to " + std::to_string(call.offset + call.area_bytes);
    };
    if (others != gather)
      fail(PIDCOMM_ERR_ARGUMENT, memory_->title(), ": host ", this->host(), " ", text(gather),
           ", host ", host, " ", others.sync == gather.sync ? text(others) : "is in a sync",
           "; all hosts must make the same calls");
  }
  if (is_recorded) await_hosts(0, 0);
}

/// The area has two slots of a chunk for each host. Chunks use the first and the second slots in
/// turn: when all hosts have written a chunk, they have read the chunk before it.
void Pool::allgather(uint64_t offset, uint64_t area_bytes, uint64_t bytes, const void *host,
                     void *all) {
  check_range("gather", offset, area_bytes);
  const uint64_t slot_bytes = area_bytes / 2 / hosts() / kLineBytes * kLineBytes;
  if (slot_bytes == 0 || offset % kLineBytes != 0)
    fail(PIDCOMM_ERR_ARGUMENT, memory_->title(), ": the ", area_bytes, " bytes at ", offset,
         " for an allgather must begin at a multiple of ", kLineBytes, " and be at least ",
         2 * kLineBytes * hosts());
  const auto *const from = static_cast<const std::byte *>(host);
  auto *const to = static_cast<std::byte *>(all);
  guarded([&] {
    // Other hosts may still read the area, or slots of another area that overlap those of this one.
    if (bytes == 0 || offset != gather_offset_ || area_bytes != gather_area_bytes_)
      exchange({offset, area_bytes, bytes, ++syncs_});
    gather_offset_ = offset;
    gather_area_bytes_ = area_bytes;
    for (uint64_t at = 0; at < bytes; at += slot_bytes) {
      const uint64_t size = std::min(slot_bytes, bytes - at);
      ++chunks_;
      std::byte *const slots = data() + offset + chunks_ % 2 * hosts() * slot_bytes;
      std::byte *const own_slot = slots + this->host() * slot_bytes;
      copy_to_host(to + this->host() * bytes + at, own_slot, from + at, size, bytes * hosts());
      flush(own_slot, size);
      exchange({offset, area_bytes, bytes, ++syncs_});
      for (uint32_t n = 1; n < hosts(); ++n) {
        const uint32_t other = (this->host() + n) % hosts();
        std::byte *const slot = slots + other * slot_bytes;
        flush(slot, size);
        copy_to_host(to + other * bytes + at, nullptr, slot, size, bytes * hosts());
      }
    }
  });
}

}  // namespace pidcomm
