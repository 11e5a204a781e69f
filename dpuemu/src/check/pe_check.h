// The checks of one run of a PE: the order of its tasklets' accesses, and the state of the memory
// that they access. The engine that runs the program calls access() before each access to memory,
// and the other functions when a call of the program takes effect. Each function gets the place of
// the call: its offset in the text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/low_memory.h"
#include "check/clocks.h"
#include "check/explorer.h"
#include "check/findings.h"
#include "check/history.h"
#include "machine/checked_memory.h"
#include "machine/pe.h"
#include "machine/program.h"

namespace dpuemu {

/// How an access to memory is made.
struct AccessKind {
  bool is_write = false, is_volatile = false;
};

class PeCheck {
 public:
  PeCheck();

  /// A place in WRAM or MRAM.
  struct Cell {
    bool is_mram;
    uint32_t address;
  };

  /// Begins a run of the PE.
  void begin(Pe &pe, const PePlace &place, uint32_t wram_bytes, uint32_t rank, uint32_t dpu_index);
  void begin_stack(uint32_t tasklet, uint64_t top);
  /// The calling thread will run the tasklet until the next call.
  void enter(uint32_t tasklet);

  // --- Calls of the tasklet that runs. They return whether it shall let other tasklets run.

  // If they do, they note the access when the tasklet continues, just before its access.

  /// An access of kBytes bytes. Most accesses repeat an access of the same tasklet.
  template <uint32_t kBytes, bool kIsWrite>
  bool access(uint32_t address, uint32_t place) {
    if (--accesses_left_ == 0) [[unlikely]]
      return wait_before({address, kBytes, {kIsWrite, false}, place, false}, false);
    const uint32_t at = address - wram_;
    if (at <= wram_bytes_ - kBytes && are_defined<kBytes>(at) &&
        (are_now<kBytes>(writes_ + at) || (!kIsWrite && are_now<kBytes>(reads_ + at)))) [[likely]]
      return false;
    note_access({address, kBytes, {kIsWrite, false}, place, false});
    return false;
  }
  bool access_volatile(uint32_t address, uint32_t bytes, bool is_write, uint32_t place);
  /// An access to more than 16 bytes: a copy, which may contain bytes without a value.
  bool access_range(uint32_t address, uint32_t bytes, bool is_write, uint32_t place);
  /// memcpy and memmove copy also whether the bytes have a value.
  bool copy(uint32_t to, uint32_t from, uint32_t bytes, uint32_t place);
  void enter_function(uint64_t stack_pointer, uint32_t place);
  void leave_function();
  /// A function of the runtime, which the program calls at `place`.
  void enter_runtime(uint64_t stack_pointer, uint32_t place);
  void leave_runtime();
  void note_memory(uint32_t address, uint32_t bytes, uint32_t state, uint32_t place);

  // --- Calls that take effect at their time.

  /// The objects at which tasklets wait for each other: a kind and a number or an address.
  enum class Lock : uint8_t { kMutex, kBarrier, kSemaphore, kVirtualMutex, kVolatile };
  void acquire(uint32_t tasklet, Lock kind, uint32_t key);
  void release(uint32_t tasklet, Lock kind, uint32_t key);
  void meet(uint32_t tasklet, uint32_t other);  // a handshake
  /// The tasklet gets or leaves a mutex or a virtual mutex.
  void lock(uint32_t tasklet, Lock kind, uint32_t number, uint32_t place);
  void unlock(uint32_t tasklet, Lock kind, uint32_t number);
  void report_no_mutex(uint32_t tasklet, uint32_t number, uint32_t place);
  void arrive_at_barrier(uint32_t tasklet, uint32_t address, uint32_t count, uint32_t place);
  /// All tasklets of the bit set continue after the barrier.
  void pass_barrier(uint32_t tasklets, uint32_t address);
  /// A DMA. wram: address in the program's memory, of WRAM or of a stack. is_rounded: the hardware
  /// changes an address or the size.
  void transfer(uint32_t tasklet, uint32_t offset, uint32_t wram, uint32_t bytes, bool is_read,
                bool is_direct, bool is_rounded, uint32_t place);
  void end_transfer(uint32_t tasklet) { in_flight_[tasklet].bytes = 0; }
  /// The program has accessed this page of MRAM directly, perhaps without a call (gcc 14).
  void note_direct_page(uint32_t offset);

