/* hosts.h: collectives over the PEs of several hosts.
 *
 * A cube over hosts is a hypercube with one more axis, the hosts. Every host has a hypercube of the
 * same shape. The axis of the hosts is the last axis of the shape, and the last character of a
 * mask: it varies slowest. If the local hypercubes are 32x8 and there are 4 hosts, the cube over
 * hosts is 32x8x4; PE p of host h is PE h * 256 + p of the cube.
 *
 * Rows. If a mask selects the axis of the hosts, the groups have members on all hosts, and the host
 * `root` holds the rows of scatter, broadcast, gather and reduce; the other hosts pass no host
 * buffer (null, 0 bytes). If a mask does not select this axis, each host holds the rows of its
 * groups.
 *
 * All hosts make the same calls in the same order. Before any byte moves, the hosts compare their
 * calls. If the collective, mask, bytes, type, operator, shape, root or settings differ, or if one
 * host refuses the call, then the call returns the same error on all hosts, and no MRAM and no host
 * buffer changes. MRAM offsets and options may differ between hosts, except that for alltoall
 * either all hosts or no host use `tile` or `auto`, the default. With one host a call costs as much
 * as the local call.
 *
 * A host that waits longer than `timeout_s` for a message gets ERR_DEVICE. Afterwards all later
 * calls on this connection return this error, because messages of the failed call may still arrive.
 *
 * Source: section IX-A of the PID-Comm paper (ISCA 2024). */
#ifndef PIDCOMM_HOSTS_H
#define PIDCOMM_HOSTS_H

#include <pidcomm/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A message between this host and `host`: `rows` rows of `bytes` bytes, which begin `stride` bytes
 * apart. If bytes == stride, the message is contiguous. The receiver of a message uses the same
 * rows and bytes, but may use another stride. A message has at most 1 GiB. */
typedef struct pidcomm_message {
  uint32_t host;
  int is_send; /* 1: send to `host`; 0: receive from `host` */
  void *base;
  size_t rows, bytes, stride;
} pidcomm_message;

/* A reduction of rows of `bytes` bytes in shared memory: row 0 becomes row 0 (op) row 1 (op) ...
 * The first row begins at `offset`, the next ones `stride` bytes later each. */
typedef struct pidcomm_reduction {
  int type, op;
  uint32_t rows;
  size_t offset, bytes, stride;
} pidcomm_reduction;

/* A transport: the functions that move bytes between hosts. <pidcomm/mpi.h> fills this table from
 * an MPI communicator, and <pidcomm/pool.h> from a memory pool.
 *
 * A transport either sends messages or shares memory. If `shared` is NULL, the library posts
 * messages. Otherwise all hosts see the memory at `shared`, and the library calls only sync,
 * reduce, allocate, release and close.
 *
 * Functions that return a sentence return NULL on success; the sentence is valid until the next
 * call on this thread. Messages between two hosts arrive in the order in which they were posted.
 * The library calls the functions from one thread at a time. The library itself sleeps between
 * calls of `test`, so no function may wait. */
typedef struct pidcomm_transport {
  PIDCOMM_SIZE(struct pidcomm_transport);
  void *context;            /* passed to all functions */
  uint32_t host, hosts;     /* the number of this host, from 0, and the number of hosts */
  size_t allows_any_thread; /* 1: any thread may call the functions; 0: only the thread that
                               connects; then pidcomm_hosts_irun is refused */
  /* Starts a message and stores a handle in *posted. */
  const char *(*post)(void *context, const pidcomm_message *message, void **posted);
  /* Stores in *is_done whether the message has been sent or received. If so, releases the handle.
   */
  const char *(*test)(void *context, void *posted, int *is_done);
  /* Gives up a message that has not been done, and releases the handle. */
  void (*abandon)(void *context, void *posted);
  /* Returns memory from which messages are sent fast, or NULL if there is no such memory, and
   * releases it. Local passes write rows straight into this memory. */
  void *(*allocate)(void *context, size_t bytes);
  void (*release)(void *context, void *memory);
  /* Releases the context. */
  void (*close)(void *context);
  void *shared;        /* memory of all hosts, aligned to 64 bytes, or NULL */
  size_t shared_bytes; /* the same on all hosts */
  size_t coherence;    /* pidcomm_coherence of the shared memory */
  /* Waits until all hosts have called it as often, at most for timeout_s. */
  const char *(*sync)(void *context, double timeout_s);
  /* A switch carries out a reduction, or NULL: there is no switch. Waits at most for timeout_s.
   * Only host 0 calls it. */
  const char *(*reduce)(void *context, const pidcomm_reduction *reduction, double timeout_s);
} pidcomm_transport;
#define PIDCOMM_TRANSPORT_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_transport)

/* See PIDCOMM_OVERLAPS in tables.h. */
#define PIDCOMM_ROW(ENUM, code, ...) PIDCOMM_OVERLAP_##ENUM = code,
typedef enum pidcomm_overlap { PIDCOMM_OVERLAPS(PIDCOMM_ROW) } pidcomm_overlap;
#undef PIDCOMM_ROW

