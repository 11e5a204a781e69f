/* pidcomm_artifact.h: the calls of the published PID-Comm artifact (ISCA 2024), under names that do not collide with pidcomm's. The library
 * libpidcomm_artifact implements them on libpidcomm.
 *
 * Programs written for the artifact include <pidcomm.h>, which maps the artifact's names to these; programs that need a status
 * include only this header. PEs are numbered as in <pidcomm/pidcomm.h>: whole entangled group by whole entangled group (the 8 PEs of
 * equal bank number in one rank), ranks in the set's order; PIDCOMM_ARTIFACT_FOREACH goes in that order. `comm` is pidcomm's axis mask: one
 * '0' or '1' per axis, x first. N is the number of PEs in a group. Offsets count bytes from the MRAM heap base and are multiples of 8.
 *
 *   call            total              input in MRAM                output
 *   alltoall        bytes of a PE      [start, start + total)       [target, target + total)
 *   reduce_scatter  bytes of a PE      [start, start + total)       [target, target + total / N)
 *   all_reduce      bytes of a PE      [start, start + total)       [target, target + total)
 *   allgather       bytes afterwards   [start, start + total / N)   [target, target + total)
 *   broadcast       bytes of a PE      host                         [target, target + total) of every PE of the set
 *   scatter         bytes of a PE      host                         [start, start + total)
 *   gather          bytes of a PE      [start, start + total)       host
 *   reduce          bytes of a PE      [start, start + total)       host
 *
 * `buffer` counts from `start`. If input and output overlap but do not start together, the result is first written to [start + buffer, ...)
 * and then copied to `target`; the buffer must overlap neither. start + buffer is computed in 32 bits, as the artifact's offsets are, so a
 * buffer may be below start. Otherwise `buffer` is ignored. Unlike the artifact, the library loads and launches no PE program, and the
 * input survives unless the output covers it.
 *
 * `size` is 1, 2, 4 or 8, the bytes of a signed integer. `reduce_type` is 0 for the sum, 1 for the maximum; calls without it add.
 *
 * Host buffers have one pointer per entangled group. The words of its 8 PEs are interleaved: word w (8 bytes) of lane c is at
 * w * 64 + c * 8, so a buffer is 8 * total bytes long.
 *   gather   host[e] for the e-th entangled group; comm selects nothing (it is only checked).
 *   scatter  the same buffers, sorted by group: host[g * M + m] for the m-th of the M entangled groups with PEs of group g.
 *   reduce   x not selected: host[e], lane c for the group of the same PE among the unselected axes. x selected: host[g], `total` bytes,
 *            holds group g's result with block 8 * j + c (of total / N bytes) as lane c of the j-th stretch of 8 blocks.
 * scatter and reduce need a first axis whose length is a multiple of 8, gather a multiple of 8 PEs.
 *
 * Errors. Every call returns a pidcomm_status (0: success) and leaves a sentence in pidcomm_artifact_last_error. All checks come before
 * the first byte moves. */
#ifndef PIDCOMM_ARTIFACT_H
#define PIDCOMM_ARTIFACT_H

/* The headers that dpu.h includes; first, because the headers of an SDK do not say extern "C". */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#include <dpu.h>
#pragma GCC visibility push(default)

/* The sentence of the last error on this thread; "" if the last call succeeded. Valid until the next call on this thread. The calls for
 * allocation and for the loop over PEs do not change it. */
const char *pidcomm_artifact_last_error(void);

/* The artifact's hypercube: three public fields in one block of malloc; release it with free. It holds no resource of the library: every
 * call reads the current fields. */
typedef struct pidcomm_artifact_manager {
  struct dpu_set_t dpu_set;
  uint32_t dimension;
  uint32_t *axis_len; /* of pidcomm_artifact_init: a copy, in the same block */
} pidcomm_artifact_manager;

