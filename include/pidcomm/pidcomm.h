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
 * and the rule. Nothing is ever printed. Calls on one manager are serialised; managers of different sets run in parallel.
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
/* auto: whichever is predicted to be the fastest for the request (pidcomm/model.h); the trace tells which. */
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

/* A DPU set arranged as a hypercube. It borrows the set: destroy it before dpu_free. (The emulator detects a freed set; on the SDK using
 * one is undefined.) */
typedef struct pidcomm_hypercube hypercube_manager;

/* A non-blocking call on its way, from pidcomm_irun and the calls like it until pidcomm_wait or a pidcomm_test that finds it done. */
typedef struct pidcomm_pending pidcomm_pending;

/* How a collective is carried out; zero-initialise for the defaults. Results do not depend on it (floating-point sums and products may
 * associate differently in each technique). `conventional` goes through dpu_push_xfer, which keeps one prepared buffer per DPU: buffers
 * that the caller has prepared for DPUs of the set are forgotten (also by the pr techniques), and the transfers use the threads and flushes
 * of the SDK, not those given here. `pr`, `pr+im` and `pr+im+cm` are the three steps of the PID-Comm paper, each with those before it
 * (section V, table II: what does not apply to a collective is left out; without any it is carried out as by `conventional`). They are for
 * shapes that the 8 lanes divide without a rest. Where PEs reorder blocks (alltoall, reduce_scatter, allreduce, allgather, reduce, if the
 * mask selects PEs of one entangled group) they REPLACE THE LOADED PROGRAM: load yours again before you launch it. Until then a launch ends
 * with DPU_ERR_DPU_FAULT; MRAM, its heap base and transfers to MRAM are as they were. allreduce and reduce need bytes divisible by 8 times
 * the PEs that a group has in an entangled group. `ring` and `tree` are for allreduce on the same shapes: steps from member to member, many
 * passes over the lines, to compare with (section VIII-H of the paper). For `ring` all that is said of pr+im+cm holds, too; `tree` needs
 * no PE program and no PE scratch. PIDCOMM_TECHNIQUE_AUTO: the one with the lowest predicted time, `ring` and `tree` apart; those that let
 * PEs reorder, and so REPLACE THE LOADED PROGRAM, only if scratch_offset is not 0 (and good); a non-blocking call that it carries out as
 * `conventional` ends before it returns. If the host runs out of memory between steps, the error says that the destination window is
 * undefined. */
typedef struct pidcomm_options {
  int technique;         /* pidcomm_technique; default: tile; auto: as above */
  int isa;               /* pidcomm_isa; default: the best this machine runs */
  int threads;           /* 1 to 1024 host threads; default 0: OMP_NUM_THREADS if set, else one per CPU that the caller may use */
  int coherence;         /* pidcomm_coherence; default: none on emulated DIMMs, hardware on DIMMs, where `none` is refused */
  size_t scratch_offset; /* from the MRAM heap base: where techniques with a PE program may write as much as a PE's input is long, if PEs
                            reorder before the host pass; an error if it is missing (0) then, unless bytes is 0. Unused by the others */
} pidcomm_options;

/* One collective as a value. `host` is the input row array of scatter and broadcast, the output of gather and reduce. Fields that a
 * collective does not use are ignored. */
typedef struct pidcomm_request {
  int collective;   /* pidcomm_collective */
  const char *mask; /* axis mask */
  size_t bytes;     /* per PE, see above */
  size_t src, dst;  /* MRAM offsets from the heap base */
  void *host;
  size_t host_bytes; /* size of the host buffer: exactly groups * row */
  int type;          /* pidcomm_type, or 1, 2, 4, 8 */
  int op;            /* pidcomm_op */
} pidcomm_request;

