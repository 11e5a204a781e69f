/// A single-threaded engine of MPI in the manner of LAM 6.5, as the paper describes it
/// (sections 3.1 and 5.2).
///
/// A process has one list of all its requests. Each call of MPI that has to wait, or that starts a
/// request while others are active, advances all of them: it visits every request of the list,
/// continues its state machine, then takes the packets of the network, then visits the list again
/// and retires finished requests. Messages without a receive wait in a table by hash of sender and
/// context. A send with no other request active takes a short way without the list.
///
/// Long messages: envelope, acknowledgement, body. Written for this project; no code of LAM.
#include "engines/common.h"

typedef enum { LAM_INIT, LAM_STARTED, LAM_WAITS, LAM_DONE } lam_state;
typedef enum { LAM_EAGER, LAM_LONG, LAM_ACK, LAM_BODY } lam_packet;

typedef struct mpi_request lam_request;
typedef struct lam_process lam_process;

struct mpi_request {
  lam_request *next, *before;
  lam_state state;
  void (*advance)(lam_process *, lam_request *);
  mpi_envelope envelope;
  int dest;
  int error;
  size_t bytes;  ///< of the buffer; when done, of the message
  const void *data;
  void *sender;  ///< of the matched long message
};

/// A message without a receive.
typedef struct lam_message {
  struct lam_message *next;
  wire_head head;
  uint64_t number;  ///< order of arrival
  void *data;
} lam_message;

enum { LAM_BUCKETS = 64, LAM_MESSAGES = 2 * MPI_REQUESTS };

struct lam_process {
  lam_request *first, *last;
  unsigned active;
  unsigned posted, unexpected;
  uint64_t arrivals;
  lam_request *free_requests;
  lam_message *free_messages;
  char *fresh_requests, *end_requests, *fresh_messages, *end_messages;
  buffers buffers;
  lam_message *buckets[LAM_BUCKETS];
};

static inline lam_process *here(void) { return pim_memory(pim_node()); }

static inline unsigned bucket_of(int source, unsigned context) {
  return ((unsigned)source * 31 + context) % LAM_BUCKETS;
}

PIM_IN(state)
static lam_request *build(lam_process *process, const void *data, size_t bytes, int dest,
                          const mpi_envelope *envelope,
                          void (*advance)(lam_process *, lam_request *)) {
  lam_request *it = process->free_requests;
  if (it) {
    process->free_requests = it->next;
  } else {
    it = (lam_request *)process->fresh_requests;
    if ((char *)(it + 1) > process->end_requests) return 0;
    process->fresh_requests += sizeof *it;
  }
  it->state = LAM_INIT;
  it->advance = advance;
  it->envelope = *envelope;
  it->dest = dest;
  it->error = MPI_SUCCESS;
  it->bytes = bytes;
  it->data = data;
  it->sender = 0;
  return it;
}

PIM_IN(state) static void add(lam_process *process, lam_request *it) {
  it->next = 0;
  it->before = process->last;
  if (process->last)
    process->last->next = it;
  else
    process->first = it;
  process->last = it;
  ++process->active;
}

PIM_IN(cleanup) static void retire(lam_process *process, lam_request *it) {
  if (it->before)
    it->before->next = it->next;
  else
    process->first = it->next;
  if (it->next)
    it->next->before = it->before;
  else
    process->last = it->before;
  --process->active;
}

PIM_IN(cleanup) static void free_request(lam_process *process, lam_request *it) {
  it->next = process->free_requests;
  process->free_requests = it;
}

PIM_IN(state)
static void complete(lam_process *process, lam_request *it, const mpi_envelope *message,
                     size_t bytes) {
  it->error = bytes > it->bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
  it->envelope = *message;
  if (bytes < it->bytes) it->bytes = bytes;
  it->state = LAM_DONE;
  --process->posted;
}

PIM_IN(state) static void acknowledge(lam_request *it, const mpi_envelope *message, void *sender) {
  wire_head head;
  set_head(&head, LAM_ACK, message, it->bytes, 0, sender, it);
  it->state = LAM_WAITS;
  wire_send(message->source, &head, 0);
}

