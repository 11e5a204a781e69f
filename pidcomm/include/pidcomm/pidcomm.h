/* pidcomm.h: collective communication between the processing elements (PEs) of processing-in-DIMM
 * machines. One file, so that programs with collectives include one header.
 *
 * Vocabulary. A PE is a DPU and its 64 MiB bank of MRAM. The PEs of a DPU set are arranged as a
 * hypercube of n axes; between consecutive PE numbers, the coordinate along the first axis ("x")
 * varies fastest. An axis mask such as "010" has one character per axis and selects the axes along
 * which PEs communicate. The PEs that agree in all unselected coordinates form a group, and one
 * call runs the collective in all groups of the hypercube at once. N is the number of PEs in a
 * group. The member index of a PE is its index in its group: members are numbered by their
 * coordinates along the selected axes, of which the first changes fastest. If a mask selects no
 * axis, N is 1.
 *
 * Sizes. `bytes` is a number of bytes per PE. For alltoall, reduce_scatter, allreduce, reduce and
 * gather, `bytes` is the size of each PE's input. For allgather, scatter and broadcast, `bytes` is
 * the size of each PE's output. If the table below says "N blocks", a block has bytes / N bytes,
 * else a block has `bytes` bytes. The block size must be a multiple of 8 bytes. A call with 0 bytes
 * is valid and does nothing.
 *
 *   collective       in MRAM     out MRAM    result
 *   alltoall         bytes       bytes       block q of member p -> block p of member q (N blocks)
 *   reduce_scatter   bytes       bytes / N   member q: block q, reduced over all members (N blocks)
 *   allreduce        bytes       bytes       every member: the element-wise reduction
 *   allgather        bytes / N   bytes       every member: all contributions in order (N blocks)
 *   scatter          host        bytes       member q: part q of its group's row
 *   gather           bytes       host        inverse of scatter
 *   reduce           bytes       host        row of the group: the element-wise reduction
 *   broadcast        host        bytes       every member: the group's row
 *
 * The host row of scatter and gather has N * bytes bytes, of reduce and broadcast `bytes` bytes.
 *
 * Host buffers are contiguous. A host buffer has one row per group. The rows are in the order of
 * the coordinates along the unselected axes, with the first unselected axis fastest.
 *
 * Windows. `src` and `dst` name the start of a window by an MRAM offset, a number of bytes from the
 * MRAM heap base; the offset must be a multiple of 8. pidcomm_symbol_window returns a value that
 * names a variable of the loaded program instead, and <pidcomm/buffer.h> allocates windows. The
 * heap base is the symbol __sys_used_mram_end of the loaded program, or 0 if no program is loaded.
 * If src == dst, the call works in place: allgather then expects each PE's contribution at the
 * start of the PE's window, and reduce_scatter replaces block 0 of each window by the result. If
 * the source window and the destination window overlap but src != dst, the call returns ERR_WINDOW.
 *
 * Errors. A function that can fail returns a status, and makes all its checks before the first byte
 * moves. pidcomm_last_error() returns a sentence that names the offending values and the violated
 * rule. The library does not print. Calls on hypercubes that share a rank are serialised, because
 * some techniques load PE programs; other calls run in parallel.
 *
 * Source: the hypercube model and the calls are from the PID-Comm paper (ISCA 2024), sections IV
 * and VI. The `tile` technique is new in this library. */
#ifndef PIDCOMM_PIDCOMM_H
#define PIDCOMM_PIDCOMM_H

