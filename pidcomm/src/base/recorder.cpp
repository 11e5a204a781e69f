#include "base/recorder.h"

#include <algorithm>
#include <bit>
#include <ctime>
#include <string_view>

#include "base/call_events.h"
#include "base/utf8.h"

namespace pidcomm {

struct RecordedText {
  char sentence[sizeof(pidcomm_record::sentence)] = {};
};
struct RecordedShape {
  char text[sizeof(pidcomm_record::shape)] = {};
};

/// number: of the hypercube; 0 while a new hypercube takes the ring. A ring is never freed, so that
/// readers need no lock.
struct Recorder::Ring {
  std::atomic<bool> is_taken = true;
  std::atomic<uint64_t> number = 0, next_call = 1;
  AtomicWords<RecordedShape> shape;
  Slot slots[PIDCOMM_RECORDED_CALLS];
  AtomicWords<RecordedText> sentences[PIDCOMM_RECORDED_CALLS];  // of failed calls
  Ring *next = nullptr;
};

namespace {

using Slot = Recorder::Slot;
using Ring = Recorder::Ring;

constexpr uint64_t call_of(uint64_t control) { return control >> 8; }
constexpr uint64_t phase_of(uint64_t control) { return control & 0xFF; }
constexpr bool has_ended(uint64_t control) {
  return phase_of(control) >= Slot::kStates + PIDCOMM_CALL_DONE;
}

std::atomic<Ring *> rings = nullptr;
std::atomic<uint64_t> hypercubes = 0;

struct ThreadPlace {
  const char *file = nullptr;
  int line = 0;
  Slot *over_hosts = nullptr;
};
thread_local constinit ThreadPlace this_thread;

/// Copies at most `bytes` bytes, and no part of a character. The bytes after them stay 0.
void copy_text(char *to, std::size_t bytes, const char *from) {
  std::size_t length = strnlen(from, bytes);
  if (length == bytes && from[bytes] != '\0') length = cut_before(from, bytes);
  std::memcpy(to, from, length);
}

/// Calls visit(value, i) for the fields seconds_NAME of a trace; i counts from 0, which is
/// seconds_total.
template <class Trace, class Visit>
void each_phase(Trace &trace, const Visit &visit) {
  std::size_t i = 0;
#define PIDCOMM_ROW(ctype, name, ...) \
  if constexpr (std::string_view(#name).starts_with("seconds_")) visit(trace.name, i++);
  PIDCOMM_TRACE_FIELDS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
}

void put_seconds(Slot::End &end, std::size_t i, double seconds) {
  end.seconds[i / 2] |= uint64_t{std::bit_cast<uint32_t>(static_cast<float>(seconds))}
                        << i % 2 * 32;
}
float seconds_in(const Slot::End &end, std::size_t i) {
  return std::bit_cast<float>(static_cast<uint32_t>(end.seconds[i / 2] >> i % 2 * 32));
}

bool has_mask(int collective) {
  switch (collective) {
#define PIDCOMM_ROW(ENUM, code, ...) case code:
    PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
    PIDCOMM_SCANS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    return true;
    default:
      return false;
  }
}

constexpr uint8_t kNoCode = 0xFF;  // is -1 in a record

/// A code in a byte. Codes outside of 0 .. PIDCOMM_RECORDED_CODE are unknown.
uint8_t byte_of(int code) {
  return static_cast<uint8_t>(
      std::min(static_cast<unsigned>(code), unsigned{PIDCOMM_RECORDED_CODE}));
}
uint64_t codes_of(uint8_t collective, uint8_t type, uint8_t op) {
  return uint64_t{collective} | uint64_t{type} << 8 | uint64_t{op} << 16;
}

int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}
double seconds_of(int64_t ns) { return 1e-9 * static_cast<double>(ns); }

Ring &free_ring() {
  for (Ring *ring = rings.load(std::memory_order_acquire); ring != nullptr; ring = ring->next)
    if (!ring->is_taken.exchange(true)) return *ring;
  auto *const ring = new Ring;
  ring->next = rings.load(std::memory_order_relaxed);
  while (!rings.compare_exchange_weak(ring->next, ring)) {
  }
  return *ring;
}

/// Stores the record of slot `index` if its call is `call`.
bool read_slot(const Ring &ring, std::size_t index, uint64_t call, double now_s,
               pidcomm_record *record) {
  const Slot &slot = ring.slots[index];
  for (;;) {
    const uint64_t control = slot.control.load(std::memory_order_acquire);
    if (call_of(control) != call || phase_of(control) < Slot::kStates) return false;
    const Slot::Start start = slot.start.load();
    const uint64_t requests = slot.requests.load(std::memory_order_acquire),
                   awaited = slot.awaited.load(std::memory_order_acquire);
    pidcomm_record own{};
    own.hypercube = ring.number.load(std::memory_order_acquire);
    own.call = call;
    own.state = static_cast<int>(phase_of(control) - Slot::kStates);
    own.collective = static_cast<int8_t>(start.codes);
    own.type = static_cast<int8_t>(start.codes >> 8);
    own.op = static_cast<int8_t>(start.codes >> 16);
    own.line = static_cast<int32_t>(start.codes >> 32);
    own.file = start.file;
    own.bytes = start.bytes;
    own.requests = static_cast<uint32_t>(requests);
    own.request = requests >> 32;
    own.started_s = start.started_s;
    own.elapsed_s = std::max(now_s - start.started_s, 0.0);
    own.awaited_host = static_cast<uint32_t>(awaited >> 32);
    own.awaited_hosts = static_cast<uint32_t>(awaited);
    std::memcpy(own.mask, start.mask, sizeof start.mask);
    std::memcpy(own.shape, ring.shape.load().text, sizeof own.shape);
    if (has_ended(control)) {
      const Slot::End end = slot.end.load();
      own.elapsed_s = double{seconds_in(end, 0)};
      if (own.state == PIDCOMM_CALL_FAILED) {
        own.status = static_cast<int>(end.codes);
        std::memcpy(own.sentence, ring.sentences[index].load().sentence, sizeof own.sentence);
      } else {
        own.trace.technique = static_cast<uint16_t>(end.codes);
        own.trace.isa = static_cast<uint16_t>(end.codes >> 16);
        own.trace.threads = static_cast<uint16_t>(end.codes >> 32);
        own.trace.coherence = static_cast<uint16_t>(end.codes >> 48);
        each_phase(own.trace,
                   [&](double &seconds, std::size_t i) { seconds = double{seconds_in(end, i)}; });
      }
    }
    if (slot.control.load(std::memory_order_acquire) != control) continue;
    *record = own;
    return true;
  }
}

}  // namespace

Recorder::Recorder(const std::string &shape) : ring_(free_ring()) {
  ring_.number.store(0);
  for (Slot &slot : ring_.slots) slot.control.store(Slot::kEmpty);
  ring_.next_call.store(1);
  RecordedShape own;
  copy_text(own.text, sizeof own.text - 1, shape.c_str());
  ring_.shape.store(own);
  ring_.number.store(++hypercubes);
}

Recorder::~Recorder() { ring_.is_taken.store(false); }

/// Claims a slot, unless no call has ended. A call without a slot has a number, too. Of concurrent
/// calls, control gives a slot to one.
inline void Recording::claim(Slot::Start &start, std::size_t requests) {
  const uint64_t call = ring_.next_call.fetch_add(1, std::memory_order_relaxed);
  for (uint64_t i = 0; slot_ == nullptr; ++i) {
    if (i == PIDCOMM_RECORDED_CALLS) return;
    Slot &slot = ring_.slots[(call + i) % PIDCOMM_RECORDED_CALLS];
    uint64_t control = slot.control.load(std::memory_order_acquire);
    if (control != Slot::kEmpty && !has_ended(control)) continue;
    if (slot.control.compare_exchange_strong(control, call << 8 | Slot::kStarts)) slot_ = &slot;
  }
  call_ = call;
  __builtin_prefetch(&slot_->end, 1);
  start.file = this_thread.file;
  start.codes |= uint64_t{static_cast<uint32_t>(this_thread.line)} << 32;
  slot_->start.store(start);
  begin_request(0, requests);
  slot_->awaited.store(0, std::memory_order_release);
  enter(PIDCOMM_CALL_WAITS_FOR_CALLS);
}

Recording::Recording(Recorder &recorder, const pidcomm_request &request, std::size_t requests,
                     int64_t started_ns)
    : ring_(recorder.ring_), begin_ns_(started_ns) {
  const uint8_t op = request.operation != nullptr ? kNoCode : byte_of(request.op);
  Slot::Start start{nullptr,
                    seconds_of(started_ns),
                    0,
                    codes_of(byte_of(request.collective), byte_of(request.type), op),
                    {}};
  if (has_mask(request.collective)) {
    start.bytes = request.bytes;
    const char *const mask = request.mask == nullptr ? "" : request.mask;
    for (std::size_t i = 0; i < sizeof start.mask && mask[i] != '\0'; ++i)
      start.mask[i / 8] |= uint64_t{static_cast<unsigned char>(mask[i])} << i % 8 * 8;
    if (start.mask[1] >> 56 != 0) {  // all bytes are in use
      start.mask[0] = start.mask[1] = 0;
      copy_text(reinterpret_cast<char *>(start.mask), sizeof start.mask, mask);
    }
  }
  claim(start, requests);
}

Recording::Recording(Recorder &recorder, int64_t started_ns)
    : ring_(recorder.ring_), begin_ns_(started_ns) {
  Slot::Start start{nullptr, seconds_of(started_ns), 0, codes_of(kNoCode, 0, 0), {}};
  claim(start, 1);
}

/// The part of the call that ends now, if the program is traced and the call has a record.
[[gnu::noinline]] std::optional<Recording::Part> Recording::part(const char *prefix) const {
  const CallEvents *const events = call_events.load(std::memory_order_acquire);
  if (events == nullptr) return std::nullopt;
  Part part{*events, prefix, {}, begin_ns_, now_ns()};
  if (slot_ != nullptr &&
      read_slot(ring_, static_cast<std::size_t>(slot_ - ring_.slots), call_, 0, &part.record))
    return part;
  events->drop();
  return std::nullopt;
}

void Recording::take_over() {
  if (call_events.load(std::memory_order_relaxed) != nullptr) begin_ns_ = now_ns();
}

inline void Recording::end(pidcomm_call_state state, const Slot::End &end) {
  slot_->end.store(end);
  enter(state);
  if (call_events.load(std::memory_order_relaxed) != nullptr)
    if (const std::optional<Part> whole = part("")) whole->report();
  __builtin_prefetch(&ring_.slots[(call_ + 1) % PIDCOMM_RECORDED_CALLS], 1);
  slot_ = nullptr;
}

void Recording::done(const pidcomm_trace &trace) {
  if (slot_ == nullptr) return static_cast<void>(part(""));
  const auto code = [](int value, int place) {
    return uint64_t{static_cast<uint16_t>(value)} << 16 * place;
  };
  Slot::End own{code(trace.technique, 0) | code(trace.isa, 1) | code(trace.threads, 2) |
                    code(trace.coherence, 3),
                {}};
  each_phase(trace, [&](double seconds, std::size_t i) { put_seconds(own, i, seconds); });
  end(PIDCOMM_CALL_DONE, own);
}

void Recording::fail(pidcomm_status status, const char *sentence) {
  if (slot_ == nullptr) return static_cast<void>(part(""));
  RecordedText text;
  copy_text(text.sentence, sizeof text.sentence - 1, sentence);
  ring_.sentences[slot_ - ring_.slots].store(text);
  Slot::End own{static_cast<uint64_t>(status), {}};
  put_seconds(own, 0, seconds_of(now_ns()) - slot_->start.load().started_s);
  end(PIDCOMM_CALL_FAILED, own);
}

Recording::Scope::Scope(Recording &recording) : before_(this_thread.over_hosts) {
  this_thread.over_hosts = recording.slot_;
}
Recording::Scope::~Scope() { this_thread.over_hosts = before_; }

void await_hosts(uint32_t first, uint32_t hosts) {
  if (this_thread.over_hosts != nullptr)
    this_thread.over_hosts->awaited.store(uint64_t{first} << 32 | hosts, std::memory_order_release);
}

void set_call_place(const char *file, int line) {
  this_thread.file = file;
  this_thread.line = line;
}

bool next_record(pidcomm_record *record, double now_s) {
  for (;;) {
    const Ring *next = nullptr;  // the ring and slot of the next record
    uint64_t number = 0, call = 0;
    std::size_t index = 0;
    for (const Ring *ring = rings.load(std::memory_order_acquire); ring != nullptr;
         ring = ring->next) {
      const uint64_t own = ring->number.load(std::memory_order_acquire);
      if (own == 0 || own < record->hypercube) continue;
      for (std::size_t i = 0; i < PIDCOMM_RECORDED_CALLS; ++i) {
        const uint64_t control = ring->slots[i].control.load(std::memory_order_acquire);
        const uint64_t its_call = call_of(control);
        if (phase_of(control) < Slot::kStates ||
            (own == record->hypercube && its_call <= record->call) ||
            (next != nullptr && (own > number || (own == number && its_call > call))))
          continue;
        next = ring;
        number = own;
        call = its_call;
        index = i;
      }
    }
    if (next == nullptr) return false;
    pidcomm_record found{};
    if (read_slot(*next, index, call, now_s, &found) && found.hypercube == number &&
        next->number.load(std::memory_order_acquire) == number) {
      *record = found;
      return true;
    }
    record->hypercube = number;  // another call has taken the slot
    record->call = call;
  }
}

}  // namespace pidcomm