/// Continues a send.
PIM_IN(state) static void advance_send(lam_process *process, lam_request *it) {
  (void)process;
  if (it->state != LAM_INIT) return;
  wire_head head;
  if (it->bytes < MPI_EAGER_LIMIT) {
    set_head(&head, LAM_EAGER, &it->envelope, it->bytes, it->bytes, 0, 0);
    wire_send(it->dest, &head, it->data);
    it->state = LAM_DONE;
  } else {
    set_head(&head, LAM_LONG, &it->envelope, it->bytes, 0, it, 0);
    wire_send(it->dest, &head, 0);
    it->state = LAM_WAITS;
  }
}

/// Returns the first message of a bucket that matches, and the link to it.
PIM_IN(queue) static lam_message **find_in(lam_message **link, const mpi_envelope *receive) {
  for (; *link; link = &(*link)->next)
    if (mpi_matches(receive, &(*link)->head.envelope)) return link;
  return 0;
}

PIM_IN(queue) static lam_message **find_message(lam_process *process, const mpi_envelope *receive) {
  if (receive->source != MPI_ANY_SOURCE)
    return find_in(&process->buckets[bucket_of(receive->source, receive->context)], receive);
  lam_message **first = 0;
  for (unsigned i = 0; i < LAM_BUCKETS; ++i) {
    lam_message **link = find_in(&process->buckets[i], receive);
    if (link && (!first || (*link)->number < (*first)->number)) first = link;
  }
  return first;
}

PIM_IN(state) static void take_message(lam_process *process, lam_request *it, lam_message **link) {
  lam_message *message = *link;
  *link = message->next;
  --process->unexpected;
  const size_t bytes = message->head.bytes;
  if (message->head.kind == LAM_EAGER) {
    if (bytes) {
      mpi_copy((void *)(uintptr_t)it->data, message->data, bytes < it->bytes ? bytes : it->bytes);
      free_buffer(&process->buffers, message->data, bytes);
    }
    complete(process, it, &message->head.envelope, bytes);
  } else {
    it->sender = message->head.sender;
    acknowledge(it, &message->head.envelope, message->head.sender);
  }
  message->next = process->free_messages;
  process->free_messages = message;
}

/// Continues a receive.
PIM_IN(state) static void advance_receive(lam_process *process, lam_request *it) {
  if (it->state != LAM_INIT) return;
  it->state = LAM_STARTED;
  lam_message **link = find_message(process, &it->envelope);
  if (link) take_message(process, it, link);
}

/// Continues a probe: it is done when a message that matches is in the table.
PIM_IN(state) static void advance_probe(lam_process *process, lam_request *it) {
  if (it->state == LAM_DONE) return;
  lam_message **link = find_message(process, &it->envelope);
  if (!link) return;
  it->envelope = (*link)->head.envelope;
  it->bytes = (*link)->head.bytes;
  it->state = LAM_DONE;
}

PIM_IN(queue) static lam_request *find_receive(lam_process *process, const mpi_envelope *message) {
  for (lam_request *it = process->first; it; it = it->next)
    if (it->state == LAM_STARTED && it->advance == advance_receive &&
        mpi_matches(&it->envelope, message))
      return it;
  return 0;
}

PIM_IN(state) static void keep_message(lam_process *process, const wire_head *head) {
  lam_message *it = process->free_messages;
  if (it) {
    process->free_messages = it->next;
  } else {
    it = (lam_message *)process->fresh_messages;
    process->fresh_messages += sizeof *it;
    if (process->fresh_messages > process->end_messages)
      pim_abort(MPI_ERR_OTHER, "more than 8,000 unexpected messages wait on one node");
  }
  it->head = *head;
  it->number = process->arrivals++;
  it->next = 0;
  if (head->body) {
    it->data = new_buffer(&process->buffers, head->body);
    wire_body(it->data, head->body);
  }
  ++process->unexpected;
  lam_message **link = &process->buckets[bucket_of(head->envelope.source, head->envelope.context)];
  while (*link) link = &(*link)->next;
  *link = it;
}

