/// The simulated machine: nodes, threads and events. Deterministic: events run in order of time,
/// then of creation.
///
/// Programs run as compiled x86-64 code. count.py has added a call of machine_step at the start of
/// each basic block, with a record of the block, and stores of the address of each memory
/// reference. A block is charged when the next block starts. The machine then runs the thread with
/// the earliest time.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engines/wire.h"
#include "pim/hooks.h"

/// A basic block. count.py writes these records.
typedef struct block {
  const struct block
      *next;  ///< the block that follows if the conditional jump at the end is not taken, or NULL
  const uint64_t *addresses;
  uint64_t code;  ///< the address of its first instruction, or 0 for functions of the platform
  const char *routine;  ///< the call of MPI that starts here, or NULL
  uint16_t instructions;
  uint16_t references;
  uint16_t issue_cycles;  ///< of the block on three pipelines with forwarding, all data in the
                          ///< first cache
  uint8_t category;
  uint8_t unused;
} block;

typedef struct counts {
  uint64_t instructions, references, cycles_q16;
} counts;

enum { MAX_ROUTINES = 32, MAX_BANKS = 64 };
typedef struct routine {
  const char *name;
  counts of[PIM_categories];
} routine;

typedef struct machine_thread {
  uint64_t time;
  void *sp;
  struct node *node;
  const block *pending;
  unsigned routine;
  unsigned number;
  struct machine_thread *next;  ///< in a line of waiting threads, or in the list of free threads
  const pim_word *waits_for;
  int takes;
  uintptr_t result;
  char *stack;
  size_t stack_bytes;
  pim_code *code;
  void *payload;
  uint64_t active_since;
  _Alignas(16) char state[PIM_STATE_BYTES];
} machine_thread;

typedef struct packet {
  struct packet *next;
  wire_head head;
  char body[];
} packet;

typedef struct node {
  int number;
  unsigned active;     ///< threads that do not wait
  uint64_t link_free;  ///< when the link can take the next parcel
  uint64_t open_row[MAX_BANKS];
  void *memory;
  machine_thread *main;
  struct caches *caches;
  uint64_t pages;
  packet *inbox, **inbox_end, *last;
  unsigned posted, unexpected;  ///< lengths at the last check
} node;

/// The numbers of a machine. Cycles and bytes.
typedef struct settings {
  int nodes;
  int is_conventional;
  int checks;
  uint64_t latency, bytes_per_cycle;  ///< of the network
  uint64_t open_page, closed_page;    ///< table 1
  uint64_t l2, depth;
  uint64_t row_bytes, banks;
  uint64_t row_copies;  ///< whether PIM nodes copy a row with a load and a store
  FILE *trace;
} settings;

extern settings machine;
extern node *machine_nodes;
extern machine_thread *machine_now;  ///< the running thread; NULL before the start
extern routine machine_routines[MAX_ROUTINES];
extern uint64_t machine_end;

/// Charges the pending block of the running thread, and one more reference unless NULL; then runs
/// earlier threads.
void machine_flush(const void *reference);
/// Charges instructions that the platform executes, and their references to consecutive words.
void machine_charge(enum pim_category category, uint64_t instructions, const void *first,
                    size_t words);
/// Returns the cycles of a block beyond its issue: pim.c and conventional.c.
uint64_t pim_cost(node *at, const block *it, const uint64_t *addresses, unsigned number,
                  unsigned jumped);
uint64_t conventional_cost(node *at, const block *it, const uint64_t *addresses, unsigned number,
                           unsigned jumped);
/// Returns the physical address of an address: pages of 4 KiB, numbered in order of first use on
/// the node.
uint64_t machine_physical(node *at, uint64_t address);
struct caches *conventional_caches(void);

/// Makes a thread of a node. It is not in any list yet.
machine_thread *machine_thread_of(node *at, uint64_t time, size_t stack_bytes, pim_code *code);
void machine_ready(machine_thread *it);
/// Ends the running thread.
_Noreturn void machine_end_thread(void);
/// The running thread stops until machine_ready.
void machine_wait(void);
/// At a time, calls a function with an argument.
void machine_at(uint64_t time, void (*call)(void *), void *argument);
/// Runs all events. Returns the number of application threads that never ended.
int machine_run(void);
void machine_arrived(void *packet);
_Noreturn void machine_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