  // --- Other orders of the tasklets (explorer.h).

  /// The next runs note which cells several tasklets use, and if `explorer` is not null, let
  /// others run before each access to such a cell.
  void explore(Explorer *explorer);
  /// The next runs do not note which memory has a value, and report nothing about values and
  /// objects. They observe which values tasklets read.
  void freeze_states() { are_states_frozen_ = true; }
  void stop_exploring();
  Explorer *explorer() const { return explorer_; }
  /// Returns whether the tasklet waits before an access.
  bool is_delayed(uint32_t tasklet) const { return delayed_[tasklet].bytes != 0; }
  /// Returns whether the host has written WRAM since the launch.
  bool has_host_write() const { return has_host_write_; }
  /// Returns whether the last run has found more such cells, and forgets it.
  bool has_found_cells() { return std::exchange(has_found_cells_, false); }
  /// A value that a tasklet has read from such a cell.
  struct Observation {
    uint32_t tasklet, place;
    Cell cell;
    uint64_t value;
  };
  std::vector<Observation> take_observations() { return std::exchange(observations_, {}); }
  /// Reports that the result of the last run differs from the result of an earlier run.
  void report_difference(const std::vector<Observation> &earlier,
                         const std::vector<Observation> &last, const std::string &how);

  /// Ends the run. has_fault: the run has not come to its end. at_barriers: bit set of the tasklets
  /// that wait at a barrier for ever, if the others have ended. awaited: the mutexes for which
  /// tasklets wait for ever.
  struct Mutex {
    Lock kind;
    uint32_t number;
    bool operator==(const Mutex &) const = default;
  };
  void end(bool has_fault, uint32_t at_barriers, const std::vector<Mutex> &awaited);

  /// The host reads MRAM. Reports bytes that the PE sent from memory that nothing has written.
  static void note_host_read(const Pe &pe, uint32_t rank, uint32_t dpu_index, uint64_t offset,
                             uint64_t bytes);

  /// Returns the run of the calling thread.
  static PeCheck *current() { return current_; }
  static void set_current(PeCheck *check) { current_ = check; }

 private:
  template <uint32_t kBytes>
  bool are_defined(uint32_t at) const {
    constexpr uint64_t kAll = UINT64_C(0x0101010101010101);
    uint64_t states[2] = {kAll, kAll};
    __builtin_memcpy(states, memory_->wram + at, kBytes);
    return ((states[0] ^ kAll) | (states[1] ^ kAll)) == 0;
  }
  template <uint32_t kCount>
  bool are_now(const Epoch *epochs) const {
    if constexpr (kCount == 1) {
      return *epochs == epoch_;
    } else {
      uint64_t pairs[kCount / 2], difference = 0;
      __builtin_memcpy(pairs, epochs, sizeof pairs);
      for (const uint64_t pair : pairs) difference |= pair ^ two_epochs_;
      return difference == 0;
    }
  }

  struct Access {
    uint32_t address, bytes;
    AccessKind kind;
    uint32_t place;
    bool is_range;
    uint32_t copied_from = 0;  // of a copy to `address`; 0: not a copy
  };
  /// Counts the accesses of the tasklet that runs, until others run.
  uint32_t access_number() const {
    return is_exploring_ ? explored_accesses_[tasklet_] : 0u - accesses_left_;
  }
  bool wait_before(const Access &access, bool waits);
  void note_access(const Access &access);
  void note_copy(const Access &access);
  void note_range(uint32_t at, uint32_t bytes, bool is_write, uint32_t place);