/* What a collective did. Counters of lines are filled by the audit ISA only (0 otherwise). */
typedef struct pidcomm_trace {
  int technique, isa, threads, coherence;                /* as carried out */
  double seconds_total;                                  /* the whole call */
  double seconds_plan;                                   /* checks and planning */
  double seconds_acquire;                                /* waiting for the ranks and taking ownership */
  double seconds_pass;                                   /* the host pass (conventional: the three phases below) */
  double seconds_from_pes, seconds_host, seconds_to_pes; /* conventional: transfers and host work; pr: the sweep into host memory (from),
                                                            the one back, which does the host's work on its way (to) */
  double seconds_load;                                   /* pr techniques and ring: loading the reorder program */
  double seconds_reorder;                                /* pr techniques and ring: telling the PEs what to reorder, and their runs */
  double seconds_launch;                                 /* of that, the runs, or emulating them, and reading their cycles */
  uint64_t pe_loads, pe_launches;                        /* pr techniques and ring: of the reorder program */
  uint64_t pe_cycles;                                    /* of the slowest PE, summed over launches; modelled on emulated DIMMs */
  uint64_t pe_bytes;                                     /* of the windows that PEs reordered, read and written */
  uint64_t mram_bytes_read, mram_bytes_written;          /* lines of the region that crossed the memory bus, in bytes */
  uint64_t host_bytes_read, host_bytes_written;          /* host rows, and bytes staged: conventional, pr */
  uint64_t bytes_staged;                                 /* host memory that the call used besides host rows, all threads */
  uint64_t lines_loaded, lines_stored, lines_flushed, lines_prefetched;
  uint64_t max_loads_of_a_line, max_stores_of_a_line;
  uint64_t distinct_lines_loaded, distinct_lines_stored;
  uint64_t lines_outside;   /* loads, stores, flushes or prefetches outside the request's windows */
  uint64_t loads_unflushed; /* loads of a line neither flushed nor stored since ownership was taken */
} pidcomm_trace;

/* Library version as "major.minor.patch". */
PIDCOMM_API const char *pidcomm_version(void);

/* The sentence of the last error on this thread; "" if the last call succeeded. Valid until the next call on this thread. */
PIDCOMM_API const char *pidcomm_last_error(void);

/* Names of codes as in tables.h ("alltoall", "int32", "sum", "tile", "avx512bw", "hardware", "banks4"); NULL if the code is unknown. */
PIDCOMM_API const char *pidcomm_status_name(int status);
PIDCOMM_API const char *pidcomm_collective_name(int collective);
PIDCOMM_API const char *pidcomm_type_name(int type);
PIDCOMM_API const char *pidcomm_op_name(int op);
PIDCOMM_API const char *pidcomm_technique_name(int technique);
PIDCOMM_API const char *pidcomm_isa_name(int isa);
PIDCOMM_API const char *pidcomm_coherence_name(int coherence);
PIDCOMM_API const char *pidcomm_copy_order_name(int copy_order);

/* 1 if this machine can run the instruction set, else 0 (also for unknown codes). */
PIDCOMM_API int pidcomm_isa_available(int isa);

/* Arranges the first product(axis_len) PEs of `set` as a hypercube and stores the manager in *manager.
 * PEs are numbered p = 8 * e + lane; e counts the entangled groups (the 8 PEs of equal bank number in one rank; a PE's lane is its chip
 * number) in the order of the set's ranks, then banks. This is NOT the order of DPU_FOREACH (chip * 8 + bank): see PIDCOMM_FOREACH_PE.
 * Entangled groups with a disabled PE are not used, except as the last, partial one of a shape whose PE count is no multiple of 8, which
 * needs lanes 0 to pes % 8 - 1.
 * On DIMMs this also finds the memory of every rank of the set, unless another hypercube on it lives: it waits for running PEs and earlier
 * asynchronous work, writes a few words of each PE's MRAM and restores them; launch no PE of the set meanwhile. ERR_DEVICE says why a rank
 * cannot be used, names PEs in fault, and names words that could not be restored. docs/hardware.md
 * Errors: ERR_SHAPE (no axis, more than 16 axes, a length of 0, more PEs than the whole entangled groups of the set hold), ERR_SET,
 * ERR_ARGUMENT (manager or axis_len null), ERR_DEVICE, ERR_MEMORY. */
PIDCOMM_API int pidcomm_hypercube_create(struct dpu_set_t set, uint32_t axes, const uint32_t *axis_len, hypercube_manager **manager);

/* The same in the paper's form; NULL on error (see pidcomm_last_error). */
PIDCOMM_API hypercube_manager *init_hypercube_manager(struct dpu_set_t set, uint32_t axes, const uint32_t *axis_len);

/* Releases the manager, not the set. NULL is allowed. Errors: ERR_BUSY while a non-blocking call has not been waited for; nothing is
 * released then. */
PIDCOMM_API int pidcomm_hypercube_destroy(hypercube_manager *manager);

/* Number of PEs; 0 if manager is NULL. */
PIDCOMM_API uint32_t pidcomm_pes(const hypercube_manager *manager);

/* The single-DPU set of PE `pe`; on error an empty set (kind DPU_SET_RANKS, no rank). */
PIDCOMM_API struct dpu_set_t pidcomm_pe_set(const hypercube_manager *manager, uint32_t pe);

