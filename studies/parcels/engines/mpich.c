/// A single-threaded engine of MPI in the manner of MPICH 1.2 over its second device interface, as
/// the paper describes it (sections 3.1 and 5.2).
///
/// A process has a list of posted receives and a list of unexpected messages. A call that has to
/// wait checks the devices until its request is complete; a check goes through the list of devices,
/// takes packets, and dispatches each by its kind to the protocol that it belongs to. Each device
/// has protocols by length: short, eager, rendezvous. A blocking send below the rendezvous limit
/// goes straight to its protocol without a request.
///
/// Rendezvous: request to send, clear to send, data. Written for this project; no code of MPICH.
#include "engines/common.h"

typedef struct mpi_request mpich_request;
typedef struct mpich_process mpich_process;
typedef enum {
  MPICH_SHORT,
  MPICH_EAGER,
  MPICH_ASK,
  MPICH_CLEAR,
  MPICH_DATA,
  MPICH_KINDS
} mpich_kind;

struct mpi_request {
  mpich_request *next;
  int is_complete;
  int error;
  mpi_envelope envelope;
  int dest;
  int is_asked;  ///< unexpected: it is a request to send
  size_t bytes;  ///< of the buffer; unexpected: of the message
  void *data;
  void *sender;
};

typedef struct mpich_queue {
  mpich_request *first;
  mpich_request *last;
} mpich_queue;

typedef struct mpich_device {
  struct mpich_device *next;
  size_t short_limit, eager_limit;
  int (*check)(struct mpich_device *, mpich_process *, int waits);
  void (*send[3])(mpich_request *, const void *, size_t, int, const mpi_envelope *);
  void (*take[MPICH_KINDS])(mpich_process *, const wire_head *);
} mpich_device;

enum { MPICH_SHORT_LIMIT = 1024, MPICH_RECORDS = 3 * MPI_REQUESTS };

struct mpich_process {
  mpich_queue posted, unexpected;
  mpich_device devices[2];  ///< the network, and the device for messages to the process itself (it
                            ///< has no packets here)
  mpich_device *first_device;
  mpich_request *free_requests;
  char *fresh_requests, *end_requests;
  buffers buffers;
};

static inline mpich_process *here(void) { return pim_memory(pim_node()); }

PIM_IN(state)
static mpich_request *new_request(mpich_process *process, void *data, size_t bytes, int dest,
                                  const mpi_envelope *envelope) {
  mpich_request *it = process->free_requests;
  if (it) {
    process->free_requests = it->next;
  } else {
    it = (mpich_request *)process->fresh_requests;
    if ((char *)(it + 1) > process->end_requests) return 0;
    process->fresh_requests += sizeof *it;
  }
  it->next = 0;
  it->is_complete = 0;
  it->error = MPI_SUCCESS;
  it->envelope = *envelope;
  it->dest = dest;
  it->is_asked = 0;
  it->bytes = bytes;
  it->data = data;
  it->sender = 0;
  return it;
}

PIM_IN(cleanup) static void free_request(mpich_process *process, mpich_request *it) {
  it->next = process->free_requests;
  process->free_requests = it;
}

PIM_IN(queue) static void enqueue(mpich_queue *queue, mpich_request *it) {
  it->next = 0;
  if (queue->last)
    queue->last->next = it;
  else
    queue->first = it;
  queue->last = it;
}

PIM_IN(cleanup) static void dequeue(mpich_queue *queue, mpich_request *before, mpich_request *it) {
  if (before)
    before->next = it->next;
  else
    queue->first = it->next;
  if (queue->last == it) queue->last = before;
}

/// Removes and returns the first posted receive that matches a message, or returns NULL.
PIM_IN(queue)
static mpich_request *claim_posted(mpich_process *process, const mpi_envelope *message) {
  mpich_request *before = 0;
  for (mpich_request *it = process->posted.first; it; before = it, it = it->next)
    if (mpi_matches(&it->envelope, message)) {
      dequeue(&process->posted, before, it);
      return it;
    }
  return 0;
}

