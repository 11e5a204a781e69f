/// dpu_memory.h: transfers without symbols. Signatures match the UPMEM SDK.
#ifndef DPU_MEMORY_H
#define DPU_MEMORY_H

#include <dpu_error.h>
#include <dpu_transfer_matrix.h>
#include <dpu_types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Copy bytes between a host buffer and one DPU's MRAM. The byte offset in MRAM may have any
/// alignment. Errors: DPU_ERR_INVALID_DPU_SET, DPU_ERR_DPU_DISABLED, DPU_ERR_INVALID_MRAM_ACCESS,
/// DPU_ERR_MRAM_BUSY, DPU_ERR_DPU_FAULT.
dpu_error_t dpu_copy_to_mram(struct dpu_t *dpu, mram_addr_t mram_byte_offset, const uint8_t *source,
                             mram_size_t nb_of_bytes);
dpu_error_t dpu_copy_from_mram(struct dpu_t *dpu, uint8_t *destination,
                               mram_addr_t mram_byte_offset, mram_size_t nb_of_bytes);

/// Transfer bytes between the host buffers of a transfer matrix (dpu_transfer_matrix.h) and the
/// rank's MRAM. Errors: those of dpu_copy_to_mram, and DPU_ERR_SG_NOT_ACTIVATED for a
/// scatter-gather matrix.
dpu_error_t dpu_copy_to_mrams(struct dpu_rank_t *rank, struct dpu_transfer_matrix *transfer_matrix);
dpu_error_t dpu_copy_from_mrams(struct dpu_rank_t *rank,
                                struct dpu_transfer_matrix *transfer_matrix);

/// Copy words of 4 bytes between the host and WRAM: of one DPU, of all DPUs of a rank (the same
/// words), or of the DPUs of a transfer matrix, whose offset and size are then words. The copies
/// run immediately, also while PEs run. Errors: DPU_ERR_INVALID_DPU_SET, DPU_ERR_DPU_DISABLED,
/// DPU_ERR_INVALID_WRAM_ACCESS, DPU_ERR_SG_NOT_ACTIVATED for a scatter-gather matrix.
dpu_error_t dpu_copy_to_wram_for_dpu(struct dpu_t *dpu, wram_addr_t wram_word_offset,
                                     const dpuword_t *source, wram_size_t nb_of_words);
dpu_error_t dpu_copy_from_wram_for_dpu(struct dpu_t *dpu, dpuword_t *destination,
                                       wram_addr_t wram_word_offset, wram_size_t nb_of_words);
dpu_error_t dpu_copy_to_wram_for_rank(struct dpu_rank_t *rank, wram_addr_t wram_word_offset,
                                      const dpuword_t *source, wram_size_t nb_of_words);
dpu_error_t dpu_copy_to_wram_for_matrix(struct dpu_rank_t *rank,
                                        struct dpu_transfer_matrix *transfer_matrix);
dpu_error_t dpu_copy_from_wram_for_matrix(struct dpu_rank_t *rank,
                                          struct dpu_transfer_matrix *transfer_matrix);

/// Always return DPU_ERR_INVALID_IRAM_ACCESS: PE programs are x86-64 code, so no DPU instructions
/// can be copied.
dpu_error_t dpu_copy_to_iram_for_rank(struct dpu_rank_t *rank, iram_addr_t iram_instruction_index,
                                      const dpuinstruction_t *source,
                                      iram_size_t nb_of_instructions);
dpu_error_t dpu_copy_to_iram_for_dpu(struct dpu_t *dpu, iram_addr_t iram_instruction_index,
                                     const dpuinstruction_t *source,
                                     iram_size_t nb_of_instructions);
dpu_error_t dpu_copy_from_iram_for_dpu(struct dpu_t *dpu, dpuinstruction_t *destination,
                                       iram_addr_t iram_instruction_index,
                                       iram_size_t nb_of_instructions);
dpu_error_t dpu_copy_to_iram_for_matrix(struct dpu_rank_t *rank,
                                        struct dpu_transfer_matrix *matrix);
dpu_error_t dpu_copy_from_iram_for_matrix(struct dpu_rank_t *rank,
                                          struct dpu_transfer_matrix *matrix);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_MEMORY_H
