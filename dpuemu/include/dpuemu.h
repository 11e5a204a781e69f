/// dpuemu.h: functions of the emulator beyond the UPMEM host API.
///
/// Programs that must also run on real DIMMs use dpu.h only. With dpuemu.h, tests, benchmarks and
/// the Python package configure the emulated machine, and libraries can access the memory of a rank
/// as a Xeon sees it.
///
/// Load only programs that you trust: PE programs run as code of the host process, with all its
/// rights.
///
/// Every function returns a dpu_error_t. No function prints, aborts or exits (except in the strict
/// mode described at dpuemu_machine.strict).
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

/// Geometry of one rank: 8 chips x 8 banks x 64 MiB. A line is 64 bytes of the region: one 64-bit
/// word of each of the 8 chips of one bank.
#define DPUEMU_CHIPS_PER_RANK 8u
#define DPUEMU_BANKS_PER_CHIP 8u
#define DPUEMU_DPUS_PER_RANK 64u
#define DPUEMU_MRAM_BYTES (UINT64_C(64) << 20)
#define DPUEMU_REGION_BYTES (UINT64_C(8) << 30)
#define DPUEMU_MAX_RANKS 40u

/// The chips, whose limits are the rows of PE_CHIP_TABLE (pe/calls.h), in the same order.
typedef enum dpuemu_chip_t {
  DPUEMU_CHIP_GENERIC = 1,
  DPUEMU_CHIP_V1A = 2,
  DPUEMU_CHIP_V1B = 3,
} dpuemu_chip_t;

/// The emulated machine. A field that is 0 means its default: the value of the environment variable
/// in brackets, or, if this variable is not set, the value in parentheses.
typedef struct dpuemu_machine {
  uint32_t ranks;     ///< number of ranks, 1 to 40 [DPUEMU_RANKS] (40)
  uint32_t channels;  ///< number of memory channels [DPUEMU_CHANNELS] (ranks / ranks_per_channel,
                      ///< rounded up)
  uint32_t ranks_per_channel;  ///< number of ranks on one channel [DPUEMU_RANKS_PER_CHANNEL] (4)
  uint32_t threads;  ///< host threads that move bytes and run PEs (32 at most) for all ranks
                     ///< [DPUEMU_THREADS] (number of CPUs)
  int hugepages;  ///< 1: transparent huge pages, 2: 4 KiB pages only [DPUEMU_HUGEPAGES=on|off] (1)
  int flush;   ///< when transfers flush lines from the caches. 1: before and after loading, as the
               ///< SDK does; 2: never; 3: only before loading [DPUEMU_FLUSH=on|off|once] (2)
  int strict;  ///< 1: if the host accesses a rank while PEs own it, the process ends with a
               ///< sentence that names the rank; and if a PE uses a value that the hardware masks
               ///< silently, or accesses the WRAM of a PE that does not run, the PE is in fault. 2:
               ///< off. [DPUEMU_STRICT=1|0] (2)
  uint32_t patience_seconds;  ///< if none of the PEs that a host thread runs (up to 8 in turn) ends
                              ///< for this CPU time, one gets a fault and the launch ends
                              ///< [DPUEMU_PATIENCE] (60)
  int chip;  ///< a value of dpuemu_chip_t: the limits of PE programs, and their clock
             ///< [DPUEMU_CHIP=generic|v1A|v1B] (DPUEMU_CHIP_GENERIC)
} dpuemu_machine_t;

/// Replaces the emulated machine (if `machine` is NULL: by a machine whose fields are all 0).
/// `disabled` (may be NULL) lists n_disabled DPUs that the machine lacks, each as rank*64 + chip*8
/// + bank [DPUEMU_DISABLED="rank.chip.bank,..."]. Errors: DPU_ERR_ALLOCATION while any rank is
/// allocated; DPU_ERR_INVALID_PROFILE for values out of range (ranks > 40,
/// channels*ranks_per_channel < ranks, a disabled DPU that does not exist).
dpu_error_t dpuemu_configure(const dpuemu_machine_t *machine, const uint32_t *disabled,
                             uint32_t n_disabled);

