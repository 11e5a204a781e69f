/* batch.h: many small calls at once. */
#ifndef PIDCOMM_BATCH_H
#define PIDCOMM_BATCH_H

#include <pidcomm/pidcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs `count` requests in order, with the results of `count` calls of pidcomm_run. It checks all
 * requests before the first byte moves. It waits for earlier work once. It acquires the ranks once
 * for neighbouring requests that need neither SDK transfers nor a PE program. Request i runs with
 * options[i], or with the default options if `options` is NULL. All requests have the same `size`,
 * and so do all options.
 *
 * If `trace` is not NULL, stores in *trace the sums of the times and bytes (bytes_staged: the
 * largest), the largest number of threads, and the technique, ISA and coherence of the first
 * request. pidcomm_audit_of returns the counts of the last request. Errors: those of pidcomm_run,
 * with the number of the request, from 0; ERR_ARGUMENT (requests is null, sizes differ). After
 * ERR_DEVICE or ERR_MEMORY, earlier requests may have moved bytes. */
PIDCOMM_API int pidcomm_batch(pidcomm_hypercube *cube, const pidcomm_request *requests,
                              size_t count, const pidcomm_options *options, pidcomm_trace *trace);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_BATCH_H */
