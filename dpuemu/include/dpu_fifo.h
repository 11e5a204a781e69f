/// dpu_fifo.h: queues in WRAM between the host and running PEs (wramfifo.h of PE programs). The
/// structures and signatures match the UPMEM SDK.
#ifndef DPU_FIFO_H
#define DPU_FIFO_H

#include <dpu_error.h>
#include <dpu_transfer_matrix.h>
#include <dpu_types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// The queues of one rank's DPUs.
struct dpu_fifo_rank_t {
  uint8_t dpu_fifo_ptr_size;    ///< a queue has 2 ^ dpu_fifo_ptr_size elements
  uint32_t dpu_fifo_address;    ///< of the elements, in words of 4 bytes
  uint32_t dpu_fifo_data_size;  ///< bytes of an element
  /// The read pointer and the write pointer of the DPU chip*8 + bank, at the last transfer.
  uint64_t dpu_fifo_pointers[MAX_NR_DPUS_PER_RANK * 2];
  struct dpu_transfer_matrix fifo_pointers_matrix;  ///< not used by dpuemu, except its offset
  struct dpu_transfer_matrix transfer_matrix;       ///< the prepared host buffers
  uint32_t max_retries;
  uint32_t time_for_retry;  ///< microseconds
};

enum dpu_fifo_direction_t { DPU_INPUT_FIFO, DPU_OUTPUT_FIFO };

struct dpu_fifo_link_t {
  enum dpu_fifo_direction_t direction;
  struct dpu_symbol_t fifo_symbol;
  struct dpu_fifo_rank_t *rank_fifos;  ///< by dpu_get_rank_id
};

/// Connect the host with the queue `fifo_name` of the program that all PEs of the set have loaded.
/// dpu_fifo_link_free frees the link. Errors: those of dpu_get_symbol; DPU_ERR_INVALID_WRAM_ACCESS
/// if the symbol is not a queue; DPU_ERR_DIFFERENT_DPU_PROGRAMS; DPU_ERR_INTERNAL if the link is
/// NULL.
dpu_error_t dpu_link_input_fifo(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *link,
                                char *fifo_name);
dpu_error_t dpu_link_output_fifo(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *link,
                                 char *fifo_name);
dpu_error_t dpu_fifo_link_free(struct dpu_fifo_link_t *fifo_link);

/// Sets the host buffer of each DPU of the set: one element for an input queue, all 2 ^ n elements
/// for an output queue. If buffer is NULL, transfers skip the DPUs.
dpu_error_t dpu_fifo_prepare_xfer(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *fifo_link,
                                  void *buffer);

/// Set how often (default: 1000) and after how many microseconds (default: 10) a push to a full
/// queue is repeated.
void dpu_fifo_set_push_max_retries(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu_set,
                                   uint32_t max_retries);
void dpu_fifo_set_time_for_push_retries(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu_set,
                                        uint32_t time_us);

/// Returns the number of elements that the last transfer found in the DPU's queue.
uint16_t get_fifo_size(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu);
/// Returns element i of these elements, in the host buffer of the DPU.
uint8_t *get_fifo_elem(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu, uint8_t *fifo_data,
                       uint8_t i);
struct dpu_fifo_rank_t *get_rank_fifo(struct dpu_fifo_link_t *fifo_link, struct dpu_rank_t *rank);
/// Returns the largest number of elements that the last transfer found in a queue of the rank.
uint16_t get_fifo_max_size(struct dpu_rank_t *rank, struct dpu_fifo_rank_t *fifo);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_FIFO_H
