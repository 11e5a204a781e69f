/* pidcomm_artifact.h: the calls of the published PID-Comm artifact (ISCA 2024), under names that do
 * not collide with pidcomm's. The library libpidcomm_artifact implements these calls with
 * libpidcomm.
 *
 * Programs written for the artifact include <pidcomm.h>, which maps the artifact's names to these
 * names. Programs that need a status include only this header. PEs are numbered as in
 * <pidcomm/pidcomm.h>: the 8 PEs of one entangled group (equal bank number, same rank) follow each
 * other, and the ranks are in the set's order. PIDCOMM_ARTIFACT_FOREACH uses the same order. `comm`
 * is pidcomm's axis mask: one '0' or '1' per axis, x first. N is the number of PEs in a group.
 * Offsets count bytes from the MRAM heap base and are multiples of 8.
 *
 *   call            total              input in MRAM                output
 *   alltoall        bytes of a PE      [start, start + total)       [target, target + total)
 *   reduce_scatter  bytes of a PE      [start, start + total)       [target, target + total / N)
 *   all_reduce      bytes of a PE      [start, start + total)       [target, target + total)
 *   allgather       bytes afterwards   [start, start + total / N)   [target, target + total)
 *   broadcast       bytes of a PE      host                         [target, target + total)
 *   scatter         bytes of a PE      host                         [start, start + total)
 *   gather          bytes of a PE      [start, start + total)       host
 *   reduce          bytes of a PE      [start, start + total)       host
 *
 * broadcast writes the output of every PE of the set.
 *
 * `buffer` is an offset relative to `start`. If input and output overlap but do not start at the
 * same offset, the library first writes the result to [start + buffer, ...) and then copies it to
 * `target`; the buffer must not overlap the input or the output. In all other cases the library
 * ignores `buffer`. It computes start + buffer in 32 bits, like the artifact, so the buffer may be
 * below start. Unlike the artifact, the library does not load or launch PE programs, and it does
 * not change input that the output does not cover.
 *
 * `size` is 1, 2, 4 or 8, the bytes of a signed integer. `reduce_type` is 0 for the sum or 1 for
 * the maximum; reductions without this argument compute the sum.
 *
 * `host` has one pointer per entangled group; each points to a buffer of 8 * total bytes. In a
 * buffer, the words of the group's 8 PEs are interleaved: word w (8 bytes) of lane c is at byte
 * w * 64 + c * 8.
 *
 *   gather   host[e] belongs to the e-th entangled group; the call checks `comm`, but does not use
 *            it.
 *   scatter  the same buffers, sorted by group: host[g * M + m] belongs to the m-th of the M
 *            entangled groups with PEs of group g.
 *   reduce   x not selected: host[e], lane c for the group of the same PE among the unselected
 *            axes. x selected: host[g], `total` bytes, holds group g's result with block 8 * j + c
 *            (of total / N bytes) as lane c of the j-th stretch of 8 blocks.
 *
 * For scatter and reduce, the length of the first axis must be a multiple of 8; for gather, the
 * number of PEs must be a multiple of 8.
 *
 * Errors. Every call returns a pidcomm_status (0: success) and leaves a sentence in
 * pidcomm_artifact_last_error. A call makes all checks before the first byte moves. */
#ifndef PIDCOMM_ARTIFACT_H
#define PIDCOMM_ARTIFACT_H

/* The headers that dpu.h includes. They come first, so that the extern "C" block below does not
 * contain them. */
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

/* Returns the sentence of the last error on this thread, or "" if the last call succeeded. The
 * string is valid until the next call on this thread. Calls for allocation and for the loop over
 * PEs do not change it. */
const char *pidcomm_artifact_last_error(void);

/* The artifact's hypercube: three public fields in one block of memory from malloc; release it with
 * free. It does not hold resources of the library; every call reads the current fields. */
typedef struct pidcomm_artifact_manager {
  struct dpu_set_t dpu_set;
  uint32_t dimension;
  uint32_t *axis_len; /* pidcomm_artifact_init stores a copy in the same block */
} pidcomm_artifact_manager;

