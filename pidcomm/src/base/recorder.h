// Records of the last calls of each hypercube, which threads and signal handlers read while calls
// run. Writers and readers take no lock and allocate nothing. A record is two cache lines, because
// a small call notices each further line.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <type_traits>

#include "base/call_events.h"
#include "base/error.h"
#include "pidcomm/recorder.h"

namespace pidcomm {

/// A value as atomic words, so that a thread may read it while another one writes it. The reader
/// then drops the value: see Recorder::Slot.
template <class T>
class AtomicWords {
 public:
  /// Copies word by word: copies of several words at a time would wait until the words that were
  /// just written to `value` reach the cache.
  void store(const T &value) {
    const auto *const bytes = reinterpret_cast<const std::byte *>(&value);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kWords; ++i) {
      uint64_t word;
      std::memcpy(&word, bytes + i * sizeof word, sizeof word);
      words_[i].store(word, std::memory_order_release);
    }
  }
  T load() const {
    uint64_t words[kWords];
    for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
    T value;
    std::memcpy(&value, words, sizeof words);
    return value;
  }

 private:
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(uint64_t) == 0);
  static constexpr std::size_t kWords = sizeof(T) / sizeof(uint64_t);
  std::atomic<uint64_t> words_[kWords]{};
};

/// The records of one hypercube.
class Recorder {
 public:
  struct Slot;
  struct Ring;

  /// shape: of the hypercube, as text; shortened to the size of pidcomm_record.shape. Throws
  /// std::bad_alloc.
  explicit Recorder(const std::string &shape);
  ~Recorder();
  Recorder(const Recorder &) = delete;
  Recorder &operator=(const Recorder &) = delete;

 private:
  friend class Recording;
  Ring &ring_;
};

/// The record of one call. control: the number of the call, times 256, plus a phase: kEmpty,
/// kStarts, or a call state after kStates. A call claims a slot whose call has ended by writing
/// kStarts; until it has ended, no other call writes to the slot. `start`, `requests` and `awaited`
/// are valid from the first state on, and `end` after the end, if control has not changed after
/// they were read.
struct Recorder::Slot {
  static constexpr uint64_t kEmpty = 0, kStarts = 1, kStates = 2;

  // All fields have 8 bytes: joining smaller ones in memory stalls on store forwarding.
  struct Start {
    const char *file;
    double started_s;
    uint64_t bytes;
    uint64_t codes;    // collective, type, op (a byte each), unused, line (4 bytes)
    uint64_t mask[2];  // characters
  };
  struct End {
    uint64_t codes;       // technique, isa, threads, coherence (2 bytes each); or status
    uint64_t seconds[6];  // pairs of floats: of a trace; the first one is the elapsed time
  };

  alignas(64) std::atomic<uint64_t> control = kEmpty;
  std::atomic<uint64_t> requests =
      0;  // of a batch: their number; in the upper half, which one runs
  AtomicWords<Start> start;
  std::atomic<uint64_t> awaited = 0;  // number of hosts; in the upper half, the first one
  AtomicWords<End> end;
};

/// The record of a call, from its start to its end. The recorder must outlive it. One thread at a
/// time may use it. A call that ends without `done` has failed.
class Recording {
 public:
  /// started_ns: of clock_ns. requests: see pidcomm_record.
  Recording(Recorder &recorder, const pidcomm_request &request, std::size_t requests,
            int64_t started_ns);
  /// The record of a call over hosts whose arguments this host refuses.
  Recording(Recorder &recorder, int64_t started_ns);
  ~Recording() {
    if (slot_ != nullptr) fail(PIDCOMM_ERR_INTERNAL, "");
  }
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;

  void enter(pidcomm_call_state state) {
    if (slot_ != nullptr)
      slot_->control.store(call_ << 8 | (Recorder::Slot::kStates + state),
                           std::memory_order_release);
  }
  /// Request `request` of a batch of `requests` begins to run.
  void begin_request(std::size_t request, std::size_t requests) {
    if (slot_ != nullptr)
      slot_->requests.store(uint64_t{request} << 32 | requests, std::memory_order_release);
  }
  /// A part of the call that has ended. `report` writes, which takes time, so call it when no time
  /// of the call runs on. It needs no recording.
  struct Part {
    const CallEvents &events;
    const char *prefix;  // see CallEvents
    pidcomm_record record;
    int64_t begin_ns, end_ns;
    void report() const { events.call(prefix, record, begin_ns, end_ns); }
  };
  /// The part of a non-blocking call before its start returns, if the program is traced.
  std::optional<Part> start_part() const { return part("start "); }
  /// This thread, which did not make the call, carries out the rest of it.
  void take_over();
  void done(const pidcomm_trace &trace);
  void fail(pidcomm_status status, const char *sentence);

  /// Runs body(). If it throws, the call has failed with its error.
  template <class Body>
  void guard(const Body &body) {
    try {
      body();
    } catch (const Error &error) {
      fail(error.status(), error.what());
      throw;
    } catch (const std::bad_alloc &) {
      fail(PIDCOMM_ERR_MEMORY, "the host is out of memory");
      throw;
    } catch (...) {
      fail(PIDCOMM_ERR_INTERNAL, "");
      throw;
    }
  }

  /// While a scope exists, await_hosts on this thread concerns its call.
  class Scope {
   public:
    explicit Scope(Recording &recording);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

   private:
    Recorder::Slot *before_;
  };

 private:
  void claim(Recorder::Slot::Start &start, std::size_t requests);
  std::optional<Part> part(const char *prefix) const;
  void end(pidcomm_call_state state, const Recorder::Slot::End &end);

  Recorder::Ring &ring_;
  Recorder::Slot *slot_ = nullptr;  // null: no record is free, or the call has ended
  uint64_t call_ = 0;
  int64_t begin_ns_;  // of the call, or of its rest on another thread
};

/// The call over hosts of this thread waits for `hosts` hosts, the first of which is `first`. If
/// `hosts` is 0, waits for no host.
void await_hosts(uint32_t first, uint32_t hosts);

/// Sets the place of the caller for later records of this thread.
void set_call_place(const char *file, int line);

/// Stores the record that follows *record in the order of hypercubes and calls. Returns false if
/// *record is the last one. A signal handler may call this function. now_s: the time of clock_s.
bool next_record(pidcomm_record *record, double now_s);

}  // namespace pidcomm
