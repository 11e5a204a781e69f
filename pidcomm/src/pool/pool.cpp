#include "pool/pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <optional>
#include <random>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/geometry.h"
#include "exec/flush.h"
#include "exec/parallel.h"
#include "line_kernels/kernels.h"
#include "plan/request.h"

namespace pidcomm {

namespace {

constexpr uint32_t kMaxHosts = 1024;
constexpr uint32_t kVersion = 1;
constexpr int kSpins = 200;             // polls before the first sleep
constexpr double kCheckSeconds = 0.05;  // between checks of whether the other processes are alive
constexpr long kShortestSleepNs = 20'000, kLongestSleepNs = 500'000;
constexpr uint64_t kReduceBytes = 65536;  // of a unit of work of the switch

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint64_t random_number() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;  // not 0
}

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

/// A number that one process increases, and the number of processes that sleep until it changes;
/// only policy `none` counts sleepers.
struct Pool::Counter {
  std::atomic<uint32_t> value, sleepers;
};

/// What all processes must agree on.
struct Pool::Facts {
  uint64_t bytes;
  uint32_t hosts, has_switch, coherence, version;
  bool operator==(const Facts &) const = default;
  std::string to_string() const {
    std::ostringstream text;
    text << bytes << " bytes, " << hosts << " hosts, " << (has_switch ? "a" : "no")
         << " switch, coherence " << (coherence == PIDCOMM_COHERENCE_HARDWARE ? "hardware" : "none")
         << ", layout " << version;
    return text.str();
  }
};

/// Host 0 is the writer, except of `done`.
struct Pool::Head {
  alignas(kLineBytes) std::atomic<uint64_t> generation;  // a random number for each pool; 0 while
                                                         // host 0 prepares this struct
  Facts facts;
  alignas(kLineBytes) Counter released;  // syncs at which all hosts have arrived
  alignas(
      kLineBytes) std::atomic<int32_t> refusal;  // the status with which host 0 has given up, or OK
  char sentence[508];                            // why, with a final 0 byte
  alignas(kLineBytes) Counter asked;             // requests to the switch
  pidcomm_reduction reduction;
  alignas(kLineBytes) Counter done;  // by the switch
};

/// Whether a process has closed the pool.
enum Pool::Left : uint32_t { kNot, kClosed, kAfterError };

/// The process with this seat is the writer, except of `welcome`.
struct Pool::Seat {
  alignas(kLineBytes) std::atomic<uint64_t> generation;  // of the pool that the process has joined
  uint64_t nonce;                                        // a random number for each process
  Facts facts;
  int32_t process;
  alignas(kLineBytes) Counter arrived;  // syncs
  uint64_t allocated;
  std::atomic<uint32_t> left;  // a Left
  alignas(kLineBytes)
      std::atomic<uint64_t> welcome;  // by host 0: the nonce of the process that takes part
};

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

template <class Visit>
void Pool::each_seat(const Visit &visit) const {
  for (uint32_t host = 0; host < hosts(); ++host) visit(seat_of(host));
  if (has_switch()) visit(kSwitchSeat);
}

std::string Pool::name_of(uint32_t number) const {
  return name_of_seat(number) + " (process " + std::to_string(seat(number).process) + ")";
}

// ---- loads and stores of the library's own lines

void Pool::flush(const void *begin, uint64_t bytes) const {
  if (coherence() == PIDCOMM_COHERENCE_HARDWARE) flush_bytes(kernels_, begin, bytes);
}

template <class T>
T Pool::load(const std::atomic<T> &word) const {
  flush(&word, sizeof word);
  return word.load(std::memory_order_seq_cst);
}

template <class T>
void Pool::store(std::atomic<T> &word, T value) const {
  word.store(value, std::memory_order_seq_cst);
  flush(&word, sizeof word);
}

void Pool::set(Counter &counter, uint32_t value) const {
  store(counter.value, value);
  if (coherence() != PIDCOMM_COHERENCE_HARDWARE &&
      counter.sleepers.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, &counter.value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Counters may overflow.
bool Pool::has_reached(const Counter &counter, uint32_t value) const {
  return static_cast<int32_t>(load(counter.value) - value) >= 0;
}

// ---- waits

template <class IsDone, class Check, class Missing>
void Pool::wait(const Counter *counter, double timeout_s, const IsDone &is_done, const Check &check,
                const Missing &missing) const {
  for (int spin = 0; spin <= spins_; ++spin) {
    if (is_done()) return;
    __builtin_ia32_pause();
  }
  const bool has_futex = counter != nullptr && coherence() != PIDCOMM_COHERENCE_HARDWARE;
  const double begin = now();
  double checked = begin;
  for (long sleep_ns = kShortestSleepNs;; sleep_ns = std::min(2 * sleep_ns, kLongestSleepNs)) {
    const uint32_t seen = has_futex ? counter->value.load(std::memory_order_seq_cst) : 0;
    if (is_done()) return;
    if (has_futex) {
      auto &own = const_cast<Counter &>(*counter);
      const timespec limit{0, static_cast<long>(1e9 * kCheckSeconds)};
      own.sleepers.fetch_add(1, std::memory_order_seq_cst);
      syscall(SYS_futex, &own.value, FUTEX_WAIT, seen, &limit, nullptr, 0);
      own.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    } else {
      const timespec pause{0, sleep_ns};
      nanosleep(&pause, nullptr);
    }
    const double time = now();
    if (time - checked < kCheckSeconds) continue;
    checked = time;
    try {
      check();
    } catch (const Error &) {
      if (is_done())
        return;  // the other process has ended after the step for which this process waits
      throw;
    }
    if (time - begin > timeout_s && !is_done())
      fail(PIDCOMM_ERR_DEVICE, memory_->title(), ": ", name_of(number_), " has waited ", timeout_s,
           " s for ", missing());
  }
}

bool Pool::is_gone(uint32_t number) const {
  if (load(seat(number).generation) != generation_) return false;
  return load(seat(number).left) != kNot ||
         (memory_->sees_seats() && number != number_ && !memory_->is_taken(number));
}

/// Names the process that ended first. A process that sees the end of another one closes the pool
/// after its error, so the kinds of end are read in the order from effect to cause, and the last
/// kind found is the cause. The switch is the last process, because it ends with host 0.
void Pool::check_alive() const {
  std::string reason;
  for (const Left left : {kAfterError, kClosed, kNot}) {
    bool is_found = false;
    each_seat([&](uint32_t number) {
      if (is_found || !is_gone(number) || load(seat(number).left) != left) return;
      is_found = true;
      reason = name_of(number) + (left == kNot      ? " has ended without closing the pool"
                                  : left == kClosed ? " has closed the pool"
                                                    : " has closed the pool after an error");
    });
  }
  if (!reason.empty()) fail(PIDCOMM_ERR_DEVICE, memory_->title(), ": ", reason);
}

template <class Step>
void Pool::guarded(const Step &step) {
  if (!broken_.empty()) fail(PIDCOMM_ERR_DEVICE, broken_);
  try {
    step();
  } catch (const Error &error) {
    broken_ = error.what();
    if (number_ == seat_of(0)) refuse(error.status(), broken_);
    throw;
  }
}

/// Host 0 gives up for all processes.
void Pool::refuse(pidcomm_status status, const std::string &sentence) const {
  if (load(head().refusal) != PIDCOMM_OK) return;
  const std::size_t length = std::min(sentence.size(), sizeof head().sentence - 1);
  std::memcpy(head().sentence, sentence.data(), length);
  head().sentence[length] = '\0';
  flush(head().sentence, sizeof head().sentence);
  store(head().refusal, int32_t{status});
  set(head().released, head().released.value);
}

void Pool::check_refused() const {
  const int32_t status = load(head().refusal);
  if (status == PIDCOMM_OK) return;
  flush(head().sentence, sizeof head().sentence);
  fail(static_cast<pidcomm_status>(status), head().sentence);
}

// ---- opening and closing

Pool::Pool(const pidcomm_pool_settings &settings, Role role)
    : settings_(settings),
      number_(role == Role::network_switch ? kSwitchSeat : seat_of(settings.host)),
      kernels_(kernels_of(best_isa())),
      spins_(static_cast<int>(settings.hosts) <= usable_cpus() ? kSpins : 0) {
  if (settings_.coherence == 0) settings_.coherence = PIDCOMM_COHERENCE_NONE;
  if (settings_.timeout_s == 0) settings_.timeout_s = 300;
  check_settings();
  allocated_ = own_bytes(hosts());
  try {
    open();
  } catch (const std::exception &error) {
    broken_ = error.what();
    if (memory_ != nullptr && memory_->data() != nullptr) {
      if (number_ == seat_of(0)) memory_->unpublish();  // the name of a pool is host 0's
      leave();
    }
    throw;
  }
}

Pool::~Pool() { leave(); }

void Pool::leave() {
  if (generation_ == 0 || load(seat(number_).generation) != generation_) return;
  store(seat(number_).left, uint32_t{broken_.empty() ? kClosed : kAfterError});
}

void Pool::check_settings() const {
  const int kinds =
      (settings_.name != nullptr) + (settings_.path != nullptr) + (settings_.memory != nullptr);
  if (kinds != 1)
    fail(PIDCOMM_ERR_ARGUMENT, "a pool needs exactly one of name, path and memory, not ", kinds);
  if (hosts() < 1 || hosts() > kMaxHosts)
    fail(PIDCOMM_ERR_ARGUMENT, "hosts (", hosts(), ") of a pool must be between 1 and ", kMaxHosts);
  if (number_ != kSwitchSeat && host() >= hosts())
    fail(PIDCOMM_ERR_ARGUMENT, "host (", host(), ") must be below the number of hosts (", hosts(),
         ")");
  if (settings_.bytes % PIDCOMM_POOL_PAGE_BYTES != 0 || settings_.bytes <= own_bytes(hosts()) ||
      settings_.bytes > PTRDIFF_MAX)
    fail(PIDCOMM_ERR_ARGUMENT, "bytes (", settings_.bytes, ") of a pool must be a multiple of ",
         PIDCOMM_POOL_PAGE_BYTES, " and more than the ", own_bytes(hosts()),
         " bytes that the library uses itself with ", hosts(), " hosts");
  if (reinterpret_cast<uintptr_t>(settings_.memory) % kLineBytes != 0)
    fail(PIDCOMM_ERR_ARGUMENT, "the memory (", settings_.memory, ") of a pool must be aligned to ",
         kLineBytes, " bytes");
  if (settings_.has_switch > 1)
    fail(PIDCOMM_ERR_ARGUMENT, "has_switch (", settings_.has_switch, ") of a pool must be 0 or 1");
  if (number_ == kSwitchSeat && !has_switch())
    fail(PIDCOMM_ERR_ARGUMENT, "has_switch (0) of the pool of a switch must be 1");
  if (settings_.coherence > PIDCOMM_COHERENCE_HARDWARE)
    fail(PIDCOMM_ERR_OPTION, "coherence code ", settings_.coherence,
         " is unknown; use 1 (none) or 2 (hardware)");
  if (!(settings_.timeout_s > 0 && settings_.timeout_s < 1e9))
    fail(PIDCOMM_ERR_ARGUMENT, "timeout_s (", settings_.timeout_s,
         ") of a pool must be above 0 and below 1e9");
}

void Pool::open() {
  const bool is_first = number_ == seat_of(0);
  const double begin = now();
  std::optional<Error> failure;  // of host 0
  for (long sleep_ns = kShortestSleepNs; memory_ == nullptr;
       sleep_ns = std::min(2 * sleep_ns, kLongestSleepNs)) {
    try {
      memory_ = std::make_unique<PoolMemory>(settings_, is_first);
    } catch (const Error &error) {
      if (!is_first || settings_.name == nullptr || error.status() != PIDCOMM_ERR_MEMORY) throw;
      // The other processes wait for host 0. It creates an object with only the library's own
      // bytes, and leaves its error there.
      failure = error;
      pidcomm_pool_settings smallest = settings_;
      smallest.bytes = own_bytes(hosts());
      memory_ = std::make_unique<PoolMemory>(smallest, true);
    }
    if (memory_->data() != nullptr) break;
    if (now() - begin > settings_.timeout_s)
      fail(PIDCOMM_ERR_DEVICE, memory_->title(), ": host 0 has not opened it in ",
           settings_.timeout_s, " s");
    memory_.reset();
    const timespec pause{0, sleep_ns};
    nanosleep(&pause, nullptr);
  }
  if (memory_->bytes() < sizeof(Head) + (uint64_t{number_} + 1) * sizeof(Seat))
    fail(PIDCOMM_ERR_ARGUMENT, memory_->title(), " has ", memory_->bytes(),
         " bytes; host 0 has opened it for fewer hosts than ", hosts());
  memory_->take_seat(number_);
  if (is_first) prepare();
  if (failure) refuse(failure->status(), failure->what());
  join();
  memory_->unpublish();
}

/// Host 0 prepares the head. Others take no notice of it until its generation is not 0 and host 0
/// has repeated their nonce.
void Pool::prepare() {
  store(head().generation, uint64_t{0});
  head().facts = facts();
  for (Counter *counter : {&head().released, &head().asked}) {
    counter->value.store(0);
    counter->sleepers.store(0);
  }
  head().refusal.store(PIDCOMM_OK);
  each_seat([this](uint32_t number) { store(seat(number).welcome, uint64_t{0}); });
  flush(&head(), sizeof(Head));
  store(head().generation, random_number());
  memory_->publish();
}

/// Takes part in the pool whose head has a generation, until host 0 has welcomed this process.
void Pool::join() {
  Seat &own = seat(number_);
  const uint64_t nonce = random_number();
  bool has_seen_first =
      settings_.name != nullptr;  // a named object is opened only while host 0 is alive
  const auto is_welcome = [&] {
    const uint64_t generation = load(head().generation);
    if (generation == 0) return false;
    if (generation_ != generation) {
      own.nonce = nonce;
      own.facts = facts();
      own.process = getpid();
      own.allocated = allocated_;
      own.arrived.value.store(0);
      own.arrived.sleepers.store(0);
      own.left.store(kNot);
      if (number_ == kSwitchSeat) head().done.value.store(0);
      flush(&own, sizeof own - kLineBytes);
      flush(&head().done, sizeof head().done);
      store(own.generation, generation_ = generation);
    }
    if (number_ == seat_of(0)) welcome_all();
    return load(own.welcome) == nonce;
  };
  const auto check = [&] {
    if (number_ == seat_of(0)) {
      each_seat([this](uint32_t number) {
        if (is_gone(number))
          fail(PIDCOMM_ERR_DEVICE, memory_->title(), ": ", name_of(number),
               " has ended while the others open the pool");
      });
    } else if (memory_->sees_seats()) {
      const bool is_there = memory_->is_taken(seat_of(0));
      if (has_seen_first && !is_there)
        fail(PIDCOMM_ERR_DEVICE, memory_->title(),
             ": host 0 has ended while this process opens the pool");
      has_seen_first = is_there;
    }
  };
  const auto missing = [&] {
    std::string text;
    each_seat([&](uint32_t number) {
      if (load(seat(number).generation) == generation_) return;
      text += (text.empty() ? "" : ", ") + name_of_seat(number);
    });
    return (text.empty() ? "host 0" : text) + " to open it";
  };
  wait(nullptr, settings_.timeout_s, is_welcome, check, missing);
  check_refused();
}

/// Host 0 welcomes all processes when the last one has joined. If their facts differ, all of them
/// get the same error.
void Pool::welcome_all() {
  bool has_all = true;
  each_seat(
      [&](uint32_t number) { has_all = has_all && load(seat(number).generation) == generation_; });
  if (!has_all) return;
  each_seat([&](uint32_t number) {
    flush(&seat(number), sizeof(Seat) - kLineBytes);
    if (!(seat(number).facts == facts()))
      refuse(PIDCOMM_ERR_ARGUMENT, memory_->title() + " differs between host 0 (" +
                                       facts().to_string() + ") and " + name_of(number) + " (" +
                                       seat(number).facts.to_string() + ")");
  });
  each_seat([&](uint32_t number) { store(seat(number).welcome, seat(number).nonce); });
}

// ---- the calls

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

void Pool::write(uint64_t offset, uint64_t bytes, const void *host) const {
  check_range("write", offset, bytes);
  if (bytes != 0) std::memcpy(data() + offset, host, bytes);
  flush(data() + offset, bytes);
}

void Pool::read(uint64_t offset, uint64_t bytes, void *host) const {
  check_range("read", offset, bytes);
  flush(data() + offset, bytes);
  if (bytes != 0) std::memcpy(host, data() + offset, bytes);
}

void Pool::sync(double timeout_s) {
  guarded([&] {
    Seat &own = seat(number_);
    const uint32_t count = ++syncs_;
    const auto check = [this] { check_alive(); };
    // Hosts that never wait long would not notice the end of the switch.
    if (const double time = now(); has_switch() && time - checked_s_ > kCheckSeconds) {
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
      std::string differs;
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

// ---- the switch

void Pool::reduce(const pidcomm_reduction &reduction, double timeout_s) {
  if (!has_switch() || number_ != seat_of(0))
    fail(PIDCOMM_ERR_ARGUMENT, memory_->title(),
         ": host 0 of a pool with a switch reduces; this is host ", host(), " of a pool with ",
         has_switch() ? "a" : "no", " switch");
  check_op(reduction.op, ElementType::of(reduction.type));
  if (reduction.rows < 1 || reduction.bytes % kWordBytes != 0 ||
      reduction.stride < reduction.bytes ||
      reduction.rows - 1 > settings_.bytes / std::max(reduction.stride, kWordBytes))
    fail(PIDCOMM_ERR_ARGUMENT, memory_->title(), ": a reduction of ", reduction.rows, " rows of ",
         reduction.bytes, " bytes, ", reduction.stride,
         " bytes apart, needs a row, bytes divisible by ", kWordBytes,
         ", and a distance of at least the bytes");
  check_range("reduction", reduction.offset,
              (reduction.rows - 1) * reduction.stride + reduction.bytes);
  guarded([&] {
    head().reduction = reduction;
    flush(&head().reduction, sizeof reduction);
    set(head().asked, ++reductions_);
    wait(
        &head().done, timeout_s, [this] { return has_reached(head().done, reductions_); },
        [this] { check_alive(); }, [this] { return name_of(kSwitchSeat); });
  });
}

void Pool::serve() {
  bool is_deserted = false;
  const auto check = [&] {
    is_deserted = true;
    for (uint32_t host = 0; host < hosts(); ++host)
      is_deserted = is_deserted && is_gone(seat_of(host));
  };
  for (uint32_t count = 1;; ++count) {
    wait(
        &head().asked, 1e9, [&] { return is_deserted || has_reached(head().asked, count); }, check,
        [] { return std::string("hosts"); });
    if (!has_reached(head().asked, count)) return;
    flush(&head().reduction, sizeof head().reduction);
    carry_out(head().reduction);
    set(head().done, count);
  }
}

/// Row 0 becomes the reduction of all rows, in blocks that stay in the caches.
void Pool::carry_out(const pidcomm_reduction &reduction) const {
  const Reducer &reducer = kernels_.reducers[reduction.type - PIDCOMM_INT8][reduction.op];
  for (uint64_t at = 0; at < reduction.bytes; at += kReduceBytes) {
    const uint64_t size = std::min(kReduceBytes, reduction.bytes - at);
    std::byte *const into = data() + reduction.offset + at;
    flush(into, size);
    for (uint32_t row = 1; row < reduction.rows; ++row) {
      flush(into + row * reduction.stride, size);
      reducer.combine(into, into + row * reduction.stride, size);
    }
    flush(into, size);
  }
}

}  // namespace pidcomm