#ifdef PIDCOMM_ARTIFACT_PIDCOMM_H
#error "include <pidcomm.h> (of the published artifact) or <pidcomm/pidcomm.h>, not both"
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
/* PIDCOMM_TECHNIQUE_AUTO is the technique with the lowest predicted time (model.h), but never
 * `baseline`, `ring` or `tree`, and no technique except `tile` that copies through more than 64 MiB
 * of host memory. If the predictions leave open whether `tile` or `conventional` is faster, similar
 * calls run alternately as `tile` and as `conventional`, 6 times each at most (calls of several
 * threads at the same time: more); later ones run as the technique with the shortest call. Similar
 * calls differ only in windows, host buffer and its stride, less than a quarter of `bytes`, and, if
 * the call does not reduce, the type. Calls of batches do not count, and after pidcomm_use_machine
 * has set a machine, no call counts. The file that the environment variable PIDCOMM_CHOICES names
 * (empty: no file), or else the file `choices` beside the tuning file (tuning.h), keeps the
 * results; remove it to time calls again.
 *
 * AUTO is `tile` in reductions of floats or with an operator of the program, whose results depend
 * on the technique; in pidcomm_sendrecv; and in non-blocking calls, beside which a program may use
 * dpu_prepare_xfer. AUTO considers techniques that REPLACE THE LOADED PROGRAM only if
 * scratch_offset is valid and not 0. PIDCOMM_TECHNIQUE_DEFAULT is AUTO without scratch_offset. The
 * trace reports which technique ran. */
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
typedef enum pidcomm_coherence {
  PIDCOMM_COHERENCE_DEFAULT = 0,
  PIDCOMM_COHERENCES(PIDCOMM_ROW)
} pidcomm_coherence;
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

/* A DPU set arranged as a hypercube. A hypercube borrows its set: destroy the hypercube before
 * dpu_free frees the set. (The emulator detects the use of a freed set; with the SDK, the use of a
 * freed set is undefined behaviour.) */
typedef struct pidcomm_hypercube pidcomm_hypercube;

/* A non-blocking call. The object exists from pidcomm_irun until pidcomm_wait, or until
 * pidcomm_test reports the end of the call. */
typedef struct pidcomm_pending pidcomm_pending;

/* Each struct begins with its size in bytes. Initialise the struct with PIDCOMM_*_INITIALIZER in C,
 * or with {} in C++, to set the size. Later versions of the library may append fields of 8 bytes to
 * options, request and trace. The library reads and writes only fields within the size that the
 * program sets. The library does not change trace fields that it does not know. Calls return
 * ERR_ARGUMENT if the size of a struct is 0 or smaller than in version 0.1, or if options or
 * request have a nonzero field that this library does not know. */
#ifdef __cplusplus
#define PIDCOMM_SIZE(type) size_t size = sizeof(type)
#define PIDCOMM_APPENDED(type, name) type name = 0
#define PIDCOMM_SIZE_OF(type) \
  {                           \
  }
#else
#define PIDCOMM_SIZE(type) size_t size
#define PIDCOMM_APPENDED(type, name) type name
#define PIDCOMM_SIZE_OF(type) {.size = sizeof(type)}
#endif

/* Options choose how the library carries out a collective; in every field, 0 means the default.
 * Results do not depend on the options, with one exception: different techniques may add or
 * multiply floating-point numbers in different orders. `conventional`, `baseline` and `pr` use
 * dpu_push_xfer and dpu_broadcast_to; during these transfers, the SDK's own threads and cache
 * flushes replace the options `threads` and `coherence`. The SDK keeps one prepared buffer per DPU,
 * so these techniques and the other pr techniques discard the buffers that the caller has prepared
 * for DPUs of the set. AUTO, the default, may choose such a technique: call dpu_prepare_xfer after
 * the collective, not before. `baseline` is the baseline of the PID-Comm paper (section VIII-A): it
 * is as `conventional`, but scatter and gather pass through the library's buffer, and the host
 * combines with the instruction set `scalar` if the library has it. `pr`, `pr+im` and `pr+im+cm`
 * use the first one, two or three steps of the PID-Comm paper (section V). If a step does not apply
 * to a collective (table II of the paper), these techniques omit the step; if no step of the
 * technique applies, the call runs as `conventional`. These techniques need a shape with a lane
 * split (docs/collectives.md). If PEs of a group share an entangled group, PEs reorder blocks in
 * alltoall, reduce_scatter, allreduce, allgather and reduce. A call whose PEs reorder blocks
 * REPLACES THE LOADED PROGRAM: load your program again before you launch it. Until you load your
 * program again, a launch ends with DPU_ERR_DPU_FAULT. The replacement of the program does not
 * change the contents of MRAM or the heap base, and transfers to MRAM still work. If PEs reorder
 * blocks in allreduce or reduce, `bytes` must be divisible by 8 times the number of PEs that a
 * group and an entangled group share. `ring` and `tree` run only allreduce. They need the same
 * shapes as the pr techniques, and exist for comparison (section VIII-H of the PID-Comm paper).
 * Both send data from one group member to another in many passes over the lines. `ring` has the
 * same requirements as pr+im+cm; `tree` does not need a PE program or PE scratch. If the host runs
 * out of memory between the steps of a technique, the error sentence says that the content of the
 * destination window is undefined. */
