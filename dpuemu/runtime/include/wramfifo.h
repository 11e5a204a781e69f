/// wramfifo.h: queues in WRAM between the host (dpu_fifo.h of host programs) and a running PE. The
/// structures have the layout of the SDK, because the host reads and writes them.
///
/// Differs from the SDK: a call of is_input_fifo_empty or is_output_fifo_full that returns true
/// lets the host and the other PEs of the host thread run.
#ifndef PE_WRAMFIFO_H
#define PE_WRAMFIFO_H

#include <attributes.h>
#include <barrier.h>
#include <defs.h>
#include <mutex.h>
#include <stdbool.h>
#include <stdint.h>

/// A queue has 2 ^ ptr_size elements of data_size bytes. The pointers count all elements that were
/// ever read or written.
struct dpu_input_fifo_t {
  uint64_t read_ptr;            // written by the PE
  volatile uint64_t write_ptr;  // written by the host
  uint8_t *data;
  uint8_t *tmp_data;  // one element per tasklet, for process_inputs_each_tasklet
  const uint32_t ptr_size;
  const uint32_t data_size;
};

struct dpu_output_fifo_t {
  volatile uint64_t read_ptr;  // written by the host
  uint64_t write_ptr;          // written by the PE
  uint8_t *data;
  uint8_t *tmp_data;  // one element per tasklet, for the functions process_inputs_...
  const uint32_t ptr_size;
  const uint32_t data_size;
  uint32_t nb_reserved;  // elements that process_inputs_each_tasklet will write
};

#define __PE_FIFO_MEMORY(name, pointer_bits, bytes)                           \
  _Static_assert((pointer_bits) <= 10, "a FIFO has at most 2 ^ 10 elements"); \
  _Static_assert((bytes) > 0 && (bytes) % 8 == 0,                             \
                 "the bytes of an element must be a multiple of 8");          \
  __host uint8_t __##name##_data[(1 << (pointer_bits)) * (bytes)];            \
  __dma_aligned uint8_t __##name##_tmp_data[NR_TASKLETS * (bytes)]

/// Define a queue of 2 ^ pointer_bits elements.
#define INPUT_FIFO_INIT(name, pointer_bits, bytes) \
  __PE_FIFO_MEMORY(name, pointer_bits, bytes);     \
  __host struct dpu_input_fifo_t name = {          \
      0, 0, __##name##_data, __##name##_tmp_data, pointer_bits, bytes};
#define OUTPUT_FIFO_INIT(name, pointer_bits, bytes) \
  __PE_FIFO_MEMORY(name, pointer_bits, bytes);      \
  __host struct dpu_output_fifo_t name = {          \
      0, 0, __##name##_data, __##name##_tmp_data, pointer_bits, bytes, 0};

bool is_input_fifo_empty(struct dpu_input_fifo_t *fifo);
/// Returns the first element of the queue.
uint8_t *input_fifo_peek(struct dpu_input_fifo_t *fifo);
/// Removes the first element.
void input_fifo_pop(struct dpu_input_fifo_t *fifo);

bool is_output_fifo_full(struct dpu_output_fifo_t *fifo);
/// Appends an element.
void output_fifo_push(struct dpu_output_fifo_t *fifo, const uint8_t *data);

/// Process inputs until the input queue is empty and *active is 0. In process_inputs_all_tasklets,
/// all tasklets call process_input(input, ctx) for the same input, then tasklet 0 calls
/// reduce(input, output, ctx). In process_inputs_each_tasklet, each tasklet calls
/// process_input(input, output) for its own input, so the order of the outputs may differ.
void process_inputs_all_tasklets(struct dpu_input_fifo_t *input_fifo,
                                 struct dpu_output_fifo_t *output_fifo,
                                 void (*process_input)(uint8_t *, void *),
                                 void (*reduce)(uint8_t *, uint8_t *, void *), void *ctx,
                                 barrier_t *barrier, volatile uint64_t *active);
void process_inputs_each_tasklet(struct dpu_input_fifo_t *input_fifo,
                                 struct dpu_output_fifo_t *output_fifo,
                                 void (*process_input)(uint8_t *, uint8_t *), mutex_id_t mutex,
                                 volatile uint64_t *active);

#endif  // PE_WRAMFIFO_H
