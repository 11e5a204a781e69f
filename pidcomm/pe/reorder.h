/* reorder.h: the interface between the host and the PE program reorder.c. This header is C11; the
 * layout of the struct on the host equals its layout on the PE. */
#ifndef PIDCOMM_PE_REORDER_H
#define PIDCOMM_PE_REORDER_H

#include <stdint.h>

#define PIDCOMM_REORDER_TASKLETS 12

/* The largest DMA transfer, in bytes. Each tasklet has two buffers of this size: one to read and
 * one to write. */
#define PIDCOMM_REORDER_DMA_BYTES 2048u

/* Each block of at least this size is transferred to its position. Smaller blocks are permuted in
 * WRAM: two transfers of 64 bytes occupy the DMA engine for 76 cycles, and a copy of 8 words takes
 * 120 instructions. */
#define PIDCOMM_REORDER_LEAST_LARGE 64u

/* The name of the variable that holds the job. This name identifies the program. */
#define PIDCOMM_REORDER_JOB "pidcomm_reorder_job"

/* The host variable `pidcomm_reorder_job`. Sizes are in bytes; all numbers of bytes are multiples
 * of 8. Addresses are addresses in PE programs, where MRAM starts at 0x08000000; these addresses do
 * not depend on the start of the heap in any PE program. */
/* [job] */
struct pidcomm_reorder_job {
  uint32_t from, to; /* equal: in place; then step is ways - 1, so that the job is self-inverse */
  uint32_t block_bytes; /* at least 8 */
  uint32_t parts;       /* 0: this PE has nothing to do */
  uint32_t ways;        /* blocks of a part: 1, 2, 4 or 8 */
  uint32_t first,
      step;          /* block j of the output is block (first + j * step) mod ways of the input */
  uint32_t is_armed; /* in: not 0 if there is a job; out: 0 */
  uint64_t cycles;   /* out: from the start to the end of the job */
  uint64_t cycles_per_second; /* out: the clock of the PE */
};
/* [end] */

#endif
