/* Jacobi's method on a grid of cells over 8 x 8 PEs: allgathers exchange the edges of the PEs. A
 * loop on the host checks the result. pe/jacobi.c is the PE program. */
#include "pe/jacobi.h"

#include <pidcomm/buffer.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef JACOBI_PE
#define JACOBI_PE "./jacobi_pe"
#endif

enum { kPes = kGrid * kGrid, kN = kGrid * kSide, kSteps = 10 };

static float cells[kN][kN], next[kN][kN], blocks[kPes][kSide][kSide], edges[2][kPes][2][kSide];

/* Makes one row per PE: its cells, and its first and last row and column. */
static void distribute(void) {
  for (uint32_t pe = 0; pe < kPes; ++pe) {
    for (uint32_t i = 0; i < kSide; ++i) {
      for (uint32_t j = 0; j < kSide; ++j)
        blocks[pe][i][j] = cells[pe / kGrid * kSide + i][pe % kGrid * kSide + j];
    }
    for (uint32_t i = 0; i < kSide; ++i) {
      edges[0][pe][0][i] = blocks[pe][0][i];
      edges[0][pe][1][i] = blocks[pe][kSide - 1][i];
      edges[1][pe][0][i] = blocks[pe][i][0];
      edges[1][pe][1][i] = blocks[pe][i][kSide - 1];
    }
  }
}

static float cell(uint32_t i, uint32_t j) { return i < kN && j < kN ? cells[i][j] : 0; }

static void step_here(void) {
  for (uint32_t i = 0; i < kN; ++i) {
    for (uint32_t j = 0; j < kN; ++j)
      next[i][j] = (cell(i - 1, j) + cell(i + 1, j) + (cell(i, j - 1) + cell(i, j + 1))) * 0.25f;
  }
  for (uint32_t i = 0; i < kN * kN; ++i) cells[i / kN][i % kN] = next[i / kN][i % kN];
}

int main(void) {
  for (uint32_t i = 0; i < kN * kN; ++i) cells[i / kN][i % kN] = (float)(i * 2654435761u >> 8);
  distribute();

  struct dpu_set_t dpu_set;
  DPU_ASSERT(dpu_alloc(kPes, NULL, &dpu_set));
  DPU_ASSERT(dpu_load(dpu_set, JACOBI_PE, NULL));
  const uint32_t axis_len[2] = {kGrid, kGrid};
  pidcomm_hypercube *cube;
  PIDCOMM_CHECK(pidcomm_hypercube_create(dpu_set, 2, axis_len, &cube));
  PIDCOMM_CHECK(pidcomm_fill_variables(cube, NULL)); /* the coordinates of each PE */

  pidcomm_buffer *own, *all_edges, *of_pe[2], *of_line[2];
  PIDCOMM_CHECK(pidcomm_buffer_of_variable(cube, "cells", PIDCOMM_FLOAT32, &own));
  PIDCOMM_CHECK(pidcomm_buffer_of_variable(cube, "edges", PIDCOMM_FLOAT32, &all_edges));
  PIDCOMM_CHECK(pidcomm_buffer_of_variable(cube, "edges_of_column", PIDCOMM_FLOAT32, &of_line[0]));
  PIDCOMM_CHECK(pidcomm_buffer_of_variable(cube, "edges_of_row", PIDCOMM_FLOAT32, &of_line[1]));
  PIDCOMM_CHECK(pidcomm_buffer_write(cube, own, blocks, sizeof blocks));
  for (uint32_t i = 0; i < 2; ++i) {
    PIDCOMM_CHECK(pidcomm_buffer_slice(all_edges, i * 2 * kSide, 2 * kSide, &of_pe[i]));
    PIDCOMM_CHECK(pidcomm_buffer_write(cube, of_pe[i], edges[i], sizeof edges[i]));
  }
  for (uint32_t step = 0; step < kSteps; ++step) {
    PIDCOMM_CHECK(pidcomm_buffer_run(cube, PIDCOMM_ALLGATHER, "01", of_pe[0], of_line[0], 0));
    PIDCOMM_CHECK(pidcomm_buffer_run(cube, PIDCOMM_ALLGATHER, "10", of_pe[1], of_line[1], 0));
    DPU_ASSERT(dpu_launch(dpu_set, DPU_SYNCHRONOUS));
  }
  PIDCOMM_CHECK(pidcomm_buffer_read(cube, own, blocks, sizeof blocks));
  for (uint32_t i = 0; i < 2; ++i) {
    pidcomm_buffer_destroy(of_pe[i]);
    pidcomm_buffer_destroy(of_line[i]);
  }
  pidcomm_buffer_destroy(own);
  pidcomm_buffer_destroy(all_edges);
  pidcomm_hypercube_destroy(cube);
  DPU_ASSERT(dpu_free(dpu_set));

  for (uint32_t step = 0; step < kSteps; ++step) step_here();
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kN; ++i) {
    for (uint32_t j = 0; j < kN; ++j)
      wrong += cells[i][j] != blocks[i / kSide * kGrid + j / kSide][i % kSide][j % kSide];
  }
  printf("%d Jacobi steps on %dx%d cells: %u cells wrong\n", kSteps, kN, kN, wrong);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
