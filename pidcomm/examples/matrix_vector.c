/* A PE program with collectives between its launches: x becomes A' A x, four times, with the matrix
 * A in blocks on 8 x 8 PEs.
 *
 * PE (c, r) holds block (r, c) of A and part c of x. A launch multiplies every block by its part of
 * the vector. Allreduce along x adds the products of a row of blocks; the sum is this row's part of
 * y = A x. The next launch multiplies by the transposed blocks, and allreduce along y leaves each
 * part of A' y at its PEs. The vector never leaves the PEs. Loops on the host check the result;
 * words wrap. */
#include "pe/matrix_vector.h"

#include <pidcomm/buffer.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef MATRIX_VECTOR_PE
#define MATRIX_VECTOR_PE "./matrix_vector_pe"
#endif

enum { kGrid = 8, kPes = kGrid * kGrid, kN = kGrid * kSide, kSteps = 8 };

static uint32_t matrix[kN][kN], x[kN], y[kN];
static uint32_t blocks[kPes][kSide][kSide], parts[kPes][kSide];

/* Makes one row per PE from the blocks and the parts of the vector. */
static void distribute(void) {
  for (uint32_t pe = 0; pe < kPes; ++pe) {
    const uint32_t row = pe / kGrid * kSide, column = pe % kGrid * kSide;
    for (uint32_t i = 0; i < kSide; ++i) {
      for (uint32_t j = 0; j < kSide; ++j) blocks[pe][i][j] = matrix[row + i][column + j];
      parts[pe][i] = x[column + i];
    }
  }
}

static void multiply_here(uint32_t is_transposed) {
  for (uint32_t i = 0; i < kN; ++i) {
    y[i] = 0;
    for (uint32_t j = 0; j < kN; ++j) y[i] += (is_transposed ? matrix[j][i] : matrix[i][j]) * x[j];
  }
  for (uint32_t i = 0; i < kN; ++i) x[i] = y[i];
}

int main(void) {
  for (uint32_t i = 0; i < kN * kN; ++i) matrix[i / kN][i % kN] = i * 2654435761u;
  for (uint32_t i = 0; i < kN; ++i) x[i] = i * 40503u + 1;
  distribute();

  /* [program] */
  struct dpu_set_t dpu_set;
  DPU_ASSERT(dpu_alloc(kPes, NULL, &dpu_set));
  DPU_ASSERT(dpu_load(dpu_set, MATRIX_VECTOR_PE, NULL));
  uint32_t axis_len[2] = {kGrid, kGrid};
  pidcomm_hypercube *cube;
  PIDCOMM_CHECK(pidcomm_hypercube_create(dpu_set, 2, axis_len, &cube));
  pidcomm_buffer *block, *vector, *product; /* MRAM variables of the program */
  PIDCOMM_CHECK(pidcomm_buffer_of_variable(cube, "matrix", PIDCOMM_UINT32, &block));
  PIDCOMM_CHECK(pidcomm_buffer_of_variable(cube, "vector", PIDCOMM_UINT32, &vector));
  PIDCOMM_CHECK(pidcomm_buffer_of_variable(cube, "product", PIDCOMM_UINT32, &product));
  PIDCOMM_CHECK(pidcomm_buffer_write(cube, block, blocks, sizeof blocks));
  PIDCOMM_CHECK(pidcomm_buffer_write(cube, vector, parts, sizeof parts));
  /* [end] */
  /* [launch] */
  for (uint32_t step = 0; step < kSteps; ++step) {
    const uint32_t is_transposed = step % 2;
    DPU_ASSERT(dpu_broadcast_to(dpu_set, "is_transposed", 0, &is_transposed, sizeof is_transposed,
                                DPU_XFER_DEFAULT));
    DPU_ASSERT(dpu_launch(dpu_set, DPU_SYNCHRONOUS));
    PIDCOMM_CHECK(pidcomm_buffer_run(cube, PIDCOMM_ALLREDUCE, is_transposed ? "01" : "10", product,
                                     vector, PIDCOMM_SUM));
  }
  /* [end] */
  PIDCOMM_CHECK(pidcomm_buffer_read(cube, vector, parts, sizeof parts));
  pidcomm_buffer_destroy(block);
  pidcomm_buffer_destroy(vector);
  pidcomm_buffer_destroy(product);
  pidcomm_hypercube_destroy(cube);
  DPU_ASSERT(dpu_free(dpu_set));

  for (uint32_t step = 0; step < kSteps; ++step) multiply_here(step % 2);
  uint32_t wrong = 0;
  for (uint32_t pe = 0; pe < kPes; ++pe) {
    for (uint32_t i = 0; i < kSide; ++i) wrong += parts[pe][i] != x[pe % kGrid * kSide + i];
  }
  printf("%d steps with a %dx%d matrix on %dx%d PEs: %u of %d words wrong\n", kSteps, kN, kN, kGrid,
         kGrid, wrong, kPes * kSide);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
