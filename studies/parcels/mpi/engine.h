/// What the calls of MPI (calls.c) need from an engine: pim/ (travelling threads), lam.c and
/// mpich.c in engines/ (single-threaded). One of them is linked. Arguments are valid: calls.c has
/// checked them.
#pragma once

#include <stddef.h>

#include "mpi/mpi.h"

/// source and tag may be wildcards in receives. Messages match only within a context.
typedef struct mpi_envelope {
  int source;
  int tag;
  unsigned context;
} mpi_envelope;

static inline int mpi_matches(const mpi_envelope *receive, const mpi_envelope *message) {
  return receive->context == message->context &&
         (receive->source == message->source || receive->source == MPI_ANY_SOURCE) &&
         (receive->tag == message->tag || receive->tag == MPI_ANY_TAG);
}

/// Messages of this many bytes or more use the rendezvous protocol (the paper, section 3.3).
enum { MPI_EAGER_LIMIT = 65536 };
/// Most requests of a process at one time.
enum { MPI_REQUESTS = 4096 };
/// Buffers for unexpected messages have MPI_SMALLEST_BUFFER times a power of two: 64 B, 128 B, ...,
/// 64 KiB.
enum { MPI_SMALLEST_BUFFER = 64, MPI_BUFFER_CLASSES = 11 };

static inline unsigned mpi_buffer_class(size_t bytes) {
  return bytes <= MPI_SMALLEST_BUFFER ? 0 : 58u - (unsigned)__builtin_clzll(bytes - 1);
}

static inline void mpi_set_status(MPI_Status *status, const mpi_envelope *message, int error,
                                  size_t bytes) {
  status->MPI_SOURCE = message->source;
  status->MPI_TAG = message->tag;
  status->MPI_ERROR = error;
  status->bytes = bytes;
}

/// Returns the memory that a process of `nodes` processes needs, in bytes.
size_t engine_memory_bytes(int nodes);
/// Prepares the memory of the node that calls. The platform calls this on each node before any
/// program starts.
void engine_boot(void *memory, int nodes);

/// Starts a send or a receive and returns its request, or NULL if there are MPI_REQUESTS requests.
MPI_Request engine_isend(const void *data, size_t bytes, int dest, const mpi_envelope *envelope);
MPI_Request engine_irecv(void *data, size_t bytes, const mpi_envelope *envelope);
/// Sends or receives. Return an error class; engine_recv also writes the status.
int engine_send(const void *data, size_t bytes, int dest, const mpi_envelope *envelope);
int engine_recv(void *data, size_t bytes, const mpi_envelope *envelope, MPI_Status *status);
/// Looks for a message and writes its status. Returns whether there is one; if `waits`, waits for
/// one.
int engine_probe(const mpi_envelope *envelope, int waits, MPI_Status *status);
/// Returns whether a request is complete; if so, writes the status and frees the request. If
/// `waits`, waits.
int engine_finish(MPI_Request request, int waits, MPI_Status *status);
/// Waits for all requests that are not NULL and frees them; writes their statuses unless statuses
/// is NULL. Returns the number of requests with an error.
int engine_finish_all(int count, MPI_Request *requests, MPI_Status *statuses);
/// Waits for all processes. Processes in barriers of different contexts are an error, or wait for
/// ever.
void engine_barrier(unsigned context);

/// The invariants of the queues of a process, for tests: returns NULL, or a sentence. Writes the
/// numbers of posted receives and of unexpected messages. The platform does not count it.
const char *engine_check(const void *memory, unsigned *posted, unsigned *unexpected);
