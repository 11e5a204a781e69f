// The findings of the process. A finding is reported once, with the number of its occurrences.
#pragma once

#include <cstdint>
#include <string>

namespace dpuemu {

/// X(name, word, what, remedy): the kinds of findings. word: in JSON and in suppressions.
#define DPUEMU_FINDING_TABLE(X)                                                                \
  X(kRace, "race", "a data race between two tasklets",                                         \
    "Order the two accesses by a barrier, a mutex, a semaphore or a handshake.")               \
  X(kOverlap, "overlap", "two DMA of two tasklets reach the same 8 bytes of MRAM at a time",   \
    "Give each tasklet its own words of 8 bytes, or order the two DMA.")                       \
  X(kUninitialised, "uninitialised", "a read of memory that nothing has written",              \
    "Write the memory first; mem_alloc, buddy_alloc and MRAM have no initial values.")         \
  X(kLeftover, "leftover", "a read of a value that an earlier owner of the memory has left",   \
    "Initialise the memory in each launch, after mem_alloc.")                                  \
  X(kMoved, "moved", "a read of data that were written before a load that moved the heap",     \
    "Write the data after dpu_load; the heap begins after the MRAM variables of the program.") \
  X(kObject, "object", "an access outside an object or the heap",                              \
    "Round the size of the object up to 8 bytes, or move the last elements separately.")       \
  X(kRounded, "rounded", "the hardware rounds an address or a size of this DMA",               \
    "Use addresses that are multiples of 8, and sizes that are multiples of 8 up to 2048.")    \
  X(kStack, "stack", "a stack that is larger than declared",                                   \
    "Set STACK_SIZE_DEFAULT or STACK_SIZE_TASKLET_n to at least this size, or use the heap.")  \
  X(kHeld, "held", "a mutex that is still locked when the program ends",                       \
    "Unlock the mutex on every path.")                                                         \
  X(kBarrier, "barrier", "a barrier whose count differs from the tasklets that wait",          \
    "Initialise the barrier with the number of tasklets that call barrier_wait.")              \
  X(kHost, "host", "a host transfer to memory that the running launch uses",                   \
    "Call dpu_sync before the transfer, or pass the data through a FIFO.")                     \
  X(kFreed, "freed", "an access to memory that buddy_free has freed",                          \
    "Free the block after its last use, and use the pointer that buddy_realloc returns.")      \
  X(kMutex, "mutex", "a lock of an address that is not a mutex",                               \
    "Define the mutex with MUTEX_INIT, and set the pointer before its first use.")             \
  X(kSchedule, "schedule", "a result that depends on the order of the tasklets",               \
    "Order the accesses at which the two runs begin to differ.")

enum class FindingKind : uint8_t {
#define DPUEMU_FINDING(name, word, what, remedy) name,
  DPUEMU_FINDING_TABLE(DPUEMU_FINDING)
#undef DPUEMU_FINDING
};

/// One side of a finding.
struct Side {
  std::string act = "";       // such as "tasklet 3 writes it"
  std::string function = "";  // with its file and line: "main (task.c:12)"
  int tasklet = -1;           // -1: the host, or an earlier run
};

struct Finding {
  FindingKind kind = {};
  std::string pe = "";         // "rank 0, chip 1, bank 2"
  std::string object = "";     // such as "WRAM address 0x120 (table + 0x10)"
  Side now = {}, before = {};  // before.act is empty if the finding has one side
  std::string detail = "";     // more words, or empty
};

/// Notes a finding. Two findings are the same if they have the same kind and the same two places.
/// Prints a new finding to standard error, and appends it to the file of the settings.
void note_finding(const Finding &finding, uint64_t count = 1);

/// Prints how many orders of the tasklets of a PE were tried, and how many are known that were not.
/// stop: why no more were tried, or nullptr.
void note_schedules(const std::string &pe, uint64_t tried, uint64_t remaining, const char *stop);

}  // namespace dpuemu
