/* messages.h: messages between any PEs of a hypercube, in one pass over the ranks. Shifts,
 * permutations, the exchange of ghost planes, and collectives with a size for each pair of PEs are
 * lists of messages.
 *
 * A message moves `runs` runs of `bytes` bytes from PE from_pe to PE to_pe. Run i begins at byte
 * from + i * from_step of the source window, and at byte to + i * to_step of the destination
 * window; `runs` 0 means 1. PE numbers are those of the hypercube. Offsets, steps and bytes
 * are multiples of 8. If from_pe is PIDCOMM_FILL, the message writes a word to all its runs: `from`
 * is the lower half of the word, and from_step the upper half.
 *
 * No two messages may write the same byte. Bytes that no message writes keep their values. A
 * message may read bytes that a message writes only if the call works in place: all messages have
 * the same `bytes`, one run, and the same place in MRAM at both PEs.
 *
 * Techniques: `tile` and `conventional`; the pr techniques run as `conventional`, and the others
 * return ERR_OPTION. Hypercubes over hosts refuse messages with ERR_ARGUMENT. */
#ifndef PIDCOMM_MESSAGES_H
#define PIDCOMM_MESSAGES_H

#include <pidcomm/pidcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pidcomm_pe_message {
  uint32_t from_pe, to_pe;
  uint32_t from, to;
  uint32_t bytes;
  uint32_t runs;
  uint32_t from_step, to_step;
} pidcomm_pe_message;

#define PIDCOMM_FILL 0xFFFFFFFFu

/* The code of messages in a pidcomm_request, for pidcomm_run, pidcomm_irun, pidcomm_validate and
 * pidcomm_plan_json: `host` points to the messages, which the library copies before the call
 * returns, and host_bytes is their size in bytes. The request uses no mask, bytes, type and op. */
enum { PIDCOMM_SENDRECV = 31 };

/* Moves `count` messages. Errors before any byte moves: ERR_ARGUMENT (a PE number is out of range),
 * ERR_SIZE (a size, offset or step is no multiple of 8), ERR_WINDOW (a window leaves MRAM; two
 * messages write the same byte; a message reads what another writes, unless in place), ERR_MEMORY,
 * and the errors of all collectives. */
PIDCOMM_API int pidcomm_sendrecv(pidcomm_hypercube *cube, const pidcomm_pe_message *messages,
                                 size_t count, size_t src, size_t dst);

#define PIDCOMM_NO_MEMBER 0xFFFFFFFFu

/* Store messages in messages[0], messages[1], ... for pidcomm_sendrecv, and their number in *count.
 * `capacity` is the length of `messages`; if more messages are needed, the functions return
 * ERR_SIZE, and *count is their number. Members and groups are those of `mask`.
 *
 * pidcomm_permute_messages: member m of every group receives `bytes` bytes from member sources[m],
 * or keeps its bytes if sources[m] is PIDCOMM_NO_MEMBER. Needs a message per PE.
 *
 * pidcomm_alltoallv_messages: counts[p * N + q] bytes move from member p to member q, with one such
 * table for all groups (tables = 1), or one per group, after each other (tables = the number of
 * groups). A member's blocks lie one after another, in the order of the members to which, or from
 * which, they move. Counts are multiples of 8 bytes. Needs N messages per PE.
 *
 * pidcomm_allgatherv_messages: every member receives the blocks of all members, one after another;
 * member p contributes counts[p] bytes, with `tables` tables as above. Needs N messages per PE.
 *
 * Errors: ERR_MASK, ERR_ARGUMENT (a pointer is null, a source is no member, tables is neither 1 nor
 * the number of groups), ERR_SIZE (bytes or a count is no multiple of 8; capacity is too small; a
 * window of 4 GiB or more). */
PIDCOMM_API int pidcomm_permute_messages(const pidcomm_hypercube *cube, const char *mask,
                                         const uint32_t *sources, uint32_t bytes,
                                         pidcomm_pe_message *messages, size_t capacity,
                                         size_t *count);
PIDCOMM_API int pidcomm_alltoallv_messages(const pidcomm_hypercube *cube, const char *mask,
                                           const uint32_t *counts, uint32_t tables,
                                           pidcomm_pe_message *messages, size_t capacity,
                                           size_t *count);
PIDCOMM_API int pidcomm_allgatherv_messages(const pidcomm_hypercube *cube, const char *mask,
                                            const uint32_t *counts, uint32_t tables,
                                            pidcomm_pe_message *messages, size_t capacity,
                                            size_t *count);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_MESSAGES_H */
