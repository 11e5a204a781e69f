/// dpuemu.h: functions of the emulator beyond the UPMEM host API.
///
/// Programs that must also run on DIMMs use dpu.h only. With this header, tests, benchmarks and the Python package configure the emulated
/// machine, and libraries can access the memory of a rank as a Xeon sees it.
///
/// Every function returns a dpu_error_t. No function prints, aborts or exits (except in the strict mode described at
/// dpuemu_machine.strict).
#ifndef DPUEMU_H
#define DPUEMU_H

#include <dpu.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Geometry of one rank: 8 chips x 8 banks x 64 MiB. A line is 64 bytes of the region: one 64-bit word of each of the 8 chips of one bank.
#define DPUEMU_CHIPS_PER_RANK 8u
#define DPUEMU_BANKS_PER_CHIP 8u
#define DPUEMU_DPUS_PER_RANK 64u
#define DPUEMU_MRAM_BYTES (UINT64_C(64) << 20)
#define DPUEMU_REGION_BYTES (UINT64_C(8) << 30)
#define DPUEMU_MAX_RANKS 40u

/// The emulated machine. Fields that are 0 take their default from the environment variable in brackets, else the value in parentheses.
typedef struct dpuemu_machine {
  uint32_t ranks;              ///< number of ranks, 1 to 40 [DPUEMU_RANKS] (40)
  uint32_t channels;           ///< number of memory channels [DPUEMU_CHANNELS] (ranks / ranks_per_channel, rounded up)
  uint32_t ranks_per_channel;  ///< number of ranks on one channel [DPUEMU_RANKS_PER_CHANNEL] (4)
  uint32_t threads;            ///< host threads that move bytes and run PEs (32 at most) for all ranks [DPUEMU_THREADS] (number of CPUs)
  int hugepages;               ///< 1: transparent huge pages, 2: 4 KiB pages only [DPUEMU_HUGEPAGES=on|off] (1)
  int flush;                   ///< when transfers flush lines. 1: before and after loading, as the SDK does on hardware; 2: never;
                               ///< 3: only before loading [DPUEMU_FLUSH=on|off|once] (2)
  int strict;                  ///< 1: if the host accesses a rank that its PEs own, the process ends with a sentence that names the rank;
                               ///< and values that the hardware masks silently cause a fault of the PE. 2: off. [DPUEMU_STRICT=1|0] (2)
  uint32_t patience_seconds;   ///< a tasklet that computes this long without a runtime call is in fault [DPUEMU_PATIENCE] (10)
} dpuemu_machine_t;

/// Replaces the machine (NULL: every field 0). `disabled` (may be NULL) lists n_disabled DPUs that the machine lacks, each as
/// rank*64 + chip*8 + bank [DPUEMU_DISABLED="rank.chip.bank,..."]. Errors: DPU_ERR_ALLOCATION while any rank is allocated;
/// DPU_ERR_INVALID_PROFILE for values out of range (ranks > 40, channels*ranks_per_channel < ranks, a disabled DPU that does not exist).
dpu_error_t dpuemu_configure(const dpuemu_machine_t *machine, const uint32_t *disabled, uint32_t n_disabled);

/// Returns the current machine; all its defaults are filled in.
dpu_error_t dpuemu_get_machine(dpuemu_machine_t *machine);

/// Changes the transfer settings of the running machine: threads (0 keeps), flush (0 keeps, 1 on, 2 off, 3 once).
/// Errors: DPU_ERR_INVALID_PROFILE for values out of range.
dpu_error_t dpuemu_set_transfer(uint32_t threads, int flush);

/// Returns where byte `mram_offset` of the DPU at (chip, bank) is in the region: the exact Xeon address map of a rank.
/// Requires chip, bank < 8 and mram_offset < 64 MiB; returns UINT64_MAX otherwise.
uint64_t dpuemu_region_offset(uint32_t chip, uint32_t bank, uint64_t mram_offset);

/// The memory of one rank while the host owns its MRAM.
typedef struct dpuemu_rank_access {
  uint8_t *base;        ///< start of the region
  uint64_t size_bytes;  ///< size of the region, DPUEMU_REGION_BYTES
  int numa_node;        ///< NUMA node of the memory, -1 if unknown
  uint64_t enabled;     ///< bit 8*bank + chip is set for every enabled DPU
} dpuemu_rank_access_t;

/// Waits for earlier asynchronous work and running PEs of the rank, makes the host the owner of all its MRAM, and maps the region if
/// needed. Accesses of one rank can nest: each acquire needs a release. While an access is open, a launch returns DPU_ERR_MRAM_BUSY.
/// Errors: DPU_ERR_INVALID_DPU_SET if the rank is not allocated, DPU_ERR_DPU_FAULT if a PE of the rank is in fault, DPU_ERR_SYSTEM if
/// memory cannot be mapped.
dpu_error_t dpuemu_rank_acquire(struct dpu_rank_t *rank, dpuemu_rank_access_t *access);