typedef struct pidcomm_options {
  PIDCOMM_SIZE(struct pidcomm_options);
  int technique; /* pidcomm_technique; default: AUTO without scratch_offset */
  int isa;       /* pidcomm_isa; default: the best instruction set that this machine can run */
  int threads;   /* host threads, 1 to 1024; default: pidcomm_default_threads; small calls: 1 */
  int coherence; /* pidcomm_coherence; default: `none` on emulated DIMMs, `hardware` on real DIMMs,
                    where `none` is an error */
  size_t scratch_offset; /* offset of the PE scratch from the MRAM heap base, or
                            pidcomm_buffer_window. If PEs reorder blocks
                            before the host pass, each PE writes as many bytes to its scratch as its
                            input has; scratch offset 0 is then ERR_WINDOW, unless `bytes` is 0.
                            Calls without this reordering ignore scratch_offset */
} pidcomm_options;
#define PIDCOMM_OPTIONS_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_options)

/* PIDCOMM_MRAM_WINDOW + b is the window that begins at byte b of MRAM, wherever the heap begins. */
#define PIDCOMM_MRAM_WINDOW (1ull << 63)

/* A collective and its arguments. `host` is the input buffer of scatter and broadcast, and the
 * output buffer of gather and reduce. The library ignores fields that a collective does not use. */
typedef struct pidcomm_request {
  PIDCOMM_SIZE(struct pidcomm_request);
  int collective;   /* pidcomm_collective */
  const char *mask; /* axis mask */
  size_t bytes;     /* number of bytes per PE; see "Sizes" above */
  size_t src, dst;  /* windows of source and destination: MRAM offsets from the heap base, or values
                       of pidcomm_symbol_window or pidcomm_buffer_window */
  void *host;
  size_t host_bytes; /* size of the host buffer: exactly the number of groups times the bytes of a
                        host row; with host_stride, the size from the first byte of the first row to
                        the last byte of the last row */
  int type;          /* pidcomm_type */
  int op;            /* pidcomm_op */
  PIDCOMM_APPENDED(size_t, host_stride); /* bytes from a host row to the next, a multiple of 8 and
                                            at least the bytes of a row; 0: rows are contiguous */
  PIDCOMM_APPENDED(
      size_t, host_transposes); /* 1: gather with `tile` takes the bytes of a PE as N blocks, and a
                                   host row has block 0 of all members, then block 1 of all members,
                                   ...; a scatter of such rows completes an alltoall */
  PIDCOMM_APPENDED(const struct pidcomm_operator *,
                   operation); /* <pidcomm/operators.h>: an operator of the program */
} pidcomm_request;
#define PIDCOMM_REQUEST_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_request)

#define PIDCOMM_ROW(ctype, name, ...) ctype name;
/* The trace, which reports the work of a call. The struct has a field for each row of
 * PIDCOMM_TRACE_FIELDS; tables.h states the meaning of each field. */
typedef struct pidcomm_trace {
  PIDCOMM_SIZE(struct pidcomm_trace);
  PIDCOMM_TRACE_FIELDS(PIDCOMM_ROW)
} pidcomm_trace;
#undef PIDCOMM_ROW
#define PIDCOMM_TRACE_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_trace)

/* If the call fails, prints the error sentence of the call to stderr and ends the process. Use this
 * macro in programs, not in libraries. */
#define PIDCOMM_CHECK(call)                                                                    \
  do {                                                                                         \
    const int pidcomm_check_status = (call);                                                   \
    if (pidcomm_check_status != PIDCOMM_OK) {                                                  \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__,                                   \
              pidcomm_name(PIDCOMM_TABLE_STATUS, pidcomm_check_status), pidcomm_last_error()); \
      exit(EXIT_FAILURE);                                                                      \
    }                                                                                          \
  } while (0)

