/* reorder.h: what the host and the PE program reorder.c say to each other. C11 on both sides; the same layout on both. */
#ifndef PIDCOMM_PE_REORDER_H
#define PIDCOMM_PE_REORDER_H

#include <stdint.h>

#define PIDCOMM_REORDER_TASKLETS 12

/* The largest DMA transfer, in bytes. A tasklet has room for one that comes and one that goes. */
#define PIDCOMM_REORDER_DMA_BYTES 2048u

/* The name of the job below, by which the program is known. */
#define PIDCOMM_REORDER_JOB "pidcomm_reorder_job"

/* The host variable `pidcomm_reorder_job`. Sizes are in bytes; all numbers of bytes are multiples of 8. Addresses are those of PE programs,
 * where MRAM starts at 0x08000000, and do not depend on where the heap of this program or another one starts. */
/* [job] */
struct pidcomm_reorder_job {
  uint32_t from, to;    /* may be the same: in place; step is ways - 1 then, so that the job undoes itself */
  uint32_t block_bytes; /* at least 8 */
  uint32_t parts;       /* 0: this PE has nothing to do */
  uint32_t ways;        /* blocks of a part: 1, 2, 4 or 8 */
  uint32_t first, step; /* block j of the output is block (first + j * step) mod ways of the input */
  uint32_t is_armed;    /* in: not 0 if there is a job; out: 0 */
  uint64_t cycles;      /* out: from the start to the end of the job */
};
/* [end] */

#endif
