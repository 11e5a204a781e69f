/// Threads and events. Compiled for general registers only: machine_step runs where a program uses
/// vector registers.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "machine/machine.h"

settings machine;
node *machine_nodes;
machine_thread *machine_now;
routine machine_routines[MAX_ROUTINES] = {{"application", {{0}}}};
uint64_t machine_end;
uint64_t machine_addresses[1 << 16];  ///< of the references since the last block began

typedef struct event {
  uint64_t time, number;
  void (*call)(void *);  ///< NULL: the argument is a thread that continues
  void *argument;
} event;

/// A binary heap. `room` entries fit; a thread reserves its entry when it is made, so that
/// machine_step never allocates.
static event *heap;
static size_t events, room, reserved;
static uint64_t next_number;
static unsigned thread_numbers;
static machine_thread *free_threads[2];
static void *scheduler;
static int applications;
static int has_stepped;  ///< whether the queues may have changed since the last check

void machine_switch(void **from, void *to);

static int is_before(const event *a, const event *b) {
  return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static void reserve(void) {
  if (++reserved <= room) return;
  room = room ? 2 * room : 1024;
  heap = realloc(heap, room * sizeof *heap);
  if (!heap) machine_fail("no memory for %zu events", room);
}

static void push(uint64_t time, void (*call)(void *), void *argument) {
  const event it = {time, next_number++, call, argument};
  size_t at = events++;
  for (; at; at = (at - 1) / 2) {
    if (!is_before(&it, &heap[(at - 1) / 2])) break;
    heap[at] = heap[(at - 1) / 2];
  }
  heap[at] = it;
}

static event pop(void) {
  const event first = heap[0], last = heap[--events];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= events) break;
    if (child + 1 < events && is_before(&heap[child + 1], &heap[child])) ++child;
    if (!is_before(&heap[child], &last)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return first;
}

void machine_at(uint64_t time, void (*call)(void *), void *argument) {
  reserve();
  push(time, call, argument);
}

/// Parts of the trace, until machine_run writes them: machine_step must not call libc.
enum { PARTS = 4096 };
static struct part {
  uint64_t from, to;
  int node;
  unsigned thread, routine;
} parts[PARTS];
static unsigned number_of_parts;

/// Ends a part of the time in which a thread does not wait. If the table is full, the next part
/// includes this one.
static void trace_active(machine_thread *it) {
  if (!machine.trace || number_of_parts == PARTS) return;
  parts[number_of_parts++] =
      (struct part){it->active_since, it->time, it->node->number, it->number, it->routine};
  it->active_since = it->time;
}

static void write_parts(void) {
  for (const struct part *it = parts; it < parts + number_of_parts; ++it)
    fprintf(machine.trace,
            "{\"event\":\"active\",\"node\":%d,\"thread\":%u,\"from\":%lu,\"to\":%lu,\"routine\":"
            "\"%s\"}\n",
            it->node, it->thread, it->from, it->to, machine_routines[it->routine].name);
  number_of_parts = 0;
}

void machine_ready(machine_thread *it) {
  ++it->node->active;
  it->active_since = it->time;
  push(it->time, 0, it);
}

void machine_wait(void) {
  machine_thread *self = machine_now;
  --self->node->active;
  trace_active(self);
  machine_switch(&self->sp, scheduler);
}

static void let_others_run(void) {
  machine_thread *self = machine_now;
  if (events == 0 || heap[0].time >= self->time) return;
  push(self->time, 0, self);
  machine_switch(&self->sp, scheduler);
}

static void charge(machine_thread *it, unsigned category, uint64_t instructions,
                   uint64_t references, uint64_t cycles) {
  counts *to = &machine_routines[it->routine].of[category];
  to->instructions += instructions;
  to->references += references;
  to->cycles_q16 += (cycles << 16) / it->node->active;
  it->time += cycles;
}

static uint64_t cost_of(node *at, const block *it, const uint64_t *addresses, unsigned number,
                        unsigned jumped) {
  return (machine.is_conventional ? conventional_cost : pim_cost)(at, it, addresses, number,
                                                                  jumped);
}

static void charge_pending(const block *next, unsigned more) {
  machine_thread *self = machine_now;
  const block *it = self->pending;
  if (!it) return;
  const unsigned number = it->references + more;
  // A call of the platform is the jump of its block; only jumps to another block are predicted.
  const unsigned jumped = it->next && next && it->next != next;
  charge(self, it->category, it->instructions, number,
         cost_of(self->node, it, it->addresses, number, jumped));
  self->pending = 0;
}

static unsigned routine_of(const char *name) {
  unsigned i = 1;
  for (; machine_routines[i].name; ++i)
    if (machine_routines[i].name == name) return i;
  machine_routines[i].name = name;  // MAX_ROUTINES exceeds the number of calls of MPI
  return i;
}

/// Called by machine_step.
void machine_block(const block *it) {
  machine_thread *self = machine_now;
  if (!self) return;
  charge_pending(it, 0);
  self->pending = it;
  const unsigned number = it->routine                       ? routine_of(it->routine)
                          : it->category == PIM_application ? 0
                                                            : self->routine;
  if (number != self->routine) {
    trace_active(self);
    self->routine = number;
  }
  let_others_run();
}

void machine_flush(const void *reference) {
  if (!machine_now) return;
  const block *it = machine_now->pending;
  has_stepped = 1;
  if (reference && it) ((uint64_t *)it->addresses)[it->references] = (uint64_t)(uintptr_t)reference;
  charge_pending(0, reference != 0);
  let_others_run();
}

void machine_charge(enum pim_category category, uint64_t instructions, const void *first,
                    size_t words) {
  static uint64_t addresses[64];
  machine_thread *self = machine_now;
  for (size_t done = 0; done < words || instructions;) {
    unsigned number = 0;
    for (; number < 64 && done + number < words; ++number)
      addresses[number] = (uint64_t)(uintptr_t)first + 8 * (done + number);
    uint64_t part = done + number < words && instructions > 64 ? 64 : instructions;
    if (part > UINT16_MAX) part = UINT16_MAX;
    const block it = {0, 0, 0, 0, (uint16_t)part, (uint16_t)number, (uint16_t)part, 0, 0};
    charge(self, category, part, number, cost_of(self->node, &it, addresses, number, 0));
    instructions -= part;
    done += number;
    let_others_run();
  }
}

void machine_end_thread(void) {
  machine_thread *self = machine_now;
  machine_flush(0);
  if (self == self->node->main) {
    --applications;
    self->node->main = 0;
  }
  free(self->payload);
  self->payload = 0;
  --self->node->active;
  trace_active(self);
  machine_thread **list = &free_threads[self->stack_bytes > 1 << 16];
  self->next = *list;
  *list = self;
  machine_switch(&self->sp, scheduler);
  __builtin_unreachable();
}

static void run_thread(void) {
  machine_now->code(machine_now->state, machine_now->payload);
  machine_end_thread();
}

machine_thread *machine_thread_of(node *at, uint64_t time, size_t stack_bytes, pim_code *code) {
  machine_thread **list = &free_threads[stack_bytes > 1 << 16];
  machine_thread *it = *list;
  if (it) {
    *list = it->next;
  } else {
    it = aligned_alloc(64, (sizeof *it + 63) / 64 * 64);
    if (!it) machine_fail("no memory for %u threads", thread_numbers);
    it->stack_bytes = stack_bytes;
    it->stack = mmap(0, stack_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (it->stack == MAP_FAILED)
      machine_fail("no memory for the stacks of %u threads", thread_numbers);
    if (stack_bytes > 1 << 16) mprotect(it->stack, 4096, PROT_NONE);
    reserve();
  }
  it->time = time;
  it->node = at;
  it->pending = 0;
  it->routine = machine_now ? machine_now->routine : 0;
  it->number = thread_numbers++;
  it->next = 0;
  it->waits_for = 0;
  it->payload = 0;
  it->code = code;
  uint64_t *top = (uint64_t *)(it->stack + it->stack_bytes) - 1;  // aligned as after a call
  *--top = (uint64_t)(uintptr_t)run_thread;
  it->sp = (char *)top - 6 * 8 - 256;
  memset(it->sp, 0, 6 * 8 + 256);
  return it;
}

int machine_run(void) {
  uint64_t end = 0;
  applications = machine.nodes;
  while (events) {
    event it = pop();
    machine_end = it.time;
    if (it.call) {
      --reserved;
      it.call(it.argument);
      continue;
    }
    machine_now = it.argument;
    machine_switch(&scheduler, machine_now->sp);
    if (machine_now->time > end) end = machine_now->time;
    write_parts();
    // A single-threaded engine changes its queues between packets without locks.
    if (machine.checks && has_stepped && (!machine.is_conventional || !machine_now->node->active)) {
      const machine_thread *ran = machine_now;
      node *at = ran->node;
      unsigned posted, unexpected;
      machine_now = 0;  // the checks do not count
      has_stepped = 0;
      const char *wrong = engine_check(at->memory, &posted, &unexpected);
      if (wrong) machine_fail("node %d, cycle %lu: %s", at->number, ran->time, wrong);
      if (machine.trace && (posted != at->posted || unexpected != at->unexpected))
        fprintf(machine.trace,
                "{\"event\":\"queues\",\"node\":%d,\"at\":%lu,\"posted\":%u,\"unexpected\":%u}\n",
                at->number, ran->time, posted, unexpected);
      at->posted = posted;
      at->unexpected = unexpected;
    }
    machine_now = 0;
  }
  if (end > machine_end) machine_end = end;
  return applications;
}
