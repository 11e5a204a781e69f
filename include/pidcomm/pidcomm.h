/* pidcomm.h: collective communication between the PEs of processing-in-DIMM machines.
 *
 * Vocabulary. PE: a DPU and its 64 MiB bank of MRAM. The PEs of a DPU set are arranged as a hypercube of n axes, the first ("x") varying
 * fastest. An axis mask such as "010" has one character per axis and selects the axes along which PEs talk: the PEs that agree in all
 * unselected coordinates form a group, and one call runs the collective in all groups at once. N is the number of PEs in a group; a
 * PE's index in its group (its member index) counts the selected coordinates, first selected axis fastest. A mask that selects no axis
 * means N = 1.
 *
 * Sizes. `bytes` is per PE: what each PE holds before alltoall, reduce_scatter, allreduce, reduce and gather, and what it holds after
 * allgather, scatter and broadcast. A block is bytes / N where the table says so, else bytes; blocks are multiples of 8 bytes. 0 is a
 * valid no-op.
 *
 *   collective       in MRAM     out MRAM    result
 *   alltoall         bytes       bytes       block q of member p -> block p of member q          (N blocks)
 *   reduce_scatter   bytes       bytes / N   member q: block q, reduced over all members         (N blocks)
 *   allreduce        bytes       bytes       every member: the element-wise reduction
 *   allgather        bytes / N   bytes       every member: all contributions, in member order    (N blocks)
 *   scatter          host        bytes       member q: part q of its group's row; the host row is N * bytes long
 *   gather           bytes       host        inverse of scatter
 *   reduce           bytes       host        row of the group: the element-wise reduction; the host row is `bytes` long
 *   broadcast        host        bytes       every member: the group's row; the host row is `bytes` long
 *
 * Host buffers are contiguous: one row per group, rows in the order of the unselected coordinates, first unselected axis fastest.
 *
 * Windows. Offsets count bytes from the MRAM heap base (symbol __sys_used_mram_end of the loaded program, 0 if none) and are multiples
 * of 8. src == dst means in place (allgather: the contribution is at the start of the window; reduce_scatter: the result replaces block
 * 0). Any other overlap of source and destination is an error.
 *
 * Errors. Every function returns a status; all checks come before the first byte moves. pidcomm_last_error() names the offending values
 * and the rule. The library prints nothing. Calls on one hypercube are serialised; calls on hypercubes of different sets run in parallel.
 *
 * Source: PID-Comm (ISCA 2024), sections IV and VI, for the hypercube model and the call; the `tile` technique is this library's own. */
#ifndef PIDCOMM_PIDCOMM_H
#define PIDCOMM_PIDCOMM_H

#ifdef PIDCOMM_ARTIFACT_PIDCOMM_H
#error \
    "<pidcomm.h> is for programs of the published artifact; <pidcomm/pidcomm.h> has other calls of the same names: include one of the two"
#endif

#include <pidcomm/dpu_api.h>
#include <pidcomm/tables.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PIDCOMM_API __attribute__((visibility("default")))
#else
#define PIDCOMM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PIDCOMM_VERSION_MAJOR 0
#define PIDCOMM_VERSION_MINOR 1
#define PIDCOMM_VERSION_PATCH 0

#define PIDCOMM_ROW(ENUM, code, ...) PIDCOMM_##ENUM = code,
typedef enum pidcomm_status { PIDCOMM_STATUSES(PIDCOMM_ROW) } pidcomm_status;
typedef enum pidcomm_collective { PIDCOMM_COLLECTIVES(PIDCOMM_ROW) } pidcomm_collective;
typedef enum pidcomm_type { PIDCOMM_TYPES(PIDCOMM_ROW) } pidcomm_type;
typedef enum pidcomm_op { PIDCOMM_OPS(PIDCOMM_ROW) } pidcomm_op;
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, ...) PIDCOMM_TECHNIQUE_##ENUM = code,
/* auto: the technique with the lowest predicted time (pidcomm/model.h); the trace reports it. */
typedef enum pidcomm_technique {
  PIDCOMM_TECHNIQUE_AUTO = -1,
  PIDCOMM_TECHNIQUE_DEFAULT = 0,
  PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
} pidcomm_technique;
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, ...) PIDCOMM_ISA_##ENUM = code,
typedef enum pidcomm_isa { PIDCOMM_ISA_DEFAULT = 0, PIDCOMM_ISAS(PIDCOMM_ROW) } pidcomm_isa;
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, ...) PIDCOMM_COHERENCE_##ENUM = code,
typedef enum pidcomm_coherence { PIDCOMM_COHERENCE_DEFAULT = 0, PIDCOMM_COHERENCES(PIDCOMM_ROW) } pidcomm_coherence;
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, ...) PIDCOMM_COPY_ORDER_##ENUM = code,
typedef enum pidcomm_copy_order { PIDCOMM_COPY_ORDERS(PIDCOMM_ROW) } pidcomm_copy_order;
#undef PIDCOMM_ROW

