/* One step of a distributed matrix-vector product: multiplies this PE's block of the matrix, or the
 * transposed block, by a part of the vector. An allreduce between launches sums the outputs of
 * PEs. */
#include "matrix_vector.h"

#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>

__mram_noinit uint32_t matrix[kSide][kSide], vector[kSide], product[kSide];
__host uint32_t is_transposed;

BARRIER_INIT(all, NR_TASKLETS);
__dma_aligned uint32_t block[kSide][kSide], input[kSide], output[kSide];

int main(void) {
  for (unsigned i = me(); i < kSide; i += NR_TASKLETS)
    mram_read(matrix[i], block[i], sizeof block[0]);
  if (me() == 0) mram_read(vector, input, sizeof input);
  barrier_wait(&all);
  for (unsigned i = me(); i < kSide; i += NR_TASKLETS) {
    uint32_t sum = 0;
    for (unsigned j = 0; j < kSide; j++)
      sum += (is_transposed ? block[j][i] : block[i][j]) * input[j];
    output[i] = sum;
  }
  barrier_wait(&all);
  if (me() == 0) mram_write(output, product, sizeof output);
  return 0;
}