/* Returns the library version as "major.minor.patch". */
PIDCOMM_API const char *pidcomm_version(void);

/* Returns the error sentence of the last library call on this thread, or "" if this call succeeded.
 * The string is valid until the next library call on this thread. */
PIDCOMM_API const char *pidcomm_last_error(void);

/* Returns the name that a table gives to a code, such as "ERR_SIZE", "alltoall", "int32", "sum",
 * "tile", "avx512bw", "hardware" or "banks4", or NULL if the table or the code is unknown. */
PIDCOMM_API const char *pidcomm_name(pidcomm_table table, int code);

/* Returns 1 if this machine can run the instruction set, else 0. If the code of the instruction set
 * is unknown, returns 0. */
PIDCOMM_API int pidcomm_isa_available(int isa);

/* Returns the default of the option threads. Small calls use 1 instead. The default is the first
 * number of OMP_NUM_THREADS (4 for "4,2"), but at most 1024. If OMP_NUM_THREADS is not set or
 * empty, or if its first item is not a whole number of at least 1, it is the number of CPUs that
 * the caller may use. If is_ignored is not NULL, stores in *is_ignored 1 for an OMP_NUM_THREADS
 * that is neither empty nor valid, else 0. The limit of small calls: docs/performance.md,
 * "Threads". */
PIDCOMM_API int pidcomm_default_threads(int *is_ignored);

/* A PE that a hypercube can use: its DPU as a set for dpu_prepare_xfer, the index of its rank in
 * the order of the set's ranks, its chip (0 to 7, also its lane) and its bank (0 to 7). */
typedef struct pidcomm_usable_pe {
  struct dpu_set_t dpu;
  uint32_t rank, chip, bank;
} pidcomm_usable_pe;

/* Stores in *count the number of PEs of the largest hypercube of a set, and in `pes` the first
 * `capacity` of these PEs in the order of their PE numbers, or all if there are fewer. If capacity
 * is 0, `pes` may be NULL. The PEs of every hypercube are consecutive PEs of these. If no hypercube
 * is possible, *count is 0. The call does not wait for running PEs, and does not access MRAM.
 * Errors: ERR_SET, ERR_ARGUMENT (a pointer is null), ERR_DEVICE, ERR_MEMORY; after an error, *count
 * is unchanged. */
PIDCOMM_API int pidcomm_usable_pes(struct dpu_set_t set, pidcomm_usable_pe *pes, uint32_t capacity,
                                   uint32_t *count);

/* Stores 1 in *is_replaced if a collective whose PEs reorder blocks has replaced the program of a
 * PE of the set (see pidcomm_options), else 0. Errors: ERR_SET, ERR_ARGUMENT (is_replaced is null),
 * ERR_DEVICE. */
PIDCOMM_API int pidcomm_program_replaced(struct dpu_set_t set, int *is_replaced);

/* Add this to `axes` of pidcomm_hypercube_create. */
#define PIDCOMM_FOREACH_ORDER 0x80000000u

