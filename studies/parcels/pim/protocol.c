/// MPI by travelling threads: point to point and barrier (the paper, section 3).
///
/// Every send is a thread. Below MPI_EAGER_LIMIT it copies the data into a parcel, completes the
/// request and travels with the data; at the receiver it delivers to a posted receive, or leaves
/// the data in a buffer in the unexpected queue. From MPI_EAGER_LIMIT on it travels without data,
/// claims a posted receive or waits in the unexpected queue for one, returns to its source, and
/// brings the data to the claimed buffer.
///
/// Order: the sends of a process to one node leave in program order (`departures`), and match in
/// that order
/// (`arrivals`). The receives of a process look and post in program order: each starts in the line
/// for `whole`. The paper does not say how it keeps this order between threads.
#include "mpi/copy.h"
#include "pim/queues.h"

/// The state of a sending thread: its registers.
typedef struct sender {
  mpi_envelope envelope;
  int dest;
  size_t bytes;
  size_t room;  ///< bytes of the claimed receive
  const void *data;
  struct mpi_request *send;     ///< on the source node
  struct mpi_request *receive;  ///< on the target node, when claimed
} sender;

static inline pim_process *here(void) { return pim_memory(pim_node()); }

typedef struct copy_part {
  char *to;
  const char *from;
  size_t bytes;
  pim_word *left;  ///< number of parts that other threads still copy, or NULL
  pim_word *done;
} copy_part;

enum { COPY_THREADS = 4, COPY_SPLIT_BYTES = 512 };

/// Copies whole rows if the platform can, and words.
PIM_IN(copy) static void copy_share(char *to, const char *from, size_t bytes) {
  for (size_t row; bytes && (row = pim_copy_row(to, from, bytes)); to += row, from += row)
    bytes -= row;
  mpi_copy(to, from, bytes);
}

PIM_IN(copy) static void copy_thread(void *state, void *payload) {
  (void)payload;
  copy_part *part = state;
  copy_share(part->to, part->from, part->bytes);
  const uintptr_t left = pim_take(part->left) - 1;
  pim_fill(part->left, left);
  if (left == 0) pim_fill(part->done, 0);
}

/// Copies with COPY_THREADS threads, one for each stage of the pipeline; short data with the
/// calling thread alone.
PIM_IN(copy) static void copy(void *to, const void *from, size_t bytes) {
  if (bytes < COPY_SPLIT_BYTES) {
    copy_share(to, from, bytes);
    return;
  }
  const size_t share = (bytes / COPY_THREADS + 7) / 8 * 8;
  pim_word left = {COPY_THREADS - 1, 0, 0}, done = {0, 1, 0};
  for (size_t i = 1; i < COPY_THREADS; ++i) {
    const size_t start = i * share, rest = bytes - start;
    const copy_part part = {(char *)to + start, (const char *)from + start,
                            i + 1 < COPY_THREADS ? share : rest, &left, &done};
    pim_send(&(pim_parcel){pim_node(), 0, 0, copy_thread, &part, sizeof part, 0, 0});
  }
  copy_share(to, from, share);
  pim_read(&done);
}

PIM_IN(state)
static void complete(struct mpi_request *receive, const mpi_envelope *message, size_t bytes) {
  receive->error = bytes > receive->bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
  receive->envelope = *message;
  if (bytes < receive->bytes) receive->bytes = bytes;
  pim_fill(&receive->done, 0);
}

PIM_IN(state) static void deliver(struct mpi_request *receive, const sender *it, const void *from) {
  copy(receive->data, from, it->bytes < receive->bytes ? it->bytes : receive->bytes);
  complete(receive, &it->envelope, it->bytes);
}

PIM_IN(state) static void bring(void *state, void *payload) {
  const sender *it = state;
  deliver(it->receive, it, payload);
}

/// A rendezvous thread back on its source node.
PIM_IN(state) static void fetch(void *state, void *payload) {
  (void)payload;
  const sender *it = state;
  const size_t bytes = it->bytes < it->room ? it->bytes : it->room;
  void *load = pim_payload(bytes);
  copy(load, it->data, bytes);
  pim_fill(&it->send->done, 0);
  pim_send(&(pim_parcel){it->dest, 0, 0, bring, it, sizeof *it, load, bytes});
}

PIM_IN(state) static void return_to_source(sender *it, struct mpi_request *receive) {
  it->receive = receive;
  it->room = receive->bytes;
  pim_send(&(pim_parcel){it->envelope.source, 0, 0, fetch, it, sizeof *it, 0, 0});
}

