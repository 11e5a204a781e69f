/// dpu.h: the part of the UPMEM host API that dpuemu emulates. Names, signatures and values match
/// the UPMEM SDK 2025.1.
///
/// dpuemu has DPU sets and loops over them, transfers to MRAM and WRAM (synchronous, asynchronous,
/// broadcast), PE programs, FIFOs, callbacks and status queries. dpuemu lacks checkpoints and
/// transfers to IRAM. dpu_load takes programs of dpuemu's compiler, also called
/// dpu-upmem-dpurte-clang, and machine code of the vendor's compiler (docs/machine-code.md).
///
/// Errors of every function that takes a set: DPU_ERR_INVALID_DPU_SET if the set is invalid or its
/// allocation has been freed (even if the ranks are allocated again); DPU_ERR_SYSTEM if the host
/// runs out of memory or threads. A function makes all its checks before the first byte moves.
///
/// Threads: any number of threads may call any function at the same time. DPU sets are independent
/// of each other. If several threads write to one rank at the same time, the order of their writes
/// is undefined.
#ifndef DPU_H
#define DPU_H

#include <dpu_error.h>
#include <dpu_fifo.h>
#include <dpu_macro_utils.h>
#include <dpu_transfer_matrix.h>
#include <dpu_types.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum dpu_launch_policy_t {
  DPU_ASYNCHRONOUS,
  DPU_SYNCHRONOUS,
} dpu_launch_policy_t;

typedef enum dpu_xfer_t {
  DPU_XFER_TO_DPU,
  DPU_XFER_FROM_DPU,
} dpu_xfer_t;

typedef enum dpu_xfer_flags_t {
  DPU_XFER_DEFAULT = 0,  ///< return after the end of the transfer; forget the prepared buffers
  DPU_XFER_NO_RESET = 1 << 0,  ///< keep the prepared buffers for the next transfer
  DPU_XFER_ASYNC = 1
      << 1,  ///< return at once; the transfer runs after the earlier asynchronous work of each rank
  DPU_XFER_PARALLEL = 1 << 2,  ///< transfer while PEs run, and before queued work; for WRAM only
} dpu_xfer_flags_t;

typedef enum dpu_sg_xfer_flags_t {
  DPU_SG_XFER_DEFAULT = 0,  ///< return after the end of the transfer
  DPU_SG_XFER_ASYNC = 1
      << 1,  ///< return at once; the transfer runs after the earlier asynchronous work of each rank
  DPU_SG_XFER_DISABLE_LENGTH_CHECK = 1
      << 2,  ///< the blocks of a DPU may have fewer bytes than the transfer
} dpu_sg_xfer_flags_t;

typedef enum dpu_callback_flags_t {
  DPU_CALLBACK_DEFAULT =
      0,  ///< run once per rank, in the calling thread, before dpu_callback returns
  DPU_CALLBACK_ASYNC = 1 << 0,  ///< run as a job of each rank: after the rank's earlier jobs and
                                ///< before the rank's later jobs
  DPU_CALLBACK_NONBLOCKING = 1
      << 1,  ///< with ASYNC: later jobs of the rank do not wait for the callback
  DPU_CALLBACK_SINGLE_CALL = 1
      << 2,  ///< run once for the set, when all ranks of the set have reached this job
  DPU_CALLBACK_PARALLEL = 1 << 3,  ///< with ASYNC: the callback does not wait for running PEs
} dpu_callback_flags_t;

/// Prints the place and the sentence of an error to stderr. A function, so that a caller may have a
/// variable with the name `free`.
static inline void dpu_print_error_(const char *file, int line, const char *function,
                                    dpu_error_t error) {
  char *sentence = dpu_error_to_string(error);
  fprintf(stderr, "%s:%d(%s): DPU Error (%s)\n", file, line, function, sentence);
  free(sentence);
}

/// If `statement` is not DPU_OK, prints the source line and the error to stderr, then runs
/// `on_error`.
#define DPU_CHECK(statement, on_error)                                  \
  do {                                                                  \
    dpu_error_t dpu_check_error_ = (statement);                         \
    if (dpu_check_error_ != DPU_OK) {                                   \
      dpu_print_error_(__FILE__, __LINE__, __func__, dpu_check_error_); \
      on_error;                                                         \
    }                                                                   \
  } while (0)

#define DPU_ASSERT(statement) DPU_CHECK(statement, exit(EXIT_FAILURE))

