/* pidcomm.h: lets programs that were written for the published PID-Comm artifact (ISCA 2024) use
 * this library without changes.
 *
 * The calls have the artifact's names and argument lists; pidcomm_artifact.h describes them. The
 * artifact's calls do not return a status. If a call fails, it therefore prints its place in the
 * source and the library's error sentence to stderr, and ends the program, as the SDK's DPU_ASSERT
 * does. For this purpose the calls are macros, so a program cannot take their addresses.
 *
 * In pidcomm's own interface, <pidcomm/pidcomm.h>, the same names have other arguments, so a file
 * cannot include both headers. */
#ifndef PIDCOMM_ARTIFACT_PIDCOMM_H
#define PIDCOMM_ARTIFACT_PIDCOMM_H

#ifdef PIDCOMM_PIDCOMM_H
#error "include <pidcomm.h> (of the published artifact) or <pidcomm/pidcomm.h>, not both"
#endif

#include <pidcomm_artifact.h>
#include <support.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <dpu_error.h>
#include <dpu_management.h>
#include <dpu_memory.h>
#include <dpu_program.h>
#include <dpu_transfer_matrix.h>
#ifdef __cplusplus
}
#endif

typedef pidcomm_artifact_manager hypercube_manager;

/* Ends the program if a call has failed. */
static inline void pidcomm_artifact_check(bool is_ok, const char *file, int line,
                                          const char *function) {
  if (is_ok) return;
  fprintf(stderr, "%s:%d(%s): pidcomm: %s\n", file, line, function, pidcomm_artifact_last_error());
  exit(EXIT_FAILURE);
}

static inline hypercube_manager *pidcomm_artifact_checked(hypercube_manager *manager,
                                                          const char *file, int line,
                                                          const char *function) {
  pidcomm_artifact_check(manager != NULL, file, line, function);
  return manager;
}

#define PIDCOMM_ARTIFACT_CHECK(call) \
  pidcomm_artifact_check((call) == 0, __FILE__, __LINE__, __func__)

#define init_hypercube_manager(...) \
  pidcomm_artifact_checked(pidcomm_artifact_init(__VA_ARGS__), __FILE__, __LINE__, __func__)

#define pidcomm_broadcast(...) PIDCOMM_ARTIFACT_CHECK(pidcomm_artifact_broadcast(__VA_ARGS__))
#define pidcomm_alltoall(...) PIDCOMM_ARTIFACT_CHECK(pidcomm_artifact_alltoall(__VA_ARGS__))
#define pidcomm_reduce_scatter(...) \
  PIDCOMM_ARTIFACT_CHECK(pidcomm_artifact_reduce_scatter(__VA_ARGS__))
#define pidcomm_allgather(...) PIDCOMM_ARTIFACT_CHECK(pidcomm_artifact_allgather(__VA_ARGS__))
#define pidcomm_reduce(...) PIDCOMM_ARTIFACT_CHECK(pidcomm_artifact_reduce(__VA_ARGS__))
#define pidcomm_gather(...) PIDCOMM_ARTIFACT_CHECK(pidcomm_artifact_gather(__VA_ARGS__))
#define pidcomm_scatter(...) PIDCOMM_ARTIFACT_CHECK(pidcomm_artifact_scatter(__VA_ARGS__))

/* In the artifact's code this call has 8 arguments; in its description it has 7 (without the
 * buffer). Both work. */
#define pidcomm_all_reduce(...)                                                         \
  PIDCOMM_ARTIFACT_CHECK(PIDCOMM_ARTIFACT_NINTH(                                        \
      __VA_ARGS__, pidcomm_artifact_all_reduce, pidcomm_artifact_all_reduce_unbuffered, \
      pidcomm_all_reduce_takes_7_or_8_arguments,                                        \
      pidcomm_all_reduce_takes_7_or_8_arguments, )(__VA_ARGS__))
#define PIDCOMM_ARTIFACT_NINTH(a, b, c, d, e, f, g, h, ninth, ...) ninth

#define dpu_alloc_comm(...) pidcomm_artifact_alloc(__VA_ARGS__)
#define DPU_FOREACH_ENTANGLED_GROUP(set, dpu, i, cube_size) \
  PIDCOMM_ARTIFACT_FOREACH(set, dpu, i, cube_size)

#endif /* PIDCOMM_ARTIFACT_PIDCOMM_H */
