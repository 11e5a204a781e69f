// Answers the host's inputs through queues: each input has a number, and the answer is computed by
// all tasklets or by one tasklet.
#include <defs.h>
#include <wramfifo.h>

typedef struct {
  uint64_t number, sum;
} element_t;

INPUT_FIFO_INIT(inputs, 2, 8);
OUTPUT_FIFO_INIT(outputs, 3, sizeof(element_t));
BARRIER_INIT(barrier, NR_TASKLETS);
MUTEX_INIT(mutex);

__host volatile uint64_t active;
__host uint32_t by_each_tasklet;
__host uint64_t factor;  // different for each PE
uint64_t parts[NR_TASKLETS];

static void compute_part(uint8_t *input, void *context) {
  parts[me()] = *(uint64_t *)input * *(uint64_t *)context + me();
}

static void add_parts(uint8_t *input, uint8_t *output, void *context) {
  (void)context;
  element_t *element = (element_t *)output;
  *element = (element_t){*(uint64_t *)input, 0};
  for (uint32_t i = 0; i < NR_TASKLETS; ++i) element->sum += parts[i];
}

static void answer(uint8_t *input, uint8_t *output) {
  uint64_t number = *(uint64_t *)input;
  *(element_t *)output = (element_t){number, number * factor};
}

int main(void) {
  if (by_each_tasklet)
    process_inputs_each_tasklet(&inputs, &outputs, answer, mutex, &active);
  else
    process_inputs_all_tasklets(&inputs, &outputs, compute_part, add_parts, &factor, &barrier,
                                &active);
  return 0;
}