/// Argument of dpu_alloc and dpu_alloc_ranks that requests all free DPUs or ranks.
#define DPU_ALLOCATE_ALL (UINT_MAX)

/// Takes free ranks in ascending order until these ranks have at least `nr_dpus` enabled DPUs, then
/// disables the surplus DPUs one by one. To disable a DPU, dpu_alloc prefers the bank (line) with
/// the most disabled DPUs, then the rank with the most enabled DPUs, then the last rank, bank and
/// chip.
///
/// profile: NULL or a list "key=value,key=value". sgXferEnable (true or false) and
/// sgXferMaxBlocksPerDpu (1 or more) concern dpu_push_sg_xfer. chipId must be the machine's
/// (dpu_hw_description.h). Other keys have no effect (instead of nrThreadPerPool, set
/// DPUEMU_THREADS). The contents of MRAM are undefined after allocation, as on hardware. Errors:
/// DPU_ERR_ALLOCATION if nr_dpus is 0 or larger than the number of free DPUs (then no rank is
/// allocated); DPU_ERR_INVALID_PROFILE if the profile is not such a list, or if a DPUEMU_
/// environment variable has an invalid value.
dpu_error_t dpu_alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *dpu_set);

/// Takes the first `nr_ranks` free ranks, with all their enabled DPUs. Errors: those of dpu_alloc.
dpu_error_t dpu_alloc_ranks(uint32_t nr_ranks, const char *profile, struct dpu_set_t *dpu_set);

/// Waits for the asynchronous work and running PEs of the set, then frees the ranks of the set and
/// returns the memory of the ranks to the operating system. Errors: DPU_ERR_INVALID_DPU_SET if no
/// allocation returned exactly this set; DPU_ERR_MRAM_BUSY while a rank access
/// (dpuemu_rank_acquire) of the set is open, or in a child process of fork while work of the parent
/// process is pending (the set then stays valid); DPU_ERR_INTERNAL inside a callback of the set.
dpu_error_t dpu_free(struct dpu_set_t dpu_set);

dpu_error_t dpu_get_nr_ranks(struct dpu_set_t dpu_set, uint32_t *nr_ranks);

/// Counts the enabled DPUs of the set.
dpu_error_t dpu_get_nr_dpus(struct dpu_set_t dpu_set, uint32_t *nr_dpus);

/// DPU_RANK_FOREACH(set, rank[, i]): `rank` (a struct dpu_set_t variable) becomes each rank of the
/// set in order of allocation.
#define DPU_RANK_FOREACH(set, ...) \
  _CONCAT(DPU_RANK_FOREACH_, DPU_MACRO_VARIANT(__VA_ARGS__))(set, __VA_ARGS__)
#define DPU_RANK_FOREACH_1(set, rank)                                                \
  for (struct dpu_set_rank_iterator_t rank_it_ = dpu_set_rank_iterator_from(&(set)); \
       (rank) = rank_it_.next, rank_it_.has_next; dpu_set_rank_iterator_next(&rank_it_))
#define DPU_RANK_FOREACH_2(set, rank, i)                                             \
  for (struct dpu_set_rank_iterator_t rank_it_ = dpu_set_rank_iterator_from(&(set)); \
       (i) = rank_it_.count, (rank) = rank_it_.next, rank_it_.has_next;              \
       dpu_set_rank_iterator_next(&rank_it_))

/// DPU_FOREACH(set, dpu[, i]): `dpu` (a struct dpu_set_t variable) becomes each enabled DPU of the
/// set. Ranks are in order of allocation; within a rank, DPUs are in ascending order of chip*8 +
/// bank. `i` counts enabled DPUs. Note that 8 consecutive DPUs of a complete rank are the banks of
/// one chip.
#define DPU_FOREACH(set, ...) \
  _CONCAT(DPU_FOREACH_, DPU_MACRO_VARIANT(__VA_ARGS__))(set, __VA_ARGS__)
#define DPU_FOREACH_1(set, dpu)                                                   \
  for (struct dpu_set_dpu_iterator_t dpu_it_ = dpu_set_dpu_iterator_from(&(set)); \
       (dpu) = dpu_it_.next, dpu_it_.has_next; dpu_set_dpu_iterator_next(&dpu_it_))