  struct Stack {
    uint64_t top = 0;
    std::vector<uint64_t> frames;  // stack pointers
    uint32_t needed = 0;           // bytes of the frames, at least
    std::vector<uint32_t> sums;    // `needed` before each frame
    uint32_t most = 0;
    uint32_t place_of_most = 0;
  };
  struct Flight {
    uint32_t offset = 0, bytes = 0;
  };
  struct MramCells {
    Epoch writes[kPageBytes / 8] = {}, reads[kPageBytes / 8] = {};
    PlaceWord write_places[kPageBytes / 8] = {}, read_places[kPageBytes / 8] = {};
    // Bit sets of the bytes of each cell that direct accesses use; all bits after DMA.
    uint8_t written_bytes[kPageBytes / 8] = {}, read_bytes[kPageBytes / 8] = {};
  };
  struct Barrier {
    uint32_t count = 0, place = 0;
    uint32_t waiting = 0, last = 0;  // bit sets of tasklets; last: those that passed it last
    VectorClock passed;              // when they arrived
    bool is_reported = false;
  };
  struct VolatileRead {
    uint32_t address = 0, place = 0;
    bool was_ordered = true;
    Epoch write = 0;
    PlaceWord write_place = 0;
    uint32_t number = 0;  // of the access
  };

  Cells wram_cells() { return {writes_, reads_, write_places_.data(), read_places_.data()}; }
  void tick(uint32_t tasklet);
  /// Ends the current time of the tasklet. After 2^27 times, all later ones are the same.
  void advance(uint32_t tasklet);
  uint32_t outer(uint32_t tasklet, uint32_t place) const;
  void check_states(uint32_t at, uint32_t bytes, AccessKind kind, uint32_t place, bool is_copy);
  void check_freed(uint32_t at, uint32_t bytes, const char *name, uint32_t place);
  void access_mram(uint32_t offset, uint32_t bytes, AccessKind kind, uint32_t place, bool is_dma);
  void check_object(uint32_t at, uint32_t bytes, const char *name, uint32_t place);
  void check_variable(uint32_t offset, uint32_t bytes, const char *name, uint32_t place);
  Side call_side(const char *name, uint32_t bytes, uint32_t place) const;
  void note_depth(uint64_t stack_pointer, uint32_t place);
  void race(FindingKind kind, const Cell &cell, const CellAccess &access, bool is_write,
            Epoch epoch, PlaceWord place, bool was_write, const char *detail = "");
  /// Reports the finding that make() returns, unless this run has reported the same kind with the
  /// same places.
  template <class Make>
  void report(FindingKind kind, PlaceWord now, PlaceWord before, Make make);
  std::string name_of(const Cell &cell) const;
  void drain_host();
  std::string function_at(uint32_t place) const;
  Side side(uint32_t tasklet, const std::string &act, PlaceWord place) const;
  std::string wram_name(uint32_t at) const;
  std::string mram_name(uint32_t offset) const;
  std::string mutex_name(const Mutex &mutex) const;

  __attribute__((
      tls_model("initial-exec"))) static inline constinit thread_local PeCheck *current_ = nullptr;

  // The fields of the fast path.
  uint32_t wram_ = 0, wram_bytes_ = 0;  // address and size of WRAM
  Epoch epoch_ = 0;                     // of the tasklet that runs
  uint32_t accesses_left_ = 1;          // until it lets others run
  uint64_t two_epochs_ = 0;
  CheckedMemory *memory_ = nullptr;
  Epoch *writes_, *reads_;

  uint32_t tasklet_ = 0;
  std::vector<Epoch> epochs_;  // writes, then reads
  std::vector<PlaceWord> write_places_, read_places_;
  SharedReads shared_;
  std::unordered_map<uint32_t, std::unique_ptr<MramCells>> mram_;
  VectorClock clocks_[kClockThreads];
  uint32_t time_ = 0;  // the last time of any thread
  std::unordered_map<uint64_t, VectorClock> locks_;
  std::unordered_map<uint32_t, Barrier> barriers_;
  Stack stacks_[PE_MAX_TASKLETS];
  uint32_t runtime_depth_[PE_MAX_TASKLETS] = {}, runtime_place_[PE_MAX_TASKLETS] = {};
  Flight in_flight_[PE_MAX_TASKLETS];
  uint32_t explored_accesses_[PE_MAX_TASKLETS] = {};
  Access delayed_[PE_MAX_TASKLETS] = {};  // bytes == 0: none
  VolatileRead volatile_reads_[PE_MAX_TASKLETS];
  struct Held {
    Mutex mutex;
    uint32_t tasklet, place;
  };
  std::unordered_map<uint64_t, Held> held_;
  struct Reported {
    Finding finding;
    uint64_t repetitions = 0;
  };
  std::unordered_map<uint64_t, Reported> reported_;  // by kind and places