/// Takes a packet to the request that it belongs to.
PIM_IN(state) static void dispatch(lam_process *process, const wire_head *head) {
  lam_request *it;
  switch ((lam_packet)head->kind) {
    case LAM_EAGER:
    case LAM_LONG:
      it = find_receive(process, &head->envelope);
      if (!it) {
        keep_message(process, head);
      } else if (head->kind == LAM_LONG) {
        it->sender = head->sender;
        acknowledge(it, &head->envelope, head->sender);
      } else {
        wire_body((void *)(uintptr_t)it->data, head->bytes < it->bytes ? head->bytes : it->bytes);
        complete(process, it, &head->envelope, head->bytes);
      }
      break;
    case LAM_ACK: {
      it = head->sender;
      wire_head body;
      const size_t bytes = it->bytes < head->bytes ? it->bytes : head->bytes;
      set_head(&body, LAM_BODY, &it->envelope, it->bytes, bytes, 0, head->receiver);
      wire_send(it->dest, &body, it->data);
      it->state = LAM_DONE;
      break;
    }
    case LAM_BODY:
      it = head->receiver;
      wire_body((void *)(uintptr_t)it->data, head->body);
      complete(process, it, &head->envelope, head->bytes);
      break;
  }
}

/// Visits all requests: starts new ones, continues the others.
PIM_IN(juggling) static void visit_all(lam_process *process) {
  for (lam_request *it = process->first; it; it = it->next)
    if (it->state != LAM_DONE) it->advance(process, it);
}

/// Visits all requests again and takes the finished ones off the list.
PIM_IN(juggling) static void retire_finished(lam_process *process) {
  for (lam_request *it = process->first, *next; it; it = next) {
    next = it->next;
    if (it->state == LAM_DONE) retire(process, it);
  }
}

/// Advances all requests once. Waits for a packet if `waits`, unless `target` is done by then.
PIM_IN(juggling) static void advance(lam_process *process, int waits, const lam_request *target) {
  wire_head head;
  visit_all(process);
  if (target && target->state == LAM_DONE) waits = 0;
  while (wire_receive(&head, waits)) {
    dispatch(process, &head);
    waits = 0;
  }
  retire_finished(process);
}

/// Advances all requests until one is done.
PIM_IN(juggling) static void advance_until(lam_process *process, const lam_request *it) {
  do advance(process, it->state != LAM_DONE, it);
  while (it->state != LAM_DONE);
}

PIM_IN(state)
MPI_Request engine_isend(const void *data, size_t bytes, int dest, const mpi_envelope *envelope) {
  lam_process *process = here();
  lam_request *it = build(process, data, bytes, dest, envelope, advance_send);
  if (!it) return 0;
  add(process, it);
  advance(process, 0, 0);
  return it;
}

PIM_IN(state) MPI_Request engine_irecv(void *data, size_t bytes, const mpi_envelope *envelope) {
  lam_process *process = here();
  lam_request *it = build(process, data, bytes, 0, envelope, advance_receive);
  if (!it) return 0;
  add(process, it);
  ++process->posted;
  advance(process, 0, 0);
  return it;
}

PIM_IN(state)
int engine_send(const void *data, size_t bytes, int dest, const mpi_envelope *envelope) {
  lam_process *process = here();
  if (!process->active && bytes < MPI_EAGER_LIMIT) {
    wire_head head;
    set_head(&head, LAM_EAGER, envelope, bytes, bytes, 0, 0);
    wire_send(dest, &head, data);
    return MPI_SUCCESS;
  }
  lam_request *it = build(process, data, bytes, dest, envelope, advance_send);
  if (!it) return MPI_ERR_OTHER;
  add(process, it);
  advance_until(process, it);
  free_request(process, it);
  return MPI_SUCCESS;
}

PIM_IN(cleanup) static int finish(lam_process *process, lam_request *it, MPI_Status *status) {
  mpi_set_status(status, &it->envelope, it->error, it->bytes);
  free_request(process, it);
  return status->MPI_ERROR;
}

PIM_IN(state)
int engine_recv(void *data, size_t bytes, const mpi_envelope *envelope, MPI_Status *status) {
  lam_process *process = here();
  lam_request *it = build(process, data, bytes, 0, envelope, advance_receive);
  if (!it) return MPI_ERR_OTHER;
  add(process, it);
  ++process->posted;
  advance_until(process, it);
  return finish(process, it, status);
}

