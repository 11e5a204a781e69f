// The link of one host: sends and receives messages through a transport, or orders accesses to
// shared memory, with a time-out and, if wanted, the speed of an emulated link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hosts/plan.h"
#include "pidcomm/hosts.h"

namespace pidcomm {

/// Settings with the defaults filled in.
struct LinkSettings {
  double timeout_s = 300, gb_s = 0, latency_us = 0;
};

/// A message of bytes in memory.
struct Transfer {
  uint32_t host;
  bool is_send;
  std::byte *base;
  uint64_t rows, bytes, stride;
};

/// Keeps memory that messages of a broken link may still use.
void keep_forever(std::shared_ptr<void> memory);

/// Owns a transport. Not safe for several threads at a time.
///
/// The link cuts messages into segments, and keeps a few segments per host and direction in flight.
/// Between polls it sleeps, so that other processes get the CPUs. With an emulated link, a segment
/// leaves when the link has sent the segments before it, and has arrived when the receiver's link
/// has received the segments before it.
class Link {
 public:
  explicit Link(const pidcomm_transport &transport) : transport_(transport) {}
  ~Link();
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;

  uint32_t host() const { return transport_.host; }
  uint32_t hosts() const { return transport_.hosts; }
  void use(const LinkSettings &settings) { settings_ = settings; }
  bool allows_any_thread() const { return transport_.allows_any_thread != 0; }

  /// Sends and receives all messages, and waits until they are done. Errors: ERR_DEVICE (the
  /// transport failed, or no message made progress for timeout_s). After an error the link is
  /// broken: later calls throw the same error.
  void exchange(const std::vector<Transfer> &transfers);

  /// Fills `all` with the `bytes` bytes (at most kHeaderBytes) of each host. Errors: those of
  /// exchange.
  static constexpr uint64_t kHeaderBytes = 512;
  void exchange_headers(const std::byte *own, std::byte *all, uint64_t bytes);

  /// How rows get to other hosts.
  pidcomm_transport_kind kind() const;
  /// Shared memory for rows; its first bytes have the headers of exchange_headers.
  std::byte *pool() const { return shared() + pool_offset(); }
  uint64_t pool_bytes() const { return transport_.shared_bytes - pool_offset(); }
  /// Whether hosts flush lines of shared memory after writes and before reads.
  bool needs_flush() const { return transport_.coherence == PIDCOMM_COHERENCE_HARDWARE; }
  /// Waits until all hosts have called it as often. Errors: those of exchange.
  void sync();
  /// Lets the switch reduce rows of the pool. Only host 0 calls it. Errors: those of exchange.
  void reduce(pidcomm_reduction reduction);
  /// Sleeps until a use of shared memory that began at `begin_s` (of clock_s) would end on the
  /// emulated link.
  void pay(double begin_s, uint64_t written, uint64_t read) const;

  /// Makes all later exchanges throw an error with this sentence, because messages of a failed call
  /// may still arrive.
  void give_up(const std::string &sentence);

  /// Memory of at least `bytes` bytes for rows, aligned to 64 bytes. It stays valid until the next
  /// call. Throws std::bad_alloc.
  std::byte *window(uint64_t bytes);

 private:
  class Queues;
  std::byte *shared() const { return static_cast<std::byte *>(transport_.shared); }
  uint64_t pool_offset() const { return 2 * transport_.hosts * kHeaderBytes; }
  void check_usable() const;
  template <class Call>
  void call(const Call &call);

  pidcomm_transport transport_;
  LinkSettings settings_;
  std::string broken_;                 // the sentence of the error, or empty
  double out_free_ = 0, in_free_ = 0;  // when the emulated link can send and receive again
  void *memory_ = nullptr;             // of the transport
  uint64_t memory_bytes_ = 0;
  uint32_t header_exchanges_ =
      0;  // calls of exchange_headers, which alternate between two areas of the shared memory
};

}  // namespace pidcomm
