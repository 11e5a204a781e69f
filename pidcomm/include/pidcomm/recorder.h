/* recorder.h: the last calls of every hypercube of the process, also while a call hangs.
 *
 * The library always records. It keeps a record of each of the last PIDCOMM_RECORDED_CALLS calls of
 * a hypercube, and of a cube over hosts: collectives, scans, messages, reads, writes, batches and
 * non-blocking calls, in the order in which they start. A batch is one call. A call that has not
 * ended keeps its record until it ends. If no record is free, the next calls leave no record. The
 * records of a destroyed hypercube stay until a new hypercube takes their memory.
 *
 * When the process creates its first hypercube, the library reads the environment variable
 * PIDCOMM_RECORDER: "signal" calls pidcomm_recorder_signal(SIGUSR1, 2), and "wait=5" calls
 * pidcomm_recorder_watch(5, 2). A comma separates the items. A handler of SIGUSR1 and a watch that
 * the program has set stay. TRACE_EVENTS_FOLDER names a folder for trace events (docs/recorder.md).
 *
 * All hosts make the same calls on a cube over hosts, so a call has the same number on all of them.
 * If a call waits for a host, its record names the host: the calls of that host end with the call
 * before it. */
#ifndef PIDCOMM_RECORDER_H
#define PIDCOMM_RECORDER_H

#include <pidcomm/pidcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PIDCOMM_RECORDED_CALLS 64
#define PIDCOMM_RECORDED_CODE 126

/* X(ENUM, code, text): what a call does. */
#define PIDCOMM_CALL_STATES(X)             \
  X(WAITS_FOR_PES, 0, "waits for PEs")     \
  X(WAITS_FOR_CALLS, 1, "waits for calls") \
  X(WAITS_FOR_HOSTS, 2, "waits for hosts") \
  X(RUNS, 3, "runs")                       \
  X(DONE, 4, "done")                       \
  X(FAILED, 5, "failed")

#define PIDCOMM_ROW(ENUM, code, ...) PIDCOMM_CALL_##ENUM = code,
typedef enum pidcomm_call_state { PIDCOMM_CALL_STATES(PIDCOMM_ROW) } pidcomm_call_state;
#undef PIDCOMM_ROW

/* collective, type, op: PIDCOMM_RECORDED_CODE stands for every code that is negative or larger. */
typedef struct pidcomm_record {
  PIDCOMM_SIZE(struct pidcomm_record);
  uint64_t hypercube; /* hypercubes of the process are numbered from 1 */
  uint64_t call;      /* calls of the hypercube are numbered from 1 */
  int state;          /* pidcomm_call_state */
  int status;         /* pidcomm_status; of a failed call */
  int collective;     /* -1: a host has refused its arguments */
  int type;
  int op;   /* -1: an operator of the program */
  int line; /* of the caller; see pidcomm_recorder_place */
  const char *file;
  uint64_t bytes;         /* of the request; 0 for messages */
  uint64_t requests;      /* of a batch; else 1. The fields above are of the first request */
  uint64_t request;       /* the number of the request that runs, from 0 */
  double started_s;       /* seconds of CLOCK_MONOTONIC */
  double elapsed_s;       /* until the end of the call, or until now */
  uint32_t awaited_host;  /* the first host for which the call waits, if awaited_hosts is not 0 */
  uint32_t awaited_hosts; /* number of hosts for which the call has waited for some time */
  char shape[64];         /* of the hypercube, such as "8x8", or "8x8x4, host 1" */
  char mask[24];          /* "" for messages */
  char sentence[256];     /* the start of the error sentence of a failed call, or "" */
  pidcomm_trace trace;    /* of a call that is done; else 0 */
} pidcomm_record;
#define PIDCOMM_RECORD_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_record)

/* Stores the first `capacity` records in `records`, by hypercube and call, and the number of all
 * records in *count. Any thread may call it at any time; it does not wait for calls. Errors:
 * ERR_ARGUMENT (a pointer is null; records[0].size, which is the distance of the records, is not
 * the size of the struct). */
PIDCOMM_API int pidcomm_recorder_read(pidcomm_record *records, size_t capacity, size_t *count);

/* Writes a record as text without an end of line, as pidcomm_plan_json writes. Errors:
 * ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_record_text(const pidcomm_record *record, char *text, size_t capacity,
                                    size_t *length);

/* Writes all records as lines of text to a file descriptor. A signal handler may call it. */
PIDCOMM_API void pidcomm_recorder_write(int file_descriptor);

/* From now on, if the process gets the signal, pidcomm_recorder_write writes the records to the
 * file descriptor. Errors: ERR_ARGUMENT (the signal cannot have a handler). */
PIDCOMM_API int pidcomm_recorder_signal(int number, int file_descriptor);

/* From now on, if a call has not ended after `seconds`, a thread writes this call and all records
 * to a file descriptor, once per call. A call with 0 seconds ends this, after the thread has
 * written its last line. A process after fork has no such thread. Errors: ERR_ARGUMENT (seconds is
 * negative or 1e9 or more), ERR_MEMORY (the system starts no thread). */
PIDCOMM_API int pidcomm_recorder_watch(double seconds, int file_descriptor);

/* Sets `file` and `line` in records of later calls of this thread. `file` stays valid until the
 * process ends; NULL: unknown. */
PIDCOMM_API void pidcomm_recorder_place(const char *file, int line);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_RECORDER_H */