/// Leaves a message in the unexpected queue. The caller holds `whole` and its place in `arrivals`.
PIM_IN(state) static void leave_unexpected(pim_process *process, sender *it, void *payload) {
  const int is_eager = it->bytes < MPI_EAGER_LIMIT;
  void *buffer = is_eager && it->bytes ? pim_new_buffer(process, it->bytes) : 0;
  const pim_kind kind = is_eager && (buffer || !it->bytes) ? PIM_BUFFERED : PIM_WAITING;
  pim_element *element = pim_append(process, &process->unexpected, kind, &it->envelope);
  element->bytes = it->bytes;
  pim_fill(&process->news, 0);
  pim_fill(&process->whole, 0);
  pim_fill(&process->arrivals[it->envelope.source], 0);
  if (kind == PIM_BUFFERED) {
    if (buffer) copy(buffer, payload, it->bytes);
    pim_fill(&element->bit, (uintptr_t)buffer);
    return;
  }
  struct mpi_request *receive = (struct mpi_request *)pim_take(&element->bit);
  pim_free(&process->elements, element);
  if (is_eager)
    deliver(receive, it, payload);  // no buffer was left: the data waited in the parcel
  else
    return_to_source(it, receive);
}

/// A sending thread on the target node. It holds its place in `arrivals`.
PIM_IN(state) static void arrive(void *state, void *payload) {
  sender *it = state;
  pim_process *process = here();
  uintptr_t seen, now;
  pim_element *element = pim_claim_receive(process, &it->envelope, &seen);
  if (!element) {
    pim_take(&process->whole);
    if (process->posted.appended != seen) element = pim_claim_receive(process, &it->envelope, &now);
    if (!element) {
      leave_unexpected(process, it, payload);
      return;
    }
    pim_fill(&process->whole, 0);
  }
  pim_fill(&process->arrivals[it->envelope.source], 0);
  struct mpi_request *receive = element->request;
  pim_free(&process->elements, element);
  if (it->bytes < MPI_EAGER_LIMIT)
    deliver(receive, it, payload);
  else
    return_to_source(it, receive);
}

/// A sending thread on its source node. It holds its place in `departures`.
PIM_IN(state) static void depart(void *state, void *payload) {
  sender *it = state;
  pim_process *process = here();
  size_t load = 0;
  if (it->bytes < MPI_EAGER_LIMIT) {
    load = it->bytes;
    payload = load ? pim_payload(load) : 0;
    if (load) copy(payload, it->data, load);
    pim_fill(&it->send->done, 0);
  }
  pim_process *target = pim_memory(it->dest);
  pim_send(&(pim_parcel){it->dest, &process->departures[it->dest],
                         &target->arrivals[it->envelope.source], arrive, it, sizeof *it, payload,
                         load});
}

/// A receiving thread. It holds `whole`.
PIM_IN(state) static void receive(void *state, void *payload) {
  (void)payload;
  struct mpi_request *request = *(struct mpi_request **)state;
  pim_process *process = here();
  pim_element *before = pim_find_message(process, &request->envelope);
  if (!before) {
    pim_element *element = pim_append(process, &process->posted, PIM_RECEIVE, &request->envelope);
    element->request = request;
    pim_fill(&element->bit, 0);
    pim_fill(&process->whole, 0);
    return;
  }
  pim_element *element = pim_remove_after(before);
  pim_fill(&process->whole, 0);
  if (element->kind == PIM_WAITING) {
    pim_fill(&element->bit, (uintptr_t)request);
    return;
  }
  void *buffer = (void *)pim_read(&element->bit);
  const size_t bytes = element->bytes;
  if (buffer) {
    copy(request->data, buffer, bytes < request->bytes ? bytes : request->bytes);
    pim_free_buffer(process, buffer, bytes);
  }
  const mpi_envelope message = element->envelope;
  pim_free(&process->elements, element);
  complete(request, &message, bytes);
}

PIM_IN(state)
static struct mpi_request *new_request(pim_process *process, void *data, size_t bytes,
                                       const mpi_envelope *envelope) {
  struct mpi_request *it = pim_new(&process->requests, sizeof *it);
  if (!it) return 0;
  pim_clear(&it->done);
  it->envelope = *envelope;
  it->error = MPI_SUCCESS;
  it->bytes = bytes;
  it->data = data;
  return it;
}

PIM_IN(state)
MPI_Request engine_isend(const void *data, size_t bytes, int dest, const mpi_envelope *envelope) {
  pim_process *process = here();
  struct mpi_request *request = new_request(process, 0, bytes, envelope);
  if (!request) return 0;
  const sender it = {*envelope, dest, bytes, 0, data, request, 0};
  pim_send(
      &(pim_parcel){envelope->source, 0, &process->departures[dest], depart, &it, sizeof it, 0, 0});
  return request;
}

