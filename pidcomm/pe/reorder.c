/* PE-assisted reordering (PID-Comm, ISCA 2024, section V-A): permutes the blocks inside every part
 * of a window. Each PE has its own job.
 *
 * All PEs run this program; the host writes the job to pidcomm_reorder_job. The program does not
 * define MRAM variables and does not print, so MRAM changes only in the output window. If a caller
 * launches the PEs without a job, because it has not loaded its own program again, the launch ends
 * with a fault.
 *
 * A tasklet reads a complete piece of work before it writes the piece, and pieces of work do not
 * share bytes. To reorder large blocks in place, the job must be self-inverse. Each piece of work
 * then consists of two pieces of blocks, which the tasklet swaps. */
#include "reorder.h"

#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>

#define DMA_BYTES PIDCOMM_REORDER_DMA_BYTES
#define BUFFER_BYTES (2 * DMA_BYTES)
#define MAX_WAYS 8 /* PEs of an entangled group */

_Static_assert(PIDCOMM_REORDER_LEAST_LARGE *MAX_WAYS <= DMA_BYTES, "small parts fit into a buffer");

__host struct pidcomm_reorder_job pidcomm_reorder_job;

BARRIER_INIT(everybody, NR_TASKLETS);

/* Each tasklet uses a copy of the job in registers. */
typedef struct pidcomm_reorder_job job_t;

static inline uint32_t source_of(const job_t *job, uint32_t j) {
  return (job->first + j * job->step) & (job->ways - 1);
}

static inline void read_mram(uint32_t from, uint8_t *to, uint32_t bytes) {
  mram_read((const __mram_ptr void *)(uintptr_t)from, to, bytes);
}
static inline void write_mram(const uint8_t *from, uint32_t to, uint32_t bytes) {
  mram_write(from, (__mram_ptr void *)(uintptr_t)to, bytes);
}

/* Permutes complete parts in WRAM: as many at once as one transfer holds, but so few that all
 * tasklets have work. */
static void reorder_small_parts(const job_t *job, uint8_t *buffer) {
  const uint32_t part_bytes = job->block_bytes * job->ways;
  const uint32_t most = DMA_BYTES / part_bytes,
                 share = (job->parts + NR_TASKLETS - 1) / NR_TASKLETS;
  const uint32_t parts_at_once = share < most ? share : most;
  const uint32_t words = job->block_bytes / 8;
  uint32_t sources[MAX_WAYS];
  for (uint32_t j = 0; j < job->ways; ++j) sources[j] = source_of(job, j) * job->block_bytes;
  for (uint32_t part = me() * parts_at_once; part < job->parts;
       part += NR_TASKLETS * parts_at_once) {
    const uint32_t parts = job->parts - part < parts_at_once ? job->parts - part : parts_at_once;
    const uint32_t offset = part * part_bytes, bytes = parts * part_bytes;
    read_mram(job->from + offset, buffer, bytes);
    uint64_t *out = (uint64_t *)(buffer + DMA_BYTES);
    for (const uint8_t *in = buffer; in < buffer + bytes; in += part_bytes)
      for (uint32_t j = 0; j < job->ways; ++j) {
        const uint64_t *block = (const uint64_t *)(in + sources[j]);
        for (uint32_t w = 0; w < words; ++w) *out++ = block[w];
      }
    write_mram(buffer + DMA_BYTES, job->to + offset, bytes);
  }
}

/* Writes one piece of a block at a time to its new position. If from == to, the job is
 * self-inverse: two pieces are swapped, or a piece does not move. */
static void reorder_large_blocks(const job_t *job, uint8_t *buffer) {
  const uint32_t pieces = (job->block_bytes + DMA_BYTES - 1) / DMA_BYTES;
  const uint32_t blocks = job->parts * job->ways;
  const int is_in_place = job->from == job->to;
  uint32_t block = 0;
  for (uint32_t piece = me();; piece += NR_TASKLETS) {
    const uint32_t passed = piece / pieces;
    block += passed;
    piece -= passed * pieces;
    if (block >= blocks) return;
    const uint32_t j = block & (job->ways - 1), source = source_of(job, j);
    if (is_in_place && source <= j) continue;
    const uint32_t done = piece * DMA_BYTES, left = job->block_bytes - done;
    const uint32_t bytes = left < DMA_BYTES ? left : DMA_BYTES;
    const uint32_t to = block * job->block_bytes + done;
    const uint32_t from = to + (source - j) * job->block_bytes;
    read_mram(job->from + from, buffer, bytes);
    if (is_in_place) {
      read_mram(job->from + to, buffer + DMA_BYTES, bytes);
      write_mram(buffer + DMA_BYTES, job->to + from, bytes);
    }
    write_mram(buffer, job->to + to, bytes);
  }
}

int main(void) {
  const job_t job = pidcomm_reorder_job;
  if (!job.is_armed) halt();
  if (me() == 0) {
    perfcounter_config(COUNT_CYCLES, true);
    mem_reset();
  }
  barrier_wait(&everybody);
  if (job.parts != 0) {
    uint8_t *const buffer = mem_alloc(BUFFER_BYTES);
    if (job.block_bytes < PIDCOMM_REORDER_LEAST_LARGE)
      reorder_small_parts(&job, buffer);
    else
      reorder_large_blocks(&job, buffer);
  }
  barrier_wait(&everybody);
  if (me() == 0) {
    pidcomm_reorder_job.cycles = perfcounter_get();
    pidcomm_reorder_job.cycles_per_second = CLOCKS_PER_SEC;
    pidcomm_reorder_job.is_armed = 0;
  }
  return 0;
}
