/// The platform of MPI by parcels: what the protocol needs from a machine of memory with processors
/// (a node is one memory with its processor). The protocol uses no libc, no allocation and nothing
/// else of the machine, so the same C compiles for the simulated machine (machine/) and for any
/// other platform that has these functions.
///
/// A *thread* runs on one node. A *parcel* carries a thread: the code to run, its state (a few
/// registers) and a payload. A travelling thread ends on one node and continues as the thread of a
/// parcel on another node. A *word* has a full/empty bit. The bit is one instruction and one memory
/// reference away, as a load is.
///
/// Source: Rodrigues, Murphy, Kogge, Brockman, Brightwell, Underwood, "Implications of a PIM
/// architectural model for MPI", CLUSTER 2003, sections 2 and 3. Called "the paper" in this folder.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// The category of counted instructions. A function states its category by PIM_IN(name); other
/// functions of the protocol are in `state`. Categories up to `juggling` are overhead; the paper
/// reports the others apart.
enum pim_category {
  PIM_state,     ///< initialise and update requests and protocol state
  PIM_cleanup,   ///< free structures, remove from queues, unlock
  PIM_queue,     ///< walk, match, lock and append to queues
  PIM_juggling,  ///< go from the context of one request to another to look for progress
  PIM_copy,      ///< copy message data
  PIM_network,   ///< specifics of the network; the platform's functions
  PIM_checks,    ///< check arguments, look up types and communicators; the paper leaves these out
  PIM_application,  ///< the MPI program
  PIM_categories
};

/// Compiles a function as one unit whose instructions count in a category.
#define PIM_IN(category) __attribute__((noinline, noclone, section(".text.pim_" #category)))

/// A word with a full/empty bit. All zero bytes mean full with value 0.
typedef struct pim_word {
  uintptr_t value;
  uint32_t is_empty;
  uint32_t waiting;  ///< number of threads that wait; of the platform
} pim_word;

/// Waits until the word is full, empties it and returns its value. Waiting threads are served in
/// order of arrival.
uintptr_t pim_take(pim_word *word);
/// Waits until the word is full and returns its value; the word stays full. Waiting threads are
/// served in order.
uintptr_t pim_read(pim_word *word);
/// Stores a value and makes the word full, whatever it was. Serves the waiting threads in order
/// until one takes.
void pim_fill(pim_word *word, uintptr_t value);
/// Makes the word empty. Does not wait.
void pim_clear(pim_word *word);
/// Returns whether the word is full. Does not wait.
int pim_is_full(const pim_word *word);

/// The code of a thread. state: the thread's copy. payload: the payload of its parcel, or NULL. The
/// payload ends with the thread, unless the thread sends it on.
typedef void pim_code(void *state, void *payload);

/// A parcel: starts `code` on a node with a copy of the state.
/// behind: a word of the sender's node that the platform fills with 0 when the parcel has left, or
/// NULL. ahead: a word of the target node that the new thread takes before its first instruction,
/// or NULL. Parcels between two nodes arrive, and take their place in the line for `ahead`, in the
/// order in which they left.
typedef struct pim_parcel {
  int node;
  pim_word *behind;
  pim_word *ahead;
  pim_code *code;
  const void *state;
  size_t state_bytes;  ///< at most PIM_STATE_BYTES
  void *payload;       ///< from pim_payload, or NULL
  size_t payload_bytes;
} pim_parcel;
enum { PIM_STATE_BYTES = 128 };

/// Sends a parcel. A parcel to the node itself creates a thread there.
void pim_send(const pim_parcel *parcel);
/// Returns an area of at least `bytes` bytes for the payload of one parcel.
void *pim_payload(size_t bytes);

/// Copies bytes up to the end of the row of `to` or of `from`, at most `bytes`, with one load and
/// one store. Returns their number, or 0 if the platform copies no rows.
size_t pim_copy_row(void *to, const void *from, size_t bytes);

/// The number of the node, the number of nodes, and the protocol's memory on a node (zero bytes at
/// the start).
int pim_node(void);
int pim_nodes(void);
void *pim_memory(int node);
/// Ends the run with an error. code: an MPI error class.
_Noreturn void pim_abort(int code, const char *sentence);
