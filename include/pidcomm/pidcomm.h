/* pidcomm.h: collective communication between the processing elements (PEs) of processing-in-DIMM machines.
 *
 * Vocabulary. A PE is a DPU and its 64 MiB bank of MRAM. The PEs of a DPU set are arranged as a hypercube of n axes; the first axis ("x")
 * varies fastest. An axis mask such as "010" has one character per axis and selects the axes along which PEs communicate. The PEs that
 * agree in all unselected coordinates form a group, and one call runs the collective in all groups at once. N is the number of PEs in a
 * group. The member index of a PE is its index in its group; it counts the selected coordinates, first selected axis fastest. If a mask
 * selects no axis, N is 1.
 *
 * Sizes. `bytes` is a number of bytes per PE: the input of each PE for alltoall, reduce_scatter, allreduce, reduce and gather; the output
 * of each PE for allgather, scatter and broadcast. If the table says "N blocks", a block has bytes / N bytes, else `bytes` bytes. The size
 * of a block is a multiple of 8 bytes. A call with 0 bytes is valid and does nothing.
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
 * Host buffers are contiguous. They have one row per group, in the order of the unselected coordinates, first unselected axis fastest.
 *
 * Windows. Offsets count bytes from the MRAM heap base and are multiples of 8. The heap base is the symbol __sys_used_mram_end of the
 * loaded program, or 0 if no program is loaded. If src == dst, the call works in place: allgather then expects the contribution at the
 * start of the window, and reduce_scatter replaces block 0 by the result. Any other overlap of source and destination is an error.
 *
 * Errors. Every function returns a status; all checks come before the first byte moves. pidcomm_last_error() names the offending values
 * and the rule. The library does not print. Calls on one hypercube are serialised; calls on hypercubes of different sets run in parallel.
 *
 * Source: the hypercube model and the calls are from PID-Comm (ISCA 2024), sections IV and VI; the `tile` technique is new in this
 * library. */
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
/* PIDCOMM_TECHNIQUE_AUTO selects the technique with the lowest predicted time (pidcomm/model.h); the trace reports which one ran. */
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

/* The tables whose codes have names; see pidcomm_name. */
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

/* A DPU set arranged as a hypercube. It borrows the set: destroy it before dpu_free. (The emulator detects a freed set; with the SDK, the
 * use of a freed set is undefined behaviour.) */
typedef struct pidcomm_hypercube pidcomm_hypercube;

/* A non-blocking call. The object exists from pidcomm_irun until pidcomm_wait, or until pidcomm_test reports its end. */
typedef struct pidcomm_pending pidcomm_pending;

/* Structs begin with their size in bytes: set it with PIDCOMM_*_INITIALIZER, in C++ with {}. Later versions may append fields of 8 bytes to
 * options, request and trace. The library reads and writes only fields within the size that the program sets. It does not change trace
 * fields that it does not know. Calls return ERR_ARGUMENT if the size is 0 or smaller than in version 0.1, or if options or request have a
 * field that is not 0 and that this library does not know. */
#ifdef __cplusplus
#define PIDCOMM_SIZE(type) size_t size = sizeof(type)
#define PIDCOMM_SIZE_OF(type) \
  {                           \
  }
#else
#define PIDCOMM_SIZE(type) size_t size
#define PIDCOMM_SIZE_OF(type) {.size = sizeof(type)}
#endif

/* Options choose how the library carries out a collective; in every field, 0 means the default. Results do not depend on the options, with
 * one exception: each technique may add or multiply floating-point numbers in another order.
 * `conventional` uses dpu_push_xfer; for the transfers, the SDK's own threads and flushes replace the options `threads` and `coherence`.
 * The SDK keeps one prepared buffer per DPU, so `conventional` and the pr techniques discard the buffers that the caller has prepared for
 * DPUs of the set.
 * `pr`, `pr+im` and `pr+im+cm` use the first one, two or three steps of the PID-Comm paper (section V). If a step does not apply to a
 * collective (table II of the paper), they omit the step; if no step applies, the call runs as `conventional`. These techniques need shapes
 * that entangled groups of 8 PEs divide without remainder. If the mask selects PEs of one entangled group, PEs reorder blocks in alltoall,
 * reduce_scatter, allreduce, allgather and reduce. The call then REPLACES THE LOADED PROGRAM: load your program again before you launch it.
 * Until you do, a launch ends with DPU_ERR_DPU_FAULT. The replacement does not change the contents of MRAM or the heap base, and transfers
 * to MRAM still work. If PEs reorder blocks in allreduce or reduce, `bytes` must be divisible by 8 times the number of PEs that a group has
 * in an entangled group.
 * `ring` and `tree` run allreduce on the same shapes; they exist for comparison (section VIII-H of the paper). They send data from member
 * to member in many passes over the lines. `ring` has the same requirements as pr+im+cm; `tree` does not need a PE program or PE scratch.
 * PIDCOMM_TECHNIQUE_AUTO chooses the technique with the lowest predicted time, but never `ring` or `tree`. It considers techniques that
 * REPLACE THE LOADED PROGRAM only if scratch_offset is valid and not 0. If it chooses `conventional` for a non-blocking call, the
 * collective is complete when the call returns.
 * If the host runs out of memory between steps, the error sentence says that the content of the destination window is undefined. */