#define DPU_FOREACH_2(set, dpu, i)                                                \
  for (struct dpu_set_dpu_iterator_t dpu_it_ = dpu_set_dpu_iterator_from(&(set)); \
       (i) = dpu_it_.count, (dpu) = dpu_it_.next, dpu_it_.has_next;               \
       dpu_set_dpu_iterator_next(&dpu_it_))

/// State of the loops DPU_RANK_FOREACH and DPU_FOREACH. For an invalid set, has_next is false.
struct dpu_set_rank_iterator_t {
  struct dpu_set_t *set;
  uint32_t count;
  uint32_t next_idx;
  bool has_next;
  struct dpu_set_t next;
};

struct dpu_set_dpu_iterator_t {
  struct dpu_set_rank_iterator_t rank_iterator;
  uint32_t count;
  uint32_t next_idx;
  bool has_next;
  struct dpu_set_t next;
};

struct dpu_set_rank_iterator_t dpu_set_rank_iterator_from(struct dpu_set_t *set);
void dpu_set_rank_iterator_next(struct dpu_set_rank_iterator_t *iterator);
struct dpu_set_dpu_iterator_t dpu_set_dpu_iterator_from(struct dpu_set_t *set);
void dpu_set_dpu_iterator_next(struct dpu_set_dpu_iterator_t *iterator);

/// Loads the program into every PE of the set: the text, and the initial values of variables in
/// WRAM and MRAM. The log of each PE is then empty. All other bytes of MRAM and the WRAM heap keep
/// their values. The call waits for earlier asynchronous work of the set. program: if not NULL, the
/// call stores the program in *program, for use with dpu_get_symbol. The program object exists as
/// long as the process. Errors: DPU_ERR_ELF_NO_SUCH_FILE, DPU_ERR_ELF_INVALID_FILE;
/// DPU_ERR_INVALID_{WRAM,IRAM,MRAM}_ACCESS if the program does not fit in WRAM, IRAM or MRAM;
/// DPU_ERR_TOO_MANY_TASKLETS; DPU_ERR_MRAM_BUSY while PEs run; DPU_ERR_DPU_DISABLED. An error
/// leaves the PEs unchanged. Load only programs that you trust: they run as code of this process.
dpu_error_t dpu_load(struct dpu_set_t dpu_set, const char *binary_path,
                     struct dpu_program_t **program);
dpu_error_t dpu_load_from_memory(struct dpu_set_t dpu_set, uint8_t *buffer, size_t buffer_size,
                                 struct dpu_program_t **program);
dpu_error_t dpu_load_from_incbin(struct dpu_set_t dpu_set, struct dpu_incbin_t *incbin,
                                 struct dpu_program_t **program);