/* for each PE in PE order: `dpu` (struct dpu_set_t) for use with dpu_prepare_xfer, `pe` (uint32_t) its number. */
#define PIDCOMM_FOREACH_PE(manager, dpu, pe) \
  for ((pe) = 0; (pe) < pidcomm_pes(manager) && ((dpu) = pidcomm_pe_set((manager), (pe)), 1); ++(pe))

/* Where PE `pe` is: the index of its rank in the order of the set's ranks, its chip (0 to 7: its lane) and its bank (0 to 7). Errors:
 * ERR_ARGUMENT (pe out of range, null). */
PIDCOMM_API int pidcomm_pe_location(const hypercube_manager *manager, uint32_t pe, uint32_t *rank, uint32_t *chip, uint32_t *bank);

/* Coordinates of PE `pe`, one per axis. Errors: ERR_ARGUMENT (pe out of range, null). */
PIDCOMM_API int pidcomm_coords(const hypercube_manager *manager, uint32_t pe, uint32_t *coords);

/* Group of PE `pe` (its row in host buffers) and member index in it, under an axis mask. Errors: ERR_MASK, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_group_of(const hypercube_manager *manager, const char *mask, uint32_t pe, uint32_t *group);
PIDCOMM_API int pidcomm_member_of(const hypercube_manager *manager, const char *mask, uint32_t pe, uint32_t *member);

/* Number of groups and PEs per group (N) under an axis mask. Errors: ERR_MASK, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_groups(const hypercube_manager *manager, const char *mask, uint32_t *groups, uint32_t *group_pes);

/* Writes / reads `bytes` bytes at `offset` of every PE; host row p (p * bytes) belongs to PE p. Errors as scatter / gather. */
PIDCOMM_API int pidcomm_write(hypercube_manager *manager, size_t offset, size_t bytes, const void *host);
PIDCOMM_API int pidcomm_read(hypercube_manager *manager, size_t offset, size_t bytes, void *host);

/* The eight collectives. `type` is a pidcomm_type; a bare 1, 2, 4 or 8 means an integer word of that many bytes and is accepted for
 * movement and for sum, prod, and, or, xor. NOTE: floats need their code (PIDCOMM_FLOAT32), sizeof(float) would add them as integers.
 * Errors, all found before any byte moves: ERR_MASK, ERR_SIZE (the block is no multiple of 8), ERR_WINDOW, ERR_HOST_BUFFER, ERR_TYPE,
 * ERR_OP, ERR_OPTION, ERR_SET, ERR_ARGUMENT, ERR_MEMORY (with the audit ISA alone, later too); ERR_DEVICE if a PE of the set is in fault
 * (the sentence names rank, lane, bank and PE) or PEs disagree about the heap base. A call waits for earlier asynchronous work of the
 * whole set. */
PIDCOMM_API int pidcomm_alltoall(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type);
PIDCOMM_API int pidcomm_reduce_scatter(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type,
                                       int op);
PIDCOMM_API int pidcomm_allreduce(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type, int op);
PIDCOMM_API int pidcomm_allgather(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type);
PIDCOMM_API int pidcomm_scatter(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes, size_t dst,
                                int type);
PIDCOMM_API int pidcomm_gather(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes,
                               int type);
PIDCOMM_API int pidcomm_reduce(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes,
                               int type, int op);
PIDCOMM_API int pidcomm_broadcast(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes,
                                  size_t dst, int type);

/* The same with options (NULL: defaults). */
PIDCOMM_API int pidcomm_alltoall_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type,
                                    const pidcomm_options *options);
PIDCOMM_API int pidcomm_reduce_scatter_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type,
                                          int op, const pidcomm_options *options);
PIDCOMM_API int pidcomm_allreduce_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type, int op,
                                     const pidcomm_options *options);
PIDCOMM_API int pidcomm_allgather_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type,
                                     const pidcomm_options *options);
PIDCOMM_API int pidcomm_scatter_ex(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes,
                                   size_t dst, int type, const pidcomm_options *options);
PIDCOMM_API int pidcomm_gather_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes,
                                  int type, const pidcomm_options *options);
PIDCOMM_API int pidcomm_reduce_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes,
                                  int type, int op, const pidcomm_options *options);
PIDCOMM_API int pidcomm_broadcast_ex(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes,
                                     size_t dst, int type, const pidcomm_options *options);

/* Any collective as a value; `trace` (may be NULL) receives what was done. */
PIDCOMM_API int pidcomm_run(hypercube_manager *manager, const pidcomm_request *request, const pidcomm_options *options,
                            pidcomm_trace *trace);