/// Returns the first unexpected message that matches a receive, or NULL; removes it if `removes`.
PIM_IN(queue)
static mpich_request *find_unexpected(mpich_process *process, const mpi_envelope *receive,
                                      int removes) {
  mpich_request *before = 0;
  for (mpich_request *it = process->unexpected.first; it; before = it, it = it->next)
    if (mpi_matches(receive, &it->envelope)) {
      if (removes) dequeue(&process->unexpected, before, it);
      return it;
    }
  return 0;
}

PIM_IN(state) static void complete(mpich_request *it, const mpi_envelope *message, size_t bytes) {
  it->error = bytes > it->bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
  it->envelope = *message;
  if (bytes < it->bytes) it->bytes = bytes;
  it->is_complete = 1;
}

PIM_IN(state)
static void send_short(mpich_request *it, const void *data, size_t bytes, int dest,
                       const mpi_envelope *envelope) {
  wire_head head;
  set_head(&head, MPICH_SHORT, envelope, bytes, bytes, 0, 0);
  wire_send(dest, &head, data);
  if (it) it->is_complete = 1;
}

PIM_IN(state)
static void send_eager(mpich_request *it, const void *data, size_t bytes, int dest,
                       const mpi_envelope *envelope) {
  wire_head head;
  set_head(&head, MPICH_EAGER, envelope, bytes, bytes, 0, 0);
  wire_send(dest, &head, data);
  if (it) it->is_complete = 1;
}

PIM_IN(state)
static void send_rendezvous(mpich_request *it, const void *data, size_t bytes, int dest,
                            const mpi_envelope *envelope) {
  wire_head head;
  (void)data;
  set_head(&head, MPICH_ASK, envelope, bytes, 0, it, 0);
  wire_send(dest, &head, 0);
}

PIM_IN(state)
static void clear_to_send(mpich_request *receive, const mpi_envelope *message, void *sender) {
  wire_head head;
  set_head(&head, MPICH_CLEAR, message, receive->bytes, 0, sender, receive);
  wire_send(message->source, &head, 0);
}

PIM_IN(state) static void keep_unexpected(mpich_process *process, const wire_head *head) {
  mpich_request *it = new_request(process, 0, head->bytes, 0, &head->envelope);
  if (!it)
    pim_abort(MPI_ERR_OTHER, "more than 12,000 requests and unexpected messages wait on one node");
  it->sender = head->sender;
  it->is_asked = head->kind == MPICH_ASK;
  if (head->body) {
    it->data = new_buffer(&process->buffers, head->body);
    wire_body(it->data, head->body);
  }
  enqueue(&process->unexpected, it);
}

PIM_IN(state) static void take_data(mpich_process *process, const wire_head *head) {
  mpich_request *it = claim_posted(process, &head->envelope);
  if (!it) {
    keep_unexpected(process, head);
    return;
  }
  wire_body(it->data, head->bytes < it->bytes ? head->bytes : it->bytes);
  complete(it, &head->envelope, head->bytes);
}

PIM_IN(state) static void take_ask(mpich_process *process, const wire_head *head) {
  mpich_request *it = claim_posted(process, &head->envelope);
  if (it)
    clear_to_send(it, &head->envelope, head->sender);
  else
    keep_unexpected(process, head);
}

PIM_IN(state) static void take_clear(mpich_process *process, const wire_head *head) {
  (void)process;
  mpich_request *it = head->sender;
  wire_head data;
  const size_t bytes = it->bytes < head->bytes ? it->bytes : head->bytes;
  set_head(&data, MPICH_DATA, &it->envelope, it->bytes, bytes, 0, head->receiver);
  wire_send(it->dest, &data, it->data);
  it->is_complete = 1;
}

PIM_IN(state) static void take_rendezvous_data(mpich_process *process, const wire_head *head) {
  (void)process;
  mpich_request *it = head->receiver;
  wire_body(it->data, head->body);
  complete(it, &head->envelope, head->bytes);
}