/* The tables whose codes have names: pidcomm_name. */
typedef enum pidcomm_table {
  PIDCOMM_TABLE_STATUS,
  PIDCOMM_TABLE_COLLECTIVE,
  PIDCOMM_TABLE_TYPE,
  PIDCOMM_TABLE_OP,
  PIDCOMM_TABLE_TECHNIQUE,
  PIDCOMM_TABLE_ISA,
  PIDCOMM_TABLE_COHERENCE,
  PIDCOMM_TABLE_COPY_ORDER
} pidcomm_table;

/* A DPU set arranged as a hypercube. It borrows the set: destroy it before dpu_free. (The emulator detects a freed set; on the SDK using
 * one is undefined.) */
typedef struct pidcomm_hypercube pidcomm_hypercube;

/* A non-blocking call. It lives from pidcomm_irun until pidcomm_wait, or until pidcomm_test finds it done. */
typedef struct pidcomm_pending pidcomm_pending;

/* Structs begin with their size in bytes: set it with PIDCOMM_*_INITIALIZER, in C++ with {}. Later versions may append fields of 8 bytes to
 * options, request and trace. The library reads and writes only fields within the program's size, and leaves trace fields that it does not
 * know unchanged. ERR_ARGUMENT: the size is 0 or smaller than in version 0.1, or a field of options or request that this library does not
 * know is not 0. */
#ifdef __cplusplus
#define PIDCOMM_SIZE(type) size_t size = sizeof(type)
#define PIDCOMM_SIZE_OF(type) \
  {                           \
  }
#else
#define PIDCOMM_SIZE(type) size_t size
#define PIDCOMM_SIZE_OF(type) {.size = sizeof(type)}
#endif

/* How the library carries out a collective; 0 is the default of every field. Results do not depend on the options, except that
 * floating-point sums and products may associate differently in each technique.
 * `conventional` uses dpu_push_xfer, with the threads and flushes of the SDK instead of those given here. The SDK keeps one prepared buffer
 * per DPU: `conventional` and the pr techniques discard the buffers that the caller has prepared for DPUs of the set.
 * `pr`, `pr+im` and `pr+im+cm` are the three steps of the PID-Comm paper, each with those before it (section V). A step that does not apply
 * to a collective (table II) is left out; if no step applies, the call runs as `conventional`. These techniques need shapes that entangled
 * groups of 8 PEs divide without remainder. In alltoall, reduce_scatter, allreduce, allgather and reduce, PEs reorder blocks if the mask
 * selects PEs of one entangled group. Then the techniques REPLACE THE LOADED PROGRAM: load yours again before you launch it. Until then a
 * launch ends with DPU_ERR_DPU_FAULT; MRAM, its heap base and transfers to MRAM are as they were. allreduce and reduce then need bytes
 * divisible by 8 times the PEs that a group has in an entangled group.
 * `ring` and `tree` are for allreduce on the same shapes, for comparison (section VIII-H of the paper): they go from member to member in
 * many passes over the lines. `ring` has the same requirements as pr+im+cm; `tree` needs no PE program and no PE scratch.
 * PIDCOMM_TECHNIQUE_AUTO: the technique with the lowest predicted time, except `ring` and `tree`. It considers techniques that REPLACE THE
 * LOADED PROGRAM only if scratch_offset is not 0 (and valid). If it chooses `conventional` for a non-blocking call, the call ends before it
 * returns.
 * If the host runs out of memory between steps, the error says that the destination window is undefined. */
typedef struct pidcomm_options {
  PIDCOMM_SIZE(struct pidcomm_options);
  int technique;         /* pidcomm_technique; default: tile; auto: as above */
  int isa;               /* pidcomm_isa; default: the best this machine runs */
  int threads;           /* 1 to 1024 host threads; default 0: OMP_NUM_THREADS if set, else one per CPU that the caller may use */
  int coherence;         /* pidcomm_coherence; default: none on emulated DIMMs, hardware on DIMMs, where `none` is refused */
  size_t scratch_offset; /* PE scratch, from the MRAM heap base. If PEs reorder before the host pass, they write as many bytes there as a
                            PE's input has; 0 is then ERR_WINDOW, unless bytes is 0. Otherwise unused */
} pidcomm_options;
#define PIDCOMM_OPTIONS_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_options)