/// Stores the settings of the current machine in *machine; every field that was 0 has its default
/// value.
dpu_error_t dpuemu_get_machine(dpuemu_machine_t *machine);

/// Returns the name of the chip of the current machine, as in DPUEMU_CHIP; NULL if the environment
/// variables are invalid. A compiler that runs with DPUEMU_CHIP set to this name compiles for this
/// machine.
const char *dpuemu_chip_name(void);

/// Changes the transfer settings of the running machine. threads: the new number of threads, or 0
/// for no change. flush: a value of dpuemu_machine.flush, or 0 for no change. Errors:
/// DPU_ERR_INVALID_PROFILE for values out of range.
dpu_error_t dpuemu_set_transfer(uint32_t threads, int flush);

/// Returns where byte `mram_offset` of the DPU at (chip, bank) is in the region: uses the exact
/// address map of a rank on Xeon machines. If chip or bank is above 7, or mram_offset is not below
/// 64 MiB, returns UINT64_MAX.
uint64_t dpuemu_region_offset(uint32_t chip, uint32_t bank, uint64_t mram_offset);

/// The memory of one rank while the host owns the rank's MRAM.
typedef struct dpuemu_rank_access {
  uint8_t *base;        ///< start of the region
  uint64_t size_bytes;  ///< size of the region, DPUEMU_REGION_BYTES
  int numa_node;        ///< NUMA node of the rank's memory, -1 if unknown
  uint64_t enabled;     ///< bit 8*bank + chip is set for every enabled DPU
} dpuemu_rank_access_t;

/// Waits for earlier asynchronous work and running PEs of the rank, makes the host the owner of all
/// MRAM of the rank, and maps the region if it is not mapped yet. Accesses of one rank can nest:
/// each dpuemu_rank_acquire needs a dpuemu_rank_release. While an access is open, a launch returns
/// DPU_ERR_MRAM_BUSY. Errors: DPU_ERR_INVALID_DPU_SET if the rank is not allocated,
/// DPU_ERR_DPU_FAULT if a PE of the rank is in fault, DPU_ERR_SYSTEM if the region cannot be
/// mapped.
dpu_error_t dpuemu_rank_acquire(struct dpu_rank_t *rank, dpuemu_rank_access_t *access);

/// Ends a rank access. The host remains the owner of the rank's MRAM until the next launch. While
/// an access is open, dpu_free returns DPU_ERR_MRAM_BUSY. Errors: DPU_ERR_INVALID_DPU_SET,
/// DPU_ERR_INTERNAL if no access of the rank is open.
dpu_error_t dpuemu_rank_release(struct dpu_rank_t *rank);

/// For tests: dpuemu_begin_run makes the PEs the owner of the rank's MRAM, as a launch does, after
/// the rank's queued asynchronous work. The PEs run until any thread calls dpuemu_end_run. While
/// the PEs run, synchronous transfers return DPU_ERR_MRAM_BUSY, and asynchronous transfers,
/// dpu_sync, dpu_free and dpuemu_rank_acquire wait. After dpuemu_end_run, the PEs remain the owner
/// of the MRAM until the host's next transfer or rank access; in strict mode the rank stays
/// protected until this transfer or access. If `fault` is true, the run ends with DPU `dpu_in_rank`
/// (chip*8 + bank) in fault: dpu_sync and dpuemu_rank_acquire on the rank then return
/// DPU_ERR_DPU_FAULT until the next run, dpu_load or dpu_free. Errors: DPU_ERR_INVALID_DPU_SET;
/// dpuemu_begin_run also returns DPU_ERR_DPU_ALREADY_RUNNING, DPU_ERR_MRAM_BUSY while a transfer or
/// rank access is open; dpuemu_end_run also returns DPU_ERR_INTERNAL if no PE runs or dpu_in_rank
/// is not below 64.
dpu_error_t dpuemu_begin_run(struct dpu_rank_t *rank);
dpu_error_t dpuemu_end_run(struct dpu_rank_t *rank, bool fault, uint32_t dpu_in_rank);

