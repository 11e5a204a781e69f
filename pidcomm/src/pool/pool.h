// A pool: memory that hosts share, with the order of their writes and reads, and the requests to
// the switch.
//
// The start of the memory belongs to the library. Each of its lines has one writer, so no operation
// needs an atomic exchange between machines, and policy `hardware` needs only flushes: after a
// store, and before a load.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "pool/memory.h"

namespace pidcomm {

struct Kernels;

/// Not safe for several threads at a time. After an error of a function that waits, all later calls
/// that wait throw the same error.
class Pool {
 public:
  enum class Role { host, network_switch };

  /// Opens the pool and waits for all other processes. Errors: those of pidcomm_pool_open.
  Pool(const pidcomm_pool_settings &settings, Role role);
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  static uint64_t own_bytes(uint32_t hosts);

  uint32_t host() const { return settings_.host; }
  uint32_t hosts() const { return settings_.hosts; }
  bool has_switch() const { return settings_.has_switch != 0; }
  std::size_t coherence() const { return settings_.coherence; }
  std::byte *data() const { return memory_->data(); }
  uint64_t free_bytes() const { return settings_.bytes - allocated_; }

  /// Errors: those of the C functions.
  uint64_t allocate(uint64_t bytes);
  /// Frees an allocation if it is the last one.
  void free_last(uint64_t offset, uint64_t bytes);
  void write(uint64_t offset, uint64_t bytes, const void *host, void *copy) const;
  void read(uint64_t offset, uint64_t bytes, void *host) const;
  const std::byte *view(uint64_t offset, uint64_t bytes) const;
  void sync(double timeout_s);
  void sync() { sync(settings_.timeout_s); }
  /// See pidcomm_pool_allgather.
  void allgather(uint64_t offset, uint64_t area_bytes, uint64_t bytes, const void *host, void *all);

  /// Asks the switch to reduce, and waits. Only host 0 calls it, between two syncs of all hosts.
  void reduce(const pidcomm_reduction &reduction, double timeout_s);
  void reduce(const pidcomm_reduction &reduction) { reduce(reduction, settings_.timeout_s); }
  /// Carries out reductions until the last host has closed the pool or has ended. Only the switch
  /// calls it.
  void serve();

 private:
  struct Counter;
  struct Facts;
  struct Gather;
  struct Head;
  struct Seat;
  enum Left : uint32_t;
  static uint32_t seat_of(uint32_t host) { return kCreatorSeat + host; }

  Head &head() const;
  Seat &seat(uint32_t number) const;
  /// Calls visit(seat) for all processes of the pool.
  template <class Visit>
  void each_seat(const Visit &visit) const;
  Facts facts() const;

  void check_settings() const;
  void open();
  void prepare();
  void welcome_all();
  void join();
  void leave();

  std::string name_of(uint32_t number) const;
  /// Whether a process has joined and has closed the pool or has ended.
  bool is_gone(uint32_t number) const;
  void check_alive() const;
  /// Sleeps until is_done(), and between its calls until `counter`, if it is not null, changes.
  /// check() throws the reason to give up.
  template <class IsDone, class Check, class Missing>
  void wait(const Counter *counter, double timeout_s, const IsDone &is_done, const Check &check,
            const Missing &missing) const;
  /// Calls a function that waits; remembers its error.
  template <class Body>
  void guarded(const Body &body);
  void refuse(pidcomm_status status, const std::string &sentence) const;
  void check_refused() const;

  void set(Counter &counter, uint32_t value) const;
  bool has_reached(const Counter &counter, uint32_t value) const;
  template <class T>
  T load(const std::atomic<T> &word) const;
  template <class T>
  void store(std::atomic<T> &word, T value) const;
  void flush(const void *begin, uint64_t bytes) const;
  void record_missing(uint32_t sync) const;
  void check_switch();
  void exchange(const Gather &gather);
  void copy_to_host(std::byte *host, std::byte *pool, const std::byte *from, std::size_t bytes,
                    std::size_t call_bytes) const;
  void check_range(const char *what, uint64_t offset, uint64_t bytes) const;
  void carry_out(const pidcomm_reduction &reduction) const;

  pidcomm_pool_settings settings_;
  const uint32_t number_;  // of the own seat
  const Kernels &kernels_;
  const int spins_;
  std::unique_ptr<PoolMemory> memory_;
  uint64_t generation_ = 0;
  uint64_t allocated_ = 0;                              // the first free byte
  uint64_t gather_offset_ = 0, gather_area_bytes_ = 0;  // of the allgather after the last sync
  uint32_t syncs_ = 0, chunks_ = 0, reductions_ = 0;
  double checked_s_ = 0;  // when `sync` last checked whether the switch is alive
  std::string broken_;    // the sentence of the error, or empty
};

}  // namespace pidcomm