PIM_IN(state) int engine_probe(const mpi_envelope *envelope, int waits, MPI_Status *status) {
  lam_process *process = here();
  lam_request *it = build(process, 0, 0, 0, envelope, advance_probe);
  if (!it) pim_abort(MPI_ERR_OTHER, "MPI_Probe: too many requests");
  add(process, it);
  if (waits) {
    advance_until(process, it);
  } else {
    advance(process, 0, 0);
    visit_all(process);
    retire_finished(process);
  }
  const int is_found = it->state == LAM_DONE;
  if (!is_found) retire(process, it);
  finish(process, it, status);
  return is_found;
}

PIM_IN(cleanup) int engine_finish(MPI_Request request, int waits, MPI_Status *status) {
  lam_process *process = here();
  if (waits)
    advance_until(process, request);
  else
    advance(process, 0, 0);
  if (request->state != LAM_DONE) return 0;
  finish(process, request, status);
  return 1;
}

PIM_IN(juggling) static int is_any_active(int count, MPI_Request *requests) {
  for (int i = 0; i < count; ++i)
    if (requests[i] && requests[i]->state != LAM_DONE) return 1;
  return 0;
}

PIM_IN(cleanup) int engine_finish_all(int count, MPI_Request *requests, MPI_Status *statuses) {
  lam_process *process = here();
  do advance(process, is_any_active(count, requests), 0);
  while (is_any_active(count, requests));
  int failed = 0;
  MPI_Status own;
  for (int i = 0; i < count; ++i)
    if (requests[i])
      failed += finish(process, requests[i], statuses ? &statuses[i] : &own) != MPI_SUCCESS;
  return failed;
}

/// A binomial tree: gather to process 0, then release.
PIM_IN(state) void engine_barrier(unsigned context) {
  const int node = pim_node(), nodes = pim_nodes();
  MPI_Status status;
  int step = 1;
  for (; step < nodes && !(node & step); step *= 2)
    if (node + step < nodes) engine_recv(0, 0, &(mpi_envelope){node + step, 0, context}, &status);
  const mpi_envelope own = {node, 0, context};
  if (node) {
    engine_send(0, 0, node - step, &own);
    engine_recv(0, 0, &(mpi_envelope){node - step, 0, context}, &status);
  }
  for (step /= 2; step; step /= 2)
    if (node + step < nodes) engine_send(0, 0, node + step, &own);
}

size_t engine_memory_bytes(int nodes) {
  (void)nodes;
  return sizeof(lam_process) + MPI_REQUESTS * sizeof(lam_request) +
         LAM_MESSAGES * sizeof(lam_message) + BUFFER_BYTES;
}

void engine_boot(void *memory, int nodes) {
  (void)nodes;
  lam_process *it = memory;
  it->fresh_requests = (char *)(it + 1);
  it->end_requests = it->fresh_messages = it->fresh_requests + MPI_REQUESTS * sizeof(lam_request);
  it->end_messages = it->buffers.fresh = it->fresh_messages + LAM_MESSAGES * sizeof(lam_message);
  it->buffers.end = it->buffers.fresh + BUFFER_BYTES;
}

const char *engine_check(const void *memory, unsigned *posted, unsigned *unexpected) {
  const lam_process *it = memory;
  unsigned active = 0, messages = 0;
  const lam_request *before = 0;
  for (const lam_request *one = it->first; one; before = one, one = one->next, ++active) {
    if (one->before != before) return "the list of requests is not linked both ways";
    if (active > MPI_REQUESTS) return "the list of requests is a cycle";
  }
  if (active != it->active) return "the number of active requests is not the length of their list";
  for (unsigned i = 0; i < LAM_BUCKETS; ++i)
    for (const lam_message *one = it->buckets[i]; one; one = one->next)
      if (++messages > LAM_MESSAGES) return "the table of messages has a cycle";
  if (messages != it->unexpected)
    return "the number of unexpected messages is not that of the table";
  *posted = it->posted;
  *unexpected = it->unexpected;
  return 0;
}
