/* One step of the Jacobi method: every cell becomes the mean of its four neighbours. Cells outside
 * of the grid are 0. Neighbours on other PEs are in the edges of all PEs of the row and the column,
 * which allgathers have collected after the last step. */
#include "jacobi.h"

#include <defs.h>
#include <mram.h>
#include <stdint.h>

__mram_noinit float cells[kSide][kSide];
/* The first and the last row, then the first and the last column. */
__mram_noinit float edges[2][2][kSide];
__mram_noinit float edges_of_row[kGrid][2][kSide], edges_of_column[kGrid][2][kSide];
__host uint32_t pidcomm_coord_x, pidcomm_coord_y; /* which the host fills */

/* Cell [i + 1][j + 1] is cells[i][j]; a border has the neighbours. */
float old[kSide + 2][kSide + 2];
__dma_aligned float line[kSide];

static void write_line(__mram_ptr float *to) { mram_write(line, to, sizeof line); }

int main(void) {
  if (me() != 0) return 0;
  const uint32_t x = pidcomm_coord_x, y = pidcomm_coord_y;
  for (int i = 0; i < kSide; i++) {
    mram_read(cells[i], line, sizeof line);
    for (int j = 0; j < kSide; j++) old[i + 1][j + 1] = line[j];
  }
  for (int side = 0; side < 2; side++) {
    const uint32_t step = side == 0 ? -1u : 1u, border = side == 0 ? 0 : kSide + 1;
    if (y + step < kGrid) mram_read(edges_of_column[y + step][1 - side], line, sizeof line);
    for (int j = 0; j < kSide; j++) old[border][j + 1] = y + step < kGrid ? line[j] : 0;
    if (x + step < kGrid) mram_read(edges_of_row[x + step][1 - side], line, sizeof line);
    for (int i = 0; i < kSide; i++) old[i + 1][border] = x + step < kGrid ? line[i] : 0;
  }
  float left[kSide], right[kSide];
  for (int i = 0; i < kSide; i++) {
    for (int j = 0; j < kSide; j++)
      line[j] = (old[i][j + 1] + old[i + 2][j + 1] + (old[i + 1][j] + old[i + 1][j + 2])) * 0.25f;
    write_line(cells[i]);
    if (i == 0) write_line(edges[0][0]);
    if (i == kSide - 1) write_line(edges[0][1]);
    left[i] = line[0];
    right[i] = line[kSide - 1];
  }
  for (int i = 0; i < kSide; i++) line[i] = left[i];
  write_line(edges[1][0]);
  for (int i = 0; i < kSide; i++) line[i] = right[i];
  write_line(edges[1][1]);
  return 0;
}
