// Opening and closing a pool: the processes find the memory, agree on its facts, and join. Host 0
// prepares the head and welcomes all others; an error of one process is an error of all of them.
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <ctime>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/error.h"
#include "base/geometry.h"
#include "exec/parallel.h"
#include "line_kernels/kernels.h"
#include "pool/layout.h"
#include "pool/wait.h"

namespace pidcomm {

namespace {

constexpr uint32_t kMaxHosts = 1024;
constexpr int kSpins = 200;  // polls before the first sleep

uint64_t random_number() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;  // not 0
}

}  // namespace

Pool::Pool(const pidcomm_pool_settings &settings, Role role)
    : settings_(settings),
      number_(role == Role::network_switch ? kSwitchSeat : seat_of(settings.host)),
      kernels_(kernels_of(best_isa())),
      spins_(static_cast<int>(settings.hosts) <= usable_cpus() ? kSpins : 0) {
  if (number_ != seat_of(0)) settings_.switch_process = 0;
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
  if (settings_.switch_process != 0 && (!has_switch() || settings_.switch_process > INT_MAX))
    fail(PIDCOMM_ERR_ARGUMENT, "switch_process (", settings_.switch_process,
         ") of a pool must be the number of a process, and has_switch (", settings_.has_switch,
         ") must be 1");
  if (settings_.coherence > PIDCOMM_COHERENCE_HARDWARE)
    fail(PIDCOMM_ERR_OPTION, "coherence code ", settings_.coherence,
         " is unknown; use 1 (none) or 2 (hardware)");
  if (!(settings_.timeout_s > 0 && settings_.timeout_s < 1e9))
    fail(PIDCOMM_ERR_ARGUMENT, "timeout_s (", settings_.timeout_s,
         ") of a pool must be above 0 and below 1e9");
}

void Pool::open() {
  const bool is_first = number_ == seat_of(0);
  const double begin = clock_s();
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
    if (clock_s() - begin > settings_.timeout_s)
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
      own.gather[0] = own.gather[1] = {};  // a file may have those of an earlier pool
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

}  // namespace pidcomm