/// DPU_INCBIN(name, "file"): a variable `struct dpu_incbin_t name` that holds the bytes that the
/// file has when the host program is compiled.
#define DPU_INCBIN(name, file)                                                                    \
  __asm__(".pushsection .rodata\n .balign 8\n .globl dpu_incbin_" #name ", dpu_incbin_end_" #name \
          "\n dpu_incbin_" #name                                                                  \
          ":\n"                                                                                   \
          ".incbin \"" file "\"\n dpu_incbin_end_" #name ":\n .popsection\n");                    \
  extern uint8_t dpu_incbin_##name[], dpu_incbin_end_##name[];                                    \
  struct dpu_incbin_t name = {dpu_incbin_##name, 0, file};                                        \
  __attribute__((constructor)) static void dpu_incbin_measure_##name(void) {                      \
    name.size = (size_t)(dpu_incbin_end_##name - dpu_incbin_##name);                              \
  }

/// Finds a symbol of a program: a variable (its address and size), or DPU_MRAM_HEAP_POINTER_NAME
/// (the MRAM after the program's variables). If program is NULL, only the symbol
/// DPU_MRAM_HEAP_POINTER_NAME exists, and it covers all 64 MiB of MRAM from address 0x08000000. (If
/// program is NULL, the SDK returns an error; in the emulator, MRAM is usable without a PE
/// program.) Errors: DPU_ERR_UNKNOWN_SYMBOL, also if symbol_name is NULL; DPU_ERR_NO_PROGRAM_LOADED
/// if program is NULL and the symbol is not DPU_MRAM_HEAP_POINTER_NAME.
dpu_error_t dpu_get_symbol(struct dpu_program_t *program, const char *symbol_name,
                           struct dpu_symbol_t *symbol);

/// Runs the loaded program on every PE of the set; each tasklet starts at main. DPU_SYNCHRONOUS:
/// waits for earlier asynchronous work, and returns when all PEs have ended. DPU_ASYNCHRONOUS:
/// returns at once; the PEs of each rank run after the rank's earlier asynchronous work and before
/// the rank's later work (except PARALLEL work). Errors: DPU_ERR_INVALID_LAUNCH_POLICY,
/// DPU_ERR_NO_PROGRAM_LOADED, DPU_ERR_DPU_DISABLED. A DPU_SYNCHRONOUS launch also returns:
/// DPU_ERR_DPU_ALREADY_RUNNING, DPU_ERR_MRAM_BUSY while a transfer or rank access is open (then no
/// PE has run); DPU_ERR_DPU_FAULT if a PE is in fault (then all other PEs have ended;
/// dpuemu_get_fault returns the reason). For a DPU_ASYNCHRONOUS launch, dpu_sync returns the errors
/// that a DPU_SYNCHRONOUS launch also returns.
dpu_error_t dpu_launch(struct dpu_set_t dpu_set, dpu_launch_policy_t policy);

/// Stores the status of the set and does not wait. done: whether no PE of the set runs and the
/// asynchronous work of the set is finished. fault: whether a PE of the set is in fault.
dpu_error_t dpu_status(struct dpu_set_t dpu_set, bool *done, bool *fault);

/// Waits for the asynchronous work and running PEs of the set.
/// Errors: the first error of an asynchronous job since the last dpu_sync; if there is no such
/// error, DPU_ERR_DPU_FAULT if a PE of the set is in fault (until the next launch or dpu_load on
/// the PE's rank, or dpu_free).
dpu_error_t dpu_sync(struct dpu_set_t dpu_set);

/// Sets the host buffer of the next dpu_push_xfer for each DPU in the set. If buffer is NULL, the
/// transfer skips the DPUs of the set. Errors: DPU_ERR_DPU_DISABLED if the set is a single disabled
/// DPU.
dpu_error_t dpu_prepare_xfer(struct dpu_set_t dpu_set, void *buffer);

/// Moves `length` bytes between each prepared buffer and its DPU's MRAM or WRAM at symbol + offset.
/// The transfer skips DPUs without a buffer. In MRAM, the offset and the length are rounded down to
/// multiples of 8; strict mode returns an error instead. In WRAM, offset and length must be
/// multiples of 4. Errors:
/// DPU_ERR_INVALID_MEMORY_TRANSFER, DPU_ERR_INVALID_SYMBOL_ACCESS,
/// DPU_ERR_INVALID_{MRAM,WRAM,IRAM}_ACCESS, DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER,
/// DPU_ERR_DPU_DISABLED, the errors of dpu_get_symbol, DPU_ERR_DIFFERENT_DPU_PROGRAMS if the
/// symbol's address or size differs between the PEs; DPU_ERR_MRAM_BUSY while PEs run (for WRAM,
/// only without DPU_XFER_PARALLEL). An asynchronous transfer waits for running PEs instead, and
/// dpu_sync returns the errors of the transfer. After an error, the buffers stay prepared.
dpu_error_t dpu_push_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name,
                          uint32_t symbol_offset, size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_push_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer,
                                 struct dpu_symbol_t symbol, uint32_t symbol_offset, size_t length,
                                 dpu_xfer_flags_t flags);

/// Transfers elements between the prepared buffers and the queues of the PEs (dpu_fifo.h), usually
/// while the PEs run. DPU_INPUT_FIFO: appends an element to each queue; while a queue is full, the
/// call repeats. DPU_OUTPUT_FIFO: copies all elements of each queue and empties it; get_fifo_size
/// and get_fifo_elem find the elements. DPUs without a buffer do not take part. Errors:
/// DPU_ERR_WRAM_FIFO_FULL after the last retry; DPU_ERR_DPU_DISABLED; DPU_ERR_INVALID_DPU_SET for a
/// rank without the link.
dpu_error_t dpu_fifo_push_xfer(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *fifo_link,
                               dpu_xfer_flags_t flags);

/// One block of host memory in a scatter-gather transfer.
struct sg_block_info {
  uint8_t *addr;
  uint32_t length;  ///< bytes
};

/// Describes block `block_index` of the DPU with this index in the set (the order of DPU_FOREACH).
/// Returns false after the last block.
typedef bool (*get_block_func_t)(struct sg_block_info *out, uint32_t dpu_index,
                                 uint32_t block_index, void *args);

/// The function that describes the blocks, and its last argument. An asynchronous transfer copies
/// the `args_size` bytes at `args`, and calls the function when the transfer runs; if args_size is
/// 0, it passes `args` itself.
typedef struct get_block_t {
  get_block_func_t f;
  void *args;
  size_t args_size;
} get_block_t;

/// Gathers the blocks of each DPU to `length` consecutive bytes of its MRAM, or scatters these
/// bytes to the blocks. The set's profile must contain sgXferEnable=true; sgXferMaxBlocksPerDpu is
/// the largest number of blocks (default: the number of DPUs of the allocation). With
/// DPU_SG_XFER_DISABLE_LENGTH_CHECK, the bytes after the last block become 0 in MRAM, and no host
/// byte receives them. Errors: those of dpu_push_xfer; DPU_ERR_SG_NOT_ACTIVATED,
/// DPU_ERR_SG_NOT_MRAM_SYMBOL, DPU_ERR_SG_TOO_MANY_BLOCKS, DPU_ERR_SG_LENGTH_MISMATCH if the blocks
/// of a DPU do not have `length` bytes in all; DPU_ERR_INTERNAL if a block or get_block_info is
/// NULL. After these errors, no byte has moved; dpu_sync returns the errors of an asynchronous
/// transfer's blocks.
dpu_error_t dpu_push_sg_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name,
                             uint32_t symbol_offset, size_t length, get_block_t *get_block_info,
                             dpu_sg_xfer_flags_t flags);