/// Takes all packets that have arrived. Returns their number.
PIM_IN(juggling) static int check_network(mpich_device *device, mpich_process *process, int waits) {
  wire_head head;
  int number = 0;
  for (; wire_receive(&head, waits && !number); ++number) device->take[head.kind](process, &head);
  return number;
}

PIM_IN(juggling) static int check_nothing(mpich_device *device, mpich_process *process, int waits) {
  (void)device, (void)process, (void)waits;
  return 0;
}

/// Checks all devices once; the last one may wait.
PIM_IN(juggling) static int check_devices(mpich_process *process, int waits) {
  int number = 0;
  for (mpich_device *it = process->first_device; it; it = it->next)
    number += it->check(it, process, waits && !it->next && !number);
  return number;
}

PIM_IN(state)
static void start_send(mpich_process *process, mpich_request *it, const void *data, size_t bytes,
                       int dest, const mpi_envelope *envelope) {
  const mpich_device *device = &process->devices[0];
  const unsigned protocol = bytes < device->short_limit ? 0 : bytes < device->eager_limit ? 1 : 2;
  device->send[protocol](it, data, bytes, dest, envelope);
}

PIM_IN(state)
MPI_Request engine_isend(const void *data, size_t bytes, int dest, const mpi_envelope *envelope) {
  mpich_process *process = here();
  mpich_request *it = new_request(process, (void *)(uintptr_t)data, bytes, dest, envelope);
  if (!it) return 0;
  start_send(process, it, data, bytes, dest, envelope);
  check_devices(process, 0);
  return it;
}

PIM_IN(juggling) static void wait_for(mpich_process *process, const mpich_request *it) {
  while (!it->is_complete) check_devices(process, 1);
}

PIM_IN(state)
int engine_send(const void *data, size_t bytes, int dest, const mpi_envelope *envelope) {
  mpich_process *process = here();
  if (bytes < MPI_EAGER_LIMIT) {
    start_send(process, 0, data, bytes, dest, envelope);
    return MPI_SUCCESS;
  }
  mpich_request *it = new_request(process, (void *)(uintptr_t)data, bytes, dest, envelope);
  if (!it) return MPI_ERR_OTHER;
  start_send(process, it, data, bytes, dest, envelope);
  wait_for(process, it);
  free_request(process, it);
  return MPI_SUCCESS;
}

PIM_IN(state)
static void receive_unexpected(mpich_process *process, mpich_request *it, mpich_request *message) {
  if (message->is_asked) {
    clear_to_send(it, &message->envelope, message->sender);
  } else {
    if (message->bytes) {
      mpi_copy(it->data, message->data, message->bytes < it->bytes ? message->bytes : it->bytes);
      free_buffer(&process->buffers, message->data, message->bytes);
    }
    complete(it, &message->envelope, message->bytes);
  }
  free_request(process, message);
}

PIM_IN(state) MPI_Request engine_irecv(void *data, size_t bytes, const mpi_envelope *envelope) {
  mpich_process *process = here();
  mpich_request *it = new_request(process, data, bytes, 0, envelope);
  if (!it) return 0;
  mpich_request *message = find_unexpected(process, envelope, 1);
  if (message)
    receive_unexpected(process, it, message);
  else
    enqueue(&process->posted, it);
  return it;
}

PIM_IN(cleanup) static int finish(mpich_process *process, mpich_request *it, MPI_Status *status) {
  mpi_set_status(status, &it->envelope, it->error, it->bytes);
  free_request(process, it);
  return status->MPI_ERROR;
}

PIM_IN(state)
int engine_recv(void *data, size_t bytes, const mpi_envelope *envelope, MPI_Status *status) {
  mpich_process *process = here();
  mpich_request *it = engine_irecv(data, bytes, envelope);
  if (!it) return MPI_ERR_OTHER;
  wait_for(process, it);
  return finish(process, it, status);
}

