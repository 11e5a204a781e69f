#include "pim/queues.h"

PIM_IN(state) void *pim_new(pim_pool *pool, size_t bytes) {
  void **first = (void **)pim_take(&pool->list);
  if (first) {
    pim_fill(&pool->list, (uintptr_t)*first);
    return first;
  }
  char *made = pool->fresh;
  if (made + bytes > pool->end)
    made = 0;
  else
    pool->fresh = made + bytes;
  pim_fill(&pool->list, 0);
  return made;
}

PIM_IN(cleanup) void pim_free(pim_pool *pool, void *it) {
  *(uintptr_t *)it = pim_take(&pool->list);
  pim_fill(&pool->list, (uintptr_t)it);
}

PIM_IN(state) void *pim_new_buffer(pim_process *process, size_t bytes) {
  const unsigned number = mpi_buffer_class(bytes);
  pim_word *list = &process->buffers[number];
  void **first = (void **)pim_take(list);
  pim_fill(list, first ? (uintptr_t)*first : 0);
  if (first) return first;
  char *made = (char *)pim_take(&process->fresh);
  char *end = made + ((size_t)MPI_SMALLEST_BUFFER << number);
  const int is_left = end <= process->buffers_end;
  pim_fill(&process->fresh, (uintptr_t)(is_left ? end : made));
  return is_left ? made : 0;
}

PIM_IN(cleanup) void pim_free_buffer(pim_process *process, void *buffer, size_t bytes) {
  pim_word *list = &process->buffers[mpi_buffer_class(bytes)];
  *(uintptr_t *)buffer = pim_take(list);
  pim_fill(list, (uintptr_t)buffer);
}

PIM_IN(cleanup) static void unlink_locked(pim_element *before, pim_element *it) {
  before->next = it->next;
  pim_fill(&before->bit, 0);
}

PIM_IN(queue)
pim_element *pim_claim_receive(pim_process *process, const mpi_envelope *message,
                               uintptr_t *appended) {
  pim_element *before = &process->posted.head;
  pim_take(&before->bit);
  for (;;) {
    pim_element *it = before->next;
    pim_take(&it->bit);
    if (it->kind == PIM_BLANK) {
      *appended = process->posted.appended;
      pim_fill(&it->bit, 0);
      pim_fill(&before->bit, 0);
      return 0;
    }
    if (mpi_matches(&it->envelope, message)) {
      unlink_locked(before, it);
      return it;
    }
    pim_fill(&before->bit, 0);
    before = it;
  }
}

PIM_IN(queue)
pim_element *pim_append(pim_process *process, pim_queue *queue, pim_kind kind,
                        const mpi_envelope *envelope) {
  pim_element *blank = pim_new(&process->elements, sizeof *blank);
  if (!blank) pim_abort(MPI_ERR_OTHER, "more than 8,000 messages and receives wait on one node");
  blank->kind = PIM_BLANK;
  blank->next = 0;
  pim_fill(&blank->bit, 0);
  pim_element *it = queue->tail;
  pim_take(&it->bit);
  it->kind = kind;
  it->envelope = *envelope;
  it->next = blank;
  queue->tail = blank;
  ++queue->appended;
  return it;
}

PIM_IN(queue) pim_element *pim_find_message(pim_process *process, const mpi_envelope *receive) {
  pim_element *before = &process->unexpected.head;
  for (pim_element *it = before->next; it->kind != PIM_BLANK; before = it, it = it->next)
    if (mpi_matches(receive, &it->envelope)) return before;
  return 0;
}

PIM_IN(cleanup) pim_element *pim_remove_after(pim_element *before) {
  pim_element *it = before->next;
  before->next = it->next;
  return it;
}