/* One collective as a value. `host` is the input row array of scatter and broadcast, the output of gather and reduce. Fields that a
 * collective does not use are ignored. */
typedef struct pidcomm_request {
  PIDCOMM_SIZE(struct pidcomm_request);
  int collective;   /* pidcomm_collective */
  const char *mask; /* axis mask */
  size_t bytes;     /* per PE, see above */
  size_t src, dst;  /* MRAM offsets from the heap base */
  void *host;
  size_t host_bytes; /* size of the host buffer: exactly groups * row */
  int type;          /* pidcomm_type */
  int op;            /* pidcomm_op */
} pidcomm_request;
#define PIDCOMM_REQUEST_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_request)

/* The report of a call: a field for each row of PIDCOMM_TRACE_FIELDS (tables.h), which state the meanings. */
#define PIDCOMM_ROW(ctype, name, ...) ctype name;
typedef struct pidcomm_trace {
  PIDCOMM_SIZE(struct pidcomm_trace);
  PIDCOMM_TRACE_FIELDS(PIDCOMM_ROW)
} pidcomm_trace;
#undef PIDCOMM_ROW
#define PIDCOMM_TRACE_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_trace)

/* For programs: ends the process with a sentence on stderr if a call fails. */
#define PIDCOMM_CHECK(call)                                                                                            \
  do {                                                                                                                 \
    const int pidcomm_check_status = (call);                                                                           \
    if (pidcomm_check_status != PIDCOMM_OK) {                                                                          \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, pidcomm_name(PIDCOMM_TABLE_STATUS, pidcomm_check_status), \
              pidcomm_last_error());                                                                                   \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

/* Library version as "major.minor.patch". */
PIDCOMM_API const char *pidcomm_version(void);

/* The sentence of the last error on this thread; "" if the last call succeeded. Valid until the next call on this thread. */
PIDCOMM_API const char *pidcomm_last_error(void);

/* The name of a code of a table: "ERR_SIZE", "alltoall", "int32", "sum", "tile", "avx512bw", "hardware", "banks4". NULL if the table or the
 * code is unknown. */
PIDCOMM_API const char *pidcomm_name(pidcomm_table table, int code);

/* 1 if this machine can run the instruction set, else 0 (also for unknown codes). */
PIDCOMM_API int pidcomm_isa_available(int isa);

/* Arranges the first product(axis_len) PEs of `set` as a hypercube and stores it in *cube.
 * PEs are numbered p = 8 * e + lane; e counts the entangled groups (the 8 PEs of equal bank number in one rank; a PE's lane is its chip
 * number) in the order of the set's ranks, then banks. This is NOT the order of DPU_FOREACH (chip * 8 + bank): see PIDCOMM_FOREACH_PE.
 * An entangled group with a disabled PE is not used. Exception: if the PE count is no multiple of 8, the last entangled group may be
 * partial; it needs lanes 0 to pes % 8 - 1.
 * On DIMMs the call also finds the memory of every rank of the set, unless another hypercube on the rank exists. It waits for running PEs
 * and earlier asynchronous work, writes a few words of each PE's MRAM and restores them; launch no PE of the set meanwhile. ERR_DEVICE
 * explains why a rank cannot be used, and names PEs in fault and words that could not be restored (docs/hardware.md).
 * Errors: ERR_SHAPE (no axis, more than 16 axes, a length of 0, more PEs than the whole entangled groups of the set hold), ERR_SET,
 * ERR_ARGUMENT (cube or axis_len null), ERR_DEVICE, ERR_MEMORY. */
PIDCOMM_API int pidcomm_hypercube_create(struct dpu_set_t set, uint32_t axes, const uint32_t *axis_len, pidcomm_hypercube **cube);

/* Releases the hypercube, not the set. NULL is allowed. Errors: ERR_BUSY while a non-blocking call has not been waited for; nothing is
 * released then. */
PIDCOMM_API int pidcomm_hypercube_destroy(pidcomm_hypercube *cube);

/* Number of PEs; 0 if cube is NULL. */
PIDCOMM_API uint32_t pidcomm_pes(const pidcomm_hypercube *cube);

/* The single-DPU set of PE `pe`; on error an empty set (kind DPU_SET_RANKS, no rank). */
PIDCOMM_API struct dpu_set_t pidcomm_pe_set(const pidcomm_hypercube *cube, uint32_t pe);

/* for each PE in PE order: `dpu` (struct dpu_set_t) for use with dpu_prepare_xfer, `pe` (uint32_t) its number. */
#define PIDCOMM_FOREACH_PE(cube, dpu, pe) for ((pe) = 0; (pe) < pidcomm_pes(cube) && ((dpu) = pidcomm_pe_set((cube), (pe)), 1); ++(pe))

/* Where PE `pe` is: the index of its rank in the order of the set's ranks, its chip (0 to 7: its lane) and its bank (0 to 7). Errors:
 * ERR_ARGUMENT (pe out of range, null). */
PIDCOMM_API int pidcomm_pe_location(const pidcomm_hypercube *cube, uint32_t pe, uint32_t *rank, uint32_t *chip, uint32_t *bank);

/* Coordinates of PE `pe`, one per axis. Errors: ERR_ARGUMENT (pe out of range, null). */
PIDCOMM_API int pidcomm_coords(const pidcomm_hypercube *cube, uint32_t pe, uint32_t *coords);

/* Group of PE `pe` (its row in host buffers) and member index in it, under an axis mask. Errors: ERR_MASK, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_group_of(const pidcomm_hypercube *cube, const char *mask, uint32_t pe, uint32_t *group);
PIDCOMM_API int pidcomm_member_of(const pidcomm_hypercube *cube, const char *mask, uint32_t pe, uint32_t *member);

/* Number of groups and PEs per group (N) under an axis mask. Errors: ERR_MASK, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_groups(const pidcomm_hypercube *cube, const char *mask, uint32_t *groups, uint32_t *group_pes);

/* Writes / reads `bytes` bytes at `offset` of every PE; host row p (p * bytes) belongs to PE p. Errors as scatter / gather. */
PIDCOMM_API int pidcomm_write(pidcomm_hypercube *cube, size_t offset, size_t bytes, const void *host);
PIDCOMM_API int pidcomm_read(pidcomm_hypercube *cube, size_t offset, size_t bytes, void *host);

/* The collectives with default options: a function for each row of PIDCOMM_COLLECTIVES (tables.h), whose columns choose the parameters:
 *
 *   int pidcomm_alltoall(cube, mask, bytes, src, dst, type)                 both sides at the PEs
 *   int pidcomm_allreduce(cube, mask, bytes, src, dst, type, op)            the same, with an operator
 *   int pidcomm_scatter(cube, mask, bytes, host, host_bytes, dst, type)     input in host rows
 *   int pidcomm_gather(cube, mask, bytes, src, host, host_bytes, type)      output in host rows
 *   int pidcomm_reduce(cube, mask, bytes, src, host, host_bytes, type, op)  the same, with an operator
 *
 * `type` is a pidcomm_type; a bare sizeof is ERR_TYPE. <pidcomm/isca24.h> has the call as the paper prints it, with word sizes.
 * Errors, all found before any byte moves: ERR_MASK, ERR_SIZE (the block is no multiple of 8), ERR_WINDOW, ERR_HOST_BUFFER, ERR_TYPE,
 * ERR_OP, ERR_OPTION, ERR_SET, ERR_ARGUMENT, ERR_MEMORY (with the audit ISA also later); ERR_DEVICE if a PE of the set is in fault
 * (the sentence names rank, chip, bank and PE) or PEs disagree about the heap base. A call waits for earlier asynchronous work of the
 * whole set. */
#define PIDCOMM_PARAMETERS_011 const char *mask, size_t bytes, size_t src, size_t dst, int type
#define PIDCOMM_PARAMETERS_111 const char *mask, size_t bytes, size_t src, size_t dst, int type, int op
#define PIDCOMM_PARAMETERS_001 const char *mask, size_t bytes, const void *host, size_t host_bytes, size_t dst, int type
#define PIDCOMM_PARAMETERS_010 const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes, int type
#define PIDCOMM_PARAMETERS_110 const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes, int type, int op
#define PIDCOMM_ARGUMENTS_011 mask, bytes, src, dst, type
#define PIDCOMM_ARGUMENTS_111 mask, bytes, src, dst, type, op
#define PIDCOMM_ARGUMENTS_001 mask, bytes, host, host_bytes, dst, type
#define PIDCOMM_ARGUMENTS_010 mask, bytes, src, host, host_bytes, type
#define PIDCOMM_ARGUMENTS_110 mask, bytes, src, host, host_bytes, type, op
#define PIDCOMM_ROW(ENUM, code, name, op, before, after, ...) \
  PIDCOMM_API int pidcomm_##name(pidcomm_hypercube *cube, PIDCOMM_PARAMETERS_##op##before##after);
PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/* Any collective as a value. options NULL: the defaults. trace (may be NULL) receives the report. */
PIDCOMM_API int pidcomm_run(pidcomm_hypercube *cube, const pidcomm_request *request, const pidcomm_options *options, pidcomm_trace *trace);

/* The errors that pidcomm_run would return for a request before any byte moves, without running it. A request whose host is NULL and
 * host_bytes 0 is checked without its host buffer. Waits for earlier work of the set, as a call does. Buffers are not allocated, so
 * pidcomm_run may still return ERR_MEMORY. The next pidcomm_run of the same request reuses the plan. */
PIDCOMM_API int pidcomm_validate(pidcomm_hypercube *cube, const pidcomm_request *request, const pidcomm_options *options);

/* Non-blocking collectives: as pidcomm_run, but the call may return before the bytes have moved, with *pending for pidcomm_wait or
 * pidcomm_test. All checks come before the return; a call that fails stores NULL. Until the call has been waited for, the library owns its
 * windows in MRAM and its host buffer: do not write to them, and do not read the output. The mask, request and options may be freed at
 * once.
 *
 * Later operations on the same set queue behind the call in FIFO order: launches, transfers and dpu_sync of the SDK, and collectives on
 * this and other hypercubes. So a set runs one collective at a time, and a second call may wait for the first before it returns. Overlap a
 * call with work of the host or of other sets. A non-blocking call costs one wake-up of every rank more than a blocking one: use it for
 * passes that take longer than that.
 *
 * Some calls end before they return: techniques that need the SDK or PEs during the call (conventional; those with a PE program if PEs
 * reorder blocks), and on DIMMs all calls, because the queues of the SDK do not hold back operations of other threads. On dpuemu, dpu_free
 * of a set with a call under way returns DPU_ERR_MRAM_BUSY. So does a launch that another thread starts at the very moment of the call, as
 * during a blocking one. Inside a dpu_callback of the set, wait for no call and use no hypercube that other threads use. A child of fork
 * cannot wait for the calls of its parent.
 *
 * Errors: as the blocking calls, ERR_ARGUMENT (pending null). Any thread may wait for a call, but only one at a time. */
PIDCOMM_API int pidcomm_irun(pidcomm_hypercube *cube, const pidcomm_request *request, const pidcomm_options *options,
                             pidcomm_pending **pending);

/* Waits for the end of a call, releases it and stores NULL in *pending. Returns the status of the call; `trace` (may be NULL) receives the
 * report. If *pending is NULL, the call has been waited for: PIDCOMM_OK. Errors: those of the call, ERR_ARGUMENT (pending null). */
PIDCOMM_API int pidcomm_wait(pidcomm_pending **pending, pidcomm_trace *trace);

/* If the call has ended, stores 1 in *is_done and acts as pidcomm_wait; else stores 0, without waiting. Errors: as pidcomm_wait. */
PIDCOMM_API int pidcomm_test(pidcomm_pending **pending, int *is_done, pidcomm_trace *trace);

/* The plan of a request as JSON, without any device, as pidcomm_run would carry it out on PEs arranged as axis_len. `expand` != 0 also
 * lists the steps (not of the general path and `conventional`). Writes at most `capacity` bytes including the final 0 to `json` (may be
 * NULL if capacity is 0) and the full length without it to *length. Errors: those of the request (host buffers are not needed), ERR_SHAPE,
 * ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_plan_json(uint32_t axes, const uint32_t *axis_len, const pidcomm_request *request, const pidcomm_options *options,
                                  int expand, char *json, size_t capacity, size_t *length);

/* Times the streaming limit, to compare a collective with. The pass loads `bytes_read` bytes at src of every PE and stores `bytes_written`
 * bytes at dst, line by line in the order `copy_order` (a pidcomm_copy_order), with the threads, ISA and coherence policy of a collective.
 * If both sizes are equal, it copies; else it stores arbitrary values. The fastest order depends on the machine: try them all. Overwrites
 * the destination window of the PEs in whole entangled groups. *seconds receives the time of one pass, *bytes_moved the bytes read plus
 * written. Errors: ERR_WINDOW, ERR_OPTION, ERR_SET, ERR_DEVICE, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_stream_limit(pidcomm_hypercube *cube, int copy_order, size_t bytes_read, size_t bytes_written, size_t src,
                                     size_t dst, const pidcomm_options *options, double *seconds, uint64_t *bytes_moved);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_PIDCOMM_H */