/// Counters of a DPU set's last launch. DMA counts are exact; instructions and cycles are modelled
/// (docs/manual.md).
typedef struct dpuemu_report {
  uint64_t pes;               ///< number of PEs that ran
  uint64_t faulted_pes;       ///< number of PEs that ran and are in fault
  uint64_t dma_reads;         ///< number of DMA transfers from MRAM to WRAM
  uint64_t dma_read_bytes;    ///< bytes of the transfers in dma_reads, after masking
  uint64_t dma_writes;        ///< number of DMA transfers from WRAM to MRAM
  uint64_t dma_write_bytes;   ///< bytes of the transfers in dma_writes, after masking
  uint64_t masked_addresses;  ///< number of DMA addresses whose low three bits were dropped, as on
                              ///< hardware
  uint64_t masked_sizes;  ///< number of DMA sizes that were masked, as on hardware: 0, over 2048 or
                          ///< not a multiple of 8
  uint64_t
      direct_pages;  ///< number of 4 KiB pages of MRAM that PEs accessed by dereferencing pointers
  uint64_t waiting_tasklets;  ///< number of tasklets that still waited at a barrier, for a
                              ///< semaphore, a handshake or a `resume` when their PE ended
  uint64_t instructions;      ///< modelled number of instructions of all tasklets
  double cycles_max;          ///< modelled cycles of the slowest PE
  double cycles_sum;          ///< sum of the modelled cycles of all PEs
  double cycles_per_second;   ///< clock of the PEs in Hz, to convert modelled cycles to seconds
  double host_seconds;  ///< measured host time of the rank of the set whose launch took longest
} dpuemu_report_t;

/// Errors: DPU_ERR_INVALID_DPU_SET; DPU_ERR_MRAM_BUSY while PEs run; DPU_ERR_NO_PROGRAM_LOADED if
/// no PE of the set has been launched.
dpu_error_t dpuemu_get_report(struct dpu_set_t dpu_set, dpuemu_report_t *report);

/// If PEs of the set run, stops the current launch of the set's ranks: every PE that has not ended
/// is then in fault. dpuemu_stop returns immediately; dpu_launch or dpu_sync still waits for the
/// end of the launch. Any thread may call dpuemu_stop. Errors: DPU_ERR_INVALID_DPU_SET.
dpu_error_t dpuemu_stop(struct dpu_set_t dpu_set);

/// Writes a sentence about the first PE of the set that is in fault (rank, chip, bank, tasklet,
/// reason, functions with source lines) to a buffer of `size` bytes, including the final zero;
/// DPUEMU_FAULT_BYTES suffice for every sentence. If no PE of the set is in fault, writes an empty
/// string. Errors: DPU_ERR_INVALID_DPU_SET; DPU_ERR_MRAM_BUSY while PEs run.
#define DPUEMU_FAULT_BYTES 4096
dpu_error_t dpuemu_get_fault(struct dpu_set_t dpu_set, char *text, size_t size);

/// Returns a number that increases whenever the loaded program of any DPU changes. A library may
/// keep what it has read about programs, such as addresses of symbols, while this number stays the
/// same; it reads the number first.
uint64_t dpuemu_program_changes(void);

/// Stores the number of bytes of emulated MRAM in all ranks that use memory of the host now.
dpu_error_t dpuemu_resident_bytes(uint64_t *bytes);

/// Calls `print` for each line of the disassembly of a program for real DPUs (`dpuemu objdump`).
/// function: the only one to print, or NULL; context: the argument of `print`. Errors:
/// those of dpu_load for the file, DPU_ERR_ELF_INVALID_FILE if the file has no instructions of a
/// DPU, DPU_ERR_UNKNOWN_SYMBOL.
dpu_error_t dpuemu_disassemble(const char *path, const char *function,
                               void (*print)(const char *line, void *context), void *context);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPUEMU_H
