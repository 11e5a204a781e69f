/// What both single-threaded engines use: buffers for unexpected messages, heads of packets.
#pragma once

#include "engines/wire.h"
#include "mpi/copy.h"

enum { BUFFER_BYTES = 1 << 26 };  ///< of a process

typedef struct buffers {
  void *free[MPI_BUFFER_CLASSES];
  char *fresh, *end;
} buffers;

PIM_IN(state) static void *new_buffer(buffers *from, size_t bytes) {
  const unsigned number = mpi_buffer_class(bytes);
  void **it = from->free[number];
  if (it) {
    from->free[number] = *it;
    return it;
  }
  char *made = from->fresh;
  from->fresh += (size_t)MPI_SMALLEST_BUFFER << number;
  if (from->fresh > from->end)
    pim_abort(MPI_ERR_OTHER, "more than 64 MiB of unexpected messages wait on one node");
  return made;
}

PIM_IN(cleanup) static void free_buffer(buffers *to, void *buffer, size_t bytes) {
  const unsigned number = mpi_buffer_class(bytes);
  *(void **)buffer = to->free[number];
  to->free[number] = buffer;
}

PIM_IN(state)
static void set_head(wire_head *head, int kind, const mpi_envelope *envelope, size_t bytes,
                     size_t body, void *sender, void *receiver) {
  head->kind = kind;
  head->envelope = *envelope;
  head->bytes = bytes;
  head->body = body;
  head->sender = sender;
  head->receiver = receiver;
}
