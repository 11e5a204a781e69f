/// dpu_transfer_matrix.h: the host buffers of one rank's transfer, for the rank-level functions of
/// dpu_memory.h. The layout matches the UPMEM SDK.
#ifndef DPU_TRANSFER_MATRIX_H
#define DPU_TRANSFER_MATRIX_H

#include <dpu_error.h>
#include <dpu_types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define MAX_NR_DPUS_PER_RANK 64

/// ptr[bank*8 + chip] is the host buffer of the DPU at (chip, bank). If the pointer is NULL, the
/// transfer skips the DPU. Note that DPU_FOREACH has a different order: chip*8 + bank.
struct dpu_transfer_matrix {
  union {
    void *ptr[MAX_NR_DPUS_PER_RANK];
    struct sg_xfer_buffer *sg_ptr[MAX_NR_DPUS_PER_RANK];
  };
  uint32_t offset;  ///< number of bytes from the start of MRAM
  uint32_t size;    ///< number of bytes per DPU
  dpu_transfer_matrix_type_t type;
};

void dpu_transfer_matrix_add_dpu(struct dpu_t *dpu, struct dpu_transfer_matrix *transfer_matrix,
                                 void *buffer);

/// Makes `buffer` the host buffer of every enabled DPU of the rank.
void dpu_transfer_matrix_set_all(struct dpu_rank_t *rank,
                                 struct dpu_transfer_matrix *transfer_matrix, void *buffer);
void dpu_transfer_matrix_clear_dpu(struct dpu_t *dpu, struct dpu_transfer_matrix *transfer_matrix);

/// Clears the buffers, offset, size and type of the matrix.
void dpu_transfer_matrix_clear_all(struct dpu_rank_t *rank,
                                   struct dpu_transfer_matrix *transfer_matrix);
void dpu_transfer_matrix_copy(struct dpu_transfer_matrix *dst, struct dpu_transfer_matrix *src);
void *dpu_transfer_matrix_get_ptr(struct dpu_t *dpu, struct dpu_transfer_matrix *transfer_matrix);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_TRANSFER_MATRIX_H
