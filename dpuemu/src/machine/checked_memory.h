// Which bytes of one PE's memory have a value, for `dpuemu check`. The knowledge survives launches,
// like the memory itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/address_map.h"
#include "base/low_memory.h"
#include "runtime/calls.h"

namespace dpuemu {

class Program;
struct Pe;

class CheckedMemory {
 public:
  /// The state of a byte of WRAM: kDefined alone, or why the byte has no value. kEarlier: an
  /// earlier owner of the memory has written the byte. kCopied: a DMA copied it from MRAM that
  /// nothing has written; kMoved: from MRAM that was written before a load that moved the heap.
  enum State : uint8_t {
    kNever = 0,
    kDefined = 1,
    kUnallocated = 2,
    kFreed = 4,
    kCopied = 8,
    kEarlier = 16,
    kFresh = 32,
    kMoved = 64
  };
  uint8_t wram[PE_WRAM_BYTES] = {};

  /// An object of WRAM that DMA must not leave. `end` is rounded up to 8 if no object begins
  /// before that.
  struct Object {
    uint32_t begin = 0, end = 0;
    uint32_t place = 0;  // offset in the text of the call that allocated it; 0 for a variable
  };
  /// Returns the object that contains the address, or nullptr.
  const Object *object_at(uint32_t address) const;
  /// Returns the variable of MRAM that contains the offset, or nullptr.
  const Object *mram_variable_at(uint32_t offset) const;

  /// Loading a program defines its variables, and frees the heap. If the heap of MRAM then begins
  /// elsewhere than with the last program, its old contents have no values.
  void load(const Program &program);
  /// mem_alloc, and mem_reset (from the start of the heap to the end of WRAM).
  void allocate(uint32_t begin, uint32_t bytes, uint32_t place);
  void reset_heap(uint32_t begin);
  /// A block of buddy_alloc or fsb_get within the heap is taken or freed.
  void set_part(uint32_t begin, uint32_t bytes, uint32_t place, bool is_taken);

  // --- Accesses of the host to WRAM. While a launch is queued or runs, they take effect in the
  // next call of take_host(), or at the end of the last launch.

  struct HostAccess {
    uint32_t offset, bytes;
    bool is_write;
  };
  /// is_queued: the rank's queue orders the access before the launches that have not begun.
  void note_host(const HostAccess &access, bool is_queued);
  /// Each queued launch ends once. Only one at a time begins.
  void queue_launch();
  void begin_launch();
  void end_launch(bool has_begun);
  bool has_host() const { return has_host_.load(std::memory_order_acquire); }
  std::vector<HostAccess> take_host();
  /// Lock this mutex while the host accesses WRAM. If the PE runs in other orders of its tasklets,
  /// the host waits.
  std::mutex host_mutex;

  // --- MRAM. Offsets and sizes are in bytes.

  void define_mram(uint64_t offset, uint64_t bytes);
  /// All of MRAM may have been written.
  void define_all_mram() { is_mram_known_ = false; }
  /// A DMA copies the states of its bytes.
  void copy_to_wram(uint64_t offset, uint32_t wram_offset, uint32_t bytes);
  void copy_to_mram(uint64_t offset, uint32_t wram_offset, uint32_t bytes);
  /// A DMA to MRAM of which no byte has a value.
  struct Sent {
    const Program *program;
    uint32_t offset, bytes, tasklet, place;
  };
  void note_sent(const Sent &sent) { sent_[sent.offset] = sent; }
  /// Returns the DMA of which nothing has written the bytes in a part of MRAM, and forgets them.
  std::vector<Sent> take_sent(uint64_t offset, uint64_t bytes);

 private:
  struct Page {
    uint64_t bits[kPageBytes / 64] = {};
    bool is_full = false;
    bool has_moved = false;  // since then, nothing has written the bytes that are not in `bits`
  };
  void set_mram(uint64_t offset, bool is_defined);
  bool has_value(uint64_t offset) const;
  void move_heap(uint32_t from);
  void define_host_locked(const HostAccess &access);

  // Sorted by begin. parts_: of blocks_.
  std::vector<Object> variables_, mram_variables_, blocks_, parts_;
  std::unordered_map<uint32_t, Page> mram_;
  std::unordered_map<uint32_t, Sent> sent_;  // by offset
  bool is_mram_known_ = true;
  uint32_t mram_heap_ = 0;  // its address in the program, or 0
  std::mutex mutex_;        // guards the members below
  bool is_running_ = false;
  uint32_t launches_ = 0;  // that are queued or run
  std::vector<HostAccess> host_;
  std::atomic<bool> has_host_{false};
};

/// Returns the memory of the PE; creates it at the first call.
CheckedMemory &checked_memory(Pe &pe);

}  // namespace dpuemu
