/// The invariants of the queues, for tests.
#include "pim/queues.h"

static const char *check_queue(const pim_queue *queue, pim_kind first, pim_kind last,
                               unsigned *members) {
  *members = 0;
  const pim_element *it = queue->head.next;
  for (; it && it->kind != PIM_BLANK; it = it->next) {
    if (it->kind < first || it->kind > last) return "an element of the wrong kind is in the queue";
    if (it == queue->tail && it->next) return "the tail is not the last element";
    if (++*members > PIM_ELEMENTS) return "the queue is a cycle";
  }
  if (!it) return "the queue does not end with a blank element";
  if (it->next) return "an element follows the blank element";
  // While a thread appends, the tail is already the new blank element.
  if (it != queue->tail && it->bit.is_empty == 0)
    return "the last element is not the tail, and no thread appends";
  if (*members > queue->appended) return "the queue has more elements than were appended";
  return 0;
}

static const char *check_matches(const pim_process *process) {
  // A receive and a message that match may both be in the queues only while a thread holds `whole`.
  if (process->whole.is_empty) return 0;
  for (const pim_element *r = process->posted.head.next; r->kind != PIM_BLANK; r = r->next)
    for (const pim_element *m = process->unexpected.head.next; m->kind != PIM_BLANK; m = m->next)
      if (mpi_matches(&r->envelope, &m->envelope))
        return "a posted receive and an unexpected message match";
  return 0;
}

static const char *check_free(const pim_process *process) {
  // No free element may be in a queue.
  if (process->elements.list.is_empty) return 0;
  const pim_queue *queues[2] = {&process->posted, &process->unexpected};
  unsigned number = 0;
  for (const uintptr_t *it = (const uintptr_t *)process->elements.list.value; it;
       it = (const uintptr_t *)*it) {
    if (++number > PIM_ELEMENTS) return "the list of free elements is a cycle";
    for (unsigned i = 0; i < 2; ++i)
      for (const pim_element *member = queues[i]->head.next; member; member = member->next)
        if ((const void *)member == it) return "a free element is in a queue";
  }
  return 0;
}

const char *engine_check(const void *memory, unsigned *posted, unsigned *unexpected) {
  const pim_process *process = memory;
  const char *wrong = check_queue(&process->posted, PIM_RECEIVE, PIM_RECEIVE, posted);
  if (!wrong) wrong = check_queue(&process->unexpected, PIM_BUFFERED, PIM_WAITING, unexpected);
  if (!wrong) wrong = check_matches(process);
  if (!wrong) wrong = check_free(process);
  return wrong;
}