PIM_IN(state) int engine_probe(const mpi_envelope *envelope, int waits, MPI_Status *status) {
  mpich_process *process = here();
  const mpich_request *it = find_unexpected(process, envelope, 0);
  while (!it) {
    const int number = check_devices(process, waits);
    it = find_unexpected(process, envelope, 0);
    if (!waits && !number) break;
  }
  if (!it) return 0;
  mpi_set_status(status, &it->envelope, MPI_SUCCESS, it->bytes);
  return 1;
}

PIM_IN(cleanup) int engine_finish(MPI_Request request, int waits, MPI_Status *status) {
  mpich_process *process = here();
  if (waits)
    wait_for(process, request);
  else if (!request->is_complete)
    check_devices(process, 0);
  if (!request->is_complete) return 0;
  finish(process, request, status);
  return 1;
}

PIM_IN(cleanup) int engine_finish_all(int count, MPI_Request *requests, MPI_Status *statuses) {
  mpich_process *process = here();
  int failed = 0;
  MPI_Status own;
  for (int i = 0; i < count; ++i) {
    if (!requests[i]) continue;
    wait_for(process, requests[i]);
    failed += finish(process, requests[i], statuses ? &statuses[i] : &own) != MPI_SUCCESS;
  }
  return failed;
}

/// Recursive doubling among the greatest power of two of processes; each other process reports to
/// one of them.
PIM_IN(state) void engine_barrier(unsigned context) {
  const int node = pim_node(), nodes = pim_nodes();
  int power = 1;
  while (2 * power <= nodes) power *= 2;
  MPI_Status status;
  const mpi_envelope own = {node, 0, context};
  if (node >= power) {
    engine_send(0, 0, node - power, &own);
    engine_recv(0, 0, &(mpi_envelope){node - power, 0, context}, &status);
    return;
  }
  if (node + power < nodes) engine_recv(0, 0, &(mpi_envelope){node + power, 0, context}, &status);
  for (int step = 1; step < power; step *= 2) {
    engine_send(0, 0, node ^ step, &own);
    engine_recv(0, 0, &(mpi_envelope){node ^ step, 0, context}, &status);
  }
  if (node + power < nodes) engine_send(0, 0, node + power, &own);
}

size_t engine_memory_bytes(int nodes) {
  (void)nodes;
  return sizeof(mpich_process) + MPICH_RECORDS * sizeof(mpich_request) + BUFFER_BYTES;
}

void engine_boot(void *memory, int nodes) {
  (void)nodes;
  mpich_process *it = memory;
  it->fresh_requests = (char *)(it + 1);
  it->end_requests = it->buffers.fresh = it->fresh_requests + MPICH_RECORDS * sizeof(mpich_request);
  it->buffers.end = it->buffers.fresh + BUFFER_BYTES;
  const mpich_device network = {0,
                                MPICH_SHORT_LIMIT,
                                MPI_EAGER_LIMIT,
                                check_network,
                                {send_short, send_eager, send_rendezvous},
                                {take_data, take_data, take_ask, take_clear, take_rendezvous_data}};
  it->devices[0] = network;
  it->devices[1] = network;
  it->devices[1].check = check_nothing;
  it->devices[1].next = &it->devices[0];
  it->first_device = &it->devices[1];
}

static const char *check_queue(const mpich_queue *queue, unsigned *members) {
  const mpich_request *last = 0;
  *members = 0;
  for (const mpich_request *it = queue->first; it; last = it, it = it->next)
    if (++*members > MPICH_RECORDS) return "a queue is a cycle";
  return last == queue->last ? 0 : "the last element of a queue is not its end";
}

const char *engine_check(const void *memory, unsigned *posted, unsigned *unexpected) {
  const mpich_process *it = memory;
  const char *wrong = check_queue(&it->posted, posted);
  if (!wrong) wrong = check_queue(&it->unexpected, unexpected);
  for (const mpich_request *receive = it->posted.first; receive && !wrong; receive = receive->next)
    for (const mpich_request *message = it->unexpected.first; message && !wrong;
         message = message->next)
      if (mpi_matches(&receive->envelope, &message->envelope))
        wrong = "a posted receive and a message match";
  return wrong;
}
