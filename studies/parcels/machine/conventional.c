/// The conventional machine of table 1: caches, branch prediction, and packets instead of parcels.
///
/// The compiler's command defines WAYS, and SETS and LINE of each cache (`CACHES` in build.py).
/// There is a first cache each for data and for instructions; branches have a 2-bit counter in a
/// table of 2,048, as in the PowerPC MPC7450.
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"

enum { BRANCHES = 2048, INSTRUCTION_BYTES = 4 };
typedef uint32_t first_cache[L1_SETS][WAYS];

struct caches {
  first_cache data, code;  ///< line numbers + 1, the last used first
  uint32_t l2[L2_SETS][WAYS];
  uint8_t branches[BRANCHES];
};

struct caches *conventional_caches(void) {
  struct caches *made = calloc(1, sizeof *made);
  if (!made) machine_fail("no memory for the caches");
  return made;
}

/// Returns whether the line was in the set, and makes it the last used one.
static int use(uint32_t *ways, uint32_t line) {
  unsigned way = 0;
  while (way < WAYS - 1 && ways[way] != line) ++way;
  const int is_hit = ways[way] == line;
  for (; way; --way) ways[way] = ways[way - 1];
  ways[0] = line;
  return is_hit;
}

static uint64_t miss_cycles(node *at, first_cache cache, uint64_t virtual) {
  const uint64_t address = machine_physical(at, virtual);
  const uint32_t l1 = (uint32_t)(address / L1_LINE), l2 = (uint32_t)(address / L2_LINE);
  if (use(cache[l1 % L1_SETS], l1 + 1)) return 0;
  if (use(at->caches->l2[l2 % L2_SETS], l2 + 1)) return machine.l2;
  const uint64_t row = address / machine.row_bytes;
  uint64_t *open = &at->open_row[row % machine.banks];
  const int is_open = *open == row;
  *open = row;
  return is_open ? machine.open_page : machine.closed_page;
}

uint64_t conventional_cost(node *at, const block *it, const uint64_t *addresses, unsigned number,
                           unsigned jumped) {
  uint64_t cycles = it->issue_cycles;
  const uint64_t end = it->code + INSTRUCTION_BYTES * (it->code ? it->instructions : 0);
  for (uint64_t line = it->code / L1_LINE * L1_LINE; line < end; line += L1_LINE)
    cycles += miss_cycles(at, at->caches->code, line);
  for (unsigned i = 0; i < number; ++i) cycles += miss_cycles(at, at->caches->data, addresses[i]);
  if (it->next) {
    uint8_t *state =
        &at->caches->branches[machine_physical(at, it->code) / INSTRUCTION_BYTES % BRANCHES];
    if ((*state >= 2) != (jumped != 0)) cycles += machine.depth;
    if (jumped && *state < 3) ++*state;
    if (!jumped && *state > 0) --*state;
  }
  return cycles;
}

void machine_arrived(void *argument) {
  packet *it = argument;
  node *at = &machine_nodes[it->head.kind >> 16];
  it->head.kind &= 0xffff;
  it->next = 0;
  *at->inbox_end = it;
  at->inbox_end = &it->next;
  if (at->main && at->main->waits_for) {
    at->main->waits_for = 0;
    if (at->main->time < machine_end) at->main->time = machine_end;
    machine_ready(at->main);
  }
}

void wire_send(int target, const wire_head *head, const void *body) {
  machine_flush(0);
  machine_thread *self = machine_now;
  node *from = self->node;
  machine_charge(PIM_network, 1 + sizeof *head / 8, head, sizeof *head / 8);
  machine_charge(PIM_copy, head->body / 8, body, head->body / 8);
  packet *made = malloc(sizeof *made + head->body);
  if (!made) machine_fail("no memory for a packet");
  made->head = *head;
  made->head.kind |= target << 16;
  if (head->body) memcpy(made->body, body, head->body);
  const uint64_t bytes = sizeof *head + head->body;
  const uint64_t leaves = from->link_free > self->time ? from->link_free : self->time;
  from->link_free = leaves + (bytes + machine.bytes_per_cycle - 1) / machine.bytes_per_cycle;
  const uint64_t arrives = from->link_free + machine.latency;
  machine_at(arrives, machine_arrived, made);
  if (machine.trace)
    fprintf(machine.trace,
            "{\"event\":\"parcel\",\"node\":%d,\"target\":%d,\"thread\":%u,\"from\":%lu,\"to\":%lu,"
            "\"bytes\":%lu}\n",
            from->number, target, self->number, leaves, arrives, bytes);
}

int wire_receive(wire_head *head, int waits) {
  machine_flush(0);
  machine_thread *self = machine_now;
  node *at = self->node;
  machine_charge(PIM_network, 1, 0, 0);
  if (!at->inbox && waits) {
    static const pim_word inbox;
    self->waits_for = &inbox;
    machine_wait();
  }
  free(at->last);
  packet *it = at->last = at->inbox;
  if (!it) return 0;
  at->inbox = it->next;
  if (!at->inbox) at->inbox_end = &at->inbox;
  *head = it->head;
  machine_charge(PIM_network, sizeof *head / 8, head, sizeof *head / 8);
  return 1;
}

void wire_body(void *to, size_t bytes) {
  machine_flush(0);
  const packet *it = machine_now->node->last;
  memcpy(to, it->body, bytes);
  machine_charge(PIM_copy, bytes / 8, to, bytes / 8);
}
