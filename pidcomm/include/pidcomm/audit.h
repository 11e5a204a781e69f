/* audit.h: the counts of the audit instruction set from the last call on a hypercube, for tests of
 * the library. Rows of the table may change in every version. */
#ifndef PIDCOMM_AUDIT_H
#define PIDCOMM_AUDIT_H

#include <pidcomm/pidcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, meaning). A line is 64 bytes of DIMM memory. */
#define PIDCOMM_AUDIT_FIELDS(X)                                                                 \
  X(lines_loaded, "loads of lines")                                                             \
  X(lines_stored, "stores of lines")                                                            \
  X(lines_flushed, "flushes of lines")                                                          \
  X(lines_prefetched, "prefetches of lines")                                                    \
  X(loads_prefetched, "loads of lines that were prefetched, then other lines loaded")           \
  X(max_loads_of_a_line, "most loads of one line")                                              \
  X(max_stores_of_a_line, "most stores of one line")                                            \
  X(distinct_lines_loaded, "different lines that were loaded")                                  \
  X(distinct_lines_stored, "different lines that were stored")                                  \
  X(lines_outside, "loads, stores, flushes and prefetches outside the windows of the request")  \
  X(loads_unflushed, "loads of lines neither flushed nor stored since the host took the ranks") \
  X(longest_reload, "most different lines loaded between two successive loads of a line")

#define PIDCOMM_ROW(name, ...) uint64_t name;
typedef struct pidcomm_audit {
  PIDCOMM_AUDIT_FIELDS(PIDCOMM_ROW)
} pidcomm_audit;
#undef PIDCOMM_ROW

/* Stores the counts of the last call that has ended; all counts are 0 if the last call did not use
 * the audit instruction set. Errors: ERR_ARGUMENT (a pointer is null). */
PIDCOMM_API int pidcomm_audit_of(pidcomm_hypercube *cube, pidcomm_audit *audit);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_AUDIT_H */