  // DMA moves whole words, so programs often read more than they use. A DMA that reads what another
  // tasklet writes is an error only if the program uses the bytes. These fields follow the bytes of
  // the first DMA of each tasklet at a place in the program, and after the first such conflict of
  // the place, of all its DMA.
  struct Fresh {
    uint32_t word = 0;  // of MRAM, + 1; 0: the granule of WRAM is not followed
    Epoch epoch = 0;    // of the DMA
    PlaceWord place = 0;
    bool is_raced = false;
    FindingKind kind = {};
    Epoch other = 0;  // of the write
    PlaceWord other_place = 0;
  };
  struct Doubt {
    FindingKind kind;
    Cell cell;
    Epoch own;
    PlaceWord own_place;
    bool is_write;
    Epoch other;
    PlaceWord other_place;
    bool was_write;
  };
  void follow(uint32_t offset, uint32_t at, uint32_t bytes, PlaceWord place);
  /// The program uses (else overwrites) followed bytes of WRAM.
  void end_following(uint32_t at, uint32_t bytes, bool is_used);
  FindingKind kind_of_conflict(uint32_t other, uint32_t offset) const;
  void note_write_of_followed(uint32_t word, PlaceWord place);
  MramCells &mram_cells(uint32_t page);
  std::vector<Fresh> fresh_;                              // by granule of 8 bytes of WRAM
  std::unordered_multimap<uint32_t, uint32_t> followed_;  // words of MRAM -> granules
  std::unordered_set<PlaceWord> followed_places_, unused_places_;
  std::unordered_map<uint32_t, uint32_t> readers_;  // by place of a DMA: bit set of tasklets
  std::vector<Doubt> doubts_;

  // Of other orders.
  struct Users {
    uint32_t all = 0, writers = 0;  // bit sets of tasklets
  };
  void note_users(const Cell &first, uint32_t bytes, bool is_write);
  Cell cell_of(uint32_t address) const;
  bool is_shared(const Cell &first, uint32_t bytes) const;
  void note_step(const Cell &first, uint32_t bytes, bool is_write, uint32_t place,
                 const uint8_t *contents);
  void note_step(const Access &access);
  template <class Act>
  static void for_each_cell(const Cell &first, uint32_t bytes, Act act);
  bool is_exploring_ = false, has_found_cells_ = false, are_states_frozen_ = false;
  bool has_host_write_ = false;
  // For each place where a tasklet has read such a cell since its last write to one: the value.
  std::unordered_map<uint64_t, uint64_t> last_reads_[PE_MAX_TASKLETS];
  Explorer *explorer_ = nullptr;
  std::unordered_map<uint64_t, Users> users_;  // by cell
  std::unordered_set<uint64_t> shared_cells_;
  std::vector<Observation> observations_;

  Pe *pe_ = nullptr;
  const Program *program_ = nullptr;
  uint32_t text_ = 0;
  uint32_t word_buffer_ = 0;  // of mram_unaligned.h, in WRAM, or 0
  uint32_t rank_ = 0, dpu_index_ = 0;
};

template <class Make>
void PeCheck::report(FindingKind kind, PlaceWord now, PlaceWord before, Make make) {
  constexpr uint64_t kPlaceMask = (1u << 28) - 1;
  const uint64_t key =
      uint64_t{static_cast<uint8_t>(kind)} << 56 | (now & kPlaceMask) << 28 | (before & kPlaceMask);
  const auto [entry, is_new] = reported_.try_emplace(key);
  if (!is_new) {
    if (!are_states_frozen_) ++entry->second.repetitions;
    return;
  }
  Finding finding = make();
  finding.kind = kind;
  finding.pe = pe_name(rank_, dpu_index_);
  note_finding(finding);
  entry->second.finding = std::move(finding);
}

}  // namespace dpuemu
