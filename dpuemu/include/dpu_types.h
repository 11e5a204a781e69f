/// dpu_types.h: the plain types of the UPMEM host API, with the names and layouts of the UPMEM SDK.
#ifndef DPU_TYPES_H
#define DPU_TYPES_H

#include <dpu_target.h>
#include <stddef.h>
#include <stdint.h>

/// The number of chips of a rank (the SDK calls a chip a slice or a control interface), and the
/// number of DPUs of a chip (the SDK calls a DPU of a chip a member).
#define DPU_MAX_NR_CIS 8
#define DPU_MAX_NR_DPUS_PER_CI 8
#define DPU_MAX_NR_GROUPS 8
#define DPU_BOOT_THREAD 0

/// Name of the symbol at the first MRAM byte that the loaded program does not use.
#define DPU_MRAM_HEAP_POINTER_NAME "__sys_used_mram_end"

#define DPU_API_DEPRECATED __attribute__((deprecated))

typedef uint16_t dpu_rank_id_t;
typedef uint32_t dpu_id_t;
typedef uint8_t dpu_slice_id_t;
typedef uint8_t dpu_member_id_t;
typedef uint8_t dpu_group_id_t;
typedef uint8_t dpu_thread_t;
typedef uint8_t dpu_notify_bit_id_t;

/// Addresses and sizes in the three memories of a DPU. The unit of IRAM values is an instruction;
/// of WRAM values, a word or a byte; of MRAM values, a byte.
typedef uint16_t iram_addr_t;
typedef uint32_t wram_addr_t;
typedef uint32_t mram_addr_t;
typedef mram_addr_t dpu_mem_max_addr_t;
typedef uint16_t iram_size_t;
typedef uint32_t wram_size_t;
typedef uint32_t mram_size_t;
typedef mram_size_t dpu_mem_max_size_t;

typedef uint64_t dpuinstruction_t;
typedef uint32_t dpuword_t;
typedef uint8_t dpu_bitfield_t;
typedef uint8_t dpu_ci_bitfield_t;

#define DPU_BITFIELD_ALL ((dpu_bitfield_t) - 1)

struct dpu_rank_t;
struct dpu_t;
struct dpu_transfer_matrix;
struct dpu_program_t;

typedef enum dpu_set_kind_t {
  DPU_SET_RANKS,
  DPU_SET_DPU,
} dpu_set_kind_t;

/// The array of the ranks of a DPU set.
struct dpu_rank_list_t {
  uint32_t nr_ranks;
  struct dpu_rank_t **ranks;
};

/// A set of DPUs: all enabled DPUs of some ranks, or one DPU. Programs copy sets by value; the
/// array of ranks belongs to the allocation.
struct dpu_set_t {
  dpu_set_kind_t kind;
  union {
    struct dpu_rank_list_t list;
    struct dpu_t *dpu;
  };
};

/// A variable of a PE program: its address in the DPU's address space (MRAM starts at 0x08000000)
/// and its size in bytes.
struct dpu_symbol_t {
  dpu_mem_max_addr_t address;
  dpu_mem_max_size_t size;
};

/// A PE program embedded in the host program.
struct dpu_incbin_t {
  uint8_t *buffer;
  size_t size;
  const char *path;
};

/// The blocks of one DPU in a scatter-gather transfer. dpuemu does not use this struct; see
/// dpu_push_sg_xfer.
struct sg_xfer_buffer {
  uint32_t max_nr_blocks;
  uint8_t **blocks_addr;
  uint32_t *blocks_length;
  uint32_t nr_blocks;
};

typedef enum dpu_transfer_matrix_type_t {
  DPU_DEFAULT_XFER_MATRIX,
  DPU_SG_XFER_MATRIX,
} dpu_transfer_matrix_type_t;

#endif  // DPU_TYPES_H
