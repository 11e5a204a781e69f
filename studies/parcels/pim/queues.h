/// The queues of a process: posted receives, and unexpected messages.
///
/// A queue is a list of elements from a head, which is no member, to a blank element, which becomes
/// the next member. So a thread that removes the last member never changes the tail, which only
/// appending threads use.
///
/// Each element has one full/empty bit. In the posted queue, the bit locks the element: a thread
/// holds at most two neighbouring elements, takes them from head to tail, and so never passes
/// another thread. In the unexpected queue, the bit is full when the data is in the element's
/// buffer, or when a receive has claimed a waiting message.
///
/// The word `whole` of the process locks the unexpected queue. A receive holds it while it looks
/// for a message and posts. An arriving message that found no posted receive holds it while it
/// looks at receives posted since, and appends: otherwise a receive and its message could pass each
/// other.
#pragma once

#include "mpi/engine.h"
#include "pim/hooks.h"

typedef enum { PIM_BLANK, PIM_RECEIVE, PIM_BUFFERED, PIM_WAITING } pim_kind;

typedef struct pim_element {
  pim_word bit;
  struct pim_element *next;
  pim_kind kind;
  mpi_envelope envelope;
  size_t bytes;                 ///< of the message, if unexpected
  struct mpi_request *request;  ///< the receive, if posted
} pim_element;

typedef struct pim_queue {
  pim_element head;
  pim_element *tail;
  uintptr_t appended;  ///< number of elements ever appended; changes only while the blank element
                       ///< is locked
} pim_queue;

struct mpi_request {
  pim_word done;  ///< full when the request is complete
  mpi_envelope envelope;
  int error;
  size_t bytes;  ///< of the buffer; when complete, of the message
  void *data;
};

/// Free structures of one size: a list, and memory that was never used. The word is the lock and
/// the head of the list.
typedef struct pim_pool {
  pim_word list;
  char *fresh;
  char *end;
} pim_pool;

enum { PIM_ELEMENTS = 2 * MPI_REQUESTS, PIM_ROUNDS = 31 };
enum { PIM_BUFFER_BYTES = 1 << 22 };  ///< of all buffers for unexpected messages of a process

typedef struct pim_process {
  pim_word whole;  ///< locks the unexpected queue
  pim_word news;   ///< full after each unexpected message
  pim_queue posted;
  pim_queue unexpected;
  pim_pool elements;
  pim_pool requests;
  pim_word buffers[MPI_BUFFER_CLASSES];  ///< free buffers of 64 B, 128 B, ..., 64 KiB
  pim_word fresh;                        ///< the first byte of buffer memory that was never used
  char *buffers_end;
  unsigned barriers;
  pim_word bells[2][PIM_ROUNDS];  ///< of even and odd barriers
  pim_word *departures;           ///< for each node: orders the messages to it until they leave
  pim_word
      *arrivals;  ///< for each node: orders the messages from it until they match or are appended
} pim_process;

/// Returns a structure of `bytes` bytes, or NULL if all are in use.
void *pim_new(pim_pool *pool, size_t bytes);
void pim_free(pim_pool *pool, void *it);
/// Returns a buffer of at least `bytes` bytes (1 to 64 KiB), or NULL if no memory is left.
void *pim_new_buffer(pim_process *process, size_t bytes);
void pim_free_buffer(pim_process *process, void *buffer, size_t bytes);

/// Removes the first posted receive that matches a message and returns it, or NULL. Writes
/// `appended` of the queue at the moment when it was found to have no match.
pim_element *pim_claim_receive(pim_process *process, const mpi_envelope *message,
                               uintptr_t *appended);
/// Appends an element. The caller holds `whole`. Posted queue: the element is complete when its
/// lock is free.
pim_element *pim_append(pim_process *process, pim_queue *queue, pim_kind kind,
                        const mpi_envelope *envelope);
/// Returns the element before the first unexpected message that matches, or NULL. The caller holds
/// `whole`.
pim_element *pim_find_message(pim_process *process, const mpi_envelope *receive);
/// Removes the element after another one from the unexpected queue and returns it. The caller holds
/// `whole`.
pim_element *pim_remove_after(pim_element *before);