PIM_IN(state) MPI_Request engine_irecv(void *data, size_t bytes, const mpi_envelope *envelope) {
  pim_process *process = here();
  struct mpi_request *request = new_request(process, data, bytes, envelope);
  if (request)
    pim_send(
        &(pim_parcel){pim_node(), 0, &process->whole, receive, &request, sizeof request, 0, 0});
  return request;
}

PIM_IN(cleanup) int engine_finish(MPI_Request request, int waits, MPI_Status *status) {
  if (!waits && !pim_is_full(&request->done)) return 0;
  pim_read(&request->done);
  mpi_set_status(status, &request->envelope, request->error, request->bytes);
  pim_free(&here()->requests, request);
  return 1;
}

PIM_IN(cleanup) int engine_finish_all(int count, MPI_Request *requests, MPI_Status *statuses) {
  int failed = 0;
  MPI_Status own;
  for (int i = 0; i < count; ++i) {
    if (!requests[i]) continue;
    MPI_Status *status = statuses ? &statuses[i] : &own;
    engine_finish(requests[i], 1, status);
    failed += status->MPI_ERROR != MPI_SUCCESS;
  }
  return failed;
}

PIM_IN(state)
int engine_send(const void *data, size_t bytes, int dest, const mpi_envelope *envelope) {
  MPI_Request request = engine_isend(data, bytes, dest, envelope);
  MPI_Status status;
  if (!request) return MPI_ERR_OTHER;
  engine_finish(request, 1, &status);
  return MPI_SUCCESS;
}

PIM_IN(state)
int engine_recv(void *data, size_t bytes, const mpi_envelope *envelope, MPI_Status *status) {
  MPI_Request request = engine_irecv(data, bytes, envelope);
  if (!request) return MPI_ERR_OTHER;
  engine_finish(request, 1, status);
  return status->MPI_ERROR;
}

PIM_IN(queue) int engine_probe(const mpi_envelope *envelope, int waits, MPI_Status *status) {
  pim_process *process = here();
  for (;;) {
    pim_take(&process->whole);
    pim_clear(&process->news);
    const pim_element *before = pim_find_message(process, envelope);
    if (before) mpi_set_status(status, &before->next->envelope, MPI_SUCCESS, before->next->bytes);
    pim_fill(&process->whole, 0);
    if (before) return 1;
    if (!waits) return 0;
    pim_read(&process->news);
  }
}

typedef struct ring_state {
  pim_word *bell;
  unsigned context;
} ring_state;

PIM_IN(state) static void ring(void *state, void *payload) {
  (void)payload;
  const ring_state *it = state;
  pim_fill(it->bell, it->context);
}

/// A dissemination barrier: in round r, a thread goes to the process 2^r further and fills a word
/// there. Every communicator has all processes, so a program without deadlock calls the barriers in
/// one order on all of them.
PIM_IN(state) void engine_barrier(unsigned context) {
  pim_process *process = here();
  const int nodes = pim_nodes(), node = pim_node();
  const unsigned set = process->barriers++ & 1;
  for (int round = 0, step = 1; step < nodes; ++round, step *= 2) {
    const int target = node + step < nodes ? node + step : node + step - nodes;
    const ring_state it = {&((pim_process *)pim_memory(target))->bells[set][round], context};
    pim_send(&(pim_parcel){target, 0, 0, ring, &it, sizeof it, 0, 0});
    if (pim_take(&process->bells[set][round]) != context)
      pim_abort(MPI_ERR_OTHER,
                "two processes wait for each other in barriers of different communicators");
  }
}

size_t engine_memory_bytes(int nodes) {
  return sizeof(pim_process) + PIM_ELEMENTS * sizeof(pim_element) +
         MPI_REQUESTS * sizeof(struct mpi_request) + PIM_BUFFER_BYTES +
         2 * (size_t)nodes * sizeof(pim_word);
}

static void boot_queue(pim_process *process, pim_queue *queue) {
  pim_element *blank = (pim_element *)process->elements.fresh;
  process->elements.fresh += sizeof *blank;
  queue->head.next = queue->tail = blank;
}

void engine_boot(void *memory, int nodes) {
  pim_process *it = memory;
  char *at = (char *)(it + 1);
  it->elements.fresh = at;
  it->elements.end = at += PIM_ELEMENTS * sizeof(pim_element);
  it->requests.fresh = at;
  it->requests.end = at += MPI_REQUESTS * sizeof(struct mpi_request);
  it->fresh.value = (uintptr_t)at;
  it->buffers_end = at += PIM_BUFFER_BYTES;
  it->departures = (pim_word *)at;
  it->arrivals = it->departures + nodes;
  boot_queue(it, &it->posted);
  boot_queue(it, &it->unexpected);
  for (unsigned i = 0; i < 2 * PIM_ROUNDS; ++i)
    it->bells[i / PIM_ROUNDS][i % PIM_ROUNDS].is_empty = 1;
}