/* Arranges the first product(axis_len) PEs of the set. NULL on error: as pidcomm_hypercube_create. */
pidcomm_artifact_manager *pidcomm_artifact_init(struct dpu_set_t dpu_set, uint32_t dimension, const uint32_t *axis_len);

int pidcomm_artifact_broadcast(const pidcomm_artifact_manager *manager, size_t total, size_t target, const void *data);
int pidcomm_artifact_alltoall(const pidcomm_artifact_manager *manager, const char *comm, size_t total, size_t start, size_t target,
                              size_t buffer);
int pidcomm_artifact_reduce_scatter(const pidcomm_artifact_manager *manager, const char *comm, size_t total, size_t start, size_t target,
                                    size_t buffer, uint32_t size);
int pidcomm_artifact_all_reduce(const pidcomm_artifact_manager *manager, const char *comm, size_t total, size_t start, size_t target,
                                size_t buffer, uint32_t size, uint32_t reduce_type);
/* Without a buffer: windows that overlap partially are an error. */
int pidcomm_artifact_all_reduce_unbuffered(const pidcomm_artifact_manager *manager, const char *comm, size_t total, size_t start,
                                           size_t target, uint32_t size, uint32_t reduce_type);
int pidcomm_artifact_allgather(const pidcomm_artifact_manager *manager, const char *comm, size_t total, size_t start, size_t target,
                               size_t buffer);
int pidcomm_artifact_reduce(const pidcomm_artifact_manager *manager, const char *comm, size_t total, size_t start, size_t buffer,
                            uint32_t size, void **host);
int pidcomm_artifact_gather(const pidcomm_artifact_manager *manager, const char *comm, size_t total, size_t start, size_t buffer,
                            void **host);
int pidcomm_artifact_scatter(const pidcomm_artifact_manager *manager, const char *comm, size_t total, size_t start, size_t buffer,
                             void **host);

/* Allocates PEs in whole ranks whose 64 PEs are all enabled. If the count is no multiple of 64, one rank contributes only some of its
 * entangled groups. nr_dpus: a multiple of 8, or DPU_ALLOCATE_ALL for all such ranks. type: 1; ignored if nr_dpus is a multiple of 64.
 * Release the set with dpu_free. Errors: DPU_ERR_ALLOCATION, those of dpu_alloc; then nothing is allocated. */
dpu_error_t pidcomm_artifact_alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *dpu_set, int type);

/* for each enabled DPU of the set: `dpu` (struct dpu_set_t) and its number `i`. The first `cube_size` DPUs are the PEs of a hypercube of
 * that size in PE order, as pidcomm_artifact_init arranges them; then come the others. If the set has no such hypercube (then
 * pidcomm_artifact_init fails), DPUs of whole entangled groups come first. In sets of pidcomm_artifact_alloc all entangled groups are
 * whole, and the order is the same for every `cube_size`. */
#define PIDCOMM_ARTIFACT_FOREACH(set, dpu, i, cube_size)                                                   \
  for (pidcomm_artifact_iterator pidcomm_artifact_it_ = pidcomm_artifact_first((set), (cube_size));        \
       (i) = pidcomm_artifact_it_.count, (dpu) = pidcomm_artifact_it_.next, pidcomm_artifact_it_.has_next; \
       pidcomm_artifact_next(&pidcomm_artifact_it_))

typedef struct pidcomm_artifact_iterator {
  struct dpu_set_t set, next;
  uint32_t cube_size;
  uint32_t count; /* DPUs before `next` */
  uint32_t eg;    /* entangled groups visited; the loop passes over the set several times */
  uint32_t lanes; /* lanes after `next` in the last one, as bits */
  bool has_next;
} pidcomm_artifact_iterator;

pidcomm_artifact_iterator pidcomm_artifact_first(struct dpu_set_t set, uint32_t cube_size);
void pidcomm_artifact_next(pidcomm_artifact_iterator *iterator);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif /* PIDCOMM_ARTIFACT_H */