/* Arranges the first product(axis_len) PEs of `set` as a hypercube and stores the hypercube in
 * *cube. pidcomm_hypercube_create_at arranges the PEs from PE `first` on, a multiple of 8: PE p of
 * its hypercube, in calls and error sentences, is PE first + p of the set. PEs of the set are
 * numbered p = 8 * e + lane. An entangled group is the 8 PEs of one rank that have the same bank
 * number. The lane of a PE is its chip number. The index e counts the complete entangled groups in
 * the order of the set's ranks, then in the order of banks; ranks with a disabled PE come after all
 * others. This is NOT the order of DPU_FOREACH (chip * 8 + bank): use PIDCOMM_FOREACH_PE, or add
 * PIDCOMM_FOREACH_ORDER to `axes`. The hypercube leaves out dpu_get_nr_dpus - pidcomm_pes PEs of
 * the set, among them all entangled groups with a disabled PE. Exception: after all complete
 * groups, the hypercube may use the first lanes of one more group: the first of those that have the
 * most enabled lanes from lane 0 on. This order does not depend on the hypercube.
 *
 * With PIDCOMM_FOREACH_ORDER, the hypercube has the same PEs, but numbers them as DPU_FOREACH does:
 * the bank varies fastest, then the chip, then the rank. No PE of the set before the end of the
 * hypercube may be missing. `first` and the product of all lengths are multiples of 64; the product
 * of the lengths up to each axis is 1, 2, 4, 8, 16, 32 or a multiple of 64. If a mask selects banks
 * and chips, techniques whose PEs reorder blocks serve only allreduce and reduce. `tile` adds
 * floats bank by bank, then chip by chip, not in the order of members.
 *
 * On real DIMMs the call also finds the mapped memory of every rank of the set on which no
 * hypercube exists yet. To find this memory, the call waits for running PEs and earlier
 * asynchronous work. Then the call writes a few words of each PE's MRAM and restores these words.
 * Do not launch PEs of the set during the call. The error sentence of ERR_DEVICE explains why the
 * library cannot use a rank. The sentence names PEs in fault and MRAM words that could not be
 * restored (docs/hardware.md). Errors: ERR_SHAPE (there is no axis, there are more than 16 axes, an
 * axis length is 0, the hypercube ends after the last of pidcomm_usable_pes, or it cannot have
 * PIDCOMM_FOREACH_ORDER), ERR_SET, ERR_ARGUMENT (cube or axis_len is null, 8 or 64 does not divide
 * first), ERR_DEVICE, ERR_MEMORY. */
PIDCOMM_API int pidcomm_hypercube_create(struct dpu_set_t set, uint32_t axes,
                                         const uint32_t *axis_len, pidcomm_hypercube **cube);
PIDCOMM_API int pidcomm_hypercube_create_at(struct dpu_set_t set, uint32_t first, uint32_t axes,
                                            const uint32_t *axis_len, pidcomm_hypercube **cube);

/* Releases the hypercube, but not its DPU set. `cube` may be NULL. Errors: ERR_BUSY if the program
 * has not waited for a non-blocking call on the hypercube. After ERR_BUSY, the hypercube continues
 * to exist. */
PIDCOMM_API int pidcomm_hypercube_destroy(pidcomm_hypercube *cube);

/* Returns the number of PEs of the hypercube, or 0 if cube is NULL. */
PIDCOMM_API uint32_t pidcomm_pes(const pidcomm_hypercube *cube);

/* Returns a DPU set that contains only PE `pe`. If `pe` is out of range or cube is NULL, returns an
 * empty set (kind DPU_SET_RANKS without ranks). */
PIDCOMM_API struct dpu_set_t pidcomm_pe_set(const pidcomm_hypercube *cube, uint32_t pe);

/* Loops over the PEs in the order of their PE numbers. In each iteration, `pe` (uint32_t) is the PE
 * number, and `dpu` (struct dpu_set_t) is the PE's set for dpu_prepare_xfer. */
#define PIDCOMM_FOREACH_PE(cube, dpu, pe) \
  for ((pe) = 0; (pe) < pidcomm_pes(cube) && ((dpu) = pidcomm_pe_set((cube), (pe)), 1); ++(pe))

/* Stores the location of PE `pe`: the index of its rank in the order of the set's ranks, its chip
 * (0 to 7, also its lane) and its bank (0 to 7). Errors: ERR_ARGUMENT (pe is out of range, a
 * pointer is null). */
PIDCOMM_API int pidcomm_pe_location(const pidcomm_hypercube *cube, uint32_t pe, uint32_t *rank,
                                    uint32_t *chip, uint32_t *bank);

/* Stores the coordinates of PE `pe`, one coordinate per axis. Errors: ERR_ARGUMENT (pe is out of
 * range, a pointer is null). */
PIDCOMM_API int pidcomm_coords(const pidcomm_hypercube *cube, uint32_t pe, uint32_t *coords);