typedef struct pidcomm_options {
  PIDCOMM_SIZE(struct pidcomm_options);
  int technique; /* pidcomm_technique; default: tile */
  int isa;       /* pidcomm_isa; default: the best that this machine can run */
  int threads;   /* host threads, 1 to 1024; default: OMP_NUM_THREADS if set, else one thread for each CPU that the caller may use */
  int coherence; /* pidcomm_coherence; default: `none` on emulated DIMMs, `hardware` on real DIMMs, where `none` is an error */
  size_t scratch_offset; /* offset of the PE scratch from the MRAM heap base. If PEs reorder blocks before the host pass, each PE writes
                            as many bytes to its scratch as its input has; offset 0 is then ERR_WINDOW, unless `bytes` is 0.
                            Other calls ignore this field */
} pidcomm_options;
#define PIDCOMM_OPTIONS_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_options)

/* A collective and its arguments. `host` is the input buffer of scatter and broadcast, and the output buffer of gather and reduce. The
 * library ignores fields that a collective does not use. */
typedef struct pidcomm_request {
  PIDCOMM_SIZE(struct pidcomm_request);
  int collective;   /* pidcomm_collective */
  const char *mask; /* axis mask */
  size_t bytes;     /* number of bytes per PE; see "Sizes" above */
  size_t src, dst;  /* MRAM offsets of source and destination from the heap base */
  void *host;
  size_t host_bytes; /* size of the host buffer: exactly the number of groups times the bytes of a row */
  int type;          /* pidcomm_type */
  int op;            /* pidcomm_op */
} pidcomm_request;
#define PIDCOMM_REQUEST_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_request)

#define PIDCOMM_ROW(ctype, name, ...) ctype name;
/* The report of a call. It has a field for each row of PIDCOMM_TRACE_FIELDS; tables.h states their meanings. */
typedef struct pidcomm_trace {
  PIDCOMM_SIZE(struct pidcomm_trace);
  PIDCOMM_TRACE_FIELDS(PIDCOMM_ROW)
} pidcomm_trace;
#undef PIDCOMM_ROW
#define PIDCOMM_TRACE_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_trace)