/* Non-blocking collectives: the same calls, which may return before the bytes have moved, with *pending for pidcomm_wait or pidcomm_test.
 * All checks come before the return, and a call that fails stores NULL. Until it has been waited for, the windows in MRAM and the host
 * buffer are the library's: do not write to any of them, nor read what is to be written. A mask, a request or options may go.
 *
 * What is asked of the same set meanwhile waits for the end of the call, in the order of asking: launches, transfers and dpu_sync of the
 * SDK, collectives on this and on other managers, whose windows may hold its result. So a set has one collective under way, and a second
 * call may wait for the first before it returns; overlap it with work of the host, or of other sets. A call costs a wake-up of every rank
 * more than a blocking one, so it is for passes that take longer than that. These end before they return: techniques that need the SDK or
 * the PEs on the way (conventional; those with a PE program if PEs reorder blocks), and on DIMMs every call, as the queues of the SDK do
 * not hold back what other threads ask. dpu_free of a set with a call under way is an error of dpuemu (DPU_ERR_MRAM_BUSY), and so is a
 * launch that another thread asks for at the very moment of the call, as during a blocking one. Inside a dpu_callback of the set do not
 * wait for a call, nor use a manager that other threads use. A child of fork cannot wait for the calls of its parent.
 *
 * Errors: as the blocking calls, ERR_ARGUMENT (pending null). A call may be waited for on any thread, but on one at a time. */
PIDCOMM_API int pidcomm_irun(hypercube_manager *manager, const pidcomm_request *request, const pidcomm_options *options,
                             pidcomm_pending **pending);
PIDCOMM_API int pidcomm_ialltoall(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type,
                                  pidcomm_pending **pending);
PIDCOMM_API int pidcomm_ireduce_scatter(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type,
                                        int op, pidcomm_pending **pending);
PIDCOMM_API int pidcomm_iallreduce(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type, int op,
                                   pidcomm_pending **pending);
PIDCOMM_API int pidcomm_iallgather(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type,
                                   pidcomm_pending **pending);
PIDCOMM_API int pidcomm_iscatter(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes,
                                 size_t dst, int type, pidcomm_pending **pending);
PIDCOMM_API int pidcomm_igather(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes,
                                int type, pidcomm_pending **pending);
PIDCOMM_API int pidcomm_ireduce(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes,
                                int type, int op, pidcomm_pending **pending);
PIDCOMM_API int pidcomm_ibroadcast(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes,
                                   size_t dst, int type, pidcomm_pending **pending);

/* Waits for the end of a call, releases it and stores NULL in *pending. Returns the status of the call; `trace` (may be NULL) receives what
 * was done. *pending NULL is a call that has been waited for: PIDCOMM_OK. Errors: those of the call, ERR_ARGUMENT (pending null). */
PIDCOMM_API int pidcomm_wait(pidcomm_pending **pending, pidcomm_trace *trace);

/* Stores 1 in *is_done and does what pidcomm_wait does if the call has ended, else 0, without waiting. Errors: as pidcomm_wait. */
PIDCOMM_API int pidcomm_test(pidcomm_pending **pending, int *is_done, pidcomm_trace *trace);

/* The plan of a request as JSON, without any device: what pidcomm_run would do on PEs arranged as axis_len. `expand` != 0 lists the
 * steps too (of the fast path; the general path has none to list). Writes at most `capacity` bytes including the final 0 to `json` (may be
 * NULL if capacity is 0) and the full length without it to *length. Errors: those of the request (host buffers are not needed), ERR_SHAPE,
 * ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_plan_json(uint32_t axes, const uint32_t *axis_len, const pidcomm_request *request, const pidcomm_options *options,
                                  int expand, char *json, size_t capacity, size_t *length);

/* Times the streaming limit, for comparison with a collective: every PE's window of `bytes_read` bytes at src is loaded and its window of
 * `bytes_written` bytes at dst is stored (a copy if both are equal, whatever is at hand otherwise), line by line in the order `copy_order`
 * (a pidcomm_copy_order), with the threads, ISA and coherence policy that a collective would use. Which order is the fastest depends on the
 * machine: try them all. Overwrites the destination window of the PEs in whole entangled groups. *seconds receives the time of one pass,
 * *bytes_moved the bytes read plus written. Errors: ERR_WINDOW, ERR_OPTION, ERR_SET, ERR_DEVICE, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_stream_limit(hypercube_manager *manager, int copy_order, size_t bytes_read, size_t bytes_written, size_t src,
                                     size_t dst, const pidcomm_options *options, double *seconds, uint64_t *bytes_moved);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_PIDCOMM_H */