/* pidcomm_group_of stores the number of the group of PE `pe` under an axis mask; this number is
 * also the index of the group's row in host buffers. pidcomm_member_of stores the member index of
 * PE `pe` under an axis mask. Errors: ERR_MASK, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_group_of(const pidcomm_hypercube *cube, const char *mask, uint32_t pe,
                                 uint32_t *group);
PIDCOMM_API int pidcomm_member_of(const pidcomm_hypercube *cube, const char *mask, uint32_t pe,
                                  uint32_t *member);

/* Stores the number of groups and the number of PEs per group (N) under an axis mask. Errors:
 * ERR_MASK, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_groups(const pidcomm_hypercube *cube, const char *mask, uint32_t *groups,
                               uint32_t *group_pes);

/* Write or read `bytes` bytes at MRAM offset `offset` of every PE. The data of PE p start at byte p
 * * bytes of `host`. The errors of pidcomm_write are those of pidcomm_scatter. The errors of
 * pidcomm_read are those of pidcomm_gather. */
PIDCOMM_API int pidcomm_write(pidcomm_hypercube *cube, size_t offset, size_t bytes,
                              const void *host);
PIDCOMM_API int pidcomm_read(pidcomm_hypercube *cube, size_t offset, size_t bytes, void *host);

#define PIDCOMM_PARAMETERS_011 const char *mask, size_t bytes, size_t src, size_t dst, int type
#define PIDCOMM_PARAMETERS_111 \
  const char *mask, size_t bytes, size_t src, size_t dst, int type, int op
#define PIDCOMM_PARAMETERS_001 \
  const char *mask, size_t bytes, const void *host, size_t host_bytes, size_t dst, int type
#define PIDCOMM_PARAMETERS_010 \
  const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes, int type
#define PIDCOMM_PARAMETERS_110 \
  const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes, int type, int op
#define PIDCOMM_ARGUMENTS_011 mask, bytes, src, dst, type
#define PIDCOMM_ARGUMENTS_111 mask, bytes, src, dst, type, op
#define PIDCOMM_ARGUMENTS_001 mask, bytes, host, host_bytes, dst, type
#define PIDCOMM_ARGUMENTS_010 mask, bytes, src, host, host_bytes, type
#define PIDCOMM_ARGUMENTS_110 mask, bytes, src, host, host_bytes, type, op
#define PIDCOMM_ROW(ENUM, code, name, op, before, after, ...) \
  PIDCOMM_API int pidcomm_##name(pidcomm_hypercube *cube, PIDCOMM_PARAMETERS_##op##before##after);
/* The collectives with default options. There is a function for each row of PIDCOMM_COLLECTIVES
 * (tables.h); the columns of this table decide which parameters the function has:
 *
 *   int pidcomm_alltoall(cube, mask, bytes, src, dst, type)
 *   int pidcomm_allreduce(cube, mask, bytes, src, dst, type, op)
 *   int pidcomm_scatter(cube, mask, bytes, host, host_bytes, dst, type)
 *   int pidcomm_gather(cube, mask, bytes, src, host, host_bytes, type)
 *   int pidcomm_reduce(cube, mask, bytes, src, host, host_bytes, type, op)
 *
 * If the input and output are in MRAM, the function has src and dst. If the input or the output is
 * in host rows, host and host_bytes replace src or dst. Reductions have an operator.
 *
 * `type` is a pidcomm_type; a size such as sizeof(int) is ERR_TYPE. <pidcomm/isca24.h> has the
 * calls as the PID-Comm paper prints them; in these calls, `type` may be a word size. A collective
 * waits for earlier asynchronous work of the whole set. A collective reports these errors before
 * any byte moves: ERR_MASK, ERR_SIZE (the block size is not a multiple of 8), ERR_WINDOW,
 * ERR_HOST_BUFFER, ERR_TYPE, ERR_OP, ERR_OPTION, ERR_SET, ERR_ARGUMENT, ERR_MEMORY (with the audit
 * ISA also after bytes have moved). A collective reports ERR_DEVICE if a PE of the set is in fault,
 * or if PEs have different heap bases. For a PE in fault, the error sentence names the rank, chip,
 * bank and PE number. */
PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/* Runs any collective. If `options` is NULL, the call uses the default options. If `trace` is not
 * NULL, the call stores its trace in *trace. */