/* If the call fails, prints its error sentence to stderr and ends the process. For programs, not for libraries. */
#define PIDCOMM_CHECK(call)                                                                                            \
  do {                                                                                                                 \
    const int pidcomm_check_status = (call);                                                                           \
    if (pidcomm_check_status != PIDCOMM_OK) {                                                                          \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, pidcomm_name(PIDCOMM_TABLE_STATUS, pidcomm_check_status), \
              pidcomm_last_error());                                                                                   \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

/* Returns the library version as "major.minor.patch". */
PIDCOMM_API const char *pidcomm_version(void);

/* Returns the sentence of the last error on this thread, or "" if the last call succeeded. The string is valid until the next call on this
 * thread. */
PIDCOMM_API const char *pidcomm_last_error(void);

/* Returns the name of a code of a table, such as "ERR_SIZE", "alltoall", "int32", "sum", "tile", "avx512bw", "hardware" or "banks4", or
 * NULL if the table or the code is unknown. */
PIDCOMM_API const char *pidcomm_name(pidcomm_table table, int code);

/* Returns 1 if this machine can run the instruction set, else 0. For an unknown code it returns 0. */
PIDCOMM_API int pidcomm_isa_available(int isa);

/* Arranges the first product(axis_len) PEs of `set` as a hypercube and stores it in *cube.
 * PEs are numbered p = 8 * e + lane. The index e counts the entangled groups in the order of the set's ranks, then banks: an entangled
 * group is the 8 PEs of one rank that have the same bank number. The lane of a PE is its chip number. This is NOT the order of DPU_FOREACH
 * (chip * 8 + bank): see PIDCOMM_FOREACH_PE. The hypercube does not use entangled groups with a disabled PE. Exception: if the number of
 * PEs is not a multiple of 8, the last entangled group may be partial; it needs lanes 0 to pes % 8 - 1.
 * On real DIMMs the call also finds the memory of every rank of the set, unless another hypercube on the rank exists. To do this, it waits
 * for running PEs and earlier asynchronous work, writes a few words of each PE's MRAM and restores them. Do not launch PEs of the set
 * during the call. The sentence of ERR_DEVICE explains why the library cannot use a rank; it names PEs in fault and words that could not be
 * restored (docs/hardware.md).
 * Errors: ERR_SHAPE (there is no axis, there are more than 16 axes, a length is 0, or the complete entangled groups of the set have too few
 * PEs), ERR_SET, ERR_ARGUMENT (cube or axis_len is null), ERR_DEVICE, ERR_MEMORY. */
PIDCOMM_API int pidcomm_hypercube_create(struct dpu_set_t set, uint32_t axes, const uint32_t *axis_len, pidcomm_hypercube **cube);

/* Releases the hypercube, but not the set. NULL is allowed. Errors: ERR_BUSY if the program has not waited for a non-blocking call; the
 * hypercube then continues to exist. */
PIDCOMM_API int pidcomm_hypercube_destroy(pidcomm_hypercube *cube);

/* Returns the number of PEs, or 0 if cube is NULL. */
PIDCOMM_API uint32_t pidcomm_pes(const pidcomm_hypercube *cube);

/* Returns the single-DPU set of PE `pe`; on error it returns an empty set (kind DPU_SET_RANKS without ranks). */
PIDCOMM_API struct dpu_set_t pidcomm_pe_set(const pidcomm_hypercube *cube, uint32_t pe);

/* Loops over the PEs in PE order. It sets `dpu` (struct dpu_set_t), for use with dpu_prepare_xfer, and `pe` (uint32_t), the PE's number. */
#define PIDCOMM_FOREACH_PE(cube, dpu, pe) for ((pe) = 0; (pe) < pidcomm_pes(cube) && ((dpu) = pidcomm_pe_set((cube), (pe)), 1); ++(pe))

/* Stores the location of PE `pe`: the index of its rank in the order of the set's ranks, its chip (0 to 7, also its lane) and its bank (0
 * to 7). Errors: ERR_ARGUMENT (pe is out of range, a pointer is null). */
PIDCOMM_API int pidcomm_pe_location(const pidcomm_hypercube *cube, uint32_t pe, uint32_t *rank, uint32_t *chip, uint32_t *bank);

/* Stores the coordinates of PE `pe`, one per axis. Errors: ERR_ARGUMENT (pe is out of range, a pointer is null). */
PIDCOMM_API int pidcomm_coords(const pidcomm_hypercube *cube, uint32_t pe, uint32_t *coords);

/* Store the group of PE `pe` (the index of its row in host buffers) and its member index, under an axis mask. Errors: ERR_MASK,
 * ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_group_of(const pidcomm_hypercube *cube, const char *mask, uint32_t pe, uint32_t *group);
PIDCOMM_API int pidcomm_member_of(const pidcomm_hypercube *cube, const char *mask, uint32_t pe, uint32_t *member);

/* Stores the number of groups and the number of PEs per group (N) under an axis mask. Errors: ERR_MASK, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_groups(const pidcomm_hypercube *cube, const char *mask, uint32_t *groups, uint32_t *group_pes);

/* Write or read `bytes` bytes at MRAM offset `offset` of every PE. The row of PE p starts at byte p * bytes of `host`. The errors are those
 * of scatter or gather. */
PIDCOMM_API int pidcomm_write(pidcomm_hypercube *cube, size_t offset, size_t bytes, const void *host);
PIDCOMM_API int pidcomm_read(pidcomm_hypercube *cube, size_t offset, size_t bytes, void *host);

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
/* The collectives with default options. There is a function for each row of PIDCOMM_COLLECTIVES (tables.h); the columns of the table decide
 * which parameters it has:
 *
 *   int pidcomm_alltoall(cube, mask, bytes, src, dst, type)                 input and output are in MRAM
 *   int pidcomm_allreduce(cube, mask, bytes, src, dst, type, op)            the same, with an operator
 *   int pidcomm_scatter(cube, mask, bytes, host, host_bytes, dst, type)     input is in host rows
 *   int pidcomm_gather(cube, mask, bytes, src, host, host_bytes, type)      output is in host rows
 *   int pidcomm_reduce(cube, mask, bytes, src, host, host_bytes, type, op)  the same, with an operator
 *
 * `type` is a pidcomm_type; a size such as sizeof(int) is ERR_TYPE. <pidcomm/isca24.h> has the calls as the paper prints them, with word
 * sizes. A call waits for earlier asynchronous work of the whole set. It reports these errors before any byte moves: ERR_MASK, ERR_SIZE
 * (the block size is not a multiple of 8), ERR_WINDOW, ERR_HOST_BUFFER, ERR_TYPE, ERR_OP, ERR_OPTION, ERR_SET, ERR_ARGUMENT, ERR_MEMORY
 * (with the audit ISA also later). It reports ERR_DEVICE if a PE of the set is in fault (the error message names rank, chip, bank and PE)
 * or if PEs have different heap bases. */
PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/* Runs any collective. If `options` is NULL, the call uses the defaults. If `trace` is not NULL, it receives the report. */
PIDCOMM_API int pidcomm_run(pidcomm_hypercube *cube, const pidcomm_request *request, const pidcomm_options *options, pidcomm_trace *trace);

/* Checks a request without running it: returns the error that pidcomm_run would return before any byte moves. If `host` is NULL and
 * host_bytes is 0, the host buffer is not checked. Like pidcomm_run, the function waits for earlier work of the set. It does not allocate
 * buffers, so pidcomm_run may still return ERR_MEMORY. The next pidcomm_run of the same request reuses the plan. */
PIDCOMM_API int pidcomm_validate(pidcomm_hypercube *cube, const pidcomm_request *request, const pidcomm_options *options);

/* Non-blocking collectives. pidcomm_irun works like pidcomm_run, but may return before the bytes have moved; pass *pending to pidcomm_wait
 * or pidcomm_test. The checks are complete when the function returns; if it fails, it stores NULL. Until the program has waited for the
 * call, the library owns the call's windows in MRAM and its host buffer: do not write to them, and do not read the output. You may free the
 * mask, request and options as soon as pidcomm_irun returns.
 *
 * Later operations on the same set queue behind the call in FIFO order: launches, transfers and dpu_sync of the SDK, and collectives on any
 * hypercube of the set. A set therefore runs one collective at a time, and a second call may wait for the first before it returns. To gain
 * time, let the host or other sets work during the call. A non-blocking call also has to wake a thread of every rank: use it for
 * collectives that take longer than that.
 *
 * In two cases the collective is already complete when pidcomm_irun returns. The first case is `conventional` and techniques whose PEs
 * reorder blocks, because they need the SDK or the PEs during the call. The second case is real DIMMs, because the queues of the SDK do not
 * block operations of other threads. On dpuemu, dpu_free returns DPU_ERR_MRAM_BUSY if a call on the set is still running. A launch that
 * another thread starts at the same moment as a call (blocking or not) may also return DPU_ERR_MRAM_BUSY. In a dpu_callback of the set, do
 * not wait for calls, and do not use hypercubes that other threads use. After fork, the child process cannot wait for calls of its parent.
 *
 * Errors: those of pidcomm_run, ERR_ARGUMENT (pending is null). Any thread may wait for a call, but only one thread at a time. */
PIDCOMM_API int pidcomm_irun(pidcomm_hypercube *cube, const pidcomm_request *request, const pidcomm_options *options,
                             pidcomm_pending **pending);

/* Waits for the end of a call, releases the call and stores NULL in *pending. Returns the status of the call. If `trace` is not NULL, it
 * receives the report. If *pending is already NULL, the function returns PIDCOMM_OK at once. Errors: those of the call, ERR_ARGUMENT
 * (pending is null). */
PIDCOMM_API int pidcomm_wait(pidcomm_pending **pending, pidcomm_trace *trace);

/* If the call has ended, stores 1 in *is_done and continues like pidcomm_wait; otherwise it stores 0 and does not wait. Errors: those of
 * pidcomm_wait. */
PIDCOMM_API int pidcomm_test(pidcomm_pending **pending, int *is_done, pidcomm_trace *trace);

/* Writes as JSON the plan that pidcomm_run would carry out for a request on PEs arranged as axis_len. The function does not need a device.
 * If `expand` is not 0, the JSON also lists the steps (except for the general path and `conventional`). The function writes at most
 * `capacity` bytes to `json`, including the final 0; `json` may be NULL if capacity is 0. It stores the full length, without the final 0,
 * in *length. Errors: those of the request (it does not need a host buffer), ERR_SHAPE, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_plan_json(uint32_t axes, const uint32_t *axis_len, const pidcomm_request *request, const pidcomm_options *options,
                                  int expand, char *json, size_t capacity, size_t *length);

/* Measures the streaming limit: the time of a plain pass over the same amount of memory, as a comparison for a collective. For every PE the
 * pass loads `bytes_read` bytes at src and stores `bytes_written` bytes at dst, line by line, in the order `copy_order` (a
 * pidcomm_copy_order). Threads, ISA and coherence policy are those of a collective with these options. If both sizes are equal, the pass
 * copies; else it stores arbitrary values. The fastest order depends on the machine: try them all. The pass uses the PEs in complete
 * entangled groups, and overwrites their destination windows. *seconds receives the time of one pass, and *bytes_moved the number of bytes
 * read and written. Errors: ERR_WINDOW, ERR_OPTION, ERR_SET, ERR_DEVICE, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_stream_limit(pidcomm_hypercube *cube, int copy_order, size_t bytes_read, size_t bytes_written, size_t src,
                                     size_t dst, const pidcomm_options *options, double *seconds, uint64_t *bytes_moved);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_PIDCOMM_H */
