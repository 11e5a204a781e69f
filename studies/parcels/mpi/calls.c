/// The calls of MPI: check the arguments and pass them to the engine. The same for all engines.
#include "mpi/engine.h"
#include "pim/hooks.h"

/// The process's part that is not of the engine. It lies in front of the engine's memory.
typedef struct process {
  int is_running;
  MPI_Errhandler handler;
  int communicators;  ///< how many were made; number c has the contexts c (messages) and c + 1
                      ///< (barriers)
  unsigned char is_free[48];
} process;
enum { MAX_COMMUNICATORS = 48, EMPTY_SOURCE = MPI_ANY_SOURCE };

/// The request of a receive from MPI_PROC_NULL, which is complete.
static char null_receive;
#define NULL_RECEIVE ((MPI_Request)(void *)&null_receive)

static inline process *here(void) { return (process *)pim_memory(pim_node()) - 1; }

size_t mpi_process_bytes(void) { return sizeof(process); }

static PIM_IN(checks) int raise(int code, const char *sentence) {
  if (code != MPI_SUCCESS && here()->handler != MPI_ERRORS_RETURN) pim_abort(code, sentence);
  return code;
}

static inline int is_communicator(MPI_Comm comm) {
  const process *it = here();
  const int number = (comm - MPI_COMM_WORLD) / 2;
  return it->is_running && comm >= MPI_COMM_WORLD && comm % 2 == 0 && number <= it->communicators &&
         !it->is_free[number];
}

static PIM_IN(checks) int check(const void *data, int count, MPI_Datatype type, int peer, int tag,
                                MPI_Comm comm, int is_receive) {
  if (!is_communicator(comm))
    return raise(MPI_ERR_COMM, "not a communicator, or MPI is not initialised");
  if (count < 0) return raise(MPI_ERR_COUNT, "the count is negative");
  if (type < MPI_BYTE || type > MPI_DOUBLE) return raise(MPI_ERR_TYPE, "not a type of this MPI");
  if (!data && count > 0) return raise(MPI_ERR_BUFFER, "the buffer is NULL and the count is not 0");
  if ((peer < 0 || peer >= pim_nodes()) && peer != MPI_PROC_NULL &&
      !(is_receive && peer == MPI_ANY_SOURCE))
    return raise(MPI_ERR_RANK, "the rank is not in the communicator");
  if ((tag < 0 || tag > MPI_TAG_UB_VALUE) && !(is_receive && tag == MPI_ANY_TAG))
    return raise(MPI_ERR_TAG, "the tag is negative or above the upper bound");
  return MPI_SUCCESS;
}

static inline void set_status(MPI_Status *status, int source, int tag) {
  if (!status) return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  status->MPI_ERROR = MPI_SUCCESS;
  status->bytes = 0;
}

static inline size_t bytes_of(int count, MPI_Datatype type) {
  return (size_t)count * (size_t)(type & 0xff);
}

int PIM_IN(checks) MPI_Init(int *argc, char ***argv) {
  (void)argc, (void)argv;
  process *it = here();
  if (it->is_running) return raise(MPI_ERR_OTHER, "MPI_Init: MPI is initialised");
  it->is_running = 1;
  it->handler = MPI_ERRORS_ARE_FATAL;
  return MPI_SUCCESS;
}

int PIM_IN(checks) MPI_Finalize(void) {
  process *it = here();
  if (!it->is_running) return raise(MPI_ERR_OTHER, "MPI_Finalize: MPI is not initialised");
  engine_barrier(MPI_COMM_WORLD + 1);
  it->is_running = 0;
  return MPI_SUCCESS;
}

int PIM_IN(checks) MPI_Comm_rank(MPI_Comm comm, int *rank) {
  if (!is_communicator(comm)) return raise(MPI_ERR_COMM, "MPI_Comm_rank: not a communicator");
  *rank = pim_node();
  return MPI_SUCCESS;
}

int PIM_IN(checks) MPI_Comm_size(MPI_Comm comm, int *size) {
  if (!is_communicator(comm)) return raise(MPI_ERR_COMM, "MPI_Comm_size: not a communicator");
  *size = pim_nodes();
  return MPI_SUCCESS;
}

int PIM_IN(checks) MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made) {
  if (!is_communicator(comm)) return raise(MPI_ERR_COMM, "MPI_Comm_dup: not a communicator");
  process *it = here();
  if (it->communicators + 1 >= MAX_COMMUNICATORS)
    return raise(MPI_ERR_OTHER, "MPI_Comm_dup: more than 47 duplicates");
  engine_barrier((unsigned)comm +
                 1);  // all members have the same count: the call is collective over all processes
  *made = MPI_COMM_WORLD + 2 * ++it->communicators;
  return MPI_SUCCESS;
}

int PIM_IN(checks) MPI_Comm_free(MPI_Comm *comm) {
  if (!is_communicator(*comm) || *comm == MPI_COMM_WORLD)
    return raise(MPI_ERR_COMM, "MPI_Comm_free: not a duplicate");
  here()->is_free[(*comm - MPI_COMM_WORLD) / 2] = 1;
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int PIM_IN(checks) MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  if (!is_communicator(comm))
    return raise(MPI_ERR_COMM, "MPI_Comm_set_errhandler: not a communicator");
  here()->handler = handler;
  return MPI_SUCCESS;
}