PIDCOMM_API int pidcomm_run(pidcomm_hypercube *cube, const pidcomm_request *request,
                            const pidcomm_options *options, pidcomm_trace *trace);

/* Stores in *window the window of `bytes` bytes at `offset` (in bytes) of the MRAM variable `name`
 * of the loaded program, for `src` or `dst` of calls on this hypercube. Waits for earlier work of
 * the set. Loading another program moves variables: get the window again. Errors: ERR_ARGUMENT (a
 * pointer is null; the program has no such variable, or has it outside MRAM), ERR_WINDOW (the
 * window passes the end of the variable, or does not begin at a multiple of 8), ERR_SET, ERR_DEVICE
 * (no program is loaded, the variable has different places on PEs, or a PE is in fault). */
PIDCOMM_API int pidcomm_symbol_window(pidcomm_hypercube *cube, const char *name, size_t offset,
                                      size_t bytes, size_t *window);

/* Writes the place of each PE in the hypercube to variables of the loaded program; call it after
 * each dpu_load. Each variable is a uint32_t in WRAM (__host); the program declares those that it
 * needs: pidcomm_pe (the PE number in the hypercube); for an axis such as x, pidcomm_coord_x and
 * pidcomm_length_x; for a mask such as 10 of at most 8 axes, pidcomm_group_10 and pidcomm_member_10
 * (see pidcomm_group_of and pidcomm_member_of). axis_names has a name for each axis; if NULL, the
 * names are PIDCOMM_AXIS_NAMES. PEs outside the hypercube keep their values. Waits for earlier work
 * of the set. Errors, after which no variable has changed: ERR_ARGUMENT (a pointer is null; a
 * variable has not 4 bytes, or is not in WRAM), ERR_SET, ERR_DEVICE (no program is loaded, a
 * collective has replaced it, a variable has different places on PEs, or a PE is in fault). */
PIDCOMM_API int pidcomm_fill_variables(pidcomm_hypercube *cube, const char *const *axis_names);

/* Checks a request without running it: returns the error that pidcomm_run would return before any
 * byte moves. If `host` is NULL and host_bytes is 0, the host buffer is not checked.
 * pidcomm_validate does not wait for earlier asynchronous work, so it reports only faults of work
 * that has ended. pidcomm_validate does not allocate buffers, so a later pidcomm_run may still
 * return ERR_MEMORY. The next pidcomm_run of the same request reuses the plan that pidcomm_validate
 * made. */
PIDCOMM_API int pidcomm_validate(pidcomm_hypercube *cube, const pidcomm_request *request,
                                 const pidcomm_options *options);

/* Non-blocking collectives. pidcomm_irun works like pidcomm_run, but may return before the bytes
 * have moved; pass *pending to pidcomm_wait or pidcomm_test. The checks are complete when
 * pidcomm_irun returns; if pidcomm_irun fails, it stores NULL in *pending. Until the program has
 * waited for the call, the library owns the host buffer of the call and its windows in MRAM. Until
 * then, do not write to this buffer or these windows, and do not read the output. You may free the
 * mask, request and options as soon as pidcomm_irun returns.
 *
 * Calls run in the order in which they start: later collectives on any hypercube of the set wait
 * for the non-blocking call. A set therefore runs one collective at a time. pidcomm_irun itself
 * does not wait for earlier asynchronous work of the set, such as a launch of PEs; the collective
 * begins after this work. If PEs are in fault, if earlier work has moved the heap, or if host
 * memory is short when the collective begins, pidcomm_wait returns the error, and the call has
 * changed nothing. To gain time, let the host or other DPU sets work during the call. A
 * non-blocking call wakes a thread; use it for collectives that take longer than that.
 *
 * On dpuemu, operations of the SDK on the set (launches, transfers, dpu_sync, dpu_free) queue
 * behind the non-blocking call too, and pidcomm_irun waits for blocking calls of other threads. On
 * real DIMMs, operations of the SDK do not wait: call pidcomm_sync or pidcomm_wait before each
 * operation of the SDK on the set, also before dpu_load and dpu_free.
 *
 * If one thread starts a PE launch while another thread starts a blocking or non-blocking call on
 * the set, the launch may also return DPU_ERR_MRAM_BUSY. In a dpu_callback of the set, do not wait
 * for non-blocking calls. While a non-blocking call on the ranks has not ended, do not run a
 * blocking collective on them in the callback: each would wait for the other. Do not use hypercubes
 * that share a rank with hypercubes of other threads. After fork, the child process must not use a
 * set on which a non-blocking call runs. On dpuemu, a call may still run for a moment after
 * pidcomm_wait, so call dpu_sync before fork.
 *
 * Errors: those of pidcomm_run, ERR_ARGUMENT (pending is null). Any thread may wait for a
 * non-blocking call, but only one thread at a time. */