dpu_error_t dpu_push_sg_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer,
                                    struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                    size_t length, get_block_t *get_block_info,
                                    dpu_sg_xfer_flags_t flags);

/// Copies the same `length` bytes to every DPU of the set. Errors: those of dpu_push_xfer.
dpu_error_t dpu_broadcast_to(struct dpu_set_t dpu_set, const char *symbol_name,
                             uint32_t symbol_offset, const void *src, size_t length,
                             dpu_xfer_flags_t flags);
dpu_error_t dpu_broadcast_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                                    uint32_t symbol_offset, const void *src, size_t length,
                                    dpu_xfer_flags_t flags);

/// Calls dpu_broadcast_to with DPU_XFER_DEFAULT.
dpu_error_t dpu_copy_to(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset,
                        const void *src, size_t length);
dpu_error_t dpu_copy_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                               uint32_t symbol_offset, const void *src, size_t length);

/// Copies `length` bytes from one DPU to the host. Errors: those of dpu_push_xfer, and
/// DPU_ERR_INVALID_DPU_SET if the set is not a single DPU.
dpu_error_t dpu_copy_from(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset,
                          void *dst, size_t length);
dpu_error_t dpu_copy_from_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                                 uint32_t symbol_offset, void *dst, size_t length);

/// Calls callback(rank as a set, index of the rank in the set, args) for each rank. For a set of
/// one DPU, or with DPU_CALLBACK_SINGLE_CALL, the callback is called only once, with the complete
/// set and the index UINT32_MAX. Inside a callback, functions of this API do not wait for the
/// callback's ranks: transfers run immediately and use separate prepared buffers. If a queued
/// callback launches PEs and waits for them, transfers (without DPU_XFER_PARALLEL) and launches of
/// other threads wait for the end of the callback. Errors: DPU_ERR_NONBLOCKING_SYNC_CALLBACK; the
/// first error that a synchronous callback returns. dpu_sync returns the errors of asynchronous
/// callbacks.
dpu_error_t dpu_callback(struct dpu_set_t dpu_set,
                         dpu_error_t (*callback)(struct dpu_set_t, uint32_t, void *), void *args,
                         dpu_callback_flags_t flags);

/// Writes to `stream` the output of the DPU's program since the last dpu_log_read or dpu_load.
/// Errors: DPU_ERR_INVALID_DPU_SET if the set is not a single DPU, DPU_ERR_DPU_DISABLED,
/// DPU_ERR_LOG_CONTEXT_MISSING if the DPU's program does not print, DPU_ERR_MRAM_BUSY while the
/// DPU's program runs; DPU_ERR_LOG_BUFFER_TOO_SMALL if the output was larger than the log (1 MiB,
/// or the size set by STDOUT_BUFFER_INIT): then dpu_log_read writes only the part of the output
/// that fits in the log.
dpu_error_t dpu_log_read(struct dpu_set_t set, FILE *stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_H
