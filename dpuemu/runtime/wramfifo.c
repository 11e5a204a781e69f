// Queues between the host and a running PE.
#include <defs.h>
#include <string.h>
#include <wramfifo.h>

// Lets the host run (gate.S).
void __pe_await_host(void);

static uint32_t offset(uint64_t pointer, uint32_t pointer_bits, uint32_t bytes) {
  return ((uint32_t)pointer & ((1u << pointer_bits) - 1)) * bytes;
}

// Keeps the order of accesses that the host observes.
static void order_accesses(void) { __asm__ volatile("" ::: "memory"); }

bool is_input_fifo_empty(struct dpu_input_fifo_t *fifo) {
  bool is_empty = fifo->read_ptr == fifo->write_ptr;
  if (is_empty) __pe_await_host();
  order_accesses();
  return is_empty;
}

uint8_t *input_fifo_peek(struct dpu_input_fifo_t *fifo) {
  return fifo->data + offset(fifo->read_ptr, fifo->ptr_size, fifo->data_size);
}

void input_fifo_pop(struct dpu_input_fifo_t *fifo) {
  order_accesses();
  ++fifo->read_ptr;
}

static bool has_place(const struct dpu_output_fifo_t *fifo) {
  uint64_t taken = fifo->write_ptr + fifo->nb_reserved - fifo->read_ptr;
  return taken < UINT64_C(1) << fifo->ptr_size;
}

bool is_output_fifo_full(struct dpu_output_fifo_t *fifo) {
  bool is_full = !has_place(fifo);
  if (is_full) __pe_await_host();
  return is_full;
}

void output_fifo_push(struct dpu_output_fifo_t *fifo, const uint8_t *data) {
  uint8_t *end = fifo->data + offset(fifo->write_ptr, fifo->ptr_size, fifo->data_size);
  memmove(end, data, fifo->data_size);
  order_accesses();
  ++fifo->write_ptr;
}

void process_inputs_all_tasklets(struct dpu_input_fifo_t *input_fifo,
                                 struct dpu_output_fifo_t *output_fifo,
                                 void (*process_input)(uint8_t *, void *),
                                 void (*reduce)(uint8_t *, uint8_t *, void *), void *ctx,
                                 barrier_t *barrier, volatile uint64_t *active) {
  for (;;) {
    bool is_last = *active == 0;  // read first, because the host pushes before it clears *active
    if (is_input_fifo_empty(input_fifo)) {
      if (is_last) return;
      continue;
    }
    if (is_output_fifo_full(output_fifo)) continue;
    barrier_wait(barrier);
    uint8_t *input = input_fifo_peek(input_fifo);
    process_input(input, ctx);
    barrier_wait(barrier);
    if (me() == 0) {
      reduce(input, output_fifo->tmp_data, ctx);
      output_fifo_push(output_fifo, output_fifo->tmp_data);
      input_fifo_pop(input_fifo);
    }
    barrier_wait(barrier);
  }
}

void process_inputs_each_tasklet(struct dpu_input_fifo_t *input_fifo,
                                 struct dpu_output_fifo_t *output_fifo,
                                 void (*process_input)(uint8_t *, uint8_t *), mutex_id_t mutex,
                                 volatile uint64_t *active) {
  uint8_t *input = input_fifo->tmp_data + me() * input_fifo->data_size;
  uint8_t *output = output_fifo->tmp_data + me() * output_fifo->data_size;
  for (;;) {
    bool is_last = *active == 0;
    mutex_lock(mutex);
    bool is_empty = input_fifo->read_ptr == input_fifo->write_ptr;
    bool can_start = !is_empty && has_place(output_fifo);
    if (can_start) {
      memcpy(input, input_fifo_peek(input_fifo), input_fifo->data_size);
      input_fifo_pop(input_fifo);
      ++output_fifo->nb_reserved;
    }
    mutex_unlock(mutex);
    if (!can_start) {
      if (is_empty && is_last) return;
      __pe_await_host();
      continue;
    }
    process_input(input, output);
    mutex_lock(mutex);
    output_fifo_push(output_fifo, output);
    --output_fifo->nb_reserved;
    mutex_unlock(mutex);
  }
}