int PIM_IN(checks)
    MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  const int code = check(buf, count, type, dest, tag, comm, 0);
  if (code != MPI_SUCCESS || dest == MPI_PROC_NULL) return code;
  const mpi_envelope envelope = {pim_node(), tag, (unsigned)comm};
  return raise(engine_send(buf, bytes_of(count, type), dest, &envelope), "MPI_Send");
}

int PIM_IN(checks) MPI_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag,
                             MPI_Comm comm, MPI_Request *request) {
  const int code = check(buf, count, type, dest, tag, comm, 0);
  if (code != MPI_SUCCESS) return code;
  *request = MPI_REQUEST_NULL;
  if (dest == MPI_PROC_NULL) return MPI_SUCCESS;
  const mpi_envelope envelope = {pim_node(), tag, (unsigned)comm};
  *request = engine_isend(buf, bytes_of(count, type), dest, &envelope);
  return *request ? MPI_SUCCESS : raise(MPI_ERR_OTHER, "MPI_Isend: too many requests");
}

int PIM_IN(checks) MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag,
                            MPI_Comm comm, MPI_Status *status) {
  const int code = check(buf, count, type, source, tag, comm, 1);
  if (code != MPI_SUCCESS) return code;
  if (source == MPI_PROC_NULL) {
    set_status(status, MPI_PROC_NULL, MPI_ANY_TAG);
    return MPI_SUCCESS;
  }
  const mpi_envelope envelope = {source, tag, (unsigned)comm};
  MPI_Status own;
  return raise(engine_recv(buf, bytes_of(count, type), &envelope, status ? status : &own),
               "MPI_Recv: truncated");
}

int PIM_IN(checks) MPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag,
                             MPI_Comm comm, MPI_Request *request) {
  const int code = check(buf, count, type, source, tag, comm, 1);
  if (code != MPI_SUCCESS) return code;
  if (source == MPI_PROC_NULL) {
    *request = NULL_RECEIVE;
    return MPI_SUCCESS;
  }
  const mpi_envelope envelope = {source, tag, (unsigned)comm};
  *request = engine_irecv(buf, bytes_of(count, type), &envelope);
  return *request ? MPI_SUCCESS : raise(MPI_ERR_OTHER, "MPI_Irecv: too many requests");
}

static PIM_IN(checks) int probe(int source, int tag, MPI_Comm comm, int waits, int *flag,
                                MPI_Status *status) {
  const int code = check(0, 0, MPI_BYTE, source, tag, comm, 1);
  if (code != MPI_SUCCESS) return code;
  if (source == MPI_PROC_NULL) {
    set_status(status, MPI_PROC_NULL, MPI_ANY_TAG);
    *flag = 1;
    return MPI_SUCCESS;
  }
  const mpi_envelope envelope = {source, tag, (unsigned)comm};
  MPI_Status own;
  *flag = engine_probe(&envelope, waits, status ? status : &own);
  return MPI_SUCCESS;
}

int PIM_IN(checks) MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status) {
  int flag;
  return probe(source, tag, comm, 1, &flag, status);
}

int PIM_IN(checks) MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
  return probe(source, tag, comm, 0, flag, status);
}

static PIM_IN(checks) int finish(MPI_Request *request, int waits, int *flag, MPI_Status *status) {
  MPI_Status own;
  if (!status) status = &own;
  *flag = 1;
  if (*request == MPI_REQUEST_NULL || *request == NULL_RECEIVE) {
    set_status(status, *request ? MPI_PROC_NULL : EMPTY_SOURCE, MPI_ANY_TAG);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  }
  *flag = engine_finish(*request, waits, status);
  if (!*flag) return MPI_SUCCESS;
  *request = MPI_REQUEST_NULL;
  return raise(status->MPI_ERROR, "MPI_Wait or MPI_Test: truncated");
}

int PIM_IN(checks) MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
  return finish(request, 0, flag, status);
}

int PIM_IN(checks) MPI_Wait(MPI_Request *request, MPI_Status *status) {
  int flag;
  return finish(request, 1, &flag, status);
}

int PIM_IN(checks) MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses) {
  if (count < 0) return raise(MPI_ERR_COUNT, "MPI_Waitall: the count is negative");
  int code = MPI_SUCCESS;
  for (int i = 0; i < count; ++i) {
    if (statuses)
      set_status(&statuses[i], requests[i] == NULL_RECEIVE ? MPI_PROC_NULL : EMPTY_SOURCE,
                 MPI_ANY_TAG);
    if (requests[i] == NULL_RECEIVE) requests[i] = MPI_REQUEST_NULL;
  }
  const int failed = engine_finish_all(count, requests, statuses);
  for (int i = 0; i < count; ++i) requests[i] = MPI_REQUEST_NULL;
  if (failed) code = MPI_ERR_IN_STATUS;
  return raise(code, "MPI_Waitall: a message was truncated");
}

int PIM_IN(checks) MPI_Barrier(MPI_Comm comm) {
  if (!is_communicator(comm)) return raise(MPI_ERR_COMM, "MPI_Barrier: not a communicator");
  engine_barrier((unsigned)comm + 1);
  return MPI_SUCCESS;
}

int PIM_IN(checks) MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count) {
  if (type < MPI_BYTE || type > MPI_DOUBLE)
    return raise(MPI_ERR_TYPE, "MPI_Get_count: not a type of this MPI");
  const unsigned size = (unsigned)type & 0xff;
  *count = status->bytes % size ? MPI_UNDEFINED : (int)(status->bytes / size);
  return MPI_SUCCESS;
}
