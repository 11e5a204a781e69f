/// dpu_error.h: the status codes of the UPMEM host API. Names, order and values match the UPMEM
/// SDK.
#ifndef DPU_ERROR_H
#define DPU_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum dpu_error_t {
  DPU_OK,
  DPU_ERR_INTERNAL,    ///< an argument is NULL, or the call is not allowed in this place (dpu_free
                       ///< inside a callback)
  DPU_ERR_SYSTEM,      ///< the operating system has no more memory or threads
  DPU_ERR_DRIVER,      ///< not used by dpuemu
  DPU_ERR_ALLOCATION,  ///< not enough free DPUs
  DPU_ERR_INVALID_DPU_SET,    ///< the DPU set is freed, invalid, or of the wrong kind for this call
  DPU_ERR_INVALID_THREAD_ID,  ///< only DPU_BOOT_THREAD starts, and no thread resumes
  DPU_ERR_INVALID_NOTIFY_ID,  ///< not used by dpuemu
  DPU_ERR_INVALID_WRAM_ACCESS,  ///< the transfer or program exceeds 64 KiB of WRAM, or the transfer
                                ///< is not a multiple of 4 bytes
  DPU_ERR_INVALID_IRAM_ACCESS,  ///< the symbol is in IRAM, which the host cannot access; or the
                                ///< program has too many instructions
  DPU_ERR_INVALID_MRAM_ACCESS,  ///< the transfer or program does not fit in 64 MiB of MRAM
  DPU_ERR_INVALID_SYMBOL_ACCESS,             ///< the transfer would pass the end of the symbol
  DPU_ERR_MRAM_BUSY,                         ///< PEs of the rank run, or a rank access is open
  DPU_ERR_TRANSFER_ALREADY_SET,              ///< not used by dpuemu
  DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER,  ///< DPU_XFER_PARALLEL is used with an MRAM symbol
  DPU_ERR_WRAM_FIFO_FULL,                    ///< a FIFO stayed full during all retries
  DPU_ERR_NO_PROGRAM_LOADED,                 ///< the call needs a loaded PE program
  DPU_ERR_DIFFERENT_DPU_PROGRAMS,   ///< the symbol's address or size differs between the PEs of the
                                    ///< set
  DPU_ERR_CORRUPTED_MEMORY,         ///< not used by dpuemu
  DPU_ERR_DPU_DISABLED,             ///< the single-DPU set names a disabled DPU
  DPU_ERR_DPU_ALREADY_RUNNING,      ///< the PEs of the rank already run
  DPU_ERR_INVALID_MEMORY_TRANSFER,  ///< the direction of the transfer is neither DPU_XFER_TO_DPU
                                    ///< nor DPU_XFER_FROM_DPU
  DPU_ERR_INVALID_LAUNCH_POLICY,    ///< the launch policy is neither DPU_SYNCHRONOUS nor
                                    ///< DPU_ASYNCHRONOUS
  DPU_ERR_DPU_FAULT,                ///< a DPU of the set is in fault
  DPU_ERR_ELF_INVALID_FILE,         ///< the file is not a PE program, or not one for this call
  DPU_ERR_ELF_NO_SUCH_FILE,         ///< the program file does not exist
  DPU_ERR_ELF_NO_SUCH_SECTION,      ///< not used by dpuemu
  DPU_ERR_TIMEOUT,                  ///< not used by dpuemu
  DPU_ERR_INVALID_PROFILE,  ///< the profile is not a list of key=value, or the machine is invalid
  DPU_ERR_UNKNOWN_SYMBOL,   ///< the program has no symbol with this name
  DPU_ERR_LOG_FORMAT,       ///< the log of machine code has an unknown format
  DPU_ERR_LOG_CONTEXT_MISSING,        ///< the loaded program does not print
  DPU_ERR_LOG_BUFFER_TOO_SMALL,       ///< the program printed more bytes than the log holds
  DPU_ERR_VPD_INVALID_FILE,           ///< not used by dpuemu
  DPU_ERR_VPD_NO_REPAIR,              ///< not used by dpuemu
  DPU_ERR_NO_THREAD_PER_RANK,         ///< not used by dpuemu
  DPU_ERR_INVALID_BUFFER_SIZE,        ///< not used by dpuemu
  DPU_ERR_NONBLOCKING_SYNC_CALLBACK,  ///< DPU_CALLBACK_NONBLOCKING is used without
                                      ///< DPU_CALLBACK_ASYNC
  DPU_ERR_TOO_MANY_TASKLETS,          ///< the program has more tasklets than the chip
  DPU_ERR_SG_TOO_MANY_BLOCKS,  ///< a DPU has more blocks than the profile's sgXferMaxBlocksPerDpu
  DPU_ERR_SG_LENGTH_MISMATCH,  ///< the blocks of a DPU do not have the length of the transfer
  DPU_ERR_SG_NOT_ACTIVATED,    ///< the profile of the set lacks sgXferEnable=true
  DPU_ERR_SG_NOT_MRAM_SYMBOL,  ///< scatter-gather transfers reach only MRAM
  DPU_ERR_ASYNC_JOBS =
      (int)(1U << 31),  ///< a bit in the SDK's status of a failed job; dpuemu does not set the bit
} dpu_error_t;

/// Position of the lowest bit of the failed job's kind, in an SDK status code that has
/// DPU_ERR_ASYNC_JOBS set.
#define DPU_ERROR_ASYNC_JOB_TYPE_SHIFT (16)

/// Returns a sentence that explains `status`; the caller must free the sentence with free(). If the
/// calling thread's last refused dpu_alloc, dpu_alloc_ranks, dpu_load* or dpuemu_configure returned
/// `status`, the sentence may name the values of this call. Returns NULL only if the host has run
/// out of memory.
char *dpu_error_to_string(dpu_error_t status);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_ERROR_H