PIDCOMM_API int pidcomm_irun(pidcomm_hypercube *cube, const pidcomm_request *request,
                             const pidcomm_options *options, pidcomm_pending **pending);

/* Waits for the end of a non-blocking call, releases the call and stores NULL in *pending. Returns
 * the status of the call. If `trace` is not NULL, pidcomm_wait stores the call's trace in *trace.
 * If *pending is already NULL, pidcomm_wait returns PIDCOMM_OK at once. Errors: those of the
 * non-blocking call, ERR_ARGUMENT (pending is null), ERR_BUSY (another process started the call
 * before fork; the call is not released). */
PIDCOMM_API int pidcomm_wait(pidcomm_pending **pending, pidcomm_trace *trace);

/* If the non-blocking call has ended, stores 1 in *is_done and does the same as pidcomm_wait. If
 * the call has not ended, stores 0 in *is_done and does not wait. Errors: those of pidcomm_wait. */
PIDCOMM_API int pidcomm_test(pidcomm_pending **pending, int *is_done, pidcomm_trace *trace);

/* Waits until all earlier calls on the ranks of the hypercube have ended, also those of other
 * hypercubes. Does not release calls: pass them to pidcomm_wait. pidcomm_test may report the end of
 * a call a moment later. Errors: ERR_ARGUMENT (cube is null). */
PIDCOMM_API int pidcomm_sync(pidcomm_hypercube *cube);

/* Writes as JSON the plan that pidcomm_run would carry out for a request on a hypercube with axis
 * lengths axis_len (and `axes` as for pidcomm_hypercube_create). pidcomm_plan_json does not need a
 * device. If `expand` is not 0, the JSON also lists the steps of the host pass (except over
 * the SDK). pidcomm_plan_json writes at most `capacity` bytes to `json`, including the final
 * 0 byte; `json` may be NULL if capacity is 0. pidcomm_plan_json stores the length of the complete
 * JSON in *length, in bytes and without the final 0 byte. Errors: those of pidcomm_run for the
 * request (but a missing host buffer is no error), ERR_SHAPE, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_plan_json(uint32_t axes, const uint32_t *axis_len,
                                  const pidcomm_request *request, const pidcomm_options *options,
                                  int expand, char *json, size_t capacity, size_t *length);

/* Measures the streaming limit: the time of a plain pass that moves as many bytes as a collective
 * with which you compare it. For every PE the pass loads `bytes_read` bytes at src and stores
 * `bytes_written` bytes at dst, line by line, in the order `copy_order` (a pidcomm_copy_order). The
 * pass uses the threads, ISA and coherence policy of a collective with these options. If bytes_read
 * and bytes_written are equal, the pass copies data; else it stores arbitrary values. The fastest
 * copy order depends on the machine: try all copy orders. The pass uses only PEs in complete
 * entangled groups, and overwrites the destination windows of these PEs. The function stores the
 * time of one pass in *seconds, and the sum of the bytes read and written in *bytes_moved. Errors:
 * ERR_WINDOW, ERR_OPTION, ERR_SET, ERR_DEVICE, ERR_ARGUMENT. */
PIDCOMM_API int pidcomm_stream_limit(pidcomm_hypercube *cube, int copy_order, size_t bytes_read,
                                     size_t bytes_written, size_t src, size_t dst,
                                     const pidcomm_options *options, double *seconds,
                                     uint64_t *bytes_moved);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_PIDCOMM_H */
