/// The PIM nodes: words with full/empty bits, parcels, and the cost of a block.
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"

enum { LINES = 1 << 14, HEAD_BYTES = 16 };

/// Threads that wait for words, by hash of the word's address, in order of arrival.
static machine_thread *waiting[LINES], *waiting_end[LINES];

static unsigned line_of(const pim_word *word) {
  const uint64_t bits = (uint64_t)(uintptr_t)word >> 4;
  return (unsigned)((bits ^ bits >> 14 ^ bits >> 28) % LINES);
}

static void stand_in_line(machine_thread *it, pim_word *word, int takes) {
  const unsigned line = line_of(word);
  it->waits_for = word;
  it->takes = takes;
  it->next = 0;
  if (waiting[line])
    waiting_end[line]->next = it;
  else
    waiting[line] = it;
  waiting_end[line] = it;
  ++word->waiting;
}

static machine_thread *first_of_line(pim_word *word) {
  const unsigned line = line_of(word);
  machine_thread *before = 0, *it = waiting[line];
  while (it->waits_for != word) before = it, it = it->next;
  if (before)
    before->next = it->next;
  else
    waiting[line] = it->next;
  if (waiting_end[line] == it) waiting_end[line] = before;
  --word->waiting;
  it->waits_for = 0;
  return it;
}

static uintptr_t get(pim_word *word, int takes) {
  machine_flush(word);
  if (word->is_empty || word->waiting) {
    machine_thread *self = machine_now;
    stand_in_line(self, word, takes);
    machine_wait();
    return self->result;
  }
  word->is_empty = takes != 0;
  return word->value;
}

uintptr_t pim_take(pim_word *word) { return get(word, 1); }
uintptr_t pim_read(pim_word *word) { return get(word, 0); }

static void serve(pim_word *word, uint64_t time) {
  while (!word->is_empty && word->waiting) {
    machine_thread *it = first_of_line(word);
    it->result = word->value;
    word->is_empty = it->takes != 0;
    if (it->time < time) it->time = time;
    machine_ready(it);
  }
}

void pim_fill(pim_word *word, uintptr_t value) {
  machine_flush(word);
  word->value = value;
  word->is_empty = 0;
  serve(word, machine_now ? machine_now->time : 0);
}

void pim_clear(pim_word *word) {
  machine_flush(word);
  word->is_empty = 1;
}

int pim_is_full(const pim_word *word) {
  machine_flush(word);
  return !word->is_empty;
}

int pim_node(void) { return machine_now->node->number; }
int pim_nodes(void) { return machine.nodes; }
void *pim_memory(int number) { return machine_nodes[number].memory; }

void *pim_payload(size_t bytes) {
  machine_flush(0);
  void *made = malloc(bytes ? bytes : 1);
  if (!made) machine_fail("no memory for a parcel of %zu bytes", bytes);
  return made;
}

size_t pim_copy_row(void *to, const void *from, size_t bytes) {
  if (!machine.row_copies) return 0;
  machine_flush(0);
  const size_t left = machine.row_bytes - (uintptr_t)to % machine.row_bytes,
               left_from = machine.row_bytes - (uintptr_t)from % machine.row_bytes;
  if (bytes > left) bytes = left;
  if (bytes > left_from) bytes = left_from;
  machine_charge(PIM_copy, 1, from, 1);
  machine_charge(PIM_copy, 1, to, 1);
  memcpy(to, from, bytes);
  return bytes;
}

/// A thread of a parcel joins the line for a word, or starts.
static void start(machine_thread *it, pim_word *ahead) {
  if (!ahead) {
    machine_ready(it);
    return;
  }
  stand_in_line(it, ahead, 1);
  serve(ahead, it->time);
}

typedef struct flight {
  machine_thread *thread;
  pim_word *ahead;
} flight;

static void land(void *argument) {
  const flight it = *(flight *)argument;
  free(argument);
  start(it.thread, it.ahead);
}

void pim_send(const pim_parcel *it) {
  machine_flush(0);
  machine_thread *self = machine_now;
  node *from = self->node, *to = &machine_nodes[it->node];
  const int is_local = from == to;
  const enum pim_category category = is_local ? PIM_state : PIM_network;
  machine_charge(category, 1 + it->state_bytes / 8, it->state, it->state_bytes / 8);
  machine_thread *made = machine_thread_of(to, self->time + machine.depth, 1 << 16, it->code);
  memcpy(made->state, it->state, it->state_bytes);
  made->payload = it->payload;
  if (it->payload && it->payload == self->payload) self->payload = 0;
  if (is_local) {
    start(made, it->ahead);
  } else {
    const uint64_t bytes = HEAD_BYTES + it->state_bytes + it->payload_bytes;
    const uint64_t leaves = from->link_free > self->time ? from->link_free : self->time;
    from->link_free = leaves + (bytes + machine.bytes_per_cycle - 1) / machine.bytes_per_cycle;
    made->time = from->link_free + machine.latency;
    flight *in_flight = malloc(sizeof *in_flight);
    if (!in_flight) machine_fail("no memory for a parcel");
    *in_flight = (flight){made, it->ahead};
    machine_at(made->time, land, in_flight);
    if (machine.trace)
      fprintf(machine.trace,
              "{\"event\":\"parcel\",\"node\":%d,\"target\":%d,\"thread\":%u,\"from\":%lu,\"to\":%"
              "lu,\"bytes\":%lu}\n",
              from->number, to->number, made->number, leaves, made->time, bytes);
  }
  if (it->behind) {  // the link keeps the order of parcels, so the next one may follow now
    it->behind->value = 0;
    it->behind->is_empty = 0;
    serve(it->behind, self->time);
  }
}

/// Each thread has one instruction in the pipeline. A reference of the open row takes the open-page
/// latency, any other reference the closed-page latency, in place of one stage; the thread is
/// outside the pipeline until then. So `active` threads with equal blocks take the longer of a
/// thread's own time and the issue of all their instructions: enough threads hide the latency. The
/// memory takes a reference in each cycle.
uint64_t pim_cost(node *at, const block *it, const uint64_t *addresses, unsigned number,
                  unsigned jumped) {
  (void)jumped;  // no instruction of the same thread follows a jump into the pipeline
  uint64_t cycles = it->instructions * machine.depth;
  for (unsigned i = 0; i < number; ++i) {
    const uint64_t row = machine_physical(at, addresses[i]) / machine.row_bytes;
    uint64_t *open = &at->open_row[row % machine.banks];
    cycles += (*open == row ? machine.open_page : machine.closed_page) - 1;
    *open = row;
  }
  const uint64_t issue = (uint64_t)it->instructions * at->active;
  return cycles > issue ? cycles : issue;
}