/// Ends an access. The host remains the owner until the next launch. While an access is open, dpu_free returns DPU_ERR_MRAM_BUSY.
/// Errors: DPU_ERR_INVALID_DPU_SET, DPU_ERR_INTERNAL if no access of the rank is open.
dpu_error_t dpuemu_rank_release(struct dpu_rank_t *rank);

/// For tests: dpuemu_begin_run makes the PEs the owner of the rank's MRAM, as a launch does, after the rank's queued asynchronous work.
/// The PEs run until any thread calls dpuemu_end_run. Until then, transfers return DPU_ERR_MRAM_BUSY; asynchronous transfers, dpu_sync,
/// dpu_free and dpuemu_rank_acquire wait. After the end the PEs remain the owner until the host's next transfer or rank access; in strict
/// mode the rank stays protected until then. With fault = true the run ends with DPU `dpu_in_rank` (chip*8 + bank) in fault: dpu_sync and
/// dpuemu_rank_acquire on the rank then return DPU_ERR_DPU_FAULT until the next run, dpu_load or dpu_free.
/// Errors: DPU_ERR_INVALID_DPU_SET; dpuemu_begin_run: DPU_ERR_DPU_ALREADY_RUNNING, DPU_ERR_MRAM_BUSY while a transfer or rank access is
/// open; dpuemu_end_run: DPU_ERR_INTERNAL if no PE runs or dpu_in_rank is not below 64.
dpu_error_t dpuemu_begin_run(struct dpu_rank_t *rank);
dpu_error_t dpuemu_end_run(struct dpu_rank_t *rank, bool fault, uint32_t dpu_in_rank);

/// Counters of a set's last launch. DMA counts are exact; instructions and cycles are modelled (docs/emulator.md).
typedef struct dpuemu_report {
  uint64_t pes;                ///< number of PEs that ran
  uint64_t faulted_pes;        ///< number of these PEs that are in fault
  uint64_t dma_reads;          ///< DMA transfers from MRAM to WRAM
  uint64_t dma_read_bytes;     ///< bytes of these transfers, after masking
  uint64_t dma_writes;         ///< DMA transfers from WRAM to MRAM
  uint64_t dma_write_bytes;    ///< bytes of these transfers, after masking
  uint64_t masked_addresses;   ///< DMA addresses whose low three bits were dropped, as on hardware
  uint64_t masked_sizes;       ///< DMA sizes that were 0, over 2048 or not a multiple of 8; as on hardware, they were masked
  uint64_t wrapped_addresses;  ///< DMA transfers past the end of MRAM that continued at its start
  uint64_t direct_pages;       ///< pages of 4 KiB that were reached by dereferencing pointers to MRAM
  uint64_t instructions;       ///< modelled number for all tasklets
  double cycles_max;           ///< modelled cycles of the slowest PE
  double cycles_sum;           ///< modelled cycles of all PEs
  double host_seconds;         ///< measured time of the longest launch of a rank of the set
} dpuemu_report_t;

/// Errors: DPU_ERR_INVALID_DPU_SET; DPU_ERR_MRAM_BUSY while PEs run; DPU_ERR_NO_PROGRAM_LOADED if no PE of the set has been launched.
dpu_error_t dpuemu_get_report(struct dpu_set_t dpu_set, dpuemu_report_t *report);

/// Stops the current launch of the set's ranks, if they run: every PE that has not ended is then in fault. Returns immediately; dpu_launch
/// or dpu_sync still waits for the end. Any thread may call it. Errors: DPU_ERR_INVALID_DPU_SET.
dpu_error_t dpuemu_stop(struct dpu_set_t dpu_set);

/// Writes a sentence about the first PE of the set that is in fault (rank, chip, bank, tasklet, reason) to a buffer
/// of `size` bytes, including the final zero. Without a fault the string is empty. Errors: DPU_ERR_INVALID_DPU_SET; DPU_ERR_MRAM_BUSY while
/// PEs run.
dpu_error_t dpuemu_get_fault(struct dpu_set_t dpu_set, char *text, size_t size);

/// Number of cycles of a PE per second, for the modelled cycles above.
#define DPUEMU_CYCLES_PER_SECOND 350e6

/// Returns how many bytes of emulated MRAM, over all ranks, are backed by memory now.
dpu_error_t dpuemu_resident_bytes(uint64_t *bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPUEMU_H