/* Arranges the first product(axis_len) PEs of the set. Returns NULL on error; the errors are those
 * of pidcomm_hypercube_create. */
pidcomm_artifact_manager *pidcomm_artifact_init(struct dpu_set_t dpu_set, uint32_t dimension,
                                                const uint32_t *axis_len);

int pidcomm_artifact_broadcast(const pidcomm_artifact_manager *manager, size_t total, size_t target,
                               const void *data);
int pidcomm_artifact_alltoall(const pidcomm_artifact_manager *manager, const char *comm,
                              size_t total, size_t start, size_t target, size_t buffer);
int pidcomm_artifact_reduce_scatter(const pidcomm_artifact_manager *manager, const char *comm,
                                    size_t total, size_t start, size_t target, size_t buffer,
                                    uint32_t size);
int pidcomm_artifact_all_reduce(const pidcomm_artifact_manager *manager, const char *comm,
                                size_t total, size_t start, size_t target, size_t buffer,
                                uint32_t size, uint32_t reduce_type);
int pidcomm_artifact_allgather(const pidcomm_artifact_manager *manager, const char *comm,
                               size_t total, size_t start, size_t target, size_t buffer);
int pidcomm_artifact_reduce(const pidcomm_artifact_manager *manager, const char *comm, size_t total,
                            size_t start, size_t buffer, uint32_t size, void **host);
int pidcomm_artifact_gather(const pidcomm_artifact_manager *manager, const char *comm, size_t total,
                            size_t start, size_t buffer, void **host);
int pidcomm_artifact_scatter(const pidcomm_artifact_manager *manager, const char *comm,
                             size_t total, size_t start, size_t buffer, void **host);

/* pidcomm_artifact_all_reduce without a buffer: windows that overlap partially are an error. */
int pidcomm_artifact_all_reduce_unbuffered(const pidcomm_artifact_manager *manager,
                                           const char *comm, size_t total, size_t start,
                                           size_t target, uint32_t size, uint32_t reduce_type);

/* Allocates PEs in complete ranks, whose 64 PEs are all enabled. If nr_dpus is not a multiple of
 * 64, the set contains only some entangled groups of one rank. nr_dpus: a multiple of 8, or
 * DPU_ALLOCATE_ALL for all complete ranks. type: must be 1; ignored if nr_dpus is a multiple of 64.
 * Release the set with dpu_free. Errors: DPU_ERR_ALLOCATION, those of dpu_alloc; after an error,
 * the call has not allocated anything. */
dpu_error_t pidcomm_artifact_alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *dpu_set,
                                   int type);

/* Loops over the enabled DPUs of the set; sets `dpu` (struct dpu_set_t) and its number `i`. The
 * first DPUs are the PEs of the largest hypercube of the set, in the PE order of
 * pidcomm_artifact_init; the remaining DPUs follow. The order is the same for every `cube_size`. */
#define PIDCOMM_ARTIFACT_FOREACH(set, dpu, i, cube_size)                    \
  for (pidcomm_artifact_iterator pidcomm_artifact_it_ =                     \
           pidcomm_artifact_first((set), (cube_size));                      \
       (i) = pidcomm_artifact_it_.count, (dpu) = pidcomm_artifact_it_.next, \
                                 pidcomm_artifact_it_.has_next;             \
       pidcomm_artifact_next(&pidcomm_artifact_it_))

typedef struct pidcomm_artifact_iterator {
  struct dpu_set_t set, next;
  uint32_t last_eg; /* entangled group of the last PEs of the largest hypercube */
  uint32_t count;   /* number of DPUs before `next` */
  uint32_t eg; /* number of entangled groups visited; the loop passes over the set several times */
  uint32_t lanes; /* lanes after `next` in the last visited entangled group, as bits */
  bool has_next;
} pidcomm_artifact_iterator;

pidcomm_artifact_iterator pidcomm_artifact_first(struct dpu_set_t set, uint32_t cube_size);
void pidcomm_artifact_next(pidcomm_artifact_iterator *iterator);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif /* PIDCOMM_ARTIFACT_H */