/* See PIDCOMM_TRANSPORTS in tables.h. */
#define PIDCOMM_ROW(ENUM, code, ...) PIDCOMM_TRANSPORT_##ENUM = code,
typedef enum pidcomm_transport_kind { PIDCOMM_TRANSPORTS(PIDCOMM_ROW) } pidcomm_transport_kind;
#undef PIDCOMM_ROW

/* The settings of a connection; 0 means the default. `link_gb_s` puts an emulated link in front of
 * the transport: each host sends and receives at most link_gb_s GB/s (1 GB = 1e9 bytes) in each
 * direction, and each message takes link_latency_us longer. In front of shared memory, each local
 * pass or reduction that uses it takes at least link_latency_us and the time of its bytes, and a
 * sync takes two latencies longer. */
typedef struct pidcomm_hosts_settings {
  PIDCOMM_SIZE(struct pidcomm_hosts_settings);
  double timeout_s;       /* default: 300 */
  double link_gb_s;       /* default: no emulated link */
  double link_latency_us; /* default: 0 */
  size_t overlap;         /* pidcomm_overlap; has no effect with shared memory */
  size_t transport;       /* pidcomm_transport_kind, for pidcomm_hosts_plan_json; the table of the
                             transport decides for connections */
} pidcomm_hosts_settings;
#define PIDCOMM_HOSTS_SETTINGS_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_hosts_settings)

/* A cube over hosts. It borrows the local hypercube: disconnect before pidcomm_hypercube_destroy.
 */
typedef struct pidcomm_hosts pidcomm_hosts;

/* Connects the local hypercubes of all hosts to a cube and stores it in *hosts. On success the cube
 * owns the transport: pidcomm_hosts_disconnect closes it. If the hosts cannot connect, the call
 * closes it. `settings` may be NULL. Waits for all hosts. Errors: ERR_ARGUMENT (a null pointer, a
 * setting out of range, a host number that is not below the number of hosts, or shapes or settings
 * that differ between hosts), ERR_SHAPE (more than 16 axes, or more than 2^22 PEs on all hosts),
 * ERR_DEVICE (a host did not connect in time, or the transport failed). */
PIDCOMM_API int pidcomm_hosts_connect(pidcomm_hypercube *cube, const pidcomm_transport *transport,
                                      const pidcomm_hosts_settings *settings,
                                      pidcomm_hosts **hosts);

/* Releases the cube and closes its transport, but keeps the local hypercube. `hosts` may be NULL.
 * Does not wait for other hosts. Errors: ERR_BUSY if the program has not waited for a non-blocking
 * call. */
PIDCOMM_API int pidcomm_hosts_disconnect(pidcomm_hosts *hosts);

/* Runs a collective on all hosts. `request` is as for pidcomm_run; its mask has one more character.
 * `root` is the host that holds the rows; it is ignored if the mask does not select the axis of the
 * hosts. The trace has the sums over the local passes of this host. Errors: those of pidcomm_run,
 * ERR_ARGUMENT (root is not below the number of hosts; the hosts make different calls), ERR_DEVICE.
 */
PIDCOMM_API int pidcomm_hosts_run(pidcomm_hosts *hosts, const pidcomm_request *request,
                                  uint32_t root, const pidcomm_options *options,
                                  pidcomm_trace *trace);

/* Works like pidcomm_hosts_run on another thread, and returns at once. All errors of the call come
 * from pidcomm_wait or pidcomm_test. Calls on one cube run in order. Until the program has waited
 * for the call, it must not use the DPU set in another way, and the mask and the host buffer must
 * stay valid. Errors: ERR_OPTION (the transport does not allow other threads), ERR_ARGUMENT,
 * ERR_MEMORY. */
PIDCOMM_API int pidcomm_hosts_irun(pidcomm_hosts *hosts, const pidcomm_request *request,
                                   uint32_t root, const pidcomm_options *options,
                                   pidcomm_pending **pending);

/* Compares a call on all hosts without running it; all hosts must call it. If `host` is NULL and
 * host_bytes is 0, the host buffer is not checked. Errors: those of pidcomm_hosts_run before any
 * byte moves. */
PIDCOMM_API int pidcomm_hosts_validate(pidcomm_hosts *hosts, const pidcomm_request *request,
                                       uint32_t root, const pidcomm_options *options);

/* Takes part in the next call of the other hosts with an error, so that all hosts return the error
 * instead of a wait. Returns `status`, or the error of a host with a smaller number. */
PIDCOMM_API int pidcomm_hosts_refuse(pidcomm_hosts *hosts, int status, const char *sentence);

/* Writes as JSON the plan that host `host` carries out for a request on a cube over hosts. The last
 * entry of axis_len is the number of hosts. The plan lists the local passes, the messages, and the
 * bytes per link and per memory bus, with predicted times on `machine`, or, if it is NULL, on the
 * machine of pidcomm_use_machine. Otherwise works like pidcomm_plan_json, and needs neither devices
 * nor other hosts.
 */
PIDCOMM_API int pidcomm_hosts_plan_json(uint32_t axes, const uint32_t *axis_len, uint32_t host,
                                        const pidcomm_request *request, uint32_t root,
                                        const pidcomm_options *options,
                                        const pidcomm_hosts_settings *settings,
                                        const pidcomm_machine *machine, char *json, size_t capacity,
                                        size_t *length);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_HOSTS_H */
